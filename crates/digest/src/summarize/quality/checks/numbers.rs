//! Finds the numbers and dates of a summary that are not in its sources.

use std::collections::BTreeSet;

use jiff::civil::Date;
use jiff::{Timestamp, ToSpan};

use crate::summarize::Source;
use crate::summarize::quality::read::quantities::{Quantity, WORDS, quantities};
use crate::summarize::quality::read::statements::Statement;
use crate::summarize::quality::read::tokens::{Token, tokens};
use tiro_base::times::WEEKDAYS;

/// Returns the numbers and dates of the summary that no source contains, as they are written. Dates may also be derived
/// from the times of the sources.
pub(super) fn unknown_numbers(
    said: &[Statement<'_>],
    sources: &[Source<'_>],
    is_english: bool,
) -> Vec<String> {
    let mut known = of_times(sources, is_english);
    let has_times = !known.is_empty();
    for source in sources {
        for (_, quantity) in quantities(&tokens(source.text)) {
            if let Quantity::Day(day, month) = quantity {
                known.insert(Quantity::Month(month));
                known.insert(Quantity::Number(day.to_string()));
            }
            known.insert(quantity);
        }
    }
    let is_unknown = |token: &Token<'_>, quantity: &Quantity| match quantity {
        Quantity::Number(number) => {
            // "The two" counts speakers. In other languages, words for small numbers are not read.
            let is_count = token.lower == "two" || (!is_english && number.len() == 1);
            !is_count && !known.contains(quantity)
        }
        _ => has_times && !known.contains(quantity),
    };
    let mut found = Vec::new();
    for statement in said {
        for (at, quantity) in &statement.quantities {
            let token = &statement.tokens[*at];
            if is_unknown(token, quantity) {
                found.push(token.text.to_owned());
            }
        }
    }
    found
}

/// Returns the quantities that are derived from the times of the sources: the dates of the sources, the time of the
/// first source, and the days that are meant by words such as "yesterday".
fn of_times(sources: &[Source<'_>], is_english: bool) -> BTreeSet<Quantity> {
    let mut known = BTreeSet::new();
    for (place, source) in sources.iter().enumerate().filter(|(_, source)| source.time != 0) {
        let Ok(time) = Timestamp::from_millisecond(source.time) else { continue };
        let time = time.to_zoned(jiff::tz::TimeZone::UTC).datetime();
        add_date(&mut known, time.date());
        if !is_english {
            // Names of months are read in English only, so in other languages a day of a month is read as a plain
            // number.
            known.insert(Quantity::Number(time.day().to_string()));
        }
        if place == 0 {
            known.insert(Quantity::Clock(time.hour() as u16 % 12 * 60 + time.minute() as u16));
        }
        for date in relative(source.text, time.date()) {
            add_date(&mut known, date);
        }
    }
    known
}

fn add_date(known: &mut BTreeSet<Quantity>, date: Date) {
    known.insert(Quantity::Day(date.day(), date.month()));
    known.insert(Quantity::Month(date.month()));
    known.insert(Quantity::Number(date.year().to_string()));
    known.insert(Quantity::Weekday(date.weekday().to_monday_zero_offset()));
}

/// Returns the days that relative words of a text may mean.
fn relative(text: &str, today: Date) -> Vec<Date> {
    let lower = text.to_lowercase();
    let mut days: Vec<i64> = Vec::new();
    for (word, range) in [
        ("yesterday", -1..=-1),
        ("last night", -1..=-1),
        ("tomorrow", 1..=1),
        ("last week", -7..=-7),
        ("next week", 7..=7),
    ] {
        if lower.contains(word) {
            days.extend(range);
        }
    }
    let weekday = today.weekday().to_monday_zero_offset();
    for (place, day) in (0..).zip(WEEKDAYS) {
        if lower.contains(day) || (place > 4 && lower.contains("weekend")) {
            days.extend([place - 7, place, place + 7].map(|day: i64| day - i64::from(weekday)));
        }
    }
    let mut dates: Vec<Date> =
        days.into_iter().filter_map(|days| today.checked_add(days.days()).ok()).collect();
    for (word, months) in [("last month", -1), ("next month", 1), ("last year", -12), ("next year", 12)] {
        if lower.contains(word) {
            dates.extend(today.checked_add(months.months()).ok());
        }
    }
    let words: Vec<&str> =
        lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    for three in words.windows(3).filter(|three| three[2] == "ago") {
        let many = match three[0] {
            "a" | "an" | "one" => Some(1),
            word => WORDS.iter().find(|pair| pair.0 == word).map(|pair| pair.1 as i64).or(word.parse().ok()),
        };
        let Some(many) = many.filter(|many| *many < 1000) else { continue };
        dates.extend(match three[1].trim_end_matches('s') {
            "day" => today.checked_sub(many.days()).ok(),
            "week" => today.checked_sub((7 * many).days()).ok(),
            "month" => today.checked_sub(many.months()).ok(),
            "year" => today.checked_sub(many.years()).ok(),
            _ => None,
        });
    }
    dates
}
