//! A mock of an assistant. It is a server on this machine that speaks OpenAI's dialect and answers with a description
//! of the request.
//!
//! If the last message contains "Find", the mock asks for a search. Otherwise it answers. With this mock, the
//! demonstration needs no key and no model server.

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use tiro_base::error::{Context, Kind, Result};

/// The largest request that is read, in bytes. Arbitrary: several times the largest prompt of the demonstration.
const MOST: usize = 8 << 20;

/// The server. Dropping it ends it.
pub struct Mock {
    /// Its address.
    pub endpoint: String,
    task: JoinHandle<()>,
}

impl Mock {
    /// Starts the server on a free port.
    pub async fn start() -> Result<Mock> {
        let cannot = || "cannot open a local port".to_owned();
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.context(Kind::Io, cannot)?;
        let address = listener.local_addr().context(Kind::Io, cannot)?;
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                // If a request breaks off, it needs no answer.
                drop(answer(stream).await);
            }
        });
        Ok(Mock { endpoint: format!("http://{address}/v1"), task })
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn answer(stream: TcpStream) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await? == 0 || line.trim().is_empty() {
            break;
        }
        if let Some(count) = line.to_lowercase().strip_prefix("content-length:") {
            length = count.trim().parse().unwrap_or(0);
        }
    }
    let mut body = vec![0; length.min(MOST)];
    stream.read_exact(&mut body).await?;
    let events = events(&serde_json::from_slice(&body).unwrap_or_default());
    let body: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all((head + &body).as_bytes()).await?;
    stream.shutdown().await
}

/// Returns the events of the answer to `request`.
fn events(request: &Value) -> Vec<Value> {
    let texts: Vec<&str> = request["messages"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|message| message["content"].as_str())
        .collect();
    let last = texts.last().copied().unwrap_or_default();
    let begins =
        |word: &str| texts.iter().flat_map(|text| text.lines()).filter(|line| line.starts_with(word)).count();
    let (files, diffs) = (begins("[file "), begins("[diff "));
    let function = request["tools"][0]["function"]["name"].as_str();
    let is_question =
        request["messages"].as_array().and_then(|all| all.last()).is_some_and(|last| last["role"] == "user");
    let (delta, end) = match function {
        Some(name) if is_question && last.contains("Find") => {
            let arguments =
                json!({"query": last.rsplit("Find").next().unwrap_or_default().trim()}).to_string();
            let call = json!([{"index": 0, "id": "call-1", "type": "function",
                "function": {"name": name, "arguments": arguments}}]);
            (json!({"role": "assistant", "tool_calls": call}), "tool_calls")
        }
        _ => {
            let said = match is_question {
                true => format!("I have {files} files and {diffs} diffs in this prompt."),
                false => format!("My search returned: {}", last.lines().nth(1).unwrap_or("nothing")),
            };
            (json!({"role": "assistant", "content": said}), "stop")
        }
    };
    let bytes: usize = texts.iter().map(|text| text.len()).sum();
    vec![
        json!({"choices": [{"index": 0, "delta": delta}]}),
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": end}]}),
        json!({"choices": [], "usage": {"prompt_tokens": bytes / 4 + 1, "completion_tokens": 20}}),
    ]
}
