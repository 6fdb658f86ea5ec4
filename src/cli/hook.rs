//! `tiro hook`: what the hooks of clients and of git run.
//!
//! A hook never stands in anybody's way: it exits with 0 within a tenth of a second, whatever is broken, busy, full or
//! absent, and says nothing but the pointer that a session begins with. It opens no database: it leaves a reference, and
//! the next call of the project follows it. What is said while capture is paused is known by its time then; the
//! reference has no text and is left all the same, for what was said before. What a payload says reaches the disk only
//! where it stands there already: the paths of what exists, and digests. With `CI` set it does nothing.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Deserialize;
use serde_json::json;

use crate::clients::Client;
use crate::clients::transcripts::{self, Line, Lines};
use crate::config::Config;
use crate::envelope;
use crate::error::{Kind, Result};
use crate::project;
use crate::spool::{self, Reference, Spool};

/// After this long nobody waits any more.
const PATIENCE: Duration = Duration::from_millis(80);

/// Bytes of a session's id: a longer one is no session's.
const LONGEST_ID: usize = 200;

/// Bytes of an event's name: the longest of the three clients' has 18.
const LONGEST_EVENT: usize = 32;

/// References from which on commits share one. Arbitrary.
const MOST_WAITING: usize = 256;

/// Bytes of a payload that are read: prompts are part of it.
const LIMIT: u64 = 16 * 1024 * 1024;

#[derive(clap::Args)]
pub struct Args {
    /// The program whose hook this is: claude-code, codex, gemini or git-post-commit.
    #[arg(default_value = "")]
    client: String,
    /// What the program adds.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    rest: Vec<String>,
}

/// What hooks are told on stdin; the three clients say it in the same words.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Payload {
    session_id: String,
    transcript_path: Option<PathBuf>,
    cwd: Option<PathBuf>,
    hook_event_name: String,
    /// A sub-agent's, where it is one that has ended.
    agent_id: Option<String>,
    agent_transcript_path: Option<PathBuf>,
}

/// Leaves a reference and prints the pointer where a session starts.
pub fn run(args: Args, project: Option<&Path>) -> ExitCode {
    let (sender, receiver) = mpsc::channel();
    let project = project.map(Path::to_owned);
    std::thread::spawn(move || {
        let answer = hear(&args.client, project.as_deref());
        // Nobody listens where it took too long.
        let _ = sender.send(answer);
    });
    if let Ok(Ok(Some(answer))) = receiver.recv_timeout(PATIENCE) {
        use std::io::Write;
        // A client that doesn't read the answer doesn't want it.
        let _ = writeln!(std::io::stdout(), "{}", envelope::in_json(&answer));
    }
    ExitCode::SUCCESS
}

