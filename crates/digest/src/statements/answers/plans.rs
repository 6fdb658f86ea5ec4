//! Finds the plan that a person approved.

use super::one_line;
use crate::statements::voice::Said;
use crate::statements::voice::Voice;
use tiro_base::memory::Role;
use tiro_text::blocks::{self, Block, Kind, blocks};

/// Claude Code's tool that shows a plan, and what its output says once the user approved the plan.
pub(super) const SHOWS_PLAN: &str = "ExitPlanMode";
const APPROVED: &str = "User has approved your plan";

/// Cursor's tool that shows a plan. The plan is the message before the call.
const CREATES_PLAN: &str = "create_plan";

/// How Codex marks a plan in an answer.
const PROPOSED: (&str, &str) = ("<proposed_plan>", "</proposed_plan>");

/// The messages that Codex and Cursor write in the user's name when the user approves a plan. Cursor's goes on.
const IMPLEMENT: [&str; 2] = ["Implement the plan.", "Implement the plan as specified, it is attached"];

/// The message that begins a new session of Claude Code with a plan that the user approved. The plan follows.
pub(crate) const FOLLOWING: &str = "Implement the following plan:";

/// The beginning of a decision that this module made of a plan.
pub(super) const BEGINS: &str = "Approved plan: ";

/// The maximum number of bytes of what a plan says of itself. Arbitrary: two sentences.
const LONGEST: usize = 360;

/// Parts of the headings under which a plan lists what is decided, besides what is to be done.
const CHOICES: [&str; 6] =
    ["decisions", "out of scope", "non-goals", "not in scope", "scope boundaries", "deferred"];

/// Headings that say nothing about a plan.
const PLAIN: [&str; 4] = ["plan", "implementation plan", "proposed plan", "the plan"];

/// Returns what the plan decides that `message` approves: its title with its first paragraph, and its lists of decisions
/// and of what is left out. `before` are the messages before it.
pub(super) fn approved(before: &[Said<'_>], message: &Said<'_>) -> Option<Vec<String>> {
    let is_assistants = |said: &&Said<'_>| said.voice() == Voice::Assistant;
    let followed = message.text.strip_prefix(FOLLOWING).and_then(|plan| plan.strip_prefix('\n'));
    let plan = match message.role {
        Some(Role::Tool) => {
            let is_approval = message.speaker == Some(SHOWS_PLAN) && message.text.contains(APPROVED);
            is_approval.then(|| before.iter().rev().find(is_assistants))??.text
        }
        _ if followed.is_some() => followed?,
        _ if message.text.trim() == IMPLEMENT[0] || message.text.trim_start().starts_with(IMPLEMENT[1]) => {
            // If the user said something about a plan, the plan was changed before it was approved.
            let is_unanswered = |(_, said): &(usize, &Said<'_>)| !matches!(said.voice(), Voice::Person(_));
            before.iter().enumerate().rev().take_while(is_unanswered).find_map(|(place, said)| {
                let is_call = said.role == Some(Role::Tool) && said.speaker == Some(CREATES_PLAN);
                match is_call {
                    true => before[..place].last().filter(is_assistants).map(|said| said.text),
                    false if is_assistants(&said) => {
                        let (_, plan) = said.text.split_once(PROPOSED.0)?;
                        Some(plan.split(PROPOSED.1).next().unwrap_or(plan))
                    }
                    false => None,
                }
            })?
        }
        _ => return None,
    };
    let blocks = blocks(plan);
    let title = blocks.iter().find(|block| block.kind == Kind::Heading).map(|block| one_line(&block.text));
    let title = title.map(|title| title.strip_prefix("Plan: ").unwrap_or(&title).to_owned());
    let title = title.filter(|title| !PLAIN.contains(&title.to_lowercase().as_str()));
    let place = blocks.iter().position(|block| block.kind == Kind::Prose);
    let first = place.map(|place| {
        let first = one_line(&blocks[place].text);
        let items = items(&blocks[place + 1..]);
        let whole = if first.ends_with(':') { format!("{first} {items}") } else { first };
        blocks::shortened(&whole, LONGEST)
    });
    let says: Vec<String> =
        [title.clone(), first].into_iter().flatten().filter(|text| !text.is_empty()).collect();
    if says.is_empty() {
        return None;
    }
    let mut decisions = vec![format!("{BEGINS}{}", says.join(". "))];
    let Some(title) = title else { return Some(decisions) };
    for (place, heading) in blocks.iter().enumerate().filter(|(_, block)| block.kind == Kind::Heading) {
        let heading = one_line(&heading.text);
        let heading = heading.trim_end_matches(':');
        let is_choice = CHOICES.iter().any(|choice| heading.to_lowercase().contains(choice));
        let items = items(&blocks[place + 1..]);
        if is_choice && title != heading && !items.is_empty() {
            decisions.push(format!("{BEGINS}{title}. {heading}: {}", blocks::shortened(&items, LONGEST)));
        }
    }
    Some(decisions)
}

/// Returns the items of the list with which `blocks` begin, in one line.
fn items(blocks: &[Block]) -> String {
    let items = blocks.iter().take_while(|block| block.kind == Kind::Item);
    items.map(|item| one_line(&item.text)).collect::<Vec<_>>().join("; ")
}
