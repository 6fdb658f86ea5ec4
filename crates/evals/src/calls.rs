//! The calls that several measurements make: they save conversations, wait for the embeddings, and search.

use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::client::{Answer, Place, Server, Tiro, run_to_end};
use crate::suite::{Message, Ranking};

/// The maximum number of messages sent in one call.
const MESSAGES_PER_CALL: usize = 500;

/// How long a command that embeds or imports may run.
pub const LONG: Duration = Duration::from_secs(2 * 60 * 60);

/// Saves `messages` in their order, in calls of one session each, and returns the number of calls.
pub fn save_messages(server: &mut Server, messages: &[Message]) -> Result<usize> {
    let mut calls = 0;
    for session in messages.chunk_by(|a, b| a.session == b.session) {
        for part in session.chunks(MESSAGES_PER_CALL) {
            let fields: Vec<Value> = part.iter().map(message_argument).collect();
            let arguments = json!({"session_id": part[0].session, "messages": fields});
            let answer = server.tool("save_messages", arguments)?;
            let saved = |field: &str| answer.structured()[field].as_u64().unwrap_or(0);
            let kept = saved("saved") + saved("already_stored");
            if kept != part.len() as u64 {
                bail!("{} messages of `{}` were sent, {kept} kept", part.len(), part[0].session);
            }
            calls += 1;
        }
    }
    Ok(calls)
}

fn message_argument(message: &Message) -> Value {
    let mut fields = json!({"id": message.id, "role": message.role, "text": message.text});
    for (name, value) in [("speaker", &message.speaker), ("time", &message.time)] {
        if let Some(value) = value {
            fields[name] = json!(value);
        }
    }
    fields
}

/// Waits until no embedding is pending. The idle server embeds; if it makes no progress, `tiro index` embeds instead.
/// If there is no model, returns at once.
pub fn settle(tiro: &Tiro, place: &Place, server: &mut Server) -> Result<()> {
    if tiro.model_dir.is_none() {
        return Ok(());
    }
    let mut fewest = u64::MAX;
    let mut last_progress = Instant::now();
    while let Some(pending) = pending(server)?.filter(|pending| *pending > 0) {
        if pending < fewest {
            fewest = pending;
            last_progress = Instant::now();
        } else if last_progress.elapsed() > Duration::from_secs(10) {
            return index(tiro, place).with_context(|| format!("{pending} embeddings stay pending"));
        }
        thread::sleep(Duration::from_millis(250));
    }
    Ok(())
}

/// Runs `tiro index` to its end if there is a model.
pub fn index(tiro: &Tiro, place: &Place) -> Result<()> {
    if tiro.model_dir.is_some() {
        tiro.run(place, &["index", "--project", path_text(&place.project)?], LONG)?;
    }
    Ok(())
}

fn pending(server: &mut Server) -> Result<Option<u64>> {
    let answer = server.tool("search_project_memory", json!({"query": "pending", "k": 1}))?;
    Ok(answer.pending())
}

/// How often [`patiently`] calls again. Arbitrary: a machine is rarely so busy for longer.
const ATTEMPTS: usize = 6;

/// Calls a tool that only reads. If the answer is an error that advises to try again, as on a busy machine, calls it
/// again after a pause.
pub fn patiently(server: &mut Server, name: &str, arguments: Value) -> Result<Answer> {
    for attempt in 1..ATTEMPTS {
        let answer = server.try_tool(name, arguments.clone())?;
        if !answer.is_error() {
            return Ok(answer);
        }
        if !answer.text().contains("try again") {
            break;
        }
        thread::sleep(Duration::from_secs(attempt as u64));
    }
    server.tool(name, arguments)
}

/// Searches for the `k` best hits, with a budget into which all of them fit.
pub fn search(server: &mut Server, query: &str, k: usize) -> Result<Answer> {
    patiently(server, "search_project_memory", json!({"query": query, "k": k, "max_tokens": 20000}))
}

/// Returns the source ids of the hits, best first and without repetitions.
pub fn ranking(qid: &str, answer: &Answer) -> Ranking {
    let mut ranked: Vec<String> = Vec::new();
    for id in answer.hits().iter().filter_map(|hit| hit["source_id"].as_str()) {
        if !ranked.iter().any(|seen| seen == id) {
            ranked.push(id.to_string());
        }
    }
    let tokens = answer.structured()["tokens_used"].as_u64().unwrap_or(0);
    Ranking { qid: qid.to_string(), ranked, ms: answer.ms(), tokens }
}

/// Clones `repository`, which may be bare, into `destination`, so that nothing is written into `repository` itself. The
/// clone's reflog names `committer`, or the user if that is `None`.
pub fn clone_repository(repository: &Path, destination: &Path, committer: Option<&str>) -> Result<()> {
    let mut command = Command::new("git");
    command.args([
        "-c",
        "safe.directory=*",
        "-c",
        "core.hooksPath=/dev/null",
        "clone",
        "--quiet",
        "--no-tags",
    ]);
    if let Some(name) = committer {
        command.env("GIT_COMMITTER_NAME", name).env("GIT_COMMITTER_EMAIL", "author@example.org");
    }
    command.arg("--").arg(repository).arg(destination).env("GIT_TERMINAL_PROMPT", "0");
    let (status, _, stderr) = run_to_end(command, Duration::from_secs(600))?;
    if !status.success() {
        bail!("cloning `{}` failed: {}", repository.display(), stderr.trim());
    }
    Ok(())
}

/// Returns the output of a git command in `repository`, without the line break at its end.
pub fn git(repository: &Path, arguments: &[&str]) -> Result<String> {
    let mut command = Command::new("git");
    command.arg("-C").arg(repository).args(["-c", "safe.directory=*"]).args(arguments);
    let (status, stdout, stderr) = run_to_end(command, Duration::from_secs(120))?;
    if !status.success() {
        bail!("`git {}` failed: {}", arguments.join(" "), stderr.trim());
    }
    Ok(stdout.trim_end().to_string())
}

/// Returns a path as text, for an argument.
pub fn path_text(path: &Path) -> Result<&str> {
    path.to_str().with_context(|| format!("`{}` is not UTF-8", path.display()))
}
