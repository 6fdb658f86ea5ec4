//! Tests that ask an assistant over MCP. A mock stands for the provider; what it received decides.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::{Home, Repo, Server};
use crate::mock::{Manner, Mock};
use crate::spends::write;

/// A home with a project, and an assistant behind it.
pub struct Ground {
    pub home: Home,
    pub project: Repo,
    pub mock: Mock,
}

pub const TOOL: &str = "chat_with_mock";

impl Ground {
    pub fn new() -> Ground {
        Ground::with("window = 16000\n", "")
    }

    /// Returns a ground whose provider and whose configuration have more lines.
    pub fn with(provider: &str, more: &str) -> Ground {
        let home = Home::new();
        let project = home.repo("project");
        let mock = Mock::start();
        mock.behaves(&Manner::Says("Keep the lease at 30 seconds.".into()));
        write(
            &home,
            &format!(
                "{more}[providers.mock]\nservice = 'openai-compatible'\nendpoint = '{}'\nmodel = 'm'\n{provider}",
                mock.endpoint()
            ),
        );
        for (path, lines) in [("src/a.rs", 40), ("src/b.rs", 60), ("src/big.rs", 2500)] {
            project.write(path, &code(path, lines));
        }
        Ground { home, project, mock }
    }

    pub fn serve(&self) -> Server {
        self.home.serve(&self.project.path)
    }

    /// Returns the texts of the messages of the request number `at`, without the system prompt.
    fn messages(&self, at: usize) -> Vec<String> {
        let (_, body) = &self.mock.seen.lock().unwrap()[at];
        let messages = body["messages"].as_array().unwrap();
        messages[1..]
            .iter()
            .map(|message| message["content"].as_str().unwrap_or_default().to_owned())
            .collect()
    }

    fn last(&self) -> Vec<String> {
        self.messages(self.mock.requests() - 1)
    }
}

fn code(path: &str, lines: usize) -> String {
    (0..lines).map(|n| format!("fn f{n}() {{ call(\"{path}\", {n}) }}\n")).collect()
}

fn ask(instructions: &str) -> Value {
    json!({"session_id": "lease", "instructions": instructions, "context": ["src"]})
}

#[test]
fn a_thread_goes_on_in_another_process_and_sends_only_changes() {
    let ground = Ground::new();
    let first = ground.serve().data(TOOL, ask("Is the lease long enough?"));
    assert_eq!(first["answer"], "Keep the lease at 30 seconds.");
    assert_eq!(first["receipt"]["sent"]["paths"], json!(["src/a.rs", "src/b.rs"]));
    assert_eq!(first["receipt"]["overflow"]["paths"], json!(["src/big.rs"]));
    let sent = ground.messages(0);
    assert!(
        sent[0].contains("[file src/a.rs | ")
            && sent[0].ends_with("[instructions]\nIs the lease long enough?")
    );

    ground.project.write("src/a.rs", &code("src/a.rs", 40).replace("fn f7()", "fn seven()"));
    fs::remove_file(ground.project.path.join("src/b.rs")).unwrap();
    ground.project.write("src/new.rs", "fn new() {}\n");
    let mut server = ground.serve();
    let second = server.data(TOOL, ask("And now?"));
    let receipt = &second["receipt"];
    assert_eq!(receipt["diffed"]["paths"], json!(["src/a.rs"]));
    assert_eq!(receipt["removed"]["paths"], json!(["src/b.rs"]));
    assert_eq!(receipt["overflow"]["paths"], json!(["src/big.rs", "src/new.rs"]));
    let again = ground.messages(1);
    assert_eq!(again[..1], sent[..1], "the prompt begins with the one before it");
    assert_eq!(again[1], "Keep the lease at 30 seconds.");
    assert!(
        again[2].contains("-fn f7()")
            && again[2].contains("+fn seven()")
            && again[2].contains("[removed src/b.rs: ")
    );

    ground.project.write("src/big.rs", &code("src/big.rs", 2500).replace("fn f7()", "fn seven()"));
    let third = server.data(TOOL, json!({"session_id": "lease", "instructions": "Once more"}));
    assert_eq!((&third["receipt"]["unchanged"], &third["receipt"]["turn"]), (&json!(1), &json!(3)));
    let last = "[changed since the last message, to be searched: src/big.rs]\n[instructions]\nOnce more";
    assert_eq!(ground.last()[4], last, "nothing else is added");

    // The exchange is memory of the project.
    let hits = server.search("lease 30 seconds");
    let kinds: Vec<&Value> = hits.iter().map(|hit| &hit["kind"]).collect();
    assert!(kinds.contains(&&json!("message")) && kinds.contains(&&json!("conversation")), "{hits:?}");
    assert!(hits.iter().any(|hit| hit["speaker"] == "mock" && hit["kind"] == "conversation"), "{hits:?}");
    assert!(
        hits.iter().all(|hit| !hit["text"].as_str().unwrap().contains("fn f1()")),
        "files are not memory"
    );
}

