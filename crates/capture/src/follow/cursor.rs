//! The cursor of a transcript. It records how far the transcript was read, and is kept in the store between readings.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::clients::transcripts;
use crate::follow::reading::forks::Prefix;
use crate::import::transcript::{About, Forked, Transcript};
use tiro_base::error::Result;
use tiro_base::memory::Millis;
use tiro_intake::{Intake, ReadIntake};
use tiro_redact::Redactor;

/// To recognise a transcript, so many bytes are compared at its beginning, and as many before the cursor.
const AROUND: u64 = 4096;

/// The position at which reading a transcript continues, and what is known about its session up to this position.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Cursor {
    /// The offset in bytes of the first line that was not read.
    pub at: u64,
    /// The number of bytes after `at` that are known to contain no line end.
    #[serde(default)]
    pub looked: u64,
    /// A digest of the bytes at the beginning of the file and of the bytes before `at`.
    around: String,
    session: Option<String>,
    is_subagent: bool,
    worktree: Option<String>,
    branch: Option<String>,
    /// The time when the session began, if known. `last` is the last known time before `at`. Both are in milliseconds.
    pub first: Option<Millis>,
    last: Option<Millis>,
    /// The number of bytes that are stored of the entries before `at`.
    #[serde(flatten)]
    kept: Kept,
    /// The length and time of the compressed file that was read, if the transcript is compressed. While they stay the
    /// same, the file need not be decompressed to check whether it has grown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packed: Option<transcripts::Stamp>,
    /// Whether the compressed file was replaced since the last reading.
    #[serde(skip)]
    pub is_packed_anew: bool,
    /// The session that was copied to the beginning of this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    forked: Option<Forked>,
    /// The progress of reading that copy.
    #[serde(default)]
    pub prefix: Prefix,
    /// Whether a script ran the session.
    #[serde(default)]
    is_headless: bool,
    /// How far the transcript was read. This is behind `at` while a turn or a tool call is unfinished. These entries
    /// are read again when the transcript has grown.
    #[serde(default)]
    pub seen: u64,
    /// Whether anything of the session belongs to this project.
    #[serde(default)]
    has_any: bool,
    /// Whether the turn at `at` has already acted in this project. Used only for a session that runs in another
    /// project.
    #[serde(default)]
    pub is_here: bool,
    /// For each entry that ends at `at` or later, the offset of its end, and how many of its bytes are stored. The next
    /// reading reads these entries again.
    #[serde(skip)]
    ahead: Vec<(u64, Kept)>,
}

/// How far a transcript was read.
#[derive(Clone, Copy, Debug)]
pub struct Read {
    /// How many bytes are not read yet.
    pub unread: u64,
    /// Whether anything of the session belongs to the project.
    pub has_any: bool,
}

/// How many bytes of a session are stored.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Kept {
    /// The bytes of tool outputs.
    #[serde(rename = "tools_kept")]
    pub tools: usize,
    /// The bytes of all entries, including tool outputs.
    #[serde(rename = "all_kept")]
    pub all: usize,
}

impl Kept {
    /// Adds the counts of `other`.
    pub fn add(&mut self, other: Kept) {
        self.tools += other.tools;
        self.all += other.all;
    }
}

impl Cursor {
    /// Returns the cursor that is stored under the name `source`, and the length of the transcript in bytes. If the
    /// file is new or was replaced, the cursor is at 0.
    pub async fn of(intake: &dyn ReadIntake, source: &str, path: &Path) -> Result<(Cursor, u64)> {
        let stored = intake.cursor(source).await?;
        let cursor: Cursor = stored.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        let packed = transcripts::stamp(path);
        if packed.is_some() && cursor.packed == packed {
            let all = cursor.done();
            return Ok((cursor, all));
        }
        let (all, around) = transcripts::around(path, cursor.at, AROUND)?;
        // The file was replaced or cut off, so it is read from its beginning. Entries that the former file also
        // contained are recognised as already stored.
        let is_other = cursor.at + cursor.looked > all || cursor.around != digest(&around);
        let cursor = if is_other { Cursor::default() } else { cursor };
        let seen = if cursor.seen > all { 0 } else { cursor.seen };
        Ok((Cursor { packed, is_packed_anew: packed.is_some(), seen, ..cursor }, all))
    }

    /// Returns the name under which the cursor of a transcript is stored. It stays the same when the client compresses
    /// the transcript.
    pub fn source(redactor: &Redactor, path: &Path) -> String {
        redactor.redact(&format!("transcript:{}", transcripts::plain(path).display())).text.into_owned()
    }

    /// Returns how far the transcript was read.
    pub async fn read(redactor: &Redactor, intake: &dyn ReadIntake, path: &Path) -> Result<Read> {
        let source = Cursor::source(redactor, path);
        let (cursor, all) = Cursor::of(intake, &source, path).await?;
        let has_any = cursor.has_any || cursor.kept.all > 0;
        Ok(Read { unread: all.saturating_sub(cursor.done()), has_any })
    }

    /// Returns the byte up to which everything was read.
    pub fn done(&self) -> u64 {
        self.seen.max(self.at + self.looked)
    }

    /// Returns what is known about the session so far.
    pub fn about(&self) -> About {
        About {
            session: self.session.clone(),
            worktree: self.worktree.clone(),
            branch: self.branch.clone(),
            is_subagent: self.is_subagent,
            forked: self.forked.clone(),
            is_headless: self.is_headless,
            last: self.last,
            ..About::default()
        }
    }

    /// Returns how many bytes of the session are stored so far.
    pub fn kept(&self) -> Kept {
        let mut kept = self.kept;
        self.ahead.iter().for_each(|(_, each)| kept.add(*each));
        kept
    }

    /// Counts the stored bytes of an entry that ends with the line at `end`.
    pub fn keeps(&mut self, end: u64, kept: Kept) {
        self.ahead.push((end, kept));
        self.has_any = true;
    }

    /// Moves the cursor to `at`. The counts of entries that end before `at` become final. Later entries will be read
    /// and counted again.
    pub fn advance(&mut self, at: u64) {
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

    /// Stores the cursor together with the reader's knowledge of the session.
    pub async fn keep(
        &mut self,
        (redactor, intake): (&Redactor, &dyn Intake),
        source: &str,
        path: &Path,
        reader: &Transcript,
    ) -> Result<()> {
        let about = reader.about();
        self.around = digest(&transcripts::around(path, self.at, AROUND)?.1);
        (self.session, self.worktree) = (about.session.clone(), about.worktree.clone());
        (self.branch, self.is_subagent) = (about.branch.clone(), about.is_subagent);
        (self.forked, self.is_headless) = (about.forked.clone(), about.is_headless);
        self.last = reader.known_before();
        self.write((redactor, intake), source).await
    }

    /// Stores the cursor unchanged.
    pub async fn write(&self, (redactor, intake): (&Redactor, &dyn Intake), source: &str) -> Result<()> {
        let text = serde_json::to_string(self).expect("a cursor is plain values");
        let text = redactor.redact(&text).text.into_owned();
        intake.keep_cursor(source, &text).await
    }
}

fn digest(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex()[..16].to_owned()
}
