//! How far a transcript is read, kept in the store between two readings.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::clients::transcripts;
use crate::engine::Engine;
use crate::error::Result;
use crate::import::transcript::{About, Transcript};
use crate::memory::Millis;
use crate::project::{OpenProject, SeenProject};

/// By how many bytes at its beginning and before the place reached a transcript is known again.
const AROUND: u64 = 4096;

/// Where reading a transcript goes on.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Cursor {
    /// Offset in bytes of the first line that was not read.
    pub(crate) at: u64,
    /// Bytes of the line there that were looked at without finding its end.
    #[serde(default)]
    pub(crate) looked: u64,
    /// Digest of the bytes at the beginning and before `at`.
    around: String,
    session: Option<String>,
    is_subagent: bool,
    worktree: Option<String>,
    branch: Option<String>,
    /// When the session began, as far as is known, and the last time known before `at`.
    pub(crate) first: Option<Millis>,
    last: Option<Millis>,
    /// What is kept of what stands before `at`.
    #[serde(flatten)]
    kept: Kept,
    /// Whether something was done in the project in the turn there, of a session that was held elsewhere.
    #[serde(default)]
    pub(crate) is_here: bool,
    /// What is kept of entries that end at `at` or after it, by where they end: they are read again the next time.
    #[serde(skip)]
    ahead: Vec<(u64, Kept)>,
}

/// Bytes that are kept of a session.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Kept {
    /// Of what tools printed.
    #[serde(rename = "tools_kept")]
    pub(crate) tools: usize,
    /// Of all.
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
    /// Returns where to go on in the transcript that the store knows as `source`, and how long it is.
    pub(crate) async fn of(project: &OpenProject, source: &str, path: &Path) -> Result<(Cursor, u64)> {
        let stored = project.store.import_cursor(&project.scope, source).await?;
        let cursor: Cursor = stored.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        let (all, around) = transcripts::around(path, cursor.at, AROUND)?;
        // Another file, or one that was rewound: what it has in common with the one before is stored already.
        let is_other = cursor.at + cursor.looked > all || cursor.around != digest(&around);
        Ok((if is_other { Cursor::default() } else { cursor }, all))
    }

    /// Returns how many bytes of a transcript are not read yet.
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

    /// Returns what is kept of the session so far.
    pub(crate) fn kept(&self) -> Kept {
        let mut kept = self.kept;
        self.ahead.iter().for_each(|(_, each)| kept.add(*each));
        kept
    }

    /// Counts an entry that ends with the line at `end`.
    pub(crate) fn keeps(&mut self, end: u64, kept: Kept) {
        self.ahead.push((end, kept));
    }

    /// Lets reading go on at `at` the next time. What stands before is counted once, however often what follows is read.
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

    /// Stores how far the transcript is read, what is known of its session, and by what its file is known again.
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
