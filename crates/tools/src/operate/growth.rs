//! Reports how the project's memory grew, week by week.

use std::collections::BTreeMap;

use serde::Serialize;

use tiro_base::error::{Error, Result};
use tiro_base::memory::{Kind, Millis};
use tiro_base::times;
use tiro_host::caller::Caller;
use tiro_host::engine::Engine;
use tiro_store::Growth;

/// The length of a day in milliseconds.
const DAY: Millis = 24 * 60 * 60 * 1000;
/// The length of a week in days.
const WEEK: i64 = 7;
/// The greatest number of weeks. Arbitrary: ten years.
const MOST_WEEKS: usize = 520;

/// Which weeks to report.
#[derive(Clone, Debug, Default)]
pub struct Args {
    /// How many weeks, the last of which is the present one. 26 if absent.
    pub weeks: Option<usize>,
}

/// What the memory has of each week.
#[derive(Debug, Serialize)]
pub struct Output {
    /// The project's name.
    pub project: String,
    /// The weeks in order. A week without memories is listed too.
    pub weeks: Vec<Week>,
}

/// What the memory has of one week. A memory is of the week of its own time, in UTC, also if it was imported later.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Week {
    /// The day on which the week begins, a Monday.
    pub begins: String,
    /// Memories that are not forgotten, by the group of their kind.
    pub memories: BTreeMap<String, i64>,
    /// The tokens of the memories (o200k).
    pub tokens: i64,
    /// Sessions that began in the week.
    pub sessions: i64,
    /// Commits of the week that are stored.
    pub commits: i64,
}

/// Returns the counts of the last weeks and changes nothing.
///
/// Errors with [`Kind::BadInput`](tiro_base::error::Kind::BadInput) if `weeks` is 0 or more than 520.
pub async fn run(engine: &Engine, caller: &Caller, args: Args) -> Result<Output> {
    let weeks = args.weeks.unwrap_or(26);
    if !(1..=MOST_WEEKS).contains(&weeks) {
        return Err(Error::bad_input(format!("`weeks` is not between 1 and {MOST_WEEKS}")));
    }
    let project = caller.project(engine).await?;
    let growth = project.store.growth(&project.scope).await?;
    Ok(Output { project: project.name.clone(), weeks: by_week(growth, weeks as i64, engine.now()) })
}

/// Returns the number of the week of a day. Weeks begin on Mondays; day 0 was a Thursday.
fn week_of(day: i64) -> i64 {
    (day + 3).div_euclid(WEEK)
}

/// Sums up the days of the last `weeks` weeks up to `now`.
fn by_week(growth: Growth, weeks: i64, now: Millis) -> Vec<Week> {
    let last = week_of(now.div_euclid(DAY));
    let first = last - weeks + 1;
    // Days of the counts are in UTC.
    let begins = |week: i64| times::show_time((week * WEEK - 3) * DAY).chars().take(10).collect();
    let mut all: Vec<Week> = (first..=last)
        .map(|week| Week {
            begins: begins(week),
            memories: BTreeMap::new(),
            tokens: 0,
            sessions: 0,
            commits: 0,
        })
        .collect();
    let place = |day: i64| usize::try_from(week_of(day) - first).ok();
    for count in growth.memories {
        let Some(week) = place(count.day).and_then(|place| all.get_mut(place)) else { continue };
        let kind = Kind::parse(&count.kind);
        week.commits += if kind == Some(Kind::Commit) { count.memories } else { 0 };
        let group = kind.map_or(count.kind, |kind| kind.group().to_string());
        *week.memories.entry(group).or_default() += count.memories;
        week.tokens += count.tokens;
    }
    for (day, count) in growth.sessions {
        if let Some(week) = place(day).and_then(|place| all.get_mut(place)) {
            week.sessions += count;
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiro_store::DayCount;

    #[test]
    fn days_are_summed_up_by_weeks_that_begin_on_mondays() {
        let count = |day, kind: Kind, memories| DayCount {
            day,
            kind: kind.as_str().to_owned(),
            memories,
            tokens: memories * 10,
        };
        let monday = week_of(20_000) * WEEK - 3;
        let growth = Growth {
            memories: vec![
                count(monday - 8, Kind::Message, 9),
                count(monday - 1, Kind::Message, 4),
                count(monday, Kind::Commit, 2),
                count(monday + 6, Kind::Message, 3),
            ],
            sessions: vec![(monday - 1, 1), (monday + 1, 2)],
        };
        let weeks = by_week(growth, 2, monday * DAY + 6 * DAY);
        let shown: Vec<_> = weeks.iter().map(|week| (week.tokens, week.sessions, week.commits)).collect();
        assert_eq!(shown, [(40, 1, 0), (50, 2, 2)]);
        assert_eq!(weeks[1].memories.values().sum::<i64>(), 5);
        assert_eq!(weeks[1].begins, times::day(monday * DAY));
        // 1970-01-05 was a Monday.
        assert_eq!((week_of(3), week_of(4), week_of(10), week_of(11)), (0, 1, 1, 2));
        assert_eq!(week_of(-1), 0);
    }
}
