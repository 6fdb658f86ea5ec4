use std::fs;

use serde_json::{Value, json};

use super::*;
use crate::clients::edit;
use crate::clients::tests::Home;
use crate::clients::{self, Keep, Removed, by_hand};

mod forms;
mod layout;

const BINARY: &str = "/opt/it's here/tiro";

/// Returns the clients that have a file.
fn with_files() -> impl Iterator<Item = McpClient> {
    McpClient::all().filter(|client| client.entry().is_some())
}

/// A home in which every client is installed, with a project.
struct Desk {
    home: Home,
    root: PathBuf,
}

impl Desk {
    fn new() -> Desk {
        let home = Home::new();
        let root = home.dir.path().join("work/my app");
        fs::create_dir_all(&root).unwrap();
        let desk = Desk { home, root };
        for client in with_files() {
            fs::create_dir_all(desk.path(client).parent().unwrap()).unwrap();
        }
        desk
    }

    fn here(&self) -> Here<'_> {
        Here { root: Some(&self.root), is_named: false }
    }

    fn path(&self, client: McpClient) -> PathBuf {
        let files = files(&self.home.places, [self.root.as_path()]);
        files.into_iter().find(|(each, _)| *each == client).unwrap().1
    }

    fn put(&self, client: McpClient, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(client);
        fs::write(&path, text).unwrap();
        path
    }

    fn read(&self, client: McpClient) -> String {
        fs::read_to_string(self.path(client)).unwrap()
    }

    /// Returns the server `tiro` in the client's file.
    fn server(&self, client: McpClient) -> Value {
        client.entry().unwrap().server(&self.read(client)).unwrap().unwrap()
    }

    fn planned(&self, client: McpClient) -> Plan {
        plan(&self.home.places, Path::new(BINARY), &[client], &self.here()).unwrap().plan
    }

    fn record(&self) -> PathBuf {
        self.home.dir.path().join("data/clients")
    }

    /// Connects the client, and asserts that no change is left.
    fn connect(&self, client: McpClient) {
        let applied = clients::apply(&self.planned(client).changes, &self.record()).unwrap();
        assert!(applied.findings.is_empty(), "{applied:?}");
        assert_eq!(applied.written, [self.path(client)]);
        let again = self.planned(client);
        assert!(again.changes.is_empty() && again.findings.is_empty(), "{}", again.text());
    }

    /// Returns the repository of the project.
    fn repository(&self) -> clients::GitPlace {
        clients::GitPlace {
            hooks: self.root.join(".git/hooks"),
            common: self.root.join(".git"),
            work_tree: Some(self.root.clone()),
            is_tracked: false,
            formerly: Vec::new(),
        }
    }

    fn remove(&self) -> Removed {
        let places = Some(&self.home.places);
        clients::remove(&self.record(), places, &[self.repository()], &Keep::default()).unwrap()
    }
}

#[test]
fn each_client_is_in_the_table_once_and_its_word_is_the_one_in_the_record() {
    use McpClient::*;
    let all = [VsCode, Cursor, Zed, Windsurf, ClaudeDesktop, Junie, Jetbrains, Goose, Other];
    assert_eq!(McpClient::all().collect::<Vec<_>>(), all);
    for client in all {
        assert_eq!(McpClient::of(client.word()), Some(client));
        let written = serde_json::to_string(&Client::Mcp(client)).unwrap();
        assert_eq!(written, format!("\"{}\"", client.word()));
        assert_eq!(serde_json::from_str::<Client>(&written).unwrap(), Client::Mcp(client));
    }
    assert!(serde_json::from_str::<Client>("\"emacs\"").is_err());
    assert_eq!(serde_json::from_str::<Client>("\"claude-code\"").unwrap(), Client::ClaudeCode);
}

