//! Prepares a turn: makes the prompt, and determines the state of the thread after the turn.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::attached::{self, Attached};
use super::compose::{Planned, ask, file_blocks, has_other_overflow, overflow_note, parts, planned};
use super::look::{self, FileReader, Looked};
use super::receipt::{Files, Receipt, Skipped};
use super::window::{Window, window};
use super::{AROUND_MESSAGE, Callable, Question, history, notes};
use crate::config::{Configured, Options};
use crate::engine::Engine;
use crate::project::OpenProject;
use crate::tuning::{OTHERS, UNKNOWN_WINDOW};
use tiro_base::error::{Error, Result, quoted};
use tiro_base::humanize::{some, thousands};
use tiro_base::thread::{Block, BlockText, ContentHash, Part, Thread};
use tiro_files::{Allowance, Budget, Limits, Roots};
use tiro_inline::{FileState, Plan, Room, Said, Seen, said};
use tiro_redact::Redactor;
use tiro_store::{Sources, TurnRow};
use tiro_text::tokens;

/// An image counts as this many tokens. Most services count fewer tokens for any image.
const IMAGE_TOKENS: usize = 2000;

/// A prepared turn.
pub struct Prepared {
    /// The thread before the turn.
    pub thread: Thread,
    /// The epoch of the turn.
    pub epoch: u32,
    /// Whether the turn begins the epoch.
    pub is_new_epoch: bool,
    /// The plan for sending files.
    pub plan: Plan,
    /// The blocks to record before the question. In a new epoch, these are all blocks, otherwise only the new ones.
    pub blocks: Vec<Block>,
    /// Whole copies of the files for which only the changes are sent.
    pub copies: Vec<(ContentHash, String)>,
    /// The paths that callers have named as context so far.
    pub context: Vec<String>,
    /// The window, in o200k tokens.
    pub window: usize,
    /// The prompt. The request takes it from here.
    pub said: Vec<Said>,
    /// The images that are shown with the last message. The request takes them from here.
    pub images: Vec<tiro_files::Image>,
    /// The redacted instructions.
    pub instructions: String,
    /// The maximum number of tokens of the answer, as the model counts them.
    pub most_output: usize,
    /// The maximum number of tokens of the results of functions.
    pub results_room: usize,
    /// The number of tokens that the turn adds before the answer.
    pub appended: usize,
    /// The number of tokens that the turn would add if all inline files were sent whole.
    pub whole: usize,
    /// The texts that the assistant can search during the call.
    pub attached: Arc<Attached>,
    /// The memories and files whose content is in the prompt.
    pub sources: Sources,
    /// The receipt so far.
    pub receipt: Receipt,
}

