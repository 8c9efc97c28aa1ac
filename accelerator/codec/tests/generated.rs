//! Generated modules beside dynamic views: they say the same, refuse the same, and write the same.

use std::fs;

use proptest::prelude::*;
use relay_accel_codec::sbe::{Encoder, Schema, Value, rust_module};

#[rustfmt::skip]
#[path = "generated/car.rs"]
mod car;
#[rustfmt::skip]
#[path = "generated/fix.rs"]
mod fix;
#[rustfmt::skip]
#[path = "generated/odd.rs"]
mod odd;
#[rustfmt::skip]
#[path = "generated/odd_big.rs"]
mod odd_big;
#[path = "generated_support/cars.rs"]
mod cars;
mod generated_support;
#[path = "generated_support/odd_macro.rs"]
mod odd_macro;
#[path = "generated_support/refreshes.rs"]
mod refreshes;

use generated_support::{Generated, crate_path, golden, schema};

const MODULES: [(&str, &str); 4] = [
    ("tests/car.xml", "car.rs"),
    ("../../proto/fix.xml", "fix.rs"),
    ("tests/odd.xml", "odd.rs"),
    ("tests/odd_big.xml", "odd_big.rs"),
];

/// `SBE_GENERATE=1 cargo test -p relay-accel-codec --test generated` writes them anew.
#[test]
fn the_modules_that_are_checked_in_are_what_the_generator_gives() {
    for (file, module) in MODULES {
        let text = rust_module(&schema(file));
        let path = crate_path("tests/generated").join(module);
        if std::env::var_os("SBE_GENERATE").is_some() {
            fs::write(&path, &text).unwrap();
        }
        assert!(fs::read_to_string(&path).unwrap() == text, "{} differs: see SBE_GENERATE", path.display());
    }
}

#[test]
fn no_generated_module_has_unsafe_code_or_needs_more_than_core() {
    for (file, _) in MODULES {
        let text = rust_module(&schema(file));
        for word in ["unsafe", "std::", "unwrap()", "expect(", "panic!", "extern crate"] {
            assert!(!text.contains(word), "{file}: {word}");
        }
    }
}

/// A car whose groups have so many entries.
fn car_bytes(schema: &Schema, entries: u64) -> Vec<u8> {
    let mut buffer = vec![0; 1_024];
    let mut car = Encoder::begin(schema, schema.message("Car").unwrap(), &mut buffer).unwrap();
    car.put("serial", Value::Unsigned(u64::MAX - entries)).unwrap();
    car.put("code", Value::Bytes(b"abc")).unwrap();
    car.begin_group("fuel", entries).unwrap();
    for entry in 0..entries {
        car.next_entry().unwrap();
        car.put_data("usage", &vec![b'u'; entry as usize * 2]).unwrap();
    }
    car.end_group().unwrap();
    car.begin_group("performance", entries).unwrap();
    for entry in 0..entries {
        car.next_entry().unwrap();
        car.begin_group("acceleration", entry).unwrap();
        (0..entry).for_each(|_| car.next_entry().unwrap());
        car.end_group().unwrap();
    }
    car.end_group().unwrap();
    car.put_data("manufacturer", b"Honda").unwrap();
    let length = car.finish().unwrap();
    buffer.truncate(length);
    buffer
}

/// The message that has everything, with entries and data everywhere.
fn everything_bytes(schema: &Schema) -> Vec<u8> {
    let mut buffer = vec![0; 1_024];
    let mut all = Encoder::begin(schema, schema.message("Everything").unwrap(), &mut buffer).unwrap();
    all.put("i64", Value::Signed(-5)).unwrap();
    all.put("atLeast", Value::Double(0.5)).unwrap();
    all.put("optPercent", Value::Unsigned(99)).unwrap();
    all.put("optText", Value::Bytes(b"ab")).unwrap();
    all.begin_group("plain", 2).unwrap();
    (0..2).for_each(|_| all.next_entry().unwrap());
    all.end_group().unwrap();
    all.begin_group("nested", 2).unwrap();
    for data in [&b""[..], b"text"] {
        all.next_entry().unwrap();
        all.begin_group("deep", 2).unwrap();
        for deeper in 0..2 {
            all.next_entry().unwrap();
            all.begin_group("deeper", deeper).unwrap();
            (0..deeper).for_each(|_| all.next_entry().unwrap());
            all.end_group().unwrap();
            all.put_data("note", b"n").unwrap();
        }
        all.end_group().unwrap();
        all.put_data("text", data).unwrap();
    }
    all.end_group().unwrap();
    all.begin_group("fresh", 1).unwrap();
    all.next_entry().unwrap();
    all.end_group().unwrap();
    all.put_data("first", b"first").unwrap();
    all.put_data("second", b"second").unwrap();
    let length = all.finish().unwrap();
    buffer.truncate(length);
    buffer
}

fn subjects() -> Vec<(Generated, Schema, Vec<u8>)> {
    let (car, little, big) = (schema("tests/car.xml"), schema("tests/odd.xml"), schema("tests/odd_big.xml"));
    let (cars, of_little, of_big) = (car_bytes(&car, 3), everything_bytes(&little), everything_bytes(&big));
    let refresh = golden("fix/MarketDataIncrementalRefresh.bin");
    vec![
        (cars::CAR, car, cars),
        (refreshes::REFRESH, schema("../../proto/fix.xml"), refresh),
        (odd_macro::everything!(odd), little, of_little),
        (odd_macro::everything!(odd_big), big, of_big),
    ]
}

