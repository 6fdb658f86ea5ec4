//! `tiro projects`: lists, moves, links, merges and removes projects.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Subcommand;

use crate::cli::ask::confirmed;
use crate::cli::print::{self, Out};
use crate::cli::progress;
use tiro_base::error::Result;
use tiro_host::caller::WritingCaller;
use tiro_host::engine::Engine;
use tiro_tools::operate::projects;

/// The arguments of `tiro projects`.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// List the projects with their ids and directories
    List,
    /// Record that DIR is now the only directory of a project
    Move {
        /// The project's id, or its name if that is unique
        project_id: String,
        /// The project's new directory
        directory: PathBuf,
    },
    /// Share a project's memory with DIR, such as a second clone
    Link {
        /// The project's id, or its name if that is unique
        project_id: String,
        /// The directory to add
        directory: PathBuf,
    },
    /// Delete a project and its memory permanently; asks first
    Remove {
        /// The project's id, or its name if that is unique
        project_id: String,
        /// Don't ask
        #[arg(long, short)]
        yes: bool,
        /// Print what would be deleted, and change nothing
        #[arg(long, conflicts_with = "yes")]
        dry_run: bool,
    },
    /// Move the memories of one project to another
    Merge {
        /// The project to merge; it is no longer listed afterwards
        from: String,
        /// The project to merge into
        into: String,
    },
}

/// Runs the subcommand and prints its answer.
pub async fn run(engine: &Engine, caller: &WritingCaller, args: Args, out: Out) -> Result<ExitCode> {
    match args.action {
        Action::List => {
            let output = projects::list(engine).await?;
            out.answer(&output, &output.text())
        }
        Action::Move { project_id, directory } => {
            let output = projects::link(engine, caller, &project_id, &directory, true).await?;
            out.answer(&output, &output.text())
        }
        Action::Link { project_id, directory } => {
            let output = projects::link(engine, caller, &project_id, &directory, false).await?;
            out.answer(&output, &output.text())
        }
        Action::Remove { project_id, yes, dry_run } => {
            let planned = projects::remove(engine, caller, &project_id, true).await?;
            if dry_run {
                return out.answer(&planned, &planned.text());
            }
            if !yes {
                print::aside(&format!("{}\n", planned.text()));
                if !confirmed("Remove it?", false)? {
                    return out.line("Nothing was removed.").map(|()| ExitCode::SUCCESS);
                }
            }
            let output = projects::remove(engine, caller, &planned.id, false).await?;
            out.answer(&output, &output.text())
        }
        Action::Merge { from, into } => {
            let bar = progress::bar("memories");
            let show = |done, all| progress::show(&bar, done as u64, all as u64);
            let output = projects::merge(engine, caller, &from, &into, show).await;
            bar.finish_and_clear();
            let output = output?;
            out.answer(&output, &output.text())
        }
    }
}
