//! The transport. The transport reads and writes one JSON-RPC message per line.
//!
//! rmcp's own transport ignores lines that are too long or not JSON, and stops at some of them. In this transport,
//! [`mod@line`] reads every line. A single task writes all lines, so that no line is cut off when its sender is
//! cancelled.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Poll::{Pending, Ready};
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{
    ClientNotification, ClientRequest, JsonRpcMessage, JsonRpcNotification, JsonRpcRequest, ProtocolVersion,
    RequestId,
};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use super::batch::Batch;
use super::line::{self, IdFinder, Line};
use super::requests::Requests;

/// The longest line, in bytes. A line of this length has room for a hundred thousand messages of a conversation. A
/// longer line is refused, and dropped while it is read.
const LONGEST_LINE: usize = 64 << 20;

/// A line buffer of more bytes than this is freed after use.
const KEPT_BUFFER: usize = 1 << 20;

/// The maximum number of lines that wait to be written. If more lines wait, senders must wait too.
const WAITING_LINES: usize = 16;

/// If a client reads no answers, it is checked at this interval whether the client is gone. After this number of checks
/// in a row that say so, the client counts as gone.
const LOOK: (Duration, u32) = (Duration::from_millis(200), 5);

/// The transport over a pair of streams.
pub(super) struct Lines<R> {
    input: LineReader<R>,
    requests: Requests,
    /// Whether the transport waits for answers to be written before it reads the next line.
    waits: Arc<AtomicBool>,
    /// Returns whether the client closed its end of the input.
    is_gone: fn() -> bool,
    /// Whether the client's revision of the protocol has batches.
    takes_batches: bool,
    /// The messages of a batch that are not handled yet, each with its number of bytes.
    batched: VecDeque<(Line, usize, Arc<Batch>)>,
    /// The answer to a malformed line, kept here until the writer has room for it.
    refusal: Option<Vec<u8>>,
    output: Option<mpsc::Sender<Outgoing>>,
    writer: Option<JoinHandle<()>>,
    /// Becomes true when reading ends, because the input ended, the output failed, or the server ends.
    ended: watch::Sender<bool>,
}

struct Outgoing {
    line: Vec<u8>,
    /// Tells the sender of the line whether it was written.
    written: Option<oneshot::Sender<io::Result<()>>>,
}

impl<R: AsyncRead + Send + Unpin> Lines<R> {
    /// Returns the transport. The transport ends when `ended` becomes true, and sets `ended` when it ends by itself.
    /// `is_gone` is called while no line is read.
    pub(super) fn new<W>(
        input: R,
        output: W,
        requests: Requests,
        ended: watch::Sender<bool>,
        is_gone: fn() -> bool,
    ) -> Lines<R>
    where
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let (sender, receiver) = mpsc::channel(WAITING_LINES);
        let writer = tokio::spawn(write_all(output, receiver, ended.clone()));
        Lines {
            input: LineReader::new(input, LONGEST_LINE),
            requests,
            waits: Arc::default(),
            is_gone,
            takes_batches: false,
            batched: VecDeque::new(),
            refusal: None,
            output: Some(sender),
            writer: Some(writer),
            ended,
        }
    }

    /// Returns the next message, or `None` at the end of the input. Answers malformed lines before the message.
    ///
    /// Cancel safe: if a call is dropped, nothing is lost, and the next call continues where that call stopped.
    async fn next(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            self.waits.store(true, Relaxed);
            if self.refusal.is_some() {
                let place = self.output.as_ref()?.reserve().await.ok()?;
                let line = self.refusal.take()?;
                place.send(Outgoing { line, written: None });
            }
            self.requests.room().await;
            self.waits.store(false, Relaxed);
            let (line, bytes, batch) = match self.batched.pop_front() {
                Some((line, bytes, batch)) => (line, bytes, Some(batch)),
                None => match self.input.next().await {
                    Read::Line(line) => (line::read(line, self.takes_batches), line.len(), None),
                    Read::TooLong(id) => (line::too_long(self.input.limit, id), 0, None),
                    Read::End => return None,
                },
            };
            match line {
                Line::Message(message) => match self.admit(&message, bytes, batch.clone()) {
                    Some(refusal) => self.refuse(&refusal, batch.as_deref()),
                    None => return Some(*message),
                },
                Line::Refused(refusal) => self.refuse(&refusal, batch.as_deref()),
                Line::Batch(lines) => {
                    let is_answered = |line: &Line| match line {
                        Line::Message(message) => matches!(**message, JsonRpcMessage::Request(_)),
                        Line::Refused(_) => true,
                        Line::Batch(_) | Line::Nothing => false,
                    };
                    let count = lines.iter().filter(|(line, _)| is_answered(line)).count();
                    let batch = Arc::new(Batch::of(count));
                    self.batched
                        .extend(lines.into_iter().map(|(line, bytes)| (line, bytes, Arc::clone(&batch))));
                }
                Line::Nothing => {}
            }
        }
    }

    /// Answers a message with an error. If the message came in a batch, the error is written together with the other
    /// answers of the batch.
    fn refuse(&mut self, refusal: &TxJsonRpcMessage<RoleServer>, batch: Option<&Batch>) {
        let line = to_line(refusal).ok();
        self.refusal = match batch {
            Some(batch) => batch.end(line),
            None => line,
        };
    }

    /// Adds a request to the open requests. If an open request has the same id, returns the error for the new one.
    fn admit(
        &mut self,
        message: &RxJsonRpcMessage<RoleServer>,
        bytes: usize,
        batch: Option<Arc<Batch>>,
    ) -> Option<Box<TxJsonRpcMessage<RoleServer>>> {
        match message {
            JsonRpcMessage::Request(request) if !self.requests.admit(&request.id, bytes, batch) => {
                Some(line::taken(request.id.clone()))
            }
            JsonRpcMessage::Request(JsonRpcRequest {
                request: ClientRequest::InitializeRequest(greeting),
                ..
            }) => {
                self.takes_batches = greeting.params.protocol_version < ProtocolVersion::V_2025_06_18;
                None
            }
            JsonRpcMessage::Notification(JsonRpcNotification {
                notification: ClientNotification::CancelledNotification(cancelled),
                ..
            }) => {
                // A cancelled request gets no answer.
                let open = cancelled.params.request_id.as_ref().and_then(|id| self.requests.remove(id));
                if let Some(batch) = open.and_then(|open| open.batch.clone()) {
                    self.refusal = batch.end(None);
                }
                None
            }
            _ => None,
        }
    }
}

