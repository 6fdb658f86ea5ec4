//! Nothing is visible from another project or installation, and a repository keeps its memory when it moves.

use serde_json::{Value, json};

use crate::harness::{Home, Repo, Server, strings};

/// Saves one message that contains the name of its place.
fn plant(home: &Home, place: &std::path::Path, text: &str) -> String {
    home.serve(place).save("s", "1", text)
}

fn texts(server: &mut Server) -> Vec<String> {
    let mut texts = strings(&server.search("pomelo"), "text");
    texts.sort();
    texts
}

fn texts_at(home: &Home, place: &std::path::Path) -> Vec<String> {
    texts(&mut home.serve(place))
}

/// If a call in one project uses ids and words of another project, it still returns no text of that other project.
#[test]
fn nothing_is_seen_from_another_project_or_installation() {
    let (home, other_home) = (Home::new(), Home::new());
    let (here, there) = (home.dir("here"), home.dir("there"));
    let secret = "pomelo-of-the-others";
    let mut foreign = home.serve_with_ranking(&there);
    let mut foreign_ids = vec![foreign.save("theirs", "their-1", &format!("{secret} one"))];
    let messages: Vec<Value> = (0..30)
        .map(|n| json!({"id": format!("m{n}"), "role": "user", "text": format!("{secret} {n}")}))
        .collect();
    foreign.data("save_messages", json!({"session_id": "theirs", "messages": messages}));
    let decided =
        foreign.data("store_memory", json!({"text": format!("{secret} decided"), "type": "decision"}));
    foreign_ids.push(decided["id"].as_str().unwrap().to_owned());
    let page = foreign.data("search_project_memory", json!({"query": secret, "k": 2}));
    let cursor = page["next_cursor"].clone();
    assert!(cursor.is_string());
    // This is the same owner in another installation.
    foreign_ids.push(plant(&other_home, &other_home.dir("far"), &format!("{secret} far")));

    let mut server = home.serve(&here);
    server.save("ours", "1", "a pomelo of ours");
    server.save("theirs", "1", "a pomelo in a conversation of the same name");
    let mut calls = vec![
        ("list_sessions", json!({})),
        ("search_project_memory", json!({"query": secret, "k": 50})),
        ("search_project_memory", json!({"query": secret, "sessions": ["theirs"]})),
        ("search_project_memory", json!({"query": secret, "cursor": cursor})),
        ("search_project_memory", json!({"query": "their-1 one decided far"})),
        ("forget_context", json!({"source": "their-1"})),
        ("forget_context", json!({"query": secret, "dry_run": true})),
        ("forget_context", json!({"undo": "last"})),
        ("store_memory", json!({"text": "refers", "references": foreign_ids})),
    ];
    for id in &foreign_ids {
        calls.push(("expand_detail", json!({"id": id})));
        calls.push(("expand_detail", json!({"id": id, "cursor": "1", "before": 20, "after": 20})));
        calls.push(("mark_important", json!({"ids": [id]})));
        calls.push(("forget_context", json!({"ids": [id], "purge": true})));
    }
    for (tool, arguments) in calls {
        let asked = arguments.to_string();
        let answer = server.call(tool, arguments).to_string();
        assert!(!answer.contains(secret), "{tool} {asked}: {answer}");
    }
    let mut uris: Vec<String> = foreign_ids.iter().map(|id| format!("tiro://memory/{id}")).collect();
    uris.extend(["tiro://session/theirs", "tiro://session/s", "tiro://memory/../there"].map(String::from));
    for uri in uris {
        let answer = server.request("resources/read", json!({"uri": uri})).to_string();
        assert!(!answer.contains(secret), "{uri}: {answer}");
    }
    let listed = server.request("resources/list", json!({})).to_string();
    assert!(!listed.contains(secret));
    // No memory of the others was marked or forgotten either.
    let theirs = foreign.hits(json!({"query": secret, "k": 50, "max_tokens": 20_000}));
    assert_eq!(theirs.len(), 32);
    assert!(theirs.iter().all(|hit| hit["score_parts"]["importance"] == 0.0));
}

