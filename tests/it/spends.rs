//! Tests which models may be asked and what they may cost. Nothing is sent to a provider that the user did not
//! configure, no limit is exceeded, and no file, answer or log contains a key.

use serde_json::{Value, json};

use crate::harness::{Home, Ran};
use crate::mock::{Manner, Mock};

/// A home with a project and a separate configuration file.
fn begin(config: &str) -> (Home, std::path::PathBuf) {
    let home = Home::new();
    let project = home.repo("project").path;
    write(&home, config);
    (home, project)
}

fn file(home: &Home) -> std::path::PathBuf {
    home.path().join("home/.config/tiro/config.toml")
}

pub fn write(home: &Home, config: &str) {
    std::fs::create_dir_all(file(home).parent().unwrap()).unwrap();
    std::fs::write(file(home), config).unwrap();
}

/// Runs a command with a variable set.
fn with(home: &Home, project: &std::path::Path, variables: &[(&str, &str)], args: &[&str]) -> Ran {
    let mut command = home.tiro(project, args);
    command.envs(variables.iter().copied());
    crate::harness::feed(command, b"")
}

fn mocked(mock: &Mock, more: &str) -> String {
    format!(
        "[providers.mock]\nservice = 'openai-compatible'\nendpoint = '{}'\nmodel = 'm'\n\
         price = {{ input = 100, output = 1000 }}\n{more}",
        mock.endpoint()
    )
}

#[test]
fn a_broken_configuration_is_reported_with_its_line_and_stops_no_hook() {
    let (home, project) = begin("[context]\nmax_tokens = 'a lot'\n");
    let ran = home.run(&project, &["stats"]);
    assert!(!ran.is_ok && ran.stderr.contains("config.toml`, line 2"), "{ran:?}");
    assert!(ran.stderr.contains("hint: give a whole number, 300 to 20000"), "{ran:?}");
    let told = home.run(&project, &["doctor"]);
    assert!(told.stdout.contains("FAIL configuration: `context.max_tokens`"), "{told:?}");
    std::fs::write(project.join("t"), "").unwrap();
    let payload =
        json!({"session_id": "s", "hook_event_name": "SessionStart", "transcript_path": project.join("t")});
    let hook = home.feed(&project, &["hook", "claude-code"], payload.to_string().as_bytes());
    assert!(hook.is_ok && hook.stdout.contains("Tiro keeps") && hook.stderr.is_empty(), "{hook:?}");
    assert_eq!(home.waiting(), 1);
    // A flag overrides a value of the file, but a mistake in the file is still an error.
    write(&home, "[context]\nmax_tokens = 300\n");
    assert!(home.run(&project, &["stats", "--set", "context.max_tokens=400"]).is_ok);
    let ran = home.run(&project, &["stats", "--set", "context.max_token=400"]);
    assert!(!ran.is_ok && ran.stderr.contains("--set is not an option"), "{ran:?}");
    assert!(home.run(&project, &["doctor"]).stdout.contains("ok   configuration: "));
}

#[test]
fn patterns_of_the_file_keep_sessions_out() {
    let (home, project) = begin("[ignore]\nsessions = ['scratch-*']\n");
    for session in ["scratch-1", "work"] {
        let talk = crate::talk::Talk::new(&home, session, &project, "main");
        talk.says("user", 1, &format!("the wombat of {session}"));
        talk.says("assistant", 2, "I see.");
    }
    assert!(home.run(&project, &["import", "claude-code"]).is_ok);
    let told = home.run(&project, &["search", "wombat"]).stdout;
    assert!(told.contains("wombat of work") && !told.contains("scratch"), "{told}");
}

