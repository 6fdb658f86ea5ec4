//! `evals join`: whether a commit is linked to the session that led to it.
//!
//! A script performs weeks of work: sessions that talk, read and edit, alone or in pairs, in one work tree or in two,
//! and the commits that result. The agent commits within the session, or the user commits minutes to hours later, once
//! or several times; commits are amended, rebased and squashed. Other sessions only read. Some changes are reverted
//! before the user commits something else, and a colleague's commits are pulled. Some calls do not name the files that
//! they change, a formatter rewrites some lines, and some lines are common ones that many sessions write. The script
//! knows which sessions led to each commit. The measurement searches for each commit by a unique word and compares the
//! conversations that its hit names with these sessions. Precision is the share of the named conversations that are
//! right, and recall is the share of the right ones that are named.
//!
//! The lines are synthetic; [`lines`] uses those of a real repository's commits.
//!
//! The measurement runs twice: once with hooks and calls during the work, and once with an import afterwards. At the
//! time of the import, squashed branches are gone, and only reflogs record where something was committed.

mod lines;
mod script;
mod why;

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::json;

use crate::calls::{LONG, git};
use crate::client::{Era, Place, Server, Tiro};
use crate::stats::{Goal, Report};
use script::Script;

/// What to measure.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Pieces of work with one or two sessions each
    #[arg(long, default_value_t = 100)]
    works: usize,
    /// Seed of the random choices
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Repository whose commits are worked with, instead of scripted work
    #[arg(long, conflicts_with = "works")]
    repo: Option<PathBuf>,
}

/// A kind of work and of its commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Work {
    /// One session, one commit, right away.
    Plain,
    /// One session, three commits.
    Several,
    /// The user commits one to nearly two hours after the session, and has asked something else since.
    Late,
    /// Two sessions at once in two work trees, on the same files.
    TwoTrees,
    /// Two sessions at once in one work tree, on different files.
    OneTree,
    /// Committed on a branch that is rebased hours later.
    Rebased,
    /// Two sessions on a branch that is squashed into one commit.
    Squashed,
    /// Committed, then amended by the same session.
    Amended,
    /// One session changes files three to nine hours before the user commits.
    HoursBefore,
    /// One session changes files, and another one, on another branch, only reads them.
    OtherBranch,
    /// The changes of a session are reverted; the user changes the same files by hand and commits.
    TakenBack,
    /// The changes of a session are reverted; another session changes the same files.
    TakenBackThenAnother,
    /// The user changes files by hand that a session only read.
    ByHand,
    /// A colleague's commit of the same files is pulled after a session's.
    Pulled,
    /// A colleague's commit of the same files is pulled while the changes of a session are not committed.
    PulledMeanwhile,
    /// Files are changed by commands that name no file, and the session itself commits them.
    OwnCall,
    /// Two sessions in a separate work tree, whose branch is squashed.
    SquashedTree,
    /// Two sessions change the same files, one after the other; one commit contains the work of both.
    Both,
    /// One session changes two files, which the user commits one by one, hours apart.
    OneByOne,
    /// A session edits a file in place, and later another session changes more of the same file. Each change is
    /// committed.
    InTurn,
}

const WORKS: [Work; 20] = [
    Work::Plain,
    Work::Several,
    Work::Late,
    Work::TwoTrees,
    Work::OneTree,
    Work::Rebased,
    Work::Squashed,
    Work::Amended,
    Work::HoursBefore,
    Work::OtherBranch,
    Work::TakenBack,
    Work::TakenBackThenAnother,
    Work::ByHand,
    Work::Pulled,
    Work::PulledMeanwhile,
    Work::OwnCall,
    Work::SquashedTree,
    Work::Both,
    Work::OneByOne,
    Work::InTurn,
];

/// A commit at the end of the work, and the sessions that led to it.
struct Truth {
    work: Work,
    subject: String,
    sessions: Vec<String>,
}

/// What is measured on one memory, or on the commits of one kind of work.
#[derive(Clone, Copy, Default)]
struct Counts {
    commits: usize,
    /// How many commits a session led to, and how many of these have a right first link.
    with_session: usize,
    first: usize,
    /// How many links are right, how many are reported, and how many are both.
    right: usize,
    named: usize,
    both: usize,
}

impl Counts {
    fn add(&mut self, other: Counts) {
        self.commits += other.commits;
        self.with_session += other.with_session;
        self.first += other.first;
        self.right += other.right;
        self.named += other.named;
        self.both += other.both;
    }
}

#[derive(Default)]
struct Seen {
    all: Counts,
    by_work: BTreeMap<Work, Counts>,
    wrong: Vec<String>,
}