/// Returns what is to be printed.
fn hear(client: &str, named: Option<&Path>) -> Result<Option<String>> {
    let config = Config::without_options(named)?;
    if config.ci {
        return Ok(None);
    }
    let payload = match client {
        "git" | "git-post-commit" => Payload { hook_event_name: "post-commit".into(), ..Payload::default() },
        _ => read_payload(),
    };
    let directory = match &payload.cwd {
        Some(directory) if named.is_none() => directory.clone(),
        _ => project::directory(&config)?,
    };
    let found = match project::place_and_repository(&directory, &config) {
        // The options may say that it is trusted; reading them takes time that is spent here only.
        Err(error) if error.kind() == Kind::Git => {
            project::place_and_repository(&directory, &Config::from_environment(named, Vec::new())?)?
        }
        found => found?,
    };
    let Some((place, repository)) = found else { return Ok(None) };
    let spool = Spool::of(&config.data_dir, &place);
    if !spool.is_captured() {
        return Ok(None);
    }
    let is_paused = spool.is_paused() || Spool::everywhere(&config.data_dir).is_paused();
    let event = payload.hook_event_name.clone();
    let begins = match client {
        _ if is_paused => false,
        // It would put what is added at the start into the first prompt, and drop that when the session is resumed.
        "gemini" => event == "BeforeAgent" && is_unanswered(payload.transcript_path.as_deref()),
        _ => event == "SessionStart",
    };
    let Some(client) = Client::of(if client.starts_with("git") { "git" } else { client })
        .filter(|_| payload.session_id.len() <= LONGEST_ID)
    else {
        return Ok(None);
    };
    let detached = repository.filter(|_| client == Client::Git).and_then(|it| it.detached());
    let commit = detached.map(|sha| sha.to_string());
    // A sub-agent's transcript is a file of its own.
    let (session, transcript) = match payload.agent_transcript_path {
        Some(path) => (payload.agent_id.unwrap_or_default(), Some(path)),
        None => (payload.session_id.clone(), payload.transcript_path),
    };
    let transcript = transcript.filter(|path| transcripts::is_file(path));
    if client == Client::Git || transcript.is_some() {
        let session = match &commit {
            // Each needs a reference of its own, but not without end: one leads to those before it.
            Some(commit) if spool.waiting() < MOST_WAITING => spool::key(commit),
            _ if client == Client::Git => String::new(),
            _ => spool::key(&session),
        };
        let is_plain = event.len() <= LONGEST_EVENT
            && event.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'-');
        let named = if is_plain { event.clone() } else { String::new() };
        spool.leave(&Reference {
            client: client.word().to_owned(),
            event: named,
            session,
            transcript,
            commit,
            directory,
            at: now(),
            trouble: None,
        })?;
    }
    Ok(begins.then(|| {
        let pointer = pointer(spool.pointer().as_deref(), &payload.session_id);
        json!({"hookSpecificOutput": {"hookEventName": event, "additionalContext": pointer}}).to_string()
    }))
}

/// Whether no answer stands in a chat of Gemini CLI yet.
fn is_unanswered(chat: Option<&Path>) -> bool {
    const ANSWER: &[u8] = b"\"type\":\"gemini\"";
    let Some(mut lines) = chat.and_then(|path| Lines::open(path, 0).ok()) else { return true };
    while let Ok(Some((_, line))) = lines.next_line() {
        let (Line::Whole(bytes) | Line::Cut(bytes, _)) = line;
        if bytes.windows(ANSWER.len()).any(|window| window == ANSWER) {
            return false;
        }
    }
    true
}

fn read_payload() -> Payload {
    // Only the object is read: some clients don't close what they write to. Half a payload is none.
    let values = serde_json::Deserializer::from_reader(std::io::stdin().take(LIMIT)).into_iter();
    values.flatten().next().unwrap_or_default()
}

/// Returns what a session begins with: the same words as long as what is remembered is the same.
fn pointer(remembered: Option<&str>, session: &str) -> String {
    // What a session begins with is read as the user's own words, so it has counts and nothing else.
    let is_plain = |text: &&str| {
        text.len() <= 120 && text.chars().all(|c| c.is_ascii_alphanumeric() || " ,".contains(c))
    };
    let remembered = remembered.filter(is_plain).unwrap_or("nothing yet");
    let session: String =
        session.chars().filter(|c| c.is_ascii_alphanumeric() || "-_.:".contains(*c)).take(80).collect();
    format!(
        "Tiro keeps this project's memory: {remembered}. Before asking why something is as it is, or repeating work, \
         call its tool search_project_memory; expand_detail shows a hit in full. This session is `{session}` there."
    )
}

#[expect(clippy::disallowed_methods, reason = "a hook has no engine to ask")]
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens;

    #[test]
    fn the_pointer_costs_at_most_150_tokens() {
        let remembered = "123456 commits, 987654 messages in 54321 sessions, 1234 notes";
        let text = pointer(Some(remembered), &"0123456789abcdef-".repeat(20));
        assert!(tokens::count(&text) <= 150, "{text}");
        let session = "41799f8d-5af3-46fb-8473-94dff3a77ff6";
        insta::assert_snapshot!(pointer(Some("12 commits, 340 messages in 3 sessions"), session));
    }
}
