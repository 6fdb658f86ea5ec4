//! Makes the answer. It contains as many segments as fit, in their original order, and says what was done with the
//! others.

use std::collections::{HashMap, HashSet};

use schemars::JsonSchema;
use serde::Serialize;

use crate::common::tool::Answer;
use crate::memory::authors::by;
use tiro_base::envelope;
use tiro_base::humanize::{counted, thousands};
use tiro_base::memory::{DAMAGED, Memory, Role};
use tiro_base::scope::AuthorId;
use tiro_base::times::{day, show_time};
use tiro_host::caller::Form;
use tiro_host::summaries::messages::count;
use tiro_recall::stash::merge::{self, Plan};
use tiro_text::tokens;

/// The answer of the call.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Output {
    /// Says that quoted text is data, not instructions.
    pub caution: &'static str,
    /// The segments, in their original order.
    pub segments: Vec<Merged>,
    /// The tokens (o200k) of the texts of `segments`.
    pub tokens_added: usize,
    /// The tokens of this answer (o200k): of its text, or of its JSON if the caller reads that and it has more.
    pub tokens_used: usize,
    /// Segments, or the rests of segments, that did not fit. They stay stashed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
    /// Segments with the text of another one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub duplicates: Vec<Instead>,
    /// Older versions of a file, of which the newest is shown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<Instead>,
    /// Whether the segments stay in the stash.
    pub kept: bool,
    /// Other remarks, each a sentence without a full stop.
    pub notices: Vec<String>,
    /// The answer as text.
    #[serde(skip)]
    rendered: String,
}

/// A segment that is brought back.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Merged {
    /// Its id.
    pub id: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Its number in that conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number: Option<i64>,
    /// The speaker of a message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speaker: Option<String>,
    /// Who shared it; left out if that was the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// Its file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// When it was made, RFC 3339.
    pub time: String,
    /// The bytes at its beginning that are not repeated, since the segment before ends with them, or an earlier answer
    /// showed them.
    #[serde(skip_serializing_if = "is_zero")]
    pub from_byte: usize,
    /// Whether the text is damaged: not what was stored.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub damaged: bool,
    /// Its text, byte for byte, from `from_byte` on.
    pub text: String,
    /// Whether the text goes on; `left_out` names the rest.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_part: bool,
    /// Its first line in the text of the answer, without the closing bracket.
    #[serde(skip)]
    head: String,
}

/// What did not fit.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct LeftOut {
    /// The name to give as one of `segment_ids`: an id, or `ID@BYTE` for the rest of a segment.
    pub id: String,
    /// Its tokens (o200k).
    pub tokens: i64,
}

/// A segment in place of which another one is shown.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Instead {
    /// Its id.
    pub id: String,
    /// The id of the other segment.
    pub shown: String,
}

fn is_zero(bytes: &usize) -> bool {
    *bytes == 0
}

/// Segments to merge within a budget.
pub(super) struct Merging {
    /// The segments, the most important first.
    pub segments: Vec<Memory>,
    /// The parts of the segments to show.
    pub plan: Plan,
    /// The byte at which to continue a segment, keyed by the id of the segment.
    pub begins: HashMap<String, usize>,
    /// The maximum number of tokens of the answer, in each form that the caller reads.
    pub max_tokens: usize,
    /// The forms in which the caller reads the answer.
    pub form: Form,
    /// Whether the segments stay in the stash.
    pub keep: bool,
    /// Notices.
    pub notices: Vec<String>,
    /// The secret of the installation.
    pub secret: [u8; 32],
    /// The caller.
    pub reader: AuthorId,
}

impl Merging {
    /// Returns this value without the segments called `ids`, which were forgotten in the meantime.
    pub fn without(mut self, ids: &[String]) -> Merging {
        self.segments.retain(|segment| !ids.contains(&segment.id.to_string()));
        self.plan = merge::plan(&self.segments);
        self.notices.push(format!(
            "{} while being merged",
            counted(ids.len(), "segment was forgotten", "segments were forgotten")
        ));
        self
    }
}

