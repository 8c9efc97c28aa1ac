//! `relay_accel._native`: the core's types as Python classes. What they mean is written in `python/relay_accel/_native.pyi`.
//!
//! Batches cross the border, not views: bytes are copied out of shared memory into memory that a Python object owns, so a
//! `memoryview` never outlives what it shows. Whatever waits releases the interpreter's lock; no thread of Rust's own calls Python.

// Comments of classes and methods are Python's docstrings, which name Python's things in plain text.
#![allow(clippy::doc_markdown)]
#![allow(clippy::needless_pass_by_value, clippy::unnecessary_wraps, reason = "PyO3 fixes the shape of methods")]
#![allow(missing_docs, reason = "the stubs are the documentation, and a test compares both")]

mod batch;
mod bell;
mod broadcast;
mod claim;
mod consumer;
mod counters;
mod decimals;
mod errors;
mod fast;
mod fixed;
mod forwarder;
mod market;
mod memory;
mod producer;
mod sbe;
mod sbe_dtype;
mod sbe_encode;
mod sbe_plan;
mod sbe_unpack;
mod sbe_view;
mod segments;
mod state;
mod wire;
mod wire_values;

use pyo3::prelude::*;

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    errors::register(module)?;
    segments::register(module)?;
    sbe::register(module)?;
    decimals::register(module)?;
    market::register(module)?;
    wire::register(module)?;
    module.add_class::<batch::Batch>()?;
    module.add_class::<producer::Producer>()?;
    module.add_class::<claim::Claim>()?;
    module.add_class::<consumer::Consumer>()?;
    fast::register(module)?;
    module.add_class::<fixed::FixedRing>()?;
    module.add_class::<fixed::FixedProducer>()?;
    module.add_class::<fixed::FixedConsumer>()?;
    module.add_class::<memory::Ring>()?;
    module.add_class::<memory::Channel>()?;
    module.add_class::<memory::MpscRing>()?;
    module.add_class::<broadcast::Broadcast>()?;
    module.add_class::<broadcast::Transmitter>()?;
    module.add_class::<broadcast::Receiver>()?;
    module.add_class::<counters::Counters>()?;
    module.add_class::<counters::Counter>()?;
    module.add_class::<forwarder::Forwarder>()?;
    Ok(())
}
