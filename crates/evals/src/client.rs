//! Runs the real binary, as a command or as an MCP server on stdio.
//!
//! The protocol is implemented by hand here, one line of JSON per message, without the library that the server uses: a
//! mistake that both ends shared would not show. Every wait has a deadline, and standard error is always drained. The
//! measured processes get none of the caller's settings. This is not a general client: it sends only one request at a
//! time, and ignores notifications of the server.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use serde_json::{Value, json};

/// How many lines of a server's standard error are kept.
const LOG_LINES: usize = 1000;

/// The environment variables by which a user moves the files of clients.
const MOVED: [&str; 7] = [
    "CLAUDE_CONFIG_DIR",
    "CODEX_HOME",
    "COPILOT_HOME",
    "GEMINI_CLI_HOME",
    "OPENCODE_DB",
    "QWEN_HOME",
    "QWEN_RUNTIME_DIR",
];

/// The program under measurement, and the settings of every run.
#[derive(Clone, Debug)]
pub struct Tiro {
    /// The binary to run.
    pub program: PathBuf,
    /// Where the embedding model is installed. Without a model, the program has only lexical search.
    pub model_dir: Option<PathBuf>,
    /// The longest wait for one answer.
    pub answer_timeout: Duration,
    /// The environment variables that every run gets.
    pub environment: Vec<(String, String)>,
}

/// A separate memory: a data directory and a project directory.
#[derive(Clone, Debug)]
pub struct Place {
    /// Becomes `TIRO_DATA_DIR`.
    pub data_dir: PathBuf,
    /// Becomes `--project`.
    pub project: PathBuf,
}

/// The way a client opens the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    /// `initialize`, then requests, as in protocol 2025-06-18.
    Session,
    /// No handshake; each request carries its context, as in protocol 2026-07-28.
    Stateless,
}

/// A running server, with its input and output. Dropping it closes its input and, after two seconds, kills it.
pub struct Server {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    stderr: Arc<Mutex<VecDeque<String>>>,
    era: Era,
    next_id: u64,
    timeout: Duration,
}

/// The answer of a tool.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The whole result, as received.
    pub result: Value,
    /// The time from sending the request until the answer was read.
    pub elapsed: Duration,
}

impl Place {
    /// Makes the directories `data` and `project` in `root`.
    pub fn create(root: &Path) -> Result<Place> {
        let place = Place { data_dir: root.join("data"), project: root.join("project") };
        for directory in [&place.data_dir, &place.project] {
            std::fs::create_dir_all(directory)
                .with_context(|| format!("making `{}`", directory.display()))?;
        }
        Ok(place)
    }

    /// Returns the user's home directory, next to the data directory.
    pub fn home(&self) -> PathBuf {
        self.data_dir.with_file_name("home")
    }
}

impl Tiro {
    /// Returns the same program with an empty model directory in `root`.
    pub fn without_model(&self, root: &Path) -> Result<Tiro> {
        let no_model = root.join("no-model");
        std::fs::create_dir_all(&no_model).with_context(|| format!("making `{}`", no_model.display()))?;
        Ok(Tiro { model_dir: Some(no_model), ..self.clone() })
    }

    /// Returns whether a model is installed. Without one, searches work by words alone.
    pub fn has_model(&self) -> bool {
        let folder = self.model_dir.as_ref().and_then(|folder| std::fs::read_dir(folder).ok());
        folder.is_some_and(|mut models| models.next().is_some())
    }

    /// Returns the command for `place` with `arguments` and without the caller's settings.
    pub fn command(&self, place: &Place, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy();
            if name.starts_with("TIRO_") || name.starts_with("PERSISTENCE_") || name == "CLAUDE_PROJECT_DIR" {
                command.env_remove(&*name);
            }
        }
        command.args(arguments).current_dir(&place.project).env("TIRO_DATA_DIR", &place.data_dir);
        command.env("XDG_CONFIG_HOME", place.data_dir.join("config")).env_remove("CI");
        command.env("HOME", place.home());
        for moved in MOVED {
            command.env_remove(moved);
        }
        if let Some(model_dir) = &self.model_dir {
            command.env("TIRO_MODEL_DIR", model_dir);
        }
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs a command of the program on `place` to its end and returns its standard output.
    ///
    /// # Errors
    ///
    /// Fails if the command fails, with the end of its standard error, or if it runs longer than `timeout`.
    pub fn run(&self, place: &Place, arguments: &[&str], timeout: Duration) -> Result<String> {
        let (status, stdout, stderr) = self.run_to_end(place, arguments, timeout)?;
        if !status.success() {
            bail!("`tiro {}` ended with {status}: {}", arguments.join(" "), last_chars(&stderr, 2000));
        }
        Ok(stdout)
    }

    /// Like [`Tiro::run`], but returns status, standard output and standard error of a command that may fail.
    pub fn run_to_end(
        &self,
        place: &Place,
        arguments: &[&str],
        timeout: Duration,
    ) -> Result<(ExitStatus, String, String)> {
        run_to_end(self.command(place, arguments), timeout)
    }

