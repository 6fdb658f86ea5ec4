//! Reads and writes times as text.

use std::sync::OnceLock;

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, ToSpan, Unit};

use crate::error::{Error, Result, quoted};
use crate::memory::Millis;

/// The zone of this process, if it is not that of the system.
static ZONE: OnceLock<TimeZone> = OnceLock::new();

/// The name that stands for the zone of the system.
pub const SYSTEM: &str = "system";

/// Returns whether `name` is [`SYSTEM`] or the name of a zone in the IANA database, such as `Europe/Berlin`.
pub fn is_zone(name: &str) -> bool {
    name == SYSTEM || TimeZone::get(name).is_ok()
}

/// Uses the zone `name`, which [`is_zone`] accepts, from now on in the whole process. Only the first call has an effect.
pub fn use_zone(name: &str) {
    if let Some(zone) = Some(name).filter(|name| *name != SYSTEM).and_then(|name| TimeZone::get(name).ok()) {
        let _ = ZONE.set(zone);
    }
}

/// Returns the zone in which days begin and times are shown.
fn zone() -> TimeZone {
    ZONE.get().cloned().unwrap_or_else(TimeZone::system)
}

/// Reads a range of times from two arguments, each a name and a text. Returns the first instant of the range and the
/// instant after its last one. A text is a time that [`parse_time`] reads, or a span of time:
///
/// - a day, as `2026-03-01`, `today`, `yesterday` or the name of a day of the week, which is its latest one before the
///   end of today;
/// - a month, as `2026-03`, or a year;
/// - a number of hours, days or weeks before `now`, as `12h`, `7d` or `2w`. Days and weeks begin at midnight.
///
/// A range begins with the first instant of `since`, and includes the whole span `until`, so that two equal days are
/// the range of this day.
///
/// Errors with [`Kind::BadInput`](crate::error::Kind::BadInput) if a text is not a time or the range is empty. The
/// error names the argument.
pub fn range(
    (name_since, since): (&str, Option<&str>),
    (name_until, until): (&str, Option<&str>),
    now: Millis,
) -> Result<(Option<Millis>, Option<Millis>)> {
    let since = since.map(|text| span(name_since, text, now, &zone())).transpose()?;
    let until = until.map(|text| span(name_until, text, now, &zone())).transpose()?;
    let (since, until) = (since.map(|(first, _)| first), until.map(|(_, after)| after));
    if since.zip(until).is_some_and(|(since, until)| since >= until) {
        return Err(Error::bad_input(format!("`{name_until}` is not after `{name_since}`"))
            .hint("the range is empty: give a later end, or an earlier beginning"));
    }
    Ok((since, until))
}

/// Returns the first instant of the span of time that `text` names, and the instant after its last one. For a moment,
/// both are this moment.
fn span(name: &str, text: &str, now: Millis, zone: &TimeZone) -> Result<(Millis, Millis)> {
    let word = text.trim().trim_matches(['"', '\'']).to_lowercase();
    let today = date(now, zone);
    let first = match word.as_str() {
        "today" => Some((today, 1.day())),
        "yesterday" => Some((today.saturating_sub(1.day()), 1.day())),
        _ => weekday(&word, today).map(|day| (day, 1.day())).or_else(|| month_or_year(&word)),
    };
    let first = first.or_else(|| Some((word.replace('/', "-").parse::<Date>().ok()?, 1.day())));
    if let Some((first, length)) = first.filter(|_| word.len() <= "yyyy-mm-dd".len()) {
        // The earliest and latest days go through the checks of `parse_time`.
        let begin = parse_time_in(name, &first.to_string(), zone)?;
        let after = first.checked_add(length).map_or(begin, |after| midnight(after, zone));
        return Ok((begin, after.max(begin)));
    }
    if let Some(span) = ago(&word, now, zone) {
        return Ok(span);
    }
    let time = parse_time_in(name, text, zone).map_err(|error| {
        error.hint("write it like 2026-03-01T09:30:00Z, 2026-03-01, 2026-03, yesterday, monday or 7d")
    })?;
    Ok((time, time))
}

/// Returns the latest day with this name until today.
fn weekday(word: &str, today: Date) -> Option<Date> {
    let number = WEEKDAYS.iter().position(|name| *name == word)? as i8;
    let days = (today.weekday().to_monday_zero_offset() - number).rem_euclid(7);
    Some(today.saturating_sub(i64::from(days).days()))
}

