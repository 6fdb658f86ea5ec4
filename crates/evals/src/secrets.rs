//! `evals secrets`: how many secrets redaction replaces, how much else it replaces, and how fast.
//!
//! Labelled lines have a neutral form, so that any data set can be measured: JSON lines with `text`, `label` (`secret`
//! or `other`), `value` (the secret, or another value) and `random` (whether the value looks random, as the author of
//! the data set defines it). A secret counts as found if its value is no longer in the redacted text. A line labelled
//! `other` is a false positive if its value was changed or, if it has no value, if anything was changed. Each pair of
//! `group` (a repository) and value counts once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::calls::path_text;
use crate::client::{Place, Tiro};
use crate::peer;
use crate::random::Random;
use crate::stats::{Goal, Report};
use crate::{suite, tokens};

/// What to measure.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Folder with labelled lines, `*.jsonl` [default: none are measured]
    #[arg(long)]
    creddata: Option<PathBuf>,
    /// Directories of text files to measure the speed with [default: the sources that cargo has unpacked]
    #[arg(long)]
    dir: Vec<PathBuf>,
    /// Megabytes of them
    #[arg(long, default_value_t = 20)]
    megabytes: usize,
    /// Passwords of each generator
    #[arg(long, default_value_t = 40)]
    passwords: usize,
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// A line of a data set.
#[derive(Debug, Deserialize)]
struct Labelled {
    text: String,
    label: String,
    #[serde(default)]
    value: Option<String>,
    #[serde(default)]
    random: Option<bool>,
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

/// Measures and returns the report.
pub fn run(args: &Args, tiro: &Tiro) -> Result<Report> {
    let root = tempfile::tempdir().context("making a temporary directory")?;
    let place = Place::create(root.path())?;
    let bench = |texts: Vec<String>, rounds: &str| {
        let file = root.path().join("texts.jsonl");
        suite::write_lines(&file, texts)?;
        peer::bench(tiro, &place, &["redact", "--texts", path_text(&file)?, "--rounds", rounds])
    };
    let mut report = Report::default();
    if let Some(folder) = &args.creddata {
        let rows = labelled(folder)?;
        let answer = bench(rows.iter().map(|row| row.text.clone()).collect(), "1")?;
        count(&rows, &redacted(&answer, rows.len())?, &mut report);
    }
    let written = generated(args.passwords, &mut Random::new(args.seed));
    let answer = bench(written.iter().map(Written::text).collect(), "1")?;
    let mut taken: BTreeMap<(&str, &str), (usize, usize)> = BTreeMap::new();
    for (each, redacted) in written.iter().zip(redacted(&answer, written.len())?) {
        let entry = taken.entry((each.generator, each.format)).or_default();
        entry.0 += usize::from(each.is_taken(&redacted));
        entry.1 += 1;
    }
    for ((generator, format), (found, all)) in taken {
        report.aim(format!("{generator}, {format}"), percent(found, all), "%", Goal::AtLeast(90.0));
    }
    let files = tokens::gather(&tokens::directories(&args.dir)?, args.megabytes * 1_000_000)?;
    let texts: Vec<String> = files.iter().filter_map(|file| std::fs::read_to_string(file).ok()).collect();
    let answer = bench(texts, "3")?;
    let bytes = answer["bytes"].as_f64().context("the answer has no `bytes`")?;
    let fastest = peer::numbers(&answer, "rounds").into_iter().fold(f64::MAX, f64::min);
    report.aim("sources, one core", bytes / 1e6 / fastest, "MB/s", Goal::AtLeast(100.0));
    let answer = bench(hostile(), "1")?;
    let slowest = answer["slowest"].as_f64().context("the answer has no `slowest`")?;
    report.aim("1 MB of one piece repeated, slowest", slowest, "s", Goal::AtMost(1.0));
    report.detail = json!({"files": files.len(), "bytes": bytes, "seed": args.seed});
    Ok(report)
}

/// Reads the labelled lines of all files in `folder`.
fn labelled(folder: &Path) -> Result<Vec<Labelled>> {
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
fn count(rows: &[Labelled], redacted: &[String], report: &mut Report) {
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

fn percent(part: usize, whole: usize) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}

/// Returns the redacted texts of an answer.
fn redacted(answer: &Value, count: usize) -> Result<Vec<String>> {
    let texts = answer["redacted"].as_array().into_iter().flatten();
    let texts: Vec<String> = texts.filter_map(|text| text.as_str().map(str::to_owned)).collect();
    if texts.len() != count {
        bail!("{count} texts were given, {} came back", texts.len());
    }
    Ok(texts)
}

/// A password in a file.
struct Written {
    generator: &'static str,
    format: &'static str,
    before: String,
    secret: String,
    after: &'static str,
}

impl Written {
    fn text(&self) -> String {
        [&self.before, &self.secret, self.after].concat()
    }

    /// Returns whether one mark replaced the whole password and nothing else.
    fn is_taken(&self, redacted: &str) -> bool {
        let middle = redacted.strip_prefix(&self.before).and_then(|rest| rest.strip_suffix(self.after));
        let mark = middle.and_then(|mark| mark.strip_prefix("[REDACTED:")?.strip_suffix(']'));
        mark.is_some_and(|mark| !mark.contains('['))
    }
}

/// The password generators, each with its name, its special characters, and its shortest and longest length.
const GENERATORS: [(&str, &str, usize, usize); 5] = [
    ("Amazon RDS", "!#$%&'()*+,-.:;<=>?[\\]^_`{|}~", 16, 30),
    ("AWS Secrets Manager", "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", 32, 32),
    ("Terraform", "!@#$%&*()-_=+[]{}<>:?", 16, 24),
    ("KeePass", "!\"#$%&()*+,-./:;<=>?@[\\]^_{|}~", 20, 20),
    ("WordPress", "!@#$%^&*()-_ []{}<>~`+=,.;:/?|", 64, 64),
];

/// Returns files with `count` passwords of each generator.
fn generated(count: usize, random: &mut Random) -> Vec<Written> {
    let mut written = Vec::new();
    for (generator, signs, shortest, longest) in GENERATORS {
        let alphabet: Vec<char> =
            ('a'..='z').chain('A'..='Z').chain('0'..='9').chain(signs.chars()).collect();
        for _ in 0..count {
            let length = shortest + random.below(longest - shortest + 1);
            let password: String = (0..length).map(|_| *random.pick(&alphabet)).collect();
            let name = if generator == "WordPress" { "SECURE_AUTH_KEY" } else { "DB_PASSWORD" };
            for (format, before, escaped, after) in [
                ("JSON", "{\"%\": \"", "\"\\", "\"}\n"),
                ("YAML", "db:\n  %: \"", "\"\\", "\"\n"),
                (".env", "A=1\n%=\"", "\"\\$`", "\"\nB=2\n"),
                ("HCL", "  % = \"", "\"\\", "\"\n"),
                ("PHP", "<?php\ndefine('%', '", "'\\", "');\n"),
            ] {
                let escape = |sign: char| escaped.contains(sign).then_some('\\').into_iter().chain([sign]);
                let secret = password.chars().flat_map(escape).collect();
                written.push(Written { generator, format, before: before.replace('%', name), secret, after });
            }
        }
    }
    written
}

/// Returns texts of 1 MB, each of which repeats one piece, so that the rules have to read far.
fn hostile() -> Vec<String> {
    let pieces = [
        " ",
        "a",
        "A",
        "0",
        "\n",
        "\t",
        "-",
        "_",
        "=",
        "/",
        "\"",
        "'",
        "\\",
        "(",
        "{",
        "[",
        "<",
        "$",
        "%",
        "é",
        "密",
        "aB3#",
        "password",
        "password=",
        "password=\"",
        "password: ",
        "password ",
        "pw=",
        "pass:",
        "token=",
        "secret=\"",
        "api_key=",
        "auth",
        "key=",
        " -p",
        " -p=\"",
        " -u a:",
        "redis-cli -a ",
        "identified by '",
        "密码：",
        "пароль: ",
        "://",
        "a://b:c",
        "bearer ",
        "eyJ",
        "eyJ.",
        "<private>",
        "-----BEGIN ",
        "[REDACTED:",
        "password=${",
        "password={{",
        "password=$(",
        "a:5432:",
    ];
    pieces.iter().map(|piece| piece.repeat(1_000_000 / piece.len())).collect()
}