fn percent(part: usize, whole: usize) -> f64 {
    if whole == 0 { 100.0 } else { 100.0 * part as f64 / whole as f64 }
}

/// Scripts the work, asks for every commit and returns the report.
pub fn run(args: &Args, tiro: &Tiro) -> Result<Report> {
    let root = tempfile::tempdir().context("making a temporary directory")?;
    let root = root.path().canonicalize()?;
    let tiro = &tiro.without_model(&root)?;
    if let Some(repository) = &args.repo {
        return lines::run(repository, args.seed, tiro, &root);
    }
    let place = Place::create(&root)?;
    let mut script = Script::begin(args, tiro, place)?;
    for number in 0..args.works.max(1) {
        script.work(WORKS[number % WORKS.len()])?;
    }
    let live = ask(&mut script.servers[0], &script.truths)?;
    let sessions = sessions(&script.place.project, &script.truths)?;

    let later = Place { data_dir: root.join("later"), project: script.place.project.clone() };
    tiro.run(&later, &["import", "git"], LONG)?;
    tiro.run(&later, &["import", "claude-code"], LONG)?;
    let mut server = tiro.serve(&later, Era::Session)?;
    let later = ask(&mut server, &script.truths)?;

    let detail = json!({"seed": args.seed, "wrong_live": live.wrong, "wrong_later": later.wrong});
    let mut report = Report { detail, ..Report::default() };
    let project = script.place.project.clone();
    why::measure(&mut script.servers[0], &project, &sessions, args.seed, ("lines, live", &mut report))?;
    why::measure(&mut server, &project, &sessions, args.seed, ("lines, later", &mut report))?;
    report.add("sessions", script.sessions as f64, "");
    report.add("commits", script.truths.len() as f64, "");
    report.add("links that are right", live.all.right as f64, "");
    for (name, seen) in [("followed live", &live), ("imported later", &later)] {
        let Counts { with_session, first, right, named, both, .. } = seen.all;
        report.aim(format!("{name}: precision"), percent(both, named), "%", Goal::AtLeast(95.0));
        report.aim(format!("{name}: recall"), percent(both, right), "%", Goal::AtLeast(95.0));
        report.aim(
            format!("{name}: a right one is first"),
            percent(first, with_session),
            "%",
            Goal::AtLeast(95.0),
        );
        for (work, each) in &seen.by_work {
            let what = format!("  {work:?}, {} commits: precision", each.commits);
            report.add(what, percent(each.both, each.named), "%");
            report.add(format!("  {work:?}: recall"), percent(each.both, each.right), "%");
        }
    }
    Ok(report)
}

/// Returns the sessions that led to each commit, by its id. A subject that several commits have, because one of them was
/// replaced, leads to the one that is checked out.
fn sessions(project: &Path, truths: &[Truth]) -> Result<HashMap<String, Vec<String>>> {
    let log = git(project, &["log", "--format=%H %s"])?;
    let commits = log.lines().filter_map(|line| line.split_once(' '));
    let of = |subject: &str| truths.iter().find(|truth| truth.subject == subject);
    let known = commits.filter_map(|(sha, subject)| Some((sha.to_owned(), of(subject)?.sessions.clone())));
    Ok(known.collect())
}

/// Asks for each commit and compares.
fn ask(server: &mut Server, truths: &[Truth]) -> Result<Seen> {
    let mut seen = Seen::default();
    for Truth { work, subject, sessions } in truths {
        let word = subject.split(' ').next_back().expect("a subject has words");
        let question = json!({"query": word, "kinds": ["commit"], "k": 5, "max_tokens": 5000});
        let answer = server.tool("search_project_memory", question)?;
        let holds = |hit: &&serde_json::Value| hit["text"].as_str().is_some_and(|text| text.contains(word));
        let hit = answer.hits().iter().find(holds).with_context(|| format!("`{subject}` is not found"))?;
        let named: Vec<&str> =
            hit["conversations"].as_array().into_iter().flatten().filter_map(|name| name.as_str()).collect();
        let is_right = |name: &&str| sessions.iter().any(|session| session == name);
        let counts = Counts {
            commits: 1,
            with_session: usize::from(!sessions.is_empty()),
            first: usize::from(named.first().is_some_and(is_right)),
            right: sessions.len(),
            named: named.len(),
            both: named.iter().filter(|name| is_right(name)).count(),
        };
        seen.all.add(counts);
        seen.by_work.entry(*work).or_default().add(counts);
        if counts.both < counts.named.max(counts.right) {
            let sure = &hit["confidences"];
            seen.wrong.push(format!("{work:?}: {subject}: {sessions:?}, named {named:?} {sure}"));
        }
    }
    Ok(seen)
}
