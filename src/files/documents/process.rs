//! Starts the process that parses a document, and stops it when its time is over.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use super::{Extracted, Fault, Header, Kind, LONGEST, PATIENCE};

/// The longest answer of the process, in bytes: a text, and a line before it.
const LONGEST_ANSWER: u64 = LONGEST as u64 + 4096;

/// How often it is checked whether the process has ended, once it has answered.
const PAUSE: Duration = Duration::from_millis(2);

/// Extracts the text of documents in another process of this program.
#[derive(Clone, Debug)]
pub struct Extractor {
    program: PathBuf,
    patience: Duration,
}

impl Extractor {
    /// Returns an extractor that runs `program`, which is this program.
    pub fn new(program: PathBuf) -> Extractor {
        Extractor { program, patience: PATIENCE }
    }

    /// Returns an extractor that runs the program of this process.
    pub fn of_this_process() -> Extractor {
        // This names the running program even if its file was replaced by an update.
        let itself = Path::new("/proc/self/exe");
        Extractor::new(match cfg!(target_os = "linux") && itself.exists() {
            true => itself.to_owned(),
            false => std::env::current_exe().unwrap_or_default(),
        })
    }

    /// Returns an extractor that waits for another time, for tests.
    #[cfg(test)]
    pub fn with_patience(self, patience: Duration) -> Extractor {
        Extractor { patience, ..self }
    }

    /// Extracts the text of a document.
    pub(in crate::files) fn extract(&self, kind: Kind, bytes: Vec<u8>) -> Result<Extracted, Fault> {
        let end = Instant::now() + self.patience;
        let mut command = program(&self.program);
        command.args(["extract-text", kind.as_str()]).env_clear().current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = Running(command.spawn().map_err(|_| Fault::NotStarted)?);
        let (Some(mut input), Some(output)) = (process.0.stdin.take(), process.0.stdout.take()) else {
            return Err(Fault::NotStarted);
        };
        // The process may answer without reading everything, so that the writing fails.
        run(move || drop(input.write_all(&bytes)))?;
        let (sender, receiver) = mpsc::channel();
        run(move || {
            let mut answer = Vec::new();
            let _ = output.take(LONGEST_ANSWER + 1).read_to_end(&mut answer);
            // Nobody receives it if it comes too late.
            let _ = sender.send(answer);
        })?;
        let left = end.saturating_duration_since(Instant::now());
        let answer = receiver.recv_timeout(left).map_err(|_| Fault::TimedOut)?;
        if answer.len() as u64 > LONGEST_ANSWER {
            return Err(Fault::TooLong);
        }
        match process.status(end) {
            None => Err(Fault::TimedOut),
            Some(status) if status.success() => read(answer),
            Some(status) if has_timed_out(status) => Err(Fault::TimedOut),
            Some(_) => Err(Fault::Crashed),
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "it runs this program, because a parser of documents may crash or run forever"
)]
fn program(path: &Path) -> Command {
    Command::new(path)
}

fn run(work: impl FnOnce() + Send + 'static) -> Result<(), Fault> {
    thread::Builder::new().spawn(work).map(drop).map_err(|_| Fault::NotStarted)
}

/// Reads the answer of a process that ended well.
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

/// A process that ends when this value does.
struct Running(Child);

impl Running {
    /// Waits for the end of the process, until `end`.
    fn status(&mut self, end: Instant) -> Option<ExitStatus> {
        loop {
            match self.0.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) if Instant::now() < end => thread::sleep(PAUSE),
                _ => return None,
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail if the process has ended.
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
    use crate::files::Note;

    fn extract(script: &str, patience: Duration) -> Result<Extracted, Fault> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o700)).unwrap();
        let extractor = Extractor::new(path).with_patience(patience);
        extractor.extract(Kind::Pdf, b"bytes of the document".repeat(10_000))
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
        assert_eq!(nothing.extract(Kind::Pdf, Vec::new()), Err(Fault::NotStarted));
    }
}
