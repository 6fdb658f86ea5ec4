//! Recognises sentences that a person says only for the moment while an assistant works for them. They are about
//! attempts, observations, the next step or open questions, or they are pasted output. From such a session, only
//! statements that name their topic are worth keeping.

use super::Said;
use super::signs::{is_reference, is_request};

/// A person may paste a sentence from an earlier message. This many earlier messages are searched for the sentence.
/// Arbitrary.
const PASTED_WITHIN: usize = 60;

/// The maximum number of bytes that are read of each of these earlier messages. Arbitrary: longer messages are mostly
/// files and logs.
const MOST_READ: usize = 64 * 1024;

/// A text counts as prose only if at most this percentage of its characters, not counting spaces, are signs and digits.
/// Arbitrary: a sentence about code has less than half of this percentage.
const SYMBOLS: usize = 22;

/// Words that introduce a statement and don't belong to it.
const LEADS: &[&str] = &[
    "so", "but", "and", "now", "ok", "okay", "also", "then", "well", "yes", "right", "hmm", "oh", "like",
    "actually",
];

/// Past tenses and participles of verbs for attempts and observations.
const OBSERVES: &[&str] = &[
    "tried",
    "ran",
    "saw",
    "heard",
    "hit",
    "put",
    "getting",
    "get",
    "got",
    "clicked",
    "typed",
    "opened",
    "looked",
    "checked",
    "inspected",
    "noticed",
    "see",
    "seeing",
    "pasted",
    "restarted",
    "reran",
    "refreshed",
    "started",
    "reverted",
    "pulled",
    "pushed",
    "merged",
    "working",
    "looking",
    "thinking",
    "wondering",
    "curious",
    "know",
];

/// Phrases about the next step, about open questions, and about things that are only explained in this conversation.
const PHRASES: &[&str] = &[
    "first thing",
    "next thing",
    "need to look",
    "need to execute",
    "need to figure",
    "need to find",
    "need to think",
    "need to know",
    "need to decide",
    "going to make",
    "we're implementing",
    "we are implementing",
    "let's decide",
    "lets decide",
    "let's start",
    "maybe",
    "probably",
    "prob",
    "other option",
    "not sure",
    "weren't sure",
    "wasn't sure",
    "i assume",
    "me assume",
    "i think the issue",
    "i think the problem",
    "given this",
    "given that",
    "the work we",
    "our work so far",
    "the work in",
    "in there",
    "what we described",
    "like what we",
    "we talked about",
    "reason being",
    "make sure",
    "remember all",
    "looking for",
    "looking to",
    "here's where",
    "need to make",
    "just need",
    "it can no longer",
    "the first time",
    "but it should",
    "the current",
    "seems",
    "running perfectly",
    "this one",
    "craft a",
    "capture the",
];

/// Nouns that name a thing, such as a file or a test, without saying which. Only the conversation shows which one is
/// meant.
const NOUNS: &[&str] = &[
    "file", "files", "test", "tests", "command", "function", "script", "code", "output", "page", "method",
    "class", "list", "doc", "document", "branch", "commit", "pr", "step", "thing",
];

/// Past tenses of verbs for actions that are done once, such as deleting something.
const EVENTS: &[&str] =
    &["deleted", "removed", "reset", "moved", "renamed", "installed", "authenticated", "created"];

/// Words that introduce a reason or a purpose.
const REASONS: &[&str] = &["because", "since", "so", "which", "to", "for", "becuase"];

/// Words that begin a question even if it has no question mark.
const ASKS: &[&str] =
    &["should", "can", "could", "would", "do", "does", "did", "is", "are", "was", "will", "shall"];

/// Words that begin a request for this moment. A sentence that begins with such a word states no rule, even if it
/// contains a word such as "always".
const NOW: &[&str] = &[
    "tell",
    "read",
    "show",
    "explain",
    "give",
    "help",
    "capture",
    "craft",
    "audit",
    "look",
    "figure",
    "summarize",
    "remember",
];

/// Words about documents, tests, and the state of the work. An assistant's report that contains such a word is not
/// kept.
const OF_WORK: &[&str] = &[
    "readme",
    "doc",
    "docs",
    "documentation",
    "plan",
    "section",
    "sections",
    "diagram",
    "diagrams",
    "draft",
    "stub",
    "refs",
    "caveat",
    "heads",
    "pr",
    "worktree",
    "checkout",
    "diff",
    "bytes",
    "lines",
    "mock",
    "mocks",
    "mocked",
    "test",
    "hang",
    "reflect",
    "reflects",
    "properly",
    "accurately",
];

/// Words that begin a report of an action that was just done, or of a number of things that only the conversation
/// names.
const REPORTS: &[&str] = &[
    "done",
    "confirmed",
    "verified",
    "recorded",
    "cleaned",
    "pr",
    "my",
    "all",
    "both",
    "two",
    "three",
    "four",
    "five",
    "everything",
    "net",
    "nothing",
    "waiting",
];

/// Words before the number of a part of a plan, as in `step 5` and `option B`. The plan is only in the conversation.
const PARTS: &[&str] = &["step", "chunk", "phase", "round", "option", "principle", "question", "line"];

