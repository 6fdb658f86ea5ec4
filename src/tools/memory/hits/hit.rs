//! A hit of a search: what is answered of a memory that was found, and the lines that show it.

use schemars::JsonSchema;
use serde::Serialize;

use crate::envelope;
use crate::tools::memory::linked;

/// A memory that was found.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Hit {
    /// The memory's id.
    pub id: String,
    /// The client's message id, or the commit's full SHA.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_id: Option<String>,
    /// What it is.
    pub kind: String,
    /// project, or owner: it belongs to all of the owner's projects.
    pub scope: String,
    /// The best piece of its text.
    pub text: String,
    /// Whether the memory says more than the piece.
    pub is_part: bool,
    /// The conversation it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Who spoke or committed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speaker: Option<String>,
    /// The branch it was made on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The commit it is, or was made at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// When it was made.
    pub time: String,
    /// Where the text came from.
    pub provenance: String,
    /// current, file_changed, other_branch, commit_gone or unknown.
    pub freshness: String,
    /// Of a commit that is gone: in_reflog, unnamed or removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gone: Option<String>,
    /// How well it answers: the sum of its parts.
    pub score: f64,
    /// What the score is made of.
    pub score_parts: ScoreParts,
    /// Tokens of its part of the text (o200k).
    pub tokens: usize,
    /// Conversations behind a commit, the likeliest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conversations: Vec<String>,
    /// How sure that is of each, 0.5 to 1.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub confidences: Vec<f64>,
    /// The likeliest of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub behind: Option<Behind>,
    /// Other memories with the same text.
    #[serde(skip_serializing_if = "is_zero")]
    pub duplicates: usize,
    /// What its own lines are made of.
    #[serde(skip)]
    pub frame: Frame,
}

/// What a score is the sum of.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ScoreParts {
    /// The share of the words asked for that it has, by their rarity: 1 is all.
    pub lexical: f64,
    /// The cosine of its meaning with the question's: 1 is the same.
    pub semantic: f64,
    /// From the speaker's name.
    pub speaker: f64,
    /// From marks.
    pub importance: f64,
}

/// The conversation behind a commit.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Behind {
    /// Its name.
    pub session_id: String,
    /// The line that its client names it by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The day of what was said.
    pub date: String,
    /// How sure it is that the commit came of it, 0.5 to 1.
    #[serde(skip)]
    pub confidence: f64,
    /// What expand_detail opens: the message that answers best, else the last one before the commit.
    pub open: String,
    /// That message, where there is room and it answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub said: Option<Said>,
}

/// A message of the conversation behind a commit.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Said {
    /// Who speaks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speaker: Option<String>,
    /// The best piece of it.
    pub text: String,
}

/// What the lines of a hit are made of beside its data.
#[derive(Clone, Debug, Default)]
pub struct Frame {
    /// The line it begins with, without the bracket that ends it.
    pub head: String,
    /// `head` without names.
    pub bare_head: String,
    /// Tokens of the whole memory.
    pub whole: i64,
    /// Its place on the page, where some may be gone since they were found.
    pub rank: usize,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl Hit {
    /// Returns its part of the text: a line that says what it is, the piece, what became of it, and what is behind it.
    pub fn excerpt(&self) -> String {
        let part = match self.is_part {
            true => format!(", part of {} tokens", self.frame.whole),
            false => String::new(),
        };
        let mut text = format!("{}{part}]\n{}\n", self.frame.head, envelope::quoted(self.text.trim()));
        text += stale_line(self);
        if let Some(behind) = &self.behind {
            text += &behind.lines(self.conversations.len());
        }
        text
    }

    /// Shows only `text` of the piece.
    pub fn shorten(&mut self, text: String) {
        self.is_part |= text.len() < self.text.len();
        self.text = text;
    }

    /// Leaves out what it can do without, a bit more with each call; `false` where nothing is left of that.
    pub fn give_way(&mut self) -> bool {
        if let Some(behind) = &mut self.behind {
            if behind.said.take().is_none() {
                self.behind = None;
            }
            return true;
        }
        if !self.conversations.is_empty() {
            self.conversations.clear();
            self.confidences.clear();
            return true;
        }
        let names = [&mut self.source_id, &mut self.session_id, &mut self.speaker, &mut self.branch];
        let had = names.into_iter().map(Option::take).filter(Option::is_some).count() > 0;
        had && {
            self.frame.head.clone_from(&self.frame.bare_head);
            true
        }
    }
}

impl Behind {
    /// Returns the lines that name it and how it is opened; it is one of `count` conversations.
    fn lines(&self, count: usize) -> String {
        let title = self.title.as_deref().map(|title| format!(" \"{}\"", envelope::name(title)));
        let more = match count {
            0 | 1 => String::new(),
            count => format!(", and {} more", count - 1),
        };
        let (name, open) = (envelope::name(&self.session_id), envelope::name(&self.open));
        let (title, sure) = (title.unwrap_or_default(), linked::sure(self.confidence));
        let mut lines = format!(
            "[said in session {name}{title}, {}{sure}{more}; expand_detail opens {open}]\n",
            self.date
        );
        if let Some(Said { speaker, text }) = &self.said {
            let speaker = speaker.as_deref().map(envelope::name).unwrap_or_default();
            lines += &format!("[{open} {speaker}]\n{}\n", envelope::quoted(text.trim()));
        }
        lines
    }
}

/// Returns a line that says what became of what the hit speaks of; empty where it is current.
fn stale_line(hit: &Hit) -> &'static str {
    match hit.freshness.as_str() {
        "file_changed" => "[the file changed since]\n",
        "other_branch" => "[on another branch]\n",
        "commit_gone" => match hit.gone.as_deref() {
            Some("in_reflog") => "[commit gone from all branches; the reflog still has it]\n",
            Some("unnamed") => "[commit gone from all branches and reflogs]\n",
            _ => "[commit gone]\n",
        },
        "unknown" => "[not compared with git yet]\n",
        _ => "",
    }
}
