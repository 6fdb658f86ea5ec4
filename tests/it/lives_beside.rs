//! `init` sets Tiro up in the installed clients and `--remove` undoes that without a trace; hooks delay nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tiro::testing::count;

use crate::harness::{Home, Ran, Server, feed, strings};
use crate::talk::Talk;

const SESSION: &str = "41799f8d-5af3-46fb-8473-94dff3a77ff6";

/// How long a hook may take here. Arbitrary: long enough that the test passes on a busy machine, and short enough that
/// it fails if the hook waits.
const SOON: Duration = Duration::from_secs(20);

/// Returns every file and folder beneath `root` with its mode and bytes.
fn snapshot(root: &Path) -> BTreeMap<PathBuf, (u32, Option<Vec<u8>>)> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let metadata = path.symlink_metadata().unwrap();
            let bytes = metadata.is_file().then(|| std::fs::read(&path).unwrap());
            if metadata.is_dir() {
                folders.push(path.clone());
            }
            found.insert(path, (mode(&metadata), bytes));
        }
    }
    found
}

#[cfg(unix)]
fn mode(metadata: &std::fs::Metadata) -> u32 {
    std::os::unix::fs::MetadataExt::mode(metadata)
}

#[cfg(not(unix))]
fn mode(metadata: &std::fs::Metadata) -> u32 {
    metadata.permissions().readonly().into()
}

#[cfg(unix)]
fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
}

fn put(path: PathBuf, text: &str) -> PathBuf {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, text).unwrap();
    path
}

fn read_json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// Returns `command`, which runs the program, with the environment of a home.
fn in_home(home: &Home, directory: &Path, program: &str, args: &[&str]) -> Command {
    let mut command = Command::new(program);
    let ours = home.tiro(directory, &[]);
    command.args(args).current_dir(directory).env_clear();
    command.envs(ours.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.env("GIT_CONFIG_NOSYSTEM", "1");
    for who in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{who}_NAME"), "Ada").env(format!("GIT_{who}_EMAIL"), "ada@example.org");
    }
    command
}

