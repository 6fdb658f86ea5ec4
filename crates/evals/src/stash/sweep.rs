//! Recombines the parts of the scores with other weights, and prints what each combination restores.

use serde_json::{Value, json};

use crate::corpus;
use crate::stats::print_table;

/// A segment that was found for a question.
pub(super) struct Found {
    /// Whether it is evidence.
    pub is_gold: bool,
    /// How well it fits the question, 0 to 1.
    pub relevance: f64,
    /// Its cosine with the question.
    pub similarity: Option<f64>,
    /// The age of its text in days.
    pub age_days: f64,
}

/// A question with what was found.
pub(super) struct Asked {
    /// How much evidence is stashed.
    pub gold: usize,
    /// The segments, in the order of the answer.
    pub found: Vec<Found>,
}

/// Returns how many days ago the time was.
pub(super) fn age_days(time: &str) -> Option<f64> {
    let then = corpus::seconds_of(time).ok()?;
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).ok()?.as_secs();
    Some((now as f64 - then as f64).max(0.0) / 86_400.0)
}

/// Prints two tables: the evidence that the first `top` segments have, by the weight and time constant of the age; and
/// what is left of evidence and of other segments if those with a smaller cosine are left out. Returns the numbers.
///
/// All segments of a conversation are stashed at once, so the time since then is the same for each and changes no order.
pub(super) fn print(asked: &[Asked], top: usize) -> Value {
    const WEIGHTS: [f64; 6] = [0.0, 0.05, 0.1, 0.2, 0.4, 0.8];
    const DAYS: [f64; 4] = [1.0, 7.0, 30.0, 90.0];
    let mut rows = vec![vec!["weight of the age".to_owned()]];
    rows[0].extend(DAYS.iter().map(|days| format!("{days} days")));
    let mut table = Vec::new();
    for weight in WEIGHTS {
        let values: Vec<f64> = DAYS.iter().map(|days| restored(asked, top, weight, *days)).collect();
        let mut row = vec![format!("{weight} (relevance 0.6)")];
        row.extend(values.iter().map(|value| format!("{value:.1}")));
        rows.push(row);
        table.push(json!({"weight": weight, "restored": values}));
    }
    println!("\nEvidence restored, by the weight of the age of the text");
    print_table(&rows);
    let mut rows = vec![["least cosine", "evidence kept", "other segments kept"].map(str::to_owned).to_vec()];
    let mut cuts = Vec::new();
    for least in [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7] {
        let (gold, other) = (kept(asked, top, least, true), kept(asked, top, least, false));
        rows.push(vec![format!("{least}"), format!("{gold:.1}"), format!("{other:.1}")]);
        cuts.push(json!({"least": least, "gold": gold, "other": other}));
    }
    println!("\nPer cent of the first {top} segments that are left");
    print_table(&rows);
    println!();
    json!({"weights": table, "least_cosine": cuts})
}

/// Returns the mean share of the evidence among the first `top` segments, in per cent.
fn restored(asked: &[Asked], top: usize, weight: f64, days: f64) -> f64 {
    let share = |asked: &Asked| {
        let score = |found: &Found| 0.6 * found.relevance + weight * (-found.age_days / days).exp();
        let mut order: Vec<&Found> = asked.found.iter().collect();
        order.sort_by(|a, b| score(b).total_cmp(&score(a)));
        order.iter().take(top).filter(|found| found.is_gold).count() as f64 / asked.gold as f64
    };
    100.0 * asked.iter().map(share).sum::<f64>() / asked.len().max(1) as f64
}

/// Returns how many of the first `top` segments with (or without) evidence have at least the cosine, in per cent.
fn kept(asked: &[Asked], top: usize, least: f64, is_gold: bool) -> f64 {
    let first = || asked.iter().flat_map(|asked| asked.found.iter().take(top));
    let of_kind: Vec<&Found> = first().filter(|found| found.is_gold == is_gold).collect();
    let left = of_kind.iter().filter(|found| found.similarity.is_none_or(|it| it >= least)).count();
    100.0 * left as f64 / of_kind.len().max(1) as f64
}
