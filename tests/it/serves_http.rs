//! `tiro serve --http` answers every revision of MCP as stdio does, only those who may ask, within bounds, and keeps
//! nothing about its clients.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::consults::{Ground, TOOL};
use crate::harness::Home;
use crate::mock::Manner;
use crate::web::{REVISION, Web, call, port_of, read};

/// The headers and the `_meta` of a request of the revision without `initialize`.
fn stateless(method: &str, name: Option<&str>) -> (Vec<String>, Value) {
    let mut headers = vec!["MCP-Protocol-Version: 2026-07-28".to_owned(), format!("Mcp-Method: {method}")];
    headers.extend(name.map(|name| format!("Mcp-Name: {name}")));
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "it", "version": "0"},
    });
    (headers, meta)
}

fn greeting(revision: &str) -> Value {
    let client = json!({"name": "it", "version": "0"});
    let params = json!({"protocolVersion": revision, "capabilities": {}, "clientInfo": client});
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
}

#[test]
fn every_revision_is_answered_as_on_stdio() {
    let home = Home::new();
    let repo = home.repo("repo");
    let web = Web::start(&home, &repo.path, &[]);
    let text = "The weir is opened in March.";
    assert!(web.call("store_memory", json!({"text": text})).contains("Stored"), "nothing was stored");
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let answer = web.ask("POST", "/mcp", &[], greeting(revision).to_string().as_bytes());
        assert_eq!(answer.json()["result"]["protocolVersion"], revision, "{answer:?}");
        assert_eq!(answer.header("mcp-session-id"), None, "no session begins");
        let header = format!("MCP-Protocol-Version: {revision}");
        let done = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(web.ask("POST", "/mcp", &[&header], done.to_string().as_bytes()).status, 202);
        let mut stdio = crate::harness::Server::open(home.tiro(&repo.path, &["serve"]), revision);
        // The first answer to a caller also says how many texts have no embedding.
        let first = json!({"name": "search_project_memory", "arguments": {"query": "weir"}});
        stdio.request("tools/call", first.clone());
        web.request("tools/call", first);
        for (method, params) in [
            ("ping", json!({})),
            ("tools/list", json!({})),
            ("prompts/list", json!({})),
            ("resources/templates/list", json!({})),
            ("tools/call", json!({"name": "search_project_memory", "arguments": {"query": "weir"}})),
            ("tools/call", json!({"name": "nothing"})),
            ("nothing", json!({})),
        ] {
            let message = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
            let answer = web.ask("POST", "/mcp", &[&header], message.to_string().as_bytes()).json();
            let same = stdio.request(method, params);
            assert_eq!((&answer["result"], &answer["error"]), (&same["result"], &same["error"]), "{method}");
        }
    }
    let (headers, meta) = stateless("tools/call", Some("search_project_memory"));
    let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
    let params = json!({"name": "search_project_memory", "arguments": {"query": "weir"}, "_meta": meta});
    let message = json!({"jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": params});
    let answer = web.ask("POST", "/mcp", &headers, message.to_string().as_bytes());
    assert!(answer.body.contains(text), "{answer:?}");
    let (headers, meta) = stateless("server/discover", None);
    let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": meta}})
        .to_string();
    let answer = web.ask("POST", "/mcp", &headers, message.as_bytes()).json();
    let versions = answer["result"]["supportedVersions"].to_string();
    assert!(versions.contains("2026-07-28") && versions.contains("2024-11-05"), "{answer}");
}

