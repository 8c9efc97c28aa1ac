//! What is wrong with a schema: every fault with its place, first ones first.

use std::fmt;

/// One fault, or one warning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Name of the file, or `<schema>` for text.
    pub file: String,
    /// Line of the element, from 1 on.
    pub line: u32,
    /// The element, as `<type name="Price">`.
    pub element: String,
    /// What was expected and what it is.
    pub reason: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}: {}: {}", self.file, self.line, self.element, self.reason)
    }
}

/// The faults of a refused schema; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaFaults(pub Vec<Fault>);

impl fmt::Display for SchemaFaults {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        out.write_str(&lines.join("\n"))
    }
}

impl std::error::Error for SchemaFaults {}
