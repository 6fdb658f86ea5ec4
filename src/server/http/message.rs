//! Reads the messages of a request as liberally as on stdio, and puts the answers to a batch together.
//!
//! Only revisions of MCP before 2025-06-18 have batches: an array of messages, which is answered by an array.

use axum::body::to_bytes;
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use rmcp::RoleServer;
use rmcp::model::{
    ErrorCode, ErrorData, GetMeta, JsonRpcMessage, ProtocolVersion, RequestId, ServerJsonRpcMessage,
};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use serde::Deserialize;

use super::super::line::{self, Line};

/// The media type of messages.
const JSON: &str = "application/json";

/// The messages of a request. There are none if the request has nothing to answer or to do.
pub(super) struct Messages {
    messages: Vec<RxJsonRpcMessage<RoleServer>>,
    /// The errors that answer malformed messages of a batch. `None` if the request is no batch.
    refused: Option<Vec<Vec<u8>>>,
}

impl Messages {
    /// Returns the first message.
    pub(super) fn first(&self) -> Option<&RxJsonRpcMessage<RoleServer>> {
        self.messages.first()
    }

    /// Returns the messages.
    pub(super) fn iter(&self) -> impl Iterator<Item = &RxJsonRpcMessage<RoleServer>> {
        self.messages.iter()
    }

    /// Returns whether the request is a batch.
    pub(super) fn is_batch(&self) -> bool {
        self.refused.is_some()
    }
}

/// The members that tell which request a message is.
#[derive(Deserialize)]
struct Head {
    id: RequestId,
    method: String,
}

/// Reads the content of a request. Returns the answer if it is malformed.
pub(super) fn read(content: &[u8], headers: &HeaderMap) -> Result<Messages, Box<Response>> {
    let version = headers.get("mcp-protocol-version").and_then(|version| version.to_str().ok());
    if version.is_some_and(|version| version >= ProtocolVersion::V_2026_07_28.as_str())
        && let Ok(Head { id, method }) = serde_json::from_slice(content)
        && method == "initialize"
    {
        // This revision has no such method any more, and wants this answer to it.
        let error = ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "Method not found: initialize", None);
        let error = serde_json::to_vec(&ServerJsonRpcMessage::error(error, Some(id)));
        return Err(Box::new(json(StatusCode::NOT_FOUND, error.expect("a message is JSON"))));
    }
    let takes_batches = version.is_none_or(|version| version < ProtocolVersion::V_2025_06_18.as_str());
    match line::read(content, takes_batches) {
        Line::Message(message) => Ok(Messages { messages: vec![*message], refused: None }),
        Line::Nothing => Ok(Messages { messages: Vec::new(), refused: None }),
        Line::Refused(refusal) => Err(Box::new(refused(&refusal))),
        Line::Batch(lines) => {
            let (mut messages, mut refused) = (Vec::new(), Vec::new());
            for (line, _) in lines {
                match line {
                    Line::Message(message) => messages.push(without_progress(*message)),
                    Line::Refused(refusal) => refused.extend(serde_json::to_vec(&refusal).ok()),
                    Line::Batch(_) | Line::Nothing => {}
                }
            }
            if messages.is_empty() && !refused.is_empty() {
                return Err(Box::new(json(StatusCode::BAD_REQUEST, array(&refused))));
            }
            Ok(Messages { messages, refused: Some(refused) })
        }
    }
}

/// Removes the wish for progress, because the answers to a batch come together.
fn without_progress(mut message: RxJsonRpcMessage<RoleServer>) -> RxJsonRpcMessage<RoleServer> {
    if let JsonRpcMessage::Request(request) = &mut message {
        request.request.get_meta_mut().remove("progressToken");
    }
    message
}

/// Makes a request that accepts anything accept what MCP answers.
pub(super) fn accept_answers(headers: &mut HeaderMap) {
    let accepts_all = |value: &HeaderValue| value.to_str().is_ok_and(|value| value.contains("*/*"));
    let mut given = headers.get_all(ACCEPT).iter().peekable();
    if given.peek().is_none() || given.any(accepts_all) {
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
    }
}

/// The answers to the messages of a batch.
#[derive(Default)]
pub(super) struct Answers(Vec<Vec<u8>>);

impl Answers {
    /// Adds an answer of rmcp. A notification has none.
    pub(super) async fn add(&mut self, answer: Response) {
        if let Ok(content) = to_bytes(answer.into_body(), usize::MAX).await
            && content.first() == Some(&b'{')
        {
            self.0.push(content.to_vec());
        }
    }

    /// Returns the answer to the whole batch.
    pub(super) fn whole(mut self, batch: Messages) -> Response {
        self.0.extend(batch.refused.unwrap_or_default());
        match self.0.is_empty() {
            true => StatusCode::ACCEPTED.into_response(),
            false => json(StatusCode::OK, array(&self.0)),
        }
    }
}

/// Returns the answer to a malformed message.
fn refused(refusal: &TxJsonRpcMessage<RoleServer>) -> Response {
    // Wrong parameters of a well-formed request are answered like those that a tool refuses.
    let is_in_band = matches!(refusal, JsonRpcMessage::Error(error)
        if error.id.is_some() && error.error.code == ErrorCode::INVALID_PARAMS);
    let status = if is_in_band { StatusCode::OK } else { StatusCode::BAD_REQUEST };
    json(status, serde_json::to_vec(refusal).expect("a message is JSON"))
}

fn array(messages: &[Vec<u8>]) -> Vec<u8> {
    [b"[".as_slice(), &messages.join(&b','), b"]"].concat()
}

fn json(status: StatusCode, content: Vec<u8>) -> Response {
    (status, [(CONTENT_TYPE, JSON)], content).into_response()
}
