//! Messages that are checked as a whole: what the schema does not know is told with its path and byte.

use relay_accel_codec::sbe::{DecodeError, Encoder, MessageView, Schema, Value};

const FIX: &str = include_str!("../../python/relay_accel/fix.xml");
const SIDE_AT: usize = 8 + 38;
const QUANTITY_AT: usize = 8 + 49;

fn order(schema: &Schema) -> Vec<u8> {
    order_of(schema, 5)
}

fn order_of(schema: &Schema, quantity: i64) -> Vec<u8> {
    let mut buffer = vec![0; 256];
    let mut order = Encoder::begin(schema, schema.message("NewOrderSingle").unwrap(), &mut buffer).unwrap();
    order.put("ClOrdID", Value::Bytes(b"A-1")).unwrap();
    order.put("Symbol", Value::Bytes(b"BTCUSD")).unwrap();
    order.put("Side", Value::Unsigned(b'1'.into())).unwrap();
    order.put("OrdType", Value::Unsigned(b'2'.into())).unwrap();
    order.put("TransactTime", Value::Unsigned(1)).unwrap();
    let length = order.finish().unwrap();
    buffer.truncate(length);
    buffer[QUANTITY_AT..][..8].copy_from_slice(&quantity.to_le_bytes());
    buffer
}

fn refresh(schema: &Schema) -> Vec<u8> {
    let mut buffer = vec![0; 512];
    let message = schema.message("MarketDataIncrementalRefresh").unwrap();
    let mut refresh = Encoder::begin(schema, message, &mut buffer).unwrap();
    refresh.put("TransactTime", Value::Unsigned(1)).unwrap();
    refresh.begin_group("NoMDEntries", 3).unwrap();
    for letter in *b"012" {
        refresh.next_entry().unwrap();
        refresh.put("MDUpdateAction", Value::Unsigned(b'0'.into())).unwrap();
        refresh.put("MDEntryType", Value::Unsigned(letter.into())).unwrap();
        refresh.put("Symbol", Value::Bytes(b"BTCUSD")).unwrap();
    }
    refresh.end_group().unwrap();
    let length = refresh.finish().unwrap();
    buffer.truncate(length);
    buffer
}

fn checked(schema: &Schema, bytes: &[u8]) -> Result<usize, DecodeError> {
    MessageView::wrap(schema, bytes)?.check()
}

#[test]
fn sound_messages_are_as_long_as_they_were_written() {
    let schema = Schema::from_text(FIX).unwrap();
    for message in [order(&schema), refresh(&schema)] {
        assert_eq!(checked(&schema, &message), Ok(message.len()));
        for end in 0..message.len() {
            assert!(checked(&schema, &message[..end]).is_err(), "cut at byte {end}");
        }
    }
}

#[test]
fn every_byte_that_is_no_side_is_refused() {
    let schema = Schema::from_text(FIX).unwrap();
    let mut message = order(&schema);
    for byte in 0..=255 {
        message[SIDE_AT] = byte;
        let known = (b'1'..=b'9').contains(&byte);
        assert_eq!(checked(&schema, &message).is_ok(), known, "byte {byte:#x}");
    }
    message[SIDE_AT] = b'x';
    let text = "Side at byte 46 of the message: expected a value of enum Side, got 'x'";
    assert_eq!(checked(&schema, &message).unwrap_err().to_string(), text);
}

#[test]
fn null_is_a_value_where_it_is_optional_only() {
    let schema = Schema::from_text(FIX).unwrap();
    let mut message = order(&schema);
    assert_eq!(message[SIDE_AT + 2], 0, "TimeInForce is optional and was left out");
    message[SIDE_AT] = 0;
    let text = "Side at byte 46 of the message: expected a value of enum Side, got 0";
    assert_eq!(checked(&schema, &message).unwrap_err().to_string(), text);
}

#[test]
fn numbers_outside_of_the_range_that_the_schema_says_are_refused() {
    let schema = Schema::from_text(FIX).unwrap();
    for mantissa in [0, 1, i64::MAX - 1] {
        let message = order_of(&schema, mantissa);
        assert_eq!(checked(&schema, &message), Ok(message.len()), "{mantissa}");
    }
    for mantissa in [i64::MAX, -1, i64::MIN] {
        let error = checked(&schema, &order_of(&schema, mantissa)).unwrap_err();
        let text = format!(
            "OrderQty.mantissa at byte 57 of the message: expected a value of int64 from 0 to {}, got {mantissa}",
            i64::MAX - 1
        );
        assert_eq!(error.to_string(), text);
    }
}

