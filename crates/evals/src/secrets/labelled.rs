//! Labelled lines of a data set: which of the secrets are found, and what else is replaced.
//!
//! The lines have a neutral form, so that any data set can be measured: JSON lines with `text`, `label` (`secret` or
//! `other`), `value` (the secret, or another value) and `random` (whether the value looks random, as the author of the
//! data set defines it). A secret counts as found if its value is no longer in the redacted text. A line labelled
//! `other` is a false positive if its value was changed or, if it has no value, if anything was changed. Each pair of
//! `group` (a repository) and value counts once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::tally::percent;
use crate::stats::{Goal, Report};
use crate::suite;

/// A line of a data set.
#[derive(Debug, Deserialize)]
pub struct Labelled {
    /// The text.
    pub text: String,
    /// `secret` or `other`.
    label: String,
    /// The secret, or another value.
    #[serde(default)]
    value: Option<String>,
    /// Whether the value looks random.
    #[serde(default)]
    random: Option<bool>,
    /// The repository.
    #[serde(default)]
    group: String,
}

impl Labelled {
    /// Returns whether `redacted` no longer has the value or, if there is no value, whether it differs from the text.
    fn is_changed(&self, redacted: &str) -> bool {
        let value = self.value.as_deref().filter(|value| !value.is_empty() && self.text.contains(value));
        match value {
            Some(value) => redacted.matches(value).count() < self.text.matches(value).count(),
            None => redacted != self.text,
        }
    }
}

/// Reads the labelled lines of all files in `folder`.
pub fn read(folder: &Path) -> Result<Vec<Labelled>> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("reading `{}`", folder.display()))?;
    let mut files: Vec<PathBuf> = entries.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "jsonl"));
    files.sort();
    let mut rows = Vec::new();
    for file in files {
        rows.extend(suite::read_lines(&file)?);
    }
    if rows.is_empty() {
        bail!("no labelled lines in `{}`", folder.display());
    }
    Ok(rows)
}

/// Counts how many of the secrets in `rows` were found, and how many false positives there are.
pub fn count(rows: &[Labelled], redacted: &[String], report: &mut Report) {
    let mut seen: BTreeMap<(&str, &str, &str), (bool, bool)> = BTreeMap::new();
    for (row, redacted) in rows.iter().zip(redacted) {
        let value = row.value.as_deref().unwrap_or(&row.text);
        let entry = seen.entry((&row.label, &row.group, value)).or_default();
        entry.0 |= row.is_changed(redacted);
        entry.1 |= row.random == Some(true);
    }
    let of = |label: &str, random: bool| {
        let rows = seen.iter().filter(|((is, ..), (_, drawn))| *is == label && (*drawn || !random));
        rows.fold((0, 0), |(found, all), (_, (changed, _))| (found + usize::from(*changed), all + 1))
    };
    let (found, all) = of("secret", false);
    report.add("labelled secrets, each value once", all as f64, "");
    report.add("found of them", percent(found, all), "%");
    let (found, all) = of("secret", true);
    report.add("labelled secrets that look random", all as f64, "");
    report.aim("found of them", percent(found, all), "%", Goal::AtLeast(85.0));
    let (marked, all) = of("other", false);
    report.add("labelled others", all as f64, "");
    report.aim("marked of them", percent(marked, all), "%", Goal::AtMost(2.0));
}
