//! The command line. This module reads arguments, calls an operation and prints the answer. Each subcommand has a file.
//!
//! `--json` prints the answer as JSON on stdout. Everything else goes to stderr: progress, notes, and errors with
//! their hints. With `--json`, an error and its hint are one JSON object. The exit code is 2 if the arguments are wrong,
//! and 1 after any other error.

mod ask;
mod consult;
mod exchange;
mod flags;
mod look;
mod memory;
mod operate;
mod print;
mod programs;
mod progress;
mod setup;
mod team;
mod terminal;
mod trial;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use consult::chat;
use exchange::{connect, sync};
use look::{context, find, list, log, search, sessions, show, why};
use memory::{add, backup, edit, export, forget, mark, stash, summarize};
use operate::{bench, extract_text, gc, hook, index, open, serve, stats};
use print::Out;
use setup::{completions, demo, doctor, import, init, man, model, pause, projects, provider};
use team::{audit, share, teams, user};
use tiro_base::error::{self, Context, Kind, Result};
use tiro_base::times;
use tiro_host::caller::WritingCaller;
use tiro_host::config::{Config, DatabaseUrl, build};
use tiro_host::engine::Engine;
use tiro_host::idle::later;
#[cfg(feature = "team")]
use tiro_postgres::{Databases, PostgresStores};
use tiro_sqlite::SqliteFiles;
use tiro_store::Stores;
#[cfg(feature = "team")]
use tiro_valkey::Valkey;

/// A memory for coding agents: MCP server and command line.
#[derive(Parser)]
#[command(name = "tiro", version = build::description(), about, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    common: Common,
}

/// The arguments of every subcommand.
#[derive(clap::Args)]
struct Common {
    /// Use the project of this repository or directory [default: that of the working directory]
    #[arg(long, global = true, value_name = "DIR")]
    project: Option<PathBuf>,
    /// Keep the memory in this PostgreSQL database instead of files; TIRO_DATABASE names it without showing a password
    /// to other programs
    #[arg(long, global = true, value_name = "URL")]
    database: Option<String>,
    /// Print the answer as JSON
    #[arg(long, global = true)]
    json: bool,
    /// When to colour the output
    #[arg(long, global = true, value_enum, default_value = "auto", value_name = "WHEN")]
    color: print::Color,
    /// Set an option for this run, such as context.max_tokens=2000; overrides environment variables and the
    /// configuration file
    #[arg(long, global = true, value_name = "KEY=VALUE", value_parser = key_and_value)]
    set: Vec<(String, String)>,
}

fn key_and_value(text: &str) -> std::result::Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("expected KEY=VALUE")?;
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}

#[derive(Subcommand)]
enum Command {
    /// Build a memory of a repository and a conversation, and answer questions from it
    Demo(demo::Args),
    /// Serve the tools over MCP, on stdin and stdout for a client that starts it, or over HTTP
    Serve(serve::Args),
    /// Show what is remembered in the browser
    Open(open::Args),
    /// Connect Tiro to the agents installed on this machine, and import their past sessions
    Init(init::Args),
    /// Import commits or past sessions into the project's memory
    Import(import::Args),
    /// Search the project's memory
    Search(search::Args),
    /// Search while you type, in the terminal; open, mark and forget what is found
    Find(find::Args),
    /// List memories, the latest first
    List(list::Args),
    /// List sessions and commits by day
    Log(log::Args),
    /// Say why lines of a file are as they are
    Why(why::Args),
    /// Ask a configured model about files of the project, in a thread that lasts
    Chat(chat::Args),
    /// Print the context that an agent gets to answer a question
    Context(context::Args),
    /// Show a memory, a commit, a conversation or a summary, with the memories linked to it
    Show(show::Args),
    /// Store a fact, a decision or another text
    Add(add::Args),
    /// Edit a memory in your editor; the new text replaces the old one, which is kept
    Edit(edit::Args),
    /// Mark memories as important, so that they rank higher; --off removes the mark
    Mark(mark::Args),
    /// Summarise a conversation, all conversations, or commits
    Summarize(summarize::Args),
    /// List the project's conversations
    Sessions(sessions::Args),
    /// List, search or export what is stashed, and bring it back
    Stash(stash::Args),
    /// List, move, link, merge or remove projects
    Projects(projects::Args),
    /// Count what the project's memory holds
    Stats,
    /// Compute the missing embeddings
    Index(index::Args),
    /// Forget memories; `tiro undo` restores them
    Forget(forget::ForgetArgs),
    /// Restore the memories that were forgotten last, or by an earlier operation
    Undo(forget::UndoArgs),
    /// Delete expired cache entries and unused data, but no memory
    Gc(gc::Args),
    /// Stop remembering sessions until `tiro resume`
    Pause(pause::Args),
    /// Remember sessions again
    Resume(pause::Args),
    /// Copy the project's memory to a file
    Backup(backup::BackupArgs),
    /// Merge a backup into the project's memory
    Restore(backup::RestoreArgs),
    /// Print every memory of the project, one JSON object per line
    Export(export::Args),
    /// Check the installation, and say how to fix each fault
    Doctor,
    /// Install or list embedding models
    Model(model::Args),
    /// Configure the providers of models, and show what is sent to them and what it costs
    Provider(provider::Args),
    /// Make, list and revoke the personal keys of those who use your server over HTTP
    User(user::Args),
    /// Make, list and change teams, with which projects can be shared
    Team(teams::Args),
    /// Share a project with a team, or list what is shared
    Share(share::Args),
    /// Show who did what with whose memories over HTTP
    Audit(audit::Args),
    /// Connect the project with the server of your team, or show the connection
    Connect(connect::Args),
    /// Exchange memories with the server now
    Sync(sync::Args),
    /// Record an event of a client or of git; their hooks run this command
    #[command(hide = true)]
    Hook(hook::Args),
    /// Extract the text of a document from stdin; Tiro runs this command to parse documents apart
    #[command(hide = true)]
    ExtractText(extract_text::Args),
    /// Print shell completions
    Completions(completions::Args),
    /// Print the manual page of a subcommand, or write all pages
    Man(man::Args),
    /// Time parts of the program on given data, for the evals
    #[command(hide = true)]
    Bench(bench::Args),
}

