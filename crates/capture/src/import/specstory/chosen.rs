//! Reads what the user chose in a dialog of Claude Code. An export has the questions with their options, and after
//! `**Answer:**` all that was chosen in one line, in the order of the questions. Drafts that were shown beside the options
//! may come in between.

use crate::import::gist::dialogs;

/// What comes before the answers.
const ANSWER: &str = "\n**Answer:** ";

/// How Claude Code begins to tell the model that the user did not answer.
const DECLINED: [&str; 2] = ["The user ", "User declined "];

/// What comes after the answers in some versions: Claude Code's words to the model, or the draft of an option.
const ENDS: [&str; 3] = ["\". ", "\" selected preview:", "\n"];

/// Returns the questions of a dialog with what the user chose, as one text. Returns `None` if the call is no such dialog.
pub(super) fn answered(call: &str) -> Option<String> {
    let (asked, answer) = call.split_once(ANSWER)?;
    let mut rest = answer.split("</details>").next().unwrap_or(answer).trim();
    if DECLINED.iter().any(|words| rest.starts_with(words)) {
        return None;
    }
    let mut pairs: Vec<(&str, String)> = Vec::new();
    for (question, options) in questions(asked) {
        let mut chosen: Vec<&str> = Vec::new();
        // Several options may be chosen. All but the first follow directly.
        while let Some((at, option)) =
            first_of(&options, rest).filter(|(at, _)| chosen.is_empty() || *at == 2)
        {
            chosen.push(option);
            rest = &rest[at + option.len()..];
        }
        if !chosen.is_empty() {
            pairs.push((question, chosen.join("; ")));
        } else if pairs.is_empty() || !rest.starts_with("\" selected preview:") {
            // Words of the user instead of an option.
            let own = rest.trim_start_matches([',', ' ']);
            let end = ENDS.iter().filter_map(|end| own.find(end)).min().unwrap_or(own.len());
            pairs.push((question, own[..end].trim_matches(['"', ' ']).to_owned()));
            rest = &own[end..];
        }
    }
    dialogs::told(pairs.iter().map(|(question, answer)| (*question, answer.as_str())))
}

/// Returns the questions of a dialog, each with its options.
fn questions(asked: &str) -> Vec<(&str, Vec<&str>)> {
    let mut found: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in asked.lines() {
        let line = line.trim_end().trim_end_matches(" _(select multiple)_");
        if let Some(option) = line.strip_prefix("- **") {
            let label = option.split_once("**").map_or(option, |(label, _)| label);
            found.last_mut().into_iter().for_each(|(_, options)| options.push(label));
        } else if let Some(question) = line.strip_prefix("**").and_then(|line| line.strip_suffix("**")) {
            found.push((question, Vec::new()));
        }
    }
    found
}

/// Returns the option that comes first in `text`, and where. Of several that begin there, it is the longest.
fn first_of<'o>(options: &[&'o str], text: &str) -> Option<(usize, &'o str)> {
    let places = options.iter().filter_map(|option| Some((text.find(option)?, *option)));
    places.min_by_key(|(at, option)| (*at, usize::MAX - option.len()))
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
        let told = |answer: &str| answered(&call(answer)).unwrap();
        let all = "User has answered your questions: \"Which colour?\"=\"Blue, dark\", \"Which cranes?\"=\"Left; Right\", \
            \"When?\"=\"Later\".";
        assert_eq!(told("Blue, dark, Left, Right, Later"), all);
        assert_eq!(
            told(
                "Blue, dark\" selected preview:\na draft\nof two lines, Left, Right, Later\" selected preview:\nx"
            ),
            all
        );
        let own = "Blue, Left, after the rain\". Read the answers carefully, and follow them.";
        assert!(
            told(own).ends_with("\"Which cranes?\"=\"Left\", \"When?\"=\"after the rain\"."),
            "{}",
            told(own)
        );
        assert_eq!(answered("<tool-use><details>\nNothing asked\n</details></tool-use>"), None);
        assert_eq!(answered(&call("The user doesn't want to proceed with this tool use.")), None);
    }
}
