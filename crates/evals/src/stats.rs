//! Figures and their output: percentiles, aligned tables, and the report that `--json` writes.

use serde::Serialize;
use serde_json::Value;

/// The result of one measurement.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    /// The numbers, in the order in which they are shown.
    pub figures: Vec<Figure>,
    /// Other details: rounds, parameters, failures.
    pub detail: Value,
    /// Whether a promise was broken. The process then ends with status 1.
    pub broken: bool,
}

/// One number.
#[derive(Debug, Serialize)]
pub struct Figure {
    /// What was measured.
    pub name: String,
    /// The value.
    pub value: f64,
    /// The unit.
    pub unit: &'static str,
    /// The goal, if there is one.
    pub goal: Option<Goal>,
}

/// The bound that a figure should keep.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Goal {
    /// The figure should be at least this.
    AtLeast(f64),
    /// The figure should be at most this.
    AtMost(f64),
}

impl Report {
    /// Adds a figure without a goal.
    pub fn add(&mut self, name: impl Into<String>, value: f64, unit: &'static str) {
        self.figures.push(Figure { name: name.into(), value, unit, goal: None });
    }

    /// Adds a figure with the goal that it should reach.
    pub fn aim(&mut self, name: impl Into<String>, value: f64, unit: &'static str, goal: Goal) {
        self.figures.push(Figure { name: name.into(), value, unit, goal: Some(goal) });
    }

    /// Adds a count that must be zero, and marks the report broken if it isn't.
    pub fn must_be_zero(&mut self, name: impl Into<String>, count: usize) {
        self.aim(name, count as f64, "", Goal::AtMost(0.0));
        self.broken |= count > 0;
    }

    /// Adds p50, p99 and the largest of `values`, each under `name`.
    pub fn add_spread(&mut self, name: &str, values: &[f64], unit: &'static str) {
        self.add(format!("{name}, p50"), percentile(values, 0.50), unit);
        self.add(format!("{name}, p99"), percentile(values, 0.99), unit);
        self.add(format!("{name}, max"), percentile(values, 1.0), unit);
    }

    /// Prints the figures as a table on standard output.
    pub fn print(&self) {
        let mut rows = vec![["what", "measured", "", "goal", ""].map(String::from).to_vec()];
        for figure in &self.figures {
            let (goal, met) = match figure.goal {
                Some(Goal::AtLeast(bound)) => (format!("≥ {}", short(bound)), figure.value >= bound),
                Some(Goal::AtMost(bound)) => (format!("≤ {}", short(bound)), figure.value <= bound),
                None => (String::new(), true),
            };
            let verdict = match (&figure.goal, met) {
                (None, _) => "",
                (Some(_), true) => "ok",
                (Some(_), false) => "MISSED",
            };
            rows.push(vec![
                figure.name.clone(),
                short(figure.value),
                figure.unit.into(),
                goal,
                verdict.into(),
            ]);
        }
        print_table(&rows);
    }
}

/// Prints rows as aligned columns, the first column to the left and the others to the right.
pub fn print_table(rows: &[Vec<String>]) {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width =
        |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    for row in rows {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            if column == 0 {
                line.push_str(&format!("{cell:<width$}"));
            } else {
                line.push_str(&format!("  {cell:>width$}"));
            }
        }
        println!("{}", line.trim_end());
    }
}

/// Returns the value below which the share `share` of the values lies, by the nearest rank; 0 if there are no values.
pub fn percentile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.clamp(1, sorted.len().max(1)) - 1).copied().unwrap_or(0.0)
}

/// Returns the median. It is the mean of the middle two values if their number is even, and 0 if there are no values.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        n if n % 2 == 1 => sorted[n / 2],
        n => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
    }
}

/// How many standard deviations around the mean of a normal distribution contain 95% of it.
const SIGMAS_OF_95: f64 = 1.959_964;

/// Returns the lower and the upper bound of the share that `part` of `all` estimates, with 95% confidence (Wilson, 1927).
pub fn interval(part: usize, all: usize) -> (f64, f64) {
    if all == 0 {
        return (0.0, 1.0);
    }
    let (n, share, z2) = (all as f64, part as f64 / all as f64, SIGMAS_OF_95 * SIGMAS_OF_95);
    let center = (share + z2 / (2.0 * n)) / (1.0 + z2 / n);
    let half = SIGMAS_OF_95 / (1.0 + z2 / n) * (share * (1.0 - share) / n + z2 / (4.0 * n * n)).sqrt();
    ((center - half).max(0.0), (center + half).min(1.0))
}

/// Returns the mean; 0 if there are no values.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Returns the share of `part` in `all` in per cent, with its 95% interval, such as `75.0 (50.5 to 89.8)`.
pub fn share_with_interval(part: usize, all: usize) -> String {
    let (low, high) = interval(part, all);
    let share = 100.0 * part as f64 / all.max(1) as f64;
    format!("{share:.1} ({:.1} to {:.1})", 100.0 * low, 100.0 * high)
}

/// Returns a number with about three significant digits.
fn short(value: f64) -> String {
    match value.abs() {
        v if v == v.trunc() && v < 1e12 => format!("{value:.0}"),
        v if v >= 1000.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        v if v >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_nearest_ranks() {
        let hundred: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        assert_eq!(percentile(&hundred, 0.50), 50.0);
        assert_eq!(percentile(&hundred, 0.99), 99.0);
        assert_eq!(percentile(&hundred, 1.0), 100.0);
        assert_eq!(percentile(&[7.0], 0.01), 7.0);
        assert_eq!(percentile(&[], 0.5), 0.0);
    }

    #[test]
    fn median_of_an_even_number_is_between() {
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), 2.5);
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
    }

    #[test]
    fn intervals_are_those_of_wilson() {
        let close = |(low, high): (f64, f64), wanted: (f64, f64)| {
            assert!((low - wanted.0).abs() < 5e-4 && (high - wanted.1).abs() < 5e-4, "{low} {high}");
        };
        close(interval(8, 10), (0.4902, 0.9433));
        close(interval(0, 20), (0.0, 0.1611));
        close(interval(50, 100), (0.4038, 0.5962));
        close(interval(0, 0), (0.0, 1.0));
        assert_eq!(share_with_interval(8, 10), "80.0 (49.0 to 94.3)");
    }

    #[test]
    fn a_count_that_must_be_zero_breaks_the_report() {
        let mut report = Report::default();
        report.must_be_zero("lost", 0);
        assert!(!report.broken);
        report.must_be_zero("lost", 1);
        assert!(report.broken);
    }
}
