//! A mock assistant that records what it is sent, and the calls that ask it.
//!
//! The assistant speaks OpenAI's chat completions and streams its answers, as services do. It reports its own time for
//! each request, so that the time of the measured program is known. It gives the same answer to everything, unless it
//! follows a script, which can call functions first.

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::client::{Answer, Server, Tiro};

/// What the assistant answers to everything, in two pieces: about as long as a short review.
const ANSWER: [&str; 2] = [
    "I have read the files. The change keeps the behaviour that callers rely on, and the new path is covered by the tests \
     that you sent. Two remarks. The error that is returned when nothing matches names the wrong argument, so a user would \
     look in the wrong place. ",
    "The early return skips the cleanup at the end of the function; move the cleanup into a guard, or \
     repeat it before the return. I would also rename the helper, because it no longer only parses. I did not check the \
     platforms that I can't see here.",
];

/// A request that the assistant got.
#[derive(Debug)]
pub struct Asked {
    /// The body, as sent.
    pub body: Vec<u8>,
    /// The time from the end of the request to the end of the answer.
    pub took: Duration,
}

/// What an assistant does when it is consulted.
pub struct Script {
    /// The functions that it calls before it answers, each with its arguments: those of its first reply, of its second,
    /// and so on.
    pub calls: Vec<Vec<(String, Value)>>,
    /// Returns its answer to the messages that it then has.
    pub answer: fn(&[Message]) -> String,
}

/// A message of a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Who says it: `system`, `user`, `assistant` or `tool`.
    pub role: String,
    /// The text. It is empty if the assistant only calls functions.
    pub text: String,
}

/// A running assistant. It ends with the process.
pub struct Assistant {
    /// Its port on this machine.
    pub port: u16,
    shared: Arc<Shared>,
}

/// What the threads of an assistant share.
#[derive(Default)]
struct Shared {
    asked: Mutex<Vec<Asked>>,
    script: Mutex<Option<Arc<Script>>>,
}

impl Assistant {
    /// Starts the assistant.
    pub fn start() -> Result<Assistant> {
        let listener = TcpListener::bind("127.0.0.1:0").context("opening a port")?;
        let port = listener.local_addr()?.port();
        let assistant = Assistant { port, shared: Arc::default() };
        let shared = Arc::clone(&assistant.shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || serve(stream, &shared));
            }
        });
        Ok(assistant)
    }

    /// Makes the assistant follow `script` from now on.
    pub fn follow(&self, script: Script) {
        *self.shared.script.lock().expect("no holder panics") = Some(Arc::new(script));
    }

    /// Returns the requests since the last call of this function.
    pub fn take(&self) -> Vec<Asked> {
        std::mem::take(&mut *self.shared.asked.lock().expect("no holder panics"))
    }

    /// Returns `tiro`, configured to consult this assistant as `mock`. Its window has `window` tokens, of which files take
    /// at most `inline`; 0 is no limit. The configuration is written to `folder`.
    pub fn configure(&self, tiro: &Tiro, folder: &Path, window: usize, inline: usize) -> Result<Tiro> {
        let file = folder.join(format!("consult-{window}.toml"));
        // The service counts tokens as tiro does, so the window is not divided by an estimate.
        let text = format!(
            "[providers.mock]\nservice = 'openai'\nendpoint = 'http://127.0.0.1:{}/v1'\nmodel = 'mock'\n\
             uses = ['consult']\nwindow = {window}\nprice = {{ input = 0, output = 0 }}\n\
             [consult]\ninline_tokens = {inline}\n",
            self.port
        );
        std::fs::write(&file, text).with_context(|| format!("writing `{}`", file.display()))?;
        let mut tiro = tiro.clone();
        let file = file.to_str().context("the path of the configuration is not UTF-8")?;
        tiro.environment.push(("TIRO_CONFIG".to_owned(), file.to_owned()));
        Ok(tiro)
    }

    /// Asks the assistant about `context` and returns the answer of the tool, with the request that the assistant got.
    pub fn consult(
        &self,
        server: &mut Server,
        session: &str,
        context: &str,
        text: &str,
    ) -> Result<(Answer, Asked)> {
        self.take();
        let arguments =
            json!({"session_id": session, "instructions": text, "context": [context], "wait_s": 600});
        let answer = server.tool("chat_with_mock", arguments)?;
        let status = &answer.structured()["status"];
        if status != "done" {
            bail!("the assistant has not answered: the status is {status}");
        }
        let mut asked = self.take();
        match asked.pop() {
            Some(only) if asked.is_empty() => Ok((answer, only)),
            Some(_) => bail!("the assistant got {} requests for one call", asked.len() + 1),
            None => bail!("the assistant got no request"),
        }
    }
}

