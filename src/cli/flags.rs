//! Translates messages of tools for people. Names of arguments become flags, and names of tools become subcommands.

pub use tiro_tools::common::subcommands::without_tools;

/// Arguments of tools whose flags have other names. Each argument comes with the name of its flag.
const RENAMED: [(&str, &str); 5] = [
    ("session_id", "session"),
    ("conversation_ids", "sessions"),
    ("time_range.start", "since"),
    ("time_range.end", "until"),
    ("include_level", "level"),
];

/// Returns the error or hint `text`, with names of arguments replaced by flags, and names of tools replaced by
/// subcommands.
///
/// A quoted word without `_` or `.` may come from the user's input, so it is replaced only at the beginning of the
/// text, where errors name the argument.
pub fn named(command: &clap::Command, text: &str) -> String {
    let mut text = text.to_owned();
    let flags: Vec<&str> = command.get_arguments().filter_map(clap::Arg::get_long).collect();
    let own = flags.iter().map(|flag| (flag.replace('-', "_"), *flag));
    let renamed = RENAMED.iter().filter(|(_, flag)| flags.contains(flag));
    for (argument, flag) in own.chain(renamed.map(|(argument, flag)| ((*argument).to_owned(), *flag))) {
        let (quoted, flag) = (format!("`{argument}`"), format!("`--{flag}`"));
        if argument.contains(['_', '.']) {
            text = text.replace(&quoted, &flag);
        } else if let Some(rest) = text.strip_prefix(&quoted) {
            text = format!("{flag}{rest}");
        }
    }
    without_tools(&text)
}

/// Returns the answer `text` with the call of a tool replaced by the subcommand that does the same. For example, the
/// call of `expand_detail` with the argument `m1` becomes `tiro show m1`. Without an argument, returns the text
/// unchanged.
pub fn as_command(text: String, tool: &str, subcommand: &str, argument: Option<&str>) -> String {
    match argument {
        Some(argument) => {
            text.replace(&format!("{tool} `{argument}`"), &format!("`{subcommand} {argument}`"))
        }
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use clap::{Arg, Command};

    use super::named;

    #[test]
    fn arguments_are_called_as_the_flags_they_are() {
        let long = |name: &'static str| Arg::new(name).long(name);
        let command =
            Command::new("context").args(["session", "since", "until", "max-tokens", "k"].map(long));
        for (message, expected) in [
            ("argument `max_tokens` is 1, out of range", "argument `--max-tokens` is 1, out of range"),
            ("`time_range.end` is not after `time_range.start`", "`--until` is not after `--since`"),
            ("`since` is not a time: `until`", "`--since` is not a time: `until`"),
            ("`k` is not between 1 and 50: 99", "`--k` is not between 1 and 50: 99"),
            (
                "list_sessions shows them; leave `session_id` out to look across all",
                "`tiro sessions` shows them; leave `--session` out to look across all",
            ),
            (
                "save_messages and store_memory store the first memories",
                "`tiro import` and `tiro add` store the first memories",
            ),
            (
                "`list_sessions` lists this project's sessions",
                "`tiro sessions` lists this project's sessions",
            ),
            ("`conversation_ids` is empty", "`conversation_ids` is empty"),
        ] {
            assert_eq!(named(&command, message), expected);
        }
    }
}