impl<R: AsyncRead + Send + Unpin> Transport<RoleServer> for Lines<R> {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let request = match &message {
            JsonRpcMessage::Response(response) => self.requests.remove(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref().and_then(|id| self.requests.remove(id)),
            _ => None,
        };
        let output = self.output.clone();
        async move {
            let closed = || io::Error::from(io::ErrorKind::NotConnected);
            let (written, is_written) = oneshot::channel();
            let line = to_line(&message)?;
            let batch = request.as_ref().and_then(|request| request.batch.clone());
            let Some(line) = (match batch {
                Some(batch) => batch.end(Some(line)),
                None => Some(line),
            }) else {
                return Ok(());
            };
            let outgoing = Outgoing { line, written: Some(written) };
            output.ok_or_else(closed)?.send(outgoing).await.map_err(|_| closed())?;
            let left = is_written.await.map_err(|_| closed())?;
            drop(request);
            left
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        let mut is_ended = self.ended.subscribe();
        let (waits, is_gone) = (Arc::clone(&self.waits), self.is_gone);
        let message = tokio::select! {
            biased;
            _ = is_ended.wait_for(|ended| *ended) => None,
            message = self.next() => message,
            () = client_gone(&waits, is_gone) => None,
        };
        if message.is_none() {
            self.ended.send_replace(true);
        }
        message
    }

    async fn close(&mut self) -> io::Result<()> {
        self.output = None;
        match self.writer.take() {
            Some(writer) => writer.await.map_err(io::Error::other),
            None => Ok(()),
        }
    }
}

/// Waits until the client is gone. Used while a client does not read its answers; no lines of the client are read
/// during this time.
///
/// The client may have closed the input and still read answers. So `receive` is called again whenever an answer is
/// written, which restarts this function.
async fn client_gone(waits: &AtomicBool, is_gone: fn() -> bool) {
    let (pause, times) = LOOK;
    let mut gone = 0;
    while gone < times {
        // No waker is needed, because this is polled again as soon as reading begins to wait.
        let waiting = |_: &mut std::task::Context<'_>| if waits.load(Relaxed) { Ready(()) } else { Pending };
        poll_fn(waiting).await;
        tokio::time::sleep(pause).await;
        gone = if waits.load(Relaxed) && is_gone() { gone + 1 } else { 0 };
    }
}

fn to_line(message: &TxJsonRpcMessage<RoleServer>) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    Ok(line)
}

