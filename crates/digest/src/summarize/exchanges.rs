//! Divides a conversation of a user with an assistant into exchanges. An exchange is a request of the user with its
//! outcome.

use super::Source;
use super::assisted::retracts;
use super::reading::{Reading, Sentence};
use super::specificity::specificity;
use crate::statements::replies::{accepts, rejects};
use crate::tuning::summaries;
use tiro_base::memory::Role;
use tiro_text::blocks::Form;

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
    for (place, source) in sources.iter().enumerate() {
        let start = at;
        while reading.sentences.get(at).is_some_and(|sentence| sentence.source == place) {
            at += 1;
        }
        match source.role {
            Role::User => {
                let said = |each: &usize| {
                    !reading.sentences[*each].is_boilerplate && reading.sentences[*each].form != Form::Aside
                };
                let asked: Vec<usize> = (start..at).filter(said).collect();
                let agreed = exchanges.last().filter(|_| agrees(source.text)).and_then(|last| {
                    let last = *last.answered.last()?;
                    (reading.sentences[last].form == Form::Question).then_some(last)
                });
                if is_answered && rejects(source.text) {
                    reject(&mut exchanges, reading);
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
                if reading.sentences[start..at].iter().any(|sentence| retracts(&sentence.text))
                    && let [.., before, _] = &mut exchanges[..]
                {
                    before.is_rejected = true;
                }
                if exchanges.is_empty() {
                    exchanges.push(Exchange::default());
                }
                exchanges.last_mut().expect("there is one").answered = (start..at).collect();
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

/// Notes the files that a tool call edited and the commits that it made.
fn note_call(exchange: &mut Exchange, text: &str) {
    let first = text.lines().next().unwrap_or_default();
    let Some((tool, arguments)) = first.split_once(": ") else { return };
    let tool = tool.to_ascii_lowercase();
    if ["edit", "write", "patch", "replace", "create"].iter().any(|verb| tool.contains(verb)) {
        let is_path = |word: &&str| word.contains('/') || word.contains('.');
        let path = arguments.split([' ', ':']).find(is_path).unwrap_or_default();
        let name = path.rsplit('/').next().unwrap_or(path).to_owned();
        if !name.is_empty() && !exchange.files.contains(&name) {
            exchange.files.push(name);
        }
    }
    if arguments.contains("git commit") {
        // Git prints `[branch 1a2b3c4] subject`.
        let printed = text.lines().filter_map(|line| line.trim().strip_prefix('[')?.split_once(']'));
        let ids = printed.filter_map(|(inner, _)| inner.rsplit(' ').next());
        let is_id = |id: &&str| id.len() >= 7 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        exchange.commits.extend(ids.filter(is_id).map(str::to_owned));
    }
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
    fn a_word_that_begins_like_yes_does_not_agree() {
        assert!(agrees("Yes, do that.") && agrees("ok, go ahead"));
        assert!(
            !agrees("Yesterday it broke again.") && !agrees("Surely not.") && !agrees("ok but that's wrong")
        );
    }
}
