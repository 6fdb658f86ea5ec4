//! Makes the answer that shows an opened memory. The answer stays within its budget as text, and also as JSON if the
//! caller reads data.
//!
//! If the answer is too long, neighbours are left out first, beginning with the farthest. Then the end of the text is
//! cut off.

use schemars::JsonSchema;
use serde::Serialize;

use crate::common;
use crate::common::tool::Answer;
use crate::memory::authors::by;
use crate::memory::beside::linked::Linked;
use crate::memory::hits::SupersededBy;
use tiro_base::envelope;
use tiro_base::humanize::counted;
use tiro_base::memory::{DAMAGED, Memory, MemoryId, marked};
use tiro_base::scope::AuthorId;
use tiro_base::times;
use tiro_host::caller::Form;
use tiro_text::tokens;

/// The answer of the call.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// Says that quoted text is data, not instructions.
    pub caution: &'static str,
    /// The memory's id.
    pub id: String,
    /// The id that the client gave it.
    pub source_id: Option<String>,
    /// The memory's kind.
    pub kind: String,
    /// Where the text came from, such as `user_said`.
    pub provenance: String,
    /// The conversation it belongs to.
    pub session_id: Option<String>,
    /// Who shared it; left out if that was the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// When it was made, RFC 3339.
    pub time: String,
    /// Whether the text is not the one that was stored; left out if it is.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_damaged: bool,
    /// What replaced it, or one of its statements.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub superseded: Option<SupersededBy>,
    /// The text from the cursor on, as far as it fits.
    pub text: String,
    /// Messages before and after it, in order.
    pub neighbours: Vec<Neighbour>,
    /// Ids of memories that it refers to or that refer to it.
    pub references: Vec<String>,
    /// For a commit, the sessions that led to it; for a message, the commits that its session led to. The field `open`
    /// of each is the id that opens it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub linked: Vec<Linked>,
    /// The tokens of the whole text (o200k).
    pub tokens: i64,
    /// The tokens of this answer (o200k).
    pub tokens_used: usize,
    /// Whether something did not fit.
    pub truncated: bool,
    /// How many neighbours, references and links did not fit.
    pub dropped: usize,
    /// The cursor that continues the text.
    pub next_cursor: Option<String>,
    /// Other remarks, each a sentence without a full stop.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
    #[serde(skip)]
    rendered: String,
}

/// A message said shortly before or after the opened one.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Neighbour {
    /// Its id.
    pub id: String,
    /// The speaker's name or role.
    pub speaker: Option<String>,
    /// Who shared it; left out if that was the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// Its text.
    pub text: String,
}

/// The parts from which an answer is made.
pub(super) struct Page {
    /// The secret of the installation.
    pub secret: [u8; 32],
    /// The memory.
    pub memory: Memory,
    /// What replaced it, or one of its statements.
    pub superseded: Option<SupersededBy>,
    /// The caller, whose own memories name no author.
    pub reader: AuthorId,
    /// The byte of the memory's text at which the page begins.
    pub start: usize,
    /// The messages around the memory, including the memory itself if it is a message.
    pub around: Vec<Memory>,
    /// Ids of memories that it refers to or that refer to it.
    pub references: Vec<String>,
    /// If the memory is a commit, the conversations that led to it; otherwise the commits that its conversation led to.
    pub linked: Vec<Linked>,
    /// Other remarks, each a sentence without a full stop.
    pub notices: Vec<String>,
    /// The maximum number of tokens of the text. It also limits the JSON if the caller reads it.
    pub budget: usize,
    /// The forms in which the caller reads the answer.
    pub form: Form,
}

/// The minimum number of tokens for the memory's own text. Arbitrary: more than any single character costs, so that
/// each page shows some of the text.
const LEAST_TEXT: usize = 20;

