//! A value in a sentence.

use std::ops::Range;

/// A value that was read.
pub(super) struct Value {
    /// The value.
    pub value: String,
    /// Its unit.
    pub unit: String,
    /// Words between the number and its unit.
    pub modifiers: Vec<String>,
    /// The tokens of the value and of its unit.
    pub tokens: Range<usize>,
    /// The names that it replaces.
    pub replaced: Vec<String>,
}

impl Value {
    /// Returns a value without modifiers that replaces nothing.
    pub fn plain(value: String, unit: &str, tokens: Range<usize>) -> Value {
        Value { value, unit: unit.to_owned(), modifiers: Vec::new(), tokens, replaced: Vec::new() }
    }
}
