//! Reads the rollouts of Codex.
//!
//! A line is `{timestamp, ordinal, type, payload}`. The lines of type `response_item` (the items) contain the text that
//! the model read and wrote. Between the items are events, which repeat that content for display. Messages are read
//! from the items, which every version writes. Calls are read from both items and events, for two reasons. The event at
//! the end of a call has the same id as the item, and adds the exit code. In code mode, the model writes a script that
//! calls the tools, and only the events contain these calls. The file states the session, folder and branch only once,
//! so they are kept in [`About`](crate::import::entry::About).

use std::borrow::Cow;

use crate::import::clean::{is_block, only_blocks, within, without_blocks};
use crate::import::entry::{Forked, Line, Outcome, Part, time};
use crate::import::fields::{Fields, has_half_pairs, items, scalar};
use crate::import::gist::{self, Arguments};
use crate::import::session::Session;
use tiro_base::memory::{Millis, Role};
use tiro_text::blocks;

/// Types of response items that are known and not worth remembering.
const SKIPPED_ITEMS: [&str; 9] = [
    "reasoning",
    "ghost_snapshot",
    "compaction",
    "compaction_summary",
    "compaction_trigger",
    "context_compaction",
    "tool_search_call",
    "tool_search_output",
    "additional_tools",
];

/// Types of lines that are known and not worth remembering.
const NOTES: [&str; 5] = [
    "world_state",
    "token_usage_record",
    "session_state",
    "inter_agent_communication",
    "inter_agent_communication_metadata",
];

/// In the message of a compaction, the summary begins after this text.
const SUMMARY_FOLLOWS: &str = "use the information in this summary to assist with your own analysis:\n";

/// Reads a line.
pub(super) fn line(session: &mut Session, fields: &Fields<'_>) {
    let payload = fields.object("payload");
    match fields.text("type").as_deref() {
        Some("session_meta") => {
            let time = time(payload.text("timestamp")).or_else(|| time(fields.text("timestamp")));
            note_session(session, &payload, time);
        }
        Some("turn_context") => {
            session.skip("turn_context");
            if let Some(cwd) = payload.filled("cwd") {
                session.about_mut().worktree = Some(cwd.into_owned());
            }
        }
        Some("event_msg") => event(session, fields, &payload),
        Some("compacted") => {
            session.compacted();
            let text = payload.text("message").unwrap_or_default();
            let text = text.split_once(SUMMARY_FOLLOWS).map_or(text.as_ref(), |(_, summary)| summary);
            let part = Part::Text { role: Role::User, text: text.into(), is_summary: true };
            add_parts(session, fields, &payload, vec![part]);
        }
        // This item is skipped, because the `compacted` line contains the same summary.
        Some("response_item") if fields.object("metadata").is_true("compaction_output") => {
            session.skip("compaction output");
        }
        Some("response_item") => item(session, fields, &payload),
        Some(kind) if NOTES.contains(&kind) => session.skip(kind),
        other => session.unknown(other),
    }
}

