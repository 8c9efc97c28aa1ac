//! A car with three fuel figures, two performances of three accelerations each, and two texts.

use std::hint::black_box;

use relay_accel_codec::sbe::{DecodeError, EncodeError, Encoder, MessageView, Scalar, Schema, Value};

use crate::car::{CarDecoder, CarEncoder, Error, Extras, Model};
use crate::{Figures, time};

#[derive(Clone, Debug, Default, PartialEq)]
struct Car<'a> {
    serial: u64,
    year: Option<u16>,
    model: u8,
    code: [u8; 6],
    extras: u8,
    capacity: u16,
    engine_extras: u8,
    fuel: [(u16, &'a [u8]); 3],
    performance: [(u8, [(u16, f32); 3]); 2],
    manufacturer: &'a [u8],
    model_name: &'a [u8],
}

const SAMPLE: Car<'static> = Car {
    serial: 1234,
    year: Some(2013),
    model: b'A',
    code: *b"abcdef",
    extras: 6,
    capacity: 2000,
    engine_extras: 1,
    fuel: [(30, b"Urban Cycle"), (55, b"Combined Cycle"), (75, b"Highway Cycle")],
    performance: [(95, [(30, 4.0), (60, 7.5), (100, 12.2)]), (99, [(30, 3.8), (60, 7.1), (100, 11.8)])],
    manufacturer: b"Honda",
    model_name: b"Civic VTi",
};

fn generated(bytes: &[u8]) -> Result<Car<'_>, Error> {
    let from = CarDecoder::decode(bytes)?;
    let engine = from.engine();
    let mut to = Car {
        serial: from.serial(),
        year: from.year(),
        model: from.model().raw(),
        code: *from.code(),
        extras: from.extras().0,
        capacity: engine.capacity(),
        engine_extras: engine.extras().0,
        manufacturer: from.manufacturer(),
        model_name: from.model_name(),
        ..Car::default()
    };
    for (to, from) in to.fuel.iter_mut().zip(from.fuel()) {
        *to = (from.speed(), from.usage());
    }
    for (to, from) in to.performance.iter_mut().zip(from.performance()) {
        to.0 = from.octane();
        for (to, from) in to.1.iter_mut().zip(from.acceleration()) {
            *to = (from.mph(), from.seconds());
        }
    }
    Ok(to)
}

fn generated_into(from: &Car<'_>, buffer: &mut [u8]) -> Result<usize, Error> {
    let mut to = CarEncoder::begin(buffer)?;
    to.serial(from.serial).year(from.year).model(Model::from_raw(from.model)).extras(Extras(from.extras));
    to.code(&from.code)?;
    to.engine().capacity(from.capacity).extras(Extras(from.engine_extras));
    to.fuel(&from.fuel, |to, from| {
        to.speed(from.0).usage(from.1)?;
        Ok(())
    })?;
    to.performance(&from.performance, |to, from| {
        to.octane(from.0).acceleration(&from.1, |to, from| {
            to.mph(from.0).seconds(from.1);
            Ok(())
        })?;
        Ok(())
    })?;
    to.manufacturer(from.manufacturer)?.model_name(from.model_name)?;
    to.finish()
}

fn number(value: Value<'_>) -> u64 {
    value.scalar().and_then(Scalar::integer).map_or(0, |value| value as u64)
}