#[test]
fn messages_are_read_as_liberally_as_on_stdio() {
    let home = Home::new();
    let repo = home.repo("repo");
    let web = Web::start(&home, &repo.path, &[]);
    let ask = |revision: &str, body: &[u8]| {
        let answer = web.ask("POST", "/mcp", &[&format!("MCP-Protocol-Version: {revision}")], body);
        (answer.status, answer.body)
    };
    for (body, status, code) in [
        (&b"garbage"[..], 400, "-32700"),
        (b"{}", 400, "-32600"),
        (b"[]", 400, "-32600"),
        (br#"{"jsonrpc":"2.0","id":1,"method":7}"#, 400, "-32600"),
        (br#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#, 200, "-32602"),
    ] {
        let (answered, text) = ask(REVISION, body);
        assert!(answered == status && text.contains(code), "{answered} {text}");
    }
    assert_eq!(ask(REVISION, br#"{"jsonrpc":"2.0","id":1,"result":{}}"#).0, 202);
    // Arguments as a string, and half an emoji.
    let message = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"store_memory","arguments":{"text":"tern \ud83d"}}}"#;
    assert!(ask(REVISION, message).1.contains("Stored"));
    let message = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"store_memory","arguments":"{\"text\": \"gull\"}"}}"#;
    let (_, text) = ask(REVISION, message);
    assert!(text.contains("Stored"), "{text}");
    // Batches are of the early revisions.
    let ping = |id: u64| json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
    let done = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let batch = json!([ping(1), {"jsonrpc": "2.0", "id": 2}, done, ping(3)]).to_string();
    let (status, text) = ask("2025-03-26", batch.as_bytes());
    let answers: Value = serde_json::from_str(&text).unwrap();
    let ids: Vec<u64> = answers.as_array().unwrap().iter().map(|it| it["id"].as_u64().unwrap()).collect();
    assert_eq!((status, ids), (200, vec![1, 3, 2]));
    assert_eq!(ask("2025-03-26", json!([done]).to_string().as_bytes()).0, 202);
    assert_eq!(ask(REVISION, batch.as_bytes()).0, 400);
    // A client that accepts anything is answered, and one that accepts nothing of MCP is not.
    let body = ping(1).to_string();
    for (accept, status) in [("*/*", 200), ("application/json, text/event-stream", 200), ("text/html", 406)] {
        let answer = web.ask("POST", "/mcp", &[&format!("Accept: {accept}")], body.as_bytes());
        assert_eq!(answer.status, status, "{accept}: {answer:?}");
    }
}

#[test]
fn progress_reaches_a_client_that_asks_for_it() {
    let ground = Ground::new();
    ground.mock.behaves(&Manner::SaysLate("Yes.".into(), Duration::from_millis(500)));
    let web = Web::start(&ground.home, &ground.project.path, &[]);
    let arguments = json!({"session_id": "lease", "instructions": "Is it?", "context": ["src"]});
    let mut message = call(1, TOOL, arguments);
    let quiet = web.post(&message);
    assert_eq!(quiet.header("content-type"), Some("application/json"), "{quiet:?}");
    message["params"]["_meta"] = json!({"progressToken": "p"});
    message["params"]["arguments"]["instructions"] = json!("Is it really?");
    let answer = web.post(&message);
    assert_eq!(answer.header("content-type"), Some("text/event-stream"), "{answer:?}");
    let (progress, result) =
        (answer.body.find("notifications/progress").unwrap(), answer.body.find("\"result\"").unwrap());
    assert!(progress < result && answer.body.contains("\"p\""), "{answer:?}");
}

#[test]
fn only_requests_that_mean_this_server_are_answered() {
    let home = Home::new();
    let repo = home.repo("repo");
    let web = Web::start(&home, &repo.path, &[]);
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
    let ask = |headers: &[&str]| web.ask("POST", "/mcp", headers, body.as_bytes());
    let (port, own) = (web.port, format!("Host: localhost:{}", web.port));
    for (headers, status) in [
        (vec![own.as_str()], 200),
        (vec![&own, "Origin: http://localhost:3000"], 200),
        (vec![&format!("Host: [::1]:{port}")], 200),
        (vec!["Host: localhost"], 403),
        (vec!["Host: evil.example"], 403),
        (vec![&format!("Host: evil.example:{port}")], 403),
        (vec![&own, "Origin: http://evil.example"], 403),
        (vec![&own, "Origin: null"], 403),
        (vec![&own, &own], 403),
    ] {
        let answer = ask(&headers);
        assert_eq!(answer.status, status, "{headers:?}: {answer:?}");
    }
    for method in ["GET", "DELETE", "OPTIONS", "PUT"] {
        let answer = web.ask(method, "/mcp", &[], b"");
        assert_eq!((answer.status, answer.header("allow")), (405, Some("POST")), "{answer:?}");
    }
    // A form of another site can't send JSON.
    let head = web.head("POST", "/mcp", &["Content-Type: text/plain"]);
    let mut stream = web.connect();
    stream.write_all(format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes()).unwrap();
    assert_eq!(read(stream).status, 415);
    // The pages are served too, for the browser of the user.
    assert_eq!(web.ask("GET", "/", &[], b"").status, 403);
    let pages = web.pages.clone().unwrap();
    let first = pages.split_once(&format!(":{port}")).unwrap().1;
    assert_eq!(web.ask("GET", first, &[], b"").status, 200);
    assert_eq!(web.ask("GET", first, &[], b"").status, 403);
    for path in ["/healthz", "/readyz"] {
        assert_eq!(web.ask("GET", path, &["Host: 10.0.0.1"], b"").status, 200);
    }
    assert_eq!(web.ask("GET", "/metrics", &[], b"").status, 403, "the counts have a port of their own");
}

