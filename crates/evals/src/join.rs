//! `evals join`: whether a commit names the session that led to it.
//!
//! Weeks of work are scripted: sessions that talk, read and edit, alone or two at once, in one work tree or in two, and
//! the commits that come of them: by the agent within the session or by the user minutes to hours later, one or several,
//! amended, rebased, squashed. Others look on without changing anything. Which session a commit came of is known, since
//! the script decides it. Each commit is searched for by a word of its own, and the conversations of its hit are compared.
//!
//! It is done twice: followed by hooks and calls while it happens, and imported at once afterwards, when branches that
//! were squashed are gone and reflogs are all that tells where something was committed.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::json;

use crate::calls::LONG;
use crate::client::{Era, Place, Server, Tiro};
use crate::corpus::Corpus;
use crate::random::Random;
use crate::stats::{Goal, Report};
use crate::talk::{Repo, Session};

/// What to measure.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Pieces of work, of one or two sessions each
    #[arg(long, default_value_t = 60)]
    works: usize,
    /// Where the random choices start
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// When the first piece of work begins, in seconds since 1970.
const BEGAN: i64 = 1_767_258_000;

const MINUTE: i64 = 60;

/// Files that are worked on, in either work tree.
const FILES: usize = 40;

/// How a piece of work goes, and what becomes of its commits.
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
}

const WORKS: [Work; 8] = [
    Work::Plain,
    Work::Several,
    Work::Late,
    Work::TwoTrees,
    Work::OneTree,
    Work::Rebased,
    Work::Squashed,
    Work::Amended,
];

/// A commit as it stands at the end, and the sessions that it came of.
struct Truth {
    work: Work,
    subject: String,
    sessions: Vec<String>,
}

/// What is measured on one memory.
#[derive(Default)]
struct Seen {
    linked: usize,
    first: usize,
    all: usize,
    /// Of each kind of work: commits, linked, first.
    by_work: BTreeMap<Work, (usize, usize, usize)>,
    missed: Vec<String>,
}

/// Scripts the work, asks for every commit and returns the report.
pub fn run(args: &Args, tiro: &Tiro) -> Result<Report> {
    let root = tempfile::tempdir().context("making a temporary directory")?;
    let root = root.path().canonicalize()?;
    let no_model = root.join("no-model");
    std::fs::create_dir_all(&no_model)?;
    let tiro = &Tiro { model_dir: Some(no_model), ..tiro.clone() };
    let place = Place::create(&root)?;
    let mut script = Script::begin(args, tiro, place)?;
    for number in 0..args.works.max(1) {
        script.work(WORKS[number % WORKS.len()])?;
    }
    let live = ask(&mut script.servers[0], &script.truths)?;

    let later = Place { data_dir: root.join("later"), project: script.place.project.clone() };
    tiro.run(&later, &["import", "git"], LONG)?;
    tiro.run(&later, &["import", "claude-code"], LONG)?;
    let later = ask(&mut tiro.serve(&later, Era::Session)?, &script.truths)?;

    let commits = script.truths.len();
    let mut report = Report::default();
    report.add("sessions", script.sessions as f64, "");
    report.add("commits", commits as f64, "");
    for (name, seen) in [("followed live", &live), ("imported later", &later)] {
        let share = |count: usize| 100.0 * count as f64 / commits as f64;
        report.aim(
            format!("{name}: a right session is linked"),
            share(seen.linked),
            "%",
            Goal::AtLeast(95.0),
        );
        report.aim(format!("{name}: it is the first"), share(seen.first), "%", Goal::AtLeast(95.0));
        report.add(format!("{name}: all right sessions are"), share(seen.all), "%");
        for (work, (commits, _, first)) in &seen.by_work {
            report.add(format!("  {work:?}: first, of {commits}"), *first as f64, "");
        }
    }
    report.detail = json!({"seed": args.seed, "missed_live": live.missed, "missed_later": later.missed});
    Ok(report)
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
        let (linked, first) = (named.iter().any(&is_right), named.first().is_some_and(is_right));
        seen.linked += usize::from(linked);
        seen.first += usize::from(first);
        seen.all += usize::from(sessions.iter().all(|session| named.contains(&session.as_str())));
        let of_work = seen.by_work.entry(*work).or_default();
        *of_work = (of_work.0 + 1, of_work.1 + usize::from(linked), of_work.2 + usize::from(first));
        if !first {
            seen.missed.push(format!("{work:?}: {subject}: {sessions:?}, named {named:?}"));
        }
    }
    Ok(seen)
}

