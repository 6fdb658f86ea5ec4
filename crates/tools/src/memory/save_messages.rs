//! Saves messages of a conversation.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::common;
use tiro_base::error::{Error, Result, quoted};
use tiro_base::humanize::{self, counted};
use tiro_base::memory::{Draft, Identity, Kind, Millis, Provenance, Role};
use tiro_base::times;
use tiro_host::caller::{Task, WritingCaller};
use tiro_host::engine::Engine;
use tiro_intake::session_id;
use tiro_recall::remember::remember;
use tiro_redact::{Redaction, redactions};
use tiro_store::Outcome;
use tiro_text::blocks;

/// The name of the tool in MCP.
pub const NAME: &str = "save_messages";
/// The title of the tool, which clients show to users.
pub const TITLE: &str = "Save messages";
/// The description of the tool, which agents read.
pub const DESCRIPTION: &str = "Saves messages of a conversation for good, searchable at once. A message's \
    `id` makes saving it again harmless. Secrets are replaced first. For a single fact or decision use \
    store_memory.";

/// The maximum number of ids that an answer lists. If there are more, they are only counted. Arbitrary.
const LISTED: usize = 100;

/// A message gets the checked-out branch and commit if its time differs from now by at most this many milliseconds.
const RECENT: Millis = 10 * 60 * 1000;

/// The arguments of the call.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Args {
    /// Names the conversation; choose any name and keep it.
    pub session_id: String,
    /// In the order they were said.
    pub messages: Vec<Message>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[allow(
    clippy::missing_docs_in_private_items,
    reason = "docs would be part of the schema that every model reads"
)]
#[allow(missing_docs, reason = "docs become part of the schema, which models pay for")]
pub struct Message {
    /// Your id for it; saving the same id again changes nothing.
    pub id: Option<String>,
    /// user, assistant, tool or system.
    pub role: String,
    /// The speaker's name.
    pub speaker: Option<String>,
    pub text: String,
    /// RFC 3339; now if left out.
    pub time: Option<String>,
}

/// The answer of the call.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct Output {
    /// The conversation's name.
    pub session_id: String,
    /// How many messages this call stored.
    pub saved: usize,
    /// How many messages were stored before with the same text.
    pub already_stored: usize,
    /// The ids that were stored before with another text. That text stays, and the new one is not stored.
    pub conflicts: Vec<String>,
    /// How many messages were forgotten before and stay forgotten.
    pub forgotten: usize,
    /// How many messages were left out because `ignore.sessions` names the conversation.
    pub left_out: usize,
    /// The memories' ids, in order, if there are at most 100.
    pub ids: Vec<String>,
    /// Secrets replaced, by rule.
    #[schemars(with = "Vec<Value>")]
    pub redactions: Vec<Redaction>,
    /// How many chunks have no embedding yet: searches find them by words, not by meaning.
    pub pending: usize,
    /// Other remarks, each a sentence without a full stop.
    pub notices: Vec<String>,
}

/// Stores the messages in order. They are durable when the call returns.
pub async fn run(engine: &Engine, caller: &WritingCaller, args: Args) -> Result<Output> {
    let now = engine.now();
    if args.messages.is_empty() {
        return Err(Error::bad_input("`messages` is empty").hint("give at least one message"));
    }
    let project = caller.begin_project(engine).await?;
    let session = session_id(&project.redactor, "session_id", &args.session_id)?;
    let head = common::head(&project);
    let without_id = args.messages.iter().filter(|message| message.id.is_none()).count();

    let mut drafts = Vec::with_capacity(args.messages.len());
    let mut added = 0;
    for (place, message) in args.messages.into_iter().enumerate() {
        let mut draft = draft(place, message, now)?;
        if draft.role == Some(Role::User) && blocks::is_added(&draft.text) {
            (draft.role, draft.provenance) = (Some(Role::System), Provenance::Imported);
            added += 1;
        }
        if (draft.time - now).abs() <= RECENT {
            (draft.branch, draft.head_sha) = head.clone();
        }
        draft.session = Some(session.clone());
        drafts.push(draft);
    }

    if engine.config().ignored.session(session.as_str()) {
        return Ok(Output { session_id: session.to_string(), left_out: drafts.len(), ..Output::default() });
    }
    let loaded = engine.loaded_embedders();
    let mut durable = 0;
    let source_ids: Vec<Option<String>> = drafts.iter().map(|draft| draft.source_id.clone()).collect();
    let remembered = remember(
        project.store.as_ref(),
        &project.scope,
        &project.redactor,
        &loaded,
        drafts,
        now,
        || engine.random(),
        |count| durable = count,
    )
    .await;
    let remembered = remembered.map_err(|error| match durable {
        0 => error,
        _ => error.hint(format!(
            "the first {durable} messages are stored; repeat the call: no message with an `id` is stored twice"
        )),
    })?;
    // The idle worker will extract facts and statements, close segments and make summaries. A first step is done at the
    // end of this call.
    caller.leave(Task::Digest(session.clone()));
    engine.wrote();

    let receipt = remembered.receipt;
    let conflicts =
        receipt.outcomes.iter().zip(&source_ids).filter(|((_, met), _)| *met == Outcome::Conflict);
    let conflicts: Vec<String> = conflicts.filter_map(|(_, source_id)| source_id.clone()).collect();
    let trouble = caller.opened_project(engine).and_then(|project| project.trouble.clone());
    let mut notices: Vec<String> = trouble.into_iter().collect();
    let without_id = if source_ids.len() > 1 { without_id } else { 0 };
    notices.extend(remarks(without_id, added));
    let ids = receipt.outcomes.iter().map(|(id, _)| id.to_string());
    Ok(Output {
        session_id: session.to_string(),
        saved: receipt.count(Outcome::Stored),
        already_stored: receipt.count(Outcome::AlreadyStored),
        conflicts,
        forgotten: receipt.count(Outcome::Forgotten),
        left_out: 0,
        ids: if receipt.outcomes.len() <= LISTED { ids.collect() } else { Vec::new() },
        redactions: redactions(remembered.redactions),
        pending: receipt.pending,
        notices,
    })
}

