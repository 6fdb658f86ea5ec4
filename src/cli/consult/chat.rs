//! `tiro chat`: a conversation with an assistant in the terminal. Answers are shown as they arrive. After each answer,
//! a summary of what was sent and the cost are shown.

use std::io::{self, BufRead, IsTerminal};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use crate::cli::print::{self, Out};
use tiro_base::error::{Error, Kind, Result};
use tiro_host::caller::WritingCaller;
use tiro_host::consult::Event;
use tiro_host::engine::Engine;
use tiro_tools::consult::chat::{self, Args as Asked, Effort, Output};
use tiro_tools::consult::preview;

/// The prompt at which the user types.
const PROMPT: &str = "> ";

/// The time to wait for the first byte of stdin. Arbitrary.
const PATIENCE: Duration = Duration::from_secs(2);

/// The time that an interrupted call gets to release its thread. Arbitrary: enough for one small write.
const RELEASE: Duration = Duration::from_millis(300);

/// The text that `/help` shows.
const HELP: &str = "A line is a message. Commands:\n  /context PATH…  keep files or folders in the thread\n  \
    /attach PATH…   attach files to the next message only\n  /quit           end (or Ctrl-D)\n";

/// The arguments of `tiro chat`.
#[derive(clap::Args)]
pub struct Args {
    /// The assistant; `tiro provider list` names them [default: the only one]
    #[arg(long)]
    with: Option<String>,
    /// The session, whose thread is continued
    #[arg(long, default_value = "terminal")]
    session: String,
    /// A file or folder to keep in the thread; may be repeated
    #[arg(long, value_name = "PATH")]
    context: Vec<String>,
    /// A file to attach to the first message only; may be repeated
    #[arg(long, value_name = "PATH")]
    attach: Vec<String>,
    /// An image to show with the first message; may be repeated
    #[arg(long, value_name = "PATH")]
    image: Vec<String>,
    /// Let the assistant read a file although its name says that it holds secrets; may be repeated
    #[arg(long, value_name = "PATH")]
    allow_secret_file: Vec<String>,
    /// Only show what would be sent; sends and stores nothing
    #[arg(long)]
    preview: bool,
    /// How much the assistant should think
    #[arg(long, value_enum)]
    effort: Option<Thinking>,
    /// The message; without it, messages are read from the terminal, or one message from stdin
    message: Vec<String>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Thinking {
    Minimal,
    Low,
    Medium,
    High,
}

/// Asks a single question, or holds a conversation.
pub async fn run(
    engine: &Arc<Engine>,
    caller: &Arc<WritingCaller>,
    args: Args,
    out: Out,
) -> Result<ExitCode> {
    let assistant = chosen(engine, args.with.as_deref())?;
    let root = caller.project(engine).await?.root.clone();
    let here = engine.config().current_dir.as_deref();
    let below = |paths: Vec<String>| -> Vec<String> {
        paths.into_iter().map(|path| from_here(&root, here, path)).collect()
    };
    let mut asked = Asked {
        session_id: args.session,
        context: below(args.context),
        attachments: below(args.attach),
        images: below(args.image),
        reasoning_effort: args.effort.map(|effort| match effort {
            Thinking::Minimal => Effort::Minimal,
            Thinking::Low => Effort::Low,
            Thinking::Medium => Effort::Medium,
            Thinking::High => Effort::High,
        }),
        ..Asked::default()
    };
    let allowed = below(args.allow_secret_file);
    let stdin = io::stdin();
    let is_single = !args.message.is_empty() || !stdin.is_terminal();
    if is_single {
        asked.instructions = match args.message.is_empty() {
            true => io::read_to_string(&stdin)
                .map_err(|error| Error::new(Kind::Io, "cannot read stdin").source(error))?,
            false => args.message.join(" ") + &piped()?,
        };
    }
    if args.preview {
        let output = preview::run(engine, caller, &assistant, asked, allowed).await?;
        return out.answer(&output, &output.text());
    }
    if is_single {
        turn(engine, caller, &assistant, (asked, allowed), out).await?;
        return Ok(ExitCode::SUCCESS);
    }
    print::aside(&format!(
        "Thread with {assistant} in session `{}`; /help lists the commands.\n",
        asked.session_id
    ));
    loop {
        print::aside(PROMPT);
        let mut line = String::new();
        let read = stdin.lock().read_line(&mut line);
        if read.is_err() || line.is_empty() {
            print::aside("\n");
            return Ok(ExitCode::SUCCESS);
        }
        let line = line.trim();
        let (command, rest) = line.split_once(' ').unwrap_or((line, ""));
        let paths = || rest.split_whitespace().map(str::to_owned);
        match command {
            "" => {}
            "/quit" | "/exit" => return Ok(ExitCode::SUCCESS),
            "/context" => asked.context.extend(below(paths().collect())),
            "/attach" => asked.attachments.extend(below(paths().collect())),
            _ if command.starts_with('/') && !command[1..].contains('/') => print::aside(HELP),
            _ => {
                let now = Asked { instructions: line.to_owned(), ..asked.clone() };
                match turn(engine, caller, &assistant, (now, allowed.clone()), out).await {
                    // Attachments and images were for this message only.
                    Ok(()) => (asked.attachments, asked.images) = (Vec::new(), Vec::new()),
                    Err(error) => print::failure(&error, None, out),
                }
            }
        }
    }
}

/// Returns the assistant that the user named. If the user named none, returns the only assistant.
fn chosen(engine: &Engine, named: Option<&str>) -> Result<String> {
    if let Some(name) = named {
        return Ok(chat::assistant(engine, name)?.provider.name);
    }
    let all = chat::assistants(engine)?;
    match all.as_slice() {
        [only] => Ok(only.provider.name.clone()),
        [] => Err(Error::not_found("no assistant is configured")
            .hint("`tiro provider add NAME --model MODEL --use consult` adds one")),
        several => {
            let names: Vec<&str> = several.iter().map(|each| each.provider.name.as_str()).collect();
            Err(Error::bad_input("several assistants are configured")
                .hint(format!("choose one with --with: {}", names.join(", "))))
        }
    }
}

/// Asks once. Files with secrets may be read if they are in `allowed`. Prints the answer as it arrives, and then the
/// receipt.
async fn turn(
    engine: &Arc<Engine>,
    caller: &Arc<WritingCaller>,
    assistant: &str,
    (asked, allowed): (Asked, Vec<String>),
    out: Out,
) -> Result<()> {
    let has_spoken = Arc::new(AtomicBool::new(false));
    let (json, spoken) = (out.json, Arc::clone(&has_spoken));
    let listener = Arc::new(move |event| match event {
        Event::Doing(doing) if !json => print::aside(&format!("[{doing}]\n")),
        Event::Text(text) if !json => {
            spoken.store(true, Ordering::Relaxed);
            print::piece(&text);
        }
        Event::Doing(_) | Event::Text(_) => {}
    });
    let output: Output = tokio::select! {
        answered = chat::ask(engine, caller, assistant, asked, allowed, listener) => answered?,
        _ = tokio::signal::ctrl_c() => {
            // The request ends at once. Releasing the thread takes a moment, which is waited for here.
            tokio::time::sleep(RELEASE).await;
            return Err(Error::new(Kind::Busy, "interrupted; nothing was recorded"));
        }
    };
    if json {
        return out.answer(&output, "").map(drop);
    }
    match has_spoken.load(Ordering::Relaxed) {
        true => out.line("")?,
        false => out.line(&output.answer)?,
    }
    print::aside(&format!("\n{}\n", output.receipt()));
    Ok(())
}

/// Converts `path` from a path relative to the working directory to a path relative to the root of the project. If the
/// working directory is not in the project, paths count as relative to the root already.
fn from_here(root: &Path, here: Option<&Path>, path: String) -> String {
    match here.and_then(|here| here.strip_prefix(root).ok()) {
        Some(inner) if Path::new(&path).is_relative() && !path.starts_with('~') => {
            inner.join(&path).to_string_lossy().into_owned()
        }
        _ => path,
    }
}

/// Returns the text on stdin with an empty line before it, if another program or a file provides one. Otherwise returns
/// an empty text.
fn piped() -> Result<String> {
    let (begun, has_begun) = mpsc::channel();
    let (read, whole) = mpsc::channel();
    if !is_passed() {
        return Ok(String::new());
    }
    std::thread::spawn(move || {
        let mut stdin = io::stdin().lock();
        // If the receiver is gone, the text is no longer needed.
        let wanted = stdin.fill_buf().map(drop).map(|()| begun.send(()));
        if let Ok(Ok(())) = wanted {
            drop(read.send(io::read_to_string(stdin)));
        }
    });
    // Some programs leave stdin open without writing to it.
    if let Err(mpsc::RecvTimeoutError::Timeout) = has_begun.recv_timeout(PATIENCE) {
        print::aside("[stdin is open, but nothing came: it is not read]\n");
        return Ok(String::new());
    }
    match whole.recv() {
        Ok(Ok(text)) if text.trim().is_empty() => Ok(String::new()),
        Ok(Ok(text)) => Ok(format!("\n\n{text}")),
        Ok(Err(error)) => Err(Error::new(Kind::Io, "cannot read stdin").source(error)),
        Err(_) => Ok(String::new()),
    }
}

/// Returns whether stdin is a pipe or a file.
#[cfg(unix)]
fn is_passed() -> bool {
    use std::fs::File;
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileTypeExt;
    let file = io::stdin().as_fd().try_clone_to_owned().map(File::from);
    let kind = file.and_then(|file| file.metadata()).map(|metadata| metadata.file_type());
    kind.is_ok_and(|kind| kind.is_fifo() || kind.is_file())
}

/// Returns whether stdin is a pipe or a file. The kind of stdin is unknown on this system, so stdin is not read.
#[cfg(not(unix))]
fn is_passed() -> bool {
    false
}