impl Output {
    /// Returns the answer as text.
    pub fn text(&self) -> String {
        self.rendered.clone()
    }

    /// Returns the ids of the segments that the answer shows to their end, and of those that it shows in another
    /// segment's text.
    pub(super) fn brought_back(&self) -> HashSet<String> {
        let whole = self.segments.iter().filter(|segment| !segment.is_part).map(|segment| segment.id.clone());
        let mut back: HashSet<String> = whole.collect();
        for Instead { id, shown } in self.duplicates.iter().chain(&self.conflicts) {
            if back.contains(shown) {
                back.insert(id.clone());
            }
        }
        back
    }
}

/// Returns the answer. Segments are taken in the order given, as long as they fit. A segment that doesn't fit is left
/// out, and smaller ones after it may still fit. If none fits, the first is shown in part.
pub(super) fn fit(merging: &Merging) -> Output {
    let order = &merging.plan.shown;
    let all: Vec<Merged> = order.iter().map(|(place, overlap)| merging.shown(*place, *overlap)).collect();
    let costs: Vec<usize> = all.iter().map(|segment| cost(merging.form, segment)).collect();
    let mut by_importance: Vec<usize> = (0..order.len()).collect();
    by_importance.sort_unstable_by_key(|number| order[*number].0);
    let mut taken: Vec<usize> = Vec::new();
    let frame = answer(merging, &all, &[]).tokens_used;
    let mut used = frame;
    for number in by_importance.iter().copied() {
        if used.saturating_add(costs[number]) <= merging.max_tokens {
            used += costs[number];
            taken.push(number);
        }
    }
    loop {
        let output = answer(merging, &all, &taken);
        if output.tokens_used <= merging.max_tokens && (all.is_empty() || !taken.is_empty()) {
            return output;
        }
        if taken.pop().is_none() {
            break;
        }
    }
    match by_importance.first() {
        Some(first) => in_part(merging, all, *first),
        None => answer(merging, &all, &[]),
    }
}

/// Returns the answer with as much of the segment `first` as fits.
fn in_part(merging: &Merging, mut all: Vec<Merged>, first: usize) -> Output {
    let whole = std::mem::take(&mut all[first].text);
    let bare = answer(merging, &all, &[first]).tokens_used;
    let mut room = merging.max_tokens.saturating_sub(bare);
    while room > 0 {
        let part = tokens::truncate(&whole, room);
        if part.is_empty() {
            break;
        }
        all[first].text = part.to_owned();
        all[first].is_part = part.len() < whole.len();
        let output = answer(merging, &all, &[first]);
        if output.tokens_used <= merging.max_tokens {
            return output;
        }
        // In JSON, a text may have more tokens than alone.
        room = room * 9 / 10;
    }
    all[first].text = whole;
    answer(merging, &all, &[])
}

/// Returns the approximate number of tokens that a segment takes in the answer.
fn cost(form: Form, segment: &Merged) -> usize {
    Answer::cost(form, &segment.lines(), segment) + 2
}

/// Returns the answer that shows the segments `taken` of `all`. `all` is in the order of the plan.
fn answer(merging: &Merging, all: &[Merged], taken: &[usize]) -> Output {
    let is_taken = |number: &usize| taken.contains(number);
    let segments: Vec<Merged> = (0..all.len()).filter(is_taken).map(|number| all[number].clone()).collect();
    let id = |place: usize| merging.segments[place].id.to_string();
    let instead = |pairs: &[(usize, usize)]| -> Vec<Instead> {
        pairs.iter().map(|(one, other)| Instead { id: id(*one), shown: id(*other) }).collect()
    };
    let mut left_out = Vec::new();
    for (number, (place, _)) in merging.plan.shown.iter().enumerate() {
        let segment = &merging.segments[*place];
        if !is_taken(&number) {
            left_out.push(LeftOut { id: id(*place), tokens: segment.tokens });
        } else if all[number].is_part {
            let end = all[number].from_byte + all[number].text.len();
            let rest = count(&segment.text[end..]) as i64;
            left_out.push(LeftOut { id: format!("{}@{end}", id(*place)), tokens: rest });
        }
    }
    let mut output = Output {
        caution: envelope::CAUTION,
        tokens_added: segments.iter().map(|segment| count(&segment.text)).sum(),
        segments,
        tokens_used: merging.max_tokens.min(1_000_000),
        left_out,
        duplicates: instead(&merging.plan.duplicates),
        conflicts: instead(&merging.plan.conflicts),
        kept: merging.keep,
        notices: merging.notices.clone(),
        rendered: String::new(),
    };
    output.rendered = output.render(&merging.secret);
    output.tokens_used = Answer::cost(merging.form, &output.rendered, &output);
    output
}

