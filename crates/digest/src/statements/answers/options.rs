//! Reads which of the assistant's options a reply chooses.

use super::lists::one_line;
use super::{POINTS, refers};
use crate::statements::replies;
use crate::statements::words::{has, words};
use std::collections::BTreeMap;

/// Words after which an option has its number or letter.
const OPTIONS: &str = "option approach variant alternative";

/// Returns the option that a reply chooses, with the options that it doesn't choose.
pub(super) fn chosen(asked: &str, reply: &str) -> Option<String> {
    let said = words(reply);
    let at = said.windows(2).position(|two| has(OPTIONS, &two[0]) && is_mark(&two[1]))?;
    let refuses = at > 0 && has("not than of no either", &said[at - 1]);
    let is_choice = at < 4 || replies::accepts(reply);
    let is_other = said.windows(2).skip(at + 1).any(|two| has(OPTIONS, &two[0]) && is_mark(&two[1]));
    if reply.contains('?') || refuses || !is_choice || is_other || replies::rejects(reply) {
        return None;
    }
    let mut named: BTreeMap<String, String> = BTreeMap::new();
    for line in asked.lines() {
        let plain = one_line(line.trim_start_matches([' ', '#', '*', '-', '|', '_']));
        let Some((head, title)) = plain.split_once([':', '—', '–']).or_else(|| plain.split_once(" - "))
        else {
            continue;
        };
        let head = words(head);
        let title = title.split(['|', '(', '?']).next().unwrap_or_default().trim().trim_end_matches('.');
        if let [kind, mark] = head.as_slice()
            && kind == &said[at]
            && is_mark(mark)
            && (2..=14).contains(&words(title).len())
        {
            named.entry(mark.clone()).or_insert_with(|| title.to_owned());
        }
    }
    let chosen = named.remove(&said[at + 1]).filter(|title| !refers(title, POINTS))?;
    let others: Vec<String> = named.into_values().collect();
    (!others.is_empty()).then(|| format!("Chosen: {chosen}, not: {}", others.join("; ")))
}

/// Returns whether a word is the number or the letter of an option.
fn is_mark(word: &str) -> bool {
    word.chars().count() == 1 && word.chars().all(char::is_alphanumeric)
}
