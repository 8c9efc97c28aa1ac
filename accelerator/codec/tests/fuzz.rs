//! Mutated schemas and messages: nothing panics, hangs, or reads past an end. `make fuzz` runs ten million of each.
//!
//! A run is made again by its seed: `SBE_FUZZ_SEED=7 SBE_FUZZ_INPUTS=1000 cargo test -p relay-accel-codec --test fuzz`.

mod fuzzing;

use fuzzing::{Dice, setting};
use relay_accel_codec::sbe::{BlockView, DecodeError, Encoder, MessageView, Schema, Sofh, Value};

const CAR: &str = include_str!("car.xml");
const WORDS: [&str; 16] = [
    "int8",
    "uint64",
    "double",
    "char",
    "0",
    "-1",
    "4294967295",
    "constant",
    "optional",
    "Car",
    "Engine",
    "text",
    "ref",
    "group",
    "data",
    "Model.A",
];

fn walk(view: BlockView<'_>) -> Result<usize, DecodeError> {
    for field in &view.layout().fields {
        if let value @ Value::Composite(composite, ..) = view.value_of(field)? {
            for member in &composite.members {
                value.member(&member.name)?;
            }
        }
    }
    let mut tail = view.tail();
    for layout in &view.layout().groups {
        let group = tail.group(layout)?;
        let mut at = group.span().0;
        for _ in 0..group.len() {
            at = walk(group.entry_from(at)?)?;
        }
        assert_eq!(at, group.end()?, "both walks end at the same byte");
        tail.go_on(at);
    }
    for layout in &view.layout().data {
        tail.data(layout)?;
    }
    Ok(tail.position())
}

fn seeds(schema: &Schema) -> Vec<Vec<u8>> {
    (0..4_u64)
        .map(|count| {
            let mut buffer = vec![0; 2_048];
            let mut car = Encoder::begin(schema, schema.message("Car").unwrap(), &mut buffer).unwrap();
            car.put("serial", Value::Unsigned(count)).unwrap();
            car.begin_group("fuel", count).unwrap();
            for entry in 0..count {
                car.next_entry().unwrap();
                car.put_data("usage", &vec![b'u'; entry as usize * 3]).unwrap();
            }
            car.end_group().unwrap();
            car.begin_group("performance", count).unwrap();
            for entry in 0..count {
                car.next_entry().unwrap();
                car.begin_group("acceleration", entry).unwrap();
                for _ in 0..entry {
                    car.next_entry().unwrap();
                }
                car.end_group().unwrap();
            }
            car.end_group().unwrap();
            car.put_data("manufacturer", b"Honda").unwrap();
            let length = car.finish().unwrap();
            buffer.truncate(length);
            buffer
        })
        .collect()
}

#[test]
fn mutated_messages_are_read_or_refused() {
    let schema = Schema::from_text(CAR).unwrap();
    let seeds = seeds(&schema);
    let mut dice = Dice(setting("SBE_FUZZ_SEED", 0x5eed) | 1);
    let mut whole = 0_u64;
    let inputs = setting("SBE_FUZZ_INPUTS", 20_000);
    for _ in 0..inputs {
        let mut bytes = seeds[dice.roll(seeds.len())].clone();
        for _ in 0..dice.roll(4) {
            let at = dice.roll(bytes.len());
            match dice.roll(4) {
                0 => bytes[at] ^= 1 << dice.roll(8),
                1 => bytes[at] = [0, 1, 0x7f, 0x80, 0xfe, 0xff][dice.roll(6)],
                2 => bytes.truncate(at + 1),
                _ => bytes.insert(at, dice.roll(256) as u8),
            }
        }
        if let Ok(view) = MessageView::wrap(&schema, &bytes)
            && let Ok(end) = view.check()
        {
            assert_eq!(walk(view.root()), Ok(end), "what was checked can be read to the same byte");
        }
        if let Ok(view) = MessageView::wrap(&schema, &bytes)
            && let Ok(end) = walk(view.root())
        {
            assert!(end <= bytes.len());
            assert_eq!(view.encoded_length(), Ok(end));
            whole += 1;
        }
        let _ = Sofh::frame(&bytes, schema.byte_order);
    }
    assert!(whole > inputs / 20, "most mutations would be refused at the header: {whole} of {inputs} were read");
}

#[test]
fn mutated_schemas_are_compiled_or_refused() {
    let mut dice = Dice(setting("SBE_FUZZ_SEED", 0x5eed) | 1);
    let inputs = setting("SBE_FUZZ_INPUTS", 20_000) / 50;
    let mut compiled = 0_u64;
    for _ in 0..inputs {
        let mut text = CAR.to_owned();
        for _ in 0..=dice.roll(3) {
            match dice.roll(4) {
                // A value in quotes for another one.
                0 | 1 => {
                    let quotes: Vec<usize> = text.match_indices('"').map(|(at, _)| at).collect();
                    let first = dice.roll(quotes.len() / 2) * 2;
                    if let [from, to] = quotes[first..(first + 2).min(quotes.len())] {
                        text.replace_range(from + 1..to, WORDS[dice.roll(WORDS.len())]);
                    }
                }
                // A line left out, or said twice.
                2 => {
                    let mut lines: Vec<&str> = text.lines().collect();
                    let at = dice.roll(lines.len());
                    if dice.roll(2) == 0 {
                        lines.insert(at, lines[at]);
                    } else {
                        lines.remove(at);
                    }
                    text = lines.join("\n");
                }
                _ => {
                    let mut bytes = text.into_bytes();
                    let at = dice.roll(bytes.len());
                    bytes[at] = dice.roll(128) as u8;
                    text = String::from_utf8(bytes).unwrap();
                }
            }
        }
        match Schema::from_text(&text) {
            Ok(schema) => {
                compiled += 1;
                // What was compiled is sound: any message of it can be written and read.
                for message in &schema.messages {
                    let mut buffer = vec![0; schema.header.length + 2 * message.block.block_length + 512];
                    let length = Encoder::begin(&schema, message, &mut buffer).unwrap().finish().unwrap();
                    let view = MessageView::wrap(&schema, &buffer[..length]).unwrap();
                    assert_eq!(walk(view.root()), Ok(length), "{text}");
                }
            }
            Err(faults) => assert!(!faults.0.is_empty()),
        }
    }
    assert!(compiled > inputs / 50, "{compiled} of {inputs} were compiled");
}
