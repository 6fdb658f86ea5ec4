//! Over HTTP, a personal key decides who asks: what they see, what they may do, and until when.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Stdio;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio_rustls::rustls;

use crate::consults::Ground;
use crate::harness::{Home, Repo};
use crate::web::Web;

/// Makes a key, and returns its text and its id.
fn key(home: &Home, repo: &Repo, args: &[&str]) -> (String, String) {
    let made = home.json(&repo.path, &[&["user", "add"], args].concat());
    (made["key"].as_str().unwrap().to_owned(), made["id"].as_str().unwrap().to_owned())
}

/// Makes the team `core` with these users.
fn team(home: &Home, repo: &Repo, users: &[&str]) {
    home.json(&repo.path, &["team", "create", "core"]);
    users.iter().for_each(|user| drop(home.json(&repo.path, &["team", "add", "core", user])));
}

fn ping() -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "ping"})
}

#[test]
fn only_a_valid_key_is_answered() {
    let home = Home::new();
    let repo = home.repo("repo");
    let mut web = Web::start(&home, &repo.path, &[]);
    assert_eq!(web.post(&ping()).status, 200, "without keys, the owner needs none");
    let (ana, id) = key(&home, &repo, &["ana"]);
    let (ben, _) = key(&home, &repo, &["ben", "--expires", "90d"]);
    // The running server notices.
    let refused = web.post(&ping());
    assert_eq!((refused.status, refused.header("www-authenticate")), (401, Some("Bearer")), "{refused:?}");
    let wrong = format!("{}0", &ana[..ana.len() - 1]);
    let of_nobody = "tiro_00000000_".to_owned() + &"0".repeat(64);
    for line in [
        format!("Authorization: Bearer {wrong}"),
        format!("Authorization: Bearer {of_nobody}"),
        format!("Authorization: Basic {ana}"),
        "Authorization: Bearer".to_owned(),
    ] {
        let answer = web.ask("POST", "/mcp", &[&line], ping().to_string().as_bytes());
        assert_eq!((answer.status, &answer.body), (401, &refused.body), "{line}");
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
    }
    // It is a key for MCP, not for the pages.
    web.key = Some(ana.clone());
    assert_eq!(web.post(&ping()).status, 200);
    assert_eq!(web.ask("GET", "/", &[], b"").status, 403);

    // A key that has expired says so.
    let file = home.data().join("owner.db");
    let registry = rusqlite::Connection::open(&file).unwrap();
    let changed = registry.execute("UPDATE user_keys SET expires = 1 WHERE name = 'ben'", []).unwrap();
    assert_eq!(changed, 1);
    drop(registry);
    web.key = Some(ben);
    let expired = web.post(&ping());
    assert!(expired.status == 401 && expired.body.contains("expired"), "{expired:?}");

    // A replaced or revoked key is refused by the next request.
    let rotated = home.json(&repo.path, &["user", "rotate", "ana"]);
    web.key = Some(ana);
    assert_eq!(web.post(&ping()).status, 401);
    web.key = rotated["key"].as_str().map(str::to_owned);
    assert_eq!(web.post(&ping()).status, 200);
    home.json(&repo.path, &["user", "revoke", "ana"]);
    let answer = web.post(&ping());
    assert_eq!((answer.status, answer.body), (401, refused.body));
    let listed = home.json(&repo.path, &["user", "list"]);
    let states: Vec<&str> =
        listed["keys"].as_array().unwrap().iter().map(|key| key["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["revoked", "revoked", "expired"]);
    assert!(listed["keys"][0]["last_used"].is_string() && listed["keys"][0]["id"] == id, "{listed}");
    let secret = web.key.clone().unwrap();
    assert!(home.files_with(&secret[14..]).is_empty(), "no file has the secret of a key");

    // A registry that can't be read opens nothing.
    let registry = rusqlite::Connection::open(&file).unwrap();
    registry.execute("ALTER TABLE user_keys RENAME TO lost", []).unwrap();
    assert_eq!(web.post(&ping()).status, 500);
}

#[test]
fn a_key_opens_only_what_its_scope_allows_and_no_files() {
    let ground = Ground::new();
    let (home, repo) = (&ground.home, &ground.project);
    let mut web = Web::start(home, &repo.path, &[]);
    let own = web.tools();
    assert!(
        own.iter().any(|tool| tool == "chat_with_mock") && own.iter().any(|tool| tool == "explain_lines")
    );
    let [(reads, _), (writes, _), (admin, _)] =
        ["read", "write", "admin"].map(|scope| key(home, repo, &[scope, "--scope", scope]));
    web.key = Some(reads);
    let of_reader = web.tools();
    for tool in ["search_project_memory", "retrieve_context", "list_sessions", "expand_detail"] {
        assert!(of_reader.iter().any(|each| each == tool), "{tool}: {of_reader:?}");
    }
    let listed = web.request("tools/list", json!({}));
    let is_reading = |tool: &Value| tool["annotations"]["readOnlyHint"] == true;
    assert!(listed["tools"].as_array().unwrap().iter().all(is_reading), "{listed}");
    for tool in
        ["store_memory", "forget_context", "configure_llm_provider", "explain_lines", "chat_with_mock"]
    {
        let answer = web.post(&crate::web::call(1, tool, json!({"text": "x"})));
        assert_eq!(answer.json()["error"]["code"], -32602, "{tool}: {answer:?}");
    }
    web.key = Some(writes);
    let of_writer = web.tools();
    assert!(of_writer.iter().any(|tool| tool == "stash_context"), "{of_writer:?}");
    web.key = Some(admin);
    let of_admin = web.tools();
    for (tool, tools) in [("configure_llm_provider", &of_writer), ("explain_lines", &of_admin)] {
        assert!(!tools.iter().any(|each| each == tool), "{tools:?}");
    }
    assert!(of_admin.iter().any(|tool| tool == "configure_llm_provider"), "{of_admin:?}");
    assert!(!of_admin.iter().any(|tool| tool.starts_with("chat_with") || tool == "count_tokens"));
    assert!(home.run(&repo.path, &["user", "add", "eve", "--scope", "all"]).stderr.contains("no scope"));
}

/// Calls everything that reads with texts that lead to `word`, and returns what it answers.
fn everything(web: &Web, word: &str, ids: &[String]) -> String {
    let mut all = String::new();
    let mut call = |tool: &str, arguments: Value| all += &format!("\n{tool}: {}", web.call(tool, arguments));
    for query in [word, "bridge", "what was decided about the bridge"] {
        call("search_project_memory", json!({"query": query}));
        call("retrieve_context", json!({"query": query}));
        call("get_relevant_snippets", json!({"query": query}));
        call("get_context_summary", json!({"query": query}));
        call("retrieve_stashed_context", json!({"query": query}));
    }
    for session in ["plan", &format!("plan-{word}")] {
        call("retrieve_context", json!({"query": word, "session_id": session}));
        call("summarize_conversation", json!({"session_id": session}));
        call("expand_detail", json!({"id": session}));
    }
    ids.iter().for_each(|id| call("expand_detail", json!({"id": id})));
    ids.iter().for_each(|id| call("mark_important", json!({"ids": [id]})));
    call("merge_stashed_context", json!({"ids": ids}));
    call("list_sessions", json!({}));
    call("forget_context", json!({"query": word, "dry_run": true}));
    all += &web.request("resources/list", json!({})).to_string();
    let mut read = |uri: String| {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": uri}});
        all += &web.post(&message).body;
    };
    ids.iter().for_each(|id| read(format!("tiro://memory/{id}")));
    read("tiro://session/plan".to_owned());
    read(format!("tiro://session/plan-{word}"));
    all
}

/// Saves a message, a fact of the project, a fact of the owner and a stashed text that have `word`. Returns their ids.
fn save(web: &Web, word: &str) -> Vec<String> {
    let text = |what: &str| format!("{what}: the bridge of {word} is decided");
    let mut answers = String::new();
    for session in ["plan", &format!("plan-{word}")] {
        let messages =
            json!([{"role": "user", "text": text("message")}, {"role": "assistant", "text": text("reply")}]);
        answers += &web.call("save_messages", json!({"session_id": session, "messages": messages}));
    }
    answers += &web.call("store_memory", json!({"text": text("fact"), "type": "decision"}));
    answers += &web.call("store_memory", json!({"text": text("own fact"), "scope": "owner"}));
    answers += &web.call("stash_context", json!({"segments": [{"text": text("stashed")}], "topic": word}));
    let words = answers.split(|c: char| !c.is_ascii_alphanumeric());
    let is_id = |word: &&str| {
        word.len() == 14 && word.starts_with('m') && word.bytes().any(|byte| byte.is_ascii_digit())
    };
    let mut ids: Vec<String> = words.filter(is_id).map(str::to_owned).collect();
    ids.dedup();
    ids
}

#[test]
fn nobody_sees_what_another_keeps_private() {
    let home = Home::new();
    let repo = home.repo("repo");
    home.json(&repo.path, &["add", "Everyone may know the bridge of granite."]);
    let [(ana, _), (ben, _)] = ["ana", "ben"].map(|name| key(&home, &repo, &[name]));
    team(&home, &repo, &["ana", "ben"]);
    home.json(&repo.path, &["share", "repo", "--with", "core", "--read"]);
    let mut web = Web::start(&home, &repo.path, &[]);
    let mut of = |key: &str| {
        web.key = Some(key.to_owned());
    };
    of(&ana);
    let of_ana = save(&web, "amberfinch");
    assert!(of_ana.len() >= 3, "{of_ana:?}");
    web.key = Some(ben.clone());
    let of_ben = save(&web, "cobaltheron");
    for (own, others, own_ids, others_ids, key) in [
        ("amberfinch", "cobaltheron", &of_ana, &of_ben, &ana),
        ("cobaltheron", "amberfinch", &of_ben, &of_ana, &ben),
    ] {
        web.key = Some(key.clone());
        let seen = everything(&web, own, own_ids);
        for part in ["message", "fact", "own fact", "stashed"] {
            assert!(seen.contains(&format!("{part}: the bridge of {own}")), "{part} of {own}: {seen}");
        }
        assert!(seen.contains("granite"), "what the owner shares is seen: {seen}");
        let tried = everything(&web, others, others_ids);
        for part in ["message", "fact", "own fact", "stashed", "reply"] {
            assert!(!tried.contains(&format!("{part}: the bridge of {others}")), "{part}: {tried}");
            assert!(!seen.contains(&format!("bridge of {others}")), "{seen}");
        }
    }
    // The owner sees neither, on stdio and on the command line.
    let mut stdio = home.serve(&repo.path);
    for word in ["amberfinch", "cobaltheron"] {
        let hits = stdio.search(&format!("bridge of {word}"));
        assert!(!serde_json::to_string(&hits).unwrap().contains(word), "{hits:?}");
        let listed = home.run(&repo.path, &["list"]).stdout;
        assert!(!listed.contains(word), "{listed}");
    }
    // A key of another server of the same owner, in another project, sees what belongs to this author there too.
    let other = home.repo("other");
    let mut there = Web::start(&home, &other.path, &[]);
    there.key = Some(ana);
    let found = there.call("search_project_memory", json!({"query": "bridge"}));
    assert!(
        found.contains("own fact: the bridge of amberfinch") && !found.contains("cobaltheron"),
        "{found}"
    );
}

/// What only the owner's machine knows isn't told: the branch that is checked out, new commits, and paths.
#[test]
fn nothing_of_the_owners_files_reaches_a_key() {
    let home = Home::new();
    let repo = home.repo("repo");
    let (ana, _) = key(&home, &repo, &["ana"]);
    home.json(&repo.path, &["add", "The gate is red."]);
    team(&home, &repo, &["ana"]);
    home.json(&repo.path, &["share", "repo", "--with", "core", "--write"]);
    repo.commit("gate.txt", "red\n", "Paint the gate on a secret branch");
    let mut web = Web::start(&home, &repo.path, &[]);
    web.key = Some(ana);
    let mut all = web.call("search_project_memory", json!({"query": "gate"}));
    let messages = json!([{"role": "user", "text": "Which colour has the gate?"}]);
    all += &web.call("save_messages", json!({"session_id": "gate", "messages": messages}));
    all += &web.call("retrieve_context", json!({"query": "gate", "session_id": "gate"}));
    all += &web.call("retrieve_context", json!({"query": "gate"}));
    all += &web.call("list_sessions", json!({}));
    assert!(all.contains("The gate is red"), "{all}");
    for part in
        ["secret branch", repo.path.to_str().unwrap(), home.data().to_str().unwrap(), &repo.head()[..8]]
    {
        assert!(!all.contains(part), "{part}: {all}");
    }
}

/// A certificate for `memory.test`, made for this test alone.
const CERTIFICATE: &str = "\
-----BEGIN CERTIFICATE-----
MIIBmDCCAT6gAwIBAgIUMkEyL9/BpGUkdjrJhFKUwRQdMHwwCgYIKoZIzj0EAwIw
FjEUMBIGA1UEAwwLbWVtb3J5LnRlc3QwIBcNMjYxMTMwMTMxNzQ2WhgPMjEyNjEx
MDYxMzE3NDZaMBYxFDASBgNVBAMMC21lbW9yeS50ZXN0MFkwEwYHKoZIzj0CAQYI
KoZIzj0DAQcDQgAEZS0XtwSMZBOjj57dDfRUayUuQ+LcIqCL/+QPUdn3iWjrxTUa
w20YmEzRsAiTmHIIeTBR8SLiS4XnQ4Sih2MM4qNoMGYwHQYDVR0OBBYEFJ+YDE4g
fsmM5TL+VoKB80k5127jMB8GA1UdIwQYMBaAFJ+YDE4gfsmM5TL+VoKB80k5127j
MBYGA1UdEQQPMA2CC21lbW9yeS50ZXN0MAwGA1UdEwEB/wQCMAAwCgYIKoZIzj0E
AwIDSAAwRQIhAJ97UuT/IiwPDSFv0M7UhHN/ZCQieVyOw+bJfxZxaBbAAiAvkBfN
vsK0RmFZGRB5VhbnGMRa8JeAvJMqeVGgLwc6Hw==
-----END CERTIFICATE-----
";

const PRIVATE_KEY: &str = "\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgLsZnlyg1V+22X48p
nLsCsz5Q1H/QIdGzWSrarKsOdIuhRANCAARlLRe3BIxkE6OPnt0N9FRrJS5D4twi
oIv/5A9R2feJaOvFNRrDbRiYTNGwCJOYcgh5MFHxIuJLhedDhKKHYwzi
-----END PRIVATE KEY-----
";

#[test]
fn another_machine_is_answered_by_tls_and_only_with_a_key() {
    let home = Home::new();
    let repo = home.repo("repo");
    let (ana, _) = key(&home, &repo, &["ana"]);
    for (name, text) in [("chain.pem", CERTIFICATE), ("key.pem", PRIVATE_KEY)] {
        std::fs::write(home.path().join(name), text).unwrap();
    }
    let [chain, private] = ["chain.pem", "key.pem"].map(|name| home.path().join(name).display().to_string());
    let words = ["serve", "--http", "0.0.0.0:0", "--json", "--host", "memory.test"];
    let mut command = home.tiro(&repo.path, &words);
    command.args(["--tls-cert", &chain, "--tls-key", &private]);
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let addresses: Value = serde_json::from_str(&line).unwrap();
    let mcp = addresses["mcp"].as_str().unwrap();
    assert!(mcp.starts_with("https://memory.test:") && addresses["pages"].is_null(), "{addresses}");
    let port = crate::web::port_of(mcp);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = rustls::RootCertStore::empty();
    let certificate = rustls::pki_types::pem::PemObject::from_pem_slice(CERTIFICATE.as_bytes()).unwrap();
    roots.add(certificate).unwrap();
    let config = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = Arc::new(config.unwrap().with_root_certificates(roots).with_no_client_auth());
    let ask = |host: &str, key: &str| {
        let name = "memory.test".try_into().unwrap();
        let client = rustls::ClientConnection::new(Arc::clone(&config), name).unwrap();
        let mut stream = rustls::StreamOwned::new(client, TcpStream::connect(("127.0.0.1", port)).unwrap());
        let body = ping().to_string();
        let head = format!("POST /mcp HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n{key}");
        let rest = format!("Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        stream.write_all(format!("{head}{rest}").as_bytes()).unwrap();
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        answer.split(' ').nth(1).unwrap_or_default().to_owned()
    };
    let own = format!("Authorization: Bearer {ana}\r\n");
    let answers = [("memory.test", own.as_str()), ("memory.test", ""), ("evil.example", &own)]
        .map(|(host, key)| ask(host, key));
    assert_eq!(answers, ["200", "401", "403"]);
    let mut plain = TcpStream::connect(("127.0.0.1", port)).unwrap();
    plain.write_all(b"GET /healthz HTTP/1.1\r\nHost: memory.test\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP"), "nothing is answered without TLS");
    child.kill().unwrap();
    child.wait().unwrap();
}