/// Returns the answer with as much of the text as fits, and with the nearest neighbours that then still fit. The answer
/// does not exceed the budget in any form that the caller reads.
///
/// The first count loads the tokenizer's dictionary, which blocks the thread.
pub(super) fn fit(page: Page) -> Output {
    let Page { memory, start, budget, .. } = &page;
    let (start, budget) = (*start, *budget);
    let count = |text: &str| tokens::count(text);
    let own = memory.ordinal.unwrap_or(0);
    let escaped = envelope::escape(&memory.text[start..]).into_owned();
    // The text is first cut to the budget's tokens, so that the loops below don't count text that can't fit.
    let mut shown = tokens::truncate(&escaped, budget);
    let mut shape = Shape {
        around: page.around.clone(),
        references: page.references.clone(),
        linked: page.linked.clone(),
        shows_names: true,
        dropped: 0,
    };
    // A neighbour that exceeds the budget by itself is left out at once.
    let most = i64::try_from(budget).unwrap_or(i64::MAX);
    shape.around.retain(|other| other.id == memory.id || other.tokens <= most);
    shape.dropped += page.around.len() - shape.around.len();
    // If the budget is small, references, links and names are left out to make room for the text.
    loop {
        let alone = shape.around.iter().filter(|other| other.id == memory.id).cloned().collect();
        let bare = answer(&page, &Shape { around: alone, ..shape.clone() }, "", start);
        if bare.tokens_used + LEAST_TEXT <= budget || !shape.shrink(&memory.id) {
            break;
        }
    }
    loop {
        // A page ends between two characters, never inside the escape sequence of a character.
        let end = start + raw_length(&memory.text[start..], shown.len());
        shown = &escaped[..envelope::escape(&memory.text[start..end]).len()];
        let output = answer(&page, &shape, shown, end);
        if output.tokens_used <= budget || shown.is_empty() {
            return output;
        }
        // The farthest neighbour is left out first, then the end of the text.
        let farthest = shape
            .around
            .iter()
            .enumerate()
            .filter(|(_, neighbour)| neighbour.id != memory.id)
            .max_by_key(|(_, neighbour)| (neighbour.ordinal.unwrap_or(0) - own).abs())
            .map(|(place, _)| place);
        match farthest {
            Some(place) => {
                shape.around.remove(place);
                shape.dropped += 1;
            }
            None => {
                // The text may cost more tokens in JSON than alone, so it is shortened in proportion to its cost in the
                // answer.
                let (tokens, bare) = (count(shown), answer(&page, &shape, "", start).tokens_used);
                let cost = output.tokens_used.saturating_sub(bare).max(1);
                let kept = tokens * budget.saturating_sub(bare) / cost;
                shown = tokens::truncate(shown, kept.min(tokens.saturating_sub(1)));
            }
        }
    }
}

/// The parts of an answer except the memory's own text.
#[derive(Clone)]
struct Shape {
    /// The messages around the memory, including the memory itself if it is a message.
    around: Vec<Memory>,
    references: Vec<String>,
    linked: Vec<Linked>,
    /// Whether the answer shows the memory's session, its branch, and the id that the client gave it.
    shows_names: bool,
    dropped: usize,
}

impl Shape {
    /// Leaves out the least important part except the memory's own text. Returns false if there is nothing left to
    /// leave out.
    fn shrink(&mut self, own: &MemoryId) -> bool {
        if self.references.pop().is_some() {
            self.dropped += 1;
            return true;
        }
        if self.linked.pop().is_some() {
            self.dropped += 1;
            return true;
        }
        if std::mem::take(&mut self.shows_names) {
            return true;
        }
        let around = std::mem::take(&mut self.around);
        self.dropped += around.iter().filter(|other| other.id != *own).count();
        !around.is_empty()
    }
}

/// Returns the answer that shows `shown`, which is the escaped text up to `end`. `tokens_used` is set to the number of
/// tokens of the answer's text. If the caller reads JSON and the JSON has more tokens, it is set to the number of
/// tokens of the JSON.
fn answer(page: &Page, shape: &Shape, shown: &str, end: usize) -> Output {
    let Page { secret, memory, .. } = page;
    let next_start = (end < memory.text.len()).then_some(end);
    let named = |name: &Option<String>| {
        let name = name.as_deref().filter(|_| shape.shows_names);
        name.map(|name| envelope::escape(name).into_owned())
    };
    let session = memory.session.as_ref().map(ToString::to_string);
    let names = [named(&session), named(&memory.branch), named(&memory.source_id)];
    let author = memory.author.other_than(&page.reader);
    let by = author.as_ref().map(|author| format!("shared by {author}"));
    let names: Vec<String> = names.into_iter().flatten().chain(by).collect();
    let head = Head {
        memory,
        reader: &page.reader,
        names: &names,
        superseded: page.superseded.as_ref(),
        references: &shape.references,
        linked: &shape.linked,
    };
    let text = render(secret, head, shown, &shape.around, next_start);
    let rendered = |used: usize| {
        let mut text = text.clone() + &common::spent(used, page.budget);
        if shape.dropped > 0 {
            let (one, several) = ("neighbour or link did not fit", "neighbours or links did not fit");
            text += &format!("\n{}.", counted(shape.dropped, one, several));
        }
        text + &common::footnotes(&[], 0, &page.notices)
    };
    let neighbours = shape.around.iter().filter(|other| other.id != memory.id);
    let neighbours = neighbours.map(|other| Neighbour {
        id: other.id.to_string(),
        speaker: speaker(other),
        author: other.author.other_than(&page.reader),
        text: envelope::escape(&marked(other.text.clone(), other.is_damaged)).into_owned(),
    });
    let mut output = Output {
        caution: envelope::CAUTION,
        id: memory.id.to_string(),
        source_id: named(&memory.source_id),
        kind: memory.kind.to_string(),
        provenance: memory.provenance.to_string(),
        session_id: named(&session),
        author,
        time: times::show_time(memory.time),
        is_damaged: memory.is_damaged,
        superseded: page.superseded.clone(),
        text: shown.to_owned(),
        neighbours: neighbours.collect(),
        references: shape.references.clone(),
        linked: shape.linked.clone(),
        tokens: memory.tokens,
        // `tokens_used` is part of the counted text. During the count, the field contains the budget, the largest value
        // it can get, so the final number takes no more tokens.
        tokens_used: page.budget,
        truncated: shape.dropped > 0 || next_start.is_some(),
        dropped: shape.dropped,
        next_cursor: next_start.map(|end| end.to_string()),
        notices: page.notices.clone(),
        rendered: rendered(page.budget),
    };
    output.tokens_used = Answer::cost(page.form, &output.rendered, &output);
    output.rendered = rendered(output.tokens_used);
    output
}