#[test]
fn an_address_that_others_reach_needs_keys_and_tls() {
    let home = Home::new();
    let repo = home.repo("repo");
    let refused = |args: &[&str], parts: &[&str]| {
        let ran = home.run(&repo.path, &[&["serve", "--http"], args].concat());
        assert!(!ran.is_ok && parts.iter().all(|part| ran.stderr.contains(part)), "{args:?}: {ran:?}");
    };
    refused(&["0.0.0.0:0"], &["needs personal keys", "tiro user add"]);
    refused(&["127.0.0.1:0", "--behind-proxy"], &["needs personal keys"]);
    refused(&["example.org:80"], &["no address"]);
    home.json(&repo.path, &["user", "add", "ana"]);
    refused(&["0.0.0.0:0"], &["needs TLS", "--tls-cert", "--behind-proxy"]);
    refused(&["0.0.0.0:0", "--behind-proxy"], &["--host NAME"]);
    refused(&["0.0.0.0:0", "--tls-cert", "a.pem"], &["--tls-key"]);
    refused(&["0.0.0.0:0", "--host", "a", "--tls-cert", "a.pem", "--tls-key", "b.pem"], &["certificate"]);
}

/// Takes half a minute, since the limits of time are as long as they are for users.
#[test]
fn requests_that_are_too_large_or_too_slow_are_refused() {
    let home = Home::new();
    let repo = home.repo("repo");
    let web = Web::start(&home, &repo.path, &[]);
    for length in [(4 << 20) + 1, 20 << 20] {
        assert_eq!(web.ask("POST", "/mcp", &[], &vec![b' '; length]).status, 413);
    }
    let mut unsized_body = web.connect();
    let head = web.head("POST", "/mcp", &["Content-Type: application/json", "Transfer-Encoding: chunked"]);
    unsized_body.write_all(format!("{head}\r\n").as_bytes()).unwrap();
    for _ in 0..5 {
        let chunk = [format!("{:x}\r\n", 1 << 20).as_bytes(), &vec![b' '; 1 << 20], b"\r\n"].concat();
        let _ = unsized_body.write_all(&chunk);
    }
    let _ = unsized_body.write_all(b"0\r\n\r\n");
    assert_eq!(read(unsized_body).status, 413);
    let began = Instant::now();
    let mut slow_body = web.connect();
    let head = web.head("POST", "/mcp", &["Content-Type: application/json", "Content-Length: 100"]);
    slow_body.write_all(format!("{head}\r\n{{").as_bytes()).unwrap();
    let mut slow_head = web.connect();
    slow_head.write_all(b"POST /mcp HTTP/1.1\r\n").unwrap();
    // Others are answered meanwhile.
    assert!(web.call("store_memory", json!({"text": "The lock is open."})).contains("Stored"));
    assert_eq!(read(slow_head).body, "");
    assert!((15..25).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
    assert_eq!(read(slow_body).status, 408);
    assert!((25..40).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
}

#[test]
fn a_caller_who_asks_too_much_is_told_to_wait() {
    let home = Home::new();
    let repo = home.repo("repo");
    let mut web = Web::start(&home, &repo.path, &["--metrics", "0"]);
    web.key = home.json(&repo.path, &["user", "add", "ana"])["key"].as_str().map(str::to_owned);
    // One more than a user may have open at the same time. The last one to arrive is refused.
    let mut begun: Vec<TcpStream> = (0..17)
        .map(|_| {
            let mut stream = web.connect();
            let head = web.head("POST", "/mcp", &["Content-Type: application/json", "Content-Length: 9"]);
            stream.write_all(format!("{head}\r\n{{").as_bytes()).unwrap();
            stream
        })
        .collect();
    begun.iter().for_each(|stream| stream.set_nonblocking(true).unwrap());
    crate::harness::eventually(|| begun.iter_mut().any(|stream| stream.read(&mut [0; 9]).is_ok()));
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    crate::harness::eventually(|| {
        let answer = web.post(&ping);
        answer.status == 429 && answer.header("retry-after") == Some("1")
    });
    drop(begun);
    crate::harness::eventually(|| web.post(&ping).status == 200);
    let refused = (0..2000).find(|_| web.post(&ping).status == 429);
    assert!(refused.is_some(), "two thousand calls in a row are too many");
    std::thread::sleep(Duration::from_millis(1100));
    assert_eq!(web.post(&ping).status, 200);
    // The counts say so, and name nobody.
    assert!(web.call("store_memory", json!({"text": "The heron nests here."})).contains("Stored"));
    let mut metrics = Web::start(&home, &repo.path, &[]);
    metrics.port = port_of(web.metrics.as_ref().unwrap());
    let counts = metrics.ask("GET", "/metrics", &[], b"");
    for part in [
        "tiro_refused_total{reason=\"rate\"} ",
        "tiro_refused_total{reason=\"open calls of a caller\"} ",
        "tiro_requests_total{method=\"tools/call\",status=\"200\"} 1\n",
        "tiro_requests_total{method=\"ping\",status=\"200\"} ",
        "tiro_open_requests 0\n",
        "# EOF",
    ] {
        assert!(counts.body.contains(part), "{part}: {counts:?}");
    }
    assert!(!counts.body.contains("heron") && !counts.body.contains("ana"), "{counts:?}");
    assert_eq!(metrics.ask("POST", "/mcp", &[], b"{}").status, 404);
}

/// A server keeps nothing about its clients, so any server with the same store can answer.
#[test]
fn servers_with_the_same_store_answer_for_each_other() {
    let home = Home::new();
    let repo = home.repo("repo");
    let (one, other) = (Web::start(&home, &repo.path, &[]), Web::start(&home, &repo.path, &[]));
    assert_eq!(one.ask("POST", "/mcp", &[], greeting(REVISION).to_string().as_bytes()).status, 200);
    for number in 0..10 {
        let (writer, reader) = if number % 2 == 0 { (&one, &other) } else { (&other, &one) };
        let text = format!("The sluice {number}x{number} leaks.");
        let messages = json!([{"role": "user", "text": text}]);
        writer.call("save_messages", json!({"session_id": "walk", "messages": messages}));
        let found =
            reader.call("search_project_memory", json!({"query": format!("sluice {number}x{number}")}));
        assert!(found.contains(&text), "{number}: {found}");
    }
    let query = json!({"query": "sluice", "session_id": "walk"});
    assert_eq!(one.call("retrieve_context", query.clone()), other.call("retrieve_context", query));
    let read = |web: &Web| web.request("resources/read", json!({"uri": "tiro://session/walk"}));
    assert_eq!(read(&one), read(&other));
}

#[test]
fn another_project_of_the_owner_has_a_path_of_its_own() {
    let home = Home::new();
    let [repo, other, gone] = ["repo", "other", "gone"].map(|name| home.repo(name));
    for (repo, text) in [(&repo, "Here be weirs."), (&other, "Here be locks."), (&gone, "Here be fords.")] {
        home.json(&repo.path, &["add", text]);
    }
    let listed = home.json(&repo.path, &["projects", "list"]);
    let project = listed["projects"].as_array().unwrap().iter().find(|it| it["name"] == "other").unwrap();
    let id = project["id"].as_str().unwrap();
    std::fs::remove_dir_all(&gone.path).unwrap();
    let web = Web::start(&home, &repo.path, &[]);
    let query = json!({"query": "Here be"});
    // The first answer to a caller also says how many texts have no embedding.
    for path in ["/mcp", "/mcp/other"] {
        web.call_in(path, "search_project_memory", query.clone());
    }
    let [own, by_id, by_name, itself] = ["/mcp", &format!("/mcp/{id}"), "/mcp/other", "/mcp/repo"]
        .map(|path| web.call_in(path, "search_project_memory", query.clone()));
    assert!(own.contains("weirs") && !own.contains("locks"), "{own}");
    assert!(by_id.contains("locks") && !by_id.contains("weirs"), "{by_id}");
    assert_eq!((by_name, itself), (by_id, own));
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    // What was remembered of a directory outlives it.
    assert!(web.call_in("/mcp/gone", "search_project_memory", query).contains("fords"));
    let answers = ["/mcp/nothing", "/mcp/0123456789abcdef", "/mcp/..%2Frepo"].map(|path| {
        let answer = web.post_to(path, &ping);
        (answer.status, answer.body)
    });
    assert!(answers.iter().all(|answer| *answer == answers[0] && answer.0 == 404), "{answers:?}");
}

#[test]
fn the_server_ends_within_two_seconds() {
    let ground = Ground::new();
    ground.mock.behaves(&Manner::Hangs);
    let mut web = Web::start(&ground.home, &ground.project.path, &[]);
    let open = |web: &Web| {
        let body = call(1, TOOL, json!({"session_id": "lease", "instructions": "Is it?"})).to_string();
        let head = web.head("POST", "/mcp", &["Content-Type: application/json"]);
        let mut stream = web.connect();
        stream.write_all(format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes()).unwrap();
        stream
    };
    let waiting = open(&web);
    crate::harness::eventually(|| ground.mock.requests() == 1);
    let took = web.end();
    assert!(took < Duration::from_secs(2), "{took:?}");
    assert_ne!(read(waiting).status, 200);
    let mut idle = Web::start(&ground.home, &ground.project.path, &["--metrics", "0"]);
    let _kept = idle.connect();
    let took = idle.end();
    assert!(took < Duration::from_secs(2), "{took:?}");
}
