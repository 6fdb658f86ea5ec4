//! Sets up Qwen Code, Copilot CLI and opencode, and takes the setup back.

use super::*;

fn reading() -> Vec<String> {
    ["search_project_memory", "list_sessions"].map(str::to_owned).into()
}

/// Sets up with all offers, and returns the record's result.
fn set_up_with_offers(home: &Home) {
    let mut plan = plan(&home.places, Path::new(BINARY), None, &reading()).unwrap();
    plan.accept_offers();
    let applied = apply(&plan.changes, &home.record()).unwrap();
    assert!(applied.findings.is_empty(), "{applied:?}");
    let again = super::plan(&home.places, Path::new(BINARY), None, &reading()).unwrap();
    assert!(again.changes.is_empty() && again.offers.is_empty(), "{}", again.text());
}

const QWEN: &str = "{\n  // mine\n  \"permissions\": { \"allow\": [\"mcp__tiro__mine\", \"Bash(git *)\"] },\n  \"hooks\": {\n    \"Stop\": [{ \"hooks\": [{ \"type\": \"command\", \"command\": \"mine\" }] }]\n  },\n}\n";
const COPILOT: &str =
    "{\"mcpServers\": {\"other\": {\"type\": \"local\", \"command\": \"a\", \"args\": []}}}";
const OPENCODE: &str = "// mine\n{\n  \"$schema\": \"https://opencode.ai/config.json\",\n  \"permission\": {\n    \"*\": \"ask\", // careful\n  },\n}\n";

#[test]
fn each_gets_its_entries_and_every_file_is_restored() {
    let home = Home::new();
    home.put(".qwen/settings.json", QWEN);
    home.put(".copilot/mcp-config.json", COPILOT);
    home.put(".copilot/hooks/mine.json", "{}");
    home.put(".config/opencode/opencode.jsonc", OPENCODE);
    let before = home.everything();
    set_up_with_offers(&home);
    let value = |name: &str| edit::value(&home.read(name)).unwrap();

    let qwen = value(".qwen/settings.json");
    assert_eq!(qwen["mcpServers"]["tiro"]["command"], BINARY);
    assert_eq!(qwen["hooks"]["Stop"][0]["hooks"][0]["command"], "mine");
    assert_eq!(qwen["hooks"]["Stop"][1]["hooks"][0]["command"], "'/opt/it'\\''s here/tiro' hook qwen");
    let rules =
        ["mcp__tiro__mine", "Bash(git *)", "mcp__tiro__search_project_memory", "mcp__tiro__list_sessions"];
    assert_eq!(qwen["permissions"]["allow"], serde_json::json!(rules));
    assert!(home.read(".qwen/settings.json").starts_with("{\n  // mine\n"));

    let copilot = &value(".copilot/mcp-config.json")["mcpServers"];
    assert_eq!(copilot["other"]["command"], "a");
    let server = serde_json::json!(
        {"type": "local", "command": BINARY, "args": ["serve"], "tools": ["*"], "timeout": 600_000}
    );
    assert_eq!(copilot["tiro"], server);
    let hooks = value(".copilot/hooks/tiro.json");
    assert!(
        hooks["hooks"]["SessionStart"][0]["hooks"][0]["command"].as_str().unwrap().ends_with("hook copilot")
    );

    let opencode = value(".config/opencode/opencode.jsonc");
    assert_eq!(opencode["mcp"]["tiro"]["command"], serde_json::json!([BINARY, "serve"]));
    assert_eq!(opencode["mcp"]["tiro"]["type"], "local");
    let rules: Vec<&String> = opencode["permission"].as_object().unwrap().keys().collect();
    assert_eq!(
        rules,
        ["*", "tiro_search_project_memory", "tiro_list_sessions"],
        "ours come last, so that they count"
    );
    assert!(!home.path(".config/opencode/opencode.json").exists());
    let plugin = home.read(".config/opencode/plugin/tiro.js");
    assert!(plugin.contains("const program = \"/opt/it's here/tiro\"\n"), "{plugin}");

    home.remove();
    assert_eq!(home.everything(), before);
}

#[test]
fn only_our_entries_are_removed_from_files_edited_since() {
    for is_recorded in [true, false] {
        let home = Home::new();
        home.put(".qwen/settings.json", QWEN);
        home.put(".copilot/mcp-config.json", COPILOT);
        home.put(".config/opencode/opencode.jsonc", OPENCODE);
        set_up_with_offers(&home);
        let edit = |name: &str, old: &str, new: &str| {
            let text = home.read(name);
            assert!(text.contains(old), "{text}");
            home.put(name, text.replacen(old, new, 1));
        };
        edit(".qwen/settings.json", "// mine", "// still mine");
        edit(".copilot/mcp-config.json", "\"other\"", "\"others\"");
        edit(".config/opencode/opencode.jsonc", "\"ask\"", "\"deny\"");
        edit(".copilot/hooks/tiro.json", "\"Stop\": [", "\"Stop\": [{ \"command\": \"mine\" }, ");
        if !is_recorded {
            fs::remove_dir_all(home.record()).unwrap();
        }
        let removed = home.remove();
        assert!(removed.findings.is_empty(), "{removed:?}");
        let value = |name: &str| edit::value(&home.read(name)).unwrap();
        let mut qwen = edit::value(QWEN).unwrap();
        if !is_recorded {
            // Without a record, the user's rule can't be told from ours.
            qwen["permissions"]["allow"].as_array_mut().unwrap().remove(0);
        }
        assert_eq!(value(".qwen/settings.json"), qwen, "{is_recorded}");
        assert!(home.read(".qwen/settings.json").contains("// still mine"));
        assert_eq!(
            value(".copilot/mcp-config.json"),
            edit::value(&COPILOT.replace("other", "others")).unwrap()
        );
        assert_eq!(
            value(".copilot/hooks/tiro.json")["hooks"]["Stop"],
            serde_json::json!([{"command": "mine"}])
        );
        assert_eq!(home.read(".config/opencode/opencode.jsonc"), OPENCODE.replace("\"ask\"", "\"deny\""));
        assert!(!home.path(".config/opencode/plugin").exists());
    }
}

