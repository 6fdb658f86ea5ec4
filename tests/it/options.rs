//! Every option has a visible effect. The test fails if an option has no case here, or if its two values have the same
//! effect.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use tiro::testing::{External, Options, Sources, Use};

use crate::harness::{Home, Ran, Server, feed};
use crate::mock::{Manner, Mock};
use crate::spends::write;
use crate::talk::Talk;

/// An option, two of its values, and a function that returns the visible effect of a value.
struct Case(&'static str, [&'static str; 2], fn(&Under) -> String);

/// One option with a value, which its environment variable sets.
struct Under {
    variable: String,
    value: &'static str,
}

const CASES: &[Case] = &[
    Case("default_provider", ["one", "two"], |under| first_asked(under, "").0),
    Case("fallback_provider", ["one", "two"], |under| first_asked(under, "").0),
    Case("zone", ["UTC", "America/Los_Angeles"], shown_time),
    Case("external", ["allowed", "never"], |under| {
        asked(under, &answering(), "0.0.0.0", &TEST).requests().to_string()
    }),
    Case("max_retries", ["0", "1"], |under| {
        asked(under, &Manner::Refuses(500, ""), "127.0.0.1", &TEST).requests().to_string()
    }),
    Case("temperature", ["0.7", "0.2"], |under| first_asked(under, "default_provider = 'one'\n").1),
    Case("summary.temperature", ["0.3", "0.9"], |under| {
        first(&asked(under, &answering(), "127.0.0.1", &SUMMARIZE), "temperature")
    }),
    Case("summary.threshold", ["8", "1000"], |under| context_under(under, &[])),
    Case("summary.update_interval", ["3600", "0"], updated_summary),
    Case("summary.local_deadline", ["1", "2"], |under| seconds_waited(under, "127.0.0.1")),
    Case("summary.external_deadline", ["1", "2"], |under| seconds_waited(under, "0.0.0.0")),
    Case("context.max_tokens", ["4000", "500"], |under| context_under(under, &[])),
    Case("context.session_max_tokens", ["8000", "1000"], |under| context_under(under, &["--session", "s"])),
    Case("context.summary_ratio", ["0.3", "0"], small_context),
    Case("context.max_recent_messages", ["10", "60"], |under| {
        context_under(under, &["--session", "s", "--max-tokens", "4000"])
    }),
    Case("context.compression_medium", ["70", "30"], summary_lengths),
    Case("context.compression_long", ["85", "40"], summary_lengths),
    Case("context.compression_ancient", ["95", "50"], summary_lengths),
    Case("context.importance_threshold", ["0.5", "0.4"], small_context),
    Case("context.vector_search_limit", ["200", "1"], small_context),
    Case("context.weight_recency", ["0", "1"], small_context),
    Case("context.weight_semantic", ["1", "0"], small_context),
    Case("context.weight_entity", ["0.05", "1"], small_context),
    Case("context.weight_user", ["0", "1"], smaller_context),
    Case("context.cache_ttl", ["86400", "0"], cached_answers),
    Case("context.cache_bytes", ["16777216", "0"], cached_answers),
    Case("embedding.prose", ["auto", "multilingual"], embeds),
    Case("embedding.code", ["auto", "multilingual"], embeds),
    Case("search.everywhere", ["false", "true"], found_elsewhere),
    Case("stash.weight_relevance", ["0.9", "0.5"], stash_score),
    Case("stash.weight_age", ["0.05", "0.5"], stash_score),
    Case("stash.weight_stash_age", ["0.05", "0.5"], stash_score),
    Case("stash.max_age_days", ["0", "3"], stashed),
    Case("limits.call", ["0.5", "0"], charged),
    Case("limits.day", ["5", "0"], charged),
    Case("limits.project", ["none", "0"], charged),
    Case("limits.total", ["none", "0"], charged),
    Case("consult.stable_inline", ["true", "false"], |under| consulted(under, "sent")),
    Case("consult.inline_tokens", ["0", "100"], |under| consulted(under, "overflow")),
    Case("consult.wait", ["50", "1"], |under| consulted(under, "status")),
    Case("consult.deadline", ["900", "1"], |under| consulted(under, "error")),
    Case("consult.silence", ["60", "1"], |under| consulted(under, "error")),
    Case("files.roots", ["", "/"], |under| consulted(under, "skipped")),
    Case("files.secrets", ["", "src/.env"], |under| consulted(under, "skipped")),
    Case("files.max_bytes", ["1048576", "10"], |under| consulted(under, "skipped")),
    Case("files.documents_time", ["45", "0"], |under| consulted(under, "skipped")),
    Case("files.documents", ["2000", "0"], |under| consulted(under, "skipped")),
    Case("ignore.sessions", ["", "scratch-*"], imported_session),
    Case("ignore.paths", ["", "secrets/**"], imported_session),
    Case("ignore.headless", ["false", "true"], imported_session),
    Case("git.trusted", ["", "/*"], commits_with_shared_objects),
];

