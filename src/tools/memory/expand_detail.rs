//! Opens one memory: its full text and what stands around it.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

use crate::caller::Caller;
use crate::engine::Engine;
use crate::envelope;
use crate::error::{Error, Result, quoted};
use crate::memory::{Memory, MemoryId, MemoryKey};
use crate::retrieve::query;
use crate::scope::Scope;
use crate::store::Store;
use crate::summaries::levels::{self, Depth, Walk};
use crate::times;
use crate::tokens;
use crate::tools::common;
use crate::tools::common::schema::one_of;
use crate::tools::common::tool::Answer;
use crate::tools::memory::linked::{self, Linked};

/// The name agents call it by.
pub const NAME: &str = "expand_detail";
/// The name people are shown.
pub const TITLE: &str = "Open a memory";
/// What agents are told of it.
pub const DESCRIPTION: &str = "To find memories use search_project_memory. Opens one: its full text and what \
    surrounds it; a summary down to its messages.";

/// Tokens of an answer unless the caller says otherwise.
const MAX_TOKENS: usize = 4000;

/// The least that holds the envelope and a line. Arbitrary.
const LEAST_TOKENS: usize = 150;

/// Tokens of an answer at most: clients cut tool results at 25,000.
pub(crate) const MOST_TOKENS: usize = 20_000;

/// Neighbours on one side at most.
const MOST_NEIGHBOURS: usize = 20;

/// References followed from the memory, as document 003 has it.
const MAX_HOPS: usize = 2;

/// What the call takes.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct Args {
    /// Id from an answer, of a commit, or SESSION#NUMBER.
    pub id: String,
    /// Of a summary; the next if left out.
    #[serde(default)]
    #[schemars(schema_with = "depths")]
    pub level: Option<Depth>,
    /// One level up.
    #[serde(default)]
    pub collapse: bool,
    /// Only what has to do with this topic.
    #[schemars(description = "")]
    pub focus: Option<String>,
    /// Messages, 0 to 20; 2 if left out.
    pub before: Option<usize>,
    /// Messages after it, 0 to 20; 2 if left out.
    #[schemars(description = "")]
    pub after: Option<usize>,
    /// 4000 if left out.
    #[schemars(range(min = LEAST_TOKENS))]
    pub max_tokens: Option<usize>,
    /// `next_cursor` of the answer before.
    #[schemars(description = "")]
    pub cursor: Option<String>,
}

fn depths(_: &mut SchemaGenerator) -> Schema {
    one_of(&["brief", "standard", "detailed", "messages"])
}

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

/// Reads the memory and what fits of its surroundings.
pub async fn run(engine: &Engine, caller: &Caller, args: Args) -> Result<Output> {
    let (budget, clamped) = common::max_tokens(args.max_tokens, MAX_TOKENS, LEAST_TOKENS, MOST_TOKENS)?;
    let (before, after) = (args.before.unwrap_or(2), args.after.unwrap_or(2));
    if before > MOST_NEIGHBOURS || after > MOST_NEIGHBOURS {
        return Err(Error::bad_input(format!("`before` and `after` are at most {MOST_NEIGHBOURS}")));
    }
    let walk = Walk {
        level: args.level,
        collapse: args.collapse,
        focus: args.focus.as_deref().unwrap_or_default().trim().to_owned(),
    };
    let (store, scope, memory) = named(engine, caller, &args.id, &walk).await?;
    let memory = match walk.leads_away() && memory.seq.is_stored() {
        true => levels::around(engine, caller, memory, &walk).await?,
        false => memory,
    };
    let start = match args.cursor.as_deref() {
        None => 0,
        Some(cursor) => offset(cursor, &memory.text)?,
    };
    let around = match (&memory.session, memory.ordinal) {
        (Some(session), Some(ordinal)) if start == 0 => {
            store.surroundings(scope, session, ordinal, before, after).await?
        }
        _ => Vec::new(),
    };
    let linked = if memory.seq.is_stored() { follow(store, scope, memory.seq).await? } else { Vec::new() };
    let linked = store.memories(scope, linked.into_iter().take(MOST_NEIGHBOURS).collect()).await?;
    let references = linked.iter().map(|memory| memory.id.to_string()).collect();
    let linked = if memory.seq.is_stored() { linked::of(store, scope, &memory).await? } else { Vec::new() };
    let secret = engine.installation().await?.secret;
    let notices = clamped.into_iter().collect();
    let page = Page { secret, memory, start, around, references, linked, notices, budget };
    // Counting loads the tokenizer's dictionary the first time, which blocks.
    Ok(tokio::task::spawn_blocking(move || fit(page)).await.expect("fitting does not panic"))
}