/// Files of earlier calls used to take the room, so now all that fit were sent, now a part, now none.
#[test]
fn without_places_every_call_sends_all_files_that_fit() {
    let ground = Ground::with("window = 16000\n", "consult.stable_inline = false\n");
    let mut server = ground.serve();
    for turn in 1..=5 {
        let answer = server.data(TOOL, ask(&format!("Question {turn}?")));
        let receipt = &answer["receipt"];
        assert_eq!(receipt["sent"]["paths"], json!(["src/a.rs", "src/b.rs"]), "{turn}: {receipt}");
        assert_eq!(receipt["overflow"]["paths"], json!(["src/big.rs"]), "{turn}: {receipt}");
        let sent = ground.last();
        let whole =
            |path: &str| sent.iter().filter(|text| text.contains(&format!("[file {path} | "))).count();
        assert_eq!((whole("src/a.rs"), whole("src/b.rs")), (1, 1), "{turn}: each file once");
        let said = |text: &str| sent.iter().any(|message| message.contains(text));
        assert!((1..turn).all(|earlier| said(&format!("Question {earlier}?"))), "{turn}: {sent:?}");
    }
}

#[test]
fn an_assistant_calls_functions_and_learns_of_failures() {
    let ground = Ground::new();
    let mut server = ground.serve();
    server.save("old", "1", "We chose 30 seconds because renewals take up to ten.");
    ground.mock.behaves(&Manner::Calls(
        vec![
            ("search_project_memory", json!({"query": "why 30 seconds"})),
            ("search_session_attachments", json!({"query": "f2400"})),
            ("delete_everything", json!({})),
            ("", json!({})),
            ("search_project_memory", json!({"query": 5})),
        ],
        "Because of the renewals.".into(),
    ));
    let data = server.data(TOOL, ask("Why 30 seconds?"));
    assert_eq!(data["answer"], "Because of the renewals.");
    let results = ground.last();
    assert!(results[2].contains("renewals take up to ten"), "{results:?}");
    assert!(results[3].contains("src/big.rs") && results[3].contains("f2400"), "{results:?}");
    assert!(results[4].contains("there is no function `delete_everything`"), "{results:?}");
    assert!(results[5].contains("there is no function `unknown_function`"), "{results:?}");
    assert!(results[6].contains("give an object with `query`"), "{results:?}");
    let ran = data["receipt"]["functions"].as_array().unwrap();
    let failed: Vec<bool> = ran.iter().map(|ran| ran["error"].is_string()).collect();
    assert_eq!(failed, [false, false, true, true, true]);
    // What was searched is not part of the thread.
    ground.mock.behaves(&Manner::Says("You are welcome.".into()));
    server.data(TOOL, json!({"session_id": "lease", "instructions": "Thanks"}));
    assert!(!ground.last().iter().any(|text| text.contains("renewals take up to ten")));
}

#[test]
fn an_assistant_without_memory_can_search_only_what_it_was_given() {
    let ground = Ground::with("window = 16000\nmemory = false\n", "");
    ground.serve().data(TOOL, ask("x"));
    let (_, body) = ground.mock.seen.lock().unwrap()[0].clone();
    let names: Vec<&Value> =
        body["tools"].as_array().unwrap().iter().map(|tool| &tool["function"]["name"]).collect();
    assert_eq!(names, ["search_session_attachments"]);
}

#[test]
fn attachments_live_for_one_call() {
    let ground = Ground::new();
    ground.project.write("spec.md", "# Spec\n\nThe harbour closes at nine, says the quokka.\n");
    let mut server = ground.serve();
    ground.mock.behaves(&Manner::Calls(
        vec![("search_session_attachments", json!({"query": "when does the harbour close"}))],
        "At nine.".into(),
    ));
    let args = json!({"session_id": "s", "instructions": "When?", "attachments": ["spec.md"]});
    server.data(TOOL, args);
    assert!(ground.last().iter().any(|text| text.contains("quokka")));
    ground.mock.behaves(&Manner::Says("Nothing more.".into()));
    server.data(TOOL, json!({"session_id": "s", "instructions": "And?"}));
    assert!(!ground.last().iter().any(|text| text.contains("quokka")));
    assert!(ground.mock.seen.lock().unwrap().last().unwrap().1["tools"].as_array().is_none_or(|tools| {
        tools.iter().all(|tool| tool["function"]["name"] != "search_session_attachments")
    }));
    server.end();
    assert_eq!(ground.home.files_with("quokka"), Vec::<std::path::PathBuf>::new());
}

