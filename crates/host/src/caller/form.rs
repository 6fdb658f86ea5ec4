//! In which forms the caller reads an answer.

/// The most tokens of an answer in Copilot CLI. It puts an answer of more than about 20 KB into a file and shows its model
/// only the beginning; English text has at most 5.5 bytes per token.
const MOST_IN_COPILOT: usize = 3500;

/// Returns the most tokens of an answer that the client called `name`, in lower case, shows its model.
pub(super) fn most_tokens(name: &str) -> usize {
    if name.contains("copilot") { MOST_IN_COPILOT } else { usize::MAX }
}

/// The forms in which the caller reads an answer. A budget bounds each of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// Only as text, as a model does.
    Text,
    /// As text or as data (JSON), as programs and the command line do.
    #[default]
    Both,
}
