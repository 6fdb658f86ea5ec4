use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::*;

mod git;
mod layout;
mod leftover;

const BINARY: &str = "/opt/it's here/tiro";

/// A home with all clients, each without configuration.
pub(super) struct Home {
    pub(super) dir: TempDir,
    pub(super) places: Places,
}

impl Home {
    pub(super) fn new() -> Home {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let places = Places {
            home: dir.path().to_owned(),
            claude_code: at(".claude"),
            codex: at(".codex"),
            gemini: at(".gemini"),
            config: at(".config"),
        };
        for client in [&places.claude_code, &places.codex, &places.gemini, &at("data")] {
            fs::create_dir(client).unwrap();
        }
        Home { dir, places }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn put(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    fn plan(&self) -> Plan {
        plan(&self.places, Path::new(BINARY), None, &[]).unwrap()
    }

    fn record(&self) -> PathBuf {
        self.path("data/clients")
    }

    /// Plans and applies, and asserts that no change is left.
    pub(super) fn set_up(&self) -> Applied {
        let applied = apply(&self.plan().changes, &self.record()).unwrap();
        assert!(applied.findings.is_empty(), "{applied:?}");
        let again = self.plan();
        assert!(again.changes.is_empty(), "a second plan finds nothing to do: {}", again.text());
        applied
    }

    fn remove(&self) -> Removed {
        remove(&self.record(), Some(&self.places), &[], &Keep::default()).unwrap()
    }

    /// Returns every file and directory in the home with its bytes and mode.
    pub(super) fn everything(&self) -> Vec<(PathBuf, Option<FileSnapshot>)> {
        let mut found = Vec::new();
        let mut left = vec![self.dir.path().to_owned()];
        while let Some(dir) = left.pop() {
            for entry in fs::read_dir(dir).unwrap() {
                let path = entry.unwrap().path();
                let is_link = path.symlink_metadata().unwrap().is_symlink();
                match path.is_dir() && !is_link {
                    true => {
                        found.push((path.clone(), None));
                        left.push(path);
                    }
                    false => found
                        .push((path.clone(), user_file::look(&path).ok().and_then(|target| target.state))),
                }
            }
        }
        found.sort_by(|a, b| a.0.cmp(&b.0));
        found
    }
}

#[test]
fn removing_restores_every_file_exactly() {
    let home = Home::new();
    let before = home.everything();
    home.set_up();
    assert_ne!(home.everything(), before);
    let removed = home.remove();
    assert!(removed.edited.is_empty() && removed.findings.is_empty(), "{removed:?}");
    assert_eq!(home.everything(), before);
    assert!(home.remove().restored.is_empty(), "a second time there is nothing to take back");
}

#[test]
fn a_client_that_is_not_installed_is_not_set_up() {
    let home = Home::new();
    fs::remove_dir(home.path(".codex")).unwrap();
    let plan = home.plan();
    assert_eq!(plan.found, [Client::ClaudeCode, Client::Gemini]);
    assert!(plan.changes.iter().all(|change| change.client != Client::Codex));
    assert!(!plan.is_set_up(Client::Codex));
    assert!(!plan.is_set_up(Client::Gemini));
}

#[test]
fn planning_writes_nothing() {
    let home = Home::new();
    let before = home.everything();
    let text = home.plan().text();
    assert!(text.contains("config.toml (new, ") && text.contains("captured: what you"), "{text}");
    assert_eq!(home.everything(), before);
}

#[test]
fn gemini_gets_a_server_and_hooks_and_keeps_its_own() {
    let home = Home::new();
    let old = "{\r\n\t// my theme\r\n\t\"theme\": \"x\", /* ! */\r\n\t\"hooks\": {\"BeforeAgent\": [{\"hooks\": [\
               {\"type\": \"command\", \"command\": \"mine\"}]}]},\r\n}";
    home.put(".gemini/settings.json", old);
    home.set_up();
    let text = home.read(".gemini/settings.json");
    assert!(text.contains("\t// my theme\r\n\t\"theme\": \"x\", /* ! */\r\n"), "{text}");
    assert!(!text.replace("\r\n", "").contains('\n') && !text.ends_with('\n'), "line ends stay: {text:?}");
    let value = edit::value(&text).unwrap();
    let command = "'/opt/it'\\''s here/tiro' hook gemini";
    assert_eq!(value["mcpServers"]["tiro"]["command"], BINARY);
    assert_eq!(value["mcpServers"]["tiro"]["args"], serde_json::json!(["serve"]));
    assert_eq!(value["hooks"]["BeforeAgent"][0]["hooks"][0]["command"], "mine");
    assert_eq!(value["hooks"]["BeforeAgent"][1]["hooks"][0]["command"], command);
    home.remove();
    assert_eq!(home.read(".gemini/settings.json"), old);
}

#[test]
fn claude_code_gets_a_plugin_and_its_settings_stay() {
    let home = Home::new();
    home.put(".claude/settings.json", "{ broken");
    home.put(".claude/skills/other/SKILL.md", "mine");
    let before = home.everything();
    home.set_up();
    let value = |name: &str| edit::value(&home.read(&format!(".claude/skills/tiro/{name}"))).unwrap();
    let server = serde_json::json!({ "command": BINARY, "args": ["serve"] });
    assert_eq!(value(".mcp.json")["mcpServers"]["tiro"], server);
    let hook = &value("hooks/hooks.json")["hooks"]["Stop"][0]["hooks"][0];
    assert_eq!(hook["command"], BINARY);
    assert_eq!(hook["args"], serde_json::json!(["hook", "claude-code"]));
    assert_eq!(value(".claude-plugin/plugin.json")["name"], "tiro");
    home.remove();
    assert_eq!(home.everything(), before);
    // A file that was edited since setup is removed; files that the user added stay.
    home.set_up();
    home.put(".claude/skills/tiro/.mcp.json", "{}");
    home.put(".claude/skills/tiro/notes.md", "mine");
    home.remove();
    fs::remove_file(home.path(".claude/skills/tiro/notes.md")).unwrap();
    fs::remove_dir(home.path(".claude/skills/tiro")).unwrap();
    assert_eq!(home.everything(), before);
}

#[test]
fn codex_keeps_comments_order_and_line_ends() {
    for old in [
        "# mine\nmodel = \"x\" # best\n\n[mcp_servers.other]\ncommand = 'a'\n\n[[hooks.Stop]]\n[[hooks.Stop.hooks]]\n\
         type = \"command\"\ncommand = \"mine\"\n# end\n",
        "# mine\r\nmodel = \"x\"\r\n[tui]\r\na = 1\r\n",
        "\u{feff}model = \"x\"",
        "",
        "# only this\n",
        "mcp_servers = { other = { command = \"a\" } }\n",
        "[mcp_servers]\n[hooks]\n",
    ] {
        let home = Home::new();
        home.put(".codex/config.toml", old);
        home.set_up();
        let text = home.read(".codex/config.toml");
        let document: toml_edit::DocumentMut = text.trim_start_matches('\u{feff}').parse().unwrap();
        let server = &document["mcp_servers"]["tiro"];
        assert_eq!(server["command"].as_str(), Some(BINARY), "{text}");
        assert!(server["tool_timeout_sec"].as_integer().is_some(), "{text}");
        match old.contains("hooks.Stop") {
            true => assert_eq!(document["hooks"]["Stop"].as_array_of_tables().unwrap().len(), 2, "{text}"),
            false => assert!(home.read(".codex/hooks.json").contains(" hook codex"), "{text}"),
        }
        for line in old.lines() {
            assert!(text.contains(line) || line.starts_with("mcp_servers = "), "{line:?} of {text}");
        }
        assert_eq!(text.starts_with('\u{feff}'), old.starts_with('\u{feff}'));
        assert_eq!(text.contains("\r\n"), old.contains("\r\n"));
        home.remove();
        assert_eq!(home.read(".codex/config.toml"), old);
        // The user edits the file after setup.
        let left = codex::without(&home.path(".codex/config.toml"), &text, Some(old)).unwrap();
        assert_eq!(left.trim_end(), old.trim_end());
    }
}

#[test]
fn codex_has_its_hooks_in_one_place() {
    let inline = "[[hooks.Stop]]\n[[hooks.Stop.hooks]]\ntype = \"command\"\ncommand = \"mine\"\n";
    let home = Home::new();
    home.put(".codex/config.toml", inline);
    home.set_up();
    assert!(!home.path(".codex/hooks.json").exists());
    // Our hooks stay in the file that has them, and don't run twice.
    home.put(".codex/hooks.json", "{}");
    assert!(home.plan().changes.is_empty());
    home.remove();
    assert_eq!(
        (home.read(".codex/config.toml").as_str(), home.read(".codex/hooks.json").as_str()),
        (inline, "{}")
    );

    let old =
        "{ \"hooks\": { \"Stop\": [{ \"hooks\": [{ \"type\": \"command\", \"command\": \"mine\" }] }] } }";
    home.put(".codex/hooks.json", old);
    home.set_up();
    assert!(!home.read(".codex/config.toml").contains(" hook codex"));
    let value = edit::value(&home.read(".codex/hooks.json")).unwrap();
    assert_eq!(value["hooks"]["Stop"].as_array().unwrap().len(), 2);
    let later = home.read(".codex/hooks.json").replacen('{', "{\n  \"later\": 1,", 1);
    home.put(".codex/hooks.json", later);
    home.remove();
    let mut expected = edit::value(old).unwrap();
    expected["later"] = 1.into();
    assert_eq!(edit::value(&home.read(".codex/hooks.json")).unwrap(), expected);
}

#[test]
fn invalid_files_are_reported_and_not_changed() {
    for (name, text, says) in [
        (".gemini/settings.json", "{\"a\": 1", "not valid JSON"),
        (".gemini/settings.json", "{'a': 1}", "not valid JSON"),
        (".gemini/settings.json", "[]", "not a JSON object"),
        (".gemini/settings.json", "{\"mcpServers\": 3}", "`mcpServers` is not an object"),
        (".gemini/settings.json", "{\"hooks\": []}", "`hooks` is not an object"),
        (".gemini/settings.json", "{\"hooks\": {\"BeforeAgent\": {}}}", "is not an array"),
        (".gemini/settings.json", "{\"mcpServers\": {}, \"mcpServers\": {\"a\": {}}}", "losing something"),
        (".codex/config.toml", "a = ", "not valid TOML"),
        (".codex/config.toml", "mcp_servers = 3", "`mcp_servers` is not a table"),
        (".codex/config.toml", "a = 1\r\nb = 2\n", "losing something"),
        (".codex/config.toml", "[[hooks.Start]]\n[hooks.Stop]", "not an array of tables"),
        (".codex/hooks.json", "{\"hooks\": {\"Stop\": 3}}", "`hooks.Stop` is not an array"),
    ] {
        let home = Home::new();
        let path = home.put(name, text);
        let plan = home.plan();
        let finding = plan.findings.iter().find(|finding| finding.path == path);
        let finding = finding.unwrap_or_else(|| panic!("{text:?} is reported: {}", plan.text()));
        assert!(finding.found.contains(says) && !finding.mend.is_empty(), "{text:?}: {finding:?}");
        assert!(plan.changes.iter().all(|change| change.path != path));
        let others = plan.found.iter().filter(|client| **client != finding.client);
        assert!(others.into_iter().all(|other| plan.changes.iter().any(|change| change.client == *other)));
        apply(&plan.changes, &home.record()).unwrap();
        assert_eq!(home.read(name), text);
        home.remove();
        assert_eq!(home.read(name), text);
    }
    let home = Home::new();
    home.put(".codex/config.toml", b"a = \"\xff\"");
    assert!(home.plan().findings[0].found.contains("not UTF-8"));
}

#[cfg(unix)]
#[test]
fn read_only_files_and_links_elsewhere_are_not_changed() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let home = Home::new();
    let path = home.put(".gemini/settings.json", "{}");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
    symlink(home.path("gone"), home.path(".codex/config.toml")).unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    fs::write(elsewhere.path().join(".mcp.json"), "{}").unwrap();
    fs::create_dir_all(home.path(".claude/skills/tiro")).unwrap();
    symlink(elsewhere.path().join(".mcp.json"), home.path(".claude/skills/tiro/.mcp.json")).unwrap();
    fs::create_dir_all(home.path(".claude/skills/tiro/hooks")).unwrap();
    fs::set_permissions(home.path(".claude/skills/tiro/hooks"), fs::Permissions::from_mode(0o555)).unwrap();
    let plan = home.plan();
    fs::set_permissions(home.path(".claude/skills/tiro/hooks"), fs::Permissions::from_mode(0o755)).unwrap();
    let found: Vec<&str> = plan.findings.iter().map(|finding| finding.found.as_str()).collect();
    assert!(found[0].contains("outside your home"), "{found:?}");
    assert!(found[1].contains("read-only"), "{found:?}");
    assert!(found[2].contains("leads nowhere"), "{found:?}");
    assert!(found[3].contains("read-only"), "{found:?}");
    apply(&plan.changes, &home.record()).unwrap();
    assert_eq!(fs::read_to_string(path).unwrap(), "{}");
    assert_eq!(fs::read_to_string(elsewhere.path().join(".mcp.json")).unwrap(), "{}");
}

#[cfg(unix)]
#[test]
fn settings_in_a_repository_of_dotfiles_are_edited_through_the_link() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let home = Home::new();
    let path = home.put("dotfiles/gemini.json", "{}\n");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let link = home.path(".gemini/settings.json");
    symlink("../dotfiles/gemini.json", &link).unwrap();
    let before = home.everything();
    home.set_up();
    assert!(link.symlink_metadata().unwrap().is_symlink());
    assert!(home.read("dotfiles/gemini.json").contains("tiro"));
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    home.remove();
    assert!(link.symlink_metadata().unwrap().is_symlink());
    assert_eq!(home.everything(), before);
}