#[test]
fn a_call_that_fails_leaves_the_thread_as_it_was() {
    let ground = Ground::new();
    let mut server = ground.serve();
    for (manner, said) in [
        (Manner::Refuses(400, ""), "answered 400"),
        (Manner::Calls(Vec::new(), String::new()), "empty answer"),
    ] {
        ground.mock.behaves(&manner);
        let error = server.error(TOOL, ask("Is it long enough?"));
        assert!(error.contains(said) && error.contains("nothing was recorded"), "{error}");
    }
    assert!(server.error("describe_session", json!({"session_id": "lease"})).contains("has no thread"));
    ground.mock.behaves(&Manner::Says("Yes.".into()));
    let data = server.data(TOOL, ask("Is it long enough?"));
    assert_eq!((&data["receipt"]["turn"], &data["receipt"]["sent"]["count"]), (&json!(1), &json!(2)));
}

/// What arrived is paid for. The assistant learns in the next turn that it did not finish.
#[test]
fn what_arrived_of_an_answer_that_broke_off_is_kept() {
    let ground = Ground::new();
    ground.mock.behaves(&Manner::BreaksOff);
    let (text, data) = ground.serve().both(TOOL, ask("Is it long enough?"));
    assert!(text.starts_with("Incomplete: the answer broke off ("), "{text}");
    assert!(text.contains("I th\n\n[The answer broke off here.]"), "{text}");
    assert_eq!((&data["status"], &data["receipt"]["turn"]), (&json!("done"), &json!(1)), "{data}");
    let found = ground.serve().text("expand_detail", json!({"id": "lease"}));
    assert!(found.contains("[The answer broke off here.]"), "{found}");
    ground.mock.behaves(&Manner::Says("I think so.".into()));
    ground.serve().data(TOOL, json!({"session_id": "lease", "instructions": "Go on."}));
    assert!(ground.last().iter().any(|text| text.contains("[The answer broke off here.]")));
}

#[test]
fn a_call_that_takes_long_is_collected_by_its_id() {
    let ground = Ground::new();
    let mut server = ground.serve();
    server.data(TOOL, ask("First"));
    ground.mock.behaves(&Manner::SaysLate("At last.".into(), Duration::from_secs(3)));
    let asked = json!({"session_id": "lease", "instructions": "Think", "wait_s": 1, "call_id": "k"});
    let (text, data) = server.both(TOOL, asked.clone());
    assert!(data["status"] == "running" && text.contains("call_id `k`"), "{text}");
    assert!(data["doing"].as_str().unwrap().starts_with("mock reads "), "{data}");
    assert!(data.get("answer").is_none() && data.get("receipt").is_none(), "{data}");
    // Another call of the same thread is refused meanwhile, in this and in any other process.
    let other = json!({"session_id": "lease", "instructions": "Me too"});
    assert!(server.error(TOOL, other.clone()).contains("another call is asking `mock`"));
    assert!(ground.serve().error(TOOL, other).contains("another call is asking `mock`"));
    let reset = json!({"session_id": "lease", "what": "thread"});
    assert!(server.error("reset_session", reset).contains("another call is asking `mock`"));
    assert!(data["doing"].as_str().unwrap().contains("repeat this call with call_id `k`"), "{data}");
    let first = json!({"session_id": "first", "instructions": "Think", "wait_s": 1, "call_id": "f"});
    server.data(TOOL, first);
    let told = server.error("describe_session", json!({"session_id": "first"}));
    assert!(told.contains("another call is asking `mock` in session `first`"), "{told}");
    let mut patient = asked.clone();
    patient["wait_s"] = json!(30);
    assert_eq!(server.data(TOOL, patient.clone())["answer"], "At last.");
    // The recorded answer is found again, and the assistant is asked only once.
    let again = ground.serve().data(TOOL, patient.clone());
    assert!(again["answer"] == "At last." && again["receipt"]["notices"].is_null(), "{again}");
    assert_eq!(ground.mock.requests(), 3);
    // Other instructions are not asked under the same name, and the caller is told so.
    patient["instructions"] = json!("Think of something else");
    let other = ground.serve().data(TOOL, patient.clone());
    let notice = other["receipt"]["notices"][0].as_str().unwrap_or_default();
    assert!(notice.contains("was made before with other instructions"), "{other}");
    assert!(other["answer"] == "At last." && ground.mock.requests() == 3);
    // An unknown name is asked, and the caller is told so.
    ground.mock.behaves(&Manner::Says("Yes.".into()));
    patient["call_id"] = json!("unknown");
    let asked = ground.serve().data(TOOL, patient);
    assert!(asked["receipt"]["notices"].to_string().contains("no call `unknown` of this thread"), "{asked}");
}

