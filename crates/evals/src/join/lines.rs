//! `evals join --repo`: the same measurement with the lines of real commits.
//!
//! For each of some commits by the repository's most frequent author, this writes a session that made the same changes
//! minutes to a day before the commit. For half of these commits it also writes a second session, whose work was
//! reverted. That session changed the same places, but every line that occurs nowhere else is respelled; lines that
//! many commits add (imports, closing lines) are not. The session behind each commit is known. No session committed by
//! itself, so only lines and times decide which one a commit is linked to.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::json;

use super::{Counts, percent};
use crate::calls::{LONG, clone_repository, git};
use crate::client::{Era, Place, Tiro};
use crate::random::Random;
use crate::stats::{Goal, Report};
use crate::talk::Session;

/// How many commits are used, and from how many of the latest commits they are chosen.
const COMMITS: (usize, usize) = (150, 400);

/// A line counts as common if at least this many commits add it.
const MANY: usize = 3;

/// The maximum number of changes that a commit which is used has: a change of all files would not be the work of a
/// session.
const MOST_CHANGES: usize = 60;

/// A place in a file that a commit changes.
struct Hunk {
    file: String,
    old: Vec<String>,
    new: Vec<String>,
}

/// Measures on the repository and returns the report.
pub(super) fn run(repository: &Path, seed: u64, tiro: &Tiro, root: &Path) -> Result<Report> {
    let place = Place::create(root)?;
    let author = clone(repository, &place.project)?;
    let log = ["log", "--no-merges", "--author", &author, "--format=%H %at", "-n", &COMMITS.1.to_string()];
    let log = git(&place.project, &log)?;
    let mut commits: Vec<(&str, i64)> = log
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter_map(|(sha, at)| Some((sha, at.parse().ok()?)))
        .collect();
    let mut random = Random::new(seed);
    let added = added(&place.project)?;
    let (mut truths, mut sessions): (Vec<(String, String)>, usize) = (Vec::new(), 0);
    while truths.len() < COMMITS.0 && !commits.is_empty() {
        let (sha, at) = commits.swap_remove(random.below(commits.len()));
        let hunks = hunks(&git(&place.project, &["show", "-U0", "--format=", "--no-renames", sha])?);
        if hunks.is_empty() {
            continue;
        }
        let before = *random.pick(&[400, 3_200, 20_200, 90_200]);
        truths.push((sha.to_owned(), write(&place, &mut sessions, at - before, &hunks)?));
        let others: Vec<Hunk> = hunks.iter().filter_map(|hunk| hunk.reverted(&added)).collect();
        if random.chance(0.5) && !others.is_empty() {
            let before = *random.pick(&[800, 5_400, 50_400, 200_400]);
            write(&place, &mut sessions, at - before, &others)?;
        }
    }
    ensure!(!truths.is_empty(), "`{}` has no commit with lines", repository.display());
    tiro.run(&place, &["import", "git"], LONG)?;
    tiro.run(&place, &["import", "claude-code"], LONG)?;

    let mut server = tiro.serve(&place, Era::Session)?;
    let (mut counts, mut wrong) = (Counts::default(), Vec::new());
    for (sha, session) in &truths {
        let answer = server.tool("expand_detail", json!({"id": &sha[..12]}))?;
        let linked = answer.structured()["linked"].as_array().cloned().unwrap_or_default();
        let named: Vec<&str> = linked
            .iter()
            .filter(|each| each["kind"] == "session")
            .filter_map(|each| each["name"].as_str())
            .collect();
        let is_right = named.contains(&session.as_str());
        counts.add(Counts {
            commits: 1,
            with_session: 1,
            first: usize::from(named.first() == Some(&session.as_str())),
            right: 1,
            named: named.len(),
            both: usize::from(is_right),
        });
        if !is_right || named.len() > 1 {
            wrong.push(format!("{}: {session}, named {named:?}", &sha[..12]));
        }
    }
    let mut report = Report::default();
    report.add("sessions", sessions as f64, "");
    report.add("commits", counts.commits as f64, "");
    report.aim(
        "lines of real commits: precision",
        percent(counts.both, counts.named),
        "%",
        Goal::AtLeast(95.0),
    );
    report.aim("lines of real commits: recall", percent(counts.both, counts.right), "%", Goal::AtLeast(95.0));
    report.aim(
        "lines of real commits: the right one is first",
        percent(counts.first, counts.with_session),
        "%",
        Goal::AtLeast(95.0),
    );
    report.detail = json!({"seed": seed, "wrong": wrong});
    let sessions: HashMap<String, Vec<String>> =
        truths.into_iter().map(|(sha, session)| (sha, vec![session])).collect();
    super::why::measure(&mut server, &place.project, &sessions, seed, ("lines", &mut report))?;
    Ok(report)
}

