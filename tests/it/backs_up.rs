//! A backup of everything brings back all that was stored in another home, and threads go on there.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::harness::{Home, Repo, Server};
use crate::mock::{Manner, Mock};
use crate::spends::write;

const TOOL: &str = "chat_with_mock";

fn configure(home: &Home, mock: &Mock) {
    let endpoint = mock.endpoint();
    write(
        home,
        &format!(
            "[providers.mock]\nservice = 'openai-compatible'\nendpoint = '{endpoint}'\nmodel = 'm'\nwindow = 16000\n"
        ),
    );
}

fn ask(instructions: &str) -> Value {
    json!({"session_id": "lease", "instructions": instructions, "context": ["src"]})
}

/// Returns a repository with two files, a thread about them in it, and a server that runs there.
fn with_thread(home: &Home, mock: &Mock) -> (Repo, Server) {
    let project = home.repo("project");
    for path in ["src/a.rs", "src/b.rs"] {
        project.write(path, &(0..40).map(|n| format!("fn f{n}() {{ call({n}) }}\n")).collect::<String>());
    }
    mock.behaves(&Manner::Says("Keep the lease at 30 seconds.".into()));
    let mut server = home.serve(&project.path);
    server.data(TOOL, ask("Is the lease long enough?"));
    server.save("talk", "1", "a quince in the cellar");
    (project, server)
}

fn backed_up(home: &Home, directory: &Path) -> (PathBuf, Value) {
    let file = home.path().join("all.zip");
    let data = home.json(directory, &["backup", "--all", file.to_str().unwrap()]);
    (file, data)
}

