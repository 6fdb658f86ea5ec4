//! Finds decisions and facts in messages without a model, by phrases such as "we decided" and "root cause".
//!
//! A list of phrases finds less than a model would, but invents nothing: every fact is a sentence of a message, and its
//! place is known. The phrases are English; in other languages nothing is found, and contexts have summaries but no
//! facts. Questions, code and the output of tools are skipped.

use super::Message;
use crate::memory::{Kind, Role};

/// A sentence that states a fact or a decision, and the message that has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// `fact` or `decision`.
    pub kind: Kind,
    /// The sentence.
    pub text: String,
    /// The ordinal of its message.
    pub ordinal: i64,
}

/// A sentence counts as a fact only if its length in bytes is in this range. Arbitrary: neither a single word nor a
/// paragraph is a fact.
const LENGTH: std::ops::RangeInclusive<usize> = 16..=320;

/// The maximum number of bytes of a message that are read. Arbitrary: longer messages are mostly pasted files.
const MOST_READ: usize = 16 * 1024;

/// Phrases that state a decision, in lower case.
const DECISIONS: &[&str] = &[
    "we decided",
    "i decided",
    "decided to",
    "decided on",
    "decision:",
    "decided:",
    "decision is",
    "decision was",
    "let's go with",
    "let us go with",
    "we're going with",
    "we'll use",
    "we will use",
    "i'll use",
    "we are going to use",
    "we're going to use",
    "we agreed",
    "agreed to",
    "agreed on",
    "settled on",
    "we chose",
    "switch to",
    "switched to",
    "from now on",
    "we should never",
    "must never",
    "always use",
    "never use",
    "we'll go with",
    "the plan is to",
    "we won't",
    "we will not",
    "the rule is",
    "no longer use",
    "no longer uses",
    "moved to",
    "moves to",
    "changed to",
];

/// Phrases that state a decision if the sentence also has a name or a number.
const MAYBE_DECISIONS: &[&str] =
    &["i chose", "make it", "let's use", "let's keep", "we use", "we keep", "approved"];

/// Phrases that state a fact, in lower case.
const FACTS: &[&str] = &[
    "the reason is",
    "the reason was",
    "the cause is",
    "the cause was",
    "root cause",
    "turns out",
    "turned out",
    "the problem is",
    "the problem was",
    "the fix is",
    "the fix was",
    "fixed by",
    "caused by",
    "remember that",
    "note that",
    "keep in mind",
    "important:",
    "defaults to",
    "the default is",
    "the limit is",
    "the deadline is",
    "due on",
    "due by",
    "is stored in",
    "are stored in",
    "listens on",
    "my name is",
    "i live in",
    "i work as",
    "i work at",
    "i prefer",
    "my favorite",
    "my favourite",
    "the version is",
    "is deprecated",
    "doesn't work",
    "does not work",
    "it failed because",
];

/// Phrases that state a fact if the sentence also has a name or a number.
const MAYBE_FACTS: &[&str] =
    &["requires", "depends on", "runs on", "lives in", "located in", "is written in"];

