//! Developers' machines with memories of their own, and the server of a team with which they exchange them.

mod answers;
pub mod offline;
pub mod volume;
mod week;

use std::io::Read;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;
use tempfile::TempDir;

use super::ground::{Ground, Replica};
use super::http::Caller;
use crate::calls::path_text;
use crate::client::{Place, Tiro, last_chars, memory_mib};

/// The name of the project on the server and on every machine.
const PROJECT: &str = "web";

/// How long a command may take that stores little.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long an exchange may take.
const LONG: Duration = Duration::from_secs(3600);

/// The pause between two looks at the memory of a process.
const LOOK: Duration = Duration::from_millis(5);

/// The server of a team with one user and one project, which the user may write to.
pub struct Crew {
    pub ground: Ground,
    user: Caller,
    replica: Option<Replica>,
    port: u16,
}

/// A machine of a user.
pub struct Machine {
    root: TempDir,
    /// The program, which keeps the memory in files.
    pub tiro: Tiro,
    /// The data directory and the project.
    pub place: Place,
}

/// A command that was run to its end.
pub struct Ran {
    /// What it answered.
    pub answer: Value,
    /// How long it took.
    pub seconds: f64,
    /// The most resident memory that it had, in MiB; 0 without `/proc`.
    pub peak_mib: f64,
}

impl Crew {
    /// Makes the server for the part called `part`, in a database on the server at `url`. The project shares `kinds`.
    pub fn new(part: &str, kinds: &str, url: &str, tiro: &Tiro) -> Result<Crew> {
        let ground = Ground::new(part, url, tiro)?;
        let [user] = &ground.callers(&["ana".to_owned()])?[..] else { bail!("one user was asked for") };
        let words: [&[&str]; 3] = [
            &["team", "create", "crew"],
            &["team", "add", "crew", "ana"],
            &["share", PROJECT, "--with", "crew", "--write", "--kinds", kinds],
        ];
        for words in words {
            ground.tiro.run(&ground.place, words, PATIENCE)?;
        }
        let replica = ground.replica(0)?;
        let (user, port) = (user.clone(), replica.port);
        Ok(Crew { ground, user, replica: Some(replica), port })
    }

    /// Returns the server, if it runs.
    pub fn replica(&self) -> Option<&Replica> {
        self.replica.as_ref()
    }

    /// Ends the server at once.
    pub fn stop(&mut self) {
        self.replica = None;
    }

    /// Starts the server again, at the same address.
    pub fn start(&mut self) -> Result<()> {
        self.replica = Some(self.ground.replica(self.port)?);
        Ok(())
    }

    /// Connects a machine with the server, as one of the user. It exchanges everything from now on, also what is private.
    pub fn connect(&self, machine: &Machine) -> Result<()> {
        let key = vec![("TIRO_KEY".to_owned(), self.user.key.clone())];
        let address = format!("http://127.0.0.1:{}", self.port);
        let words = ["connect", &address, "--name", PROJECT, "--private"];
        Tiro { environment: key, ..machine.tiro.clone() }.run(&machine.place, &words, PATIENCE)?;
        Ok(())
    }
}

impl Machine {
    /// Makes a machine without memories.
    pub fn new(tiro: &Tiro) -> Result<Machine> {
        let root = tempfile::tempdir().context("making a temporary directory")?;
        let place = Place::create(root.path())?;
        std::fs::create_dir_all(place.home())?;
        Ok(Machine { root, tiro: Tiro { environment: Vec::new(), ..tiro.clone() }, place })
    }

    /// Exchanges with the server.
    pub fn sync(&self) -> Result<Ran> {
        let ran = self.run(&["sync", "--json"])?;
        for wrong in ["refused", "malformed", "of_later_versions", "too_long"] {
            if !ran.answer[wrong].is_null() {
                bail!("not everything was exchanged: {}", ran.answer);
            }
        }
        Ok(ran)
    }

    /// Runs a command that answers with JSON to its end, and watches its memory.
    pub fn run(&self, words: &[&str]) -> Result<Ran> {
        let began = Instant::now();
        let mut command = self.tiro.command(&self.place, words);
        let log = self.root.path().join("errors.log");
        let errors = std::fs::File::create(&log).context("making a log")?;
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(errors);
        let mut child = command.spawn().context("starting the program")?;
        let mut peak_mib: f64 = 0.0;
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            peak_mib = peak_mib.max(memory_mib(child.id(), "VmHWM:").unwrap_or(0.0));
            if began.elapsed() > LONG {
                let _ = child.kill();
            }
            std::thread::sleep(LOOK);
        };
        let seconds = began.elapsed().as_secs_f64();
        let mut said = String::new();
        // The answers are so short that the pipe holds them.
        child.stdout.take().expect("stdout is piped").read_to_string(&mut said)?;
        if !status.success() {
            let errors = std::fs::read_to_string(&log).unwrap_or_default();
            bail!("`tiro {}` ended with {status}: {}", words.join(" "), last_chars(&errors, 2000));
        }
        let answer = serde_json::from_str(&said).with_context(|| format!("`{said}` is no JSON"))?;
        Ok(Ran { answer, seconds, peak_mib })
    }

    /// Returns all memories of the project, as `tiro export` writes them.
    pub fn memories(&self) -> Result<Vec<Value>> {
        let lines =
            self.tiro.run(&self.place, &["export", "--project", path_text(&self.place.project)?], LONG)?;
        let read = |line: &str| serde_json::from_str(line).with_context(|| format!("`{line}` is no JSON"));
        lines.lines().map(read).collect()
    }

    /// Returns the file of the project's store.
    pub fn store(&self) -> Result<PathBuf> {
        let stats = self.run(&["stats", "--json", "--project", path_text(&self.place.project)?])?.answer;
        Ok(stats["store"].as_str().context("`tiro stats` names the store")?.into())
    }
}

impl Ran {
    /// Returns how many memories of the answer of `tiro sync` are new there (`sent`) or here (`received`).
    pub fn added(&self, way: &str) -> u64 {
        self.answer[way]["added"].as_u64().unwrap_or(0)
    }
}