#[cfg(unix)]
#[test]
fn init_sets_up_a_working_server_and_remove_restores_every_file() {
    let home = Home::new();
    let repo = home.repo("repo");
    repo.commit("a.txt", "a\n", "Begin the gearbox");
    let scratch = home.dir("home");
    let hook = put(repo.path.join(".git/hooks/post-commit"), "#!/bin/sh\necho ran >> hook-ran\nexit 7\n");
    set_mode(&hook, 0o755);
    put(scratch.join(".claude/settings.json"), "{\"model\": \"opus\"}\n");
    set_mode(
        &put(
            scratch.join(".codex/config.toml"),
            "# mine\nmodel = \"gpt-5\" # fast\n\n[mcp_servers.a]\ncommand = \"a\"\n",
        ),
        0o600,
    );
    put(
        scratch.join(".codex/hooks.json"),
        "{\"hooks\": {\"Stop\": [{\"hooks\": [{\"type\": \"command\", \"command\": \"mine\"}]}]}}",
    );
    put(
        scratch.join(".gemini/settings.json"),
        "{\n  // mine\n  \"mcpServers\": {\"a\": {\"command\": \"a\"}}, /* and */\n  \"ui\": {\"theme\": \"x\"},\n}\n",
    );
    let talk = Talk::new(&home, SESSION, &repo.path, "main");
    talk.says("user", 0, "shall we grease the gearbox?");
    let (before, hooks) = (snapshot(&scratch), repo.path.join(".git/hooks"));
    let hooks_before = snapshot(&hooks);

    let looked = home.run(&repo.path, &["init", "--dry-run"]);
    assert!(looked.is_ok && snapshot(&scratch) == before, "{looked:?}");
    let ran = home.run(&repo.path, &["init", "--yes"]);
    assert!(ran.is_ok && ran.stdout.contains("Imported 1 commit."), "{ran:?}");
    let after = (snapshot(&scratch), snapshot(&hooks));
    let again = home.run(&repo.path, &["init", "--yes"]);
    assert!(again.is_ok && again.stdout.contains("nothing was changed"), "{again:?}");
    assert_eq!((snapshot(&scratch), snapshot(&hooks)), after);
    let found = home.json(&repo.path, &["search", "gearbox"]);
    assert_eq!(found["hits"].as_array().unwrap().len(), 2, "the past was imported once: {found}");

    // The test runs the commands that the files contain.
    let plugin = scratch.join(".claude/skills/tiro");
    let server = read_json(&plugin.join(".mcp.json"))["mcpServers"]["tiro"].clone();
    let arguments: Vec<&str> =
        server["args"].as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect();
    let mut server =
        Server::start(in_home(&home, &repo.path, server["command"].as_str().unwrap(), &arguments));
    assert_eq!(server.search("gearbox").len(), 2);
    let hook_of = |file: PathBuf, event: &str| {
        let groups = read_json(&file)["hooks"][event].as_array().unwrap().clone();
        groups.last().unwrap()["hooks"][0].clone()
    };
    let stop = hook_of(plugin.join("hooks/hooks.json"), "Stop");
    let arguments: Vec<&str> =
        stop["args"].as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect();
    let run = |command: Command| {
        let Ran { is_ok, stdout, stderr } = feed(command, &talk.payload("Stop"));
        assert!(is_ok && stdout.is_empty() && stderr.is_empty(), "{stdout}{stderr}");
        home.waiting()
    };
    talk.says("user", 5, "the gearbox whines");
    let left =
        (0..50).any(|_| run(in_home(&home, &repo.path, stop["command"].as_str().unwrap(), &arguments)) == 1);
    assert!(left);
    assert_eq!(server.search("gearbox whines").len(), 3);
    let line = hook_of(scratch.join(".codex/hooks.json"), "Stop")["command"].as_str().unwrap().to_owned();
    assert!((0..50).any(|_| run(in_home(&home, &repo.path, "sh", &["-c", &line])) == 1), "{line}");
    server.search("settle");

    // Git runs both hooks: the earlier one, whose exit code counts, and Tiro's.
    repo.write("b.txt", "b\n");
    repo.git(&["add", "-A"]);
    let commit = feed(in_home(&home, &repo.path, "git", &["commit", "-m", "Grease the gearbox"]), b"");
    assert!(commit.is_ok && repo.path.join("hook-ran").exists(), "{commit:?}");
    let status =
        in_home(&home, &repo.path, hook.to_str().unwrap(), &[]).stdin(Stdio::null()).output().unwrap();
    assert_eq!((status.status.code(), status.stdout, status.stderr), (Some(7), vec![], vec![]));
    assert_eq!(strings(&server.hits(json!({"query": "grease", "kinds": ["commit"]})), "kind"), ["commit"]);
    server.end();

    let removed = home.run(&repo.path, &["init", "--remove"]);
    assert!(removed.is_ok, "{removed:?}");
    std::fs::remove_file(&talk.path).unwrap();
    let mut before = before;
    before.remove(&talk.path);
    assert_eq!(snapshot(&scratch), before);
    assert_eq!(snapshot(&hooks), hooks_before);
    assert_eq!(home.json(&repo.path, &["search", "gearbox"])["hits"].as_array().unwrap().len(), 4);
}

/// What a hook has to cope with, and its payload.
fn troubles(home: &Home, repo: &Path) -> Vec<(&'static str, Command)> {
    let hook = |directory: &Path| home.tiro(directory, &["hook", "claude-code"]);
    let with = |name: &str, value: &Path| {
        let mut command = hook(repo);
        command.env(name, value);
        command
    };
    let file = put(home.path().join("file"), "no folder");
    let garbage = home.path().join("garbage");
    put(garbage.join("owner.db"), &"garbage ".repeat(1000));
    put(garbage.join("spool"), "no folder either");
    let mut homeless = hook(repo);
    homeless.env_remove("HOME").env_remove("TIRO_DATA_DIR").env("XDG_DATA_HOME", home.dir("xdg"));
    let mut patterns = hook(repo);
    patterns.env("TIRO_IGNORE_PATHS", "a[");
    vec![
        ("nothing is wrong", hook(repo)),
        ("there is no data directory", with("TIRO_DATA_DIR", &home.path().join("a/b/c"))),
        ("the data directory is a file", with("TIRO_DATA_DIR", &file)),
        ("the data directory can't be written", with("TIRO_DATA_DIR", Path::new("/proc/self"))),
        ("the databases are garbage", with("TIRO_DATA_DIR", &garbage)),
        ("there is no HOME", homeless),
        ("this is no repository", hook(&home.dir("plain"))),
        ("this is the home directory", hook(&home.dir("home"))),
        ("a pattern is none", patterns),
        ("CI is set", with("CI", Path::new("true"))),
    ]
}

/// Runs a hook and returns its output, after checking that it was quick and silent.
fn quiet(about: &str, command: Command, input: &[u8]) -> String {
    let started = Instant::now();
    let Ran { is_ok, stdout, stderr } = feed(command, input);
    assert!(is_ok && stderr.is_empty(), "{about}: {stderr}");
    assert!(started.elapsed() < SOON, "{about}: {:?}", started.elapsed());
    stdout
}

