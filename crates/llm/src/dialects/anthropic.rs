//! Anthropic's Messages API.
//!
//! The model's thoughts are signed blocks of the answer. The service checks that these blocks are sent back in their
//! places between texts and calls. So if an answer has such a block, all blocks of the answer are kept.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::super::catalogue::Thinking;
use super::super::request::Turn;
use super::parts::{
    Answer, Asked, Counts, Misread, Post, Read, Stop, as_object, as_text, base64, kept, number,
    read_arguments, text,
};
use super::schema;

/// The limit that is sent if there is no other limit, because the service demands one. All current models accept this
/// number.
const MOST_OUTPUT: usize = 8_192;

/// The smallest budget for thinking that a model accepts, in tokens.
const LEAST_BUDGET: usize = 1_024;

/// The highest temperature.
const MOST_TEMPERATURE: f64 = 1.0;

/// Returns the path, headers and body of the request.
pub(super) fn post(asked: &Asked<'_>, author: &str) -> Post {
    let request = asked.request;
    let mut body = json!({
        "model": asked.provider.model,
        "stream": asked.is_streamed,
        "max_tokens": asked.max_output.unwrap_or(MOST_OUTPUT),
        "messages": messages(&request.turns, author),
    });
    let system = asked.system();
    if !system.is_empty() {
        body["system"] = json!([{"type": "text", "text": system}]);
    }
    if request.keeps_prefix {
        // These are the marks up to which the service caches the request. The mark on the system prompt covers the
        // functions too. The mark on the last block of the user covers the conversation, which is the beginning of the
        // next request.
        for path in ["/system/0", "/messages"] {
            let place = body.pointer_mut(path).and_then(|place| match place {
                Value::Array(messages) => last_of_user(messages),
                block => Some(block),
            });
            if let Some(block) = place {
                block["cache_control"] = json!({"type": "ephemeral"});
            }
        }
    }
    let mut tools: Vec<Value> = request.functions.iter().map(|function| {
        json!({"name": function.name, "description": function.description, "input_schema": function.parameters})
    }).collect();
    if let Some((name, it)) = &request.schema {
        if asked.keeps_schema {
            body["output_config"]["format"] = json!({"type": "json_schema", "schema": schema::closed(it)});
        } else {
            // The model must call the function that has the schema of the answer, or another function.
            let choice =
                if tools.is_empty() { json!({"type": "tool", "name": name}) } else { json!({"type": "any"}) };
            body["tool_choice"] = choice;
            tools.push(json!({"name": name, "description": "Gives the final answer.", "input_schema": it}));
        }
    }
    if !tools.is_empty() {
        body["tools"] = json!(tools);
    }
    let thinks = think(&mut body, asked, author);
    if let Some(temperature) = asked.temperature.filter(|_| !thinks) {
        body["temperature"] = json!(temperature.min(MOST_TEMPERATURE));
    }
    Post { path: "messages".to_owned(), headers: &[("anthropic-version", "2023-06-01")], body }
}

/// Adds the amount of thinking to the request, if the model accepts such a setting. Returns whether it was added.
fn think(body: &mut Value, asked: &Asked<'_>, author: &str) -> bool {
    // A model that must call a function can't think first.
    if asked.effort.is_none() || body.get("tool_choice").is_some() {
        return false;
    }
    if asked.thinking == Thinking::Level {
        body["thinking"] = json!({"type": "adaptive"});
        body["output_config"]["effort"] = json!(asked.level());
        return true;
    }
    // If the request has results of functions, the answer that called these functions must begin with the model's
    // thoughts.
    let last = asked.request.turns.iter().rev().find(|turn| !matches!(turn, Turn::Result { .. }));
    let is_lost = matches!(last, Some(Turn::Assistant { kept: own, .. }) if kept(own, author).is_none());
    match asked.budget().filter(|budget| *budget >= LEAST_BUDGET && !is_lost) {
        Some(budget) => {
            body["thinking"] = json!({"type": "enabled", "budget_tokens": budget});
            true
        }
        None => false,
    }
}

