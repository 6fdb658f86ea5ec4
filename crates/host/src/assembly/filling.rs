//! Fills a budget with passages in a fixed order.
//!
//! The first passage that doesn't fit ends the filling, and the remaining room is used for its beginning. So a larger
//! budget shows everything that a smaller budget shows.

use std::collections::HashSet;

use crate::assembly::passages::{Chosen, Passage, cost};
use tiro_base::budget::Budget;
use tiro_digest::tuning::contexts::LEAST_PASSAGE;

/// The approximate number of tokens of a line that are not text of the message.
const FRAME_OF_LINE: usize = 16;

/// A budget that is being filled.
pub struct Filling {
    budget: Budget,
    heads: HashSet<String>,
    is_full: bool,
}

impl Filling {
    /// Returns an empty filling of `budget` tokens.
    pub fn new(budget: usize) -> Filling {
        Filling { budget: Budget::new(budget), heads: HashSet::new(), is_full: false }
    }

    /// Returns whether the filling has ended, so that no further passage is added.
    pub fn is_full(&self) -> bool {
        self.is_full
    }

    /// Adds the passage if it fits, together with its heading unless this heading is already shown. Otherwise adds the
    /// passage that `shorter` returns for the remaining tokens, and ends the filling. Returns whether the whole passage
    /// was added.
    pub fn add(
        &mut self,
        chosen: &mut Chosen,
        passage: Passage,
        shorter: impl FnOnce(usize) -> Option<Passage>,
    ) -> bool {
        if self.is_full {
            return false;
        }
        let is_headed = passage.head.is_empty() || self.heads.contains(&passage.head);
        let head = if is_headed { 0 } else { cost(&passage.head) };
        if self.budget.spend(passage.cost + head) {
            self.heads.insert(passage.head.clone());
            chosen.live.push(passage);
            return true;
        }
        self.is_full = true;
        let left = self.budget.left().saturating_sub(head + FRAME_OF_LINE);
        let cut = (left >= LEAST_PASSAGE).then(|| shorter(left)).flatten();
        if let Some(cut) = cut.filter(|cut| self.budget.spend(cut.cost + head)) {
            chosen.live.push(cut);
        }
        false
    }

    /// Replaces the chosen passage with the index `place` by `whole`, which is a longer version of it, if the
    /// additional tokens fit. Otherwise ends the filling.
    pub fn extend(&mut self, chosen: &mut Chosen, place: usize, whole: Passage) {
        let more = whole.cost.saturating_sub(chosen.live[place].cost);
        self.is_full |= !self.budget.spend(more);
        if !self.is_full {
            chosen.live[place] = whole;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::assembly::passages::Part;
    use crate::assembly::quote::quote;
    use tiro_digest::context::render;

    fn passage(session: usize, ordinal: i64, text: &str) -> Passage {
        let line = render::message(ordinal, "Ada", text, None);
        let head = render::head(&format!("session {session}"), "2026-03-01");
        let place = (0, session.to_string(), ordinal);
        Passage { part: Part::Relevant, head, place, cost: cost(&line), line, shows: None }
    }

    /// Returns three things: the ordinals of the messages that are shown whole, the text of all lines, and the number
    /// of tokens that lines and headings take.
    fn filled(said: &[(usize, String)], budget: usize) -> (Vec<i64>, String, usize) {
        let mut chosen = Chosen::default();
        let mut filling = Filling::new(budget);
        for (ordinal, (session, text)) in (0..).zip(said) {
            let whole = passage(*session, ordinal, text);
            filling.add(&mut chosen, whole, |left| {
                Some(passage(*session, ordinal, &quote(text, 0..text.len(), left)))
            });
        }
        let whole = |passage: &&Passage| passage.line.contains(said[passage.place.2 as usize].1.trim());
        let ordinals = chosen.live.iter().filter(whole).map(|passage| passage.place.2).collect();
        let heads: HashSet<&String> = chosen.live.iter().map(|passage| &passage.head).collect();
        let used = chosen.live.iter().map(|passage| passage.cost).sum::<usize>()
            + heads.into_iter().map(|head| cost(head)).sum::<usize>();
        (ordinals, chosen.live.iter().map(|passage| passage.line.as_str()).collect(), used)
    }

    proptest! {
        #[test]
        fn more_budget_never_shows_less(
            said in prop::collection::vec((0..3usize, "([A-Z][a-z ]{3,40}[.?] ){1,8}"), 0..20),
            budget in 0..600usize, more in 0..600usize,
        ) {
            let (few, _, used) = filled(&said, budget);
            let (many, _, used_of_more) = filled(&said, budget + more);
            prop_assert!(few.iter().all(|ordinal| many.contains(ordinal)), "{few:?} {many:?}");
            prop_assert!(used <= budget && used_of_more <= budget + more);
        }
    }
}
