//! Finds statements in a range of messages that later messages of the range corrected. A summary marks them.

use std::collections::HashMap;

use crate::summaries::notes::said;
use tiro_digest::context::facts::Voice;
use tiro_digest::statements::{Subjects, of_message};
use tiro_digest::summarize::Corrected;
use tiro_store::MessageRow;

/// A statement of a message.
struct MessageStatement {
    /// The index of the message.
    message: usize,
    value: String,
    corrected: Corrected,
}

/// Returns for each message the statements that a later message of the same voice replaced with another value. The
/// result depends only on the messages.
pub fn corrections(texts: &[(MessageRow, String)]) -> Vec<Vec<Corrected>> {
    let mut by_voice: HashMap<String, (Subjects, Vec<usize>)> = HashMap::new();
    // For each thing, the statements about it, in order.
    let mut subjects: Vec<Vec<MessageStatement>> = Vec::new();
    for (message, (row, text)) in texts.iter().enumerate() {
        let Voice::Person(name) = said(row, text).voice() else { continue };
        let (known, subject_of) = by_voice.entry(name).or_default();
        for stated in of_message(text) {
            let same_as = known.compare(stated.value.clone(), stated.about, row.key).same_as;
            let subject = same_as.map_or(subjects.len(), |place| subject_of[place]);
            subject_of.push(subject);
            if subject == subjects.len() {
                subjects.push(Vec::new());
            }
            let corrected = Corrected { range: stated.start..stated.end, by: row.ordinal };
            subjects[subject].push(MessageStatement { message, value: stated.value, corrected });
        }
    }
    let mut found = vec![Vec::new(); texts.len()];
    for mut subject in subjects {
        let Some(last) = subject.pop() else { continue };
        for earlier in
            subject.into_iter().filter(|each| each.value != last.value && each.message != last.message)
        {
            let corrected = Corrected { by: last.corrected.by, ..earlier.corrected };
            found[earlier.message].push(corrected);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiro_base::memory::{Kind, MemoryId, MemoryKey, Provenance, Role};

    fn talk(said: &[&str]) -> Vec<(MessageRow, String)> {
        let row = |(ordinal, text): (usize, &&str)| {
            let ordinal = ordinal as i64;
            let row = MessageRow {
                key: MemoryKey::from_store(ordinal),
                id: MemoryId::derive(Kind::Message, None, &ordinal.to_string()),
                ordinal,
                role: Some(Role::User),
                speaker: None,
                time: 0,
                tokens: 1,
                marked: false,
                importance: None,
                kind: Kind::Message,
                provenance: Provenance::UserSaid,
                is_damaged: false,
            };
            (row, (*text).to_owned())
        };
        said.iter().enumerate().map(row).collect()
    }

    #[test]
    fn the_last_of_many_values_holds() {
        let said: Vec<String> =
            (0..200).map(|n| format!("The API limit is now {} requests per day.", n + 40)).collect();
        let said: Vec<&str> = said.iter().map(String::as_str).collect();
        let found = corrections(&talk(&said));
        let by: Vec<i64> = found.iter().flatten().map(|corrected| corrected.by).collect();
        assert_eq!(by, vec![199; 199]);
        assert!(found[199].is_empty());
    }

    #[test]
    fn other_things_and_equal_values_are_no_correction() {
        let found = corrections(&talk(&[
            "The API limit is 40 requests per day.",
            "The API limit is 40 requests per day.",
            "The meeting lasts 30 minutes.",
        ]));
        assert!(found.iter().all(Vec::is_empty), "{found:?}");
    }
}