/// Reads the first line of a session. The file of a fork has a second such line, because a copy of the original session
/// follows the fork's own line.
fn note_session(session: &mut Session, meta: &Fields<'_>, time: Option<Millis>) {
    session.skip("session_meta");
    let about = session.about_mut();
    let id = meta.filled("id").or_else(|| meta.filled("session_id"));
    match (&about.session, id) {
        (None, Some(id)) => about.session = Some(id.into_owned()),
        (Some(known), Some(id)) if *known != id => {
            // Old versions don't record which session was copied.
            let at = about.began;
            about.forked.get_or_insert_with(|| Forked { from: id.clone().into_owned(), at });
            return about.add_alias(&id);
        }
        _ => {}
    }
    about.began = about.began.or(time);
    let by = [meta.text("originator"), meta.text("source")];
    about.is_headless |= by.iter().flatten().any(|by| matches!(by.as_ref(), "codex_exec" | "exec"));
    let source = meta.object("source");
    let parent = source.object("subagent").object("thread_spawn").filled("parent_thread_id");
    let kind = meta.text("thread_source");
    about.is_subagent |= source.raw("subagent").is_some() || kind.as_deref() == Some("subagent");
    let named = ["forked_from_id", "parent_thread_id", "session_id"].map(|name| meta.filled(name));
    let from = named[0].clone().or_else(|| parent.clone());
    if let Some(from) = from.filter(|from| about.session.as_deref() != Some(from.as_ref())) {
        about.forked.get_or_insert_with(|| Forked { from: from.into_owned(), at: time });
    }
    for id in named.into_iter().chain([parent]).flatten() {
        about.add_alias(&id);
    }
    about.worktree = meta.filled("cwd").map(Cow::into_owned).or(about.worktree.take());
    let branch = meta.object("git").filled("branch").map(Cow::into_owned);
    about.branch = branch.or(about.branch.take());
}

/// Reads an event: the name of a thread, or a call with its result. The other events only repeat the items.
fn event(session: &mut Session, line: &Fields<'_>, event: &Fields<'_>) {
    let item = event.object("item");
    let kind = event.text("type");
    let (Some("item_completed"), Some(id)) = (kind.as_deref(), item.filled("id")) else {
        session.skip("event_msg");
        if kind.as_deref() == Some("thread_name_updated") {
            let name = event.filled("thread_name").or_else(|| event.filled("name"));
            session.about_mut().title = name.map(Cow::into_owned);
        }
        return;
    };
    let (tool, arguments, output) = match item.text("type").as_deref() {
        Some("McpToolCall") => {
            let (server, tool) = (item.text("server"), item.text("tool"));
            let name = format!("mcp__{}__{}", server.unwrap_or_default(), tool.unwrap_or_default());
            let arguments = item.raw("arguments").map(Arguments::Json);
            (name, arguments, item.raw("result").or_else(|| item.raw("error")))
        }
        Some("CommandExecution") => {
            let arguments = item.raw("command").map(Arguments::Json);
            ("exec_command".to_owned(), arguments, item.raw("aggregated_output"))
        }
        Some("FileChange") => {
            let arguments = Arguments::Text(Cow::Owned(patch(&item.object("changes"))));
            ("apply_patch".to_owned(), Some(arguments), item.raw("stderr"))
        }
        _ => return session.skip("event_msg"),
    };
    let outcome = match (item.number("exit_code"), item.text("status").as_deref()) {
        (Some(code), _) => exit(code),
        (None, Some("failed" | "declined")) => Outcome::Failed,
        (None, Some("completed")) if item.object("result").is_true("isError") => Outcome::Failed,
        (None, Some("completed")) => Outcome::Ok,
        _ => Outcome::Unknown,
    };
    let arguments = arguments.unwrap_or(Arguments::Text("".into()));
    let call = Part::Call { id: id.clone(), tool: tool.into(), arguments };
    let output = output.map(gist::content).unwrap_or_default();
    add_parts(session, line, event, vec![call, Part::Result { id, outcome, output, changed: Vec::new() }]);
}

/// Returns changed files in the form of a patch.
fn patch(changes: &Fields<'_>) -> String {
    let mut patch = "*** Begin Patch".to_owned();
    for (path, change) in changes.iter().take(64) {
        let change = Fields::of(change);
        let diff = change.text("unified_diff").or_else(|| change.text("content")).unwrap_or_default();
        patch += &format!("\n*** Update File: {path}\n{}", &diff[..diff.floor_char_boundary(4096)]);
    }
    patch
}

