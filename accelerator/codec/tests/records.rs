//! Fixed records: what is written is read, what was cut off or has unknown bytes is refused, padding is zero and ignored.
#![allow(missing_docs)]

use proptest::prelude::*;
use relay_accel_codec::fixed_record;
use relay_accel_codec::records::{
    BookSide, FixedRecord, OrderKind, OrderMessage, OrderSide, OrderView, RecordError, TickMessage, TickView,
};

fixed_record! {
    /// Every kind of field, with gaps.
    pub struct Mixed, view MixedView, 56 bytes {
        /// One byte, then a gap.
        0 tiny: i8,
        /// Two.
        2 short: u16,
        /// Four.
        4 word: i32,
        /// Eight, then a gap.
        8 double: f64,
        /// Four.
        24 single: f32,
        /// Text.
        28 name: [u8; 11],
        /// An enum.
        39 side: OrderSide,
        /// Two, unaligned.
        41 odd: i16,
    }
}

fn tick() -> impl Strategy<Value = TickMessage> {
    (any::<u64>(), any::<u32>(), any::<i64>(), any::<u64>(), any::<bool>()).prop_map(
        |(timestamp_ns, symbol_id, price, volume, is_bid)| TickMessage {
            timestamp_ns,
            symbol_id,
            price,
            volume,
            side: if is_bid { BookSide::Bid } else { BookSide::Ask },
        },
    )
}

fn order() -> impl Strategy<Value = OrderMessage> {
    let kinds = prop::sample::select(vec![OrderKind::Limit, OrderKind::Market, OrderKind::Cancel]);
    let sides = prop::sample::select(vec![OrderSide::Buy, OrderSide::Sell]);
    ((any::<u64>(), any::<u64>(), any::<u32>()), (any::<i64>(), any::<u64>()), sides, kinds).prop_map(
        |((timestamp_ns, order_id, symbol_id), (price, quantity), side, kind)| OrderMessage {
            timestamp_ns,
            order_id,
            symbol_id,
            price,
            quantity,
            side,
            kind,
        },
    )
}

fn comes_back<R: FixedRecord + PartialEq + std::fmt::Debug>(records: &[R], padding: &[usize]) {
    let mut buffer = vec![0xcc; records.len() * R::LENGTH + 5];
    let end = R::encode_all(records, &mut buffer).unwrap();
    assert_eq!(end, records.len() * R::LENGTH);
    assert!(buffer[end..].iter().all(|byte| *byte == 0xcc));
    assert_eq!(R::decode_all(&buffer[..end]).unwrap(), records);
    for (index, record) in records.iter().enumerate() {
        let own = index * R::LENGTH;
        for at in padding {
            assert_eq!(buffer[own + at], 0);
            buffer[own + at] = 0xff;
        }
        assert_eq!(R::decode(&buffer[own..]).unwrap(), *record, "padding is ignored");
        for cut in 0..R::LENGTH {
            let short = RecordError::Short { offset: 0, length: R::LENGTH, left: cut };
            assert_eq!(R::decode(&buffer[own..own + cut]).unwrap_err(), short);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn ticks_come_back(ticks in prop::collection::vec(tick(), 0..8)) {
        comes_back(&ticks, &[29, 30, 31]);
    }

    #[test]
    fn orders_come_back(orders in prop::collection::vec(order(), 0..8)) {
        comes_back(&orders, &[38, 39, 40, 41, 42, 43, 44, 45, 46, 47]);
    }

    #[test]
    fn views_show_what_records_hold(tick in tick(), order in order()) {
        let mut buffer = [0xcc; 80];
        let end = tick.encode(&mut buffer, 0).unwrap();
        prop_assert_eq!(order.encode(&mut buffer, end), Ok(80));
        prop_assert_eq!(TickView::wrap(&buffer).unwrap().record(), tick);
        let view = OrderView::wrap(&buffer[end..]).unwrap();
        prop_assert_eq!((view.order_id(), view.side(), view.kind()), (order.order_id, order.side, order.kind));
    }

    #[test]
    fn a_declared_record_comes_back(
        tiny: i8, short: u16, word: i32, double in prop::num::f64::NORMAL, single in prop::num::f32::NORMAL,
        name: [u8; 11], odd: i16,
    ) {
        let mixed = Mixed { tiny, short, word, double, single, name, side: OrderSide::Sell, odd };
        comes_back(&[mixed, mixed], &[1, 16, 23, 40, 43, 55]);
        let mut buffer = [0; Mixed::LENGTH];
        mixed.write(&mut buffer);
        prop_assert_eq!(MixedView::wrap(&buffer).unwrap().odd(), odd);
    }

    #[test]
    fn a_flipped_bit_changes_one_field_or_is_refused(order in order(), at in 0..48_usize, bit in 0..8_u32) {
        let mut buffer = [0; OrderMessage::LENGTH];
        order.write(&mut buffer);
        buffer[at] ^= 1_u8 << bit;
        let read = OrderMessage::decode(&buffer);
        match (at, &read) {
            (38.., _) => prop_assert_eq!(read, Ok(order)),
            (36 | 37, Err(RecordError::Unknown { offset, value, .. })) => {
                prop_assert_eq!((*offset, *value), (at, buffer[at]));
            }
            _ => prop_assert!(read.unwrap() != order),
        }
    }
}

#[test]
fn an_unknown_byte_is_told_with_its_place_value_and_what_is_allowed() {
    let mut buffer = [0; 3 * OrderMessage::LENGTH];
    buffer[2 * 48 + 37] = 3;
    let error = OrderMessage::decode_all(&buffer).unwrap_err();
    assert_eq!(error.to_string(), "byte 133: kind is 3, expected one of 0 (LIMIT), 1 (MARKET), 2 (CANCEL)");
    let error = OrderView::wrap(&buffer[96..]).unwrap_err();
    assert_eq!(error.to_string(), "byte 37: kind is 3, expected one of 0 (LIMIT), 1 (MARKET), 2 (CANCEL)");
}

#[test]
fn a_buffer_that_is_too_short_is_not_written_to() {
    let tick = TickMessage { timestamp_ns: !0, symbol_id: !0, price: -1, volume: !0, side: BookSide::Ask };
    let mut buffer = [7; 63];
    let refused = tick.encode(&mut buffer, 32).unwrap_err();
    assert_eq!(refused.to_string(), "byte 32: expected 32 bytes, 31 are left");
    assert!(tick.encode(&mut buffer, usize::MAX).is_err());
    assert!(TickMessage::encode_all(&[tick, tick], &mut buffer).is_err());
    assert_eq!(buffer, [7; 63]);
    assert_eq!(TickMessage::decode_all(&buffer), Err(RecordError::NotWhole { length: 32, actual: 63 }));
}
