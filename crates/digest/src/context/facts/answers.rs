//! Finds the statements of an assistant that count as facts. A report counts unless the person rejected it. A proposal
//! counts if the person accepted it.

use super::passing::is_report_of_moment;
use super::signs::{is_reference, is_request, words};
use super::{Fact, Said, Voice, said};
use crate::statements::replies;
use tiro_base::memory::{Kind, Role};
use tiro_text::blocks::{self, Kind as Block, Sentence};

/// Words that report that something was done, or that say how something is now.
const DONE: &[&str] = &[
    "added",
    "updated",
    "fixed",
    "changed",
    "created",
    "implemented",
    "moved",
    "renamed",
    "removed",
    "replaced",
    "now",
    "refactored",
    "introduced",
    "switched",
    "extended",
    "corrected",
    "enabled",
    "disabled",
    "migrated",
    "supports",
    "because",
    "caused",
    "cause",
];

/// Words of a proposal.
const PROPOSES: &[&str] =
    &["should", "suggest", "recommend", "propose", "must", "will", "decision", "recommended"];

/// A reply can accept a proposal only if the answer with the proposal has at most this many sentences. A longer answer
/// is an essay, and a "yes" to it accepts no single sentence. Arbitrary.
const LONGEST_PROPOSAL: usize = 16;

/// Words that show that a statement is only true for a moment, or that it announces the next step.
const PASSING: &[&str] = &[
    "i'll",
    "let",
    "let's",
    "next",
    "want",
    "would",
    "shall",
    "if",
    "please",
    "passes",
    "passed",
    "passing",
    "pass",
    "ready",
    "successfully",
    "commit",
    "committed",
    "pushed",
    "running",
    "ran",
    "appears",
    "seems",
    "looks",
    "might",
    "may",
    "could",
    "try",
    "sorry",
    "conversation",
    "accidentally",
    "notice",
    "complete",
    "understand",
    "now i",
    "crucial",
    "issue",
    "problem",
    "linting",
    "lint",
    "conflicts",
    "resolved",
    "error",
    "errors",
    "hanging",
    "failing",
    "earlier",
    "previous",
    "worklog",
    "changelog",
    "status",
    "up-to-date",
    "need",
    "you've",
    "correctly",
    "tests",
    "even",
    "suggests",
    "unrelated",
    "remain",
    "remains",
    "apologize",
    "you",
    "your",
    "you're",
    "here",
    "above",
    "below",
    "following",
    "summary",
    "see",
];

/// The number of answers that are examined for signs of work. Arbitrary: an assistant that does work shows this in its
/// first answers.
const MOST_EXAMINED: usize = 50;

/// The minimum number of words of a fact in an answer. Arbitrary.
const SHORTEST: usize = 7;

/// Returns the best fact in the assistant's messages `answers`. `reply` is the message after them. Returns `None` if
/// the reply rejects them. Also returns `None` if the reply doesn't accept them and the answers show no work.
pub(super) fn accepted(answers: &[Said<'_>], reply: &str) -> Option<Fact> {
    let spoken: Vec<&Said<'_>> =
        answers.iter().filter(|message| message.voice() == Voice::Assistant).collect();
    let last = spoken.last()?;
    let worked = answers.iter().any(|message| message.role == Some(Role::Tool))
        || spoken.iter().any(|message| has_work(message.text));
    let accepts = replies::accepts(reply);
    if replies::rejects(reply) || (!accepts && !worked) {
        return None;
    }
    let mut best: Option<(f64, Kind, Sentence)> = None;
    let sentences = said::sentences(last.text);
    let accepts = accepts && sentences.len() <= LONGEST_PROPOSAL;
    for sentence in sentences {
        let names = said::named(last.text, &sentence);
        let Some((score, kind)) = judged(&sentence, names, worked, accepts) else { continue };
        // Answers end with their conclusion, so the last of several equally good sentences is taken.
        if best.as_ref().is_none_or(|(known, ..)| score >= *known) {
            best = Some((score, kind, sentence));
        }
    }
    let (_, kind, sentence) = best?;
    Some(Fact { kind, text: sentence.text, ordinal: last.ordinal, takes_back: None })
}

/// Returns whether the assistant of this conversation does work, and doesn't only talk.
pub(super) fn works(messages: &[Said<'_>]) -> bool {
    let is_answer = |message: &&Said<'_>| message.voice() == Voice::Assistant;
    messages.iter().any(|message| message.role == Some(Role::Tool))
        || messages.iter().filter(is_answer).take(MOST_EXAMINED).any(|message| has_work(message.text))
}

/// Returns whether an answer shows work: tool calls, or changes of files.
fn has_work(text: &str) -> bool {
    let text = &text[..text.floor_char_boundary(64 * 1024)];
    blocks::blocks(text).iter().any(|block| block.kind == Block::Tool)
        || text.contains("```diff")
        || text.lines().any(|line| line.starts_with("Read file: ") || line.starts_with("Edit file: "))
}

/// Returns whether a part of a sentence begins with a request.
fn signs_request(part: &str) -> bool {
    words(part).first().is_some_and(|word| is_request(word))
}

fn judged(sentence: &Sentence, names: usize, worked: bool, accepts: bool) -> Option<(f64, Kind)> {
    let words = words(&sentence.text);
    let count = |list: &[&str]| words.iter().filter(|word| list.contains(&word.as_str())).count();
    let refers = words.first().is_some_and(|word| is_reference(word) || word == "i");
    if words.len() < SHORTEST
        || refers
        || count(PASSING) > 0
        || sentence.text.ends_with(':')
        || sentence.is_open
        || (worked && is_report_of_moment(&sentence.text, &words))
    {
        return None;
    }
    let begins_with_use = words[0] == "use";
    let asks = |word: &String| is_request(word) && !begins_with_use;
    let asks_later = sentence.text.split(", ").skip(1).any(signs_request);
    if words.iter().take(2).any(asks) || asks_later || words.iter().any(|word| word == "optionally") {
        return None;
    }
    let (done, proposes) = (count(DONE), count(PROPOSES) + usize::from(begins_with_use));
    let names = names.min(3) as f64;
    let kind = match () {
        () if worked && done > 0 => Kind::Fact,
        () if accepts && proposes > 0 => Kind::Decision,
        () => return None,
    };
    // A sentence without a name or an identifier says little outside its conversation.
    (names > 0.0)
        .then_some((done.max(proposes) as f64 + names * 0.5 + (words.len() >= 10) as u8 as f64 * 0.5, kind))
}