fn item(session: &mut Session, line: &Fields<'_>, item: &Fields<'_>) {
    let kind = item.text("type");
    let id = item.filled("call_id").or_else(|| item.filled("id"));
    match (kind.as_deref(), id) {
        (Some("message"), _) => message(session, line, item),
        // This is a script of code mode. It is skipped, because separate events report the calls that it makes.
        (Some("custom_tool_call"), _)
            if item.text("input").is_some_and(|script| script.contains("tools.")) =>
        {
            session.skip("script");
        }
        (Some("function_call" | "custom_tool_call"), Some(id)) => {
            let text = item.text("arguments").or_else(|| item.text("input"));
            let raw = item.raw("arguments").or_else(|| item.raw("input"));
            let arguments = match (text, raw) {
                (None, Some(raw)) => Arguments::Json(raw),
                (text, _) => Arguments::Text(text.unwrap_or_default()),
            };
            // The arguments are JSON within a string.
            if matches!(&arguments, Arguments::Text(text) if has_half_pairs(text)) {
                session.replaced();
            }
            let name = item.filled("name").unwrap_or(Cow::Borrowed("tool"));
            let tool = match item.filled("namespace") {
                Some(server) => Cow::Owned(format!("{}__{name}", server.trim_end_matches('_'))),
                None => name,
            };
            add_parts(session, line, item, vec![Part::Call { id, tool, arguments }]);
        }
        (Some("local_shell_call"), Some(id)) => {
            let arguments = item.raw("action").map_or(Arguments::Text("".into()), Arguments::Json);
            add_parts(session, line, item, vec![Part::Call { id, tool: "shell".into(), arguments }]);
        }
        (Some("function_call_output" | "custom_tool_call_output" | "local_shell_call_output"), Some(id)) => {
            let (outcome, output) = item.raw("output").map(ended).unwrap_or((Outcome::Unknown, "".into()));
            add_parts(session, line, item, vec![Part::Result { id, outcome, output, changed: Vec::new() }]);
        }
        // These items contain both the call and its outcome.
        (Some("web_search_call" | "image_generation_call"), id) => {
            let tool = kind.as_deref().unwrap_or_default().trim_end_matches("_call").to_owned();
            let id = id.unwrap_or_else(|| Cow::Owned(ordinal(line).unwrap_or_else(|| tool.clone())));
            let raw = item.raw("action").or_else(|| item.raw("revised_prompt"));
            let arguments = raw.map_or(Arguments::Text("".into()), Arguments::Json);
            let outcome = match item.text("status").as_deref() {
                Some("failed") => Outcome::Failed,
                Some("completed") => Outcome::Ok,
                _ => Outcome::Unknown,
            };
            let call = Part::Call { id: id.clone(), tool: tool.into(), arguments };
            let result = Part::Result { id, outcome, output: "".into(), changed: Vec::new() };
            add_parts(session, line, item, vec![call, result]);
        }
        (Some(kind), _) if SKIPPED_ITEMS.contains(&kind) => session.skip(kind),
        (kind, _) => session.unknown(kind.map(|kind| format!("item {kind}")).as_deref()),
    }
}

fn message(session: &mut Session, line: &Fields<'_>, item: &Fields<'_>) {
    let role = match item.text("role").as_deref() {
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        role => return session.skip(role.unwrap_or("message without a role")),
    };
    let passed = item.object("internal_chat_message_metadata_passthrough");
    let provenances = passed.items("content_item_metadata");
    let mut texts = Vec::new();
    let content =
        item.raw("content").map(|raw| if raw.get().starts_with('[') { items(raw) } else { vec![raw] });
    for (place, block) in content.unwrap_or_default().into_iter().enumerate() {
        // Newer versions mark the blocks that the client added to a message.
        let provenance = provenances.get(place).map(|raw| Fields::of(raw).object("provenance"));
        let is_added = provenance.is_some_and(|it| it.text("type").is_some_and(|by| by != "user"));
        if role == Role::User && is_added {
            session.skip("put in by the client");
            continue;
        }
        let text = scalar(block).unwrap_or_else(|| gist::content(block));
        if text.is_empty() && Fields::of(block).raw("text").is_none() {
            let kind = Fields::of(block).text("type").map(|kind| format!("block {kind}"));
            session.unknown(kind.as_deref());
        }
        texts.push(text);
    }
    texts.retain(|text| !text.is_empty());
    let text = Cow::Owned(texts.join("\n\n"));
    let text = if role == Role::User { written(text) } else { text };
    add_parts(session, line, item, vec![Part::Text { role, text, is_summary: false }]);
}