/// Writes lines until all senders are dropped or the output fails.
async fn write_all<W: AsyncWrite + Unpin>(
    mut output: W,
    mut lines: mpsc::Receiver<Outgoing>,
    ended: watch::Sender<bool>,
) {
    while let Some(Outgoing { line, written }) = lines.recv().await {
        let result = match output.write_all(&line).await {
            Ok(()) => output.flush().await,
            Err(error) => Err(error),
        };
        let failed = result.is_err();
        if let Some(written) = written {
            // This fails if the sender of the line no longer waits for the result.
            let _ = written.send(result);
        }
        if failed {
            tracing::debug!("the client no longer reads");
            ended.send_replace(true);
            return;
        }
    }
}

/// The result of reading a line.
enum Read<'a> {
    /// A line, without its line end.
    Line(&'a [u8]),
    /// A line that was too long and was dropped, with the id of its message if it had one.
    TooLong(Option<RequestId>),
    /// The end of the input.
    End,
}

/// Splits a stream into lines of a bounded length.
struct LineReader<R> {
    input: BufReader<R>,
    limit: usize,
    line: Vec<u8>,
    /// Whether `line` was returned; if so, the next call clears it.
    returned: bool,
    /// `Some` while the rest of a line is dropped because the line is too long.
    dropping: Option<IdFinder>,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    fn new(input: R, limit: usize) -> LineReader<R> {
        let input = BufReader::with_capacity(64 << 10, input);
        LineReader { input, limit, line: Vec::new(), returned: false, dropping: None }
    }

    /// Returns the next line. The last line may have no line end.
    ///
    /// Cancel safe: all state is in `self`, and nothing is awaited between taking bytes and storing them there.
    async fn next(&mut self) -> Read<'_> {
        if std::mem::take(&mut self.returned) {
            self.line.clear();
            if self.line.capacity() > KEPT_BUFFER {
                self.line = Vec::new();
            }
        }
        loop {
            let bytes = match self.input.fill_buf().await {
                Ok(bytes) => bytes,
                Err(error) => {
                    tracing::warn!(%error, "cannot read the input");
                    return Read::End;
                }
            };
            let at_end = bytes.is_empty();
            let line_end = bytes.iter().position(|byte| *byte == b'\n');
            let piece = &bytes[..line_end.unwrap_or(bytes.len())];
            if let Some(finder) = &mut self.dropping {
                finder.feed(piece);
            } else if self.line.len() + piece.len() > self.limit {
                let mut finder = IdFinder::default();
                finder.feed(&std::mem::take(&mut self.line));
                finder.feed(piece);
                self.dropping = Some(finder);
            } else {
                self.line.extend_from_slice(piece);
            }
            let taken = line_end.map_or(bytes.len(), |end| end + 1);
            self.input.consume(taken);
            if line_end.is_none() && !at_end {
                continue;
            }
            if let Some(finder) = self.dropping.take() {
                return Read::TooLong(finder.found());
            }
            if at_end && self.line.is_empty() {
                return Read::End;
            }
            self.returned = true;
            return Read::Line(&self.line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn lines(input: &[u8], limit: usize) -> Vec<Result<String, Option<RequestId>>> {
        let mut reader = LineReader::new(input, limit);
        let mut lines = Vec::new();
        loop {
            match reader.next().await {
                Read::Line(line) => lines.push(Ok(String::from_utf8_lossy(line).into_owned())),
                Read::TooLong(id) => lines.push(Err(id)),
                Read::End => return lines,
            }
        }
    }

    #[tokio::test]
    async fn the_id_of_a_dropped_long_line_is_found_first_or_last() {
        let text = format!(r#"{{"a": "\"}},", "b": {{"id": 3}}, "c": [{{"id": 4}}, "{}"]"#, "x".repeat(100));
        for (id, expected) in [
            (r#", "id": 7}"#, Some(RequestId::Number(7))),
            (r#","id":"q\"1" }"#, Some(RequestId::String("q\"1".into()))),
            (r#","id":null}"#, None),
            (r#"}"#, None),
        ] {
            let input = format!("one\n{text}{id}\n\ntwo");
            let expected = vec![Ok("one".to_owned()), Err(expected), Ok(String::new()), Ok("two".to_owned())];
            assert_eq!(lines(input.as_bytes(), 60).await, expected);
        }
        let first = format!(r#"{{"id": 9, "a": "{}"}}"#, "x".repeat(100));
        assert_eq!(lines(first.as_bytes(), 60).await, [Err(Some(RequestId::Number(9)))]);
        assert_eq!(lines(b"12345\n123456", 5).await, [Ok("12345".to_owned()), Err(None)]);
    }
}
