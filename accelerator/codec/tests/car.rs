//! A message with everything, written and read.

use relay_accel_codec::sbe::{DecodeError, EncodeError, Encoder, MessageView, Schema, Value};

const CAR: &str = include_str!("car.xml");

fn written(schema: &Schema) -> Vec<u8> {
    let mut buffer = vec![0xaa; 512];
    let mut car = Encoder::begin(schema, schema.message("Car").unwrap(), &mut buffer).unwrap();
    car.put("serial", Value::Unsigned(1234)).unwrap();
    car.put("model", Value::Unsigned(b'B'.into())).unwrap();
    car.put("code", Value::Bytes(b"abcdef")).unwrap();
    car.put("extras", Value::Set(5)).unwrap();
    car.begin_group("fuel", 2).unwrap();
    for (speed, text) in [(30, "Urban"), (55, "")] {
        car.next_entry().unwrap();
        car.put("speed", Value::Unsigned(speed)).unwrap();
        car.put_data("usage", text.as_bytes()).unwrap();
    }
    car.end_group().unwrap();
    car.begin_group("performance", 1).unwrap();
    car.next_entry().unwrap();
    car.put("octane", Value::Unsigned(95)).unwrap();
    car.begin_group("acceleration", 2).unwrap();
    for mph in [30, 60] {
        car.next_entry().unwrap();
        car.put("mph", Value::Unsigned(mph)).unwrap();
    }
    car.end_group().unwrap();
    car.end_group().unwrap();
    car.put_data("manufacturer", b"Honda").unwrap();
    let length = car.finish().unwrap();
    buffer.truncate(length);
    buffer
}

/// Touch every byte that a view gives.
fn walk(schema: &Schema, bytes: &[u8]) -> Result<usize, DecodeError> {
    fn block(view: relay_accel_codec::sbe::BlockView<'_>) -> Result<usize, DecodeError> {
        for field in &view.layout().fields {
            view.value_of(field)?;
        }
        let mut tail = view.tail();
        for layout in &view.layout().groups {
            let group = tail.group(layout)?;
            let mut at = group.span().0;
            for _ in 0..group.len() {
                at = block(group.entry_from(at)?)?;
            }
            tail.go_on(at);
        }
        for layout in &view.layout().data {
            tail.data(layout)?;
        }
        Ok(tail.position())
    }
    block(MessageView::wrap(schema, bytes)?.root())
}

#[test]
fn what_is_written_is_read() {
    let schema = Schema::from_text(CAR).unwrap();
    let bytes = written(&schema);
    let car = MessageView::wrap(&schema, &bytes).unwrap();
    assert_eq!(car.encoded_length().unwrap(), bytes.len());
    assert_eq!(walk(&schema, &bytes).unwrap(), bytes.len());
    let root = car.root();
    assert_eq!(root.value("serial").unwrap(), Value::Unsigned(1234));
    assert_eq!(root.value("year").unwrap(), Value::Null, "optional and not put");
    assert_eq!(root.value("code").unwrap(), Value::Bytes(b"abcdef"));
    assert_eq!(root.value("extras").unwrap(), Value::Set(5));
    assert!(matches!(root.value("model").unwrap(), Value::Enum(_, Some("B"))));
    assert!(matches!(root.value("discounted").unwrap(), Value::Enum(_, Some("A"))));
    let engine = root.value("engine").unwrap();
    assert_eq!(engine.member("fuel").unwrap(), Value::Text("Petrol"));
    assert_eq!(engine.member("capacity").unwrap(), Value::Unsigned(0));
    let speeds: Vec<_> =
        root.group("fuel").unwrap().entries().map(|entry| entry.unwrap().value("speed").unwrap()).collect();
    assert_eq!(speeds, [Value::Unsigned(30), Value::Unsigned(55)]);
    let second = root.group("performance").unwrap().entry(0).unwrap().group("acceleration").unwrap().entry(1).unwrap();
    assert_eq!(second.value("mph").unwrap(), Value::Unsigned(60));
    assert_eq!(root.data("manufacturer").unwrap(), b"Honda");
    assert_eq!(root.data("model_name").unwrap(), b"", "left out is empty");
}

#[test]
fn a_message_cut_at_any_byte_is_an_error() {
    let schema = Schema::from_text(CAR).unwrap();
    let bytes = written(&schema);
    for length in 0..bytes.len() {
        assert!(walk(&schema, &bytes[..length]).is_err(), "{length}");
    }
}