/// The work as far as it is done.
struct Script<'a> {
    tiro: &'a Tiro,
    place: Place,
    /// The work tree on `main`, and another on `side`.
    trees: [Repo; 2],
    /// A server started in each.
    servers: [Server; 2],
    random: Random,
    corpus: Corpus,
    now: i64,
    sessions: usize,
    commits: usize,
    branches: usize,
    truths: Vec<Truth>,
}

/// A session at work on some files.
struct Worker {
    session: Session,
    tree: usize,
    files: Vec<String>,
}

impl<'a> Script<'a> {
    fn begin(args: &Args, tiro: &'a Tiro, place: Place) -> Result<Script<'a>> {
        let main = Repo::create(&place.project)?;
        let files: Vec<String> = (0..FILES).map(file).collect();
        for file in &files {
            main.append(file, "fn begin() {}\n")?;
        }
        main.commit(BEGAN, &files, "Begin")?;
        let side: PathBuf = place.project.with_file_name("side");
        main.git(BEGAN, &["worktree", "add", "--quiet", "-b", "side", crate::calls::path_text(&side)?])?;
        tiro.run(&place, &["import", "git"], LONG)?;
        let beside = Place { data_dir: place.data_dir.clone(), project: side.clone() };
        let servers = [tiro.serve(&place, Era::Session)?, tiro.serve(&beside, Era::Session)?];
        Ok(Script {
            tiro,
            place,
            trees: [main, Repo { path: side }],
            servers,
            random: Random::new(args.seed),
            corpus: Corpus::new(args.seed),
            now: BEGAN,
            sessions: 0,
            commits: 0,
            branches: 0,
            truths: Vec::new(),
        })
    }

    /// Does a piece of work, some time after the one before.
    fn work(&mut self, work: Work) -> Result<()> {
        // From a short break to a night: so the sessions before are in question or not.
        self.now += self.between(5, 300) * MINUTE;
        match work {
            Work::Plain | Work::Amended => {
                let worker = self.worker(0, "main")?;
                self.talk(&[&worker])?;
                let subject = self.commit(&worker, work, true)?;
                if work == Work::Amended {
                    self.talk(&[&worker])?;
                    self.trees[0].append(&worker.files[0], "// more\n")?;
                    self.trees[0]
                        .git(self.now, &["commit", "--quiet", "--all", "--amend", "-m", &subject])?;
                    self.looked(0)?;
                }
            }
            Work::Several => {
                let worker = self.worker(0, "main")?;
                for _ in 0..3 {
                    self.talk(&[&worker])?;
                    self.commit(&worker, work, true)?;
                }
            }
            Work::Late => {
                let worker = self.worker(0, "main")?;
                self.talk(&[&worker])?;
                let done = self.now;
                let other = self.worker(0, "main")?;
                self.now += self.between(10, 30) * MINUTE;
                self.ask_about(&other)?;
                self.now = done + self.between(60, 110) * MINUTE;
                self.commit(&worker, work, false)?;
            }
            Work::TwoTrees => {
                let one = self.worker(0, "main")?;
                let other = Worker { files: one.files.clone(), ..self.worker(1, "side")? };
                self.talk(&[&one, &other])?;
                self.commit(&other, work, true)?;
                self.commit(&one, work, true)?;
            }
            Work::OneTree => {
                let one = self.worker(0, "main")?;
                let mut other = self.worker(0, "main")?;
                other.files.retain(|file| !one.files.contains(file));
                if other.files.is_empty() {
                    other
                        .files
                        .push((0..FILES).map(file).find(|file| !one.files.contains(file)).expect("40"));
                }
                self.talk(&[&one, &other])?;
                self.commit(&one, work, true)?;
                self.talk(&[&other])?;
                self.commit(&other, work, true)?;
            }
            Work::Rebased => self.rebased()?,
            Work::Squashed => self.squashed()?,
        }
        Ok(())
    }

    fn rebased(&mut self) -> Result<()> {
        let branch = self.branch()?;
        let worker = self.worker(0, &branch)?;
        self.talk(&[&worker])?;
        self.commit(&worker, Work::Rebased, true)?;
        // Meanwhile `main` goes on.
        self.now += self.between(30, 200) * MINUTE;
        self.trees[0].git(self.now, &["checkout", "--quiet", "main"])?;
        self.trees[0].append("CHANGES.md", "- more\n")?;
        self.trees[0].git(self.now, &["add", "CHANGES.md"])?;
        self.trees[0].git(self.now, &["commit", "--quiet", "-m", "Note a change"])?;
        self.now += self.between(1, 300) * MINUTE;
        self.trees[0].git(self.now, &["rebase", "--quiet", "main", &branch])?;
        self.trees[0].git(self.now, &["checkout", "--quiet", "main"])?;
        self.trees[0].git(self.now, &["merge", "--quiet", "--ff-only", &branch])?;
        self.looked(0)
    }

    fn squashed(&mut self) -> Result<()> {
        let branch = self.branch()?;
        let before = self.truths.len();
        for _ in 0..2 {
            let worker = self.worker(0, &branch)?;
            self.talk(&[&worker])?;
            self.commit(&worker, Work::Squashed, true)?;
            self.now += self.between(1, 15) * MINUTE;
        }
        // The commits of the branch are gone; one stands for both.
        let sessions = self.truths.drain(before..).flat_map(|truth| truth.sessions).collect();
        self.trees[0].git(self.now, &["checkout", "--quiet", "main"])?;
        self.trees[0].git(self.now, &["merge", "--quiet", "--squash", &branch])?;
        self.now += self.between(1, 20) * MINUTE;
        let subject = self.subject();
        self.trees[0].git(self.now, &["commit", "--quiet", "-m", &subject])?;
        self.trees[0].git(self.now, &["branch", "--quiet", "-D", &branch])?;
        self.truths.push(Truth { work: Work::Squashed, subject, sessions });
        self.looked(0)
    }

    /// Lets sessions work on their files, taking turns, while another may look on.
    fn talk(&mut self, workers: &[&Worker]) -> Result<()> {
        let onlooker = match self.random.chance(0.5) {
            true => Some(self.worker(workers[0].tree, &workers[0].session.branch.clone())?),
            false => None,
        };
        for turn in 0..self.between(2, 6) {
            for worker in workers {
                let (session, file) = (&worker.session, self.random.pick(&worker.files).clone());
                let path = json!({"file_path": self.trees[worker.tree].path.join(&file)});
                session.say(
                    self.now,
                    "user",
                    &self.corpus.query(self.sessions * 10 + turn as usize, 1000),
                )?;
                self.now += self.between(5, 60);
                session.call(self.now, "Read", &path, "fn begin() {}")?;
                self.now += self.between(5, 200);
                if self.random.chance(0.15) {
                    // Changed by a command: no call names the file.
                    session.call(
                        self.now,
                        "Bash",
                        &json!({"command": "cargo fix --allow-dirty"}),
                        "fixed",
                    )?;
                } else {
                    session.edit(self.now, &file, "fn more() {}")?;
                }
                self.trees[worker.tree].append(&file, "fn more() {}\n")?;
                self.now += self.between(5, 200);
                session.say(self.now, "assistant", "It is changed, and the tests pass.")?;
                session.hook(self.tiro, &self.place)?;
            }
            if let Some(onlooker) = onlooker.as_ref().filter(|_| turn % 2 == 0) {
                self.ask_about(onlooker)?;
            }
        }
        // Every file of theirs has changed.
        for worker in workers {
            for file in &worker.files {
                self.trees[worker.tree].append(file, "fn last() {}\n")?;
                worker.session.edit(self.now, file, "fn last() {}")?;
                self.now += self.between(2, 30);
            }
            worker.session.hook(self.tiro, &self.place)?;
        }
        Ok(())
    }

    /// Lets a session ask something and read a file, changing nothing.
    fn ask_about(&mut self, onlooker: &Worker) -> Result<()> {
        let path = self.trees[onlooker.tree].path.join(&onlooker.files[0]);
        onlooker.session.say(self.now, "user", "how does this part work?")?;
        onlooker.session.call(self.now + 2, "Read", &json!({"file_path": path}), "fn begin() {}")?;
        onlooker.session.say(self.now + 9, "assistant", "It begins, and then there is more.")?;
        self.now += self.between(10, 100);
        onlooker.session.hook(self.tiro, &self.place)
    }

    /// Commits what a session did: as a command of its own, or by the user some minutes later.
    fn commit(&mut self, worker: &Worker, work: Work, soon: bool) -> Result<String> {
        let subject = self.subject();
        let tree = &self.trees[worker.tree];
        if soon && self.random.chance(0.6) {
            self.now += self.random.below(60) as i64;
            let command = json!({"command": format!("git commit -m '{subject}' {}", worker.files.join(" "))});
            worker.session.call(self.now - 1, "Bash", &command, &format!("[main 1234567] {subject}"))?;
            tree.commit(self.now, &worker.files, &subject)?;
            worker.session.say(self.now + 5, "assistant", "It is committed.")?;
            worker.session.hook(self.tiro, &self.place)?;
        } else {
            self.now += if soon { (1 + self.random.below(25) as i64) * MINUTE } else { 0 };
            tree.commit(self.now, &worker.files, &subject)?;
        }
        self.now += 10;
        self.truths.push(Truth { work, subject: subject.clone(), sessions: vec![worker.session.id.clone()] });
        self.looked(worker.tree)?;
        Ok(subject)
    }

    /// Lets a client in that work tree call, half of the time: what is not seen now is seen later.
    fn looked(&mut self, tree: usize) -> Result<()> {
        if self.random.chance(0.5) {
            self.servers[tree].tool("search_project_memory", json!({"query": "change", "k": 1}))?;
        }
        Ok(())
    }

    fn worker(&mut self, tree: usize, branch: &str) -> Result<Worker> {
        self.sessions += 1;
        let session = Session::new(&self.place.home(), self.sessions, &self.trees[tree].path, branch)?;
        let mut files: Vec<String> =
            (0..1 + self.random.below(4)).map(|_| file(self.random.zipf(FILES))).collect();
        files.sort();
        files.dedup();
        Ok(Worker { session, tree, files })
    }

    fn branch(&mut self) -> Result<String> {
        self.branches += 1;
        let branch = format!("topic-{}", self.branches);
        self.trees[0].git(self.now, &["checkout", "--quiet", "-b", &branch])?;
        Ok(branch)
    }

    /// Returns a subject whose last word stands nowhere else.
    fn subject(&mut self) -> String {
        self.commits += 1;
        format!("Change the part of zq{}qz", self.commits)
    }

    fn between(&mut self, least: usize, most: usize) -> i64 {
        (least + self.random.below(most - least + 1)) as i64
    }
}

fn file(number: usize) -> String {
    format!("src/part{number}.rs")
}
