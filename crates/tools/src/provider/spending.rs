//! Sums up the cost of models by day, for the operations that show it.

use jiff::civil::Date;
use jiff::{Span, ToSpan};
use serde::Serialize;

use tiro_store::SpendingRow;

/// The cost of one model on one day, in all projects.
#[derive(Debug, Serialize)]
pub struct Day {
    /// The day (UTC).
    pub day: String,
    /// The provider.
    pub provider: String,
    /// The model.
    pub model: String,
    /// Requests.
    pub calls: i64,
    /// Requests that failed.
    pub failed: i64,
    /// Tokens sent.
    pub input: i64,
    /// Tokens received.
    pub output: i64,
    /// The cost in US dollars.
    pub cost: f64,
}

/// Sums up `rows` by day, provider and model, in the order of `rows`.
pub fn days(rows: Vec<SpendingRow>) -> Vec<Day> {
    let mut days: Vec<Day> = Vec::new();
    for row in rows {
        let day = date(row.day);
        let same =
            |each: &&mut Day| (&each.day, &each.provider, &each.model) == (&day, &row.provider, &row.model);
        match days.iter_mut().find(same) {
            Some(each) => {
                each.calls += row.calls;
                each.failed += row.failed;
                each.input += row.input;
                each.output += row.output;
                each.cost += row.spent.dollars();
            }
            None => days.push(Day {
                day,
                provider: row.provider,
                model: row.model,
                calls: row.calls,
                failed: row.failed,
                input: row.input,
                output: row.output,
                cost: row.spent.dollars(),
            }),
        }
    }
    days
}

/// Returns `days` as a table with a header line.
pub fn table(days: &[Day]) -> String {
    let mut text = format!(
        "{:10} {:14} {:24} {:>6} {:>7} {:>10} {:>10} {:>10}",
        "day", "provider", "model", "calls", "failed", "sent", "received", "cost, $"
    );
    for Day { day, provider, model, calls, failed, input, output, cost } in days {
        text += &format!(
            "\n{day:10} {provider:14} {model:24} {calls:>6} {failed:>7} {input:>10} {output:>10} {cost:>10.6}"
        );
    }
    text
}

fn date(day: i64) -> String {
    let span: Option<Span> = i32::try_from(day).ok().map(|day| i64::from(day).days());
    let date = span.and_then(|span| Date::constant(1970, 1, 1).checked_add(span).ok());
    date.map_or_else(|| format!("day {day}"), |date| date.to_string())
}