/// Returns the first day of a month or a year, and the length of it.
fn month_or_year(word: &str) -> Option<(Date, Span)> {
    let is_year = |text: &str| text.len() == 4 && text.bytes().all(|byte| byte.is_ascii_digit());
    let day = |text: String| text.parse::<Date>().ok();
    match word.split_once(['-', '/']) {
        None if is_year(word) => Some((day(format!("{word}-01-01"))?, 1.year())),
        Some((year, month)) if is_year(year) && month.len() == 2 => {
            Some((day(format!("{year}-{month}-01"))?, 1.month()))
        }
        _ => None,
    }
}

/// Reads a number of hours, days or weeks before `now`, such as `7d`. Returns the instant at which it began, and `now`.
fn ago(word: &str, now: Millis, zone: &TimeZone) -> Option<(Millis, Millis)> {
    /// The maximum number of hours, days or weeks. Arbitrary: more than anybody remembers.
    const MOST: i64 = 100_000;
    let (number, unit) = word.split_at(word.len().checked_sub(1).filter(|at| word.is_char_boundary(*at))?);
    let number: i64 = number.parse().ok().filter(|number| (0..=MOST).contains(number))?;
    let day = |days: i64| midnight(date(now, zone).saturating_sub(days.days()), zone);
    match unit {
        "h" => Some((now - number * 3_600_000, now)),
        "d" => Some((day(number), now)),
        "w" => Some((day(7 * number), now)),
        _ => None,
    }
}

/// Returns the day of `time` in `zone`.
fn date(time: Millis, zone: &TimeZone) -> Date {
    Timestamp::from_millisecond(time).unwrap_or(Timestamp::UNIX_EPOCH).to_zoned(zone.clone()).date()
}

/// Returns when a day begins in `zone`.
fn midnight(day: Date, zone: &TimeZone) -> Millis {
    day.to_zoned(zone.clone()).map_or(0, |midnight| midnight.timestamp().as_millisecond())
}

/// Returns when the day began that was `days` days before the day of `now`.
pub fn days_ago(days: i64, now: Millis) -> Millis {
    midnight(date(now, &zone()).saturating_sub(days.days()), &zone())
}

/// Reads `text`, the value of the argument `name`, as a time. The text may be in RFC 3339, a date and time without an
/// offset or a date (both in the zone of the user), or the seconds or milliseconds since 1970 as ten or thirteen
/// digits.
///
/// Errors with [`Kind::BadInput`](crate::error::Kind::BadInput) for any other text. The error names the argument.
pub fn parse_time(name: &str, text: &str) -> Result<Millis> {
    parse_time_in(name, text, &zone())
}

/// Reads `text` as [`parse_time`] does, but in UTC if it has no offset. So a file of a client is read in the same way on
/// every machine.
pub fn parse_time_in_utc(name: &str, text: &str) -> Result<Millis> {
    parse_time_in(name, text, &TimeZone::UTC)
}

fn parse_time_in(name: &str, text: &str, zone: &TimeZone) -> Result<Millis> {
    let text = text.trim().trim_matches(['"', '\'']);
    // Some models write 2026/03/01.
    let text =
        &if text.get(..10).is_some_and(is_slashed) { text.replacen('/', "-", 2) } else { text.to_owned() };
    // In some time zones, times in the last two days of the year 9999 exceed the range of `Timestamp`. They are read as
    // its maximum.
    let local = |civil: DateTime, zone: TimeZone| match civil.to_zoned(zone) {
        Ok(zoned) => Some(zoned.timestamp()),
        Err(_) => Timestamp::from_second(Timestamp::MAX.as_second()).ok().filter(|_| civil.year() == 9999),
    };
    let parsed = text
        .parse::<Timestamp>()
        .ok()
        .or_else(|| local(text.strip_suffix(['Z', 'z'])?.parse().ok()?, TimeZone::UTC))
        .or_else(|| local(text.parse().ok()?, zone.clone()))
        .or_else(|| local(text.parse::<Date>().ok()?.at(0, 0, 0, 0), zone.clone()))
        .or_else(|| since_1970(text));
    // Years before 1 or after 9999 are mistakes, and can't be printed.
    let parsed = parsed.filter(|time| (1..=9999).contains(&time.to_zoned(TimeZone::UTC).year()));
    parsed.map(Timestamp::as_millisecond).ok_or_else(|| {
        Error::bad_input(format!("`{name}` is not a time: `{}`", quoted(text)))
            .hint("write it like 2026-03-01T09:30:00Z or 2026-03-01")
    })
}

