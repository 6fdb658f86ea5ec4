//! Starts the process that parses a document. Stops the process when its time is over or when nobody waits for its
//! answer any more.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use super::child::Tried;
use super::kept::Kept;
use super::{Extracted, Fault, Header, Kind, LONGEST, PATIENCE};
use crate::budget::{Budget, DocumentTurn, Exhausted};
use tiro_base::parallel::cores;
use tiro_base::thread::ContentHash;

/// The longest answer of the process, in bytes: the text and the line before it.
const LONGEST_ANSWER: u64 = LONGEST as u64 + 4096;

/// The interval between checks whether the process has ended after its answer.
const PAUSE: Duration = Duration::from_millis(2);

/// The interval between checks whether the budget of the call has ended.
const LOOK: Duration = Duration::from_millis(50);

/// The maximum number of parsing processes at the same time; on a machine with fewer cores, fewer run. Each may take a
/// gigabyte of memory.
const AT_ONCE: usize = 8;

/// Extracts the text of documents in another process of this program. Clones share the kept texts, and the limit on the
/// number of processes.
#[derive(Clone, Debug)]
pub struct Extractor {
    program: PathBuf,
    patience: Duration,
    kept: Arc<Mutex<Kept>>,
    running: Arc<Mutex<usize>>,
}

impl Extractor {
    /// Returns an extractor that runs `program`, which must be this program.
    pub fn new(program: PathBuf) -> Extractor {
        Extractor { program, patience: PATIENCE, kept: Arc::default(), running: Arc::default() }
    }

    /// Returns an extractor that runs the program of this process.
    pub fn of_this_process() -> Extractor {
        Extractor::new(this_program())
    }

    /// Returns an extractor with another time limit, for tests.
    #[cfg(test)]
    pub fn with_patience(self, patience: Duration) -> Extractor {
        Extractor { patience, ..self }
    }

    /// Returns the text of the document with the hash `raw`. Extracts it unless it is known from an earlier call.
    ///
    /// # Errors
    ///
    /// The part of the budget that is used up.
    pub(crate) fn extract(
        &self,
        kind: Kind,
        raw: ContentHash,
        bytes: Vec<u8>,
        budget: &Budget,
    ) -> Result<Result<Extracted, Fault>, Exhausted> {
        let known = lock(&self.kept).get(&(kind, raw), Instant::now());
        let outcome = match known {
            Some(outcome) => outcome,
            None => {
                let turn = budget.begin(bytes.len())?;
                let _place = self.wait_for_place(&turn)?;
                let outcome = self.answer(&["extract-text", kind.as_str()], bytes, &turn)?.and_then(read);
                lock(&self.kept).put((kind, raw), &outcome, Instant::now());
                outcome
            }
        };
        if let Ok(extracted) = &outcome {
            budget.take(extracted.text.len())?;
        }
        Ok(outcome)
    }

    /// Waits until one more process may run.
    fn wait_for_place(&self, turn: &DocumentTurn<'_>) -> Result<ProcessSlot<'_>, Exhausted> {
        loop {
            turn.check()?;
            let mut running = lock(&self.running);
            if *running < cores().min(AT_ONCE) {
                *running += 1;
                return Ok(ProcessSlot(&self.running));
            }
            drop(running);
            thread::sleep(LOOK);
        }
    }

    /// Tests the confinement of the parsing process.
    ///
    /// # Errors
    ///
    /// The process could not be started, or failed.
    pub fn attempt(&self) -> Result<Tried, Fault> {
        let budget = Budget::default();
        let turn = budget.begin(0).map_err(|_| Fault::NotStarted)?;
        let answer = self.answer(&["extract-text", "--attempt"], Vec::new(), &turn);
        let answer = answer.map_err(|_| Fault::TimedOut)??;
        serde_json::from_slice(&answer).map_err(|_| Fault::Crashed)
    }

    /// Returns the answer of a process that gets `arguments` and `bytes`. The process has ended when this function
    /// returns.
    fn answer(
        &self,
        arguments: &[&str],
        bytes: Vec<u8>,
        turn: &DocumentTurn<'_>,
    ) -> Result<Result<Vec<u8>, Fault>, Exhausted> {
        let end = Instant::now() + self.patience;
        let Ok((mut process, mut input, output)) = start(&self.program, arguments) else {
            return Ok(Err(Fault::NotStarted));
        };
        let (sender, receiver) = mpsc::channel();
        // The process may answer without reading everything; writing to it then fails.
        let writing = run(move || drop(input.write_all(&bytes)));
        let reading = run(move || {
            let mut answer = Vec::new();
            let _ = output.take(LONGEST_ANSWER + 1).read_to_end(&mut answer);
            // If the answer comes too late, nobody receives it.
            let _ = sender.send(answer);
        });
        if writing.and(reading).is_err() {
            return Ok(Err(Fault::NotStarted));
        }
        let answer = loop {
            let left = end.saturating_duration_since(Instant::now());
            match receiver.recv_timeout(left.min(LOOK)) {
                Ok(answer) => break answer,
                // This is a fault of the document only if its own time ends before the budget of the call.
                Err(_) if left.is_zero() => return Ok(Err(Fault::TimedOut)),
                Err(_) => turn.check()?,
            }
        };
        if answer.len() as u64 > LONGEST_ANSWER {
            return Ok(Err(Fault::TooLong));
        }
        Ok(match process.status(end, turn)? {
            None => Err(Fault::TimedOut),
            Some(status) if status.success() => Ok(answer),
            Some(status) if has_timed_out(status) => Err(Fault::TimedOut),
            Some(_) => Err(Fault::Crashed),
        })
    }
}

/// The permission to run one of the limited number of processes.
struct ProcessSlot<'e>(&'e Mutex<usize>);

