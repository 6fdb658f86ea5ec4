//! Setting up as a new user does: what is said before it is done, what is captured then, and what is taken back.

use serde_json::json;

use crate::harness::Home;

/// A server of Tiro that the user had configured was started beside the one that `init` set up, unnoticed.
#[test]
fn a_server_configured_by_hand_is_noticed_by_init_and_doctor() {
    let home = Home::new();
    for client in [".claude", ".codex"] {
        home.dir(&format!("home/{client}"));
    }
    let repo = home.repo("repo");
    let mine = json!({"mcpServers": {"memory": {"command": "tiro", "args": ["serve"]}}}).to_string();
    repo.write(".mcp.json", &mine);
    let codex = home.path().join("home/.codex/config.toml");
    std::fs::write(&codex, "[mcp_servers.notes]\ncommand = \"sh\"\nargs = [\"-c\", \"tiro serve\"]\n")
        .unwrap();
    let notices = |text: &str| {
        text.contains("`memory` starts Tiro too")
            && text.contains("claude mcp remove memory")
            && text.contains("`notes` starts Tiro too")
    };
    let looked = home.run(&repo.path, &["init", "--dry-run"]);
    assert!(looked.is_ok && notices(&looked.stderr), "{looked:?}");
    let ran = home.run(&repo.path, &["init", "--yes"]);
    assert!(ran.is_ok && notices(&ran.stdout), "{ran:?}");
    let told = home.run(&repo.path, &["doctor"]);
    assert!(told.is_ok && notices(&told.stdout), "{told:?}");
    assert_eq!(std::fs::read_to_string(repo.path.join(".mcp.json")).unwrap(), mine);
    std::fs::remove_file(repo.path.join(".mcp.json")).unwrap();
    let text = std::fs::read_to_string(&codex).unwrap();
    assert!(text.contains("[mcp_servers.notes]"), "{text}");
    std::fs::write(&codex, text.replace("tiro serve", "other")).unwrap();
    assert!(!home.run(&repo.path, &["doctor"]).stdout.contains("starts Tiro too"));
}
