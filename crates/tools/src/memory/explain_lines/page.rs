//! Makes the answer of `explain_lines`. It stays within its budget as text, and also as JSON if the caller reads data.

use std::ops::Range;

use schemars::JsonSchema;
use serde::Serialize;

use super::groups::Group;
use crate::common;
use crate::common::beginning_in_bytes;
use crate::common::tool::Answer;
use crate::memory::authors::by;
use tiro_base::envelope;
use tiro_base::error::partial;
use tiro_base::humanize::counted;
use tiro_base::memory::Memory;
use tiro_base::times::minute;
use tiro_host::caller::Form;
use tiro_intake::LineOrigin;
use tiro_store::SessionKey;

/// How many runs of lines of one group are named. Arbitrary: about half a line of text.
const MOST_RUNS: usize = 8;

/// The maximum number of bytes that are shown of a subject or a title. Arbitrary: about a line.
const LONGEST_LINE: usize = 120;

/// The number of digits of a commit's id that the text shows.
const SHORT_ID: usize = 12;

/// The answer of the call.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Output {
    /// Says that quoted text is data, not instructions.
    pub caution: &'static str,
    /// The path of the file in the repository.
    pub path: String,
    /// How many lines the whole file has.
    pub lines_of_file: usize,
    /// The lines, in groups of one origin.
    pub groups: Vec<Explained>,
    /// What else was said about the lines.
    pub others: Vec<Other>,
    /// How many groups did not fit.
    pub left_out: usize,
    /// The tokens of this answer (o200k): of its text, or of its JSON if the caller reads that and it has more.
    pub tokens_used: usize,
    /// Remarks about what the answer lacks, each a sentence without a full stop.
    pub notices: Vec<String>,
    /// The answer as text.
    #[serde(skip)]
    pub rendered: String,
}

/// Lines of one origin, and why they were written.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Explained {
    /// The lines, such as `3-9, 12`.
    pub lines: String,
    /// committed, older, uncommitted or unknown. Lines of a shallow clone may be older than the commit.
    pub state: &'static str,
    /// The full id of the commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The first line of the commit's message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The author of the commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// When the author wrote the commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// The session in which the lines were written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The title of the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// How the session is linked to the lines, and how sure that is.
    pub link: String,
    /// The sentences that say why; none if it is not known.
    pub reasons: Vec<Reason>,
    /// The runs of lines.
    #[serde(skip)]
    pub runs: Vec<Range<usize>>,
}

/// A sentence that says why lines were written.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Reason {
    /// asked, answered or accepted by the user, decided by the assistant, or committed.
    pub part: &'static str,
    /// The sentence.
    pub text: String,
    /// Who said it.
    pub speaker: Option<String>,
    /// Who shared it; left out if that was the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// When it was said.
    pub time: String,
    /// The argument `id` of expand_detail that opens its source.
    pub open: String,
    /// The id of the memory that replaced it, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub superseded: Option<String>,
}

/// Another memory about the lines.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Other {
    /// The beginning of its best sentence.
    pub text: String,
    /// Its kind.
    pub kind: &'static str,
    /// Who shared it; left out if that was the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// When it was said.
    pub time: String,
    /// The argument `id` of expand_detail that opens it.
    pub open: String,
}

/// What an answer needs besides its parts.
pub struct Frame {
    /// The path of the file in the repository.
    pub path: String,
    /// How many lines the file has.
    pub count: usize,
    /// How many groups are not among those that are shown.
    pub left_out: usize,
    /// The maximum number of tokens.
    pub budget: usize,
    /// The forms in which the caller reads the answer.
    pub form: Form,
    /// The secret of the installation.
    pub secret: [u8; 32],
}

/// Returns a text with its control characters escaped.
pub fn escaped(text: &str) -> String {
    envelope::escape(text).into_owned()
}

impl Explained {
    /// Returns the lines of `group` with their commit and link, but without reasons.
    pub fn of(group: &Group) -> Explained {
        let state = match group.origin {
            LineOrigin::Commit(_) => "committed",
            LineOrigin::Boundary(_) => "older",
            LineOrigin::Uncommitted => "uncommitted",
            LineOrigin::Unknown => "unknown",
        };
        let commit = group.commit.as_ref();
        let subject = commit.and_then(|commit| commit.message.lines().next());
        Explained {
            lines: lines(&group.runs()),
            runs: group.runs(),
            state,
            commit: group.origin.commit().map(str::to_owned),
            subject: subject.map(|subject| escaped(&beginning_in_bytes(subject.trim(), LONGEST_LINE))),
            author: commit.map(|commit| escaped(&commit.author)).filter(|author| !author.is_empty()),
            time: commit.map(|commit| minute(commit.time)),
            session: None,
            title: None,
            link: link(group),
            reasons: Vec::new(),
        }
    }

