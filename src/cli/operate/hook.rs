//! `tiro hook`: records an event of a client or of git. Their hooks run this command.
//!
//! A hook must not delay or disturb the program that runs it. A hook exits with 0 within a tenth of a second, even if
//! something is broken, busy, full or missing. The command prints nothing except the pointer, a short text about the
//! memory, at the start of a session. The command opens no database: it only writes a reference to a transcript or
//! commit. The next call in the project reads the reference and imports that transcript or commit. A hook writes
//! references even while capture is paused, because a transcript may also hold messages from before the pause. The
//! import leaves out messages that were written during the pause, which it recognises by their time. The only parts of
//! a payload that a hook writes to disk are paths of existing files, digests and the name of the event. If `CI` is set,
//! a hook does nothing.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Deserialize;
use serde_json::json;

use tiro_base::envelope;
use tiro_base::error::{Kind, Result};
use tiro_capture::clients::transcripts::{self, Line, Lines};
use tiro_capture::clients::{Client, Places};
use tiro_capture::spool::{self, Reference, Spool, running};
use tiro_host::config::Config;
use tiro_host::project;

/// The longest time that a hook waits for its work before it exits.
const PATIENCE: Duration = Duration::from_millis(80);

/// The longest session id, in bytes. Arbitrary: several times as long as the clients' ids, which have 36 bytes.
const LONGEST_ID: usize = 200;

/// The longest name of an event, in bytes. The longest name that one of the clients uses has 18 bytes.
const LONGEST_EVENT: usize = 32;

/// If this many references are waiting, further commits on a detached HEAD share one reference. Arbitrary.
const MOST_WAITING: usize = 256;

/// The maximum number of bytes of a payload that are read. The limit is large because payloads include prompts.
const LIMIT: u64 = 16 * 1024 * 1024;

/// The arguments of `tiro hook`.
#[derive(clap::Args)]
pub struct Args {
    /// The program that runs the hook: claude-code, codex, gemini, qwen, copilot, opencode or git-post-commit
    #[arg(default_value = "")]
    client: String,
    /// Arguments that the program adds
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    rest: Vec<String>,
}

/// The payload on stdin. All clients use these field names.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Payload {
    session_id: String,
    transcript_path: Option<PathBuf>,
    cwd: Option<PathBuf>,
    hook_event_name: String,
    /// The reason why a session starts; `compact` if it continues after a compaction.
    source: String,
    /// The id of the sub-agent, if the event happened in a sub-agent.
    agent_id: Option<String>,
    agent_transcript_path: Option<PathBuf>,
}

impl Payload {
    /// Returns the id of the session whose transcript has grown, and the transcript, if it exists.
    fn transcript(&self, client: Client, places: Option<&Places>) -> (String, Option<PathBuf>) {
        let (session, transcript) = match &self.agent_transcript_path {
            // A sub-agent has a separate transcript file.
            Some(path) => (self.agent_id.clone().unwrap_or_default(), Some(path)),
            None => (self.session_id.clone(), self.transcript_path.as_ref()),
        };
        let known = || places?.transcript_of(client, &session);
        let transcript = transcript.cloned().or_else(known).filter(|path| transcripts::is_file(path));
        (session, transcript)
    }
}

/// Writes a reference. At the start of a session, also prints the pointer.
pub fn run(args: Args, project: Option<&Path>) -> ExitCode {
    let (sender, receiver) = mpsc::channel();
    let project = project.map(Path::to_owned);
    std::thread::spawn(move || {
        let answer = handle(&args.client, project.as_deref());
        // The receiver is gone if handling the event took too long.
        let _ = sender.send(answer);
    });
    if let Ok(Ok(Some(answer))) = receiver.recv_timeout(PATIENCE) {
        use std::io::Write;
        // The client may have closed its end of the pipe. This is not an error.
        let _ = writeln!(std::io::stdout(), "{}", envelope::in_json(&answer));
    }
    ExitCode::SUCCESS
}

