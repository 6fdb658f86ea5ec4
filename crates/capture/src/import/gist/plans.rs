//! Reads the plans and to-do lists that agents keep through tool calls.
//!
//! They are recognised by their form: a to-do list is an array of objects with a text and a status, such as the `todos`
//! of Claude Code, Gemini CLI and opencode, and the `plan` of Codex. A plan for the user is a text named `plan`.

use crate::import::clean::{self, Private, clip};
use crate::import::fields::{Fields, items, scalar};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// The maximum number of items of a list, and the maximum number of characters of an item.
const MOST_ITEMS: usize = 40;
const ITEM: usize = 160;

/// The maximum number of bytes of a plan.
const PLAN: usize = 16 * 1024;

/// A plan with fewer words is a name or a mode. Arbitrary.
const FEW_WORDS: usize = 5;

/// The names of the argument with the text of an item.
const TEXTS: [&str; 6] = ["content", "step", "description", "title", "subject", "text"];

/// The names of arguments of calls that do something, and don't only show a plan.
const ACTS: [&str; 6] = ["command", "cmd", "query", "file_path", "path", "url"];

/// Returns the to-do list in the arguments of a call: how many items are done, and each item on a line of its own, with
/// `[x]` if it is done, `[>]` if it is in progress, `[-]` if it was given up, otherwise `[ ]`. Returns `None` if there
/// is no list.
pub(in crate::import) fn to_do_list(fields: &Fields<'_>, private: &mut Private) -> Option<String> {
    let list = fields.iter().find_map(|(_, raw)| {
        let list: Option<Vec<_>> = items(raw).into_iter().map(item).collect();
        list.filter(|list| !list.is_empty())
    })?;
    let done = list.iter().filter(|(mark, _)| *mark == "x").count();
    let mut text = format!("{done} of {} done", list.len());
    // Of a long list, what is not done is kept.
    let is_long = list.len() > MOST_ITEMS;
    let kept = list.into_iter().filter(|(mark, _)| !is_long || *mark != "x").take(MOST_ITEMS);
    for (mark, item) in kept {
        text += &format!("\n[{mark}] {}", clip(&private.strip(item), ITEM));
    }
    Some(clean::readable(text.into()).into_owned())
}

/// Returns the mark and the text of an item of a list; `None` if it is no item.
fn item(raw: &RawValue) -> Option<(&'static str, Cow<'_, str>)> {
    let fields = Fields::of(raw);
    let text = TEXTS.iter().find_map(|name| fields.text(name))?;
    let mark = match fields.text("status")?.as_ref() {
        "completed" | "complete" | "done" => "x",
        "in_progress" | "active" => ">",
        "cancelled" | "canceled" | "deleted" => "-",
        "pending" | "todo" | "not_started" | "blocked" => " ",
        _ => return None,
    };
    Some((mark, text))
}

/// Returns the number and the new status of a task, in the arguments of a call that updates it.
pub(in crate::import) fn task(fields: &Fields<'_>) -> Option<String> {
    let status = fields.text("status")?;
    Some(format!("{} · {status}", scalar(fields.raw("taskId")?)?))
}

/// Returns the plan that a call shows to the user, with its overview; `None` if there is none.
pub(in crate::import) fn plan(fields: &Fields<'_>, private: &mut Private) -> Option<String> {
    if ACTS.iter().any(|name| fields.raw(name).is_some()) {
        return None;
    }
    let plan = private.strip(fields.text("plan")?);
    let plan = plan[..plan.floor_char_boundary(PLAN)].trim();
    let has_words = plan.split_whitespace().nth(FEW_WORDS).is_some();
    let plan = match fields.filled("overview").map(|overview| private.strip(overview)) {
        // Cursor keeps the name and the overview of a plan apart from its text.
        Some(overview) => {
            let heading = plan.lines().next().filter(|line| line.starts_with("# "));
            let rest = plan[heading.map_or(0, str::len)..].trim_start();
            let name = fields.text("name").map(|name| format!("# {name}"));
            let heading = heading.map(str::to_owned).or(name).unwrap_or_default();
            format!("{heading}\n\n{}\n\n{rest}", overview.trim()).trim().to_owned()
        }
        None => plan.to_owned(),
    };
    has_words.then(|| clean::readable(plan.into()).into_owned())
}