impl Drop for ProcessSlot<'_> {
    fn drop(&mut self) {
        *lock(self.0) -= 1;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the path of the program of this process.
fn this_program() -> PathBuf {
    // This names the running program even if its file was replaced by an update.
    let itself = Path::new("/proc/self/exe");
    match cfg!(target_os = "linux") && itself.exists() {
        true => itself.to_owned(),
        false => std::env::current_exe().unwrap_or_default(),
    }
}

/// Starts `program` with `arguments`. The process gets only pipes for input and output, and an empty environment.
fn start(program: &Path, arguments: &[&str]) -> io::Result<(Running, ChildStdin, ChildStdout)> {
    let mut command = command(program);
    command.args(arguments).env_clear().current_dir("/");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut process = Running(command.spawn()?);
    let (Some(input), Some(output)) = (process.0.stdin.take(), process.0.stdout.take()) else {
        return Err(io::ErrorKind::BrokenPipe.into());
    };
    Ok((process, input, output))
}

#[expect(
    clippy::disallowed_methods,
    reason = "it runs this program, because a parser of documents may crash or run forever"
)]
fn command(path: &Path) -> Command {
    Command::new(path)
}

fn run(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().spawn(work).map(drop)
}

/// Reads the answer of a process that ended successfully.
fn read(mut answer: Vec<u8>) -> Result<Extracted, Fault> {
    let end = answer.iter().position(|byte| *byte == b'\n').ok_or(Fault::Crashed)?;
    let header: Header = serde_json::from_slice(&answer[..end]).map_err(|_| Fault::Crashed)?;
    let (length, notes) = header?;
    let text = String::from_utf8(answer.split_off(end + 1)).map_err(|_| Fault::Crashed)?;
    match text.len() == length {
        true => Ok(Extracted { text, notes }),
        false => Err(Fault::Crashed),
    }
}

/// A running process. The process is ended when this value is dropped.
struct Running(Child);

