//! `tiro forget` and `tiro undo`.

use std::process::ExitCode;

use super::Out;
use crate::engine::Engine;
use crate::error::Result;
use crate::tools::memory::forget_context;

#[derive(clap::Args)]
#[group(required = true, multiple = false, id = "what")]
pub struct What {
    /// These memories.
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    /// A whole conversation.
    #[arg(long, value_name = "NAME")]
    session: Option<String>,
    /// What came from this message id or commit.
    #[arg(long, value_name = "ID")]
    source: Option<String>,
    /// The best matches, at most 20.
    #[arg(long, value_name = "TEXT")]
    query: Option<String>,
}

#[derive(clap::Args)]
pub struct ForgetArgs {
    #[command(flatten)]
    what: What,
    /// Remove for good; cannot be undone.
    #[arg(long)]
    purge: bool,
    /// Only say what would be forgotten.
    #[arg(long)]
    dry_run: bool,
}

#[derive(clap::Args)]
pub struct UndoArgs {
    /// The operation that `tiro forget` named; the last one if left out.
    #[arg(default_value = "last")]
    operation: String,
    /// Only say what would come back.
    #[arg(long)]
    dry_run: bool,
}

/// Forgets and says exactly what.
pub async fn forget(engine: &Engine, args: ForgetArgs, out: Out) -> Result<ExitCode> {
    let What { ids, session, source, query } = args.what;
    let args = forget_context::Args {
        ids: Some(ids).filter(|ids| !ids.is_empty()),
        session_id: session,
        source,
        query,
        undo: None,
        purge: Some(args.purge),
        dry_run: Some(args.dry_run),
    };
    let output = forget_context::run(engine, args).await?;
    out.answer(&output, &output.text())
}

/// Brings back what was forgotten.
pub async fn undo(engine: &Engine, args: UndoArgs, out: Out) -> Result<ExitCode> {
    let args = forget_context::Args {
        undo: Some(args.operation),
        dry_run: Some(args.dry_run),
        ..forget_context::Args::default()
    };
    let output = forget_context::run(engine, args).await?;
    out.answer(&output, &output.text())
}
