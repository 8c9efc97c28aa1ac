//! Loom models: every order in which the threads of a protocol may run, with small rings.
//!
//! What a model cannot show: loom runs every load where it stands and never lets it see a store that comes later, so the release of a
//! consumer's head (its reads of a frame end before the room is given away) stands by argument alone in rings of one producer.
//!
//! `RUSTFLAGS="--cfg loom" cargo test --release -p relay-accel-core --lib models`

mod broadcast;
mod ends;
mod mpsc;
mod rings;
mod waiter;

/// Tries every order with at most `preemptions` forced switches; most mistakes need two.
fn model(preemptions: usize, body: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(body);
}
