//! Shortens a tool call: the arguments to one line, the output to an excerpt.
//!
//! Tools are recognised by their arguments, not by their names, because clients use different names and users add their
//! own tools. If a tool is not recognised, the first strings among its arguments are kept.

pub(super) mod dialogs;
pub(super) mod plans;

use super::clean::{self, Private, clip};
use super::fields::{Fields, items, string};
use dialogs::Question;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// The maximum number of characters of the arguments that are kept.
const ASKED: usize = 300;

/// The maximum number of characters that are kept of the old text of an edit, and of the new text.
const CHANGE: usize = 80;

/// The maximum number of characters of an output that are kept.
pub(super) const EXCERPT: usize = 1200;

/// The maximum number of characters that are kept of the output of reading a file. Few are enough, because the file
/// itself still exists.
pub(super) const EXCERPT_OF_FILE: usize = 300;

/// The names of arguments that contain the path of a file.
const PATHS: [&str; 5] = ["file_path", "notebook_path", "absolute_path", "filePath", "path"];

/// The names of arguments that contain the old text and the new text of an edit.
pub(super) const OLD: [&str; 3] = ["old_string", "old_str", "oldString"];
pub(super) const NEW: [&str; 3] = ["new_string", "new_str", "newString"];

/// The names of the arguments that describe a call best, the best first.
const TELLING: [&str; 22] = [
    "command",
    "cmd",
    "query",
    "pattern",
    "url",
    "file_path",
    "notebook_path",
    "absolute_path",
    "filePath",
    "path",
    "dir_path",
    "glob",
    "skill",
    "subagent_type",
    "subject",
    "description",
    "prompt",
    "instruction",
    "question",
    "message",
    "fact",
    "name",
];

/// Names of Tiro's tools that hardly any other server uses.
const OWN: [&str; 4] =
    ["search_project_memory", "save_messages", "retrieve_stashed_context", "expand_detail"];

/// The arguments of a call.
pub(super) enum Arguments<'a> {
    /// JSON, usually an object.
    Json(&'a RawValue),
    /// JSON in a string, or a text in the tool's own format.
    Text(Cow<'a, str>),
}

/// The kind of a call, which decides how much of its output is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// Changes files.
    Edit,
    /// Reads a file.
    Read,
    /// Writes a to-do list.
    List,
    /// Calls Tiro itself.
    Own,
    /// Anything else.
    Other,
}

/// A shortened call.
pub(super) struct Gist {
    /// The name of the tool and its main arguments, in one line.
    pub(super) text: String,
    /// The files that the call names.
    pub(super) files: Vec<String>,
    /// The kind of the call.
    pub(super) shape: Shape,
    /// A plan that the call shows to the user.
    pub(super) plan: Option<String>,
    /// The questions that the call asks the user.
    pub(super) questions: Vec<Question>,
}

/// Returns a shortened form of a call of `tool`, without private passages.
pub(super) fn gist(tool: &str, arguments: &Arguments<'_>, private: &mut Private) -> Gist {
    let fields = match arguments {
        Arguments::Json(raw) => Fields::of(raw),
        Arguments::Text(text) => Fields::parse(text).unwrap_or_default(),
    };
    let mut files: Vec<String> = PATHS
        .iter()
        .filter(|name| **name != "path" || is_of_file(tool))
        .filter_map(|name| Some(private.strip(fields.filled(name)?).into_owned()))
        .collect();
    if let Some(list) = plans::to_do_list(&fields, private) {
        let text = format!("{tool}: {list}");
        return Gist { text, files, shape: Shape::List, plan: None, questions: Vec::new() };
    }
    let (plan, questions) = (plans::plan(&fields, private), dialogs::questions(&fields));
    let (asked, shape) = if let Some(task) = plans::task(&fields) {
        (Some(task), Shape::List)
    } else if plan.is_some() {
        // The plan becomes a message of the model.
        (None, Shape::Other)
    } else if let Some(patch) = patch(arguments, &fields) {
        let patch = private.strip(patch);
        files = patched(&patch);
        (Some(format!("{}: {}", files.join(" "), patch_change(&patch))), Shape::Edit)
    } else if let Some(change) = change(&fields, private).filter(|_| !files.is_empty()) {
        (Some(format!("{}: {change}", files[0])), Shape::Edit)
    } else {
        let asked = asked(arguments, &fields, private);
        let lines = ["command", "cmd"].iter().filter_map(|name| fields.raw(name));
        let mut lines = lines.filter_map(|raw| command(raw).or_else(|| string(raw)));
        let shape = if lines.any(|line| runs_tiro(&line)) || asked.as_deref().is_some_and(runs_tiro) {
            Shape::Own
        } else if !files.is_empty() {
            Shape::Read
        } else {
            Shape::Other
        };
        (asked, shape)
    };
    let asked = clean::readable(Cow::Owned(asked.unwrap_or_default()));
    let text = clip(&format!("{tool}: {asked}"), ASKED);
    Gist { text: text.trim_end_matches([':', ' ']).to_owned(), files, shape, plan, questions }
}

