//! Whatever values a message has, they come back.

use proptest::prelude::*;
use relay_accel_codec::sbe::{ByteOrder, Encoder, MessageView, Primitive, Scalar, Schema, Value};

const CAR: &str = include_str!("car.xml");

type Fuel = Vec<(u16, String)>;
type Performance = Vec<(u8, Vec<(u16, f32)>)>;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_written_is_read(
        big in any::<bool>(),
        serial: u64,
        year in prop::option::of(0..=65_534_u16),
        code in prop::collection::vec(any::<u8>(), 0..=6),
        extras in 0..8_u64,
        fuel in prop::collection::vec((any::<u16>(), ".{0,12}"), 0..5),
        performance in prop::collection::vec((any::<u8>(), prop::collection::vec((any::<u16>(), any::<f32>()), 0..4)), 0..4),
        maker in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        let (fuel, performance): (Fuel, Performance) = (fuel, performance);
        let text = if big { CAR.replacen("version=\"2\"", "version=\"2\" byteOrder=\"bigEndian\"", 1) } else { CAR.into() };
        let schema = Schema::from_text(&text).unwrap();
        let mut buffer = vec![0xcc; 4_096];
        let mut car = Encoder::begin(&schema, schema.message("Car").unwrap(), &mut buffer).unwrap();
        car.put("serial", Value::Unsigned(serial)).unwrap();
        car.put("year", year.map_or(Value::Null, |year| Value::Unsigned(year.into()))).unwrap();
        car.put("code", Value::Bytes(&code)).unwrap();
        car.put("extras", Value::Set(extras)).unwrap();
        car.begin_group("fuel", fuel.len() as u64).unwrap();
        for (speed, usage) in &fuel {
            car.next_entry().unwrap();
            car.put("speed", Value::Unsigned((*speed).into())).unwrap();
            car.put_data("usage", usage.as_bytes()).unwrap();
        }
        car.end_group().unwrap();
        car.begin_group("performance", performance.len() as u64).unwrap();
        for (octane, figures) in &performance {
            car.next_entry().unwrap();
            car.put("octane", Value::Unsigned((*octane).into())).unwrap();
            car.begin_group("acceleration", figures.len() as u64).unwrap();
            for (mph, seconds) in figures {
                car.next_entry().unwrap();
                car.put("mph", Value::Unsigned((*mph).into())).unwrap();
                car.put("seconds", Value::Single(*seconds)).unwrap();
            }
            car.end_group().unwrap();
        }
        car.end_group().unwrap();
        car.put_data("manufacturer", &maker).unwrap();
        let length = car.finish().unwrap();
        prop_assert!(buffer[length..].iter().all(|byte| *byte == 0xcc));

        let view = MessageView::wrap(&schema, &buffer[..length]).unwrap();
        prop_assert_eq!(view.encoded_length().unwrap(), length);
        let root = view.root();
        prop_assert_eq!(root.value("serial").unwrap(), Value::Unsigned(serial));
        prop_assert_eq!(root.value("year").unwrap(), year.map_or(Value::Null, |year| Value::Unsigned(year.into())));
        let mut padded = code.clone();
        padded.resize(6, 0);
        prop_assert_eq!(root.value("code").unwrap(), Value::Bytes(&padded));
        prop_assert_eq!(root.value("extras").unwrap(), Value::Set(extras));
        let group = root.group("fuel").unwrap();
        prop_assert_eq!(group.len(), fuel.len());
        for (entry, (speed, usage)) in group.entries().zip(&fuel) {
            let entry = entry.unwrap();
            prop_assert_eq!(entry.value("speed").unwrap(), Value::Unsigned((*speed).into()));
            prop_assert_eq!(entry.data("usage").unwrap(), usage.as_bytes());
        }
        let group = root.group("performance").unwrap();
        for (index, (octane, figures)) in performance.iter().enumerate() {
            let entry = group.entry(index).unwrap();
            prop_assert_eq!(entry.value("octane").unwrap(), Value::Unsigned((*octane).into()));
            for (entry, (mph, seconds)) in entry.group("acceleration").unwrap().entries().zip(figures) {
                let entry = entry.unwrap();
                prop_assert_eq!(entry.value("mph").unwrap(), Value::Unsigned((*mph).into()));
                let read = entry.value("seconds").unwrap().scalar().unwrap();
                prop_assert!(read.same(Scalar::Single(*seconds)));
            }
        }
        prop_assert_eq!(root.data("manufacturer").unwrap(), &maker[..]);
        for cut in 0..length {
            prop_assert!(MessageView::wrap(&schema, &buffer[..cut]).and_then(|view| view.encoded_length()).is_err());
        }
    }

    #[test]
    fn every_primitive_reads_back_what_fits_it_and_refuses_what_does_not(value: i64, wide: f64, big in any::<bool>()) {
        let order = if big { ByteOrder::Big } else { ByteOrder::Little };
        for primitive in Primitive::ALL {
            let mut bytes = [0; 8];
            let given = if primitive.is_float() { Scalar::Double(wide) } else { Scalar::Signed(value) };
            let (least, greatest) = primitive.bounds();
            let written = primitive.write(&mut bytes, order, given);
            let read = primitive.read(&bytes, order);
            match primitive {
                Primitive::Double => prop_assert!(read.same(given)),
                Primitive::Float => prop_assert!(!written || read.same(Scalar::Single(wide as f32))),
                _ => {
                    prop_assert_eq!(written, (least..=greatest).contains(&i128::from(value)));
                    prop_assert!(!written || read.integer() == Some(value.into()));
                }
            }
        }
    }
}