impl Asked {
    /// Returns the messages of the prompt.
    pub fn messages(&self) -> Result<Vec<Message>> {
        messages(&serde_json::from_slice(&self.body).context("reading a request")?)
    }

    /// Returns the functions that the request offers, as text.
    pub fn functions(&self) -> Result<String> {
        let body: Value = serde_json::from_slice(&self.body).context("reading a request")?;
        Ok(body["tools"].to_string())
    }
}

fn messages(body: &Value) -> Result<Vec<Message>> {
    let messages = body["messages"].as_array().context("a request has no `messages`")?;
    messages.iter().map(message).collect()
}

fn message(message: &Value) -> Result<Message> {
    let role = message["role"].as_str().context("a message has no role")?.to_owned();
    let text = match &message["content"] {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        other => bail!("the content of a message is `{other}`"),
    };
    Ok(Message { role, text })
}

fn serve(mut stream: TcpStream, shared: &Shared) -> Option<()> {
    let body = crate::mock::body_of_request(&stream)?;
    let began = Instant::now();
    let script = shared.script.lock().ok()?.clone();
    let events = match script {
        Some(script) => events_of(&script, &body)?,
        None => said(&ANSWER),
    };
    let used = json!({"choices": [], "usage": {"prompt_tokens": body.len() / 4, "completion_tokens": 100}});
    let events: String = events.iter().chain([&used]).map(|event| format!("data: {event}\n\n")).collect();
    let events = events + "data: [DONE]\n\n";
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n";
    let reply = format!("{head}content-length: {}\r\n\r\n{events}", events.len());
    // It is recorded before the answer is sent, since the caller looks as soon as it has the answer.
    shared.asked.lock().ok()?.push(Asked { body, took: began.elapsed() });
    stream.write_all(reply.as_bytes()).ok()
}

/// Returns the events of the reply that `script` gives to the request `body`.
fn events_of(script: &Script, body: &[u8]) -> Option<Vec<Value>> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let messages = messages(&body).ok()?;
    let is_new = |message: &&Message| message.role != "user";
    let replies =
        messages.iter().rev().take_while(is_new).filter(|message| message.role == "assistant").count();
    let offers_functions = body["tools"].as_array().is_some_and(|tools| !tools.is_empty());
    match script.calls.get(replies).filter(|_| offers_functions) {
        Some(calls) => Some(called(calls)),
        None => Some(said(&[&(script.answer)(&messages)])),
    }
}

/// Returns the events of an answer that comes in `pieces`.
fn said(pieces: &[&str]) -> Vec<Value> {
    let piece = |text: &&str| json!({"choices": [{"index": 0, "delta": {"content": text}}]});
    let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
    pieces.iter().map(piece).chain([end]).collect()
}

/// Returns the events of calls of functions.
fn called(calls: &[(String, Value)]) -> Vec<Value> {
    let call = |(at, (name, arguments)): (usize, &(String, Value))| {
        json!({"index": at, "id": format!("call-{at}"), "type": "function",
            "function": {"name": name, "arguments": arguments.to_string()}})
    };
    let calls: Vec<Value> = calls.iter().enumerate().map(call).collect();
    let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]});
    vec![json!({"choices": [{"index": 0, "delta": {"tool_calls": calls}}]}), end]
}
