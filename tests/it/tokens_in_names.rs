//! A secret in a name — of a file, a folder, a session, a branch, a project, a property — goes no further than one in a text.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::consults::{Ground, TOOL};
use crate::harness::{Home, Server};
use crate::mock::{Manner, Mock};
use crate::redaction::{LETTERS, noise};
use crate::spends::write;
use crate::talk::Talk;

/// Returns another token for each number.
fn token(number: u64) -> String {
    ["gh", "p_"].concat() + &noise(LETTERS, 36, 1000 + number)
}

/// What was said and sent, and where.
#[derive(Default)]
struct Heard(Vec<(String, String)>);

impl Heard {
    fn note(&mut self, place: &str, said: impl ToString) {
        self.0.push((place.to_owned(), said.to_string()));
    }

    /// Calls a tool, whether it succeeds or not.
    fn call(&mut self, server: &mut Server, tool: &str, arguments: Value) -> Value {
        let said = server.call(tool, arguments);
        self.note(&format!("the answer of {tool}"), &said);
        said
    }

    /// Runs a command, whether it succeeds or not.
    fn run(&mut self, home: &Home, directory: &Path, args: &[&str]) {
        let ran = home.run(directory, args);
        self.note(&format!("what `tiro {}` prints", args[0]), ran.stdout + &ran.stderr);
    }

    fn requests(&mut self, mock: &Mock) {
        for (head, body) in mock.seen.lock().unwrap().iter() {
            self.note("a request to the assistant", format!("{head}{body}"));
        }
    }

    /// Returns where each of `tokens` is found: what it names, and the places.
    fn places(&self, home: &Home, tokens: &[(&str, String)]) -> Vec<String> {
        let mut places = Vec::new();
        for (named, token) in tokens {
            let said = self.0.iter().filter(|(_, said)| said.contains(token)).map(|(place, _)| place.clone());
            let stored: Vec<PathBuf> = home.files_with(token);
            let stored = stored.iter().map(|path| path.file_name().unwrap().to_string_lossy().into_owned());
            let mut found: Vec<String> = said.chain(stored).collect();
            found.dedup();
            places.extend((!found.is_empty()).then(|| format!("{named}: {}", found.join(", "))));
        }
        places
    }
}

#[test]
fn a_token_in_the_name_of_a_file_is_left_out_of_a_consult() {
    let ground = Ground::new();
    let tokens = [
        ("a file", token(1)),
        ("a folder", token(2)),
        ("a named file", token(3)),
        ("a named folder", token(4)),
        ("an attachment", token(5)),
        ("an image", token(6)),
        ("a missing file", token(7)),
        ("a file with priority", token(8)),
    ];
    let [file, folder, named, named_folder, attached, image, missing, first] =
        [0, 1, 2, 3, 4, 5, 6, 7].map(|n| tokens[n].1.clone());
    ground.project.write(&format!("src/{file}.rs"), "fn quince() {}\n");
    ground.project.write(&format!("src/{folder}/inner.rs"), "fn quince() {}\n");
    ground.project.write(&format!("{named}.rs"), "fn quince() {}\n");
    ground.project.write(&format!("{named_folder}/inner.rs"), "fn quince() {}\n");
    ground.project.write(&format!("{attached}.md"), "fn quince() {}\n");
    ground.project.write(&format!("{image}.png"), "no image\n");
    ground.project.write(&format!("{first}.rs"), "fn quince() {}\n");
    ground.project.git(&["checkout", "-q", "-b", &token(9)]);
    ground.project.commit("README.md", "# It\n", "Begin");
    ground.mock.behaves(&Manner::Calls(
        vec![("search_session_attachments", json!({"query": "quince"}))],
        "It is a quince.".into(),
    ));
    let (mut server, mut heard) = (ground.serve(), Heard::default());
    let context = json!(["src", format!("{named}.rs"), named_folder, format!("{missing}.rs"), "README.md"]);
    let asked = json!({"session_id": "names", "instructions": "What is it?", "context": context,
        "priority_context": [format!("{first}.rs")], "attachments": [format!("{attached}.md")]});
    let answer = heard.call(&mut server, TOOL, asked.clone());
    let receipt = answer["structuredContent"]["receipt"].to_string();
    assert_eq!(receipt.matches("has a secret in its name").count(), 4, "{receipt}");
    assert!(receipt.contains("src/a.rs"), "what lies beside it is sent: {receipt}");
    heard.call(&mut server, TOOL, json!({"session_id": "names", "instructions": "And now?"}));
    heard.call(
        &mut server,
        TOOL,
        json!({"session_id": "images", "instructions": "And it?", "images": [format!("{image}.png")]}),
    );
    heard.call(&mut server, "count_tokens", json!({"paths": ["src", format!("{named}.rs")]}));
    heard.call(&mut server, "describe_session", json!({"session_id": "names"}));
    heard.call(&mut server, "list_sessions", json!({}));
    heard.call(&mut server, "reset_session", json!({"session_id": "names"}));
    heard.call(&mut server, "search_project_memory", json!({"query": "quince"}));
    let here = &ground.project.path;
    heard.run(
        &ground.home,
        here,
        &["chat", "--preview", "--context", "src", "--context", &named_folder, "Is it?"],
    );
    heard.run(&ground.home, here, &["chat", "--context", "src", "--context", &named_folder, "Is it?"]);
    heard.run(&ground.home, here, &["provider", "sent"]);
    heard.run(&ground.home, here, &["stats"]);
    heard.note("the log", server.end());
    heard.requests(&ground.mock);
    assert_eq!(heard.places(&ground.home, &tokens), Vec::<String>::new());
}