#[test]
fn files_are_where_the_documentation_says_on_each_system() {
    let home = Home::new();
    let root = Path::new("/work/app");
    let mut found = String::new();
    for client in with_files() {
        let Config::File(paths, _) = &client.description().config else { unreachable!() };
        for system in [System::Linux, System::Mac, System::Windows] {
            let path = paths.expand(system, &home.places, Some(root)).unwrap();
            let path = path.display().to_string().replace(home.dir.path().to_str().unwrap(), "HOME");
            found += &format!("{} {system:?}: {path}\n", client.word());
        }
    }
    // `HOME/.config` stands for `XDG_CONFIG_HOME` on Linux and for `APPDATA` on Windows.
    insta::assert_snapshot!(found, @r"
    vscode Linux: HOME/.config/Code/User/mcp.json
    vscode Mac: HOME/Library/Application Support/Code/User/mcp.json
    vscode Windows: HOME/.config/Code/User/mcp.json
    cursor Linux: HOME/.cursor/mcp.json
    cursor Mac: HOME/.cursor/mcp.json
    cursor Windows: HOME/.cursor/mcp.json
    zed Linux: HOME/.config/zed/settings.json
    zed Mac: HOME/.config/zed/settings.json
    zed Windows: HOME/.config/Zed/settings.json
    windsurf Linux: HOME/.codeium/windsurf/mcp_config.json
    windsurf Mac: HOME/.codeium/windsurf/mcp_config.json
    windsurf Windows: HOME/.codeium/windsurf/mcp_config.json
    claude-desktop Linux: HOME/.config/Claude/claude_desktop_config.json
    claude-desktop Mac: HOME/Library/Application Support/Claude/claude_desktop_config.json
    claude-desktop Windows: HOME/.config/Claude/claude_desktop_config.json
    junie Linux: /work/app/.junie/mcp/mcp.json
    junie Mac: /work/app/.junie/mcp/mcp.json
    junie Windows: /work/app/.junie/mcp/mcp.json
    ");
}

#[test]
fn a_client_that_is_not_installed_is_named_and_nothing_is_written() {
    for client in with_files().filter(|client| *client != McpClient::Junie) {
        let desk = Desk::new();
        let folder = desk.path(client).parent().unwrap().to_owned();
        fs::remove_dir(&folder).unwrap();
        let before = desk.home.everything();
        let error = plan(&desk.home.places, Path::new(BINARY), &[client], &desk.here()).unwrap_err();
        assert_eq!(error.kind(), Kind::NotFound);
        let text = error.to_string();
        assert!(text.contains(client.name()) && text.contains(folder.to_str().unwrap()), "{text}");
        assert!(error.way_out().unwrap().contains("--client other"), "{error:?}");
        assert_eq!(desk.home.everything(), before);
    }
}

#[test]
fn an_entry_names_the_project_where_the_client_starts_elsewhere() {
    let desk = Desk::new();
    let (root, folder) = (desk.root.to_str().unwrap(), "${workspaceFolder}");
    for (client, unnamed) in [
        (McpClient::VsCode, Some(folder)),
        (McpClient::Cursor, Some(folder)),
        (McpClient::Zed, None),
        (McpClient::Windsurf, Some(root)),
        (McpClient::ClaudeDesktop, Some(root)),
        (McpClient::Junie, Some(root)),
        (McpClient::Jetbrains, Some(root)),
        (McpClient::Goose, None),
        (McpClient::Other, None),
    ] {
        let description = client.description();
        assert_eq!(description.project(&desk.here()).unwrap().as_deref(), unnamed, "{client:?}");
        let named = Here { is_named: true, ..desk.here() };
        assert_eq!(description.project(&named).unwrap().as_deref(), Some(root), "{client:?}");
        let outside = description.project(&Here::default());
        match unnamed == Some(root) {
            false => assert_eq!(outside.unwrap().as_deref(), unnamed, "{client:?}"),
            true => {
                let error = outside.unwrap_err();
                assert_eq!(error.kind(), Kind::NoProject);
                assert!(error.way_out().unwrap().contains("`--project`"), "{error:?}");
            }
        }
    }
}

#[test]
fn configurations_that_are_not_what_they_should_be_are_reported_and_not_changed() {
    for client in with_files() {
        let servers = client.entry().unwrap().servers;
        let with = |value: &str| format!("{{\"{servers}\": {value}}}").into_bytes();
        for (text, says) in [
            (b"{\"a\": 1".to_vec(), "not valid JSON"),
            (b"{'a': 1}".to_vec(), "not valid JSON"),
            (b"[]".to_vec(), "not a JSON object"),
            (b"{\"a\": \"\xff\"}".to_vec(), "not UTF-8"),
            (with("[]"), "is not an object"),
            (with("[{\"name\": \"tiro\"}]"), "is not an object"),
            (with("null"), "is not an object"),
            (with("\"tiro\""), "is not an object"),
            (with("{\"tiro\": {\"command\": \"npx\", \"args\": [\"other\"]}}"), "starts another program"),
            (with("{\"tiro\": {\"url\": \"https://example.com/mcp\"}}"), "starts another program"),
            (with("{\"tiro\": 3}"), "starts another program"),
            (with(&format!("{{}}, \"{servers}\": {{\"a\": {{}}}}")), "losing something"),
        ] {
            let desk = Desk::new();
            let path = desk.put(client, &text);
            let plan = desk.planned(client);
            let shown = String::from_utf8_lossy(&text);
            assert!(plan.changes.is_empty(), "{client:?} {shown}");
            let [finding] = &plan.findings[..] else { panic!("{client:?} {shown}: {}", plan.text()) };
            assert!(finding.found.contains(says) && !finding.mend.is_empty(), "{shown}: {finding:?}");
            assert_eq!((finding.client, &finding.path), (Client::Mcp(client), &path));
            assert_eq!(fs::read(&path).unwrap(), text);
            desk.remove();
            assert_eq!(fs::read(&path).unwrap(), text);
        }
    }
}

#[cfg(unix)]
#[test]
fn read_only_files_and_links_elsewhere_are_not_changed() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let desk = Desk::new();
    let path = desk.put(McpClient::Cursor, "{}");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
    assert!(desk.planned(McpClient::Cursor).findings[0].found.contains("read-only"));
    let elsewhere = tempfile::tempdir().unwrap();
    let target = elsewhere.path().join("settings.json");
    fs::write(&target, "{}").unwrap();
    symlink(&target, desk.path(McpClient::Zed)).unwrap();
    assert!(desk.planned(McpClient::Zed).findings[0].found.contains("outside your home"));
    symlink(desk.root.join("gone"), desk.path(McpClient::VsCode)).unwrap();
    assert!(desk.planned(McpClient::VsCode).findings[0].found.contains("leads nowhere"));
    assert_eq!(
        (fs::read_to_string(path).unwrap(), fs::read_to_string(target).unwrap()),
        ("{}".into(), "{}".into())
    );
}

