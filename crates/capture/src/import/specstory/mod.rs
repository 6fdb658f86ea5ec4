//! Reads sessions that SpecStory stored in Markdown.
//!
//! A message begins with a line such as `_**User (2026-03-01 10:00:00Z)**_`, preceded by a line `---`. Tool calls are
//! blocks `<tool-use>`, or `<details>` in old versions. They become messages of the tool with an excerpt of the output.
//! Old versions also divide the steps of the assistant by lines `---`, name the tool in a line before the block or instead
//! of it, and write `Read file: PATH` for a file that was read. Thoughts and the messages of sub-agents are left out.

mod blocks;
mod chosen;
mod edits;
mod steps;
mod unnamed;

use std::borrow::Cow;

use self::blocks::{attribute, json, next_call, summary};
use self::steps::{Step, labelled, steps, work};
use super::clean::{self, Private};
use super::fields::Fields;
use super::gist::{self, dialogs, plans};
use super::messages::Said;
use super::typed::written;
use tiro_base::memory::{Millis, Role};
use tiro_base::times;

pub use edits::Places;

/// The number of bytes of a line that are searched for a date.
const LONGEST_DATE: usize = 256;

/// The largest difference between a local time and UTC, and the step of such differences, in milliseconds.
const FURTHEST: Millis = 14 * 60 * 60 * 1000;
const STEP: Millis = 15 * 60 * 1000;

/// The beginning of the instructions of a skill.
const SKILL: &str = "Base directory for this skill:";

/// The field with which Cursor names the session of a sub-agent.
const SUBAGENT: &str = "subagentComposerId";

/// A date that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FoundDate {
    /// The time, as if it were in UTC.
    at: Millis,
    /// Whether the date names no offset from UTC, so that it may be a local time.
    is_local: bool,
}

impl FoundDate {
    /// Returns the time in UTC. `behind` is how far local times are behind UTC.
    fn utc(self, behind: Millis) -> Millis {
        if self.is_local { self.at + behind } else { self.at }
    }
}

/// A session.
#[derive(Debug, Default, PartialEq)]
pub struct Session {
    /// The client's id of the session.
    pub id: Option<String>,
    /// Its title.
    pub title: Option<String>,
    /// When it began.
    pub began: Option<Millis>,
    /// Its messages.
    pub said: Vec<Said>,
    /// How many messages of sub-agents were left out.
    pub left_out: usize,
    /// The ids of the sessions in which the sub-agents of this session worked. In them, the user is an agent.
    pub subagents: Vec<String>,
}

/// Reads a file. `stem` is the name of the file without the extension. The name begins with a date.
///
/// The name contains the time in UTC. Old versions of SpecStory wrote the same moment into the heading, in the local
/// time of the machine. The difference between the two shows how far the local time is behind UTC.
pub fn read(stem: &str, text: &str) -> Session {
    let heads = heads(text);
    let top = &text[..heads.first().map_or(text.len(), |head| head.from)];
    let title = top.lines().find_map(|line| line.strip_prefix("# ")).map(str::trim);
    let (heading, named) = (top.lines().find_map(date), time_of_name(stem));
    let behind = heading.zip(named).map_or(0, |(heading, named)| behind(heading.at, named));
    let mut session = Session {
        id: top.lines().find_map(id),
        title: title.map(|title| title.split(" (").next().unwrap_or(title).to_owned()),
        began: heading.map(|heading| heading.utc(behind)).or(named).or_else(|| day_of_name(stem)),
        ..Session::default()
    };
    // A heading that is only a date is no title. For a session of Claude Code, SpecStory takes the first title in its
    // file, which is mostly the title of the session before.
    let is_of_another = top.contains("<!-- Claude Code Session ");
    session.title =
        session.title.filter(|title| date(title).is_none() && !title.is_empty() && !is_of_another);
    let mut command_at = None;
    for (place, head) in heads.iter().enumerate() {
        let end = heads.get(place + 1).map_or(text.len(), |next| next.from);
        // After a command of the user's own, Claude Code adds the text of the command as a message of the user.
        let is_of_command = head.role == Role::User && head.time.is_some() && head.time == command_at;
        let is_command = text[head.to..end].trim_start().starts_with("<command-message>");
        command_at = head.time.filter(|_| is_command);
        if is_of_command {
            continue;
        }
        if head.is_sidechain {
            session.left_out += 1;
            continue;
        }
        let time = head.time.map(|time| time.utc(behind));
        message(head.role, time, &text[head.to..end], &mut session);
    }
    unnamed::add(&mut session.said);
    session
}

