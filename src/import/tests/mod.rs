//! Tests of the readers, by client and by promise.

mod claude_code;
mod codex;
mod gemini;
mod generate;
mod robust;

use super::transcript::{About, Entry, Format, Transcript};
use serde_json::Value;

/// Returns a file of these lines.
fn file(lines: &[Value]) -> Vec<u8> {
    lines.iter().flat_map(|line| format!("{line}\n").into_bytes()).collect()
}

/// Reads a whole file. Returns the entries, calls without a result included, and what the reader knew before those
/// calls.
fn read(client: Format, bytes: &[u8]) -> (Vec<Entry>, About, super::transcript::Counts) {
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

/// Returns the role and the text of each entry, a line each.
fn lines_of(said: &[Entry]) -> Vec<String> {
    said.iter().map(|said| format!("{:?}: {}", said.role, said.text)).collect()
}
