//! Shows a thread to people: its state, and its latest turns with what each turn sent and how much it cost.

use serde::Serialize;

use super::describe_session::{self, Described};
use tiro_base::error::{Kind, Result};
use tiro_base::humanize::thousands;
use tiro_base::memory::MemoryId;
use tiro_base::money::Money;
use tiro_base::thread::ThreadName;
use tiro_base::times;
use tiro_host::caller::Caller;
use tiro_host::consult;
use tiro_host::consult::Receipt;
use tiro_host::engine::Engine;
use tiro_intake::session_id;
use tiro_store::TurnRow;

/// How many turns are shown.
const TURNS: usize = 10;

/// The number of bytes of an answer that are shown. Arbitrary: a few lines.
const SHOWN: usize = 400;

/// The answer of `tiro show SESSION@ASSISTANT`.
#[derive(Debug, Serialize)]
pub struct Output {
    /// What the thread has.
    pub thread: Described,
    /// The latest turns, the latest first.
    pub turns: Vec<Turn>,
}

/// A turn.
#[derive(Debug, Serialize)]
pub struct Turn {
    /// Its number.
    pub number: u32,
    /// When it ended.
    pub time: String,
    /// The id of the question's message. Absent if the message was forgotten.
    pub question: Option<String>,
    /// The id of the answer's message. Absent if the message was forgotten.
    pub answer: Option<String>,
    /// The beginning of the answer.
    pub text: String,
    /// The tokens of the prompt.
    pub prompt: u64,
    /// The number of tokens that the turn added to the prompt.
    pub added: u64,
    /// The number of tokens that it would have added if all files in the prompt had been sent again.
    pub whole: u64,
    /// The cost.
    pub cost: String,
    /// The receipt of the turn. Absent if it is no longer stored.
    pub receipt: Option<Receipt>,
}

/// Returns the session and the assistant if `id` has the form SESSION@ASSISTANT.
pub fn parse(id: &str) -> Option<(&str, &str)> {
    id.rsplit_once('@').filter(|(session, assistant)| !session.is_empty() && !assistant.is_empty())
}

/// Shows the thread.
///
/// Errors with [`Kind::NotFound`] if there is no such thread.
pub async fn run(engine: &Engine, caller: &Caller, session: &str, assistant: &str) -> Result<Output> {
    let project = caller.project(engine).await?;
    let session = session_id(&project.redactor, "session", session)?;
    let args = describe_session::Args { session_id: Some(session.to_string()) };
    let described = describe_session::run(engine, caller, args).await?;
    let assistants: Vec<String> = described.threads.iter().map(|thread| thread.assistant.clone()).collect();
    let Some(thread) = described.threads.into_iter().find(|thread| thread.assistant == assistant) else {
        let missing = consult::missing(engine, &project, &session, Some(assistant)).await?;
        return Err(match missing.kind() {
            Kind::NotFound => missing.hint(format!("it has threads with {}", assistants.join(", "))),
            _ => missing,
        });
    };
    let name = ThreadName { session, assistant: assistant.to_owned() };
    let rows = project.store.turns(&project.scope, &name, TURNS).await?;
    Ok(Output { thread, turns: rows.iter().map(turn).collect() })
}

fn turn(row: &TurnRow) -> Turn {
    let id = |id: &Option<MemoryId>| id.as_ref().map(ToString::to_string);
    let answer = row.answer_text.as_deref().unwrap_or("[forgotten]");
    let shown = &answer[..answer.floor_char_boundary(SHOWN)];
    let more = if shown.len() < answer.len() { "…" } else { "" };
    Turn {
        number: row.number,
        time: times::show_time(row.time),
        question: id(&row.question),
        answer: id(&row.answer),
        text: format!("{shown}{more}"),
        prompt: row.spent.prompt,
        added: row.spent.appended,
        whole: row.spent.whole,
        cost: Money(row.spent.micros).to_string(),
        receipt: row.receipt.as_deref().and_then(|receipt| serde_json::from_str(receipt).ok()),
    }
}

impl Output {
    /// Returns the answer as text.
    pub fn text(&self) -> String {
        let mut text = self.thread.text();
        for turn in &self.turns {
            text += &format!(
                "\n\nTurn {}, {}: {} tokens sent, {} of them new; {}",
                turn.number,
                turn.time,
                thousands(turn.prompt),
                thousands(turn.added),
                turn.cost
            );
            if let (Some(question), Some(answer)) = (&turn.question, &turn.answer) {
                text += &format!(" (question {question}, answer {answer})");
            }
            for line in turn.text.lines() {
                text += &format!("\n  {line}");
            }
        }
        text
    }
}
