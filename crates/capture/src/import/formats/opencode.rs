//! Reads the sessions of opencode, as the lines that `clients/transcripts/database.rs` makes of the rows in its
//! database.
//!
//! The first line is about the session, each further line is a message with its parts. A copy of a session has new ids,
//! but its messages have the times of the originals. So a message is identified by its time and its text.

use std::borrow::Cow;

use crate::import::clean::without_blocks;
use crate::import::entry::{Line, Outcome, Part, time};
use crate::import::fields::{Fields, string};
use crate::import::gist::{self, Arguments};
use crate::import::session::Session;
use tiro_base::memory::Role;
use tiro_text::blocks;

/// Types of parts that are known and not worth remembering.
const NOTES: [&str; 9] = [
    "agent",
    "compaction",
    "patch",
    "reasoning",
    "retry",
    "snapshot",
    "step-finish",
    "step-start",
    "subtask",
];

/// Reads a line.
pub(super) fn line(session: &mut Session, fields: &Fields<'_>) {
    match fields.text("type").as_deref() {
        Some("session") => {
            let about = session.about_mut();
            about.session = fields.filled("id").map(Cow::into_owned).or(about.session.take());
            about.began = time(fields.text("time")).or(about.began);
            about.worktree = fields.filled("cwd").map(Cow::into_owned).or(about.worktree.take());
            if let Some(parent) = fields.filled("parent") {
                about.is_subagent = true;
                about.add_alias(&parent);
            }
            session.skip("session");
        }
        Some("message") => message(session, fields),
        other => session.unknown(other),
    }
}

fn message(session: &mut Session, fields: &Fields<'_>) {
    let role = match fields.text("role").as_deref() {
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        other => return session.unknown(other),
    };
    if let Some(cwd) = fields.filled("cwd") {
        session.about_mut().worktree = Some(cwd.into_owned());
    }
    let is_summary = role == Role::Assistant && fields.is_true("summary");
    let all: Vec<Fields<'_>> = fields.items("parts").into_iter().map(Fields::of).collect();
    let (mut texts, mut parts) = (Vec::new(), Vec::new());
    for part in &all {
        match part.text("type").as_deref() {
            Some("text") if part.is_true("added") => session.skip("text of the client"),
            Some("text") => texts.extend(part.filled("text")),
            Some("file") => {
                texts.extend(part.filled("name").map(|name| Cow::Owned(format!("[file {name}]"))))
            }
            Some("tool") => tool_call(session, part, &mut parts),
            Some(kind) if NOTES.contains(&kind) => session.skip(kind),
            kind => session.unknown(kind.map(|kind| format!("part {kind}")).as_deref()),
        }
    }
    if is_summary {
        session.compacted();
    }
    let text = texts.join("\n\n");
    let key = fields.text("time").map(|time| {
        let hash = blake3::hash(text.as_bytes()).to_hex();
        Cow::Owned(format!("{time}:{}", &hash[..16]))
    });
    if !text.trim().is_empty() {
        let text = match role {
            Role::User => without_blocks(Cow::Owned(text), &blocks::ADDED),
            _ => Cow::Owned(text),
        };
        parts.insert(0, Part::Text { role, text, is_summary });
    }
    if parts.is_empty() {
        return session.skip("empty");
    }
    // The files that changed while the answer was written, whichever call changed them.
    let changed = all.iter().filter(|part| part.text("type").as_deref() == Some("patch"));
    let changed = changed.flat_map(|part| part.items("files"));
    let changed: Vec<String> = changed
        .filter_map(|file| string(Fields::of(file).raw("path")?).map(Cow::into_owned))
        .take(64)
        .collect();
    let results = parts.iter_mut().filter(|part| matches!(part, Part::Result { .. }));
    if let Some(Part::Result { changed: files, .. }) = results.last() {
        *files = changed;
    }
    session.add_line(Line { key, time: time(fields.text("time")), parts, ..Line::default() });
}

/// Adds a tool call and, if the call has ended, its result.
fn tool_call<'a>(session: &mut Session, call: &Fields<'a>, into: &mut Vec<Part<'a>>) {
    let (Some(id), Some(tool)) = (call.filled("id"), call.filled("name")) else {
        return session.unknown(Some("tool call without a name"));
    };
    let arguments = call.raw("input").map_or(Arguments::Text("".into()), Arguments::Json);
    into.push(Part::Call { id: id.clone(), tool, arguments });
    let (outcome, output) = match call.text("status").as_deref() {
        Some("completed") => (Outcome::Ok, call.raw("output")),
        Some("error") => (Outcome::Failed, call.raw("error")),
        // opencode was ended during the call, and the message was followed by others.
        _ => (Outcome::Unknown, None),
    };
    let output = output.map(gist::content).unwrap_or_default();
    into.push(Part::Result { id, outcome, output, changed: Vec::new() });
}
