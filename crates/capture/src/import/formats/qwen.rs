//! Reads the chats of Qwen Code.
//!
//! Qwen Code began as a copy of Gemini CLI, and its messages consist of the same parts. But each line is written once,
//! and has an id, the session, the directory and the branch, as in Claude Code. A call is a part of the assistant's
//! line; its result is a line of its own. A line of the user may also be a text of the client, which its provenance
//! says. A compaction is a line with the new history, which begins with the summary.

use std::borrow::Cow;

use super::claude_code::{identity, note_place};
use super::gemini::{message_text, written};
use crate::import::entry::{Line, Outcome, Part, time};
use crate::import::fields::Fields;
use crate::import::gist::{self, Arguments};
use crate::import::session::Session;
use tiro_base::memory::Role;

/// The text that the client adds to a summary for the model.
const SUMMARY_ENDS: &str = "\n\nResume the prior task using the summary above.";

/// Reads a line.
pub(super) fn line(session: &mut Session, fields: &Fields<'_>) {
    note_place(session.about_mut(), fields);
    match fields.text("type").as_deref() {
        Some("user") => prompt(session, fields),
        Some("assistant") => answer(session, fields),
        Some("tool_result") => results(session, fields),
        Some("system") => note(session, fields),
        other => session.unknown(other),
    }
}

fn prompt(session: &mut Session, fields: &Fields<'_>) {
    if fields.filled("provenance").is_some_and(|provenance| provenance != "real_user") {
        return session.skip("text of the client");
    }
    let shown = fields.object("systemPayload").filled("displayText");
    let parts = fields.object("message");
    let text = shown.or_else(|| parts.raw("parts").map(message_text)).unwrap_or_default();
    add(session, fields, vec![Part::Text { role: Role::User, text: written(text), is_summary: false }]);
}

fn answer(session: &mut Session, fields: &Fields<'_>) {
    let message = fields.object("message");
    let text = message.raw("parts").map(message_text).unwrap_or_default();
    let mut parts = Vec::new();
    if !text.trim().is_empty() {
        parts.push(Part::Text { role: Role::Assistant, text, is_summary: false });
    }
    for part in message.items("parts") {
        let part = Fields::of(part);
        if part.raw("functionCall").is_none() {
            continue;
        }
        let call = part.object("functionCall");
        match (call.filled("id"), call.filled("name")) {
            (Some(id), Some(tool)) => {
                let arguments = call.raw("args").map_or(Arguments::Text("".into()), Arguments::Json);
                parts.push(Part::Call { id, tool, arguments });
            }
            _ => session.unknown(Some("tool call without a name")),
        }
    }
    if parts.is_empty() {
        return session.skip("empty");
    }
    add(session, fields, parts);
}

fn results(session: &mut Session, fields: &Fields<'_>) {
    let outcome = match fields.object("toolCallResult").text("status").as_deref() {
        Some("success") => Outcome::Ok,
        Some("error" | "cancelled") => Outcome::Failed,
        _ => Outcome::Unknown,
    };
    let mut parts = Vec::new();
    for part in fields.object("message").items("parts") {
        let result = Fields::of(part).object("functionResponse");
        let Some(id) = result.filled("id") else { continue };
        let output = result.raw("response").map(gist::content).unwrap_or_default();
        parts.push(Part::Result { id, outcome, output, changed: Vec::new() });
    }
    if parts.is_empty() {
        return session.unknown(Some("result without a call"));
    }
    add(session, fields, parts);
}

/// Reads a note of the client. Only titles and compactions are worth remembering.
fn note(session: &mut Session, fields: &Fields<'_>) {
    let payload = fields.object("systemPayload");
    match fields.text("subtype").as_deref() {
        Some("custom_title") => {
            session.skip("title");
            if let Some(title) = payload.filled("customTitle") {
                session.about_mut().title = Some(title.into_owned());
            }
        }
        Some("parent_session") => {
            session.skip("system");
            session.about_mut().is_subagent = true;
            if let Some(parent) = payload.filled("parentSessionId") {
                session.about_mut().add_alias(&parent);
            }
        }
        Some("chat_compression") => {
            session.compacted();
            let first = payload.items("compressedHistory").first().map(|raw| Fields::of(raw));
            let text = first.as_ref().and_then(|first| first.raw("parts")).map(message_text);
            let text = text.unwrap_or_default();
            let text = text.split_once(SUMMARY_ENDS).map_or(text.as_ref(), |(summary, _)| summary);
            let text = Cow::Owned(text.to_owned());
            add(session, fields, vec![Part::Text { role: Role::User, text, is_summary: true }]);
        }
        _ => session.skip("system"),
    }
}

fn add(session: &mut Session, fields: &Fields<'_>, parts: Vec<Part<'_>>) {
    let (key, copy_of) = identity(fields);
    let is_subagent = fields.is_true("isSidechain");
    let speaker = fields.filled("agentName").filter(|_| is_subagent);
    let time = time(fields.text("timestamp"));
    session.add_line(Line { key, time, is_subagent, speaker, copy_of, parts });
}
