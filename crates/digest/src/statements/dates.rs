//! Reads dates and times of day.

use super::Value;
use super::tokens::Token;
use tiro_base::times::{MONTHS, WEEKDAYS};

/// Reads a date at `place`. A date is a day of the week, or a month and a day that may be followed by a year. A time of
/// day may follow the date.
pub(super) fn date(text: &str, tokens: &[Token<'_>], place: usize) -> Option<Value> {
    let token = tokens[place];
    let lower = token.lower();
    let is_name = token.text.starts_with(char::is_uppercase);
    let made = |value: String, end: usize| Some(Value::plain(value, "date", place..end));
    if is_name && let Some(day) = WEEKDAYS.iter().position(|name| *name == lower) {
        let (time, end) = time_of_day(text, tokens, place + 1);
        return made(format!("day {day}{time}"), end);
    }
    let month =
        MONTHS.iter().position(|name| lower == *name || (lower.len() == 3 && name.starts_with(&lower)));
    let (month, day) = (month.filter(|_| is_name)? + 1, tokens.get(place + 1)?);
    let digits: String = day.text.chars().take_while(char::is_ascii_digit).collect();
    let day_number: u32 = digits.parse().ok().filter(|day| (1..=31).contains(day))?;
    if !matches!(&day.text[digits.len()..], "" | "st" | "nd" | "rd" | "th") {
        return None;
    }
    let mut end = place + 2;
    let is_year = |token: &Token<'_>| {
        token.text.len() == 4 && (token.text.starts_with("20") || token.text.starts_with("19"))
    };
    if tokens.get(end).is_some_and(|token| token.text == ",") && tokens.get(end + 1).is_some_and(is_year) {
        end += 2;
    }
    let (time, end) = time_of_day(text, tokens, end);
    made(format!("{month:02}-{day_number:02}{time}"), end)
}

/// The maximum number of bytes of a time of day.
const LONGEST_TIME: usize = 24;

/// Reads a time of day at `place`, such as `at 4:30 PM`. Returns it with a space before it, and the place after it.
/// Returns an empty text if there is no time of day.
fn time_of_day(text: &str, tokens: &[Token<'_>], place: usize) -> (String, usize) {
    let is_at = tokens.get(place).is_some_and(|token| matches!(token.text, "at" | "by" | "from"));
    let first = if is_at { place + 1 } else { place };
    let Some(hour) = tokens.get(first).filter(|token| token.is_number()) else {
        return (String::new(), place);
    };
    let rest = &text[hour.start..];
    let rest = rest[..rest.floor_char_boundary(LONGEST_TIME)].to_lowercase();
    let clock: String = rest.chars().take_while(|c| c.is_ascii_digit() || *c == ':').collect();
    let half = rest[clock.len()..].trim_start().replace('.', "");
    let half = ["am", "pm"].into_iter().find(|half_day| {
        half.strip_prefix(half_day).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
    });
    let Some(half) = half.filter(|_| clock.len() <= 5) else { return (String::new(), place) };
    let end = tokens
        .iter()
        .skip(first)
        .take(4)
        .position(|token| token.start > hour.start && token.lower().replace('.', "").starts_with(half));
    let end = match hour.text.len() > clock.len() {
        true => first + 1,
        false => end.map_or(first + 1, |end| first + end + 1),
    };
    (format!(" {}{half}", clock.trim_end_matches(":00")), end)
}

/// Reads a time of day at `place` that doesn't follow a date.
pub(super) fn time(text: &str, tokens: &[Token<'_>], place: usize) -> Option<Value> {
    let (time, end) = tokens[place].is_number().then(|| time_of_day(text, tokens, place))?;
    let value = time.trim_start().to_owned();
    let is_read = !value.is_empty();
    is_read.then(|| Value::plain(value, "time", place..end))
}