impl Running {
    /// Waits until the process ends, but no longer than `end`.
    fn status(&mut self, end: Instant, turn: &DocumentTurn<'_>) -> Result<Option<ExitStatus>, Exhausted> {
        loop {
            match self.0.try_wait() {
                Ok(Some(status)) => return Ok(Some(status)),
                Ok(None) if Instant::now() < end => {
                    turn.check()?;
                    thread::sleep(PAUSE);
                }
                _ => return Ok(None),
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both calls fail if the process has already ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns whether the process was ended because it used all its processor time.
#[cfg(unix)]
fn has_timed_out(status: ExitStatus) -> bool {
    use std::os::unix::process::ExitStatusExt;
    status.signal() == Some(rustix::process::Signal::XCPU.as_raw())
}

#[cfg(not(unix))]
fn has_timed_out(_: ExitStatus) -> bool {
    false
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::Note;
    use crate::budget::Allowance;

    fn extract(script: &str, patience: Duration) -> Result<Extracted, Fault> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o700)).unwrap();
        let extractor = Extractor::new(path).with_patience(patience);
        let bytes = b"bytes of the document".repeat(10_000);
        extractor.extract(Kind::Pdf, ContentHash::of(&bytes), bytes, &Budget::default()).unwrap()
    }

    #[test]
    fn the_process_is_started_with_the_document_and_nothing_else() {
        let script = r#"
            text="$* $(/usr/bin/env | /bin/grep -v -e '^_=' -e ^PWD= -e ^SHLVL= -e ^OLDPWD=) $(/bin/pwd) $(/usr/bin/wc -c)"
            printf '{"Ok":[%d,[{"Pages":2}]]}\n%s' "${#text}" "$text""#;
        let extracted = extract(script, PATIENCE).unwrap();
        let words: Vec<&str> = extracted.text.split_whitespace().collect();
        assert_eq!(
            (words, extracted.notes),
            (vec!["extract-text", "pdf", "/", "210000"], vec![Note::Pages(2)])
        );
    }

    #[test]
    fn whatever_the_process_does_it_is_gone_soon() {
        let short = Duration::from_millis(300);
        for (script, patience, fault) in [
            ("while :; do :; done", short, Fault::TimedOut),
            ("exec >&-; exec sleep 60", short, Fault::TimedOut),
            ("exec cat /dev/zero", PATIENCE, Fault::TooLong),
            ("kill -SEGV $$", PATIENCE, Fault::Crashed),
            ("kill -XCPU $$", PATIENCE, Fault::TimedOut),
            ("exit 3", PATIENCE, Fault::Crashed),
            ("", PATIENCE, Fault::Crashed),
            ("echo '{'", PATIENCE, Fault::Crashed),
            (r#"echo '{"Err":"Encrypted"}'"#, PATIENCE, Fault::Encrypted),
            // The text is shorter than announced.
            (r#"printf '{"Ok":[9,[]]}\n12345678'"#, PATIENCE, Fault::Crashed),
            (r#"printf '{"Ok":[1,[]]}\n\377'"#, PATIENCE, Fault::Crashed),
        ] {
            let start = Instant::now();
            assert_eq!(extract(script, patience), Err(fault), "{script}");
            assert!(start.elapsed() < PATIENCE / 2, "{script}");
        }
        let nothing = Extractor::new("/nothing/here".into());
        let extracted = nothing.extract(Kind::Pdf, ContentHash::of(b""), Vec::new(), &Budget::default());
        assert_eq!(extracted, Ok(Err(Fault::NotStarted)));
    }

    #[test]
    fn the_process_ends_with_the_budget_of_its_call_and_is_no_fault_of_the_document() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        std::fs::write(&path, "#!/bin/sh\nexec sleep 60\n").unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o700)).unwrap();
        let extractor = Extractor::new(path);
        let extract =
            |budget: &Budget| extractor.extract(Kind::Pdf, ContentHash::of(b"x"), b"x".to_vec(), budget);
        let short = Allowance { time: Duration::from_millis(1200), ..Allowance::default() };
        let start = Instant::now();
        assert_eq!(extract(&Budget::new(short)), Err(Exhausted::Time(1)));
        let cancelled = Budget::default();
        let ending = cancelled.ends_with_call();
        thread::scope(|scope| {
            let extracting = scope.spawn(|| extract(&cancelled));
            thread::sleep(Duration::from_millis(300));
            drop(ending);
            assert_eq!(extracting.join().unwrap(), Err(Exhausted::Ended));
        });
        assert!(start.elapsed() < PATIENCE / 2, "{:?}", start.elapsed());
        assert_eq!(
            (
                *lock(&extractor.running),
                lock(&extractor.kept).get(&(Kind::Pdf, ContentHash::of(b"x")), start)
            ),
            (0, None)
        );
    }

    #[test]
    fn a_document_is_parsed_once_and_its_text_counts_each_time() {
        let folder = tempfile::tempdir().unwrap();
        let (path, log) = (folder.path().join("program"), folder.path().join("log"));
        let script = format!("#!/bin/sh\necho >>{}\nprintf '{{\"Ok\":[4,[]]}}\\ntext'\n", log.display());
        std::fs::write(&path, script).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o700)).unwrap();
        let extractor = Extractor::new(path);
        let most = Allowance { documents: 1, bytes_out: 9, ..Allowance::default() };
        for budget in [Budget::new(most), Budget::new(most)] {
            let extract = |bytes: &[u8]| {
                extractor.clone().extract(Kind::Pdf, ContentHash::of(bytes), bytes.to_vec(), &budget)
            };
            assert_eq!(extract(b"a").unwrap().unwrap().text, "text");
            assert_eq!(extract(b"a").unwrap().unwrap().text, "text");
            assert_eq!(extract(b"a"), Err(Exhausted::BytesOut(9)));
        }
        assert_eq!(std::fs::read_to_string(log).unwrap(), "\n");
    }
}