fn copy(from: &std::path::Path, to: &std::path::Path) {
    assert!(std::process::Command::new("cp").arg("-a").args([from, to]).status().unwrap().success());
}

#[test]
fn a_copied_repository_gets_a_new_memory_and_a_moved_one_keeps_its_own() {
    let home = Home::new();
    let repo = home.repo("origin");
    repo.commit("a.txt", "a\n", "Begin");
    plant(&home, &repo.path, "a pomelo in the original");
    let (copied, moved) = (home.path().join("copied"), home.path().join("moved"));
    copy(&repo.path, &copied);
    assert_eq!(texts_at(&home, &copied), [""; 0], "a copy starts anew while the original stands");
    plant(&home, &copied, "a pomelo in the copy");
    std::fs::rename(&repo.path, &moved).unwrap();
    assert_eq!(texts_at(&home, &moved), ["a pomelo in the original"]);
    assert_eq!(texts_at(&home, &copied), ["a pomelo in the copy"]);
    assert_eq!(home.json(&moved, &["projects", "list"])["projects"].as_array().unwrap().len(), 2);
}

/// When a project was copied, the copy's empty memory used to look as if memories were lost.
#[test]
fn a_copied_repository_names_its_original() {
    let home = Home::new();
    let repo = home.repo("origin");
    repo.commit("a.txt", "a\n", "Begin");
    plant(&home, &repo.path, "a pomelo in the original");
    let copied = home.path().join("copied");
    copy(&repo.path, &copied);
    for _ in 0..2 {
        let told = home.serve(&copied).text("search_project_memory", json!({"query": "pomelo"}));
        assert!(told.contains("a copy of origin in") && told.contains("tiro projects link"), "{told}");
    }
    let told = home.run(&copied, &["doctor"]);
    assert!(told.is_ok && told.stdout.contains("a copy of origin in"), "{told:?}");
    let projects = home.json(&repo.path, &["projects", "list"]);
    let id = projects["projects"].as_array().unwrap().iter().find(|each| each["name"] == "origin").unwrap();
    let link = format!("`tiro projects link {} {}`", id["id"].as_str().unwrap(), copied.display());
    assert!(told.stdout.contains(&link), "{link}: {told:?}");
    home.json(&repo.path, &["projects", "link", id["id"].as_str().unwrap(), copied.to_str().unwrap()]);
    assert_eq!(texts_at(&home, &copied), ["a pomelo in the original"]);
    let told = home.run(&copied, &["doctor"]);
    assert!(!told.stdout.contains("a copy of"), "{told:?}");
}

/// Once the registry was lost, nothing led from a directory back to its memories.
#[test]
fn stores_of_a_lost_registry_are_reported_and_can_be_linked() {
    let home = Home::new();
    let (plain, repo) = (home.dir("plain"), home.repo("repo"));
    plant(&home, &plain, "a pomelo in a directory");
    plant(&home, &repo.path, "a pomelo in a repository");
    assert!(!home.run(&plain, &["doctor"]).stdout.contains("no project"));
    for end in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(home.data().join(format!("owner.db{end}")));
    }
    // A repository contains its project id, and keeps it even under another name.
    let renamed = home.path().join("renamed");
    std::fs::rename(&repo.path, &renamed).unwrap();
    assert_eq!(texts_at(&home, &renamed), ["a pomelo in a repository"]);

    assert_eq!(texts_at(&home, &plain), [""; 0]);
    let told = home.json(&plain, &["doctor"]);
    let told = told["findings"].as_array().unwrap();
    let told = told.iter().find(|finding| finding["what"] == "stores of no project").expect("it is told");
    let folder = told["found"].as_str().unwrap().trim_matches('`');
    let (name, id) = folder.rsplit_once('-').unwrap();
    assert_eq!(name, "plain", "{told}");
    assert!(told["mend"].as_str().unwrap().contains(&format!("`tiro projects link {id} DIR`")), "{told}");
    home.json(&plain, &["projects", "link", id, plain.to_str().unwrap()]);
    assert_eq!(texts_at(&home, &plain), ["a pomelo in a directory"]);
    // The store that was created in between is known and empty.
    assert!(!home.run(&plain, &["doctor"]).stdout.contains("no project"));
}