#[test]
fn a_hook_always_ends_silently() {
    let home = Home::new();
    let repo = home.repo("repo");
    repo.commit("a.txt", "a\n", "Begin");
    home.json(&repo.path, &["import", "git"]);
    let talk = Talk::new(&home, SESSION, &repo.path, "main");
    let mut start: Value = serde_json::from_slice(&talk.payload("SessionStart")).unwrap();
    start["cwd"].take();
    let start = start.to_string().into_bytes();
    let long = json!({"session_id": SESSION, "hook_event_name": "Stop", "prompt": "x".repeat(20_000_000)});
    let payloads: [Vec<u8>; 7] = [
        start.clone(),
        talk.payload("Stop"),
        Vec::new(),
        b"{\"session_id\": 7}".to_vec(),
        b"\xff\xfe\x00garbage".to_vec(),
        start[..start.len() / 2].to_vec(),
        long.to_string().into_bytes(),
    ];
    for (about, _) in troubles(&home, &repo.path) {
        for (place, payload) in payloads.iter().enumerate() {
            let command = |wanted: &str| {
                troubles(&home, &repo.path).into_iter().find(|(about, _)| *about == wanted).unwrap().1
            };
            let said = quiet(about, command(about), payload);
            let may_speak = place == 0 && !matches!(about, "this is the home directory" | "CI is set");
            assert!(said.is_empty() || (may_speak && said.contains("Tiro keeps")), "{about}: {said}");
        }
    }
    assert!(!home.path().join("garbage/spool/x").exists());

    std::fs::remove_dir_all(home.data().join("spool")).unwrap();

    talk.says("user", 0, "who writes there?");
    // A writer keeps the databases busy, and the hook's input stays open.
    let stores = [home.data().join("owner.db"), home.store()];
    let locks = stores.map(|path| {
        let connection = rusqlite::Connection::open(path).unwrap();
        connection.execute_batch("BEGIN IMMEDIATE").unwrap();
        connection
    });
    let hook = || home.tiro(&repo.path, &["hook", "claude-code"]);
    let left =
        (0..50).any(|_| quiet("locked", hook(), &talk.payload("Stop")).is_empty() && home.waiting() == 1);
    assert!(left, "a reference is left whoever writes");
    let mut open =
        hook().stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let stdin = open.stdin.take();
    let started = Instant::now();
    let output = open.wait_with_output().unwrap();
    drop(stdin);
    assert!(output.status.success() && output.stdout.is_empty() && output.stderr.is_empty(), "{output:?}");
    assert!(started.elapsed() < SOON);
    let git = quiet("git", home.tiro(&repo.path, &["hook", "git-post-commit"]), b"");
    assert_eq!(git, "");
    drop(locks);
}

#[test]
fn nothing_is_captured_in_ci() {
    let home = Home::new();
    let repo = home.repo("repo");
    let talk = Talk::new(&home, SESSION, &repo.path, "main");
    for client in ["claude-code", "codex", "gemini", "git-post-commit"] {
        let mut command = home.tiro(&repo.path, &["hook", client]);
        command.env("CI", "true");
        assert_eq!(quiet(client, command, &talk.payload("SessionStart")), "");
    }
    assert_eq!(std::fs::read_dir(home.data()).unwrap().count(), 0);
}

/// Gemini CLI adds the output of its start hook to the prompt, and no longer has that prompt when it resumes a session.
#[test]
fn the_hook_of_gemini_prints_nothing_at_the_start() {
    let home = Home::new();
    let repo = home.repo("repo");
    let talk = Talk::new(&home, SESSION, &repo.path, "main");
    for _ in 0..5 {
        let command = home.tiro(&repo.path, &["hook", "gemini"]);
        assert_eq!(quiet("gemini", command, &talk.payload("SessionStart")), "");
    }
}

#[test]
fn the_pointer_is_the_same_until_something_is_stored() {
    let home = Home::new();
    let repo = home.repo("repo");
    repo.commit("a.txt", "a\n", "Begin");
    let talk = Talk::new(&home, SESSION, &repo.path, "main");
    let empty = talk.begins(&home);
    assert!(empty.contains("nothing yet") && empty.contains(SESSION), "{empty}");
    assert_eq!(talk.begins(&home), empty);

    home.json(&repo.path, &["import", "git"]);
    let one = talk.begins(&home);
    assert!(one.contains("1 commit"), "{one}");
    home.json(&repo.path, &["import", "git"]);
    home.serve(&repo.path).search("anything");
    assert_eq!(talk.begins(&home), one, "a call that remembers nothing changes nothing");

    talk.says("user", 0, "remember the gasket");
    talk.hook(&home, "Stop");
    home.serve(&repo.path).search("gasket");
    let two = talk.begins(&home);
    assert!(two.contains("1 commit") && two.contains("1 message in 1 session"), "{two}");
    assert_eq!(talk.begins(&home), two);
    for pointer in [empty, one, two] {
        assert!(count(&pointer) <= 150, "{pointer}");
    }
}

