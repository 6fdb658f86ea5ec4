//! Finds statements in a range of messages that later messages of the range corrected. A summary marks them.

use std::collections::HashMap;

use crate::summaries::notes::said;
use tiro_digest::context::facts::Voice;
use tiro_digest::statements::{self, Statements};
use tiro_digest::summarize::Corrected;
use tiro_store::MessageRow;

/// A correction is compared with at most this many earlier messages of the same voice. Arbitrary.
const COMPARED: usize = 100;

/// Returns for each message the statements that a later message of the same voice corrected. The result depends only on
/// the messages.
pub fn corrections(texts: &[(MessageRow, String)]) -> Vec<Vec<Corrected>> {
    let mut by_voice: HashMap<String, Vec<(usize, Statements)>> = HashMap::new();
    let mut found: Vec<Vec<Corrected>> = vec![Vec::new(); texts.len()];
    for (message, (row, text)) in texts.iter().enumerate() {
        let Voice::Person(name) = said(row, text).voice() else { continue };
        let own = by_voice.entry(name).or_default();
        for correction in statements::corrections(text) {
            let most = if correction.is_of_message_before() { 1 } else { COMPARED };
            for (earlier, statements) in own.iter().rev().take(most) {
                if let Some(corrected) = correction.corrected(statements) {
                    let range = corrected.sentence;
                    found[*earlier].retain(|known| known.range != range);
                    found[*earlier].push(Corrected { range, by: row.ordinal });
                }
            }
        }
        own.push((message, Statements::of(text)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiro_base::memory::{Kind, MemoryId, MemoryKey, Provenance, Role};
    use tiro_base::scope::AuthorId;

    fn talk(said: &[&str]) -> Vec<(MessageRow, String)> {
        let row = |(ordinal, text): (usize, &&str)| {
            let ordinal = ordinal as i64;
            let row = MessageRow {
                key: MemoryKey::from_store(ordinal),
                id: MemoryId::derive(Kind::Message, None, &ordinal.to_string()),
                ordinal,
                author: AuthorId::new("ada"),
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
    fn a_corrected_statement_names_its_last_correction() {
        let found = corrections(&talk(&[
            "The API limit is 40 requests per day.",
            "The API limit went from 40 to 60 requests per day.",
            "The meeting lasts 30 minutes.",
            "The API limit went from 60 to 90 requests per day.",
        ]));
        let by: Vec<Vec<i64>> = found.iter().map(|own| own.iter().map(|each| each.by).collect()).collect();
        assert_eq!(by, [vec![1], vec![3], vec![], vec![]]);
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

    #[test]
    fn many_corrections_take_no_longer_than_their_number() {
        let said: Vec<String> = (0..300)
            .map(|n| format!("We deploy the quince press on day {} instead of day {n}.", n + 1))
            .collect();
        let said: Vec<&str> = said.iter().map(String::as_str).collect();
        assert!(corrections(&talk(&said)).iter().take(299).all(|own| own.len() == 1));
    }
}
