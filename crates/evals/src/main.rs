//! Measures whether Tiro keeps its promises, with the real binary and the real protocol.
//!
//! Each number in docs/measurements.md is the output of one of these commands. Each command prints a table. With
//! `--json` it also writes the figures to a file, with the version and the machine. This program does not link to
//! Tiro's library, so the commands measure what an agent gets. Three commands compare one part (encoder, token counter,
//! vector scan) with the usual Python package for it; they call hidden commands of the binary, `tiro bench`.
#![expect(clippy::disallowed_methods, reason = "it measures programs, so it starts them")]
#![expect(clippy::print_stdout, reason = "the tables are its answer")]

mod arguments;
mod assembly;
mod assistant;
mod attack;
mod backup;
mod budget;
mod calls;
mod client;
mod clients;
mod commits;
mod corpus;
mod crash;
mod embed;
mod facts;
mod frames;
mod gate;
mod hooks;
mod imported;
mod isolation;
mod join;
mod latency;
mod limits;
mod long;
mod mock;
mod nothing;
mod pack;
mod pages;
mod passages;
mod peer;
mod random;
mod read;
mod record;
mod replay;
mod resend;
mod retrieval;
mod score;
mod secrets;
mod sessions;
mod spend;
mod stash;
mod stats;
mod suite;
mod summaries;
mod talk;
mod team;
mod texts;
mod tiers;
mod tokens;
mod trees;
mod updates;
mod vectors;
mod views;
mod week;
mod words;

use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{Parser, Subcommand};
use serde_json::json;

use crate::client::{Tiro, run_to_end};
use crate::stats::Report;

/// Measure tiro through its MCP server and its command line
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// What is measured
    #[command(subcommand)]
    eval: Eval,
    /// Binary to measure [default: `tiro` beside this program]
    #[arg(long, global = true)]
    tiro: Option<PathBuf>,
    /// Directory with the embedding model [default: where `tiro model install` puts it]
    #[arg(long, global = true, env = "TIRO_MODEL_DIR")]
    model_dir: Option<PathBuf>,
    /// Keep the memory in this PostgreSQL database instead of files
    #[arg(long, global = true, value_name = "URL")]
    database: Option<String>,
    /// Longest wait for one answer, in seconds
    #[arg(long, global = true, default_value_t = 60)]
    answer_timeout: u64,
    /// File to write the figures to
    #[arg(long, global = true)]
    json: Option<PathBuf>,
}

