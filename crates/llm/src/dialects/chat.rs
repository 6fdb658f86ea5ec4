//! OpenAI's Chat Completions API, which many other servers offer too.
//!
//! Servers with reasoning models send the thoughts of a model in members of the message that OpenAI doesn't have. Some
//! servers need these members back while the model calls functions, so the members are kept.

use serde_json::{Map, Value, json};

use super::super::Service;
use super::super::request::{Function, Turn};
use super::parts::{
    Answer, Asked, Counts, Misread, Post, Read, Stop, as_object, as_text, data_url, kept, list, number,
    result_text, text,
};
use super::schema;

/// The members of a message that contain thoughts: first the one of DeepSeek and Kimi, then that of vLLM, then that of
/// OpenRouter.
const THOUGHTS: [&str; 3] = ["reasoning_content", "reasoning", "reasoning_details"];

/// Returns the path, headers and body of the request.
pub(super) fn post(asked: &Asked<'_>, author: &str) -> Post {
    let request = asked.request;
    let mut body = json!({
        "model": asked.provider.model,
        "stream": asked.is_streamed,
        "messages": messages(asked, author),
    });
    if asked.is_streamed {
        body["stream_options"] = json!({"include_usage": true});
    }
    if !request.functions.is_empty() {
        body["tools"] = request.functions.iter().map(tool).collect();
    }
    if let Some((name, it)) = &request.schema {
        body["response_format"] = json!({"type": "json_schema", "json_schema": form(name, it)});
    }
    if let Some(temperature) = asked.temperature {
        body["temperature"] = json!(temperature);
    }
    let is_own = asked.provider.service == Service::Openai;
    if let Some(most) = asked.max_output {
        // OpenAI calls the old name deprecated, and its newer models refuse it. Other servers know only the old name.
        body[if is_own { "max_completion_tokens" } else { "max_tokens" }] = json!(most);
    }
    if let Some(level) = asked.level() {
        body["reasoning_effort"] = json!(level);
    }
    if is_own && asked.must_not_think() {
        body["reasoning_effort"] = json!("none");
    }
    if is_own {
        add_openai(&mut body, asked);
    }
    Post { path: "chat/completions".to_owned(), headers: &[], body }
}

/// Adds the parameters that only OpenAI's own service accepts.
pub(super) fn add_openai(body: &mut Value, asked: &Asked<'_>) {
    if let Some(key) = &asked.request.cache_key {
        body["prompt_cache_key"] = json!(key);
    }
    if asked.avoids_cache() {
        body["prompt_cache_options"] = json!({"mode": "explicit"});
    }
}

/// Returns a schema in the form that both of OpenAI's dialects share.
pub(super) fn form(name: &str, it: &Value) -> Value {
    let closed = schema::closed(it);
    match schema::is_strict(&closed) {
        true => json!({"name": name, "schema": closed, "strict": true}),
        false => json!({"name": name, "schema": it, "strict": false}),
    }
}

/// Returns a function in the form that OpenAI and Ollama share.
pub(super) fn tool(function: &Function) -> Value {
    json!({
        "type": "function",
        "function": {
            "name": function.name,
            "description": function.description,
            "parameters": function.parameters,
        },
    })
}

fn messages(asked: &Asked<'_>, author: &str) -> Vec<Value> {
    let system = asked.system();
    let system = (!system.is_empty()).then(|| json!({"role": "system", "content": system}));
    let turns = asked.request.turns.iter().map(|turn| match turn {
        Turn::User { text, images } if images.is_empty() => json!({"role": "user", "content": text}),
        Turn::User { text, images } => {
            let mut parts = vec![json!({"type": "text", "text": text})];
            parts.extend(
                images
                    .iter()
                    .map(|image| json!({"type": "image_url", "image_url": {"url": data_url(image)}})),
            );
            json!({"role": "user", "content": parts})
        }
        Turn::Assistant { text, calls, kept: own } => {
            let mut message = json!({"role": "assistant", "content": text});
            if !calls.is_empty() {
                if text.is_empty() {
                    message["content"] = Value::Null;
                }
                message["tool_calls"] = calls
                    .iter()
                    .map(|call| {
                        let arguments = as_object(&call.arguments).to_string();
                        json!({
                            "id": call.id,
                            "type": "function",
                            "function": {"name": call.name, "arguments": arguments},
                        })
                    })
                    .collect();
            }
            if let (Some(Value::Object(thoughts)), Some(message)) =
                (kept(own, author), message.as_object_mut())
            {
                message.extend(thoughts.clone());
            }
            message
        }
        Turn::Result { call, text, is_error } => {
            json!({"role": "tool", "tool_call_id": call, "content": result_text(text, *is_error)})
        }
    });
    system.into_iter().chain(turns).collect()
}

