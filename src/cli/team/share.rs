//! `tiro share`: shares projects with teams.

use std::process::ExitCode;

use crate::cli::print::Out;
use tiro_base::error::{Error, Result};
use tiro_host::engine::Engine;
use tiro_tools::operate::team::shares;

/// The arguments of `tiro share`.
#[derive(clap::Args)]
pub struct Args {
    /// The project's id or name, which is made if there is none; `list` lists what is shared
    #[arg(value_name = "PROJECT")]
    which: String,
    /// The team
    #[arg(long, value_name = "TEAM")]
    with: Option<String>,
    /// The team may search and read
    #[arg(long, conflicts_with = "write")]
    read: bool,
    /// The team may also save memories that the others see
    #[arg(long)]
    write: bool,
    /// What is shared, such as decision,commit,message, or all [default: notes, commits and documents]
    #[arg(long, value_name = "KINDS", value_delimiter = ',')]
    kinds: Option<Vec<String>>,
    /// Stop sharing the project with the team; without --with, with all teams
    #[arg(long, conflicts_with_all = ["read", "write", "kinds"])]
    off: bool,
}

/// Runs the subcommand and prints its answer.
pub async fn run(engine: &Engine, args: Args, out: Out) -> Result<ExitCode> {
    let Args { which, with, read, write, kinds, off } = args;
    if which == "list" && with.is_none() && !off {
        let output = shares::list(engine).await?;
        return out.answer(&output, &output.text());
    }
    let output = match (with, off) {
        (with, true) => shares::unshare(engine, &which, with.as_deref()).await?,
        (None, false) => {
            return Err(Error::bad_input("no team is named").hint("name it with `--with TEAM`"));
        }
        (Some(_), false) if !read && !write => {
            return Err(Error::bad_input("what the team may do is missing")
                .hint("add `--read`, or `--write` to let the team save memories for all"));
        }
        (Some(team), false) => shares::share(engine, &which, &team, write, kinds.as_deref()).await?,
    };
    out.answer(&output, &output.text())
}
