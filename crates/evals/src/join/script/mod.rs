//! Performs the work of `evals join`: sessions and their commits. Records which session led to which commit.

mod kinds;

use std::path::PathBuf;

use anyhow::Result;
use serde_json::json;

use super::{Args, Truth, Work};
use crate::calls::{LONG, path_text};
use crate::client::{Era, Place, Server, Tiro};
use crate::corpus::Corpus;
use crate::random::Random;
use crate::talk::{Repo, Session};

/// When the first piece of work begins, in seconds since 1970.
const BEGAN: i64 = 1_767_258_000;

const MINUTE: i64 = 60;

/// How many files sessions work on, in either work tree.
const FILES: usize = 40;

/// The work done so far.
pub(super) struct Script<'a> {
    tiro: &'a Tiro,
    pub(super) place: Place,
    /// The work tree on `main`, and another on `side`; further ones are added during the work.
    trees: Vec<Repo>,
    /// A colleague's clone.
    there: Repo,
    /// The servers, one started in each of the first two work trees.
    pub(super) servers: [Server; 2],
    random: Random,
    corpus: Corpus,
    now: i64,
    pub(super) sessions: usize,
    commits: usize,
    branches: usize,
    lines: usize,
    pub(super) truths: Vec<Truth>,
}

/// A session at work on some files.
struct Worker {
    session: Session,
    tree: usize,
    files: Vec<String>,
}

impl<'a> Script<'a> {
    pub(super) fn begin(args: &Args, tiro: &'a Tiro, place: Place) -> Result<Script<'a>> {
        let main = Repo::create(&place.project)?;
        let files: Vec<String> = (0..FILES).map(file).collect();
        for file in &files {
            main.append(file, "fn begin() {}\n")?;
        }
        main.commit(BEGAN, &files, "Begin")?;
        let side: PathBuf = place.project.with_file_name("side");
        main.git(BEGAN, &["worktree", "add", "--quiet", "-b", "side", path_text(&side)?])?;
        let there = place.project.with_file_name("there");
        main.git(BEGAN, &["clone", "--quiet", path_text(&place.project)?, path_text(&there)?])?;
        tiro.run(&place, &["import", "git"], LONG)?;
        let beside = Place { data_dir: place.data_dir.clone(), project: side.clone() };
        let servers = [tiro.serve(&place, Era::Session)?, tiro.serve(&beside, Era::Session)?];
        Ok(Script {
            tiro,
            place,
            trees: vec![main, Repo { path: side }],
            there: Repo { path: there },
            servers,
            random: Random::new(args.seed),
            corpus: Corpus::new(args.seed),
            now: BEGAN,
            sessions: 0,
            commits: 0,
            branches: 0,
            lines: 0,
            truths: Vec::new(),
        })
    }

    /// Lets sessions work on their files in turns, while another session may read.
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
                let line = self.line();
                if self.random.chance(0.15) {
                    // A command changes the file here, so no call names the file.
                    session.call(
                        self.now,
                        "Bash",
                        &json!({"command": "cargo fix --allow-dirty"}),
                        "fixed",
                    )?;
                } else {
                    session.edit(self.now, &file, &line)?;
                }
                // A formatter may reflow the line.
                let is_broken = self.random.chance(0.2);
                let shown = if is_broken { line.replace("{ ", "{\n    ").replace(" }", "\n}") } else { line };
                self.trees[worker.tree].append(&file, &shown)?;
                self.now += self.between(5, 200);
                session.say(self.now, "assistant", "It is changed, and the tests pass.")?;
                session.hook(self.tiro, &self.place)?;
            }
            if let Some(onlooker) = onlooker.as_ref().filter(|_| turn % 2 == 0) {
                self.ask_about(onlooker, &workers[0].files)?;
            }
        }
        // All files of both workers have changed. Two workers on the same files at once have changed them in the same
        // way.
        let same = self.line();
        for worker in workers {
            for file in &worker.files {
                self.trees[worker.tree].append(file, &same)?;
                worker.session.edit(self.now, file, &same)?;
                self.now += self.between(2, 30);
            }
            worker.session.hook(self.tiro, &self.place)?;
        }
        Ok(())
    }

    /// Lets a session ask something and read a file without changing anything.
    fn ask_about(&mut self, onlooker: &Worker, files: &[String]) -> Result<()> {
        let path = self.trees[onlooker.tree].path.join(self.random.pick(files));
        onlooker.session.say(self.now, "user", "how does this part work?")?;
        onlooker.session.call(self.now + 2, "Read", &json!({"file_path": path}), "fn begin() {}")?;
        onlooker.session.say(self.now + 9, "assistant", "It begins, and then there is more.")?;
        self.now += self.between(10, 100);
        onlooker.session.hook(self.tiro, &self.place)
    }

    /// Commits what a session did, either by a command of the session or by the user some minutes later.
    fn commit(&mut self, worker: &Worker, work: Work, soon: bool) -> Result<String> {
        if soon && self.random.chance(0.6) {
            return self.commit_itself(worker, work);
        }
        let subject = self.subject();
        self.now += if soon { (1 + self.random.below(25) as i64) * MINUTE } else { 0 };
        self.trees[worker.tree].commit(self.now, &worker.files, &subject)?;
        self.committed(worker, work, subject)
    }

    /// Lets the session commit by a command, with or without `--quiet`.
    fn commit_itself(&mut self, worker: &Worker, work: Work) -> Result<String> {
        let subject = self.subject();
        let tree = &self.trees[worker.tree];
        self.now += self.random.below(60) as i64;
        tree.commit(self.now, &worker.files, &subject)?;
        let id = tree.git(self.now, &["rev-parse", "--short", "HEAD"])?;
        let is_quiet = self.random.chance(0.2);
        let quiet = if is_quiet { "-q " } else { "" };
        let command =
            json!({"command": format!("git commit {quiet}-m '{subject}' {}", worker.files.join(" "))});
        let branch = tree.git(self.now, &["branch", "--show-current"])?;
        let printed = format!("[{branch} {id}] {subject}\n 1 file changed, 2 insertions(+)");
        let output = if is_quiet { "" } else { &printed };
        worker.session.call(self.now, "Bash", &command, output)?;
        worker.session.say(self.now + 5, "assistant", "It is committed.")?;
        worker.session.hook(self.tiro, &self.place)?;
        self.committed(worker, work, subject)
    }

    fn committed(&mut self, worker: &Worker, work: Work, subject: String) -> Result<String> {
        self.now += 10;
        self.truths.push(Truth { work, subject: subject.clone(), sessions: vec![worker.session.id.clone()] });
        self.looked(worker.tree)?;
        Ok(subject)
    }

    /// Makes a call in that work tree half of the time. Otherwise a later call finds what happened.
    fn looked(&mut self, tree: usize) -> Result<()> {
        if self.random.chance(0.5) {
            let tree = tree % self.servers.len();
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

    /// Returns a line of code, mostly a unique one and sometimes a common one.
    fn line(&mut self) -> String {
        self.lines += 1;
        match self.random.chance(0.15) {
            true => "use std::collections::HashMap;\n".to_owned(),
            false => format!("fn more_{}() -> usize {{ {} }}\n", self.lines, self.lines * 7),
        }
    }

    /// Returns a subject with a unique last word.
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
