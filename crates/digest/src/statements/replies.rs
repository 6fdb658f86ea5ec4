//! Reads how a person replies to an earlier message: by accepting it, rejecting it, or taking back their own statement.

use super::takes_back::takes_back;

/// Only this many words at the beginning of a reply are read. Even a longer reply says yes or no in its first words.
const READ: usize = 12;

/// Words and phrases that accept a proposal, at the beginning of a reply.
const ACCEPTS: &[&str] = &[
    "yes",
    "yeah",
    "yep",
    "yup",
    "ok",
    "okay",
    "sure",
    "go ahead",
    "go for it",
    "do it",
    "do that",
    "sounds good",
    "looks good",
    "lgtm",
    "perfect",
    "agreed",
    "approved",
    "please do",
    "let's do",
    "lets do",
    "let's go",
    "lets go",
    "ship it",
    "works for me",
    "i agree",
    "that works",
    "proceed",
    "great, go",
    "good, go",
];

/// Phrases that reject an answer, anywhere in the first words of a reply.
const REJECTS: &[&str] = &[
    "no",
    "nope",
    "wrong",
    "not what",
    "isn't",
    "isnt",
    "doesn't",
    "doesnt",
    "didn't",
    "didnt",
    "don't",
    "dont",
    "still",
    "why",
    "revert",
    "undo",
    "actually",
    "incorrect",
    "stop",
    "wait",
    "hmm",
    "but",
    "not working",
    "fails",
    "failing",
    "failed",
    "broke",
    "broken",
    "error",
    "are you sure",
    "that's not",
    "thats not",
    "you forgot",
    "you missed",
    "hang",
    "hanging",
    "instead",
];

/// Words and phrases that confirm a result, at the beginning of a reply.
const CONFIRMS: &[&str] = &[
    "thanks",
    "thank you",
    "thx",
    "great",
    "perfect",
    "awesome",
    "amazing",
    "excellent",
    "nice",
    "brilliant",
    "wonderful",
    "well done",
    "good job",
    "works",
    "it works",
    "that works",
    "that worked",
    "it worked",
    "all good",
    "looks good",
    "lgtm",
    "that did it",
    "that fixed it",
];

/// Returns whether a reply confirms the result before it.
pub fn confirms(reply: &str) -> bool {
    let head = head(reply);
    CONFIRMS.iter().any(|phrase| begins_with(&head, phrase)) && !rejects(reply)
}

/// Returns whether a reply accepts the proposal before it.
pub fn accepts(reply: &str) -> bool {
    let head = head(reply);
    ACCEPTS.iter().any(|phrase| begins_with(&head, phrase)) && !rejects(reply)
}

/// Returns whether a reply rejects the action before it.
pub fn rejects(reply: &str) -> bool {
    let head = format!(" {} ", head(reply));
    REJECTS.iter().any(|phrase| head.contains(&format!(" {phrase} ")))
}

/// Returns whether the speaker of a message takes back an earlier statement.
pub fn is_taken_back(message: &str) -> bool {
    takes_back(message, READ)
}

fn begins_with(text: &str, phrase: &str) -> bool {
    text.strip_prefix(phrase).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
}

/// Returns the first words of a message in lower case, with single spaces and without punctuation.
fn head(message: &str) -> String {
    let text = message[..message.floor_char_boundary(400)].to_lowercase().replace('’', "'");
    let words = text.split(|c: char| !(c.is_alphanumeric() || c == '\''));
    words.filter(|word| !word.is_empty()).take(READ).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_accept_reject_or_take_back() {
        assert!(accepts("Yes, go ahead") && accepts("sounds good!") && accepts("lets do that"));
        assert!(!accepts("ok but it still hangs") && !accepts("add tests") && !accepts("goodness"));
        assert!(confirms("Perfect, that works.") && confirms("thanks! now the docs"));
        assert!(!confirms("ok") && !confirms("great, but it still hangs") && !confirms("next"));
        assert!(
            rejects("no, do not clean it up")
                && rejects("why did you do that")
                && !rejects("commit and push")
        );
        assert!(
            is_taken_back("Forget that, we stay with Redis.") && !is_taken_back("don't forget the tests")
        );
    }
}
