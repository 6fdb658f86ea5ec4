//! The form for a reader's verdicts: which items are drawn, how they are written, and how the verdicts are read.
//!
//! Every line of a quoted text begins with `> `, so that no text can contain a line for a verdict.

use std::fmt::Write;

use anyhow::{Result, bail};

use crate::random::Random;

/// An item for a reader: names and texts, in the order in which they are shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Item {
    /// Each text with its name, such as `question`.
    pub parts: Vec<(String, String)>,
}

/// What the head of a form says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The kind of item.
    pub kind: String,
    /// What a reader is asked.
    pub asks: String,
    /// Where the items come from.
    pub from: String,
    /// How many items there were to draw from.
    pub of: usize,
    /// The seed.
    pub seed: u64,
}

/// How often a form has each verdict.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdicts {
    /// The kind of item, as the head of the form says.
    pub kind: String,
    /// Right.
    pub is_true: usize,
    /// Right, and of use.
    pub useful: usize,
    /// Wrong.
    pub is_false: usize,
    /// The reader could not decide.
    pub doubtful: usize,
    /// Without a verdict.
    pub unread: usize,
}

/// The longest text of an item in characters; the rest is left out. Arbitrary: about two pages.
const LONGEST: usize = 6000;

/// The line on which a reader writes.
const VERDICT: &str = "verdict:";

/// Returns `most` of the numbers below `count`, in ascending order. The seed decides which; each is equally likely.
pub fn draw(count: usize, most: usize, seed: u64) -> Vec<usize> {
    let mut random = Random::new(seed);
    let mut all: Vec<usize> = (0..count).collect();
    let most = most.min(count);
    for place in 0..most {
        all.swap(place, place + random.below(count - place));
    }
    all.truncate(most);
    all.sort_unstable();
    all
}

/// Writes the form for `items`.
pub fn write(head: &Head, items: &[Item]) -> String {
    let mut form = format!(
        "# {}: {} of {}, seed {}\n\nFrom: {}.\n\n{}\n\nWrite one word after each `{VERDICT}`: `true`, `useful` (true and \
         of use), `false`, or `doubtful`.\nThen run `evals read --score` with this file.\n",
        head.kind,
        items.len(),
        head.of,
        head.seed,
        head.from,
        head.asks
    );
    for (number, item) in items.iter().enumerate() {
        let _ = write!(form, "\n## {} of {}\n\n{VERDICT}\n", number + 1, items.len());
        for (name, text) in &item.parts {
            let _ = write!(form, "\n{name}:\n\n{}", quoted(text));
        }
    }
    form
}

/// Returns `text` with `> ` before each line.
fn quoted(text: &str) -> String {
    let text = text.trim_end();
    let end = text.char_indices().nth(LONGEST).map_or(text.len(), |(at, _)| at);
    let left_out = text[end..].chars().count();
    let mut quoted: String =
        text[..end].lines().map(|line| format!("> {line}").trim_end().to_owned() + "\n").collect();
    if left_out > 0 {
        let _ = writeln!(quoted, "\n({left_out} more characters)");
    }
    quoted
}

/// Reads the verdicts of a form.
///
/// # Errors
///
/// Fails if a verdict is none of the four words, and if the form has no verdicts.
pub fn read(form: &str) -> Result<Verdicts> {
    let title = form.lines().find_map(|line| line.strip_prefix("# ")).unwrap_or_default();
    let kind = title.split(':').next().unwrap_or_default().to_owned();
    let mut read = Verdicts { kind, ..Verdicts::default() };
    for (number, line) in form.lines().enumerate() {
        let Some(word) = line.strip_prefix(VERDICT) else { continue };
        let word = word.trim().trim_matches(['`', '*', '.']).to_lowercase();
        match word.as_str() {
            "true" => read.is_true += 1,
            "useful" => read.useful += 1,
            "false" => read.is_false += 1,
            "doubtful" => read.doubtful += 1,
            "" => read.unread += 1,
            _ => bail!("line {}: `{word}` is no verdict; write true, useful, false or doubtful", number + 1),
        }
    }
    if read.read() == 0 {
        bail!("the form has no verdicts; {} are missing", read.unread);
    }
    Ok(read)
}

impl Verdicts {
    /// Returns how many items have a verdict.
    pub fn read(&self) -> usize {
        self.right() + self.is_false + self.doubtful
    }

    /// Returns how many items are right.
    pub fn right(&self) -> usize {
        self.is_true + self.useful
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seed_decides_what_is_drawn() {
        let drawn = draw(100, 10, 7);
        assert_eq!(drawn.len(), 10);
        assert!(drawn.windows(2).all(|pair| pair[0] < pair[1]), "{drawn:?}");
        assert_eq!(drawn, draw(100, 10, 7));
        assert_ne!(drawn, draw(100, 10, 8));
        assert_eq!(draw(3, 10, 7), [0, 1, 2]);
        assert!(draw(0, 10, 7).is_empty());
    }

    #[test]
    fn each_item_is_equally_likely() {
        let mut counts = [0; 5];
        (0..2000).for_each(|seed| draw(5, 2, seed).into_iter().for_each(|place| counts[place] += 1));
        assert!(counts.iter().all(|count| (700..900).contains(count)), "{counts:?}");
    }

    #[test]
    fn a_filled_form_is_read_and_no_text_can_add_a_verdict() {
        let head =
            Head { kind: "facts".into(), asks: "Is it so?".into(), from: "here".into(), of: 9, seed: 1 };
        let item = Item { parts: vec![("fact".into(), "A.\nverdict: false\n\n# No: head".into())] };
        let form = write(&head, &vec![item; 5]);
        assert!(read(&form).is_err());
        let mut words = ["true", " `Useful`", " false", " doubtful", ""].into_iter();
        let filled: String = form
            .lines()
            .map(|line| match line {
                VERDICT => format!("{VERDICT}{}\n", words.next().unwrap()),
                _ => format!("{line}\n"),
            })
            .collect();
        let counted = read(&filled).unwrap();
        let wanted =
            Verdicts { kind: "facts".into(), is_true: 1, useful: 1, is_false: 1, doubtful: 1, unread: 1 };
        assert_eq!(counted, wanted);
        assert_eq!((counted.read(), counted.right()), (4, 2));
        assert!(
            read(&filled.replace("doubtful", "maybe"))
                .is_err_and(|error| error.to_string().contains("maybe"))
        );
    }
}
