//! Prepares a turn: what the prompt contains, and what the thread has after the turn.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use super::attached::{self, Attached};
use super::look::{self, Looked, Reader};
use super::receipt::Receipt;
use super::window::window;
use super::{AROUND_MESSAGE, Callable, Question, history, notes};
use crate::config::{Configured, Options};
use crate::engine::Engine;
use crate::error::{Error, Kind, Result};
use crate::files::{self, Extractor, Found, Limits, Roots};
use crate::humanize::thousands;
use crate::inline::{Full, Plan, Room, Said, Seen, Sending, State, Why, plan, said};
use crate::project::OpenProject;
use crate::store::TurnRow;
use crate::thread::{Block, BlockText, ContentHash, Entry, Part, Place, Thread};
use crate::tokens;
use crate::tuning::consult::{OTHERS, RESULTS_SHARE};

/// The tokens that count for an image. Most services count fewer for any image.
const IMAGE_TOKENS: usize = 2000;

/// A prepared turn.
pub(crate) struct Prepared {
    /// The thread before the turn.
    pub thread: Thread,
    /// The epoch of the turn.
    pub epoch: u32,
    /// Whether the turn begins the epoch.
    pub is_new_epoch: bool,
    /// What is sent of the files.
    pub plan: Plan,
    /// The blocks to record before the question: the new ones, in a new epoch all of them.
    pub blocks: Vec<Block>,
    /// The copies of files of which only the changes are sent.
    pub copies: Vec<(ContentHash, String)>,
    /// The paths that callers named as context so far.
    pub context: Vec<String>,
    /// The window, in o200k tokens.
    pub window: usize,
    /// The prompt.
    pub said: Vec<Said>,
    /// The images to show with the last message.
    pub images: Vec<files::Image>,
    /// The redacted instructions.
    pub instructions: String,
    /// The most tokens of the answer, as the model counts them.
    pub most_output: usize,
    /// The most tokens of the results of functions.
    pub results_room: usize,
    /// The tokens that the turn adds before the answer.
    pub appended: usize,
    /// The tokens that it would add if all inline files were sent whole.
    pub whole: usize,
    /// What the assistant can search during the call.
    pub attached: Arc<Attached>,
    /// The receipt so far.
    pub receipt: Receipt,
}

