//! Imports the remaining prompts of sessions whose transcripts were deleted.
//!
//! Claude Code deletes transcripts after a time, but keeps the prompts of all sessions in one file. Each line of this
//! file contains the project, the time, and, in newer versions, the session. If a session has a transcript, or its
//! transcript was imported, its prompts are not taken from this file. So nothing is stored twice.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Importer, Reading};
use crate::clients::Client;
use crate::clients::transcripts::{Line, Lines};
use crate::follow::cursor::Cursor;
use crate::follow::share::{Visited, Within};
use crate::import::transcript::{About, Format, Transcript, TranscriptEntry};
use tiro_base::error::Result;
use tiro_base::memory::Millis;
use tiro_intake::Prompt;

/// The title of a session of which only the prompts remain.
pub const TITLE: &str = "Prompts from history.jsonl; the transcript is deleted";

/// The maximum difference between the time of a prompt in the list and the time of the same prompt in a transcript, in
/// milliseconds.
const NEAR: Millis = 10 * 60 * 1000;

/// The imported part of sessions whose transcripts were deleted.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Prompts {
    /// The number of prompts.
    pub prompts: usize,
    /// The number of sessions with these prompts.
    pub sessions: usize,
}

/// A line of the list.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    display: String,
    #[serde(default)]
    pasted_contents: Value,
    timestamp: Millis,
    project: String,
    session_id: Option<String>,
}

impl Importer<'_> {
    /// Imports the project's prompts from the list at `path`. `sessions` are the names of the sessions that have a
    /// transcript.
    ///
    /// # Errors
    ///
    /// If the list can't be read or the prompts can't be stored.
    pub async fn follow_prompts(&mut self, path: &Path, sessions: &HashSet<String>) -> Result<Prompts> {
        let mut within = Within::new(self.sources, self.work_trees, self.others);
        let listed = self.left(path, sessions, &mut within).await?;
        let listed = self.without_known(listed).await?;
        let mut prompts = Prompts::default();
        for (name, lines) in listed {
            let mut said: Vec<TranscriptEntry> = Vec::new();
            let mut reader = Transcript::new(Format::ClaudeCode, About::default());
            for listed in lines {
                said.extend(reader.line(0, line(&name, &listed).as_bytes()));
            }
            said.extend(reader.rest());
            if said.is_empty() {
                continue;
            }
            let about = About { title: Some(TITLE.to_owned()), ..reader.about().clone() };
            let visited = Visited::new(self.sources, self.work_trees);
            let source = format!("prompts:{name}");
            let mut reading =
                Reading::new((Client::ClaudeCode, path), source, Cursor::default(), reader, None, visited);
            prompts.prompts += said.len();
            prompts.sessions += 1;
            self.store(&mut reading, &about, said.into_iter().map(|said| (0, said)).collect()).await?;
        }
        Ok(prompts)
    }

    /// Returns the prompts of the project whose sessions have no transcript, keyed by the name of the session. Prompts
    /// without a session are grouped by day.
    async fn left(
        &self,
        path: &Path,
        sessions: &HashSet<String>,
        within: &mut Within<'_>,
    ) -> Result<BTreeMap<String, Vec<Listed>>> {
        let mut left: BTreeMap<String, Vec<Listed>> = BTreeMap::new();
        let mut lines = Lines::open(path, 0)?;
        while let Some((_, line)) = lines.next_line()? {
            let Line::Whole(bytes) = line else { continue };
            let text = String::from_utf8_lossy(bytes);
            let Ok(listed) = serde_json::from_str::<Listed>(&text) else { continue };
            let is_other = listed.session_id.as_ref().is_some_and(|id| sessions.contains(id));
            // A command of the client, such as `/model`, is not a prompt.
            let is_command = listed.display.starts_with('/') && !listed.display.trim().contains([' ', '\n']);
            if is_other || is_command || !within.has(&listed.project) {
                continue;
            }
            let day = jiff::Timestamp::from_millisecond(listed.timestamp);
            let Ok(day) = day.map(|time| time.strftime("prompts-%Y-%m-%d").to_string()) else { continue };
            left.entry(listed.session_id.clone().unwrap_or(day)).or_default().push(listed);
        }
        let mut known = Vec::new();
        for (name, lines) in &left {
            let has_session = lines.iter().any(|listed| listed.session_id.is_some());
            if has_session && self.intake.has_cursor(&format!("/{name}.jsonl")).await? {
                known.push(name.clone());
            }
        }
        known.iter().for_each(|name| drop(left.remove(name)));
        Ok(left)
    }

    /// Removes each prompt that names no session, if a stored session contains the same prompt at about the same time.
    async fn without_known(
        &self,
        listed: BTreeMap<String, Vec<Listed>>,
    ) -> Result<BTreeMap<String, Vec<Listed>>> {
        let prompt = |name: &str, Listed { display, timestamp, .. }: &Listed| Prompt {
            session: name.to_owned(),
            between: (timestamp.saturating_sub(NEAR), timestamp.saturating_add(NEAR)),
            text: self.sources.redactor.redact(display).text.into_owned(),
        };
        let undated = |lines: &&Listed| lines.session_id.is_none();
        let prompts = listed
            .iter()
            .flat_map(|(name, lines)| lines.iter().filter(undated).map(|listed| prompt(name, listed)));
        let prompts: Vec<Prompt> = prompts.collect();
        if prompts.is_empty() {
            return Ok(listed);
        }
        let mut known = self.intake.known_prompts(prompts).await?.into_iter();
        let mut is_known = |listed: &Listed| listed.session_id.is_none() && known.next().unwrap_or_default();
        let mut left = BTreeMap::new();
        for (name, mut lines) in listed {
            lines.retain(|listed| !is_known(listed));
            left.insert(name, lines);
        }
        Ok(left)
    }
}

/// Returns a prompt as a line of a transcript, so that it is read in the same way.
fn line(name: &str, listed: &Listed) -> String {
    let Listed { display, pasted_contents, timestamp, project, .. } = listed;
    let mut text = display.clone();
    for (number, pasted) in pasted_contents.as_object().into_iter().flatten() {
        let Some(content) = pasted["content"].as_str() else { continue };
        // The client shows `[Pasted text #1 +20 lines]`.
        let begins = format!("[Pasted text #{number}");
        if let Some(at) = text.find(&begins)
            && let Some(end) = text[at..].find(']')
        {
            text.replace_range(at..=at + end, content);
        }
    }
    let key = blake3::hash(format!("{name}\0{timestamp}\0{display}").as_bytes()).to_hex();
    let time = jiff::Timestamp::from_millisecond(*timestamp).unwrap_or_default().to_string();
    json!({
        "type": "user",
        "uuid": format!("prompt-{}", &key[..32]),
        "timestamp": time,
        "cwd": project,
        "sessionId": name,
        "message": { "role": "user", "content": text },
    })
    .to_string()
}
