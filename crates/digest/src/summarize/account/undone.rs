//! Leaves out of an account what the user had removed later.

use std::collections::BTreeSet;

use super::read::Account;
use crate::summarize::reading::Reading;
use crate::summarize::word_keys::{self, words};

/// Verbs with which a user asks to undo work.
const UNDOES: &str = "remove delete revert undo drop kill discard";

/// The number of words after such a verb that name what is to be undone. Arbitrary: a noun with its attributes.
const NAMES: usize = 4;

/// Removes the outcomes that the user later asked to undo: the request names at least half of its object with words of
/// the outcome.
pub(super) fn drop_undone(account: &mut Account<'_>) {
    let reading = account.reading;
    for later in 1..account.exchanges.len() {
        let objects: Vec<BTreeSet<u32>> = (account.exchanges[later].asked.iter())
            .filter_map(|place| object(reading, &reading.sentences[*place].text))
            .collect();
        if objects.is_empty() {
            continue;
        }
        let is_undone = |place: &usize| {
            let stated = &reading.sentences[*place].words;
            objects.iter().any(|object| {
                let shared = object.iter().filter(|word| stated.binary_search(word).is_ok()).count();
                shared * 2 >= object.len()
            })
        };
        account.outcomes[..later].iter_mut().for_each(|outcome| outcome.retain(|place| !is_undone(place)));
    }
}

/// Returns the numbers of the words that name what a request asks to undo. Returns `None` if it asks for nothing of the
/// kind, or names nothing.
fn object(reading: &Reading, request: &str) -> Option<BTreeSet<u32>> {
    let mut rest = words(request).into_iter();
    rest.find(|word| UNDOES.split_whitespace().any(|verb| word.text.eq_ignore_ascii_case(verb)))?;
    let named = rest.take(NAMES).map(|word| (word.text, word_keys::key(word.text)));
    let rare = named.filter(|(word, key)| !word_keys::is_common(word, key));
    let object: BTreeSet<u32> = rare.filter_map(|(_, key)| reading.numbers.get(&key).copied()).collect();
    (!object.is_empty()).then_some(object)
}