#[test]
fn items_of_arrays_are_held_to_their_range_and_null_is_allowed_where_the_field_is_optional() {
    let text = r#"<messageSchema package="p" id="9" version="0">
      <types>
        <composite name="messageHeader">
          <type name="blockLength" primitiveType="uint16"/><type name="templateId" primitiveType="uint16"/>
          <type name="schemaId" primitiveType="uint16"/><type name="version" primitiveType="uint16"/>
        </composite>
        <type name="Level" primitiveType="uint8" minValue="1" maxValue="9"/>
        <type name="Levels" primitiveType="uint8" length="3" maxValue="9"/>
      </types>
      <message name="M" id="1">
        <field name="must" id="1" type="Level"/><field name="may" id="2" type="Level" presence="optional"/>
        <field name="all" id="3" type="Levels"/>
      </message>
    </messageSchema>"#;
    let schema = Schema::from_text(text).unwrap();
    let mut message = [0; 13];
    Encoder::begin(&schema, schema.message("M").unwrap(), &mut message).unwrap().finish().unwrap();
    let mut check = |body: [u8; 5]| {
        message[8..].copy_from_slice(&body);
        checked(&schema, &message).map_err(|error| error.to_string())
    };
    let error = |text: &str| Err(format!("{text} of the message: expected a value of uint8"));
    let cut = |found: Result<usize, String>| {
        found.map_err(|text| text.split(" from ").next().unwrap().replace(" of 3 items", ""))
    };
    assert_eq!(check([1, 255, 0, 9, 9]), Ok(13));
    assert_eq!(check([9, 9, 0, 0, 0]), Ok(13));
    assert_eq!(cut(check([255, 255, 0, 0, 0])), error("must at byte 8"));
    assert_eq!(cut(check([1, 0, 0, 0, 0])), error("may at byte 9"));
    assert_eq!(cut(check([1, 1, 0, 0, 10])), error("all at byte 12"));
}

#[test]
fn the_path_has_the_entry() {
    let schema = Schema::from_text(FIX).unwrap();
    let mut message = refresh(&schema);
    let entry_length = (message.len() - 40) / 3;
    let at = 40 + 2 * entry_length + 1;
    assert_eq!(message[at], b'2');
    message[at] = b'~';
    let error = checked(&schema, &message).unwrap_err();
    let expected = DecodeError::UnknownValue {
        path: "NoMDEntries[2].MDEntryType".into(),
        at,
        type_name: "MDEntryType".into(),
        value: "'~'".into(),
    };
    assert_eq!(error, expected);
}

#[test]
fn enums_inside_of_composites_are_checked_too() {
    let text = r#"<messageSchema package="p" id="9" version="0">
      <types>
        <composite name="messageHeader">
          <type name="blockLength" primitiveType="uint16"/><type name="templateId" primitiveType="uint16"/>
          <type name="schemaId" primitiveType="uint16"/><type name="version" primitiveType="uint16"/>
        </composite>
        <enum name="Kind" encodingType="uint16"><validValue name="one">1</validValue></enum>
        <composite name="Pair"><type name="x" primitiveType="uint8"/><ref name="kind" type="Kind"/></composite>
      </types>
      <message name="M" id="1"><field name="pair" id="1" type="Pair"/></message>
    </messageSchema>"#;
    for (order, bytes) in [("", [1, 0]), (r#" byteOrder="bigEndian""#, [0, 1])] {
        let schema = Schema::from_text(&text.replace(r#"version="0""#, &format!(r#"version="0"{order}"#))).unwrap();
        let mut buffer = [0; 11];
        Encoder::begin(&schema, schema.message("M").unwrap(), &mut buffer).unwrap().finish().unwrap();
        buffer[9..].copy_from_slice(&bytes);
        assert_eq!(checked(&schema, &buffer), Ok(11));
        buffer[9..].fill(7);
        let text = "pair.kind at byte 9 of the message: expected a value of enum Kind, got 1799";
        assert_eq!(checked(&schema, &buffer).unwrap_err().to_string(), text);
    }
}