#[test]
fn settings_and_arguments_of_the_user_stay_in_our_entry() {
    let desk = Desk::new();
    let client = McpClient::Windsurf;
    let old = json!({"mcpServers": {"tiro": {
        "command": "tiro", "env": {"TIRO_LOG": "debug"}, "disabled": true,
        "args": ["serve", "--project=/old", "--set", "context.max_tokens=2000", "--project", "/older"],
    }}})
    .to_string();
    desk.put(client, &old);
    desk.connect(client);
    let args = json!(["serve", "--project", desk.root, "--set", "context.max_tokens=2000"]);
    let wanted = json!({"command": BINARY, "env": {"TIRO_LOG": "debug"}, "disabled": true, "args": args});
    assert_eq!(desk.server(client), wanted);
    desk.remove();
    assert_eq!(desk.read(client), old);
}

/// The plan of `tiro init` without names is also the one that `tiro doctor` reports.
#[test]
fn an_entry_is_repaired_and_keeps_its_project() {
    for client in with_files() {
        let desk = Desk::new();
        let before = desk.home.everything();
        let setup_of = |binary: &str| {
            clients::plan(&desk.home.places, Path::new(binary), Some(&desk.repository()), &[]).unwrap()
        };
        assert!(!setup_of(BINARY).found.contains(&Client::Mcp(client)), "only the user names it");
        desk.connect(client);
        let written = clients::written(&desk.home.places, &[desk.repository()]);
        let expected = (Client::Mcp(client), desk.path(client), PathBuf::from(BINARY));
        let found: Vec<_> = written.into_iter().map(|each| (each.client, each.path, each.program)).collect();
        assert_eq!(found, [expected]);
        let now = setup_of(BINARY);
        assert!(now.is_set_up(Client::Mcp(client)), "{}", now.text());
        let former = desk.server(client)["args"].clone();
        let moved = setup_of("/new/tiro");
        assert!(!moved.is_set_up(Client::Mcp(client)));
        let change = moved.changes.iter().find(|change| change.client == Client::Mcp(client)).unwrap();
        clients::apply(std::slice::from_ref(change), &desk.record()).unwrap();
        assert_eq!(
            (&desk.server(client)["command"], &desk.server(client)["args"]),
            (&json!("/new/tiro"), &former)
        );
        // A file that has become invalid is reported.
        let ours = desk.read(client);
        desk.put(client, ours.trim_end().trim_end_matches('}'));
        assert!(setup_of("/new/tiro").findings.iter().any(|finding| finding.client == Client::Mcp(client)));
        desk.put(client, ours);
        assert!(desk.remove().findings.is_empty());
        assert_eq!(desk.home.everything(), before);
    }
}

