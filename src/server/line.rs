//! Reads one line as a JSON-RPC message, or returns the error that answers it.
//!
//! No line may end the server or leave a client waiting. So every request gets an answer. The answer has the id of the
//! request if this id can be read; otherwise the answer has no id, as MCP requires. Malformed notifications and
//! responses are ignored, because JSON-RPC forbids answering them. In a string, invalid text such as half an emoji is
//! read as a replacement character.

use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientJsonRpcMessage, ClientRequest, ErrorCode, ErrorData,
    GetMeta, RequestId, RequestMetaObject, ServerJsonRpcMessage,
};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::lossy;

/// The result of reading a line.
pub(super) enum Line {
    /// The line is a message to handle.
    Message(Box<RxJsonRpcMessage<RoleServer>>),
    /// The line gets this error as its answer.
    Refused(Box<TxJsonRpcMessage<RoleServer>>),
    /// The line is a batch of these messages. Each message was read as if it were alone on a line, and comes with its
    /// number of bytes.
    Batch(Vec<(Line, usize)>),
    /// The line is ignored.
    Nothing,
}

/// Reads `line`, which has no line break. `takes_batches` is true if the client's revision of the protocol has batches.
pub(super) fn read(line: &[u8], takes_batches: bool) -> Line {
    let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line).trim_ascii();
    let line = &*lossy::json(line);
    match line.first() {
        None => Line::Nothing,
        Some(b'{') => read_object(line),
        Some(_) => match serde_json::from_slice::<Vec<&RawValue>>(line) {
            Ok(messages) if takes_batches && !messages.is_empty() => {
                let bytes = messages.iter().map(|message| message.get().as_bytes());
                Line::Batch(bytes.map(|message| (read(message, false), message.len())).collect())
            }
            Ok(messages) if !messages.is_empty() => refused(
                ErrorCode::INVALID_REQUEST,
                "Invalid request: this revision of MCP has no batches; send one message per line",
                None,
            ),
            Err(error) if !error.is_data() => {
                refused(ErrorCode::PARSE_ERROR, "Parse error: the line is not JSON", None)
            }
            _ => refused(ErrorCode::INVALID_REQUEST, "Invalid request: a message must be an object", None),
        },
    }
}

/// Reads `line`, which begins like an object.
fn read_object(line: &[u8]) -> Line {
    match serde_json::from_slice::<Head>(line) {
        Ok(head) => read_message(line, head),
        Err(error) if error.is_data() => {
            refused(ErrorCode::INVALID_REQUEST, "Invalid request: a member occurs twice", None)
        }
        Err(_) => refused(ErrorCode::PARSE_ERROR, "Parse error: the line is not JSON", None),
    }
}

/// Returns the error for a line longer than `limit` bytes.
pub(super) fn too_long(limit: usize, id: Option<RequestId>) -> Line {
    let message = format!("Invalid request: a message may have at most {limit} bytes; use several calls");
    refused(ErrorCode::INVALID_REQUEST, message, id)
}

/// Returns the error for a request that has the same id as an open request.
pub(super) fn taken(id: RequestId) -> Box<TxJsonRpcMessage<RoleServer>> {
    let message = "Invalid request: an earlier request with this `id` is not answered yet; use another `id`";
    Box::new(ServerJsonRpcMessage::error(ErrorData::new(ErrorCode::INVALID_REQUEST, message, None), Some(id)))
}

/// The members that decide what kind of message a line is. Other members are ignored.
#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    jsonrpc: Value,
    #[serde(default, deserialize_with = "present")]
    id: Option<Value>,
    #[serde(default, deserialize_with = "present")]
    method: Option<Value>,
    #[serde(default, deserialize_with = "present")]
    result: Option<serde::de::IgnoredAny>,
    #[serde(default, deserialize_with = "present")]
    error: Option<serde::de::IgnoredAny>,
}

/// Reads a member as `Some` if it is present, even if its value is `null`.
fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

fn read_message(line: &[u8], head: Head) -> Line {
    let is_response = head.result.is_some() || head.error.is_some();
    let id = head.id.as_ref().map(RequestId::deserialize);
    let (method, id) = match (head.method, id) {
        // The server sends no requests, so a response is never expected.
        (None, _) if is_response => return Line::Nothing,
        (_, Some(Err(_))) => {
            let message = "Invalid request: `id` must be a string or an integer";
            return refused(ErrorCode::INVALID_REQUEST, message, None);
        }
        (None, id) => {
            let message = "Invalid request: `method` is missing";
            return refused(ErrorCode::INVALID_REQUEST, message, id.and_then(Result::ok));
        }
        (Some(method), id) => (method, id.and_then(Result::ok)),
    };
    let Some(id) = id else {
        let notification = serde_json::from_slice::<ClientJsonRpcMessage>(line);
        return notification.map_or(Line::Nothing, |notification| Line::Message(Box::new(notification)));
    };
    let invalid = |message: &'static str, id| refused(ErrorCode::INVALID_REQUEST, message, Some(id));
    match method {
        _ if head.jsonrpc != "2.0" => invalid("Invalid request: `jsonrpc` must be \"2.0\"", id),
        _ if is_response => invalid("Invalid request: a request has neither `result` nor `error`", id),
        Value::String(method) if method == "tools/call" => read_call(line, id),
        Value::String(_) => match serde_json::from_slice(line) {
            Ok(message) => Line::Message(Box::new(message)),
            Err(_) => {
                let message =
                    "Invalid params: `params` must be an object with valid strings, not nested too deep";
                refused(ErrorCode::INVALID_PARAMS, message, Some(id))
            }
        },
        _ => invalid("Invalid request: `method` must be a string", id),
    }
}

