//! In which forms the caller reads an answer.

/// The forms in which the caller reads an answer. A budget bounds each of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// Only as text, as a model does.
    Text,
    /// As text or as data (JSON), as programs and the command line do.
    #[default]
    Both,
}
