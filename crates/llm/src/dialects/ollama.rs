//! Ollama's own API.
//!
//! A reasoning model gets its thoughts back while it calls functions. Older versions of Ollama give calls no ids. The
//! results are then assigned to the calls by order and name.

use serde_json::{Value, json};

use super::super::request::Turn;
use super::chat::tool;
use super::parts::{
    Answer, Asked, Counts, Misread, Post, Read, Stop, as_object, as_text, base64, kept, list, names, number,
    own_id, result_text, text,
};

/// Returns the path, headers and body of the request.
pub(super) fn post(asked: &Asked<'_>, author: &str) -> Post {
    let request = asked.request;
    let mut body = json!({
        "model": asked.provider.model,
        "stream": asked.is_streamed,
        "messages": messages(asked, author),
    });
    if !request.functions.is_empty() {
        body["tools"] = request.functions.iter().map(tool).collect();
    }
    if let Some((_, schema)) = request.schema.as_ref().filter(|_| !asked.tells_schema()) {
        body["format"] = schema.clone();
    }
    if let Some(level) = asked.level() {
        body["think"] = json!(level);
    }
    let mut options = json!({});
    if let Some(temperature) = asked.temperature {
        options["temperature"] = json!(temperature);
    }
    if let Some(most) = asked.max_output {
        options["num_predict"] = json!(most);
    }
    if let Some(window) = asked.window {
        // By default Ollama silently drops everything beyond the first 4,096 tokens.
        options["num_ctx"] = json!(window);
    }
    body["options"] = options;
    Post { path: "api/chat".to_owned(), headers: &[], body }
}

fn messages(asked: &Asked<'_>, author: &str) -> Vec<Value> {
    let names = names(asked.request);
    let system = asked.system();
    let system = (!system.is_empty()).then(|| json!({"role": "system", "content": system}));
    let turns = asked.request.turns.iter().map(|turn| match turn {
        Turn::User { text, images } => {
            let mut message = json!({"role": "user", "content": text});
            if !images.is_empty() {
                message["images"] = images.iter().map(base64).collect();
            }
            message
        }
        Turn::Assistant { text, calls, kept: own } => {
            let mut message = json!({"role": "assistant", "content": text});
            if !calls.is_empty() {
                let calls = calls.iter().map(|call| {
                    let function = json!({"name": call.name, "arguments": as_object(&call.arguments)});
                    match own_id(&call.id) {
                        Some(id) => json!({"id": id, "function": function}),
                        None => json!({"function": function}),
                    }
                });
                message["tool_calls"] = calls.collect();
            }
            if let Some(thinking) = kept(own, author) {
                message["thinking"] = thinking.clone();
            }
            message
        }
        Turn::Result { call, text, is_error } => {
            let mut message = json!({"role": "tool", "content": result_text(text, *is_error)});
            if let Some(name) = names.get(call.as_str()) {
                message["tool_name"] = json!(name);
            }
            if let Some(id) = own_id(call) {
                message["tool_call_id"] = json!(id);
            }
            message
        }
    });
    system.into_iter().chain(turns).collect()
}

/// Reads an answer.
#[derive(Default)]
pub(super) struct OllamaReader {
    thinking: String,
    calls: u64,
}

impl Read for OllamaReader {
    fn whole(&mut self, answer: &mut Answer, body: &Value) -> Result<(), Misread> {
        if body.get("message").is_none() {
            return Err(Misread::Unreadable);
        }
        self.event(answer, body)?;
        answer.stop = answer.stop.or(Some(Stop::Done));
        Ok(())
    }

    fn event(&mut self, answer: &mut Answer, event: &Value) -> Result<bool, Misread> {
        if let Some(message) = event.get("message") {
            answer.text += text(message, "content").unwrap_or_default();
            self.thinking += text(message, "thinking").unwrap_or_default();
            for call in list(message, "tool_calls") {
                let function = call.get("function").ok_or(Misread::Unreadable)?;
                let piece = answer.call(self.calls)?;
                self.calls += 1;
                text(call, "id").unwrap_or_default().clone_into(&mut piece.id);
                text(function, "name").unwrap_or_default().clone_into(&mut piece.name);
                piece.arguments = as_text(function.get("arguments").unwrap_or(&Value::Null));
            }
        }
        let is_done = event.get("done").and_then(Value::as_bool).unwrap_or(false);
        if is_done {
            let is_cut = text(event, "done_reason") == Some("length");
            answer.stop = Some(if is_cut { Stop::Cut } else { Stop::Done });
        }
        answer.counts.update(Counts {
            input: number(event, "/prompt_eval_count"),
            cached: number(event, "/prompt_eval_cached_count"),
            written: None,
            output: number(event, "/eval_count"),
        });
        Ok(is_done)
    }

    fn kept(&mut self, answer: &Answer) -> Option<Value> {
        let is_needed = !answer.calls.is_empty() && !self.thinking.is_empty();
        is_needed.then(|| Value::String(std::mem::take(&mut self.thinking)))
    }
}