/// An exchange is forgotten with everything that quotes it: the memory that summarises it, and what other assistants of
/// the session were told of it.
#[test]
fn a_forgotten_exchange_is_quoted_nowhere() {
    let ground = Ground::new();
    let mut server = ground.serve();
    let secretive = json!({"session_id": "lease", "instructions": "The secret codename is BLUEFIN."});
    server.data(TOOL, secretive);
    let quotes = |server: &mut Server| {
        let hits = server.search("secret codename BLUEFIN");
        hits.iter().any(|hit| hit["text"].as_str().unwrap().contains("BLUEFIN"))
    };
    assert!(quotes(&mut server));
    let shown = ground.home.run(&ground.project.path, &["show", "lease@mock"]).stdout;
    let question = shown.split("question ").nth(1).unwrap().split([',', ')']).next().unwrap().to_owned();
    let forgotten = server.data("forget_context", json!({"ids": [question]}));
    assert_eq!(forgotten["count"], 2, "{forgotten}");
    assert!(!quotes(&mut server));
    server.data(TOOL, json!({"session_id": "lease", "instructions": "And now?"}));
    assert!(!ground.last().iter().any(|text| text.contains("BLUEFIN")));
    let purged = ground.home.run(&ground.project.path, &["forget", "--purge", &question]);
    assert!(purged.is_ok, "{purged:?}");
    server.end();
    let project = fs::read_dir(ground.home.data().join("projects")).unwrap().next().unwrap().unwrap().path();
    for file in fs::read_dir(project).unwrap().map(|file| file.unwrap().path()) {
        let bytes = fs::read(&file).unwrap();
        assert!(!bytes.windows(7).any(|part| part == b"BLUEFIN"), "{}", file.display());
    }
}

#[test]
fn paths_and_input_of_the_command_line_are_those_of_the_shell() {
    let ground = Ground::new();
    ground.project.write("docs/plan.md", "The plan.\n");
    ground.project.write("plan.md", "PRIVATE\n");
    let here = ground.project.path.join("docs");
    let asked = ground.home.feed(&here, &["chat", "--context", "plan.md", "Is it good?"], b"piped text\n");
    assert!(asked.is_ok, "{asked:?}");
    let said = ground.last().join("");
    assert!(said.contains("[file docs/plan.md | ") && !said.contains("PRIVATE"), "{said}");
    assert!(said.ends_with("Is it good?\n\npiped text"), "{said}");
}

#[test]
fn a_count_of_tokens_that_the_provider_did_not_report_is_called_an_estimate() {
    let ground = Ground::new();
    ground.mock.behaves(&Manner::Claims("Yes.".into(), 1, 1));
    let mut server = ground.serve();
    let first = server.data(TOOL, ask("One"));
    assert_eq!(first["receipt"]["reported"]["is_estimate"], true, "{first}");
    let text = server.text(TOOL, ask("Two"));
    assert!(text.contains("which is implausible"), "{text}");
    let described = server.text("describe_session", json!({"session_id": "lease"}));
    assert!(described.contains("the provider reported no usable count"), "{described}");
    // It says nothing about how the model counts, so the window stays as it was.
    let third = server.data(TOOL, ask("Three"));
    assert_eq!(third["receipt"]["window"], first["receipt"]["window"], "{third}");
}

#[test]
fn an_answer_far_beyond_its_limit_is_cut() {
    let ground = Ground::with("window = 16000\nmax_output = 100\n", "");
    ground.mock.behaves(&Manner::Says("more words ".repeat(5000)));
    let data = ground.serve().data(TOOL, ask("Go on"));
    assert_eq!(data["answer"].as_str().unwrap().len(), 1600);
    assert!(data["receipt"]["notices"].to_string().contains("the answer was cut at 1,600 bytes"), "{data}");
}

#[test]
fn a_running_call_is_not_taken_for_one_with_other_instructions() {
    let ground = Ground::new();
    let mut server = ground.serve();
    ground.mock.behaves(&Manner::SaysLate("At last.".into(), Duration::from_secs(2)));
    let call = |text: &str, wait: u64| json!({"session_id": "lease", "instructions": text, "wait_s": wait, "call_id": "k"});
    assert_eq!(server.data(TOOL, call("Think", 0))["status"], "running");
    let other = server.data(TOOL, call("Think of something else", 30));
    let notice = other["receipt"]["notices"].to_string();
    assert!(other["answer"] == "At last." && notice.contains("with other instructions"), "{other}");
    assert_eq!(ground.mock.requests(), 1);
}

#[test]
fn an_assistant_is_told_which_named_paths_it_does_not_have() {
    let ground = Ground::new();
    let mut asked = ask("Is the plan good?");
    (asked["context"], asked["attachments"]) = (json!(["src", "plan.md"]), json!(["notes.md"]));
    ground.serve().data(TOOL, asked);
    let said = ground.last().join("");
    let note = "[named by the agent, but not available to you:\n notes.md (does not exist)\n plan.md (does not exist)]";
    assert!(said.contains(note), "{said}");
}

