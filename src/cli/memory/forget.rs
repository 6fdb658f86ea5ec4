//! `tiro forget` and `tiro undo`: forget memories, and restore them.

use std::io::IsTerminal;
use std::process::ExitCode;

use crate::cli::ask::confirmed;
use crate::cli::flags;
use crate::cli::print::{self, Out};
use tiro_base::error::Result;
use tiro_host::caller::WritingCaller;
use tiro_host::engine::Engine;
use tiro_tools::memory::{forget_context, named};

/// The memories to forget. The command line gives exactly one of these fields.
#[derive(clap::Args)]
#[group(required = true, multiple = false, id = "what")]
pub struct What {
    /// Ids of memories
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    /// A whole conversation, by name
    #[arg(long, value_name = "NAME")]
    session: Option<String>,
    /// The memories of the message or commit with this id
    #[arg(long, value_name = "ID")]
    source: Option<String>,
    /// Up to 20 memories that match this text best
    #[arg(long, value_name = "TEXT")]
    query: Option<String>,
}

/// The arguments of `tiro forget`.
#[derive(clap::Args)]
pub struct ForgetArgs {
    #[command(flatten)]
    what: What,
    /// Delete permanently; cannot be undone
    #[arg(long)]
    purge: bool,
    /// Print what would be forgotten, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Forget what --query matches without showing it first
    #[arg(long)]
    yes: bool,
}

/// The arguments of `tiro undo`.
#[derive(clap::Args)]
pub struct UndoArgs {
    /// The operation, as `tiro forget` printed it
    #[arg(default_value = "last")]
    operation: String,
    /// Print what would be restored, and change nothing
    #[arg(long)]
    dry_run: bool,
}

/// Forgets memories and prints them. On a terminal, the memories that match a query are shown before they are
/// forgotten.
pub async fn forget(engine: &Engine, caller: &WritingCaller, args: ForgetArgs, out: Out) -> Result<ExitCode> {
    let asks = args.what.query.is_some() && !args.dry_run && !args.yes && std::io::stdin().is_terminal();
    let mut wanted = asked(engine, caller, args).await?;
    if asks {
        let dry = forget_context::Args { dry_run: Some(true), ..wanted.clone() };
        let shown = forget_context::run(engine, caller, dry).await?;
        print::aside(&format!("{}\n", shown.text()));
        let question = if wanted.purge == Some(true) { "Delete this for good?" } else { "Forget this?" };
        if shown.count == 0 || !confirmed(question, false)? {
            return Ok(ExitCode::SUCCESS);
        }
        // A second search might find other memories than the ones that were shown, so their ids are used.
        wanted = forget_context::Args { query: None, ids: Some(shown.ids), ..wanted };
    }
    let output = forget_context::run(engine, caller, wanted).await?;
    let text = flags::as_command(output.text(), "undo", "tiro undo", output.operation.as_deref());
    out.answer(&output, &text)
}

async fn asked(engine: &Engine, caller: &WritingCaller, args: ForgetArgs) -> Result<forget_context::Args> {
    let What { ids, session, source, query } = args.what;
    let ids = named::all_in_full(engine, caller, &ids).await?;
    let session = named::optional_session(engine, caller, session).await?;
    Ok(forget_context::Args {
        ids: Some(ids).filter(|ids| !ids.is_empty()),
        session_id: session,
        source,
        query,
        undo: None,
        purge: Some(args.purge),
        dry_run: Some(args.dry_run),
    })
}

/// Restores forgotten memories and prints them.
pub async fn undo(engine: &Engine, caller: &WritingCaller, args: UndoArgs, out: Out) -> Result<ExitCode> {
    let args = forget_context::Args {
        undo: Some(args.operation),
        dry_run: Some(args.dry_run),
        ..forget_context::Args::default()
    };
    let output = forget_context::run(engine, caller, args).await?;
    out.answer(&output, &output.text())
}