#[test]
fn only_our_entries_are_removed_from_files_edited_since() {
    let home = Home::new();
    home.put(".gemini/settings.json", "{\n  \"mcpServers\": {}, // none yet\n  \"a\": 1\n}\n");
    home.put(".codex/config.toml", "# mine\na = 1\n");
    home.set_up();
    let gemini = home.read(".gemini/settings.json").replace("\"a\": 1", "\"b\": [3], \"a\": 2");
    home.put(".gemini/settings.json", gemini);
    let codex =
        home.read(".codex/config.toml").replace("[mcp_servers.tiro]", "# above\n[mcp_servers.tiro] # ours")
            + "\n[mcp_servers.later]\ncommand = \"l\" # later\n";
    home.put(".codex/config.toml", codex);
    let removed = home.remove();
    assert_eq!(removed.edited.len(), 2, "{removed:?}");
    assert_eq!(
        home.read(".gemini/settings.json"),
        "{\n  \"mcpServers\": {}, // none yet\n  \"b\": [3], \"a\": 2\n}\n"
    );
    assert_eq!(
        home.read(".codex/config.toml"),
        "# mine\na = 1\n\n[mcp_servers.later]\ncommand = \"l\" # later\n# above\n"
    );
}

#[test]
fn a_users_server_named_tiro_is_restored() {
    let home = Home::new();
    let old = "{ \"mcpServers\": { \"tiro\": { \"command\": \"mine\", \"timeout\": 7, \"trust\": true } } }";
    home.put(".gemini/settings.json", old);
    home.put(".codex/config.toml", "[mcp_servers.tiro]\ncommand = \"mine\"\ntool_timeout_sec = 7\n");
    home.set_up();
    let tiro = &edit::value(&home.read(".gemini/settings.json")).unwrap()["mcpServers"]["tiro"];
    assert_eq!(tiro["command"], BINARY);
    assert_eq!((&tiro["timeout"], &tiro["trust"]), (&7.into(), &true.into()), "what was chosen stays");
    assert!(home.read(".codex/config.toml").contains("tool_timeout_sec = 7"));
    let text = home.read(".gemini/settings.json").replacen('{', "{ \"new\": 1,", 1);
    home.put(".gemini/settings.json", text);
    home.remove();
    let value = edit::value(&home.read(".gemini/settings.json")).unwrap();
    assert_eq!(value["mcpServers"], edit::value(old).unwrap()["mcpServers"]);
    assert_eq!(value["new"], 1);
    assert!(home.read(".codex/config.toml").contains("command = \"mine\""));
}

