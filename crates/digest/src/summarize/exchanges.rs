//! Divides a conversation of a user with an assistant into exchanges. An exchange is a request of the user with its
//! outcome.

use std::collections::{BTreeMap, BTreeSet};

use super::Source;
use super::assisted::{is_step, retracts};
use super::reading::{Reading, Sentence};
use super::specificity::specificity;
use crate::statements::replies::{accepts, confirms, rejects};
use crate::tuning::summaries;
use tiro_base::memory::Role;
use tiro_text::blocks::{Form, first_error, has_calls};

/// A request of the user, and the answers until the user's next message.
#[derive(Debug, Default)]
pub(super) struct Exchange {
    /// The indexes of the user's sentences.
    pub(super) asked: Vec<usize>,
    /// The indexes of the sentences in the assistant's last message. If the assistant called a tool after this message,
    /// the assistant concluded nothing, and there are none.
    pub(super) answered: Vec<usize>,
    /// If the user only agreed: the index of the question with which the assistant's last message ended.
    pub(super) agreed: Option<usize>,
    /// Whether the user rejected the answer, or the assistant took it back.
    pub(super) is_rejected: bool,
    /// Whether something bears out what the answer claims: the user confirmed it, tests passed after the last edit, or
    /// the assistant committed its work.
    pub(super) is_borne_out: bool,
    /// Whether the assistant called a tool.
    pub(super) has_calls: bool,
    /// The files that were edited, in order.
    pub(super) files: Vec<String>,
    /// The ids of the commits that were made, as git printed them.
    pub(super) commits: Vec<String>,
}