/// Prepares the turn in which `question` is asked.
#[expect(clippy::too_many_arguments, reason = "each is another part of the call")]
pub async fn prepare(
    engine: &Engine,
    project: &OpenProject,
    options: &Options,
    assistant: &Configured,
    question: &Question,
    system: &str,
    callables: &[Callable],
    reader: Arc<FileReader>,
) -> Result<Prepared> {
    let installation = engine.installation().await?;
    let key = installation.secret;
    let thread = thread(project, question, options).await?;
    let mut receipt = Receipt { turn: thread.turns + 1, ..Receipt::default() };
    let instructions = instructions(question, &installation.redactor, &mut receipt)?;
    let earlier_turns = project.store.turns(&project.scope, &question.name, 4).await?;
    let context = named(&thread, &earlier_turns, question);
    let looked = look::look(&reader, project, &question.name, &thread, &context, &question.priority).await?;
    let context = lasting(context, &thread, &reader.roots);
    let images = images(&reader.roots, &question.images)?;
    let mut attached = Attached::read(&reader, &question.attachments, key, &mut receipt).await?;
    receipt.attached = Files::of(attached.listing().iter().map(|(name, _)| name.as_str()));
    add_looked(&mut receipt, &looked);
    let window = window(&assistant.provider, &reported(&earlier_turns));
    let (others, said_by_others) = others(project, question, &thread, &key).await?;
    let system_tokens = tokens::count(system) + of_functions(callables);
    let tail = of_this_call(&thread, &attached, question, &looked, &mut receipt);
    let results_room = window.results();
    let asked = tokens::count(&instructions) + AROUND_MESSAGE + images.len() * IMAGE_TOKENS;
    let around: usize = tail.iter().chain(&others).map(|block| block.tokens as usize).sum();
    let fixed = system_tokens + asked + around + results_room;
    let room = room(&window, options, fixed, history::tokens_of(&thread.blocks));
    let Planned { mut plan, history } = planned(&thread, &looked.seen, room, &key, &mut receipt)?;
    // If all files are sent with every call, files of earlier calls take no room.
    let is_new_epoch = plan.new_epoch.is_some() || thread.epoch == 0 || !options.consult_stable_inline;
    let epoch = if is_new_epoch { thread.epoch + 1 } else { thread.epoch };
    receipt.notices.extend(about_window(assistant, &window).filter(|_| is_new_epoch));
    let mut blocks = if is_new_epoch { history } else { Vec::new() };
    blocks.extend(others);
    let (files, copies) =
        file_blocks(&reader, project, question, &looked, &mut plan, thread.turns + 1).await?;
    blocks.extend(files);
    blocks.extend(overflow_note(&thread, &plan, is_new_epoch));
    blocks.extend(tail);
    attached.add_overflow(&plan, &looked.found, reader);

    // After a reset, the earlier exchanges stay, but the blocks before them were removed.
    let before = if is_new_epoch { &[] } else { thread.blocks.as_slice() };
    let last = earlier_turns.first().filter(|turn| turn.epoch == epoch);
    let unchanged =
        last.map_or(0, |last| unchanged_prefix(before, system_tokens, last.spent.prompt as usize));
    let prompt = || before.iter().chain(&blocks);
    (receipt.epoch, receipt.window, receipt.unchanged_prefix) = (epoch, window.tokens, unchanged);
    receipt.tokens = parts(prompt(), system_tokens, asked, thread.turns + 1);
    receipt.add_plan(&plan, is_new_epoch || has_other_overflow(&thread, &plan));
    receipt.add_redacted(&plan, &looked.redacted);
    receipt.notices.extend(without_place(&looked, &plan, thread.is_fixed));
    let sources = sources(prompt(), &question.images, said_by_others);
    let appended = blocks.iter().map(|block| block.tokens as usize).sum::<usize>() + asked;
    let mut said = said(prompt(), &key);
    ask(&mut said, &instructions);
    Ok(Prepared {
        epoch,
        is_new_epoch,
        whole: appended - plan.appended.min(appended) + plan.whole,
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
        attached: Arc::new(attached),
        sources,
        receipt,
        thread,
    })
}

/// Returns the thread as it is stored. If every call sends all files anyway, the thread is
/// returned as if the assistant had no file yet.
async fn thread(project: &OpenProject, question: &Question, options: &Options) -> Result<Thread> {
    let stored = project.store.thread(&project.scope, &question.name).await?.unwrap_or_default();
    Ok(match options.consult_stable_inline {
        true => stored,
        false => {
            Thread { ledger: Vec::new(), is_fixed: false, blocks: history::kept(&stored.blocks), ..stored }
        }
    })
}

/// Returns the context of the thread together with that of the question. After a reset, the context of a question
/// replaces the earlier context.
fn named(thread: &Thread, earlier_turns: &[TurnRow], question: &Question) -> Vec<String> {
    let is_reset = !earlier_turns.iter().any(|turn| turn.epoch == thread.epoch);
    let earlier = match is_reset && !question.context.is_empty() {
        true => &[],
        false => thread.context.as_slice(),
    };
    earlier.iter().chain(&question.context).chain(&question.priority).cloned().collect()
}

