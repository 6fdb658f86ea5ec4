//! The command line: reads arguments, calls an operation, prints its answer. One file per subcommand.
//!
//! `--json` prints the answer as data on stdout; everything else that is said goes to stderr. An error prints what
//! happened and what to try on stderr, with `--json` as an object, and exits with 1; wrong usage exits with 2.

mod add;
mod backup;
mod bench;
mod completions;
mod context;
mod demo;
mod doctor;
mod export;
mod flags;
mod forget;
mod gc;
mod hook;
mod import;
mod index;
mod init;
mod man;
mod mark;
mod model;
mod pause;
mod print;
mod progress;
mod projects;
mod provider;
mod search;
mod serve;
mod sessions;
mod show;
mod stats;
mod summarize;
mod terminal;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::config::Config;
use crate::engine::Engine;
use crate::error::{Context, Kind, Result};
use print::Out;

/// A memory for coding agents: MCP server and command line.
#[derive(Parser)]
#[command(name = "tiro", version, about, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    common: Common,
}

/// What every subcommand takes.
#[derive(clap::Args)]
struct Common {
    /// The project: a repository or a directory; the one around the working directory if left out.
    #[arg(long, global = true, value_name = "DIR")]
    project: Option<PathBuf>,
    /// Print the answer as JSON.
    #[arg(long, global = true)]
    json: bool,
    /// When to colour what is printed.
    #[arg(long, global = true, value_enum, default_value = "auto", value_name = "WHEN")]
    color: print::Color,
    /// Set an option for this run, such as context.max_tokens=2000; it goes before variables and the file.
    #[arg(long, global = true, value_name = "KEY=VALUE", value_parser = key_and_value)]
    set: Vec<(String, String)>,
}

fn key_and_value(text: &str) -> std::result::Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("it is not KEY=VALUE")?;
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}

#[derive(Subcommand)]
enum Command {
    /// Build a memory of a repository and of a conversation, and ask it questions.
    Demo(demo::Args),
    /// Serve the tools over MCP on stdin and stdout; clients start this.
    Serve(serve::Args),
    /// Connect Tiro to the agents installed on this machine, and import their past sessions.
    Init(init::Args),
    /// Import a history into the project's memory.
    Import(import::Args),
    /// Search the project's memory.
    Search(search::Args),
    /// Assemble what an agent needs to answer a question.
    Context(context::Args),
    /// Show a memory, a commit, a conversation or a summary, with what belongs to it.
    Show(show::Args),
    /// Store a fact, a decision or a piece of text.
    Add(add::Args),
    /// Mark memories as important, so that they rank higher; --off takes the mark away.
    Mark(mark::Args),
    /// Summarise a conversation, all of them, or commits.
    Summarize(summarize::Args),
    /// List the project's conversations.
    Sessions(sessions::Args),
    /// List the projects, say where one moved, or join two.
    Projects(projects::Args),
    /// Say how much the project remembers.
    Stats,
    /// Compute the missing embeddings.
    Index(index::Args),
    /// Forget memories; `tiro undo` brings them back.
    Forget(forget::ForgetArgs),
    /// Bring back what was forgotten last, or by the operation named.
    Undo(forget::UndoArgs),
    /// Delete expired cache entries and unused data; nothing that was said, stored or committed.
    Gc(gc::Args),
    /// Remember nothing of sessions until `tiro resume`.
    Pause(pause::Args),
    /// Let sessions be remembered again.
    Resume(pause::Args),
    /// Copy the project's memory to a file.
    Backup(backup::BackupArgs),
    /// Merge such a file into the project's memory.
    Restore(backup::RestoreArgs),
    /// Print every memory of the project, one JSON object a line.
    Export(export::Args),
    /// Check the installation, and say how to mend what is wrong.
    Doctor,
    /// Install or list embedding models.
    Model(model::Args),
    /// Name the models that may be asked, and see what leaves the machine for them and what it costs.
    Provider(provider::Args),
    /// What the hooks of clients and of git run.
    #[command(hide = true)]
    Hook(hook::Args),
    /// Print shell completions.
    Completions(completions::Args),
    /// Print the manual of a subcommand, or of all
    Man(man::Args),
    /// Time parts of the program on given data; for the evals.
    #[command(hide = true)]
    Bench(bench::Args),
}

