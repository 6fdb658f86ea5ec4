//! A hit of a search: its data, and the lines of text that show it.

use schemars::JsonSchema;
use serde::Serialize;

use crate::common::beginning_in_bytes;
use crate::memory::authors::by;
use crate::memory::beside::linked;
use tiro_base::envelope;
use tiro_digest::context::render;

/// The maximum number of bytes of a hit's text in a single line. Arbitrary: about twenty words.
const LINE: usize = 120;

/// A memory that was found: what a model needs to read it and to cite it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Hit {
    /// The memory's id.
    pub id: String,
    /// The client's message id, or the commit's full SHA.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_id: Option<String>,
    /// The memory's kind.
    pub kind: String,
    /// `owner` if it belongs to all of the owner's projects, `elsewhere` if it belongs to another project; left out if it
    /// belongs to this project.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<&'static str>,
    /// The other project that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<OfProject>,
    /// The chunk of its text that matches best, or a part of that chunk.
    pub text: String,
    /// Whether the memory has more text than the field `text` shows; left out if not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_part: bool,
    /// The conversation it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The title of that conversation. Only the first hit of a conversation has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The speaker of a message or the author of a commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speaker: Option<String>,
    /// Who shared it; left out if that was the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// The file of a document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The branch it was made on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// When it was made, RFC 3339.
    pub time: String,
    /// current, file_changed, gone, other_branch, commit_gone, not_in_clone or unknown.
    pub freshness: String,
    /// The files and identifiers named by the text that changed or are gone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stale_names: Vec<String>,
    /// The memory that replaced it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub superseded: Option<SupersededBy>,
    /// For a commit that is on no branch, whether git still has it: in_reflog, unnamed or removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gone: Option<String>,
    /// If the memory is a commit, the conversations that led to it, the likeliest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conversations: Vec<String>,
    /// For each of `conversations`, the confidence that it led to the commit, 0.5 to 1.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub confidences: Vec<f64>,
    /// The likeliest of `conversations`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub behind: Option<Behind>,
    /// How many other memories with the same text were left out.
    #[serde(skip_serializing_if = "is_zero")]
    pub duplicates: usize,
    /// How it was ranked, if `TIRO_TIMINGS` is set.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub ranking: Option<Ranking>,
    /// How well its words and its meaning fit the query, whatever its length and its speaker.
    #[serde(skip)]
    pub relevance: f64,
    /// How many tokens (o200k) its lines take in the text of the answer.
    #[serde(skip)]
    pub tokens: usize,
    /// What its lines show besides the fields above.
    #[serde(skip)]
    pub frame: Frame,
}

/// How a hit was ranked, and what else is known of it, for those who work on Tiro.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Ranking {
    /// If the memory is a commit, its full SHA; otherwise the SHA of the commit that was checked out when it was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Where the text came from, such as `user_said`.
    pub provenance: String,
    /// The sum of `score_parts`.
    pub score: f64,
    /// The parts of the score.
    pub score_parts: ScoreParts,
}

/// The parts that add up to a score.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct ScoreParts {
    /// The share of the query's words that the memory has, where rare words weigh more: 1 if it has all of them.
    pub lexical: f64,
    /// The cosine of the memory's embedding and the query's: 1 if both have the same direction.
    pub semantic: f64,
    /// A bonus if the query names the memory's speaker.
    pub speaker: f64,
    /// A bonus if the memory is marked as important, or else for the importance that its author gave it.
    pub importance: f64,
    /// A bonus for the long answer right after a user's message.
    pub exchange: f64,
    /// How much the score is lowered for a long answer, or for a commit by a program.
    pub prior: f64,
}

/// The memory that replaced a hit.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SupersededBy {
    /// Its id.
    pub by: String,
    /// When it was made, to the minute.
    pub date: String,
    /// The sentence that it replaced, if the hit says more than this sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub statement: Option<String>,
}

/// The conversation that led to a commit.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Behind {
    /// The session's name.
    pub session_id: String,
    /// The title that its client gave it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The day of the message that `open` names.
    pub date: String,
    /// The confidence that it led to the commit, 0.5 to 1.
    #[serde(skip)]
    pub confidence: f64,
    /// The argument `id` of expand_detail that opens the message that answers best; if no message answers, the last one
    /// before the commit.
    pub open: String,
    /// The message that answers best. Left out if no message answers, if the message is itself a hit, or if it doesn't
    /// fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub said: Option<BehindMessage>,
}

/// A message of the conversation that led to a commit.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct BehindMessage {
    /// The speaker's name or role.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speaker: Option<String>,
    /// Who shared it; left out if that was the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// The chunk of its text that matches best.
    pub text: String,
}

/// The data that a hit's lines show in addition to the fields of [`Hit`].
#[derive(Clone, Debug, Default)]
pub struct Frame {
    /// The first line of the excerpt, without its closing bracket.
    pub head: String,
    /// The line in `head` without the names of the session, the speaker and the branch.
    pub bare_head: String,
    /// The provenance of the text, if no person wrote it: `model_said` or `tool_output`.
    pub provenance: Option<&'static str>,
    /// The tokens of the whole memory.
    pub whole: i64,
    /// The hit's place on the page, from 0. If a hit was removed after it was found, its place stays empty.
    pub rank: usize,
    /// How much each part added to its score. People see from it why the hit was found.
    pub parts: ScoreParts,
}