/// Returns whether `text` is a date with slashes: 2026/03/01.
fn is_slashed(text: &str) -> bool {
    let shape = text.bytes().map(|byte| if byte.is_ascii_digit() { b'0' } else { byte });
    shape.eq(*b"0000/00/00")
}

/// Returns the time of `text`, the seconds or milliseconds since 1970 with as many digits as they have today.
fn since_1970(text: &str) -> Option<Timestamp> {
    let number = Some(text).filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?.parse().ok()?;
    match text.len() {
        10 => Timestamp::from_second(number).ok(),
        13 => Timestamp::from_millisecond(number).ok(),
        _ => None,
    }
}

/// Returns the quarter of a time in UTC, such as `2026-Q1`. The alphabetical order of these names is also their order
/// in time.
pub fn quarter(time: Millis) -> String {
    let date =
        Timestamp::from_millisecond(time).unwrap_or(Timestamp::UNIX_EPOCH).to_zoned(TimeZone::UTC).date();
    format!("{:04}-Q{}", date.year(), (date.month() + 2) / 3)
}

/// Returns `time` in RFC 3339 and UTC, to the second.
pub fn show_time(time: Millis) -> String {
    let timestamp = Timestamp::from_millisecond(time).unwrap_or(Timestamp::UNIX_EPOCH);
    timestamp.round(Unit::Second).unwrap_or(timestamp).to_string()
}

/// The English names of the months in lower case, in order.
pub const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

/// The English names of the days of the week in lower case, from Monday.
pub const WEEKDAYS: [&str; 7] =
    ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

/// Returns the day of `time` in the zone of the user, as `YYYY-MM-DD`.
pub fn day(time: Millis) -> String {
    in_zone(time, zone(), "%Y-%m-%d")
}

/// Returns `time` to the minute in the zone of the user, as `YYYY-MM-DD HH:MM`.
pub fn minute(time: Millis) -> String {
    in_zone(time, zone(), "%Y-%m-%d %H:%M")
}

