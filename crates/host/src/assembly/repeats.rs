//! Shows texts that say the same only once in a context.

use std::collections::{HashMap, HashSet};

use crate::assembly::filling::Filling;
use crate::assembly::passages::{Chosen, Passage, cost};
use tiro_base::memory::{Kind, Memory};
use tiro_recall::retrieve::rank::Ranked;

/// The number of characters of a text that are compared. Arbitrary: a few lines.
const COMPARED: usize = 400;

/// The texts that a context shows, and how often each was left out because it is already shown.
#[derive(Default)]
pub struct Repeats {
    /// For each text, the index of its passage and the number of its repetitions.
    by_text: HashMap<String, (usize, usize)>,
    /// Texts that the context shows as standing instructions.
    standing: HashSet<String>,
}

impl Repeats {
    /// Returns the texts of a context that shows `standing` as the user's standing instructions.
    pub fn of(standing: &[Memory]) -> Repeats {
        let standing = standing.iter().map(|memory| letters(&memory.text, true)).collect();
        Repeats { standing, ..Repeats::default() }
    }

    /// Returns the text by which the hit is compared. If the context already shows a text that says the same, counts the
    /// repetition and returns `None`.
    pub fn new_text(&mut self, hit: &Ranked, memory: &Memory) -> Option<String> {
        let text = compared(hit, memory);
        match self.by_text.get_mut(&text) {
            Some((_, repetitions)) => {
                *repetitions += 1;
                None
            }
            None => (!self.standing.contains(&text)).then_some(text),
        }
    }

    /// Records that the passage with the index `place` shows the text.
    pub fn show(&mut self, text: String, place: usize) {
        self.by_text.insert(text, (place, 0));
    }

    /// Adds to each passage how many texts say the same, as long as this fits.
    pub fn tell(self, filling: &mut Filling, chosen: &mut Chosen) {
        let mut repeated: Vec<(usize, usize)> =
            self.by_text.into_values().filter(|(_, repetitions)| *repetitions > 0).collect();
        repeated.sort_unstable();
        for (place, repetitions) in repeated {
            let passage = chosen.live[place].clone();
            let line = format!("{} (and {repetitions} more like it)\n", passage.line.trim_end());
            filling.extend(chosen, place, Passage { cost: cost(&line), line, ..passage });
        }
    }
}

/// Returns the letters and digits of a text by which it is compared. Commits of a program differ only in numbers, so
/// their digits are left out.
fn compared(hit: &Ranked, memory: &Memory) -> String {
    let is_programs = memory.kind == Kind::Commit && hit.parts.prior < 0.0;
    letters(&memory.text, !is_programs)
}

fn letters(text: &str, with_digits: bool) -> String {
    let kept = |c: &char| c.is_alphabetic() || c.is_numeric() && with_digits;
    text.chars().filter(kept).flat_map(char::to_lowercase).take(COMPARED).collect()
}
