//! Reads and writes times as text.

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan, Unit};

use crate::error::{Error, Result, quoted};
use crate::memory::Millis;

/// Reads a range of times from two arguments, each a name and a text. Returns the first instant of the range and the
/// instant after its last one. Besides the times that [`parse_time`] reads, a text may be `today` or `yesterday`, which
/// stand for the beginning of that day; `now` says which day is today.
///
/// Errors with [`Kind::BadInput`](crate::error::Kind::BadInput) if a text is not a time or the range is empty. The
/// error names the argument.
pub fn range(
    (name_since, since): (&str, Option<&str>),
    (name_until, until): (&str, Option<&str>),
    now: Millis,
) -> Result<(Option<Millis>, Option<Millis>)> {
    let read = |name: &str, text: &str| match text.trim().to_lowercase().as_str() {
        "today" => Ok(days_ago(0, now)),
        "yesterday" => Ok(days_ago(1, now)),
        _ => parse_time(name, text),
    };
    let since = since.map(|text| read(name_since, text)).transpose()?;
    let until = until.map(|text| read(name_until, text)).transpose()?;
    if since.zip(until).is_some_and(|(since, until)| since >= until) {
        return Err(Error::bad_input(format!("`{name_until}` is not after `{name_since}`"))
            .hint("the range is empty: give a later end, or an earlier beginning"));
    }
    Ok((since, until))
}

/// Returns when the day began that was `days` days before the day of `now`, in the zone of the system.
pub fn days_ago(days: i64, now: Millis) -> Millis {
    let now = Timestamp::from_millisecond(now).unwrap_or(Timestamp::UNIX_EPOCH).to_zoned(TimeZone::system());
    let day = now.date().saturating_sub(days.days());
    day.to_zoned(TimeZone::system()).map_or(0, |midnight| midnight.timestamp().as_millisecond())
}

/// Reads `text`, the value of the argument `name`, as a time. The text may be in RFC 3339, a date and time without an
/// offset or a date (both in the zone of the system), or the seconds or milliseconds since 1970 as ten or thirteen
/// digits.
///
/// Errors with [`Kind::BadInput`](crate::error::Kind::BadInput) for any other text. The error names the argument.
pub fn parse_time(name: &str, text: &str) -> Result<Millis> {
    parse_time_in(name, text, &TimeZone::system())
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

/// Returns the day of `time` in the zone of the system, as `YYYY-MM-DD`.
pub fn day(time: Millis) -> String {
    in_zone(time, TimeZone::system(), "%Y-%m-%d")
}

/// Returns `time` to the minute in the zone of the system, as `YYYY-MM-DD HH:MM`.
pub fn minute(time: Millis) -> String {
    in_zone(time, TimeZone::system(), "%Y-%m-%d %H:%M")
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

    #[test]
    fn an_empty_range_of_times_is_refused() {
        let between = |since, until| range(("since", since), ("until", until), 0);
        assert_eq!(between(None, None).unwrap(), (None, None));
        let (since, until) = between(Some("2026-03-01"), Some("2026-03-02")).unwrap();
        assert_eq!(until.unwrap() - since.unwrap(), 24 * 3600 * 1000);
        for (since, until) in [("2026-03-02", "2026-03-01"), ("2026-03-01", "2026-03-01")] {
            let error = between(Some(since), Some(until)).unwrap_err();
            assert_eq!(error.to_string(), "`until` is not after `since`");
        }
        let now = parse_time("now", "2026-03-02 18:30").unwrap();
        let (since, until) = range(("since", Some("yesterday")), ("until", Some("Today")), now).unwrap();
        assert_eq!(since, parse_time("since", "2026-03-01").ok());
        assert_eq!(until, parse_time("until", "2026-03-02").ok());
        assert!(between(None, Some("soon")).unwrap_err().to_string().starts_with("`until` is not a time"));
    }
}