    /// Starts a server for `place` and opens the conversation as `era` does.
    pub fn serve(&self, place: &Place, era: Era) -> Result<Server> {
        self.serve_with(place, era, &[])
    }

    /// Like [`Tiro::serve`], with more arguments.
    pub fn serve_with(&self, place: &Place, era: Era, arguments: &[&str]) -> Result<Server> {
        let mut server = self.start_with(place, era, arguments)?;
        server
            .open()
            .with_context(|| format!("opening the conversation with `{}`", self.program.display()))?;
        Ok(server)
    }

    /// Starts a server for `place` without a handshake; see [`Server::open`].
    pub fn start(&self, place: &Place, era: Era) -> Result<Server> {
        self.start_with(place, era, &[])
    }

    fn start_with(&self, place: &Place, era: Era, arguments: &[&str]) -> Result<Server> {
        let project = place.project.to_str().context("the project path is not UTF-8")?;
        let mut command =
            self.command(place, &[&["serve", "--structured", "--project", project], arguments].concat());
        command.env("TIRO_TIMINGS", "1").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child =
            command.spawn().with_context(|| format!("starting `{} serve`", self.program.display()))?;
        let stdout = child.stdout.take().expect("stdout is piped");
        let errors = child.stderr.take().expect("stderr is piped");
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(|line| line.ok()) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let stderr = Arc::new(Mutex::new(VecDeque::new()));
        let kept = Arc::clone(&stderr);
        thread::spawn(move || {
            for line in BufReader::new(errors).lines().map_while(|line| line.ok()) {
                let mut kept = kept.lock().expect("no holder panics");
                kept.push_back(line);
                if kept.len() > LOG_LINES {
                    kept.pop_front();
                }
            }
        });
        let stdin = child.stdin.take();
        Ok(Server { child, stdin, lines, stderr, era, next_id: 0, timeout: self.answer_timeout })
    }
}

impl Server {
    /// Performs the handshake if the era has one.
    pub fn open(&mut self) -> Result<()> {
        if self.era == Era::Session {
            let client = json!({"name": "evals", "version": env!("CARGO_PKG_VERSION")});
            let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
            self.request("initialize", hello)?;
            self.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        }
        Ok(())
    }

    /// Calls the tool `name` and returns its answer.
    ///
    /// # Errors
    ///
    /// Fails also if the tool itself reports an error. [`Server::try_tool`] returns such an error as an answer.
    pub fn tool(&mut self, name: &str, arguments: Value) -> Result<Answer> {
        let answer = self.try_tool(name, arguments)?;
        if answer.is_error() {
            bail!("`{name}` answered with an error: {}", last_chars(&answer.text(), 1000));
        }
        Ok(answer)
    }

    /// Calls the tool `name` and returns its answer, even if that is an error.
    pub fn try_tool(&mut self, name: &str, arguments: Value) -> Result<Answer> {
        let started = Instant::now();
        let result = self.request("tools/call", json!({"name": name, "arguments": arguments}))?;
        Ok(Answer { result, elapsed: started.elapsed() })
    }

    /// Sends a request and returns its result.
    pub fn request(&mut self, method: &str, params: Value) -> Result<Value> {
        let message = self.exchange(method, params)?;
        match message.get("error") {
            Some(error) => bail!("`{method}` was refused: {error}"),
            None => Ok(message["result"].clone()),
        }
    }