#[test]
fn worktrees_and_folders_of_a_repository_share_its_memory() {
    let home = Home::new();
    let repo = home.repo("repo");
    repo.commit("deep/er/a.txt", "a\n", "Begin");
    repo.git(&["worktree", "add", "-q", "../worktree", "-b", "side"]);
    plant(&home, &repo.path, "a pomelo");
    for place in [repo.path.join("deep/er"), home.path().join("worktree"), repo.path.join(".git")] {
        assert_eq!(texts_at(&home, &place), ["a pomelo"], "{place:?}");
    }
}

/// Each process used to register the directory under a different id, and all except the last wrote to a store that was
/// never found again.
#[test]
fn parallel_processes_in_a_new_directory_share_one_memory() {
    const WRITERS: usize = 4;
    let home = Home::new();
    for place in [home.dir("plain"), home.repo("repository").path] {
        let start = std::sync::Barrier::new(WRITERS);
        std::thread::scope(|scope| {
            for writer in 0..WRITERS {
                let (home, place, start) = (&home, &place, &start);
                scope.spawn(move || {
                    let mut server = home.serve(place);
                    start.wait();
                    server.save(&format!("s{writer}"), "1", &format!("a pomelo of {writer}"));
                });
            }
        });
        assert_eq!(texts_at(&home, &place).len(), WRITERS, "{place:?}");
    }
}

#[test]
fn repositories_and_directories_of_one_name_do_not_collide() {
    let home = Home::new();
    let places = [home.repo("one/app").path, home.repo("two/app").path, home.dir("three/app")];
    for (n, place) in places.iter().enumerate() {
        plant(&home, place, &format!("a pomelo in {n}"));
    }
    for (n, place) in places.iter().enumerate() {
        assert_eq!(texts_at(&home, place), [format!("a pomelo in {n}")]);
    }
    let told = home.run(&places[0], &["projects", "merge", "app", "app"]);
    assert!(!told.is_ok && told.stderr.contains("app"), "an ambiguous name is no project: {told:?}");
}

#[test]
fn the_root_and_the_home_are_refused_with_a_hint() {
    let home = Home::new();
    let the_home = home.dir("home");
    for place in [std::path::Path::new("/"), &the_home] {
        let mut server = home.serve(place);
        assert_eq!(server.request("tools/list", json!({}))["result"]["tools"].as_array().unwrap().len(), 16);
        for (tool, arguments) in [
            ("search_project_memory", json!({"query": "x"})),
            ("store_memory", json!({"text": "x"})),
            ("list_sessions", json!({})),
        ] {
            let told = server.error(tool, arguments);
            assert!(told.contains("is not a project") && told.contains("--project"), "{told}");
        }
        let ran = home.run(place, &["search", "x"]);
        assert!(!ran.is_ok && ran.stderr.contains("hint: ") && ran.stdout.is_empty(), "{ran:?}");
        // Following the hint works.
        let project = home.dir("work");
        let ran = home.run(place, &["--project", project.to_str().unwrap(), "search", "x"]);
        assert!(ran.is_ok, "{ran:?}");
    }
}