/// Returns the paths of `context` that stay in the thread, each once. A new path that leads to no file is reported in
/// this call, and not searched for again. The paths are stored, so secrets in names are removed.
fn lasting(context: Vec<String>, thread: &Thread, roots: &Roots) -> Vec<String> {
    let mut seen = HashSet::new();
    let is_known = |path: &String| thread.context.contains(path) || roots.resolve(path).is_ok();
    let known = context.into_iter().filter(is_known).filter_map(|path| roots.without_secret(&path));
    known.filter(|path| seen.insert(path.clone())).collect()
}

/// Returns the notes that belong to this call only. They are about attachments, images, named paths that were skipped,
/// and documents that were not read because the budget was used up. If the assistant has no file at all, a note says so
/// once in a thread, and the receipt says so in each turn.
fn of_this_call(
    thread: &Thread,
    attached: &Attached,
    question: &Question,
    looked: &Looked,
    receipt: &mut Receipt,
) -> Vec<Block> {
    let turn = thread.turns + 1;
    let named = question.context.iter().chain(&question.priority).chain(&question.attachments);
    let named: HashSet<String> = named.map(|path| quoted(path).to_string()).collect();
    let mut missing: Vec<(&str, String)> = Vec::new();
    let named = receipt.skipped.iter().filter(|skipped| named.contains(&skipped.path));
    for Skipped { path, why } in looked.unreached.iter().chain(attached.unreached()).chain(named) {
        if !missing.iter().any(|(known, _)| known == path) {
            // The reason is cut before its advice, because the advice is meant for the agent.
            missing.push((path, why.split("; ").next().unwrap_or_default().to_owned()));
        }
    }
    let notes = notes::attached(attached.listing())
        .into_iter()
        .chain(notes::images(&question.images))
        .chain(notes::missing(&missing));
    let mut blocks: Vec<Block> = notes.map(|note| notes::block(turn, Part::Note, note)).collect();
    let is_there = |seen: &Seen| !matches!(seen.state, FileState::Gone(_));
    if attached.listing().is_empty() && question.images.is_empty() && !looked.seen.iter().any(is_there) {
        receipt.without_files = true;
        let is_told = |block: &Block| {
            matches!(block.part, Part::File | Part::Change)
                || matches!(&block.text, BlockText::Blob(_, Some(text)) if text == notes::NO_FILES)
        };
        if !thread.blocks.iter().any(is_told) {
            blocks.insert(0, notes::block(turn, Part::Opening, notes::NO_FILES.to_owned()));
        }
    }
    blocks
}

/// Returns the room of a prompt. `fixed` is the number of tokens that are needed in addition to files and the history.
fn room(window: &Window, options: &Options, fixed: usize, history: usize) -> Room {
    let inline = match options.consult_inline_tokens {
        0 => usize::MAX,
        most => most,
    };
    Room { window: window.tokens, answer: window.answer, growth: window.growth, inline, fixed, history }
}

/// Returns the notice that files of `priority_context` get no place in the prompt.
fn without_place(looked: &Looked, plan: &Plan, is_fixed: bool) -> Option<String> {
    let overflow: HashSet<&str> = plan.overflow.iter().map(String::as_str).collect();
    let first = looked.seen.iter().filter(|seen| seen.is_first && overflow.contains(seen.path.as_str()));
    let first: Vec<String> = first.map(|seen| seen.path.clone()).collect();
    let why = match is_fixed {
        true => "the files of this thread keep their places; reset_session gives them out anew",
        false => "the prompt has no room for them",
    };
    (!first.is_empty())
        .then(|| format!("{} stay to be searched, although they are named first: {why}", some(&first)))
}