/// Returns whether a report of an assistant has no lasting content. Such a report is about changes to a document, the
/// state of the work, or something that only the conversation explains. `words` are the words of the report.
pub(super) fn is_report_of_moment(text: &str, words: &[String]) -> bool {
    let numbered = words.windows(2).any(|pair| {
        PARTS.contains(&pair[0].as_str())
            && (pair[1].len() == 1 || pair[1].bytes().all(|byte| byte.is_ascii_digit()))
    });
    // `D7` and `Q-UX3` are names of parts of a plan, but `S3` is a service.
    let is_label = |word: &str| {
        let mut letters = word.chars();
        let begins = letters.next().is_some_and(|c| c.is_ascii_uppercase() && c != 'S');
        begins && word.len() <= 3 && word.len() > 1 && letters.all(|c| c.is_ascii_digit())
    };
    let has_label = text.contains("Q-") || text.split(|c: char| !c.is_alphanumeric()).any(is_label);
    let first = words.first().map(String::as_str).unwrap_or_default();
    let has = |wanted: &str| words.iter().any(|word| word == wanted);
    // "Removed `a` from `b`" is only worth keeping together with its reason.
    let is_edit = (first.ends_with("ed") || first == "use")
        && !words[1..].iter().any(|word| REASONS.contains(&word.as_str()));
    let refers = words.windows(2).any(|pair| pair[0] == "this" && matches!(pair[1].as_str(), "is" | "was"));
    is_edit
        || refers
        || words.iter().skip(1).any(|word| word == "i")
        || REPORTS.contains(&first)
        || words.iter().any(|word| OF_WORK.contains(&word.as_str()))
        || (has("task") && (has("created") || has("added")))
        || (has("should") && has("now"))
        || numbered
        || has_label
}

/// Returns whether one of the messages in `before` contains the sentence `text`.
pub(super) fn was_said(text: &str, before: &[Said<'_>]) -> bool {
    let text = plain(text);
    let read = |said: &Said<'_>| plain(&said.text[..said.text.floor_char_boundary(MOST_READ)]);
    before.iter().rev().take(PASTED_WITHIN).any(|said| read(said).contains(&text))
}

/// Returns a text without the characters of markup, with single spaces.
fn plain(text: &str) -> String {
    let text: String = text.chars().filter(|c| !matches!(c, '*' | '`' | '_' | '\\')).collect();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns whether a text is the output of a program. Such a text has too many signs for prose, or it is a chain of
/// causes such as `error: reading: no such file`.
pub(super) fn is_output(text: &str) -> bool {
    let counted = text.chars().filter(|c| !c.is_whitespace()).count().max(1);
    let signs = text.chars().filter(|c| !c.is_whitespace() && !c.is_alphabetic() && *c != '\'').count();
    signs * 100 > counted * SYMBOLS || text.matches(": ").count() >= 2 || text.starts_with('•')
}

/// Returns whether a sentence with these words has no lasting content.
pub(super) fn is_passing(words: &[String]) -> bool {
    let said: Vec<&str> = words.iter().map(String::as_str).skip_while(|word| LEADS.contains(word)).collect();
    let Some(first) = said.first() else { return true };
    let second = said.get(1).copied().unwrap_or_default();
    let is_pronoun =
        |word: &str| matches!(word, "i" | "we" | "you" | "it" | "they" | "the" | "this" | "that");
    let asks = ASKS.contains(first) && is_pronoun(second);
    let observes =
        said.iter().take(8).zip(said.iter().skip(1)).any(|(subject, verb)| {
            matches!(*subject, "i" | "i'm" | "i've" | "we" | "just" | "already" | "was" | "were")
                && OBSERVES.contains(verb)
        }) && said.iter().take(4).any(|word| matches!(*word, "i" | "i'm" | "i've" | "we" | "we've"));
    let all = format!(" {} ", said.join(" "));
    let is_open = PHRASES.iter().any(|phrase| all.contains(&format!(" {phrase} ")));
    // "this rule must" names its subject, but "it must" does not.
    let refers = matches!(
        *first,
        "it" | "it's" | "its" | "that" | "that's" | "thats" | "they" | "he" | "she" | "which"
    ) || (is_reference(first) && is_request(second))
        || matches!((*first, second), ("this", "is" | "was" | "must" | "should" | "means"));
    // In "The file must be a list", only the conversation shows which file is meant.
    let is_unnamed = matches!(*first, "the" | "this") && NOUNS.contains(&second);
    let is_of_case = matches!(*first, "once" | "when" | "if" | "after" | "before")
        && words
            .windows(2)
            .any(|pair| pair[0] == "it" && matches!(pair[1].as_str(), "should" | "must" | "needs"));
    let has_reason = words.iter().any(|word| REASONS.contains(&word.as_str()));
    let is_event = matches!(*first, "i" | "i've" | "we" | "we've")
        && said.iter().take(4).any(|word| EVENTS.contains(word))
        && !has_reason;
    let is_case = *first == "if" && matches!(second, "that" | "this" | "they" | "it");
    asks || observes
        || is_open
        || refers
        || is_case
        || is_of_case
        || is_unnamed
        || is_event
        || NOW.contains(first)
}
