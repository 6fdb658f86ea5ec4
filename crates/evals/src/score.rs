//! Scores ranked answers against the ids that should have been found.
//!
//! Recall is the share of a question's evidence among the first k answers. `any` requires at least one piece among
//! them, and `all` requires every piece. Adversarial questions, which have no answer, are scored separately and are not
//! part of the average. A question without a ranking scores zero.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::Serialize;

use crate::stats::print_table;
use crate::suite::{Query, Ranking};

/// The category that is never part of the average.
pub const ADVERSARIAL: &str = "adversarial";

/// The mean metrics of the questions of a category, as fractions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Metrics {
    /// The number of questions.
    pub questions: usize,
    /// The recall among the first 1, 5, 10, 20 and 50.
    pub recall: [f64; 5],
    /// The share of questions with some evidence among the first 10.
    pub any_at_10: f64,
    /// The share of questions with all evidence among the first 10.
    pub all_at_10: f64,
    /// The discounted gain among the first 10, relative to the best possible gain.
    pub ndcg_at_10: f64,
    /// One over the rank of the first piece of evidence.
    pub reciprocal_rank: f64,
}

/// The numbers of answers for which [`Metrics::recall`] is computed.
pub const RECALL_AT: [usize; 5] = [1, 5, 10, 20, 50];

/// The metrics of each category, and of all questions except the adversarial ones.
#[derive(Debug, Serialize)]
pub struct Scores {
    /// The metrics of each category, by its name.
    pub categories: BTreeMap<String, Metrics>,
    /// The metrics of all questions that are not adversarial.
    pub all: Metrics,
}

/// Scores `rankings` against `queries`.
pub fn score(queries: &[Query], rankings: &[Ranking]) -> Scores {
    let by_id: HashMap<&str, &Ranking> =
        rankings.iter().map(|ranking| (ranking.qid.as_str(), ranking)).collect();
    let mut groups: BTreeMap<String, Vec<Metrics>> = BTreeMap::new();
    let mut all = Vec::new();
    for query in queries {
        let ranked = by_id.get(query.qid.as_str()).map_or(&[][..], |ranking| &ranking.ranked);
        let metrics = score_one(&query.gold, ranked);
        groups.entry(query.category.clone()).or_default().push(metrics);
        if query.category != ADVERSARIAL {
            all.push(metrics);
        }
    }
    let categories = groups.into_iter().map(|(name, metrics)| (name, mean(&metrics))).collect();
    Scores { categories, all: mean(&all) }
}

impl Scores {
    /// Prints a line for each category, in per cent.
    pub fn print(&self) {
        let header =
            ["category", "n", "R@1", "R@5", "R@10", "R@20", "R@50", "any@10", "all@10", "NDCG@10", "MRR"];
        let mut rows = vec![header.map(String::from).to_vec()];
        let total = ("ALL".to_string(), self.all);
        for (name, m) in self.categories.iter().map(|(name, m)| (name.clone(), *m)).chain([total]) {
            let mut row = vec![name, m.questions.to_string()];
            let rest = [m.any_at_10, m.all_at_10, m.ndcg_at_10, m.reciprocal_rank];
            row.extend(m.recall.iter().chain(&rest).map(|share| format!("{:.1}", 100.0 * share)));
            rows.push(row);
        }
        print_table(&rows);
    }

    /// Returns the mean recall among the first ten, in per cent, of all questions that are not adversarial.
    pub fn recall_at_10(&self) -> f64 {
        100.0 * self.all.recall[2]
    }
}

/// Returns the metrics of one ranking. The second occurrence of an id is ignored.
fn score_one(gold: &[String], ranked: &[String]) -> Metrics {
    let gold: HashSet<&str> = gold.iter().map(String::as_str).collect();
    let mut seen = HashSet::new();
    let found: Vec<bool> =
        ranked.iter().filter(|id| seen.insert(id.as_str())).map(|id| gold.contains(id.as_str())).collect();
    let within = |k: usize| found.iter().take(k).filter(|found| **found).count();
    let discount = |rank: usize| 1.0 / (rank as f64 + 2.0).log2();
    let gain: f64 =
        found.iter().take(10).enumerate().filter(|(_, found)| **found).map(|(i, _)| discount(i)).sum();
    let best: f64 = (0..gold.len().min(10)).map(discount).sum();
    let wanted = gold.len().max(1) as f64;
    Metrics {
        questions: 1,
        recall: RECALL_AT.map(|k| within(k) as f64 / wanted),
        any_at_10: f64::from(within(10) > 0),
        all_at_10: f64::from(within(10) == gold.len()),
        ndcg_at_10: if best > 0.0 { gain / best } else { 0.0 },
        reciprocal_rank: found.iter().position(|found| *found).map_or(0.0, |rank| 1.0 / (rank as f64 + 1.0)),
    }
}

fn mean(metrics: &[Metrics]) -> Metrics {
    let over = |value: &dyn Fn(&Metrics) -> f64| {
        metrics.iter().map(value).sum::<f64>() / metrics.len().max(1) as f64
    };
    Metrics {
        questions: metrics.len(),
        recall: std::array::from_fn(|i| over(&|m| m.recall[i])),
        any_at_10: over(&|m| m.any_at_10),
        all_at_10: over(&|m| m.all_at_10),
        ndcg_at_10: over(&|m| m.ndcg_at_10),
        reciprocal_rank: over(&|m| m.reciprocal_rank),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(ids: &[&str]) -> Vec<String> {
        ids.iter().map(|id| id.to_string()).collect()
    }

    #[test]
    fn a_repeated_id_takes_no_rank() {
        let metrics = score_one(&ids(&["b"]), &ids(&["a", "a", "b"]));
        assert_eq!(metrics.reciprocal_rank, 0.5);
        assert_eq!(metrics.recall, [0.0, 1.0, 1.0, 1.0, 1.0]);
        assert!((metrics.ndcg_at_10 - 1.0 / 3f64.log2()).abs() < 1e-12);
    }

    #[test]
    fn half_of_the_evidence_is_any_but_not_all() {
        let metrics = score_one(&ids(&["a", "z"]), &ids(&["a", "b"]));
        assert_eq!((metrics.recall[0], metrics.any_at_10, metrics.all_at_10), (0.5, 1.0, 0.0));
    }

    #[test]
    fn adversarial_and_unanswered_questions_do_not_lift_the_average() {
        let query = |qid: &str, category: &str| Query {
            qid: qid.into(),
            project: String::new(),
            query: String::new(),
            gold: ids(&["a"]),
            category: category.into(),
            answer: None,
        };
        let ranking = |qid: &str| Ranking { qid: qid.into(), ranked: ids(&["a"]), ms: 0.0, tokens: 0 };
        let queries = [query("1", "plain"), query("2", "plain"), query("3", ADVERSARIAL)];
        let scores = score(&queries, &[ranking("1"), ranking("3")]);
        assert_eq!(scores.recall_at_10(), 50.0);
        assert_eq!(scores.categories[ADVERSARIAL].recall[2], 1.0);
    }
}
