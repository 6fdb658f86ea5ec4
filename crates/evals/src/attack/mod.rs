//! `evals attack`: whether hostile repositories, texts, files and models can read, change or delay anything they should not.
//!
//! Hostile repositories, such as an unpacked archive can contain, try to reach the user's files and other projects'
//! memories, and to use up the machine's time and memory. Every tool and every command runs in each of them. In
//! addition, three kinds of texts are stored: private keys as tools print them, texts that imitate the frame of an
//! answer, and texts that are slow to process. Last, hostile files and a hostile model take part in consults. The
//! command fails if anything is shown, lost or changed that must not be.

mod consult;
mod frames;
mod ground;
mod keys;
mod links;
mod prompts;
mod repositories;
mod scene;
mod secret_files;
mod special;
mod surfaces;
mod texts;

use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::json;

use crate::client::{Era, Place, Tiro};
use crate::random::Random;
use crate::stats::{Goal, Report};
use ground::{ENVIRONMENT_WORD, FORBIDDEN, Ground};
use repositories::HOSTILE;
use surfaces::Seen;

/// The parts and sizes of the attack.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Only these parts
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Part>,
    /// Only hostile repositories whose name contains this text
    #[arg(long)]
    repository: Option<String>,
    /// A shorter run
    #[arg(long)]
    short: bool,
    /// Seed of the random choices
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// A part of the attack.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// Hostile repositories, every tool and command in each
    Repositories,
    /// Private keys as tools print them
    Keys,
    /// Texts that imitate the frame of an answer
    Frames,
    /// Texts that are slow to process
    Texts,
    /// Files, attachments and functions of a consult
    Consult,
}

/// The most memory that a process may use, in MiB.
const MEMORY_MIB: f64 = 400.0;

/// Runs the attack and returns the report.
pub fn run(args: &Args, tiro: &Tiro) -> Result<Report> {
    let mut tiro = tiro.clone();
    // The environment is as secret as a file, so no answer may show it.
    tiro.environment.push(("SERVICE_NAME".into(), ENVIRONMENT_WORD.into()));
    let wanted = |part| args.only.is_empty() || args.only.contains(&part);
    let detail = json!({"seed": args.seed, "short": args.short});
    let mut report = Report { detail, ..Report::default() };
    if wanted(Part::Repositories) {
        attack_by_repositories(args, &tiro, &mut report)?;
    }
    if wanted(Part::Keys) {
        attack_by_keys(args, &tiro, &mut report)?;
    }
    if wanted(Part::Frames) {
        attack_by_frames(&tiro, &mut report)?;
    }
    if wanted(Part::Texts) {
        attack_by_texts(args, &tiro, &mut report)?;
    }
    if wanted(Part::Consult) {
        consult::run(args.short, args.seed, &tiro, &mut report)?;
    }
    Ok(report)
}

fn attack_by_repositories(args: &Args, tiro: &Tiro, report: &mut Report) -> Result<()> {
    let root = tempfile::tempdir().context("making a temporary directory")?;
    let root = root.path().canonicalize()?;
    let data_dir = root.join("owner/data");
    std::fs::create_dir_all(&data_dir)?;
    std::fs::create_dir_all(root.join("owner/home"))?;
    let ground = Ground::create(&root, &data_dir, tiro)?;
    let mut seen = Seen::default();
    let wanted = HOSTILE
        .iter()
        .enumerate()
        .filter(|(_, (name, _))| args.repository.as_ref().is_none_or(|part| name.contains(part.as_str())));
    let mut repositories = 0;
    for (number, (name, make)) in wanted {
        let path = root.join(format!("attack-{number}/repository"));
        std::fs::create_dir_all(path.parent().expect("it has one"))?;
        let directory = make(&ground, &path).with_context(|| format!("making the repository `{name}`"))?;
        seen.visit(tiro, &data_dir, &directory, name, args.short)
            .with_context(|| format!("in the repository `{name}`"))?;
        for file in ground.changed_files()? {
            seen.shown
                .entry("a file outside, changed")
                .or_default()
                .push(format!("{name}: {}", file.display()));
        }
        for text in ground.changed_memories(tiro, &data_dir)? {
            seen.shown.entry("a memory changed").or_default().push(format!("{name}: {text}"));
        }
        repositories += 1;
        let _ = std::fs::remove_dir_all(path.parent().expect("it has one"));
    }
    report.add("hostile repositories", repositories as f64, "");
    report.add("  tools called and commands run in them", seen.calls as f64, "");
    report.add("  of these answered with an error", seen.errors as f64, "");
    let count = |kind: &str| seen.shown.get(kind).map_or(0, Vec::len);
    for (_, kind) in FORBIDDEN {
        report.must_be_zero(format!("answers, errors and logs that show {kind}"), count(kind));
    }
    report.must_be_zero("files outside that were changed", count("a file outside, changed"));
    report.must_be_zero("other projects' memories changed", count("a memory changed"));
    report.must_be_zero("stored texts from outside", stored(&data_dir)?.len());
    report.must_be_zero("without an answer, or with a panic", seen.lost.len());
    report.must_be_zero("answers with control characters", seen.raw.len());
    report.aim("slowest answer", seen.slowest.0, "s", Goal::AtMost(10.0));
    report.aim("largest process", seen.largest.0, "MiB", Goal::AtMost(MEMORY_MIB));
    report.broken |= seen.slowest.0 > 10.0 || seen.largest.0 > MEMORY_MIB;
    for said in seen.shown.values().flatten().chain(&seen.lost).chain(&seen.raw) {
        eprintln!("{}", said.escape_debug());
    }
    eprintln!("slowest: {}; largest: {}", seen.slowest.1, seen.largest.1);
    report.detail["repositories"] = json!({
        "shown": seen.shown, "lost": seen.lost, "raw": seen.raw, "slowest": seen.slowest, "largest": seen.largest,
    });
    Ok(())
}

