//! Writes synthetic sessions in the format of Claude Code, line by line.

use std::cell::Cell;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::harness::{Home, Ran};

/// When these sessions begin, in seconds since 1970. It is also the time at which the harness commits.
pub const BEGAN: i64 = 1_700_000_000;

/// A session and its growing transcript.
pub struct Talk {
    pub path: PathBuf,
    pub session: String,
    pub directory: PathBuf,
    branch: String,
    lines: Cell<u64>,
}

impl Talk {
    /// Returns a session that runs in `directory`. Its transcript is created with its first line.
    pub fn new(home: &Home, session: &str, directory: &Path, branch: &str) -> Talk {
        let dashed = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        let folder: String = directory.to_str().unwrap().chars().map(dashed).collect();
        let folder = home.dir("home/.claude/projects").join(folder);
        std::fs::create_dir_all(&folder).unwrap();
        Talk {
            path: folder.join(format!("{session}.jsonl")),
            session: session.to_owned(),
            directory: directory.to_owned(),
            branch: branch.to_owned(),
            lines: Cell::new(0),
        }
    }

    /// Adds a message of a speaker, `at` seconds after the sessions begin.
    pub fn says(&self, role: &str, at: i64, text: &str) {
        self.put(&self.line(role, BEGAN * 1000 + at * 1000, json!(text)));
    }

    /// Adds a tool call of the assistant, `at` seconds after the beginning.
    pub fn calls(&self, at: i64, tool: &str, input: Value, output: &str) {
        let id = format!("toolu_{:024}", number_of(&format!("{}{}", self.session, self.lines.get())));
        let at = (BEGAN + at) * 1000;
        self.put(&self.line(
            "assistant",
            at,
            json!([{"type": "tool_use", "id": id, "name": tool, "input": input}]),
        ));
        self.put(&self.line(
            "user",
            at + 1,
            json!([{"type": "tool_result", "tool_use_id": id, "content": output}]),
        ));
    }

    /// Adds a change of a file by the assistant, `at` seconds after the beginning.
    pub fn edits(&self, at: i64, file: &str) {
        let path = self.directory.join(file);
        let input = json!({"file_path": path, "old_string": "old", "new_string": "new"});
        self.calls(at, "Edit", input, "The file has been updated.");
    }

    /// Returns a line at a time in milliseconds, with a new id.
    pub fn line(&self, role: &str, at: i64, content: Value) -> Value {
        self.lines.set(self.lines.get() + 1);
        let number = number_of(&self.session);
        json!({
            "type": role,
            "uuid": format!("{:08x}-0000-4000-8000-{:012x}", number as u32, self.lines.get()),
            "timestamp": jiff::Timestamp::from_millisecond(at).unwrap().to_string(),
            "cwd": self.directory,
            "sessionId": self.session,
            "gitBranch": self.branch,
            "version": "2.1.329",
            "isSidechain": false,
            "message": {"role": role, "content": content},
        })
    }

    /// Appends a line.
    pub fn put(&self, line: &Value) {
        self.append(&format!("{line}\n"));
    }

    /// Appends any bytes.
    pub fn append(&self, text: &str) {
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(&self.path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    /// Returns the payload of a hook of the session.
    pub fn payload(&self, event: &str) -> Vec<u8> {
        let payload = json!({"session_id": self.session, "transcript_path": self.path, "cwd": self.directory,
            "hook_event_name": event, "permission_mode": "default"});
        payload.to_string().into_bytes()
    }

    /// Runs the hook once and returns its output.
    pub fn nudge(&self, home: &Home, event: &str) -> String {
        let Ran { is_ok, stdout, stderr } =
            home.feed(&self.directory, &["hook", "claude-code"], &self.payload(event));
        assert!(is_ok && stderr.is_empty(), "{event}: {stderr}");
        stdout
    }

    /// Runs the hook until it has left a reference. It may take several runs, since on a busy machine the hook gives up
    /// instead of waiting.
    pub fn hook(&self, home: &Home, event: &str) {
        let left = (0..TRIES).any(|_| {
            assert_eq!(self.nudge(home, event), "", "only the beginning of a session is told something");
            home.waiting() > 0
        });
        assert!(left, "no reference was left in {TRIES} runs");
    }

    /// Runs the start hook until it has printed something, and returns the text for the model.
    pub fn begins(&self, home: &Home) -> String {
        let said = (0..TRIES).map(|_| self.nudge(home, "SessionStart")).find(|said| !said.is_empty());
        let said: Value =
            serde_json::from_str(&said.expect("a session is told where its memory is")).unwrap();
        assert_eq!(said["hookSpecificOutput"]["hookEventName"], "SessionStart", "{said}");
        said["hookSpecificOutput"]["additionalContext"].as_str().unwrap().to_owned()
    }
}

/// How often a hook that gives up is run again. Arbitrary.
const TRIES: usize = 50;

/// Returns a number that differs from text to text.
fn number_of(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