/// Returns whether the argument `path` of a tool names a file, not a folder to search.
fn is_of_file(tool: &str) -> bool {
    let tool = tool.to_ascii_lowercase();
    ["read", "view", "edit", "write", "create", "replace"].iter().any(|verb| tool.contains(verb))
}

/// Returns whether a tool is one of Tiro's own, according to the name of the tool's server and the name of the tool.
pub(super) fn is_own(tool: &str) -> bool {
    let rest = tool.strip_prefix("mcp_").map(|rest| rest.trim_start_matches('_'));
    let (server, name) = rest.unwrap_or(tool).rsplit_once("__").unwrap_or((rest.unwrap_or_default(), tool));
    let is_named = |part: &str| part.eq_ignore_ascii_case("tiro");
    // Copilot CLI and opencode join the names of server and tool by one character.
    let is_joined = tool.strip_prefix("tiro").is_some_and(|rest| rest.starts_with(['-', '_']));
    is_joined
        || server.split(|c: char| !c.is_ascii_alphanumeric()).any(is_named)
        || OWN.iter().any(|own| name.ends_with(own))
}

/// Returns whether any command of a command line runs Tiro.
fn runs_tiro(line: &str) -> bool {
    let commands = line.split([';', '&', '|', '\n', '(', '`']);
    // Before the name of a command, words with `=` set variables.
    let mut names = commands.filter_map(|each| each.split_whitespace().find(|word| !word.contains('=')));
    names.any(|name| name.rsplit('/').next() == Some("tiro"))
}

/// Returns the main arguments of a call. If there are none, returns the first strings among its arguments.
fn asked(arguments: &Arguments<'_>, fields: &Fields<'_>, private: &mut Private) -> Option<String> {
    let mut parts: Vec<String> = Vec::new();
    let mut add = |text: Cow<'_, str>, private: &mut Private| {
        let text = clip(&private.strip(text), ASKED);
        if !text.is_empty() && !parts.contains(&text) {
            parts.push(text);
        }
        parts.len() < 3
    };
    if let Arguments::Json(raw) = arguments
        && let Some(command) = command(raw)
    {
        add(command, private);
    }
    for name in TELLING {
        let Some(raw) = fields.raw(name) else { continue };
        let Some(text) = command(raw).or_else(|| string(raw)) else { continue };
        let is_command = matches!(name, "command" | "cmd");
        if !add(text, private) || is_command {
            break;
        }
    }
    if parts.is_empty() {
        let mut leaves = Vec::new();
        match arguments {
            Arguments::Text(text) if fields.iter().next().is_none() => leaves.push(text.clone()),
            Arguments::Text(_) => fields.iter().for_each(|(_, raw)| collect(raw, 3, &mut leaves)),
            Arguments::Json(raw) => collect(raw, 4, &mut leaves),
        }
        for leaf in leaves {
            let text = clip(&private.strip(leaf), ASKED);
            if !text.is_empty() && !parts.contains(&text) {
                parts.push(text);
            }
        }
    }
    (!parts.is_empty()).then(|| parts.join(" · "))
}

/// Returns the command line that an array of words contains. If the words are like `bash -lc …`, this is the last word,
/// otherwise all words.
pub(super) fn command(raw: &RawValue) -> Option<Cow<'_, str>> {
    let words: Option<Vec<Cow<'_, str>>> = items(raw).into_iter().take(64).map(string).collect();
    let mut words = words.filter(|words| !words.is_empty())?;
    let is_shell = words.len() == 3 && words[1].starts_with('-') && words[1].ends_with('c');
    Some(if is_shell { words.swap_remove(2) } else { Cow::Owned(words.join(" ")) })
}

/// Collects the first strings in `raw` and in the values nested in it, at most `depth` levels deep.
fn collect<'a>(raw: &'a RawValue, depth: usize, into: &mut Vec<Cow<'a, str>>) {
    if into.len() >= 8 {
        return;
    }
    if let Some(text) = string(raw) {
        into.push(text);
    } else if depth > 0 {
        items(raw).into_iter().take(16).for_each(|item| collect(item, depth - 1, into));
        Fields::of(raw).iter().take(16).for_each(|(_, item)| collect(item, depth - 1, into));
    }
}