/// Returns the notice that the window of the model is unknown, or that the model counts tokens in another way.
fn about_window(assistant: &Configured, window: &Window) -> Option<String> {
    let model = &assistant.provider.model;
    if !window.is_known {
        let assumed = thousands(UNKNOWN_WINDOW as u64);
        return Some(format!(
            "the context window of `{model}` is unknown, so {assumed} tokens are assumed; set `window` for the provider"
        ));
    }
    let (own, counted) = (thousands(window.own as u64), thousands(window.tokens as u64));
    (!window.is_exact()).then(|| {
        format!(
            "`{model}` counts tokens in another way than Tiro: its {own} are taken as {counted} of Tiro's"
        )
    })
}

/// Returns the number of tokens of the descriptions of functions.
fn of_functions(callables: &[Callable]) -> usize {
    let attached = attached::function();
    let functions = callables.iter().map(|callable| &callable.function).chain([&attached]);
    functions
        .map(|function| {
            let parameters = function.parameters.to_string();
            tokens::count(&function.description) + tokens::count(&parameters) + 2 * AROUND_MESSAGE
        })
        .sum()
}

/// Returns the redacted instructions, with the wanted form of the answer.
fn instructions(question: &Question, redactor: &Redactor, receipt: &mut Receipt) -> Result<String> {
    if question.instructions.trim().is_empty() {
        return Err(
            Error::bad_input("`instructions` is empty").hint("say what you want to know or have reviewed")
        );
    }
    let (text, secrets) = worded(question, redactor);
    if secrets > 0 {
        receipt.redacted.insert("instructions".to_owned(), secrets);
    }
    Ok(text)
}

/// Returns the instructions as they are sent and stored: redacted, and with the wanted form of the answer. Also returns
/// the number of replaced secrets.
pub(super) fn worded(question: &Question, redactor: &Redactor) -> (String, usize) {
    let mut text = question.instructions.trim().to_owned();
    if let Some(format) = question.format.as_deref().map(str::trim).filter(|format| !format.is_empty()) {
        text += &format!("\n\nForm of the answer: {format}");
    }
    let redacted = redactor.redact(&text);
    (redacted.text.into_owned(), redacted.found.iter().map(|finding| finding.count).sum())
}

/// Returns the budget for the documents of a new call.
pub fn budget(options: &Options) -> Budget {
    let time = Duration::from_secs(options.files_documents_time_s);
    Budget::new(Allowance { time, documents: options.files_documents, ..Allowance::default() })
}

/// Returns the reader of the project's files for the call with `budget`. A file of secrets is read only if the options
/// or `question` allow the file.
pub async fn reader(
    engine: &Engine,
    project: &OpenProject,
    options: &Options,
    budget: &Budget,
    question: Option<&Question>,
) -> Result<FileReader> {
    let redactor = engine.installation().await?.redactor.clone();
    let allowed = question.map_or(&[][..], |question| &question.allowed);
    let only_looks = question.is_some_and(|question| question.is_preview);
    let others: Vec<PathBuf> = options.files_roots.0.iter().map(PathBuf::from).collect();
    let own = vec![engine.config().data_dir.clone()];
    // These are the user's own list of ignored files, even if the project's configuration names another list.
    let (config, git_dir) = (engine.config(), project.root.join(".git"));
    let excludes = tiro_git::excludes(config.git_settings(), config.home.as_deref(), &git_dir);
    let roots = Roots::new(&project.root, &others, &own)?
        .with_excludes(excludes)
        .with_home(config.home.clone())
        .with_secrets(&[&options.files_secrets.0, allowed].concat());
    let limits = Limits { file_bytes: options.files_max_bytes, ..Limits::default() };
    let now_ns = engine.now().saturating_mul(1_000_000);
    let (extractor, budget) = (engine.extractor().clone(), budget.clone());
    Ok(FileReader { roots, limits, extractor, budget, redactor, now_ns, only_looks })
}

fn images(roots: &Roots, paths: &[String]) -> Result<Vec<tiro_files::Image>> {
    let image = |path: &String| {
        roots.image(path).map_err(|why| {
            let error = Error::bad_input(format!("image `{}` {why}", quoted(path)));
            match why.way_out() {
                Some(way_out) => error.hint(way_out),
                None => error,
            }
        })
    };
    paths.iter().map(image).collect()
}

