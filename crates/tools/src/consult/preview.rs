//! Shows the effect of a question to an assistant before it is sent: the files in the prompt, the files to be searched,
//! the files that are left out and the reasons, the number of replaced secrets, the destination, and the highest cost.
//! Sends and stores nothing.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde::Serialize;

use super::chat::{Args, assistant, functions, question};
use tiro_base::envelope::name;
use tiro_base::error::Result;
use tiro_base::humanize::{counted, thousands};
use tiro_base::thread::{FilePlace, Part};
use tiro_host::ask;
use tiro_host::caller::Caller;
use tiro_host::config::Configured;
use tiro_host::consult::{self, Previewed, Skipped};
use tiro_host::engine::Engine;
use tiro_store::Sources;

/// The instructions that are assumed if the caller has no message yet.
pub const NO_MESSAGE: &str = "(no message yet)";

/// The maximum number of files of each kind that the text lists. The data contain all of them.
const LISTED: usize = 40;

/// The answer of `tiro chat --preview`.
#[derive(Debug, Serialize)]
pub struct Output {
    /// The assistant.
    pub assistant: String,
    /// Its model.
    pub model: String,
    /// The host that the question would be sent to, or `this machine`.
    pub place: String,
    /// Whether the question would stay on this machine.
    pub is_local: bool,
    /// The session of the thread.
    pub session_id: String,
    /// The number of the turn in its thread.
    pub turn: u32,
    /// The number of tokens of each part of the prompt, as Tiro counts them (o200k).
    pub tokens: BTreeMap<String, usize>,
    /// The maximum number of tokens that the model may count for the first request.
    pub tokens_at_most: usize,
    /// The context window, in tokens as Tiro counts them.
    pub window: usize,
    /// The files in the prompt.
    pub inline: Vec<File>,
    /// The files that the assistant could search. It would get parts of them.
    pub searchable: Vec<File>,
    /// The images.
    pub images: Vec<String>,
    /// The number of messages in the prompt that are from the thread or from other assistants.
    pub messages: usize,
    /// The paths that would be left out, with the reasons.
    pub left_out: Vec<Skipped>,
    /// The number of places in the prompt at which a secret is replaced.
    pub secrets_replaced: usize,
    /// The functions that the assistant could call. Their results would be sent too.
    pub functions: Vec<String>,
    /// The highest cost of the first request, in dollars, if it succeeds at the first try. Absent if the price is
    /// unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<String>,
    /// Remarks, each of which is a sentence without a full stop.
    pub notices: Vec<String>,
}

/// A file that would be sent or searched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct File {
    /// Its path.
    pub path: String,
    /// The number of tokens of the file that would be sent. If the file is searched, the number of tokens of its whole
    /// text. Absent for an attachment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<usize>,
    /// `whole`, `changes`, `sent before`, `searched` or `attached`.
    pub how: &'static str,
}

/// Prepares the question of `args` to the assistant `called`. `allowed` are the files of secrets that the user allows.
pub async fn run(
    engine: &Arc<Engine>,
    caller: &Caller,
    called: &str,
    args: Args,
    allowed: Vec<String>,
) -> Result<Output> {
    let assistant = assistant(engine, called)?;
    let project = caller.project(engine).await?;
    let args = match args.instructions.trim().is_empty() {
        true => Args { instructions: NO_MESSAGE.to_owned(), ..args },
        false => args,
    };
    let (mut question, ..) = question(engine, &project, &assistant, &args)?;
    question.allowed = allowed;
    let session = question.name.session.to_string();
    let functions = functions(engine, caller, &assistant);
    let previewed = consult::preview(engine, &project, &assistant, question, functions).await?;
    Ok(Output { session_id: session, images: args.images, ..Output::of(&assistant, previewed) })
}

impl Output {
    fn of(assistant: &Configured, previewed: Previewed) -> Output {
        let inline = inline(&previewed);
        let searchable = searchable(&previewed);
        let Previewed { prepared, foreseen, functions } = previewed;
        let Sources { memories, .. } = prepared.sources;
        let mut notices = prepared.receipt.notices;
        if let Err(error) = ask::check_price(&assistant.provider) {
            notices.push(format!("it would not be asked: {}", error.with_hint()));
        }
        Output {
            assistant: assistant.provider.name.clone(),
            model: assistant.provider.model.clone(),
            place: ask::place(assistant),
            is_local: assistant.is_local(),
            session_id: String::new(),
            turn: prepared.receipt.turn,
            tokens: prepared.receipt.tokens,
            tokens_at_most: foreseen.tokens,
            window: prepared.receipt.window,
            inline,
            searchable,
            images: Vec::new(),
            messages: memories.len(),
            left_out: prepared.receipt.skipped,
            secrets_replaced: foreseen.secrets,
            functions,
            cost: foreseen.most.map(|most| most.to_string()),
            notices,
        }
    }