#[test]
fn the_command_line_edits_the_configuration_and_shows_what_leaves_the_machine() {
    let (home, project) = begin("# by hand\nexternal = 'allowed'\n");
    let told = home.run(&project, &["provider", "list"]);
    assert!(told.stdout.contains("nothing leaves this machine"), "{told:?}");
    let added =
        home.run(&project, &["provider", "add", "openai", "--model", "gpt-4.1-mini", "--price", "1,2"]);
    assert!(added.is_ok && added.stdout.contains("OPENAI_API_KEY"), "{added:?}");
    assert!(added.stdout.contains("it makes no summaries until the user allows it"), "{added:?}");
    let shown = home.json(&project, &["provider", "show"]);
    assert_eq!(shown["providers"][0]["uses"], json!(["consult"]), "{shown}");
    assert!(home.run(&project, &["provider", "add", "openai", "--use", "summarize,consult"]).is_ok);
    let shown = home.json(&project, &["provider", "show", "openai"]);
    assert_eq!((&shown["default"], &shown["providers"][0]["is_local"]), (&json!("openai"), &json!(false)));
    let discloses = shown["providers"][0]["discloses"].as_str().unwrap();
    assert!(discloses.contains("conversations and commits that are summarised"), "{discloses}");
    let closed = home.json(&project, &["provider", "show", "--set", "external=never"]);
    assert!(closed["providers"][0]["discloses"].as_str().unwrap().contains("`external` is `never`"));
    let written = std::fs::read_to_string(file(&home)).unwrap();
    assert!(written.starts_with("# by hand\n") && written.contains("[providers.openai]"), "{written}");
    let wrong =
        home.run(&project, &["provider", "add", "lab", "--service", "openai-compatible", "--model", "m"]);
    assert!(!wrong.is_ok && wrong.stderr.contains("names no `endpoint`"), "{wrong:?}");
    assert_eq!(std::fs::read_to_string(file(&home)).unwrap(), written);
    assert!(home.run(&project, &["provider", "remove", "openai"]).is_ok);
    assert!(!home.run(&project, &["provider", "remove", "openai"]).is_ok);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(std::fs::metadata(file(&home)).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[test]
fn calls_are_charged_to_the_ledger_up_to_the_limit() {
    let mock = Mock::start();
    let (home, project) = begin(&format!("{}\n[limits]\ntotal = 2\n", mocked(&mock, "max_output = 100\n")));
    let tried = home.json(&project, &["provider", "test", "mock"]);
    assert_eq!(tried["answer"], "ready", "{tried}");
    // 30 tokens cost 100 dollars per million, and 10 tokens cost 1000 dollars per million.
    let cost = 0.013;
    assert!((tried["cost"].as_f64().unwrap() - cost).abs() < 1e-9, "{tried}");
    let day = home.json(&project, &["stats"])["spending"][0].clone();
    assert_eq!(
        (&day["provider"], &day["calls"], &day["input"]),
        (&json!("mock"), &json!(1), &json!(30)),
        "{day}"
    );
    assert!((day["cost"].as_f64().unwrap() - cost).abs() < 1e-9, "{day}");
    for limit in
        ["limits.call=0.01", "limits.day=0.02", "limits.project=0.02", "limits.total=0", "limits.day=0"]
    {
        let refused = home.run(&project, &["provider", "test", "mock", "--set", limit]);
        assert!(!refused.is_ok && refused.stderr.contains("the limit of"), "{limit}: {refused:?}");
        assert!(refused.stderr.contains("hint: `tiro provider show`"), "{refused:?}");
    }
    assert_eq!(mock.requests(), 1, "a call that is refused sends nothing");
    let shown = home.run(&project, &["provider", "show"]).stdout;
    assert!(shown.contains("mock") && shown.contains("0.013"), "{shown}");
}

#[test]
fn a_key_is_read_for_each_call_and_is_in_no_file_answer_or_log() {
    const KEY: &str = "plain-words-that-no-rule-knows-7731";
    let mock = Mock::start();
    let (home, project) = begin(&mocked(&mock, "max_output = 60\nkey_variable = 'LAB_API_KEY'\n"));
    let unset = home.run(&project, &["provider", "test", "mock"]);
    assert!(!unset.is_ok && unset.stderr.contains("LAB_API_KEY"), "{unset:?}");
    assert_eq!(mock.requests(), 0);
    // Nothing was sent, so nothing was spent.
    assert_eq!(home.json(&project, &["stats"])["spending"][0]["cost"], 0.0);
    let set = with(&home, &project, &[("LAB_API_KEY", KEY)], &["provider", "test", "mock"]);
    assert!(set.is_ok, "{set:?}");
    assert!(mock.seen.lock().unwrap()[0].0.contains(KEY), "the service got the key");
    let shown = with(&home, &project, &[("LAB_API_KEY", KEY)], &["provider", "show", "--json"]);
    assert!(shown.stdout.contains("variable LAB_API_KEY, set"), "{shown:?}");
    for said in [&set.stdout, &set.stderr, &shown.stdout, &shown.stderr] {
        assert!(!said.contains(KEY), "{said}");
    }
    assert_eq!(home.files_with(KEY), Vec::<std::path::PathBuf>::new());
    assert!(!std::fs::read_to_string(file(&home)).unwrap().contains(KEY));
}

#[test]
#[cfg(unix)]
fn a_key_file_that_others_can_read_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let mock = Mock::start();
    let (home, project) = begin("");
    let key = home.path().join("key");
    write(&home, &mocked(&mock, &format!("max_output = 60\nkey_file = '{}'\n", key.display())));
    std::fs::write(&key, "secret-in-a-file\n").unwrap();
    let mode = |mode| std::fs::set_permissions(&key, std::fs::Permissions::from_mode(mode)).unwrap();
    mode(0o644);
    let refused = home.run(&project, &["provider", "test", "mock"]);
    assert!(!refused.is_ok && refused.stderr.contains("others can read it"), "{refused:?}");
    assert_eq!(mock.requests(), 0);
    mode(0o600);
    assert!(home.run(&project, &["provider", "test", "mock"]).is_ok);
    assert!(mock.seen.lock().unwrap()[0].0.contains("secret-in-a-file"));
}

#[test]
fn the_tool_accepts_no_new_address_and_no_key() {
    const KEY: &str = "sk-proj-Zq8Lk2Vn5Xw1Rt7Yb4Mc9Pd3Hf6Jg0Ks";
    let (home, project) = begin(
        "[providers.lab]\nservice = 'openai-compatible'\nmodel = 'm'\nendpoint = 'https://lab.example/v1'\n",
    );
    let before = std::fs::read_to_string(file(&home)).unwrap();
    let mut server = home.serve(&project);
    let mut refused = |arguments: Value, words: &str| {
        let told = server.error("configure_llm_provider", arguments.clone());
        assert!(told.contains(words), "{arguments}: {told}");
        assert!(!told.contains(&KEY[8..]), "{told}");
    };
    for endpoint in [
        "https://evil.example/v1",
        "http://localhost@evil.example",
        "http://127.0.0.1.evil.example",
        "http://localhost\\.evil.example",
        "https://lab.example/v1",
    ] {
        refused(json!({"provider": "openai", "config": {"endpoint": endpoint, "model": "m"}}), "endpoint");
    }
    refused(json!({"provider": "lab", "config": {"endpoint": "https://lab.example.evil/v1"}}), "`endpoint`");
    // Any program may listen on a port of this machine: an agent may use only the default port of a service.
    for endpoint in [
        "http://127.0.0.1:9",
        "http://127.0.0.1:5432",
        "http://localhost",
        "http://localhost:114340",
        "http://localhost:11434/api/delete",
        "https://localhost:11434",
        "http://127.0.0.1:11434.evil.example",
        "http://127.9.9.9:11435",
    ] {
        refused(json!({"provider": "ollama", "config": {"endpoint": endpoint, "model": "m"}}), "ndpoint");
    }
    for endpoint in ["http://127.0.0.1:8080/v1", "http://[::1]:11434"] {
        refused(
            json!({"provider": "openai", "config": {"endpoint": endpoint, "model": "m"}}),
            "tiro provider add",
        );
    }
    refused(json!({"provider": "openai", "config": {"apiKeyEnv": KEY}}), "`api_key_env`");
    refused(json!({"provider": "openai", "config": {"apiKeyEnv": "PATH"}}), "`api_key_env`");
    refused(json!({"provider": "openai", "config": {"model": KEY}}), "the arguments contain a key");
    refused(json!({"provider": KEY, "config": {}}), "the arguments contain a key");
    refused(json!({"provider": "lab", "config": {"apiKeyEnv": "OPENAI_API_KEY"}}), "`api_key_env`");
    refused(
        json!({"provider": "openai", "config": {"endpoint": "http://localhost:1/v1", "apiKeyEnv": "OPENAI_API_KEY"}}),
        "`api_key_env`",
    );
    refused(json!({"provider": "ollama", "config": {"temperature": 9}}), "temperature");
    refused(json!({"config": {}}), "`provider`");
    assert_eq!(std::fs::read_to_string(file(&home)).unwrap(), before, "nothing was written");

    let seed = json!({
        "provider": "openai", "setAsDefault": true,
        "config": {"model": "gpt-4.1-mini", "apiKeyEnv": "OPENAI_API_KEY", "maxTokens": 900, "temperature": 0.2},
    });
    let data = server.data("configure_llm_provider", seed.clone());
    assert_eq!((&data["changed"], &data["default"]), (&json!(true), &json!("openai")), "{data}");
    let openai = data["providers"].as_array().unwrap().iter().find(|each| each["name"] == "openai").unwrap();
    assert_eq!(openai["uses"], json!(["consult"]), "a model can't let memory out: {data}");
    assert_eq!(server.data("configure_llm_provider", seed)["changed"], false);
    let local = json!({"operation": "set", "config": {"provider": "ollama", "model": "llama3.2", "endpoint": "http://localhost:11434/"}});
    let data = server.data("configure_llm_provider", local);
    let ollama = data["providers"].as_array().unwrap().iter().find(|each| each["name"] == "ollama").unwrap();
    assert_eq!(ollama["uses"], json!(["summarize", "consult"]), "{data}");
    let preferred =
        server.data("configure_llm_provider", json!({"operation": "default", "provider": "ollama"}));
    assert_eq!(preferred["default"], "ollama");
    let written = std::fs::read_to_string(file(&home)).unwrap();
    assert!(
        written.contains("max_output = 900") && written.contains("key_variable = \"OPENAI_API_KEY\""),
        "{written}"
    );
    let log = server.end();
    assert!(!log.contains(&KEY[8..]), "{log}");
}

#[test]
fn the_tool_sends_a_key_only_to_its_service() {
    const KEY: &str = "plain-words-that-no-rule-knows-5150";
    let mock = Mock::start();
    let (home, project) = begin("");
    let key = home.path().join("key");
    std::fs::write(&key, KEY).unwrap();
    let with_file = format!("[providers.anthropic]\nkey_file = '{}'\nuses = ['summarize']\n", key.display());
    let with_variable = "[providers.openai]\nkey_variable = 'LAB_API_KEY'\nuses = ['summarize']\n";
    write(&home, &format!("default_provider = 'openai'\n{with_variable}{with_file}"));
    let mut command = home.tiro(&project, &["serve"]);
    for name in ["LAB_API_KEY", "STRIPE_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"] {
        command.env(name, KEY);
    }
    let mut server = crate::harness::Server::start(command);
    let configured = |provider: &str, config: Value| json!({"provider": provider, "config": config});
    let mut refused = |arguments: Value, words: &str| {
        let told = server.error("configure_llm_provider", arguments.clone());
        assert!(told.contains(words) && told.contains("tiro provider add"), "{arguments}: {told}");
    };
    let here = json!({"endpoint": mock.endpoint()});
    // None of these keys may be used: the user's keys in a variable or a file, one that is only in the environment and
    // configures nothing, and one that the agent names before the user does.
    for provider in ["openai", "anthropic"] {
        refused(configured(provider, here.clone()), "would send the key of");
    }
    refused(configured("gemini", here.clone()), "is neither the default address of `gemini`");
    for variable in ["STRIPE_API_KEY", "LAB_API_KEY", "ANTHROPIC_API_KEY"] {
        refused(configured("gemini", json!({"apiKeyEnv": variable})), "does not name a variable for keys of");
    }
    server.data("configure_llm_provider", configured("gemini", json!({"apiKeyEnv": "GEMINI_API_KEY"})));
    let mut refused = |arguments: Value, words: &str| {
        let told = server.error("configure_llm_provider", arguments.clone());
        assert!(told.contains(words), "{arguments}: {told}");
    };
    refused(configured("gemini", here.clone()), "would send the key of");
    refused(configured("ollama", json!({"model": "m\u{200b}-cloud"})), "`providers.ollama.model`");
    refused(configured("ollama", json!({"model": "a".repeat(300)})), "`providers.ollama.model`");
    server.end();
    let written = std::fs::read_to_string(file(&home)).unwrap();
    assert!(!written.contains("endpoint") && !written.contains("STRIPE"), "{written}");

    // Only the user can move a provider without a key to this machine, and the provider gets no key there.
    write(&home, "");
    let mut server = home.serve(&project);
    let refused = server.error("configure_llm_provider", configured("openai", here.clone()));
    assert!(
        refused.contains("one that the user configured") && refused.contains("tiro provider add"),
        "{refused}"
    );
    let endpoint = here["endpoint"].as_str().unwrap();
    let added = home.run(&project, &["provider", "add", "openai", "--endpoint", endpoint, "--model", "m"]);
    assert!(added.is_ok, "{added:?}");
    let again = server.data("configure_llm_provider", configured("openai", here));
    assert_eq!(again["changed"], false, "{again}");
    let told =
        server.error("configure_llm_provider", configured("openai", json!({"apiKeyEnv": "OPENAI_API_KEY"})));
    assert!(told.contains("would send a key"), "{told}");
    server.end();
}

/// An agent used to be able to name a model that Ollama passes on, and the next summary left the machine.
#[test]
fn an_agent_opens_no_way_out_of_the_machine() {
    let (home, project) = begin("");
    let local = "[providers.ollama]\nmodel = 'llama3.2'\n";
    let lab = "[providers.openai]\nmodel = 'gpt-4.1'\nuses = ['summarize']\n";
    write(&home, &format!("default_provider = 'ollama'\nfallback_provider = 'none'\n{local}{lab}"));
    let before = std::fs::read_to_string(file(&home)).unwrap();
    let mut server = home.serve(&project);
    for model in ["gpt-oss:120b-cloud", "qwen3-coder:480B-Cloud", "glm:cloud"] {
        let arguments = json!({"provider": "ollama", "config": {"model": model}});
        let told = server.error("configure_llm_provider", arguments);
        assert!(told.contains("another machine") && told.contains("tiro provider add"), "{model}: {told}");
    }
    for arguments in [
        json!({"operation": "default", "provider": "openai"}),
        json!({"provider": "openai", "config": {"model": "gpt-4.1-mini"}, "set_as_default": true}),
    ] {
        let told = server.error("configure_llm_provider", arguments);
        assert!(told.contains("would leave") && told.contains("tiro provider default"), "{told}");
    }
    assert_eq!(std::fs::read_to_string(file(&home)).unwrap(), before, "nothing was written");
    // What the user decided, the agent may repeat, and it may go back.
    assert!(home.run(&project, &["provider", "default", "openai"]).is_ok);
    for provider in ["openai", "ollama"] {
        let arguments = json!({"operation": "default", "provider": provider});
        assert_eq!(server.data("configure_llm_provider", arguments)["default"], provider);
    }
}

#[test]
fn an_unknown_provider_cannot_be_the_default_and_a_limit_can_be_removed() {
    let (home, project) = begin("# mine\n");
    let absent = home.run(&project, &["provider", "default", "openai"]);
    assert!(!absent.is_ok && absent.stderr.contains("there is no provider `openai`"), "{absent:?}");
    assert_eq!(std::fs::read_to_string(file(&home)).unwrap(), "# mine\n");
    let lab =
        ["provider", "add", "lab", "--service", "openai-compatible", "--model", "m", "--use", "summarize"];
    let limits = ["--endpoint", "https://lab.invalid/v1", "--limit-day", "1", "--limit-call", "0.5"];
    assert!(home.run(&project, &[&lab[..], &limits[..]].concat()).is_ok);
    let shown = home.run(&project, &["provider", "show"]);
    assert!(shown.stdout.contains("summaries are made without a model"), "{shown:?}");
    assert!(shown.stdout.contains("`lab` is not asked: the price of model `m`"), "{shown:?}");
    assert!(shown.stdout.contains("$0.50 a call, $1.00 a day"), "{shown:?}");
    let tiny = home.run(&project, &["provider", "add", "lab", "--limit-call", "0.0000001"]);
    assert!(!tiny.is_ok && tiny.stderr.contains("at least 0.000001"), "{tiny:?}");
    assert!(home.run(&project, &["provider", "add", "lab", "--limit-call", "none"]).is_ok);
    assert!(home.run(&project, &["provider", "show"]).stdout.contains("limits $1.00 a day"));
    assert!(home.run(&project, &["provider", "add", "lab", "--limit-day", "none"]).is_ok);
    assert!(!std::fs::read_to_string(file(&home)).unwrap().contains("limits"));
}

#[test]
fn a_request_is_repeated_only_while_the_limits_have_room_for_all_of_them() {
    let mock = Mock::start();
    let (home, project) = begin(&format!("max_retries = 10\n{}", mocked(&mock, "max_output = 60\n")));
    mock.behaves(&Manner::BreaksOff);
    // Each call costs about 0.07 dollars.
    let ran = home.run(&project, &["provider", "test", "mock", "--set", "limits.total=0.25"]);
    assert!(!ran.is_ok && ran.stderr.contains("was not asked again: asking `mock` may cost"), "{ran:?}");
    let spent = home.json(&project, &["stats"])["spending"][0]["cost"].as_f64().unwrap();
    let requests = mock.requests();
    assert!((2..=4).contains(&requests), "{requests}");
    assert!(spent <= 0.25 && spent >= requests as f64 * 0.06, "{requests} requests, {spent}");
}

#[test]
fn the_usage_of_a_provider_is_counted_if_it_is_plausible() {
    let mock = Mock::start();
    let (home, project) = begin(&format!("{}\n[limits]\nday = 1\n", mocked(&mock, "max_output = 100\n")));
    let essay = "The wombat digs a burrow beside the old lighthouse. ".repeat(9);
    for (text, said, least, most) in [("ready", 1_000_000_000, 0.1, 0.12), (essay.as_str(), 1, 0.05, 0.12)] {
        mock.behaves(&Manner::Claims(text.into(), said, said));
        let tried = home.json(&project, &["provider", "test", "mock"]);
        let cost = tried["cost"].as_f64().unwrap();
        assert!((least..=most).contains(&cost), "{tried}");
        assert!(tried["notices"][0].as_str().unwrap().contains("which is implausible"), "{tried}");
    }
}

#[test]
fn a_model_on_this_machine_may_summarise_as_soon_as_it_is_named() {
    let (home, project) = begin("");
    let mut server = home.serve(&project);
    let named = |data: &Value, name: &str| {
        let providers = data["providers"].as_array().unwrap().clone();
        providers.into_iter().find(|each| each["name"] == name).unwrap_or_else(|| panic!("no {name}: {data}"))
    };
    // The tool configures providers by their names and by common aliases. The answer says which provider each became.
    let data = server.data("configure_llm_provider", json!({"provider": "llama.cpp"}));
    assert_eq!(named(&data, "llamacpp")["uses"], json!(["summarize", "consult"]), "{data}");
    assert_eq!(
        (&data["default"], &named(&data, "llamacpp")["place"]),
        (&json!("llamacpp"), &json!("this machine"))
    );
    assert!(data["notices"].to_string().contains("`llama.cpp` is configured as `llamacpp`"), "{data}");
    let at_home = json!({"provider": "LM-Studio", "config": {"model": "qwen3", "endpoint": "http://localhost:1234/v1"}});
    let data = server.data("configure_llm_provider", at_home);
    assert_eq!(named(&data, "lmstudio")["uses"], json!(["summarize", "consult"]), "{data}");
    assert_eq!(data["default"], "llamacpp", "the first stays the one to ask: {data}");
    for (name, called) in [("google", "gemini"), ("Claude", "anthropic"), ("chatgpt", "openai")] {
        let data =
            server.data("configure_llm_provider", json!({"provider": name, "config": {"temperature": 0.5}}));
        assert_eq!(named(&data, called)["uses"], json!(["consult"]), "{data}");
        assert!(data["notices"].to_string().contains(&format!("configured as `{called}`")), "{data}");
    }
    // The port of another server is not accepted under any name.
    for (name, endpoint) in [
        ("llama.cpp", "http://localhost:1234/v1"),
        ("lmstudio", "http://localhost:8080/v1"),
        ("vllm", "http://localhost:8000/v1/admin"),
        ("vllm", "http://localhost:80000/v1"),
        ("claude", "http://localhost:8080/v1"),
    ] {
        let arguments = json!({"provider": name, "config": {"model": "m", "endpoint": endpoint}});
        let told = server.error("configure_llm_provider", arguments);
        assert!(told.contains("ndpoint"), "{name} {endpoint}: {told}");
    }
    server.end();
    let shown = home.run(&project, &["provider", "show"]);
    assert!(shown.stdout.contains("summaries are made by llamacpp"), "{shown:?}");

    // The same provider is added on the command line and then written by hand into a file that names no default.
    let mock = Mock::start();
    write(&home, "");
    let endpoint = mock.endpoint();
    let lab =
        ["provider", "add", "lab", "--service", "openai-compatible", "--model", "m", "--endpoint", &endpoint];
    let added = home.run(&project, &lab);
    assert!(added.is_ok && added.stdout.contains("it may make summaries"), "{added:?}");
    let tried = home.json(&project, &["provider", "test"]);
    assert_eq!((&tried["name"], &tried["cost"]), (&json!("lab"), &json!(0.0)), "{tried}");
    let written =
        format!("[providers.lab]\nservice = 'openai-compatible'\nendpoint = '{endpoint}'\nmodel = 'm'\n");
    write(&home, &written);
    assert_eq!(home.json(&project, &["provider", "test"])["name"], "lab");
    assert_eq!(mock.requests(), 2);
    write(&home, &written.replace("model", "uses = ['consult']\nmodel"));
    assert!(
        !home.run(&project, &["provider", "test"]).is_ok,
        "what is named for something else is not asked"
    );
    let google = home.run(&project, &["provider", "add", "google", "--model", "gemini-2.5-pro"]);
    assert!(google.is_ok && google.stdout.contains("`google` is configured as `gemini`"), "{google:?}");
    assert!(home.run(&project, &["provider", "remove", "google"]).is_ok);
}

#[test]
fn a_key_leaves_the_machine_only_encrypted() {
    let (home, project) = begin("");
    let lab = ["provider", "add", "lab", "--service", "openai-compatible", "--model", "m"];
    let plain = ["--endpoint", "http://lab.invalid:8080/v1", "--price", "0,0"];
    let keyed = ["--key-variable", "LAB_API_KEY"];
    let refused = home.run(&project, &[&lab[..], &plain, &keyed].concat());
    assert!(!refused.is_ok && refused.stderr.contains("to lab.invalid:8080 unencrypted"), "{refused:?}");
    assert!(refused.stderr.contains("https://") && refused.stderr.contains("ssh -L"), "{refused:?}");
    assert!(!file(&home).exists() || !std::fs::read_to_string(file(&home)).unwrap().contains("lab"));
    // The user may configure it if it has no key or the connection is encrypted.
    assert!(home.run(&project, &[&lab[..], &plain].concat()).is_ok);
    let later = home.run(&project, &[&["provider", "add", "lab"][..], &keyed].concat());
    assert!(!later.is_ok && later.stderr.contains("unencrypted"), "{later:?}");
    let moved = ["provider", "add", "lab", "--endpoint", "https://lab.invalid/v1"];
    assert!(home.run(&project, &[&moved[..], &keyed].concat()).is_ok);
    // If the file was written by hand, it is refused and the error names the line.
    let by_hand = std::fs::read_to_string(file(&home)).unwrap().replace("https://", "http://");
    write(&home, &by_hand);
    let tried = with(&home, &project, &[("LAB_API_KEY", "plain-words")], &["provider", "test", "lab"]);
    assert!(!tried.is_ok && tried.stderr.contains("config.toml`, line"), "{tried:?}");
    assert!(tried.stderr.contains("unencrypted"), "{tried:?}");
    // Such a file used to stop every command and the server. Now everything else works, and `doctor` reports the
    // mistake.
    let key = [("LAB_API_KEY", "plain-words")];
    for args in [&["search", "lantern"][..], &["provider", "show"], &["sessions"]] {
        let ran = with(&home, &project, &key, args);
        assert!(ran.is_ok, "{args:?}: {ran:?}");
    }
    let told = with(&home, &project, &key, &["doctor"]);
    assert!(!told.is_ok && told.stdout.contains("FAIL providers: `providers.lab` in "), "{told:?}");
    // Another provider in the file can still be changed.
    assert!(home.run(&project, &["provider", "add", "openai", "--model", "gpt-5"]).is_ok);
    let moved = ["provider", "add", "lab", "--endpoint", "https://lab.invalid/v1"];
    assert!(home.run(&project, &moved).is_ok);
}

#[test]
fn a_refused_request_costs_nothing() {
    let mock = Mock::start();
    let (home, project) = begin(&format!("max_retries = 1\n{}", mocked(&mock, "max_output = 60\n")));
    let refused = |status: u16, more: &'static str| {
        mock.behaves(&Manner::Refuses(status, more));
        let ran = home.run(&project, &["provider", "test", "mock"]);
        assert!(!ran.is_ok, "{ran:?}");
        let day = home.json(&project, &["stats"])["spending"][0].clone();
        (day["cost"].as_f64().unwrap(), day["failed"].as_i64().unwrap())
    };
    for (place, status) in [400, 401, 403, 404, 429].into_iter().enumerate() {
        assert_eq!(refused(status, ""), (0.0, place as i64 + 1), "{status}");
    }
    // The service may have worked on the failed request, so both requests count.
    let (cost, _) = refused(500, "");
    assert!(cost > 0.1, "{cost}");
    assert_eq!(refused(401, "").0, cost);
}

