//! Reads an answer that comes in pieces.
//!
//! The pieces may end anywhere, even within a character. The lines are either server-sent events (`data: …`, ended by
//! an empty line) or one JSON object each. The format is recognised by the lines themselves, because servers don't
//! declare it reliably.

use serde_json::Value;

use super::dialects::{Answer, Misread, Read, Stop};
use super::thoughts::answer_begins;

/// The function that gets the text of an answer, piece by piece.
pub type OnText<'a> = Option<&'a (dyn Fn(&str) + Send + Sync)>;

/// The maximum number of bytes of a line, of an event, and of the text and arguments together: about a hundred times
/// the longest answer of a model.
pub(super) const LARGEST_ANSWER: usize = 4 << 20;

/// The possible beginnings of a line before the first event.
const BEGINNINGS: [&[u8]; 6] = [b"data:", b"event:", b"id:", b"retry:", b":", b"{"];

/// The reason why reading an answer stopped.
#[derive(Debug, PartialEq)]
pub(super) enum Stuck {
    /// The answer is not in the dialect, or it reports an error.
    Misread(Misread),
    /// The answer is larger than [`LARGEST_ANSWER`].
    TooLarge,
}

impl From<Misread> for Stuck {
    fn from(misread: Misread) -> Stuck {
        Stuck::Misread(misread)
    }
}

/// An answer that is being read.
pub(super) struct Reading<'a> {
    reader: Box<dyn Read>,
    on_text: OnText<'a>,
    answer: Answer,
    /// The beginning of the text that consists of thoughts, or that was already passed to `on_text`, has this many
    /// bytes. `None` until the answer begins.
    said: Option<usize>,
    /// The bytes of the line that is not complete yet.
    line: Vec<u8>,
    /// The data of the event that is not complete yet.
    data: Option<String>,
    /// Whether the last byte was a carriage return. A line feed directly after a carriage return doesn't end another
    /// line.
    ends_in_return: bool,
    /// How many events were read.
    events: u64,
    is_over: bool,
}

impl<'a> Reading<'a> {
    /// Returns an answer of which nothing was read yet. `on_text` gets the text of each event.
    pub fn new(reader: Box<dyn Read>, on_text: OnText<'a>) -> Reading<'a> {
        Reading {
            reader,
            on_text,
            answer: Answer::default(),
            said: None,
            line: Vec::new(),
            data: None,
            ends_in_return: false,
            events: 0,
            is_over: false,
        }
    }

    /// Reads the next bytes.
    pub fn push(&mut self, mut bytes: &[u8]) -> Result<(), Stuck> {
        while !self.is_over && !bytes.is_empty() {
            if std::mem::take(&mut self.ends_in_return) && bytes[0] == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let end = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let piece = &bytes[..end.unwrap_or(bytes.len())];
            if self.line.len() + piece.len() > LARGEST_ANSWER {
                return Err(Stuck::TooLarge);
            }
            self.line.extend_from_slice(piece);
            let Some(end) = end else { break };
            self.ends_in_return = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            let line = std::mem::take(&mut self.line);
            self.line(&line)?;
        }
        Ok(())
    }

    /// Returns whether the answer is complete, so that nothing more needs to be read.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Returns the answer and its kept data. Called when no more bytes come. Returns `None` if the service did not say
    /// why the answer ended.
    pub fn end(mut self) -> Result<Option<(Answer, Option<Value>)>, Stuck> {
        if !self.is_over {
            let line = std::mem::take(&mut self.line);
            // The last piece may be incomplete because the connection broke. This doesn't mean that the answer is not
            // in the dialect.
            let is_begun = self.events > 0
                || self.data.is_some()
                || BEGINNINGS.iter().any(|word| line.starts_with(word) || word.starts_with(&line));
            let ended = self.line(&line).and_then(|()| self.line(b""));
            match ended {
                Err(Stuck::Misread(Misread::Unreadable)) if is_begun => {}
                other => other?,
            }
        }
        if self.answer.stop.is_none() {
            return Ok(None);
        }
        let kept = self.reader.kept(&self.answer);
        Ok(Some((self.answer, kept)))
    }

    fn line(&mut self, line: &[u8]) -> Result<(), Stuck> {
        let line = std::str::from_utf8(line).map_err(|_| Misread::Unreadable)?;
        let line = if self.events == 0 { line.trim_start_matches('\u{feff}') } else { line };
        if line.is_empty() {
            return match self.data.take() {
                Some(data) => self.event(&data),
                None => Ok(()),
            };
        }
        if let Some(data) = line.strip_prefix("data:") {
            let data = data.strip_prefix(' ').unwrap_or(data);
            match &mut self.data {
                Some(so_far) if so_far.len() + data.len() >= LARGEST_ANSWER => return Err(Stuck::TooLarge),
                Some(so_far) => {
                    so_far.push('\n');
                    so_far.push_str(data);
                }
                None => self.data = Some(data.to_owned()),
            }
            return Ok(());
        }
        if line.starts_with('{') {
            return self.event(line);
        }
        let is_field = BEGINNINGS.iter().any(|word| line.as_bytes().starts_with(word));
        let is_known = is_field || line.trim().is_empty() || self.events > 0;
        if is_known { Ok(()) } else { Err(Misread::Unreadable.into()) }
    }

    fn event(&mut self, data: &str) -> Result<(), Stuck> {
        if self.is_over || data.is_empty() {
            return Ok(());
        }
        self.events += 1;
        if data.trim() == "[DONE]" {
            self.is_over = true;
            // Some servers don't say in another way why the answer ends.
            self.answer.stop = self.answer.stop.or(Some(Stop::Done));
            return Ok(());
        }
        let event: Value = serde_json::from_str(data).map_err(|_| Misread::Unreadable)?;
        check(&event)?;
        let read = self.reader.event(&mut self.answer, &event);
        let text = &self.answer.text;
        self.said = self.said.or_else(|| answer_begins(text, false));
        if let (Some(on_text), Some(said)) = (self.on_text, &mut self.said)
            && text.len() > *said
        {
            on_text(&text[*said..]);
            *said = text.len();
        }
        self.is_over = read?;
        if self.answer.size() > LARGEST_ANSWER { Err(Stuck::TooLarge) } else { Ok(()) }
    }
}

/// Reads a complete answer. Returns the answer and its kept data.
pub(super) fn whole(mut reader: Box<dyn Read>, body: &[u8]) -> Result<(Answer, Option<Value>), Misread> {
    let body: Value = serde_json::from_slice(body).map_err(|_| Misread::Unreadable)?;
    check(&body)?;
    let mut answer = Answer::default();
    reader.whole(&mut answer, &body)?;
    let kept = reader.kept(&answer);
    Ok((answer, kept))
}

/// Checks that `value` is an object and doesn't report an error.
fn check(value: &Value) -> Result<(), Misread> {
    match value.get("error") {
        _ if !value.is_object() => Err(Misread::Unreadable),
        None | Some(Value::Null) => Ok(()),
        Some(_) => Err(Misread::Reported(value.clone())),
    }
}
