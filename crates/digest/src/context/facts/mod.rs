//! Finds facts and decisions in a conversation without a model.
//!
//! A fact is a whole sentence of a message. A person's sentence is a fact if it says something about the person or the
//! project, or states a rule or a choice. An assistant's sentence is a fact if it is a report that the person did not
//! reject, or a proposal that the person accepted. A sentence is scored by general signs, such as the first person, a
//! past tense, a date, a name, or "must" and "never". So no list of topics is needed. Only a few sentences are taken
//! from each exchange. Questions, requests of one moment, code, headings, rows of tables, quotations, and text that a
//! client added are skipped. The signs are English. In other languages, only sentences with names and numbers can reach
//! the required score.

mod answers;
mod passing;
mod said;
mod signs;
#[cfg(test)]
mod tests;

use crate::statements::replies;
use tiro_base::memory::{Kind, Role};

/// A message of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Said<'a> {
    /// The ordinal of the message in the session.
    pub ordinal: i64,
    /// The speaker's role.
    pub role: Option<Role>,
    /// The speaker's name.
    pub speaker: Option<&'a str>,
    /// The text.
    pub text: &'a str,
}

/// A sentence that states a fact or a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// `fact` or `decision`.
    pub kind: Kind,
    /// The sentence, without markup.
    pub text: String,
    /// The ordinal of the message.
    pub ordinal: i64,
    /// The ordinal of the earlier message whose decisions this fact takes back, as in "forget that, we stay with
    /// Redis".
    pub takes_back: Option<i64>,
}

/// The kind of speaker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Voice {
    /// A person: the user, or anyone with a name of their own.
    Person(String),
    /// An assistant.
    Assistant,
    /// A tool, or the system.
    Other,
}

/// The maximum number of facts that are taken from one message of a person. Arbitrary: few rather than many.
const OF_MESSAGE: usize = 2;

/// The maximum number of a person's messages between a decision and the message that takes it back. Arbitrary.
const TAKEN_BACK_WITHIN: usize = 3;

impl Said<'_> {
    /// Returns the kind of speaker.
    pub fn voice(&self) -> Voice {
        Voice::of(self.role, self.speaker)
    }
}

impl Voice {
    /// Returns the kind of speaker of a message. `speaker` is the speaker's name, and `role` is the speaker's role.
    ///
    /// In a conversation of two people, one of them may have the role of the assistant. The name then shows that the
    /// speaker is a person.
    pub fn of(role: Option<Role>, speaker: Option<&str>) -> Voice {
        let name = speaker.map(str::trim).filter(|name| !name.is_empty());
        match (role, name) {
            (Some(Role::User), name) => Voice::Person(name.unwrap_or("user").to_lowercase()),
            (Some(Role::Assistant), Some(name)) if signs::is_persons_name(name) => {
                Voice::Person(format!("assistant {}", name.to_lowercase()))
            }
            (Some(Role::Assistant), _) => Voice::Assistant,
            _ => Voice::Other,
        }
    }
}

/// Returns the facts and decisions of `messages`, in order. An assistant's messages after the last message of a person
/// are not judged yet. The caller passes them again after the person has answered.
pub fn facts(messages: &[Said<'_>]) -> Vec<Fact> {
    let mut found: Vec<Fact> = Vec::new();
    let persons: Vec<(usize, String)> = messages
        .iter()
        .enumerate()
        .filter_map(|(place, message)| match message.voice() {
            Voice::Person(name) => Some((place, name)),
            Voice::Assistant | Voice::Other => None,
        })
        .collect();
    let works = answers::works(messages);
    let mut after = 0;
    for (number, (place, name)) in persons.iter().enumerate() {
        let answers = &messages[after..*place];
        after = place + 1;
        let message = &messages[*place];
        found.extend(answers::accepted(answers, message.text));
        let takes_back = replies::is_taken_back(message.text).then(|| {
            let before = persons[..number].iter().rev().take(TAKEN_BACK_WITHIN);
            let mut own =
                before.filter(|(_, speaker)| speaker == name).map(|(place, _)| messages[*place].ordinal);
            let has_decision = |ordinal: &i64| {
                found.iter().any(|fact| fact.ordinal == *ordinal && fact.kind == Kind::Decision)
            };
            own.clone().find(has_decision).or_else(|| own.next())
        });
        let own = said::stated(message.text, takes_back.is_some(), works.then_some(&messages[..*place]));
        found.extend(own.into_iter().take(OF_MESSAGE).map(|(kind, text)| Fact {
            kind,
            text,
            ordinal: message.ordinal,
            takes_back: takes_back.flatten(),
        }));
    }
    let mut known: Vec<String> = Vec::new();
    found.retain(|fact| {
        let words = signs::words(&fact.text).join(" ");
        let is_new = !known.contains(&words);
        known.push(words);
        is_new
    });
    found
}
