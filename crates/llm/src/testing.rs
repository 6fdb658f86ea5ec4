//! A service for tests that follows a script, with one step for each connection. The last step is repeated.
#![allow(missing_docs, clippy::missing_docs_in_private_items, reason = "only tests use it")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// A step: the reaction of the service to a request.
#[derive(Clone)]
pub enum Step {
    /// Answers with status, headers and body.
    Answer(u16, &'static str, String),
    /// Says nothing until the client leaves.
    Hang,
    /// Sends one byte of an answer every few milliseconds, without end.
    Drip,
    /// Sends this many bytes; in pieces without a length if `is_chunked`.
    Flood { bytes: usize, is_chunked: bool },
    /// Closes the connection.
    Close,
    /// Sends this part of an answer, then closes the connection.
    BreakOff(String),
}

/// A request that the service received.
#[derive(Clone, Debug)]
pub struct Seen {
    pub path: String,
    pub head: String,
    pub body: Value,
}

#[derive(Default)]
pub struct Record {
    pub seen: Vec<Seen>,
    pub bytes_sent: usize,
}

pub struct Mock {
    pub endpoint: String,
    pub record: Arc<Mutex<Record>>,
    pub asked: Arc<Notify>,
    pub left: Arc<Notify>,
}

impl Mock {
    pub async fn start(script: Vec<Step>) -> Mock {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let (record, asked, left): (Arc<Mutex<Record>>, Arc<Notify>, Arc<Notify>) = Default::default();
        let mock = Mock { endpoint, record: record.clone(), asked: asked.clone(), left: left.clone() };
        tokio::spawn(async move {
            let mut nth = 0;
            while let Ok((stream, _)) = listener.accept().await {
                let step = script[nth.min(script.len() - 1)].clone();
                nth += 1;
                tokio::spawn(serve(stream, step, record.clone(), asked.clone(), left.clone()));
            }
        });
        mock
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.record.lock().unwrap().seen.clone()
    }
}

async fn serve(
    mut stream: TcpStream,
    step: Step,
    record: Arc<Mutex<Record>>,
    asked: Arc<Notify>,
    left: Arc<Notify>,
) {
    let Some(seen) = read(&mut stream).await else { return };
    record.lock().unwrap().seen.push(seen);
    asked.notify_one();
    match step {
        Step::Answer(status, headers, body) => {
            let head = format!(
                "HTTP/1.1 {status} X\r\n{headers}Content-Length: {}\r\nConnection: close\r\n\r\n",
                body.len()
            );
            let _ = stream.write_all(head.as_bytes()).await;
            let _ = stream.write_all(body.as_bytes()).await;
        }
        Step::Hang => {
            let _ = stream.read(&mut [0]).await;
            left.notify_one();
        }
        Step::Drip => {
            let head =
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
            let _ = stream.write_all(head.as_bytes()).await;
            while stream.write_all(b"1\r\n \r\n").await.is_ok() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            left.notify_one();
        }
        Step::Flood { bytes, is_chunked } => {
            let length = if is_chunked {
                "Transfer-Encoding: chunked".to_owned()
            } else {
                format!("Content-Length: {bytes}")
            };
            let head = format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n{length}\r\n\r\n");
            let _ = stream.write_all(head.as_bytes()).await;
            let piece = vec![b'x'; 1 << 16];
            while record.lock().unwrap().bytes_sent < bytes {
                let framed = [format!("{:x}\r\n", piece.len()).as_bytes(), &piece, b"\r\n"].concat();
                if stream.write_all(if is_chunked { &framed } else { &piece }).await.is_err() {
                    break;
                }
                record.lock().unwrap().bytes_sent += piece.len();
            }
            left.notify_one();
        }
        Step::Close => {}
        Step::BreakOff(part) => {
            let head =
                "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
            let piece = format!("{head}{:x}\r\n{part}\r\n", part.len());
            let _ = stream.write_all(piece.as_bytes()).await;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

async fn read(stream: &mut TcpStream) -> Option<Seen> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let length = head.lines().find_map(|line| {
        line.to_ascii_lowercase()
            .strip_prefix("content-length:")
            .and_then(|length| length.trim().parse::<usize>().ok())
    })?;
    while bytes.len() < end + length {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    let path = head.split(' ').nth(1)?.to_owned();
    Some(Seen { path, head, body: serde_json::from_slice(&bytes[end..]).unwrap_or_default() })
}
