//! Words in arguments, whatever their case.

/// Returns `word` in lower case, with underscores for spaces and hyphens.
pub fn plain(word: &str) -> String {
    word.trim().to_lowercase().replace([' ', '-'], "_")
}