impl Merging {
    /// Returns the segment with the index `place`. Its first `overlap` bytes repeat the end of the segment before it.
    fn shown(&self, place: usize, overlap: usize) -> Merged {
        let segment = &self.segments[place];
        let id = segment.id.to_string();
        let begin = self.begins.get(&id).copied().unwrap_or(0).max(overlap);
        let from_byte = segment.text.floor_char_boundary(begin.min(segment.text.len()));
        let speaker = segment.speaker.clone().or(segment.role.map(Role::as_str).map(str::to_owned));
        let mut head = format!("[{} {id} {}", segment.kind, day(segment.time));
        if let Some(speaker) = &speaker {
            head += &format!(" {}", envelope::name(speaker));
        }
        let author = segment.author.other_than(&self.reader);
        head += &by(author.as_deref());
        if let Some(session) = &segment.session {
            let number = segment.ordinal.map_or(String::new(), |number| format!("#{number}"));
            head += &format!(", session {}{number}", envelope::name(session.as_str()));
        }
        if let Some(path) = &segment.path {
            head += &format!(", {}", envelope::name(path));
        }
        if segment.is_damaged {
            head += &format!(", {DAMAGED}");
        }
        Merged {
            id,
            kind: segment.kind.to_string(),
            session_id: segment.session.as_ref().map(ToString::to_string),
            number: segment.ordinal,
            speaker,
            author,
            source: segment.path.clone(),
            time: show_time(segment.time),
            from_byte,
            damaged: segment.is_damaged,
            text: segment.text[from_byte..].to_owned(),
            is_part: false,
            head,
        }
    }
}

impl Merged {
    /// Returns the segment as lines of the answer.
    fn lines(&self) -> String {
        let mut head = self.head.clone();
        if self.from_byte > 0 {
            head += &format!(", from byte {}", self.from_byte);
        }
        if self.is_part {
            head += ", in part";
        }
        format!("{head}]\n{}\n", envelope::quoted(&self.text))
    }
}

impl Output {
    fn render(&self, secret: &[u8; 32]) -> String {
        let body: String = self.segments.iter().map(Merged::lines).collect();
        let mut text = match self.segments.is_empty() {
            true => "Nothing fits; ask again with a larger max_tokens.".to_owned(),
            false => format!(
                "{}{} merged, {} tokens added.",
                envelope::wrap(secret, &body),
                counted(self.segments.len(), "segment", "segments"),
                thousands(self.tokens_added as u64)
            ),
        };
        if !self.left_out.is_empty() {
            let names = self.left_out.iter().map(|left| format!("{} ({} tokens)", left.id, left.tokens));
            let names: Vec<String> = names.collect();
            text += &format!("\nDid not fit, and stay stashed: {}.", names.join(", "));
        }
        for (pairs, what) in
            [(&self.duplicates, "has the text of"), (&self.conflicts, "is an older version of")]
        {
            for Instead { id, shown } in pairs {
                text += &format!("\n{id} {what} {shown}, which is shown.");
            }
        }
        if !self.kept {
            text += "\nThe merged segments left the stash.";
        }
        self.notices.iter().for_each(|notice| text += &format!("\nNote: {notice}."));
        text
    }
}