/// The measurements, a subcommand each
#[derive(Debug, Subcommand)]
enum Eval {
    /// The answers to 500 calls and 100 command lines, to compare two versions of the program byte by byte
    Record(record::Args),
    /// How much of the evidence for questions about conversations search finds
    Retrieval(retrieval::Args),
    /// How much of the evidence a context contains within a budget
    Budget(budget::Args),
    /// How often an answer comes from the cache, and whether one is ever stale
    Replay(replay::Args),
    /// How many tokens the context of a long conversation saves, and how much evidence it keeps
    Tiers(tiers::Args),
    /// How many words of the answers to questions the summaries of sessions contain
    Summaries(summaries::Args),
    /// How many of the extracted facts annotators extracted too
    Facts(facts::Args),
    /// Whether a context shows the newest value first and marks the older ones
    Updates(updates::Args),
    /// How often Tiro says that the memory has nothing about a question, and how often that is right
    Nothing(nothing::Args),
    /// Writes a form on which a reader judges marks, facts, summaries, titles, hits or contexts, and reads the verdicts
    Read(read::Args),
    /// How much of the contexts is about the question, in a repository with its sessions
    Week(week::Args),
    /// How many true and how many false summaries by a model are accepted
    Gate(gate::Args),
    /// How often the lines of a changelog find their commits
    Commits(commits::Args),
    /// How long an import of a history takes until a search finds it
    Import(commits::ImportArgs),
    /// How long an agent waits, cold and warm, and how much memory the server uses
    Latency(latency::Args),
    /// Whether lists and counts take longer in a larger store
    Pages(pages::Args),
    /// Time and memory of a conversation of 100,000 messages and of a message of 5 MB
    Long(long::Args),
    /// Time, memory and descriptors of large texts, many calls, and clients that do not read
    Limits(limits::Args),
    /// How much of the evidence the stash brings back, and how fast it is
    Stash(stash::Args),
    /// Speed of embedding, compared with sentence-transformers
    Embed(embed::Args),
    /// Speed of counting tokens, compared with tiktoken
    Tokens(tokens::Args),
    /// Speed of vector search, compared with faiss
    Vectors(vectors::Args),
    /// How long a backup takes while a server writes
    Backup(backup::Args),
    /// Whether writes survive `kill -9`
    Crash(crash::Args),
    /// Whether real clients work with Tiro, with a mock model
    Clients(clients::Args),
    /// Whether an answer ever contains a text of another owner or project
    Isolation(isolation::Args),
    /// Latency, errors, kills, isolation, parity and memory of a team server with several replicas and PostgreSQL
    Team(team::Args),
    /// Whether hostile repositories, texts, files and models can read, change or delay anything they should not
    Attack(attack::Args),
    /// How much time hooks add to clients and to `git commit`
    Hooks(hooks::Args),
    /// How many secrets redaction finds in generated texts, files and labelled lines, what else it takes, and how fast
    Secrets(secrets::Args),
    /// Whether processes that call a paid model in parallel overspend their limit
    Spend(spend::Args),
    /// How long an import of past sessions takes until search finds them
    Sessions(sessions::Args),
    /// Whether a commit is linked to the session that led to it
    Join(join::Args),
    /// Whether search finds identifiers in their exact form, and memories in six languages
    Words(words::Args),
    /// How many tokens a thread with an assistant saves while files change, and whether a copy is ever stale
    Resend(resend::Args),
    /// How long consulting takes with many files, compared with repomix
    Pack(pack::Args),
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    let tiro = Tiro {
        program: program(&arguments)?,
        model_dir: model_dir(&arguments),
        answer_timeout: Duration::from_secs(arguments.answer_timeout),
        environment: arguments.database.iter().map(|url| ("TIRO_DATABASE".into(), url.into())).collect(),
    };
    let (name, report) = match &arguments.eval {
        Eval::Record(args) => ("record", record::run(args, &tiro)?),
        Eval::Retrieval(args) => ("retrieval", retrieval::run(args, &tiro)?),
        Eval::Budget(args) => ("budget", budget::run(args, &tiro)?),
        Eval::Replay(args) => ("replay", replay::run(args, &tiro)?),
        Eval::Tiers(args) => ("tiers", tiers::run(args, &tiro)?),
        Eval::Summaries(args) => ("summaries", summaries::run(args, &tiro)?),
        Eval::Facts(args) => ("facts", facts::run(args, &tiro)?),
        Eval::Updates(args) => ("updates", updates::run(args, &tiro)?),
        Eval::Nothing(args) => ("nothing", nothing::run(args, &tiro)?),
        Eval::Read(args) => ("read", read::run(args, &tiro)?),
        Eval::Week(args) => ("week", week::run(args, &tiro)?),
        Eval::Gate(args) => ("gate", gate::run(args, &tiro)?),
        Eval::Commits(args) => ("commits", commits::run(args, &tiro)?),
        Eval::Import(args) => ("import", commits::run_import(args, &tiro)?),
        Eval::Pages(args) => ("pages", pages::run(args, &tiro)?),
        Eval::Latency(args) => ("latency", latency::run(args, &tiro)?),
        Eval::Long(args) => ("long", long::run(args, &tiro)?),
        Eval::Limits(args) => ("limits", limits::run(args, &tiro)?),
        Eval::Embed(args) => ("embed", embed::run(args, &tiro)?),
        Eval::Tokens(args) => ("tokens", tokens::run(args, &tiro)?),
        Eval::Vectors(args) => ("vectors", vectors::run(args, &tiro)?),
        Eval::Backup(args) => ("backup", backup::run(args, &tiro)?),
        Eval::Crash(args) => ("crash", crash::run(args, &tiro)?),
        Eval::Clients(args) => ("clients", clients::run(args, &tiro)?),
        Eval::Isolation(args) => ("isolation", isolation::run(args, &tiro)?),
        Eval::Team(args) => ("team", team::run(args, &tiro)?),
        Eval::Attack(args) => ("attack", attack::run(args, &tiro)?),
        Eval::Hooks(args) => ("hooks", hooks::run(args, &tiro)?),
        Eval::Secrets(args) => ("secrets", secrets::run(args, &tiro)?),
        Eval::Spend(args) => ("spend", spend::run(args, &tiro)?),
        Eval::Stash(args) => ("spend", stash::run(args, &tiro)?),
        Eval::Sessions(args) => ("sessions", sessions::run(args, &tiro)?),
        Eval::Join(args) => ("join", join::run(args, &tiro)?),
        Eval::Words(args) => ("words", words::run(args, &tiro)?),
        Eval::Resend(args) => ("resend", resend::run(args, &tiro)?),
        Eval::Pack(args) => ("pack", pack::run(args, &tiro)?),
    };
    report.print();
    if let Some(path) = &arguments.json {
        write_json(path, name, &report, &tiro)?;
    }
    Ok(if report.broken { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Returns the path of the binary to measure. The path is absolute because measurements start the binary in other
/// directories.
fn program(arguments: &Arguments) -> Result<PathBuf> {
    let program = match &arguments.tiro {
        Some(program) => std::path::absolute(program)?,
        None => std::env::current_exe()?.with_file_name(format!("tiro{}", std::env::consts::EXE_SUFFIX)),
    };
    if !program.is_file() {
        bail!(
            "no binary at `{}`; build it with `cargo build --release`, or name it with --tiro",
            program.display()
        );
    }
    Ok(program)
}

/// Returns the directory of the model: the one named, or the one that the installer uses.
///
/// It must be passed to every measurement: each has its own data directory, in which the program would not find the
/// model.
fn model_dir(arguments: &Arguments) -> Option<PathBuf> {
    if let Some(named) = &arguments.model_dir {
        return std::path::absolute(named).ok();
    }
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let data_dir = variable("TIRO_DATA_DIR")
        .or_else(|| Some(variable("XDG_DATA_HOME")?.join("tiro")))
        .or_else(|| Some(variable("HOME")?.join(".local/share/tiro")))?;
    let models = data_dir.join("models");
    if !models.is_dir() {
        eprintln!("no model at `{}`: measuring lexical search only", models.display());
        return None;
    }
    Some(models)
}

/// Writes the report, with the version of the program and the processor on which it ran.
fn write_json(path: &std::path::Path, name: &str, report: &Report, tiro: &Tiro) -> Result<()> {
    let mut command = Command::new(&tiro.program);
    command.arg("--version");
    let version =
        run_to_end(command, Duration::from_secs(10)).map(|(_, stdout, _)| stdout.trim().to_string());
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let cpu = cpu.lines().find_map(|line| line.strip_prefix("model name")?.split(": ").nth(1));
    let machine = json!({"cpu": cpu, "cores": std::thread::available_parallelism().map_or(0, |n| n.get())});
    let document = json!({"eval": name, "version": version.ok(), "machine": machine, "report": report});
    let text = serde_json::to_string_pretty(&document)?;
    std::fs::write(path, text + "\n").with_context(|| format!("writing `{}`", path.display()))
}

#[cfg(test)]
mod tests {
    use clap::error::ErrorKind;

    use super::*;

    #[test]
    fn every_command_of_the_measurements_exists() {
        let page = include_str!("../../../docs/measurements.md");
        let commands: Vec<&str> =
            page.split('`').filter(|code| code.starts_with("cargo run --release -p evals -- ")).collect();
        assert!(commands.len() > 20, "{commands:?}");
        for command in commands {
            let (_, arguments) = command.split_once(" -- ").expect("commands have arguments");
            let parsed = Arguments::try_parse_from(std::iter::once("evals").chain(arguments.split(' ')));
            let refused = parsed.err().filter(|error| error.kind() != ErrorKind::DisplayHelp);
            assert!(refused.is_none(), "`{command}`: {}", refused.unwrap());
        }
    }
}
