//! `tiro projects`: which projects there are, and where.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Subcommand;

use super::{Out, init, print, progress};
use crate::engine::Engine;
use crate::error::Result;
use crate::tools::operate::projects;

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// List the projects, their ids and where they were seen.
    List,
    /// Say that a project lies in DIR now and nowhere else.
    Move {
        /// Its id, or its name where only one has it.
        project_id: String,
        /// Where it is now.
        directory: PathBuf,
    },
    /// Let DIR, such as a second clone, share a project's memory.
    Link {
        /// Its id, or its name where only one has it.
        project_id: String,
        /// The directory that joins.
        directory: PathBuf,
    },
    /// Remove a project and all that is remembered of it, for good; asks first.
    Remove {
        /// Its id, or its name where only one has it.
        project_id: String,
        /// Don't ask
        #[arg(long, short)]
        yes: bool,
        /// Only say what would go.
        #[arg(long, conflicts_with = "yes")]
        dry_run: bool,
    },
    /// Add one project's memories to another.
    Merge {
        /// The project that ends.
        from: String,
        /// The project that stays.
        into: String,
    },
}

/// Lists, moves, links or merges.
pub async fn run(engine: &Engine, args: Args, out: Out) -> Result<ExitCode> {
    match args.action {
        Action::List => {
            let output = projects::list(engine).await?;
            out.answer(&output, &output.text())
        }
        Action::Move { project_id, directory } => {
            let output = projects::link(engine, &project_id, &directory, true).await?;
            out.answer(&output, &output.text())
        }
        Action::Link { project_id, directory } => {
            let output = projects::link(engine, &project_id, &directory, false).await?;
            out.answer(&output, &output.text())
        }
        Action::Remove { project_id, yes, dry_run } => {
            let planned = projects::remove(engine, &project_id, true).await?;
            if dry_run {
                return out.answer(&planned, &planned.text());
            }
            if !yes {
                print::aside(&format!("{}\n", planned.text()));
                if !init::asked("Remove it?", false)? {
                    return out.line("Nothing was removed.").map(|()| ExitCode::SUCCESS);
                }
            }
            let output = projects::remove(engine, &planned.id, false).await?;
            out.answer(&output, &output.text())
        }
        Action::Merge { from, into } => {
            let bar = progress::bar("memories");
            let show = |done, all| progress::show(&bar, done as u64, all as u64);
            let output = projects::merge(engine, &from, &into, show).await;
            bar.finish_and_clear();
            let output = output?;
            out.answer(&output, &output.text())
        }
    }
}
