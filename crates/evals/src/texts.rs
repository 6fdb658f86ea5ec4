//! Texts that are kept once, to be counted or redacted by the program under measurement.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::calls::path_text;
use crate::client::{Place, Tiro};
use crate::{peer, suite};

/// Different texts; each has a number.
#[derive(Debug, Default)]
pub struct Texts {
    numbers: HashMap<String, usize>,
    count: usize,
}

impl Texts {
    /// Returns the number of `text`.
    pub fn add(&mut self, text: &str) -> usize {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        self.numbers.insert(text.to_owned(), self.count);
        self.count += 1;
        self.count - 1
    }

    /// Returns the texts in the order of their numbers.
    pub fn all(&self) -> Vec<&str> {
        let mut all = vec![""; self.count];
        for (text, number) in &self.numbers {
            all[*number] = text;
        }
        all
    }

    /// Returns the o200k tokens of each text.
    pub fn tokens(&self, tiro: &Tiro, place: &Place, folder: &Path) -> Result<Vec<usize>> {
        let mut list = String::new();
        let folder = folder.join("counted");
        std::fs::create_dir_all(&folder)?;
        for (number, text) in self.all().into_iter().enumerate() {
            let file = folder.join(format!("{number}.txt"));
            std::fs::write(&file, text).with_context(|| format!("writing `{}`", file.display()))?;
            list += path_text(&file)?;
            list.push('\n');
        }
        let named = folder.join("list.txt");
        std::fs::write(&named, list)?;
        let answer = peer::bench(tiro, place, &["tokens", "--files", path_text(&named)?, "--rounds", "1"])?;
        let counts: Vec<usize> =
            peer::numbers(&answer, "counts").into_iter().map(|count| count as usize).collect();
        ensure!(counts.len() == self.count, "{} texts were counted, not {}", counts.len(), self.count);
        std::fs::remove_dir_all(&folder)?;
        Ok(counts)
    }

    /// Returns each text with its secrets replaced.
    pub fn redacted(&self, tiro: &Tiro, place: &Place, folder: &Path) -> Result<Vec<String>> {
        let file = folder.join("texts.jsonl");
        suite::write_lines(&file, self.all())?;
        let answer = peer::bench(tiro, place, &["redact", "--texts", path_text(&file)?, "--rounds", "1"])?;
        let redacted: Vec<String> = answer["redacted"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|text| text.as_str().map(str::to_owned))
            .collect();
        ensure!(redacted.len() == self.count, "{} texts were redacted, not {}", redacted.len(), self.count);
        Ok(redacted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_have_one_number() {
        let mut texts = Texts::default();
        assert_eq!([texts.add("a"), texts.add("b"), texts.add("a")], [0, 1, 0]);
        assert_eq!(texts.all(), ["a", "b"]);
    }
}