/// Returns the last block of the last message of the user.
fn last_of_user(messages: &mut [Value]) -> Option<&mut Value> {
    let last = messages.iter_mut().rev().find(|message| text(message, "role") == Some("user"))?;
    last.get_mut("content")?.as_array_mut()?.last_mut()
}

/// Returns the messages. Neighbouring turns of the same role become one message, because the service demands the
/// results of all calls in one message.
fn messages(turns: &[Turn], author: &str) -> Vec<Value> {
    let mut messages: Vec<(&str, Vec<Value>)> = Vec::new();
    for turn in turns {
        let (role, blocks) = match turn {
            Turn::User { text, images } => {
                let images = images.iter().map(|image| {
                    let source =
                        json!({"type": "base64", "media_type": image.media_type, "data": base64(image)});
                    json!({"type": "image", "source": source})
                });
                ("user", images.chain(text_block(text)).collect())
            }
            Turn::Assistant { text, calls, kept: own } => match kept(own, author) {
                Some(Value::Array(blocks)) => ("assistant", blocks.clone()),
                _ => {
                    let calls = calls.iter().map(|call| {
                        json!({"type": "tool_use", "id": call.id, "name": call.name,
                            "input": as_object(&call.arguments)})
                    });
                    ("assistant", text_block(text).into_iter().chain(calls).collect::<Vec<Value>>())
                }
            },
            Turn::Result { call, text, is_error } => {
                let mut block = json!({"type": "tool_result", "tool_use_id": call, "content": text});
                if *is_error {
                    block["is_error"] = json!(true);
                }
                ("user", vec![block])
            }
        };
        match messages.last_mut() {
            Some((last, so_far)) if *last == role => so_far.extend(blocks),
            _ => messages.push((role, blocks)),
        }
    }
    messages.retain(|(_, blocks)| !blocks.is_empty());
    messages.into_iter().map(|(role, blocks)| json!({"role": role, "content": blocks})).collect()
}

/// Returns a text as a block; `None` for an empty text, because the service refuses empty blocks.
fn text_block(text: &str) -> Option<Value> {
    (!text.is_empty()).then(|| json!({"type": "text", "text": text}))
}

/// Reads an answer.
#[derive(Default)]
pub(super) struct AnthropicReader {
    /// The function whose arguments are the answer, if there is one.
    answering: Option<String>,
    /// Whether that function was called.
    has_answered: bool,
    /// The blocks of the answer, by their places.
    blocks: BTreeMap<u64, Value>,
}

impl AnthropicReader {
    /// Returns a reader of the answer to `asked`.
    pub fn new(asked: &Asked<'_>) -> AnthropicReader {
        let schema = asked.request.schema.as_ref().filter(|_| !asked.keeps_schema);
        AnthropicReader { answering: schema.map(|(name, _)| name.clone()), ..AnthropicReader::default() }
    }

    /// Reads a block, or its beginning.
    fn block(&mut self, answer: &mut Answer, place: u64, block: &Value) -> Result<(), Misread> {
        match text(block, "type") {
            Some("text") => answer.text += text(block, "text").unwrap_or_default(),
            Some("tool_use") => {
                // At the beginning of a call, its arguments are still an empty object.
                let input = block.get("input").filter(|input| !is_empty(input)).map(as_text);
                if self.is_answer(block) {
                    self.has_answered = true;
                    answer.text += &input.unwrap_or_default();
                } else {
                    let piece = answer.call(place)?;
                    text(block, "id").unwrap_or_default().clone_into(&mut piece.id);
                    text(block, "name").unwrap_or_default().clone_into(&mut piece.name);
                    piece.arguments = input.unwrap_or_default();
                }
            }
            _ => {}
        }
        self.blocks.insert(place, block.clone());
        Ok(())
    }