#[test]
fn a_token_in_a_schema_or_another_argument_of_a_consult_is_replaced() {
    let ground = Ground::new();
    let tokens = [
        ("a property", token(10)),
        ("an enum", token(11)),
        ("the title of a schema", token(12)),
        ("a required property", token(13)),
        ("a definition", token(14)),
        ("a call", token(15)),
        ("a session", token(16)),
        ("a form", token(17)),
        ("a branch", token(18)),
        ("a pattern", token(19)),
    ];
    let [property, of_enum, title, required, definition, call, session, form, branch, pattern] =
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9].map(|n| tokens[n].1.clone());
    ground.project.git(&["checkout", "-q", "-b", &branch]);
    ground.project.commit("README.md", "# It\n", "Begin");
    ground.mock.behaves(&Manner::Says(json!({"answer": "yes"}).to_string()));
    let (mut server, mut heard) = (ground.serve(), Heard::default());
    let schema = json!({"type": "object", "title": title, "required": [required, "answer"],
        "properties": {"answer": {"type": "string", "enum": [of_enum, "yes"]},
            property: {"type": "string", "pattern": pattern}, required: {"$ref": format!("#/$defs/{definition}")}},
        "$defs": {definition: {"type": "string"}}});
    let asked = json!({"session_id": format!("about {session}"), "instructions": "Is it?", "context": ["src"],
        "structured_output_schema": schema, "output_format": format!("as in {form}"), "call_id": call});
    let answer = heard.call(&mut server, TOOL, asked.clone());
    assert_eq!(answer["structuredContent"]["status"], "done", "{answer}");
    heard.call(&mut server, TOOL, asked);
    heard.call(&mut server, "describe_session", json!({"session_id": format!("about {session}")}));
    heard.call(&mut server, "search_project_memory", json!({"query": "is it"}));
    heard.call(&mut server, "list_sessions", json!({}));
    heard.run(&ground.home, &ground.project.path, &["export"]);
    heard.run(&ground.home, &ground.project.path, &["show", &format!("about {session}@mock")]);
    heard.note("the log", server.end());
    heard.requests(&ground.mock);
    assert_eq!(heard.places(&ground.home, &tokens), Vec::<String>::new());
}

/// The mock sends its answer in two halves, so the token arrives in two pieces.
#[test]
fn a_token_that_is_streamed_in_pieces_is_replaced_on_the_terminal() {
    let ground = Ground::new();
    let secret = token(20);
    for words in ["", "one two three four five. ", &"a plain sentence. ".repeat(60)] {
        for after in ["", ".", &format!(" and more. {}", "a plain sentence. ".repeat(60))] {
            ground.mock.behaves(&Manner::Says(format!("{words}{secret}{after}")));
            let ran = ground.home.run(&ground.project.path, &["chat", "What is it?"]);
            assert!(ran.is_ok && ran.stdout.contains("[REDACTED:"), "{ran:?}");
            assert!(!ran.stdout.contains(&secret[..20]) && !ran.stderr.contains(&secret[..20]), "{ran:?}");
        }
    }
    assert_eq!(ground.home.files_with(&secret), Vec::<PathBuf>::new());
}