/// Runs the command line and returns the exit code.
pub fn main() -> ExitCode {
    error::redact_by(tiro_redact::without_secrets);
    let command_line = Cli::command();
    let read = command_line.clone().try_get_matches();
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
            let command = matches.subcommand_name().and_then(|name| command_line.find_subcommand(name));
            print::failure(&error, command, out);
            if error.kind() == Kind::BadInput { ExitCode::from(2) } else { ExitCode::FAILURE }
        }
    }
}

/// Returns whether `--json` is among the arguments. Used for a command line that can't be parsed.
fn wants_json() -> bool {
    std::env::args_os().skip(1).take_while(|word| word != "--").any(|word| word == "--json")
}

/// Removes hidden subcommands from clap's suggestions for an unknown subcommand.
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

/// Returns the command line without its hidden subcommands, so that completions and manual pages don't name them.
fn shown() -> clap::Command {
    let whole = Cli::command();
    clap::Command::new("tiro")
        .version(build::version())
        .about(whole.get_about().cloned().unwrap_or_default())
        .propagate_version(true)
        .subcommand_required(true)
        .args(whole.get_arguments())
        .subcommands(whole.get_subcommands().filter(|command| !command.is_hide_set()).cloned())
}

fn run(cli: Cli, out: Out) -> Result<ExitCode> {
    let Cli { command, common } = cli;
    match command {
        Command::Completions(args) => return completions::run(args, shown(), out),
        Command::Man(args) => return man::run(args, shown(), out),
        Command::Hook(args) => return Ok(hook::run(args, common.project.as_deref())),
        Command::ExtractText(args) => return Ok(extract_text::run(&args)),
        _ => {}
    }
    let mut config = Config::from_environment(common.project.as_deref(), common.set)?;
    // `tiro doctor` reports an invalid configuration as one of its checks. Other commands stop here.
    if !matches!(command, Command::Doctor)
        && let Some(fault) = config.fault.take()
    {
        return Err(Arc::into_inner(fault).expect("the configuration is the only owner"));
    }
    print::log(&config.log);
    programs::choose_pager(&config);
    times::use_zone(&config.options.zone);
    let given = common.database.map(DatabaseUrl);
    // The database ends when this is dropped, after everything that uses it.
    let _trial = match &command {
        Command::Serve(args) => args.trial(&mut config, given.is_some())?,
        _ => None,
    };
    config.database = given.or(config.database);
    let caller = WritingCaller::of_process(&config);
    let stores = stores(&config)?;
    let engine = Arc::new(Engine::new(config, stores));
    match command {
        // The server starts its own runtime.
        Command::Serve(args) => return serve::run(engine, caller, args, out),
        Command::Open(args) => return open::run(engine, caller, args, out),
        Command::Bench(args) => return bench::run(&engine, args),
        _ => {}
    }
    let caller = Arc::new(caller);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context(Kind::Io, || "cannot start".to_owned())?;
    let done = runtime.block_on(async {
        let done = perform(command, &engine, &caller, out).await;
        later::after_a_command(&engine, &caller).await;
        done
    });
    if let Some(news) = caller.take_news(&engine) {
        print::aside(&format!("note: {news}\n"));
    }
    caller.close();
    engine.close();
    done
}