    /// Returns whether `other` has the same commit, link and reasons.
    pub fn has_same_reason(&self, other: &Explained) -> bool {
        let key = |each: &Explained| {
            let reasons: Vec<_> = each
                .reasons
                .iter()
                .map(|reason| (reason.part, reason.open.clone(), reason.text.clone()))
                .collect();
            (each.state, each.commit.clone(), each.session.clone(), each.link.clone(), reasons)
        };
        key(self) == key(other)
    }

    /// Adds the lines of `other`, which has the same reason.
    pub fn take_lines(&mut self, other: Explained) {
        self.runs.extend(other.runs);
        self.runs.sort_by_key(|run| run.start);
        let mut joined: Vec<Range<usize>> = Vec::new();
        for run in self.runs.drain(..) {
            match joined.last_mut().filter(|last| last.end == run.start) {
                Some(last) => last.end = run.end,
                None => joined.push(run),
            }
        }
        (self.lines, self.runs) = (lines(&joined), joined);
    }

    fn text(&self) -> String {
        let Explained { lines, state, commit, subject, author, time, session, title, link, reasons, .. } =
            self;
        let noun = if lines.contains(['-', ',']) { "Lines" } else { "Line" };
        let quoted = |text: &Option<String>| {
            text.as_deref().map(|text| format!(" \"{}\"", envelope::name(text))).unwrap_or_default()
        };
        let plain = |text: &Option<String>| {
            text.as_deref().map(|text| format!(", {}", envelope::name(text))).unwrap_or_default()
        };
        let commit = commit.as_deref().map(|id| &id[..id.len().min(SHORT_ID)]);
        let origin = match (*state, commit) {
            ("committed", Some(id)) => {
                format!("commit {id}{}{}{}", quoted(subject), plain(author), plain(time))
            }
            ("older", Some(id)) => {
                format!("as old as commit {id}{}, where this shallow clone ends, or older", plain(time))
            }
            ("uncommitted", _) => "not committed yet".to_owned(),
            _ => "the commit was not found".to_owned(),
        };
        let mut text = format!("{noun} {lines}: {origin}\n");
        for reason in reasons {
            text += &reason.text();
        }
        let session =
            session.as_ref().map(|session| format!("session {}{}: ", envelope::name(session), quoted(title)));
        let unknown = if reasons.is_empty() { "why is not known: " } else { "" };
        text + &format!("  [{unknown}{}{link}]\n", session.unwrap_or_default())
    }
}

