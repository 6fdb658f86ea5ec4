//! `tiro completions`: what a shell needs to complete `tiro`'s arguments.

use std::process::ExitCode;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::error::Result;

#[derive(clap::Args)]
pub struct Args {
    /// The shell.
    shell: Shell,
}

/// Prints the script on stdout.
pub fn run(args: Args) -> Result<ExitCode> {
    clap_complete::generate(args.shell, &mut super::Cli::command(), "tiro", &mut std::io::stdout());
    Ok(ExitCode::SUCCESS)
}