/// Returns the exchanges of `sources` in order.
pub(super) fn exchanges(reading: &Reading, sources: &[Source<'_>]) -> Vec<Exchange> {
    let mut exchanges: Vec<Exchange> = Vec::new();
    let mut at = 0;
    let mut is_answered = true;
    let repeated = repeated(sources);
    let mut said: BTreeSet<&str> = BTreeSet::new();
    for (place, source) in sources.iter().enumerate() {
        let start = at;
        while reading.sentences.get(at).is_some_and(|sentence| sentence.source == place) {
            at += 1;
        }
        match source.role {
            Role::User => {
                // A sentence that the user repeats, such as a pasted error, is shown once.
                let is_new = |each: &usize| {
                    let sentence = &reading.sentences[*each];
                    !sentence.is_boilerplate
                        && sentence.form != Form::Aside
                        && said.insert(sentence.text.as_str())
                };
                let asked: Vec<usize> = (start..at).filter(is_new).collect();
                let agreed = exchanges.last().filter(|_| agrees(source.text)).and_then(|last| {
                    let last = *last.answered.last()?;
                    (reading.sentences[last].form == Form::Question).then_some(last)
                });
                // An error after the answer refutes it.
                if is_answered && (rejects(source.text) || first_error(source.text).is_some()) {
                    reject(&mut exchanges, reading);
                } else if is_answered && let Some(last) = exchanges.last_mut() {
                    last.is_borne_out |= confirms(source.text);
                }
                if repeated.contains(&place) {
                    // No person writes it, so its answer isn't part of the account either.
                    exchanges.push(Exchange { is_rejected: true, ..Exchange::default() });
                    is_answered = false;
                    continue;
                }
                if asked.is_empty() && agreed.is_none() {
                    continue;
                }
                match exchanges.last_mut().filter(|_| !is_answered) {
                    Some(last) => last.asked.extend(asked),
                    None => exchanges.push(Exchange { asked, agreed, ..Exchange::default() }),
                }
                is_answered = false;
            }
            Role::Assistant => {
                is_answered = true;
                if has_calls(source.text)
                    && let Some(last) = exchanges.last_mut()
                {
                    last.has_calls = true;
                }
                if reading.sentences[start..at].iter().any(|sentence| retracts(&sentence.text))
                    && let [.., before, _] = &mut exchanges[..]
                {
                    before.is_rejected = true;
                }
                if exchanges.is_empty() {
                    exchanges.push(Exchange::default());
                }
                // An answer that ends with a step concludes nothing.
                let ends_with_step =
                    reading.sentences[start..at].last().is_some_and(|last| is_step(&last.text));
                let concluding = if ends_with_step { at..at } else { start..at };
                exchanges.last_mut().expect("there is one").answered = concluding.collect();
            }
            Role::Tool => {
                if let Some(last) = exchanges.last_mut() {
                    last.answered.clear();
                    note_call(last, source.text);
                }
            }
            Role::System => {}
        }
    }
    exchanges
}

/// Marks the last exchange as rejected. If its request does not say what it is about, as in "push it", it belongs to
/// the exchange before it, so the exchange before it is rejected, too.
fn reject(exchanges: &mut [Exchange], reading: &Reading) {
    for exchange in exchanges.iter_mut().rev() {
        exchange.is_rejected = true;
        if exchange
            .asked
            .iter()
            .any(|place| specificity(&reading.sentences[*place].text) >= summaries::SPECIFIC)
        {
            break;
        }
    }
}

/// The maximum number of words of a message that only agrees. Arbitrary.
const SHORT: usize = 8;

/// Returns whether a short message agrees with a proposal.
fn agrees(text: &str) -> bool {
    text.split_whitespace().count() <= SHORT && accepts(text)
}

/// A message of at least this many words that a conversation contains several times is not written by a person each
/// time. Arbitrary.
const LONG: usize = 12;

/// Returns the indexes of the user's messages that repeat an earlier one. If a conversation contains a message more
/// than twice, a hook or a command of the client writes it, so that its first place is returned, too.
pub(super) fn repeated(sources: &[Source<'_>]) -> BTreeSet<usize> {
    let mut places: BTreeMap<Vec<&str>, Vec<usize>> = BTreeMap::new();
    for (place, source) in sources.iter().enumerate().filter(|(_, source)| source.role == Role::User) {
        places.entry(source.text.split_whitespace().collect()).or_default().push(place);
    }
    let is_of_hook = |words: &[&str], places: &[usize]| words.len() >= LONG && places.len() > 2;
    let has_others = places.iter().any(|(words, places)| !is_of_hook(words, places));
    let again = places.into_iter().filter(|(words, _)| words.len() >= LONG).flat_map(|(words, places)| {
        let kept = usize::from(!has_others || !is_of_hook(&words, &places));
        places.into_iter().skip(kept)
    });
    again.collect()
}

/// Parts of the names of tools that edit files.
const EDITS: [&str; 5] = ["edit", "write", "patch", "replace", "create"];

/// Parts of the names of tools that run programs. What another tool prints, such as a file that it reads, shows no
/// results of tests.
const RUNS: [&str; 7] = ["bash", "shell", "terminal", "command", "exec", "run", "test"];

/// Returns whether the name of the tool of a call has one of these parts.
fn is_of(call: &str, parts: &[&str]) -> bool {
    let first = call.lines().next().unwrap_or_default();
    let tool = first.split_once(": ").map_or(first, |(tool, _)| tool).to_ascii_lowercase();
    parts.iter().any(|part| tool.contains(part))
}

/// Returns the name of the file that a tool call edited.
pub(super) fn edits(call: &str) -> Option<String> {
    let (_, arguments) = call.lines().next()?.split_once(": ").filter(|_| is_of(call, &EDITS))?;
    let is_path = |word: &&str| word.contains('/') || word.contains('.');
    let path = arguments.split([' ', ':']).find(is_path)?;
    Some(path.rsplit('/').next().unwrap_or(path).to_owned()).filter(|name| !name.is_empty())
}

/// Notes what a tool call shows: the file that it edited, the commits that it made, and whether tests passed.
fn note_call(exchange: &mut Exchange, text: &str) {
    exchange.has_calls = true;
    if is_of(text, &EDITS) {
        exchange.is_borne_out = false;
        let name = edits(text).filter(|name| !exchange.files.contains(name));
        exchange.files.extend(name);
        return;
    }
    if is_of(text, &RUNS) {
        exchange.is_borne_out = have_passed(text).unwrap_or(exchange.is_borne_out);
    }
    if text.lines().next().unwrap_or_default().contains("git commit") {
        // Git prints `[branch 1a2b3c4] subject`.
        let printed = text.lines().filter_map(|line| line.trim().strip_prefix('[')?.split_once(']'));
        let ids = printed.filter_map(|(inner, _)| inner.rsplit(' ').next());
        let is_id = |id: &&str| id.len() >= 7 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        let before = exchange.commits.len();
        exchange.commits.extend(ids.filter(is_id).map(str::to_owned));
        exchange.is_borne_out |= exchange.commits.len() > before;
    }
}

/// Returns whether the tests passed whose results a program printed, as in "12 passed, 1 failed". Returns `None` if it
/// printed no results.
fn have_passed(output: &str) -> Option<bool> {
    let mut words = output.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).peekable();
    let mut found = None;
    while let Some(word) = words.next() {
        let Some(next) = words.peek().filter(|_| word.bytes().all(|byte| byte.is_ascii_digit())) else {
            continue;
        };
        match next.to_ascii_lowercase().as_str() {
            "passed" | "passing" => found = found.or(Some(true)),
            "failed" | "failing" | "failures" | "errors" if word.bytes().any(|byte| byte != b'0') => {
                return Some(false);
            }
            _ => {}
        }
    }
    found
}

/// Returns how central each word of `reading` is. A word is more central if more sentences contain it, and if it is a
/// name or a number.
pub(super) fn central(reading: &Reading) -> Vec<f64> {
    reading
        .words
        .iter()
        .map(|word| {
            let often =
                if word.sentences > 1 { (1.0 + f64::from(word.sentences)).ln() } else { summaries::ONCE };
            if word.is_key() { often * summaries::KEY } else { often }
        })
        .collect()
}

/// Returns the share of the words of `question` that `sentence` contains, from 0 to 1.
pub(super) fn overlap(question: &[&Sentence], sentence: &Sentence) -> f64 {
    let mut asked: Vec<u32> = question.iter().flat_map(|each| each.words.iter().copied()).collect();
    asked.sort_unstable();
    asked.dedup();
    let shared = sentence.words.iter().filter(|word| asked.binary_search(word).is_ok()).count();
    shared as f64 / asked.len().clamp(1, 12) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_results_of_tests_bear_out_an_answer() {
        for (output, passed) in [
            ("test result: ok. 12 passed; 0 failed; 0 ignored", Some(true)),
            ("Tests: 3 failed, 29 passed, 32 total", Some(false)),
            ("  7 passing (21ms)\n  1 failing", Some(false)),
            ("found 0 errors", None),
            ("error TS2339: no such property\nFound 4 errors.", Some(false)),
            ("Compiling 12 crates", None),
        ] {
            assert_eq!(have_passed(output), passed, "{output}");
        }
    }

    #[test]
    fn what_a_hook_writes_again_and_again_is_no_request() {
        let hook = "Update the architecture notes with all that the changes of this session mean for them.";
        let retried = "Please move all of the exports into one module and keep their names as they are.";
        let said = [retried, retried, hook, "Add a test.", hook, "Rename it.", hook];
        let source =
            |text| Source { ordinal: 0, speaker: "", role: Role::User, time: 0, text, corrected: &[] };
        let all: Vec<Source<'_>> = said.into_iter().map(source).collect();
        assert_eq!(repeated(&all), BTreeSet::from([1, 2, 4, 6]));
        assert_eq!(repeated(&all[2..3]), BTreeSet::new());
        let only: Vec<Source<'_>> = [hook; 4].into_iter().map(source).collect();
        assert_eq!(repeated(&only), BTreeSet::from([1, 2, 3]), "the conversation has no other request");
    }

    #[test]
    fn a_word_that_begins_like_yes_does_not_agree() {
        assert!(agrees("Yes, do that.") && agrees("ok, go ahead"));
        assert!(
            !agrees("Yesterday it broke again.") && !agrees("Surely not.") && !agrees("ok but that's wrong")
        );
    }
}