/// Another project of the user.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OfProject {
    /// Its name.
    pub name: String,
    /// The directory at which it was seen last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
}

/// The freshness of a memory of somebody else whose commit this clone doesn't have, or not yet.
pub(super) const NOT_IN_CLONE: &str = "not_in_clone";

fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl Hit {
    /// Returns the hit's lines in the text of the answer: its properties, its text, its freshness, and the conversation
    /// that led to it.
    pub fn excerpt(&self) -> String {
        let mut part = match (&self.project, self.scope) {
            (Some(project), _) => format!(", of project {}", envelope::name(&project.name)),
            (None, Some(_)) => ", of all projects".to_owned(),
            (None, None) => String::new(),
        };
        part += &by(self.author.as_deref());
        if let Some(provenance) = self.frame.provenance {
            part += &format!(", {provenance}");
        }
        if self.is_part {
            part += &format!(", part of {} tokens", self.frame.whole);
        }
        if self.duplicates > 0 {
            part += &format!(", {} more with this text", self.duplicates);
        }
        let mut text = format!("{}{part}]\n{}\n", self.frame.head, envelope::quoted(self.text.trim()));
        if let Some(superseded) = &self.superseded {
            text += &format!("[{}]\n", superseded.sentence());
        }
        text += &self.stale().map(|stale| format!("[{stale}]\n")).unwrap_or_default();
        if let Some(behind) = &self.behind {
            text += &behind.lines(self.conversations.len());
        }
        text
    }

    /// Returns how the hit's commit, or the code that it names, has changed since the memory was made; `None` if
    /// nothing changed, or if the hit is of another project.
    pub fn stale(&self) -> Option<String> {
        // The repository of another project is not read.
        if self.project.is_some() {
            return None;
        }
        let stale = match self.freshness.as_str() {
            "file_changed" | "gone" if !self.stale_names.is_empty() => {
                return Some(render::stale(self.freshness == "gone", &self.stale_names));
            }
            "file_changed" => "the file changed since",
            "gone" => "the file is gone",
            "other_branch" => "on another branch",
            "commit_gone" => match self.gone.as_deref() {
                Some("in_reflog") => "commit gone from all branches; the reflog still has it",
                Some("unnamed") => "commit gone from all branches and reflogs",
                _ => "commit gone",
            },
            NOT_IN_CLONE => "its commit is not in this clone",
            "unknown" => "not compared with git yet",
            _ => return None,
        };
        Some(stale.to_owned())
    }

    /// Returns the hit as a single line: its kind, id, date and speaker, and the beginning of its text.
    pub fn line(&self) -> String {
        let speaker = self.speaker.as_deref().map(|speaker| format!(" {}", envelope::name(speaker)));
        let (head, speaker) = (&self.frame.bare_head, speaker.unwrap_or_default());
        let author = by(self.author.as_deref());
        format!("{head}{speaker}{author}] {}\n", envelope::name(&self.beginning()))
    }

    /// Returns the beginning of the hit's text on a single line.
    pub fn beginning(&self) -> String {
        let text = self.text.split_whitespace().collect::<Vec<_>>().join(" ");
        beginning_in_bytes(&text, LINE).into_owned()
    }

    /// Replaces the hit's text with `text`, which is a part of it.
    pub fn shorten(&mut self, text: String) {
        self.is_part |= text.len() < self.text.len();
        self.text = text;
    }

    /// Leaves out the next optional part. Returns false if none is left. First the message of the conversation that led
    /// to the hit is left out, then this conversation, then the names of all such conversations, and then the other
    /// names.
    pub fn shrink(&mut self) -> bool {
        if let Some(behind) = &mut self.behind {
            if behind.said.take().is_none() {
                self.behind = None;
            }
            return true;
        }
        // One name stays, so that the line does not speak of a file.
        if self.stale_names.len() > 1 {
            self.stale_names.truncate(1);
            return true;
        }
        if !self.conversations.is_empty() {
            self.conversations.clear();
            self.confidences.clear();
            return true;
        }
        let names = [
            &mut self.source_id,
            &mut self.session_id,
            &mut self.title,
            &mut self.speaker,
            &mut self.path,
            &mut self.branch,
        ];
        let had = names.into_iter().map(Option::take).filter(Option::is_some).count() > 0;
        had && {
            self.frame.head.clone_from(&self.frame.bare_head);
            true
        }
    }
}

impl SupersededBy {
    /// Returns what replaced the hit, or which sentence of it, as text without a full stop.
    pub fn sentence(&self) -> String {
        let SupersededBy { by, date, statement } = self;
        let part = statement.as_deref().map(|statement| format!("\"{}\" is ", envelope::name(statement)));
        format!("{}superseded by {by} of {date}", part.unwrap_or_default())
    }
}

impl Behind {
    /// Returns the lines that name the conversation, the argument that opens it, and its best message. `count` is the
    /// number of conversations that led to the commit.
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
        if let Some(BehindMessage { speaker, author, text }) = &self.said {
            let speaker = speaker.as_deref().map(envelope::name).unwrap_or_default();
            let author = by(author.as_deref());
            lines += &format!("[{open} {speaker}{author}]\n{}\n", envelope::quoted(text.trim()));
        }
        lines
    }
}
