//! Describes the threads of a session, or lists all threads.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use tiro_base::envelope;
use tiro_base::error::{Result, quoted};
use tiro_base::humanize::{counted, thousands};
use tiro_base::money::Money;
use tiro_base::thread::FilePlace;
use tiro_base::times;
use tiro_host::caller::Caller;
use tiro_host::consult::{self, Files, Receipt, Reported};
use tiro_host::engine::Engine;
use tiro_intake::session_id;
use tiro_store::ThreadRow;

/// The name of the tool in MCP.
pub const NAME: &str = "describe_session";
/// The title of the tool, which clients show to users.
pub const TITLE: &str = "Describe threads";
/// The description of the tool, which agents read.
pub const DESCRIPTION: &str = "Describes a session's threads with assistants: turns, files and their places, tokens \
    saved, cost. Without a session, lists the threads. For what was said, use retrieve_context.";

/// The maximum number of threads that are listed. Arbitrary.
const MOST: usize = 50;

/// The arguments of the call.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct Args {
    /// The session.
    #[schemars(description = "")]
    pub session_id: Option<String>,
}

/// The answer of the call.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct Output {
    /// The threads, the latest first.
    #[schemars(with = "Vec<serde_json::Value>")]
    pub threads: Vec<Described>,
    /// How many further threads there are.
    pub dropped: usize,
}

/// A thread.
#[derive(Debug, Default, Serialize)]
pub struct Described {
    /// The session.
    pub session_id: String,
    /// The assistant.
    pub assistant: String,
    /// How many turns it has.
    pub turns: u32,
    /// How often all files were sent again, plus one.
    pub epoch: u32,
    /// The number of tokens of the thread's next prompt, without new files and instructions.
    pub tokens: u64,
    /// The assistant's window, in tokens as Tiro counts them.
    pub window: u32,
    /// The files in the prompt; named only if one session is described.
    pub inline: Files,
    /// The files that are searched instead.
    pub overflow: Files,
    /// Whether the places of files are fixed.
    pub is_fixed: bool,
    /// The context that callers named.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub context: Vec<String>,
    /// The number of tokens that were not sent because the assistant already had them.
    pub saved: u64,
    /// The numbers that the provider counted: tokens sent, tokens read from its cache, and tokens received.
    pub reported: Reported,
    /// The cost.
    pub cost: String,
    /// The time when the thread began. `last` is the time when it was last used.
    pub first: String,
    /// See `first`.
    pub last: String,
    /// The receipt of the last turn. It is given only if one session is described.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_turn: Option<Receipt>,
}

/// Describes the threads.
pub async fn run(engine: &Engine, caller: &Caller, args: Args) -> Result<Output> {
    let project = caller.project(engine).await?;
    let session = match args.session_id.as_deref() {
        Some(name) => Some(session_id(&project.redactor, "session_id", name)?),
        None => None,
    };
    let rows = project.store.threads(&project.scope, session.as_ref()).await?;
    if let Some(session) = session.as_ref().filter(|_| rows.is_empty()) {
        return Err(consult::missing(engine, &project, session, None).await?);
    }
    let dropped = rows.len().saturating_sub(MOST);
    let mut output = Output { dropped, ..Output::default() };
    for row in rows.into_iter().take(MOST) {
        let mut described = described(&row);
        if session.is_some()
            && let Some(thread) = project.store.thread(&project.scope, &row.name).await?
        {
            let at = |place| {
                let entries =
                    thread.ledger.iter().filter(move |entry| entry.place == place && !entry.is_removed);
                Files::of(entries.map(|entry| entry.path.as_str()))
            };
            (described.inline, described.overflow) = (at(FilePlace::Inline), at(FilePlace::Overflow));
            described.context = thread.context;
            let turns = project.store.turns(&project.scope, &row.name, 1).await?;
            let receipt = turns.into_iter().next().and_then(|turn| turn.receipt);
            described.last_turn = receipt.and_then(|receipt| serde_json::from_str(&receipt).ok());
        }
        output.threads.push(described);
    }
    Ok(output)
}

fn described(row: &ThreadRow) -> Described {
    let files = |count: u32| Files { count: count as usize, paths: Vec::new() };
    Described {
        session_id: row.name.session.to_string(),
        assistant: row.name.assistant.clone(),
        turns: row.turns,
        epoch: row.epoch,
        tokens: row.tokens,
        window: row.window,
        inline: files(row.files_inline),
        overflow: files(row.files_overflow),
        is_fixed: row.is_fixed,
        context: Vec::new(),
        saved: row.spent.whole.saturating_sub(row.spent.appended),
        reported: Reported {
            input: row.spent.input,
            cached: row.spent.cached,
            output: row.spent.output,
            is_estimate: false,
        },
        cost: Money(row.spent.micros).to_string(),
        last_turn: None,
        first: times::show_time(row.first),
        last: times::show_time(row.last),
    }
}

impl Described {
    /// Returns the thread as lines of text.
    pub fn text(&self) -> String {
        let Described { session_id, assistant, turns, tokens, window, cost, .. } = self;
        let session_id = quoted(session_id);
        let mut text = format!(
            "Session `{session_id}` with {assistant}: {}, {} to {}; {} of {} tokens of the window; {} tokens saved; {cost}",
            counted(*turns, "turn", "turns"),
            self.first,
            self.last,
            thousands(*tokens),
            thousands(u64::from(*window)),
            thousands(self.saved)
        );
        let fixed = if self.is_fixed { ", places fixed" } else { "" };
        text += &format!(
            "\n  {} in the prompt, {} to be searched{fixed}",
            counted(self.inline.count, "file", "files"),
            counted(self.overflow.count, "file", "files")
        );
        for (said, files) in [("in the prompt", &self.inline), ("to be searched", &self.overflow)] {
            if !files.paths.is_empty() {
                let more = if files.count > files.paths.len() { ", …" } else { "" };
                text += &format!("\n  {said}: {}{more}", envelope::names(&files.paths));
            }
        }
        if !self.context.is_empty() {
            text += &format!("\n  context: {}", envelope::names(&self.context));
        }
        if let Some(receipt) = &self.last_turn {
            text += &format!("\n  last turn:\n    {}", receipt.text().replace('\n', "\n    "));
        }
        text
    }
}

impl Output {
    /// Returns the answer as text.
    pub fn text(&self) -> String {
        if self.threads.is_empty() {
            return "No assistant was asked in this project yet.".to_owned();
        }
        let mut text: Vec<String> = self.threads.iter().map(Described::text).collect();
        if self.dropped > 0 {
            text.push(format!("{} more threads", self.dropped));
        }
        text.join("\n")
    }
}