#[test]
fn a_token_in_a_name_of_the_stash_or_of_a_memory_is_replaced() {
    let home = Home::new();
    let project = home.dir("project");
    let tokens = [
        ("a topic of the stash", token(30)),
        ("a source of the stash", token(31)),
        ("a session of the stash", token(32)),
        ("a session", token(33)),
        ("the id of a message", token(34)),
        ("a speaker", token(35)),
        ("a topic", token(36)),
        ("a source", token(37)),
        ("a reference", token(38)),
        ("a branch", token(39)),
        ("a path", token(40)),
        ("a search", token(41)),
        ("a tag", token(42)),
    ];
    let of = |n: usize| tokens[n].1.clone();
    let (mut server, mut heard) = (home.serve(&project), Heard::default());
    let messages = json!([{"id": of(4), "role": "user", "speaker": of(5), "text": "the tangerine rolls",
        "branch": of(9), "paths": [format!("src/{}.rs", of(10))], "references": [of(8)]}]);
    heard.call(&mut server, "save_messages", json!({"session_id": of(3), "messages": messages}));
    let fact = json!({"text": "a tangerine", "topic": of(6), "source": of(7), "tags": [of(12)],
        "references": [of(8)], "branch": of(9), "session_id": of(3)});
    heard.call(&mut server, "store_memory", fact);
    let segments =
        json!([{"text": "a mandarin", "source": of(1), "session_id": of(2), "references": [of(8)]}]);
    heard.call(&mut server, "stash_context", json!({"segments": segments, "topic": of(0)}));
    heard.call(&mut server, "retrieve_stashed_context", json!({"query": of(11), "topic": of(0)}));
    heard.call(&mut server, "retrieve_stashed_context", json!({}));
    heard.call(&mut server, "merge_stashed_context", json!({"segment_ids": [format!("{}#0", of(2))]}));
    heard.call(&mut server, "search_project_memory", json!({"query": of(11), "sessions": [of(3)]}));
    heard.call(&mut server, "search_project_memory", json!({"query": "tangerine mandarin"}));
    heard.call(&mut server, "retrieve_context", json!({"query": of(11), "session_id": of(3)}));
    heard.call(&mut server, "summarize_conversation", json!({"session_id": of(3), "focus": of(11)}));
    heard.call(&mut server, "get_context_summary", json!({"conversation_ids": [of(3)], "query": of(11)}));
    heard.call(&mut server, "expand_detail", json!({"id": format!("{}#0", of(3))}));
    heard.call(&mut server, "forget_context", json!({"session_id": of(2)}));
    heard.call(&mut server, "list_sessions", json!({}));
    for args in [&["export"][..], &["sessions"], &["stats"], &["search", "tangerine"], &["doctor"]] {
        heard.run(&home, &project, args);
    }
    heard.note("the log", server.end());
    assert_eq!(heard.places(&home, &tokens), Vec::<String>::new());
}

