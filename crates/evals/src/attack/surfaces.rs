//! Runs every command and tool once in a repository, within limits of time and memory.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::ground::{FORBIDDEN, INTRUDER_WORD};
use crate::client::{Era, Place, Server, Tiro, last_chars};

/// The time limit of one command or call.
const LONGEST: Duration = Duration::from_secs(20);

/// The most files of a directory whose lines are explained.
const MOST_EXPLAINED: usize = 8;

/// The placeholder for a new file to write to.
const NEW_FILE: &str = "<new file>";

/// The query. Its words occur both in forbidden and in ordinary texts.
const QUESTION: &str = "which decision was made about the harbour, the merger plans and the notes";

/// The commands to run in each repository, in this order: first those that read, then those that import, then those
/// that show the imported data.
const COMMANDS: &[&[&str]] = &[
    &["doctor"],
    &["doctor", "--json"],
    &["stats"],
    &["import", "git", "--dry-run"],
    &["import", "git"],
    &["import", "claude-code", "--dry-run"],
    &["import", "codex"],
    &["import", "gemini"],
    &["init", "--dry-run"],
    &["init", "--yes", "--no-backfill"],
    &["hook", "git-post-commit"],
    &["hook", "claude-code"],
    &["search", QUESTION],
    &["search", "--json", "--path", "notes.txt", "ordinary"],
    &["context", QUESTION],
    &["list"],
    &["log"],
    &["why", "notes.txt"],
    &["show", "HEAD"],
    &["sessions"],
    &["summarize", "--all"],
    &["summarize", "--commits", "--dry-run"],
    &["index"],
    &["gc", "--dry-run"],
    &["gc", "--sessions-after", "1", "--quarters"],
    &["pause"],
    &["resume"],
    &["forget", "--query", "nothing of the kind", "--dry-run"],
    &["projects", "list"],
    &["projects", "list", "--json"],
    &["provider", "show"],
    &["export"],
    &["backup", NEW_FILE],
    &["demo", "--repo", "."],
    &["init", "--remove"],
];

/// The results of all commands and calls.
#[derive(Default)]
pub struct Seen {
    /// How many commands and calls ran.
    pub calls: usize,
    /// How many of them ended with an error, as most should in a hostile repository.
    pub errors: usize,
    /// The leaks, by kind. Each is given as its repository, its call and the text around it.
    pub shown: BTreeMap<&'static str, Vec<String>>,
    /// Calls that got no answer within [`LONGEST`], servers that ended, and panics.
    pub lost: Vec<String>,
    /// Answers with an unescaped control character.
    pub raw: Vec<String>,
    /// The name of the longest call and its seconds.
    pub slowest: (f64, String),
    /// The name of the largest process and its MiB.
    pub largest: (f64, String),
}

impl Seen {
    /// Runs every command and calls every tool in `directory`, as the owner of `data_dir`.
    ///
    /// `short` skips the demo, which takes as long as all other commands together, and calls the tools only after the
    /// commands.
    pub fn visit(
        &mut self,
        tiro: &Tiro,
        data_dir: &Path,
        directory: &Path,
        name: &str,
        short: bool,
    ) -> Result<()> {
        let place = Place { data_dir: data_dir.to_owned(), project: directory.to_owned() };
        if !short {
            self.call_tools(tiro, &place, name)?;
        }
        for arguments in COMMANDS.iter().filter(|arguments| !short || arguments[0] != "demo") {
            let file = data_dir.with_file_name("backup-of-a-hostile-project");
            let _ = std::fs::remove_file(&file);
            let file = file.to_string_lossy();
            let arguments: Vec<&str> = arguments
                .iter()
                .map(|argument| if *argument == NEW_FILE { &file } else { *argument })
                .collect();
            self.run(tiro.command(&place, &arguments), &format!("{name}: tiro {}", arguments.join(" ")))?;
        }
        // The tools are called last, when imported data can be shown.
        self.call_tools(tiro, &place, name)
    }

    fn run(&mut self, mut command: Command, what: &str) -> Result<()> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let started = Instant::now();
        let mut child = command.spawn().with_context(|| format!("starting {what}"))?;
        let stdout = reader(child.stdout.take().expect("stdout is piped"));
        let stderr = reader(child.stderr.take().expect("stderr is piped"));
        let mut peak = 0.0_f64;
        let status = loop {
            peak = peak.max(peak_mib(child.id()).unwrap_or(0.0));
            if let Some(status) = child.try_wait()? {
                break Some(status);
            }
            if started.elapsed() > LONGEST {
                let _ = child.kill();
                let _ = child.wait();
                break None;
            }
            thread::sleep(Duration::from_millis(2));
        };
        self.took(started.elapsed(), what);
        self.grew(peak, what);
        let said = [stdout, stderr].map(|reader| reader.join().expect("a reader does not panic"));
        let said = said.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).join("\n");
        match status {
            None => self.lost.push(format!("{what}: no end after {} s", LONGEST.as_secs())),
            Some(_) if said.contains("panicked") => {
                self.lost.push(format!("{what}: {}", last_chars(&said, 300)))
            }
            Some(status) => self.errors += usize::from(!status.success()),
        }
        self.look(&said, what);
        Ok(())
    }

    fn call_tools(&mut self, tiro: &Tiro, place: &Place, name: &str) -> Result<()> {
        let what = |tool: &str| format!("{name}: {tool}");
        let mut server = match tiro.serve(place, Era::Session) {
            Ok(server) => server,
            Err(error) => {
                self.lost.push(format!("{name}: {}", last_chars(&format!("{error:#}"), 300)));
                return Ok(());
            }
        };
        let requests = requests(&mut server, &place.project, name)?;
        for (method, parameters, tool) in requests {
            let started = Instant::now();
            match server.exchange(method, parameters) {
                Ok(answer) => {
                    self.errors +=
                        usize::from(answer["result"]["isError"] == true || !answer["error"].is_null());
                    self.took(started.elapsed(), &what(&tool));
                    self.look(&spoken(&answer), &what(&tool));
                }
                Err(error) => {
                    self.lost.push(format!("{}: {}", what(&tool), last_chars(&format!("{error:#}"), 300)));
                    server = tiro.serve(place, Era::Session)?;
                }
            }
        }
        self.grew(server.peak_mib().unwrap_or(0.0), name);
        let said = server.log();
        self.look(&said, &what("log"));
        Ok(())
    }

    fn took(&mut self, elapsed: Duration, what: &str) {
        self.calls += 1;
        if elapsed.as_secs_f64() > self.slowest.0 {
            self.slowest = (elapsed.as_secs_f64(), what.to_owned());
        }
    }

    fn grew(&mut self, mib: f64, what: &str) {
        if mib > self.largest.0 {
            self.largest = (mib, what.to_owned());
        }
    }

    /// Searches an answer, an error or a log for leaks.
    fn look(&mut self, said: &str, what: &str) {
        for (word, kind) in FORBIDDEN {
            if let Some(at) = said.find(word) {
                let around: String =
                    said[..at].chars().rev().take(120).collect::<Vec<_>>().into_iter().rev().collect();
                self.shown.entry(kind).or_default().push(format!("{what}: …{around}{word}"));
            }
        }
        if said.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\t' | '\r')) {
            self.raw.push(what.to_owned());
        }
    }
}