    /// Returns the answer as text.
    pub fn text(&self) -> String {
        let all: usize = self.tokens.values().sum();
        let parts: Vec<String> =
            self.tokens.iter().map(|(part, count)| format!("{part} {}", thousands(*count as u64))).collect();
        let place = match self.is_local {
            true => "It would stay on this machine".to_owned(),
            false => format!("It would be sent to {}", self.place),
        };
        let mut text = format!(
            "Nothing was sent. {place}: turn {} of thread {} with {} ({}).\n{} of {} tokens of the window ({}), {}.",
            self.turn,
            name(&format!("{}@{}", self.session_id, self.assistant)),
            self.assistant,
            self.model,
            thousands(all as u64),
            thousands(self.window as u64),
            parts.join(", "),
            counted(self.secrets_replaced as u64, "secret replaced", "secrets replaced"),
        );
        let cost = self.cost.as_ref().map_or_else(|| "unknown".to_owned(), |cost| format!("at most {cost}"));
        text += &format!(
            "\nThe first request has at most {} tokens; its cost is {cost}.",
            thousands(self.tokens_at_most as u64)
        );
        if !self.functions.is_empty() {
            let functions = self.functions.join(", ");
            text +=
                &format!(" It may call {functions}: each time, the prompt is sent again with the results.");
        }
        text += &listed("In the prompt", &self.inline);
        text += &listed("To be searched, and sent as far as it is found", &self.searchable);
        if !self.images.is_empty() {
            text += &format!("\n\nImages: {}", tiro_base::envelope::names(&self.images));
        }
        if self.messages > 0 {
            text += &format!("\n\nEarlier messages in the prompt: {}", self.messages);
        }
        if !self.left_out.is_empty() {
            text += "\n\nLeft out:";
        }
        for Skipped { path, why } in self.left_out.iter().take(LISTED) {
            text += &format!("\n  {}: {}", name(path), name(why));
        }
        if self.left_out.len() > LISTED {
            text += &format!("\n  {} more; --json lists all", self.left_out.len() - LISTED);
        }
        for notice in &self.notices {
            text += &format!("\nNote: {notice}.");
        }
        text
    }
}

/// Returns a list of files with a heading. Returns an empty text if there are no files.
fn listed(heading: &str, files: &[File]) -> String {
    if files.is_empty() {
        return String::new();
    }
    let mut text = format!("\n\n{heading}: {}", counted(files.len() as u64, "file", "files"));
    for File { path, tokens, how } in files.iter().take(LISTED) {
        let tokens = tokens.map_or_else(String::new, |tokens| thousands(tokens as u64));
        text += &format!("\n{tokens:>9}  {} ({how})", name(path));
    }
    if files.len() > LISTED {
        text += &format!("\n           {} more; --json lists all", files.len() - LISTED);
    }
    text
}

/// Returns the files whose content is in the prompt, ordered by path.
fn inline(previewed: &Previewed) -> Vec<File> {
    let prepared = &previewed.prepared;
    let known: HashMap<&str, usize> =
        prepared.thread.ledger.iter().map(|entry| (entry.path.as_str(), entry.tokens as usize)).collect();
    let sent = prepared.plan.sendings.iter().filter_map(|sending| {
        let how = match sending.part {
            Part::File => "whole",
            Part::Change => "changes",
            _ => return None,
        };
        Some(File { path: sending.path.clone(), tokens: Some(sending.tokens), how })
    });
    let before = prepared.plan.unchanged.iter().map(|path| File {
        path: path.clone(),
        tokens: known.get(path.as_str()).copied(),
        how: "sent before",
    });
    let mut files: Vec<File> = sent.chain(before).collect();
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
}

/// Returns the files that the assistant could search, ordered by path, and then the attachments.
fn searchable(previewed: &Previewed) -> Vec<File> {
    let prepared = &previewed.prepared;
    let entries = prepared.thread.ledger.iter().chain(&prepared.plan.entries);
    let known: HashMap<&str, usize> = entries
        .filter(|entry| entry.place == FilePlace::Overflow)
        .map(|entry| (entry.path.as_str(), entry.tokens as usize))
        .collect();
    let overflow = prepared.plan.overflow.iter().map(|path| File {
        path: path.clone(),
        tokens: known.get(path.as_str()).copied(),
        how: "searched",
    });
    let attached = prepared.attached.listing().iter();
    let attached = attached.map(|(path, _)| File { path: path.clone(), tokens: None, how: "attached" });
    overflow.chain(attached).collect()
}
