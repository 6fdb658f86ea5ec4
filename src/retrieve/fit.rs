//! Which hits an answer has room for. Pure; the only place where tokens are added up is [`crate::budget`].

use crate::budget::Budget;

/// Returns which of the hits, given their tokens in order, fit `budget`: a hit that doesn't is passed over, so that
/// one long hit doesn't keep shorter ones out.
pub fn fit(budget: &mut Budget, tokens: &[usize]) -> Vec<bool> {
    tokens.iter().map(|tokens| budget.spend(*tokens)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn never_over_budget_and_nothing_that_fits_is_left_out(limit in 0usize..500, tokens in prop::collection::vec(0usize..200, 0..40)) {
            let mut budget = Budget::new(limit);
            let fits = fit(&mut budget, &tokens);
            let used: usize = tokens.iter().zip(&fits).filter(|(_, fits)| **fits).map(|(tokens, _)| tokens).sum();
            prop_assert!(used <= limit);
            prop_assert_eq!(used, budget.used());
            let smallest_left = tokens.iter().zip(&fits).filter(|(_, fits)| !**fits).map(|(tokens, _)| *tokens).min();
            prop_assert!(smallest_left.is_none_or(|tokens| used + tokens > limit));
        }
    }
}
