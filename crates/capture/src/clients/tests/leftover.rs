//! Our entries are removed without a record, and entries of the user stay.

use super::*;

/// Guards against a former fault: after the record was deleted with the data directory, no entry was removed.
#[test]
fn without_a_record_only_our_entries_are_removed() {
    let home = Home::new();
    let before = home.everything();
    home.set_up();
    fs::remove_dir_all(home.record()).unwrap();
    let removed = home.remove();
    assert_eq!(removed.swept.len(), 12, "{removed:?}");
    assert!(removed.notes[0].contains("are unknown"), "{removed:?}");
    fs::remove_dir(home.path(".claude/skills")).unwrap();
    assert_eq!(home.everything(), before);
    assert!(home.remove().swept.is_empty());

    // The former content stays, and so does a server that the user configured by hand.
    let gemini = "{\n  \"mcpServers\": {\"tiro\": {\"command\": \"tiro\", \"args\": [\"serve\"]}}, // mine\n  \"a\": 1\n}\n";
    let codex = "# mine\n[mcp_servers.other]\ncommand = \"a\"\n";
    home.put(".codex/config.toml", codex);
    home.set_up();
    home.put(".gemini/settings.json", gemini);
    fs::remove_dir_all(home.record()).unwrap();
    let removed = home.remove();
    assert!(removed.findings.is_empty() && removed.restored.is_empty(), "{removed:?}");
    assert_eq!(home.read(".codex/config.toml"), codex);
    assert_eq!(home.read(".gemini/settings.json"), gemini);
    assert!(!home.path(".codex/hooks.json").exists() && !home.path(".claude/skills/tiro").exists());
}

/// Guards against a former fault: the error named the problem and no remedy.
#[test]
fn the_hint_about_a_damaged_record_works() {
    let home = Home::new();
    let before = home.everything();
    home.set_up();
    let record = home.record().join("changes.json");
    fs::write(&record, "{\"files\": [").unwrap();
    let errors = [
        remove(&home.record(), Some(&home.places), &[], &Keep::default()).unwrap_err(),
        lost(&home.record(), &[]).unwrap_err(),
        apply(&plan(&home.places, Path::new("/new/tiro"), None, &[]).unwrap().changes, &home.record())
            .unwrap_err(),
    ];
    for error in errors {
        assert!(error.to_string().contains("is damaged"), "{error}");
        let way_out = error.way_out().unwrap();
        assert!(way_out.contains("move it away") && way_out.contains("tiro init --remove"), "{way_out}");
    }
    fs::remove_dir_all(home.record()).unwrap();
    home.remove();
    fs::remove_dir(home.path(".claude/skills")).unwrap();
    assert_eq!(home.everything(), before);
}

/// Guards against a former fault: a server that the user added to the plugin was replaced by the next `init` and
/// deleted by `init --remove`.
#[test]
fn a_users_additions_to_the_plugin_keep_it_a_plugin() {
    let home = Home::new();
    home.set_up();
    let at = |name: &str| format!(".claude/skills/tiro/{name}");
    let servers = home.read(&at(".mcp.json")).replacen("{\n", "{\n  // mine\n", 1).replacen(
        "\"mcpServers\": {",
        "\"mcpServers\": { \"mine\": { \"command\": \"mine\" },",
        1,
    );
    let hooks = home.read(&at("hooks/hooks.json"));
    home.put(&at(".mcp.json"), &servers);
    home.put(
        &at("hooks/hooks.json"),
        hooks.replacen(
            "\"Stop\": [",
            "\"Stop\": [{\"hooks\": [{\"type\": \"command\", \"command\": \"mine\"}]}, ",
            1,
        ),
    );
    // Another version replaces our entries and keeps those of the user.
    let moved = plan(&home.places, Path::new("/new/tiro"), None, &[]).unwrap();
    assert!(moved.findings.is_empty(), "{}", moved.text());
    apply(&moved.changes, &home.record()).unwrap();
    let value = |name: &str| edit::value(&home.read(&at(name))).unwrap();
    assert_eq!(value(".mcp.json")["mcpServers"]["mine"]["command"], "mine");
    assert_eq!(value(".mcp.json")["mcpServers"]["tiro"]["command"], "/new/tiro");
    let stop = &value("hooks/hooks.json")["hooks"]["Stop"];
    let commands: Vec<&str> =
        stop.as_array().unwrap().iter().map(|group| group["hooks"][0]["command"].as_str().unwrap()).collect();
    assert_eq!(commands, ["mine", "/new/tiro"]);

    let removed = home.remove();
    assert!(removed.findings.is_empty(), "{removed:?}");
    assert!(removed.notes[0].contains("plugin.json` stays"), "{removed:?}");
    let theirs = serde_json::json!({ "mcpServers": { "mine": { "command": "mine" } } });
    assert_eq!(value(".mcp.json"), theirs);
    assert!(home.read(&at(".mcp.json")).contains("// mine"));
    assert_eq!(value("hooks/hooks.json")["hooks"].as_object().unwrap().len(), 1);
    assert_eq!(value(".claude-plugin/plugin.json")["name"], "tiro");
    assert!(!home.record().exists(), "nothing is left to take back");
    // The plugin's file is removed once the user's entries no longer need it.
    fs::remove_file(home.path(&at(".mcp.json"))).unwrap();
    fs::remove_file(home.path(&at("hooks/hooks.json"))).unwrap();
    assert_eq!(home.remove().swept.len(), 1);
    assert!(!home.path(".claude/skills/tiro").exists());
}

/// Guards against a former fault: clients were set up with three of four toolsets, so that they lacked five of the
/// tools.
#[test]
fn a_server_with_fewer_tools_is_updated_and_removed_with_and_without_a_record() {
    for is_recorded in [true, false] {
        let home = Home::new();
        home.put(".codex/config.toml", "# mine\na = 1\n");
        let before = home.everything();
        let mut changes = home.plan().changes;
        let mut narrowed = 0;
        for change in &mut changes {
            let text = String::from_utf8(change.after.bytes.0.clone()).unwrap();
            let less = text.replace("\"serve\"", "\"serve\", \"--toolsets\", \"memory,consult,stash\"");
            narrowed += usize::from(less != text);
            change.after.bytes = user_file::Bytes(less.into_bytes());
        }
        assert_eq!(narrowed, 6);
        apply(&changes, &home.record()).unwrap();
        let narrow = home.everything();
        if is_recorded {
            home.set_up();
            for name in [".gemini/settings.json", ".codex/config.toml", ".claude/skills/tiro/.mcp.json"] {
                let text = home.read(name);
                assert!(text.contains("\"serve\"") && !text.contains("toolsets"), "{text}");
            }
        } else {
            fs::remove_dir_all(home.record()).unwrap();
        }
        let removed = home.remove();
        assert!(removed.findings.is_empty(), "{removed:?}");
        if !is_recorded {
            fs::remove_dir(home.path(".claude/skills")).unwrap();
        }
        assert_eq!(home.everything(), before);
        assert_ne!(narrow, before);
    }
}
