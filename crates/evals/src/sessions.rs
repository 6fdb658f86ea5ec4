//! `evals sessions`: how long an import of past sessions takes until a search finds them, and how much memory it uses.
//!
//! The transcripts come from the generator that the importers' tests use. They are as large as real ones, and consist
//! mostly of tool output that is not imported. The repository has commits from the same time, so linking is part of the
//! measured work. The program runs without the model: only lexical search is measured.

use std::fs::File;
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::calls;
use crate::client::{Era, Place, Tiro};
use crate::stats::{Goal, Report};
use crate::talk::{Repo, feed};

#[path = "../../capture/src/import/tests/generate.rs"]
mod generate;

/// What to measure.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Megabytes of transcripts
    #[arg(long, default_value_t = 50)]
    mb: usize,
    /// Sessions to spread them over
    #[arg(long, default_value_t = 20)]
    sessions: usize,
    /// Commits made during the sessions
    #[arg(long, default_value_t = 500)]
    commits: usize,
}

/// The id and the directory that the generator writes into a session, which are replaced.
const MADE_ID: &str = "ef4aeb67-26c6-4d6f-b01e-48c35bd7ae94";
const MADE_DIRECTORY: &str = "/home/dev/project";

/// When generated sessions begin, in seconds since 1970: 2026-01-01.
const BEGAN: usize = 1_767_225_600;

/// A word that occurs in only one prompt.
const PLANTED: &str = "vellichorometer";

/// Measures and returns the report.
pub fn run(args: &Args, tiro: &Tiro) -> Result<Report> {
    let root = tempfile::tempdir().context("making a temporary directory")?;
    let root = root.path().canonicalize()?;
    let tiro = &tiro.without_model(&root)?;
    let place = Place::create(&root)?;
    let repo = Repo::create(&place.project)?;
    let mut report = Report::default();
    let bytes = transcripts(args, &place)?;
    commits(args, &repo)?;
    tiro.run(&place, &["import", "git"], calls::LONG)?;

    let mut server = tiro.serve(&place, Era::Session)?;
    server.request("tools/list", json!({}))?;
    thread::sleep(Duration::from_millis(500));
    let idle = server.resident_mib().context("there is no /proc to read memory from")?;
    server.close()?;

    let first = import(tiro, &place, &root)?;
    let answer = &first.answer;
    let imported = answer["imported"].as_u64().unwrap_or(0);
    if answer["transcripts"].as_u64() != Some(args.sessions.max(1) as u64) {
        bail!("{} transcripts were made, the import says {answer}", args.sessions);
    }
    let mut server = tiro.serve(&place, Era::Session)?;
    let found = calls::search(&mut server, PLANTED, 5)?;
    let is_found = found.hits().first().is_some_and(|hit| hit["text"].to_string().contains(PLANTED));
    server.close()?;
    let second = import(tiro, &place, &root)?;

    report.add("transcripts", bytes as f64 / 1e6, "MB");
    report.add("entries", imported as f64, "");
    let goal = Goal::AtMost(20.0 * bytes as f64 / 50e6);
    report.aim("import", first.seconds, "s", goal);
    report.add("rate", bytes as f64 / 1e6 / first.seconds, "MB/s");
    report.add("RSS of an idle server", idle, "MiB");
    report.aim(
        "more than that while importing, at its peak",
        first.peak_mib - idle,
        "MiB",
        Goal::AtMost(64.0),
    );
    report.add("of its own, without the pages of the program's file", first.private_mib, "MiB");
    report.add("first search", found.ms(), "ms");
    report.must_be_zero("planted words not found", usize::from(!is_found));
    report.add("import again", second.seconds, "s");
    let again = second.answer["imported"].as_u64().unwrap_or(1);
    report.must_be_zero("entries stored by importing again", usize::try_from(again)?);
    report.add("store", size(&place.data_dir.join("projects"))? as f64 / 1e6, "MB");
    report.detail = json!({"first": answer, "second": second.answer, "peak_mib": first.peak_mib});
    Ok(report)
}