fn add_looked(receipt: &mut Receipt, looked: &Looked) {
    receipt.skipped.splice(0..0, looked.unreached.iter().cloned());
    receipt.skipped.extend(looked.skipped.iter().cloned());
    receipt.notices.extend(looked.notices.iter().cloned());
}

/// Returns how many tokens of the prompt are the same as in the prompt of the last turn, which had `last` tokens.
/// `before` are the blocks of the thread: the blocks of the last prompt, its question and its answer. If a part of them
/// was forgotten, only the tokens before this part are the same.
fn unchanged_prefix(before: &[Block], system: usize, last: usize) -> usize {
    let has_text = |block: &&Block| match &block.text {
        BlockText::Message(_, text) | BlockText::Blob(_, text) => text.is_some(),
    };
    let tokens = |blocks: &[Block]| blocks.iter().map(|block| block.tokens as usize).sum::<usize>();
    if system + tokens(before) < last {
        return system;
    }
    let kept = before.iter().take_while(has_text).count();
    (system + tokens(&before[..kept])).min(last)
}

/// Returns two numbers of tokens for each of the latest turns without functions: the number that the model reported,
/// and the number that Tiro counted.
fn reported(turns: &[TurnRow]) -> Vec<(u64, u64)> {
    let of = |row: &TurnRow| {
        let receipt: Receipt = serde_json::from_str(row.receipt.as_deref()?).ok()?;
        let is_reported = receipt.functions.is_empty() && !receipt.reported.is_estimate;
        is_reported.then_some((row.spent.input, row.spent.prompt))
    };
    turns.iter().filter_map(of).collect()
}

/// Returns the memories and files whose content is in `prompt`. Images that are shown with the prompt, and the sources
/// of quotations from `others`, are included.
fn sources<'a>(prompt: impl Iterator<Item = &'a Block>, images: &[String], others: Sources) -> Sources {
    let mut sources = Sources { memories: Vec::new(), files: images.to_vec() };
    for block in prompt {
        if let BlockText::Message(id, Some(_)) = &block.text {
            sources.memories.push(id.as_str().to_owned());
        }
        if matches!(block.part, Part::File | Part::Change) {
            sources.files.extend(block.path.clone());
        }
    }
    sources.add(others);
    sources
}

/// Returns what other assistants have said in the session since this assistant was asked last, and the sources of this
/// text.
async fn others(
    project: &OpenProject,
    question: &Question,
    thread: &Thread,
    key: &[u8; 32],
) -> Result<(Option<Block>, Sources)> {
    let name = &question.name;
    let exchanges = project.store.other_exchanges(&project.scope, name, OTHERS).await?;
    let ids = exchanges.iter().flat_map(|exchange| &exchange.ids).map(|id| id.as_str().to_owned());
    Ok((history::others(thread.turns + 1, &exchanges, key), Sources::memories(ids)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(tokens: u32, text: Option<&str>) -> Block {
        let hash = ContentHash::of(text.unwrap_or_default().as_bytes());
        let text = BlockText::Blob(hash, text.map(str::to_owned));
        Block { turn: 1, part: Part::Note, path: None, tokens, text }
    }

    #[test]
    fn the_unchanged_prefix_is_what_the_prompt_before_had_and_still_has() {
        let [file, question, answer] = [block(500, Some("file")), block(20, Some("?")), block(80, Some("!"))];
        let whole = [file.clone(), question.clone(), answer.clone()];
        assert_eq!(unchanged_prefix(&whole, 100, 620), 620, "the answer was not part of it");
        let forgotten = [file, block(20, None), answer.clone()];
        assert_eq!(unchanged_prefix(&forgotten, 100, 620), 600);
        assert_eq!(unchanged_prefix(&[question, answer], 100, 620), 100, "a block was removed");
        assert_eq!(unchanged_prefix(&[], 100, 620), 100);
    }
}
