//! The manifests for registries and clients agree with the program.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::harness::Home;

fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// Builds a bundle in `home` from fake programs. Returns `None` if there is no Python.
fn bundle(home: &Home, args: &[&str]) -> Option<PathBuf> {
    let bundle = home.path().join("tiro.mcpb");
    let built = Command::new("python3")
        .arg(root("packaging/mcpb/build"))
        .args(args)
        .arg("--out")
        .arg(&bundle)
        .current_dir(home.path())
        .output();
    let Ok(output) = built else {
        eprintln!("skipped: there is no `python3`");
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(bundle)
}

#[test]
fn server_json_has_this_version_and_the_arguments_to_start() {
    let server = read(&root("server.json"));
    let schema = server["$schema"].as_str().unwrap();
    assert!(schema.starts_with("https://static.modelcontextprotocol.io/schemas/"), "{schema}");
    assert!(schema.ends_with("/server.schema.json"), "{schema}");
    // A name in the registry belongs to the owner of the repository. Until `repository` is set, the name has a
    // placeholder, which the registry refuses. Then the registry looks for the name in the readme.
    let owner = env!("CARGO_PKG_REPOSITORY").strip_prefix("https://github.com/");
    let owner = owner.and_then(|rest| rest.split('/').next());
    let name = format!("io.github.{}/tiro", owner.unwrap_or("OWNER"));
    assert_eq!(server["name"], name);
    if owner.is_some() {
        let readme = std::fs::read_to_string(root("README.md")).unwrap();
        assert!(readme.contains(&format!("mcp-name: {name}")));
    }
    assert_eq!(server["version"], env!("CARGO_PKG_VERSION"));
    assert!((1..=100).contains(&server["description"].as_str().unwrap().chars().count()));
    let [package] = &server["packages"].as_array().unwrap()[..] else { panic!("{server}") };
    assert_eq!(package["registryType"], "cargo");
    assert_eq!(package["identifier"], env!("CARGO_PKG_NAME"));
    assert_eq!(package["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(package["transport"], json!({"type": "stdio"}));
    let arguments = package["packageArguments"].as_array().unwrap();
    assert_eq!((&arguments[0]["type"], &arguments[0]["value"]), (&json!("positional"), &json!("serve")));
    assert_eq!((&arguments[1]["type"], &arguments[1]["name"]), (&json!("named"), &json!("--project")));
}

#[test]
fn the_bundle_lists_the_tools_that_the_server_lists() {
    let manifest = read(&root("packaging/mcpb/manifest.json"));
    assert_eq!(manifest["manifest_version"], "0.3");
    assert_eq!(manifest["name"], env!("CARGO_PKG_NAME"));
    assert_eq!(manifest["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(manifest["description"], env!("CARGO_PKG_DESCRIPTION").split(':').next().unwrap());
    assert_eq!(manifest["license"], env!("CARGO_PKG_LICENSE"));

    let home = Home::new();
    let listed = home.serve(&home.dir("project")).request("tools/list", json!({}));
    let listed = listed["result"]["tools"].as_array().unwrap();
    let expected: Vec<Value> =
        listed.iter().map(|tool| json!({"name": tool["name"], "description": tool["title"]})).collect();
    assert_eq!(manifest["tools"].as_array().unwrap(), &expected);
}

#[test]
fn the_bundle_starts_the_program_in_the_chosen_project() {
    let home = Home::new();
    let project = home.dir("project");
    let manifest = read(&root("packaging/mcpb/manifest.json"));
    assert_eq!(manifest["user_config"]["project"]["type"], "directory");
    assert_eq!(manifest["user_config"]["project"]["required"], true);
    let args: Vec<String> = manifest["server"]["mcp_config"]["args"]
        .as_array()
        .unwrap()
        .iter()
        .map(|arg| arg.as_str().unwrap().replace("${user_config.project}", project.to_str().unwrap()))
        .collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    // The server is started in another directory, as a desktop application does.
    let mut server = crate::harness::Server::start(home.tiro(Path::new("/"), &args));
    server.save("s", "1", "the harbour wall was painted grey");
    assert_eq!(home.serve(&project).search("harbour wall").len(), 1);
}

#[test]
fn a_bundle_contains_and_names_only_the_given_programs() {
    let home = Home::new();
    let (one, two) = (home.path().join("one"), home.path().join("two"));
    std::fs::write(&one, "program one").unwrap();
    std::fs::write(&two, "program two").unwrap();
    let (darwin, windows) = (format!("darwin={}", one.display()), format!("win32={}", two.display()));
    let url = "https://example.org/v0/tiro.mcpb";
    let args = [darwin.as_str(), windows.as_str(), "--url", url];
    let Some(path) = bundle(&home, &args) else { return };

    let mut archive = zip::ZipArchive::new(std::fs::File::open(&path).unwrap()).unwrap();
    let members: BTreeSet<String> = archive.file_names().map(|name| name.unwrap().into_owned()).collect();
    let expected =
        ["LICENSE-APACHE", "LICENSE-MIT", "manifest.json", "server/darwin/tiro", "server/win32/tiro.exe"];
    assert_eq!(members, expected.map(str::to_owned).into());
    let mut text_of = |name: &str| {
        let mut member = archive.by_name(name).unwrap();
        let mut text = String::new();
        member.read_to_string(&mut text).unwrap();
        (text, member.unix_mode().unwrap() & 0o777)
    };
    assert_eq!(text_of("server/darwin/tiro"), ("program one".to_owned(), 0o755));
    assert_eq!(text_of("server/win32/tiro.exe"), ("program two".to_owned(), 0o755));

    let manifest: Value = serde_json::from_str(&text_of("manifest.json").0).unwrap();
    assert_eq!(manifest["compatibility"]["platforms"], json!(["darwin", "win32"]));
    let server = &manifest["server"];
    assert_eq!(server["type"], "binary");
    assert!(members.contains(server["entry_point"].as_str().unwrap()), "{server}");
    let config = &server["mcp_config"];
    let overrides = config["platform_overrides"].as_object().unwrap();
    assert_eq!(overrides.keys().collect::<Vec<_>>(), ["darwin", "win32"]);
    let commands = overrides.values().map(|each| &each["command"]).chain([&config["command"]]);
    for command in commands {
        let member = command.as_str().unwrap().strip_prefix("${__dirname}/").unwrap();
        assert!(members.contains(member), "{member}");
    }

    let registry = read(&home.path().join("server.json"));
    let offered = &registry["packages"][1];
    assert_eq!(offered["registryType"], "mcpb");
    assert_eq!(offered["identifier"], url);
    let bytes = std::fs::read(&path).unwrap();
    let sum = <sha2::Sha256 as sha2::Digest>::digest(&bytes);
    let sum: String = sum.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(offered["fileSha256"], sum);

    bundle(&home, &args);
    assert!(std::fs::read(&path).unwrap() == bytes, "the same programs made another bundle");
}

/// Returns, for each client, the command that `init` wrote for it.
fn commands(home: &Home) -> Vec<(&'static str, Vec<String>)> {
    let scratch = home.dir("home");
    let words = |server: &Value| {
        let arguments = server["args"].as_array().unwrap().iter();
        std::iter::once(&server["command"])
            .chain(arguments)
            .map(|word| word.as_str().unwrap().to_owned())
            .collect()
    };
    let codex = std::fs::read_to_string(scratch.join(".codex/config.toml")).unwrap();
    let codex: toml_edit::DocumentMut = codex.parse().unwrap();
    let codex = &codex["mcp_servers"]["tiro"];
    let codex = json!({
        "command": codex["command"].as_str(),
        "args": codex["args"].as_array().unwrap().iter().map(|word| word.as_str()).collect::<Vec<_>>(),
    });
    vec![
        ("Claude Code", words(&read(&scratch.join(".claude/skills/tiro/.mcp.json"))["mcpServers"]["tiro"])),
        ("Codex", words(&codex)),
        ("Gemini CLI", words(&read(&scratch.join(".gemini/settings.json"))["mcpServers"]["tiro"])),
    ]
}

/// Clients used to get only three of the four toolsets, so they never saw five of the twelve tools.
#[test]
fn clients_get_every_tool_that_the_readme_and_the_bundle_name() {
    let readme = std::fs::read_to_string(root("README.md")).unwrap();
    let table = readme.split_once("## Tools").unwrap().1.split("\n\n").nth(1).unwrap();
    let documented: BTreeSet<String> = table
        .lines()
        .filter_map(|line| Some(line.strip_prefix("| `")?.split_once('`')?.0.to_owned()))
        .collect();
    let manifest = read(&root("packaging/mcpb/manifest.json"));
    let name = |tool: &Value| tool["name"].as_str().unwrap().to_owned();
    let bundled: BTreeSet<String> = manifest["tools"].as_array().unwrap().iter().map(name).collect();
    assert_eq!(documented, bundled);

    let home = Home::new();
    for client in [".claude", ".codex", ".gemini"] {
        home.dir(&format!("home/{client}"));
    }
    let repo = home.repo("repo");
    let ran = home.run(&repo.path, &["init", "--yes"]);
    assert!(ran.is_ok, "{ran:?}");
    for (client, command) in commands(&home) {
        assert_eq!(command[0], env!("CARGO_BIN_EXE_tiro"), "{client}");
        let arguments: Vec<&str> = command[1..].iter().map(String::as_str).collect();
        let mut server = crate::harness::Server::start(home.tiro(&repo.path, &arguments));
        let listed = server.request("tools/list", json!({}));
        let listed: BTreeSet<String> =
            listed["result"]["tools"].as_array().unwrap().iter().map(name).collect();
        assert_eq!(listed, documented, "{client}");
    }
}
