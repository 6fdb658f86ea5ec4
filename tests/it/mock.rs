//! A server that speaks OpenAI's chat completions and embeddings, and can misbehave.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

/// The fewest input and output tokens that the server reports for each answer.
const USED: (u64, u64) = (30, 10);

/// The behaviour of the server.
#[derive(Clone, Debug)]
pub enum Manner {
    /// Answers with this text.
    Says(String),
    /// Answers with this text after a while.
    SaysLate(String, Duration),
    /// Answers with this text and reports this usage: input and output tokens.
    Claims(String, u64, u64),
    /// Calls these functions, each with its arguments, if the last message is not a result; then answers with this text.
    Calls(Vec<(&'static str, Value)>, String),
    /// Embeds the texts of the request in that many dimensions: see [`vector`].
    Embeds(usize),
    /// Like `Embeds`, after a while.
    EmbedsLate(usize, Duration),
    /// Answers in part, and closes the connection.
    BreaksOff,
    /// Never answers.
    Hangs,
    /// Sends a byte from time to time.
    Drips,
    /// Sends a hundred megabytes.
    Floods,
    /// Answers with this status and these header lines.
    Refuses(u16, &'static str),
}

/// The server; it keeps the head and the body of each request.
pub struct Mock {
    port: u16,
    pub seen: Arc<Mutex<Vec<(String, Value)>>>,
    manner: Arc<Mutex<Manner>>,
    used: Arc<Mutex<Vec<(u64, u64)>>>,
}

impl Mock {
    pub fn start() -> Mock {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let mock = Mock {
            port,
            seen: Arc::default(),
            manner: Arc::new(Mutex::new(Manner::Says("ready".to_owned()))),
            used: Arc::default(),
        };
        let (seen, manner, used) = (Arc::clone(&mock.seen), Arc::clone(&mock.manner), Arc::clone(&mock.used));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (seen, manner, used) = (Arc::clone(&seen), Arc::clone(&manner), Arc::clone(&used));
                std::thread::spawn(move || answer(stream, &seen, &manner, &used));
            }
        });
        mock
    }

    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }

    pub fn requests(&self) -> usize {
        self.seen.lock().unwrap().len()
    }

    /// Returns what its answers so far cost in dollars. `prices` are dollars per million input and output tokens.
    pub fn billed(&self, input: u64, output: u64) -> f64 {
        let used = self.used.lock().unwrap();
        used.iter().map(|(sent, received)| sent * input + received * output).sum::<u64>() as f64 / 1e6
    }

    /// Changes its behaviour.
    pub fn behaves(&self, manner: &Manner) {
        *self.manner.lock().unwrap() = manner.clone();
    }
}

/// Returns a vector that counts the words of `text`. Animals of the cat family count as the same word. Words with digits
/// are left out: what a secret is replaced by differs in each run, and could share a place with any word.
fn vector(text: &str, dimensions: usize) -> Vec<f32> {
    let mut vector = vec![0.01; dimensions];
    for word in text.to_lowercase().split(|c: char| !c.is_alphanumeric()) {
        if word.is_empty() || word.contains(|c: char| c.is_ascii_digit()) {
            continue;
        }
        let word = if matches!(word, "feline" | "kitten" | "tomcat") { "cat" } else { word };
        let place = word.bytes().fold(7_usize, |sum, byte| (sum * 31 + usize::from(byte)) % 65_521);
        vector[place % dimensions] += 1.0;
    }
    vector
}