    /// Sends a request and returns the whole reply: a `result` or a protocol `error`.
    pub fn exchange(&mut self, method: &str, params: Value) -> Result<Value> {
        let id = self.send(method, params)?;
        let deadline = Instant::now() + self.timeout;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => {
                    let message: Value = serde_json::from_str(&line).with_context(|| {
                        format!("the server wrote `{}`, not JSON", last_chars(&line, 200))
                    })?;
                    if message["id"] == id && message.get("method").is_none() {
                        return Ok(message);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    bail!("`{method}` had no answer in {} s{}", self.timeout.as_secs(), self.said())
                }
                Err(RecvTimeoutError::Disconnected) => {
                    bail!("the server ended during `{method}`{}", self.said())
                }
            }
        }
    }

    /// Sends a request without waiting for the reply and returns its id.
    pub fn send(&mut self, method: &str, mut params: Value) -> Result<u64> {
        self.next_id += 1;
        if self.era == Era::Stateless {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": {"name": "evals", "version": env!("CARGO_PKG_VERSION")},
                "io.modelcontextprotocol/clientCapabilities": {},
            });
        }
        self.write(&json!({"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params}))?;
        Ok(self.next_id)
    }

    /// Kills the server as `kill -9` does. Returns the replies that the server had sent but that were not read yet,
    /// oldest first.
    pub fn kill(mut self) -> Vec<Value> {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let mut messages = Vec::new();
        while let Ok(line) = self.lines.recv_timeout(Duration::from_secs(5)) {
            messages.extend(serde_json::from_str(&line));
        }
        messages
    }

    /// Closes the server's input and returns how long it took to end.
    ///
    /// # Errors
    ///
    /// Fails if the server still runs after ten seconds.
    pub fn close(mut self) -> Result<Duration> {
        let started = Instant::now();
        drop(self.stdin.take());
        match wait(&mut self.child, Duration::from_secs(10))? {
            Some(_) => Ok(started.elapsed()),
            None => bail!("the server is still there 10 s after its input was closed{}", self.said()),
        }
    }

    /// Returns the server's resident memory in MiB; `None` without `/proc`.
    pub fn resident_mib(&self) -> Option<f64> {
        memory_mib(self.child.id(), "VmRSS:")
    }

    /// Returns the server's peak resident memory in MiB; `None` without `/proc`.
    pub fn peak_mib(&self) -> Option<f64> {
        memory_mib(self.child.id(), "VmHWM:")
    }

    fn write(&mut self, message: &Value) -> Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        let stdin = self.stdin.as_mut().context("the server's input is closed")?;
        let written = stdin.write_all(&line).and_then(|()| stdin.flush());
        written.map_err(|error| anyhow!("the server does not read: {error}{}", self.said()))
    }

    /// Returns the last [`LOG_LINES`] lines of the server's standard error.
    pub fn log(&self) -> String {
        let kept = self.stderr.lock().expect("no holder panics");
        kept.iter().map(|line| format!("{line}\n")).collect()
    }

    /// Returns the end of the server's standard error, to append to a message.
    fn said(&self) -> String {
        let kept = self.stderr.lock().expect("no holder panics");
        if kept.is_empty() {
            return String::new();
        }
        let last = kept.iter().skip(kept.len().saturating_sub(20)).map(String::as_str);
        format!("; it said: {}", last.collect::<Vec<_>>().join(" / "))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stdin.take());
        if !matches!(wait(&mut self.child, Duration::from_secs(2)), Ok(Some(_))) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

impl Answer {
    /// Returns the structured part, or null.
    pub fn structured(&self) -> &Value {
        &self.result["structuredContent"]
    }

    /// Returns whether the tool reported an error.
    pub fn is_error(&self) -> bool {
        self.result["isError"].as_bool().unwrap_or(false)
    }

    /// Returns the text parts, joined.
    pub fn text(&self) -> String {
        let parts = self.result["content"].as_array().into_iter().flatten();
        parts.filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n")
    }

    /// Returns the hits of a search; empty if the answer has none.
    pub fn hits(&self) -> &[Value] {
        self.structured()["hits"].as_array().map_or(&[], Vec::as_slice)
    }

    /// Returns the number of pieces without an embedding, if the answer reports it.
    pub fn pending(&self) -> Option<u64> {
        self.structured()["pending"].as_u64()
    }

    /// Returns the time between request and answer in milliseconds.
    pub fn ms(&self) -> f64 {
        self.elapsed.as_secs_f64() * 1000.0
    }
}

/// Runs any command to its end, at most for `timeout`, and returns status, standard output, standard error.
pub fn run_to_end(mut command: Command, timeout: Duration) -> Result<(ExitStatus, String, String)> {
    let shown = format!("{command:?}");
    let shown = last_chars(&shown, 300);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("starting {shown}"))?;
    let stdout = read_all(child.stdout.take().expect("stdout is piped"));
    let stderr = read_all(child.stderr.take().expect("stderr is piped"));
    let Some(status) = wait(&mut child, timeout)? else {
        let _ = child.kill();
        let _ = child.wait();
        bail!("{shown} was still running after {} s", timeout.as_secs());
    };
    let text = |reader: thread::JoinHandle<Vec<u8>>| {
        String::from_utf8_lossy(&reader.join().expect("a reader does not panic")).into_owned()
    };
    Ok((status, text(stdout), text(stderr)))
}

fn read_all(mut pipe: impl Read + Send + 'static) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.read_to_end(&mut bytes);
        bytes
    })
}

/// Waits for the end of a process, at most for `timeout`; `None` if it still runs.
fn wait(child: &mut Child, timeout: Duration) -> Result<Option<ExitStatus>> {
    let deadline = Instant::now() + timeout;
    let mut pause = Duration::from_micros(200);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= deadline {
            return Ok(None);
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

/// Returns a number of `/proc/PROCESS/status` in MiB, such as `VmRSS:`; `None` without `/proc`.
pub fn memory_mib(process: u32, field: &str) -> Option<f64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    Some(line.split_whitespace().next()?.parse::<f64>().ok()? / 1024.0)
}

/// Returns the last `count` characters of `text`.
pub fn last_chars(text: &str, count: usize) -> &str {
    match text.char_indices().rev().nth(count.saturating_sub(1)) {
        Some((start, _)) => &text[start..],
        None => text,
    }
}
