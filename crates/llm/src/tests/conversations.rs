//! Tests what is sent for a conversation in which a model called functions twice. The answers of the model are read
//! first, in the form in which the service sends them, so the data that is kept of them makes the whole round trip.

use serde_json::{Value, json};

use super::super::dialects::{Asked, Dialect, author};
use super::super::reading::whole;
use super::super::reply::reply;
use super::*;

fn of(service: Service, model: &str) -> Provider {
    Provider { endpoint: None, model: model.into(), ..provider(service, "") }
}

fn at(endpoint: &str, provider: Provider) -> Provider {
    Provider { endpoint: Some(endpoint.into()), ..provider }
}

/// Returns the body that is sent.
fn body(provider: &Provider, request: &Request) -> Value {
    let dialect = Dialect::of(provider, request);
    let asked = Asked::new(provider, request, false, Some(8_192));
    dialect.post(&asked, &author(provider, dialect)).body
}

/// Reads an answer.
fn answered(provider: &Provider, request: &Request, answer: &Value) -> Reply {
    let dialect = Dialect::of(provider, request);
    let asked = Asked::new(provider, request, false, None);
    let (read, kept) = whole(dialect.reader(&asked), answer.to_string().as_bytes()).unwrap();
    reply(provider, dialect, request, read, kept).unwrap()
}

fn first() -> Request {
    let object = json!({"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"]});
    let count =
        json!({"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]});
    Request {
        turns: vec![Turn::User {
            text: "How many wombats are there?".into(),
            images: vec![Image { media_type: "image/png".into(), bytes: vec![1, 2, 3] }],
        }],
        functions: vec![Function {
            name: "look".into(),
            description: "Looks for wombats.".into(),
            parameters: object,
        }],
        schema: Some(("count".into(), count)),
        max_output: 4_000,
        effort: Some(Effort::Low),
        keeps_prefix: true,
        cache_key: Some("thread-1".into()),
        ..question()
    }
}

/// Adds an answer and the results of its calls; the second result is an error.
fn next(provider: &Provider, mut request: Request, answer: &Value) -> Request {
    let reply = answered(provider, &request, answer);
    request.turns.push(Turn::answer(&reply));
    for (nth, call) in reply.calls.iter().enumerate() {
        let is_error = nth == 1;
        let text = if is_error { "no such place" } else { "Two." };
        request.turns.push(Turn::Result { call: call.id.clone(), text: text.into(), is_error });
    }
    request
}

fn conversation(provider: &Provider, answers: [Value; 2]) -> Request {
    answers.iter().fold(first(), |request, answer| next(provider, request, answer))
}

fn chat_answers(thoughts: &str) -> [Value; 2] {
    let call = |id: &str, at: &str| json!({"id": id, "type": "function", "function": {"name": "look", "arguments": format!("{{\"at\":\"{at}\"}}")}});
    let answer = |text: Value, calls: Value| {
        let message = json!({"role": "assistant", "content": text, "tool_calls": calls, thoughts: "Hmm."});
        json!({"choices": [{"index": 0, "finish_reason": "tool_calls", "message": message}]})
    };
    [
        answer(json!("I look."), json!([call("c1", "burrow"), call("c2", "moon")])),
        answer(Value::Null, json!([call("c3", "hill")])),
    ]
}

fn responses_answers() -> [Value; 2] {
    let thought = |text: &str| json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": text, "status": null});
    let call = |id: &str, at: &str| {
        json!({"type": "function_call", "id": "fc_1", "call_id": id, "name": "look",
            "arguments": format!("{{\"at\":\"{at}\"}}"), "status": "completed"})
    };
    let message = json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
        "phase": "commentary", "content": [{"type": "output_text", "text": "I look.", "annotations": []}]});
    let answer = |output: Value| json!({"status": "completed", "output": output, "error": null});
    [
        answer(json!([thought("e1"), message, call("c1", "burrow"), call("c2", "moon")])),
        answer(json!([thought("e2"), call("c3", "hill")])),
    ]
}

fn anthropic_answers() -> [Value; 2] {
    let thought =
        |text: &str| json!({"type": "thinking", "thinking": text, "signature": format!("s-{text}")});
    let call =
        |id: &str, at: &str| json!({"type": "tool_use", "id": id, "name": "look", "input": {"at": at}});
    let text = |text: &str| json!({"type": "text", "text": text});
    let hidden = json!({"type": "redacted_thinking", "data": "d1"});
    let answer = |content: Value| json!({"type": "message", "stop_reason": "tool_use", "content": content});
    [
        answer(json!([
            thought("Hmm."),
            text("I look."),
            thought("Well."),
            call("c1", "burrow"),
            call("c2", "moon")
        ])),
        answer(json!([hidden, call("c3", "hill")])),
    ]
}

