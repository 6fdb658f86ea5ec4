//! Converts requests to genai's types, and genai's answers to ours.

use futures_util::StreamExt;
use genai::chat::{
    ChatMessage, ChatOptions, ChatRequest, ChatResponseFormat, ChatStreamEvent, ContentPart, JsonSpec,
    MessageContent, ReasoningEffort, StopReason, Tool, ToolCall, ToolResponse,
};
use genai::{Error, ServiceTarget};

use super::catalogue::{self, Model};
use super::failure::{self, Failure};
use super::{Call, Provider, Reply, Request, Service, Turn, Usage};
use crate::tokens;

/// The function that gets the text of an answer, piece by piece.
pub type OnText<'a> = Option<&'a (dyn Fn(&str) + Send + Sync)>;

/// Sends a request through genai and returns the answer. The key is not sent from here; it is only needed to keep it
/// out of errors.
pub(super) async fn converse(
    genai: &genai::Client,
    target: ServiceTarget,
    provider: &Provider,
    key: Option<&str>,
    request: &Request,
    on_text: OnText<'_>,
) -> Result<Reply, Failure> {
    let options = options(provider, request);
    let asked = asked(request);
    let failed = |error: Error| failed(&error, key, request);
    let Some(on_text) = on_text else {
        let answer = genai.exec_chat(target, asked, Some(&options)).await.map_err(failed)?;
        return reply(request, answer.content, answer.stop_reason.as_ref(), Some(answer.usage));
    };
    let mut stream = genai.exec_chat_stream(target, asked, Some(&options)).await.map_err(failed)?.stream;
    while let Some(event) = stream.next().await {
        match event.map_err(failed)? {
            ChatStreamEvent::Chunk(chunk) => on_text(&chunk.content),
            ChatStreamEvent::End(end) if end.captured_stop_reason.is_some() => {
                let content = end.captured_content.unwrap_or_default();
                return reply(request, content, end.captured_stop_reason.as_ref(), end.captured_usage);
            }
            ChatStreamEvent::End(_) => break,
            _ => {}
        }
    }
    // A complete answer says why it ended, so this one was broken off.
    Err(Failure::BrokenOff)
}

/// Returns the most tokens that the answer may have; `None` if there is no limit.
pub(super) fn most_output(provider: &Provider, request: &Request) -> Option<usize> {
    let asked = Some(request.max_output).filter(|most| *most > 0);
    let known = catalogue::model(provider).and_then(|model| model.max_output);
    [asked, provider.max_output, known].into_iter().flatten().min()
}

fn options(provider: &Provider, request: &Request) -> ChatOptions {
    let mut options = ChatOptions::default()
        .with_capture_usage(true)
        .with_capture_content(true)
        .with_capture_tool_calls(true);
    if let Some(most) = most_output(provider, request) {
        options = options.with_max_tokens(most.try_into().unwrap_or(u32::MAX));
    }
    let is_fixed =
        catalogue::model(provider).is_some_and(|Model { fixed_temperature, .. }| *fixed_temperature);
    if let Some(temperature) = provider.temperature.or(request.temperature).filter(|_| !is_fixed) {
        let most = if provider.service == Service::Anthropic { 1.0 } else { 2.0 };
        options = options.with_temperature(temperature.clamp(0.0, most));
    }
    if let Some((name, schema)) = &request.schema {
        let format = JsonSpec::new(name.clone(), schema.clone());
        options = options.with_response_format(ChatResponseFormat::JsonSpec(format));
    }
    if matches!(provider.service, Service::Openai | Service::OpenaiResponses | Service::OpenaiCompatible) {
        // genai mistakes the end of some models' names for a reasoning effort, such as `-max` in `qwen3-max`. If a
        // reasoning budget is set, genai sends the whole name; these adapters ignore the budget itself.
        options = options.with_reasoning_effort(ReasoningEffort::Budget(0));
    }
    options
}

