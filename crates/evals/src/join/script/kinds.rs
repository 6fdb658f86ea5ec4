//! The kinds of work that sessions, the user and a colleague do.

use anyhow::{Context, Result};
use serde_json::json;

use super::{FILES, MINUTE, Script, Worker, file};
use crate::calls::path_text;
use crate::join::{Truth, Work};
use crate::talk::Repo;

impl Script<'_> {
    /// Performs a piece of work, some time after the previous one.
    pub(in crate::join) fn work(&mut self, work: Work) -> Result<()> {
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
}
