//! Reading creates nothing, directories are distinguished by every byte of their names, and memory works while git
//! fails.

use std::path::{Path, PathBuf};

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::harness::{Home, feed};
use crate::talk::Talk;

/// Returns every file beneath `root`.
fn files(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => found.push(path),
            }
        }
    }
    found
}

/// A search in any directory used to create a project of 256 KB.
#[test]
fn reading_an_empty_memory_creates_no_files() {
    let home = Home::new();
    home.dir("home/.claude");
    let repo = home.repo("repo");
    repo.commit("a.txt", "a\n", "Begin");
    for directory in [repo.path.clone(), home.dir("plain")] {
        for args in [
            ["search", "anything"].as_slice(),
            &["context", "anything"],
            &["sessions"],
            &["stats"],
            &["projects", "list"],
            &["doctor"],
            &["init", "--dry-run"],
            &["import", "claude-code", "--dry-run"],
        ] {
            let ran = home.run(&directory, args);
            // The folder of these tests is readable by others, which `doctor` reports.
            assert!(ran.is_ok || args == ["doctor"], "{args:?}: {ran:?}");
            assert_eq!(files(&home.data()), Vec::<PathBuf>::new(), "{args:?}");
        }
        let mut server = home.serve(&directory);
        let said = server.text("search_project_memory", json!({"query": "anything"}));
        assert!(said.contains("nothing is remembered of this project yet"), "{said}");
        for (tool, arguments) in [
            ("list_sessions", json!({})),
            ("retrieve_context", json!({"query": "anything"})),
            ("get_relevant_snippets", json!({"query": "anything"})),
            ("get_context_summary", json!({"query": "anything"})),
            ("expand_detail", json!({"id": "m1"})),
            ("mark_important", json!({"ids": ["m1"]})),
        ] {
            server.call(tool, arguments);
            assert_eq!(files(&home.data()), Vec::<PathBuf>::new(), "{tool}");
        }
        assert!(server.request("resources/list", json!({}))["result"].is_object());
        assert_eq!(files(&home.data()), Vec::<PathBuf>::new());
        assert!(!repo.path.join(".git/tiro-project-id").exists());
    }
    // The next read finds what was stored, in the same process and in others.
    let mut server = home.serve(&repo.path);
    assert_eq!(server.search("capstan").len(), 0);
    server.data("store_memory", json!({"text": "the capstan is of oak", "type": "fact"}));
    assert_eq!(server.search("capstan").len(), 1);
    assert_eq!(home.json(&repo.path, &["search", "capstan"])["hits"].as_array().unwrap().len(), 1);
    // Memories for all projects are found in a directory without a store.
    server.data("store_memory", json!({"text": "prefer tabs to spaces", "type": "fact", "scope": "owner"}));
    let other = home.dir("other");
    assert_eq!(home.json(&other, &["search", "tabs"])["hits"].as_array().unwrap().len(), 1);
    assert_eq!(std::fs::read_dir(home.data().join("projects")).unwrap().count(), 1);
}

