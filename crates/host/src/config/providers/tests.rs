use std::fs;

use super::*;
use crate::config::endpoint::is_loopback;
use crate::config::{UnusedKey, key};

fn sources(file: &str, variables: &[(&str, &str)], keys: &[&str]) -> (tempfile::TempDir, Sources) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.toml");
    fs::write(&path, file).unwrap();
    let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let keys = keys.iter().map(|name| (*name).to_owned()).collect();
    (folder, Sources { variables, keys, file: Some(path), ..Sources::default() })
}

fn read(file: &str, variables: &[(&str, &str)], keys: &[&str]) -> Result<(Options, Vec<Configured>)> {
    let (_folder, sources) = sources(file, variables, keys);
    let options = sources.options()?;
    let providers = sources.providers(&options)?;
    Ok((options, providers))
}

#[test]
fn without_a_configured_provider_no_model_is_asked() {
    let (_, providers) = read("", &[], &[]).unwrap();
    assert_eq!(providers, []);
}

/// A key that was there for another program used to offer `chat_with_openai` to every agent.
#[test]
fn a_key_alone_configures_nothing_and_is_named_with_its_provider() {
    let keys = ["OPENAI_API_KEY", "GOOGLE_API_KEY", "PERSISTENCE_ANTHROPIC_API_KEY"];
    let unused = |file: &str, variables: &[(&str, &str)]| {
        let (_folder, sources) = sources(file, variables, &keys);
        let providers = sources.providers(&sources.options().unwrap()).unwrap();
        let commands: Vec<String> = sources.unused_keys(&providers).iter().map(UnusedKey::command).collect();
        (providers, commands)
    };
    let (providers, commands) = unused("", &[]);
    assert_eq!(providers, []);
    assert_eq!(
        commands,
        ["tiro provider add openai", "tiro provider add anthropic", "tiro provider add gemini"]
    );
    // A table makes a provider of the key, for consulting only, also under another name.
    let (providers, commands) =
        unused("[providers.gemini]\n[providers.o3]\nservice = 'openai'\nmodel = 'o3'\n", &[]);
    assert_eq!(providers[0].provider.key, Key::Variable("GOOGLE_API_KEY".into()));
    assert_eq!(
        (providers[0].uses.clone(), commands),
        (vec![Use::Consult], vec!["tiro provider add anthropic".into()])
    );
    // So does a variable that names the model, which is there for no other program.
    let (providers, commands) = unused("", &[("TIRO_OPENAI_MODEL", "gpt-5"), ("TIRO_GEMINI_MODEL", "g")]);
    let names: Vec<&str> = providers.iter().map(|each| each.provider.name.as_str()).collect();
    assert_eq!((names, commands), (vec!["gemini", "openai"], vec!["tiro provider add anthropic".into()]));
    assert!(providers.iter().all(|each| each.uses == [Use::Consult]));
}

#[test]
fn an_external_model_summarises_only_with_the_use_summarize() {
    let table = "[providers.openai]\nmodel = 'm'\n";
    let may = |file: &str, variables: &[(&str, &str)]| {
        let (options, providers) = read(file, variables, &["OPENAI_API_KEY"]).unwrap();
        providers.iter().any(|each| each.provider.name == "openai" && each.may(Use::Summarize, &options))
    };
    assert!(!may(table, &[]));
    assert!(!may("default_provider = 'openai'\n", &[]));
    assert!(may(&format!("{table}uses = ['summarize']\n"), &[]));
    assert!(!may(&format!("external = 'never'\n{table}uses = ['summarize']\n"), &[]));
    assert!(may("", &[("PERSISTENCE_SUMMARIZATION_PROVIDER", "openai")]));
    assert!(!may(
        "",
        &[("PERSISTENCE_SUMMARIZATION_PROVIDER", "openai"), ("TIRO_DEFAULT_PROVIDER", "ollama")]
    ));
    assert!(!may("external = 'never'\n", &[("PERSISTENCE_SUMMARIZATION_PROVIDER", "openai")]));
}

#[test]
fn a_model_on_this_machine_may_summarise_and_one_elsewhere_may_not() {
    let ollama = |endpoint: &str| {
        let variables =
            [("PERSISTENCE_OLLAMA_MODEL", "llama2:7b"), ("PERSISTENCE_OLLAMA_ENDPOINT", endpoint)];
        let (options, providers) = read("", &variables, &[]).unwrap();
        assert_eq!(providers[0].provider.model, "llama2:7b");
        (providers[0].is_local(), providers[0].may(Use::Summarize, &options))
    };
    assert_eq!(ollama("http://localhost:11434"), (true, true));
    assert_eq!(ollama("http://10.0.0.7:11434"), (false, false));
}

#[test]
fn a_table_sets_everything_of_a_provider() {
    let file = "[providers.lab]\nservice = 'openai-compatible'\nendpoint = 'https://lab.example:8443/v1'\nmodel = 'q'\n\
                key_variable = 'LAB_TOKEN'\nuses = ['summarize', 'consult']\nmemory = false\nmax_output = 900\n\
                temperature = 0.1\nwindow = 32000\nprice = { input = 1, output = 2.5 }\n\
                limits = { call = 0.01, day = 1 }\n";
    let (_, providers) = read(file, &[], &[]).unwrap();
    let [lab] = &providers[..] else { panic!("{providers:?}") };
    assert_eq!(lab.provider.key, Key::Variable("LAB_TOKEN".into()));
    assert_eq!(lab.provider.price, Some(Price { input: 1.0, output: 2.5 }));
    assert_eq!((lab.provider.window, lab.provider.max_output), (Some(32_000), Some(900)));
    assert_eq!(lab.limits, Limits { call: Some(Money(10_000)), day: Some(Money(1_000_000)) });
    assert_eq!((lab.memory, lab.uses.clone()), (false, vec![Use::Summarize, Use::Consult]));
}

