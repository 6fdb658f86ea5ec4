//! Reads the numbers and dates of a text into one spelling. It reads digits, number words, and dates in any usual
//! format.

use super::tokens::{Kind, Token};
use tiro_base::times::{MONTHS, WEEKDAYS};

/// Number words. The first 27 can be part of a number of several words.
pub(in crate::summarize::quality) const WORDS: [(&str, u64); 30] = [
    ("two", 2),
    ("three", 3),
    ("four", 4),
    ("five", 5),
    ("six", 6),
    ("seven", 7),
    ("eight", 8),
    ("nine", 9),
    ("ten", 10),
    ("eleven", 11),
    ("twelve", 12),
    ("thirteen", 13),
    ("fourteen", 14),
    ("fifteen", 15),
    ("sixteen", 16),
    ("seventeen", 17),
    ("eighteen", 18),
    ("nineteen", 19),
    ("twenty", 20),
    ("thirty", 30),
    ("forty", 40),
    ("fifty", 50),
    ("sixty", 60),
    ("seventy", 70),
    ("eighty", 80),
    ("ninety", 90),
    ("dozen", 12),
    ("twice", 2),
    ("thrice", 3),
    ("couple", 2),
];

/// A number or a part of a date, with the place of its token.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::summarize::quality) enum Quantity {
    /// A number, without commas and leading zeros.
    Number(String),
    /// A day and its month, both counted from 1.
    Day(i8, i8),
    /// A month, from 1.
    Month(i8),
    /// A day of the week, from 0 for Monday.
    Weekday(i8),
    /// A time of the day, in minutes since midnight or noon, because texts often leave out which half of the day they
    /// mean.
    Clock(u16),
}

fn month(token: &Token<'_>) -> Option<i8> {
    let lower = token.lower.as_str();
    let is_short = lower.len() == 3 || lower == "sept";
    // The words "may" and "march" are months only if they begin with a capital letter.
    let place = MONTHS.iter().position(|name| *name == lower || (is_short && name.starts_with(lower)))?;
    (token.is_capital() && place < 12).then_some(place as i8 + 1)
}

fn weekday(token: &Token<'_>) -> Option<i8> {
    let lower = token.lower.as_str();
    WEEKDAYS
        .iter()
        .position(|name| lower == *name || lower.strip_suffix('s') == Some(name))
        .map(|place| place as i8)
}

fn plain(token: &Token<'_>) -> Option<String> {
    if token.kind == Kind::Number {
        let digits: String = token.lower.replace(',', "");
        let (number, ending) =
            digits.split_at(digits.find(|c: char| c.is_alphabetic()).unwrap_or(digits.len()));
        let number = number.trim_start_matches('0');
        let number = if number.is_empty() { "0" } else { number };
        let number =
            if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number };
        return Some(match ending {
            "k" => match number.split_once('.') {
                Some((whole, part)) if part.len() <= 3 => format!("{whole}{part:0<3}"),
                _ => format!("{number}000"),
            },
            "" | "st" | "nd" | "rd" | "th" | "am" | "pm" | "s" => number.to_owned(),
            other => format!("{number}{other}"),
        });
    }
    WORDS.iter().find(|(word, _)| *word == token.lower).map(|(_, value)| value.to_string())
}

/// Returns a number that is spelled in several words, such as "twenty five", "two hundred" or "twelve point five". Also
/// returns how many tokens it has.
fn spelled(tokens: &[Token<'_>]) -> Option<(String, usize)> {
    let value = |token: &Token<'_>| -> Option<u64> {
        match token.lower.as_str() {
            "one" => Some(1),
            "a" if tokens.get(1).is_some_and(|next| scale(next).is_some()) => Some(1),
            lower if token.kind == Kind::Word => {
                WORDS.iter().take(20).find(|(word, _)| *word == lower).map(|(_, value)| *value).or_else(
                    || WORDS[19..27].iter().find(|(word, _)| *word == lower).map(|(_, value)| *value),
                )
            }
            _ if token.text.len() < 7 => token.lower.parse().ok(),
            _ => None,
        }
    };
    let (mut total, mut part, mut at) = (0_u64, value(tokens.first()?)?, 1);
    while let Some(token) = tokens.get(at) {
        let skips = usize::from(
            token.lower == "and" && tokens.get(at + 1).and_then(value).is_some() && part % 100 == 0,
        );
        if let Some(scale) = scale(token) {
            part = part.saturating_mul(scale);
            if scale > 100 {
                (total, part) = (total.saturating_add(part), 0);
            }
        } else if let Some(next) = tokens.get(at + skips).and_then(value) {
            let fits = (part % 100 == 0 && (part > 0 || total > 0) && next < 100)
                || (part % 10 == 0 && part % 100 >= 20 && next < 10);
            if !fits || tokens[at + skips].kind != Kind::Word {
                break;
            }
            part = part.saturating_add(next);
            at += skips;
        } else if token.lower == "point"
            && let Some(next) = tokens.get(at + 1).and_then(value)
        {
            return Some((format!("{}.{next}", total.saturating_add(part)), at + 2));
        } else {
            break;
        }
        at += 1;
    }
    (at > 1).then(|| (total.saturating_add(part).to_string(), at))
}

/// Returns the factor that a word such as "thousand" stands for.
fn scale(token: &Token<'_>) -> Option<u64> {
    Some(match token.lower.as_str() {
        "hundred" => 100,
        "thousand" => 1000,
        "million" => 1_000_000,
        "billion" => 1_000_000_000,
        _ => return None,
    })
}

fn clock(token: &Token<'_>) -> Option<u16> {
    let digits = token.lower.trim_end_matches(|c: char| c.is_alphabetic());
    let (hour, minute) = digits.split_once(':')?;
    let (hour, minute): (u16, u16) = (hour.parse().ok()?, minute.get(..2)?.parse().ok()?);
    (hour < 25 && minute < 60).then_some(hour % 12 * 60 + minute)
}

/// Returns the numbers and dates of a text, each with the index of its token.
pub(in crate::summarize::quality) fn quantities(tokens: &[Token<'_>]) -> Vec<(usize, Quantity)> {
    let mut found = Vec::new();
    let mut at = 0;
    let day_of = |place: usize| {
        let token = tokens.get(place)?;
        let day: i8 = plain(token).filter(|_| token.kind == Kind::Number)?.parse().ok()?;
        (1..=31).contains(&day).then_some(day)
    };
    while at < tokens.len() {
        let token = &tokens[at];
        if let Some(month) = month(token) {
            found.push((at, Quantity::Month(month)));
            let gap = if tokens.get(at + 1).is_some_and(|next| next.lower == "the") { 2 } else { 1 };
            if let Some(day) = day_of(at + gap) {
                found.push((at + gap, Quantity::Day(day, month)));
                at += gap + 1;
                continue;
            }
        } else if let Some(weekday) = weekday(token) {
            found.push((at, Quantity::Weekday(weekday)));
        } else if let Some(clock) = clock(token) {
            found.push((at, Quantity::Clock(clock)));
        } else if let Some((number, length)) = spelled(&tokens[at..]) {
            found.push((at, Quantity::Number(number)));
            at += length;
            continue;
        } else if let Some(number) = plain(token) {
            let gap = if tokens.get(at + 1).is_some_and(|next| next.lower == "of") { 2 } else { 1 };
            match (day_of(at), tokens.get(at + gap).and_then(month)) {
                (Some(day), Some(month)) => found.push((at, Quantity::Day(day, month))),
                _ => found.push((at, Quantity::Number(number))),
            }
        }
        at += 1;
    }
    found
}