/// The line with which a message begins.
struct Head {
    from: usize,
    to: usize,
    role: Role,
    time: Option<FoundDate>,
    is_sidechain: bool,
}

/// Finds the beginnings of messages. A quoted file may contain a line that only looks like a beginning, but it has no
/// line `---` before it. Exports of Copilot and Codex begin a message of the assistant after each of its steps, without
/// such a line.
fn heads(text: &str) -> Vec<Head> {
    let (mut found, mut from, mut before, mut is_blank) = (Vec::new(), 0, "---", true);
    let (mut is_code, mut is_call) = (false, false);
    for line in text.split_inclusive('\n') {
        let to = from + line.len();
        let line = line.trim_end();
        let follows = before == "---" || before.starts_with("<!--") || before.starts_with("# ");
        let goes_on = is_blank && !is_code && !is_call && line.ends_with(")**_");
        // A user who interrupts the assistant writes two messages in a row.
        let is_head =
            |head: &Head| follows || goes_on && (head.role == Role::Assistant || head.time.is_some());
        if let Some(head) = head(line).filter(is_head) {
            found.push(Head { from, to, ..head });
            (is_code, is_call) = (false, false);
        }
        is_code ^= line.trim_start().starts_with("```");
        is_call = (is_call || line.contains("<tool-use")) && !line.contains("</tool-use>");
        is_blank = line.is_empty();
        if !is_blank {
            before = line;
        }
        from = to;
    }
    found
}

fn head(line: &str) -> Option<Head> {
    let inner = line.strip_prefix("_**")?.strip_suffix("**_")?;
    let (name, more) = inner.split_once([' ', '-']).unwrap_or((inner, ""));
    let role = match name.trim() {
        "User" => Role::User,
        "Agent" | "Assistant" => Role::Assistant,
        _ => return None,
    };
    Some(Head { from: 0, to: 0, role, time: date(more), is_sidechain: more.contains("sidechain") })
}

/// Adds a message, and the tool calls in it.
fn message(role: Role, time: Option<Millis>, body: &str, into: &mut Session) {
    let body = body.trim_end();
    let body = body.strip_suffix("---").unwrap_or(body);
    let mut private = Private::default();
    let body = clean::without(private.strip(body.into()), &["think"]);
    let Session { said, subagents, .. } = into;
    let mut add = |step: Step| {
        let Step { role, speaker, text, work: (written, commits) } = step;
        let text = clean::readable(text.into()).trim().to_owned();
        if !text.is_empty() {
            said.push(Said { speaker, time, written, commits, ..Said::new(role, text) });
        }
    };
    let mut rest = body.as_ref();
    while let Some((before, call, after)) = (role == Role::Assistant).then(|| next_call(rest)).flatten() {
        let (before, label) = labelled(before);
        steps(before).into_iter().for_each(&mut add);
        let (summary, output) = summary(call);
        let name = attribute(call, "data-tool-name").or(label);
        let more = json(output, "Additional data:").and_then(|json| Fields::parse(json).ok());
        subagents.extend(more.and_then(|more| more.filled(SUBAGENT).map(Cow::into_owned)));
        let asked = json(output, "Parameters:").and_then(|json| Fields::parse(json).ok()).unwrap_or_default();
        let plan = plans::plan(&asked, &mut Private::default());
        let questions = dialogs::questions(&asked);
        let answered = json(output, "Result:").and_then(|result| dialogs::answered(&questions, result));
        let answered = answered.or_else(|| chosen::answered(name.as_deref(), call));
        let output = match (&plan, answered) {
            // The plan becomes a message of the assistant.
            (Some(_), _) => String::new(),
            (None, Some(answered)) => answered,
            (None, None) => gist::excerpt(output.trim(), gist::EXCERPT),
        };
        // Versions that escape these texts escape all of their brackets.
        let readable = |text: String| match text.contains(['<', '>']) {
            true => text,
            false => edits::unescaped(&text).unwrap_or(text),
        };
        let plan = plan.map(readable);
        plan.into_iter().for_each(|plan| add(Step::said(Role::Assistant, plan)));
        let text = readable(format!("{summary}\n{output}"));
        add(Step { role: Role::Tool, speaker: name, text, work: work(call) });
        rest = after;
    }
    match role {
        Role::Assistant => steps(rest).into_iter().for_each(add),
        _ => {
            let text = written(rest.trim().trim_end_matches("---").trim().into());
            // Claude Code adds the instructions of a skill as a message of the user.
            if !text.starts_with(SKILL) {
                add(Step::said(role, text.into_owned()));
            }
        }
    }
}