#[test]
fn a_message_cut_at_any_byte_or_with_any_bit_turned_is_the_same_or_refused_by_both() {
    for (generated, schema, bytes) in subjects() {
        generated.agrees_on_all_like(&schema, &bytes);
    }
}

#[test]
fn a_message_that_says_an_earlier_version_has_what_that_version_had() {
    for version in 0..4 {
        let schema = schema("tests/odd.xml");
        let mut bytes = everything_bytes(&schema);
        bytes[0] = version;
        for length in 0..=bytes.len() {
            odd_macro::everything!(odd).agrees(&schema, &bytes[..length]);
        }
        // Blocks as long as the version's, and shorter: the root's length is at byte 3.
        for length in 0..=200_u8 {
            bytes[3] = length;
            odd_macro::everything!(odd).agrees(&schema, &bytes);
        }
    }
}

#[test]
fn forged_template_ids_are_those_of_other_messages_or_of_none() {
    let bytes = golden("fix/NewOrderSingle.bin");
    assert!(matches!(fix::Message::decode(&bytes), Ok(fix::Message::NewOrderSingle(_))));
    let wrong = fix::HeartbeatDecoder::decode(&bytes).unwrap_err();
    assert_eq!(wrong, fix::Error::WrongTemplate { expected: 48, actual: 68 });
    assert_eq!(wrong.to_string(), "expected template id 48, the message has 68");
    let mut forged = bytes.clone();
    forged[2] = 1;
    assert!(matches!(fix::Message::decode(&forged), Err(fix::Error::UnknownTemplate { actual: 1 })));
    forged[4] = 9;
    assert!(matches!(fix::Message::decode(&forged), Err(fix::Error::WrongSchema { expected: 1, actual: 9 })));
}

#[test]
fn what_is_passed_cannot_be_written_and_what_is_left_out_is_empty() {
    let mut buffer = [0; 256];
    let mut car = car::CarEncoder::begin(&mut buffer).unwrap();
    car.manufacturer(b"Honda").unwrap();
    let late = car.fuel([1_u16], |_, _| Ok(())).unwrap_err();
    assert_eq!(late, car::Error::Order { what: "fuel" });
    let length = car.finish().unwrap();
    let car = car::CarDecoder::decode(&buffer[..length]).unwrap();
    assert_eq!((car.fuel().len(), car.manufacturer(), car.model_name()), (0, &b"Honda"[..], &b""[..]));
    assert_eq!((car.year(), car::text(car.manufacturer())), (None, Ok("Honda")));
}

#[test]
fn values_beyond_what_the_schema_says_are_refused() {
    let mut buffer = [0; 512];
    let mut all = odd::EverythingEncoder::begin(&mut buffer).unwrap();
    assert_eq!(all.percent(101).unwrap_err(), odd::Error::OutOfRange { what: "percent" });
    assert_eq!(all.raw(b"12345").unwrap_err(), odd::Error::TooMany { what: "raw", max: 4 });
    let many = all.plain(0..301, |_, _| Ok(())).unwrap_err();
    assert!(matches!(many, odd::Error::Overflow { .. } | odd::Error::TooMany { .. }), "{many}");
    let mut all = odd::EverythingEncoder::begin(&mut buffer).unwrap();
    assert_eq!(all.first(&[0; 21]).unwrap_err(), odd::Error::TooMany { what: "first", max: 20 });
}

#[test]
fn constants_are_those_of_the_schema() {
    type All<'a> = odd::EverythingDecoder<'a>;
    assert_eq!((All::SEVEN, All::HALF.to_bits(), All::GREETING), (-7, 0.5_f64.to_bits(), "he\"lo"));
    assert_eq!(All::FIXED_RESULT.raw(), 5);
    assert_eq!(car::EngineDecoder::FUEL, "Petrol");
    assert_eq!((car::CarDecoder::DISCOUNTED, fix::Decimal64Decoder::EXPONENT), (car::Model::A, -7));
}

#[test]
fn a_set_has_its_choices_by_name() {
    let wide = odd::Wide::default().with_first(true).with_last(true).with_type_(true).with_first(false);
    assert_eq!(wide, odd::Wide(1 << 63 | 1 << 31));
    assert!(wide.last() && wide.type_() && !wide.first());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn any_bytes_in_any_places_are_the_same_or_refused_by_both(
        which in 0..4_usize,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..24),
        cut in prop::option::of(any::<prop::sample::Index>()),
        behind in prop::collection::vec(any::<u8>(), 0..8),
    ) {
        let (generated, schema, mut bytes) = subjects().swap_remove(which);
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        bytes.extend(behind);
        bytes.truncate(cut.map_or(usize::MAX, |cut| cut.index(bytes.len())));
        generated.agrees(&schema, &bytes);
    }

    #[test]
    fn every_value_of_every_field_is_the_same_for_both(which in 0..4_usize, root in prop::collection::vec(any::<u8>(), 200)) {
        let (generated, schema, mut bytes) = subjects().swap_remove(which);
        let message = relay_accel_codec::sbe::MessageView::wrap(&schema, &bytes).unwrap();
        let (start, length) = message.root().span();
        bytes[start..start + length].copy_from_slice(&root[..length]);
        generated.agrees(&schema, &bytes);
    }
}
