//! The prompts that clients offer to people as slash commands: `recall` and `where-we-left-off`.
//!
//! A prompt is an instruction in the user's name. So a prompt contains only fixed words and the words that the user
//! typed, but no text from memory. The prompt tells the model which tool to call.

use rmcp::model::{ErrorData, GetPromptResult, Prompt, PromptArgument, PromptMessage, Role};
use serde_json::{Map, Value};

use tiro_base::error::quoted;

const RECALL: &str = "recall";
const ABOUT: &str = "about";
const LEFT_OFF: &str = "where-we-left-off";

/// Returns the prompts.
pub(super) fn listed() -> Vec<Prompt> {
    let about = PromptArgument::new(ABOUT)
        .with_title("About")
        .with_description("What to recall: a question or key words")
        .with_required(false);
    vec![
        Prompt::new(RECALL, Some("What earlier sessions and commits say about something"), Some(vec![about]))
            .with_title("Recall"),
        Prompt::new(LEFT_OFF, Some("What the latest sessions did, decided and left open"), None)
            .with_title("Where we left off"),
    ]
}

/// Returns the prompt called `name` with the words that the user gave.
pub(super) fn filled(
    name: &str,
    arguments: Option<&Map<String, Value>>,
) -> Result<GetPromptResult, ErrorData> {
    let text = match name {
        RECALL => recall(words(arguments).as_deref()),
        LEFT_OFF => LEFT_OFF_TEXT.to_owned(),
        _ => return Err(ErrorData::invalid_params(format!("no prompt is called `{}`", quoted(name)), None)),
    };
    Ok(GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]))
}

const LEFT_OFF_TEXT: &str = "\
Where did we leave off in this project? Call Tiro's `retrieve_context` with the query \"what did we do in the latest \
sessions, what was decided and what is still open\" and max_tokens 2000, without a session_id. Then tell me in at most \
ten lines what was done last, what was decided, and what is open, each with its session or commit. If something is \
unclear, open it with `expand_detail` before you answer. Don't begin any work yet.";

fn recall(about: Option<&str>) -> String {
    let what = match about {
        // Claude Code passes only the first word that the user typed, but shows the model all words beside the prompt.
        Some(about) => format!(
            "What do earlier sessions and commits of this project say about this: {about}\nIf more words of mine stand \
             beside this, such as <command-args>, all of them are meant."
        ),
        None => "What do earlier sessions and commits of this project say about what we are working on now?"
            .to_owned(),
    };
    format!(
        "{what}\n\nCall Tiro's `search_project_memory` with a few specific words of it, and again with other words if \
         the hits don't answer it. Open what matters with `expand_detail`. Answer from what you found, in a few lines, \
         and name the session or commit and its date for each statement. If nothing is remembered about it, say so."
    )
}

/// Returns the words that the user typed. Models and clients use any names for arguments, so the values of all
/// arguments are used.
fn words(arguments: Option<&Map<String, Value>>) -> Option<String> {
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.trim().to_owned()),
        Value::Null => None,
        other => Some(other.to_string()),
    };
    let words: Vec<String> = arguments?.values().filter_map(text).filter(|text| !text.is_empty()).collect();
    (!words.is_empty()).then(|| words.join(" "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_prompt_contains_what_the_user_typed_and_names_the_tool() {
        for (arguments, expected) in [
            (
                json!({"about": " why is the cache flushed twice? "}),
                "about this: why is the cache flushed twice?\n",
            ),
            (json!({"about": "  "}), "what we are working on now?\n"),
            (json!({"about": null}), "what we are working on now?\n"),
            (json!({}), "what we are working on now?\n"),
        ] {
            let text = serde_json::to_string(&filled(RECALL, arguments.as_object()).unwrap()).unwrap();
            let expected = serde_json::to_string(expected).unwrap();
            assert!(
                text.contains(expected.trim_matches('"')) && text.contains("search_project_memory"),
                "{text}"
            );
        }
        let text = serde_json::to_string(&filled(LEFT_OFF, None).unwrap()).unwrap();
        assert!(text.contains("retrieve_context"), "{text}");
        assert!(filled("other", None).unwrap_err().message.contains("`other`"));
        let names: Vec<String> = listed().into_iter().map(|prompt| prompt.name).collect();
        assert_eq!(names, [RECALL, LEFT_OFF]);
    }
}
