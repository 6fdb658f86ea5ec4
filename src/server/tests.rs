use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf, split};
use tokio::sync::{Barrier, Notify};
use tokio::task::JoinHandle;

use super::line::{self, Line};
use super::*;
use tiro_base::error::Error;
use tiro_host::caller::{Form, Toolset};
use tiro_tools::memory::resources::SessionPage;
use tiro_tools::{About, Answer, Hints, SessionEntry};

#[derive(Deserialize, JsonSchema)]
struct Args {
    /// A text to return.
    #[serde(default)]
    text: String,
}

#[derive(JsonSchema, Serialize)]
struct Output {
    text: String,
}

/// Returns the tool `name` that answers with the result of `run`.
fn tool<F, W>(name: &'static str, run: F) -> Tool
where
    F: Fn(String) -> W + Clone + Send + Sync + 'static,
    W: Future<Output = Result<String>> + Send,
{
    let about = About {
        name: name.to_owned(),
        title: "A tool".to_owned(),
        description: "Does it.".to_owned(),
        hints: Hints::READS,
        toolset: Toolset::Memory,
    };
    Tool::new::<Args, Output, _, _>(about, move |args, _| {
        let work = run(args.text);
        async move {
            let text = work.await?;
            Ok(Answer::new(text.clone(), &Output { text }))
        }
    })
}

fn echo() -> Tool {
    tool("echo", |text| async move { Ok(text) })
}

/// Returns one session and one memory. The text of each is its id.
fn shelf() -> Resources {
    let read = |known: &'static str| {
        move |id: String| -> tiro_tools::Pending<String> {
            let found = id == known;
            Box::pin(async move {
                if found { Ok(id) } else { Err(Error::not_found(format!("nothing with id `{id}`"))) }
            })
        }
    };
    Resources {
        sessions: Box::new(|cursor| {
            let id = if cursor.is_none() { "a b" } else { "last" };
            let session =
                SessionEntry { id: id.into(), title: "Talk".into(), description: "2 messages".into() };
            let next_cursor = cursor.is_none().then(|| "2".to_owned());
            Box::pin(async move { Ok(SessionPage { sessions: vec![session], next_cursor }) })
        }),
        session: Box::new(read("a b")),
        memory: Box::new(read("m7")),
        met: Box::new(|_| ()),
    }
}

/// A client that writes and reads lines.
struct Client {
    input: WriteHalf<DuplexStream>,
    output: Lines<BufReader<ReadHalf<DuplexStream>>>,
    server: JoinHandle<Result<()>>,
}

impl Client {
    fn of(tools: Vec<Tool>) -> Client {
        Client::until(tools, Form::Both, std::future::pending())
    }

    /// Returns a client whose server gives it only the text of an answer.
    fn of_texts(tools: Vec<Tool>) -> Client {
        Client::until(tools, Form::Text, std::future::pending())
    }

    fn until(tools: Vec<Tool>, form: Form, stop: impl Future<Output = ()> + Send + 'static) -> Client {
        let offer = Offer { tools, resources: shelf(), form, noting: None };
        let (near, far) = tokio::io::duplex(1 << 16);
        let (far_input, far_output) = split(far);
        let server = tokio::spawn(serve(offer, far_input, far_output, stop));
        let (output, input) = split(near);
        Client { input, output: BufReader::new(output).lines(), server }
    }

    async fn send(&mut self, line: impl AsRef<[u8]>) {
        self.input.write_all(line.as_ref()).await.unwrap();
        self.input.write_all(b"\n").await.unwrap();
    }

    async fn receive(&mut self) -> Value {
        let line = tokio::time::timeout(Duration::from_secs(60), self.output.next_line());
        serde_json::from_str(&line.await.expect("an answer").unwrap().expect("a line")).unwrap()
    }

    /// Sends a request without a handshake.
    async fn ask(&mut self, method: &str, mut params: Value) -> Value {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        self.send(json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string()).await;
        self.receive().await
    }

