//! A repository from elsewhere shows no file of this machine, takes over no other project's memory, and delays
//! nothing.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::harness::{Home, Repo};

/// The first line of a private file.
const SECRET: &str = "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtz";

/// A text that only the victim's memory contains.
const MEMORY: &str = "the walrus sleeps behind the third pier";

/// Arbitrary: far longer than any call takes.
const SOON: Duration = Duration::from_secs(120);

/// A home that has a victim's project, a private file, and a hostile repository.
struct Attack {
    home: Home,
    victim: Repo,
    secret: PathBuf,
    hostile: PathBuf,
}

impl Attack {
    fn new() -> Attack {
        let home = Home::new();
        let victim = home.repo("victim");
        victim.commit("a.txt", "a\n", "The walrus is fed at noon");
        let mut server = home.serve(&victim.path);
        server.save("s", "1", MEMORY);
        server.end();
        let secret = home.path().join("secret");
        fs::write(&secret, format!("{SECRET}\n")).unwrap();
        let hostile = home.repo("hostile");
        hostile.commit("b.txt", "b\n", "Look at me");
        let hostile = hostile.path;
        Attack { home, victim, secret, hostile }
    }

    /// Replaces a file of the hostile repository by a link.
    fn link(&self, name: &str, target: &Path) {
        let path = self.hostile.join(name);
        let _ = fs::remove_file(&path);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(target, path).unwrap();
    }

    /// Replaces `.git` of the hostile repository by a file.
    fn git_file(&self, text: &str) {
        fs::remove_dir_all(self.hostile.join(".git")).unwrap();
        fs::write(self.hostile.join(".git"), text).unwrap();
    }
}

