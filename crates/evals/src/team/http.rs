//! Calls tools over HTTP, with a connection for each call.
//!
//! It is not a general client: it reads an answer to its end, since each connection is closed after one.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// What came of a call.
#[derive(Debug)]
pub enum Outcome {
    /// The message of the server: a result or an error of the protocol.
    Answered(Value),
    /// The server refused the request with this status.
    Refused(u16),
    /// The connection failed, or ended without an answer.
    Failed,
}

/// Someone who calls: a name, a key, and the path of a project.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The name of the user.
    pub name: String,
    /// The user's key.
    pub key: String,
    /// The path of the project, such as `/mcp`.
    pub path: String,
}

/// How often each kind of outcome was seen.
#[derive(Debug, Default)]
pub struct Kinds(pub BTreeMap<String, usize>);

impl Outcome {
    /// Returns the result of a call that succeeded.
    pub fn result(&self) -> Option<&Value> {
        match self {
            Outcome::Answered(message) if message["result"]["isError"] != true => message.get("result"),
            _ => None,
        }
    }

    /// Returns the structured part of a call that succeeded, or null.
    pub fn structured(&self) -> &Value {
        self.result().map_or(&Value::Null, |result| &result["structuredContent"])
    }

    /// Returns whether the call may succeed when it is repeated: nothing was answered, or the server asks to wait.
    pub fn is_passing(&self) -> bool {
        match self {
            Outcome::Failed | Outcome::Refused(429 | 500 | 503) => true,
            Outcome::Refused(_) => false,
            Outcome::Answered(_) => self.result().is_none() && self.error().contains("try again"),
        }
    }

    /// Returns the kind in a few words: `ok`, a status, or the beginning of the error.
    pub fn kind(&self) -> String {
        match self {
            Outcome::Failed => "no answer".into(),
            Outcome::Refused(status) => format!("HTTP {status}"),
            Outcome::Answered(_) if self.result().is_some() => "ok".into(),
            Outcome::Answered(_) => {
                self.error().lines().next().unwrap_or_default().chars().take(80).collect()
            }
        }
    }

    /// Returns the text of an answered error.
    fn error(&self) -> &str {
        let Outcome::Answered(message) = self else { return "" };
        let text = message["result"]["content"][0]["text"].as_str();
        text.or(message["error"]["message"].as_str()).unwrap_or("an error without a text")
    }
}

impl Kinds {
    /// Counts an outcome.
    pub fn add(&mut self, outcome: &Outcome) {
        *self.0.entry(outcome.kind()).or_default() += 1;
    }

    /// Returns how many were seen in all.
    pub fn all(&self) -> usize {
        self.0.values().sum()
    }

    /// Returns how many were of a kind.
    pub fn of(&self, kind: &str) -> usize {
        self.0.get(kind).copied().unwrap_or(0)
    }
}

impl Caller {
    /// Calls a tool of the server on `port`.
    pub fn call(&self, port: u16, tool: &str, arguments: Value, timeout: Duration) -> Outcome {
        self.request(port, "tools/call", json!({"name": tool, "arguments": arguments}), timeout)
    }

    /// Sends a request to the server on `port`.
    pub fn request(&self, port: u16, method: &str, params: Value, timeout: Duration) -> Outcome {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let head = format!(
            "POST {} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\nAuthorization: Bearer {}\r\n\
             MCP-Protocol-Version: 2025-06-18\r\nAccept: application/json, text/event-stream\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            self.path,
            self.key,
            message.len()
        );
        match exchange(port, &[head.as_bytes(), message.as_bytes()].concat(), timeout) {
            Some(answer) => read(&answer),
            None => Outcome::Failed,
        }
    }

    /// Like [`Caller::call`], but again as long as that may help. Returns the last outcome.
    pub fn insist(&self, port: u16, tool: &str, arguments: &Value, patience: Duration) -> Outcome {
        let began = Instant::now();
        loop {
            let outcome = self.call(port, tool, arguments.clone(), patience);
            if !outcome.is_passing() || began.elapsed() > patience {
                return outcome;
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    }
}

/// Sends a request and returns everything that is answered. `None` if the connection fails.
fn exchange(port: u16, request: &[u8], timeout: Duration) -> Option<Vec<u8>> {
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let mut stream = TcpStream::connect_timeout(&address, timeout).ok()?;
    stream.set_read_timeout(Some(timeout)).ok()?;
    stream.set_nodelay(true).ok()?;
    stream.write_all(request).ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    Some(answer)
}

/// Reads an answer: its status, and its body, which is JSON if the request was answered.
fn read(answer: &[u8]) -> Outcome {
    let Some(end) = answer.windows(4).position(|window| window == b"\r\n\r\n") else {
        return Outcome::Failed;
    };
    let (head, body) = (String::from_utf8_lossy(&answer[..end]).to_ascii_lowercase(), &answer[end + 4..]);
    let Some(status) = head.split(' ').nth(1).and_then(|status| status.parse().ok()) else {
        return Outcome::Failed;
    };
    if status != 200 {
        return Outcome::Refused(status);
    }
    let body = if head.contains("transfer-encoding: chunked") { joined(body) } else { body.to_vec() };
    // An answer that was cut off is none.
    serde_json::from_slice(&body).map_or(Outcome::Failed, Outcome::Answered)
}

/// Returns a body that was sent in chunks.
fn joined(mut body: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    while let Some(end) = body.windows(2).position(|window| window == b"\r\n") {
        let length =
            std::str::from_utf8(&body[..end]).ok().and_then(|text| usize::from_str_radix(text, 16).ok());
        let Some(length) = length.filter(|length| *length > 0 && body.len() >= end + 4 + length) else {
            break;
        };
        whole.extend_from_slice(&body[end + 2..end + 2 + length]);
        body = &body[end + 4 + length..];
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read() {
        let whole = b"HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n{\"result\":{}}";
        assert_eq!(read(whole).kind(), "ok");
        let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"res\r\n8\r\nult\":{}}\r\n0\r\n\r\n";
        assert_eq!(read(chunked).kind(), "ok");
        assert_eq!(read(b"HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n{\"resu").kind(), "no answer");
        assert_eq!(read(b"HTTP/1.1 503 Service Unavailable\r\n\r\nbusy").kind(), "HTTP 503");
        let wrong = b"HTTP/1.1 200 OK\r\n\r\n{\"result\":{\"isError\":true,\"content\":[{\"text\":\"the store is busy; try again\"}]}}";
        let outcome = read(wrong);
        assert!(outcome.is_passing() && outcome.result().is_none(), "{outcome:?}");
    }
}
