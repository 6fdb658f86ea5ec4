//! Wherever a call contains a secret, the secret reaches no disk, no answer and no log.

use serde_json::{Value, json};

use crate::harness::{Home, Server};

/// Returns characters of `alphabet` that are always the same and look random.
pub fn noise(alphabet: &str, length: usize, mut state: u64) -> String {
    let alphabet: Vec<char> = alphabet.chars().collect();
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        alphabet[(state >> 33) as usize % alphabet.len()]
    };
    (0..length).map(|_| next()).collect()
}

pub const LETTERS: &str = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

/// Secrets of several kinds. Each is a whole text and the part of it that must not appear again.
///
/// They are assembled here, so that secret scanners do not report this file.
fn secrets() -> Vec<(String, String)> {
    let mut secrets = Vec::new();
    let mut add = |before: &str, secret: String, after: &str| {
        secrets.push((format!("{before}{secret}{after}"), secret));
    };
    add("", ["AK", "IA"].concat() + &noise("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 16, 1), "");
    add("use ", ["gh", "p_"].concat() + &noise(LETTERS, 36, 2), " to push");
    add(
        "",
        ["xo", "xb-"].concat()
            + &noise("0123456789", 12, 3)
            + "-"
            + &noise("0123456789", 12, 4)
            + "-"
            + &noise(LETTERS, 24, 5),
        "",
    );
    add("stripe: ", ["sk_", "live_"].concat() + &noise(LETTERS, 24, 6), ".");
    add("", ["gl", "pat-"].concat() + &noise(LETTERS, 20, 7), "");
    let jwt = ["ey", "JhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9"].concat();
    add("", format!("{jwt}.eyJzdWIiOiIxMjM0NTY3ODkwIn0.{}", noise(LETTERS, 43, 8)), "");
    add("postgres://admin:", noise(LETTERS, 18, 9), "@db.example.org:5432/app");
    add("password = \"", noise(LETTERS, 22, 10), "\"");
    let body: Vec<String> = (0..5).map(|n| noise(LETTERS, 64, 11 + n)).collect();
    let line = |word: &str| format!("-----{word} RSA PRIVATE KEY-----");
    secrets.push((format!("{}\n{}\n{}", line("BEGIN"), body.join("\n"), line("END")), body[2].clone()));
    secrets
}

#[test]
fn a_secret_is_only_in_the_call() {
    let home = Home::new();
    let repo = home.repo("repo");
    repo.commit("a.txt", "a\n", "Begin");
    for (text, _) in secrets() {
        repo.commit(
            "config.rs",
            &format!("fn config() {{\n    // {text}\n}}\n"),
            &format!("Configure it\n\n{text}"),
        );
    }
    let mut said = vec![home.run(&repo.path, &["import", "git", "--json"]).stdout];
    let mut server = home.serve(&repo.path);
    for (n, (text, _)) in secrets().iter().enumerate() {
        // A name may have 500 bytes, and a whole key has more.
        let short = if text.len() < 400 { text.as_str() } else { "Eve" };
        let message = json!({
            "id": format!("id {n}"), "role": "user", "speaker": short,
            "text": format!("the marmalade key is {text} and no other"),
        });
        said.push(
            server.call("save_messages", json!({"session_id": "keys", "messages": [message]})).to_string(),
        );
        let fact = json!({"text": format!("marmalade {n}: {text}"), "topic": short, "source": short});
        said.push(server.call("store_memory", fact).to_string());
        let owners = json!({"text": format!("marmalade of the owner {n}: {text}"), "scope": "owner"});
        said.push(server.call("store_memory", owners).to_string());
    }
    for query in ["marmalade key", "marmalade owner", "configure"] {
        let found =
            server.call("search_project_memory", json!({"query": query, "k": 50, "max_tokens": 20_000}));
        for hit in found["structuredContent"]["hits"].as_array().unwrap() {
            said.push(server.call("expand_detail", json!({"id": hit["id"]})).to_string());
        }
        said.push(found.to_string());
    }
    assert!(said.iter().any(|text| text.contains("[REDACTED:")), "the texts are there, without the secrets");
    said.push(server.request("resources/read", json!({"uri": "tiro://session/keys"})).to_string());
    said.push(server.call("list_sessions", json!({})).to_string());
    said.push(server.end());
    for args in [&["export"][..], &["sessions"], &["stats"], &["search", "marmalade", "--k", "50"]] {
        let ran = home.run(&repo.path, args);
        said.extend([ran.stdout, ran.stderr]);
    }
    for (text, secret) in secrets() {
        assert_eq!(home.files_with(&secret), Vec::<std::path::PathBuf>::new(), "{text}");
        let leak = said.iter().find(|said| said.contains(&secret));
        assert!(leak.is_none(), "{text} came back in {}", leak.unwrap());
    }
}

/// An agent can use any text as the name of a conversation, and the name is stored, listed and indexed.
#[test]
fn a_secret_in_the_name_of_a_conversation_is_replaced_there_too() {
    let home = Home::new();
    let mut server = home.serve(&home.dir("project"));
    let (_, secret) = secrets().swap_remove(1);
    let name = format!("debug {secret}");
    let messages = json!([{"id": "1", "role": "user", "text": "the tangerine rolls"}]);
    let mut said: Vec<Value> =
        vec![server.call("save_messages", json!({"session_id": name, "messages": messages}))];
    said.push(server.call("store_memory", json!({"text": "tangerines roll", "session_id": name})));
    said.push(server.call("list_sessions", json!({})));
    said.push(server.call("search_project_memory", json!({"query": "tangerine"})));
    let narrowed = server.call("search_project_memory", json!({"query": "tangerine", "sessions": [name]}));
    assert_eq!(
        narrowed["structuredContent"]["hits"].as_array().unwrap().len(),
        2,
        "its own name still finds it"
    );
    said.push(narrowed);
    said.push(server.call("forget_context", json!({"session_id": name})));
    assert_eq!(said.last().unwrap()["structuredContent"]["count"], 2);
    let log = server.end();
    assert!(!log.contains(&secret) && said.iter().all(|said| !said.to_string().contains(&secret)));
    assert_eq!(home.files_with(&secret), Vec::<std::path::PathBuf>::new());
}

/// Returns the digits of the one mark in `text`.
fn digits(text: &str) -> String {
    let (_, rest) = text.split_once("[REDACTED:").unwrap_or_else(|| panic!("no mark: {text}"));
    rest.split_once(']').unwrap().0.split_once(':').unwrap().1.to_owned()
}

/// Marks used to be the same hash in the whole installation. So an attacker could save 2,560 guesses in another
/// project, and the right guess got the mark of the secret.
#[test]
fn a_mark_confirms_no_guess_from_another_conversation() {
    const GUESSES: usize = 2560;
    const RIGHT: [usize; 3] = [100, 1234, 2000];
    let home = Home::new();
    let (victim, attacker) = (home.dir("victim"), home.dir("attacker"));
    let text = |n: usize| format!("password = \"{}{n}\"", noise(LETTERS, 18, 77));
    let save = |project: &std::path::Path, session: &str, which: &[usize]| {
        let message = |n: &usize| json!({"id": n.to_string(), "role": "user", "text": text(*n)});
        let messages: Vec<Value> = which.iter().map(message).collect();
        home.serve(project).data("save_messages", json!({"session_id": session, "messages": messages}));
    };
    let marks = |project: &std::path::Path, session: &str| -> Vec<String> {
        let exported = home.run(project, &["export"]).stdout;
        let lines = exported.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let own = lines.filter(|each| each["session_id"] == session);
        let mut marks: Vec<(usize, String)> = own
            .map(|each| {
                let n = each["source_id"].as_str().unwrap().parse().unwrap();
                (n, digits(each["text"].as_str().unwrap()))
            })
            .collect();
        marks.sort();
        marks.into_iter().map(|(_, digits)| digits).collect()
    };
    save(&victim, "s", &RIGHT);
    let secrets = marks(&victim, "s");
    assert!(secrets.iter().all(|digits| digits.len() == 3), "{secrets:?}");
    let all: Vec<usize> = (0..GUESSES).collect();
    for (project, session) in [(&attacker, "s"), (&victim, "t")] {
        save(project, session, &all);
        let tried = marks(project, session);
        assert_eq!(tried.len(), GUESSES);
        let are_right = RIGHT.iter().zip(&secrets).all(|(n, secret)| tried[*n] == *secret);
        let agree =
            secrets.iter().map(|secret| tried.iter().filter(|each| *each == secret).count()).sum::<usize>();
        // One guess in 4,096 matches by chance, and the right guess no more often than any other.
        assert!(!are_right && agree < 40, "{session}: {agree}");
    }
    // Within a conversation, the same secret still has the same mark.
    let message = json!([{"id": "again", "role": "assistant", "text": text(RIGHT[1])}]);
    let mut server = home.serve(&victim);
    let id = server.data("save_messages", json!({"session_id": "s", "messages": message}))["ids"][0].take();
    let opened = server.data("expand_detail", json!({"id": id}));
    assert_eq!(digits(opened["text"].as_str().unwrap()), secrets[1]);
}

/// If a message had been stored with marks of another version or machine, importing it again used to be a conflict.
#[test]
fn texts_that_differ_only_in_their_marks_are_the_same() {
    let home = Home::new();
    let mut server = home.serve(&home.dir("project"));
    let (_, secret) = secrets().swap_remove(7);
    let save = |server: &mut Server, text: &str| {
        let messages = json!([{"id": "1", "role": "user", "text": text}]);
        server.data("save_messages", json!({"session_id": "s", "messages": messages}))
    };
    assert_eq!(save(&mut server, "password = \"[REDACTED:password:01234567]\" it is")["saved"], 1);
    let again = save(&mut server, &format!("password = \"{secret}\" it is"));
    assert_eq!((&again["already_stored"], &again["conflicts"]), (&json!(1), &json!([])), "{again}");
    let other = save(&mut server, &format!("password = \"{secret}\" it was"));
    assert_eq!(other["conflicts"], json!(["1"]), "{other}");
    let stored = server.data("expand_detail", json!({"id": "s#0"}));
    assert!(
        stored["text"].as_str().unwrap().contains("[REDACTED:password:01234567]"),
        "a former mark stays: {stored}"
    );
}