/// If reading had created a project, it could not be removed.
#[test]
fn removing_a_project_deletes_its_memory_and_announces_that() {
    let home = Home::new();
    let (repo, other) = (home.repo("repo"), home.dir("other"));
    for directory in [&repo.path, &other] {
        let mut server = home.serve(directory);
        server.save("s", "1", "the harbour wall was painted grey");
        server.end();
    }
    let looked = home.run(&other, &["projects", "remove", "repo", "--dry-run"]);
    assert!(looked.is_ok && looked.stdout.contains("1 message in 1 session"), "{looked:?}");
    let refused = home.run(&other, &["projects", "remove", "repo"]);
    assert!(!refused.is_ok && refused.stderr.contains("--yes"), "{refused:?}");
    assert_eq!(home.json(&repo.path, &["search", "harbour"])["hits"].as_array().unwrap().len(), 1);
    assert!(!home.run(&other, &["projects", "remove", "nowhere", "--yes"]).is_ok);

    let removed = home.json(&other, &["projects", "remove", "repo", "--yes"]);
    assert_eq!(
        (&removed["removed"], &removed["remembered"]["messages"]),
        (&json!(true), &json!(1)),
        "{removed}"
    );
    assert!(!repo.path.join(".git/tiro-project-id").exists());
    assert!(!Path::new(removed["folder"].as_str().unwrap()).exists());
    let left = home.json(&other, &["projects", "list"]);
    assert_eq!(left["projects"].as_array().unwrap().len(), 1, "{left}");
    assert_eq!(home.json(&repo.path, &["search", "harbour"])["hits"].as_array().unwrap().len(), 0);
    assert_eq!(home.json(&other, &["search", "harbour"])["hits"].as_array().unwrap().len(), 1);
    assert!(
        home.files_with("painted grey").iter().all(|file| file.starts_with(home.store().parent().unwrap()))
    );
    // The new project has another id.
    home.serve(&repo.path).save("s", "2", "the wall is white");
    assert_ne!(home.json(&repo.path, &["search", "white"])["hits"].as_array().unwrap().len(), 0);
}

/// A mistake in `.git/config` used to make every tool fail, even those that don't need git.
#[test]
fn a_git_failure_is_a_notice_and_memory_still_works() {
    let home = Home::new();
    let repo = home.repo("repo");
    repo.commit("a.txt", "a\n", "Begin with the capstan");
    repo.git(&["worktree", "add", "-q", "../tree"]);
    let mut server = home.serve(&repo.path);
    server.data("store_memory", json!({"text": "the keel is of oak", "type": "fact"}));
    server.end();
    assert_eq!(home.json(&repo.path, &["import", "git"])["imported"], 1);
    let config = repo.path.join(".git/config");
    let sound = std::fs::read_to_string(&config).unwrap();
    let mut id = None;
    for broken in [
        format!("{sound}[core\nthis is = = broken"),
        format!("{sound}[extensions]\n\tobjectFormat = sha256\n"),
    ] {
        std::fs::write(&config, &broken).unwrap();
        for directory in [repo.path.clone(), repo.path.join("../tree")] {
            let mut server = home.serve(&directory);
            let (text, found) = server.both("search_project_memory", json!({"query": "keel capstan"}));
            assert_eq!(found["hits"].as_array().unwrap().len(), 2, "its memory is the one it was: {found}");
            assert!(
                text.contains("memory works without git") && text.contains("cannot read the repository"),
                "{text}"
            );
            let stored = server.text("store_memory", json!({"text": "the mast is of pine", "type": "fact"}));
            assert!(stored.contains("memory works without git"), "{stored}");
            let saved = server.text(
                "save_messages",
                json!({"session_id": "s", "messages": [{"role": "user", "text": "aye"}]}),
            );
            assert!(saved.contains("memory works without git"), "{saved}");
            assert_eq!(server.search("pine").len(), 1);
            let row = home.json(&directory, &["projects", "list"])["projects"].clone();
            assert_eq!(row.as_array().unwrap().len(), 1, "{row}");
            assert_eq!(*id.get_or_insert(row[0]["id"].clone()), row[0]["id"]);
            for tool in ["list_sessions", "retrieve_context", "get_relevant_snippets", "get_context_summary"]
            {
                let arguments = if tool == "list_sessions" { json!({}) } else { json!({"query": "keel"}) };
                let answer = server.call(tool, arguments);
                assert_ne!(answer["isError"], true, "{tool}: {answer}");
            }
        }
        let told = home.run(&repo.path, &["doctor"]);
        assert!(!told.is_ok && told.stdout.contains("FAIL git: cannot read the repository"), "{told:?}");
        let import = home.run(&repo.path, &["import", "git"]);
        assert!(!import.is_ok && import.stderr.contains("cannot read the repository"), "{import:?}");
        // Sessions are still captured.
        let talk = Talk::new(&home, "s1", &repo.path, "main");
        talk.says("user", 0, "why does the yardarm creak?");
        talk.hook(&home, "Stop");
        assert_eq!(home.serve(&repo.path).search("yardarm").len(), 1);
    }
    std::fs::write(&config, &sound).unwrap();
    assert_eq!(home.serve(&repo.path).search("keel capstan").len(), 2);
}