    async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({"name": tool, "arguments": arguments})).await
    }

    /// Asserts that the server runs and answers.
    async fn is_served(&mut self) {
        assert_eq!(
            self.call("echo", json!({"text": "hi"})).await["result"]["structuredContent"]["text"],
            "hi"
        );
    }
}

#[tokio::test]
async fn a_client_with_a_handshake_is_served_in_its_version() {
    for (asked, agreed) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("tomorrow", "2025-11-25"),
    ] {
        let mut client = Client::of(vec![echo()]);
        // A request before the handshake does not end the server.
        client.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
        client.send(r#"{"jsonrpc":"2.0","id":0,"method":"tools/list"}"#).await;
        let early = client.receive().await;
        assert_eq!(early["error"]["code"], -32602, "{early}");
        let params = json!({"protocolVersion": asked, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        client
            .send(json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}).to_string())
            .await;
        let result = client.receive().await["result"].take();
        assert_eq!(result["protocolVersion"], agreed);
        assert_eq!(
            result["serverInfo"],
            json!({"name": "tiro", "title": "Tiro", "version": env!("CARGO_PKG_VERSION")})
        );
        assert_eq!(result["capabilities"], json!({"tools": {}, "resources": {}, "prompts": {}}));
        client.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
        client.send(r#"{"jsonrpc":"2.0","id":"two","method":"tools/list"}"#).await;
        let listed = client.receive().await;
        assert_eq!(listed["id"], "two");
        let mut expected = json!({
            "ttlMs": 3_600_000,
            "cacheScope": "private",
            "tools": [{
                "name": "echo",
                "title": "A tool",
                "description": "Does it.",
                "inputSchema": {
                    "type": "object", "properties": {"text": {"type": "string", "description": "A text to return."}},
                },
                "outputSchema": {"type": "object", "properties": {"text": {"type": "string"}}},
                "annotations": {
                    "readOnlyHint": true, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false,
                },
            }],
        });
        let mut answered = json!({
            "content": [{"type": "text", "text": "é"}], "structuredContent": {"text": "é"}, "isError": false,
        });
        // Older revisions know no answers as data.
        if agreed < "2025-06-18" {
            expected["tools"][0].as_object_mut().unwrap().remove("outputSchema");
            answered.as_object_mut().unwrap().remove("structuredContent");
        }
        assert_eq!(listed["result"], expected);
        let call = r#"{"method":"tools/call","params":{"name":"echo","arguments":{"text":"é"}},"jsonrpc":"2.0","id":3}"#;
        client.send(call).await;
        let answer = client.receive().await;
        assert_eq!(answer["result"], answered);
    }
}

/// Clients show a model the text of an answer, its data, or both, so an answer used to cost up to twice its budget.
#[tokio::test]
async fn answers_are_text_alone_unless_the_client_asks_for_data() {
    let fails = tool("fails", |_| async { Err(Error::not_found("no memory").hint("search for it")) });
    let panics = tool("panics", |text| async move { panic!("about {text}") });
    let mut client = Client::of_texts(vec![echo(), fails, panics]);
    let listed = client.ask("tools/list", json!({})).await;
    assert_eq!(listed["result"]["tools"][0].get("outputSchema"), None, "{listed}");
    for (tool, text) in
        [("echo", "hi"), ("fails", "no memory\nsearch for it"), ("panics", "`panics` panicked")]
    {
        let answer = client.call(tool, json!({"text": "hi"})).await["result"].take();
        assert_eq!(answer.get("structuredContent"), None, "{answer}");
        assert!(answer["content"][0]["text"].as_str().unwrap().starts_with(text), "{answer}");
        assert_eq!(answer["isError"], json!(tool != "echo"), "{answer}");
    }
}

#[tokio::test]
async fn requests_without_a_handshake_name_their_protocol_version() {
    let mut client = Client::of(vec![echo()]);
    let found = client.ask("server/discover", json!({})).await["result"].take();
    assert_eq!(
        found["supportedVersions"],
        json!(["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"])
    );
    assert_eq!(found["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "tiro");
    assert_eq!((&found["cacheScope"], &found["resultType"]), (&json!("private"), &json!("complete")));
    assert!(found["instructions"].as_str().unwrap().contains("search_project_memory"));

    let listed = client.ask("tools/list", json!({})).await["result"].take();
    assert_eq!((&listed["cacheScope"], &listed["resultType"]), (&json!("private"), &json!("complete")));
    assert_eq!(client.ask("tools/list", json!({"cursor": "x"})).await["error"]["code"], -32602);
    client.is_served().await;
    assert_eq!(client.ask("ping", json!({})).await["error"]["code"], -32601);
    let unknown = r#"{"jsonrpc":"2.0","id":4,"method":"tools/list","params":{"_meta":{
        "io.modelcontextprotocol/protocolVersion":"2099-01-01","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    client.send(unknown.replace('\n', "")).await;
    assert_eq!(client.receive().await["error"]["code"], -32022);
}

#[tokio::test]
async fn errors_of_tools_are_results_with_a_hint() {
    let fails = tool("fails", |_| async {
        Err(Error::not_found("no memory with id `m7`").hint("search for it with `search_project_memory`"))
    });
    let panics = tool("panics", |text| async move { panic!("about {text}") });
    let mut client = Client::of(vec![echo(), fails, panics]);

    let failed = client.call("fails", json!({})).await["result"].take();
    assert_eq!(
        failed,
        json!({
            "resultType": "complete",
            "content": [{
                "type": "text",
                "text": "no memory with id `m7`\nsearch for it with `search_project_memory`",
            }],
            "structuredContent": {"error": {
                "kind": "not_found",
                "message": "no memory with id `m7`",
                "hint": "search for it with `search_project_memory`",
            }},
            "isError": true,
        })
    );
    let panicked = client.call("panics", json!({"text": "secrets"})).await["result"].take();
    assert_eq!(
        (&panicked["isError"], &panicked["structuredContent"]["error"]["kind"]),
        (&json!(true), &json!("internal"))
    );
    assert!(!panicked.to_string().contains("secrets"));
    for arguments in [json!({"text": true}), json!({"text": {"a": 1}})] {
        let wrong = client.call("echo", arguments).await["result"].take();
        assert_eq!(
            (&wrong["isError"], &wrong["structuredContent"]["error"]["kind"]),
            (&json!(true), &json!("bad_input"))
        );
    }
    let unknown = client.call("ech", json!({})).await["error"].take();
    assert_eq!(unknown, json!({"code": -32602, "message": "Unknown tool: ech"}));
    client.is_served().await;
}

#[test]
fn a_panic_quotes_no_text() {
    let text = "secret".to_owned();
    let quoting = std::panic::catch_unwind(|| panic!("about {text}")).unwrap_err();
    assert!(!harmless_message(quoting.as_ref()).contains("secret"));
    let literal = std::panic::catch_unwind(|| panic!("a literal")).unwrap_err();
    assert_eq!(harmless_message(literal.as_ref()), "a literal");
}

#[tokio::test]
async fn sessions_and_memories_are_resources() {
    let mut client = Client::of(Vec::new());
    let listed = client.ask("resources/list", json!({})).await["result"].take();
    assert_eq!(listed["nextCursor"], "2");
    assert_eq!(
        listed["resources"],
        json!([{
            "uri": "tiro://session/a%20b",
            "name": "a b",
            "title": "Talk",
            "description": "2 messages",
            "mimeType": "text/markdown",
        }])
    );
    let last = client.ask("resources/list", json!({"cursor": "2"})).await["result"].take();
    assert_eq!((&last["resources"][0]["name"], &last["nextCursor"]), (&json!("last"), &json!(null)));
    let templates = client.ask("resources/templates/list", json!({})).await["result"].take();
    assert_eq!(templates["resourceTemplates"][1]["uriTemplate"], "tiro://memory/{id}");
    for (uri, text) in [("tiro://session/a%20b", "a b"), ("tiro://memory/m7", "m7")] {
        let read = client.ask("resources/read", json!({"uri": uri})).await["result"].take();
        assert_eq!(read["contents"], json!([{"uri": uri, "mimeType": "text/markdown", "text": text}]));
        assert_eq!(read["cacheScope"], "private");
    }
    for uri in ["tiro://memory/m8", "tiro://session/", "file:///etc/passwd"] {
        let error = client.ask("resources/read", json!({"uri": uri})).await["error"].take();
        assert_eq!((&error["code"], &error["data"]["uri"]), (&json!(-32602), &json!(uri)), "{error}");
    }
}

/// Notifies when it is dropped.
struct Guard(Arc<Notify>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

/// Returns a tool that never ends, and two notifications: that a call began, and that it was dropped.
fn waits() -> (Tool, Arc<Notify>, Arc<Notify>) {
    let (begun, dropped) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (tell_begun, tell_dropped) = (begun.clone(), dropped.clone());
    let waits = tool("waits", move |_| {
        let (begun, guard) = (tell_begun.clone(), Guard(tell_dropped.clone()));
        async move {
            let _guard = guard;
            begun.notify_one();
            std::future::pending().await
        }
    });
    (waits, begun, dropped)
}

const WAITING: &str = r#"{"jsonrpc":"2.0","id":99,"method":"tools/call","params":{"name":"waits","_meta":{
    "io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;

#[tokio::test]
async fn a_cancelled_call_is_dropped_and_not_answered() {
    let (waits, begun, dropped) = waits();
    let mut client = Client::of(vec![echo(), waits]);
    client.send(WAITING.replace('\n', "")).await;
    begun.notified().await;
    client.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}"#).await;
    dropped.notified().await;
    client.is_served().await;
    // Its id is free again.
    client.send(WAITING.replace('\n', "")).await;
    begun.notified().await;
}

/// Guards against a former fault: the library forgot the first of two requests with the same id, and the answer that
/// came last was lost.
#[tokio::test]
async fn a_second_request_with_an_open_id_is_refused() {
    let (begun, release) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (began, released) = (begun.clone(), release.clone());
    let held = tool("waits", move |_| {
        let (began, released) = (began.clone(), released.clone());
        async move {
            began.notify_one();
            released.notified().await;
            Ok("held".to_owned())
        }
    });
    let mut client = Client::of(vec![held]);
    for _ in 0..2 {
        client.send(WAITING.replace('\n', "")).await;
        begun.notified().await;
        client.send(WAITING.replace('\n', "")).await;
        let refused = client.receive().await;
        assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(99), &json!(-32600)), "{refused}");
        release.notify_one();
        let answer = client.receive().await;
        let text = &answer["result"]["structuredContent"]["text"];
        assert_eq!((&answer["id"], text), (&json!(99), &json!("held")), "{answer}");
    }
}

#[tokio::test]
async fn calls_run_at_the_same_time() {
    let barrier = Arc::new(Barrier::new(24));
    let meets = tool("meets", move |text| {
        let barrier = barrier.clone();
        async move {
            barrier.wait().await;
            Ok(text)
        }
    });
    let mut client = Client::of(vec![meets]);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    for id in 0..24 {
        let params = json!({"name": "meets", "arguments": {"text": id.to_string()}, "_meta": meta});
        client
            .send(json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string())
            .await;
    }
    for _ in 0..24 {
        let answer = client.receive().await;
        assert_eq!(answer["result"]["structuredContent"]["text"], answer["id"].to_string());
    }
}

#[tokio::test]
async fn at_the_end_of_the_input_calls_are_answered_or_dropped_and_the_server_ends() {
    let (waits, begun, dropped) = waits();
    let slow = tool("slow", |text| async move {
        tokio::time::sleep(Duration::from_millis(100)).await;
        Ok(text)
    });
    let mut client = Client::of(vec![slow, waits]);
    client.send(WAITING.replace('\n', "")).await;
    begun.notified().await;
    client.send(WAITING.replace('\n', "").replace("waits", "slow").replace("99", "98")).await;
    client.input.shutdown().await.unwrap();
    assert_eq!(client.receive().await["id"], 98);
    tokio::time::timeout(Duration::from_secs(2), client.server).await.unwrap().unwrap().unwrap();
    dropped.notified().await;
}

#[tokio::test]
async fn a_call_that_cannot_be_interrupted_does_not_keep_the_server() {
    let (release, held) = std::sync::mpsc::channel::<()>();
    let held = Arc::new(std::sync::Mutex::new(held));
    let (begun, stopper) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let began = begun.clone();
    let blocks = tool("waits", move |text| {
        let (held, began) = (held.clone(), began.clone());
        async move {
            began.notify_one();
            let _ = held.lock().unwrap().recv();
            Ok(text)
        }
    });
    let stop = stopper.clone();
    let mut client = Client::until(vec![echo(), blocks], Form::Both, async move { stop.notified().await });
    client.send(WAITING.replace('\n', "")).await;
    begun.notified().await;
    client.is_served().await;
    stopper.notify_one();
    tokio::time::timeout(Duration::from_secs(2), client.server).await.unwrap().unwrap().unwrap();
    drop(release);
}

#[tokio::test]
async fn malformed_lines_are_answered_and_do_not_end_the_server() {
    let cases: &[(&[u8], i64, Value)] = &[
        (b"garbage", -32700, json!(null)),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,", -32700, json!(null)),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}", -32601, json!(1)),
        (br#"{"jsonrpc":"2.0","id":1,"method":"\ud83d"}"#, -32601, json!(1)),
        (b"[1", -32700, json!(null)),
        (b"\0", -32700, json!(null)),
        (b"[]", -32600, json!(null)),
        (br#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, -32600, json!(null)),
        (b"1", -32600, json!(null)),
        (b"{}", -32600, json!(null)),
        (br#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600, json!(null)),
        (br#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, -32600, json!(null)),
        (br#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, -32600, json!(null)),
        (br#"{"jsonrpc":"2.0","id":99999999999999999999,"method":"ping"}"#, -32600, json!(null)),
        (br#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#, -32600, json!(null)),
        (br#"{"jsonrpc":"1.0","id":5,"method":"ping"}"#, -32600, json!(5)),
        (br#"{"id":"a","method":"ping"}"#, -32600, json!("a")),
        (br#"{"jsonrpc":"2.0","id":5}"#, -32600, json!(5)),
        (br#"{"jsonrpc":"2.0","id":5,"method":7}"#, -32600, json!(5)),
        (br#"{"jsonrpc":"2.0","id":5,"method":"ping","result":{}}"#, -32600, json!(5)),
        (br#"{"jsonrpc":"2.0","id":5,"method":"tools/call"}"#, -32602, json!(5)),
        (
            br#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"echo","arguments":[1]}}"#,
            -32602,
            json!(5),
        ),
        (br#"{"jsonrpc":"2.0","id":5,"method":"initialize","params":{}}"#, -32602, json!(5)),
        (br#"{"jsonrpc":"2.0","id":5,"method":"resources/read","params":[]}"#, -32602, json!(5)),
        (br#"{"jsonrpc":"2.0","id":5,"method":"nonsense"}"#, -32601, json!(5)),
    ];
    let mut client = Client::of(vec![echo()]);
    for (line, code, id) in cases {
        client.send(line).await;
        let answer = client.receive().await;
        let shown = String::from_utf8_lossy(line);
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), id), "{shown}: {answer}");
    }
    for ignored in [
        "",
        " \t\r",
        r#"{"jsonrpc":"2.0","id":3,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":"x","error":{"code":1,"message":""}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":[]}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/what"}"#,
        r#"{"jsonrpc":"2.0","method":7}"#,
    ] {
        client.send(ignored).await;
        client.is_served().await;
    }
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":6,"method":"ping","params":{{"a":{}{}}}}}"#,
        "[".repeat(9999),
        "]".repeat(9999)
    );
    client.send(deep).await;
    assert_eq!(client.receive().await["id"], 6);
    client.send("\u{feff}{\"jsonrpc\":\"2.0\",\"id\":7.0,\"method\":\"ping\"}\r").await;
    assert_eq!(client.receive().await, json!({"jsonrpc": "2.0", "id": 7, "result": {}}));
    client.is_served().await;
}

proptest::proptest! {
    /// Every line is read as a message, ignored, or refused with a JSON-RPC error.
    #[test]
    fn any_line_is_read(line in r#"[{]?("(id|method|jsonrpc|params)":(1|null|"2.0"|\{\}|"tools/call"|"x"),?){0,5}[}]?"#) {
        if let Line::Refused(refusal) = line::read(line.as_bytes(), line.len() % 2 == 0) {
            let refusal = serde_json::to_value(refusal).unwrap();
            proptest::prop_assert!(refusal["error"]["code"].is_i64());
        }
    }
}

/// Half an emoji in a call, or a byte that is not UTF-8, used to be refused with a message about something else.
#[tokio::test]
async fn strings_that_are_no_text_are_read_with_a_replacement_character() {
    let mut client = Client::of(vec![echo()]);
    for (written, read) in [
        (&br"gull \ud83d"[..], "gull \u{fffd}"),
        (br"\uDCA1\ud83d\udca1", "\u{fffd}\u{1f4a1}"),
        (b"caf\xe9", "caf\u{fffd}"),
        (br"\\ud83d", "\\ud83d"),
    ] {
        let mut line = WAITING.replace('\n', "").replace("waits", "echo").into_bytes();
        line.truncate(line.len() - 2);
        line.extend_from_slice(b",\"arguments\":{\"text\":\"");
        line.extend_from_slice(written);
        line.extend_from_slice(b"\",\"\\ud800\":1}}}");
        client.send(line).await;
        let answer = client.receive().await;
        let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
        assert_eq!(text, format!("{read}\nIgnored arguments: `\u{fffd}`."));
    }
}

/// Some clients send the arguments of a call as a JSON string, or an empty list for none.
#[tokio::test]
async fn the_arguments_of_a_call_may_be_json_in_a_string() {
    let mut client = Client::of(vec![echo()]);
    for (arguments, text) in [
        (json!("{\"text\": \"hi\"}"), "hi"),
        (json!({"text": "hi"}), "hi"),
        (json!({"arguments": {"text": "hi"}}), "hi"),
        (json!(""), ""),
        (json!("{}"), ""),
        (json!([]), ""),
        (json!(null), ""),
    ] {
        let answer = client.call("echo", arguments).await;
        assert_eq!(answer["result"]["content"][0]["text"], json!(text), "{answer}");
    }
}

/// The revisions before 2025-06-18 have batches.
#[tokio::test]
async fn a_batch_is_answered_as_one() {
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18"] {
        let (waits, begun, _dropped) = waits();
        let mut client = Client::of(vec![echo(), waits]);
        let params = json!({"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        let greeting = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        client.send(greeting.to_string()).await;
        client.receive().await;
        let call = |id: u64, tool: &str| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool}});
        let notification = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        let batch = json!([notification, call(1, "echo"), {"jsonrpc": "2.0", "id": 2}, call(3, "echo")]);
        client.send(batch.to_string()).await;
        let answers = client.receive().await;
        if revision == "2025-06-18" {
            assert_eq!(answers["error"]["code"], -32600, "{answers}");
            continue;
        }
        let mut answered: Vec<(u64, bool)> = answers
            .as_array()
            .unwrap()
            .iter()
            .map(|answer| (answer["id"].as_u64().unwrap(), answer["error"].is_object()))
            .collect();
        answered.sort_unstable();
        assert_eq!(answered, [(1, false), (2, true), (3, false)], "{answers}");
        // A cancelled request is not waited for.
        client.send(json!([call(4, "echo"), call(5, "waits")]).to_string()).await;
        begun.notified().await;
        client.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}"#).await;
        let answers = client.receive().await;
        assert_eq!((answers.as_array().unwrap().len(), &answers[0]["id"]), (1, &json!(4)), "{answers}");
        // A batch of notifications has no answer.
        client.send(json!([notification]).to_string()).await;
        client.send(call(6, "echo").to_string()).await;
        assert_eq!(client.receive().await["id"], 6);
    }
}