/// Prepares the turn in which `question` is asked.
pub(crate) async fn prepare(
    engine: &Engine,
    project: &OpenProject,
    options: &Options,
    assistant: &Configured,
    question: &Question,
    system: &str,
    callables: &[Callable],
) -> Result<Prepared> {
    let installation = engine.begin_installation().await?;
    let key = installation.secret;
    let stored = project.store.thread(&project.scope, &question.name).await?.unwrap_or_default();
    let thread = match options.consult_stable_inline {
        true => stored,
        false => Thread { ledger: Vec::new(), is_fixed: false, ..stored },
    };
    let mut receipt = Receipt { turn: thread.turns + 1, ..Receipt::default() };
    let instructions = instructions(question, &installation.redactor, &mut receipt)?;
    let reader = reader(engine, project, options).await?;
    let mut context = thread.context.clone();
    context.extend(question.context.iter().chain(&question.priority).cloned());
    let looked = look::look(&reader, project, &question.name, &thread, &context, &question.priority).await?;
    // A path that leads to nothing is reported once, and not looked for again.
    let mut seen = HashSet::new();
    let is_known = |path: &String| thread.context.contains(path) || reader.roots.resolve(path).is_ok();
    context.retain(|path| seen.insert(path.clone()) && is_known(path));
    let images = images(&reader.roots, &question.images)?;
    let mut attached = Attached::read(&reader, &question.attachments, key, &mut receipt);
    add_looked(&mut receipt, &looked);

    let earlier_turns = project.store.turns(&project.scope, &question.name, 4).await?;
    let window = window(&assistant.provider, &reported(&earlier_turns));
    if !window.is_known {
        receipt.notices.push(format!(
            "the context window of `{}` is unknown, so {} tokens are assumed; set `window` for the provider",
            assistant.provider.model,
            thousands(crate::tuning::consult::UNKNOWN_WINDOW as u64)
        ));
    }
    let others = others(project, question, &thread, &key).await?;
    let called = callables
        .iter()
        .map(|callable| &callable.function)
        .chain([attached::function()].iter())
        .map(|function| {
            tokens::count(&function.description) + tokens::count(&function.parameters.to_string()) + 16
        })
        .sum::<usize>();
    let system_tokens = tokens::count(system) + called;
    let tail: Vec<Block> = notes::attached(&attached.listing())
        .into_iter()
        .chain(notes::images(&question.images))
        .map(|note| blob(thread.turns + 1, Part::Note, note))
        .collect();
    let results_room = (window.tokens as f64 * RESULTS_SHARE) as usize;
    let asked = tokens::count(&instructions) + AROUND_MESSAGE + images.len() * IMAGE_TOKENS;
    let around: usize = tail.iter().chain(&others).map(|block| block.tokens as usize).sum();
    let room = Room {
        window: window.tokens,
        answer: window.answer,
        growth: window.growth,
        inline: match options.consult_inline_tokens {
            0 => usize::MAX,
            most => most,
        },
        fixed: system_tokens + asked + around + results_room,
        history: history::tokens_of(&thread.blocks),
    };
    let planned = planned(&thread, &looked.seen, room, &key, &mut receipt)?;
    let Planned { mut plan, history } = planned;
    let is_new_epoch = plan.new_epoch.is_some() || thread.epoch == 0;
    let epoch = if is_new_epoch { thread.epoch + 1 } else { thread.epoch };
    let mut blocks = if is_new_epoch { history } else { Vec::new() };
    let before = if is_new_epoch { Vec::new() } else { thread.blocks.clone() };
    blocks.extend(others);
    let (files, copies) =
        file_blocks(&reader, project, question, &looked, &mut plan, thread.turns + 1).await?;
    blocks.extend(files);
    blocks.extend(overflow_note(&thread, &plan, is_new_epoch));
    blocks.extend(tail);
    attached.add_overflow(&plan, &looked.found, reader);

    let mut prompt: Vec<Block> = before;
    let earlier = prompt.len();
    prompt.extend(blocks.iter().cloned());
    let prefix: usize = prompt[..earlier].iter().map(|block| block.tokens as usize).sum();
    receipt.epoch = epoch;
    receipt.window = window.tokens;
    // After a reset, the earlier exchanges stay, but what preceded them was removed.
    let has_prefix = earlier > 0 && earlier_turns.iter().any(|turn| turn.epoch == epoch);
    receipt.unchanged_prefix = if has_prefix { prefix + system_tokens } else { 0 };
    receipt.tokens = parts(&prompt, system_tokens, asked, thread.turns + 1);
    receipt.add_plan(&plan);
    let appended = blocks.iter().map(|block| block.tokens as usize).sum::<usize>() + asked;
    let whole = appended - plan.appended.min(appended) + plan.whole;
    let mut said = said(&prompt, &key);
    ask(&mut said, &instructions);
    Ok(Prepared {
        epoch,
        is_new_epoch,
        plan,
        blocks,
        copies,
        context,
        window: window.tokens,
        said,
        images,
        instructions,
        most_output: window.most_output,
        results_room,
        appended,
        whole,
        attached: Arc::new(attached),
        receipt,
        thread,
    })
}

/// Returns the redacted instructions, with the form of the answer.
fn instructions(
    question: &Question,
    redactor: &crate::redact::Redactor,
    receipt: &mut Receipt,
) -> Result<String> {
    if question.instructions.trim().is_empty() {
        return Err(
            Error::bad_input("`instructions` is empty").hint("say what you want to know or have reviewed")
        );
    }
    let mut text = question.instructions.trim().to_owned();
    if let Some(format) = question.format.as_deref().map(str::trim).filter(|format| !format.is_empty()) {
        text += &format!("\n\nForm of the answer: {format}");
    }
    let redacted = redactor.redact(&text);
    let count: usize = redacted.found.iter().map(|finding| finding.count).sum();
    if count > 0 {
        receipt.redacted.insert("instructions".to_owned(), count);
    }
    Ok(redacted.text.into_owned())
}

/// Returns what reads the files of the project.
pub(crate) async fn reader(engine: &Engine, project: &OpenProject, options: &Options) -> Result<Reader> {
    let redactor = engine.begin_installation().await?.redactor.clone();
    let others: Vec<PathBuf> = options.files_roots.0.iter().map(PathBuf::from).collect();
    let own = vec![engine.config().data_dir.clone()];
    let roots = Roots::new(&project.root, &others, &own)?;
    let limits = Limits { file_bytes: options.files_max_bytes, ..Limits::default() };
    let now_ns = engine.now().saturating_mul(1_000_000);
    Ok(Reader { roots, limits, extractor: Extractor::of_this_process(), redactor, now_ns })
}