fn add_parts(session: &mut Session, line: &Fields<'_>, item: &Fields<'_>, parts: Vec<Part<'_>>) {
    let key = item.filled("id").or_else(|| ordinal(line).map(Cow::Owned));
    session.add_line(Line { key, time: time(line.text("timestamp")), parts, ..Line::default() });
}

/// Returns a key made of the number of the line, if the client numbers its lines.
fn ordinal(line: &Fields<'_>) -> Option<String> {
    line.number("ordinal").map(|ordinal| format!("ordinal:{ordinal}"))
}

/// Returns the part of a user message that the user wrote. A prompt that only mentions the client's texts is kept.
fn written(text: Cow<'_, str>) -> Cow<'_, str> {
    let begins = text.trim_start();
    let is_rules = begins.starts_with("# AGENTS.md instructions") && begins.contains("\n<INSTRUCTIONS>");
    if is_rules || is_block(begins, "permissions instructions") {
        return Cow::Borrowed("");
    }
    let shell = only_blocks(begins, &["user_shell_command"]).unwrap_or_default();
    if let Some(command) = shell.first().and_then(|(_, run)| within(run, "command")) {
        return Cow::Owned(format!("! {command}"));
    }
    // An editor extension lists the open files before the user's request.
    if begins.starts_with("# Context from my IDE setup")
        && let Some((_, request)) = begins.split_once("## My request for Codex:")
    {
        return Cow::Owned(request.to_owned());
    }
    without_blocks(text, &blocks::ADDED)
}

/// Returns the outcome of a call, and its output without the header lines of the client.
fn ended(raw: &serde_json::value::RawValue) -> (Outcome, Cow<'_, str>) {
    let fields = Fields::of(raw);
    let said = match fields.raw("success").map(|raw| raw.get()) {
        Some("true") => Outcome::Ok,
        Some("false") => Outcome::Failed,
        _ => Outcome::Unknown,
    };
    let output = gist::content(raw);
    // Old versions wrote `{"output": "…", "metadata": {"exit_code": 0}}` as a string.
    if output.starts_with('{')
        && let Ok(inner) = Fields::parse(&output)
        && let (Some(text), Some(code)) = (inner.text("output"), inner.object("metadata").number("exit_code"))
    {
        return (exit(code), Cow::Owned(text.into_owned()));
    }
    let (mut outcome, mut body, mut has_head) = (said, output.as_ref(), false);
    for _ in 0..8 {
        let (line, rest) = body.split_once('\n').unwrap_or((body, ""));
        let code =
            ["Exit code: ", "Process exited with code "].iter().find_map(|head| line.strip_prefix(head));
        if let Some(code) = code.and_then(|code| code.trim().parse().ok()) {
            outcome = exit(code);
        } else if line.trim() == "Output:" && has_head {
            body = rest;
            break;
        } else if ![
            "Wall time: ",
            "Chunk ID: ",
            "Original token count: ",
            "Total output lines: ",
            "Process running",
        ]
        .iter()
        .any(|head| line.starts_with(head))
        {
            break;
        }
        has_head = true;
        body = rest;
    }
    let body = match serde_json::from_str::<&serde_json::value::RawValue>(body) {
        Ok(blocks) if body.starts_with("[{\"") => Some(gist::content(blocks).into_owned()),
        _ => (body.len() < output.len()).then(|| body.to_owned()),
    };
    (outcome, body.map_or(output, Cow::Owned))
}

fn exit(code: i64) -> Outcome {
    if code == 0 { Outcome::Ok } else { Outcome::Failed }
}