fn gemini_answers() -> [Value; 2] {
    let call = |at: &str| json!({"functionCall": {"name": "look", "args": {"at": at}}});
    let mut signed = call("burrow");
    signed["thoughtSignature"] = json!("s1");
    let answer = |parts: Value| json!({"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}]});
    [
        answer(
            json!([{"text": "Hidden.", "thought": true}, {"text": "I "}, {"text": "look."}, signed, call("moon")]),
        ),
        answer(
            json!([{"functionCall": {"id": "g3", "name": "look", "args": {"at": "hill"}}, "thoughtSignature": "s2"}]),
        ),
    ]
}

fn ollama_answers() -> [Value; 2] {
    let call = |at: &str| json!({"function": {"name": "look", "arguments": {"at": at}}});
    let answer = |text: &str, calls: Value| {
        json!({"done": true, "done_reason": "stop",
        "message": {"role": "assistant", "content": text, "thinking": "Hmm.", "tool_calls": calls}})
    };
    [answer("I look.", json!([call("burrow"), call("moon")])), answer("", json!([call("hill")]))]
}

/// Returns a body with one line for each member, and one for each item of a list.
fn lines(body: &Value) -> String {
    let mut body = body.clone();
    body.sort_all_objects();
    let members = body.as_object().unwrap().iter().map(|(name, member)| match member {
        Value::Array(items) => {
            let items: String = items.iter().map(|item| format!("\n  {item}")).collect();
            format!("{name}:{items}\n")
        }
        member => format!("{name}: {member}\n"),
    });
    members.collect()
}

#[test]
fn chat_completions() {
    let provider = of(Service::Openai, "gpt-5");
    let request = conversation(&provider, chat_answers("reasoning_content"));
    insta::assert_snapshot!(lines(&body(&provider, &request)), @r#"
    max_completion_tokens: 4000
    messages:
      {"content":"You count wombats.","role":"system"}
      {"content":[{"text":"How many wombats are there?","type":"text"},{"image_url":{"url":"data:image/png;base64,AQID"},"type":"image_url"}],"role":"user"}
      {"content":"I look.","reasoning_content":"Hmm.","role":"assistant","tool_calls":[{"function":{"arguments":"{\"at\":\"burrow\"}","name":"look"},"id":"c1","type":"function"},{"function":{"arguments":"{\"at\":\"moon\"}","name":"look"},"id":"c2","type":"function"}]}
      {"content":"Two.","role":"tool","tool_call_id":"c1"}
      {"content":"Error: no such place","role":"tool","tool_call_id":"c2"}
      {"content":null,"reasoning_content":"Hmm.","role":"assistant","tool_calls":[{"function":{"arguments":"{\"at\":\"hill\"}","name":"look"},"id":"c3","type":"function"}]}
      {"content":"Two.","role":"tool","tool_call_id":"c3"}
    model: "gpt-5"
    prompt_cache_key: "thread-1"
    reasoning_effort: "low"
    response_format: {"json_schema":{"name":"count","schema":{"additionalProperties":false,"properties":{"count":{"type":"integer"}},"required":["count"],"type":"object"},"strict":true},"type":"json_schema"}
    stream: false
    tools:
      {"function":{"description":"Looks for wombats.","name":"look","parameters":{"properties":{"at":{"type":"string"}},"required":["at"],"type":"object"}},"type":"function"}
    "#);
}

#[test]
fn responses() {
    let provider = of(Service::OpenaiResponses, "gpt-6-sol");
    let request = conversation(&provider, responses_answers());
    insta::assert_snapshot!(lines(&body(&provider, &request)), @r#"
    include:
      "reasoning.encrypted_content"
    input:
      {"content":[{"text":"How many wombats are there?","type":"input_text"},{"detail":"auto","image_url":"data:image/png;base64,AQID","type":"input_image"}],"role":"user"}
      {"encrypted_content":"e1","summary":[],"type":"reasoning"}
      {"content":[{"annotations":[],"text":"I look.","type":"output_text"}],"phase":"commentary","role":"assistant","type":"message"}
      {"arguments":"{\"at\":\"burrow\"}","call_id":"c1","name":"look","type":"function_call"}
      {"arguments":"{\"at\":\"moon\"}","call_id":"c2","name":"look","type":"function_call"}
      {"call_id":"c1","output":"Two.","type":"function_call_output"}
      {"call_id":"c2","output":"Error: no such place","type":"function_call_output"}
      {"encrypted_content":"e2","summary":[],"type":"reasoning"}
      {"arguments":"{\"at\":\"hill\"}","call_id":"c3","name":"look","type":"function_call"}
      {"call_id":"c3","output":"Two.","type":"function_call_output"}
    instructions: "You count wombats."
    max_output_tokens: 4000
    model: "gpt-6-sol"
    prompt_cache_key: "thread-1"
    reasoning: {"effort":"low"}
    store: false
    stream: false
    text: {"format":{"name":"count","schema":{"additionalProperties":false,"properties":{"count":{"type":"integer"}},"required":["count"],"type":"object"},"strict":true,"type":"json_schema"}}
    tools:
      {"description":"Looks for wombats.","name":"look","parameters":{"properties":{"at":{"type":"string"}},"required":["at"],"type":"object"},"strict":false,"type":"function"}
    "#);
}

#[test]
fn anthropic() {
    let provider = of(Service::Anthropic, "claude-sonnet-5");
    let request = conversation(&provider, anthropic_answers());
    insta::assert_snapshot!(lines(&body(&provider, &request)), @r#"
    max_tokens: 4000
    messages:
      {"content":[{"source":{"data":"AQID","media_type":"image/png","type":"base64"},"type":"image"},{"text":"How many wombats are there?","type":"text"}],"role":"user"}
      {"content":[{"signature":"s-Hmm.","thinking":"Hmm.","type":"thinking"},{"text":"I look.","type":"text"},{"signature":"s-Well.","thinking":"Well.","type":"thinking"},{"id":"c1","input":{"at":"burrow"},"name":"look","type":"tool_use"},{"id":"c2","input":{"at":"moon"},"name":"look","type":"tool_use"}],"role":"assistant"}
      {"content":[{"content":"Two.","tool_use_id":"c1","type":"tool_result"},{"content":"no such place","is_error":true,"tool_use_id":"c2","type":"tool_result"}],"role":"user"}
      {"content":[{"data":"d1","type":"redacted_thinking"},{"id":"c3","input":{"at":"hill"},"name":"look","type":"tool_use"}],"role":"assistant"}
      {"content":[{"cache_control":{"type":"ephemeral"},"content":"Two.","tool_use_id":"c3","type":"tool_result"}],"role":"user"}
    model: "claude-sonnet-5"
    output_config: {"effort":"low","format":{"schema":{"additionalProperties":false,"properties":{"count":{"type":"integer"}},"required":["count"],"type":"object"},"type":"json_schema"}}
    stream: false
    system:
      {"cache_control":{"type":"ephemeral"},"text":"You count wombats.","type":"text"}
    thinking: {"type":"adaptive"}
    tools:
      {"description":"Looks for wombats.","input_schema":{"properties":{"at":{"type":"string"}},"required":["at"],"type":"object"},"name":"look"}
    "#);
}

#[test]
fn gemini() {
    let provider = of(Service::Gemini, "gemini-3.5-flash");
    let request = conversation(&provider, gemini_answers());
    insta::assert_snapshot!(lines(&body(&provider, &request)), @r#"
    contents:
      {"parts":[{"inlineData":{"data":"AQID","mimeType":"image/png"}},{"text":"How many wombats are there?"}],"role":"user"}
      {"parts":[{"text":"I look."},{"functionCall":{"args":{"at":"burrow"},"name":"look"},"thoughtSignature":"s1"},{"functionCall":{"args":{"at":"moon"},"name":"look"}}],"role":"model"}
      {"parts":[{"functionResponse":{"name":"look","response":{"output":"Two."}}},{"functionResponse":{"name":"look","response":{"error":"no such place"}}}],"role":"user"}
      {"parts":[{"functionCall":{"args":{"at":"hill"},"id":"g3","name":"look"},"thoughtSignature":"s2"}],"role":"model"}
      {"parts":[{"functionResponse":{"id":"g3","name":"look","response":{"output":"Two."}}}],"role":"user"}
    generationConfig: {"maxOutputTokens":4000,"responseJsonSchema":{"properties":{"count":{"type":"integer"}},"required":["count"],"type":"object"},"responseMimeType":"application/json","temperature":0.3,"thinkingConfig":{"thinkingLevel":"LOW"}}
    systemInstruction: {"parts":[{"text":"You count wombats."}]}
    tools:
      {"functionDeclarations":[{"description":"Looks for wombats.","name":"look","parametersJsonSchema":{"properties":{"at":{"type":"string"}},"required":["at"],"type":"object"}}]}
    "#);
}

#[test]
fn ollama() {
    let provider = of(Service::Ollama, "qwen3");
    let request = conversation(&provider, ollama_answers());
    insta::assert_snapshot!(lines(&body(&provider, &request)), @r#"
    messages:
      {"content":"You count wombats.\n\nYour final answer must be JSON that matches this schema: {\"type\":\"object\",\"properties\":{\"count\":{\"type\":\"integer\"}},\"required\":[\"count\"]}","role":"system"}
      {"content":"How many wombats are there?","images":["AQID"],"role":"user"}
      {"content":"I look.","role":"assistant","thinking":"Hmm.","tool_calls":[{"function":{"arguments":{"at":"burrow"},"name":"look"}},{"function":{"arguments":{"at":"moon"},"name":"look"}}]}
      {"content":"Two.","role":"tool","tool_name":"look"}
      {"content":"Error: no such place","role":"tool","tool_name":"look"}
      {"content":"","role":"assistant","thinking":"Hmm.","tool_calls":[{"function":{"arguments":{"at":"hill"},"name":"look"}}]}
      {"content":"Two.","role":"tool","tool_name":"look"}
    model: "qwen3"
    options: {"num_ctx":8192,"num_predict":4000,"temperature":0.3}
    stream: false
    think: "low"
    tools:
      {"function":{"description":"Looks for wombats.","name":"look","parameters":{"properties":{"at":{"type":"string"}},"required":["at"],"type":"object"}},"type":"function"}
    "#);
}

#[test]
fn a_compatible_server_gets_its_thoughts_back_and_nothing_that_only_openai_knows() {
    let provider = at("http://localhost:8080", of(Service::OpenaiCompatible, "deepseek"));
    let body = body(&provider, &conversation(&provider, chat_answers("reasoning_content")));
    assert_eq!((&body["max_tokens"], &body["reasoning_effort"]), (&json!(4_000), &json!("low")));
    assert_eq!(body["messages"][2]["reasoning_content"], "Hmm.");
    for absent in ["max_completion_tokens", "prompt_cache_key", "prompt_cache_options"] {
        assert!(body.get(absent).is_none(), "{absent}");
    }
}

#[test]
fn what_is_kept_reaches_only_the_model_that_wrote_it() {
    let author = of(Service::Anthropic, "claude-sonnet-5");
    let request = conversation(&author, anthropic_answers());
    for other in [
        of(Service::Anthropic, "claude-opus-5"),
        at("https://proxy.example/v1", author.clone()),
        of(Service::Openai, "gpt-5"),
        of(Service::OpenaiResponses, "gpt-6-sol"),
        of(Service::Gemini, "gemini-3.5-flash"),
        of(Service::Ollama, "qwen3"),
    ] {
        let sent = body(&other, &request).to_string();
        assert!(!sent.contains("Hmm.") && !sent.contains("Well.") && !sent.contains("d1"), "{sent}");
        for said in ["I look.", "burrow", "moon", "hill", "no such place"] {
            assert!(sent.contains(said), "{said} in {sent}");
        }
    }
    assert!(body(&author, &request).to_string().contains("s-Well."));
    // The service demands a signature of the first call of each answer, and has a word for calls without one.
    let sent = body(&of(Service::Gemini, "gemini-3.5-flash"), &request);
    assert_eq!(sent["contents"][1]["parts"][1]["thoughtSignature"], "skip_thought_signature_validator");
    assert_eq!(sent["contents"][1]["parts"][2].get("thoughtSignature"), None);
}

#[test]
fn a_model_is_told_how_much_to_think_only_if_it_can_be() {
    let efforts = [None, Some(Effort::Minimal), Some(Effort::Low), Some(Effort::Medium), Some(Effort::High)];
    let told = |service, model: &str, path: &str, most: usize| {
        let provider = of(service, model);
        let told = efforts.map(|effort| {
            let request = Request { effort, max_output: most, ..question() };
            body(&provider, &request).pointer(path).cloned().unwrap_or_default()
        });
        Value::from(told.to_vec()).to_string()
    };
    use Service::{Anthropic, Gemini, Ollama, Openai, OpenaiResponses};
    let words = r#"[null,"low","low","medium","high"]"#;
    let with_minimal = r#"[null,"minimal","low","medium","high"]"#;
    let never = "[null,null,null,null,null]";
    for (service, model, path, most, expected) in [
        (Openai, "gpt-5.1", "/reasoning_effort", 0, words),
        (Openai, "gpt-5-mini", "/reasoning_effort", 0, with_minimal),
        (Openai, "unheard-of", "/reasoning_effort", 0, words),
        (Openai, "gpt-4.1", "/reasoning_effort", 0, never),
        (OpenaiResponses, "o3", "/reasoning/effort", 0, words),
        (OpenaiResponses, "gpt-4o", "/reasoning", 0, never),
        (Anthropic, "claude-opus-5", "/output_config/effort", 0, words),
        (Anthropic, "claude-3-5-haiku", "/thinking", 0, never),
        (Anthropic, "claude-sonnet-4-5", "/thinking/budget_tokens", 0, "[null,1024,2048,8192,24576]"),
        // The model's thoughts must leave room for its answer.
        (Anthropic, "claude-sonnet-4-5", "/thinking/budget_tokens", 4_000, "[null,1024,2000,2000,2000]"),
        (Anthropic, "claude-sonnet-4-5", "/thinking/budget_tokens", 2_000, never),
        (
            Gemini,
            "gemini-2.5-flash",
            "/generationConfig/thinkingConfig/thinkingBudget",
            600,
            "[null,512,512,512,512]",
        ),
        (
            Gemini,
            "gemini-2.5-pro",
            "/generationConfig/thinkingConfig/thinkingBudget",
            0,
            "[null,1024,2048,8192,24576]",
        ),
        (
            Gemini,
            "gemini-4-argon",
            "/generationConfig/thinkingConfig/thinkingLevel",
            0,
            r#"[null,"LOW","LOW","MEDIUM","HIGH"]"#,
        ),
        (Gemini, "gemini-2.0-flash", "/generationConfig/thinkingConfig", 0, never),
        (Ollama, "gpt-oss", "/think", 0, words),
    ] {
        assert_eq!(told(service, model, path, most), expected, "{service:?} {model} {most}");
    }
}

#[test]
fn a_model_that_thinks_gets_no_temperature_from_anthropic() {
    let provider = of(Service::Anthropic, "claude-sonnet-4-5");
    let asked = |effort| Request { effort, max_output: 4_000, temperature: Some(1.7), ..question() };
    assert_eq!(body(&provider, &asked(None))["temperature"], 1.0);
    assert_eq!(body(&provider, &asked(Some(Effort::Low))).get("temperature"), None);
}

#[test]
fn a_model_does_not_think_if_the_thoughts_that_led_to_its_calls_are_lost() {
    let provider = of(Service::Anthropic, "claude-sonnet-4-5");
    let mut request = conversation(&provider, anthropic_answers());
    assert_eq!(body(&provider, &request)["thinking"]["budget_tokens"], 2_000);
    for turn in &mut request.turns {
        if let Turn::Assistant { kept, .. } = turn {
            *kept = None;
        }
    }
    assert_eq!(body(&provider, &request).get("thinking"), None);
    // A new question begins anew.
    request.turns.push(Turn::user("And now?"));
    assert_eq!(body(&provider, &request)["thinking"]["budget_tokens"], 2_000);
}

#[test]
fn an_older_model_of_anthropic_answers_by_calling_a_function_with_the_schema() {
    let provider = of(Service::Anthropic, "claude-sonnet-4");
    let request = Request { functions: Vec::new(), effort: Some(Effort::High), ..first() };
    let sent = body(&provider, &request);
    assert_eq!(sent["tool_choice"], json!({"type": "tool", "name": "count"}));
    assert_eq!((&sent["tools"][0]["name"], sent.get("thinking")), (&json!("count"), None));
    let call = json!({"type": "tool_use", "id": "c1", "name": "count", "input": {"count": 7}});
    let reply = answered(&provider, &request, &json!({"content": [call], "stop_reason": "tool_use"}));
    assert_eq!((reply.text.as_str(), reply.calls.len(), reply.kept), (r#"{"count":7}"#, 0, None));
    // With functions, the model must call either one of them or the answer.
    assert_eq!(body(&provider, &first())["tool_choice"], json!({"type": "any"}));
}

#[test]
fn a_schema_that_openai_can_not_keep_strictly_is_sent_as_it_is() {
    let optional = json!({"type": "object", "properties": {"count": {"type": "integer"}}});
    let request = Request { schema: Some(("count".into(), optional.clone())), ..question() };
    let sent = body(&of(Service::Openai, "gpt-4.1"), &request);
    assert_eq!(
        sent["response_format"]["json_schema"],
        json!({"name": "count", "schema": optional, "strict": false})
    );
    let sent = body(&of(Service::OpenaiResponses, "gpt-4.1"), &request);
    assert_eq!(sent["text"]["format"]["strict"], false);
}

#[test]
fn the_newest_models_of_openai_are_asked_in_the_dialect_in_which_they_call_functions() {
    let newest = of(Service::Openai, "gpt-5.6-sol");
    assert_eq!(Dialect::of(&newest, &first()), Dialect::Responses);
    assert_eq!(Dialect::of(&newest, &question()), Dialect::Chat);
    assert_eq!(Dialect::of(&of(Service::Openai, "gpt-5"), &first()), Dialect::Chat);
    // The last question of such a conversation may come without functions.
    let last = Request { functions: Vec::new(), ..conversation(&newest, responses_answers()) };
    assert_eq!(Dialect::of(&newest, &last), Dialect::Responses);
    // Another server may not have that dialect, and then the model must not think.
    let elsewhere = at("https://proxy.example/v1", newest);
    assert_eq!(Dialect::of(&elsewhere, &first()), Dialect::Chat);
    assert_eq!(body(&elsewhere, &first())["reasoning_effort"], "none");
}

#[test]
fn openai_writes_to_its_cache_for_money_only_if_it_is_told_to() {
    let newest = of(Service::OpenaiResponses, "gpt-6-sol");
    let once = Request { keeps_prefix: false, ..first() };
    assert_eq!(body(&newest, &once)["prompt_cache_options"], json!({"mode": "explicit"}));
    assert_eq!(body(&newest, &first()).get("prompt_cache_options"), None);
    assert_eq!(body(&of(Service::Openai, "gpt-5"), &once).get("prompt_cache_options"), None);
    let cost = |provider: &Provider, keeps_prefix| catalogue::estimate(provider, 200_000, 0, keeps_prefix);
    assert_eq!((cost(&newest, false), cost(&newest, true)), (Some(0.4), Some(0.5)));
    // Another server isn't told, because it may not understand it. So the higher price is reserved.
    let elsewhere = at("https://proxy.example/v1", newest);
    assert_eq!(body(&elsewhere, &once).get("prompt_cache_options"), None);
    assert_eq!(cost(&elsewhere, false), Some(0.5));
}

#[test]
fn the_gap_between_functions_and_schemas_is_filled_by_words() {
    let older = of(Service::Gemini, "gemini-2.5-flash");
    let sent = body(&older, &first());
    assert!(sent["systemInstruction"].to_string().contains("matches this schema"), "{sent}");
    assert_eq!(sent["generationConfig"].get("responseJsonSchema"), None);
    let sent = body(&older, &Request { functions: Vec::new(), ..first() });
    assert_eq!(sent["systemInstruction"]["parts"][0]["text"], "You count wombats.");
    assert_eq!(sent["generationConfig"]["responseMimeType"], "application/json");
}

#[test]
fn made_ids_are_distinct_within_a_conversation_and_reach_no_service_that_gave_none() {
    for (provider, answers) in [
        (of(Service::Gemini, "gemini-2.5-flash"), gemini_answers()),
        (of(Service::Ollama, "qwen3"), ollama_answers()),
    ] {
        let request = conversation(&provider, answers);
        let ids: std::collections::BTreeSet<&str> = request
            .turns
            .iter()
            .filter_map(|turn| if let Turn::Result { call, .. } = turn { Some(call.as_str()) } else { None })
            .collect();
        assert_eq!(ids.len(), 3, "{ids:?}");
        assert!(!body(&provider, &request).to_string().contains("tiro-call"), "{provider:?}");
    }
}

#[test]
fn an_image_and_what_is_kept_count_as_tokens() {
    let provider = of(Service::Anthropic, "claude-sonnet-5");
    let request = first();
    let without = Request { turns: vec![Turn::user("How many wombats are there?")], ..first() };
    assert!(request.tokens() >= without.tokens() + TOKENS_OF_IMAGE);
    let mut later = conversation(&provider, anthropic_answers());
    let with_kept = later.tokens();
    for turn in &mut later.turns {
        if let Turn::Assistant { kept, .. } = turn {
            *kept = None;
        }
    }
    assert!(with_kept > later.tokens() + 50);
}
