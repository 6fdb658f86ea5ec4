//! Tests of the readers: a module for each client, one for messages that are odd, and one for the promise that no input
//! makes a reader fail.

mod claude_code;
mod codex;
mod copilot;
mod gemini;
mod generate;
mod odd;
mod opencode;
mod qwen;
mod robust;

use super::transcript::{About, Format, Transcript, TranscriptEntry};
use serde_json::Value;

/// Returns the content of a file that consists of these lines.
fn file(lines: &[Value]) -> Vec<u8> {
    lines.iter().flat_map(|line| format!("{line}\n").into_bytes()).collect()
}

/// Reads a whole file. Returns the entries, including those of calls without a result. Also returns what the reader
/// knew and counted before it gave up waiting for these results.
fn read(client: Format, bytes: &[u8]) -> (Vec<TranscriptEntry>, About, super::transcript::Counts) {
    let mut transcript = Transcript::new(client, About::default());
    let (mut said, mut at) = (Vec::new(), 0);
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        said.extend(transcript.line(at, line));
        at += line.len() as u64;
    }
    let (about, counts) = (transcript.about().clone(), transcript.counts().clone());
    said.extend(transcript.finish());
    (said, about, counts)
}

/// Returns the role and the text of each entry, as one string per entry.
fn lines_of(said: &[TranscriptEntry]) -> Vec<String> {
    said.iter().map(|said| format!("{:?}: {}", said.role, said.text)).collect()
}
