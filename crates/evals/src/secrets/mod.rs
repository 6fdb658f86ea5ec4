//! `evals secrets`: how many secrets redaction replaces, how much else it replaces, and how fast.
//!
//! Secrets are drawn at random and stand in templates: tokens of vendors, files and commands, prose in eight languages,
//! and syntaxes in which a name and its value are not simply next to each other. The templates were written without
//! the rules of redaction, so they measure what the rules were not made for. A secret is gone if no six characters
//! in a row of its random parts are left (of a wallet phrase: no word). Each template also has harmless look-alikes: the
//! same text with a placeholder, a reference, a call or a hash in the place of the secret. One is intact if nothing in
//! the whole text was changed. `--list` prints the texts that fail, `--seed` draws other secrets.
//!
//! Besides: labelled lines of a data set, passwords of generators in five formats, and the speed.

mod harmless;
mod labelled;
mod passwords;
mod tally;
mod template;
mod values;

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use self::passwords::Written;
use self::tally::{Bullet, Left, percent};
use self::template::{Sample, Template};
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
    /// Secrets of each template
    #[arg(long, default_value_t = 4)]
    samples: usize,
    /// Measure only the templates, of the class or bullet whose name contains this [default: everything]
    #[arg(long, num_args = 0..=1, default_missing_value = "")]
    templates: Option<String>,
    /// Print the texts of the templates whose secret is not gone, and the look-alikes that were changed
    #[arg(long)]
    list: bool,
    /// Seed of everything that is drawn
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Runs `tiro bench redact` with texts and a number of rounds, and returns what it prints.
type Bench<'a> = dyn Fn(Vec<String>, &str) -> Result<Value> + 'a;

/// The share of the secrets of each class that should be gone, in percent.
const GOALS: [(&str, f64); 4] = [("vendor", 98.0), ("files", 95.0), ("prose", 85.0), ("syntaxes", 90.0)];

/// The templates that are blocks: class, bullet, text.
const BLOCKS: [(&str, &str, &str); 7] = [
    ("files", "files", include_str!("templates/files.txt")),
    ("files", "commands", include_str!("templates/commands.txt")),
    ("syntaxes", "between name and value", include_str!("templates/between.txt")),
    ("syntaxes", "languages", include_str!("templates/languages.txt")),
    ("syntaxes", "protocols and tools", include_str!("templates/tools.txt")),
    ("syntaxes", "output of commands", include_str!("templates/output.txt")),
    ("syntaxes", "wallet phrases", include_str!("templates/phrases.txt")),
];

/// The templates that are prose: language, text.
const PROSE: [(&str, &str); 8] = [
    ("English", include_str!("templates/english.txt")),
    ("German", include_str!("templates/german.txt")),
    ("French", include_str!("templates/french.txt")),
    ("Spanish", include_str!("templates/spanish.txt")),
    ("Chinese", include_str!("templates/chinese.txt")),
    ("Italian", include_str!("templates/italian.txt")),
    ("Russian", include_str!("templates/russian.txt")),
    ("Japanese", include_str!("templates/japanese.txt")),
];

/// Measures and returns the report.
pub fn run(args: &Args, tiro: &Tiro) -> Result<Report> {
    let root = tempfile::tempdir().context("making a temporary directory")?;
    let place = Place::create(root.path())?;
    let bench = |texts: Vec<String>, rounds: &str| {
        let file = root.path().join("texts.jsonl");
        suite::write_lines(&file, texts)?;
        peer::bench(tiro, &place, &["redact", "--texts", path_text(&file)?, "--rounds", rounds])
    };
    let mut report = Report { detail: json!({"seed": args.seed}), ..Report::default() };
    measure_templates(args, &bench, &mut report)?;
    if args.templates.is_none() {
        measure_others(args, &bench, &mut report)?;
    }
    Ok(report)
}

/// Returns all templates.
fn templates() -> Result<Vec<Template>> {
    let frames = Template::of_blocks("vendor", "frames", include_str!("templates/frames.txt"))?;
    let mut templates = Template::of_vendors(&frames);
    for (class, bullet, text) in BLOCKS {
        templates.extend(Template::of_blocks(class, bullet, text)?);
    }
    for (language, text) in PROSE {
        templates.extend(Template::of_lines(language, text)?);
    }
    Ok(templates)
}