/// Returns remarks on messages without an id and on messages that a client added.
fn remarks(without_id: usize, added: usize) -> Vec<String> {
    let mut remarks = Vec::new();
    if without_id > 0 {
        remarks.push(counted(
            without_id,
            "message has no id: saving it again would store it twice",
            "messages have no id: saving them again would store them twice",
        ));
    }
    if added > 0 {
        remarks.push(counted(
            added,
            "message of the user was written by a client and is stored with the role system",
            "messages of the user were written by a client and are stored with the role system",
        ));
    }
    remarks
}

fn draft(place: usize, message: Message, now: Millis) -> Result<Draft> {
    let named = |field: &str| format!("messages[{place}].{field}");
    let role = common::role(&named("role"), &message.role)?;
    if message.text.trim().is_empty() {
        return Err(Error::bad_input(format!("`{}` is empty", named("text"))).hint("leave the message out"));
    }
    common::whole(&named("text"), &message.text)?;
    let time = message.time.as_deref().map(|time| times::parse_time(&named("time"), time)).transpose()?;
    let provenance = match role {
        Role::User => Provenance::UserSaid,
        Role::Assistant => Provenance::ModelSaid,
        Role::Tool => Provenance::ToolOutput,
        Role::System => Provenance::Imported,
    };
    let id = message.id.map(|id| common::short(&named("id"), &id)).transpose()?;
    let mut draft = Draft::new(Kind::Message, provenance, message.text, time.unwrap_or(now));
    draft.role = Some(role);
    draft.speaker = message.speaker.map(|name| common::short(&named("speaker"), &name)).transpose()?;
    if let Some(id) = &id {
        draft.identity = Identity::Named(format!("id:{id}"));
    }
    draft.source_id = id;
    Ok(draft)
}

impl Output {
    /// Returns the answer as text.
    pub fn text(&self) -> String {
        let saved = counted(self.saved, "message", "messages");
        let mut text = format!("Saved {saved} in session `{}`", quoted(&self.session_id));
        if self.already_stored > 0 {
            text += &format!(", {} stored before", counted(self.already_stored, "was", "were"));
        }
        if self.forgotten > 0 {
            let one = "was forgotten before and stays forgotten";
            let several = "were forgotten before and stay forgotten";
            text += &format!(", {}", counted(self.forgotten, one, several));
        }
        if self.left_out > 0 {
            let left_out = counted(self.left_out, "was", "were");
            text +=
                &format!(", {left_out} left out: the configuration's `ignore.sessions` names the session");
        }
        if !self.conflicts.is_empty() {
            text += &format!(
                ", {} stored before with another text, which stays ({})",
                counted(self.conflicts.len(), "id was", "ids were"),
                humanize::some(&self.conflicts)
            );
        }
        text.push('.');
        if !self.ids.is_empty() {
            text += &format!("\nIds: {}.", humanize::some(&self.ids));
        }
        text + &common::footnotes(&self.redactions, self.pending, &self.notices)
    }
}
