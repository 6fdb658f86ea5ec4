//! `tiro init --client NAME` connects a client of which Tiro reads no transcripts, and nothing else.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::harness::{Home, Ran, Repo, Server};

/// Returns a home with a repository and the folders of editors.
fn desk() -> (Home, Repo, PathBuf) {
    let home = Home::new();
    let scratch = home.dir("home");
    for folder in [".config/Code/User", ".config/zed", ".codeium/windsurf", ".config/Claude"] {
        std::fs::create_dir_all(scratch.join(folder)).unwrap();
    }
    let repo = home.repo("repo");
    repo.commit("a.txt", "a\n", "Begin the gearbox");
    (home, repo, scratch)
}

fn read(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap();
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().starts_with("//")).collect();
    serde_json::from_str(&lines.join("\n")).unwrap()
}

fn has(ran: &Ran, texts: &[&str]) -> bool {
    texts.iter().all(|text| ran.stdout.contains(text) || ran.stderr.contains(text))
}

#[cfg(target_os = "linux")]
#[test]
fn a_named_client_gets_a_working_server_and_remove_restores_its_file() {
    let (home, repo, scratch) = desk();
    let settings = scratch.join(".config/zed/settings.json");
    let old = "{\n  // mine\n  \"theme\": \"One Dark\"\n}\n";
    std::fs::write(&settings, old).unwrap();
    // A client that is not named is not set up.
    home.dir("home/.claude");
    let looked = home.run(&repo.path, &["init", "--client", "zed", "--dry-run"]);
    assert!(looked.is_ok && has(&looked, &["Zed", "zed/settings.json", "captured: nothing"]), "{looked:?}");
    assert_eq!(std::fs::read_to_string(&settings).unwrap(), old);
    let asked = home.run(&repo.path, &["init", "--client", "zed"]);
    assert!(!asked.is_ok && has(&asked, &["no terminal to ask on", "--yes"]), "{asked:?}");

    let ran = home.run(&repo.path, &["init", "--client", "zed", "--client", "windsurf", "--yes"]);
    assert!(ran.is_ok && has(&ran, &["Wrote 2 files", "In Zed, ", "In Windsurf, "]), "{ran:?}");
    assert!(!scratch.join(".claude/skills").exists() && !repo.path.join(".git/hooks/post-commit").exists());
    let again = home.run(&repo.path, &["init", "--client", "windsurf", "--client", "zed", "--yes"]);
    assert!(again.is_ok && again.stdout.contains("nothing was changed"), "{again:?}");

    let windsurf = scratch.join(".codeium/windsurf/mcp_config.json");
    let zed = read(&settings)["context_servers"]["tiro"].clone();
    let elsewhere = home.dir("elsewhere");
    for (server, directory) in
        [(zed, &repo.path), (read(&windsurf)["mcpServers"]["tiro"].clone(), &elsewhere)]
    {
        let arguments: Vec<&str> =
            server["args"].as_array().unwrap().iter().map(|each| each.as_str().unwrap()).collect();
        assert_eq!(server["command"], env!("CARGO_BIN_EXE_tiro"));
        let mut server = Server::start(home.tiro(directory, &arguments));
        server.data("store_memory", json!({"text": "the gearbox is greased", "type": "fact"}));
        assert!(!server.search("gearbox").is_empty());
        server.end();
    }
    let told = home.run(&repo.path, &["doctor"]);
    assert!(told.is_ok && has(&told, &["Zed is set up", "Windsurf is set up"]), "{told:?}");
    assert!(told.stdout.contains("Claude Code: `") && told.stdout.contains("is not set up"), "{told:?}");

    let removed = home.run(&repo.path, &["init", "--remove"]);
    assert!(removed.is_ok && removed.stdout.contains("Restored 2 files"), "{removed:?}");
    assert_eq!(std::fs::read_to_string(&settings).unwrap(), old);
    assert!(!windsurf.exists() && !home.data().join("init").exists());
}

#[cfg(target_os = "linux")]
#[test]
fn doctor_finds_an_entry_whose_program_is_gone_and_init_repairs_it() {
    let (home, repo, scratch) = desk();
    let config = scratch.join(".config/Code/User/mcp.json");
    assert!(home.run(&repo.path, &["init", "--client", "vscode", "--yes"]).is_ok);
    let server = json!({
        "type": "stdio", "command": env!("CARGO_BIN_EXE_tiro"),
        "args": ["serve", "--project", "${workspaceFolder}"],
    });
    assert_eq!(read(&config), json!({"servers": {"tiro": server}}));
    let gone = std::fs::read_to_string(&config).unwrap().replace(env!("CARGO_BIN_EXE_tiro"), "/gone/tiro");
    std::fs::write(&config, &gone).unwrap();
    let told = home.run(&repo.path, &["doctor"]);
    assert!(
        !told.is_ok && has(&told, &["FAIL", "VS Code: `", "starts `/gone/tiro`, which is gone"]),
        "{told:?}"
    );
    // Another program at another path is an older or newer Tiro.
    std::fs::create_dir(scratch.join("old")).unwrap();
    let older = scratch.join("old/tiro");
    std::fs::write(&older, "").unwrap();
    std::fs::write(&config, gone.replace("/gone/tiro", older.to_str().unwrap())).unwrap();
    let told = home.run(&repo.path, &["doctor"]);
    assert!(!told.is_ok && has(&told, &["differs from what `tiro init` would write"]), "{told:?}");
    let repaired = home.run(&repo.path, &["init", "--yes", "--no-backfill"]);
    assert!(repaired.is_ok, "{repaired:?}");
    assert_eq!(read(&config)["servers"]["tiro"], server);
    assert!(home.run(&repo.path, &["init", "--remove"]).is_ok);
    assert!(!config.exists());
}

