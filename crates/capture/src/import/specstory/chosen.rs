//! Reads what the user chose in a dialog of Claude Code. An export has the questions with their options, and after
//! `**Answer:**` all that was chosen in one line, in the order of the questions. Drafts that were shown beside the options
//! may come in between.

use crate::import::gist::dialogs;

/// The tool that asks.
const ASKS: &str = "AskUserQuestion";

/// What comes before the answers.
const ANSWER: &str = "\n**Answer:** ";

/// How Claude Code begins to tell the model that the user did not answer.
const DECLINED: [&str; 3] = ["The user doesn't want to ", "The user wants to clarify ", "User declined "];

/// What comes before the draft of an option.
const DRAFT: &str = "\" selected preview:";

/// What comes after the answers in some versions: Claude Code's words to the model, or a draft.
const ENDS: [&str; 3] = ["\". ", DRAFT, "\n"];

/// A question of a dialog.
struct Question<'c> {
    text: &'c str,
    options: Vec<&'c str>,
    /// Whether several options may be chosen.
    takes_several: bool,
}

/// Returns the questions of a dialog with what the user chose, as one text. Returns `None` if the call of the tool `name` is
/// no such dialog.
///
/// The answers are not marked, so a question is left out from the first on whose answer can't be told.
pub(super) fn answered(name: Option<&str>, call: &str) -> Option<String> {
    let (asked, answer) = call.split_once(ANSWER).filter(|_| name == Some(ASKS))?;
    let mut rest = answer.split("</details>").next().unwrap_or(answer).trim();
    if DECLINED.iter().any(|words| rest.starts_with(words)) {
        return None;
    }
    let questions = questions(asked);
    let mut pairs: Vec<(&str, String)> = Vec::new();
    for (place, question) in questions.iter().enumerate() {
        let next = questions.get(place + 1);
        let mut chosen: Vec<&str> = Vec::new();
        rest = rest.trim_start_matches([',', ' ']);
        while let Some(option) = option_at_start(question, rest) {
            chosen.push(option);
            rest = &rest[option.len()..];
            match rest.strip_prefix(", ").filter(|_| question.takes_several) {
                Some(more) if option_at_start(question, more).is_some() => rest = more,
                _ => break,
            }
        }
        if rest.starts_with(DRAFT) {
            rest = next.map_or("", |next| after_draft(next, rest));
        }
        match (chosen.is_empty(), next) {
            (false, _) => pairs.push((question.text, chosen.join("; "))),
            // Words of the user instead of an option.
            (true, None) => {
                let end = ENDS.iter().filter_map(|end| rest.find(end)).min().unwrap_or(rest.len());
                pairs.push((question.text, rest[..end].trim_matches(['"', ' ']).to_owned()));
            }
            (true, Some(_)) => break,
        }
    }
    dialogs::told(pairs)
}

/// Returns the questions of a dialog.
fn questions(asked: &str) -> Vec<Question<'_>> {
    let mut found: Vec<Question<'_>> = Vec::new();
    for line in asked.lines() {
        let whole = line.trim_end();
        let line = whole.trim_end_matches(" _(select multiple)_");
        if let Some(option) = line.strip_prefix("- **") {
            let label = option.split_once("**").map_or(option, |(label, _)| label);
            found.last_mut().into_iter().for_each(|question| question.options.push(label));
        } else if let Some(text) = line.strip_prefix("**").and_then(|line| line.strip_suffix("**")) {
            found.push(Question { text, options: Vec::new(), takes_several: line.len() < whole.len() });
        }
    }
    found
}

/// Returns the longest option of the question with which `text` begins.
fn option_at_start<'c>(question: &Question<'c>, text: &str) -> Option<&'c str> {
    let ends = |rest: &str| {
        rest.is_empty() || rest.starts_with(", ") || ENDS.iter().any(|end| rest.starts_with(end))
    };
    let fits = |option: &&&str| text.strip_prefix(**option).is_some_and(ends);
    question.options.iter().filter(fits).max_by_key(|option| option.len()).copied()
}

/// Returns what follows a draft: the text from the first answer to the next question on.
fn after_draft<'t>(next: &Question<'_>, draft: &'t str) -> &'t str {
    let mut places = draft.match_indices(", ").map(|(at, joint)| &draft[at + joint.len()..]);
    places.find(|text| option_at_start(next, text).is_some()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(answer: &str) -> String {
        format!(
            "<tool-use data-tool-name=\"AskUserQuestion\"><details>\n\
            <summary>Tool use: **AskUserQuestion**</summary>\n\
            **Which colour?**\n\nOptions:\n- **Blue** - Cheap.\n- **Blue, dark** - Seen from afar.\n\n\
            **Which cranes?** _(select multiple)_\n\nOptions:\n- **Left** - The old one.\n- **Right** - The new one.\n\n\
            **When?**\n\nOptions:\n- **Now** - \n- **Later** - \n\n\n\
            **Answer:** {answer}\n</details></tool-use>"
        )
    }

    #[test]
    fn answers_stand_beside_their_questions() {
        let told = |answer: &str| answered(Some(ASKS), &call(answer)).unwrap();
        let all = "User has answered your questions: \"Which colour?\"=\"Blue, dark\", \"Which cranes?\"=\"Left; Right\", \
            \"When?\"=\"Later\".";
        assert_eq!(told("Blue, dark, Left, Right, Later"), all);
        assert_eq!(
            told(
                "Blue, dark\" selected preview:\na draft\nof two lines, Left, Right, Later\" selected preview:\nx"
            ),
            all
        );
        // Words of the user for another question than the last one can't be told from the answers that follow.
        assert!(told("Blue, none of the Left ones, Later").ends_with("\"Which colour?\"=\"Blue\"."));
        assert_eq!(answered(Some(ASKS), &call("Bluefish, Left, Later")), None);
        let own = "Blue, Left, after the rain\". Read the answers carefully, and follow them.";
        assert!(
            told(own).ends_with("\"Which cranes?\"=\"Left\", \"When?\"=\"after the rain\"."),
            "{}",
            told(own)
        );
        assert_eq!(answered(Some(ASKS), "<tool-use><details>\nNothing asked\n</details></tool-use>"), None);
        assert_eq!(answered(Some(ASKS), &call("The user doesn't want to proceed with this tool use.")), None);
        assert_eq!(answered(Some("Bash"), &call("Blue, Left, Later")), None);
    }
}
