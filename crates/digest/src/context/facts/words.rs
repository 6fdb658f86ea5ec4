//! Divides texts into words, and knows the names of assistants.

/// Names of assistants and of roles. A speaker with such a name is not a person.
const ASSISTANTS: &str =
    "agent ai assistant bot chatgpt claude codex copilot cursor gemini gpt llama model opus sonnet haiku
    system tool";

/// Returns the words of `text` in lower case. `must-read` is one word.
pub(super) fn words(text: &str) -> Vec<String> {
    let text = text.to_lowercase().replace('’', "'");
    let words = text.split(|c: char| !(c.is_alphanumeric() || matches!(c, '\'' | '_' | '-')));
    words
        .map(|word| word.trim_matches(['\'', '-']))
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Returns whether a list of words, separated by spaces, has a word.
pub(super) fn has(list: &str, word: &str) -> bool {
    list.split_whitespace().any(|each| each == word)
}

/// Returns whether a speaker's name is the name of a person.
pub(super) fn is_persons_name(name: &str) -> bool {
    let begins =
        name.starts_with(char::is_uppercase) && name.chars().all(|c| c.is_alphabetic() || " .'-".contains(c));
    begins && !words(name).iter().any(|word| has(ASSISTANTS, word))
}