/// Returns what `text` names: a commit, a message by its session and place, a summary, or any other memory.
async fn named<'e>(
    engine: &'e Engine,
    caller: &'e Caller,
    text: &str,
    walk: &Walk,
) -> Result<(&'e Store, &'e Scope, Memory)> {
    if let Some(id) = commit_named(engine, caller, text).await? {
        return find(engine, caller, &id).await;
    }
    let project = caller.project(engine).await?;
    if let Some((session, ordinal)) = levels::place(&project.redactor, "id", text)? {
        return match levels::message(project, &session, ordinal).await? {
            Some(memory) => Ok((&project.store, &project.scope, memory)),
            None => Err(Error::not_found(format!("no message {ordinal} in session `{}`", quoted(&session)))
                .hint("list_sessions names the sessions; what was forgotten can't be opened")),
        };
    }
    let id = MemoryId::read("id", text).map_err(|error| {
        error.hint(
            "ids come with search results: `m` and 13 letters and digits, SESSION#NUMBER of a message, or seven \
             digits or more of a commit's id",
        )
    })?;
    match levels::summary(engine, caller, &id, walk).await? {
        Some(memory) => Ok((&project.store, &project.scope, memory)),
        None => find(engine, caller, &id).await,
    }
}

/// Returns the memories that are reached over at most [`MAX_HOPS`] references, in either direction, the
/// nearest first.
async fn follow(store: &Store, scope: &Scope, memory: MemoryKey) -> Result<Vec<MemoryKey>> {
    let mut reached = vec![memory];
    let mut frontier = vec![memory];
    for _ in 0..MAX_HOPS {
        let mut next = Vec::new();
        for seq in frontier {
            for linked in store.references(scope, seq).await? {
                if !reached.contains(&linked) && reached.len() <= MOST_NEIGHBOURS {
                    reached.push(linked);
                    next.push(linked);
                }
            }
        }
        frontier = next;
    }
    reached.remove(0);
    Ok(reached)
}

/// Returns the id of the commit that `text` names by at least seven digits of its own id; `None` where it doesn't.
async fn commit_named(engine: &Engine, caller: &Caller, text: &str) -> Result<Option<MemoryId>> {
    let [name] = query::commit_ids(text)[..] else { return Ok(None) };
    let project = caller.project(engine).await?;
    let Some((seq, _)) = project.store.commit_named(&project.scope, name).await? else { return Ok(None) };
    let memory = project.store.memories(&project.scope, vec![seq]).await?.pop();
    Ok(memory.map(|memory| memory.id))
}

/// Returns the memory called `id` with the store it is in: the project's, else the owner's.
async fn find<'e>(
    engine: &'e Engine,
    caller: &'e Caller,
    id: &MemoryId,
) -> Result<(&'e Store, &'e Scope, Memory)> {
    let project = caller.project(engine).await?;
    if let Some(memory) = project.store.memory(&project.scope, id).await? {
        return Ok((&project.store, &project.scope, memory));
    }
    let owners = &engine.installation().await?.registry;
    match owners.memories().memory(owners.scope(), id).await? {
        Some(memory) => Ok((owners.memories(), owners.scope(), memory)),
        None => Err(Error::not_found(format!("no memory is called `{id}`"))
            .hint("ids come with search results; what was forgotten can't be opened")),
    }
}

struct Page {
    secret: [u8; 32],
    memory: Memory,
    start: usize,
    around: Vec<Memory>,
    references: Vec<String>,
    linked: Vec<Linked>,
    notices: Vec<String>,
    budget: usize,
}

/// Tokens that the text itself gets at least; what stands around it gives way. Arbitrary, more than any one
/// character takes, so that every page goes on.
const LEAST_TEXT: usize = 20;

/// Returns the answer with as much of the text as fits, then the nearest neighbours that still do, as text and as JSON.
fn fit(page: Page) -> Output {
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

/// Reads a cursor: a byte offset at the boundary of a character.
fn offset(cursor: &str, text: &str) -> Result<usize> {
    cursor
        .parse::<usize>()
        .ok()
        .filter(|offset| text.is_char_boundary(*offset) && *offset < text.len())
        .ok_or_else(|| {
            Error::bad_input(format!("`cursor` is none of this memory: `{}`", quoted(cursor)))
                .hint("leave it out to start anew")
        })
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