    fn delta(&mut self, answer: &mut Answer, place: u64, delta: &Value) -> Result<(), Misread> {
        let block = self.blocks.get_mut(&place).ok_or(Misread::Unreadable)?;
        for name in ["text", "thinking", "signature"] {
            let Some(more) = text(delta, name) else { continue };
            if name == "text" {
                answer.text += more;
            }
            let members = block.as_object_mut().ok_or(Misread::Unreadable)?;
            match members.get_mut(name) {
                Some(Value::String(so_far)) => *so_far += more,
                _ => {
                    members.insert(name.to_owned(), json!(more));
                }
            }
        }
        if let Some(more) = text(delta, "partial_json") {
            if self.blocks.get(&place).is_some_and(|block| self.is_answer(block)) {
                answer.text += more;
            } else {
                answer.call(place)?.arguments += more;
            }
        }
        Ok(())
    }

    fn is_answer(&self, block: &Value) -> bool {
        self.answering.is_some() && text(block, "name") == self.answering.as_deref()
    }
}

fn is_empty(input: &Value) -> bool {
    input.is_null() || input.as_object().is_some_and(serde_json::Map::is_empty)
}

fn stop(message: &Value) -> Option<Stop> {
    Some(match text(message, "stop_reason")? {
        "max_tokens" | "model_context_window_exceeded" => Stop::Cut,
        "refusal" => Stop::Withheld,
        _ => Stop::Done,
    })
}

/// Returns the numbers of tokens. Cached tokens are added to the input here, because the service doesn't count them as
/// input.
fn counts(message: &Value) -> Counts {
    let cached = number(message, "/usage/cache_read_input_tokens");
    let written = number(message, "/usage/cache_creation_input_tokens");
    let input = number(message, "/usage/input_tokens")
        .map(|input| input.saturating_add(cached.unwrap_or(0)).saturating_add(written.unwrap_or(0)));
    Counts { input, cached, written, output: number(message, "/usage/output_tokens") }
}

impl Read for AnthropicReader {
    fn whole(&mut self, answer: &mut Answer, body: &Value) -> Result<(), Misread> {
        let Some(Value::Array(blocks)) = body.get("content") else { return Err(Misread::Unreadable) };
        for (place, block) in (0..).zip(blocks) {
            self.block(answer, place, block)?;
        }
        answer.stop = stop(body).or(Some(Stop::Done));
        answer.counts = counts(body);
        Ok(())
    }

    fn event(&mut self, answer: &mut Answer, event: &Value) -> Result<bool, Misread> {
        let place = event.get("index").and_then(Value::as_u64).unwrap_or_default();
        let part = |name: &str| event.get(name).ok_or(Misread::Unreadable);
        match text(event, "type") {
            Some("message_start") => answer.counts.update(counts(part("message")?)),
            Some("content_block_start") => self.block(answer, place, part("content_block")?)?,
            Some("content_block_delta") => self.delta(answer, place, part("delta")?)?,
            Some("message_delta") => {
                answer.stop = stop(part("delta")?).or(answer.stop);
                let newer = counts(event);
                // If a later report has no number of cached tokens, its input number excludes the cached tokens.
                let is_full = newer.cached.is_some() || answer.counts.cached.is_none();
                answer.counts.update(Counts { input: newer.input.filter(|_| is_full), ..newer });
            }
            Some("message_stop") => return Ok(true),
            Some("error") => return Err(Misread::Reported(event.clone())),
            _ => {}
        }
        Ok(false)
    }

    fn kept(&mut self, answer: &Answer) -> Option<Value> {
        let is_thought =
            |block: &Value| matches!(text(block, "type"), Some("thinking" | "redacted_thinking"));
        let is_signed = |block: &Value| {
            text(block, "type") != Some("thinking")
                || text(block, "signature").is_some_and(|it| !it.is_empty())
        };
        let blocks = std::mem::take(&mut self.blocks);
        let has_thoughts = blocks.values().any(is_thought);
        // If the answer was cut off within a thought, this thought has no signature, and the service would refuse it.
        if self.has_answered || !has_thoughts || !blocks.values().all(is_signed) {
            return None;
        }
        let blocks = blocks.into_iter().filter_map(|(place, mut block)| {
            if text(&block, "type") == Some("tool_use") {
                let piece = answer.calls.iter().find(|piece| piece.key == place)?;
                block["input"] = as_object(&read_arguments(&piece.arguments));
            }
            (text(&block, "text") != Some("")).then_some(block)
        });
        Some(blocks.collect())
    }
}
