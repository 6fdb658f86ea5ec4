//! How an opened memory becomes an answer that keeps its budget as text and as JSON.
//!
//! What stands around the text gives way first, the farthest neighbour before the others, then the end of the text.

use schemars::JsonSchema;
use serde::Serialize;

use crate::envelope;
use crate::memory::{Memory, MemoryId};
use crate::times;
use crate::tokens;
use crate::tools::common;
use crate::tools::common::tool::Answer;
use crate::tools::memory::linked::Linked;

/// What the call answers.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// How to take what is quoted.
    pub caution: &'static str,
    /// The memory's id.
    pub id: String,
    /// The client's own id of it.
    pub source_id: Option<String>,
    /// What it is.
    pub kind: String,
    /// Where the text came from.
    pub provenance: String,
    /// The conversation it belongs to.
    pub session_id: Option<String>,
    /// When it was made.
    pub time: String,
    /// The text from the cursor on, as far as it fits.
    pub text: String,
    /// Messages around it, in order.
    pub neighbours: Vec<Neighbour>,
    /// Ids of memories it refers to or that refer to it.
    pub references: Vec<String>,
    /// Sessions behind a commit, or commits that came of a message's session; each opens by its `open`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub linked: Vec<Linked>,
    /// Tokens of the whole text (o200k).
    pub tokens: i64,
    /// Tokens of this answer (o200k).
    pub tokens_used: usize,
    /// Whether something did not fit.
    pub truncated: bool,
    /// Neighbours, references and links that did not fit.
    pub dropped: usize,
    /// Where the text goes on.
    pub next_cursor: Option<String>,
    /// What else there is to know.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
    #[serde(skip)]
    rendered: String,
}

/// A message said shortly before or after.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Neighbour {
    /// Its id.
    pub id: String,
    /// Who speaks.
    pub speaker: Option<String>,
    /// What was said.
    pub text: String,
}

/// What an answer is made of.
pub(super) struct Page {
    /// The secret of the installation.
    pub secret: [u8; 32],
    /// The memory.
    pub memory: Memory,
    /// The byte of its text that the page begins at.
    pub start: usize,
    /// The messages around it, itself among them where it is one.
    pub around: Vec<Memory>,
    /// Ids of memories it refers to or that refer to it.
    pub references: Vec<String>,
    /// Conversations behind a commit, or commits that came of a conversation.
    pub linked: Vec<Linked>,
    /// What else there is to know.
    pub notices: Vec<String>,
    /// Tokens that neither text nor JSON may pass.
    pub budget: usize,
}

/// Tokens that the text itself gets at least; what stands around it gives way. Arbitrary, more than any one
/// character takes, so that every page goes on.
const LEAST_TEXT: usize = 20;

/// Returns the answer with as much of the text as fits, then the nearest neighbours that still do, as text and as JSON.
///
/// Counting loads the tokenizer's dictionary the first time, which blocks.
pub(super) fn fit(page: Page) -> Output {
    let Page { memory, start, budget, .. } = &page;
    let (start, budget) = (*start, *budget);
    let count = |text: &str| tokens::count(text);
    let own = memory.ordinal.unwrap_or(0);
    let escaped = envelope::escape(&memory.text[start..]).into_owned();
    // More than the budget doesn't fit, and what doesn't fit needn't be counted again and again.
    let mut shown = tokens::truncate(&escaped, budget);
    let mut shape = Shape {
        around: page.around.clone(),
        references: page.references.clone(),
        linked: page.linked.clone(),
        is_named: true,
        dropped: 0,
    };
    // A neighbour that is too long by itself is not weighed against the others.
    let most = i64::try_from(budget).unwrap_or(i64::MAX);
    shape.around.retain(|other| other.id == memory.id || other.tokens <= most);
    shape.dropped += page.around.len() - shape.around.len();
    // Under a short budget what names the memory gives way to what it says.
    loop {
        let alone = shape.around.iter().filter(|other| other.id == memory.id).cloned().collect();
        let bare = answer(&page, &Shape { around: alone, ..shape.clone() }, "", start);
        if bare.tokens_used + LEAST_TEXT <= budget || !shape.give_way(&memory.id) {
            break;
        }
    }
    loop {
        // A page ends between characters, also where one is written out.
        let end = start + raw_length(&memory.text[start..], shown.len());
        shown = &escaped[..envelope::escape(&memory.text[start..end]).len()];
        let output = answer(&page, &shape, shown, end);
        if output.tokens_used <= budget || shown.is_empty() {
            return output;
        }
        // What is farthest away goes first, then the end of the text.
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
                // As JSON a text may cost more than as it is: it is cut by its share of what is too much.
                let (tokens, bare) = (count(shown), answer(&page, &shape, "", start).tokens_used);
                let cost = output.tokens_used.saturating_sub(bare).max(1);
                let kept = tokens * budget.saturating_sub(bare) / cost;
                shown = tokens::truncate(shown, kept.min(tokens.saturating_sub(1)));
            }
        }
    }
}