#[test]
fn a_cancelled_call_ends_the_request_and_leaves_no_turn() {
    let ground = Ground::new();
    let mut server = ground.serve();
    ground.mock.behaves(&Manner::Hangs);
    let id = server.ask("tools/call", json!({"name": TOOL, "arguments": ask("Are you there?")}));
    while ground.mock.requests() == 0 {
        std::thread::yield_now();
    }
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
    server.send(&cancel.to_string());
    ground.mock.behaves(&Manner::Says("Yes.".into()));
    // The lease is given back, so the thread is free at once; nothing of the cancelled call is in it.
    let begun = Instant::now();
    let data = loop {
        let result = server.call(TOOL, ask("Are you there?"));
        if result["isError"] != true {
            break result;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{result}");
    };
    assert_eq!(data["structuredContent"]["receipt"]["turn"], 1);
}

#[test]
fn a_second_assistant_learns_in_short_what_the_first_said() {
    let ground = Ground::new();
    let second = "[providers.other]\nservice = 'openai-compatible'\nendpoint = 'ENDPOINT'\nmodel = 'n'\nwindow = 16000\n";
    let both = format!(
        "[providers.mock]\nservice = 'openai-compatible'\nendpoint = 'ENDPOINT'\nmodel = 'm'\nwindow = 16000\n{second}"
    );
    write(&ground.home, &both.replace("ENDPOINT", &ground.mock.endpoint()));
    let mut server = ground.serve();
    server.data(TOOL, ask("Is the lease long enough?"));
    let joined = server.data("chat_with_other", ask("Do you agree?"));
    assert_eq!(joined["receipt"]["sent"]["count"], 2, "it has its own list of files");
    let sent = &ground.last()[0];
    assert!(sent.contains("[asked mock | ") && sent.contains("Is the lease long enough?"), "{sent}");
    assert!(sent.contains("[answered mock | ") && sent.contains("Keep the lease at 30 seconds."), "{sent}");
    // The first assistant learns of the second one too, but only of what is new.
    server.data(TOOL, json!({"session_id": "lease", "instructions": "The other agrees."}));
    let told = ground.last();
    assert!(told[2].contains("[asked other | ") && !told[2].contains("[asked mock | "), "{told:?}");
    let listed = server.text("list_sessions", json!({}));
    assert!(listed.contains(", consulted mock (2 turns), other (1 turn)\n"), "{listed}");
}

#[test]
fn an_answer_that_is_not_json_is_reported_if_a_schema_was_given() {
    let ground = Ground::new();
    let mut server = ground.serve();
    let mut args = ask("How long is the lease?");
    args["structured_output_schema"] =
        json!({"type": "object", "properties": {"seconds": {"type": "integer"}}});
    let answered = server.data(TOOL, args);
    let expected = [
        "`m` counts tokens in another way than Tiro: its 16,000 are taken as 11,851 of Tiro's",
        "the answer is not JSON, although a schema was given",
    ];
    assert_eq!(answered["receipt"]["notices"], json!(expected), "{answered}");
}

#[test]
fn secrets_never_leave() {
    const CANARY: &str = "ghp_9sT2kLmQ4vXzR7bNwEyU1cJdHfGaPo3i5V8M";
    let ground = Ground::new();
    ground.project.write("src/a.rs", &format!("const TOKEN: &str = \"{CANARY}\";\n"));
    ground.project.write("notes.md", &format!("the token is {CANARY}\n"));
    ground.project.write(".env", &format!("TOKEN={CANARY}\n"));
    ground.mock.behaves(&Manner::Calls(
        vec![
            ("search_session_attachments", json!({"query": format!("token {CANARY}")})),
            ("search_session_attachments", json!({"source": CANARY})),
            (CANARY, json!({"query": CANARY})),
        ],
        format!("The token is {CANARY}."),
    ));
    let mut server = ground.serve();
    let args = json!({
        "session_id": format!("s {CANARY}"),
        "instructions": format!("What is {CANARY}?"),
        "context": ["src", ".env", CANARY],
        "attachments": ["notes.md"],
        "call_id": CANARY,
    });
    let (text, data) = server.both(TOOL, args);
    assert!(!text.contains(CANARY) && !data.to_string().contains(CANARY), "{text}");
    assert_eq!(data["receipt"]["redacted"]["src/a.rs"], 1);
    let described = server.text("describe_session", json!({}));
    assert!(!described.contains(CANARY), "{described}");
    let log = server.end();
    assert!(!log.contains(CANARY), "{log}");
    for (head, body) in ground.mock.seen.lock().unwrap().iter() {
        // The arguments of a call are the model's own words, which it gets back as they were stored: replaced.
        assert!(!head.contains(CANARY) && !body.to_string().contains(CANARY), "{body}");
    }
    assert_eq!(ground.home.files_with(CANARY), Vec::<std::path::PathBuf>::new());
}

#[test]
fn wrong_questions_are_told_what_is_wrong() {
    let ground = Ground::new();
    let mut server = ground.serve();
    for (arguments, names, hint) in [
        (json!({"session_id": "", "instructions": "x"}), "`session_id` is empty", "such as \"auth\""),
        (json!({"session_id": "s", "instructions": " \n"}), "`instructions` is empty", "such as \"Review"),
        (json!({"session_id": "s", "instructions": "x", "temperature": 3}), "`temperature` is 3", "0 to 2"),
        (
            json!({"session_id": "s", "instructions": "x", "images": ["none.png"]}),
            "image `none.png` does not exist",
            "",
        ),
        (
            json!({"session_id": "s", "instructions": "word ".repeat(40_000)}),
            "the window is full",
            "reset_session",
        ),
        (
            json!({"session_id": "s", "instructions": "x", "reasoning_effort": "much"}),
            "reasoning_effort",
            "high",
        ),
    ] {
        let error = server.error(TOOL, arguments);
        assert!(error.contains(names) && error.contains(hint), "{error}");
    }
    assert_eq!(ground.mock.requests(), 0);
    let missing = server
        .data(TOOL, json!({"session_id": "s", "instructions": "x", "context": ["nowhere.rs", "../.."]}));
    let skipped = missing["receipt"]["skipped"].to_string();
    assert!(skipped.contains("does not exist") && skipped.contains("leads out of the project"), "{skipped}");
    // A path that leads nowhere is not looked for again.
    let later = server.data(TOOL, json!({"session_id": "s", "instructions": "y"}));
    assert!(later["receipt"].get("skipped").is_none(), "{later}");
}

#[test]
fn a_thread_is_reset_and_described() {
    let ground = Ground::new();
    let mut server = ground.serve();
    server.data(TOOL, ask("One"));
    let described = server.data("describe_session", json!({"session_id": "lease"}));
    let thread = &described["threads"][0];
    assert_eq!(
        (&thread["turns"], &thread["inline"]["count"], &thread["context"]),
        (&json!(1), &json!(2), &json!(["src"]))
    );
    assert_eq!(server.data("reset_session", json!({"session_id": "lease"}))["files"], 3);
    let again = server.data(TOOL, ask("Two"));
    assert_eq!((&again["receipt"]["sent"]["count"], &again["receipt"]["turn"]), (&json!(2), &json!(2)));
    assert_eq!(ground.last().len(), 3, "the exchange before stays");
    let big = json!({"session_id": "lease", "instructions": "Big", "priority_context": ["src/big.rs"]});
    let notices = server.data(TOOL, big)["receipt"]["notices"].to_string();
    assert!(notices.contains("`src/big.rs` stay to be searched, although they are named first"), "{notices}");
    let listed = ground.home.run(&ground.project.path, &["sessions"]).stdout;
    assert!(listed.contains("consulted mock (3 turns)"), "{listed}");
    let nobody = ground.home.run(&ground.project.path, &["show", "lease@nobody"]);
    assert!(nobody.stderr.contains("it has threads with mock"), "{nobody:?}");
    // The context stays as well, unless the caller names another one.
    server.data("reset_session", json!({"session_id": "lease"}));
    let kept = server.data(TOOL, json!({"session_id": "lease", "instructions": "Two and a half"}));
    assert_eq!(kept["receipt"]["sent"]["count"], 2, "{kept}");
    server.data("reset_session", json!({"session_id": "lease"}));
    let other = json!({"session_id": "lease", "instructions": "Other", "context": ["src/b.rs"]});
    assert_eq!(server.data(TOOL, other)["receipt"]["sent"]["paths"], json!(["src/b.rs"]));
    server.data("reset_session", json!({"session_id": "lease", "what": "thread"}));
    server.data(TOOL, ask("Three"));
    assert_eq!(ground.last().len(), 1);
    let error = server.error("reset_session", json!({"session_id": "nobody"}));
    assert!(error.contains("has no thread"), "{error}");
    let shown = ground.home.run(&ground.project.path, &["show", "lease@mock"]);
    assert!(shown.is_ok && shown.stdout.contains("Turn 1"), "{shown:?}");
    let reset = ground.home.run(&ground.project.path, &["sessions", "reset", "lease"]);
    assert!(reset.is_ok && reset.stdout.contains("Reset 3 files"), "{reset:?}");
    let stats = ground.home.json(&ground.project.path, &["stats"]);
    assert_eq!(stats["threads"][0]["assistant"], "mock", "{stats}");
}

#[test]
fn tokens_are_counted_without_asking() {
    let ground = Ground::new();
    let mut server = ground.serve();
    let (text, data) = server.both("count_tokens", json!({"paths": ["src"], "assistant": "mock"}));
    let expected: usize = [("src/a.rs", 40), ("src/b.rs", 60), ("src/big.rs", 2500)]
        .iter()
        .map(|(path, lines)| tiro::testing::count(&code(path, *lines)))
        .sum();
    assert_eq!((data["tokens"].as_u64(), &data["files"]), (Some(expected as u64), &json!(3)));
    // What would leave: two files in the first prompt, and the third as far as it is searched.
    assert_eq!(
        (&data["inline"], &data["place"], &data["secrets"]),
        (&json!(2), &json!("this machine"), &json!(0))
    );
    assert!(text.contains("it would have 2 files whole, and 1 to search"), "{text}");
    ground.project.write("src/a.rs", "const TOKEN: &str = \"ghp_9sT2kLmQ4vXzR7bNwEyU1cJdHfGaPo3i5V8M\";\n");
    for assistant in [json!("mock"), Value::Null] {
        let data = server.data("count_tokens", json!({"paths": ["src"], "assistant": assistant}));
        assert_eq!(data["secrets"], 1, "{data}");
    }
    assert_eq!(ground.mock.requests(), 0);
    assert_eq!(server.data("describe_session", json!({}))["threads"], json!([]));
}

#[test]
fn the_terminal_shows_the_answer_and_what_it_cost() {
    let ground = Ground::new();
    let chat = |args: &[&str]| ground.home.run(&ground.project.path, &[&["chat"], args].concat());
    let ran = chat(&["--context", "src", "Is", "it", "long", "enough?"]);
    assert!(ran.is_ok && ran.stdout == "Keep the lease at 30 seconds.\n", "{ran:?}");
    assert!(
        ran.stderr.contains("Sent whole: 2 files") && ran.stderr.contains("no data left this machine"),
        "{ran:?}"
    );
    let again = chat(&["And now?", "--json"]);
    let data: Value = serde_json::from_str(&again.stdout).unwrap();
    assert_eq!(data["receipt"]["turn"], 2);
    let wrong = chat(&["--with", "nobody", "x"]);
    assert!(!wrong.is_ok && wrong.stderr.contains("the assistants are mock"), "{wrong:?}");
}

#[cfg(unix)]
#[test]
fn an_interrupted_conversation_leaves_its_thread_free() {
    let ground = Ground::new();
    ground.mock.behaves(&Manner::SaysLate("Too late.".into(), Duration::from_secs(20)));
    let mut chat = ground.home.tiro(&ground.project.path, &["chat", "--session", "lease", "Think"]);
    let mut chat = chat.stderr(Stdio::null()).spawn().unwrap();
    while ground.mock.requests() == 0 {
        std::thread::sleep(Duration::from_millis(20));
    }
    let killed = Command::new("kill").args(["-INT", &chat.id().to_string()]).status().unwrap();
    assert!(killed.success() && !chat.wait().unwrap().success());
    ground.mock.behaves(&Manner::Says("Keep it.".into()));
    assert_eq!(ground.serve().data(TOOL, ask("Again"))["receipt"]["turn"], 1);
}

/// The provider has the prompt, but nothing is recorded: the next call of another process sends everything again.
#[cfg(unix)]
#[test]
fn a_process_that_is_killed_while_it_waits_leaves_the_thread_as_it_was() {
    let ground = Ground::new();
    ground.serve().data(TOOL, ask("First"));
    ground.project.write("src/a.rs", &code("src/changed.rs", 41));
    ground.mock.behaves(&Manner::SaysLate("Too late.".into(), Duration::from_secs(5)));
    let mut killed = ground.serve();
    killed.ask("tools/call", json!({"name": TOOL, "arguments": ask("Second")}));
    while ground.mock.requests() < 2 {
        std::thread::sleep(Duration::from_millis(20));
    }
    let status = Command::new("kill").args(["-KILL", &killed.pid().to_string()]).status().unwrap();
    assert!(status.success());
    ground.mock.behaves(&Manner::Says("Yes.".into()));
    let mut server = ground.serve();
    let busy = server.error(TOOL, ask("Third"));
    assert!(
        busy.contains("if the process that asked was killed, the thread is free again after 5 s"),
        "{busy}"
    );
    let began = Instant::now();
    let data = loop {
        std::thread::sleep(Duration::from_secs(1));
        let result = server.call(TOOL, ask("Third"));
        if result["isError"] != true {
            break result["structuredContent"].clone();
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{result}");
    };
    // The change was never recorded as sent, so it is sent now.
    let receipt = &data["receipt"];
    assert_eq!((&receipt["turn"], &receipt["sent"]["paths"]), (&json!(2), &json!(["src/a.rs"])), "{data}");
    assert!(!ground.last().iter().any(|text| text.contains("Second") || text.contains("Too late.")));
    let hits = server.search("too late");
    assert!(hits.iter().all(|hit| !hit["text"].as_str().unwrap().contains("Too late.")), "{hits:?}");
}

#[test]
fn an_assistant_that_may_not_be_asked_is_not_called_unknown() {
    let provider =
        "window = 16000\n[providers.far]\nservice = 'openai'\nmodel = 'gpt-5'\nuses = ['consult']\n";
    let ground = Ground::with(provider, "external = 'never'\n");
    let refused = ground.home.run(&ground.project.path, &["chat", "--with", "far", "Hello"]);
    assert!(!refused.is_ok && refused.stderr.contains("`external` is `never`"), "{refused:?}");
}

/// The tools are offered only if an assistant is configured, and their names follow the configuration.
#[test]
fn tools_follow_the_configuration() {
    let names = |home: &Home, project: &Path| -> Vec<String> {
        let listed = home.serve(project).request("tools/list", json!({}));
        let tools = listed["result"]["tools"].as_array().unwrap().clone();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    };
    let ground = Ground::new();
    assert!(names(&ground.home, &ground.project.path).contains(&TOOL.to_owned()));
    write(&ground.home, "");
    assert!(
        !names(&ground.home, &ground.project.path)
            .iter()
            .any(|name| name.starts_with("chat_with") || name == "count_tokens")
    );
}

#[test]
fn an_assistant_without_files_is_told_so_and_so_is_the_caller() {
    let ground = Ground::new();
    let mut server = ground.serve();
    let bare = |instructions: &str| json!({"session_id": "bare", "instructions": instructions});
    const NOTE: &str = "[no files of the project were given to you so far";
    let (text, data) = server.both(TOOL, bare("What is it?"));
    assert!(ground.last()[0].starts_with(NOTE), "{:?}", ground.last());
    let told = "The assistant has no files; `context` names some.";
    assert!(data["receipt"]["without_files"] == true && text.contains(told), "{text}");
    // It is told once; the caller, who may have forgotten, each time.
    let again = server.data(TOOL, bare("And now?"));
    assert_eq!(again["receipt"]["without_files"], true, "{again}");
    assert_eq!(ground.last().concat().matches(NOTE).count(), 1, "{:?}", ground.last());
    for more in [json!({"context": ["src/a.rs"]}), json!({"attachments": ["src/b.rs"]})] {
        let mut args = bare("With a file?");
        args["session_id"] = json!(format!("bare {more}"));
        args.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let data = server.data(TOOL, args);
        assert!(
            data["receipt"].get("without_files").is_none() && !ground.last().concat().contains(NOTE),
            "{data}"
        );
    }
    // Of a path that is refused it is told both.
    ground.project.write("prod.env", "PORT=1\n");
    let refused = json!({"session_id": "refused", "instructions": "Well?", "context": ["prod.env"]});
    let (text, _) = server.both(TOOL, refused);
    assert!(text.contains("The assistant has no files") && text.contains("prod.env"), "{text}");
    assert!(ground.last()[0].contains("not available to you") && ground.last()[0].contains(NOTE));
}

/// The text of an answer with its receipt used to have thousands of tokens.
#[test]
fn a_long_receipt_is_short_in_the_answer_and_whole_in_describe_session() {
    let ground = Ground::new();
    for at in 0..30 {
        ground.project.write(&format!("some/rather/long/folder/module_number_{at}.rs"), "fn f() {}\n");
        ground.project.write(&format!("deploy/stage_{at}.env"), "PORT=1\n");
    }
    let secrets = "ghp_9sT2kLmQ4vXzR7bNwEyU1cJdHfGaPo3i5V8M";
    ground.project.write("notes.md", &format!("the token is {secrets}\n"));
    let paths: Vec<String> = (0..30).map(|at| format!("deploy/stage_{at}.env")).collect();
    let context = [vec!["some".to_owned(), "src".to_owned(), "notes.md".to_owned()], paths].concat();
    let mut server = ground.serve();
    // The first answer also has news of the server.
    server.data(TOOL, json!({"session_id": "other", "instructions": "Well?"}));
    let args = json!({"session_id": "long", "instructions": "Well?", "context": context});
    let (text, data) = server.both(TOOL, args);
    let answer = data["answer"].as_str().unwrap();
    let tokens = tiro::testing::count(&text.replace(answer, ""));
    assert!(tokens <= 150, "{tokens}: {text}");
    for words in [
        "no data left this machine",
        "Left out: 30 paths (deploy/stage_0.env",
        "Secrets replaced: 1",
        "not shown: describe_session",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let described = server.text("describe_session", json!({"session_id": "long"}));
    for words in ["last turn:", "Left out: deploy/stage_19.env", "Left out: 10 more", "Sent whole: 33 files"]
    {
        assert!(described.contains(words), "{words}: {described}");
    }
}