/// Returns how many memories a tool finds of which one is in another project.
fn found_elsewhere(under: &Under) -> String {
    let home = Home::new();
    let (here, there) = (home.dir("here"), home.dir("there"));
    for project in [&here, &there] {
        assert!(home.run(project, &["add", &format!("the quince press of {}", project.display())]).is_ok);
    }
    let mut command = home.tiro(&here, &["serve"]);
    command.env(&under.variable, under.value);
    let found = Server::start(command).data("search_project_memory", json!({"query": "quince press"}));
    found["hits"].as_array().unwrap().len().to_string()
}

/// Returns the parts of the score of a stashed segment.
fn stash_score(under: &Under) -> String {
    let home = Home::new();
    let project = home.dir("project");
    let mut command = home.tiro(&project, &["serve"]);
    command.env(&under.variable, under.value);
    let mut server = Server::start(command);
    server.data("stash_context", json!({"segments": [{"text": "the quince press"}]}));
    let found = server.data("retrieve_stashed_context", json!({"query": "quince"}));
    let score = &found["segments"][0]["score"];
    ["relevance", "age", "stash_age"].map(|part| format!("{:.2}", score[part].as_f64().unwrap())).join(" ")
}

/// Returns what a search reports. Only the default model is installed, if any.
fn embeds(under: &Under) -> String {
    let home = Home::new();
    let project = home.dir("project");
    let mut command = home.tiro(&project, &["serve"]);
    command.env(&under.variable, under.value);
    let mut server = Server::start(command);
    server.data("stash_context", json!({"segments": [{"text": "the quince"}]}));
    server.data("retrieve_stashed_context", json!({"query": "quince"}))["notices"]
        .to_string()
        .replace(&home.path().display().to_string(), "")
}

/// Returns how many segments are in the stash if one of them was made long ago.
fn stashed(under: &Under) -> String {
    let home = Home::new();
    let project = home.dir("project");
    let mut command = home.tiro(&project, &["serve"]);
    command.env(&under.variable, under.value);
    let mut server = Server::start(command);
    let old = json!([{"text": "the old quince", "time": "2026-01-01"}, {"text": "the new quince"}]);
    server.data("stash_context", json!({"segments": old}));
    server.data("retrieve_stashed_context", json!({}))["total_found"].to_string()
}