#[test]
fn another_binary_replaces_the_first_and_everything_is_removed() {
    let home = Home::new();
    home.put(".gemini/settings.json", "{ }");
    home.put(".codex/config.toml", "a = 1");
    let before = home.everything();
    home.set_up();
    let text = home.read(".gemini/settings.json").replace("\"timeout\": 5000", "\"timeout\": 9");
    let moved = plan(&home.places, Path::new("/new/tiro"), None, &[]).unwrap();
    apply(&moved.changes, &home.record()).unwrap();
    for name in [".gemini/settings.json", ".codex/config.toml", ".claude/skills/tiro/.mcp.json"] {
        let text = home.read(name);
        assert!(text.contains("/new/tiro") && !text.contains("/opt"), "{text}");
    }
    home.remove();
    assert_eq!(home.everything(), before);
    // The user edits a file in between. The edit stays, and our entries don't count as the user's.
    home.set_up();
    home.put(".gemini/settings.json", text);
    apply(&plan(&home.places, Path::new("/new/tiro"), None, &[]).unwrap().changes, &home.record()).unwrap();
    assert!(home.read(".gemini/settings.json").contains("\"timeout\": 9"));
    home.remove();
    assert!(matches!(home.read(".gemini/settings.json").as_str(), "{}" | "{ }"));
}

