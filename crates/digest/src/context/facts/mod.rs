//! Finds standing instructions and decisions in a conversation without a model: few, and only what certainly lasts.
//!
//! A fact is a whole sentence in a person's own words that states a rule ("always", "must never", "from now on"), a
//! preference or a choice ("we decided", "use A instead of B"). The sentence before a choice comes along, because it
//! mostly says what the choice is about. A question of the assistant and the person's answer together are a decision,
//! too ([`answers`]). An assistant's sentence is a decision only if it proposes something that lasts and the person
//! accepts it. An assistant's reports are left to summaries. In a conversation of two people, what one of them tells of
//! their own past is a fact too.
//!
//! Never taken are questions, what is only imagined, requests of one moment, what somebody else said, quoted text, and
//! text on which the assistant shall work ([`own`]). A sentence that the speaker takes back in one of the next
//! messages, or of which the speaker later states the opposite, is left out or superseded ([`fate`]). The words are
//! English; a quotation is recognised in all languages.

mod cues;
mod fate;
mod own;
mod stands;
#[cfg(test)]
mod tests;

pub use crate::statements::answers::is_dialog;
pub use crate::statements::voice::{Said, Voice};
use crate::statements::{answers, replies, words};
pub use cues::is_standing;
use own::Stated;
use std::collections::HashSet;
use tiro_base::memory::Kind;

/// A sentence that states a fact or a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// `fact` or `decision`.
    pub kind: Kind,
    /// The sentence, without markup.
    pub text: String,
    /// The ordinal of the message.
    pub ordinal: i64,
    /// The earlier facts that no longer hold because of this fact, as in "forget that, we stay with Redis".
    pub takes_back: Vec<TakenBack>,
}

/// An earlier fact that a later one takes back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakenBack {
    /// The kind of the earlier fact.
    pub kind: Kind,
    /// The text of the earlier fact.
    pub text: String,
    /// The ordinal of the earlier fact's message.
    pub ordinal: i64,
    /// Whether the earlier fact's message says nothing else, so that the message no longer holds either.
    pub is_message: bool,
}

/// The maximum number of facts that are taken from one message of a person. Arbitrary: few rather than many.
const OF_MESSAGE: usize = 3;

/// The maximum number of answers to questions that are taken from one message. Arbitrary: assistants ask fewer
/// questions at once.
const ANSWERS: usize = 10;

/// Returns the facts and decisions of `messages`, in order. An assistant's messages after the last message of a person
/// are not judged yet. The caller passes them again after the person has answered.
pub fn facts(messages: &[Said<'_>]) -> Vec<Fact> {
    // An answer in a client's dialog has no name.
    let replies: Vec<(usize, Option<String>)> = messages
        .iter()
        .enumerate()
        .filter_map(|(place, message)| match message.voice() {
            Voice::Person(name) => Some((place, Some(name))),
            Voice::Other if is_dialog(message.role, message.speaker) => Some((place, None)),
            Voice::Assistant | Voice::Other => None,
        })
        .collect();
    let mut names = replies.iter().filter_map(|(_, name)| name.as_deref());
    let user = names.next().unwrap_or_default().to_owned();
    let among_people = names.any(|name| name != user);
    let mut found = fate::Found::default();
    let decided = |texts: Vec<String>| texts.into_iter().take(ANSWERS).map(Stated::decision).collect();
    let mut after = 0;
    for (place, name) in replies {
        let (answers, message) = (&messages[after..place], &messages[place]);
        let from = std::mem::replace(&mut after, place + 1);
        let Some(name) = name else {
            let chosen = answers::in_dialog(&messages[..place], message);
            found.add(&user, message, decided(chosen), Vec::new());
            continue;
        };
        let decisions = match among_people {
            true => Vec::new(),
            false => answers::decisions(&messages[..place], from, message),
        };
        let is_answer =
            |claim: &str| decisions.iter().any(|decision| decision.contains(claim.trim_end_matches('.')));
        let answer = answers.iter().rev().find(|answer| answer.voice() == Voice::Assistant);
        let accepted = answer.and_then(|answer| Some((answer, own::accepted(answer.text, message.text)?)));
        if let Some((answer, text)) = accepted {
            found.add(&name, answer, vec![Stated::decision(text)], Vec::new());
        }
        let taken_back = match replies::is_taken_back(message.text) {
            true => found.taken_back(&name, message.text),
            false => Vec::new(),
        };
        let mut stated = own::stated(message.text, &messages[..place], among_people);
        stated.retain(|stated| !is_answer(&stated.claim));
        stated.truncate(OF_MESSAGE);
        stated.splice(0..0, decided(decisions));
        found.add(&name, message, stated, taken_back);
    }
    let mut known: HashSet<String> = HashSet::new();
    found.facts().filter(|fact| known.insert(words::words(&fact.text).join(" "))).collect()
}