/// Returns a short description of an edit: the first old line and the first new line that differ. Returns `None` if the
/// call is not an edit.
fn change(fields: &Fields<'_>, private: &mut Private) -> Option<String> {
    let mut side =
        |fields: &Fields<'_>, name: &str| fields.text(name).map(|text| private.strip(text).into_owned());
    let edits = fields.items("edits");
    let edit = edits.first().map(|raw| Fields::of(raw));
    let edit = edit.as_ref().unwrap_or(fields);
    let more = if edits.len() > 1 { format!(" and {} more", edits.len() - 1) } else { String::new() };
    let old = OLD.iter().find_map(|name| side(edit, name));
    let new = NEW.iter().chain(&["new_source"]).find_map(|name| side(edit, name));
    if let Some(old) = old {
        return Some(difference(old.lines(), new.as_deref().unwrap_or_default().lines()) + &more);
    }
    if let Some(new) = new {
        return Some(format!("`{}`{more}", clip(first_line(&new), CHANGE)));
    }
    let content = fields.text("content").or_else(|| fields.text("file_text"))?;
    let content = private.strip(content);
    Some(format!("{} lines, `{}`", content.lines().count(), clip(first_line(&content), CHANGE)))
}

/// Returns the first old line and the first new line that differ. If the shown beginnings of both are the same, both
/// are shown from the first differing word on.
fn difference<'t>(old: impl Iterator<Item = &'t str>, new: impl Iterator<Item = &'t str>) -> String {
    let lines = |lines: &mut dyn Iterator<Item = &'t str>| -> Vec<&'t str> {
        lines.map(str::trim).filter(|line| !line.is_empty()).collect()
    };
    let (old, new) = (lines(&mut { old }), lines(&mut { new }));
    let same = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let (old, new) = (&old[same..], &new[same..]);
    let kept = old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new).count();
    let (old, new) = (&old[..old.len() - kept], &new[..new.len() - kept]);
    match (old.first(), new.first()) {
        (Some(old), Some(new)) => {
            let at = if clip(old, CHANGE) == clip(new, CHANGE) { differ_at(old, new) } else { 0 };
            let shown =
                |line: &str| format!("{}{}", if at > 0 { "…" } else { "" }, clip(&line[at..], CHANGE));
            format!("`{}` → `{}`", shown(old), shown(new))
        }
        (Some(old), None) => format!("without `{}`", clip(old, CHANGE)),
        (None, Some(new)) => format!("with `{}`", clip(new, CHANGE)),
        (None, None) => "only spaces differ".to_owned(),
    }
}

/// Returns the byte at which two lines begin to differ, moved to the beginning of the word.
fn differ_at(one: &str, other: &str) -> usize {
    let same = one.char_indices().zip(other.chars()).take_while(|((_, a), b)| a == b);
    let end = same.last().map_or(0, |((at, c), _)| at + c.len_utf8());
    one[..end].rfind(char::is_whitespace).map_or(0, |at| one.ceil_char_boundary(at + 1))
}

fn first_line(text: &str) -> &str {
    text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default()
}

/// Returns the patch in the arguments, if there is one.
pub(super) fn patch<'a>(arguments: &Arguments<'a>, fields: &Fields<'a>) -> Option<Cow<'a, str>> {
    const BEGINS: &str = "*** Begin Patch";
    if let Arguments::Text(text) = arguments
        && fields.iter().next().is_none()
    {
        return text.contains(BEGINS).then(|| text.clone());
    }
    let mut leaves = Vec::new();
    for name in ["input", "patch", "patchText", "command", "cmd"] {
        if let Some(raw) = fields.raw(name).filter(|raw| raw.get().contains(BEGINS)) {
            collect(raw, 1, &mut leaves);
        }
    }
    leaves.into_iter().find(|leaf| leaf.contains(BEGINS))
}

/// Returns the files that a patch names.
fn patched(patch: &str) -> Vec<String> {
    let mut files: Vec<String> = Vec::new();
    for line in patch.lines() {
        let heads = ["*** Update File: ", "*** Add File: ", "*** Delete File: ", "*** Move to: "];
        if let Some(path) = heads.iter().find_map(|head| line.strip_prefix(head)) {
            let path = path.trim().to_owned();
            if files.len() < 64 && !files.contains(&path) {
                files.push(path);
            }
        }
    }
    files
}

