//! `tiro init`: connects Tiro to the agents installed on this machine.

use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::Arc;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use super::import;
use crate::cli::ask::{answer, confirmed};
use crate::cli::print::{self, Out};
use tiro_base::envelope;
use tiro_base::error::Result;
use tiro_base::humanize::counted;
use tiro_capture::clients::mcp::{McpClient, Pasted};
use tiro_capture::spool::capture::Scope;
use tiro_host::caller::{Caller, WritingCaller};
use tiro_host::engine::Engine;
use tiro_tools::operate::import_git;
use tiro_tools::operate::init::{self, Others, Prepared, named};

/// The arguments of `tiro init`.
#[derive(clap::Args)]
pub struct Args {
    /// Don't ask for confirmation; with --remove, keep what other repositories need
    #[arg(long, short)]
    yes: bool,
    /// Print what would be written and captured, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Don't import past sessions and commits
    #[arg(long)]
    no_backfill: bool,
    /// Capture every project on this machine, or only projects for which capture was chosen [default: the choice
    /// made before, else machine]
    #[arg(long, value_enum)]
    scope: Option<ScopeName>,
    /// Don't let agents call the tools that only read without asking
    #[arg(long)]
    ask_before_tools: bool,
    /// Connect this client instead of the agents installed on this machine; can be given several times
    #[arg(long, value_name = "NAME", value_parser = clients(), conflicts_with_all = ["no_backfill", "scope", "ask_before_tools"])]
    client: Vec<McpClient>,
    /// Remove everything that Tiro wrote, but ask before removing the hooks of other repositories
    #[arg(long, conflicts_with_all = ["no_backfill", "dry_run", "scope", "ask_before_tools", "client"])]
    remove: bool,
    /// With --remove: also remove what other repositories need, without asking
    #[arg(long, requires = "remove")]
    all: bool,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum ScopeName {
    Machine,
    Project,
}

impl ScopeName {
    fn scope(self) -> Scope {
        match self {
            ScopeName::Machine => Scope::Machine,
            ScopeName::Project => Scope::Project,
        }
    }
}

/// Returns the parser of the names of clients.
fn clients() -> impl TypedValueParser<Value = McpClient> {
    let values = McpClient::all().map(|client| PossibleValue::new(client.word()).help(client.name()));
    PossibleValuesParser::new(values)
        .map(|word| McpClient::of(&word).expect("the parser accepts only the words of clients"))
}

/// The question about the optional changes of the plan.
const ALLOW: &str = "Write what is offered, too, so that the agents need not ask you each time?";
/// The question about the transcripts of Claude Code.
const KEEP: &str = "Let Claude Code keep transcripts for ten years?";

/// Shows the changes, asks for confirmation, writes the changes, and imports the history.
pub async fn run(engine: &Arc<Engine>, caller: &WritingCaller, args: Args, out: Out) -> Result<ExitCode> {
    if args.remove {
        return remove(engine, caller, args.all, args.yes, out).await;
    }
    if !args.client.is_empty() {
        return connect(engine, caller, &args, out).await;
    }
    let reading = if args.ask_before_tools { Vec::new() } else { tiro_tools::reading(engine) };
    let mut prepared = init::prepare(engine, caller, args.scope.map(ScopeName::scope), &reading).await?;
    prepared.require_client()?;
    print::explain(&prepared.text());
    if args.dry_run {
        return Ok(ExitCode::SUCCESS);
    }
    if prepared.is_new() && !args.yes {
        // Ask for the scope unless it is given as an argument or was chosen before.
        let asks_for_scope =
            args.scope.is_none() && prepared.scope_before.is_none() && prepared.project.is_some();
        let agreed = match asks_for_scope {
            false => confirmed("Write this?", false)?,
            true => {
                match answer("Write this? [y] for every project, [p] for this project only, [N] not at all")?
                    .as_str()
                {
                    "p" | "project" => {
                        prepared.scope = Scope::Project;
                        true
                    }
                    answer => matches!(answer, "y" | "yes"),
                }
            }
        };
        if !agreed {
            return out.line("Nothing was changed.").map(|()| ExitCode::SUCCESS);
        }
    }
    if !prepared.plan.offers.is_empty() && (args.yes || confirmed(ALLOW, true)?) {
        prepared.accept_offers();
    }
    let mut output = init::apply(engine, &prepared)?;
    if prepared.short_retention().is_some()
        && (args.yes || (std::io::stdin().is_terminal() && confirmed(KEEP, true)?))
    {
        let applied = init::keep_transcripts(engine)?;
        output.written.extend(applied.written);
        output.findings.extend(applied.findings);
    }
    init::choose_project(engine, caller, &prepared).await?;
    // From here on, new commits are imported. This step comes before the next question, because that may never be
    // answered, and before the import, because that may fail.
    init::follow_commits(engine, caller, &prepared).await?;
    let code = out.answer(&output, &output.text())?;
    let can_import = !prepared.backfill.is_empty();
    if can_import && !args.no_backfill && (args.yes || confirmed("Import this now?", true)?) {
        backfill(engine, caller, &prepared, out).await?;
    } else if can_import {
        print::aside(&prepared.backfill.declined());
    }
    next(&output.next);
    Ok(code)
}

/// Connects the named clients: shows the changes, asks for confirmation, and writes them.
async fn connect(engine: &Engine, caller: &Caller, args: &Args, out: Out) -> Result<ExitCode> {
    let prepared = named::prepare(engine, caller, &args.client).await?;
    print::explain(&prepared.text());
    if args.dry_run {
        return paste(prepared.pasted(), out).map(|()| ExitCode::SUCCESS);
    }
    if prepared.is_new() && !args.yes && !confirmed("Write this?", false)? {
        return out.line("Nothing was changed.").map(|()| ExitCode::SUCCESS);
    }
    let output = named::apply(engine, &prepared)?;
    let text = output.text();
    if out.json || !text.is_empty() {
        out.answer(&output, &text)?;
    }
    if !out.json {
        paste(&output.paste, out)?;
    }
    next(&output.next);
    Ok(if output.is_refused { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Prints the texts to paste on stdout, so that they can be copied as they are, and their places on stderr.
fn paste(texts: &[Pasted], out: Out) -> Result<()> {
    for pasted in texts {
        print::explain(&named::heading(pasted));
        pasted.text.lines().try_for_each(|line| out.line(line))?;
    }
    Ok(())
}

/// Prints the next steps for the user.
fn next(steps: &[String]) {
    if !steps.is_empty() {
        print::explain(&format!(
            "Next:\n{}",
            steps.iter().map(|line| format!("  {line}\n")).collect::<String>()
        ));
    }
}

async fn remove(engine: &Engine, caller: &Caller, mut all: bool, yes: bool, out: Out) -> Result<ExitCode> {
    let mut others = init::others(engine, caller).await?;
    let is_empty = others.hooks.is_empty() && others.projects.is_empty();
    if !all && !is_empty {
        print::explain(&others.text());
        all = !yes && std::io::stdin().is_terminal() && confirmed("Remove Tiro from these, too?", false)?;
    }
    if all {
        others = Others::default();
    }
    let removed = init::remove(engine, caller, &others).await?;
    let mut text = format!(
        "Restored {}, removed Tiro's entries from {}. The memories stay.",
        counted(removed.restored.len(), "file", "files"),
        counted(removed.edited.len(), "file that was edited since", "files that were edited since"),
    );
    if !removed.swept.is_empty() {
        let files = counted(removed.swept.len(), "file", "files");
        text += &format!("\nRemoved Tiro's entries from {files}; their former content is not recorded.");
    }
    if !removed.kept.is_empty() {
        let stay = match removed.kept.len() {
            1 => "1 hook of other repositories stays: `tiro init --remove --all` removes it, too".to_owned(),
            count => {
                format!(
                    "{count} hooks of other repositories stay: `tiro init --remove --all` removes them, too"
                )
            }
        };
        text += &format!("\n{stay}.");
    }
    for note in &removed.notes {
        text += &format!("\n{note}");
    }
    for finding in &removed.findings {
        text += &format!(
            "\nNot changed: {}: {}; {}",
            envelope::one_line(&finding.path.to_string_lossy()),
            finding.found,
            finding.mend
        );
    }
    out.answer(&removed, &text)
}

async fn backfill(engine: &Engine, caller: &WritingCaller, prepared: &Prepared, out: Out) -> Result<()> {
    if prepared.backfill.git {
        import::git(engine, caller, import_git::Args { threads: 2, ..Default::default() }, out).await?;
    }
    for held in &prepared.backfill.sessions {
        import::sessions(engine, caller, held.client, Vec::new(), out).await?;
    }
    Ok(())
}