#[test]
fn additions_between_two_setups_belong_to_the_user() {
    let home = Home::new();
    home.put(".gemini/settings.json", "{\n  \"a\": 1\n}\n");
    home.set_up();
    home.put(".gemini/settings.json", home.read(".gemini/settings.json").replace("\"a\": 1", "\"a\": 2"));
    let moved = plan(&home.places, Path::new("/new/tiro"), None, &[]).unwrap();
    apply(&moved.changes, &home.record()).unwrap();
    home.remove();
    assert_eq!(home.read(".gemini/settings.json"), "{\n  \"a\": 2\n}\n");
}

#[test]
fn the_record_is_kept_before_anything_is_written() {
    let home = Home::new();
    let mut change = home.plan().changes.pop().unwrap();
    change.path = home.record().join("changes.json");
    let applied = apply(&[change], &home.record()).unwrap();
    assert!(
        applied.findings[0].found.contains("changed since it was read"),
        "the record is there already: {applied:?}"
    );
}

#[test]
fn a_crash_between_record_and_write_is_recovered_from() {
    let home = Home::new();
    home.put(".gemini/settings.json", "{}");
    let plan = home.plan();
    let before = home.everything();
    apply(&plan.changes, &home.record()).unwrap();
    for change in &plan.changes {
        match &change.before {
            Some(state) => user_file::replace(&change.path, state).unwrap(),
            None => user_file::delete(&change.path).unwrap(),
        }
    }
    let removed = home.remove();
    assert!(removed.restored.is_empty() && removed.edited.is_empty() && removed.findings.is_empty());
    assert_eq!(home.everything(), before);
    // Only half of the files were written when setup runs again: the record keeps the first state.
    apply(&plan.changes, &home.record()).unwrap();
    user_file::replace(
        &home.path(".gemini/settings.json"),
        plan.changes.last().unwrap().before.as_ref().unwrap(),
    )
    .unwrap();
    home.set_up();
    home.remove();
    assert_eq!(home.everything(), before);
}

