//! The ground of an attack on consults: a project, and an assistant that does what a script says.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::assistant::{Asked, Assistant, Message, Script};
use crate::client::{Answer, Era, Place, Server, Tiro, last_chars};
use crate::stats::Report;

/// A word of what the assistant may find.
pub(super) const ALLOWED: &str = "ferrytimes";

/// A project with an assistant, and a folder outside the project.
pub(super) struct Scene {
    pub(super) place: Place,
    pub(super) outside: PathBuf,
    pub(super) assistant: Assistant,
    pub(super) tiro: Tiro,
    pub(super) root: PathBuf,
    _temporary: tempfile::TempDir,
}

/// A consult: the answer of the tool, and the requests to the assistant.
pub(super) struct Told {
    pub(super) answer: Answer,
    pub(super) asked: Vec<Asked>,
}

impl Scene {
    /// Makes an empty project, and starts an assistant.
    pub(super) fn create(tiro: &Tiro) -> Result<Scene> {
        let temporary = tempfile::tempdir().context("making a temporary directory")?;
        let root = temporary.path().canonicalize()?;
        let place = Place::create(&root)?;
        let outside = root.join("outside");
        fs::create_dir_all(&outside)?;
        let mut tiro = tiro.without_model(&root)?;
        tiro.environment.push(("TIRO_LOG".into(), "debug".into()));
        Ok(Scene { place, outside, assistant: Assistant::start()?, tiro, root, _temporary: temporary })
    }

    /// Starts a server whose assistant has a window of `window` tokens, of which files take at most `inline`.
    pub(super) fn serve(&self, window: usize, inline: usize) -> Result<Server> {
        self.assistant.configure(&self.tiro, &self.root, window, inline)?.serve(&self.place, Era::Session)
    }

    pub(super) fn write(&self, path: &str, content: impl AsRef<[u8]>) -> Result<()> {
        let path = self.place.project.join(path);
        fs::create_dir_all(path.parent().expect("it lies in the project"))?;
        fs::write(&path, content).with_context(|| format!("writing `{}`", path.display()))
    }

    /// Asks the assistant in a new session.
    pub(super) fn ask(&self, server: &mut Server, session: &str, mut arguments: Value) -> Result<Told> {
        self.assistant.take();
        arguments["session_id"] = json!(session);
        arguments["wait_s"] = json!(600);
        if arguments["instructions"].is_null() {
            arguments["instructions"] = json!("Review this.");
        }
        let answer = server.try_tool("chat_with_mock", arguments)?;
        Ok(Told { answer, asked: self.assistant.take() })
    }

    /// Makes the assistant search the attachments, open `sources` of them, and then answer.
    pub(super) fn searches(&self, sources: &[&str], answer: fn(&[Message]) -> String) {
        let name = "search_session_attachments";
        let mut calls = vec![(name.to_owned(), json!({"query": "file with instructions"}))];
        calls.extend(sources.iter().map(|source| (name.to_owned(), json!({"source": source}))));
        self.assistant.follow(Script { calls: vec![calls], answer });
    }
}

impl Told {
    /// Returns everything that left the server: the requests and the answer.
    pub(super) fn everything(&self) -> String {
        let bodies = self.asked.iter().map(|asked| String::from_utf8_lossy(&asked.body).into_owned());
        bodies.chain([self.answer.result.to_string()]).collect::<Vec<_>>().join("\n")
    }

    /// Returns whether the call has an answer of the assistant.
    pub(super) fn is_answered(&self) -> bool {
        !self.answer.is_error() && self.answer.structured()["status"] == "done"
    }

    /// Returns the receipt; null if the call failed.
    pub(super) fn receipt(&self) -> &Value {
        &self.answer.structured()["receipt"]
    }
}

/// Returns the lines of `text` that contain `word`.
pub(super) fn lines_with(text: &str, word: &str) -> Vec<String> {
    text.lines().filter(|line| line.contains(word)).map(str::to_owned).collect()
}

/// Adds a count that must be zero, and prints what was counted.
pub(super) fn count(report: &mut Report, name: &str, found: Vec<String>) {
    found.iter().take(20).for_each(|line| eprintln!("{name}: {}", last_chars(line, 2000).escape_debug()));
    report.must_be_zero(name, found.len());
}