#[cfg(target_os = "linux")]
#[test]
fn an_entry_names_the_project_that_the_user_names() {
    let (home, repo, scratch) = desk();
    let outside = home.dir("home/plain");
    let path = repo.path.to_str().unwrap().to_owned();
    let named = |client: &str, file: &str, servers: &str, arguments: &[&str]| {
        let ran = home.run(&outside, &[&["init", "--client", client, "--yes"], arguments].concat());
        assert!(ran.is_ok, "{ran:?}");
        read(&scratch.join(file))[servers]["tiro"]["args"].clone()
    };
    let project = ["--project", path.as_str()];
    let expected = json!(["serve", "--project", path]);
    let file = ".config/Claude/claude_desktop_config.json";
    assert_eq!(named("claude-desktop", file, "mcpServers", &project), expected);
    assert_eq!(named("zed", ".config/zed/settings.json", "context_servers", &project), expected);
    assert_eq!(named("zed", ".config/zed/settings.json", "context_servers", &[]), json!(["serve"]));
    let missing = home.run(&outside, &["init", "--client", "zed", "--yes", "--project", "/nowhere"]);
    assert!(!missing.is_ok && has(&missing, &["/nowhere"]), "{missing:?}");
    let refused = home.run(&scratch, &["init", "--client", "windsurf", "--yes"]);
    assert!(!refused.is_ok && has(&refused, &["Windsurf must name a project", "`--project`"]), "{refused:?}");
}

#[test]
fn what_cannot_be_written_is_printed_to_be_pasted() {
    let (home, repo, scratch) = desk();
    let ran = home.run(&repo.path, &["init", "--client", "other"]);
    let program = env!("CARGO_BIN_EXE_tiro");
    let entry = json!({"mcpServers": {"tiro": {"command": program, "args": ["serve"]}}});
    assert!(ran.is_ok && has(&ran, &["Another client: paste this into the configuration"]), "{ran:?}");
    assert_eq!(serde_json::from_str::<Value>(&ran.stdout).unwrap(), entry, "stdout is the text alone");
    let ran = home.run(&repo.path, &["init", "--client", "jetbrains", "--dry-run"]);
    let pasted: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(pasted["mcpServers"]["tiro"]["args"], json!(["serve", "--project", repo.path]));
    let ran = home.run(&repo.path, &["init", "--client", "goose"]);
    assert!(ran.stdout.starts_with("extensions:\n  tiro:\n    type: stdio\n"), "{ran:?}");
    let both = home.json(&repo.path, &["init", "--client", "goose", "--client", "other", "--yes"]);
    assert_eq!((&both["clients"], &both["written"]), (&json!(["goose", "other"]), &json!([])), "{both}");
    assert_eq!(serde_json::from_str::<Value>(both["paste"][1]["text"].as_str().unwrap()).unwrap(), entry);
    assert!(
        !home.data().join("init").exists()
            && std::fs::read_dir(scratch.join(".config/zed")).unwrap().next().is_none()
    );
}

#[cfg(target_os = "linux")]
#[test]
fn wrong_names_and_wrong_files_are_refused_with_a_way_out() {
    let (home, repo, scratch) = desk();
    let wrong = home.run(&repo.path, &["init", "--client", "emacs"]);
    let names =
        ["vscode", "cursor", "zed", "windsurf", "claude-desktop", "junie", "jetbrains", "goose", "other"];
    assert!(!wrong.is_ok && has(&wrong, &names) && has(&wrong, &["emacs"]), "{wrong:?}");
    let help = home.run(&repo.path, &["init", "--help"]);
    assert!(
        help.is_ok && has(&help, &names) && has(&help, &["VS Code", "JetBrains AI Assistant"]),
        "{help:?}"
    );
    for arguments in [["--scope", "project"], ["--client", "zed"]] {
        let both = home.run(&repo.path, &[&["init", "--remove"], &arguments[..]].concat());
        assert!(!both.is_ok && has(&both, &["cannot be used with"]), "{both:?}");
    }
    let absent = home.run(&repo.path, &["init", "--client", "cursor", "--yes"]);
    assert!(
        !absent.is_ok && has(&absent, &["Cursor is not installed here", "start Cursor once"]),
        "{absent:?}"
    );

    let config = scratch.join(".config/Code/User/mcp.json");
    for (text, says) in [
        ("{\"servers\": []}", "`servers` is not an object"),
        ("{\"servers\": {", "not valid JSON"),
        ("{\"servers\": {\"tiro\": {\"type\": \"http\", \"url\": \"https://x\"}}}", "starts another program"),
    ] {
        std::fs::write(&config, text).unwrap();
        let ran = home.run(&repo.path, &["init", "--client", "vscode", "--yes"]);
        assert!(!ran.is_ok && has(&ran, &["Nothing was changed.", "Not changed:", says]), "{ran:?}");
        assert_eq!(std::fs::read_to_string(&config).unwrap(), text);
    }
}
