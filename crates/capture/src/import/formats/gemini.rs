//! Reads the chats of Gemini CLI.
//!
//! The first line describes the session. Each further line is a message, or a change (`$set`) that may replace all
//! messages. A message contains its tool calls with their results. A message that has grown is written again as a
//! whole. Versions before 0.58 kept a single JSON object with all messages, indented over many lines, which is read as
//! one line.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::import::clean::{is_block, without_blocks};
use crate::import::entry::{Line, Outcome, Part, time};
use crate::import::fields::{Fields, items, scalar, string};
use crate::import::gist::{self, Arguments};
use crate::import::session::Session;
use tiro_base::memory::Role;
use tiro_text::blocks;

/// The line after which the client appends the files that a prompt names.
const FILES_FOLLOW: &str = "\n--- Content from referenced files ---";

/// The fields by which the known parts of a message are recognised.
const PARTS: [&str; 8] = [
    "text",
    "thought",
    "functionCall",
    "functionResponse",
    "inlineData",
    "fileData",
    "executableCode",
    "codeExecutionResult",
];

/// Reads a line.
pub(super) fn line(session: &mut Session, fields: &Fields<'_>) {
    if fields.raw("$rewindTo").is_some() {
        // The user took back a message. The message is kept nevertheless, because the user did write it.
        session.skip("$rewindTo");
    } else if let Some(set) = fields.raw("$set") {
        note_session(session, &Fields::of(set), "$set");
    } else if fields.raw("sessionId").is_some() {
        note_session(session, fields, "session");
    } else if fields.raw("id").is_some() {
        message(session, fields);
    } else {
        session.unknown(fields.iter().next().map(|(name, _)| name));
    }
}

fn note_session(session: &mut Session, set: &Fields<'_>, kind: &str) {
    let about = session.about_mut();
    about.session = set.filled("sessionId").map(Cow::into_owned).or(about.session.take());
    about.title = set.filled("summary").map(Cow::into_owned).or(about.title.take());
    about.is_subagent |= set.text("kind").as_deref() == Some("subagent");
    if let Some(folder) = set.items("directories").first().and_then(|raw| string(raw)) {
        about.worktree = Some(folder.into_owned());
    }
    let messages = set.items("messages");
    if messages.is_empty() {
        session.skip(kind);
    }
    for each in messages {
        let each = Fields::of(each);
        // The messages of a `$set` also have lines of their own, and are repeated with other ids after a compression.
        // So only a summary among them is read. In the older version, the messages have no lines of their own, so all
        // of them are read.
        if kind == "session" || is_summary(&each) {
            message(session, &each);
        } else {
            session.skip("$set.messages");
        }
    }
}

fn message(session: &mut Session, fields: &Fields<'_>) {
    let role = match fields.text("type").as_deref() {
        Some("user") => Role::User,
        Some("gemini") => Role::Assistant,
        Some(kind @ ("info" | "error" | "warning")) => return session.skip(kind),
        other => return session.unknown(other),
    };
    if !fields.items("thoughts").is_empty() {
        session.skip("thoughts");
    }
    let content = fields.raw("displayContent").or_else(|| fields.raw("content"));
    let text = content.map(message_text).unwrap_or_default();
    for part in content.map(items).unwrap_or_default() {
        let part = Fields::of(part);
        if let Some((name, _)) =
            part.iter().next().filter(|_| !PARTS.iter().any(|name| part.raw(name).is_some()))
        {
            session.unknown(Some(&format!("part {name}")));
        }
    }
    let is_summary = is_summary(fields);
    if is_summary {
        session.compacted();
    }
    let text = match role {
        Role::User => written(text),
        _ => text,
    };
    let mut parts = Vec::new();
    if !text.trim().is_empty() {
        parts.push(Part::Text { role, text, is_summary });
    }
    for call in fields.items("toolCalls") {
        tool_call(session, &Fields::of(call), &mut parts);
    }
    if parts.is_empty() {
        session.skip("empty");
    }
    let (key, time) = (fields.filled("id"), time(fields.text("timestamp")));
    session.add_line(Line { key, time, parts, ..Line::default() });
}

/// Returns whether a message is the client's summary of the messages before it.
fn is_summary(fields: &Fields<'_>) -> bool {
    let is_users = fields.text("type").as_deref() == Some("user");
    is_users && fields.raw("content").is_some_and(|raw| is_block(&message_text(raw), "state_snapshot"))
}

/// Adds a tool call and, if the call has ended, its result.
fn tool_call<'a>(session: &mut Session, call: &Fields<'a>, into: &mut Vec<Part<'a>>) {
    let (Some(id), Some(tool)) = (call.filled("id"), call.filled("name")) else {
        return session.unknown(Some("tool call without a name"));
    };
    let arguments = call.raw("args").map_or(Arguments::Text("".into()), Arguments::Json);
    into.push(Part::Call { id: id.clone(), tool, arguments });
    let outcome = match call.text("status").as_deref() {
        Some("success") => Outcome::Ok,
        Some("error" | "cancelled") => Outcome::Failed,
        _ => return,
    };
    let shown = call.raw("result").or_else(|| call.raw("resultDisplay"));
    let output = shown.map(gist::content).unwrap_or_default();
    into.push(Part::Result { id, outcome, output, changed: Vec::new() });
}

/// Returns the texts of a message, without thoughts, tool calls and their results.
pub(super) fn message_text(raw: &RawValue) -> Cow<'_, str> {
    let is_no_text = |part: &Fields<'_>| {
        part.is_true("thought") || part.raw("functionCall").or_else(|| part.raw("functionResponse")).is_some()
    };
    if !raw.get().starts_with('[') {
        return match is_no_text(&Fields::of(raw)) {
            true => Cow::Borrowed(""),
            false => scalar(raw).unwrap_or_else(|| gist::content(raw)),
        };
    }
    let parts = items(raw).into_iter().filter(|part| !is_no_text(&Fields::of(part)));
    Cow::Owned(parts.map(gist::content).collect::<Vec<_>>().join("\n"))
}

/// Returns the part of a user message that the user wrote.
pub(super) fn written(text: Cow<'_, str>) -> Cow<'_, str> {
    let follows = |end: &usize| matches!(text.as_bytes().get(end + FILES_FOLLOW.len()), None | Some(b'\n'));
    let text = match text.find(FILES_FOLLOW).filter(follows) {
        Some(end) => Cow::Owned(text[..end].to_owned()),
        None => text,
    };
    without_blocks(text, &blocks::ADDED)
}