/// Returns the files of the data directory that contain the word of the files outside, of the environment or of the
/// private history.
fn stored(data_dir: &std::path::Path) -> Result<Vec<std::path::PathBuf>> {
    let words = FORBIDDEN.iter().map(|(word, _)| *word).filter(|word| *word != ground::MEMORY_WORD);
    let words: Vec<&str> = words.collect();
    let mut found = Vec::new();
    each_file(data_dir, &mut |path, bytes| {
        let text = String::from_utf8_lossy(bytes);
        if words.iter().any(|word| text.contains(word)) {
            eprintln!("stored in {}", path.display());
            found.push(path.to_owned());
        }
    })?;
    Ok(found)
}

/// Shows `look` the path and the bytes of each regular file below `folder`.
fn each_file(folder: &std::path::Path, look: &mut dyn FnMut(&std::path::Path, &[u8])) -> Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            each_file(&entry.path(), look)?;
        } else if kind.is_file() {
            look(&entry.path(), &std::fs::read(entry.path())?);
        }
    }
    Ok(())
}

fn attack_by_keys(args: &Args, tiro: &Tiro, report: &mut Report) -> Result<()> {
    let root = tempfile::tempdir().context("making a temporary directory")?;
    let place = Place::create(root.path())?;
    let mut server = tiro.serve(&place, Era::Session)?;
    let mut random = Random::new(args.seed);
    let rounds = if args.short { 4 } else { 20 };
    let (mut lines, mut left, mut detail) = (0, 0, Vec::new());
    for (name, print) in keys::PRINTS {
        let mut left_here = 0;
        for round in 0..rounds {
            let key = keys::made_up(&mut random);
            let printed = print(&key);
            let text =
                format!("This is what it printed:\n\n{printed}\nAnd so it failed at {round} of the way.");
            let answer = server.tool("store_memory", json!({"text": text, "type": "error_log"}))?;
            let id = answer.structured()["id"].as_str().context("store_memory names no id")?.to_owned();
            let shown = server.tool("expand_detail", json!({"id": id, "max_tokens": 20000}))?;
            let shown = shown.result.to_string();
            left_here += keys::lines_left(&key, &shown);
            lines += key.len() - 2;
            if !shown.contains("And so it failed") {
                detail.push(format!("{name}: the text after the key is gone"));
            }
        }
        if left_here > 0 {
            detail.push(format!("{name}: {left_here} lines left"));
        }
        left += left_here;
    }
    server.close()?;
    detail.iter().for_each(|line| eprintln!("{line}"));
    report.add("private keys, ways of printing them", keys::PRINTS.len() as f64, "");
    report.add("  lines of their bodies", lines as f64, "");
    report.must_be_zero("  lines of their bodies left", left);
    report.must_be_zero(
        "  texts after them lost",
        detail.iter().filter(|line| line.ends_with("is gone")).count(),
    );
    report.detail["keys"] = json!(detail);
    Ok(())
}