/// Counts the secrets that are gone and the look-alikes that are intact, and prints them by class and bullet.
fn measure_templates(args: &Args, bench: &Bench<'_>, report: &mut Report) -> Result<()> {
    let wanted = args.templates.as_deref().unwrap_or_default();
    let mut templates = templates()?;
    templates.retain(|template| template.class.contains(wanted) || template.bullet.contains(wanted));
    if templates.is_empty() {
        bail!("no class or bullet contains `{wanted}`");
    }
    let mut random = Random::new(args.seed);
    let mut samples: Vec<(&Template, Sample)> = Vec::new();
    let mut look_alikes: Vec<(&Template, String)> = Vec::new();
    for template in &templates {
        for _ in 0..args.samples {
            samples.push((template, template.sample(&mut random)?));
        }
        look_alikes.extend(template.look_alikes(&mut random)?.into_iter().map(|text| (template, text)));
    }
    let texts = samples.iter().map(|(_, sample)| sample.text.clone()).collect();
    let of_samples = redacted(&bench(texts, "1")?, samples.len())?;
    let texts = look_alikes.iter().map(|(_, text)| text.clone()).collect();
    let answer = bench(texts, "3")?;
    let of_look_alikes = redacted(&answer, look_alikes.len())?;

    let mut bullets: Vec<Bullet> = Vec::new();
    for template in &templates {
        if bullets
            .last()
            .is_none_or(|bullet| (bullet.class, bullet.name) != (template.class, template.bullet))
        {
            bullets.push(Bullet::new(template.class, template.bullet));
        }
        let bullet = bullets.last_mut().context("a bullet was just added")?;
        bullet.templates += 1;
    }
    let place = |template: &Template| {
        bullets.iter().position(|bullet| (bullet.class, bullet.name) == (template.class, template.bullet))
    };
    let places: Vec<Option<usize>> = samples.iter().map(|(template, _)| place(template)).collect();
    let of_harmless: Vec<Option<usize>> = look_alikes.iter().map(|(template, _)| place(template)).collect();
    for (((template, sample), redacted), place) in samples.iter().zip(&of_samples).zip(places) {
        let left = Left::of(sample, redacted);
        bullets[place.context("each template has a bullet")?].count(&template.name, left);
        if args.list && left != Left::Nothing {
            show(template, &format!("left: {}", sample.secret.text), &sample.text, redacted);
        }
    }
    for (((template, text), redacted), place) in look_alikes.iter().zip(&of_look_alikes).zip(of_harmless) {
        let counts = &mut bullets[place.context("each template has a bullet")?].look_alikes;
        counts.0 += 1;
        counts.1 += usize::from(text == redacted);
        if args.list && text != redacted {
            show(template, "a look-alike was changed", text, redacted);
        }
    }
    tally::print(&bullets);
    aim(&bullets, report);
    report.aim("harmless look-alikes, one core", speed(&answer)?, "MB/s", Goal::AtLeast(100.0));
    Ok(())
}

/// Prints the lines of a text that redaction changed or, if it changed none, the text.
fn show(template: &Template, what: &str, text: &str, redacted: &str) {
    println!("--- {}, {}, {}; {what}\n{text}", template.class, template.bullet, template.name);
    let before: Vec<&str> = text.lines().collect();
    for line in redacted.lines().filter(|line| !before.contains(line)) {
        println!("  => {line}");
    }
}

/// Adds the shares of each class, with its goal, and of each bullet.
fn aim(bullets: &[Bullet], report: &mut Report) {
    for (class, goal) in GOALS {
        let of_class = || bullets.iter().filter(|bullet| bullet.class == class);
        let sum = |count: fn(&Bullet) -> usize| of_class().map(count).sum::<usize>();
        let secrets = sum(|bullet| bullet.secrets.0);
        if secrets == 0 {
            continue;
        }
        let gone = percent(sum(|bullet| bullet.secrets.1), secrets);
        report.aim(format!("{class}: secrets gone"), gone, "%", Goal::AtLeast(goal));
        let intact = percent(sum(|bullet| bullet.look_alikes.1), sum(|bullet| bullet.look_alikes.0));
        report.add(format!("{class}: look-alikes intact"), intact, "%");
        for bullet in of_class() {
            report.add(format!("  {}: gone", bullet.name), percent(bullet.secrets.1, bullet.secrets.0), "%");
        }
    }
}

/// Measures the labelled lines, the passwords of generators, and the speed.
fn measure_others(args: &Args, bench: &Bench<'_>, report: &mut Report) -> Result<()> {
    if let Some(folder) = &args.creddata {
        let rows = labelled::read(folder)?;
        let answer = bench(rows.iter().map(|row| row.text.clone()).collect(), "1")?;
        labelled::count(&rows, &redacted(&answer, rows.len())?, report);
    }
    let written = passwords::generated(args.passwords, &mut Random::new(args.seed));
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
    report.aim("sources, one core", speed(&answer)?, "MB/s", Goal::AtLeast(100.0));
    report.detail["files"] = files.len().into();
    report.detail["bytes"] = answer["bytes"].clone();
    let answer = bench(passwords::hostile(), "1")?;
    let slowest = answer["slowest"].as_f64().context("the answer has no `slowest`")?;
    report.aim("1 MB of one piece repeated, slowest", slowest, "s", Goal::AtMost(1.0));
    Ok(())
}

/// Returns the speed of the fastest round of `answer`, in MB/s.
fn speed(answer: &Value) -> Result<f64> {
    let bytes = answer["bytes"].as_f64().context("the answer has no `bytes`")?;
    let fastest = peer::numbers(answer, "rounds").into_iter().fold(f64::MAX, f64::min);
    Ok(bytes / 1e6 / fastest)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_text_has_its_secret_once_and_each_bullet_many_templates() {
        let templates = templates().unwrap();
        let mut random = Random::new(9);
        let mut of_bullets: BTreeMap<(&str, &str), usize> = BTreeMap::new();
        for template in &templates {
            *of_bullets.entry((template.class, template.bullet)).or_default() += 1;
            let sample = template.sample(&mut random).unwrap();
            let what = format!("{}, {}, {}", template.class, template.bullet, template.name);
            assert_eq!(sample.text.matches(&sample.secret.text).count(), 1, "{what}: {}", sample.text);
            assert_eq!(Left::of(&sample, &sample.text), Left::All, "{what}: {}", sample.text);
            assert_eq!(Left::of(&sample, &sample.blank), Left::Nothing, "{what}: {}", sample.blank);
            assert!(!sample.text.contains(['⟦', '⟧', '⟨', '⟩']), "{what}: {}", sample.text);
            let look_alikes = template.look_alikes(&mut random).unwrap();
            assert!(!look_alikes.is_empty() && !look_alikes.contains(&sample.text), "{what}");
        }
        assert_eq!(of_bullets.len(), 1 + BLOCKS.len() + PROSE.len());
        assert!(of_bullets.values().all(|count| *count >= 25), "{of_bullets:?}");
    }

    #[test]
    fn the_seed_decides() {
        let draw = |seed| templates().unwrap()[7].sample(&mut Random::new(seed)).unwrap().text;
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }
}
