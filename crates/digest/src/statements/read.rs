//! Reads the statements of a sentence.

use std::collections::{BTreeSet, HashSet};
use std::ops::Range;

use super::dates::{date, time};
use super::lists::{BOUNDS, CHANGE, GOALS, NOT_VALUES, NUMBERS, OWN, RATES, RESULTS, has, is_stop};
use super::names::name;
use super::takes_back::takes_back;
use super::tokens::{Token, stem, tokens};
use super::{About, MOST_REST, Manner, Stated, Value};
use tiro_base::times::{MONTHS, WEEKDAYS};
use tiro_text::blocks;

/// Statements are read from at most this many bytes of a message. Arbitrary.
const MOST_READ: usize = 16 * 1024;

/// The maximum number of statements that are kept of a message. Arbitrary: a message with more statements is a table or
/// a log.
const MOST_STATED: usize = 24;

/// The maximum number of statements that are read in a message. This number is higher than the number of kept
/// statements, because equal statements are kept only once. Arbitrary.
const MOST_EXAMINED: usize = 200;

/// Sentences with more bytes than this are not read. Arbitrary: such sentences are tables or data.
const LONGEST_SENTENCE: usize = 2048;

/// Two numbers: how many tokens before a value belong to its clause, and how many tokens after it. Arbitrary.
const CLAUSE: (usize, usize) = (14, 10);

/// The largest distance of a word of change from a value: this many tokens before the value, or this many after it.
/// Arbitrary.
const NEAR: (usize, usize) = (9, 4);

/// The maximum number of words between a number and the end of its unit. Arbitrary.
const LONGEST_UNIT: usize = 4;

/// If the distance between a date and another value is less than this many tokens, the date counts as a word of the
/// value's clause.
const DATE_NEAR: usize = 20;

/// Returns the statements in the prose of a message. Equal statements are returned once.
pub fn of_message(text: &str) -> Vec<Stated> {
    let text = &text[..text.floor_char_boundary(MOST_READ)];
    let said = blocks::blocks(text).into_iter().filter(blocks::Block::is_said);
    let sentences: Vec<Range<usize>> = said
        .flat_map(|block| blocks::sentences(&block))
        .map(|sentence| sentence.range)
        .filter(|range| range.len() <= LONGEST_SENTENCE)
        .collect();
    let mut known: HashSet<(String, String)> = HashSet::new();
    let mut stated = statements(text, &sentences);
    stated.retain(|stated| known.insert((stated.value.clone(), stated.about.line())));
    stated.truncate(MOST_STATED);
    stated
}

/// Returns the statements in the sentences of `text`. The sentences are given as ranges of bytes.
pub(super) fn statements(text: &str, sentences: &[Range<usize>]) -> Vec<Stated> {
    let all: BTreeSet<String> =
        sentences.iter().flat_map(|range| topics(&tokens(&text[range.clone()]))).collect();
    let mut found = Vec::new();
    for range in sentences {
        if found.len() >= MOST_EXAMINED {
            break;
        }
        let read = sentence(&text[range.clone()]);
        found.extend(read.into_iter().map(|(value, mut about)| {
            let is_known = |word: &&String| about.context.contains(*word) || about.modifiers.contains(*word);
            about.rest = all.iter().filter(|word| !is_known(word)).take(MOST_REST).cloned().collect();
            Stated { start: range.start, end: range.end, value, about }
        }));
    }
    found
}

/// Returns the values of a sentence, each with its topic.
fn sentence(text: &str) -> Vec<(String, About)> {
    let tokens = tokens(text);
    let mut values: Vec<Value> = Vec::new();
    let mut place = 0;
    while place < tokens.len() {
        let value = date(text, &tokens, place)
            .or_else(|| time(text, &tokens, place))
            .or_else(|| number(text, &tokens, place))
            .or_else(|| name(&tokens, place));
        place = value.as_ref().map_or(place + 1, |value| value.tokens.end);
        // If a date has a time of day, the time is a value too.
        let time = value.as_ref().filter(|value| value.unit == "date").and_then(|date| {
            let (_, time) = date.value.rsplit_once(' ').filter(|(_, time)| time.ends_with('m'))?;
            Some(Value::plain(time.to_owned(), "time", date.tokens.clone()))
        });
        values.extend(value);
        values.extend(time);
    }
    let is_taken_back = takes_back(text, usize::MAX);
    if is_taken_back && !values.iter().any(|value| value.unit == "name") {
        values.push(Value::plain("(taken back)".to_owned(), "name", 0..0));
    }
    let dates: Vec<(usize, String)> = values
        .iter()
        .filter(|value| value.unit == "date")
        .map(|value| (value.tokens.start, value.value.clone()))
        .collect();
    let listed = without_old(&tokens, &mut values);
    let mut found = Vec::new();
    for (value, is_listed) in values.into_iter().zip(listed) {
        let mut about = about(&tokens, &value);
        about.manner.is_listed = is_listed;
        about.manner.is_taken_back = is_taken_back && value.unit == "name";
        about.manner.is_change |= about.manner.is_taken_back;
        if value.unit != "date" {
            let near = dates.iter().filter(|(place, _)| place.abs_diff(value.tokens.start) < DATE_NEAR);
            about.context.extend(near.map(|(_, date)| date.clone()));
        }
        found.push((value.value, about));
    }
    found
}

