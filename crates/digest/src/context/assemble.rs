//! Divides the budget of a context among its parts. The functions here are pure: they take costs and return choices.
//!
//! The stable part of a context comes first. It doesn't depend on the question, and consists of key facts, summaries,
//! and the messages of the last closed segment. Each of these three has a share. Tokens that one of them doesn't use go
//! to the others. The stable part as a whole has a share of the budget, and the messages that answer the question get
//! the rest. For a smaller budget, the stable part has a smaller share, because the answering messages matter most if
//! there are few tokens. If tiers alone decide what is shown, 10% of the evidence is kept, and 9% of the tokens. With
//! the answering messages in addition, a context of 4,000 tokens keeps more than 90% of the evidence (`evals tiers`).

use crate::tuning::contexts::{AMPLE, FACTS_SHARE, STABLE_SHARE};
use tiro_base::budget::Budget;

/// The largest shares that the parts of a context may take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shares {
    /// The share of the budget that the stable part may take.
    pub stable: f64,
    /// The share of the stable part that key facts may take.
    pub facts: f64,
    /// The share of the budget that summaries may take.
    pub summaries: f64,
}

impl Shares {
    /// Returns the shares of a context. `summary_ratio` is the share that summaries may take of a large budget.
    pub fn of(summary_ratio: f64) -> Shares {
        Shares { stable: STABLE_SHARE, facts: FACTS_SHARE, summaries: summary_ratio.clamp(0.0, 1.0) }
    }

    /// Returns how many tokens of `budget` the stable part may have.
    pub fn stable(&self, budget: usize) -> usize {
        (budget as f64 * self.stable * shrink(budget)) as usize
    }

    /// Returns how many tokens of `budget` summaries may have.
    pub fn summaries(&self, budget: usize) -> usize {
        (budget as f64 * self.summaries * shrink(budget)) as usize
    }
}

fn shrink(budget: usize) -> f64 {
    (budget as f64 / AMPLE).min(1.0).sqrt()
}

/// The costs in tokens of the candidates for the stable part. The candidates of each kind are in order of preference.
#[derive(Clone, Debug, Default)]
pub struct Offered<'a> {
    /// Key facts.
    pub facts: &'a [usize],
    /// Summaries.
    pub summaries: &'a [usize],
    /// Recent messages.
    pub recent: &'a [usize],
}

/// The chosen candidates of the stable part: for each candidate in [`Offered`], whether it was chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stable {
    /// Key facts.
    pub facts: Vec<bool>,
    /// Summaries.
    pub summaries: Vec<bool>,
    /// Recent messages.
    pub recent: Vec<bool>,
    /// The number of tokens spent.
    pub used: usize,
}

/// Chooses candidates that together cost at most `limit` tokens. First chooses facts and summaries within their own
/// limits, then recent messages, then as many more summaries and facts as fit.
pub fn stable(limit: usize, facts_limit: usize, summaries_limit: usize, offered: &Offered<'_>) -> Stable {
    let mut budget = Budget::new(limit);
    let mut facts = vec![false; offered.facts.len()];
    let mut summaries = vec![false; offered.summaries.len()];
    let mut recent = vec![false; offered.recent.len()];
    take(&mut budget, facts_limit, offered.facts, &mut facts);
    take(&mut budget, summaries_limit, offered.summaries, &mut summaries);
    take(&mut budget, limit, offered.recent, &mut recent);
    take(&mut budget, limit, offered.summaries, &mut summaries);
    take(&mut budget, limit, offered.facts, &mut facts);
    Stable { facts, summaries, recent, used: budget.used() }
}

/// Takes, in order, the candidates that are not yet `taken`. A candidate is skipped if it doesn't fit into `budget`, or
/// if this call would then take more than `limit` tokens.
pub fn take(budget: &mut Budget, limit: usize, costs: &[usize], taken: &mut [bool]) {
    let mut own = Budget::new(limit.min(budget.left()));
    for (cost, taken) in costs.iter().zip(taken).filter(|(_, taken)| !**taken) {
        if own.spend(*cost) {
            budget.spend(*cost);
            *taken = true;
        }
    }
}

/// A line that may be shown under a head. The cost of a head is counted once for all its lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// The cost of the line in tokens.
    pub cost: usize,
    /// The index of the line's head in [`Heads`].
    pub head: usize,
}

/// The cost of each head, and whether it has been counted.
#[derive(Clone, Debug, Default)]
pub struct Heads {
    costs: Vec<usize>,
    is_counted: Vec<bool>,
}

impl Heads {
    /// Returns heads with these costs in tokens. None of the costs is counted yet.
    pub fn new(costs: Vec<usize>) -> Heads {
        Heads { is_counted: vec![false; costs.len()], costs }
    }

