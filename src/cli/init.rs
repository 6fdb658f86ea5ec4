//! `tiro init`: live beside the clients that are here.

use std::io::{BufRead, IsTerminal};
use std::process::ExitCode;

use super::{Out, import, print};
use crate::engine::Engine;
use crate::envelope;
use crate::error::{Error, Result};
use crate::tools::common::counted;
use crate::tools::import_git;
use crate::tools::init::{self, Prepared};

#[derive(clap::Args)]
pub struct Args {
    /// Don't ask
    #[arg(long, short)]
    yes: bool,
    /// Show what would be written and captured, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// Don't import what there is already
    #[arg(long)]
    no_backfill: bool,
    /// Take back everything that was written
    #[arg(long, conflicts_with_all = ["no_backfill", "dry_run"])]
    remove: bool,
}

/// Shows, asks, writes, and imports the past.
pub async fn run(engine: &Engine, args: Args, out: Out) -> Result<ExitCode> {
    if args.remove {
        return remove(engine, out).await;
    }
    let prepared = init::prepare(engine).await?;
    prepared.something()?;
    print::aside(&prepared.text());
    if args.dry_run {
        return Ok(ExitCode::SUCCESS);
    }
    let is_new = !prepared.plan.changes.is_empty();
    if is_new && !args.yes && !asked("Write this?", false)? {
        return out.line("Nothing was changed.").map(|()| ExitCode::SUCCESS);
    }
    let output = init::apply(engine, &prepared)?;
    let code = out.answer(&output, &output.text())?;
    let is_left = !prepared.backfill.is_empty();
    if is_left && !args.no_backfill && (args.yes || asked("Import this now?", true)?) {
        backfill(engine, &prepared, out).await?;
    } else if is_left {
        print::aside(&prepared.backfill.declined());
    }
    init::follow_commits(engine).await?;
    Ok(code)
}

async fn remove(engine: &Engine, out: Out) -> Result<ExitCode> {
    let removed = init::remove(engine).await?;
    let mut text = format!(
        "Restored {}, took our entries out of {}. What is remembered stays.",
        counted(removed.restored.len(), "file", "files"),
        counted(removed.edited.len(), "file that was changed since", "files that were changed since"),
    );
    if !removed.swept.is_empty() {
        let files = counted(removed.swept.len(), "file", "files");
        text += &format!("\nTook what is ours beyond doubt out of {files} that nothing was recorded of.");
    }
    for note in &removed.notes {
        text += &format!("\n{note}");
    }
    for finding in &removed.findings {
        text += &format!(
            "\nLeft alone: {}: {}; {}",
            envelope::one_line(&finding.path.to_string_lossy()),
            finding.found,
            finding.mend
        );
    }
    out.answer(&removed, &text)
}

async fn backfill(engine: &Engine, prepared: &Prepared, out: Out) -> Result<()> {
    if prepared.backfill.git {
        import::git(engine, import_git::Args { threads: 2, ..Default::default() }, out).await?;
    }
    for held in &prepared.backfill.sessions {
        import::sessions(engine, held.client, Vec::new(), out).await?;
    }
    Ok(())
}

/// Asks on the terminal, where Enter alone says what `default` does; errors where there is no terminal.
fn asked(question: &str, default: bool) -> Result<bool> {
    if !std::io::stdin().is_terminal() {
        return Err(Error::bad_input("there is nobody to ask").hint("say --yes, or --dry-run to look only"));
    }
    print::aside(&format!("{question} {} ", if default { "[Y/n]" } else { "[y/N]" }));
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer).unwrap_or_default();
    Ok(match answer.trim().to_lowercase().as_str() {
        // Nothing at all is not Enter: the input ended.
        "" => default && read > 0,
        answer => matches!(answer, "y" | "yes"),
    })
}