/// Returns the id in a line such as `<!-- Claude Code Session 5c5c2876-… (…) -->`.
fn id(line: &str) -> Option<String> {
    let (_, rest) = line.strip_prefix("<!--")?.split_once(" Session ")?;
    let id = rest.split_whitespace().next()?;
    (id.len() >= 8 && id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')).then(|| id.to_owned())
}

/// Returns the first date in a text. If a time follows the date, the time is included.
fn date(text: &str) -> Option<FoundDate> {
    let text = &text[..text.floor_char_boundary(LONGEST_DATE)];
    let is_part = |c: char| c.is_ascii_digit() || "-:. TZ+".contains(c);
    let start = text.find(|c: char| c.is_ascii_digit()).filter(|start| text[*start..].len() >= 10)?;
    let rest = &text[start..];
    let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
    let found = rest[..end].trim().replacen(' ', "T", 1);
    let is_local = found.get(11..).is_some_and(|clock| !clock.contains(['Z', '+', '-']));
    let parsed = times::parse_time_in_utc("date", &found).ok();
    parsed
        .map(|at| FoundDate { at, is_local })
        .or_else(|| date(&rest[rest.find(|c: char| !c.is_ascii_digit())?..]))
}

/// Returns how far the local time `heading` is behind UTC. `named` is the same time in UTC, taken from the name of the
/// file, in whole minutes.
fn behind(heading: Millis, named: Millis) -> Millis {
    let difference = named - heading;
    let behind = (difference as f64 / STEP as f64).round() as Millis * STEP;
    let is_same = (difference - behind).abs() < 60 * 1000;
    if is_same && behind.abs() <= FURTHEST { behind } else { 0 }
}

/// Returns the time with which the name of a file begins, such as `2026-03-01_10-00Z-title`.
fn time_of_name(stem: &str) -> Option<Millis> {
    let clock = stem.get(10..16)?.strip_prefix('_')?.replace('-', ":");
    times::parse_time_in_utc("date", &format!("{}T{clock}", &stem[..10])).ok()
}

/// Returns the day with which the name of a file begins, such as `2026-03-01-title`.
fn day_of_name(stem: &str) -> Option<Millis> {
    times::parse_time_in_utc("date", stem.get(..10)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_read_with_its_calls() {
        let text = "<!-- Generated by SpecStory, Markdown v2.1.0 -->\n\n# 2026-03-01 10:00:00Z\n\n\
            <!-- Claude Code Session 5c5c2876-febd-4c87-b80c-d0655f1cd3fd (2026-03-01 10:00:00Z) -->\n\n\
            _**User (2026-03-01 10:00:05Z)**_\n\nWhy is the crane blue?\n\n---\n\n\
            _**Agent (claude-x 2026-03-01 10:00:09Z)**_\n\n<think>hm</think>\nI look.\n\n\
            <tool-use data-tool-type=\"shell\" data-tool-name=\"Bash\"><details>\n\
            <summary>Tool use: **Bash** `cat paint.txt`</summary>\n\n```\ncheapest\n_**User**_\n```\n\
            </details></tool-use>\n\nIt was the cheapest.\n\n---\n\n\
            _**Agent - sidechain (2026-03-01 10:01:00Z)**_\n\nhidden\n\n---\n\n";
        let session = read("2026-03-01_10-00Z-why", text);
        assert_eq!(session.id.as_deref(), Some("5c5c2876-febd-4c87-b80c-d0655f1cd3fd"));
        assert_eq!((session.title, session.left_out), (None, 1));
        let shown: Vec<String> =
            session.said.iter().map(|said| format!("{:?}: {}", said.role, said.text)).collect();
        let expected = [
            "User: Why is the crane blue?",
            "Assistant: I look.",
            "Tool: Bash cat paint.txt\n```\ncheapest\n_**User**_\n```",
            "Assistant: It was the cheapest.",
        ];
        assert_eq!(shown, expected);
        assert_eq!(session.said[0].time, Some(session.began.unwrap() + 5000));
        assert_eq!(session.said[2].speaker.as_deref(), Some("Bash"));
    }

    /// The repeated line used to become a message: two of five messages of such an export.
    #[test]
    fn the_line_that_copilot_repeats_is_no_message() {
        let head = "_**Agent (copilot/claude-sonnet-4.5)**_\n\n";
        let call = "<tool-use data-tool-type=\"read\" data-tool-name=\"read_file\"><details>\n\
            <summary>Tool use: **read_file**</summary>\n\na\n\n</details></tool-use>\n\n";
        let text = format!(
            "_**User (2026-03-01 10:00:00Z)**_\n\nWhy?\n\n---\n\n{head}<think>hm\n</think>\n\n{head}{call}{head}{head}{call}\
             {head}I look again.\n\n\
             {head}It is blue.\n\n_**User**_ is a heading.\n\n---\n"
        );
        let said = read("2026-03-01_10-00Z-why", &text).said;
        let texts: Vec<&str> = said.iter().map(|said| said.text.as_str()).collect();
        let read = "read_file\na";
        assert_eq!(texts, ["Why?", read, read, "I look again.", "It is blue.\n\n_**User**_ is a heading."]);
    }

    /// The second of two messages in a row used to be a part of the first.
    #[test]
    fn what_a_user_says_after_an_interruption_is_a_message() {
        let text = "_**User (2026-01-23T17:38:16.090Z)**_\n\n[Request interrupted by user]\n\n\
            _**User (2026-01-23T17:38:16.557Z)**_\n\nPaint the crane.\n\n```\n\n_**User (2026-01-23T17:38:16.557Z)**_\n```\n";
        let said = read("x", text).said;
        let texts: Vec<&str> = said.iter().map(|said| said.text.as_str()).collect();
        assert_eq!(texts, ["Paint the crane.\n\n```\n\n_**User (2026-01-23T17:38:16.557Z)**_\n```"]);
        let added = "_**User**_\n\n<command-message>go</command-message>\n<command-name>/go</command-name>\n\
            <command-args>to the crane</command-args>\n\n_**User (2026-01-23T17:38:16.557Z)**_\n\nBase directory for this skill: /w\n\n\
            Cranes are tall.\n\n_**User (2026-01-23T17:39:16.557Z)**_\n\n<task-notification>\n<status>done</status>\n</task-notification>\n";
        let texts: Vec<String> = read("x", added).said.into_iter().map(|said| said.text).collect();
        assert_eq!(texts, ["/go to the crane"]);
    }

    /// Each tag used to be looked for a block of code from the beginning of its line.
    #[test]
    fn a_line_of_very_many_tags_takes_no_longer_than_its_length() {
        let tags = "<command-name>".repeat(300_000);
        let said = read("x", &format!("_**User**_\n\n{tags}\n")).said;
        assert_eq!((said.len(), said[0].text.len()), (1, tags.len()));
    }

    /// The text of a command, with the output of programs in it, used to be quoted as the words of the user.
    #[test]
    fn the_text_of_a_command_is_left_out() {
        let head = |time: &str| format!("_**User (2026-03-01 {time}Z)**_\n\n");
        let command = |first: &str, second: &str| {
            format!(
                "<{first}>review</{first}>\n<{second}>/review</{second}>\n<command-args>244</command-args>\n\n"
            )
        };
        let own = command("command-message", "command-name")
            + &head("10:00:00")
            + "## Context\n\n- state: OPEN\n\n";
        let built_in = command("command-name", "command-message") + &head("10:00:00") + "Paint the crane.\n";
        let said = |text: &str| -> Vec<String> {
            let said = read("x", &(head("10:00:00") + text)).said;
            said.into_iter().map(|said| said.text).collect()
        };
        assert_eq!(said(&own), ["/review 244"]);
        assert_eq!(said(&(own + &head("10:00:09") + "Why?\n")), ["/review 244", "Why?"]);
        assert_eq!(said(&built_in), ["/review 244", "Paint the crane."]);
    }

    #[test]
    fn a_dialog_states_what_was_chosen_and_a_plan_is_a_message() {
        let call = |name: &str, asked: &str, result: &str| {
            format!(
                "<tool-use data-tool-type=\"unknown\" data-tool-name=\"{name}\"><details>\n\
                 <summary>Tool use: **{name}**</summary>\n\nParameters:\n\n```json\n{asked}\n```\n\
                 Result:\n\n```json\n{result}\n```\nStatus: **completed**\n\n</details></tool-use>\n\n"
            )
        };
        let asked = r#"{"questions": [{"id": "q", "prompt": "Which crane?", "options": [{"id": "b", "label": "Blue"}]}]}"#;
        let chosen = r#"{"answers": [{"freeformText": "", "questionId": "q", "selectedOptionIds": ["b"]}]}"#;
        let plan = r##"{"name": "Cranes", "overview": "All &#96;cranes&#96; become blue.", "plan": "# Blue cranes\n\n## Steps\n\n1. Paint them."}"##;
        let text = format!(
            "_**User**_\n\nPaint\n\n---\n\n_**Agent (default)**_\n\n{}{}",
            call("ask_question", asked, chosen),
            call("create_plan", plan, r#"{"rejected": {}}"#)
        );
        let shown: Vec<String> =
            read("x", &text).said.iter().map(|said| format!("{:?}: {}", said.role, said.text)).collect();
        let expected = [
            "User: Paint",
            "Tool: ask_question\nUser has answered your questions: \"Which crane?\"=\"Blue\".",
            "Assistant: # Blue cranes\n\nAll `cranes` become blue.\n\n## Steps\n\n1. Paint them.",
            "Tool: create_plan",
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn the_old_form_is_read() {
        let text = "<!-- Generated by SpecStory -->\n\n# Starting Task #8 (2025-04-28 14:53:38)\n\n_**User**_\n\nstart\n\n\
            ---\n\n_**Assistant**_\n\n<details>\n  <summary>Searched codebase \"x\"</summary>\n\n| a |\n</details>\n\n---\n\nDone.\n\n---\n";
        let session = read("x", text);
        assert_eq!(session.title.as_deref(), Some("Starting Task #8"));
        assert_eq!(session.began, Some(1_745_852_018_000));
        let texts: Vec<&str> = session.said.iter().map(|said| said.text.as_str()).collect();
        assert_eq!(texts, ["start", "Searched codebase \"x\"\n| a |", "Done."]);
        assert_eq!(read("2025-04-28_18-53-x", "_**User**_\n\na").began, Some(1_745_866_380_000));
        assert_eq!(read("2025-04-28-x", "_**User**_\n\na").began, Some(1_745_798_400_000));
        assert_eq!(read("notes", "nothing").said, []);
    }

    /// The lines between steps used to fill whole messages.
    #[test]
    fn the_steps_of_old_versions_are_messages() {
        let text = "_**User**_\n\nFix it\n\n---\n\n_**Assistant**_\n\nI look.\n\n---\n\n<think>hm</think>\n\n---\n\n\
            Read file: a.md\n\n---\n\n\n\n---\n\nRead file: b.md\n\n---\n\n---\n\n## Done\n\n---\n\nAll is well.\n\n\
            ```\nfront\n---\nmatter\n```\n\n---\n";
        let said = read("x", text).said;
        let shown: Vec<String> = said.iter().map(|said| format!("{:?}: {}", said.role, said.text)).collect();
        let expected = [
            "User: Fix it",
            "Assistant: I look.",
            "Tool: Read file: a.md\nRead file: b.md",
            "Assistant: ## Done\n\n---\n\nAll is well.\n\n```\nfront\n---\nmatter\n```",
        ];
        assert_eq!(shown, expected);
    }

    /// The calls used to be taken for texts of the assistant.
    #[test]
    fn calls_that_old_versions_name_in_a_line_are_calls() {
        let text = "_**User**_\n\nGo\n\n---\n\n_**Assistant (default)**_\n\nI write it.\n\n---\n\nTool use: **write**\n\n---\n\n\
            Tool use: **run_terminal_cmd**\n\n```bash\ngit commit -m x\n```\n\n```\n[main 1a2b3c4] x\n---\n```\n\n---\n\n\
            Tool use: **search_replace**\n\n\n<details><summary>Edit file: a.rs</summary>\n\n```diff\n+ let paint = blue;\n```\n\n\
            </details>\n\n---\n\nTool use: **read_file**\n\nRead file: b.md\n\n---\n\nDone.\n";
        let said = read("x", text).said;
        let shown: Vec<(Option<&str>, &str)> =
            said.iter().map(|said| (said.speaker.as_deref(), said.text.as_str())).collect();
        let expected = [
            (None, "Go"),
            (None, "I write it."),
            (Some("write"), "write"),
            (
                Some("run_terminal_cmd"),
                "run_terminal_cmd\n```bash\ngit commit -m x\n```\n\n```\n[main 1a2b3c4] x\n---\n```",
            ),
            (Some("search_replace"), "Edit file: a.rs\n```diff\n+ let paint = blue;\n```"),
            (Some("read_file"), "read_file\nRead file: b.md"),
            (None, "Done."),
        ];
        assert_eq!(shown, expected);
        assert_eq!(said[3].commits.as_deref(), Some(&["1a2b3c4".to_owned()][..]));
        assert_eq!(said[4].written[0].path, "a.rs");
    }

    #[test]
    fn commands_without_a_name_are_calls_and_what_is_missing_is_no_text() {
        let text = "_**User**_\n\nGo\n\n---\n\n_**Assistant**_\n\nI test it.\n\n---\n\n```bash\nnpm test\n```\n\n```\nok\n```\n\n---\n\n\
            undefined\n\n---\n\nRead file: undefined\n\n---\n\n```bash\nnpm start\n```\n\nRun this.\n\n---\n";
        let said = read("x", text).said;
        let shown: Vec<(Option<&str>, &str)> =
            said.iter().map(|said| (said.speaker.as_deref(), said.text.as_str())).collect();
        let expected = [
            (None, "Go"),
            (None, "I test it."),
            (Some("run_terminal_cmd"), "run_terminal_cmd\n```bash\nnpm test\n```\n\n```\nok\n```"),
            (None, "```bash\nnpm start\n```\n\nRun this."),
        ];
        assert_eq!(shown, expected);
    }

    /// The local time of the heading used to be taken for UTC.
    #[test]
    fn a_local_time_in_the_heading_is_moved_to_that_of_the_name() {
        let began = |stem: &str, heading: &str| {
            read(stem, &format!("# Task ({heading})\n\n_**User (2025-04-28 14:54:38)**_\n\na")).began
        };
        let local = Some(1_745_852_018_000);
        let moved = |hours: f64| local.map(|local| local + (hours * 3_600_000.0) as Millis);
        assert_eq!(began("2025-04-28_18-53-x", "2025-04-28 14:53:38"), moved(4.0));
        assert_eq!(began("2025-04-28_09-23Z-x", "2025-04-28 14:53:38"), moved(-5.5));
        // A file whose name has another time, or a heading with an offset, says nothing about local times.
        assert_eq!(began("2025-04-28_18-40-x", "2025-04-28 14:53:38"), local);
        assert_eq!(began("2025-04-28_18-53-x", "2025-04-28 14:53:38Z"), local);
        let text = "# Task (2025-04-28 14:53:38)\n\n_**User (2025-04-28 14:54:38)**_\n\na";
        assert_eq!(read("2025-04-28_18-53-x", text).said[0].time, moved(4.0).map(|began| began + 60_000));
    }
}
