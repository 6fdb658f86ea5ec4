//! Reads the transcripts of Claude Code.
//!
//! A line is a message or a note of the client. An assistant's message is written as several lines, one for each of its
//! blocks. A tool's result is written as a user message. If a session is forked or resumed into another file, the
//! copied lines keep their `uuid`. Only four kinds of lines are kept: `user` lines, `assistant` lines, titles, and
//! prompts that were typed while the assistant worked. Text in a user message that the user did not write is removed.

use std::borrow::Cow;

use crate::import::clean::without;
use crate::import::entry::{About, CopyOf, Line, Outcome, Part, time};
use crate::import::fields::{Fields, items, scalar, string};
use crate::import::gist::{self, Arguments};
use crate::import::session::Session;
use crate::import::typed::written;
use tiro_base::memory::Role;

/// Types of lines that are known and not worth remembering. Lines of the type `api-request…` contain whole prompts.
const NOTES: [&str; 34] = [
    "agent-color",
    "agent-name",
    "agent-setting",
    "atis-latch",
    "attribution-snapshot",
    "bridge-session",
    "content-replacement",
    "cost-state",
    "file-history-delta",
    "file-history-snapshot",
    "fork-context-ref",
    "frame-link",
    "last-prompt",
    "marble-origami-commit",
    "marble-origami-snapshot",
    "mode",
    "permission-mode",
    "pr-link",
    "progress",
    "queue-operation",
    "relocated",
    "result",
    "saved_hook_context",
    "session-link",
    "session-meta",
    "speculation-accept",
    "started",
    "system",
    "tag",
    "task-summary",
    "tools-used",
    "turn-duration",
    "worktree-session",
    "worktree-state",
];

/// Reads a line.
pub(super) fn line(session: &mut Session, fields: &Fields<'_>) {
    let kind = fields.text("type");
    match kind.as_deref() {
        Some("user" | "assistant") => {
            note_place(session.about_mut(), fields);
            message(session, fields);
        }
        Some("attachment") => attachment(session, fields),
        Some("system") if fields.text("subtype").as_deref() == Some("compact_boundary") => {
            session.compacted();
            session.skip("system");
        }
        Some("summary") => summary_title(session, fields),
        Some("ai-title") if session.about().title.is_none() => title(session, fields.filled("aiTitle")),
        Some("custom-title") => title(session, fields.filled("customTitle")),
        Some("ai-title") => session.skip("ai-title"),
        Some(kind) if kind.starts_with("api-request") || NOTES.contains(&kind) => session.skip(kind),
        other => session.unknown(other),
    }
}

fn title(session: &mut Session, title: Option<Cow<'_, str>>) {
    session.skip("title");
    if let Some(title) = title {
        session.about_mut().title = Some(title.into_owned());
    }
}

/// Reads the title in a line `summary`. Claude Code writes the titles of earlier sessions at the beginning of a new file;
/// the field `leafUuid` names a line of the session that such a title is about.
fn summary_title(session: &mut Session, fields: &Fields<'_>) {
    match (fields.filled("summary"), fields.filled("leafUuid")) {
        (Some(title), Some(of)) if session.about().session.is_none() => {
            session.skip("title");
            session.offer_title(title.into_owned(), of.into_owned());
        }
        (summary, _) => title(session, summary),
    }
}

/// Updates the session, folder and branch from this line. Every line contains them, also in Qwen Code.
pub(super) fn note_place(about: &mut About, fields: &Fields<'_>) {
    // The lines of a sub-agent contain the id of the session that called it.
    if let Some(session) = fields.filled("sessionId") {
        match &about.session {
            Some(known) if *known != session => about.add_alias(&session),
            Some(_) => {}
            None => about.session = Some(session.into_owned()),
        }
    }
    about.is_headless |= fields.text("entrypoint").as_deref() == Some("sdk-cli");
    let forked = fields.object("forkedFrom").filled("sessionId");
    for id in [fields.filled("requestSessionId"), forked].into_iter().flatten() {
        about.add_alias(&id);
    }
    if let Some(cwd) = fields.filled("cwd")
        && about.worktree.as_deref() != Some(cwd.as_ref())
    {
        about.worktree = Some(cwd.into_owned());
    }
    // `HEAD` means that no branch is checked out; an empty value means that there is no repository.
    if let Some(branch) = fields.text("gitBranch") {
        let branch = Some(branch).filter(|branch| !branch.is_empty() && branch != "HEAD");
        if about.branch.as_deref() != branch.as_deref() {
            about.branch = branch.map(Cow::into_owned);
        }
    }
}