/// Returns the facts and decisions of `messages`, in order. A sentence that is repeated is returned once.
pub fn facts(messages: &[Message<'_>]) -> Vec<Fact> {
    let mut found: Vec<Fact> = Vec::new();
    for message in messages.iter().filter(|message| message.role != Some(Role::Tool)) {
        for sentence in sentences(message.text) {
            let Some(kind) = kind(sentence) else { continue };
            if !found.iter().any(|known| known.text == sentence) {
                found.push(Fact { kind, text: sentence.to_owned(), ordinal: message.ordinal });
            }
        }
    }
    found
}

/// Returns the best `count` of `facts`, in their order. Decisions rank above facts; within each kind, those with more
/// names and numbers rank higher.
pub fn best(facts: Vec<Fact>, count: usize) -> Vec<Fact> {
    let weight = |fact: &Fact| {
        let has_number = fact.text.contains(|c: char| c.is_ascii_digit());
        let named = entities(&fact.text).len().min(3);
        (fact.kind == Kind::Decision, named + usize::from(has_number))
    };
    let mut order: Vec<usize> = (0..facts.len()).collect();
    order.sort_by_key(|place| std::cmp::Reverse(weight(&facts[*place])));
    order.truncate(count);
    order.sort_unstable();
    let mut facts: Vec<Option<Fact>> = facts.into_iter().map(Some).collect();
    order.into_iter().filter_map(|place| facts[place].take()).collect()
}

/// Returns the entities of `text`: code in backquotes, paths, identifiers, and capitalised words that begin no
/// sentence. Each entity is returned once, in order.
pub fn entities(text: &str) -> Vec<String> {
    let text = &text[..text.floor_char_boundary(MOST_READ)];
    let mut found: Vec<String> = Vec::new();
    let mut add = |name: &str| {
        if name.chars().count() > 1 && name.len() <= 80 && !found.iter().any(|known| known == name) {
            found.push(name.to_owned());
        }
    };
    let mut begins_sentence = true;
    for (place, part) in text.split('`').enumerate() {
        let is_code = place % 2 == 1 && !part.contains('\n');
        if is_code {
            add(part.trim());
            begins_sentence = false;
            continue;
        }
        for (number, line) in part.split('\n').enumerate() {
            begins_sentence |= number > 0;
            for word in line.split_whitespace() {
                let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
                let bare = bare.strip_suffix("'s").or_else(|| bare.strip_suffix("’s")).unwrap_or(bare);
                if is_identifier(bare) || (!begins_sentence && is_name(bare)) {
                    add(bare);
                }
                begins_sentence = word.ends_with(['.', '!', '?', ':']);
            }
        }
    }
    found
}

/// Returns whether a word is spelled like an identifier: `snake_case`, `camelCase`, `src/main.rs`, `v1.2`.
fn is_identifier(word: &str) -> bool {
    let mut letters = word.chars();
    let has_inner_capital =
        word.chars().next().is_some_and(char::is_lowercase) && word.contains(|c: char| c.is_uppercase());
    let has_digit_and_letter =
        word.contains(|c: char| c.is_ascii_digit()) && letters.any(|c| c.is_ascii_alphabetic());
    (word.is_ascii()
        && (word.contains('_') || word.contains('/') || word.contains("::") || has_inner_capital))
        || (word.is_ascii() && has_digit_and_letter)
}

fn is_name(word: &str) -> bool {
    let mut letters = word.chars();
    letters.next().is_some_and(char::is_uppercase)
        && word.chars().count() > 1
        && !matches!(word, "I'm" | "I'll" | "I've" | "I'd" | "OK")
}

/// Returns whether the sentence is a decision or a fact; `None` if it is neither.
fn kind(sentence: &str) -> Option<Kind> {
    if !LENGTH.contains(&sentence.len()) || sentence.ends_with(['?', '？']) || looks_like_code(sentence) {
        return None;
    }
    let lower = sentence.to_lowercase().replace('’', "'");
    let says = |phrases: &[&str]| phrases.iter().any(|phrase| contains_words(&lower, phrase));
    let is_specific = || sentence.contains(|c: char| c.is_ascii_digit()) || !entities(sentence).is_empty();
    match () {
        () if says(DECISIONS) => Some(Kind::Decision),
        () if says(FACTS) => Some(Kind::Fact),
        () if says(MAYBE_DECISIONS) && is_specific() => Some(Kind::Decision),
        () if says(MAYBE_FACTS) && is_specific() => Some(Kind::Fact),
        () => None,
    }
}

/// Returns whether `text` has `phrase` as whole words.
fn contains_words(text: &str, phrase: &str) -> bool {
    text.match_indices(phrase).any(|(start, _)| {
        let before = text[..start].chars().next_back();
        let after = text[start + phrase.len()..].chars().next();
        !before.is_some_and(char::is_alphanumeric) && !after.is_some_and(char::is_alphanumeric)
    })
}

fn looks_like_code(sentence: &str) -> bool {
    let marks = sentence.chars().filter(|c| "{}[]<>=;|\\$#".contains(*c)).count();
    marks * 12 > sentence.len() || sentence.starts_with(['+', '-', '@', '|']) && sentence.contains(';')
}

/// Returns the sentences of `text` that are not within fenced code. A sentence ends at the end of a line, or at a full
/// stop, exclamation mark or question mark that is followed by a space. Closing quotes or emphasis may stand before the
/// space.
fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let text = &text[..text.floor_char_boundary(MOST_READ)];
    let mut is_fenced = false;
    let outside = move |line: &&str| {
        let is_fence = line.trim_start().starts_with("```");
        is_fenced ^= is_fence;
        !is_fenced && !is_fence
    };
    text.lines().filter(outside).flat_map(|line| {
        let mut rest = line;
        std::iter::from_fn(move || {
            let end = rest
                .char_indices()
                .find_map(|(at, c)| {
                    let after = &rest[at + c.len_utf8()..];
                    let next = after.trim_start_matches(['*', '_', '"', '\'', ')', '”', '’']);
                    let ends =
                        matches!(c, '.' | '!' | '?') && !next.starts_with(|c: char| !c.is_whitespace());
                    (ends || matches!(c, '。' | '！' | '？'))
                        .then_some(rest.len() - if ends { next } else { after }.len())
                })
                .unwrap_or(rest.len());
            let (sentence, after) = rest.split_at(end);
            rest = after;
            (!sentence.is_empty()).then(|| {
                sentence
                    .trim_start_matches(['-', '*', '_', '>', '#', ' ', '\t'])
                    .trim_end_matches(['*', '_', ' ', '\t'])
            })
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(role: Role, ordinal: i64, text: &str) -> Message<'_> {
        Message { ordinal, role: Some(role), time: 0, tokens: 0, text }
    }

    #[test]
    fn decisions_and_facts_come_with_their_place() {
        let found = facts(&[
            said(Role::User, 3, "Hello there! We decided to keep SQLite for the index. How are you?"),
            said(
                Role::Assistant,
                4,
                "The root cause was a stale lock file.\n\n- Note that port 8080 is taken.\nDecided to do what?",
            ),
            said(Role::Tool, 5, "note that the root cause is unknown"),
            said(
                Role::Assistant,
                6,
                "```\nwe decided to = 1;\n```\nWe decided to keep SQLite for the index.",
            ),
        ]);
        let shown: Vec<String> =
            found.iter().map(|f| format!("{} {}: {}", f.kind, f.ordinal, f.text)).collect();
        assert_eq!(
            shown,
            [
                "decision 3: We decided to keep SQLite for the index.",
                "fact 4: The root cause was a stale lock file.",
                "fact 4: Note that port 8080 is taken.",
            ]
        );
    }

    #[test]
    fn a_labelled_decision_is_found_without_its_emphasis() {
        let kinds = |text: &str| -> Vec<(Kind, String)> {
            facts(&[said(Role::User, 0, text)]).into_iter().map(|fact| (fact.kind, fact.text)).collect()
        };
        let decision = |text: &str| vec![(Kind::Decision, text.to_owned())];
        assert_eq!(
            kinds("**Decision: Larkspur is written in Go.**"),
            decision("Decision: Larkspur is written in Go.")
        );
        assert_eq!(kinds("30 days is short. Make it 45 days."), decision("Make it 45 days."));
        assert_eq!(kinds("*Root cause.* We made a mistake there."), []);
        assert_eq!(kinds("I chose it, and I'd like to bury it myself."), []);
        assert_eq!(kinds("That depends on the payment page."), []);
        assert_eq!(kinds("It depends on Redis 7 in production.").len(), 1);
    }

    #[test]
    fn a_phrase_within_a_word_says_nothing() {
        let none = ["It unrequires nothing of anybody at all.", "undecided to the very end of the story."];
        for text in none {
            assert_eq!(facts(&[said(Role::User, 0, text)]), [], "{text}");
        }
    }

    #[test]
    fn of_many_facts_decisions_and_names_stay() {
        let fact = |kind, text: &str, ordinal| Fact { kind, text: text.into(), ordinal };
        let all = vec![
            fact(Kind::Fact, "It turns out that it rains.", 0),
            fact(Kind::Decision, "We decided to wait.", 1),
            fact(Kind::Fact, "It turns out that Ines owns port 8080.", 2),
        ];
        let kept: Vec<i64> = best(all, 2).iter().map(|fact| fact.ordinal).collect();
        assert_eq!(kept, [1, 2]);
    }

    #[test]
    fn entities_are_names_code_and_identifiers() {
        let text = "Then Ines opened `Cargo.toml`. She read src/main.rs, HttpClient and parse_header's v1.2 with Ada's help.";
        assert_eq!(
            entities(text),
            ["Ines", "Cargo.toml", "src/main.rs", "HttpClient", "parse_header", "v1.2", "Ada"]
        );
        assert!(entities("It rains. Nothing else happens. OK").is_empty());
    }

    #[test]
    fn megabytes_without_a_stop_are_read_at_once() {
        let long = "x ".repeat(2 << 20);
        assert!(facts(&[said(Role::User, 0, &long)]).is_empty());
        assert!(entities(&"語".repeat(1 << 20)).is_empty());
    }
}
