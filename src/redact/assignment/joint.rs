//! How a name and its value are joined.

/// How a name is joined to its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Joint {
    /// `=`, `:` and their like.
    Sign,
    /// `("`.
    Call,
    /// The comma between a name and a value both in quotes.
    List,
    /// The space after a flag.
    Flag,
    /// ` is `, and the bars of a table.
    Prose,
    /// The comma after the name of a setting that is looked up, before the value it has by default.
    Default,
    /// What is a value only in quotes: after a declared type, or a space at the beginning of a line.
    Quoted,
}
