//! The ground of a recording: a repository, a transcript, a home with a provider, and the program with fixed time and chance.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::Line;
use crate::calls::settle;
use crate::client::{Era, Place, Server, Tiro, run_to_end};
use crate::corpus::seconds_of;
use crate::mock;
use crate::talk::{Repo, Session};

/// When the recording begins: later than everything that is imported.
const BEGIN: i64 = 1_780_300_000;

/// How many seconds of the program's time pass from one call to the next.
const STEP: i64 = 60;

/// The seam of time and chance.
const FIXED: &str = include_str!("fixed.c");

/// What the calls work on.
pub struct Ground {
    /// The messages of the sample conversations, as `save_messages` takes them, by session.
    pub sessions: Vec<(String, Vec<Value>)>,
    /// Questions about them.
    pub questions: Vec<String>,
    /// What was recorded.
    pub lines: Vec<Line>,
    tiro: Tiro,
    place: Place,
    clock: PathBuf,
    now: i64,
    processes: u64,
    port: u16,
}

impl Ground {
    /// Makes the ground in `dir`, which is emptied.
    pub fn new(dir: &Path, tiro: &Tiro) -> Result<Ground> {
        if dir.exists() {
            std::fs::remove_dir_all(dir).with_context(|| format!("emptying `{}`", dir.display()))?;
        }
        let place = Place::create(dir)?;
        let (source, library) = (dir.join("fixed.c"), dir.join("fixed.so"));
        std::fs::write(&source, FIXED)?;
        let made = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-o"])
            .args([&library, &source])
            .arg("-ldl")
            .status()
            .context("starting `cc`")?;
        ensure!(made.success(), "`{}` could not be compiled", source.display());
        let clock = dir.join("clock");
        // Its path is a part of some answers.
        let program = dir.join("tiro");
        std::fs::copy(&tiro.program, &program).context("copying the program")?;
        let mut tiro = Tiro { program, ..tiro.clone() };
        let variables = [("LD_PRELOAD", &library), ("FIXED_CLOCK", &clock)];
        tiro.environment.extend(variables.map(|(name, path)| (name.to_owned(), path.display().to_string())));
        tiro.environment.push(("COLUMNS".to_owned(), "100".to_owned()));
        let port = mock::start(|| "Keep it as it is.".to_owned())?;
        let config = place.data_dir.join("config/tiro");
        std::fs::create_dir_all(&config)?;
        let provider = format!(
            "[providers.mock]\nservice = 'openai-compatible'\nendpoint = 'http://127.0.0.1:{port}/v1'\nmodel = 'm'\n\
             window = 16000\n"
        );
        std::fs::write(config.join("config.toml"), provider)?;
        // The program refuses a folder that others can read.
        #[cfg(unix)]
        std::fs::set_permissions(&place.data_dir, std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
        let (sessions, questions) = (sessions()?, questions()?);
        let mut ground = Ground {
            sessions,
            questions,
            lines: Vec::new(),
            tiro,
            place,
            clock,
            now: BEGIN,
            processes: 0,
            port,
        };
        ground.repository()?;
        ground.transcript()?;
        ground.pass()?;
        Ok(ground)
    }

    /// Commits the sample history, one file a commit, and sets the times of the files.
    fn repository(&self) -> Result<()> {
        let repo = Repo::create(&self.place.project)?;
        std::fs::create_dir_all(repo.path.join("src"))?;
        for (index, line) in include_str!("../../../tools/assets/demo/commits.jsonl").lines().enumerate() {
            let commit: Value = serde_json::from_str(line)?;
            let (subject, body) =
                (commit["subject"].as_str().unwrap_or(""), commit["body"].as_str().unwrap_or(""));
            let name = format!("src/part{}.rs", index % 9);
            let text: String =
                body.split(". ").map(|sentence| format!("// {sentence}\nfn part_{index}() {{}}\n")).collect();
            repo.append(&name, &text)?;
            let time = seconds_of(commit["time"].as_str().context("a commit without a time")?)?;
            repo.git(time, &["add", "--", &name])?;
            repo.git(time, &["commit", "--quiet", "-m", subject, "-m", body])?;
        }
        for index in 0..9 {
            let file = File::options().append(true).open(repo.path.join(format!("src/part{index}.rs")))?;
            file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(BEGIN.unsigned_abs() - 86_400))?;
        }
        Ok(())
    }

