//! Finds what is open in the to-do list of a conversation, which the assistant keeps by tool calls.
//!
//! A call writes the whole list, with `[x]` before each finished item, or creates or updates a single task.

use crate::summarize::Source;
use tiro_base::memory::Role;

/// The list counts only if the user wrote at most this many messages after its last change. Arbitrary: after more
/// requests, the open items were probably abandoned.
const MOST_AFTER: usize = 2;

/// The beginning of the line that names what is open.
pub const OPEN: &str = "\nOpen in the to-do list: ";

/// The maximum number of open items that a summary names. Arbitrary.
const MOST_NAMED: usize = 4;

/// The open items of a to-do list.
#[derive(Debug, PartialEq, Eq)]
struct Open<'a> {
    /// The ordinal of the source that changed the list last.
    ordinal: i64,
    /// The items, in order.
    items: Vec<&'a str>,
}

/// Returns the line that names what is open in the last to-do list of `sources`, with at most `max_tokens`, and the
/// ordinal of the source that changed the list last. Returns `None` if nothing is open or nothing fits.
pub(in crate::summarize) fn open_line(
    sources: &[Source<'_>],
    max_tokens: usize,
    count: &dyn Fn(&str) -> usize,
) -> Option<(String, i64)> {
    let Open { ordinal, items } = open(sources)?;
    (1..=items.len().min(MOST_NAMED)).rev().find_map(|shown| {
        let more = items.len() - shown;
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        let line = format!("{OPEN}{}{more}.", items[..shown].join("; "));
        (count(&line) <= max_tokens).then_some((line, ordinal))
    })
}

/// Returns the open items of the last to-do list of `sources`. Returns `None` if there is no list, if nothing is open,
/// or if the conversation went on to other things.
fn open<'a>(sources: &[Source<'a>]) -> Option<Open<'a>> {
    let mut tasks: Vec<(&str, &str)> = Vec::new();
    let (mut changed, mut after) = (None, 0);
    for source in sources {
        match source.role {
            Role::Tool if change(&mut tasks, source.text) => (changed, after) = (Some(source.ordinal), 0),
            Role::User => after += 1,
            _ => {}
        }
    }
    let items: Vec<&str> = tasks.into_iter().map(|(_, item)| item).collect();
    let ordinal = changed.filter(|_| after <= MOST_AFTER && !items.is_empty())?;
    Some(Open { ordinal, items })
}

/// Changes the open tasks, each with its number if it has one, as the call with this text did. Returns false if the
/// call changed no list.
fn change<'a>(tasks: &mut Vec<(&'a str, &'a str)>, call: &'a str) -> bool {
    let mut lines = call.lines();
    let Some((tool, asked)) = lines.next().and_then(|first| first.split_once(": ")) else { return false };
    if call.lines().any(|line| line == "failed" || line == "failed:") {
        return false;
    }
    let words: Vec<&str> = asked.split_whitespace().collect();
    if let [done, "of", all, "done"] = words[..] {
        let is_list = [done, all].iter().all(|word| word.bytes().all(|byte| byte.is_ascii_digit()));
        if is_list {
            let items = lines.filter_map(|line| line.split_at_checked(4));
            let open = items.filter(|(mark, _)| matches!(*mark, "[ ] " | "[>] "));
            *tasks = open.map(|(_, item)| ("", item.trim())).collect();
        }
        return is_list;
    }
    let tool = tool.to_ascii_lowercase();
    if tool.ends_with("taskcreate") {
        let number = |line: &'a str| line.split_once("Task #")?.1.split(' ').next();
        let Some(number) = call.lines().skip(1).find_map(number) else { return false };
        tasks.push((number, asked.split(" · ").next().unwrap_or(asked).trim()));
        return true;
    }
    if tool.ends_with("taskupdate") {
        let [task, "·", status, ..] = words[..] else { return false };
        let is_over = ["completed", "deleted", "cancelled"].contains(&status);
        tasks.retain(|(number, _)| !is_over || *number != task);
        return true;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(ordinal: i64, role: Role, text: &str) -> Source<'_> {
        Source { ordinal, speaker: "", role, time: 0, text, corrected: &[] }
    }

    #[test]
    fn the_last_list_says_what_is_open() {
        let first = source(1, Role::Tool, "TodoWrite: 0 of 2 done\n[>] Write the parser\n[ ] Test it\nok");
        let last = source(3, Role::Tool, "TodoWrite: 1 of 2 done\n[x] Write the parser\n[>] Test it\nok");
        let said = source(2, Role::User, "Go on.");
        let items = vec!["Test it"];
        assert_eq!(open(&[first, said, last]), Some(Open { ordinal: 3, items: items.clone() }));
        assert_eq!(open(&[first, said, last, said, said]), Some(Open { ordinal: 3, items }));
        assert_eq!(open(&[first, said, last, said, said, said]), None, "the user asked for other things");
        let done = source(4, Role::Tool, "TodoWrite: 2 of 2 done\n[x] Write the parser\n[x] Test it\nok");
        assert_eq!(open(&[first, last, done]), None);
        assert_eq!(open(&[said, source(5, Role::Tool, "Bash: ls\nok")]), None);
    }

    #[test]
    fn single_tasks_are_created_and_finished() {
        let one = source(
            1,
            Role::Tool,
            "TaskCreate: Fix login · The form fails\nok:\nTask #1 created successfully: Fix login",
        );
        let two =
            source(2, Role::Tool, "TaskCreate: Add a test\nok:\nTask #2 created successfully: Add a test");
        let done = source(3, Role::Tool, "TaskUpdate: 1 · completed\nok:\nUpdated task #1 status");
        assert_eq!(open(&[one, two, done]), Some(Open { ordinal: 3, items: vec!["Add a test"] }));
        let failed = source(3, Role::Tool, "TaskUpdate: 2 · completed\nfailed:\nno such task");
        assert_eq!(open(&[one, two, failed]).map(|open| open.items.len()), Some(2));
        let begun = source(4, Role::Tool, "TaskUpdate: 2 · in_progress\nok:\nUpdated task #2 status");
        assert_eq!(open(&[one, two, done, begun]).map(|open| open.items.len()), Some(1));
    }
}
