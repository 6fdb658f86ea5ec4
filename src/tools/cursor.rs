//! How far a transcript is read, kept in the store between two readings.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::clients::transcripts;
use crate::engine::{Engine, OpenProject};
use crate::error::Result;
use crate::import::transcript::{About, Transcript};
use crate::memory::Millis;

/// By how many bytes at its beginning and before the place reached a transcript is known again.
const AROUND: u64 = 4096;

/// Where reading a transcript goes on.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Cursor {
    pub(super) at: u64,
    /// Bytes of the line there that were looked at without finding its end.
    #[serde(default)]
    pub(super) looked: u64,
    /// Digest of the bytes at the beginning and before `at`.
    around: String,
    session: Option<String>,
    is_subagent: bool,
    worktree: Option<String>,
    branch: Option<String>,
    /// When the session began, as far as is known, and the last time known before `at`.
    pub(super) first: Option<Millis>,
    last: Option<Millis>,
    /// Bytes kept so far, of what tools printed and of all.
    pub(super) tools_kept: usize,
    pub(super) all_kept: usize,
}

impl Cursor {
    /// Returns where to go on in the transcript that the store knows as `source`, and how long it is.
    pub(super) async fn of(project: &OpenProject, source: &str, path: &Path) -> Result<(Cursor, u64)> {
        let stored = project.store.import_cursor(&project.scope, source).await?;
        let cursor: Cursor = stored.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        let (all, around) = transcripts::around(path, cursor.at, AROUND)?;
        // Another file, or one that was rewound: what it has in common with the one before is stored already.
        let is_other = cursor.at + cursor.looked > all || cursor.around != digest(&around);
        Ok((if is_other { Cursor::default() } else { cursor }, all))
    }

    /// Returns what is known of the session so far.
    pub(super) fn about(&self) -> About {
        About {
            session: self.session.clone(),
            worktree: self.worktree.clone(),
            branch: self.branch.clone(),
            is_subagent: self.is_subagent,
            last: self.last,
            ..About::default()
        }
    }

    /// Stores how far the transcript is read, what is known of its session, and by what its file is known again.
    pub(super) async fn keep(
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
