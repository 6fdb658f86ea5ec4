//! The files of a retrieval suite. Messages and questions are its input and rankings its output, each with one JSON
//! object per line.

use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// A line of `messages.jsonl`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Message {
    /// The conversation. Each conversation is indexed and searched separately.
    #[serde(default)]
    pub project: String,
    /// The session within the conversation.
    pub session: String,
    /// The message's id within the conversation. Questions refer to the message by it.
    pub id: String,
    /// Who spoke.
    #[serde(default)]
    pub speaker: Option<String>,
    /// `user` or `assistant`.
    pub role: String,
    /// The time, as RFC 3339.
    #[serde(default)]
    pub time: Option<String>,
    /// The text.
    pub text: String,
}

/// A line of `queries.jsonl`.
#[derive(Clone, Debug, Deserialize)]
pub struct Query {
    /// The id by which a ranking names it.
    pub qid: String,
    /// The conversation to ask.
    pub project: String,
    /// The question.
    pub query: String,
    /// The ids of the evidence.
    pub gold: Vec<String>,
    /// The kind of question.
    pub category: String,
    /// The short answer, a text or a number, if the suite has one.
    #[serde(default)]
    pub answer: Option<serde_json::Value>,
}

/// A line of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Ranking {
    /// The question.
    pub qid: String,
    /// The ids found, best first.
    pub ranked: Vec<String>,
    /// The time to the answer in milliseconds.
    pub ms: f64,
    /// How many tokens the answer says that it used.
    pub tokens: u64,
}

/// Reads a file with one JSON object per line.
pub fn read_lines<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("reading `{}`", path.display()))?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(number, line)| {
            serde_json::from_str(line).with_context(|| format!("line {} of `{}`", number + 1, path.display()))
        })
        .collect()
}

/// Writes a file with one JSON object per line.
pub fn write_lines<T: Serialize>(path: &Path, rows: impl IntoIterator<Item = T>) -> Result<()> {
    let file = std::fs::File::create(path).with_context(|| format!("creating `{}`", path.display()))?;
    let mut writer = BufWriter::new(file);
    for row in rows {
        serde_json::to_writer(&mut writer, &row)?;
        writer.write_all(b"\n")?;
    }
    writer.flush().with_context(|| format!("writing `{}`", path.display()))
}