#[test]
fn an_estimate_shows_the_likely_and_the_highest_cost() {
    let mock = Mock::start();
    let config = format!("default_provider = 'mock'\n{}", mocked(&mock, "uses = ['summarize']\n"));
    let (home, project) = begin(&config);
    let mut server = home.serve(&project);
    let said: Vec<Value> = (0..30)
        .map(|n| json!({"role": "user", "text": format!("On day {n} the wombat dug {n} burrows near the old lighthouse.")}))
        .collect();
    server.data("save_messages", json!({"session_id": "s", "messages": said}));
    for args in [&["summarize", "s", "--dry-run"][..], &["summarize", "--all", "--dry-run"]] {
        let data = home.json(&project, args);
        let amounts = if data["at_most"].is_object() { &data["at_most"] } else { &data };
        let (likely, most) = (amounts["likely_usd"].as_f64().unwrap(), amounts["cost_usd"].as_f64().unwrap());
        assert!(likely > 0.0 && likely * 2.0 < most, "{data}");
        let told = home.run(&project, args).stdout;
        assert!(told.contains("likely for $") && told.contains(" at most"), "{told}");
    }
    // A model on this machine costs nothing, and the answer says so.
    write(&home, &config.replace("price = { input = 100, output = 1000 }\n", ""));
    let told = home.run(&project, &["summarize", "s", "--dry-run"]).stdout;
    assert!(told.contains("at no cost"), "{told}");
    assert_eq!(mock.requests(), 0);
}

