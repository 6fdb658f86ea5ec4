//! Translates texts that name tools for people, who use subcommands and the pages.

/// Tools, each with the subcommand that does the same.
const TOOLS: [(&str, &str); 12] = [
    ("save_messages", "tiro import"),
    ("summarize_conversation", "tiro summarize"),
    ("get_relevant_snippets", "tiro context"),
    ("get_context_summary", "tiro context"),
    ("configure_llm_provider", "tiro provider"),
    ("list_sessions", "tiro sessions"),
    ("forget_context", "tiro forget"),
    ("retrieve_context", "tiro context"),
    ("search_project_memory", "tiro search"),
    ("expand_detail", "tiro show"),
    ("store_memory", "tiro add"),
    ("mark_important", "tiro mark"),
];

/// Returns the notice `text`, with names of tools replaced by subcommands.
pub fn without_tools(text: &str) -> String {
    let mut text = text.to_owned();
    for (tool, subcommand) in TOOLS {
        let subcommand = format!("`{subcommand}`");
        text = text.replace(&format!("`{tool}`"), &subcommand).replace(tool, &subcommand);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_called_as_the_subcommands_that_do_the_same() {
        assert_eq!(
            without_tools("`list_sessions` lists this project's sessions; save_messages begins one"),
            "`tiro sessions` lists this project's sessions; `tiro import` begins one"
        );
    }
}
