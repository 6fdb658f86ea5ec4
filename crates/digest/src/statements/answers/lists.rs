//! Reads numbered lists: the questions of an assistant, and a person's answers.

use crate::statements::words::words;
use std::collections::BTreeMap;

/// The maximum number of words before a colon that are the label of a question. Arbitrary.
const LABEL: usize = 6;

/// Returns the items of a numbered list by their numbers; empty if the reply doesn't begin with such a list, or has
/// several.
pub(super) fn answers(reply: &str) -> BTreeMap<u32, String> {
    let mut items: BTreeMap<u32, String> = BTreeMap::new();
    for line in reply.lines().flat_map(items_of_line) {
        let next = items.last_key_value().map(|(number, _)| *number);
        match number(line.trim_start()) {
            None if next.is_none() && !line.trim().is_empty() => return BTreeMap::new(),
            Some((number, _)) if next.is_some_and(|last| number <= last) => return BTreeMap::new(),
            Some((number, rest)) => drop(items.insert(number, rest.to_owned())),
            // A line that follows an item after an empty line belongs to no item.
            None if line.trim().is_empty() => {
                let _ = next.map(|last| items.entry(last).and_modify(|text| text.push('\n')));
            }
            None => {
                if let Some(text) =
                    next.and_then(|last| items.get_mut(&last)).filter(|text| !text.ends_with('\n'))
                {
                    *text += " ";
                    *text += line.trim();
                }
            }
        }
    }
    items
}

/// Divides a line that has several items, as in "1) all 2) yes 3) no", into its items.
fn items_of_line(line: &str) -> Vec<&str> {
    let Some((first, _)) = number(line.trim_start()) else { return vec![line] };
    let (mut items, mut rest) = (Vec::new(), line);
    for next in first + 1.. {
        let Some(at) = rest.find(&format!(" {next}) ")) else { break };
        items.push(&rest[..at]);
        rest = &rest[at + 1..];
    }
    items.push(rest);
    items
}

/// Returns the questions of the last numbered list of questions in a text, by their numbers.
pub(super) fn questions(text: &str) -> Option<BTreeMap<u32, String>> {
    let mut lists: Vec<BTreeMap<u32, Vec<&str>>> = Vec::new();
    let (mut is_code, mut is_outside, mut lead) = (false, true, "");
    for line in text.lines() {
        is_code ^= line.trim_start().starts_with("```");
        if is_code || line.trim().is_empty() {
            continue;
        }
        let plain = line.trim_start_matches([' ', '\t', '#', '*', '_', 'Q']);
        let expected = lists.last().and_then(BTreeMap::last_key_value).map_or(1, |(last, _)| last + 1);
        match number(plain) {
            Some((1, rest)) if !line.starts_with([' ', '\t']) => {
                is_outside = offers(lead);
                lists.push(BTreeMap::from([(1, vec![rest])]));
            }
            Some((number, rest)) if number == expected && !is_outside && number > 1 => {
                lists.last_mut().into_iter().for_each(|list| drop(list.insert(number, vec![rest])));
            }
            _ => {
                let is_inner =
                    line.starts_with([' ', '\t']) || line.trim_start().starts_with(['-', '*', '•']);
                lead = line;
                let item = lists.last_mut().and_then(|list| list.last_entry());
                item.filter(|_| is_inner).into_iter().for_each(|mut item| item.get_mut().push(line));
            }
        }
    }
    let is_asking = |list: &BTreeMap<u32, Vec<&str>>| {
        let asks = list.values().filter(|lines| lines.iter().any(|line| line.contains('?'))).count();
        list.len() > 1 && 2 * asks > list.len()
    };
    let list = lists.into_iter().rev().find(is_asking)?;
    Some(list.into_iter().map(|(number, lines)| (number, question(&lines))).collect())
}

/// Returns whether a line before a list offers what the assistant could do next.
fn offers(line: &str) -> bool {
    let all = format!(" {}", words(line).join(" "));
    let begins = [" should i ", " shall i ", " i can ", " would you like ", " do you want "]
        .iter()
        .any(|phrase| all.starts_with(phrase));
    begins || all.contains(" like me to") || all.contains(" want me to")
}

/// Returns the question of a list item: its label with the only question in it, or only its label if it has several
/// questions.
fn question(lines: &[&str]) -> String {
    let lines: Vec<String> =
        lines.iter().map(|line| one_line(line.trim_start_matches([' ', '\t', '-', '*', '•']))).collect();
    let first = lines.first().map_or("", String::as_str);
    let (label, rest) = match first.split_once(':') {
        Some((label, rest)) if words(label).len() <= LABEL => (label.trim(), rest.trim()),
        _ if first.contains('?') || words(first).len() > LABEL => ("", first),
        _ => (first, ""),
    };
    // Questions below a question name its answers, and several questions below a label are too many.
    let own = asked(rest);
    let asked = match lines.as_slice() {
        [_, inner] if own.is_empty() => asked(inner),
        _ => own,
    };
    match (label, asked.as_slice()) {
        ("", [asked]) => asked.clone(),
        ("", _) => String::new(),
        (label, [asked]) => format!("{label}: {asked}"),
        (label, _) => label.to_owned(),
    }
}

/// Returns the questions in a line. A question mark within a word, such as in an address, ends no question.
fn asked(line: &str) -> Vec<String> {
    let ends = line.match_indices('?').map(|(at, _)| at + 1);
    let closes = |next: char| next.is_whitespace() || ")*_\"'”".contains(next);
    let ends = ends.filter(|end| line[*end..].chars().next().is_none_or(closes));
    let mut from = 0;
    ends.map(|end| {
        let part = &line[std::mem::replace(&mut from, end)..end];
        part.rsplit_once(". ").map_or(part, |(_, asked)| asked).trim().to_owned()
    })
    .collect()
}

/// Returns the number with which a line of a list begins, and the rest of the line.
fn number(line: &str) -> Option<(u32, &str)> {
    let end = line.find(|c: char| !c.is_ascii_digit()).filter(|end| (1..=2).contains(end))?;
    let rest = line[end..].strip_prefix(['.', ')', ':'])?;
    let number = line[..end].parse().ok()?;
    (rest.is_empty() || rest.starts_with([' ', '\t', '*'])).then(|| (number, rest.trim()))
}

/// Returns a text without emphasis, with single spaces.
pub(super) fn one_line(text: &str) -> String {
    text.replace(['*', '`'], "").split_whitespace().collect::<Vec<_>>().join(" ")
}