    /// Writes the second sample conversation as a transcript of Claude Code.
    fn transcript(&self) -> Result<()> {
        let session = Session::new(&self.place.home(), 7, &self.place.project, "main")?;
        for message in &self.sessions[1].1 {
            let text = |field: &str| message[field].as_str().unwrap_or("");
            session.say(seconds_of(text("time"))?, text("role"), text("text"))?;
        }
        Ok(())
    }

    fn pass(&mut self) -> Result<()> {
        self.now += STEP;
        std::fs::write(&self.clock, self.now.to_string()).context("setting the clock")
    }

    /// Returns the program with the chance of its next process.
    fn next_process(&mut self) -> Tiro {
        self.processes += 1;
        let mut tiro = self.tiro.clone();
        tiro.environment.push(("FIXED_SEED".to_owned(), self.processes.to_string()));
        tiro
    }

    /// Starts a server.
    pub fn serve(&mut self) -> Result<Server> {
        self.next_process().serve(&self.place, Era::Session)
    }

    /// Waits until every piece is embedded, so that no answer depends on how far the idle server has come.
    pub fn settle(&mut self, server: &mut Server) -> Result<()> {
        let tiro = self.next_process();
        settle(&tiro, &self.place, server)
    }

    /// Calls a tool and records the answer, which may be an error.
    pub fn call(&mut self, server: &mut Server, tool: &str, arguments: Value) -> Result<Value> {
        self.pass()?;
        let asked = format!("{tool} {arguments}");
        let result = server.exchange("tools/call", json!({"name": tool, "arguments": arguments}))?;
        let answered = self.masked(&result.to_string());
        self.lines.push(Line { asked, answered });
        Ok(result["result"].clone())
    }

    /// Runs a command line and records its end.
    pub fn command(&mut self, arguments: &[&str]) -> Result<()> {
        self.pass()?;
        let command = self.next_process().command(&self.place, arguments);
        let (status, stdout, stderr) = run_to_end(command, Duration::from_secs(300))?;
        let answered = self.masked(&format!("{status}\n{stdout}\n{stderr}"));
        self.lines.push(Line { asked: format!("tiro {}", arguments.join(" ")), answered });
        Ok(())
    }

    /// Returns the text without the mock's port and without how long something took.
    fn masked(&self, text: &str) -> String {
        let text = text.replace(&format!("127.0.0.1:{}", self.port), "127.0.0.1:PORT");
        let text = without_timings(&text);
        let text = without_numbers_before(&text, "_ms\":", true);
        ["ms", "s", "ms,", "s,"]
            .iter()
            .fold(text, |text, unit| without_numbers_before(&text, &format!(" {unit}"), false))
    }
}

/// Removes the durations of the steps of a search.
fn without_timings(text: &str) -> String {
    let mut parts = text.split("\"timings\":{");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |kept, part| kept + part.split_once('}').map_or(part, |(_, rest)| rest))
}

/// Replaces the number right before each `mark`, or right `after` it, by `#`.
fn without_numbers_before(text: &str, mark: &str, after: bool) -> String {
    let is_number = |c: char| c.is_ascii_digit() || c == '.';
    let mut parts = text.split(mark).map(str::to_owned).collect::<Vec<_>>();
    let count = parts.len();
    for (index, part) in parts.iter_mut().enumerate() {
        if after && index > 0 {
            *part = format!("#{}", part.trim_start_matches(is_number));
        }
        if !after && index + 1 < count && part.ends_with(|c: char| c.is_ascii_digit()) {
            *part = format!("{}#", part.trim_end_matches(is_number));
        }
    }
    parts.join(mark)
}

fn sessions() -> Result<Vec<(String, Vec<Value>)>> {
    let mut sessions: Vec<(String, Vec<Value>)> = Vec::new();
    for line in include_str!("../../../tools/assets/demo/conversation.jsonl").lines() {
        let mut message: Value = serde_json::from_str(line)?;
        let session = message["session"].as_str().context("a message without a session")?.to_owned();
        message.as_object_mut().context("a message that is no object")?.remove("session");
        match sessions.last_mut().filter(|(name, _)| *name == session) {
            Some((_, messages)) => messages.push(message),
            None => sessions.push((session, vec![message])),
        }
    }
    Ok(sessions)
}

fn questions() -> Result<Vec<String>> {
    let listed: Vec<Value> = serde_json::from_str(include_str!("../../../tools/assets/demo/questions.json"))?;
    Ok(listed.iter().filter_map(|question| question["question"].as_str().map(str::to_owned)).collect())
}
