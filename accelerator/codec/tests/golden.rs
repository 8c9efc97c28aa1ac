//! FIX and market messages in `proto/golden`: checked, read and written again byte for byte.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use relay_accel_codec::sbe::{BlockView, Encoder, MessageView, Schema, Value};

fn proto() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../proto")
}

fn copy(from: BlockView<'_>, to: &mut Encoder<'_, '_>) {
    for field in &from.layout().fields {
        to.put(&field.name, from.value_of(field).unwrap()).unwrap();
    }
    for group in &from.layout().groups {
        let found = from.group(&group.name).unwrap();
        to.begin_group(&group.name, found.len() as u64).unwrap();
        for entry in found.entries() {
            to.next_entry().unwrap();
            copy(entry.unwrap(), to);
        }
        to.end_group().unwrap();
    }
    for data in &from.layout().data {
        to.put_data(&data.name, from.data(&data.name).unwrap()).unwrap();
    }
}

/// Read and write again every file of a folder; return the template ids that were there.
fn written_again(schema: &Schema, name: &str) -> BTreeSet<u32> {
    let files = fs::read_dir(proto().join("golden").join(name)).unwrap().map(|file| file.unwrap().path());
    let mut found = BTreeSet::new();
    for path in files.filter(|path| path.extension().is_some_and(|end| end == "bin")) {
        let bytes = fs::read(&path).unwrap();
        let view = MessageView::wrap(schema, &bytes).unwrap();
        assert_eq!(view.version, schema.version);
        assert_eq!(view.check(), Ok(bytes.len()), "{}", path.display());
        let mut buffer = vec![0xcc; bytes.len()];
        let mut encoder = Encoder::begin(schema, view.message, &mut buffer).unwrap();
        copy(view.root(), &mut encoder);
        assert_eq!(encoder.finish(), Ok(bytes.len()));
        assert_eq!(buffer, bytes, "{}", path.display());
        found.insert(view.message.id);
    }
    found
}

#[test]
fn every_vector_is_a_message_and_is_written_again() {
    for name in ["fix", "market"] {
        let schema = Schema::from_path(&proto().join(format!("{name}.xml"))).unwrap();
        let templates: BTreeSet<u32> = schema.messages.iter().map(|message| message.id).collect();
        assert_eq!(written_again(&schema, name), templates, "{name}");
    }
}

#[test]
fn a_tick_has_its_values() {
    let schema = Schema::from_path(&proto().join("market.xml")).unwrap();
    let bytes = fs::read(proto().join("golden/market/Tick.bin")).unwrap();
    let tick = MessageView::wrap(&schema, &bytes).unwrap().root();
    assert_eq!(tick.value("symbol_id").unwrap(), Value::Unsigned((0x5566_7788 << 32) | 1));
    assert_eq!(tick.value("price").unwrap(), Value::Signed(6_450_010));
    assert_eq!(tick.value("trade_number").unwrap(), Value::Unsigned(u64::MAX));
    assert_eq!(tick.value("stamp").unwrap().member("topic_sequence").unwrap(), Value::Unsigned(1));
    assert_eq!(tick.data("trade_id").unwrap(), b"");
    let bytes = fs::read(proto().join("golden/market/Tick-plain.bin")).unwrap();
    let tick = MessageView::wrap(&schema, &bytes).unwrap().root();
    assert_eq!(tick.data("trade_id").unwrap(), "T-0042-ß".as_bytes());
}

#[test]
fn an_order_has_its_values() {
    let schema = Schema::from_path(&proto().join("fix.xml")).unwrap();
    let bytes = fs::read(proto().join("golden/fix/NewOrderSingle.bin")).unwrap();
    let order = MessageView::wrap(&schema, &bytes).unwrap().root();
    assert_eq!(order.value("Symbol").unwrap(), Value::Bytes(b"BTCUSD"));
    assert!(matches!(order.value("Side").unwrap(), Value::Enum(_, Some("Buy"))));
    assert_eq!(order.value("Price").unwrap().member("mantissa").unwrap(), Value::Signed(645_001_000_000));
    assert_eq!(order.value("Price").unwrap().member("exponent").unwrap(), Value::Signed(-7));
    assert_eq!(order.value("StopPx").unwrap().member("mantissa").unwrap(), Value::Null);
}
