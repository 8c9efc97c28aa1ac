//! The two market records: a tick of 32 bytes, an order of 48.
//!
//! ```text
//! TickMessage                                         OrderMessage
//!  0            8           12     20      28   29     0            8         16         20     28        36   37   38
//! +------------+-----------+------+-------+----+----+ +------------+---------+----------+------+---------+----+----+----+
//! |timestamp_ns| symbol_id |price | volume|side|zero| |timestamp_ns| order_id|symbol_id |price |quantity |side|kind|zero|
//! | u64        | u32       | i64  | u64   | u8 | 3  | | u64        | u64     | u32      | i64  | u64     | u8 | u8 | 10 |
//! +------------+-----------+------+-------+----+----+ +------------+---------+----------+------+---------+----+----+----+
//! ```

use super::Field;

macro_rules! byte_enum {
    ($(#[$note:meta])* $name:ident { $($(#[$member_note:meta])* $member:ident = $value:literal,)+ } allows $allowed:literal) => {
        $(#[$note])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum $name {
            $($(#[$member_note])* $member = $value,)+
        }

        impl Field for $name {
            const LENGTH: usize = 1;
            const ALLOWED: &'static str = $allowed;

            #[inline]
            fn read(bytes: &[u8]) -> Option<Self> {
                match bytes {
                    $([$value] => Some(Self::$member),)+
                    _ => None,
                }
            }

            #[inline]
            fn write(self, bytes: &mut [u8]) {
                bytes[0] = self as u8;
            }
        }
    };
}

byte_enum! {
    /// Side of a book.
    BookSide {
        /// Who buys.
        Bid = 0,
        /// Who sells.
        Ask = 1,
    } allows "0 (BID), 1 (ASK)"
}

byte_enum! {
    /// Side of an order.
    OrderSide {
        /// It buys.
        Buy = 0,
        /// It sells.
        Sell = 1,
    } allows "0 (BUY), 1 (SELL)"
}

byte_enum! {
    /// What an order asks for.
    OrderKind {
        /// At its price or better.
        Limit = 0,
        /// At any price.
        Market = 1,
        /// That an earlier order ends.
        Cancel = 2,
    } allows "0 (LIMIT), 1 (MARKET), 2 (CANCEL)"
}

crate::fixed_record! {
    /// A tick of one symbol.
    pub struct TickMessage, view TickView, 32 bytes {
        /// Nanoseconds since the epoch.
        0 timestamp_ns: u64,
        /// The user's number of the symbol.
        8 symbol_id: u32,
        /// Scaled integer; the user knows its scale.
        12 price: i64,
        /// Scaled integer; the user knows its scale.
        20 volume: u64,
        /// Side of the book.
        28 side: BookSide,
    }
}

crate::fixed_record! {
    /// An order for one symbol.
    pub struct OrderMessage, view OrderView, 48 bytes {
        /// Nanoseconds since the epoch.
        0 timestamp_ns: u64,
        /// The user's number of the order.
        8 order_id: u64,
        /// The user's number of the symbol.
        16 symbol_id: u32,
        /// Scaled integer; the user knows its scale.
        20 price: i64,
        /// Scaled integer; the user knows its scale.
        28 quantity: u64,
        /// Whether it buys or sells.
        36 side: OrderSide,
        /// What it asks for.
        37 kind: OrderKind,
    }
}