/// Reads an answer.
#[derive(Default)]
pub(super) struct ChatReader {
    /// The members of the message that contain thoughts.
    thoughts: Map<String, Value>,
    is_refused: bool,
}

impl ChatReader {
    /// Reads a message, or a part of one.
    fn message(&mut self, answer: &mut Answer, message: &Value) -> Result<(), Misread> {
        match message.get("content") {
            Some(Value::String(content)) => answer.text += content,
            // The answer of Mistral's reasoning models is a list of texts and thoughts.
            Some(Value::Array(parts)) => {
                let of_text = parts.iter().filter(|part| text(part, "type") == Some("text"));
                of_text.filter_map(|part| text(part, "text")).for_each(|piece| answer.text += piece);
            }
            _ => {}
        }
        self.is_refused |= text(message, "refusal").is_some_and(|refusal| !refusal.is_empty());
        for name in THOUGHTS {
            match (self.thoughts.get_mut(name), message.get(name)) {
                (_, None | Some(Value::Null)) => {}
                (Some(Value::String(so_far)), Some(Value::String(more))) => *so_far += more,
                (Some(Value::Array(so_far)), Some(Value::Array(more))) => so_far.extend(more.iter().cloned()),
                (_, Some(first)) => {
                    self.thoughts.insert(name.to_owned(), first.clone());
                }
            }
        }
        for (place, call) in list(message, "tool_calls").iter().enumerate() {
            let id = text(call, "id").unwrap_or_default();
            let key =
                call.get("index").and_then(Value::as_u64).unwrap_or_else(|| place_of(answer, id, place));
            let function = call.get("function").ok_or(Misread::Unreadable)?;
            let piece = answer.call(key)?;
            if piece.id.is_empty() {
                id.clone_into(&mut piece.id);
            }
            if piece.name.is_empty() {
                text(function, "name").unwrap_or_default().clone_into(&mut piece.name);
            }
            piece.arguments += &as_text(function.get("arguments").unwrap_or(&Value::Null));
        }
        Ok(())
    }

    fn stop(&self, choice: &Value) -> Option<Stop> {
        let reason = text(choice, "finish_reason")?;
        Some(match reason {
            _ if self.is_refused => Stop::Withheld,
            "length" | "max_tokens" | "model_length" => Stop::Cut,
            "content_filter" => Stop::Withheld,
            _ => Stop::Done,
        })
    }
}

/// Returns the place of a call for which the server gave no place. A new id means a new call.
fn place_of(answer: &Answer, id: &str, place: usize) -> u64 {
    let same = answer.calls.iter().find(|piece| !id.is_empty() && piece.id == id);
    let next = answer.calls.iter().map(|piece| piece.key + 1).max().unwrap_or(0);
    match same {
        Some(piece) => piece.key,
        None if id.is_empty() && place == 0 => next.saturating_sub(1),
        None => next,
    }
}

fn counts(body: &Value) -> Counts {
    Counts {
        input: number(body, "/usage/prompt_tokens"),
        cached: number(body, "/usage/prompt_tokens_details/cached_tokens"),
        written: number(body, "/usage/prompt_tokens_details/cache_write_tokens"),
        output: number(body, "/usage/completion_tokens"),
    }
}

impl Read for ChatReader {
    fn whole(&mut self, answer: &mut Answer, body: &Value) -> Result<(), Misread> {
        let choice = list(body, "choices").first().ok_or(Misread::Unreadable)?;
        self.message(answer, choice.get("message").ok_or(Misread::Unreadable)?)?;
        answer.stop = self.stop(choice).or(Some(if self.is_refused { Stop::Withheld } else { Stop::Done }));
        answer.counts = counts(body);
        Ok(())
    }

    fn event(&mut self, answer: &mut Answer, event: &Value) -> Result<bool, Misread> {
        // The last event before the end has numbers of tokens and no choice.
        if let Some(choice) = list(event, "choices").first() {
            if let Some(delta) = choice.get("delta") {
                self.message(answer, delta)?;
            }
            answer.stop = self.stop(choice).or(answer.stop);
        }
        answer.counts.update(counts(event));
        Ok(false)
    }

    fn kept(&mut self, answer: &Answer) -> Option<Value> {
        let is_needed = !answer.calls.is_empty() && !self.thoughts.is_empty();
        is_needed.then(|| Value::Object(std::mem::take(&mut self.thoughts)))
    }
}