/// Handles the event and returns the text to print.
fn handle(client: &str, named: Option<&Path>) -> Result<Option<String>> {
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
        _ => project::directory(config.project.as_deref().or(config.current_dir.as_deref()))?,
    };
    let trusted = config.named_project();
    let found = match project::finder(&config, trusted).place_and_repository(&directory) {
        // The repository can't be opened, but the option `git.trusted` may allow it. Options are read only in this
        // case, because reading them takes time.
        Err(error) if error.kind() == Kind::Git => {
            let config = Config::from_environment(named, Vec::new())?;
            project::finder(&config, trusted).place_and_repository(&directory)?
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
        // Gemini CLI does not get the pointer at `SessionStart`, because it would put the pointer into the first
        // prompt, and drop this prompt when it resumes the session.
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
    let is_subagent = payload.agent_id.is_some() || payload.agent_transcript_path.is_some();
    let (session, transcript) = payload.transcript(client, config.clients.as_ref());
    if client == Client::Git || transcript.is_some() {
        let session = match &commit {
            // A commit on a detached HEAD gets its own reference. If too many references are waiting, commits share a
            // reference. The shared reference names only the last commit; the earlier commits are its ancestors.
            Some(commit) if spool.waiting() < MOST_WAITING => spool::key(commit),
            _ if client == Client::Git => String::new(),
            _ => spool::key(&session),
        };
        let is_plain = event.len() <= LONGEST_EVENT
            && event.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'-');
        let named = if is_plain { event.clone() } else { String::new() };
        let reference = Reference {
            client: client.word().to_owned(),
            event: named,
            session,
            transcript,
            commit,
            directory,
            at: now(),
            trouble: None,
        };
        spool.leave(&reference)?;
    }
    let is_plain_id = |c: char| c.is_ascii_alphanumeric() || "-_.:".contains(c);
    let runs =
        client != Client::Git && !is_subagent && event != "SessionEnd" && !payload.session_id.is_empty();
    if runs && payload.session_id.chars().all(is_plain_id) {
        // If this fails, searches in the session also find its own messages.
        drop(spool.set_running(client.word(), &payload.session_id, &running::ancestors(), now()));
    }
    Ok(begins.then(|| {
        let is_compacted = payload.source == "compact";
        let pointer = pointer(spool.pointer().as_deref(), &payload.session_id, is_compacted);
        match client {
            Client::Copilot => json!({"additionalContext": pointer}).to_string(),
            _ => json!({"hookSpecificOutput": {"hookEventName": event, "additionalContext": pointer}})
                .to_string(),
        }
    }))
}

/// Returns whether a chat of Gemini CLI has no answer yet.
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
    // Reading stops at the end of the JSON object, because some clients don't close the pipe. An incomplete payload is
    // ignored.
    let values = serde_json::Deserializer::from_reader(std::io::stdin().take(LIMIT)).into_iter();
    values.flatten().next().unwrap_or_default()
}

/// Returns the pointer, which is the text at the start of a session. `remembered` has the counts of memories that the
/// last call in the project wrote. After a compaction, the text names the call that returns the present state of the
/// session. The same counts and session always give the same text.
fn pointer(remembered: Option<&str>, session: &str, is_compacted: bool) -> String {
    // A model reads this text like the user's own words, so `remembered` may contain only counts.
    let is_plain = |text: &&str| {
        text.len() <= 120 && text.chars().all(|c| c.is_ascii_alphanumeric() || " ,".contains(c))
    };
    let remembered = remembered.filter(is_plain).unwrap_or("nothing yet");
    let session: String =
        session.chars().filter(|c| c.is_ascii_alphanumeric() || "-_.:".contains(*c)).take(80).collect();
    if is_compacted {
        return format!(
            "Tiro keeps this project's memory: {remembered}. This conversation was just compacted. Call its tool \
             get_context_summary with conversation_ids [\"{session}\"] and max_tokens 400: it returns where the \
             conversation stands. search_project_memory with sessions [\"{session}\"] finds what was said."
        );
    }
    let stash = match remembered.contains("stashed") {
        true => " retrieve_stashed_context lists and finds what is stashed.",
        false => "",
    };
    format!(
        "Tiro keeps this project's memory: {remembered}. Before asking why something is as it is, or repeating work, \
         call its tool search_project_memory; expand_detail shows a hit in full.{stash} This session is `{session}` there."
    )
}

#[expect(clippy::disallowed_methods, reason = "a hook runs without the engine and its clock")]
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiro_text::tokens;

    #[test]
    fn the_pointer_costs_at_most_150_tokens() {
        let remembered =
            "123456 commits, 987654 messages in 54321 sessions, 1234 notes, 123456 stashed segments";
        let text = pointer(Some(remembered), &"0123456789abcdef-".repeat(20), false);
        assert!(tokens::count(&text) <= 150, "{text}");
        let session = "41799f8d-5af3-46fb-8473-94dff3a77ff6";
        assert!(tokens::count(&pointer(Some(remembered), session, true)) <= 150);
        insta::assert_snapshot!(pointer(Some("12 commits, 340 messages in 3 sessions"), session, false));
    }
}
