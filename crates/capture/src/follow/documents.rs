//! Imports the documents of the repository in which people wrote down what agents and colleagues shall know: the
//! instructions for agents (`CLAUDE.md`, `AGENTS.md` and their like) and the records of decisions.
//!
//! Only committed files are read, as they are in the commit that is checked out. Each version of a document is a
//! memory. A search shows the versions of the checked-out commit ([`current`]), so a branch with another version is no
//! problem. A changelog is not imported: the commits say the same, and lead to the conversations behind them.

use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::follow::in_time::in_time;
use crate::sources::{Sources, random};
use tiro_base::encoding;
use tiro_base::error::Result;
use tiro_base::memory::{Draft, Identity, Kind, MemoryId, Provenance};
use tiro_git::{Repository, TreeFile};
use tiro_intake::Intake;
use tiro_intake::prepare::prepare_all;
use tiro_store::Outcome;

/// The name of the import cursor that says which documents are stored.
pub const CURSOR: &str = "documents";

/// The maximum number of documents, and the maximum number of bytes of one. Arbitrary: far more than people write by
/// hand. Larger files are generated.
const MOST: usize = 300;
const LARGEST: u64 = 64 << 10;

/// The longest time that reading the documents takes if no call waits for it.
const LONGEST: Duration = Duration::from_secs(20);

/// The share of the time until the deadline of a call that reading may take. The rest is for storing.
const OF_TIME: f64 = 0.7;

/// The names of files with instructions for agents, in lower case.
const INSTRUCTIONS: &[&str] = &[
    "agents.md",
    "claude.md",
    "gemini.md",
    "qwen.md",
    "copilot-instructions.md",
    ".cursorrules",
    ".windsurfrules",
    ".clinerules",
    "conventions.md",
];

/// The names of folders with records of decisions, in lower case.
const DECISIONS: &[&str] = &["adr", "adrs", "decisions", "decision-records", "architecture-decisions"];

/// The stored documents.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Cursor {
    /// The commit in which the documents were read.
    commit: String,
    /// The content of each document, by its path.
    stored: BTreeMap<String, String>,
}

/// Returns whether the file at `path` is a document that is imported.
pub fn is_document(path: &str) -> bool {
    let lower = path.to_lowercase();
    let mut parts: Vec<&str> = lower.split('/').collect();
    let name = parts.pop().unwrap_or_default();
    let is_rule = name.ends_with(".mdc") && parts.ends_with(&[".cursor", "rules"]);
    let is_record = name.ends_with(".md")
        && parts.iter().any(|folder| DECISIONS.contains(folder))
        && name.starts_with(|c: char| c.is_ascii_digit())
        || name.starts_with("adr-") && name.ends_with(".md");
    // What others wrote is not what this project decided.
    let is_foreign = parts.iter().any(|folder| matches!(*folder, "node_modules" | "vendor" | "third_party"));
    !is_foreign && (INSTRUCTIONS.contains(&name) || is_rule || is_record)
}

/// The result of one round.
#[derive(Debug, Default)]
pub struct Followed {
    /// How many documents were stored.
    pub stored: usize,
    /// How many documents were left out, because there are too many.
    pub left_out: usize,
    /// Whether git took too long, so that the next round begins again.
    pub is_unfinished: bool,
}

/// Returns the ids of the documents in the commit that was checked out when they were last followed. `cursor` is the
/// import cursor named [`CURSOR`].
pub fn current(cursor: &str) -> HashSet<MemoryId> {
    let known: Cursor = serde_json::from_str(cursor).unwrap_or_default();
    let id = |(path, blob): (&String, &String)| MemoryId::derive(Kind::Document, None, &key(path, blob));
    known.stored.iter().map(id).collect()
}