#[test]
fn a_provider_with_an_unknown_price_is_not_asked() {
    let (home, project) = begin(
        "[providers.lab]\nservice = 'openai-compatible'\nmodel = 'm'\nendpoint = 'https://lab.invalid/v1'\n",
    );
    let refused = home.run(&project, &["provider", "test", "lab"]);
    assert!(!refused.is_ok && refused.stderr.contains("the price of model `m`"), "{refused:?}");
    assert!(refused.stderr.contains("--price"), "{refused:?}");
    let closed = home.run(&project, &["provider", "test", "lab", "--set", "external=never"]);
    assert!(closed.stderr.contains("`external` is `never`"), "{closed:?}");
}

#[test]
fn eight_processes_in_eight_projects_overspend_nothing() {
    let mock = Mock::start();
    // A call costs 0.013 dollars, but about 0.1 dollars are reserved for it, so a few calls reach the limit.
    let home = Home::new();
    write(&home, &format!("{}\n[limits]\ntotal = 0.5\n", mocked(&mock, "max_output = 60\n")));
    let projects: Vec<_> = (0..8).map(|number| home.repo(&format!("project{number}")).path).collect();
    let granted: usize = std::thread::scope(|scope| {
        let home = &home;
        let racers = projects.iter().map(|project| {
            scope.spawn(move || {
                let tries = (0..12).take_while(|_| home.run(project, &["provider", "test", "mock"]).is_ok);
                tries.count()
            })
        });
        let racers: Vec<_> = racers.collect();
        racers.into_iter().map(|racer| racer.join().unwrap()).sum()
    });
    assert_eq!(mock.requests(), granted, "whoever asked was granted it");
    let billed = granted as f64 * 0.013;
    assert!(billed <= 0.5, "{granted} calls");
    let spent: f64 = home.json(&projects[0], &["stats"])["spending"]
        .as_array()
        .unwrap()
        .iter()
        .map(|day| day["cost"].as_f64().unwrap())
        .sum();
    assert!((spent - billed).abs() < 1e-6, "{spent} and {billed}");
    assert!(granted > 8, "{granted}");
}
