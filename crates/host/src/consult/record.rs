//! Records a turn in one transaction: the exchange becomes memories of the project, and the thread and its ledger are
//! updated. The provider has accepted the prompt by then, so the ledger never lists content that the assistant doesn't
//! have.

use super::prepare::Prepared;
use crate::engine::Engine;
use crate::project::WritableProject;
use crate::tuning::EXCHANGE_TOKENS;
use tiro_base::error::Result;
use tiro_base::memory::{Draft, Identity, Kind, Level, Millis, Provenance, Role};
use tiro_base::scope::SessionId;
use tiro_base::thread::{Block, BlockText, Part, Spent, Thread, ThreadName};
use tiro_digest::summarize::{self, Source};
use tiro_intake::prepare::prepare;
use tiro_redact::{self, Redactor};
use tiro_store::tuning::BLOB_BYTES;
use tiro_store::{Recorded, TurnRecord};
use tiro_text::tokens;

/// The speaker of the instructions.
const CALLER: &str = "agent";

/// An exchange: a question with its answer.
pub struct Exchange<'a> {
    /// The thread.
    pub name: &'a ThreadName,
    /// The redacted instructions.
    pub instructions: &'a str,
    /// The answer.
    pub answer: &'a str,
    /// The model that answered.
    pub model: &'a str,
    /// The name of the call.
    pub call_id: &'a str,
    /// The receipt, in JSON.
    pub receipt: String,
    /// The tokens and the cost of the exchange.
    pub spent: Spent,
    /// The branch and the commit that are checked out.
    pub head: (Option<String>, Option<String>),
    /// The times when the call began and ended.
    pub times: (Millis, Millis),
}

/// Records the exchange and all changes that `prepared` makes in `thread`.
pub async fn record(
    engine: &Engine,
    project: &WritableProject,
    thread: &Thread,
    prepared: &Prepared,
    exchange: Exchange<'_>,
) -> Result<Recorded> {
    let turn = thread.turns + 1;
    let [question, answered, both] = drafts(&exchange, exchange.answer);
    let mut fresh = || engine.random();
    let mut prepare = |draft: Draft, redactor: &Redactor| prepare(redactor, draft, &mut fresh).0;
    let question = prepare(question, &project.redactor);
    let answered = prepare(answered, &project.redactor);
    let references = vec![question.id.clone(), answered.id.clone()];
    let both = prepare(Draft { references, ..both }, &project.redactor);
    let mut blocks = prepared.blocks.clone();
    let said = |part, id, text: &str| Block {
        turn,
        part,
        path: None,
        tokens: u32::try_from(tokens::count(text) + super::AROUND_MESSAGE).unwrap_or(u32::MAX),
        text: BlockText::Message(id, Some(text.to_owned())),
    };
    blocks.push(said(Part::Question, question.id.clone(), &question.draft.text));
    blocks.push(said(Part::Answer, answered.id.clone(), &answered.draft.text));
    let is_kept = |path: &str| prepared.plan.entries.iter().any(|entry| entry.path == path);
    let gone = thread.ledger.iter().filter(|entry| prepared.is_new_epoch && !is_kept(&entry.path));
    let record = TurnRecord {
        expected_turns: thread.turns,
        epoch: prepared.epoch,
        is_fixed: prepared.plan.is_fixed,
        window: u32::try_from(prepared.window).unwrap_or(u32::MAX),
        rules: tiro_redact::version(),
        context: prepared.context.clone(),
        blocks,
        ledger: prepared.plan.entries.clone(),
        ledger_removed: gone.map(|entry| entry.path.clone()).collect(),
        blobs: prepared.copies.clone(),
        max_blob_bytes: BLOB_BYTES,
        question: question.id.clone(),
        answer: answered.id.clone(),
        memories: vec![question, answered, both],
        call_id: exchange.call_id.to_owned(),
        receipt: exchange.receipt,
        spent: exchange.spent,
        model: exchange.model.to_owned(),
        time: exchange.times.1,
    };
    let recorded = project.store.record_turn(&project.scope, exchange.name, record).await?;
    engine.wrote();
    Ok(recorded)
}

/// Returns the drafts of three memories: the question, the answer, and a memory that represents both.
fn drafts(exchange: &Exchange<'_>, answer: &str) -> [Draft; 3] {
    let ThreadName { session, assistant } = exchange.name;
    let (asked, answered) = exchange.times;
    let draft = |kind, provenance, text: String, time, what: &str| Draft {
        session: Some(session.clone()),
        branch: exchange.head.0.clone(),
        head_sha: exchange.head.1.clone(),
        identity: Identity::Named(format!("consult:{assistant}:{asked}:{}:{what}", exchange.call_id)),
        ..Draft::new(kind, provenance, text, time)
    };
    let question = Draft {
        role: Some(Role::User),
        speaker: Some(CALLER.to_owned()),
        ..draft(Kind::Message, Provenance::ModelSaid, exchange.instructions.to_owned(), asked, "asked")
    };
    let said = Draft {
        role: Some(Role::Assistant),
        speaker: Some(assistant.clone()),
        ..draft(Kind::Message, Provenance::ModelSaid, answer.to_owned(), answered, "answered")
    };
    let text = in_short(session, exchange, answer);
    let both = Draft {
        speaker: Some(assistant.clone()),
        ..draft(Kind::Conversation, Provenance::ModelSaid, text, answered, "both")
    };
    [question, said, both]
}

/// Returns a short version of the exchange, without the files that were sent. It consists of whole sentences of the
/// instructions and the answer.
fn in_short(session: &SessionId, exchange: &Exchange<'_>, answer: &str) -> String {
    let source =
        |ordinal, speaker, role, text| Source { ordinal, speaker, role, time: 0, text, corrected: &[] };
    let assistant = exchange.name.assistant.as_str();
    let sources =
        [source(0, CALLER, Role::User, exchange.instructions), source(1, assistant, Role::Assistant, answer)];
    let summary = summarize::extract(&sources, Level::Standard, EXCHANGE_TOKENS, "", &tokens::count).text;
    format!("{assistant} ({}) was consulted in session {session}.\n{summary}", exchange.model)
}