fn answer(
    stream: TcpStream,
    seen: &Mutex<Vec<(String, Value)>>,
    manner: &Mutex<Manner>,
    used: &Mutex<Vec<(u64, u64)>>,
) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        if line.trim().is_empty() {
            break;
        }
        if let Some(count) = line.to_lowercase().strip_prefix("content-length:") {
            length = count.trim().parse().ok()?;
        }
        head += &line;
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let manner = manner.lock().unwrap().clone();
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    // A token counts as about four bytes. The server never bills more output than the request allowed.
    let bytes = |text: &Value| text.as_str().map_or(0, str::len);
    let sent: usize =
        body["messages"].as_array().into_iter().flatten().map(|each| bytes(&each["content"])).sum();
    let most = ["max_tokens", "max_completion_tokens"]
        .iter()
        .find_map(|field| body[field].as_u64())
        .unwrap_or(u64::MAX);
    let bill = |text: &str| {
        let took = (USED.0.max(sent as u64 / 4), USED.1.max(text.len() as u64 / 4).min(most));
        used.lock().unwrap().push(took);
        took
    };
    seen.lock().unwrap().push((head, body.clone()));
    let is_stream = body["stream"] == true;
    let mut stream = stream;
    let mut put = |status: u16, more: &str, body: &str, length: usize| {
        let kind = if is_stream && status == 200 { "text/event-stream" } else { "application/json" };
        let head = format!(
            "HTTP/1.1 {status} Said\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n{more}\
             connection: close\r\n\r\n"
        );
        stream.write_all((head + body).as_bytes()).ok()
    };
    if let Manner::EmbedsLate(_, wait) = manner {
        std::thread::sleep(wait);
    }
    match manner {
        Manner::Embeds(dimensions) | Manner::EmbedsLate(dimensions, _) => {
            let texts: Vec<&str> =
                body["input"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            let tokens = texts.iter().map(|text| text.len() as u64 / 4 + 1).sum::<u64>();
            used.lock().unwrap().push((tokens, 0));
            let items: Vec<Value> = texts
                .iter()
                .enumerate()
                .map(|(index, text)| json!({"index": index, "embedding": vector(text, dimensions)}))
                .collect();
            let reply = json!({"data": items, "usage": {"prompt_tokens": tokens}}).to_string();
            put(200, "", &reply, reply.len())
        }
        Manner::Says(text) => {
            let reply = said(is_stream, &text, bill(&text));
            put(200, "", &reply, reply.len())
        }
        Manner::SaysLate(text, after) => {
            std::thread::sleep(after);
            let reply = said(is_stream, &text, bill(&text));
            put(200, "", &reply, reply.len())
        }
        Manner::Claims(text, input, output) => {
            let reply = said(is_stream, &text, (input, output));
            put(200, "", &reply, reply.len())
        }
        Manner::Calls(calls, text) => {
            let is_asked = body["messages"].as_array()?.last()?["role"] == "user";
            let reply = match is_asked {
                true => called(&calls, bill("")),
                false => said(is_stream, &text, bill(&text)),
            };
            put(200, "", &reply, reply.len())
        }
        Manner::BreaksOff if is_stream => {
            let part = json!({"choices": [{"index": 0, "delta": {"content": "I th"}}]});
            put(200, "", &format!("data: {part}\n\n"), 1000)
        }
        Manner::BreaksOff => put(200, "", "{\"id\": \"1\", ", 1000),
        Manner::Hangs => {
            // This ends when the other end closes the connection.
            reader.read_to_end(&mut Vec::new()).ok().map(drop)
        }
        Manner::Drips => {
            put(200, "", "", 1_000_000)?;
            loop {
                put_raw(&mut reader, b" ")?;
                std::thread::sleep(Duration::from_millis(100));
            }
        }
        Manner::Floods => {
            put(200, "", "", 100_000_000)?;
            let block = [b' '; 1 << 16];
            (0..100_000_000 / block.len()).try_for_each(|_| put_raw(&mut reader, &block))
        }
        Manner::Refuses(status, more) => {
            let body = r#"{"error": {"message": "no", "code": "refused_by_mock"}}"#;
            put(status, more, body, body.len())
        }
    }
}

fn put_raw(stream: &mut BufReader<TcpStream>, bytes: &[u8]) -> Option<()> {
    stream.get_mut().write_all(bytes).ok()
}

/// Returns the answer `text`, as a stream if the request asked for one.
fn said(is_stream: bool, text: &str, used: (u64, u64)) -> String {
    if !is_stream {
        return reply(text, used);
    }
    let half = text.floor_char_boundary(text.len() / 2);
    let piece = |text: &str| json!({"choices": [{"index": 0, "delta": {"content": text}}]});
    stream(&[piece(&text[..half]), piece(&text[half..])], "stop", used)
}

/// Returns a stream that calls functions.
fn called(calls: &[(&str, Value)], used: (u64, u64)) -> String {
    let call = |(at, (name, arguments)): (usize, &(&str, Value))| {
        json!({"index": at, "id": format!("call-{at}"), "type": "function",
            "function": {"name": name, "arguments": arguments.to_string()}})
    };
    let calls: Vec<Value> = calls.iter().enumerate().map(call).collect();
    stream(&[json!({"choices": [{"index": 0, "delta": {"tool_calls": calls}}]})], "tool_calls", used)
}

fn stream(pieces: &[Value], end: &str, used: (u64, u64)) -> String {
    let last = [
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": end}]}),
        json!({"choices": [], "usage": {"prompt_tokens": used.0, "completion_tokens": used.1}}),
    ];
    pieces.iter().chain(&last).map(|event| format!("data: {event}\n\n")).collect::<String>()
        + "data: [DONE]\n\n"
}

fn reply(text: &str, used: (u64, u64)) -> String {
    json!({
        "id": "1", "object": "chat.completion", "created": 0, "model": "m",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}],
        "usage": {"prompt_tokens": used.0, "completion_tokens": used.1, "total_tokens": used.0 + used.1},
    })
    .to_string()
}
