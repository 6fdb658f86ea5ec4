//! `tiro backup` and `tiro restore`: copy the project's memory to a file, and merge such a file into a project's
//! memory.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::caller::Caller;
use crate::cli::print::Out;
use crate::cli::progress;
use crate::engine::Engine;
use crate::error::Result;
use crate::tools::operate::backup;

/// The arguments of `tiro backup`.
#[derive(clap::Args)]
pub struct BackupArgs {
    /// The file to write; it must not exist
    file: PathBuf,
}

/// The arguments of `tiro restore`.
#[derive(clap::Args)]
pub struct RestoreArgs {
    /// A file that `tiro backup` wrote, on this or another machine
    file: PathBuf,
}

/// Writes a backup.
pub async fn back_up(engine: &Engine, caller: &Caller, args: BackupArgs, out: Out) -> Result<ExitCode> {
    let output = backup::back_up(engine, caller, args.file).await?;
    out.answer(&output, &output.text())
}

/// Merges a backup.
pub async fn restore(engine: &Engine, caller: &Caller, args: RestoreArgs, out: Out) -> Result<ExitCode> {
    let bar = progress::bar("memories");
    let output =
        backup::restore(engine, caller, args.file, |done, all| progress::show(&bar, done as u64, all as u64))
            .await;
    bar.finish_and_clear();
    let output = output?;
    out.answer(&output, &output.text())
}