    /// Takes those of `lines` that fit into `budget` and `limit`. `lines` are in order of preference. Returns for each
    /// line whether it was taken. The first line that is taken under a head also pays for the head.
    pub fn take(&mut self, budget: &mut Budget, limit: usize, lines: &[Line]) -> Vec<bool> {
        let mut own = Budget::new(limit.min(budget.left()));
        let mut take = |line: &Line| {
            let head = if self.is_counted[line.head] { 0 } else { self.costs[line.head] };
            let fits = own.spend(line.cost + head);
            self.is_counted[line.head] |= fits;
            fits
        };
        let taken = lines.iter().map(&mut take).collect();
        budget.spend(own.used());
        taken
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_unused_share_is_given_to_the_others() {
        let many = [10; 20];
        let all = Offered { facts: &many, summaries: &many, recent: &many };
        let count = |taken: &[bool]| taken.iter().filter(|taken| **taken).count();
        let chosen = stable(200, 50, 60, &all);
        assert_eq!((count(&chosen.facts), count(&chosen.summaries), count(&chosen.recent)), (5, 6, 9));
        let chosen = stable(200, 50, 60, &Offered { recent: &[10; 2], ..all });
        assert_eq!((count(&chosen.facts), count(&chosen.summaries), count(&chosen.recent)), (5, 13, 2));
        let chosen = stable(200, 50, 60, &Offered { facts: &many, ..Offered::default() });
        assert_eq!((count(&chosen.facts), chosen.used), (20, 200));
    }

    #[test]
    fn shares_shrink_with_the_budget() {
        let shares = Shares::of(0.3);
        assert_eq!([1000, 4000, 8000, 16_000].map(|budget| shares.stable(budget)), [176, 1414, 4000, 8000]);
        assert_eq!(shares.summaries(8000), 2400);
    }

    #[test]
    fn a_head_is_paid_for_once_and_not_for_nothing() {
        let mut heads = Heads::new(vec![10, 10]);
        let line = |cost, head| Line { cost, head };
        let mut budget = Budget::new(40);
        let taken = heads.take(&mut budget, 40, &[line(5, 0), line(5, 0), line(11, 1), line(5, 1)]);
        assert_eq!((taken, budget.used()), (vec![true, true, false, true], 35));
        assert_eq!(heads.take(&mut budget, 40, &[line(5, 1)]), [true]);
        assert_eq!(budget.left(), 0);
    }

    fn costs() -> impl Strategy<Value = Vec<usize>> {
        prop::collection::vec(0..300usize, 0..30)
    }

    proptest! {
        #[test]
        fn nothing_passes_the_budget_and_what_fits_is_shown(
            limit in 0..3000usize, facts_limit in 0..4000usize, summaries_limit in 0..4000usize,
            facts in costs(), summaries in costs(), recent in costs(),
        ) {
            let offered = Offered { facts: &facts, summaries: &summaries, recent: &recent };
            let chosen = stable(limit, facts_limit, summaries_limit, &offered);
            let parts = [(&facts, &chosen.facts), (&summaries, &chosen.summaries), (&recent, &chosen.recent)];
            let cost = |wanted: bool| parts.iter().flat_map(move |(costs, taken)| {
                costs.iter().zip(taken.iter()).filter(move |(_, taken)| **taken == wanted).map(|(cost, _)| *cost)
            });
            prop_assert_eq!(cost(true).sum::<usize>(), chosen.used);
            prop_assert!(chosen.used <= limit);
            prop_assert!(cost(false).all(|cost| chosen.used + cost > limit));
        }

        #[test]
        fn lines_and_their_heads_never_pass_the_budget(
            limit in 0..3000usize, own_limit in 0..3000usize, heads in prop::collection::vec(0..50usize, 1..6),
            lines in prop::collection::vec((0..300usize, 0..6usize), 0..40),
        ) {
            let lines: Vec<Line> = lines.iter().map(|(cost, head)| Line { cost: *cost, head: head % heads.len() }).collect();
            let mut budget = Budget::new(limit);
            let taken = Heads::new(heads.clone()).take(&mut budget, own_limit, &lines);
            let shown = lines.iter().zip(&taken).filter(|(_, taken)| **taken).map(|(line, _)| line);
            let used: usize = shown.clone().map(|line| line.cost).sum();
            let headed = (0..heads.len()).filter(|head| shown.clone().any(|line| line.head == *head));
            prop_assert_eq!(used + headed.map(|head| heads[head]).sum::<usize>(), budget.used());
            prop_assert!(budget.used() <= limit.min(own_limit));
        }
    }
}