/// Asks an assistant twice about the same files, one of them outside the project. Returns what the second answer says of
/// `what`. The assistant needs two seconds if the option is about time.
fn consulted(under: &Under, what: &str) -> String {
    let home = Home::new();
    let project = home.repo("project");
    let mock = Mock::start();
    let text = "Yes.".to_owned();
    mock.behaves(&match what {
        "status" | "error" => Manner::SaysLate(text, std::time::Duration::from_secs(2)),
        _ => Manner::Says(text),
    });
    let provider = "service = 'openai-compatible'\nmodel = 'm'\nwindow = 16000\n";
    write(&home, &format!("[providers.mock]\n{provider}endpoint = '{}'\n", mock.endpoint()));
    for number in 0..3 {
        project.write(&format!("src/{number}.rs"), &"fn f() {}\n".repeat(10 * (number + 1)));
    }
    project.write("src/.env", "MODE=plain\n");
    project.write("src/report.pdf", "no document");
    let outside = home.path().join("outside.txt");
    std::fs::write(&outside, "outside\n").unwrap();
    let mut command = home.tiro(&project.path, &["serve"]);
    command.env(&under.variable, under.value);
    let mut server = Server::start(command);
    let args = json!({"session_id": "s", "instructions": "Right?", "context": ["src", outside]});
    let first = server.call("chat_with_mock", args.clone());
    let result =
        if ["status", "error"].contains(&what) { first } else { server.call("chat_with_mock", args) };
    let data = &result["structuredContent"];
    match what {
        "status" => data["status"].to_string(),
        "error" => result["isError"].to_string(),
        _ => data["receipt"][what].to_string().replace(&*home.path().to_string_lossy(), "HOME"),
    }
}

const TEST: [&str; 2] = ["provider", "test"];
const SUMMARIZE: [&str; 2] = ["summarize", "s"];

impl Under {
    fn run(&self, home: &Home, project: &Path, args: &[&str]) -> Ran {
        let mut command = home.tiro(project, args);
        command.env(&self.variable, self.value);
        feed(command, b"")
    }

    /// Returns the output of a command that must succeed.
    fn output_of(&self, home: &Home, project: &Path, args: &[&str]) -> String {
        let ran = self.run(home, project, args);
        assert!(ran.is_ok, "{}={}: {args:?}: {ran:?}", self.variable, self.value);
        ran.stdout
    }

    /// Saves messages through a server with the option.
    fn save(&self, home: &Home, project: &Path, messages: Vec<Value>) {
        let mut command = home.tiro(project, &["serve"]);
        command.env(&self.variable, self.value);
        let mut server = Server::start(command);
        server.data("save_messages", json!({"session_id": "s", "messages": messages}));
        server.end();
    }
}

/// A conversation about many things, each message long enough to be shortened.
fn messages() -> Vec<Value> {
    let things = ["quince jam", "tide tables", "the old lighthouse", "train delays", "olive trees"];
    let message = |n: usize| {
        let thing = things[n / 3 % things.len()];
        let more = match n % 6 {
            0 => "Ines keeps a list of it, and asks `parse_header` whenever the wind turns.",
            3 => "Nobody has asked about the lighthouse since, whatever the newspapers wrote.",
            _ => "The keeper says it will rain before the evening, and the boats stay in.",
        };
        let text = match n {
            3 => "The gate beside the lighthouse stays open on Sundays.".to_owned(),
            _ => format!("Remark {n} about {thing}: it costs {} crowns. {more} So says number{n}.", n * 3),
        };
        json!({"id": n.to_string(), "role": if n.is_multiple_of(2) { "user" } else { "assistant" },
            "time": format!("2026-03-01T{:02}:{:02}:00Z", 8 + n / 60, n % 60), "text": text})
    };
    (0..170).map(message).collect()
}

/// Returns a home with the conversation, whose early message has some importance.
fn long() -> &'static (Home, PathBuf) {
    static LONG: OnceLock<(Home, PathBuf)> = OnceLock::new();
    LONG.get_or_init(|| {
        let home = Home::new();
        let project = home.dir("project");
        let mut server = home.serve(&project);
        let data = server.data("save_messages", json!({"session_id": "s", "messages": messages()}));
        assert_eq!(data["saved"], 170);
        let id = server.hits(json!({"query": "gate Sundays"})).remove(0)["id"].clone();
        server.data("mark_important", json!({"ids": [id], "important": false, "importance": 0.45}));
        // The conversation is saved once for all options.
        server.data("retrieve_context", json!({"query": "lighthouse", "session_id": "s"}));
        server.end();
        // This makes the memory of the whole conversation.
        home.run(&project, &["index"]);
        (home, project)
    })
}