impl Reason {
    fn text(&self) -> String {
        let Reason { part, text, speaker, author, time, open, superseded } = self;
        let speaker = speaker.as_deref().map(|speaker| format!("{}, ", envelope::name(speaker)));
        let superseded = superseded.as_deref().map(|by| format!("; superseded by {by}"));
        let open = match *part {
            "committed" => String::new(),
            _ => format!(", {}", envelope::name(open)),
        };
        format!(
            "  {part}: {} [{}{time}{open}{}{}]\n",
            envelope::quoted(&one_line(text)),
            speaker.unwrap_or_default(),
            by(author.as_deref()),
            superseded.unwrap_or_default()
        )
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns runs of lines as text, such as `3-9, 12 and 4 more runs`.
fn lines(runs: &[Range<usize>]) -> String {
    let run = |run: &Range<usize>| match run.len() {
        1 => run.start.to_string(),
        _ => format!("{}-{}", run.start, run.end - 1),
    };
    let shown: Vec<String> = runs.iter().take(MOST_RUNS).map(run).collect();
    match runs.len() - shown.len() {
        0 => shown.join(", "),
        more => format!("{} and {}", shown.join(", "), counted(more as i64, "more run", "more runs")),
    }
}

/// Returns how a session is linked to the lines of a group, and how sure that is.
fn link(group: &Group) -> String {
    let is_committed = group.origin.commit().is_some();
    match (&group.writer, group.links.first()) {
        (Some(writer), _) => {
            let linked = group.links.iter().find(|(linked, _)| *linked == writer.session);
            match linked {
                Some((_, confidence)) => {
                    let place = match group.paths.contains(&writer.path) {
                        true => "the lines".to_owned(),
                        false => format!("these lines in `{}`", escaped(&writer.path)),
                    };
                    format!("it wrote {place}, and led to the commit ({})", percent(*confidence))
                }
                None if is_committed => "it wrote most of the lines before the commit".to_owned(),
                None => "it wrote the lines".to_owned(),
            }
        }
        (None, Some(_)) if !group.has_sure_link() => "no session is surely linked to the commit".to_owned(),
        (None, Some((session, confidence))) => match group.changes.is_empty() {
            true => format!(
                "it led to the commit ({}), but no recorded change of it is in this file",
                percent(*confidence)
            ),
            false => changed(group, *session),
        },
        (None, None) if is_committed && group.memory.is_none() => {
            "the commit is not in the memory; `tiro import git` imports it".to_owned()
        }
        (None, None) if is_committed => "no session is linked to the commit".to_owned(),
        (None, None) => "no recorded session wrote them".to_owned(),
    }
}

/// Returns how `session` is linked to the lines of a group if no recorded change of it has exactly these lines.
pub fn changed(group: &Group, session: SessionKey) -> String {
    let linked = group.links.iter().find(|(linked, _)| *linked == session);
    let sure = percent(linked.map_or(0.0, |(_, confidence)| *confidence));
    let changed = if group.is_guessed { "seems to have changed" } else { "changed" };
    format!(
        "it {changed} the file, and led to the commit ({sure}), but no recorded change has exactly these lines"
    )
}

/// Returns how a session is linked to the lines of a group if it made the file without a recorded change.
pub fn made(group: &Group) -> String {
    let sure = percent(group.links.first().map_or(0.0, |(_, confidence)| *confidence));
    format!(
        "it led to the commit that made the file ({sure}), and first mentioned the file after this request"
    )
}

fn percent(confidence: f64) -> String {
    format!("{:.0}%", confidence * 100.0)
}

/// Returns the answer with as many of `explained` as fit, the first ones first. The other memories are left out before a
/// group is.
///
/// The first count loads the tokenizer's dictionary, which blocks the thread.
pub fn fit(frame: Frame, explained: Vec<Explained>, others: Vec<Other>, notices: Vec<String>) -> Output {
    let mut output = Output {
        caution: envelope::CAUTION,
        path: envelope::escape(&frame.path).into_owned(),
        lines_of_file: frame.count,
        groups: explained,
        others,
        left_out: frame.left_out,
        tokens_used: 0,
        notices,
        rendered: String::new(),
    };
    loop {
        output.rendered = text(&output, &frame);
        output.tokens_used = Answer::cost(frame.form, &output.rendered, &output);
        if output.tokens_used <= frame.budget {
            return output;
        }
        if output.others.pop().is_none() {
            match output.groups.pop() {
                Some(_) => output.left_out += 1,
                None => {
                    output.notices.truncate(1);
                    output.path = beginning_in_bytes(&output.path, LONGEST_LINE).into_owned();
                    output.rendered = text(&output, &frame);
                    return output;
                }
            }
        }
    }
}

fn text(output: &Output, frame: &Frame) -> String {
    let count = counted(output.lines_of_file as i64, "line", "lines");
    let mut body = format!("{} has {count}\n", envelope::name(&output.path));
    for group in &output.groups {
        body += &group.text();
    }
    if !output.others.is_empty() {
        body += "Also said about these lines:\n";
    }
    for Other { text, kind, author, time, open } in &output.others {
        let (text, open) = (one_line(text), envelope::name(open));
        let author = by(author.as_deref());
        body += &format!("  {} [{kind}, {time}, {open}{author}]\n", envelope::quoted(&text));
    }
    let mut text = partial::line(&output.notices) + &envelope::wrap(&frame.secret, &body);
    if output.left_out > 0 {
        let groups = counted(output.left_out as i64, "group of lines was", "groups of lines were");
        text += &format!("\n{groups} left out; ask for fewer lines or more tokens.");
    }
    text + &common::footnotes(&[], 0, &output.notices)
}

impl Output {
    /// Returns the answer as text.
    pub fn text(&self) -> String {
        self.rendered.clone()
    }
}

/// Returns the argument that opens a memory.
pub fn open(memory: &Memory) -> String {
    match (&memory.session, memory.ordinal) {
        (Some(session), Some(ordinal)) => escaped(&format!("{session}#{ordinal}")),
        _ => memory.id.to_string(),
    }
}