#[test]
fn entries_of_the_user_are_not_ours() {
    for client in with_files() {
        for server in [
            json!({"command": "tiro", "args": ["serve"]}),
            json!({"command": "/opt/other", "args": ["serve"]}),
            json!({"url": "http://127.0.0.1:8080/mcp"}),
            json!({"command": "/opt/tiro", "args": ["search", "x"]}),
        ] {
            let desk = Desk::new();
            desk.put(client, json!({client.entry().unwrap().servers: {"tiro": server}}).to_string());
            let before = desk.home.everything();
            let plan =
                clients::plan(&desk.home.places, Path::new(BINARY), Some(&desk.repository()), &[]).unwrap();
            assert!(!plan.found.contains(&Client::Mcp(client)), "{server}");
            assert!(desk.remove().findings.is_empty());
            assert_eq!(desk.home.everything(), before, "{server}");
        }
    }
}

#[test]
fn without_a_record_only_our_entries_are_removed() {
    for client in with_files() {
        let desk = Desk::new();
        let servers = client.entry().unwrap().servers;
        let old = format!("{{\n  // mine\n  \"{servers}\": {{ \"a\": {{ \"command\": \"a\" }} }},\n}}\n");
        desk.put(client, &old);
        desk.connect(client);
        let ours = desk.read(client);
        fs::remove_dir_all(desk.record()).unwrap();
        let removed = desk.remove();
        assert_eq!(removed.swept, [desk.path(client)], "{removed:?}");
        let left = desk.read(client);
        assert_eq!(edit::value(&left).unwrap(), edit::value(&old).unwrap());
        assert!(left.contains("// mine"));
        // An entry that the user has changed may be the user's.
        desk.put(client, ours.replace("\"serve\"", "\"serve\", \"--set\", \"a=b\""));
        let changed = desk.read(client);
        assert!(desk.remove().swept.is_empty());
        assert_eq!(desk.read(client), changed);
    }
}

#[test]
fn a_second_server_of_tiro_is_noticed() {
    let desk = Desk::new();
    let client = McpClient::Zed;
    let notices = |plan: Option<&Plan>| by_hand::look(&desk.home.places, Some(&desk.root), plan);
    desk.put(client, r#"{"context_servers": {"memory": {"command": "tiro", "args": ["serve"]}}}"#);
    assert_eq!(notices(None).len(), 0);
    assert!(notices(Some(&desk.planned(client)))[0].found.contains("will be offered every tool twice"));
    desk.connect(client);
    let found = notices(None);
    assert!(found[0].found.contains("`memory` starts Tiro too"), "{found:?}");
    assert_eq!((found.len(), found[0].client), (1, Client::Mcp(client)));
}