/// Stores the documents of the checked-out commit that are not stored yet. If `until` is given and git takes longer,
/// nothing is stored.
pub async fn follow((sources, intake): (&Sources, &dyn Intake), until: Option<Instant>) -> Result<Followed> {
    let Some(repository) = sources.repository.clone() else { return Ok(Followed::default()) };
    let known = intake.cursor(CURSOR).await?;
    let known: Cursor = known.and_then(|known| serde_json::from_str(&known).ok()).unwrap_or_default();
    let ignored = sources.machine.ignored.clone();
    let read = move |_: &_| {
        let now = Instant::now();
        let left = until.map(|until| until.saturating_duration_since(now).mul_f64(OF_TIME));
        let until = now + left.unwrap_or(LONGEST);
        read(&repository, &known, |path| is_document(path) && !ignored.path(path), until)
    };
    let unfinished = || Followed { is_unfinished: true, ..Followed::default() };
    let Some(Ok(read)) = in_time(until, read).await else { return Ok(unfinished()) };
    let Some(Found { cursor, drafts, left_out }) = read else { return Ok(Followed::default()) };
    let mut stored = 0;
    if !drafts.is_empty() {
        let prepared = prepare_all(&sources.redactor, drafts, &mut random);
        stored = intake.remember(prepared.memories).await?.count(Outcome::Stored);
    }
    let cursor = serde_json::to_string(&cursor).expect("a cursor is JSON");
    intake.keep_cursor(CURSOR, &sources.redactor.redact(&cursor).text).await?;
    Ok(Followed { stored, left_out, is_unfinished: false })
}

/// The documents of a commit.
struct Found {
    cursor: Cursor,
    /// The documents that are new or have changed.
    drafts: Vec<Draft>,
    left_out: usize,
}

/// Reads the documents of the checked-out commit. Returns `None` if they were read before, or if there is no commit.
/// Errors if they can't be read in time.
fn read(
    repository: &Repository,
    known: &Cursor,
    is_wanted: impl Fn(&str) -> bool,
    until: Instant,
) -> Result<Option<Found>> {
    let Some(head) = repository.head()?.commit else { return Ok(None) };
    let commit = head.to_string();
    if commit == known.commit {
        return Ok(None);
    }
    let mut files = repository.files(&head, is_wanted, until)?;
    // Of records with numbers, the latest are kept.
    let left_out = files.len().saturating_sub(MOST);
    files.drain(..left_out);
    let is_new = |file: &&TreeFile| known.stored.get(&file.path) != Some(&file.blob.to_string());
    let new: Vec<TreeFile> = files.iter().filter(is_new).cloned().collect();
    let times = repository.changed_at(&head, &new, until);
    let drafts = new.iter().zip(times).filter_map(|(file, time)| {
        let bytes = repository.content(&file.blob, LARGEST)?;
        let text = encoding::text(bytes).ok()?.text;
        (!text.trim().is_empty()).then(|| draft(file, text, time * 1000))
    });
    let drafts = drafts.collect();
    let stored = files.into_iter().map(|file| (file.path, file.blob.to_string())).collect();
    Ok(Some(Found { cursor: Cursor { commit, stored }, drafts, left_out }))
}

/// Returns the draft of a document. Only a heading in the first line is its title.
fn draft(file: &TreeFile, text: String, time: i64) -> Draft {
    let first = text.trim_start().lines().next().unwrap_or_default();
    let title = first.strip_prefix("# ").map(|title| title.trim().to_owned());
    let mut draft = Draft::new(Kind::Document, Provenance::File, text, time);
    draft.title = title;
    draft.path = Some(file.path.clone());
    draft.source_id = Some(file.blob.to_string());
    draft.identity = Identity::Named(key(&file.path, &file.blob.to_string()));
    draft
}

/// Returns the key of a version of a document.
fn key(path: &str, blob: &str) -> String {
    format!("{path} {blob}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_and_decisions_are_documents() {
        for path in [
            "CLAUDE.md",
            "crates/x/AGENTS.md",
            ".github/copilot-instructions.md",
            ".cursor/rules/style.mdc",
            "docs/decisions/0004-scores-are-added.md",
            "doc/adr/0001-record.md",
            "docs/ADR-12-queue.md",
        ] {
            assert!(is_document(path), "{path}");
        }
        for path in ["README.md", "CHANGELOG.md", "docs/adr/README.md", "src/agents.rs", "vendor/x/AGENTS.md"]
        {
            assert!(!is_document(path), "{path}");
        }
    }
}