fn images(roots: &Roots, paths: &[String]) -> Result<Vec<files::Image>> {
    let image = |path: &String| {
        roots.image(path).map_err(|why| {
            let error = Error::bad_input(format!("image `{}` {why}", crate::error::quoted(path)));
            match why.way_out() {
                Some(way_out) => error.hint(way_out),
                None => error,
            }
        })
    };
    paths.iter().map(image).collect()
}

fn add_looked(receipt: &mut Receipt, looked: &Looked) {
    receipt.skipped.extend(looked.skipped.iter().cloned());
    receipt.redacted.extend(looked.redacted.clone());
    receipt.notices.extend(looked.notices.iter().cloned());
}

/// Returns what the model reported for the latest turns without functions, and what Tiro counted.
fn reported(turns: &[TurnRow]) -> Vec<(u64, u64)> {
    let of = |row: &TurnRow| {
        let receipt: Receipt = serde_json::from_str(row.receipt.as_deref()?).ok()?;
        receipt.functions.is_empty().then_some((row.spent.input, row.spent.prompt))
    };
    turns.iter().filter_map(of).collect()
}

/// Returns what other assistants said in the session since this one was asked last.
async fn others(
    project: &OpenProject,
    question: &Question,
    thread: &Thread,
    key: &[u8; 32],
) -> Result<Option<Block>> {
    let name = &question.name;
    let since = thread.updated.unwrap_or(0);
    let exchanges =
        project.store.other_exchanges(&project.scope, &name.session, &name.assistant, since, OTHERS).await?;
    Ok(history::others(thread.turns + 1, &exchanges, key))
}

/// A plan that fits, and the earlier exchanges of its prompt if it begins a new epoch.
struct Planned {
    plan: Plan,
    history: Vec<Block>,
}

/// Plans the turn. If the prompt doesn't fit, the history is shortened first, then files move.
fn planned(
    thread: &Thread,
    seen: &[Seen],
    mut room: Room,
    key: &[u8; 32],
    receipt: &mut Receipt,
) -> Result<Planned> {
    let is_evicted = thread.blocks.iter().any(|block| matches!(block.text, BlockText::Blob(_, None)));
    let forced = is_evicted.then_some(Why::Evicted);
    let mut history = history::kept(&thread.blocks);
    let mut full = match plan(thread, seen, room, forced, false) {
        Ok(plan) => return Ok(Planned { plan, history }),
        Err(full) => full,
    };
    let before = room.window - room.answer.min(room.window);
    while let Full::History(over) | Full::Everything(over) = full
        && !history.is_empty()
    {
        let (shorter, turns) = history::shortened(&history, over + room.growth, key);
        let now = history::tokens_of(&shorter);
        if turns == 0 || now >= history::tokens_of(&history) {
            break;
        }
        receipt.notices.push(format!(
            "the thread did not fit the window any more, so its first {turns} turns are shown to the assistant as a summary; \
             they stay in the project's memory"
        ));
        (history, room.history) = (shorter, now);
        full = match plan(thread, seen, room, Some(Why::Full), true) {
            Ok(plan) => return Ok(Planned { plan, history }),
            Err(full) => full,
        };
    }
    if let Ok(plan) = plan(thread, seen, room, Some(Why::Full), true) {
        return Ok(Planned { plan, history });
    }
    let (fixed, history) = (thousands(room.fixed as u64), thousands(room.history as u64));
    Err(Error::new(
        Kind::Limit,
        format!(
            "the window is full: instructions, notes and system prompt need {fixed} tokens and the earlier turns {history}, \
             but a prompt may have {} of the {} tokens of the window",
            thousands(before as u64),
            thousands(room.window as u64)
        ),
    )
    .hint("shorten `instructions` or attach long text as a file; or begin a new `session_id`; or reset this thread with reset_session"))
}