/// Reading used to register the project: it created databases, and a file in the repository.
#[test]
fn reading_creates_nothing() {
    let home = Home::new();
    let repo = home.repo("repo");
    repo.commit("a.txt", "a\n", "Begin");
    home.dir("home/.codex");
    std::fs::remove_dir(home.data()).unwrap();
    let before = snapshot(&home.path());
    let looked = home.run(&repo.path, &["init", "--dry-run"]);
    assert!(looked.is_ok && looked.stderr.contains("1 commit"), "{looked:?}");
    for made in ["owner.db", "projects", "tiro-project-id"] {
        assert!(looked.stderr.contains(made), "{made}: {looked:?}");
    }
    let told = home.run(&repo.path, &["doctor"]);
    assert!(told.is_ok && told.stdout.contains("the first call that stores something creates"), "{told:?}");
    assert!(told.stdout.contains("tiro-project-id"), "{told:?}");
    assert_eq!(snapshot(&home.path()), before);

    // Existing memory is also read after the repository has moved. The move itself is recorded only by a call.
    home.json(&repo.path, &["import", "git"]);
    std::fs::rename(&repo.path, home.path().join("moved")).unwrap();
    let moved = home.repo_at(home.path().join("moved"));
    let told = home.run(&moved.path, &["doctor"]);
    assert!(
        told.is_ok && told.stdout.contains("sound") && !told.stdout.contains("first call that stores"),
        "{told:?}"
    );
    let looked = home.run(&moved.path, &["init", "--dry-run"]);
    assert!(looked.is_ok && looked.stderr.contains("Nothing of `repo` is left to import"), "{looked:?}");
    let places = home.json(&home.dir("home"), &["projects", "list"]).to_string();
    assert!(places.contains("repo/.git") && !places.contains("moved/.git"), "{places}");
}

#[cfg(unix)]
#[test]
fn init_removes_its_hook_from_a_moved_repository() {
    let home = Home::new();
    let repo = home.repo("repo");
    repo.commit("a.txt", "a\n", "Begin");
    let hook = put(repo.path.join(".git/hooks/post-commit"), "#!/bin/sh");
    set_mode(&hook, 0o755);
    assert!(home.run(&repo.path, &["init", "--yes"]).is_ok);
    let moved = home.path().join("moved");
    std::fs::rename(&repo.path, &moved).unwrap();

    let elsewhere = home.dir("elsewhere");
    let removed = home.run(&elsewhere, &["init", "--remove"]);
    assert!(removed.is_ok && removed.stdout.contains("its repository is gone"), "{removed:?}");
    let told = home.run(&elsewhere, &["doctor"]);
    assert!(told.is_ok && told.stdout.contains("its repository is gone"), "{told:?}");

    let removed = home.run(&moved, &["init", "--remove"]);
    assert!(removed.is_ok && removed.stdout.contains("Restored 1 file,"), "{removed:?}");
    assert_eq!(std::fs::read_to_string(moved.join(".git/hooks/post-commit")).unwrap(), "#!/bin/sh");
    assert!(!home.data().join("init").exists());
}

#[cfg(unix)]
#[test]
fn a_hook_that_is_not_a_shell_script_is_kept_and_commits_are_still_found() {
    let home = Home::new();
    let repo = home.repo("repo");
    repo.commit("a.txt", "a\n", "Begin the gearbox");
    let hook = put(
        repo.path.join(".git/hooks/post-commit"),
        "#!/usr/bin/env python3\nimport os\nopen(os.path.abspath(__file__) + '.ran', 'w').write('x')\n",
    );
    set_mode(&hook, 0o755);
    let bytes = std::fs::read(&hook).unwrap();
    let ran = home.run(&repo.path, &["init", "--yes"]);
    assert!(
        ran.is_ok && ran.stdout.contains("Not changed") && ran.stdout.contains("not a plain shell"),
        "{ran:?}"
    );
    assert!(home.run(&repo.path, &["doctor"]).is_ok, "it is no fault");
    repo.commit("b.txt", "b\n", "Grease the gearbox");
    assert!(hook.with_file_name("post-commit.ran").exists());
    assert_eq!(home.serve(&repo.path).search("gearbox").len(), 2);
    assert!(home.run(&repo.path, &["init", "--remove"]).is_ok);
    assert_eq!(std::fs::read(&hook).unwrap(), bytes);
}