/// Returns the stores of the installation: those in the database that the user names, or files.
///
/// Errors with [`Kind::BadInput`] if the address of the database is not understood.
fn stores(config: &Config) -> Result<Arc<dyn Stores>> {
    match &config.database {
        None => Ok(Arc::new(SqliteFiles::new(config.data_dir.clone()))),
        #[cfg(feature = "team")]
        Some(DatabaseUrl(url)) => {
            let databases = Databases::at(url)?;
            let valkey = config.valkey.as_ref().map(|DatabaseUrl(url)| Valkey::at(url)).transpose()?;
            let databases = match &valkey {
                Some(valkey) => databases.with_cache(valkey),
                None => databases,
            };
            Ok(Arc::new(PostgresStores::new(databases)))
        }
        #[cfg(not(feature = "team"))]
        Some(_) => Err(error::Error::bad_input("this Tiro was built without PostgreSQL")
            .hint("build it with the feature `team`, or leave `--database` and TIRO_DATABASE out")),
    }
}

/// Runs a subcommand that needs the runtime.
async fn perform(
    command: Command,
    engine: &Arc<Engine>,
    caller: &Arc<WritingCaller>,
    out: Out,
) -> Result<ExitCode> {
    match command {
        Command::Demo(args) => demo::run(engine, caller, args, out).await,
        Command::Init(args) => init::run(engine, caller, args, out).await,
        Command::Import(args) => import::run(engine, caller, args, out).await,
        Command::Search(args) => search::run(engine, caller, args, out).await,
        Command::Find(args) => find::run(engine, caller, args, out).await,
        Command::List(args) => list::run(engine, caller, args, out).await,
        Command::Log(args) => log::run(engine, caller, args, out).await,
        Command::Why(args) => why::run(engine, caller, args, out).await,
        Command::Chat(args) => chat::run(engine, caller, args, out).await,
        Command::Context(args) => context::run(engine, caller, args, out).await,
        Command::Show(args) => show::run(engine, caller, args, out).await,
        Command::Add(args) => add::run(engine, caller, args, out).await,
        Command::Edit(args) => edit::run(engine, caller, args, out).await,
        Command::Mark(args) => mark::run(engine, caller, args, out).await,
        Command::Summarize(args) => summarize::run(engine, caller, args, out).await,
        Command::Sessions(args) => sessions::run(engine, caller, args, out).await,
        Command::Stash(args) => stash::run(engine, caller, args, out).await,
        Command::Projects(args) => projects::run(engine, caller, args, out).await,
        Command::Stats => stats::run(engine, caller, out).await,
        Command::Index(args) => index::run(engine, caller, args, out).await,
        Command::Forget(args) => forget::forget(engine, caller, args, out).await,
        Command::Undo(args) => forget::undo(engine, caller, args, out).await,
        Command::Gc(args) => gc::run(engine, caller, args, out).await,
        Command::Pause(args) => pause::run(engine, caller, args, true, out).await,
        Command::Resume(args) => pause::run(engine, caller, args, false, out).await,
        Command::Backup(args) => backup::back_up(engine, caller, args, out).await,
        Command::Restore(args) => backup::restore(engine, caller, args, out).await,
        Command::Export(args) => export::run(engine, caller, args).await,
        Command::Doctor => doctor::run(engine, caller, out).await,
        Command::Model(args) => model::run(engine, args, out).await,
        Command::Provider(args) => provider::run(engine, caller, args, out).await,
        Command::User(args) => user::run(engine, args, out).await,
        Command::Team(args) => teams::run(engine, args, out).await,
        Command::Share(args) => share::run(engine, args, out).await,
        Command::Audit(args) => audit::run(engine, args, out).await,
        Command::Connect(args) => connect::run(engine, caller, args, out).await,
        Command::Sync(args) => sync::run(engine, caller, args, out).await,
        Command::Serve(_)
        | Command::Open(_)
        | Command::Bench(_)
        | Command::Completions(_)
        | Command::Man(_)
        | Command::ExtractText(_)
        | Command::Hook(_) => unreachable!("handled above"),
    }
}