/// Runs the command line and returns the exit code.
pub fn main() -> ExitCode {
    let whole = Cli::command();
    let read = whole.clone().try_get_matches();
    let read = read.and_then(|matches| Ok((Cli::from_arg_matches(&matches)?, matches)));
    let (cli, matches) = match read {
        Ok(read) => read,
        Err(error) => return print::usage(without_hidden(error), Out { json: wants_json() }),
    };
    let out = Out { json: cli.common.json };
    cli.common.color.choose();
    match run(cli, out) {
        Ok(code) => code,
        Err(error) => {
            let command = matches.subcommand_name().and_then(|name| whole.find_subcommand(name));
            print::failure(&error, command, out);
            ExitCode::FAILURE
        }
    }
}

/// Tells whether an answer in JSON was asked for on a command line that can't be read otherwise.
fn wants_json() -> bool {
    std::env::args_os().skip(1).take_while(|word| word != "--").any(|word| word == "--json")
}

/// Takes the subcommands that are hidden out of what clap suggests in the place of one it doesn't know.
fn without_hidden(mut error: clap::Error) -> clap::Error {
    let command = Cli::command();
    let is_hidden = |name: &String| command.find_subcommand(name).is_some_and(clap::Command::is_hide_set);
    let suggested = error.remove(ContextKind::SuggestedSubcommand);
    if let Some(ContextValue::Strings(mut names)) = suggested {
        names.retain(|name| !is_hidden(name));
        if !names.is_empty() {
            error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(names));
        }
    }
    error
}

/// Returns the command line as users are shown it: completions and manual pages would name what is hidden.
fn shown() -> clap::Command {
    let whole = Cli::command();
    clap::Command::new("tiro")
        .version(env!("CARGO_PKG_VERSION"))
        .about(whole.get_about().cloned().unwrap_or_default())
        .propagate_version(true)
        .subcommand_required(true)
        .args(whole.get_arguments())
        .subcommands(whole.get_subcommands().filter(|command| !command.is_hide_set()).cloned())
}

fn run(cli: Cli, out: Out) -> Result<ExitCode> {
    let Cli { command, common } = cli;
    match command {
        Command::Completions(args) => return completions::run(args, out),
        Command::Man(args) => return man::run(args, out),
        Command::Hook(args) => return Ok(hook::run(args, common.project.as_deref())),
        _ => {}
    }
    let mut config = Config::from_environment(common.project.as_deref(), common.set)?;
    // The doctor says it among other things; the others would go on without what the user wants.
    if !matches!(command, Command::Doctor)
        && let Some(fault) = config.fault.take()
    {
        return Err(Arc::into_inner(fault).expect("nobody else has it yet"));
    }
    print::log(&config.log);
    let engine = Arc::new(Engine::new(config));
    match command {
        // The server has a runtime of its own.
        Command::Serve(args) => return serve::run(engine, args),
        Command::Bench(args) => return bench::run(&engine, args),
        _ => {}
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context(Kind::Io, || "cannot start".to_owned())?;
    let done = runtime.block_on(async {
        match command {
            Command::Demo(args) => demo::run(&engine, args, out).await,
            Command::Init(args) => init::run(&engine, args, out).await,
            Command::Import(args) => import::run(&engine, args, out).await,
            Command::Search(args) => search::run(&engine, args, out).await,
            Command::Context(args) => context::run(&engine, args, out).await,
            Command::Show(args) => show::run(&engine, args, out).await,
            Command::Add(args) => add::run(&engine, args, out).await,
            Command::Mark(args) => mark::run(&engine, args, out).await,
            Command::Summarize(args) => summarize::run(&engine, args, out).await,
            Command::Sessions(args) => sessions::run(&engine, args, out).await,
            Command::Projects(args) => projects::run(&engine, args, out).await,
            Command::Stats => stats::run(&engine, out).await,
            Command::Index(args) => index::run(&engine, args, out).await,
            Command::Forget(args) => forget::forget(&engine, args, out).await,
            Command::Undo(args) => forget::undo(&engine, args, out).await,
            Command::Gc(args) => gc::run(&engine, args, out).await,
            Command::Pause(args) => pause::run(&engine, args, true, out).await,
            Command::Resume(args) => pause::run(&engine, args, false, out).await,
            Command::Backup(args) => backup::back_up(&engine, args, out).await,
            Command::Restore(args) => backup::restore(&engine, args, out).await,
            Command::Export(args) => export::run(&engine, args).await,
            Command::Doctor => doctor::run(&engine, out).await,
            Command::Model(args) => model::run(&engine, args, out).await,
            Command::Provider(args) => provider::run(&engine, args, out).await,
            Command::Serve(_)
            | Command::Bench(_)
            | Command::Completions(_)
            | Command::Man(_)
            | Command::Hook(_) => unreachable!("handled above"),
        }
    });
    if let Some(news) = engine.take_news() {
        print::aside(&format!("note: {news}\n"));
    }
    engine.close();
    done
}