fn asked(request: &Request) -> ChatRequest {
    let mut names = std::collections::HashMap::new();
    let messages = request.turns.iter().map(|turn| match turn {
        Turn::User { text, .. } => ChatMessage::user(text.clone()),
        Turn::Assistant { text, calls, .. } => {
            let mut parts = Vec::new();
            if !text.is_empty() {
                parts.push(ContentPart::Text(text.clone()));
            }
            for call in calls {
                names.insert(call.id.clone(), call.name.clone());
                parts.push(ContentPart::ToolCall(ToolCall {
                    call_id: call.id.clone(),
                    fn_name: call.name.clone(),
                    fn_arguments: call.arguments.clone(),
                    thought_signatures: None,
                }));
            }
            ChatMessage::assistant(MessageContent::from_parts(parts))
        }
        Turn::Result { call, text, .. } => {
            let result = ToolResponse::new(call.clone(), text.clone());
            ChatMessage::from(match names.get(call) {
                Some(name) => result.with_fn_name(name.clone()),
                None => result,
            })
        }
    });
    let mut asked = ChatRequest::new(messages.collect());
    if !request.system.is_empty() {
        asked = asked.with_system(request.system.clone());
    }
    if !request.functions.is_empty() {
        asked = asked.with_tools(request.functions.iter().map(|function| {
            Tool::new(function.name.clone())
                .with_description(function.description.clone())
                .with_schema(function.parameters.clone())
        }));
    }
    asked
}

fn reply(
    request: &Request,
    content: MessageContent,
    stop: Option<&StopReason>,
    usage: Option<genai::chat::Usage>,
) -> Result<Reply, Failure> {
    let text = content.texts().concat();
    let calls: Vec<Call> = content
        .into_tool_calls()
        .into_iter()
        .map(|call| Call { id: call.call_id, name: call.fn_name, arguments: call.fn_arguments })
        .collect();
    let is_cut = stop.is_some_and(StopReason::is_max_tokens);
    if text.trim().is_empty() && calls.is_empty() {
        return Err(match stop {
            Some(StopReason::ContentFilter(_)) => Failure::Withheld,
            _ => Failure::Empty { is_cut },
        });
    }
    let usage = self::usage(request, &text, &calls, usage.unwrap_or_default());
    Ok(Reply { text, calls, is_cut, usage, kept: None, attempts: 1 })
}

/// Returns the usage that the service reported. A number that it did not report is replaced by an upper estimate.
/// genai returns 0 for a missing number; a real request never has 0 tokens.
fn usage(request: &Request, text: &str, calls: &[Call], reported: genai::chat::Usage) -> Usage {
    let number = |tokens: Option<i32>| {
        tokens.and_then(|tokens| u64::try_from(tokens).ok()).filter(|tokens| *tokens > 0)
    };
    let input = number(reported.prompt_tokens);
    let output = number(reported.completion_tokens);
    let cached = number(reported.prompt_tokens_details.and_then(|details| details.cached_tokens));
    let answered = || {
        let calls = calls.iter().map(|call| call.name.len() + call.arguments.to_string().len() + 16);
        (tokens::bounded(text).high + calls.sum::<usize>() + 16) as u64
    };
    let input_or_more = input.unwrap_or_else(|| request.tokens() as u64);
    Usage {
        input: input_or_more,
        cached: cached.unwrap_or(0).min(input_or_more),
        written: 0,
        output: output.unwrap_or_else(answered),
        is_estimate: input.is_none() || output.is_none(),
    }
}

/// Returns why genai failed, unless the relay knows a better reason.
fn failed(error: &Error, key: Option<&str>, request: &Request) -> Failure {
    match error {
        Error::ChatResponse { body, .. } => Failure::Reported(failure::word(body, key, request)),
        Error::WebStream { .. } => Failure::BrokenOff,
        _ => Failure::Unreadable,
    }
}