#[test]
fn a_token_in_a_name_of_git_or_a_transcript_is_replaced() {
    let home = Home::new();
    let repo = home.repo("repo");
    let tokens = [
        ("a committed file", token(50)),
        ("a committed folder", token(51)),
        ("a branch", token(52)),
        ("a tag", token(53)),
        ("an author", token(54)),
        ("a file that was edited", token(55)),
        ("the branch of a session", token(56)),
        ("a renamed file", token(57)),
        ("a function", token(58)),
    ];
    let of = |n: usize| tokens[n].1.clone();
    repo.commit("README.md", "# It\n", "Begin the quince");
    repo.git(&["checkout", "-q", "-b", &of(2)]);
    repo.git(&["config", "user.name", "x"]);
    repo.commit(
        &format!("src/{}.rs", of(0)),
        &format!("fn quince() {{}}\nfn {}() {{}}\n", of(8)),
        "Add the quince",
    );
    repo.git(&["mv", &format!("src/{}.rs", of(0)), &format!("src/{}.rs", of(7))]);
    repo.commit(&format!("{}/a.rs", of(1)), "fn quince() {}\n", "Move the quince");
    repo.git(&["tag", &of(3)]);
    repo.git(&[
        "-c",
        "core.abbrev=no",
        "commit",
        "-q",
        "--allow-empty",
        "-m",
        "Name the quince",
        "--author",
        &format!("{} <ada@example.org>", of(4)),
    ]);
    let talk = Talk::new(&home, "41799f8d-5af3-46fb-8473-94dff3a77ff6", &repo.path, &of(6));
    talk.says("user", 0, "plant the quince");
    talk.edits(1, &format!("src/{}.rs", of(5)));
    talk.calls(2, "Bash", json!({"command": format!("cat src/{}.rs", of(5))}), "fn quince() {}");
    let mut heard = Heard::default();
    heard.run(&home, &repo.path, &["import", "git"]);
    heard.run(&home, &repo.path, &["import", "claude-code"]);
    let mut server = home.serve(&repo.path);
    let found = heard.call(
        &mut server,
        "search_project_memory",
        json!({"query": "quince", "k": 20, "max_tokens": 9000}),
    );
    assert!(found["structuredContent"]["hits"].as_array().unwrap().len() > 3, "{found}");
    for hit in found["structuredContent"]["hits"].as_array().unwrap() {
        heard.call(&mut server, "expand_detail", json!({"id": hit["id"]}));
    }
    server.save("now", "1", "a quince of now");
    heard.call(&mut server, "search_project_memory", json!({"query": "quince", "branch": of(2)}));
    heard.call(&mut server, "retrieve_context", json!({"query": "quince"}));
    heard.call(&mut server, "list_sessions", json!({}));
    for args in [&["export"][..], &["sessions"], &["stats"], &["doctor"], &["projects"], &["index"]] {
        heard.run(&home, &repo.path, args);
    }
    heard.note("the log", server.end());
    assert_eq!(heard.places(&home, &tokens), Vec::<String>::new());
}

/// The root of a project must be stored, since a project is found again by it: in the list of projects, and in the list of
/// files that `tiro init` wrote, which the user is shown. Nothing else has the name.
#[test]
fn a_token_in_the_name_of_a_project_is_replaced() {
    let home = Home::new();
    let tokens = [("a project", token(60))];
    let repo = home.repo(&format!("parent/{}", tokens[0].1));
    let mock = Mock::start();
    let model = format!(
        "[providers.mock]\nservice = 'openai-compatible'\nendpoint = '{}'\nmodel = 'm'\nwindow = 16000\n",
        mock.endpoint()
    );
    write(&home, &model);
    repo.commit("a.rs", "fn quince() {}\n", "Begin the quince");
    let (mut server, mut heard) = (home.serve(&repo.path), Heard::default());
    heard.call(&mut server, "save_messages", json!({"session_id": "s",
        "messages": [{"id": "1", "role": "user", "text": "a quince"}, {"id": "2", "role": "assistant", "text": "yes"}]}));
    let whole = repo.path.join("a.rs");
    let chat = json!({"session_id": "s", "instructions": "Is it?", "context": [whole]});
    let answer = heard.call(&mut server, TOOL, chat);
    assert_eq!(answer["structuredContent"]["receipt"]["sent"]["paths"], json!(["a.rs"]), "{answer}");
    let again = heard.call(&mut server, TOOL, json!({"session_id": "s", "instructions": "And now?"}));
    assert_eq!(again["structuredContent"]["receipt"]["unchanged"], 1, "{again}");
    heard.call(&mut server, "search_project_memory", json!({"query": "quince"}));
    heard.call(&mut server, "store_memory", json!({"text": "a quince", "source": whole}));
    heard.call(&mut server, "list_sessions", json!({}));
    heard.call(&mut server, "retrieve_context", json!({"query": "quince"}));
    for args in [
        &["export"][..],
        &["sessions"],
        &["stats"],
        &["doctor"],
        &["projects"],
        &["projects", "--json"],
        &["import", "git"],
        &["init", "--yes"],
        &["init", "--remove", "--yes"],
        &["chat", "--preview", "Is it?"],
        &["backup", "--to", "../../backup"],
    ] {
        heard.run(&home, &repo.path, args);
    }
    heard.note("the log", server.end());
    heard.requests(&mock);
    let places = heard.places(&home, &tokens);
    assert_eq!(places, ["a project: what `tiro init` prints, owner.db"]);
}