/// In each phrase such as "from 60% to 85%", removes the first value, because it is no longer valid. Returns for each
/// remaining value whether it is in a list of values with the same unit.
fn without_old(tokens: &[Token<'_>], values: &mut Vec<Value>) -> Vec<bool> {
    let between = |first: &Value, second: &Value| -> Option<Vec<String>> {
        let gap = tokens.get(first.tokens.end..second.tokens.start)?;
        Some(gap.iter().map(Token::lower).collect())
    };
    let joins = |word: &String| matches!(word.as_str(), "," | "and" | "or" | "to" | "-" | "–" | "&" | "/");
    let mut old = vec![false; values.len()];
    let mut listed = vec![false; values.len()];
    for place in 1..values.len() {
        let (first, second) = (&values[place - 1], &values[place]);
        if first.unit == "name" || second.unit == "name" {
            continue;
        }
        let Some(gap) = between(first, second) else { continue };
        let is_from = first.tokens.start > 0 && tokens[first.tokens.start - 1].lower() == "from";
        // "from 65 to 72 points": the first number has no unit of its own.
        if is_from && gap == ["to"] {
            old[place - 1] = true;
        } else if first.unit == second.unit && gap.len() <= 3 && gap.iter().all(joins) {
            (listed[place - 1], listed[place]) = (true, true);
        }
    }
    let mut place = 0;
    values.retain(|_| {
        place += 1;
        !old[place - 1]
    });
    listed.into_iter().zip(old).filter(|(_, is_old)| !is_old).map(|(listed, _)| listed).collect()
}

/// Returns the topic of the value.
fn about(tokens: &[Token<'_>], value: &Value) -> About {
    let range = &value.tokens;
    let before = &tokens[range.start.saturating_sub(CLAUSE.0)..range.start];
    let after = &tokens[range.end..tokens.len().min(range.end + CLAUSE.1)];
    let words = |tokens: &[Token<'_>]| tokens.iter().map(Token::lower).collect::<Vec<String>>();
    let (before_words, after_words) = (words(before), words(after));
    let last = |count: usize| before_words.iter().rev().take(count);
    let near = last(NEAR.0).chain(after_words.iter().take(NEAR.1));
    let is_result = last(2).any(|word| has(RESULTS, word))
        || last(4).any(|word| matches!(word.as_str(), "new" | "updated" | "revised"));
    let manner = Manner {
        is_change: near.clone().any(|word| has(CHANGE, word)),
        is_result,
        is_bound: last(3).any(|word| has(BOUNDS, word))
            || last(1).any(|word| matches!(word.as_str(), "was" | "were" | "from" | "between")),
        is_goal: last(5).any(|word| has(GOALS, word)),
        is_own: before_words.iter().chain(&after_words).any(|word| has(OWN, word)),
        ..Manner::default()
    };
    let names = match value.unit.is_empty() {
        true => before.iter().filter(|token| is_topic(token)).map(|token| stem(token.text)).collect(),
        false => value.replaced.clone(),
    };
    let mut context: BTreeSet<String> = topics(before).into_iter().chain(topics(after)).collect();
    context.remove(value.unit.split('/').next().unwrap_or_default());
    About {
        unit: value.unit.clone(),
        modifiers: value.modifiers.iter().cloned().collect(),
        context,
        rest: BTreeSet::new(),
        before: names,
        manner,
    }
}

fn is_topic(token: &Token<'_>) -> bool {
    let lower = token.lower();
    let is_date = MONTHS.contains(&lower.as_str()) || WEEKDAYS.contains(&lower.as_str());
    token.is_word() && lower.chars().count() > 2 && !is_stop(&lower) && !is_date
}

/// Returns the stems of the words that describe the topic of a clause. The parts of a compound count as several words.
pub(super) fn topics(tokens: &[Token<'_>]) -> Vec<String> {
    let parts = tokens.iter().filter(|token| is_topic(token)).flat_map(|token| token.text.split('-'));
    let parts = parts.filter(|part| part.chars().count() > 2 && !is_stop(&part.to_lowercase()));
    parts.map(stem).collect()
}

/// Reads a number with its unit at `place`.
fn number(text: &str, tokens: &[Token<'_>], first: usize) -> Option<Value> {
    let place = first;
    let token = tokens[place];
    let word = NUMBERS.iter().position(|number| *number == token.lower());
    if !token.is_number() && word.is_none() {
        return None;
    }
    let previous = place.checked_sub(1).map(|before| tokens[before]);
    let is_part = previous.is_some_and(|before| {
        (before.end == token.start && !matches!(before.text, "(" | "\"" | "“"))
            || matches!(before.text, "#" | "=")
    });
    let after = previous.map(|before| before.lower()).unwrap_or_default();
    if is_part || after == "by" || has(NOT_VALUES, &after) {
        return None;
    }
    let bare = token.text.trim_start_matches(['$', '€', '£']);
    let is_money = bare.len() < token.text.len();
    let digits: String =
        bare.chars().take_while(|c| c.is_ascii_digit() || matches!(c, '.' | ',' | '/')).collect();
    let suffix = bare[digits.len()..].to_lowercase();
    let is_version = digits.matches('.').count() > 1 || bare.contains(':');
    let is_year =
        digits.len() == 4 && (digits.starts_with("19") || digits.starts_with("20")) && suffix.is_empty();
    let is_ordinal = matches!(suffix.as_str(), "st" | "nd" | "rd" | "th");
    if word.is_none()
        && (is_version || is_ordinal || (is_year && !is_money) || digits.starts_with("0") && digits.len() > 2)
    {
        return None;
    }
    let mut value = word.map_or_else(|| digits.replace(',', ""), |word| (word + 2).to_string());
    // The "am" or "pm" is part of a time of day, not a unit.
    if tokens.get(place + 1).is_some_and(|next| matches!(next.lower().as_str(), "am" | "pm" | "a.m" | "p.m"))
    {
        return None;
    }
    // A range such as "5-7 months" is one value.
    let is_dash = tokens.get(place + 1).is_some_and(|next| matches!(next.text, "-" | "–"));
    let upper = tokens.get(place + 2).filter(|upper| is_dash && upper.is_number());
    if let Some(upper) = upper {
        value = format!("{value}-{}", upper.text);
    }
    let place = if upper.is_some() { place + 2 } else { place };
    let token = tokens[place];
    let is_compound = tokens.get(place + 1).is_some_and(|next| next.text == "-" && next.start == token.end);
    let place = if is_compound { place + 1 } else { place };
    let run = run(text, &tokens[place..], is_compound);
    let (unit, modifiers, taken) = unit(&run, &suffix, is_money);
    // A bare number counts only after a word that introduces a value: "is 5", "reached 165".
    if unit.is_empty() && !(has(RESULTS, &after) || after == "are") {
        return None;
    }
    let end = place + 1 + taken;
    let (unit, end) = match rate(tokens, end) {
        Some((rate, end)) if !unit.is_empty() && !unit.contains('/') => (format!("{unit}/{rate}"), end),
        _ => (unit, end),
    };
    Some(Value { value, unit, modifiers, tokens: first..end, replaced: Vec::new() })
}

/// Returns the words that may name the unit of a number. They stand right after the number, which is the first of
/// `tokens`.
fn run<'t, 'a>(text: &str, tokens: &'t [Token<'a>], is_compound: bool) -> Vec<&'t Token<'a>> {
    let mut run: Vec<&Token<'_>> = Vec::new();
    let mut end = tokens[0].end;
    for next in &tokens[1..] {
        let gap = &text[end..next.start];
        let is_joined = gap == " " || (gap.is_empty() && is_compound && run.is_empty());
        if run.len() == LONGEST_UNIT || !next.is_word() || !is_joined || is_stop(&next.lower()) {
            break;
        }
        end = next.end;
        run.push(next);
    }
    run
}

/// Returns the unit of a number, the words that describe the unit, and how many words of `run` are part of the value.
/// `run` contains the words after the number. Without a sign or a suffix, the unit is the first plural among these
/// words, or the first word if there is no plural. The words before the unit describe it.
fn unit(run: &[&Token<'_>], suffix: &str, is_money: bool) -> (String, Vec<String>, usize) {
    let stems = |words: &[&Token<'_>]| words.iter().map(|token| stem(token.text)).collect::<Vec<String>>();
    let beside = &run[..run.len().min(2)];
    let rate = run.first().and_then(|token| token.text.split_once('/'));
    let is_plural = |token: &&Token<'_>| token.text.ends_with('s') && !token.text.ends_with("ss");
    match (run.first(), rate) {
        _ if is_money => ("$".to_owned(), Vec::new(), 0),
        (first, _) if suffix == "%" || first.is_some_and(|next| next.text == "percent") => {
            ("%".to_owned(), stems(beside), beside.len())
        }
        _ if !suffix.is_empty() => (suffix.trim_start_matches('-').to_owned(), stems(beside), 0),
        (_, Some((unit, per))) if has(RATES, &stem(per)) => {
            (format!("{}/{}", stem(unit), stem(per)), Vec::new(), 1)
        }
        (Some(_), _) => {
            let head = run.iter().position(is_plural).unwrap_or(0);
            (stem(run[head].text), stems(&run[..head]), head + 1)
        }
        (None, _) => (String::new(), Vec::new(), 0),
    }
}

/// Reads the rest of a rate at `place`, such as `per day`. Returns the second part of the rate, and the place after it.
fn rate(tokens: &[Token<'_>], place: usize) -> Option<(String, usize)> {
    let is_per = matches!(tokens.get(place)?.text, "/" | "per" | "a" | "an" | "each" | "every");
    let per = stem(tokens.get(place + 1).filter(|_| is_per)?.text);
    has(RATES, &per).then_some((per, place + 2))
}