/// Parses the line of a tool call directly into its type.
///
/// rmcp would try one kind of message after another, each on a copy. For a call of several megabytes, this would take
/// many times the memory and the time.
fn read_call(line: &[u8], id: RequestId) -> Line {
    #[derive(Deserialize)]
    struct Call<P> {
        params: P,
    }
    let strict = serde_json::from_slice::<Call<CallToolRequestParams>>(line).map(|call| call.params);
    let params = strict.or_else(|error| {
        let loose = serde_json::from_slice::<Call<LooseParams>>(line)?.params;
        loose.tightened().ok_or(error)
    });
    match params {
        Ok(mut params) => {
            let meta = params.meta.take();
            let mut call = ClientRequest::CallToolRequest(CallToolRequest::new(params));
            if let Some(meta) = meta {
                *call.get_meta_mut() = meta;
            }
            Line::Message(Box::new(ClientJsonRpcMessage::request(call, id)))
        }
        // serde's own error would quote a value, so it is not shown.
        Err(_) => {
            let message = "Invalid params of `tools/call`: `name` must be a string and `arguments` an object, each once, such \
                           as {\"name\": \"search_project_memory\", \"arguments\": {\"query\": \"cache\"}}";
            refused(ErrorCode::INVALID_PARAMS, message, Some(id))
        }
    }
}

/// The parameters of a call whose arguments are not an object.
#[derive(Deserialize)]
struct LooseParams {
    name: String,
    #[serde(default)]
    arguments: Value,
    #[serde(rename = "_meta")]
    meta: Option<RequestMetaObject>,
}

impl LooseParams {
    /// Returns the parameters in MCP's form. The arguments may be an object, a string with the JSON of an object, or
    /// empty. For any other arguments, returns `None`.
    fn tightened(self) -> Option<CallToolRequestParams> {
        let arguments = match self.arguments {
            Value::String(text) if text.trim().is_empty() => Value::Null,
            Value::String(text) => serde_json::from_str(&text).ok()?,
            other => other,
        };
        let mut params = CallToolRequestParams::new(self.name);
        params.meta = self.meta;
        params.arguments = match arguments {
            Value::Null => None,
            Value::Array(items) if items.is_empty() => None,
            Value::Object(fields) => Some(fields),
            _ => return None,
        };
        Some(params)
    }
}

fn refused(
    code: ErrorCode,
    message: impl Into<std::borrow::Cow<'static, str>>,
    id: Option<RequestId>,
) -> Line {
    Line::Refused(Box::new(ServerJsonRpcMessage::error(ErrorData::new(code, message, None), id)))
}

/// Finds the `id` of a message that arrives in pieces, without keeping the message.
///
/// A line that is too long is dropped while it is read. But the client waits for an answer with the id of the message,
/// and many clients write the id at the end of a message.
#[derive(Default)]
pub(super) struct IdFinder {
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// Whether the next bytes directly in the message's object belong to the value of a member. Otherwise they belong
    /// to the name of a member.
    in_value: bool,
    name: Vec<u8>,
    value: Vec<u8>,
    id: Option<RequestId>,
}

/// The maximum number of bytes that are kept of a member's name or of an id. Arbitrary: a request with a longer id is
/// answered without an id.
const LONGEST_ID: usize = 256;

impl IdFinder {
    /// Reads the next piece of the message.
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            let at_top = self.depth == 1;
            if self.in_string {
                self.keep(byte, at_top);
                match byte {
                    _ if self.escaped => self.escaped = false,
                    b'\\' => self.escaped = true,
                    b'"' => self.in_string = false,
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => {
                    self.in_string = true;
                    self.keep(byte, at_top);
                }
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => {
                    if at_top {
                        self.end_member();
                    }
                    self.depth = self.depth.saturating_sub(1);
                }
                b':' if at_top => self.in_value = true,
                b',' if at_top => self.end_member(),
                byte => self.keep(byte, at_top),
            }
        }
    }

    /// Returns the id, if one was found.
    pub(super) fn found(self) -> Option<RequestId> {
        self.id
    }

    fn keep(&mut self, byte: u8, at_top: bool) {
        let kept = if self.in_value { &mut self.value } else { &mut self.name };
        if at_top && kept.len() <= LONGEST_ID {
            kept.push(byte);
        }
    }

    fn end_member(&mut self) {
        if self.name.trim_ascii() == b"\"id\"" && self.value.len() <= LONGEST_ID {
            self.id = serde_json::from_slice(&self.value).ok();
        }
        self.name.clear();
        self.value.clear();
        self.in_value = false;
    }
}
