//! Writes transcripts in the format of Claude Code, and a repository that changes at the same time.
//!
//! All times are synthetic: the caller gives the times of transcripts and commits. So weeks of work are scripted in
//! seconds, and the same seed gives the same history.

use std::cell::Cell;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::client::{Place, Tiro, last_chars};
use crate::corpus::rfc3339;

/// A work tree of a repository.
pub struct Repo {
    /// Where the files are.
    pub path: PathBuf,
}

impl Repo {
    /// Makes an empty repository at `path`, independent of the user's git settings.
    pub fn create(path: &Path) -> Result<Repo> {
        std::fs::create_dir_all(path).with_context(|| format!("making `{}`", path.display()))?;
        let repo = Repo { path: path.to_owned() };
        repo.git(0, &["init", "--quiet", "--initial-branch=main"])?;
        Ok(repo)
    }

    /// Returns a git command at `time`, in seconds since 1970; 0 means now.
    pub fn command(&self, time: i64, arguments: &[&str]) -> Command {
        let mut command = Command::new("git");
        command
            .args(["-c", "commit.gpgsign=false", "-c", "gc.auto=0"])
            .args(arguments)
            .current_dir(&self.path);
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1").env_remove("CI");
        for who in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{who}_NAME"), "Ada").env(format!("GIT_{who}_EMAIL"), "ada@example.org");
            if time > 0 {
                command.env(format!("GIT_{who}_DATE"), format!("{time} +0000"));
            }
        }
        command.stdin(Stdio::null());
        command
    }

    /// Runs git and returns what it printed.
    pub fn git(&self, time: i64, arguments: &[&str]) -> Result<String> {
        let output = self.command(time, arguments).output().context("starting `git`")?;
        if !output.status.success() {
            bail!("`git {}` failed: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// Writes `text` at the end of a file.
    pub fn append(&self, file: &str, text: &str) -> Result<()> {
        append(&self.path.join(file), text)
    }

    /// Commits only the named files.
    pub fn commit(&self, time: i64, files: &[String], subject: &str) -> Result<()> {
        let arguments = |first: &[&'static str]| -> Vec<String> {
            first.iter().map(|word| (*word).to_owned()).chain(files.iter().cloned()).collect()
        };
        let add = arguments(&["add", "--"]);
        self.git(time, &add.iter().map(String::as_str).collect::<Vec<_>>())?;
        let mut commit = arguments(&["commit", "--quiet", "-m", "", "--"]);
        commit[3] = subject.to_owned();
        self.git(time, &commit.iter().map(String::as_str).collect::<Vec<_>>()).map(drop)
    }
}

/// A session and its transcript.
pub struct Session {
    /// The client's id of the session.
    pub id: String,
    /// The file to which the transcript is appended.
    pub transcript: PathBuf,
    directory: PathBuf,
    /// The branch that is checked out.
    pub branch: String,
    lines: Cell<u64>,
}

impl Session {
    /// Returns session `number`, which runs in `directory`. Its file is created with its first line.
    pub fn new(home: &Path, number: usize, directory: &Path, branch: &str) -> Result<Session> {
        let id = format!("{number:08x}-0000-4000-8000-0123456789ab");
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        let folder: String = directory.to_string_lossy().chars().map(plain).collect();
        let folder = home.join(".claude/projects").join(folder);
        std::fs::create_dir_all(&folder).with_context(|| format!("making `{}`", folder.display()))?;
        let transcript = folder.join(format!("{id}.jsonl"));
        let (directory, branch) = (directory.to_owned(), branch.to_owned());
        Ok(Session { id, transcript, directory, branch, lines: Cell::new(0) })
    }

    /// Adds a message of the user or the assistant.
    pub fn say(&self, time: i64, role: &str, text: &str) -> Result<()> {
        self.line(time, role, json!(text))
    }

    /// Adds a tool call of the assistant with the result `output`.
    pub fn call(&self, time: i64, tool: &str, input: &Value, output: &str) -> Result<()> {
        let id = format!("toolu_{}{:06}", &self.id.replace('-', "")[..18], self.lines.get());
        self.line(time, "assistant", json!([{"type": "tool_use", "id": id, "name": tool, "input": input}]))?;
        self.line(time + 1, "user", json!([{"type": "tool_result", "tool_use_id": id, "content": output}]))
    }

    /// Adds a change that the assistant makes to a file. `file` is relative to the root of the work tree.
    pub fn edit(&self, time: i64, file: &str, new: &str) -> Result<()> {
        let input = json!({"file_path": self.directory.join(file), "old_string": "", "new_string": new});
        self.call(time, "Edit", &input, "The file has been updated successfully.")
    }

    fn line(&self, time: i64, role: &str, content: Value) -> Result<()> {
        self.lines.set(self.lines.get() + 1);
        let line = json!({
            "type": role,
            "uuid": format!("{}-0000-4000-9000-{:012x}", &self.id[..8], self.lines.get()),
            "timestamp": rfc3339(time),
            "cwd": self.directory,
            "sessionId": self.id,
            "gitBranch": self.branch,
            "version": "2.1.329",
            "isSidechain": false,
            "message": {"role": role, "content": content},
        });
        append(&self.transcript, &format!("{line}\n"))
    }

    /// Runs the hook for the session, as Claude Code does.
    pub fn hook(&self, tiro: &Tiro, place: &Place) -> Result<()> {
        let mut command = tiro.command(place, &["hook", "claude-code"]);
        command.current_dir(&self.directory);
        let output = feed(command, &self.payload("Stop"))?;
        if !output.status.success() || !output.stdout.is_empty() || !output.stderr.is_empty() {
            bail!("the hook failed or spoke: {}", last_chars(&String::from_utf8_lossy(&output.stderr), 300));
        }
        Ok(())
    }

    /// Returns the payload of the hook for an event.
    pub fn payload(&self, event: &str) -> String {
        json!({"session_id": self.id, "transcript_path": self.transcript, "cwd": self.directory,
            "hook_event_name": event})
        .to_string()
    }
}

/// Runs a command with `input` on its stdin to its end.
pub fn feed(mut command: Command, input: &str) -> Result<Output> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("starting {command:?}"))?;
    // Writing may fail, since a command that doesn't read everything closes its input.
    let _ = child.stdin.take().expect("stdin is piped").write_all(input.as_bytes());
    child.wait_with_output().context("waiting for it to end")
}

fn append(path: &Path, text: &str) -> Result<()> {
    let failed = || format!("writing `{}`", path.display());
    std::fs::create_dir_all(path.parent().expect("it lies in a folder")).with_context(failed)?;
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).with_context(failed)?;
    file.write_all(text.as_bytes()).with_context(failed)
}
