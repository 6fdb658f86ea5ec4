//! OpenAI's Responses API.
//!
//! OpenAI is told to store nothing, so each request must contain everything that OpenAI needs of earlier answers. The
//! model's thoughts come encrypted, as items of the answer. If an answer has thoughts, all its items are kept.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::super::catalogue::{self};
use super::super::request::Turn;
use super::chat::{add_openai, form};
use super::parts::{
    Answer, Asked, Counts, Misread, Post, Read, Stop, as_object, as_text, data_url, kept, list, number,
    result_text, text,
};

/// Returns the path, headers and body of the request.
pub(super) fn post(asked: &Asked<'_>, author: &str) -> Post {
    let request = asked.request;
    let mut body = json!({
        "model": asked.provider.model,
        "stream": asked.is_streamed,
        "store": false,
        "input": input(request.turns.as_slice(), author),
    });
    let system = asked.system();
    if !system.is_empty() {
        body["instructions"] = json!(system);
    }
    if !request.functions.is_empty() {
        let tool = |function: &super::super::request::Function| {
            json!({
                "type": "function",
                "name": function.name,
                "description": function.description,
                "parameters": function.parameters,
                // Without this, the service makes every argument obligatory.
                "strict": false,
            })
        };
        body["tools"] = request.functions.iter().map(tool).collect();
    }
    if let Some((name, it)) = &request.schema {
        let mut format = form(name, it);
        format["type"] = json!("json_schema");
        body["text"] = json!({"format": format});
    }
    if let Some(temperature) = asked.temperature {
        body["temperature"] = json!(temperature);
    }
    if let Some(most) = asked.max_output {
        body["max_output_tokens"] = json!(most);
    }
    if let Some(level) = asked.level() {
        body["reasoning"] = json!({"effort": level});
    }
    // Models that don't think refuse this parameter.
    let thinks = catalogue::model(asked.provider)
        .map_or(asked.effort.is_some(), |model| model.thinking.is_some() || model.needs_responses);
    if thinks && !request.functions.is_empty() {
        body["include"] = json!(["reasoning.encrypted_content"]);
    }
    add_openai(&mut body, asked);
    Post { path: "responses".to_owned(), headers: &[], body }
}

fn input(turns: &[Turn], author: &str) -> Vec<Value> {
    let mut items = Vec::new();
    for turn in turns {
        match turn {
            Turn::User { text, images } if images.is_empty() => {
                items.push(json!({"role": "user", "content": text}));
            }
            Turn::User { text, images } => {
                let mut parts = vec![json!({"type": "input_text", "text": text})];
                parts.extend(images.iter().map(
                    |image| json!({"type": "input_image", "detail": "auto", "image_url": data_url(image)}),
                ));
                items.push(json!({"role": "user", "content": parts}));
            }
            Turn::Assistant { text, calls, kept: own } => {
                if let Some(Value::Array(own)) = kept(own, author) {
                    items.extend(own.iter().cloned());
                    continue;
                }
                if !text.is_empty() {
                    items.push(json!({"role": "assistant", "content": text}));
                }
                items.extend(calls.iter().map(|call| {
                    json!({
                        "type": "function_call",
                        "call_id": call.id,
                        "name": call.name,
                        "arguments": as_object(&call.arguments).to_string(),
                    })
                }));
            }
            Turn::Result { call, text, is_error } => items.push(json!({
                "type": "function_call_output",
                "call_id": call,
                "output": result_text(text, *is_error),
            })),
        }
    }
    items
}

/// Reads an answer.
#[derive(Default)]
pub(super) struct ResponsesReader {
    /// The items that are complete, by their places.
    items: BTreeMap<u64, Value>,
    is_refused: bool,
}

impl ResponsesReader {
    /// Reads the items of a whole answer.
    fn output(&mut self, answer: &mut Answer, output: &[Value]) -> Result<(), Misread> {
        for (place, item) in (0..).zip(output) {
            match text(item, "type") {
                Some("message") => self.message(answer, item),
                Some("function_call") => call(answer, place, item)?,
                _ => {}
            }
            self.items.insert(place, item.clone());
        }
        Ok(())
    }