/// Returns the first line that a patch removes and the first line that it adds.
fn patch_change(patch: &str) -> String {
    let side = |sign: char| patch.lines().filter_map(move |line| line.strip_prefix(sign));
    match side('-').all(|line| line.trim().is_empty()) {
        true => format!(
            "`{}`",
            clip(side('+').map(str::trim).find(|line| !line.is_empty()).unwrap_or_default(), CHANGE)
        ),
        false => difference(side('-'), side('+')),
    }
}

/// Returns the output if it has at most `most` characters. Otherwise returns its beginning and its end, about `most`
/// characters together, with the length of the omitted part between them.
pub(super) fn excerpt(output: &str, most: usize) -> String {
    let output = output.trim_matches(['\n', '\r', ' ', '\0']);
    // An output of more than `4 * most` bytes has more than `most` characters, because a character has at most four
    // bytes.
    if output.len() <= 4 * most {
        let whole = clean::readable(Cow::Borrowed(output));
        if whole.chars().count() <= most {
            return whole.into_owned();
        }
    }
    let (head, tail) = (most * 2 / 3, most / 3);
    let head = output.char_indices().nth(head).map_or(output.len(), |(end, _)| end);
    let tail = output.char_indices().rev().nth(tail.max(1) - 1).map_or(0, |(start, _)| start).max(head);
    // Each cut is moved to the end of a line, unless much more of the output would be left out.
    let head = output[..head].rfind('\n').filter(|end| end * 4 > head * 3).unwrap_or(head);
    let line = output[tail..].find('\n').map(|end| tail + end + 1);
    let tail = line.filter(|start| (start - tail) * 4 < output.len() - tail).unwrap_or(tail);
    let shown = |text: &str| clean::readable(Cow::Owned(text.to_owned())).trim_end().to_owned();
    format!("{}\n[… {} bytes]\n{}", shown(&output[..head]), tail - head, shown(&output[tail..]))
}

/// Returns the texts in the content of a message or the output of a tool. The content may be a string, an array of
/// blocks, or an object that contains these. Images and other files are replaced by their type and size.
pub(super) fn content(raw: &RawValue) -> Cow<'_, str> {
    let mut pieces = Vec::new();
    pieces_of(raw, 4, &mut pieces);
    match pieces.len() {
        1 => pieces.swap_remove(0),
        _ => Cow::Owned(pieces.join("\n")),
    }
}

fn pieces_of<'a>(raw: &'a RawValue, depth: usize, into: &mut Vec<Cow<'a, str>>) {
    if let Some(text) = string(raw) {
        into.push(text);
        return;
    }
    if depth == 0 {
        return;
    }
    for item in items(raw) {
        pieces_of(item, depth - 1, into);
    }
    let fields = Fields::of(raw);
    if let Some(file) = attached(&fields) {
        into.push(Cow::Owned(file));
    } else if let Some(text) = fields.text("text") {
        into.push(text);
    } else if let Some(raw) =
        ["text", "content", "parts", "output", "error", "stdout", "functionResponse", "response"]
            .iter()
            .find_map(|name| fields.raw(name))
    {
        pieces_of(raw, depth - 1, into);
    }
}

/// Returns the type and size of an attached image or file: `[image/png, 48213 bytes]`.
pub(super) fn attached(block: &Fields<'_>) -> Option<String> {
    let place = ["source", "inlineData", "fileData", "file"].iter().find_map(|name| block.raw(name));
    let inner = place.map(Fields::of).unwrap_or_default();
    let either = |name: &str| inner.text(name).or_else(|| block.text(name));
    let kind = block.text("type").unwrap_or_default();
    let url = block.raw("image_url").map(|raw| string(raw).or_else(|| Fields::of(raw).text("url")));
    let is_file = url.is_some()
        || inner.raw("data").or_else(|| inner.raw("fileUri")).is_some()
        || matches!(
            kind.as_ref(),
            "image" | "document" | "audio" | "input_image" | "input_file" | "resource_link"
        );
    if !is_file {
        return None;
    }
    let data = inner.raw("data").or_else(|| block.raw("data")).map_or(0, |raw| raw.get().len());
    let url = url.flatten().unwrap_or_default();
    let (mime, data) = match url.strip_prefix("data:").and_then(|url| url.split_once(";base64,")) {
        Some((mime, data)) => (Some(Cow::Owned(mime.to_owned())), data.len()),
        None => (either("media_type").or_else(|| either("mimeType")).or_else(|| either("mime_type")), data),
    };
    let what =
        mime.filter(|mime| mime.len() < 64).unwrap_or(if kind.is_empty() { "file".into() } else { kind });
    Some(if data > 0 { format!("[{what}, {} bytes]", data / 4 * 3) } else { format!("[{what}]") })
}
