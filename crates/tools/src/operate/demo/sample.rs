//! The bundled data of the demonstration: a conversation of a made-up project with questions about it, and commits for
//! a directory without a history.

use std::path::PathBuf;

use serde::Deserialize;

use crate::memory::save_messages;
use tiro_base::error::Result;
use tiro_base::memory::{CommitRecord, Draft, Identity, Kind, Provenance};
use tiro_base::private;
use tiro_base::times;
use tiro_embed::Loaded;
use tiro_host::caller::WritingCaller;
use tiro_host::engine::Engine;
use tiro_recall::remember::remember;
use tiro_store::Outcome;

const CONVERSATION: &str = include_str!("../../../assets/demo/conversation.jsonl");
const QUESTIONS: &str = include_str!("../../../assets/demo/questions.json");
const COMMITS: &str = include_str!("../../../assets/demo/commits.jsonl");

/// Returns the folder of the made-up project. Creates the folder if it does not exist.
pub fn folder(engine: &Engine) -> Result<PathBuf> {
    let folder = engine.config().data_dir.join("demo").join("harbour");
    private::create_dir(&folder)?;
    Ok(folder)
}

#[derive(Deserialize)]
struct SampleCommit {
    sha: String,
    parents: Vec<String>,
    author: String,
    time: String,
    branch: String,
    subject: String,
    body: String,
    files: Vec<String>,
}

/// Stores the bundled commits and returns how many are new and how many were stored before.
pub async fn save_commits(engine: &Engine, sample: &WritingCaller) -> Result<(usize, usize)> {
    let mut drafts = Vec::new();
    for line in COMMITS.lines() {
        let commit: SampleCommit = serde_json::from_str(line).expect("the bundled commits are JSON");
        let time = times::parse_time_in_utc("time", &commit.time)?;
        let message = format!("{}\n\n{}", commit.subject, commit.body).trim().to_owned();
        let text = format!("{message}\nFiles: {}", commit.files.join(", "));
        let mut draft = Draft::new(Kind::Commit, Provenance::GitCommit, text, time);
        draft.identity = Identity::Named(format!("sha:{}", commit.sha));
        draft.indexed = Some(message.clone());
        draft.lead = Some(message);
        draft.title = Some(commit.subject);
        draft.speaker = Some(commit.author);
        draft.branch = Some(commit.branch);
        draft.source_id = Some(commit.sha.clone());
        draft.commit = Some(CommitRecord {
            sha: commit.sha,
            parents: commit.parents,
            patch_id: None,
            files: commit.files,
        });
        drafts.push(draft);
    }
    let project = sample.writable_project(engine).await?;
    let redactor = &project.redactor;
    let (store, scope) = (project.store.as_ref(), &project.scope);
    let fresh = || engine.random();
    let saved =
        remember(store, scope, redactor, &Loaded::default(), drafts, engine.now(), fresh, |_| {}).await?;
    Ok((saved.receipt.count(Outcome::Stored), saved.receipt.count(Outcome::AlreadyStored)))
}

#[derive(Deserialize)]
struct BundledMessage {
    session: String,
    #[serde(flatten)]
    message: save_messages::Message,
}

/// Stores the bundled conversation and returns a text with the counts: all messages, sessions and new messages.
pub async fn save_conversation(engine: &Engine, sample: &WritingCaller) -> Result<String> {
    let lines =
        CONVERSATION.lines().map(|line| serde_json::from_str(line).expect("the bundled messages are JSON"));
    let messages: Vec<BundledMessage> = lines.collect();
    let all = messages.len();
    let mut sessions: Vec<(String, Vec<save_messages::Message>)> = Vec::new();
    for BundledMessage { session, message } in messages {
        match sessions.last_mut() {
            Some((last, own)) if *last == session => own.push(message),
            _ => sessions.push((session, vec![message])),
        }
    }
    let (count, mut new) = (sessions.len(), 0);
    for (session_id, messages) in sessions {
        new += save_messages::run(engine, sample, save_messages::Args { session_id, messages }).await?.saved;
    }
    Ok(format!("{all} messages in {count} sessions of a made-up project, {new} new"))
}

/// A bundled question about the conversation.
#[derive(Deserialize)]
pub struct BundledQuestion {
    /// The question.
    pub question: String,
    /// The ids of the messages that answer it, the best first.
    pub evidence: Vec<String>,
}

/// Returns the bundled questions about the conversation.
pub fn questions() -> Vec<BundledQuestion> {
    serde_json::from_str(QUESTIONS).expect("the bundled questions are JSON")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bundled_texts_can_be_read() {
        let messages: Vec<BundledMessage> =
            CONVERSATION.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(messages.len() >= 300);
        let questions = questions();
        let is_there = |id: &String| messages.iter().any(|each| each.message.id.as_ref() == Some(id));
        assert!(questions.iter().all(|question| question.evidence.iter().all(is_there)));
        assert!(COMMITS.lines().all(|line| serde_json::from_str::<SampleCommit>(line).is_ok()));
    }
}