fn finds(server: &mut Server, word: &str) -> bool {
    server.search(word).iter().any(|hit| hit["text"].as_str().unwrap().contains(word))
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn everything_is_restored_in_another_home_and_a_thread_goes_on_there() {
    let (home, mock) = (Home::new(), Mock::start());
    configure(&home, &mock);
    let (project, mut server) = with_thread(&home, &mock);
    let other = home.dir("other");
    home.serve(&other).save("talk", "1", "a pomelo in the attic");
    server.data("store_memory", json!({"text": "Anna owns billing", "type": "fact", "scope": "owner"}));
    // The server still runs.
    let (file, written) = backed_up(&home, &project.path);
    assert_eq!((&written["projects"], &written["threads"]), (&json!(2), &json!(1)), "{written}");
    assert_eq!(written["configuration"], true);
    let again = home.run(&other, &["backup", "--all", file.to_str().unwrap()]);
    assert!(!again.is_ok && again.stderr.contains("exists already"), "{again:?}");
    assert!(names(&home.path()).iter().all(|name| !name.contains(".part")), "{:?}", names(&home.path()));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    }

    // Another home, in which the directory of one of the two projects doesn't exist.
    drop(server);
    fs::remove_dir_all(&other).unwrap();
    let elsewhere = Home::new();
    let ran = elsewhere.run(&elsewhere.dir("anywhere"), &["restore", file.to_str().unwrap()]);
    assert!(ran.is_ok, "{ran:?}");
    assert!(ran.stdout.contains("Restored 2 projects") && ran.stdout.contains("1 thread"), "{ran:?}");
    assert!(ran.stdout.contains("tiro projects link") && ran.stdout.contains("other"), "{ran:?}");
    let sent = mock.requests();
    let mut server = elsewhere.serve(&project.path);
    let second = server.data(TOOL, ask("And now?"));
    let receipt = &second["receipt"];
    assert_eq!((&receipt["turn"], &receipt["unchanged"]), (&json!(2), &json!(2)), "{second}");
    let seen = mock.seen.lock().unwrap();
    let messages = |at: usize| seen[at].1["messages"].as_array().unwrap().clone();
    assert_eq!(messages(sent)[..2], messages(0)[..2], "the prompt begins with the one before it");
    let last = messages(sent).last().unwrap()["content"].as_str().unwrap().to_owned();
    assert!(!last.contains("fn f1()") && last.contains("And now?"), "{last}");
    drop(seen);
    assert!(finds(&mut server, "quince"));
    assert!(!server.search("who owns billing").is_empty(), "the owner's memories are there");
    // The project without a directory is kept, and can be linked to one.
    let listed = elsewhere.json(&project.path, &["projects", "list"]);
    let id = listed["projects"].as_array().unwrap().iter().find(|row| row["name"] == "other").unwrap()["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let new = elsewhere.dir("moved");
    elsewhere.json(&new, &["projects", "link", &id, new.to_str().unwrap()]);
    assert!(finds(&mut elsewhere.serve(&new), "pomelo"));
    assert!(elsewhere.run(&new, &["doctor"]).stdout.contains("sound"));
}

#[test]
fn what_is_stored_is_replaced_only_when_asked_and_kept_beside() {
    let (home, mock) = (Home::new(), Mock::start());
    configure(&home, &mock);
    let (project, mut server) = with_thread(&home, &mock);
    let (file, _) = backed_up(&home, &project.path);
    server.save("talk", "2", "a medlar in the garden");
    let restore = ["restore", file.to_str().unwrap()];
    let refused = home.run(&project.path, &restore);
    assert!(!refused.is_ok && refused.stderr.contains("--yes"), "{refused:?}");
    assert!(finds(&mut server, "medlar"));
    // The server runs on, and finds the restored stores at its next call.
    let restored = home.json(&project.path, &[restore[0], restore[1], "--yes"]);
    assert_eq!(restored["unlinked"], json!([]), "{restored}");
    assert!(!finds(&mut server, "medlar"));
    assert!(finds(&mut server, "quince"));
    server.save("talk", "3", "a loquat on the wall");
    drop(server);
    assert!(finds(&mut home.serve(&project.path), "loquat"));
    let kept = PathBuf::from(restored["kept"].as_str().unwrap());
    assert!(kept.join("owner.db").is_file() && names(&kept.join("projects")).len() == 1);
    assert_eq!(names(&home.data().join("projects")).len(), 1);
}

#[test]
fn a_restore_that_is_killed_leaves_the_old_state_or_the_new_one() {
    let home = Home::new();
    let project = home.dir("project");
    home.serve(&project).save("talk", "1", "a quince in the cellar");
    let (file, _) = backed_up(&home, &project);
    home.serve(&project).save("talk", "2", "a medlar in the garden");
    let mut old = 0;
    for millis in [0, 4, 8, 12, 16, 20, 25, 30, 40, 50, 60, 80] {
        let mut command = home.tiro(&project, &["restore", file.to_str().unwrap(), "--yes"]);
        let mut child = command.stdin(std::process::Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(millis));
        let _ = child.kill();
        child.wait().unwrap();
        let mut server = home.serve(&project);
        let has = finds(&mut server, "medlar");
        old += usize::from(has);
        assert!(finds(&mut server, "quince"), "after {millis} ms");
        if !has {
            server.save("talk", "2", "a medlar in the garden");
        }
    }
    assert!(old > 0, "some were killed before they were done");
    home.json(&project, &["restore", file.to_str().unwrap(), "--yes"]);
    assert_eq!(names(&home.data().join("projects")).len(), 1, "what was placed is removed");
    let left = names(&home.data());
    assert!(left.iter().all(|name| !name.ends_with(".part")), "{left:?}");
}

#[test]
fn wrong_kinds_of_files_are_refused_by_what_they_are() {
    let home = Home::new();
    let project = home.dir("project");
    home.serve(&project).save("talk", "1", "a quince in the cellar");
    let path = |name: &str| home.path().join(name);
    fs::write(path("text"), "only text, which is long enough to be no empty file".repeat(20)).unwrap();
    fs::write(path("cut"), b"PK\x03\x04 and nothing else").unwrap();
    let another = rusqlite::Connection::open(path("another")).unwrap();
    another.execute_batch("CREATE TABLE songs (title TEXT); INSERT INTO songs VALUES ('x')").unwrap();
    fs::copy(home.data().join("owner.db"), path("owner")).unwrap();
    for (name, says) in [
        ("text", "it is not a database"),
        ("cut", "it is a damaged archive"),
        ("another", "it is a database of another program"),
        ("owner", "it is an `owner.db`"),
        ("nowhere", "no backup"),
    ] {
        let ran = home.run(&project, &["restore", path(name).to_str().unwrap()]);
        assert!(!ran.is_ok && ran.stderr.contains(says), "{name}: {ran:?}");
        assert!(ran.stderr.contains("tiro backup"), "{name}: {ran:?}");
    }
    // A damaged backup is refused before anything changes. A single bit may change nothing of what is unpacked.
    let (file, _) = backed_up(&home, &project);
    let mut bytes = fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 64].iter_mut().for_each(|byte| *byte = !*byte);
    fs::write(&file, bytes).unwrap();
    let ran = home.run(&project, &["restore", file.to_str().unwrap(), "--yes"]);
    assert!(!ran.is_ok && ran.stderr.contains("damaged"), "{ran:?}");
    assert!(finds(&mut home.serve(&project), "quince"));
    // A backup of one project says what it lacks.
    let one = home.run(&project, &["backup", path("one").to_str().unwrap()]);
    assert!(
        one.stdout.contains("memories stored for all your projects") && one.stdout.contains("--all"),
        "{one:?}"
    );
}

#[test]
fn what_killed_commands_left_is_removed_after_an_hour() {
    let home = Home::new();
    let project = home.repo("project");
    home.serve(&project.path).save("talk", "1", "a quince in the cellar");
    let store = home.store();
    let left = |folder: &Path, name: &str, is_old: bool| {
        let path = folder.join(name);
        fs::write(&path, "half").unwrap();
        let age = Duration::from_secs(if is_old { 7200 } else { 60 });
        fs::File::options().append(true).open(&path).unwrap().set_modified(SystemTime::now() - age).unwrap();
        path
    };
    let data = home.data();
    let config = home.path().join("home/.config/tiro");
    fs::create_dir_all(&config).unwrap();
    let old = [
        left(&data, "owner.db.x1y2z3.part", true),
        left(store.parent().unwrap(), "tiro.db.x1y2z3.part", true),
        left(store.parent().unwrap(), "tiro.db.x1y2z3.part-journal", true),
        left(&config, ".tiro-x1y2z3", true),
        left(&project.path.join(".git"), ".tiro-project-idx1y2z3", true),
    ];
    let young = left(store.parent().unwrap(), "tiro.db.a1b2c3.part", false);
    home.json(&project.path, &["gc"]);
    for path in old {
        assert!(!path.exists(), "{path:?}");
    }
    assert!(young.exists());
}
