//! Performs the work of `evals join`: sessions and their commits. Records which session led to which commit.

use std::path::PathBuf;

use anyhow::{Context, Result};
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

    /// Performs a piece of work, some time after the previous one.
    pub(super) fn work(&mut self, work: Work) -> Result<()> {
        // The break lasts from minutes to a night, so that earlier sessions are sometimes still candidates.
        self.now += self.between(5, 300) * MINUTE;
        match work {
            Work::Plain | Work::Amended => {
                let worker = self.worker(0, "main")?;
                self.talk(&[&worker])?;
                let subject = self.commit(&worker, work, true)?;
                if work == Work::Amended {
                    self.talk(&[&worker])?;
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
            Work::Late | Work::HoursBefore => {
                let worker = self.worker(0, "main")?;
                self.talk(&[&worker])?;
                let done = self.now;
                let other = self.worker(0, "main")?;
                self.now += self.between(10, 30) * MINUTE;
                self.ask_about(&other, &worker.files)?;
                let minutes = if work == Work::Late { self.between(60, 110) } else { self.between(180, 540) };
                self.now = done + minutes * MINUTE;
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
                    let free = (0..FILES).map(file).find(|file| !one.files.contains(file));
                    other.files.push(free.expect("there are more files than a session takes"));
                }
                self.talk(&[&one, &other])?;
                self.commit(&one, work, true)?;
                self.talk(&[&other])?;
                self.commit(&other, work, true)?;
            }
            Work::Rebased => self.rebased()?,
            Work::Squashed => self.squashed()?,
            Work::SquashedTree => self.squashed_tree()?,
            Work::OtherBranch => {
                let other_branch = format!("reads-{}", self.branches);
                let worker = self.worker(0, "main")?;
                // The session's transcript names another branch: the session began there, and the user has changed
                // branches since.
                let reader = self.worker(0, &other_branch)?;
                self.talk(&[&worker])?;
                for _ in 0..3 {
                    self.ask_about(&reader, &worker.files)?;
                }
                self.commit(&worker, work, false)?;
            }
            Work::TakenBack | Work::TakenBackThenAnother => self.taken_back(work)?,
            Work::ByHand => {
                let reader = self.worker(0, "main")?;
                self.ask_about(&reader, &reader.files)?;
                self.ask_about(&reader, &reader.files)?;
                self.by_hand(&reader.files, work)?;
            }
            Work::Pulled => {
                let worker = self.worker(0, "main")?;
                self.talk(&[&worker])?;
                self.commit(&worker, work, true)?;
                self.colleague(&worker.files, work)?;
                self.trees[0]
                    .git(self.now, &["pull", "--quiet", "--ff-only", path_text(&self.there.path)?, "main"])?;
                self.looked(0)?;
            }
            Work::PulledMeanwhile => {
                let worker = self.worker(0, "main")?;
                self.talk(&[&worker])?;
                self.colleague(&worker.files, work)?;
                self.trees[0].git(self.now, &["stash", "--quiet"])?;
                self.trees[0]
                    .git(self.now, &["pull", "--quiet", "--ff-only", path_text(&self.there.path)?, "main"])?;
                self.trees[0].git(self.now, &["stash", "pop", "--quiet"])?;
                self.looked(0)?;
                self.commit(&worker, work, true)?;
            }
            Work::Both => {
                let one = self.worker(0, "main")?;
                let other = Worker { files: one.files.clone(), ..self.worker(0, "main")? };
                self.talk(&[&one])?;
                self.now += self.between(1, 90) * MINUTE;
                self.talk(&[&other])?;
                self.commit(&other, work, false)?;
                let truth = self.truths.last_mut().expect("it was just committed");
                truth.sessions.push(one.session.id.clone());
            }
            Work::OneByOne => {
                let mut worker = self.worker(0, "main")?;
                worker.files =
                    vec![file(self.random.below(FILES / 2)), file(FILES / 2 + self.random.below(FILES / 2))];
                self.talk(&[&worker])?;
                for part in worker.files.clone() {
                    worker.files = vec![part];
                    self.now += self.between(5, 200) * MINUTE;
                    self.commit(&worker, work, false)?;
                }
            }
            Work::InTurn => {
                let one = self.worker(0, "main")?;
                let other = Worker { files: one.files.clone(), ..self.worker(0, "main")? };
                for worker in [&one, &other] {
                    for file in &worker.files {
                        let line = self.line();
                        let path = self.trees[0].path.join(file);
                        let command =
                            json!({"command": format!("sed -i '$ a {}' {}", line.trim(), path.display())});
                        worker.session.call(self.now, "Bash", &command, "")?;
                        self.trees[0].append(file, &line)?;
                        self.now += self.between(5, 60);
                    }
                    worker.session.hook(self.tiro, &self.place)?;
                    self.commit(worker, work, true)?;
                    self.now += self.between(1, 40) * MINUTE;
                }
            }
            Work::OwnCall => {
                let worker = self.worker(0, "main")?;
                for file in &worker.files {
                    let line = self.line();
                    let command = json!({"command": "python3 scripts/rewrite.py --all"});
                    worker.session.call(self.now, "Bash", &command, "rewritten")?;
                    self.trees[0].append(file, &line)?;
                    self.now += self.between(5, 60);
                }
                self.commit_itself(&worker, work)?;
            }
        }
        Ok(())
    }

    fn rebased(&mut self) -> Result<()> {
        let branch = self.branch()?;
        let worker = self.worker(0, &branch)?;
        self.talk(&[&worker])?;
        self.commit(&worker, Work::Rebased, true)?;
        // Before the branch is rebased, `main` gets commits.
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
        self.trees[0].git(self.now, &["checkout", "--quiet", "main"])?;
        self.squash(&branch, before, Work::Squashed)?;
        self.trees[0].git(self.now, &["branch", "--quiet", "-D", &branch])?;
        self.looked(0)
    }

    /// Two sessions work on a branch as agents do that have their own work tree, and the branch is squashed.
    fn squashed_tree(&mut self) -> Result<()> {
        self.branches += 1;
        let branch = format!("tree-{}", self.branches);
        let path = self.place.project.with_file_name(&branch);
        self.trees[0]
            .git(self.now, &["worktree", "add", "--quiet", "-b", &branch, path_text(&path)?, "main"])?;
        self.trees.push(Repo { path });
        let (tree, before) = (self.trees.len() - 1, self.truths.len());
        for _ in 0..2 {
            let worker = self.worker(tree, &branch)?;
            self.talk(&[&worker])?;
            self.commit(&worker, Work::SquashedTree, true)?;
        }
        self.squash(&branch, before, Work::SquashedTree)?;
        self.looked(0)
    }

    /// Squashes the branch into one commit on `main`. In the recorded truths, this commit replaces those from index
    /// `before` on.
    fn squash(&mut self, branch: &str, before: usize, work: Work) -> Result<()> {
        let mut sessions: Vec<String> =
            self.truths.drain(before..).flat_map(|truth| truth.sessions).collect();
        sessions.sort();
        sessions.dedup();
        self.trees[0].git(self.now, &["merge", "--quiet", "--squash", branch])?;
        self.now += self.between(1, 20) * MINUTE;
        let subject = self.subject();
        self.trees[0].git(self.now, &["commit", "--quiet", "-m", &subject])?;
        self.truths.push(Truth { work, subject, sessions });
        Ok(())
    }

    /// Reverts the changes of a session, then lets the user or another session change the same files.
    fn taken_back(&mut self, work: Work) -> Result<()> {
        let worker = self.worker(0, "main")?;
        self.talk(&[&worker])?;
        if self.random.chance(0.5) {
            let restore = json!({"command": format!("git checkout -- {}", worker.files.join(" "))});
            worker.session.say(self.now, "user", "take all of that back")?;
            worker.session.call(self.now + 2, "Bash", &restore, "Updated the files")?;
            worker.session.hook(self.tiro, &self.place)?;
        }
        self.trees[0].git(self.now, &["checkout", "--quiet", "--", "."])?;
        self.now += self.between(2, 40) * MINUTE;
        if work == Work::TakenBack {
            return self.by_hand(&worker.files, work);
        }
        let other = Worker { files: worker.files.clone(), ..self.worker(0, "main")? };
        self.talk(&[&other])?;
        self.commit(&other, work, true).map(drop)
    }

    /// Lets the user change files and commit them.
    fn by_hand(&mut self, files: &[String], work: Work) -> Result<()> {
        for file in files {
            let line = self.line();
            self.trees[0].append(file, &line)?;
        }
        self.now += self.between(1, 20) * MINUTE;
        let subject = self.subject();
        self.trees[0].commit(self.now, files, &subject)?;
        self.truths.push(Truth { work, subject, sessions: Vec::new() });
        self.looked(0)
    }

    /// Lets a colleague commit in another clone, at the top of the files.
    fn colleague(&mut self, files: &[String], work: Work) -> Result<()> {
        let ours = path_text(&self.place.project)?.to_owned();
        self.as_colleague(&["pull", "--quiet", "--ff-only", &ours, "main"])?;
        for file in files {
            let path = self.there.path.join(file);
            let text = std::fs::read_to_string(&path).with_context(|| format!("reading `{file}`"))?;
            std::fs::write(&path, format!("{}{text}", self.line()))?;
        }
        self.now += self.between(1, 30) * MINUTE;
        let subject = self.subject();
        self.as_colleague(&["commit", "--quiet", "--all", "-m", &subject])?;
        self.now += self.between(1, 30) * MINUTE;
        self.truths.push(Truth { work, subject, sessions: Vec::new() });
        Ok(())
    }

    fn as_colleague(&self, arguments: &[&str]) -> Result<()> {
        let mut command = self.there.command(self.now, arguments);
        for who in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{who}_NAME"), "Bea").env(format!("GIT_{who}_EMAIL"), "bea@example.org");
        }
        let output = command.output().context("starting `git`")?;
        anyhow::ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(())
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
