//! What `init` writes starts Tiro also after an upgrade, lets agents call the tools that only read, and configures no
//! provider because of a key.

#![cfg(unix)]

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::harness::{Home, Ran, strings};

fn home() -> Home {
    let home = Home::new();
    for client in [".claude", ".codex", ".gemini"] {
        home.dir(&format!("home/{client}"));
    }
    home
}

/// Puts the program at `path`, as an installer does.
fn install(path: &Path) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let built = Path::new(env!("CARGO_BIN_EXE_tiro"));
    if std::fs::hard_link(built, path).is_err() {
        std::fs::copy(built, path).unwrap();
    }
}

/// Runs `typed` as a shell would that has `folder` first on its `PATH`.
fn run(home: &Home, typed: &Path, folder: &Path, directory: &Path, args: &[&str]) -> Ran {
    let like = home.tiro(directory, args);
    let mut command = Command::new(typed);
    command.args(args).current_dir(directory).env_clear();
    command.envs(like.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let path =
        [folder.as_os_str(), std::env::var_os("PATH").unwrap_or_default().as_os_str()].join(":".as_ref());
    Ran::of(command.env("PATH", path))
}

/// Returns the program in each file that starts one, by the name of the file.
fn started(home: &Home, hook: &Path) -> BTreeMap<String, PathBuf> {
    let at = |name: &str| home.path().join("home").join(name);
    let read = |name: &str| -> Value { serde_json::from_slice(&std::fs::read(at(name)).unwrap()).unwrap() };
    let toml: toml_edit::DocumentMut =
        std::fs::read_to_string(at(".codex/config.toml")).unwrap().parse().unwrap();
    let path = |value: &Value| PathBuf::from(value.as_str().unwrap());
    let before = |line: &Value, end: &str| PathBuf::from(line.as_str().unwrap().strip_suffix(end).unwrap());
    let hook = std::fs::read_to_string(hook).unwrap();
    let hook = hook.split_once("[ -x ").unwrap().1.split_once(" ]").unwrap().0;
    BTreeMap::from([
        (
            "claude server".into(),
            path(&read(".claude/skills/tiro/.mcp.json")["mcpServers"]["tiro"]["command"]),
        ),
        (
            "claude hook".into(),
            path(&read(".claude/skills/tiro/hooks/hooks.json")["hooks"]["Stop"][0]["hooks"][0]["command"]),
        ),
        ("codex server".into(), PathBuf::from(toml["mcp_servers"]["tiro"]["command"].as_str().unwrap())),
        (
            "codex hook".into(),
            before(&read(".codex/hooks.json")["hooks"]["Stop"][0]["hooks"][0]["command"], " hook codex"),
        ),
        ("gemini server".into(), path(&read(".gemini/settings.json")["mcpServers"]["tiro"]["command"])),
        (
            "gemini hook".into(),
            before(
                &read(".gemini/settings.json")["hooks"]["AfterAgent"][0]["hooks"][0]["command"],
                " hook gemini",
            ),
        ),
        ("git hook".into(), PathBuf::from(hook)),
    ])
}

/// The path of the version used to be written, which an upgrade removes: no server and no hook started anymore.
#[test]
fn what_was_set_up_through_a_stable_link_starts_after_an_upgrade() {
    // How each installer places a version, the stable path to it, and what the user types.
    for (version, stable, link, typed) in [
        ("Cellar/tiro/0.1.0", "bin/tiro", ("bin/tiro", "ROOT/Cellar/tiro/0.1.0/bin/tiro"), "bin/tiro"),
        (
            "Cellar/tiro/0.1.0",
            "bin/tiro",
            ("bin/tiro", "../Cellar/tiro/0.1.0/bin/tiro"),
            "Cellar/tiro/0.1.0/bin/tiro",
        ),
        (
            "nix/store/0123456789abcdfghijklmnpqrsvwxyz-tiro",
            "profile/bin/tiro",
            ("profile", "ROOT/nix/store/0123456789abcdfghijklmnpqrsvwxyz-tiro"),
            "profile/bin/tiro",
        ),
        (
            "mise/installs/tiro/0.1.0",
            "mise/installs/tiro/latest/bin/tiro",
            ("mise/installs/tiro/latest", "0.1.0"),
            "mise/installs/tiro/latest/bin/tiro",
        ),
    ] {
        let home = home();
        let repo = home.repo("repo");
        let at = |name: &str| home.path().join(name);
        install(&at(version).join("bin/tiro"));
        let connect = |to: &str| {
            std::fs::create_dir_all(at(link.0).parent().unwrap()).unwrap();
            let _ = std::fs::remove_file(at(link.0));
            symlink(to.replace("ROOT", home.path().to_str().unwrap()), at(link.0)).unwrap();
        };
        connect(link.1);
        let ran = run(&home, &at(typed), at(stable).parent().unwrap(), &repo.path, &["init", "--yes"]);
        assert!(ran.is_ok, "{ran:?}");
        let started = started(&home, &repo.path.join(".git/hooks/post-commit"));
        assert!(started.values().all(|program| *program == at(stable)), "{typed}: {started:#?}");
        let next = version.replace("0.1.0", "0.2.0").replace("0123", "3210");
        std::fs::rename(at(version), at(&next)).unwrap();
        connect(&link.1.replace("0.1.0", "0.2.0").replace("0123", "3210"));
        assert!(started.values().all(|program| program.exists()), "{started:#?}");
        let told = run(&home, &at(stable), at(stable).parent().unwrap(), &repo.path, &["doctor"]);
        assert!(told.is_ok, "{told:?}");
    }
}

/// A program that is gone used to be reported as a file that differs, without saying what does not work.
#[test]
fn a_path_that_is_gone_is_recognised_and_init_mends_it() {
    let home = home();
    let (repo, other) = (home.repo("repo"), home.repo("other"));
    let (old, new) = (home.path().join("0.1.0/tiro"), home.path().join("bin/tiro"));
    let nowhere = home.dir("nowhere");
    install(&old);
    for repo in [&repo, &other] {
        assert!(run(&home, &old, &nowhere, &repo.path, &["init", "--yes"]).is_ok);
    }
    install(&new);
    let old_folder = old.parent().unwrap();
    // The same program by another path is no fault.
    let same = home.dir("same");
    symlink(&old, same.join("tiro")).unwrap();
    let told = run(&home, &same.join("tiro"), &nowhere, &repo.path, &["doctor"]);
    assert!(told.is_ok && told.stdout.contains("would write another path to it"), "{told:?}");
    std::fs::remove_dir_all(old_folder).unwrap();
    let told = run(&home, &new, &nowhere, &repo.path, &["doctor"]);
    let gone = format!("starts `{}`, which is gone", old.display());
    assert!(!told.is_ok, "{told:?}");
    for file in [".mcp.json", "hooks.json", "config.toml", "settings.json", "repo/.git/hooks/post-commit"] {
        let line = told.stdout.lines().find(|line| line.contains(&format!("{file}` {gone}")));
        assert!(line.is_some_and(|line| line.starts_with("FAIL")), "{file}: {told:?}");
    }
    assert!(told.stdout.contains("mend: tiro init\n"), "{told:?}");
    // The hook of another repository is mended there.
    let elsewhere = told.stdout.lines().find(|line| line.contains("other/.git/hooks/post-commit"));
    assert!(elsewhere.is_some_and(|line| line.starts_with("ok") && line.contains(&gone)), "{told:?}");

    assert!(run(&home, &new, &nowhere, &repo.path, &["init", "--yes"]).is_ok);
    let started = started(&home, &repo.path.join(".git/hooks/post-commit"));
    assert!(started.values().all(|program| *program == new), "{started:#?}");
    let told = run(&home, &new, &nowhere, &repo.path, &["doctor"]);
    assert!(told.is_ok && !told.stdout.contains("repo/.git/hooks/post-commit` starts"), "{told:?}");
}

/// `doctor` used to fail in every repository but the one in which `init` ran.
#[test]
fn doctor_does_not_miss_a_hook_that_was_never_there() {
    let home = home();
    let (repo, other) = (home.repo("repo"), home.repo("other"));
    assert!(home.run(&repo.path, &["init", "--yes"]).is_ok);
    let told = home.run(&other.path, &["doctor"]);
    assert!(told.is_ok && told.stdout.contains("no hook of Tiro"), "{told:?}");
    // A hook that was there and is changed is a fault.
    let hook = repo.path.join(".git/hooks/post-commit");
    let text = std::fs::read_to_string(&hook).unwrap();
    std::fs::write(&hook, text.replace("hook git-post-commit", "hook git-post")).unwrap();
    let told = home.run(&repo.path, &["doctor"]);
    assert!(!told.is_ok && told.stdout.contains("differs from what `tiro init` would write"), "{told:?}");
}

/// An agent had to ask its user before each search.
#[test]
fn init_offers_to_allow_the_tools_that_only_read_and_remove_takes_that_back() {
    let home = home();
    let repo = home.repo("repo");
    let at = |name: &str| home.path().join("home").join(name);
    let settings = at(".claude/settings.json");
    let mine = "{\n  // mine\n  \"permissions\": {\"allow\": [\"Bash(ls:*)\"], \"deny\": []},\n  \"cleanupPeriodDays\": 999,\n}\n";
    std::fs::write(&settings, mine).unwrap();
    let declined = home.run(&repo.path, &["init", "--yes", "--ask-before-tools"]);
    assert!(declined.is_ok && !at(".gemini/policies").exists(), "{declined:?}");
    assert_eq!(std::fs::read_to_string(&settings).unwrap(), mine);
    assert!(home.run(&repo.path, &["doctor"]).is_ok);

    let shown = home.run(&repo.path, &["init", "--dry-run"]);
    assert!(shown.stderr.contains("without asking: search_project_memory, expand_detail,"), "{shown:?}");
    let ran = home.run(&repo.path, &["init", "--yes"]);
    assert!(ran.is_ok && ran.stderr.contains("Next:\n"), "{ran:?}");
    let allowed = std::fs::read_to_string(&settings).unwrap();
    let policy = std::fs::read_to_string(at(".gemini/policies/tiro.toml")).unwrap();
    let policy: toml_edit::DocumentMut = policy.parse().unwrap();
    let rule = policy["rule"].as_array_of_tables().unwrap().get(0).unwrap();
    let named: Vec<&str> =
        rule["toolName"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    assert_eq!((rule["mcpName"].as_str(), rule["decision"].as_str()), (Some("tiro"), Some("allow")));
    // Exactly the tools that say that they only read.
    let mut server = home.serve(&repo.path);
    let tools = server.request("tools/list", json!({}))["result"]["tools"].clone();
    let tools: Vec<&Value> = tools.as_array().unwrap().iter().collect();
    let reading = tools.iter().filter(|tool| tool["annotations"]["readOnlyHint"] == true);
    let reading: Vec<&str> = reading.map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(named, reading);
    for name in &reading {
        assert!(allowed.contains(&format!("\"mcp__plugin_tiro_tiro__{name}\"")), "{name}: {allowed}");
    }
    assert_eq!(allowed.matches("mcp__plugin_tiro_tiro__").count(), reading.len());
    assert!(allowed.contains("// mine") && allowed.contains("\"Bash(ls:*)\""), "{allowed}");
    // Claude Code shows these without a search for tools.
    let loaded = tools.iter().filter(|tool| tool["_meta"]["anthropic/alwaysLoad"] == true);
    let loaded: Vec<&str> = loaded.map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(loaded, ["search_project_memory", "expand_detail", "retrieve_context"]);

    // What the user adds later stays; everything else is as it was.
    std::fs::write(&settings, allowed.replace("\"Bash(ls:*)\"", "\"Bash(ls:*)\", \"Bash(cat:*)\"")).unwrap();
    assert!(home.run(&repo.path, &["init", "--remove"]).is_ok);
    let left = std::fs::read_to_string(&settings).unwrap();
    assert_eq!(left, mine.replace("\"Bash(ls:*)\"", "\"Bash(ls:*)\", \"Bash(cat:*)\""));
    assert!(!at(".gemini/policies").exists() && !at(".claude/skills").exists());

    // Also without the record of what was written.
    std::fs::remove_file(&settings).unwrap();
    assert!(home.run(&repo.path, &["init", "--yes"]).is_ok);
    std::fs::remove_dir_all(home.data().join("init")).unwrap();
    assert!(home.run(&repo.path, &["init", "--remove"]).is_ok);
    assert!(!settings.exists() && !at(".claude/skills/tiro").exists());
    assert!(!at(".gemini/policies/tiro.toml").exists());
}

#[test]
fn the_skill_is_short_and_the_prompts_name_the_tools() {
    let home = home();
    let repo = home.repo("repo");
    assert!(home.run(&repo.path, &["init", "--yes"]).is_ok);
    let skill = std::fs::read_to_string(home.path().join("home/.claude/skills/tiro/SKILL.md")).unwrap();
    assert!(
        skill.starts_with("---\nname: tiro\ndescription: Use ") && skill.split_whitespace().count() <= 300
    );
    let mut server = home.serve(&repo.path);
    let tools = server.request("tools/list", json!({}))["result"]["tools"].clone();
    let tools = strings(tools.as_array().unwrap(), "name");
    let named = |text: &str| {
        let quoted = text.split('`').skip(1).step_by(2).filter(|word| word.contains('_'));
        let words: Vec<String> = quoted.map(str::to_owned).collect();
        assert!(!words.is_empty() && words.iter().all(|word| tools.contains(word)), "{words:?}");
    };
    named(&skill.replace("`session_id`", ""));
    let listed = server.request("prompts/list", json!({}))["result"]["prompts"].clone();
    let names: Vec<&str> = listed.as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["recall", "where-we-left-off"]);
    for (name, arguments) in
        [("recall", json!({"about": "the capstan"})), ("recall", json!({})), ("where-we-left-off", json!({}))]
    {
        let filled = server.request("prompts/get", json!({"name": name, "arguments": arguments}));
        let text = filled["result"]["messages"][0]["content"]["text"].as_str().unwrap();
        named(text);
        assert_eq!(text.contains("the capstan"), arguments["about"].is_string(), "{text}");
    }
    let unknown = server.request("prompts/get", json!({"name": "other"}));
    assert!(unknown["error"]["message"].as_str().unwrap().contains("`other`"), "{unknown}");
}

/// `OPENAI_API_KEY` alone used to offer `chat_with_openai` to every agent.
#[test]
fn a_key_in_the_environment_configures_nothing_and_is_named() {
    let home = home();
    let repo = home.repo("repo");
    let keys =
        [("OPENAI_API_KEY", "sk-none-1"), ("ANTHROPIC_API_KEY", "sk-none-2"), ("GEMINI_API_KEY", "none-3")];
    let run = |args: &[&str]| Ran::of(home.tiro(&repo.path, args).envs(keys));
    let tools = || {
        let mut command = home.tiro(&repo.path, &["serve"]);
        command.envs(keys);
        let mut server = crate::harness::Server::start(command);
        let tools = server.request("tools/list", json!({}))["result"]["tools"].to_string();
        tools.matches("\"chat_with_").count()
    };
    assert_eq!(tools(), 0);
    let (shown, told) = (run(&["init", "--dry-run"]), run(&["doctor"]));
    for (name, provider) in [("OPENAI", "openai"), ("ANTHROPIC", "anthropic"), ("GEMINI", "gemini")] {
        for text in [&shown.stderr, &told.stdout] {
            assert!(text.contains(&format!("{name}_API_KEY is set")), "{text}");
            assert!(text.contains(&format!("tiro provider add {provider}")), "{text}");
            assert!(!text.contains("none-"), "{text}");
        }
    }
    // The one command makes an assistant of a key, and is no longer suggested.
    let added = run(&["provider", "add", "openai"]);
    assert!(added.is_ok, "{added:?}");
    assert_eq!(tools(), 1);
    let told = run(&["doctor"]).stdout;
    assert!(!told.contains("OPENAI_API_KEY is set") && told.contains("GEMINI_API_KEY is set"), "{told}");
}

/// In a folder that the user doesn't trust, Gemini CLI starts no server, and says nothing about it outside a terminal.
#[test]
fn gemini_is_offered_trust_in_the_folder_unless_it_has_settings_or_the_user_spoke() {
    let home = home();
    let (repo, second, with_settings) = (home.repo("repo"), home.repo("second"), home.repo("with-settings"));
    let file = home.path().join("home/.gemini/trustedFolders.json");
    let init = |directory: &Path| assert!(home.run(directory, &["init", "--yes"]).is_ok);
    let trusted = || -> Value { serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap() };
    let key = |repo: &crate::harness::Repo| repo.path.to_str().unwrap().to_owned();
    with_settings.write(".gemini/settings.json", "{}");
    init(&with_settings.path);
    assert!(!file.exists());
    init(&repo.path);
    assert_eq!(trusted(), json!({key(&repo): "TRUST_FOLDER"}));
    assert!(home.run(&second.path, &["doctor"]).is_ok);
    init(&repo.path);
    // The user trusts others later.
    let theirs = json!({"/elsewhere": "TRUST_FOLDER", key(&repo): "TRUST_FOLDER"});
    std::fs::write(&file, theirs.to_string()).unwrap();
    init(&second.path);
    assert_eq!(trusted().as_object().unwrap().len(), 3);
    assert!(home.run(&second.path, &["init", "--remove", "--all"]).is_ok);
    assert_eq!(trusted(), json!({"/elsewhere": "TRUST_FOLDER"}));

    for said in [json!({key(&repo): "DO_NOT_TRUST"}), json!({home.path().to_str().unwrap(): "TRUST_FOLDER"})]
    {
        std::fs::write(&file, said.to_string()).unwrap();
        init(&repo.path);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), said.to_string());
    }
}