fn context_under(under: &Under, more: &[&str]) -> String {
    let (home, project) = long();
    under.output_of(
        home,
        project,
        &[&["context", "what", "does", "the", "lighthouse", "cost?"], more].concat(),
    )
}

/// Returns the messages chosen when not all of them fit.
fn small_context(under: &Under) -> String {
    context_under(under, &["--session", "s", "--max-tokens", "1600"])
}

fn smaller_context(under: &Under) -> String {
    context_under(under, &["--session", "s", "--max-tokens", "700"])
}

/// Returns the lengths of the summaries in a context, by level.
fn summary_lengths(under: &Under) -> String {
    let home = Home::new();
    let project = home.dir("project");
    under.save(&home, &project, messages());
    under.output_of(&home, &project, &["context", "lighthouse", "--session", "s"]);
    let stats = under.output_of(&home, &project, &["stats", "--json"]);
    let stats: Value = serde_json::from_str(&stats).unwrap();
    let levels = stats["summaries"].as_array().unwrap();
    assert_eq!(levels.len(), 3, "{stats}");
    levels.iter().map(|level| format!("{} {}\n", level["level"], level["tokens"])).collect()
}

/// Returns whether the memory of a conversation includes its latest messages.
fn updated_summary(under: &Under) -> String {
    let home = Home::new();
    let project = home.dir("project");
    let said = |texts: &[&str]| -> Vec<Value> {
        let roles = ["user", "assistant"].into_iter().cycle();
        texts.iter().zip(roles).map(|(text, role)| json!({"id": text, "role": role, "text": text})).collect()
    };
    let first = ["Where do we moor it?", "At gate 4.", "Since when?", "Since May.", "Who says so?", "Ines."];
    for messages in [said(&first), said(&["We decided to moor the zeppelin at gate 7 from June on."])] {
        under.save(&home, &project, messages);
        // Without a model nothing is embedded. The command reports that at the end.
        under.run(&home, &project, &["index"]);
    }
    let found =
        under.output_of(&home, &project, &["search", "zeppelin", "--kinds", "conversation", "--json"]);
    let found: Value = serde_json::from_str(&found).unwrap();
    found["hits"].as_array().unwrap().len().to_string()
}

/// Returns the number of cached answers after one call.
fn cached_answers(under: &Under) -> String {
    let home = Home::new();
    let project = home.dir("project");
    under.save(&home, &project, messages().split_off(164));
    under.output_of(&home, &project, &["context", "lighthouse"]);
    let stats = under.output_of(&home, &project, &["stats", "--json"]);
    serde_json::from_str::<Value>(&stats).unwrap()["cache"]["entries"].to_string()
}

/// Returns the configuration of a provider for summaries: `mock` at `host`.
fn provider_config(name: &str, host: &str, mock: &Mock) -> String {
    format!(
        "[providers.{name}]\nservice = 'openai-compatible'\nendpoint = '{}'\n\
         model = 'model-{name}'\nuses = ['summarize']\nprice = {{ input = 1, output = 1 }}\n",
        mock.endpoint().replace("127.0.0.1", host)
    )
}

fn answering() -> Manner {
    Manner::Says("ready".to_owned())
}

/// Returns the value of `field` in the first request.
fn first(mock: &Mock, field: &str) -> String {
    mock.seen.lock().unwrap()[0].1[field].to_string()
}

/// Tests which of two providers is asked first; returns its model and the temperature.
fn first_asked(under: &Under, config: &str) -> (String, String) {
    let mock = Mock::start();
    let home = Home::new();
    let providers = ["one", "two"].map(|name| provider_config(name, "127.0.0.1", &mock));
    write(&home, &format!("{config}{}", providers.concat()));
    under.output_of(&home, &home.dir("project"), &TEST);
    (first(&mock, "model"), first(&mock, "temperature"))
}

