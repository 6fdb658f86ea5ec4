//! Times as agents write and read them.

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{Timestamp, Unit};

use crate::error::{Error, Result};
use crate::memory::Millis;

/// Returns the time that the argument `name` gives: RFC 3339, a date and time without offset (taken as UTC), or a date.
///
/// Errors with [`Kind::BadInput`](crate::error::Kind::BadInput), naming the argument.
pub fn parse_time(name: &str, text: &str) -> Result<Millis> {
    let text = text.trim();
    let utc = |civil: DateTime| Some(civil.to_zoned(TimeZone::UTC).ok()?.timestamp());
    let parsed = text
        .parse::<Timestamp>()
        .ok()
        .or_else(|| utc(text.parse::<DateTime>().ok()?))
        .or_else(|| utc(text.parse::<Date>().ok()?.at(0, 0, 0, 0)));
    // Years before 1 or after 9999 are mistakes, and would not print.
    let parsed = parsed.filter(|time| (1..=9999).contains(&time.to_zoned(TimeZone::UTC).year()));
    parsed.map(Timestamp::as_millisecond).ok_or_else(|| {
        let shown: String = text.chars().take(40).collect();
        Error::bad_input(format!("`{name}` is not a time: `{shown}`"))
            .hint("write it like 2026-03-01T09:30:00Z or 2026-03-01")
    })
}

/// Returns `time` as RFC 3339 in UTC, to the second.
pub fn show_time(time: Millis) -> String {
    let timestamp = Timestamp::from_millisecond(time).unwrap_or(Timestamp::UNIX_EPOCH);
    timestamp.round(Unit::Second).unwrap_or(timestamp).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_the_ways_agents_write_them() {
        let seconds = |text| parse_time("time", text).map(|millis| millis / 1000);
        assert_eq!(seconds("2026-03-01T09:30:00Z").unwrap(), 1_772_357_400);
        assert_eq!(seconds("2026-03-01T10:30:00+01:00").unwrap(), 1_772_357_400);
        assert_eq!(seconds("2026-03-01T09:30:00").unwrap(), 1_772_357_400);
        assert_eq!(seconds("2026-03-01").unwrap(), 1_772_323_200);
        assert_eq!(show_time(1_772_357_400_000), "2026-03-01T09:30:00Z");
        for nonsense in ["", "yesterday", "2026-13-01", "-5000-01-01", "99999-01-01", "\u{202e}"] {
            let error = parse_time("since", nonsense).unwrap_err();
            assert!(error.to_string().contains("`since`"), "{nonsense}");
        }
    }
}
