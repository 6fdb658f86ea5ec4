//! Whether `explain_lines` names the commit and the session of lines that are drawn at random.
//!
//! The commit is compared with that of `git blame -w -M`. The session is compared with those that led to the commit of
//! git. It is also wrong to name a session if none led to the commit.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::json;

use super::percent;
use crate::calls::git;
use crate::client::Server;
use crate::random::Random;
use crate::stats::{Goal, Report};

/// How many lines are drawn.
const LINES: usize = 200;

/// The largest file from which lines are drawn, in bytes.
const LARGEST: u64 = 1 << 20;

/// Draws lines of the work tree and compares the answers about them. `sessions` are the sessions that led to each commit
/// whose sessions are known, by its full id.
pub(super) fn measure(
    server: &mut Server,
    project: &Path,
    sessions: &HashMap<String, Vec<String>>,
    seed: u64,
    (name, report): (&str, &mut Report),
) -> Result<()> {
    let mut lines: Vec<(String, usize)> = Vec::new();
    for file in git(project, &["ls-files"])?.lines() {
        let path = project.join(file);
        let is_small = path.symlink_metadata().is_ok_and(|found| found.is_file() && found.len() <= LARGEST);
        let Some(text) = Some(path).filter(|_| is_small).and_then(|path| std::fs::read_to_string(path).ok())
        else {
            continue;
        };
        let told = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        lines.extend(told.map(|(number, _)| (file.to_owned(), number + 1)));
    }
    let mut random = Random::new(seed);
    let (mut right, mut all, mut with, mut named, mut both) = (0, 0, 0, 0, 0);
    let mut wrong = Vec::new();
    while all < LINES && !lines.is_empty() {
        let (file, line) = lines.swap_remove(random.below(lines.len()));
        let range = format!("{line},{line}");
        let blamed = git(project, &["blame", "-w", "-M", "--porcelain", "-L", &range, "HEAD", "--", &file])?;
        let sha = blamed.split_whitespace().next().context("git blames no commit")?.to_owned();
        let answer = server.tool("explain_lines", json!({"path": file, "lines": line.to_string()}))?;
        let group = answer.structured()["groups"][0].clone();
        all += 1;
        right += usize::from(group["commit"] == *sha);
        if group["commit"] != *sha {
            wrong.push(format!("{file}:{line}: {}, git {}", group["commit"], &sha[..12]));
        }
        let truth = sessions.get(&sha).map(Vec::as_slice).unwrap_or_default();
        let session = group["session"].as_str();
        let is_right = session.is_some_and(|session| truth.iter().any(|each| each == session));
        with += usize::from(!truth.is_empty());
        named += usize::from(session.is_some());
        both += usize::from(is_right);
        if session.is_some() != is_right || (!truth.is_empty() && session.is_none()) {
            wrong.push(format!("{file}:{line} of {}: {session:?}, right {truth:?}", &sha[..12]));
        }
    }
    report.add(format!("{name}: lines"), all as f64, "");
    report.aim(format!("{name}: the commit of git"), percent(right, all), "%", Goal::AtLeast(98.0));
    report.aim(
        format!("{name}: right session, of lines that have one"),
        percent(both, with),
        "%",
        Goal::AtLeast(95.0),
    );
    report.aim(
        format!("{name}: right session, of those named"),
        percent(both, named),
        "%",
        Goal::AtLeast(95.0),
    );
    report.detail[name] = json!(wrong);
    Ok(())
}