#[test]
fn files_in_another_form_are_reported_and_not_changed() {
    for (name, text, says) in [
        (".qwen/settings.json", "{\"mcpServers\": 3}", "`mcpServers` is not an object"),
        (".qwen/settings.json", "{\"hooks\": {\"Stop\": {}}}", "is not an array"),
        (".qwen/settings.json", "{\"permissions\": {\"allow\": 1}}", "is not an array"),
        (".copilot/mcp-config.json", "[]", "not a JSON object"),
        (".copilot/hooks/tiro.json", "{\"hooks\": 1}", "`hooks` is not an object"),
        (".config/opencode/opencode.json", "{\"mcp\": []}", "`mcp` is not an object"),
        (".config/opencode/opencode.json", "{mcp: {}}", "not valid JSON"),
        (".config/opencode/plugin/tiro.js", "export const Mine = 1", "not Tiro's"),
    ] {
        let home = Home::new();
        let path = home.put(name, text);
        let mut plan = plan(&home.places, Path::new(BINARY), None, &reading()).unwrap();
        let finding = plan.findings.iter().find(|finding| finding.path == path);
        assert!(finding.is_some_and(|it| it.found.contains(says)), "{text}: {:?}", plan.findings);
        plan.accept_offers();
        apply(&plan.changes, &home.record()).unwrap();
        if !text.contains("allow") {
            assert_eq!(home.read(name), text);
        }
        home.remove();
        assert_eq!(home.read(name), text);
    }
}

#[test]
fn what_a_user_chose_for_the_server_stays() {
    let home = Home::new();
    home.put(
        ".copilot/mcp-config.json",
        "{\"mcpServers\": {\"tiro\": {\"type\": \"stdio\", \"command\": \"mine\", \"tools\": [\"search_project_memory\"]}}}",
    );
    home.put(".config/opencode/opencode.json", "{\"mcp\": {\"tiro\": {\"enabled\": false, \"timeout\": 7}}}");
    let before = home.everything();
    home.set_up();
    let value = |name: &str| edit::value(&home.read(name)).unwrap();
    let copilot = &value(".copilot/mcp-config.json")["mcpServers"]["tiro"];
    assert_eq!(copilot["tools"], serde_json::json!(["search_project_memory"]));
    assert_eq!((&copilot["command"], &copilot["type"]), (&BINARY.into(), &"stdio".into()));
    let opencode = &value(".config/opencode/opencode.json")["mcp"]["tiro"];
    assert_eq!((&opencode["enabled"], &opencode["timeout"]), (&false.into(), &7.into()));
    home.remove();
    assert_eq!(home.everything(), before);
}

#[test]
fn variables_move_the_files_of_clients() {
    let home = Path::new("/home/ada");
    let variable = |name: &str| match name {
        "QWEN_HOME" => Some("/q".into()),
        "COPILOT_HOME" => Some("/c".into()),
        "XDG_CONFIG_HOME" => Some("/x".into()),
        "XDG_DATA_HOME" => Some("/d".into()),
        "OPENCODE_DB" => Some("other.db".into()),
        _ => None,
    };
    let (moved, usual) = (Places::new(home.to_owned(), variable), Places::new(home.to_owned(), |_| None));
    let folders = |places: &Places| {
        [Client::Qwen, Client::Copilot, Client::Opencode]
            .map(|client| places.folder(client).unwrap().display().to_string())
    };
    assert_eq!(folders(&moved), ["/q", "/c", "/x/opencode"]);
    assert_eq!(folders(&usual), ["/home/ada/.qwen", "/home/ada/.copilot", "/home/ada/.config/opencode"]);
    let transcript = |places: &Places| places.transcript_of(Client::Opencode, "ses_1").unwrap();
    assert_eq!(transcript(&moved), Path::new("/d/opencode/other.db/ses_1.jsonl"));
    assert_eq!(transcript(&usual), Path::new("/home/ada/.local/share/opencode/opencode.db/ses_1.jsonl"));
    assert_eq!(usual.transcript_of(Client::Copilot, "../../x"), None);
    assert_eq!(usual.transcript_of(Client::Codex, "x"), None);
}

#[test]
fn clients_are_known_by_the_names_that_servers_hear() {
    for (name, client) in [
        ("claude-code", Some(Client::ClaudeCode)),
        ("codex-mcp-client", Some(Client::Codex)),
        ("gemini-cli-mcp-client", Some(Client::Gemini)),
        ("qwen-cli-mcp-client", Some(Client::Qwen)),
        ("github-copilot-developer", Some(Client::Copilot)),
        ("opencode", Some(Client::Opencode)),
        ("zed", None),
    ] {
        assert_eq!(Client::introduced(name), client, "{name}");
    }
}