/// Writes the transcripts into the folder where Claude Code keeps them, and returns their size.
fn transcripts(args: &Args, place: &Place) -> Result<usize> {
    let directory = calls::path_text(&place.project)?;
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let folder = place.home().join(".claude/projects").join(directory.chars().map(plain).collect::<String>());
    std::fs::create_dir_all(&folder)?;
    let count = args.sessions.max(1);
    let mut bytes = 0;
    for number in 0..count {
        let id = format!("{number:08x}-0000-4000-8000-0123456789ab");
        let made = generate::claude_code(number as u64 + 1, args.mb * 1_000_000 / count);
        if made.prompts == 0 || made.answers == 0 || made.calls == 0 {
            bail!("the generator wrote an empty session");
        }
        let text = String::from_utf8(made.bytes)?.replace(MADE_ID, &id).replace(MADE_DIRECTORY, directory);
        let mut text = text;
        if number == count / 2 {
            let line = json!({"type": "user", "uuid": "planted-0000-4000-8000-0123456789ab", "sessionId": id,
                "cwd": directory, "timestamp": "2026-01-01T12:00:00Z",
                "message": {"role": "user", "content": format!("what about the {PLANTED} then?")}});
            text += &format!("{line}\n");
        }
        bytes += text.len();
        std::fs::write(folder.join(format!("{id}.jsonl")), text)?;
    }
    Ok(bytes)
}

/// Makes commits, one every quarter of an hour from the time when the sessions begin.
fn commits(args: &Args, repo: &Repo) -> Result<()> {
    let mut history = String::new();
    for number in 0..args.commits.max(1) {
        let who = format!("Ada <ada@example.org> {} +0000", BEGAN + number * 900);
        let (message, text) = (format!("Change part {number}"), format!("{number}\n"));
        history += &format!(
            "commit refs/heads/main\nauthor {who}\ncommitter {who}\ndata {}\n{message}\n\
             M 100644 inline src/cache.rs\ndata {}\n{text}\n",
            message.len(),
            text.len()
        );
    }
    let output = feed(repo.command(0, &["fast-import", "--quiet"]), &history)?;
    if !output.status.success() {
        bail!("`git fast-import` failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    repo.git(0, &["reset", "--quiet", "--hard", "main"]).map(drop)
}

/// A finished import.
struct Import {
    answer: Value,
    seconds: f64,
    peak_mib: f64,
    /// The highest private memory in MiB.
    private_mib: f64,
}

/// Imports the sessions and watches how much memory that takes.
fn import(tiro: &Tiro, place: &Place, root: &Path) -> Result<Import> {
    let output = root.join("import.json");
    let mut command = tiro.command(place, &["import", "claude-code", "--json"]);
    command.stdin(Stdio::null()).stdout(File::create(&output)?).stderr(Stdio::null());
    let started = Instant::now();
    let mut child = command.spawn().context("starting the import")?;
    let (mut peak_mib, mut private_mib) = (0.0, 0.0_f64);
    let status = loop {
        // The high-water mark only rises, so the last reading before the end is the peak.
        if let Some(mib) = memory_mib(child.id(), "VmHWM:") {
            peak_mib = mib;
        }
        private_mib = private_mib.max(memory_mib(child.id(), "RssAnon:").unwrap_or(0.0));
        if let Some(status) = child.try_wait()? {
            break status;
        }
        thread::sleep(Duration::from_millis(2));
    };
    let seconds = started.elapsed().as_secs_f64();
    let text = std::fs::read_to_string(&output)?;
    if !status.success() {
        bail!("the import ended with {status}");
    }
    let answer = serde_json::from_str(&text).with_context(|| format!("reading `{text}`"))?;
    Ok(Import { answer, seconds, peak_mib, private_mib })
}

fn memory_mib(process: u32, field: &str) -> Option<f64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    Some(line.split_whitespace().next()?.parse::<f64>().ok()? / 1024.0)
}

/// Returns the bytes of all files below a folder.
fn size(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        bytes += if metadata.is_dir() { size(&entry.path())? } else { metadata.len() };
    }
    Ok(bytes)
}