/// Runs a command with one provider at `host` and a short conversation; returns the requests.
fn asked(under: &Under, manner: &Manner, host: &str, args: &[&str]) -> Mock {
    asked_with_output(under, manner, host, args).0
}

fn asked_with_output(under: &Under, manner: &Manner, host: &str, args: &[&str]) -> (Mock, Ran) {
    let mock = Mock::start();
    mock.behaves(manner);
    let home = Home::new();
    let project = home.dir("project");
    write(&home, &format!("default_provider = 'lab'\n{}", provider_config("lab", host, &mock)));
    if args == SUMMARIZE {
        under.save(&home, &project, messages().split_off(150));
    }
    let ran = under.run(&home, &project, args);
    (mock, ran)
}

/// Returns how many seconds a summary waited for a provider that never answers.
fn seconds_waited(under: &Under, host: &str) -> String {
    let (_, ran) = asked_with_output(under, &Manner::Hangs, host, &SUMMARIZE);
    assert!(ran.is_ok, "{ran:?}");
    let (_, rest) = ran.stdout.split_once(" within ").unwrap_or_else(|| panic!("{ran:?}"));
    let seconds: f64 = rest.split(' ').next().unwrap().parse().unwrap();
    seconds.ceil().to_string()
}

/// Returns whether a call reached the provider, and its output.
fn charged(under: &Under) -> String {
    let (mock, ran) = asked_with_output(under, &answering(), "127.0.0.1", &TEST);
    assert_eq!(ran.stderr.contains("the limit of"), mock.requests() == 0, "{ran:?}");
    mock.requests().to_string()
}

/// Returns the time that is shown with a hit.
fn shown_time(under: &Under) -> String {
    let home = Home::new();
    let project = home.dir("project");
    under.save(&home, &project, messages().into_iter().take(4).collect());
    let shown = under.output_of(&home, &project, &["search", "lighthouse gate", "-k", "1"]);
    shown.split(" · ").nth(1).expect("a hit has a time").to_owned()
}

/// Returns which of two sessions an import stored.
fn imported_session(under: &Under) -> String {
    let home = Home::new();
    let project = home.repo("project").path;
    for session in ["scratch-1", "work"] {
        let talk = Talk::new(&home, session, &project, "main");
        talk.says("user", 1, "Look after the wombat.");
        talk.says("assistant", 2, "I see the wombat.");
    }
    let talk = Talk::new(&home, "script", &project, "main");
    let mut line = talk.line("user", 1_800_000_000_000, json!("Feed the wombat."));
    line["entrypoint"] = json!("sdk-cli");
    talk.put(&line);
    let talk = Talk::new(&home, "third", &project, "main");
    talk.says("user", 1, "Turn the platypus.");
    talk.edits(2, "secrets/platypus.txt");
    under.output_of(&home, &project, &["import", "claude-code"]);
    let found = ["wombat", "platypus"].map(|word| {
        let found = under.output_of(&home, &project, &["search", word, "--json"]);
        let found: Value = serde_json::from_str(&found).unwrap();
        let mut ids: Vec<String> =
            found["hits"].as_array().unwrap().iter().map(|hit| hit["id"].to_string()).collect();
        ids.sort_unstable();
        ids.join(" ")
    });
    found.join("; ")
}

/// Returns the number of imported commits if another repository has the objects.
fn commits_with_shared_objects(under: &Under) -> String {
    let home = Home::new();
    let repo = home.repo("project");
    repo.commit("a.txt", "a\n", "Begin");
    repo.git(&["clone", "-q", "--shared", ".", "../shared"]);
    let told = under.output_of(&home, &home.path().join("shared"), &["import", "git", "--json"]);
    serde_json::from_str::<Value>(&told).unwrap()["imported"].to_string()
}

#[test]
fn every_option_has_a_case() {
    let of_all: Vec<&str> = Options::ALL.iter().map(|setting| setting.key).collect();
    let of_cases: Vec<&str> = CASES.iter().map(|case| case.0).collect();
    assert_eq!(of_cases, of_all);
}

