//! Gives each test a separate home, runs the program in it, and makes git repositories for it.
//!
//! The protocol is implemented by hand, one line of JSON per message: with the library of the server, a mistake in that
//! library would not show. Every wait for an answer has a deadline.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// How long an answer may take before the test fails. Arbitrary: far longer than any answer takes on a busy machine.
const DEADLINE: Duration = Duration::from_secs(60);

/// A temporary home with an empty data directory and no model.
pub struct Home {
    root: tempfile::TempDir,
}

/// The result of a command.
#[derive(Debug)]
pub struct Ran {
    pub is_ok: bool,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    /// Runs `command` to its end with empty input.
    pub fn of(command: &mut Command) -> Ran {
        let output = command.stdin(Stdio::null()).output().unwrap();
        Ran {
            is_ok: output.status.success(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl Home {
    pub fn new() -> Home {
        let home = Home { root: tempfile::tempdir().unwrap() };
        for name in ["home", "data", "models"] {
            home.dir(name);
        }
        home
    }

    /// Returns the directory `name` in the root. Creates it if it does not exist.
    pub fn dir(&self, name: &str) -> PathBuf {
        let path = self.path().join(name);
        std::fs::create_dir_all(&path).unwrap();
        path
    }

    /// Returns the root without symbolic links.
    pub fn path(&self) -> PathBuf {
        self.root.path().canonicalize().unwrap()
    }

    pub fn data(&self) -> PathBuf {
        self.path().join("data")
    }

    /// Returns a new repository without commits.
    pub fn repo(&self, name: &str) -> Repo {
        let repo = Repo { path: self.dir(name), home: self.path().join("home") };
        repo.git(&["init", "-q", "-b", "main"]);
        repo
    }

    /// Returns `path`, an existing repository.
    pub fn repo_at(&self, path: PathBuf) -> Repo {
        Repo { path, home: self.path().join("home") }
    }

    /// Returns the program with a clean environment and `directory` as its working directory.
    pub fn tiro(&self, directory: &Path, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tiro"));
        command
            .args(args)
            .current_dir(directory)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.path().join("home"))
            .env("TIRO_DATA_DIR", self.data())
            .env("TIRO_MODEL_DIR", self.path().join("models"))
            .env("TIRO_LOG", "debug")
            .env("TZ", "UTC");
        command
    }

    /// Runs a command of the program to its end.
    pub fn run(&self, directory: &Path, args: &[&str]) -> Ran {
        Ran::of(&mut self.tiro(directory, args))
    }

    /// Runs a command of the program with `input` to its end.
    pub fn feed(&self, directory: &Path, args: &[&str], input: &[u8]) -> Ran {
        feed(self.tiro(directory, args), input)
    }

    /// Runs a command that must succeed, with `--json`, and returns its answer.
    pub fn json(&self, directory: &Path, args: &[&str]) -> Value {
        let ran = self.run(directory, &[args, &["--json"]].concat());
        assert!(ran.is_ok, "{args:?}: {ran:?}");
        serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{args:?}: {error}: {ran:?}"))
    }

    /// Starts a server in `directory` and does the handshake.
    pub fn serve(&self, directory: &Path) -> Server {
        Server::start(self.tiro(directory, &["serve"]))
    }

    /// Starts a server that answers as for a model, with text alone, and does the handshake.
    pub fn serve_texts(&self, directory: &Path) -> Server {
        Server::open(self.tiro(directory, &["serve"]), "2025-06-18")
    }

    /// Starts a server whose hits say how they were ranked.
    pub fn serve_with_ranking(&self, directory: &Path) -> Server {
        let mut command = self.tiro(directory, &["serve"]);
        command.env("TIRO_TIMINGS", "1");
        Server::start(command)
    }

    /// Returns the files of the data directory that hold `needle` anywhere in their bytes.
    pub fn files_with(&self, needle: &str) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut folders = vec![self.data()];
        while let Some(folder) = folders.pop() {
            assert!(!folder.to_string_lossy().contains(needle), "the name of {folder:?}");
            for entry in std::fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if holds(&std::fs::read(&path).unwrap(), needle.as_bytes()) {
                    found.push(path);
                }
            }
        }
        found
    }

    /// Returns the number of hook references in the spool.
    pub fn waiting(&self) -> usize {
        let folders = std::fs::read_dir(self.data().join("spool")).into_iter().flatten();
        let files = folders.filter_map(|folder| std::fs::read_dir(folder.unwrap().path()).ok()).flatten();
        files.filter(|file| file.as_ref().unwrap().path().extension().is_some_and(|it| it == "json")).count()
    }

    /// Returns the store of the only project.
    pub fn store(&self) -> PathBuf {
        let folders: Vec<_> = std::fs::read_dir(self.data().join("projects")).unwrap().collect();
        let [folder] = &folders[..] else { panic!("{} projects", folders.len()) };
        folder.as_ref().unwrap().path().join("tiro.db")
    }
}

/// Runs a command with `input` to its end. The command need not read all of the input.
pub fn feed(mut command: Command, input: &[u8]) -> Ran {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writer = std::thread::spawn(move || {
        // The command has read enough and closed its input.
        let _ = stdin.write_all(&input);
    });
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    Ran {
        is_ok: output.status.success(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

fn holds(bytes: &[u8], needle: &[u8]) -> bool {
    bytes.windows(needle.len()).any(|window| window == needle)
}

/// Waits until `is_so`. Only for what the program does later, such as the work of an idle server.
pub fn eventually(mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + DEADLINE;
    while !is_so() {
        assert!(Instant::now() < until, "it is not so after {DEADLINE:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A running server, with its input and output. Dropping it kills the server.
pub struct Server {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    log: Arc<Mutex<String>>,
    log_reader: Option<JoinHandle<()>>,
    next_id: u64,
    deadline: Duration,
}

impl Server {
    /// Starts the server `command`, whose answers also have their data, and does the handshake.
    pub fn start(command: Command) -> Server {
        Server::start_as(command, "it")
    }

    /// Like [`Server::start`], as the client called `client`.
    pub fn start_as(mut command: Command, client: &str) -> Server {
        command.arg("--structured");
        Server::open_as(command, client, "2025-06-18")
    }

    /// Starts the server `command` and does the handshake of this revision of the protocol.
    pub fn open(command: Command, revision: &str) -> Server {
        Server::open_as(command, "it", revision)
    }

    fn open_as(mut command: Command, client: &str, revision: &str) -> Server {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (sender, lines) = channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            let _ = stdout.lines().map_while(Result::ok).try_for_each(|line| sender.send(line));
        });
        let log = Arc::new(Mutex::new(String::new()));
        let (kept, mut stderr) = (Arc::clone(&log), child.stderr.take().unwrap());
        let log_reader = std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = stderr.read(&mut buffer) {
                kept.lock().unwrap().push_str(&String::from_utf8_lossy(&buffer[..count]));
            }
        });
        let stdin = child.stdin.take();
        let mut server =
            Server { child, stdin, lines, log, log_reader: Some(log_reader), next_id: 0, deadline: DEADLINE };
        let params = json!({
            "protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": client, "version": "0"},
        });
        let answer = server.request("initialize", params);
        assert_eq!(answer["result"]["serverInfo"]["name"], "tiro", "{answer}");
        assert_eq!(answer["result"]["protocolVersion"], revision, "{answer}");
        server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string());
        server
    }

    /// Sends one line unchanged.
    pub fn send(&mut self, line: &str) {
        self.try_send(line).expect("the server reads");
    }

    fn try_send(&mut self, line: &str) -> std::io::Result<()> {
        let stdin = self.stdin.as_mut().expect("stdin is open");
        stdin.write_all(format!("{line}\n").as_bytes())?;
        stdin.flush()
    }

    /// Waits for the next line and reads it.
    pub fn receive(&mut self) -> Value {
        self.try_receive().unwrap_or_else(|| panic!("no answer; its log: {}", self.log.lock().unwrap()))
    }

    fn try_receive(&mut self) -> Option<Value> {
        let line = self.lines.recv_timeout(self.deadline).ok()?;
        Some(serde_json::from_str(&line).expect("nothing but JSON on stdout"))
    }

    /// Sends a request without waiting for its answer and returns its id.
    pub fn ask(&mut self, method: &str, params: Value) -> u64 {
        self.next_id += 1;
        let id = self.next_id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string());
        id
    }

