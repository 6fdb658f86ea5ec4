//! Google's Gemini API.
//!
//! Parts of an answer may have signatures. The service needs each signature back in its place, so all parts of such an
//! answer are kept. Older models give their calls no ids. The results are then assigned to the calls by order and name.

use serde_json::{Value, json};

use super::super::catalogue::Thinking;
use super::super::request::{Call, Turn};
use super::parts::{
    Answer, Asked, Counts, Misread, Post, Read, Stop, as_object, as_text, base64, kept, list, names, number,
    own_id, text,
};

/// The smallest budget for thinking, in tokens, that every model with a budget accepts.
const LEAST_BUDGET: usize = 512;

/// The text that the service accepts as the signature of a call that another model made.
const UNSIGNED: &str = "skip_thought_signature_validator";

/// Returns the path, headers and body of the request.
pub(super) fn post(asked: &Asked<'_>, author: &str) -> Post {
    let request = asked.request;
    let mut body = json!({"contents": contents(asked, author)});
    let system = asked.system();
    if !system.is_empty() {
        body["systemInstruction"] = json!({"parts": [{"text": system}]});
    }
    if !request.functions.is_empty() {
        let functions = request.functions.iter().map(|function| {
            json!({
                "name": function.name,
                "description": function.description,
                "parametersJsonSchema": function.parameters,
            })
        });
        body["tools"] = json!([{"functionDeclarations": functions.collect::<Vec<Value>>()}]);
    }
    let mut options = json!({});
    if let Some((_, schema)) = request.schema.as_ref().filter(|_| !asked.tells_schema()) {
        options["responseMimeType"] = json!("application/json");
        options["responseJsonSchema"] = schema.clone();
    }
    if let Some(temperature) = asked.temperature {
        options["temperature"] = json!(temperature);
    }
    if let Some(most) = asked.max_output {
        options["maxOutputTokens"] = json!(most);
    }
    if let (Some(level), Some(budget)) = (asked.level(), asked.budget()) {
        options["thinkingConfig"] = match asked.thinking {
            Thinking::Level => json!({"thinkingLevel": level.to_uppercase()}),
            Thinking::Budget => json!({"thinkingBudget": budget.max(LEAST_BUDGET)}),
        };
    }
    body["generationConfig"] = options;
    let model = &asked.provider.model;
    let model = model.strip_prefix("models/").unwrap_or(model);
    let action = if asked.is_streamed { "streamGenerateContent?alt=sse" } else { "generateContent" };
    Post { path: format!("models/{model}:{action}"), headers: &[], body }
}

/// Returns the contents. Neighbouring turns of the same role become one content, because the service demands the
/// results of all calls in one content.
fn contents(asked: &Asked<'_>, author: &str) -> Vec<Value> {
    let names = names(asked.request);
    let mut contents: Vec<(&str, Vec<Value>)> = Vec::new();
    for turn in &asked.request.turns {
        let (role, parts) = match turn {
            Turn::User { text, images } => {
                let images = images.iter().map(
                    |image| json!({"inlineData": {"mimeType": image.media_type, "data": base64(image)}}),
                );
                ("user", images.chain(text_part(text)).collect())
            }
            Turn::Assistant { text, calls, kept: own } => match kept(own, author) {
                Some(Value::Array(parts)) => ("model", parts.clone()),
                _ => {
                    ("model", text_part(text).into_iter().chain(called(asked, calls)).collect::<Vec<Value>>())
                }
            },
            Turn::Result { call, text, is_error } => {
                let outcome = if *is_error { "error" } else { "output" };
                let name = names.get(call.as_str()).copied().unwrap_or(call);
                let mut response = json!({"name": name, "response": {outcome: text}});
                if let Some(id) = own_id(call) {
                    response["id"] = json!(id);
                }
                ("user", vec![json!({"functionResponse": response})])
            }
        };
        match contents.last_mut() {
            Some((last, so_far)) if *last == role => so_far.extend(parts),
            _ => contents.push((role, parts)),
        }
    }
    contents.retain(|(_, parts)| !parts.is_empty());
    contents.into_iter().map(|(role, parts)| json!({"role": role, "parts": parts})).collect()
}