type Form = (&'static str, fn(&Attack));

/// The ways to make the repository hostile.
const FORMS: &[Form] = &[
    ("commondir is a link to a file", |it| it.link(".git/commondir", &it.secret)),
    ("HEAD is a link to a file", |it| it.link(".git/HEAD", &it.secret)),
    ("config is a link to a file", |it| it.link(".git/config", &it.secret)),
    ("packed-refs is a link to a file", |it| it.link(".git/packed-refs", &it.secret)),
    ("shallow is a link to a file", |it| it.link(".git/shallow", &it.secret)),
    ("the branch is a link to a file", |it| it.link(".git/refs/heads/main", &it.secret)),
    ("the branches are a link to the victim's", |it| it.link(".git/refs", &it.victim.path.join(".git/refs"))),
    ("the objects are a link to the victim's", |it| {
        it.link(".git/objects", &it.victim.path.join(".git/objects"))
    }),
    ("the reflog is a link to a file", |it| it.link(".git/logs/HEAD", &it.secret)),
    ("alternates is a link to a file", |it| it.link(".git/objects/info/alternates", &it.secret)),
    ("the id is a link to the victim's", |it| {
        it.link(".git/tiro-project-id", &it.victim.path.join(".git/tiro-project-id"));
    }),
    (".git is a link to the victim's", |it| it.link(".git", &it.victim.path.join(".git"))),
    (".git is a link to a file", |it| it.link(".git", &it.secret)),
    (".git names the victim's", |it| it.git_file(&format!("gitdir: {}/.git\n", it.victim.path.display()))),
    ("commondir names the victim's", |it| {
        fs::write(it.hostile.join(".git/commondir"), "../../victim/.git\n").unwrap();
    }),
    ("a worktree that the victim does not list", |it| {
        it.git_file("gitdir: own/worktrees/x\n");
        let own = it.hostile.join("own/worktrees/x");
        fs::create_dir_all(&own).unwrap();
        fs::write(own.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        fs::write(own.join("commondir"), format!("{}/.git\n", it.victim.path.display())).unwrap();
        fs::write(own.join("gitdir"), format!("{}/.git\n", it.hostile.display())).unwrap();
    }),
    ("it looks bare, and commondir is a link to a file", |it| {
        fs::rename(it.hostile.join(".git"), it.home.path().join("away")).unwrap();
        for folder in ["objects", "refs"] {
            fs::create_dir_all(it.hostile.join(folder)).unwrap();
        }
        fs::write(it.hostile.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        it.link("commondir", &it.secret);
    }),
    ("objects of the victim's by alternates", |it| {
        let objects = it.victim.path.join(".git/objects");
        fs::write(it.hostile.join(".git/objects/info/alternates"), format!("{}\n", objects.display()))
            .unwrap();
        fs::write(it.hostile.join(".git/refs/heads/main"), it.victim.head()).unwrap();
    }),
    ("the configuration includes a file and names another work tree", |it| {
        let more = format!(
            "[include]\n\tpath = {}\n[core]\n\tworktree = {}\n\thooksPath = {}\n",
            it.secret.display(),
            it.victim.path.display(),
            it.secret.display()
        );
        let config = it.hostile.join(".git/config");
        fs::write(&config, fs::read_to_string(&config).unwrap() + &more).unwrap();
    }),
    ("HEAD names a file", |it| {
        fs::write(it.hostile.join(".git/HEAD"), format!("ref: {}\n", it.secret.display())).unwrap();
    }),
    ("HEAD has gigabytes", |it| {
        fs::File::create(it.hostile.join(".git/HEAD")).unwrap().set_len(3 << 30).unwrap()
    }),
    ("config has gigabytes", |it| {
        fs::File::create(it.hostile.join(".git/config")).unwrap().set_len(3 << 30).unwrap()
    }),
    ("packed-refs has gigabytes", |it| {
        fs::File::create(it.hostile.join(".git/packed-refs")).unwrap().set_len(3 << 30).unwrap();
    }),
];

const COMMANDS: &[&[&str]] = &[
    &["search", "walrus pier"],
    &["import", "git"],
    &["import", "git", "--dry-run"],
    &["doctor"],
    &["stats"],
    &["sessions"],
    &["context", "walrus"],
    &["export"],
    &["init", "--dry-run"],
];

#[test]
fn no_command_or_tool_shows_a_file_or_another_projects_memory() {
    for (name, make) in FORMS {
        let attack = Attack::new();
        make(&attack);
        let mut told = String::new();
        let began = Instant::now();
        for command in COMMANDS {
            let ran = attack.home.run(&attack.hostile, command);
            told += &format!("{command:?}: {}{}\n", ran.stdout, ran.stderr);
        }
        let mut server = attack.home.serve(&attack.hostile);
        for (tool, arguments) in [
            ("search_project_memory", json!({"query": "walrus pier"})),
            (
                "save_messages",
                json!({"session_id": "evil", "messages": [{"id": "1", "role": "user", "text": "planted words"}]}),
            ),
            ("list_sessions", json!({})),
            ("retrieve_context", json!({"query": "walrus"})),
            ("get_context_summary", json!({"query": "walrus"})),
            ("expand_detail", json!({"id": "m1"})),
        ] {
            told += &format!("{tool}: {}\n", server.call(tool, arguments));
        }
        told += &server.end();
        let payload = json!({"session_id": "s", "cwd": attack.hostile, "hook_event_name": "SessionStart"});
        for (client, input) in [("claude-code", payload.to_string()), ("git-post-commit", String::new())] {
            let ran = attack.home.feed(&attack.hostile, &["hook", client], input.as_bytes());
            assert!(ran.is_ok, "{name}: {ran:?}");
            told += &format!("hook {client}: {}{}\n", ran.stdout, ran.stderr);
        }
        assert!(began.elapsed() < 4 * SOON, "{name}: {:?}", began.elapsed());
        for words in [SECRET, "walrus sleeps", "walrus is fed"] {
            assert!(!told.contains(words), "{name}: {words}: {told}");
        }
        assert_eq!(attack.home.files_with(SECRET), Vec::<PathBuf>::new(), "{name}");
        let mut server = attack.home.serve(&attack.victim.path);
        let of_victim = server.call("search_project_memory", json!({"query": "planted words"})).to_string();
        assert!(!of_victim.contains("planted words"), "{name}: {of_victim}");
        assert!(server.search("walrus pier").len() == 1, "{name}: the victim has its memory");
    }
}

#[test]
fn the_hint_for_a_refused_repository_works() {
    let attack = Attack::new();
    attack.git_file(&format!("gitdir: {}/.git\n", attack.victim.path.display()));
    let ran = attack.home.run(&attack.hostile, &["search", "walrus"]);
    assert!(!ran.is_ok && ran.stderr.contains("does not point back"), "{ran:?}");
    assert!(ran.stderr.contains("`git.trusted`"), "{ran:?}");
    let trusted = format!("git.trusted={}", attack.hostile.display());
    let ran = attack.home.run(&attack.hostile, &["search", "walrus pier", "--set", &trusted]);
    assert!(ran.is_ok && ran.stdout.contains("walrus sleeps"), "{ran:?}");
}

/// The user does not choose the directory in which a client starts the server.
#[test]
fn a_bare_repository_is_a_project_if_the_user_names_it() {
    let home = Home::new();
    let repo = home.repo("origin");
    repo.commit("a.txt", "a\n", "The walrus is fed at noon");
    repo.git(&["clone", "-q", "--bare", ".", "../bare.git"]);
    let bare = home.path().join("bare.git");
    let ran = home.run(&bare, &["import", "git"]);
    assert!(!ran.is_ok && ran.stderr.contains("--project"), "{ran:?}");
    let mut command = home.tiro(&bare, &["import", "git"]);
    command.env("CLAUDE_PROJECT_DIR", &bare);
    assert!(!command.output().unwrap().status.success());
    let named = bare.to_str().unwrap();
    assert_eq!(home.json(&home.path(), &["import", "git", "--project", named])["imported"], 1);
    let mut command = home.tiro(&home.path(), &["search", "walrus"]);
    command.env("TIRO_PROJECT", &bare);
    assert!(String::from_utf8_lossy(&command.output().unwrap().stdout).contains("fed at noon"));
}

/// Stores a tree with ten entries that are all `id`.
fn ten_times(repo: &Repo, kind: &str, id: &str) -> String {
    let list = repo.path.join("list");
    let lines: String = (0..10).map(|n| format!("{kind} {id}\t{n}\n")).collect();
    fs::write(&list, lines).unwrap();
    let output = std::process::Command::new("git")
        .arg("mktree")
        .current_dir(&repo.path)
        .stdin(fs::File::open(&list).unwrap())
        .output()
        .unwrap();
    fs::remove_file(list).unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Commits ten trees that list ten billion files in all, and reverts that commit.
fn bomb(repo: &Repo) {
    let blob = repo.git(&["rev-parse", "HEAD:a.txt"]);
    let before = repo.git(&["rev-parse", "HEAD^{tree}"]);
    let mut tree = ten_times(repo, "100644 blob", &blob);
    for _ in 0..9 {
        tree = ten_times(repo, "040000 tree", &tree);
    }
    for tree in [tree, before] {
        let commit = repo.git(&["commit-tree", &tree, "-p", "HEAD", "-m", "Ten billion files"]);
        repo.git(&["update-ref", "HEAD", &commit]);
    }
}

#[test]
fn a_tree_of_ten_billion_files_delays_nothing() {
    let home = Home::new();
    let repo = home.repo("project");
    repo.commit("a.txt", "a\n", "The walrus is fed at noon");
    home.json(&repo.path, &["import", "git"]);
    let mut server = home.serve(&repo.path);
    assert_eq!(server.search("walrus").len(), 1);
    bomb(&repo);
    let began = Instant::now();
    assert_eq!(server.search("walrus").len(), 1);
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    server.end();
    let repo = home.repo("other");
    repo.commit("a.txt", "a\n", "The walrus is fed at noon");
    bomb(&repo);
    let began = Instant::now();
    let imported = home.json(&repo.path, &["import", "git"]);
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    assert_eq!((&imported["imported"], &imported["unreadable"]), (&json!(3), &json!([])));
    assert!(imported["flags"].to_string().contains("files_cut"), "{imported}");
}

/// A call that would have to read a whole history takes only a moment.
#[test]
fn a_slow_history_is_reported_and_not_waited_for() {
    let home = Home::new();
    let repo = home.repo("project");
    repo.commit("a.txt", "a\n", "The walrus is fed at noon");
    home.json(&repo.path, &["import", "git"]);
    let head = repo.head();
    // `git fast-import` makes the commits faster than one command each.
    let stream: String = (0..120_000)
        .map(|n| {
            let from = if n == 0 { format!("from {head}\n") } else { String::new() };
            format!(
                "commit refs/heads/main\ncommitter A <a@b> {} +0000\ndata 2\nx\n{from}\n",
                1_700_000_000 + n
            )
        })
        .collect();
    let file = home.path().join("stream");
    fs::write(&file, stream).unwrap();
    let mut command = std::process::Command::new("git");
    command.args(["fast-import", "--quiet", "--force"]).current_dir(&repo.path);
    assert!(command.stdin(fs::File::open(&file).unwrap()).status().unwrap().success());
    let mut server = home.serve(&repo.path);
    let began = Instant::now();
    let (_, data) = server.both("search_project_memory", json!({"query": "walrus"}));
    assert!(began.elapsed() < SOON / 2, "{:?}", began.elapsed());
    assert_eq!(data["hits"].as_array().unwrap().len(), 1);
    assert!(!data["notices"].as_array().unwrap().is_empty(), "{data}");
}

#[test]
fn a_copy_gets_a_new_id_while_any_place_of_the_original_exists() {
    let attack = Attack::new();
    // The project was in another directory before, which no longer exists.
    let moved = attack.home.path().join("moved");
    fs::rename(&attack.victim.path, &moved).unwrap();
    assert!(attack.home.run(&moved, &["search", "walrus pier"]).stdout.contains("walrus sleeps"));
    fs::copy(moved.join(".git/tiro-project-id"), attack.hostile.join(".git/tiro-project-id")).unwrap();
    let ran = attack.home.run(&attack.hostile, &["search", "walrus pier"]);
    assert!(ran.is_ok && !ran.stdout.contains("walrus sleeps"), "{ran:?}");
}