    /// Returns the whole answer to a request.
    pub fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params);
        let answer = self.receive();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// Returns the answer to a call, or nothing if the server has ended.
    pub fn try_call(&mut self, tool: &str, arguments: Value) -> Option<Value> {
        self.next_id += 1;
        let params = json!({"name": tool, "arguments": arguments});
        let request = json!({"jsonrpc": "2.0", "id": self.next_id, "method": "tools/call", "params": params});
        self.try_send(&request.to_string()).ok()?;
        self.try_receive()
    }

    /// Returns the result of a call, even if it is an error.
    pub fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let mut answer = self.request("tools/call", json!({"name": tool, "arguments": arguments}));
        assert!(answer["result"].is_object(), "{tool}: {answer}");
        answer["result"].take()
    }

    /// Returns the text and the data of a call that must succeed.
    pub fn both(&mut self, tool: &str, arguments: Value) -> (String, Value) {
        let mut result = self.call(tool, arguments.clone());
        assert_ne!(result["isError"], true, "{tool} {arguments}: {result}");
        let text = result["content"][0]["text"].as_str().expect("an answer has a text").to_owned();
        (text, result["structuredContent"].take())
    }

    /// Returns the data of a call that must succeed.
    pub fn data(&mut self, tool: &str, arguments: Value) -> Value {
        self.both(tool, arguments).1
    }

    /// Returns the text of a call that must succeed.
    pub fn text(&mut self, tool: &str, arguments: Value) -> String {
        self.both(tool, arguments).0
    }

    /// Returns the error text of a call that must fail. Checks that the error has the form that all errors have.
    pub fn error(&mut self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], true, "{tool} should fail: {result}");
        let text = result["content"][0]["text"].as_str().unwrap().to_owned();
        let message = result["structuredContent"]["error"]["message"].as_str().unwrap();
        assert!(text.starts_with(message), "{result}");
        text
    }

    /// Returns the hits of a search. An answer whose notices say that something may be missing is asked for again, as a
    /// model would: on a busy machine a call does not wait for all that is to be read.
    pub fn hits(&mut self, arguments: Value) -> Vec<Value> {
        let until = Instant::now() + self.deadline;
        loop {
            let data = self.data("search_project_memory", arguments.clone());
            let notices = data["notices"].to_string();
            let is_late = ["may be missing", "not read yet", "not imported yet"];
            if is_late.iter().any(|each| notices.contains(each)) && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(100));
                continue;
            }
            return data["hits"].as_array().unwrap().clone();
        }
    }

    /// Returns the hits of a search for `query`.
    pub fn search(&mut self, query: &str) -> Vec<Value> {
        self.hits(json!({"query": query}))
    }

    /// Saves one message with an id in `session` and returns the memory's id.
    pub fn save(&mut self, session: &str, id: &str, text: &str) -> String {
        let messages = json!([{"id": id, "role": "user", "text": text}]);
        let data = self.data("save_messages", json!({"session_id": session, "messages": messages}));
        data["ids"][0].as_str().unwrap().to_owned()
    }

    /// Returns the process id.
    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap()
    }

    /// Closes stdin.
    pub fn hang_up(&mut self) {
        self.stdin = None;
    }

    /// Waits for the process to end by itself.
    pub fn wait(&mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }

    /// Ends the server and returns its stderr.
    pub fn end(mut self) -> String {
        self.hang_up();
        self.wait();
        self.log_reader.take().unwrap().join().unwrap();
        self.log.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A repository made by the real `git`, in a clean environment and with increasing dates.
pub struct Repo {
    pub path: PathBuf,
    home: PathBuf,
}

impl Repo {
    /// Runs git in the work tree and returns its output.
    pub fn git(&self, args: &[&str]) -> String {
        self.git_at(args, 1_700_000_000)
    }

    /// Runs git at a time, in seconds since 1970.
    pub fn git_at(&self, args: &[&str], time: u64) -> String {
        let output = Command::new("git")
            .args(["-c", "protocol.file.allow=always", "-c", "commit.gpgsign=false"])
            .args(args)
            .current_dir(&self.path)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", &self.home)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .envs([("GIT_AUTHOR_NAME", "Ada"), ("GIT_AUTHOR_EMAIL", "ada@example.org")])
            .envs([("GIT_COMMITTER_NAME", "Bob"), ("GIT_COMMITTER_EMAIL", "bob@example.org")])
            .env("GIT_AUTHOR_DATE", format!("{time} +0000"))
            .env("GIT_COMMITTER_DATE", format!("{time} +0000"))
            .stdin(Stdio::null())
            .output()
            .expect("these tests need `git`");
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    pub fn write(&self, path: &str, content: &str) {
        let path = self.path.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    /// Writes a file, commits everything and returns the commit's full id.
    pub fn commit(&self, path: &str, content: &str, message: &str) -> String {
        self.write(path, content);
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", message]);
        self.head()
    }

    pub fn head(&self) -> String {
        self.git(&["rev-parse", "HEAD"])
    }
}

/// Returns the strings in `field` of each of `values`.
pub fn strings(values: &[Value], field: &str) -> Vec<String> {
    values.iter().map(|value| value[field].as_str().unwrap_or_default().to_owned()).collect()
}
