//! `tiro backup` copies the project's memory, or everything, to a file. `tiro restore` merges a backup of a project
//! into a project's memory. A backup of everything is restored as a whole.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::cli::ask::confirmed;
use crate::cli::print::{self, Out};
use crate::cli::progress;
use tiro_base::error::Result;
use tiro_host::caller::WritingCaller;
use tiro_host::engine::Engine;
use tiro_tools::operate::backup::{self, everything, restore_everything};

/// The arguments of `tiro backup`.
#[derive(clap::Args)]
pub struct BackupArgs {
    /// The file to write; it must not exist
    file: PathBuf,
    /// Copy everything: all projects, the memories for all projects, threads, what was spent and sent, and the
    /// configuration without keys
    #[arg(long)]
    all: bool,
}

/// The arguments of `tiro restore`.
#[derive(clap::Args)]
pub struct RestoreArgs {
    /// A file that `tiro backup` wrote, on this or another machine
    file: PathBuf,
    /// Don't ask before a backup of everything replaces what is stored here
    #[arg(long, short)]
    yes: bool,
}

/// Writes a backup.
pub async fn back_up(
    engine: &Engine,
    caller: &WritingCaller,
    args: BackupArgs,
    out: Out,
) -> Result<ExitCode> {
    if !args.all {
        let output = backup::back_up(engine, caller, args.file).await?;
        return out.answer(&output, &output.text());
    }
    let output = everything::back_up(engine, &args.file).await?;
    let written = out.answer(&output, &output.text())?;
    Ok(if output.left_out.is_empty() { written } else { ExitCode::FAILURE })
}

/// Merges a backup of a project, or restores a backup of everything.
pub async fn restore(
    engine: &Engine,
    caller: &WritingCaller,
    args: RestoreArgs,
    out: Out,
) -> Result<ExitCode> {
    if restore_everything::is_archive(&args.file) {
        let planned = restore_everything::plan(engine, &args.file)?;
        if planned.replaces && !args.yes {
            let place = engine.config().data_dir.display();
            print::aside(&format!("{}\nIt replaces what is stored in {place}.\n", planned.text()));
            let asked = confirmed("Replace it? It is kept in a folder of its own.", false);
            if !asked.map_err(|error| error.hint("pass `--yes` to replace it, or set TIRO_DATA_DIR"))? {
                return out.line("Nothing was changed.").map(|()| ExitCode::SUCCESS);
            }
        }
        let output = restore_everything::restore(engine, &args.file).await?;
        return out.answer(&output, &output.text());
    }
    let bar = progress::bar("memories");
    let output =
        backup::restore(engine, caller, args.file, |done, all| progress::show(&bar, done as u64, all as u64))
            .await;
    bar.finish_and_clear();
    let output = output?;
    out.answer(&output, &output.text())
}