/// What is shown beside the text.
#[derive(Clone)]
struct Shape {
    /// The messages around it, itself among them where it is one.
    around: Vec<Memory>,
    references: Vec<String>,
    linked: Vec<Linked>,
    /// Whether its session, branch and origin are named.
    is_named: bool,
    dropped: usize,
}

impl Shape {
    /// Gives up what matters least beside the memory's own text; `false` where nothing is left.
    fn give_way(&mut self, own: &MemoryId) -> bool {
        if self.references.pop().is_some() {
            self.dropped += 1;
            return true;
        }
        if self.linked.pop().is_some() {
            self.dropped += 1;
            return true;
        }
        if std::mem::take(&mut self.is_named) {
            return true;
        }
        let around = std::mem::take(&mut self.around);
        self.dropped += around.iter().filter(|other| other.id != *own).count();
        !around.is_empty()
    }
}

/// Returns the answer that shows the text up to `end` as `shown`, with its tokens as text or as JSON, whichever is more.
fn answer(page: &Page, shape: &Shape, shown: &str, end: usize) -> Output {
    let Page { secret, memory, .. } = page;
    let goes_on = (end < memory.text.len()).then_some(end);
    let named = |name: &Option<String>| {
        let name = name.as_deref().filter(|_| shape.is_named);
        name.map(|name| envelope::escape(name).into_owned())
    };
    let session = memory.session.as_ref().map(ToString::to_string);
    let names = [named(&session), named(&memory.branch), named(&memory.source_id)];
    let names: Vec<String> = names.into_iter().flatten().collect();
    let head = Head { memory, names: &names, references: &shape.references, linked: &shape.linked };
    let mut rendered = render(secret, head, shown, &shape.around, goes_on);
    rendered += &common::footnotes(&[], 0, &page.notices);
    let neighbours = shape.around.iter().filter(|other| other.id != memory.id);
    let neighbours = neighbours.map(|other| Neighbour {
        id: other.id.to_string(),
        speaker: speaker(other),
        text: envelope::escape(&other.text).into_owned(),
    });
    let mut output = Output {
        caution: envelope::CAUTION,
        id: memory.id.to_string(),
        source_id: named(&memory.source_id),
        kind: memory.kind.to_string(),
        provenance: memory.provenance.to_string(),
        session_id: named(&session),
        time: times::show_time(memory.time),
        text: shown.to_owned(),
        neighbours: neighbours.collect(),
        references: shape.references.clone(),
        linked: shape.linked.clone(),
        tokens: memory.tokens,
        // The number is part of what is counted: with the budget in its place it is at least as long.
        tokens_used: page.budget,
        truncated: shape.dropped > 0 || goes_on.is_some(),
        dropped: shape.dropped,
        next_cursor: goes_on.map(|end| end.to_string()),
        notices: page.notices.clone(),
        rendered,
    };
    let json = serde_json::to_string(&Answer::new(String::new(), &output).fields).expect("an answer is JSON");
    let count = |text: &str| tokens::count(text);
    output.tokens_used = count(&output.rendered).max(count(&json));
    output
}

/// What is said of a memory before its text.
struct Head<'a> {
    memory: &'a Memory,
    names: &'a [String],
    references: &'a [String],
    linked: &'a [Linked],
}

fn render(
    secret: &[u8; 32],
    head: Head<'_>,
    shown: &str,
    neighbours: &[Memory],
    goes_on: Option<usize>,
) -> String {
    let Head { memory, names, references, linked } = head;
    let mut body = format!("[{} {} {}", memory.kind, memory.id, times::show_time(memory.time));
    for name in names {
        body += &format!(" {}", envelope::name(name));
    }
    body += "]\n";
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
            false => body += &format!("\n[{}] {name}: {}\n", neighbour.id, envelope::quoted(&neighbour.text)),
        }
    }
    if !own_is_shown {
        body += &format!("\n{shown}\n");
    }
    if goes_on.is_some() {
        body += "\n[the text goes on]\n";
    }
    let mut text = envelope::wrap(secret, &body);
    if let Some(cursor) = goes_on {
        text += &format!("\nMore with cursor `{cursor}`.");
    }
    text
}

fn speaker(memory: &Memory) -> Option<String> {
    let name = memory.speaker.clone().or_else(|| memory.role.map(|role| role.to_string()));
    name.map(|name| envelope::escape(&name).into_owned())
}

/// Returns how many bytes of `raw`, whole characters, `escaped` bytes of its escaped form stand for.
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
    /// Returns the answer in words.
    pub fn text(&self) -> String {
        self.rendered.clone()
    }
}
