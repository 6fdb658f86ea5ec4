//! `tiro completions`: prints a script that lets a shell complete the arguments of `tiro`.

use std::process::ExitCode;

use clap_complete::Shell;

use crate::cli::print::Out;
use tiro_base::error::Result;

/// The arguments of `tiro completions`.
#[derive(clap::Args)]
pub struct Args {
    /// The shell
    shell: Shell,
}

/// Prints the script of `command` on stdout.
pub fn run(args: Args, command: clap::Command, out: Out) -> Result<ExitCode> {
    out.line(script(args.shell, command).trim_end())?;
    Ok(ExitCode::SUCCESS)
}

fn script(shell: Shell, mut command: clap::Command) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "tiro", &mut script);
    String::from_utf8(script).expect("scripts are text")
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    #[test]
    fn every_shell_completes_what_is_shown_and_nothing_that_is_hidden() {
        for shell in Shell::value_variants() {
            let script = script(*shell, crate::cli::shown());
            let words: Vec<&str> =
                script.split(|c: char| !c.is_alphanumeric() && c != '-' && c != '_').collect();
            for name in [
                "search",
                "show",
                "add",
                "mark",
                "init",
                "pause",
                "resume",
                "import",
                "claude-code",
                "codex",
                "gemini",
                "man",
            ] {
                assert!(words.contains(&name), "{shell}: no `{name}`");
            }
            for name in ["hook", "bench"] {
                let found = words.iter().find(|word| word.split("__").any(|part| part == name));
                assert_eq!(found, None, "{shell}");
            }
        }
    }
}
