//! What a part of the measurement stands on: a database of its own, a data directory, replicas, and users.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;
use tempfile::TempDir;

use super::database::{Database, ThrowAway};
use super::http::Caller;
use crate::calls::path_text;
use crate::client::{Place, Tiro, memory_mib};

/// How long `tiro user add` may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// How many keys are made at the same time.
const AT_ONCE: usize = 4;

/// Databases, of which there is at least one, and a data directory, all empty at first, and the program that uses them.
pub struct Ground {
    // Dropped first, while the server is still there.
    databases: Vec<ThrowAway>,
    root: TempDir,
    /// The program, which gets the address of the database.
    pub tiro: Tiro,
    /// The data directory and the project of the replicas.
    pub place: Place,
}

/// A replica: `tiro serve --http`. It is killed when the value is dropped.
pub struct Replica {
    child: Child,
    /// The port on which it answers.
    pub port: u16,
}

impl Ground {
    /// Makes a ground for the part called `part`, on the server at `url`.
    pub fn new(part: &str, url: &str, tiro: &Tiro) -> Result<Ground> {
        Ground::with_databases(1, part, url, tiro)
    }

    /// Makes a ground over `count` databases.
    pub fn with_databases(count: usize, part: &str, url: &str, tiro: &Tiro) -> Result<Ground> {
        let name = |number| format!("tiro_evals_{part}_{}_{number}", std::process::id());
        let databases =
            (0..count).map(|number| ThrowAway::create(url, &name(number))).collect::<Result<Vec<_>>>()?;
        let addresses: Vec<&str> = databases.iter().map(|database| database.url.as_str()).collect();
        let root = tempfile::tempdir().context("making a temporary directory")?;
        let place = Place::create(root.path())?;
        std::fs::create_dir_all(place.home())?;
        let environment = vec![("TIRO_DATABASE".to_owned(), addresses.join(" "))];
        Ok(Ground { databases, root, tiro: Tiro { environment, ..tiro.clone() }, place })
    }

    /// Connects to the first database, as the user of the address.
    pub fn database(&self) -> Result<Database> {
        Database::at(&self.databases[0].url)
    }

    /// Makes a project in each database, which `callers` may call, and returns each database with the path under which
    /// clients call its project.
    pub fn spread(&self, callers: &[Caller]) -> Result<Vec<(Database, String)>> {
        /// How many projects are made at most. Each is in any of the databases.
        const MOST: usize = 100;
        let [_, _, ..] = &self.databases[..] else { return Ok(vec![(self.database()?, "/mcp".to_owned())]) };
        let run = |words: &[&str]| self.tiro.run(&self.place, words, PATIENCE);
        run(&["team", "create", "all"])?;
        for caller in callers {
            run(&["team", "add", "all", &caller.name])?;
        }
        let mut found = Vec::new();
        for database in &self.databases {
            found.push((Database::at(&database.url)?, None));
        }
        for number in 0..MOST {
            let name = format!("spread-{number}");
            let directory = self.directory(&name)?;
            run(&["add", "A project begins.", "--project", path_text(&directory)?])?;
            run(&["share", &name, "--with", "all", "--read"])?;
            for (database, path) in &mut found {
                if path.is_none() && database.number("SELECT count(*) FROM tiro.memories")? > 0 {
                    *path = Some(format!("/mcp/{name}"));
                }
            }
            if found.iter().all(|(_, path)| path.is_some()) {
                break;
            }
        }
        let found = found.into_iter().map(|(database, path)| Some((database, path?)));
        found
            .collect::<Option<Vec<_>>>()
            .with_context(|| format!("{MOST} projects are not in every database"))
    }

    /// Returns a new directory for files of the part.
    pub fn directory(&self, name: &str) -> Result<PathBuf> {
        let path = self.root.path().join(name);
        std::fs::create_dir_all(&path).with_context(|| format!("making `{}`", path.display()))?;
        Ok(path)
    }