    fn message(&mut self, answer: &mut Answer, item: &Value) {
        for part in list(item, "content") {
            match text(part, "type") {
                Some("output_text") => answer.text += text(part, "text").unwrap_or_default(),
                Some("refusal") => self.is_refused = true,
                _ => {}
            }
        }
    }

    /// Reads the status and the numbers of tokens at the end of an answer.
    fn end(&self, answer: &mut Answer, response: &Value) -> Result<(), Misread> {
        if text(response, "status") == Some("failed") {
            return Err(Misread::Reported(response.clone()));
        }
        let reason = response.pointer("/incomplete_details/reason").and_then(Value::as_str);
        answer.stop = Some(match reason {
            _ if self.is_refused => Stop::Withheld,
            Some("content_filter") => Stop::Withheld,
            Some(_) => Stop::Cut,
            None if text(response, "status") == Some("incomplete") => Stop::Cut,
            None => Stop::Done,
        });
        answer.counts.update(Counts {
            input: number(response, "/usage/input_tokens"),
            cached: number(response, "/usage/input_tokens_details/cached_tokens"),
            written: number(response, "/usage/input_tokens_details/cache_write_tokens"),
            output: number(response, "/usage/output_tokens"),
        });
        Ok(())
    }
}

/// Reads a whole call. The arguments in the whole call replace those that came in pieces before.
fn call(answer: &mut Answer, place: u64, item: &Value) -> Result<(), Misread> {
    let piece = answer.call(place)?;
    text(item, "call_id").unwrap_or_default().clone_into(&mut piece.id);
    text(item, "name").unwrap_or_default().clone_into(&mut piece.name);
    let arguments = as_text(item.get("arguments").unwrap_or(&Value::Null));
    if !arguments.is_empty() {
        piece.arguments = arguments;
    }
    Ok(())
}

impl Read for ResponsesReader {
    fn whole(&mut self, answer: &mut Answer, body: &Value) -> Result<(), Misread> {
        self.end(answer, body)?;
        let Some(Value::Array(output)) = body.get("output") else { return Err(Misread::Unreadable) };
        self.output(answer, output)?;
        self.end(answer, body)
    }

    fn event(&mut self, answer: &mut Answer, event: &Value) -> Result<bool, Misread> {
        let place = event.get("output_index").and_then(Value::as_u64).unwrap_or_default();
        let delta = text(event, "delta").unwrap_or_default();
        let item = event.get("item").unwrap_or(&Value::Null);
        let is_call = text(item, "type") == Some("function_call");
        match text(event, "type") {
            Some("response.output_text.delta") => answer.text += delta,
            Some("response.refusal.delta") => self.is_refused = true,
            Some("response.function_call_arguments.delta") => answer.call(place)?.arguments += delta,
            Some("response.output_item.added") if is_call => call(answer, place, item)?,
            Some("response.output_item.done") => {
                if is_call {
                    call(answer, place, item)?;
                }
                self.items.insert(place, item.clone());
            }
            Some("response.completed" | "response.incomplete" | "response.failed") => {
                let response = event.get("response").ok_or(Misread::Unreadable)?;
                if answer.text.is_empty() && answer.calls.is_empty() {
                    // Some servers send everything at the end.
                    self.output(answer, list(response, "output"))?;
                }
                self.end(answer, response)?;
                return Ok(true);
            }
            Some("error") => return Err(Misread::Reported(event.clone())),
            _ => {}
        }
        Ok(false)
    }

    fn kept(&mut self, _: &Answer) -> Option<Value> {
        // The phase of a text says whether the text is the answer or precedes a call.
        let is_own = |item: &Value| text(item, "type") == Some("reasoning") || item.get("phase").is_some();
        if !self.items.values().any(is_own) {
            return None;
        }
        let items = std::mem::take(&mut self.items).into_values().map(|mut item| {
            if let Value::Object(members) = &mut item {
                // The service stored nothing, so it doesn't know these ids.
                members.retain(|name, member| !matches!(name.as_str(), "id" | "status") && !member.is_null());
            }
            item
        });
        Some(items.collect())
    }
}