fn message(session: &mut Session, fields: &Fields<'_>) {
    let message = fields.object("message");
    let is_summary = fields.is_true("isCompactSummary");
    let why_not = if fields.is_true("isMeta") {
        Some("meta")
    } else if fields.is_true("isApiErrorMessage") || message.text("model").as_deref() == Some("<synthetic>") {
        Some("error of the client")
    } else if fields.is_true("isVisibleInTranscriptOnly") && !is_summary {
        Some("shown only")
    } else {
        None
    };
    if let Some(why_not) = why_not {
        return session.skip(why_not);
    }
    if is_summary {
        session.compacted();
    }
    let role = match message.text("role").or_else(|| fields.text("type")).as_deref() {
        Some("assistant") => Role::Assistant,
        _ => Role::User,
    };
    let (mut parts, mut texts) = (Vec::new(), Vec::new());
    let content =
        message.raw("content").or_else(|| fields.raw("message").filter(|raw| scalar(raw).is_some()));
    let Some(content) = content else { return session.skip("empty") };
    texts.extend(scalar(content));
    for raw in if content.get().starts_with('{') { vec![content] } else { items(content) } {
        if let Some(text) = string(raw) {
            texts.push(text);
            continue;
        }
        let block = Fields::of(raw);
        match block.text("type").as_deref() {
            Some("text") => texts.push(gist::content(raw)),
            Some(kind @ ("tool_use" | "server_tool_use" | "mcp_tool_use")) => match call(&block) {
                Some(part) => parts.push(part),
                None => session.unknown(Some(&format!("{kind} without a name"))),
            },
            Some(kind @ ("tool_result" | "mcp_tool_result" | "web_search_tool_result")) => {
                match result(&block, fields) {
                    Some(part) => parts.push(part),
                    None => session.unknown(Some(&format!("{kind} without a call"))),
                }
            }
            Some("thinking" | "redacted_thinking") => session.skip("thinking"),
            kind => match gist::attached(&block) {
                Some(file) => texts.push(Cow::Owned(file)),
                None => session.unknown(kind.map(|kind| format!("block {kind}")).as_deref()),
            },
        }
    }
    if !texts.is_empty() {
        let text = if texts.len() == 1 { texts.swap_remove(0) } else { Cow::Owned(texts.join("\n\n")) };
        let text = match role {
            Role::User => written(text),
            _ => text,
        };
        let is_summary = is_summary || (role == Role::User && text.starts_with(CONTINUED));
        let text = if is_summary { Cow::Owned(summary(&text)) } else { text };
        parts.insert(0, Part::Text { role, text, is_summary });
    }
    let speaker = fields.filled("attributionAgent").filter(|_| role == Role::Assistant);
    let (key, copy_of) = identity(fields);
    let time = time(fields.text("timestamp"));
    session.add_line(Line { key, time, is_subagent: fields.is_true("isSidechain"), speaker, copy_of, parts });
}

/// Returns the id of a line. If the line was copied from another session, returns the id of the original line, and the
/// second value names that session.
pub(super) fn identity<'a>(fields: &Fields<'a>) -> (Option<Cow<'a, str>>, Option<CopyOf>) {
    let own = fields.filled("uuid");
    let from = fields.object("forkedFrom");
    match (from.filled("sessionId"), from.filled("messageUuid")) {
        (Some(session), Some(original)) if fields.text("sessionId").as_ref() != Some(&session) => {
            let own = own.map(Cow::into_owned).filter(|own| *own != original);
            (Some(original), Some(CopyOf { session: session.into_owned(), own }))
        }
        _ => (own, None),
    }
}

fn call<'a>(block: &Fields<'a>) -> Option<Part<'a>> {
    let arguments = match block.raw("input") {
        Some(raw) => Arguments::Json(raw),
        None => Arguments::Text(Cow::Borrowed("")),
    };
    Some(Part::Call { id: block.filled("id")?, tool: block.filled("name")?, arguments })
}

fn result<'a>(block: &Fields<'a>, line: &Fields<'a>) -> Option<Part<'a>> {
    let id = block.filled("tool_use_id")?;
    let outcome = if block.is_true("is_error") { Outcome::Failed } else { Outcome::Ok };
    let output = block.raw("content").map(gist::content).unwrap_or_default();
    let output = without(output, &["system-reminder"]);
    // In a sub-agent's result, a warning comes before the report.
    let output = match output
        .strip_prefix("[Subagent hand-back]")
        .and_then(|it| it.split_once("The report follows:\n"))
    {
        Some((_, report)) => Cow::Owned(report.to_owned()),
        None => output,
    };
    let changed = line.object("toolUseResult").object("bashEditDiff").items("changedFiles");
    let changed = changed.into_iter().filter_map(string).take(64).map(Cow::into_owned).collect();
    Some(Part::Result { id, outcome, output, changed })
}

/// Reads an attachment, which may be a prompt that was typed while the assistant worked. Such a prompt is in no other
/// line.
fn attachment(session: &mut Session, fields: &Fields<'_>) {
    let attachment = fields.object("attachment");
    let origin = attachment.object("origin").text("kind");
    let is_prompt = attachment.text("type").as_deref() == Some("queued_command")
        && attachment.text("commandMode").is_none_or(|mode| mode == "prompt")
        && origin.is_none_or(|kind| kind == "human");
    let Some(prompt) = attachment.raw("prompt").filter(|_| is_prompt && !fields.is_true("isMeta")) else {
        return session.skip("attachment");
    };
    note_place(session.about_mut(), fields);
    let text = written(gist::content(prompt));
    let (key, copy_of) = identity(fields);
    session.add_line(Line {
        key,
        time: time(fields.text("timestamp")),
        is_subagent: fields.is_true("isSidechain"),
        copy_of,
        parts: vec![Part::Text { role: Role::User, text, is_summary: false }],
        ..Line::default()
    });
}

/// The beginning of a summary that the client puts in place of the conversation.
const CONTINUED: &str =
    "This session is being continued from a previous conversation that ran out of context";

/// Returns a summary without the instructions that the client puts before and after it for the model.
fn summary(text: &str) -> String {
    let text = if text.starts_with(CONTINUED) {
        text.split_once("Summary:\n").map_or(text, |it| it.1)
    } else {
        text
    };
    let ends =
        ["\n\nIf you need specific details from before compaction", "\nContinue the conversation from where"];
    let text = ends.iter().fold(text, |text, end| text.split_once(end).map_or(text, |it| it.0));
    text.trim().to_owned()
}