/// Clones the repository as its most frequent author, and returns that author's name.
fn clone(repository: &Path, into: &Path) -> Result<String> {
    let authors = git(repository, &["shortlog", "--summary", "--numbered", "--no-merges", "HEAD"])?;
    let first =
        authors.lines().next().and_then(|line| line.split_once('\t')).context("there is no commit")?;
    let author = first.1.trim().to_owned();
    clone_repository(repository, into, Some(&author))?;
    Ok(author)
}

/// Returns how many commits add each line. White space is ignored.
fn added(project: &Path) -> Result<HashMap<String, usize>> {
    let log = git(project, &["log", "-p", "-U0", "--no-merges", "--format=", "-n", "1500"])?;
    let mut added = HashMap::new();
    for line in log.lines().filter(|line| line.starts_with('+') && !line.starts_with("+++")) {
        *added.entry(bare(&line[1..])).or_default() += 1;
    }
    Ok(added)
}

fn bare(line: &str) -> String {
    line.split_whitespace().collect()
}

/// Reads the places that a diff without context changes.
fn hunks(diff: &str) -> Vec<Hunk> {
    let (mut found, mut file): (Vec<Hunk>, Option<String>) = (Vec::new(), None);
    let mut is_head = false;
    for line in diff.lines() {
        if line.starts_with("diff --git ") {
            (is_head, file) = (true, None);
        } else if let Some(path) =
            line.strip_prefix("--- a/").or(line.strip_prefix("+++ b/")).filter(|_| is_head)
        {
            file = Some(path.to_owned());
        } else if line.starts_with("@@ ") {
            is_head = false;
            found.extend(file.clone().map(|file| Hunk { file, old: Vec::new(), new: Vec::new() }));
        } else if let Some(hunk) = found.last_mut().filter(|_| !is_head) {
            match line.split_at_checked(1) {
                Some(("-", text)) => hunk.old.push(text.to_owned()),
                Some(("+", text)) => hunk.new.push(text.to_owned()),
                _ => {}
            }
        }
    }
    found.truncate(MOST_CHANGES);
    found
}

impl Hunk {
    /// Returns the text that the second session wrote in this place; `None` if less than half of it differs.
    fn reverted(&self, added: &HashMap<String, usize>) -> Option<Hunk> {
        let is_common = |line: &String| added.get(&bare(line)).is_some_and(|times| *times >= MANY);
        let new: Vec<String> = self
            .new
            .iter()
            .map(|line| if is_common(line) { line.clone() } else { respelled(line) })
            .collect();
        let others = new.iter().zip(&self.new).filter(|(other, own)| other != own).count();
        let is_other = others > 0 && others * 2 >= new.len();
        is_other.then(|| Hunk { file: self.file.clone(), old: Vec::new(), new })
    }
}

/// Returns the line with the letters of its longer words reversed.
fn respelled(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    for word in line.split_inclusive(|c: char| !c.is_ascii_alphabetic()) {
        let letters = word.trim_end_matches(|c: char| !c.is_ascii_alphabetic());
        if letters.len() < 3 {
            text += word;
        } else {
            text.extend(letters.chars().rev());
            text += &word[letters.len()..];
        }
    }
    text
}

/// Writes the transcript of a session that changes these places, and returns its name.
fn write(place: &Place, sessions: &mut usize, at: i64, hunks: &[Hunk]) -> Result<String> {
    *sessions += 1;
    let session = Session::new(&place.home(), *sessions, &place.project, "main")?;
    session.say(at, "user", "please change this")?;
    for (number, hunk) in hunks.iter().enumerate() {
        let input = json!({
            "file_path": place.project.join(&hunk.file),
            "old_string": hunk.old.join("\n"),
            "new_string": hunk.new.join("\n"),
        });
        session.call(at + 5 + 3 * number as i64, "Edit", &input, "ok")?;
    }
    Ok(session.id.clone())
}
