//! The cursor of a transcript: how far it is read, kept in the store between readings.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::clients::transcripts;
use crate::engine::Engine;
use crate::error::Result;
use crate::import::transcript::{About, Transcript};
use crate::memory::Millis;
use crate::project::{OpenProject, SeenProject};

/// How many bytes are compared to recognise a transcript: at its beginning, and before the cursor.
const AROUND: u64 = 4096;

/// Where reading a transcript continues, and what is known of its session by then.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Cursor {
    /// Offset in bytes of the first line that was not read.
    pub(crate) at: u64,
    /// Bytes after `at` in which no end of the line was found.
    #[serde(default)]
    pub(crate) looked: u64,
    /// Digest of the bytes at the beginning of the file and before `at`.
    around: String,
    session: Option<String>,
    is_subagent: bool,
    worktree: Option<String>,
    branch: Option<String>,
    /// When the session began, if known. `last` is the last known time before `at`. Both in milliseconds.
    pub(crate) first: Option<Millis>,
    last: Option<Millis>,
    /// What is kept of the entries before `at`.
    #[serde(flatten)]
    kept: Kept,
    /// For a session held in another project: whether the turn at `at` has acted in this project.
    #[serde(default)]
    pub(crate) is_here: bool,
    /// What is kept of entries that end at `at` or later, with their end. The next reading reads them again.
    #[serde(skip)]
    ahead: Vec<(u64, Kept)>,
}

/// Bytes kept of a session.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Kept {
    /// Of tool outputs.
    #[serde(rename = "tools_kept")]
    pub(crate) tools: usize,
    /// Of all entries, tool outputs included.
    #[serde(rename = "all_kept")]
    pub(crate) all: usize,
}

impl Kept {
    /// Adds the counts of `other`.
    pub(crate) fn add(&mut self, other: Kept) {
        self.tools += other.tools;
        self.all += other.all;
    }
}

impl Cursor {
    /// Returns the cursor stored as `source`, and the length of the transcript in bytes. The cursor is at 0 if the file
    /// is new or was replaced.
    pub(crate) async fn of(project: &OpenProject, source: &str, path: &Path) -> Result<(Cursor, u64)> {
        let stored = project.store.import_cursor(&project.scope, source).await?;
        let cursor: Cursor = stored.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        let (all, around) = transcripts::around(path, cursor.at, AROUND)?;
        // The file was replaced or cut off. Entries that it has in common with the former file are already stored.
        let is_other = cursor.at + cursor.looked > all || cursor.around != digest(&around);
        Ok((if is_other { Cursor::default() } else { cursor }, all))
    }

    /// Returns how many bytes of the transcript are not read yet.
    pub(crate) async fn unread(seen: &SeenProject, path: &Path) -> Result<u64> {
        let Some(project) = &seen.open else { return Ok(transcripts::around(path, 0, 0)?.0) };
        let source = project.redactor.redact(&format!("transcript:{}", path.display())).text.into_owned();
        let (cursor, all) = Cursor::of(project, &source, path).await?;
        Ok(all.saturating_sub(cursor.at + cursor.looked))
    }

    /// Returns what is known of the session so far.
    pub(crate) fn about(&self) -> About {
        About {
            session: self.session.clone(),
            worktree: self.worktree.clone(),
            branch: self.branch.clone(),
            is_subagent: self.is_subagent,
            last: self.last,
            ..About::default()
        }
    }

    /// Returns how many bytes of the session are kept so far.
    pub(crate) fn kept(&self) -> Kept {
        let mut kept = self.kept;
        self.ahead.iter().for_each(|(_, each)| kept.add(*each));
        kept
    }

    /// Counts the bytes of an entry that ends with the line at `end`.
    pub(crate) fn keeps(&mut self, end: u64, kept: Kept) {
        self.ahead.push((end, kept));
    }

    /// Moves the cursor to `at`. Entries that end before it are counted once and for all; later ones are read and
    /// counted again.
    pub(crate) fn advance(&mut self, at: u64) {
        self.at = at;
        let kept = &mut self.kept;
        self.ahead.retain(|(end, each)| {
            let is_behind = *end < at;
            if is_behind {
                kept.add(*each);
            }
            !is_behind
        });
    }

    /// Stores the cursor with what the reader knows of the session.
    pub(crate) async fn keep(
        &mut self,
        engine: &Engine,
        project: &OpenProject,
        source: &str,
        path: &Path,
        reader: &Transcript,
    ) -> Result<()> {
        let about = reader.about();
        self.around = digest(&transcripts::around(path, self.at, AROUND)?.1);
        (self.session, self.worktree) = (about.session.clone(), about.worktree.clone());
        (self.branch, self.is_subagent) = (about.branch.clone(), about.is_subagent);
        self.last = reader.known_before();
        let text = serde_json::to_string(&self).expect("a cursor is plain values");
        let text = project.redactor.redact(&text).text.into_owned();
        project.store.set_import_cursor(&project.scope, source, &text, engine.now()).await
    }
}

fn digest(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex()[..16].to_owned()
}