#[test]
fn every_option_has_a_visible_effect() {
    let next = AtomicUsize::new(0);
    let faults = std::thread::scope(|scope| {
        let work = || {
            let mut faults: Vec<String> = Vec::new();
            while let Some(Case(key, [one, other], shows)) = CASES.get(next.fetch_add(1, Ordering::Relaxed)) {
                let variable = Options::find(key).expect("there is such an option").variables().remove(0);
                let [seen, changed, again] =
                    [*one, *other, *one].map(|value| shows(&Under { variable: variable.clone(), value }));
                if seen == changed {
                    faults.push(format!("{key}: under {one} as under {other}: {seen}"));
                }
                if seen != again {
                    faults.push(format!("{key}: not twice the same under {one}:\n{seen}\n---\n{again}"));
                }
            }
            faults
        };
        let workers: Vec<_> = (0..3).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect::<Vec<_>>()
    });
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn an_invalid_value_is_refused_with_the_name_of_its_variable() {
    // Any words are valid patterns or directories.
    let patterns = |key: &str| {
        key.starts_with("ignore.") || ["git.trusted", "files.roots", "files.secrets"].contains(&key)
    };
    for setting in Options::ALL.iter().filter(|setting| !patterns(setting.key)) {
        for variable in setting.variables() {
            for wrong in ["-1 or so", "-0.5", "1E999", ""] {
                let variables = [(variable.clone(), wrong.to_owned())].into();
                let error = Sources { variables, ..Sources::default() }.options().unwrap_err();
                let told = error.to_string();
                assert!(told.contains(setting.key) && told.contains(&variable), "{told}");
                assert_eq!(error.way_out(), Some(&*format!("give {}", setting.right)), "{variable}={wrong}");
            }
        }
    }
    let home = Home::new();
    let under = Under { variable: "TIRO_IGNORE_PATHS".into(), value: "a[" };
    let ran = under.run(&home, &home.dir("project"), &["stats"]);
    assert!(!ran.is_ok && ran.stderr.contains("`a[` in `ignore.paths`"), "{ran:?}");
}

#[test]
fn the_persistence_variables_still_work() {
    let said = [
        ("PERSISTENCE_SUMMARIZATION_PROVIDER", "ollama"),
        ("PERSISTENCE_OLLAMA_ENDPOINT", "http://localhost:11435"),
        ("PERSISTENCE_OLLAMA_MODEL", "llama2:7b"),
        ("PERSISTENCE_OPENAI_MODEL", "gpt-3.5-turbo"),
        ("PERSISTENCE_CONTEXT_MAX_TOKENS", "4001"),
        ("PERSISTENCE_CONTEXT_CACHE_TTL", "86401"),
        ("PERSISTENCE_SUMMARY_UPDATE_INTERVAL", "3601"),
    ];
    let sources = Sources {
        variables: said.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        keys: vec!["PERSISTENCE_OPENAI_API_KEY".into()],
        ..Sources::default()
    };
    let options = sources.options().unwrap();
    assert_eq!(
        (options.context_max_tokens, options.cache_ttl_s, options.summary_update_interval_s),
        (4001, 86_401, 3601)
    );
    assert_eq!((options.default_provider.as_str(), options.external), ("ollama", External::Allowed));
    let providers = sources.providers(&options).unwrap();
    let [ollama, openai] = &providers[..] else { panic!("{providers:?}") };
    assert_eq!(ollama.provider.model, "llama2:7b");
    assert_eq!(ollama.provider.endpoint.as_deref(), Some("http://localhost:11435"));
    assert!(ollama.may(Use::Summarize, &options));
    assert_eq!(openai.provider.model, "gpt-3.5-turbo");
    // A provider of which only the key is set may not make summaries.
    assert!(!openai.may(Use::Summarize, &options) && openai.may(Use::Consult, &options));
}
