//! The declaration of records: one list of offsets, names and types becomes value, encoder, decoder and view.

use super::FieldPlace;

/// Whether fields stand one behind the other inside of a length that is whole words. For the compiler: it runs in constants.
///
/// # Panics
/// When not; the program does not compile then.
pub const fn checked_layout(fields: &[FieldPlace], length: usize) {
    assert!(length > 0 && length.is_multiple_of(8), "a record is a multiple of 8 bytes");
    let (mut index, mut end) = (0, 0);
    while index < fields.len() {
        assert!(fields[index].offset >= end, "fields overlap, or do not stand in the order of their offsets");
        end = fields[index].offset + fields[index].length;
        index += 1;
    }
    assert!(end <= length, "fields are longer than the record");
}

/// Declare a record: a struct of values ([`FixedRecord`](crate::records::FixedRecord)) and a view over its bytes.
///
/// ```
/// relay_accel_codec::fixed_record! {
///     /// A quote.
///     pub struct Quote, view QuoteView, 24 bytes {
///         /// Nanoseconds since the epoch.
///         0 at_ns: u64,
///         /// In units of 10^-7.
///         8 price: i64,
///         /// Zero-padded.
///         16 symbol: [u8; 6],
///     }
/// }
/// ```
///
/// Fields that overlap, or a length that is not whole words, do not compile:
///
/// ```compile_fail
/// relay_accel_codec::fixed_record! {
///     /// Twelve bytes.
///     pub struct Odd, view OddView, 12 bytes {
///         /// A number.
///         0 number: u64,
///     }
/// }
/// ```
#[macro_export]
macro_rules! fixed_record {
    (
        $(#[$note:meta])*
        pub struct $record:ident, view $view:ident, $length:literal bytes {
            $($(#[$field_note:meta])* $offset:literal $field:ident: $type:ty,)+
        }
    ) => {
        $(#[$note])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct $record {
            $($(#[$field_note])* pub $field: $type,)+
        }

        const _: () = $crate::records::checked_layout(<$record as $crate::records::FixedRecord>::FIELDS, $length);

        impl $crate::records::FixedRecord for $record {
            const LENGTH: usize = $length;
            const FIELDS: &'static [$crate::records::FieldPlace] = &[$($crate::records::FieldPlace {
                name: stringify!($field),
                offset: $offset,
                length: <$type as $crate::records::Field>::LENGTH,
            }),+];

            #[inline]
            fn decode(bytes: &[u8]) -> Result<Self, $crate::records::RecordError> {
                $view::wrap(bytes).map(|view| view.record())
            }

            #[inline]
            fn write(&self, bytes: &mut [u8]) {
                let bytes = &mut bytes[..$length];
                bytes.fill(0);
                $($crate::records::Field::write(
                    self.$field,
                    &mut bytes[$offset..$offset + <$type as $crate::records::Field>::LENGTH],
                );)+
            }
        }

        #[doc = concat!("A [`", stringify!($record), "`] read from its own bytes, which were checked.")]
        #[derive(Clone, Copy, Debug)]
        pub struct $view<'a>(&'a [u8]);

        impl<'a> $view<'a> {
            /// View the record at the start of `bytes`; padding is ignored.
            ///
            /// # Errors
            /// `bytes` is too short, or an enum's byte is unknown.
            #[inline]
            pub fn wrap(bytes: &'a [u8]) -> Result<Self, $crate::records::RecordError> {
                let left = bytes.len();
                let bytes = bytes.get(..$length).ok_or($crate::records::RecordError::Short {
                    offset: 0,
                    length: $length,
                    left,
                })?;
                $($crate::records::field::<$type>(bytes, $offset, stringify!($field))?;)+
                Ok(Self(bytes))
            }

            $(
                $(#[$field_note])*
                #[inline]
                pub fn $field(self) -> $type {
                    $crate::records::checked(self.0, $offset)
                }
            )+

            /// All fields, copied.
            #[inline]
            pub fn record(self) -> $record {
                $record { $($field: self.$field(),)+ }
            }
        }
    };
}