fn in_zone(time: Millis, zone: TimeZone, format: &str) -> String {
    let timestamp = Timestamp::from_millisecond(time).unwrap_or(Timestamp::UNIX_EPOCH);
    timestamp.to_zoned(zone).strftime(format).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_the_ways_agents_write_them() {
        let seconds = |text| parse_time_in("time", text, &TimeZone::UTC).map(|millis| millis / 1000);
        assert_eq!(seconds("2026-03-01T09:30:00Z").unwrap(), 1_772_357_400);
        assert_eq!(seconds("2026-03-01T10:30:00+01:00").unwrap(), 1_772_357_400);
        assert_eq!(seconds("2026-03-01T09:30:00").unwrap(), 1_772_357_400);
        assert_eq!(seconds("2026-03-01").unwrap(), 1_772_323_200);
        for same in [
            "2026-03-01 09:30:00",
            "2026-03-01 09:30",
            "2026-03-01T09:30Z",
            "2026-03-01 10:30:00+01:00",
            "2026-03-01T09:30:00.000Z",
            "2026/03/01 09:30",
            "1772357400",
            "1772357400000",
            "'2026-03-01T09:30:00Z'",
        ] {
            assert_eq!(seconds(same).unwrap(), 1_772_357_400, "{same}");
        }
        assert_eq!(show_time(1_772_357_400_000), "2026-03-01T09:30:00Z");
        for (day, name) in [("2025-12-31", "2025-Q4"), ("2026-01-01", "2026-Q1"), ("2026-08-09", "2026-Q3")] {
            assert_eq!(quarter(parse_time_in("time", day, &TimeZone::UTC).unwrap()), name);
        }
        for nonsense in ["", "yesterday", "2026-13-01", "-5000-01-01", "99999-01-01", "\u{202e}"] {
            let error = parse_time("since", nonsense).unwrap_err();
            assert!(error.to_string().contains("`since`"), "{nonsense}");
        }
    }

    #[test]
    fn times_without_an_offset_are_of_the_zone() {
        let zone = TimeZone::fixed(jiff::tz::offset(9));
        let read = |text| parse_time_in("time", text, &zone).unwrap();
        assert_eq!(read("2026-03-01 18:30"), read("2026-03-01T09:30:00Z"));
        assert_eq!(read("2026-03-01"), read("2026-02-28T15:00Z"));
        let shown = |format| in_zone(read("2026-02-28T15:05Z"), zone.clone(), format);
        assert_eq!((shown("%Y-%m-%d"), shown("%H:%M")), ("2026-03-01".to_owned(), "00:05".to_owned()));
    }

    /// An earlier version refused the last day, although it accepted the first one.
    #[test]
    fn the_earliest_and_latest_times_are_accepted() {
        let last = parse_time_in("until", "9999-12-29", &TimeZone::UTC).unwrap();
        for end in ["9999-12-31", "9999-12-31T23:59:59Z", "9999-12-31T23:59:59"] {
            let time = parse_time_in("until", end, &TimeZone::UTC).unwrap();
            assert!(time > last && show_time(time).starts_with("9999-12-30"), "{end}: {}", show_time(time));
        }
        let first = parse_time_in("since", "0001-01-01", &TimeZone::UTC).unwrap();
        assert!(show_time(first).starts_with("0001-01-01"));
    }

    const DAY: Millis = 24 * 3600 * 1000;

    #[test]
    fn spans_of_time_are_read_in_the_ways_people_write_them() {
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        let read = |text: &str| parse_time_in("time", text, &zone).unwrap();
        // A Monday, the day after an hour that came twice.
        let now = read("2026-10-26 18:30");
        for (text, first, after) in [
            ("2026-10-25", "2026-10-25 00:00", "2026-10-26 00:00"),
            ("2026/10/25", "2026-10-25 00:00", "2026-10-26 00:00"),
            ("Today", "2026-10-26 00:00", "2026-10-27 00:00"),
            ("yesterday", "2026-10-25 00:00", "2026-10-26 00:00"),
            ("monday", "2026-10-26 00:00", "2026-10-27 00:00"),
            ("Tuesday", "2026-10-20 00:00", "2026-10-21 00:00"),
            ("2026-10", "2026-10-01 00:00", "2026-11-01 00:00"),
            ("2026", "2026-01-01 00:00", "2027-01-01 00:00"),
            ("7d", "2026-10-19 00:00", "2026-10-26 18:30"),
            ("0d", "2026-10-26 00:00", "2026-10-26 18:30"),
            ("2w", "2026-10-12 00:00", "2026-10-26 18:30"),
            ("12h", "2026-10-26 06:30", "2026-10-26 18:30"),
            ("2026-10-25T12:00", "2026-10-25 12:00", "2026-10-25 12:00"),
        ] {
            assert_eq!(span("since", text, now, &zone).unwrap(), (read(first), read(after)), "{text}");
        }
        let (first, after) = span("since", "yesterday", now, &zone).unwrap();
        assert_eq!(after - first, DAY + DAY / 24, "a day of 25 hours");
        let hint = |error: Error| error.way_out().map(str::to_owned).unwrap_or_default();
        assert!(hint(span("since", "soon", now, &zone).unwrap_err()).contains("7d"));
        assert!(!hint(parse_time("time", "7d").unwrap_err()).contains("7d"), "a moment is no span");
        for nonsense in ["", "7", "d", "-7d", "7x", "2026-13", "2026-1", "9999999999d", "someday", "é"] {
            let error = span("since", nonsense, now, &zone).unwrap_err();
            assert!(error.to_string().contains("`since`"), "{nonsense}");
        }
    }

    #[test]
    fn an_empty_range_of_times_is_refused() {
        let between = |since, until| range(("since", since), ("until", until), 0);
        assert_eq!(between(None, None).unwrap(), (None, None));
        let (since, until) = between(Some("2026-03-01"), Some("2026-03-02")).unwrap();
        assert_eq!(until.unwrap() - since.unwrap(), 2 * DAY, "the day at the end is included");
        assert_eq!(
            between(Some("2026-03-01T10:00"), Some("2026-03-01")).unwrap().1,
            until.map(|it| it - DAY)
        );
        for (since, until) in [("2026-03-02", "2026-03-01"), ("2026-03-01T10:00", "2026-03-01T10:00")] {
            let error = between(Some(since), Some(until)).unwrap_err();
            assert_eq!(error.to_string(), "`until` is not after `since`");
        }
        let now = parse_time("now", "2026-03-02 18:30").unwrap();
        let (since, until) = range(("since", Some("yesterday")), ("until", Some("Today")), now).unwrap();
        assert_eq!(since, parse_time("since", "2026-03-01").ok());
        assert_eq!(until, parse_time("until", "2026-03-03").ok());
        assert!(between(None, Some("soon")).unwrap_err().to_string().starts_with("`until` is not a time"));
    }
}