/// Whatever state a repository is in, imports and searches either work or say why they don't.
#[test]
fn a_repository_in_any_state_works_or_gives_the_reason() {
    let home = Home::new();
    let origin = home.repo("origin");
    origin.commit("a.txt", "a\n", "Plant the pomelo tree");
    origin.commit("a.txt", "b\n", "Water the pomelo tree");
    let url = format!("file://{}", origin.path.display());
    let here = home.repo_at(home.path());
    here.git(&["clone", "-q", "--bare", &url, "bare.git"]);
    here.git(&["clone", "-q", "--depth", "1", &url, "shallow"]);
    here.git(&["clone", "-q", &url, "detached"]);
    home.repo_at(home.path().join("detached")).git(&["checkout", "-q", "--detach", "HEAD~1"]);
    let parent = home.repo("parent");
    parent.git(&["submodule", "--quiet", "add", &url, "module"]);
    parent.git(&["commit", "-q", "-m", "Add the module"]);
    home.repo("empty");

    // A bare repository is a project if the user names it.
    let named = |place: &str| home.path().join(place).to_str().unwrap().to_owned();
    let import =
        |place: &str| home.json(&home.path().join(place), &["import", "git", "--project", &named(place)]);
    for (place, count, notice) in [
        ("bare.git", 2, ""),
        ("shallow", 1, "shallow"),
        ("detached", 2, ""),
        ("parent/module", 2, ""),
        ("parent", 1, ""),
        ("empty", 0, "no commits yet"),
    ] {
        let imported = import(place);
        assert_eq!(imported["imported"], count, "{place}: {imported}");
        assert_eq!(imported["unreadable"], json!([]), "{place}");
        assert!(imported["notices"].to_string().contains(notice), "{place}: {imported}");
        let mut command = home.tiro(&home.path().join(place), &["serve"]);
        command.env("TIRO_PROJECT", named(place));
        let mut server = Server::start(command);
        let expected = if place == "parent" { 0 } else { count };
        assert_eq!(server.search("pomelo tree").len(), expected, "{place}");
    }

    let plain = home.dir("plain");
    let ran = home.run(&plain, &["import", "git"]);
    assert!(
        !ran.is_ok && ran.stderr.contains("is not a git repository") && ran.stderr.contains("hint: "),
        "{ran:?}"
    );
    assert!(home.run(&plain, &["search", "x"]).is_ok, "a directory is a project too");
    let gone = home.path().join("gone");
    let ran = home.run(&plain, &["--project", gone.to_str().unwrap(), "search", "x"]);
    assert!(!ran.is_ok && ran.stderr.contains("gone") && ran.stderr.contains("hint: "), "{ran:?}");
}

#[test]
fn a_damaged_commit_costs_that_commit_and_not_the_import() {
    let home = Home::new();
    let repo = home.repo("repo");
    repo.commit("a.txt", "a\n", "First pomelo");
    repo.commit("a.txt", "b\n", "Second pomelo");
    let blob = repo.git(&["rev-parse", "HEAD:a.txt"]);
    std::fs::remove_file(repo.path.join(".git/objects").join(&blob[..2]).join(&blob[2..])).unwrap();
    let imported = home.json(&repo.path, &["import", "git"]);
    assert_eq!(imported["imported"], 2, "{imported}");
    assert_ne!(imported["flags"], json!([]), "what is missing is told: {imported}");
}

#[test]
fn a_huge_or_non_utf8_commit_message_is_stored() {
    let home = Home::new();
    let repo: Repo = home.repo("repo");
    repo.commit("a.txt", "a\n", "Begin");
    repo.write("../huge", &format!("Grow the pomelo\n\n{}", "All about growth and more. ".repeat(400_000)));
    repo.git(&["commit", "-q", "--allow-empty", "-F", "../huge"]);
    std::fs::write(repo.path.join("../latin"), b"Peel the pomelo\n\ngr\xfcn und s\xfc\xdf\n").unwrap();
    repo.git(&["-c", "i18n.commitEncoding=ISO-8859-1", "commit", "-q", "--allow-empty", "-F", "../latin"]);
    let imported = home.json(&repo.path, &["import", "git"]);
    assert_eq!((&imported["imported"], &imported["unreadable"]), (&json!(3), &json!([])));
    let mut server = home.serve(&repo.path);
    assert_eq!(server.search("grow pomelo").len(), 2);
    assert!(server.search("peel")[0]["text"].as_str().unwrap().contains("grün und süß"));
}

