//! Numbers at fixed places, and structs that are made of them.

use super::fault::WireError;

/// Which byte of a number comes first.
#[derive(Clone, Copy)]
pub(crate) enum Order {
    Little,
    Big,
}

/// A whole number of fixed length.
pub(crate) trait Number: Copy {
    fn read(bytes: &[u8], offset: usize, order: Order) -> Self;
    fn write(self, bytes: &mut [u8], offset: usize, order: Order);
}

macro_rules! numbers {
    ($($type:ty),*) => {$(
        impl Number for $type {
            fn read(bytes: &[u8], offset: usize, order: Order) -> Self {
                let mut raw = [0; size_of::<Self>()];
                raw.copy_from_slice(&bytes[offset..offset + size_of::<Self>()]);
                match order {
                    Order::Little => Self::from_le_bytes(raw),
                    Order::Big => Self::from_be_bytes(raw),
                }
            }

            fn write(self, bytes: &mut [u8], offset: usize, order: Order) {
                let raw = match order {
                    Order::Little => self.to_le_bytes(),
                    Order::Big => self.to_be_bytes(),
                };
                bytes[offset..offset + size_of::<Self>()].copy_from_slice(&raw);
            }
        }
    )*};
}

numbers!(u8, u16, u32, u64, i16, i32, i64);

/// The first `N` bytes, and what is behind them.
pub(crate) fn head<'a, const N: usize>(
    bytes: &'a [u8],
    field: &'static str,
) -> Result<(&'a [u8; N], &'a [u8]), WireError> {
    bytes.split_first_chunk().ok_or(WireError::truncated(field, 0, N, bytes.len()))
}

/// The first `length` bytes of a buffer, zeroed.
pub(crate) fn room(buffer: &mut [u8], length: usize) -> Result<&mut [u8], WireError> {
    let got = buffer.len();
    let place = buffer.get_mut(..length).ok_or(WireError::truncated("buffer", 0, length, got))?;
    place.fill(0);
    Ok(place)
}

/// A struct of numbers at fixed places of a head of so many bytes; whatever the fields leave free is not touched.
macro_rules! layout {
    (
        $(#[$meta:meta])* $name:ident: $length:literal bytes, $order:ident,
        { $($(#[$doc:meta])* $field:ident: $type:ty = $offset:literal,)* }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        pub struct $name {
            $($(#[$doc])* pub $field: $type,)*
        }

        impl $name {
            /// Bytes of the layout, without what follows it.
            pub const LENGTH: usize = $length;

            pub(crate) fn read(head: &[u8; $length]) -> Self {
                use crate::wire::bytes::{Number, Order};
                // A field that does not fit is a subtraction that does not compile.
                const { $(let _ = $length - $offset - size_of::<$type>();)* }
                Self { $($field: Number::read(head, $offset, Order::$order),)* }
            }

            pub(crate) fn write(&self, head: &mut [u8]) {
                use crate::wire::bytes::{Number, Order};
                $(Number::write(self.$field, head, $offset, Order::$order);)*
            }
        }
    };
}

pub(crate) use layout;
