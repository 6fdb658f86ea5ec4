//! The name of the client that sent a request.
//!
//! rmcp makes up a client for requests of revisions before 2026-07-28, which name no client after `initialize`. So the
//! name is read here.

use axum::http::HeaderMap;
use axum::http::header::USER_AGENT;
use rmcp::RoleServer;
use rmcp::model::{ClientRequest, GetMeta, JsonRpcMessage};
use rmcp::service::RxJsonRpcMessage;

/// Returns the name of the client: from `_meta`, from `initialize`, or else from `User-Agent`. Empty if it is unknown.
pub(super) fn name(message: &RxJsonRpcMessage<RoleServer>, headers: &HeaderMap) -> String {
    let own = match message {
        JsonRpcMessage::Request(request) => match &request.request {
            ClientRequest::InitializeRequest(greeting) => Some(greeting.params.client_info.name.clone()),
            other => other
                .get_meta()
                .get("io.modelcontextprotocol/clientInfo")
                .and_then(|client| client.get("name")?.as_str())
                .map(str::to_owned),
        },
        _ => None,
    };
    let agent = || Some(headers.get(USER_AGENT)?.to_str().ok()?.to_owned());
    own.or_else(agent).unwrap_or_default()
}

/// Returns the method of a message, for counts: one of `methods`, or `other`.
pub(super) fn method(message: &RxJsonRpcMessage<RoleServer>, methods: &[&'static str]) -> &'static str {
    let JsonRpcMessage::Request(request) = message else { return "notification" };
    let method = request.request.method();
    methods.iter().find(|known| **known == method).copied().unwrap_or("other")
}
