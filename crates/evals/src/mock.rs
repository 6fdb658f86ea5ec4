//! A mock server for OpenAI's chat completions.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use anyhow::{Context, Result};
use serde_json::json;

/// How many input and output tokens the mock reports for an answer.
pub const USED: (u64, u64) = (30, 10);

/// Starts a server that answers each request with the text that `answer` returns. Returns its port.
pub fn start(answer: impl Fn() -> String + Send + Sync + 'static) -> Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0").context("opening a port")?;
    let port = listener.local_addr()?.port();
    let answer = Arc::new(answer);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answer = Arc::clone(&answer);
            std::thread::spawn(move || reply(stream, &*answer));
        }
    });
    Ok(port)
}

/// Reads one HTTP request whose length is stated, and returns its body.
pub fn body_of_request(stream: &TcpStream) -> Option<Vec<u8>> {
    let mut reader = BufReader::with_capacity(1 << 20, stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        if line.trim().is_empty() {
            break;
        }
        if let Some(count) = line.to_lowercase().strip_prefix("content-length:") {
            length = count.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(body)
}

fn reply(mut stream: TcpStream, answer: &dyn Fn() -> String) -> Option<()> {
    body_of_request(&stream)?;
    let reply = json!({
        "id": "1", "object": "chat.completion", "created": 0, "model": "m",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": answer()}}],
        "usage": {"prompt_tokens": USED.0, "completion_tokens": USED.1, "total_tokens": USED.0 + USED.1},
    })
    .to_string();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n";
    write!(stream, "{head}content-length: {}\r\n\r\n{reply}", reply.len()).ok()
}
