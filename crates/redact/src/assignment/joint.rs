//! The ways in which a name is joined to its value.

/// How a name is joined to its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Joint {
    /// `=`, `:` or another sign.
    Sign,
    /// `("`.
    Call,
    /// The comma between a quoted name and a quoted value.
    List,
    /// The space after a flag.
    Flag,
    /// A word such as ` is `, or the bar between two cells of a table.
    Prose,
    /// The comma before a default, as in `getenv("PASSWORD", "…")`.
    Default,
    /// A declared type, an operator such as `||` before a default, or a space after a name that begins the line.
    /// Only a quoted value counts.
    Quoted,
}
