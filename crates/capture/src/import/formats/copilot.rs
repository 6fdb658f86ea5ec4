//! Reads the events of Copilot CLI.
//!
//! A line is `{type, data, id, timestamp}`. The first event of a session has the directory, the branch and the commit;
//! later events say when they changed. Of a prompt, only `content` was written by the user; `transformedContent` is what
//! the model received. A call is an event at its start and one at its end. The events of sub-agents are in the same file
//! and have an `agentId`.

use std::borrow::Cow;

use crate::import::clean::within;
use crate::import::entry::{About, Line, Outcome, Part, time};
use crate::import::fields::{Fields, string};
use crate::import::gist::{self, Arguments};
use crate::import::session::Session;
use tiro_base::memory::Role;

/// The beginnings of types of events that are known and not worth remembering.
const NOTES: [&str; 22] = [
    "abort",
    "agent.",
    "assistant.",
    "auto_mode_switch.",
    "capabilities.",
    "command",
    "elicitation.",
    "exit_plan_mode.",
    "external_tool.",
    "hook.",
    "human_response.",
    "mcp",
    "model.",
    "permission.",
    "prompt_cache_break",
    "session",
    "skill.",
    "subagent.",
    "system.",
    "tool",
    "user_input.",
    "workflow",
];

/// The beginnings of the origins of prompts that no person wrote.
const NOT_TYPED: [&str; 3] = ["skill-", "agent-", "autopilot"];

/// Reads a line.
pub(super) fn line(session: &mut Session, fields: &Fields<'_>) {
    let data = fields.object("data");
    match fields.text("type").as_deref() {
        Some(kind @ "session.start") => {
            let about = session.about_mut();
            about.session = data.filled("sessionId").map(Cow::into_owned).or(about.session.take());
            about.began = time(data.text("startTime")).or(about.began);
            if let Some(parent) = data.filled("detachedFromSpawningParentSessionId") {
                about.add_alias(&parent);
            }
            note_place(about, &data.object("context"));
            session.skip(kind);
        }
        Some(kind @ "session.resume") => {
            note_place(session.about_mut(), &data.object("context"));
            session.skip(kind);
        }
        Some(kind @ "session.context_changed") => {
            note_place(session.about_mut(), &data);
            session.skip(kind);
        }
        Some("session.title_changed") => {
            session.skip("title");
            session.about_mut().title = data.filled("title").map(Cow::into_owned);
        }
        Some("session.compaction_complete") if data.is_true("success") => {
            session.compacted();
            let text = data.text("summaryContent").unwrap_or_default();
            let text = within(&text, "summary").unwrap_or(&text).to_owned();
            add(session, fields, vec![Part::Text { role: Role::User, text: text.into(), is_summary: true }]);
        }
        Some("user.message") => prompt(session, fields, &data),
        Some("assistant.message") => answer(session, fields, &data),
        Some("tool.execution_start" | "tool.user_requested") => {
            match call(&data, "toolName") {
                Some(part) => add(session, fields, vec![part]),
                None => session.unknown(Some("tool call without a name")),
            };
        }
        Some("tool.execution_complete") => match result(&data) {
            Some(part) => add(session, fields, vec![part]),
            None => session.unknown(Some("result without a call")),
        },
        Some(kind) if NOTES.iter().any(|note| kind.starts_with(note)) => session.skip(kind),
        other => session.unknown(other),
    }
}

fn note_place(about: &mut About, context: &Fields<'_>) {
    if let Some(cwd) = context.filled("cwd") {
        about.worktree = Some(cwd.into_owned());
        // Without a repository, there is no branch.
        about.branch = context.filled("branch").map(Cow::into_owned);
    }
}

fn prompt(session: &mut Session, fields: &Fields<'_>, data: &Fields<'_>) {
    let origin = data.filled("source").unwrap_or_default();
    if data.is_true("isAutopilotContinuation") || NOT_TYPED.iter().any(|it| origin.starts_with(it)) {
        return session.skip("text of the client");
    }
    let text = data.text("content").unwrap_or_default();
    add(session, fields, vec![Part::Text { role: Role::User, text, is_summary: false }]);
}

fn answer(session: &mut Session, fields: &Fields<'_>, data: &Fields<'_>) {
    let mut parts = Vec::new();
    if let Some(text) = data.filled("content") {
        parts.push(Part::Text { role: Role::Assistant, text, is_summary: false });
    }
    // A call that is refused has no event at its start.
    parts.extend(data.items("toolRequests").into_iter().filter_map(|raw| call(&Fields::of(raw), "name")));
    if parts.is_empty() {
        return session.skip("empty");
    }
    add(session, fields, parts);
}

fn call<'a>(call: &Fields<'a>, name: &str) -> Option<Part<'a>> {
    let arguments = call.raw("arguments").map_or(Arguments::Text("".into()), Arguments::Json);
    Some(Part::Call { id: call.filled("toolCallId")?, tool: call.filled(name)?, arguments })
}

fn result<'a>(data: &Fields<'a>) -> Option<Part<'a>> {
    let id = data.filled("toolCallId")?;
    // A command that ends with an error is a success of the tool.
    let is_failed = data.object("shellExecution").number("exitCode").is_some_and(|code| code != 0);
    let outcome = if data.is_true("success") && !is_failed { Outcome::Ok } else { Outcome::Failed };
    let error = data.object("error").text("message");
    let output = data.object("result").raw("content").map(gist::content).or(error).unwrap_or_default();
    let edits = data.items("fileEdits").into_iter().take(64);
    let changed =
        edits.filter_map(|edit| string(Fields::of(edit).raw("path")?).map(Cow::into_owned)).collect();
    Some(Part::Result { id, outcome, output, changed })
}

fn add(session: &mut Session, fields: &Fields<'_>, parts: Vec<Part<'_>>) {
    let (key, time) = (fields.filled("id"), time(fields.text("timestamp")));
    let is_subagent = fields.filled("agentId").is_some();
    session.add_line(Line { key, time, is_subagent, parts, ..Line::default() });
}