/// A backup used to be a copy of the whole file, so that restoring it gave one owner the memories of the others.
#[test]
fn a_backup_contains_only_rows_of_its_owner() {
    use tiro::testing::{Draft, Kind, Provenance};
    use tiro::testing::{Flavour, ForeignPart, SqliteBackup, SqliteStore, WriteMemories};
    use tiro::testing::{ProjectId, Scope, TenantId};

    let home = Home::new();
    let project = ProjectId::parse("0123456789abcdef").unwrap();
    let store = SqliteStore::open(&home.path().join("tiro.db"), Flavour::Project, project.clone()).unwrap();
    let redactor = tiro::testing::Redactor::new([7; 32]);
    let scopes = ["ines", "tomasz"].map(|owner| Scope::own(TenantId::new(owner), project.clone()));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let copy = home.path().join("copy.db");
    let restored = runtime.block_on(async {
        for (scope, fruit) in scopes.iter().zip(["quince", "pitaya"]) {
            let draft = Draft::new(Kind::Fact, Provenance::UserSaid, format!("the {fruit} is mine"), 0);
            let (memory, _) = tiro::testing::prepare(&redactor, draft, &mut || [1; 16]);
            store.save(scope, vec![memory], 0).await.unwrap();
        }
        put_into_every_table(&home.path().join("tiro.db"), "tomasz");
        store.back_up(&scopes[0], &copy).await.unwrap();
        let mut backup = SqliteBackup::open(&scopes[1], &copy).await.unwrap();
        backup.next(ForeignPart::Original).await.unwrap().unwrap().memories
    });
    let texts: Vec<&str> = restored.iter().map(|each| each.memory.text.as_str()).collect();
    assert_eq!(texts, ["the quince is mine"]);
    let bytes = std::fs::read(&copy).unwrap();
    assert!(!bytes.windows(6).any(|window| window == b"pitaya"), "what is not the owner's is in the backup");
    let copy = rusqlite::Connection::open(&copy).unwrap();
    for table in owned_tables(&copy) {
        let sql = format!("SELECT count(*) FROM \"{table}\" WHERE owner = 'tomasz'");
        let count: i64 = copy.query_row(&sql, [], |row| row.get(0)).unwrap();
        assert_eq!(count, 0, "{table}");
    }
}

/// Returns the tables with a column for the owner.
fn owned_tables(database: &rusqlite::Connection) -> Vec<String> {
    let sql = "SELECT t.name FROM sqlite_schema t JOIN pragma_table_info(t.name) c
        WHERE t.type = 'table' AND c.name = 'owner'";
    let tables: Result<Vec<String>, _> =
        database.prepare(sql).unwrap().query_map([], |row| row.get(0)).unwrap().collect();
    tables.unwrap()
}

/// Inserts a row of the owner into each table with a column for the owner.
fn put_into_every_table(path: &std::path::Path, owner: &str) {
    let database = rusqlite::Connection::open(path).unwrap();
    database.execute_batch("PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON").unwrap();
    let tables = owned_tables(&database);
    assert!(tables.len() > 10, "{tables:?}");
    for table in tables {
        let columns: Result<Vec<(String, String)>, _> = database
            .prepare("SELECT name, type FROM pragma_table_info(?1)")
            .unwrap()
            .query_map([&table], |row| Ok((row.get(0)?, row.get(1)?)))
            .unwrap()
            .collect();
        let columns = columns.unwrap();
        let names: Vec<&str> = columns.iter().map(|(name, _)| name.as_str()).collect();
        let values: Vec<String> = columns
            .iter()
            .map(|(name, kind)| match (name.as_str(), kind.as_str()) {
                ("owner", _) => format!("'{owner}'"),
                (_, "TEXT") => "'x'".to_owned(),
                (_, "BLOB") => "x'00'".to_owned(),
                (_, "REAL") => "0.5".to_owned(),
                _ => "987654".to_owned(),
            })
            .collect();
        let (names, values) = (names.join(", "), values.join(", "));
        database
            .execute(&format!("INSERT OR IGNORE INTO \"{table}\" ({names}) VALUES ({values})"), [])
            .unwrap();
        let sql = format!("SELECT count(*) FROM \"{table}\" WHERE owner = '{owner}'");
        let count: i64 = database.query_row(&sql, [], |row| row.get(0)).unwrap();
        assert!(count > 0, "{table}");
    }
}