/// Returns names of directories that some programs confuse.
#[cfg(unix)]
fn odd_names() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let part = prop_oneof![
        Just(b"\xff".to_vec()),
        Just(b"\xfe".to_vec()),
        Just("\u{fffd}".as_bytes().to_vec()),
        Just(b"%FF".to_vec()),
        Just(b"\xc3\xa9".to_vec()),
        Just("e\u{301}".as_bytes().to_vec()),
        Just(b"\n".to_vec()),
        Just(b" ".to_vec()),
        Just(b"bytes:".to_vec()),
        Just(b"a".to_vec()),
        Just(b"A".to_vec()),
        Just(b"'\"\\".to_vec()),
    ];
    let name = prop::collection::vec(part, 1..4).prop_map(|parts| [b"d".to_vec(), parts.concat()].concat());
    prop::collection::hash_set(name, 2..6).prop_map(|names| names.into_iter().collect())
}

#[cfg(unix)]
proptest! {
    #![proptest_config(ProptestConfig { cases: 8, ..ProptestConfig::default() })]

    /// Two directories whose names are not UTF-8 used to share the same memory.
    #[test]
    fn directories_with_odd_names_have_separate_memories(names in odd_names()) {
        use std::os::unix::ffi::OsStrExt;
        let home = Home::new();
        let directories: Vec<PathBuf> =
            names.iter().map(|name| home.path().join(std::ffi::OsStr::from_bytes(name))).collect();
        let store = |number: usize, directory: &Path| {
            let mut server = home.serve(directory);
            server.data("store_memory", json!({"text": format!("the keel of {number} is of oak"), "type": "fact"}));
        };
        for (number, directory) in directories.iter().enumerate() {
            std::fs::create_dir(directory).unwrap();
            store(number, directory);
        }
        for (number, directory) in directories.iter().enumerate() {
            let hits = home.serve(directory).search("keel oak");
            let texts: Vec<&Value> = hits.iter().map(|hit| &hit["text"]).collect();
            prop_assert_eq!(texts.len(), 1, "{:?}", texts);
            let expected = format!("the keel of {number} is of oak");
            prop_assert!(texts[0].as_str().unwrap().contains(&expected));
        }
        let listed = home.json(&home.path(), &["projects", "list"]);
        prop_assert_eq!(listed["projects"].as_array().unwrap().len(), names.len());
    }
}

/// A hook in a directory with a name that is not UTF-8 used to fail with a message.
#[cfg(unix)]
#[test]
fn a_hook_works_in_a_directory_with_an_odd_name() {
    use std::os::unix::ffi::OsStrExt;
    let home = Home::new();
    let directory = home.path().join(std::ffi::OsStr::from_bytes(b"odd\xff"));
    let repo = home.repo_at(directory.clone());
    std::fs::create_dir(&directory).unwrap();
    repo.git(&["init", "-q", "-b", "main"]);
    repo.commit("a.txt", "a\n", "Begin");
    let ran = home.run(&directory, &["init", "--yes"]);
    assert!(ran.is_ok && directory.join(".git/hooks/post-commit").exists(), "{ran:?}");
    let ran = feed(home.tiro(&directory, &["hook", "git-post-commit"]), b"");
    assert!(ran.is_ok && ran.stdout.is_empty() && ran.stderr.is_empty(), "{ran:?}");
    let removed = home.run(&directory, &["init", "--remove"]);
    assert!(removed.is_ok && !directory.join(".git/hooks/post-commit").exists(), "{removed:?}");
}