#[test]
fn a_buffer_short_by_any_number_of_bytes_is_refused_and_nothing_behind_it_is_written() {
    let schema = Schema::from_text(CAR).unwrap();
    let full = written(&schema).len();
    for length in 0..full {
        let mut buffer = vec![0x55; full];
        let (inside, behind) = buffer.split_at_mut(length);
        let result = (|| {
            let mut car = Encoder::begin(&schema, schema.message("Car").unwrap(), inside)?;
            car.begin_group("fuel", 2)?;
            car.next_entry()?;
            car.put_data("usage", b"Urban")?;
            car.next_entry()?;
            car.end_group()?;
            car.begin_group("performance", 1)?;
            car.next_entry()?;
            car.begin_group("acceleration", 2)?;
            car.next_entry()?;
            car.next_entry()?;
            car.end_group()?;
            car.end_group()?;
            car.put_data("manufacturer", b"Honda")?;
            car.finish()
        })();
        assert!(matches!(result, Err(EncodeError::Overflow { .. })), "{length}: {result:?}");
        assert!(behind.iter().all(|byte| *byte == 0x55));
    }
}

#[test]
fn the_order_of_groups_and_data_is_kept() {
    let schema = Schema::from_text(CAR).unwrap();
    let mut buffer = [0; 512];
    let mut car = Encoder::begin(&schema, schema.message("Car").unwrap(), &mut buffer).unwrap();
    assert!(matches!(car.next_entry(), Err(EncodeError::Order { .. })));
    assert!(matches!(car.end_group(), Err(EncodeError::Order { .. })));
    car.begin_group("performance", 1).unwrap();
    assert!(matches!(car.put("serial", Value::Unsigned(1)), Err(EncodeError::Order { .. })), "no entry yet");
    assert!(matches!(car.end_group(), Err(EncodeError::Order { .. })), "an entry is missing");
    car.next_entry().unwrap();
    assert!(matches!(car.next_entry(), Err(EncodeError::Order { .. })), "one was said");
    car.end_group().unwrap();
    assert!(matches!(car.begin_group("fuel", 0), Err(EncodeError::Order { .. })), "it was passed");
    car.put("serial", Value::Unsigned(7)).unwrap();
    car.put_data("model_name", b"Civic").unwrap();
    assert!(matches!(car.put_data("manufacturer", b"Honda"), Err(EncodeError::Order { .. })));
    assert!(matches!(car.begin_group("performance", 0), Err(EncodeError::Order { .. })));
    let length = car.finish().unwrap();
    assert_eq!(walk(&schema, &buffer[..length]).unwrap(), length);
}

#[test]
fn values_that_do_not_fit_are_refused() {
    let schema = Schema::from_text(CAR).unwrap();
    let mut buffer = [0; 512];
    let mut car = Encoder::begin(&schema, schema.message("Car").unwrap(), &mut buffer).unwrap();
    assert!(matches!(car.put("year", Value::Unsigned(65_536)), Err(EncodeError::Value { .. })));
    assert!(matches!(car.put("serial", Value::Null), Err(EncodeError::Value { .. })), "required");
    assert!(matches!(car.put("serial", Value::Double(1.0)), Err(EncodeError::Value { .. })));
    assert!(matches!(car.put("code", Value::Bytes(b"abcdefg")), Err(EncodeError::Value { .. })));
    assert!(matches!(car.put("nothing", Value::Null), Err(EncodeError::NoMember { .. })));
    assert!(matches!(car.begin_group("fuel", 65_535), Err(EncodeError::Value { .. })), "beyond what the count can say");
}

#[test]
fn forged_counts_and_lengths_are_found_before_anything_is_done_for_them() {
    let schema = Schema::from_text(CAR).unwrap();
    let bytes = written(&schema);
    for at in 0..bytes.len() {
        for value in [0, 1, 0x7f, 0x80, 0xff] {
            let mut forged = bytes.clone();
            forged[at] = value;
            if let Ok(end) = walk(&schema, &forged) {
                assert!(end <= forged.len());
            }
        }
    }
    // Entries of no bytes at all: 65,535 of them would be free to claim.
    let empty = r#"<messageSchema package="p" id="1"><types>
        <composite name="messageHeader"><type name="blockLength" primitiveType="uint16"/>
        <type name="templateId" primitiveType="uint16"/><type name="schemaId" primitiveType="uint16"/>
        <type name="version" primitiveType="uint16"/></composite>
        <composite name="groupSizeEncoding"><type name="blockLength" primitiveType="uint16"/>
        <type name="numInGroup" primitiveType="uint16"/></composite></types>
        <message name="M" id="1"><group name="g" id="2"/></message></messageSchema>"#;
    let schema = Schema::from_text(empty).unwrap();
    let message = |count: u16| {
        let mut bytes = vec![0, 0, 1, 0, 1, 0, 0, 0, 0, 0];
        bytes.extend(count.to_le_bytes());
        bytes
    };
    assert_eq!(walk(&schema, &message(255)).unwrap(), 12);
    assert!(matches!(walk(&schema, &message(256)), Err(DecodeError::EmptyEntries { .. })));
}
