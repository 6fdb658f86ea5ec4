//! Marks notices that say what is missing from an answer because a source could not be read or a service could not be
//! asked.
//!
//! An answer shows these notices in its first line, and keeps them when other notices are left out. With such a notice,
//! an answer without hits doesn't say that nothing exists. If no source could be read, the call returns an error
//! instead of an answer.

use std::fmt::Display;

/// The beginning of a notice that says what is missing.
const MARK: &str = "incomplete: ";

/// The maximum number of characters of a notice. Arbitrary: this is about 50 tokens, which fit into every budget.
const LONGEST: usize = 200;

/// Returns the notice that `what` is missing from the answer.
pub fn notice(what: impl Display) -> String {
    let what = what.to_string();
    match what.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{MARK}{}…", &what[..end]),
        None => format!("{MARK}{what}"),
    }
}

/// Returns whether `notice` says that something is missing.
pub fn is(notice: &str) -> bool {
    notice.starts_with(MARK)
}

/// Returns whether one of `notices` says that something is missing.
pub fn any(notices: &[String]) -> bool {
    notices.iter().any(|notice| is(notice))
}

/// Moves the notices that say what is missing to the front, and removes repeated notices.
pub fn first(notices: &mut Vec<String>) {
    notices.sort_by_key(|notice| !is(notice));
    notices.dedup();
}

/// Replaces the notices that say what is missing by a single short one, and removes all others. Used if an answer has
/// no room for more.
pub fn alone(notices: &mut Vec<String>) {
    let lacks = any(notices);
    notices.clear();
    if lacks {
        notices.push(notice("a part could not be read"));
    }
}

/// Returns the first line of an answer with these notices, which says what is missing. The line is empty if nothing is
/// missing.
pub fn line(notices: &[String]) -> String {
    let missing: Vec<&str> = notices.iter().filter_map(|notice| notice.strip_prefix(MARK)).collect();
    match missing.is_empty() {
        true => String::new(),
        false => format!("Incomplete: {}.\n", missing.join("; ")),
    }
}

/// Returns the notices that don't say that something is missing. An answer shows them below its text.
pub fn others(notices: &[String]) -> impl DoubleEndedIterator<Item = &String> {
    notices.iter().filter(|notice| !is(notice))
}

/// Returns the sentence of an answer without hits. The sentence is `nothing`, unless the notices say that something
/// could not be read.
pub fn nothing<'a>(notices: &[String], nothing: &'a str) -> &'a str {
    if any(notices) {
        "No hit in what could be read; repeat the call before relying on that."
    } else {
        nothing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_comes_first_and_forbids_to_say_nothing() {
        let mut notices =
            vec!["max_tokens is 9".to_owned(), notice("no search by words"), notice("git is busy")];
        first(&mut notices);
        assert_eq!(line(&notices), "Incomplete: no search by words; git is busy.\n");
        assert_eq!(others(&notices).collect::<Vec<_>>(), ["max_tokens is 9"]);
        assert_ne!(nothing(&notices, "Nothing found."), "Nothing found.");
        assert_eq!(nothing(&notices[2..], "Nothing found."), "Nothing found.");
        alone(&mut notices);
        assert_eq!(line(&notices), "Incomplete: a part could not be read.\n");
        assert!(notice("é".repeat(1000)).len() < 500);
    }
}