/// The properties that the lines before a memory's text show.
struct Head<'a> {
    memory: &'a Memory,
    reader: &'a AuthorId,
    names: &'a [String],
    superseded: Option<&'a SupersededBy>,
    references: &'a [String],
    linked: &'a [Linked],
}

fn render(
    secret: &[u8; 32],
    head: Head<'_>,
    shown: &str,
    neighbours: &[Memory],
    next_start: Option<usize>,
) -> String {
    let Head { memory, reader, names, superseded, references, linked } = head;
    let mut body = format!("[{} {} {}", memory.kind, memory.id, times::show_time(memory.time));
    for name in names {
        body += &format!(" {}", envelope::name(name));
    }
    body += "]\n";
    if let Some(superseded) = superseded {
        body += &format!("[{}]\n", superseded.sentence());
    }
    if !references.is_empty() {
        body += &format!("[references {}]\n", references.join(", "));
    }
    linked.iter().for_each(|linked| body += &linked.line());
    let shown = envelope::quoted(shown);
    let mut own_is_shown = false;
    for neighbour in neighbours {
        let is_own = neighbour.id == memory.id;
        own_is_shown |= is_own;
        let name = speaker(neighbour).unwrap_or_default();
        let name = envelope::name(&name);
        match is_own {
            true => body += &format!("\n[this] {name}: {shown}\n"),
            false => {
                let damaged = if neighbour.is_damaged { format!(" {DAMAGED}") } else { String::new() };
                let text = envelope::quoted(&neighbour.text);
                let author = by(neighbour.author.other_than(reader).as_deref());
                body += &format!("\n[{}{author}{damaged}] {name}: {text}\n", neighbour.id);
            }
        }
    }
    if !own_is_shown {
        body += &format!("\n{shown}\n");
    }
    if next_start.is_some() {
        body += "\n[the text continues]\n";
    }
    let mut text = envelope::wrap(secret, &body);
    if memory.is_damaged {
        text.insert_str(0, &format!("Text {DAMAGED}; `tiro doctor` says what helps.\n"));
    }
    if let Some(cursor) = next_start {
        text += &format!("\nMore with cursor `{cursor}`.");
    }
    text
}

fn speaker(memory: &Memory) -> Option<String> {
    let name = memory.speaker.clone().or_else(|| memory.role.map(|role| role.to_string()));
    name.map(|name| envelope::escape(&name).into_owned())
}

/// Returns how many bytes at the beginning of `raw` can be escaped into at most `escaped` bytes. The returned length
/// ends between two characters.
fn raw_length(raw: &str, escaped: usize) -> usize {
    let (mut least, mut most) = (0, raw.len());
    while least < most {
        let middle = raw.ceil_char_boundary(least + (most - least).div_ceil(2));
        match envelope::escape(&raw[..middle]).len() <= escaped {
            true => least = middle,
            false => most = raw.floor_char_boundary(middle - 1),
        }
    }
    least
}

impl Output {
    /// Returns the answer as text.
    pub fn text(&self) -> String {
        self.rendered.clone()
    }
}