    /// Makes keys for users with these names, who call the project of the replicas.
    pub fn callers(&self, names: &[String]) -> Result<Vec<Caller>> {
        let made: Mutex<Vec<(usize, Caller)>> = Mutex::default();
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..AT_ONCE)
                .map(|worker| {
                    let made = &made;
                    scope.spawn(move || {
                        for (number, name) in names.iter().enumerate().skip(worker).step_by(AT_ONCE) {
                            let caller = self.caller(name)?;
                            made.lock().expect("no holder panics").push((number, caller));
                        }
                        anyhow::Ok(())
                    })
                })
                .collect();
            workers.into_iter().try_for_each(|worker| worker.join().expect("a worker does not panic"))
        })?;
        let mut made = made.into_inner().expect("no holder panics");
        made.sort_by_key(|(number, _)| *number);
        Ok(made.into_iter().map(|(_, caller)| caller).collect())
    }

    fn caller(&self, name: &str) -> Result<Caller> {
        let answer = self.tiro.run(&self.place, &["user", "add", name, "--json"], PATIENCE)?;
        let answer: Value = serde_json::from_str(&answer).context("`tiro user add` answers with JSON")?;
        let key = answer["key"].as_str().context("`tiro user add` gave no key")?.to_owned();
        Ok(Caller { name: name.to_owned(), key, path: "/mcp".into() })
    }

    /// Starts replicas. At least one user has a key by then.
    pub fn replicas(&self, count: usize) -> Result<Vec<Replica>> {
        (0..count.max(1)).map(|_| self.replica(0)).collect()
    }

    /// Starts a replica on `port`, or on any port if that is 0.
    pub fn replica(&self, port: u16) -> Result<Replica> {
        self.replica_of(&self.tiro, port)
    }

    /// Starts a replica that has no model, so that it searches by words alone.
    pub fn replica_without_model(&self) -> Result<Replica> {
        self.replica_of(&self.tiro.without_model(self.root.path())?, 0)
    }

    fn replica_of(&self, tiro: &Tiro, port: u16) -> Result<Replica> {
        let address = format!("127.0.0.1:{port}");
        let words = ["serve", "--http", &address, "--json", "--structured", "--project"];
        let words = [&words[..], &[path_text(&self.place.project)?]].concat();
        let log = self.root.path().join("replicas.log");
        let log = File::options().create(true).append(true).open(&log).context("opening a log")?;
        let mut command = tiro.command(&self.place, &words);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
        let mut child = command.spawn().context("starting `tiro serve --http`")?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("stdout is piped")).read_line(&mut line)?;
        let mut replica = Replica { child, port: 0 };
        let addresses: Value = serde_json::from_str(&line).unwrap_or_default();
        let port =
            addresses["mcp"].as_str().and_then(|it| it.split([':', '/']).find_map(|it| it.parse().ok()));
        let Some(port) = port else {
            let log = std::fs::read_to_string(self.root.path().join("replicas.log")).unwrap_or_default();
            bail!("`tiro serve --http` did not start: {}", crate::client::last_chars(&log, 1000));
        };
        replica.port = port;
        Ok(replica)
    }
}

impl Replica {
    /// Kills the replica as `kill -9` does.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Returns the resident memory in MiB; `None` without `/proc`.
    pub fn resident_mib(&self) -> Option<f64> {
        memory_mib(self.child.id(), "VmRSS:")
    }

    /// Returns the most resident memory that it has had, in MiB; `None` without `/proc`.
    pub fn peak_mib(&self) -> Option<f64> {
        memory_mib(self.child.id(), "VmHWM:")
    }

    /// Returns the processor time that it used, in seconds; `None` without `/proc`.
    pub fn processor_seconds(&self) -> Option<f64> {
        /// How many ticks a second has, on all architectures that Linux supports today.
        const TICKS: f64 = 100.0;
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).ok()?;
        // The name of the program, in brackets, may contain spaces.
        let (_, rest) = stat.rsplit_once(')')?;
        let ticks: Vec<f64> =
            rest.split_whitespace().skip(11).take(2).filter_map(|it| it.parse().ok()).collect();
        Some(ticks.iter().sum::<f64>() / TICKS)
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Returns the names of `count` users.
pub fn names(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("user-{number:04}")).collect()
}
