//! How long does a message take: generated structs and dynamic views beside hand-written copies of the same fields?
//!
//! `codec_rate [ROUNDS] [MESSAGES]` prints one JSON object: nanoseconds a message, one number a round, the ways in turns.
//! Every way of decoding fills the same struct, every way of encoding starts from it. The hand-written copies know the
//! messages' lengths and check nothing else.

mod cars;
mod refreshes;

#[rustfmt::skip]
#[path = "../../tests/generated/car.rs"]
mod car;
#[rustfmt::skip]
#[path = "../../tests/generated/fix.rs"]
mod fix;

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Instant;

/// Figures by name.
pub(crate) type Figures = BTreeMap<String, Vec<f64>>;

/// Nanoseconds that one call takes, over so many.
pub(crate) fn time<T>(figures: &mut Figures, name: &str, messages: u32, mut call: impl FnMut() -> T) {
    for _ in 0..messages / 10 {
        black_box(call());
    }
    let started = Instant::now();
    for _ in 0..messages {
        black_box(call());
    }
    let taken_ns = started.elapsed().as_secs_f64() * 1e9 / f64::from(messages);
    figures.entry(name.to_owned()).or_default().push(taken_ns);
}

fn main() {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse().expect("a whole number"));
    let (rounds, messages) = (numbers.next().unwrap_or(20), numbers.next().unwrap_or(20_000));
    let mut figures = Figures::new();
    let (cars, refreshes) = (cars::Works::new(), refreshes::Works::new());
    for _ in 0..rounds {
        cars.round(&mut figures, messages);
        refreshes.round(&mut figures, messages);
    }
    let rows: Vec<String> = figures.iter().map(|(name, found)| format!("{name:?}: {found:?}")).collect();
    println!("{{{}}}", rows.join(", "));
}
