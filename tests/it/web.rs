//! Runs `tiro serve --http`, and speaks HTTP to it by hand.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::Home;

/// The revision in which requests are sent unless a test says something else.
pub const REVISION: &str = "2025-06-18";

/// `tiro serve --http` as a process.
pub struct Web {
    pub child: Child,
    pub port: u16,
    /// The first address of the pages.
    pub pages: Option<String>,
    /// The address of the counts.
    pub metrics: Option<String>,
    /// Whose requests are sent: the header line with a key.
    pub key: Option<String>,
}

/// An answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Answer {
    /// Returns the value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    /// Returns the message in the body.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Web {
    /// Starts a server on any port, with more arguments.
    pub fn start(home: &Home, directory: &Path, args: &[&str]) -> Web {
        Web::start_on(home, directory, 0, args)
    }

    /// Starts a server on `port`, with more arguments.
    pub fn start_on(home: &Home, directory: &Path, port: u16, args: &[&str]) -> Web {
        let address = format!("127.0.0.1:{port}");
        let words = [&["serve", "--http", &address, "--json"], args].concat();
        let mut command = home.tiro(directory, &words);
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let addresses: Value = serde_json::from_str(&line).expect("the addresses");
        let text = |name: &str| addresses[name].as_str().map(str::to_owned);
        let port = port_of(&text("mcp").unwrap());
        Web { child, port, pages: text("pages"), metrics: text("metrics"), key: None }
    }

    /// Opens a connection.
    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(90))).unwrap();
        stream
    }

    /// Returns the head of a request with these header lines, without the empty line at its end.
    pub fn head(&self, method: &str, path: &str, headers: &[&str]) -> String {
        let mut head = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        let has = |name: &str| headers.iter().any(|line| line.to_lowercase().starts_with(name));
        if !has("host:") {
            head += &format!("Host: 127.0.0.1:{}\r\n", self.port);
        }
        if !has("authorization:")
            && let Some(key) = &self.key
        {
            head += &format!("Authorization: Bearer {key}\r\n");
        }
        headers.iter().for_each(|line| head += &format!("{line}\r\n"));
        head
    }

    /// Sends a request.
    pub fn ask(&self, method: &str, path: &str, headers: &[&str], body: &[u8]) -> Answer {
        let mut stream = self.connect();
        let head = self.head(method, path, headers);
        let head = format!("{head}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n", body.len());
        stream.write_all(head.as_bytes()).unwrap();
        // The server may answer, and hang up, before it has read everything.
        let _ = stream.write_all(body);
        read(stream)
    }

    /// Sends a message of the usual revision.
    pub fn post(&self, message: &Value) -> Answer {
        self.post_to("/mcp", message)
    }

    /// Sends a message of the usual revision to another path.
    pub fn post_to(&self, path: &str, message: &Value) -> Answer {
        let revision = format!("MCP-Protocol-Version: {REVISION}");
        self.ask("POST", path, &[&revision], message.to_string().as_bytes())
    }

    /// Returns the result of a request.
    pub fn request(&self, method: &str, params: Value) -> Value {
        let answer = self.post(&json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}));
        assert_eq!(answer.status, 200, "{method}: {answer:?}");
        answer.json()["result"].take()
    }

    /// Returns the text of a call, even if it is an error.
    pub fn call(&self, tool: &str, arguments: Value) -> String {
        self.call_in("/mcp", tool, arguments)
    }

    /// Returns the text of a call on another path, even if it is an error.
    pub fn call_in(&self, path: &str, tool: &str, arguments: Value) -> String {
        let answer = self.post_to(path, &call(1, tool, arguments));
        let text = answer.json()["result"]["content"][0]["text"].as_str().map(str::to_owned);
        text.unwrap_or_else(|| panic!("{tool}: {answer:?}"))
    }

    /// Returns the names of the tools.
    pub fn tools(&self) -> Vec<String> {
        let listed = self.request("tools/list", json!({}));
        let tools = listed["tools"].as_array().unwrap();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    /// Sends SIGTERM, and returns how long the server took to end.
    pub fn end(&mut self) -> Duration {
        let began = Instant::now();
        let pid = rustix::process::Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        assert!(self.child.wait().unwrap().success());
        began.elapsed()
    }
}

/// Returns the port in an address.
pub fn port_of(address: &str) -> u16 {
    address.split([':', '/']).find_map(|part| part.parse().ok()).unwrap()
}

/// Returns the message of a call.
pub fn call(id: u64, tool: &str, arguments: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})
}

/// Reads an answer to its end.
pub fn read(mut stream: TcpStream) -> Answer {
    let mut text = Vec::new();
    // An error after the answer is that the server did not read everything that was sent.
    let _ = stream.read_to_end(&mut text);
    let _ = stream.shutdown(Shutdown::Both);
    let text = String::from_utf8_lossy(&text).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    Answer { status, head: head.to_owned(), body: body.to_owned() }
}

/// Makes an empty database, and returns its address; `None` if no server of PostgreSQL is named.
pub fn new_database(name: &str) -> Option<String> {
    #[expect(clippy::disallowed_methods, reason = "it is set for tests alone")]
    let url = std::env::var("TIRO_TEST_POSTGRES").ok()?;
    let name = format!("tiro_{name}_{}", std::process::id());
    let create = format!("CREATE DATABASE {name}");
    let made = std::process::Command::new("psql").args([&url, "-c", &create]).output();
    made.ok()?;
    let (server, _) = url.rsplit_once('/')?;
    Some(format!("{server}/{name}"))
}
