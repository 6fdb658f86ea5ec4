//! `tiro find`: searches while the user types, and opens, marks and forgets what is found.
//!
//! [`state`] decides what a key does, and [`draw`] shows the state; both are pure. This file reads keys and runs the
//! operations. A search runs beside the keys, so that typing never waits for it; the answer to an older question is
//! dropped.

mod draw;
mod state;

use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::Arc;

use ratatui::crossterm::event::{self, Event};
use ratatui::crossterm::terminal;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use self::state::{Act, Found, State, Task};
use crate::cli::look::show as show_page;
use crate::cli::print::{self, Out};
use crate::cli::terminal::Screen;
use tiro_base::error::{Error, Result};
use tiro_host::caller::WritingCaller;
use tiro_host::engine::Engine;
use tiro_tools::memory::search_project_memory as search;
use tiro_tools::memory::{forget_context, list_memories, mark_important, show};

/// The number of memories that are listed or found.
const MOST: usize = 50;

/// The tokens of all hits together: enough for each to have a preview.
const MOST_TOKENS: usize = 20_000;

/// The arguments of `tiro find`.
#[derive(clap::Args)]
pub struct Args {
    /// The question or keywords to begin with
    query: Vec<String>,
}

/// What the loop waits for.
enum Message {
    Key(Event),
    /// The keyboard can't be read any more.
    Closed,
    Done(Result<Done>),
}

/// What a task did.
enum Done {
    /// What was found for the question with this number.
    Found(u64, Vec<Found>, Option<String>),
    /// A memory: its id and its text.
    Opened(String, String),
    /// A change, in a sentence, and the operation that an undo names.
    Changed(String, Option<String>),
}

/// Runs the search on the terminal until the user leaves it.
///
/// # Errors
///
/// [`Kind::BadInput`](tiro_base::error::Kind::BadInput) if there is no terminal.
pub async fn run(
    engine: &Arc<Engine>,
    caller: &Arc<WritingCaller>,
    args: Args,
    out: Out,
) -> Result<ExitCode> {
    if out.json || !std::io::stdin().is_terminal() || !print::is_terminal() {
        return Err(
            Error::bad_input("`tiro find` needs a terminal").hint("`tiro search QUERY` prints the hits")
        );
    }
    // Opens the project before the screen is taken, so that its errors are ordinary errors.
    caller.project(engine).await?;
    let (sender, mut messages) = unbounded_channel();
    let mut terminal = ratatui::init();
    read_keys(sender.clone());
    let mut state = State::new(args.query.join(" "), engine.now(), print::is_coloured());
    let left = converse(engine, caller, &mut terminal, &mut state, &sender, &mut messages).await;
    ratatui::restore();
    left.map(|()| ExitCode::SUCCESS)
}

async fn converse(
    engine: &Arc<Engine>,
    caller: &Arc<WritingCaller>,
    terminal: &mut ratatui::DefaultTerminal,
    state: &mut State,
    sender: &UnboundedSender<Message>,
    messages: &mut UnboundedReceiver<Message>,
) -> Result<()> {
    start(engine, caller, state.search(), sender);
    loop {
        state.now = engine.now();
        // A terminal that can't be written to is gone.
        if terminal.draw(|frame| draw::draw(frame, state)).is_err() {
            return Ok(());
        }
        let Some(mut message) = messages.recv().await else { return Ok(()) };
        loop {
            match message {
                Message::Closed => return Ok(()),
                Message::Key(event) => match state.react(&event) {
                    Act::Leave => return Ok(()),
                    Act::Run(task) => start(engine, caller, task, sender),
                    Act::Nothing => {}
                },
                Message::Done(Ok(Done::Found(number, found, notice))) => state.take(number, found, notice),
                Message::Done(Ok(Done::Opened(id, text))) => state.open(id, text),
                Message::Done(Ok(Done::Changed(said, operation))) => {
                    state.changed(said, operation);
                    start(engine, caller, state.search(), sender);
                }
                Message::Done(Err(error)) => state.fail(&error.with_hint().to_string()),
            }
            // Several keys that were typed at once are drawn once.
            match messages.try_recv() {
                Ok(next) => message = next,
                Err(_) => break,
            }
        }
    }
}

/// Passes keys on, from a thread that ends with the process.
fn read_keys(sender: UnboundedSender<Message>) {
    std::thread::spawn(move || {
        while let Ok(event) = event::read() {
            if sender.send(Message::Key(event)).is_err() {
                return;
            }
        }
        let _ = sender.send(Message::Closed);
    });
}

/// Runs a task beside the keys.
fn start(engine: &Arc<Engine>, caller: &Arc<WritingCaller>, task: Task, sender: &UnboundedSender<Message>) {
    let (engine, caller, sender) = (Arc::clone(engine), Arc::clone(caller), sender.clone());
    tokio::spawn(async move {
        let done = perform(&engine, &caller, task).await;
        let _ = sender.send(Message::Done(done));
    });
}

async fn perform(engine: &Engine, caller: &WritingCaller, task: Task) -> Result<Done> {
    match task {
        Task::Search(number, query) if query.trim().is_empty() => {
            let args = list_memories::Args { limit: Some(MOST), ..Default::default() };
            let output = list_memories::run(engine, caller, args).await?;
            Ok(Done::Found(number, output.memories.into_iter().map(Found::listed).collect(), None))
        }
        Task::Search(number, query) => {
            let args = search::Args {
                query,
                k: Some(MOST),
                max_tokens: Some(MOST_TOKENS),
                // The nearest are shown, too, if nothing answers.
                cursor: Some("0".to_owned()),
                ..Default::default()
            };
            let output = search::search(engine, caller, args).await?;
            let notice = output.notices.first().cloned();
            Ok(Done::Found(number, output.hits.into_iter().map(Found::hit).collect(), notice))
        }
        Task::Open(id) => {
            let args = show::Args { id: id.clone(), ..Default::default() };
            let output = show::run(engine, caller, args).await?;
            let width = terminal::size().map_or(80, |(width, _)| usize::from(width));
            let screen = Screen { width: Some(width), colour: false };
            Ok(Done::Opened(id, show_page::page(&output, screen, engine.now()).render()))
        }
        Task::Mark(id, important) => {
            let args = mark_important::Args { ids: vec![id], important: Some(important), importance: None };
            let output = mark_important::run(engine, caller, args).await?;
            Ok(Done::Changed(output.text(), None))
        }
        Task::Forget(id) => {
            let args = forget_context::Args { ids: Some(vec![id]), ..Default::default() };
            let output = forget_context::run(engine, caller, args).await?;
            Ok(Done::Changed("Forgotten. Ctrl-Z restores it.".to_owned(), output.operation))
        }
        Task::Undo(operation) => {
            let args = forget_context::Args { undo: Some(operation), ..Default::default() };
            forget_context::run(engine, caller, args).await?;
            Ok(Done::Changed("Restored.".to_owned(), None))
        }
    }
}
