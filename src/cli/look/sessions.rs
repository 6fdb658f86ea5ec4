//! `tiro sessions`: lists the project's conversations, and resets threads with assistants.

use std::process::ExitCode;

use crate::cli::flags;
use crate::cli::print::Out;
use crate::cli::terminal::{Page, Screen, Span, Style, number};
use tiro_base::error::Result;
use tiro_base::humanize::counted;
use tiro_base::memory::Millis;
use tiro_host::caller::WritingCaller;
use tiro_host::engine::Engine;
use tiro_tools::consult::reset_session;
use tiro_tools::memory::{list_sessions, named};

/// The arguments of `tiro sessions`.
#[derive(clap::Args)]
pub struct Args {
    /// Number of sessions, 1 to 100
    #[arg(long, default_value_t = 20)]
    limit: usize,
    /// Continue at this cursor of the last answer
    #[arg(long)]
    cursor: Option<String>,
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Reset the threads that a session has with assistants; what was said stays in the memory
    Reset {
        /// The session
        session: String,
        /// Only the thread with this assistant
        #[arg(long)]
        assistant: Option<String>,
        /// What is reset: the files, which are then sent anew, or the whole thread
        #[arg(long, value_enum, default_value = "files")]
        what: What,
    },
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum What {
    Files,
    Thread,
}

/// Lists the sessions, latest first.
pub async fn run(engine: &Engine, caller: &WritingCaller, args: Args, out: Out) -> Result<ExitCode> {
    if let Some(Action::Reset { session, assistant, what }) = args.action {
        let what = match what {
            What::Files => reset_session::What::Files,
            What::Thread => reset_session::What::Thread,
        };
        let session = named::session(engine, caller, &session).await?;
        let args = reset_session::Args { session_id: session, assistant, what: Some(what) };
        let output = reset_session::run(engine, caller, args).await?;
        return out.answer(&output, &output.text());
    }
    let args = list_sessions::Args { limit: Some(args.limit), cursor: args.cursor };
    let output = list_sessions::run(engine, caller, args).await?;
    if output.sessions.is_empty() {
        return out.answer(&output, &flags::without_tools(&output.text()));
    }
    let now = engine.now();
    out.view(&output, |screen| page(&output, screen, now))
}

/// Returns the page of the sessions. The entry of a session begins with its title, because people recognise a session
/// by its title.
fn page(listed: &list_sessions::Output, screen: Screen, now: Millis) -> Page {
    let mut page = Page::new(screen, now);
    page.incomplete(&listed.notices);
    for session in &listed.sessions {
        let when = page.when(&session.last);
        let title = session.title.as_deref().unwrap_or("(no title)");
        page.line(0, [Span::new(Style::Faint, format!("{when}  ")), Span::new(Style::Strong, title)]);
        let size = format!(
            "  {}, {} tokens",
            counted(session.memories, "memory", "memories"),
            number(session.tokens)
        );
        let branch = session.branch.as_ref().map_or(String::new(), |branch| format!(", branch {branch}"));
        let consulted = list_sessions::consulted(&session.assistants);
        let headless = if session.headless { ", run by a script" } else { "" };
        let about = size + &branch + headless + &consulted;
        page.line(3, [Span::new(Style::Id, &session.session_id), Span::new(Style::Faint, about)]);
    }
    page.gap();
    if let Some(cursor) = &listed.next_cursor {
        page.line(0, [Span::new(Style::Faint, format!("More: --cursor {cursor}"))]);
    }
    page.notices(&listed.notices);
    page
}