#[test]
fn a_file_that_changed_after_planning_is_not_overwritten() {
    let home = Home::new();
    let plan = home.plan();
    home.put(".gemini/settings.json", "{\"quick\": true}");
    let applied = apply(&plan.changes, &home.record()).unwrap();
    assert_eq!(applied.findings.len(), 1);
    assert!(applied.findings[0].found.contains("changed since it was read"), "{applied:?}");
    assert_eq!(home.read(".gemini/settings.json"), "{\"quick\": true}");
    home.remove();
    assert_eq!(home.read(".gemini/settings.json"), "{\"quick\": true}");
}

#[test]
fn a_file_that_cannot_be_restored_stays_recorded() {
    let home = Home::new();
    home.put(".gemini/settings.json", "{\"a\": 1}");
    home.set_up();
    let ours = home.read(".gemini/settings.json");
    home.put(".gemini/settings.json", "{ broken");
    let removed = home.remove();
    assert_eq!(removed.findings.len(), 1, "{removed:?}");
    assert_eq!(home.read(".gemini/settings.json"), "{ broken");
    home.put(".gemini/settings.json", ours);
    assert_eq!(home.remove().restored.len(), 1);
    assert_eq!(home.read(".gemini/settings.json"), "{\"a\": 1}");
}

#[test]
fn two_at_once_do_not_mix() {
    let home = Home::new();
    let plan = home.plan();
    home.set_up();
    let lock = fs::File::create(home.record().join("changes.lock")).unwrap();
    lock.lock().unwrap();
    assert_eq!(apply(&plan.changes, &home.record()).unwrap_err().kind(), tiro_base::error::Kind::Busy);
    assert_eq!(
        record::remove(&home.record(), &[], &Keep::default()).unwrap_err().kind(),
        tiro_base::error::Kind::Busy
    );
    drop(lock);
    assert!(!home.remove().restored.is_empty());
}

#[cfg(unix)]
#[test]
fn the_record_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::new();
    home.set_up();
    let mode = fs::metadata(home.record().join("changes.json")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}
