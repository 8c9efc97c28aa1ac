//! What a record can be made of: numbers, bytes, and enums of one byte.

use super::RecordError;

/// Where a field stands; offset and length in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct FieldPlace {
    pub name: &'static str,
    pub offset: usize,
    pub length: usize,
}

/// A value that has its bytes in itself: no pointer can be one.
pub trait Field: Copy {
    /// Length in bytes.
    const LENGTH: usize;
    /// What an enum allows, for errors; empty where all bytes are right.
    const ALLOWED: &'static str = "";

    /// Read from bytes of its length; none when an enum does not know its byte.
    fn read(bytes: &[u8]) -> Option<Self>;

    /// Write into bytes of its length.
    fn write(self, bytes: &mut [u8]);
}

macro_rules! numbers {
    ($($type:ty)+) => {$(
        impl Field for $type {
            const LENGTH: usize = size_of::<$type>();

            #[inline]
            fn read(bytes: &[u8]) -> Option<Self> {
                bytes.try_into().ok().map(<$type>::from_le_bytes)
            }

            #[inline]
            fn write(self, bytes: &mut [u8]) {
                bytes.copy_from_slice(&self.to_le_bytes());
            }
        }
    )+};
}

numbers!(u8 u16 u32 u64 i8 i16 i32 i64 f32 f64);

impl<const N: usize> Field for [u8; N] {
    const LENGTH: usize = N;

    #[inline]
    fn read(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok()
    }

    #[inline]
    fn write(self, bytes: &mut [u8]) {
        bytes.copy_from_slice(&self);
    }
}

/// Read the field at `offset` of a record's bytes, which are long enough.
///
/// # Errors
/// [`RecordError::Unknown`].
///
/// # Panics
/// When `bytes` ends before the field.
#[inline]
pub fn field<F: Field>(bytes: &[u8], offset: usize, name: &'static str) -> Result<F, RecordError> {
    let own = &bytes[offset..offset + F::LENGTH];
    F::read(own).ok_or_else(|| RecordError::Unknown { offset, field: name, value: own[0], allowed: F::ALLOWED })
}

/// Read the field at `offset` of bytes that a view has checked.
///
/// # Panics
/// When they were not checked.
#[inline]
pub fn checked<F: Field>(bytes: &[u8], offset: usize) -> F {
    F::read(&bytes[offset..offset + F::LENGTH]).expect("the view has checked its bytes")
}