fn attack_by_frames(tiro: &Tiro, report: &mut Report) -> Result<()> {
    let root = tempfile::tempdir().context("making a temporary directory")?;
    let place = Place::create(root.path())?;
    let forged = frames::forged_lines(tiro, &place, Duration::from_secs(20))?;
    forged.iter().for_each(|line| eprintln!("forged: {}", line.escape_debug()));
    report.must_be_zero("lines of quoted text that look like the frame's", forged.len());
    report.detail["frames"] = json!(forged);
    Ok(())
}

fn attack_by_texts(args: &Args, tiro: &Tiro, report: &mut Report) -> Result<()> {
    // Only saving is timed; the texts are embedded later.
    let tiro = &Tiro { model_dir: Some(std::path::PathBuf::from("/nowhere")), ..tiro.clone() };
    let bytes = if args.short { SHORT_TEXT } else { LONG_TEXT };
    let texts = texts::all(bytes);
    let mut slowest = [(0.0, String::new()), (0.0, String::new())];
    let mut slow = Vec::new();
    let mut largest = (0.0, String::new());
    let mut largest_process = (0.0, String::new());
    for (name, text) in &texts {
        let root = tempfile::tempdir().context("making a temporary directory")?;
        let place = Place::create(root.path())?;
        let mut server = tiro.serve(&place, Era::Session)?;
        let mut saved = 0;
        for copy in 0..COPIES {
            // A text of only white space is refused.
            let text = format!("It printed this:\n{text}\nand ended, {copy}.");
            saved += text.len();
            let message = json!({"id": copy.to_string(), "role": "user", "text": text});
            let answer = server
                .tool("save_messages", json!({"session_id": "hostile", "messages": [message]}))
                .with_context(|| format!("saving `{name}`"))?;
            keep_most(&mut slowest[0], answer.ms(), name);
        }
        for (tool, arguments) in [
            ("search_project_memory", json!({"query": "what was decided about the password"})),
            ("expand_detail", json!({"id": "hostile#0"})),
            ("retrieve_context", json!({"query": "what was decided", "session_id": "hostile"})),
            ("summarize_conversation", json!({"session_id": "hostile"})),
        ] {
            let answer = server.try_tool(tool, arguments).with_context(|| format!("`{tool}` of `{name}`"))?;
            keep_most(&mut slowest[1], answer.ms(), &format!("{tool} of {name}"));
            if answer.ms() > MOST_MS / 2.0 {
                slow.push(format!("{:.0} ms: {tool} of {name}", answer.ms()));
            }
        }
        keep_most(&mut largest_process, server.peak_mib().unwrap_or(0.0), name);
        server.close()?;
        keep_most(&mut largest, disk(&place.data_dir)? / saved as f64, name);
    }
    let size = bytes as f64 / f64::from(1 << 20);
    report.add("hostile texts", texts.len() as f64, "");
    report.add("  length of each", size, "MiB");
    report.aim("  slowest to save", slowest[0].0, "ms", Goal::AtMost(MOST_MS));
    report.aim("  slowest to search, open, assemble, summarise", slowest[1].0, "ms", Goal::AtMost(MOST_MS));
    report.add("  largest process", largest_process.0, "MiB");
    report.broken |= slowest[0].0 > MOST_MS || slowest[1].0 > MOST_MS;
    // Even an empty store takes some hundred kilobytes, and its log up to four megabytes.
    if !args.short {
        report.aim(
            "  most disk, against the length of what was saved",
            largest.0,
            "times",
            Goal::AtMost(4.0),
        );
        report.broken |= largest.0 > 4.0;
    }
    slow.iter().for_each(|line| eprintln!("{line}"));
    eprintln!("slowest: {slowest:?}; most disk: {largest:?}; largest process: {largest_process:?}");
    report.detail["texts"] = json!({"slowest": slowest, "disk": largest, "memory": largest_process});
    Ok(())
}

/// The longest time that a call with a hostile text may take, in milliseconds.
const MOST_MS: f64 = 1000.0;

/// How often each text is saved. With several copies, each is also indexed as the context of others.
const COPIES: usize = 4;

/// The lengths of hostile texts in bytes.
const LONG_TEXT: usize = 1 << 20;
const SHORT_TEXT: usize = 64 << 10;

fn keep_most(most: &mut (f64, String), value: f64, what: &str) {
    if value > most.0 {
        *most = (value, what.to_owned());
    }
}

/// Returns the bytes of all files below `folder`.
fn disk(folder: &std::path::Path) -> Result<f64> {
    let mut bytes = 0.0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        bytes += match entry.file_type()?.is_dir() {
            true => disk(&entry.path())?,
            false => entry.metadata()?.len() as f64,
        };
    }
    Ok(bytes)
}