fn dynamic<'a>(schema: &'a Schema, bytes: &'a [u8]) -> Result<Car<'a>, DecodeError> {
    let from = MessageView::wrap(schema, bytes)?.root();
    let engine = from.value("engine")?;
    let code = match from.value("code")? {
        Value::Bytes(bytes) => bytes.try_into().unwrap_or_default(),
        _ => [0; 6],
    };
    let mut to = Car {
        serial: number(from.value("serial")?),
        year: Some(from.value("year")?).filter(|year| *year != Value::Null).map(|year| number(year) as u16),
        model: number(from.value("model")?) as u8,
        code,
        extras: number(from.value("extras")?) as u8,
        capacity: number(engine.member("capacity")?) as u16,
        engine_extras: number(engine.member("extras")?) as u8,
        manufacturer: from.data("manufacturer")?,
        model_name: from.data("model_name")?,
        ..Car::default()
    };
    for (to, from) in to.fuel.iter_mut().zip(from.group("fuel")?.entries()) {
        let from = from?;
        *to = (number(from.value("speed")?) as u16, from.data("usage")?);
    }
    for (to, from) in to.performance.iter_mut().zip(from.group("performance")?.entries()) {
        let from = from?;
        to.0 = number(from.value("octane")?) as u8;
        for (to, from) in to.1.iter_mut().zip(from.group("acceleration")?.entries()) {
            let from = from?;
            let Some(Scalar::Single(seconds)) = from.value("seconds")?.scalar() else { continue };
            *to = (number(from.value("mph")?) as u16, seconds);
        }
    }
    Ok(to)
}

fn dynamic_into(schema: &Schema, from: &Car<'_>, buffer: &mut [u8]) -> Result<usize, EncodeError> {
    let message = schema.message("Car").expect("it is in the schema");
    let engine = message.block.fields.iter().find(|field| field.name == "engine").expect("it is in the schema");
    let mut to = Encoder::begin(schema, message, buffer)?;
    to.put("serial", Value::Unsigned(from.serial))?;
    to.put("year", from.year.map_or(Value::Null, |year| Value::Unsigned(year.into())))?;
    to.put("model", Value::Unsigned(from.model.into()))?;
    to.put("code", Value::Bytes(&from.code))?;
    to.put("extras", Value::Set(from.extras.into()))?;
    let slot = to.slot(engine)?;
    slot[..2].copy_from_slice(&from.capacity.to_le_bytes());
    slot[4] = from.engine_extras;
    to.begin_group("fuel", from.fuel.len() as u64)?;
    for from in &from.fuel {
        to.next_entry()?;
        to.put("speed", Value::Unsigned(from.0.into()))?;
        to.put_data("usage", from.1)?;
    }
    to.end_group()?;
    to.begin_group("performance", from.performance.len() as u64)?;
    for from in &from.performance {
        to.next_entry()?;
        to.put("octane", Value::Unsigned(from.0.into()))?;
        to.begin_group("acceleration", from.1.len() as u64)?;
        for from in &from.1 {
            to.next_entry()?;
            to.put("mph", Value::Unsigned(from.0.into()))?;
            to.put("seconds", Value::Single(from.1))?;
        }
        to.end_group()?;
    }
    to.end_group()?;
    to.put_data("manufacturer", from.manufacturer)?;
    to.put_data("model_name", from.model_name)?;
    to.finish()
}

fn part<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes[at..at + N].try_into().expect("as long as it is")
}

fn data<'a>(bytes: &'a [u8], at: &mut usize) -> &'a [u8] {
    let (start, length) = (*at + 2, usize::from(u16::from_le_bytes(part(bytes, *at))));
    *at = start + length;
    &bytes[start..*at]
}

fn by_hand(bytes: &[u8]) -> Car<'_> {
    let year = u16::from_le_bytes(part(bytes, 16));
    let mut to = Car {
        serial: u64::from_le_bytes(part(bytes, 8)),
        year: (year != u16::MAX).then_some(year),
        model: bytes[18],
        code: part(bytes, 19),
        extras: bytes[25],
        capacity: u16::from_le_bytes(part(bytes, 26)),
        engine_extras: bytes[30],
        ..Car::default()
    };
    let mut at = 31 + 4;
    for to in &mut to.fuel {
        let speed = u16::from_le_bytes(part(bytes, at));
        at += 2;
        *to = (speed, data(bytes, &mut at));
    }
    at += 4;
    for to in &mut to.performance {
        to.0 = bytes[at];
        at += 1 + 4;
        for to in &mut to.1 {
            *to = (u16::from_le_bytes(part(bytes, at)), f32::from_le_bytes(part(bytes, at + 2)));
            at += 6;
        }
    }
    to.manufacturer = data(bytes, &mut at);
    to.model_name = data(bytes, &mut at);
    to
}