/// Returns the paths whose lines are to be explained: those in the directory, and paths that lead out of it.
fn explained(directory: &Path) -> Vec<String> {
    let mut paths: Vec<String> = std::fs::read_dir(directory).map_or_else(
        |_| Vec::new(),
        |entries| entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect(),
    );
    paths.sort_unstable();
    paths.truncate(MOST_EXPLAINED);
    let out =
        ["../secrets/notes.txt", "../private/notes.txt", ".git/config", "notes.txt:1-9", "notes.txt:zz"];
    let absolute = directory.join("../secrets/id_key").to_string_lossy().into_owned();
    paths.into_iter().chain(out.map(str::to_owned)).chain([absolute]).collect()
}

/// Returns requests: a call of every tool with valid arguments, explanations of lines, and reads of the resources.
fn requests(server: &mut Server, directory: &Path, name: &str) -> Result<Vec<(&'static str, Value, String)>> {
    let list = server.request("tools/list", json!({}))?;
    let tools = list["tools"].as_array().cloned().unwrap_or_default();
    let mut requests = Vec::new();
    for tool in tools {
        let tool_name = tool["name"].as_str().unwrap_or_default().to_owned();
        let arguments = arguments(&tool_name, &tool["inputSchema"], name);
        requests.push(("tools/call", json!({"name": tool_name, "arguments": arguments}), tool_name));
    }
    for path in explained(directory) {
        let what = format!("explain_lines {path}");
        requests.push(("tools/call", json!({"name": "explain_lines", "arguments": {"path": path}}), what));
    }
    requests.push(("resources/list", json!({}), "resources/list".to_owned()));
    let missing = json!({"uri": "tiro://session/attack"});
    requests.push(("resources/read", missing, "resources/read".to_owned()));
    Ok(requests)
}

/// Returns arguments for a tool: special ones for some tools, and for the others what their schemas require.
fn arguments(tool: &str, schema: &Value, name: &str) -> Value {
    let stored = format!("{INTRUDER_WORD} was here: {name}");
    match tool {
        "search_project_memory" => json!({"query": QUESTION, "k": 30, "max_tokens": 8000}),
        "save_messages" => json!({"session_id": "attack", "messages": [
            {"id": "1", "role": "user", "text": stored}, {"id": "2", "role": "assistant", "text": "Noted."},
        ]}),
        "store_memory" => json!({"text": stored, "type": "fact"}),
        "forget_context" => json!({"query": "merger plans harbour", "dry_run": true}),
        "mark_important" => json!({"ids": ["attack#1"]}),
        "expand_detail" => json!({"id": "attack#1"}),
        "summarize_conversation" => json!({"session_id": "attack"}),
        // The provider must be one that is refused: an accepted one would be asked for every later summary.
        "configure_llm_provider" => {
            json!({"provider": "nowhere", "config": {"endpoint": "http://127.0.0.1:1"}})
        }
        _ => {
            let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let value = |field: &str| match schema["properties"][field]["type"].as_str() {
                Some("integer") => json!(1),
                Some("array") => json!(["attack"]),
                Some("object") => json!({}),
                _ if field == "session_id" => json!("attack"),
                _ => json!(QUESTION),
            };
            let mut fields = serde_json::Map::new();
            required.for_each(|field| drop(fields.insert(field.to_owned(), value(field))));
            Value::Object(fields)
        }
    }
}

/// Returns every string of an answer as a model or a person sees it: without JSON escapes, one per line.
fn spoken(answer: &Value) -> String {
    match answer {
        Value::String(text) => format!("{text}\n"),
        Value::Array(items) => items.iter().map(spoken).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| format!("{name}\n{}", spoken(value))).collect()
        }
        _ => String::new(),
    }
}

fn reader(mut pipe: impl Read + Send + 'static) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.read_to_end(&mut bytes);
        bytes
    })
}

/// Returns the peak resident memory of a process in MiB; `None` without `/proc`.
fn peak_mib(process: u32) -> Option<f64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.split_whitespace().next()?.parse::<f64>().ok()? / 1024.0)
}