/// Returns the blocks for what is sent about files, and the copies of files of which only the changes are sent.
async fn file_blocks(
    reader: &Reader,
    project: &OpenProject,
    question: &Question,
    looked: &Looked,
    plan: &mut Plan,
    turn: u32,
) -> Result<(Vec<Block>, Vec<(ContentHash, String)>)> {
    let missing: Vec<String> =
        plan.sendings.iter().filter(|sent| sent.text.is_none()).map(|sent| sent.path.clone()).collect();
    let mut stored = match missing.is_empty() {
        true => HashMap::new(),
        false => project.store.copies(&project.scope, &question.name, missing).await.unwrap_or_default(),
    };
    let (mut blocks, mut copies) = (Vec::new(), Vec::new());
    for Sending { path, part, text, tokens } in &plan.sendings {
        let text = match text {
            Some(text) => text.to_string(),
            None => {
                let found = looked.found.get(path);
                let entry = plan.entries.iter_mut().find(|entry| entry.path == *path);
                whole(reader, found, entry, stored.remove(path))?
            }
        };
        if *part == Part::Change
            && let Some(State::Read { sent, text: Some(whole), .. }) =
                looked.seen.iter().find(|seen| seen.path == *path).map(|seen| &seen.state)
        {
            copies.push((*sent, whole.to_string()));
        }
        let hash = ContentHash::of(text.as_bytes());
        let tokens = u32::try_from(*tokens).unwrap_or(u32::MAX);
        let text = BlockText::Blob(hash, Some(text));
        blocks.push(Block { turn, part: *part, path: Some(path.clone()), tokens, text });
    }
    Ok((blocks, copies))
}

/// Returns the whole text of a file that was not kept: the stored copy if it is still current, otherwise the file as it is
/// now.
fn whole(
    reader: &Reader,
    found: Option<&Found>,
    entry: Option<&mut Entry>,
    stored: Option<String>,
) -> Result<String> {
    let is_current =
        |text: &String| entry.as_ref().is_some_and(|entry| entry.sent == ContentHash::of(text.as_bytes()));
    if let Some(text) = stored.filter(is_current) {
        return Ok(text);
    }
    let (Some(found), Some(entry)) = (found, entry) else {
        return Err(Error::new(Kind::Io, "a file of the thread disappeared while it was read")
            .hint("repeat the call"));
    };
    let copy = reader.copy(found).map_err(|why| {
        Error::new(Kind::Io, format!("`{}` {why}", crate::error::quoted(&found.path))).hint("repeat the call")
    })?;
    let tokens = u32::try_from(tokens::count(&copy.text)).unwrap_or(u32::MAX);
    if tokens > entry.tokens {
        return Err(Error::new(
            Kind::Busy,
            format!("`{}` grows while it is read", crate::error::quoted(&found.path)),
        )
        .hint("repeat the call"));
    }
    (entry.stat, entry.raw, entry.sent, entry.tokens) = (copy.stat, copy.raw, copy.sent, tokens);
    Ok(copy.text)
}

/// Returns the note about files that are searched instead, if the assistant doesn't know it yet.
fn overflow_note(thread: &Thread, plan: &Plan, is_new_epoch: bool) -> Option<Block> {
    let before: Vec<&str> = thread
        .ledger
        .iter()
        .filter(|entry| entry.place == Place::Overflow && !entry.is_removed)
        .map(|entry| entry.path.as_str())
        .collect();
    let now: Vec<&str> = plan.overflow.iter().map(String::as_str).collect();
    if now == before && (!is_new_epoch || now.is_empty()) {
        return None;
    }
    let of = |path: &&str| {
        let entry = plan.entries.iter().chain(&thread.ledger).find(|entry| entry.path == **path);
        entry.map_or(0, |entry| entry.tokens)
    };
    let files: Vec<(&str, u32)> = now.iter().map(|path| (*path, of(path))).collect();
    Some(blob(thread.turns + 1, Part::Note, notes::overflow(&files)))
}

fn blob(turn: u32, part: Part, text: String) -> Block {
    let tokens = u32::try_from(tokens::count(&text) + 2).unwrap_or(u32::MAX);
    let hash = ContentHash::of(text.as_bytes());
    Block { turn, part, path: None, tokens, text: BlockText::Blob(hash, Some(text)) }
}

/// Returns the tokens of the prompt by part.
fn parts(prompt: &[Block], system: usize, asked: usize, turn: u32) -> BTreeMap<String, usize> {
    let mut parts = BTreeMap::from([("system".to_owned(), system), ("instructions".to_owned(), asked)]);
    for block in prompt {
        let name = match block.part {
            _ if block.turn < turn => "earlier turns",
            Part::File => "files",
            Part::Change => "changes",
            Part::Removal | Part::Opening | Part::Note => "notes",
            Part::Question | Part::Answer => "earlier turns",
        };
        *parts.entry(name.to_owned()).or_default() += block.tokens as usize;
    }
    parts
}

/// Adds the instructions to the last message of the caller.
fn ask(turns: &mut Vec<Said>, instructions: &str) {
    match turns.last_mut() {
        Some(Said::Caller(sent)) => {
            sent.push_str(crate::inline::INSTRUCTIONS);
            sent.push_str(instructions);
        }
        _ => turns.push(Said::Caller(instructions.to_owned())),
    }
}