fn put(to: &mut [u8], at: &mut usize, bytes: &[u8]) {
    to[*at..*at + bytes.len()].copy_from_slice(bytes);
    *at += bytes.len();
}

fn put_data(to: &mut [u8], at: &mut usize, bytes: &[u8]) {
    put(to, at, &(bytes.len() as u16).to_le_bytes());
    put(to, at, bytes);
}

fn by_hand_into(from: &Car<'_>, to: &mut [u8]) -> usize {
    to[..8].copy_from_slice(&[23, 0, 1, 0, 7, 0, 2, 0]);
    to[8..16].copy_from_slice(&from.serial.to_le_bytes());
    to[16..18].copy_from_slice(&from.year.unwrap_or(u16::MAX).to_le_bytes());
    to[18] = from.model;
    to[19..25].copy_from_slice(&from.code);
    to[25] = from.extras;
    to[26..28].copy_from_slice(&from.capacity.to_le_bytes());
    to[28..30].fill(0);
    to[30] = from.engine_extras;
    let mut at = 31;
    put(to, &mut at, &[2, 0, 3, 0]);
    for from in &from.fuel {
        put(to, &mut at, &from.0.to_le_bytes());
        put_data(to, &mut at, from.1);
    }
    put(to, &mut at, &[1, 0, 2, 0]);
    for from in &from.performance {
        put(to, &mut at, &[from.0, 6, 0, 3, 0]);
        for from in &from.1 {
            put(to, &mut at, &from.0.to_le_bytes());
            put(to, &mut at, &from.1.to_le_bytes());
        }
    }
    put_data(to, &mut at, from.manufacturer);
    put_data(to, &mut at, from.model_name);
    at
}

/// The message, and what all ways start from.
pub(crate) struct Works {
    schema: Schema,
    bytes: Vec<u8>,
}

impl Works {
    /// Check that all ways give the same.
    pub(crate) fn new() -> Self {
        let schema = Schema::from_text(include_str!("../../tests/car.xml")).expect("the tests' own schema");
        let (mut bytes, mut other) = (vec![0; 256], vec![0; 256]);
        let length = generated_into(&SAMPLE, &mut bytes).expect("it fits");
        assert_eq!(dynamic_into(&schema, &SAMPLE, &mut other), Ok(length));
        assert_eq!(bytes, other);
        assert_eq!(by_hand_into(&SAMPLE, &mut other), length);
        assert_eq!(bytes, other);
        bytes.truncate(length);
        assert_eq!(generated(&bytes).as_ref(), Ok(&SAMPLE));
        assert_eq!(dynamic(&schema, &bytes).as_ref(), Ok(&SAMPLE));
        assert_eq!(by_hand(&bytes), SAMPLE);
        Self { schema, bytes }
    }

    /// One round of all ways.
    pub(crate) fn round(&self, figures: &mut Figures, messages: u32) {
        let (schema, bytes, mut to) = (&self.schema, &self.bytes[..], [0_u8; 256]);
        time(figures, "car decode by hand", messages, || by_hand(black_box(bytes)));
        time(figures, "car decode generated", messages, || generated(black_box(bytes)));
        time(figures, "car decode dynamic", messages, || dynamic(schema, black_box(bytes)));
        time(figures, "car encode by hand", messages, || by_hand_into(black_box(&SAMPLE), black_box(&mut to)));
        time(figures, "car encode generated", messages, || generated_into(black_box(&SAMPLE), black_box(&mut to)));
        time(figures, "car encode dynamic", messages, || dynamic_into(schema, black_box(&SAMPLE), black_box(&mut to)));
    }
}
