//! Shows times to people, such as `3 days ago`.

use jiff::Timestamp;
use jiff::civil::Date;

use tiro_base::memory::Millis;
use tiro_base::times;

/// Units of time below a day, the longest first. Each unit has its length in seconds, the text for one unit, and the
/// noun for several units.
const CLOCK: [(i64, &str, &str); 2] = [(3_600, "an hour ago", "hours"), (60, "a minute ago", "minutes")];

/// Like [`CLOCK`], with the length in days.
const DAYS: [(i64, &str, &str); 4] = [
    (365, "a year ago", "years"),
    (30, "a month ago", "months"),
    (7, "a week ago", "weeks"),
    (1, "yesterday", "days"),
];

/// Returns the RFC 3339 time `time` to the minute in the zone of the user, such as `2026-03-01 09:30`. Any other text is
/// returned unchanged.
pub fn minute(time: &str) -> String {
    match time.parse::<Timestamp>() {
        Ok(time) => times::minute(time.as_millisecond()),
        Err(_) => time.to_owned(),
    }
}

/// Returns the time of the day of the RFC 3339 time `time` in the zone of the user, such as `09:30`. Any other text is
/// returned unchanged.
pub fn clock(time: &str) -> String {
    minute(time).rsplit(' ').next().unwrap_or(time).to_owned()
}

/// Returns how long before `now` the RFC 3339 time `time` was, such as `3 days ago`. Days are those of the user's zone.
/// If `time` is later than `now` or isn't a time, returns the same as [`minute`].
pub fn ago(time: &str, now: Millis) -> String {
    let Ok(then) = time.parse::<Timestamp>() else { return time.to_owned() };
    let passed = now.div_euclid(1000).saturating_sub(then.as_second());
    // A time up to a minute later than `now` counts as now, because clocks differ.
    if passed < -60 {
        return minute(time);
    }
    if passed >= 86_400 {
        return days_ago(&times::day(then.as_millisecond()), now);
    }
    in_units(passed, &CLOCK).unwrap_or_else(|| "just now".to_owned())
}

/// Returns how long before the day of `now` the date `day` was, such as `3 days ago`. If `day` is later or isn't a date,
/// returns it unchanged.
pub fn days_ago(day: &str, now: Millis) -> String {
    let passed = day.parse::<Date>().and_then(|then| times::day(now).parse::<Date>()?.since(then));
    let Some(passed) = passed.ok().map(|passed| i64::from(passed.get_days())).filter(|days| *days >= 0)
    else {
        return day.to_owned();
    };
    in_units(passed, &DAYS).unwrap_or_else(|| "today".to_owned())
}

/// Returns a length of time in the longest of `units` that it reaches; `None` if it reaches none.
fn in_units(passed: i64, units: &[(i64, &str, &str)]) -> Option<String> {
    let (length, one, several) = units.iter().find(|(length, ..)| passed >= *length)?;
    Some(match passed / length {
        1 => (*one).to_owned(),
        count => format!("{count} {several} ago"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_relative_to_now() {
        let now = 1_772_357_400_000; // 2026-03-01T09:30:00Z
        for (time, expected) in [
            ("2026-03-01T09:29:30Z", "just now"),
            ("2026-03-01T09:30:30Z", "just now"),
            ("2026-03-01T09:28:30Z", "a minute ago"),
            ("2026-03-01T06:30:00Z", "3 hours ago"),
            ("2026-02-28T09:30:00Z", "yesterday"),
            ("2026-02-26T09:30:00Z", "3 days ago"),
            ("2026-02-20T09:30:00Z", "a week ago"),
            ("2025-12-01T09:30:00Z", "3 months ago"),
            ("2023-03-01T00:00:00Z", "3 years ago"),
            ("2026-03-02T00:00:00Z", "2026-03-02 00:00"),
            ("soon", "soon"),
        ] {
            assert_eq!(ago(time, now), expected, "{time}");
        }
        assert_eq!(minute("2026-02-26T09:30:59Z"), "2026-02-26 09:30");
    }
}