#[test]
fn the_key_of_a_service_goes_to_no_other_address() {
    let at = |endpoint: &str| {
        let file = format!("[providers.openai]\nmodel = 'm'\n{endpoint}");
        read(&file, &[], &["OPENAI_API_KEY"]).unwrap().1[0].provider.key.clone()
    };
    assert_eq!(at(""), Key::Variable("OPENAI_API_KEY".into()));
    assert_eq!(at("endpoint = 'https://elsewhere.example/v1'\n"), Key::None);
}

#[test]
fn errors_in_a_table_are_named_and_a_pasted_key_is_not_repeated() {
    let error = |body: &str| {
        let error = read(&format!("[providers.lab]\n{body}"), &[], &[]).unwrap_err();
        format!("{error}; {}", error.way_out().unwrap_or_default())
    };
    let base = "service = 'openai'\nmodel = 'm'\n";
    let message = error(&format!("{base}key_variable = 'sk-proj-4f0Wd81Gk2zVbN7c'\n"));
    assert!(message.contains("providers.lab.key_variable") && message.contains("line 4"), "{message}");
    assert!(!message.contains("4f0Wd81"), "{message}");
    for (body, word) in [
        ("service = 'openai-compatible'\nmodel = 'm'\n", "`endpoint`"),
        ("model = 'm'\n", "`service`"),
        ("service = 'skynet'\n", "openai-compatible"),
        ("service = 'openai'\nmodell = 'm'\n", "`providers.lab.modell`"),
        ("service = 'openai'\nuses = ['everything']\n", "summarize"),
        ("service = 'openai'\nprice = { input = 1 }\n", "output"),
        ("service = 'openai'\nlimits = { day = -1 }\n", "day = DOLLARS"),
        ("service = 'openai'\nendpoint = 'http://localhost@evil.example'\n", "endpoint"),
        ("service = 'openai'\nwindow = 0\n", "1 or more"),
        ("service = 'openai'\nmodel = \"m\\u200b-cloud\"\n", "the model's name"),
        ("service = 'openai'\nlimits = { call = 0.0000001 }\n", "at least 0.000001"),
    ] {
        assert!(error(body).contains(word), "{body}: {}", error(body));
    }
}

#[test]
fn providers_that_are_not_tables_are_reported() {
    for file in ["providers = 5\n", "providers = []\n", "[[providers]]\nname = 'openai'\n"] {
        let error = read(file, &[], &[]).unwrap_err();
        assert!(error.to_string().contains("`providers` in") && error.way_out().is_some(), "{file}: {error}");
    }
    let error = read("", &[("TIRO_OLLAMA_MODEL", "llama\u{200b}-cloud")], &[]).unwrap_err();
    assert!(error.to_string().contains("TIRO_OLLAMA_MODEL"), "{error}");
}

#[test]
fn cloud_models_of_ollama_are_external_in_any_spelling() {
    for model in ["gpt-oss:120b-cloud", "gpt-oss:120b-CLOUD", "gpt-oss:Cloud"] {
        let file =
            format!("external = 'never'\n[providers.ollama]\nmodel = '{model}'\nuses = ['summarize']\n");
        let (options, providers) = read(&file, &[], &[]).unwrap();
        assert!(!providers[0].is_local() && !providers[0].may(Use::Summarize, &options), "{model}");
    }
}

#[test]
fn an_address_is_local_only_where_every_parser_reads_it_so() {
    for local in
        ["http://localhost", "http://LOCALHOST:1/v1", "http://127.0.0.1:11434", "https://[::1]:8080/v1"]
    {
        assert!(is_loopback(host(local).unwrap()), "{local}");
    }
    for elsewhere in
        ["https://api.example", "http://127.0.0.1.evil.example/", "http://localhost.evil.example"]
    {
        assert!(!is_loopback(host(elsewhere).unwrap()), "{elsewhere}");
    }
    for none in [
        "http://localhost@evil.example",
        "http://localhost:11434@evil.example/",
        "http://localhost\\@evil.example",
        "http://evil.example#@localhost",
        "http://evil.example?localhost",
        "http://localhost:99999",
        "http:///localhost",
        "http://",
        "//localhost",
        "ftp://localhost",
        "http://local host",
        "http://loc%61lhost",
        "http://localhost/../v1",
        "http://[::1",
        "http://[evil.example]/",
        "http://lоcalhost",
    ] {
        assert!(host(none).is_err(), "{none}");
    }
}

#[test]
#[cfg(unix)]
fn a_key_is_read_from_a_file_of_the_user_alone() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key");
    fs::write(&path, "  secret-of-mine\n").unwrap();
    let mode = |mode| fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    mode(0o600);
    assert_eq!(key(&Key::File(path.clone())).unwrap().as_deref(), Some("secret-of-mine"));
    for shared in [0o640, 0o604, 0o660] {
        mode(shared);
        let error = key(&Key::File(path.clone())).unwrap_err();
        assert!(error.to_string().contains("others can read it"), "{error}");
        assert!(error.way_out().unwrap().contains("chmod 600") && !error.to_string().contains("secret"));
    }
    assert!(key(&Key::File(folder.path().to_owned())).is_err());
    let error = key(&Key::Variable("TIRO_TEST_NO_SUCH_KEY".into())).unwrap_err();
    assert!(error.to_string().contains("TIRO_TEST_NO_SUCH_KEY") && error.to_string().contains("not set"));
    assert_eq!(key(&Key::None).unwrap(), None);
}