/// Returns calls as parts.
fn called(asked: &Asked<'_>, calls: &[Call]) -> Vec<Value> {
    let parts = calls.iter().enumerate().map(|(nth, call)| {
        let mut part = json!({"functionCall": {"name": call.name, "args": as_object(&call.arguments)}});
        if let Some(id) = own_id(&call.id) {
            part["functionCall"]["id"] = json!(id);
        }
        if nth == 0 && asked.thinking == Thinking::Level {
            part["thoughtSignature"] = json!(UNSIGNED);
        }
        part
    });
    parts.collect()
}

fn text_part(text: &str) -> Option<Value> {
    (!text.is_empty()).then(|| json!({"text": text}))
}

/// Reads an answer.
#[derive(Default)]
pub(super) struct GeminiReader {
    /// The parts of the answer, with neighbouring texts joined.
    parts: Vec<Value>,
    calls: u64,
    is_signed: bool,
}

impl GeminiReader {
    fn part(&mut self, answer: &mut Answer, part: &Value) -> Result<(), Misread> {
        let is_thought = part.get("thought").and_then(Value::as_bool).unwrap_or(false);
        let is_signed = part.get("thoughtSignature").is_some();
        self.is_signed |= is_signed;
        if let Some(call) = part.get("functionCall") {
            let piece = answer.call(self.calls)?;
            self.calls += 1;
            text(call, "id").unwrap_or_default().clone_into(&mut piece.id);
            text(call, "name").unwrap_or_default().clone_into(&mut piece.name);
            piece.arguments = as_text(call.get("args").unwrap_or(&Value::Null));
        } else if let Some(more) = text(part, "text") {
            if !is_thought {
                answer.text += more;
            }
            // Parts with signatures must stay apart.
            if !is_signed && let Some(Value::String(so_far)) = self.parts.last_mut().and_then(plain) {
                *so_far += more;
                return Ok(());
            }
        }
        if !is_thought || is_signed {
            self.parts.push(part.clone());
        }
        Ok(())
    }

    fn read(&mut self, answer: &mut Answer, body: &Value) -> Result<(), Misread> {
        if let Some(candidate) = list(body, "candidates").first() {
            for part in candidate.get("content").map_or(&[][..], |content| list(content, "parts")) {
                self.part(answer, part)?;
            }
            answer.stop = text(candidate, "finishReason").map(stop).or(answer.stop);
        }
        if body.pointer("/promptFeedback/blockReason").is_some() {
            answer.stop = Some(Stop::Withheld);
        }
        answer.counts.update(counts(body));
        Ok(())
    }
}

/// Returns the text of a part that consists only of a text.
fn plain(part: &mut Value) -> Option<&mut Value> {
    let members = part.as_object_mut()?;
    if members.len() == 1 { members.get_mut("text") } else { None }
}

fn stop(reason: &str) -> Stop {
    match reason {
        "MAX_TOKENS" => Stop::Cut,
        "SAFETY" | "RECITATION" | "LANGUAGE" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" => Stop::Withheld,
        _ => Stop::Done,
    }
}

/// Returns the numbers of tokens. The tokens of thoughts are added here, because the service doesn't count them as
/// tokens of the candidate.
fn counts(body: &Value) -> Counts {
    let sum = |names: [&str; 2]| {
        let numbers = names.map(|name| number(body, &format!("/usageMetadata/{name}")));
        numbers.into_iter().flatten().reduce(u64::saturating_add)
    };
    Counts {
        input: sum(["promptTokenCount", "toolUsePromptTokenCount"]),
        cached: number(body, "/usageMetadata/cachedContentTokenCount"),
        written: None,
        output: sum(["candidatesTokenCount", "thoughtsTokenCount"]),
    }
}

impl Read for GeminiReader {
    fn whole(&mut self, answer: &mut Answer, body: &Value) -> Result<(), Misread> {
        if list(body, "candidates").is_empty() && body.get("promptFeedback").is_none() {
            return Err(Misread::Unreadable);
        }
        self.read(answer, body)?;
        answer.stop = answer.stop.or(Some(Stop::Done));
        Ok(())
    }

    fn event(&mut self, answer: &mut Answer, event: &Value) -> Result<bool, Misread> {
        self.read(answer, event)?;
        // No event is marked as the last one.
        Ok(false)
    }

    fn kept(&mut self, _: &Answer) -> Option<Value> {
        self.is_signed.then(|| Value::Array(std::mem::take(&mut self.parts)))
    }
}
