//! Files of all kinds, hostile ones too, on a real file system.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::gather::Cut;
use super::*;

mod model;

const LIMITS: Limits = Limits {
    file_bytes: 1_000_000,
    document_bytes: 2_000_000,
    entries: 1_000,
    depth: 8,
    until: None,
    without_ignored: true,
};

/// Finds files in a call that does not end.
fn gather(roots: &Roots, paths: &[String], limits: &Limits) -> Gathered {
    super::gather(roots, paths, limits, &Budget::default())
}

/// A project with files, and a folder outside of it.
struct Tree {
    dir: tempfile::TempDir,
}

impl Tree {
    fn new(files: &[(&str, &str)]) -> Tree {
        let tree = Tree { dir: tempfile::tempdir().unwrap() };
        fs::create_dir(tree.project()).unwrap();
        fs::create_dir(tree.outside()).unwrap();
        fs::write(tree.outside().join("f"), "outside").unwrap();
        for (path, content) in files {
            tree.write(path, content);
        }
        tree
    }

    fn project(&self) -> PathBuf {
        self.dir.path().join("project")
    }

    fn outside(&self) -> PathBuf {
        self.dir.path().join("outside")
    }

    fn at(&self, path: &str) -> PathBuf {
        self.project().join(path)
    }

    fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        fs::create_dir_all(self.at(path).parent().unwrap()).unwrap();
        fs::write(self.at(path), content).unwrap();
    }

    fn link(&self, target: impl AsRef<Path>, path: &str) {
        symlink(target, self.at(path)).unwrap();
    }

    fn pipe(&self, path: &str) {
        use rustix::fs::{CWD, FileType, mknodat};
        mknodat(CWD, self.at(path), FileType::Fifo, 0o600.into(), 0).unwrap();
    }

    fn roots(&self) -> Roots {
        Roots::new(&self.project(), &[], &[]).unwrap()
    }

    fn gather(&self, paths: &[&str]) -> Gathered {
        gather(&self.roots(), &strings(paths), &LIMITS)
    }

    /// Returns the result of reading the only file at `path`.
    fn read(&self, path: &str) -> Result<Read, Refusal> {
        let gathered = self.gather(&[path]);
        match gathered.refused.first() {
            Some(refused) => Err(refused.why),
            None => read(&self.roots(), &gathered.files[0]),
        }
    }

    fn why(&self, path: &str) -> Option<Refusal> {
        self.read(path).err()
    }
}

/// Ends the thread that disturbs a test, also if the test fails.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn strings(paths: &[&str]) -> Vec<String> {
    paths.iter().map(|path| (*path).to_owned()).collect()
}

fn read(roots: &Roots, found: &FoundFile) -> Result<Read, Refusal> {
    let extractor = Extractor::new("/nothing".into());
    let budget = Budget::default();
    roots.read(found, &Reading { limits: &LIMITS, now_ns: 0, extractor: &extractor, budget: &budget })
}

/// Shows what was gathered, a line for each file and reason.
fn shown(gathered: &Gathered) -> String {
    let mut lines: Vec<String> = gathered.files.iter().map(|found| found.path.clone()).collect();
    lines.extend(gathered.refused.iter().map(|it| format!("`{}` {}", it.path, it.why)));
    lines.extend(gathered.skipped.iter().map(ToString::to_string));
    lines.extend(gathered.cut.map(|cut| format!("cut: {cut}")));
    lines.join("\n")
}

/// Without a `.gitignore`, files that tools had installed or built used to be sent, and so were files that the user's
/// own list ignores.
#[test]
fn a_walk_ends_with_its_call() {
    let tree = Tree::new(&[("a", "x"), ("d/b", "x")]);
    let budget = Budget::default();
    drop(budget.ends_with_call());
    let gathered = super::gather(&tree.roots(), &strings(&["."]), &LIMITS, &budget);
    assert_eq!((gathered.files, gathered.cut), (Vec::new(), Some(Cut::Deadline)));
    let found = tree.gather(&["a"]).files.remove(0);
    let extractor = Extractor::new("/nothing".into());
    let reading = Reading { limits: &LIMITS, now_ns: 0, extractor: &extractor, budget: &budget };
    assert_eq!(tree.roots().read(&found, &reading), Err(Refusal::Budget(Exhausted::Ended)));
}

#[test]
fn what_the_user_lists_for_git_and_what_tools_build_is_left_out() {
    let tree = Tree::new(&[
        ("src/main.rs", "m"),
        ("src/node_modules/a/index.js", "a"),
        ("dist/main.js", "d"),
        ("target/debug/out.rs", "o"),
        ("my-notes.md", "mine"),
        ("notes/my-notes.md", "mine"),
        ("build.rs", "b"),
    ]);
    fs::write(tree.outside().join("ignore"), "my-notes.md\n").unwrap();
    let roots = || tree.roots().with_excludes(Some(tree.outside().join("ignore")));
    let walked = || shown(&gather(&roots(), &strings(&["."]), &LIMITS));
    insta::assert_snapshot!(walked(), @r"
    build.rs
    src/main.rs
    3 folders, each of which is left out, because its name says that tools installed or built it (`dist/`, `src/node_modules/`, `target/`)
    2 files, each of which is ignored by git's list for all repositories (`my-notes.md`, `notes/my-notes.md`)
    ");

    // A project that lists what to ignore may have sources in a folder of such a name, or take one back.
    fs::write(tree.at(".gitignore"), "/target/\n!node_modules/\n!/my-notes.md\n").unwrap();
    insta::assert_snapshot!(walked(), @r"
    .gitignore
    build.rs
    dist/main.js
    my-notes.md
    src/main.rs
    src/node_modules/a/index.js
    1 folder that is ignored by .gitignore (`target/`)
    1 file that is ignored by git's list for all repositories (`notes/my-notes.md`)
    ");

    // A list that is missing or no file changes nothing.
    for excludes in [None, Some(tree.outside().join("none")), Some(tree.outside())] {
        let found = gather(&tree.roots().with_excludes(excludes), &strings(&["."]), &LIMITS);
        assert!(found.files.iter().any(|found| found.path == "notes/my-notes.md"));
    }
}

#[test]
fn a_folder_is_walked_in_the_order_of_paths_and_every_skip_has_a_reason() {
    let tree = Tree::new(&[
        ("README.md", "# Project"),
        (".gitignore", "/target/\n*.log\n# comment\n\n!keep.log\n[z-a\n"),
        (".github/ci.yml", "on: push"),
        (".git/HEAD", "ref: refs/heads/main"),
        (".git/info/exclude", "private.txt\n"),
        ("a/x.rs", "x"),
        ("a-b.rs", "between"),
        ("a.rs", "a"),
        ("debug.log", "log"),
        ("keep.log", "log"),
        ("private.txt", "mine"),
        ("target/debug/out.rs", "out"),
        ("sub/.gitignore", "keep.log\n/generated.rs\n"),
        ("sub/generated.rs", "g"),
        ("sub/deep/generated.rs", "g"),
        ("sub/keep.log", "log"),
        ("sub/.tiroignore", "data.csv"),
        ("sub/data.csv", "1,2"),
        ("sub/.ignore", "!generated.rs\n"),
        ("sub/.git", "gitdir: ../.git/modules/sub"),
        (".env", "KEY=1"),
        (".env.example", "KEY="),
        (".ssh/config", "Host x"),
        ("logo.png", "\u{89}PNG"),
        ("big.txt", &"x".repeat(1_000_001)),
        ("page.html", "<p>source</p>"),
        ("book.ipynb", "{}"),
        ("paper.pdf", "%PDF-1.4"),
    ]);
    tree.write("data", b"\0\x01\x02");
    tree.pipe("pipe");
    let _listener = UnixListener::bind(tree.at("socket")).unwrap();
    let gathered = tree.gather(&["."]);
    insta::assert_snapshot!(shown(&gathered), @r"
    .env.example
    .github/ci.yml
    .gitignore
    README.md
    a-b.rs
    a.rs
    a/x.rs
    book.ipynb
    keep.log
    page.html
    paper.pdf
    sub/.gitignore
    sub/.ignore
    sub/.tiroignore
    sub/deep/generated.rs
    sub/generated.rs
    2 files and 1 folder, each of which is ignored by .gitignore (`debug.log`, `sub/keep.log`, `target/`)
    1 file and 1 folder, each of which is not read, because its name says that it holds secrets (`.env`, `.ssh/`)
    2 files, each of which is a pipe, a device or a socket (`pipe`, `socket`)
    2 files, each of which is not text (`data`, `logo.png`)
    1 file that is larger than 1 MB (`big.txt`)
    1 file that is ignored by .git/info/exclude (`private.txt`)
    1 file that is ignored by .tiroignore (`sub/data.csv`)
    ");
    let forms = gathered.files.iter().filter(|found| found.form != Form::Text);
    let forms: Vec<_> = forms.map(|found| (found.path.as_str(), found.form)).collect();
    assert_eq!(forms, [("paper.pdf", Form::Document(DocumentKind::Pdf))]);
    let named =
        tree.gather(&["target/debug", "debug.log", "page.html", "debug.log", ".env", "sub/../a.rs", "none"]);
    insta::assert_snapshot!(shown(&named), @r"
    target/debug/out.rs
    debug.log
    page.html
    a.rs
    `.env` is not read, because its name says that it holds secrets
    `none` does not exist
    ");
    assert_eq!(named.files[2].form, Form::Document(DocumentKind::Html));
}

#[test]
fn a_path_that_is_not_allowed_is_refused_with_its_reason() {
    let tree =
        Tree::new(&[("src/a.rs", "a"), (".env", "x"), (".git/config", "x"), ("credentials/mod.rs", "m")]);
    tree.pipe("pipe");
    let _listener = UnixListener::bind(tree.at("socket")).unwrap();
    tree.link("/dev/zero", "zero");
    tree.link("../outside/f", "out");
    tree.link(tree.outside(), "folder");
    tree.link("loop", "loop");
    tree.link("nothing", "dangling");
    tree.link(".env", "innocent.txt");
    tree.link("src/a.rs", "server.pem");
    tree.write("large", "x".repeat(10_000_000));
    File::create(tree.at("huge")).unwrap().set_len(1 << 30).unwrap();
    tree.write("latin", b"caf\xe9");
    tree.write("unclear", [0xff; 12]);
    for (path, why) in [
        ("none", Refusal::Missing),
        ("src/a.rs/x", Refusal::Missing),
        ("dangling", Refusal::Missing),
        ("", Refusal::Name),
        ("a\0b", Refusal::Name),
        ("src/a\nb", Refusal::Name),
        ("~", Refusal::Tilde),
        ("~/.ssh/id_rsa", Refusal::Tilde),
        ("..", Refusal::Outside),
        ("../outside/f", Refusal::Outside),
        ("../outside/none", Refusal::Outside),
        ("src/../../outside/f", Refusal::Outside),
        ("/etc/passwd", Refusal::Outside),
        ("/etc/nothing/here", Refusal::Outside),
        ("/dev/zero", Refusal::Outside),
        ("/proc/self/environ", Refusal::Outside),
        ("zero", Refusal::Outside),
        ("out", Refusal::Outside),
        ("folder/f", Refusal::Outside),
        ("loop", Refusal::Loop),
        (".env", Refusal::Secret),
        ("src/../.env", Refusal::Secret),
        ("innocent.txt", Refusal::Secret),
        ("server.pem", Refusal::Secret),
        ("src/ghp_9sT2kLmQ4vXzR7bNwEyU1cJdHfGaPo3i5V8M.rs", Refusal::SecretName),
        ("ghp_9sT2kLmQ4vXzR7bNwEyU1cJdHfGaPo3i5V8M/main.rs", Refusal::SecretName),
        (".git", Refusal::Git),
        (".git/config", Refusal::Git),
        ("pipe", Refusal::Special),
        ("socket", Refusal::Special),
        ("large", Refusal::TooLarge(1_000_000)),
        ("huge", Refusal::TooLarge(1_000_000)),
        ("unclear", Refusal::Encoding),
    ] {
        assert_eq!(tree.why(path), Some(why), "{path:?}");
    }
    assert_eq!(tree.read("credentials").unwrap().text, "m");
    assert_eq!(tree.read("latin").unwrap().text, "café");
    assert_eq!(tree.read(tree.at("src/a.rs").to_str().unwrap()).unwrap().text, "a");
    assert_eq!(tree.roots().image("src"), Err(Refusal::Folder));
    assert_eq!(tree.roots().image("pipe"), Err(Refusal::Special));
    assert_eq!(tree.roots().image("src/a.rs"), Err(Refusal::NoImage));
    assert_eq!(tree.roots().image("out"), Err(Refusal::Outside));
}

/// Runs the test `name` of this program as a user without rights: permissions bind such a user, unlike root.
#[expect(clippy::disallowed_methods, reason = "it runs this program again")]
fn as_nobody(name: &str) {
    use std::os::unix::process::CommandExt;
    const NOBODY: u32 = 65534;
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o777)).unwrap();
    let program = folder.path().join("tests");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let mut command = std::process::Command::new(program);
    command.args([name, "--exact"]).env("TMPDIR", folder.path()).current_dir(folder.path());
    let ran = command.uid(NOBODY).gid(NOBODY).output().unwrap();
    let told = String::from_utf8_lossy(&ran.stdout);
    assert!(
        ran.status.success() && told.contains("1 passed"),
        "{told}{}",
        String::from_utf8_lossy(&ran.stderr)
    );
}

#[test]
fn a_file_without_permission_is_refused() {
    if rustix::process::geteuid().is_root() {
        return as_nobody("tests::a_file_without_permission_is_refused");
    }
    let tree = Tree::new(&[("closed", "x"), ("folder/f", "x")]);
    fs::set_permissions(tree.at("closed"), PermissionsExt::from_mode(0o000)).unwrap();
    fs::set_permissions(tree.at("folder"), PermissionsExt::from_mode(0o000)).unwrap();
    let denied = Refusal::Unreadable(std::io::ErrorKind::PermissionDenied);
    assert_eq!(tree.why("closed"), Some(denied));
    let skipped = tree.gather(&["."]).skipped;
    fs::set_permissions(tree.at("folder"), PermissionsExt::from_mode(0o700)).unwrap();
    assert_eq!((skipped[0].why, skipped[0].files, skipped[0].folders), (denied, 1, 1));
}

#[test]
fn links_within_the_root_are_followed_and_a_file_comes_once() {
    let tree = Tree::new(&[
        ("README.md", "readme"),
        ("docs/guide.md", "guide"),
        ("build/out.txt", "out"),
        (".gitignore", "build/\n"),
    ]);
    tree.link("../README.md", "docs/readme");
    tree.link(tree.at("docs"), "manual");
    tree.link("../build/out.txt", "docs/built");
    tree.link("..", "docs/up");
    tree.link("/etc/passwd", "docs/users");
    insta::assert_snapshot!(shown(&tree.gather(&["docs", ".", "manual/guide.md", "manual"])), @r"
    docs/guide.md
    README.md
    .gitignore
    2 files, each of which is a link to a folder, which is not followed within a folder (`docs/up`, `manual`)
    1 file and 1 folder, each of which is ignored by .gitignore (`docs/built`, `build/`)
    1 file that leads out of the project (`docs/users`)
    ");
    assert_eq!(tree.read("manual/readme").unwrap().text, "readme");
    // A named file is taken even if it is ignored, also through a link.
    assert_eq!(tree.read("docs/built").unwrap().text, "out");
}

#[test]
fn other_roots_are_read_only_if_they_are_allowed() {
    let tree = Tree::new(&[("a", "a"), ("data/db", "mine")]);
    let missing = tree.dir.path().join("missing");
    let roots = Roots::new(&tree.project(), &[tree.outside(), missing.clone()], &[tree.at("data")]).unwrap();
    assert_eq!(roots.unusable, [(missing, Refusal::Missing)]);
    let outside = tree.outside().join("f").to_str().unwrap().to_owned();
    let gathered = gather(&roots, &[outside.clone(), "../outside".to_owned()], &LIMITS);
    assert_eq!(gathered.refused, []);
    let real = fs::canonicalize(&outside).unwrap();
    assert_eq!(
        gathered.files.iter().map(|found| found.path.as_str()).collect::<Vec<_>>(),
        [real.to_str().unwrap()]
    );
    assert_eq!(read(&roots, &gathered.files[0]).unwrap().text, "outside");
    assert_eq!(tree.why(&outside), Some(Refusal::Outside));
    let own = gather(&roots, &strings(&["data/db", "data", "."]), &LIMITS);
    let why: Vec<Refusal> = own.refused.iter().map(|refused| refused.why).collect();
    assert_eq!(why, [Refusal::Own, Refusal::Own]);
    assert_eq!(shown(&own).lines().last(), Some("1 folder that is part of Tiro's own data (`data/`)"));
    assert!(Roots::new(&tree.at("none"), &[], &[]).is_err());
    assert!(Roots::new(&tree.at("a"), &[], &[]).is_err());
}

#[test]
fn rules_that_cannot_be_read_are_reported_and_block_nothing() {
    let tree = Tree::new(&[("a.log", "a"), ("sub/b.log", "b"), ("third/c.log", "c")]);
    fs::write(tree.outside().join("rules"), "*.log").unwrap();
    tree.pipe(".gitignore");
    tree.link("../../outside/rules", "sub/.gitignore");
    tree.write("third/.ignore", "#".repeat(2 << 20));
    let gathered = tree.gather(&["."]);
    let last = "3 files, each of which cannot be read, so its rules do not apply (`.gitignore`, `sub/.gitignore`, `third/.ignore`)";
    assert!(shown(&gathered).contains(last), "{}", shown(&gathered));
    assert!(shown(&gathered).starts_with("a.log\nsub/b.log\nthird/c.log\n"), "{}", shown(&gathered));
}

#[test]
fn odd_names_are_skipped_and_shown_escaped() {
    let tree = Tree::new(&[("plain", "x"), ("two\nlines", "x"), ("bell\u{7}/f", "x"), ("`tick", "x")]);
    let invalid = std::ffi::OsString::from_vec(b"caf\xe9".to_vec());
    fs::write(tree.project().join(invalid), "x").unwrap();
    insta::assert_snapshot!(shown(&tree.gather(&["."])), @r"
    `tick
    plain
    2 files and 1 folder, each of which has a name with control characters, or one that is not valid UTF-8 (`bell\u{7}/`, `caf�`, `two lines`)
    ");
}

#[test]
fn a_walk_is_bounded() {
    let tree = Tree::new(&[("a/first", "x"), ("c/last", "x")]);
    fs::create_dir(tree.at("b")).unwrap();
    for number in 0..3_000 {
        File::create(tree.at(&format!("b/{number}"))).unwrap();
    }
    let roots = tree.roots();
    let paths = strings(&[".", "c/last", "b/17"]);
    let with = |limits: Limits| gather(&roots, &paths, &limits);
    let all = with(Limits { entries: 3_005, ..LIMITS });
    assert_eq!((all.files.len(), all.cut), (3_002, None));
    let cut = with(Limits { entries: 3_003, ..LIMITS });
    assert_eq!(cut.cut, Some(Cut::Entries(3_003)));
    // Named files are taken even then, but no file of the folder that is too large.
    let found: Vec<&str> = cut.files.iter().map(|found| found.path.as_str()).collect();
    assert_eq!(found, ["a/first", "c/last", "b/17"]);
    let late = with(Limits { entries: 4_000, until: Some(Instant::now()), ..LIMITS });
    assert_eq!((late.files.len(), late.cut), (2, Some(Cut::Deadline)));
    let deep = ["d"; 40].join("/") + "/f";
    tree.write(&deep, "x");
    let named = gather(&roots, &[format!("{}/f", ["d"; 40].join("/")), "d".to_owned()], &LIMITS);
    assert_eq!(named.files.len(), 1);
    assert_eq!(
        named.skipped[0].to_string(),
        format!("1 folder that is more than 8 folders beneath the named folder (`{}/`)", ["d"; 10].join("/"))
    );
}

#[test]
fn a_file_that_is_replaced_after_it_was_found_is_refused() {
    let tree = Tree::new(&[("f", "inside"), ("folder/f", "inside")]);
    let roots = tree.roots();
    let files = tree.gather(&["f", "folder/f"]).files;
    let why = |found: &FoundFile| read(&roots, found).err();
    assert_eq!((why(&files[0]), why(&files[1])), (None, None));
    fs::remove_file(tree.at("f")).unwrap();
    assert_eq!(why(&files[0]), Some(Refusal::Missing));
    tree.link("../outside/f", "f");
    assert_eq!(why(&files[0]), Some(Refusal::Replaced));
    fs::remove_file(tree.at("f")).unwrap();
    tree.pipe("f");
    assert_eq!(why(&files[0]), Some(Refusal::Special));
    fs::remove_file(tree.at("f")).unwrap();
    fs::create_dir(tree.at("f")).unwrap();
    assert_eq!(why(&files[0]), Some(Refusal::Folder));
    fs::remove_dir(tree.at("f")).unwrap();
    tree.write("f", "x".repeat(2_000_000));
    assert_eq!(why(&files[0]), Some(Refusal::TooLarge(1_000_000)));
    fs::rename(tree.at("folder"), tree.at("other")).unwrap();
    tree.link("../outside", "folder");
    assert_eq!(why(&files[1]), Some(Refusal::Replaced));
}

/// A folder is replaced by a link out of the project and back, again and again, while files are found and read.
#[test]
fn nothing_outside_is_ever_read() {
    let tree = Tree::new(&[("d/f", "inside"), ("d/e/f", "inside")]);
    fs::create_dir(tree.outside().join("e")).unwrap();
    fs::write(tree.outside().join("e/f"), "outside").unwrap();
    fs::write(tree.outside().join(".gitignore"), "*").unwrap();
    tree.link("../outside", "l");
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let swap = |from: &str, to: &str| fs::rename(tree.at(from), tree.at(to)).unwrap();
            while !is_over.load(Ordering::Relaxed) {
                swap("d", "kept");
                swap("l", "d");
                swap("d", "l");
                swap("kept", "d");
            }
        });
        let _over = Over(&is_over);
        let roots = tree.roots();
        let end = Instant::now() + Duration::from_millis(700);
        let (mut inside, mut refused) = (0, 0);
        while Instant::now() < end {
            let gathered = gather(&roots, &strings(&[".", "d/e/f", "d/e", "d/f"]), &LIMITS);
            assert!(gathered.skipped.iter().all(|it| !matches!(it.why, Refusal::Ignored(_))), "{gathered:?}");
            for found in &gathered.files {
                match read(&roots, found) {
                    Ok(read) => {
                        assert_eq!(read.text, "inside", "{}", found.path);
                        inside += 1;
                    }
                    Err(_) => refused += 1,
                }
            }
        }
        assert!(inside > 0, "{inside} read, {refused} refused");
    });
}

#[test]
fn a_file_that_changes_while_it_is_read_is_refused_or_read_whole() {
    let tree = Tree::new(&[("f", &"0".repeat(200_000))]);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut file = File::options().append(true).open(tree.at("f")).unwrap();
            while !is_over.load(Ordering::Relaxed) {
                file.write_all(b"0").unwrap();
                if file.metadata().unwrap().len() > 900_000 {
                    file.set_len(200_000).unwrap();
                }
            }
        });
        let _over = Over(&is_over);
        let found = tree.gather(&["f"]).files.remove(0);
        let end = Instant::now() + Duration::from_secs(30);
        let mut is_refused = false;
        while !is_refused && Instant::now() < end {
            match read(&tree.roots(), &found) {
                Ok(read) => assert_eq!(read.text.len() as u64, read.stat.size),
                Err(why) => {
                    assert_eq!(why, Refusal::Changing);
                    is_refused = true;
                }
            }
        }
        assert!(is_refused);
    });
}

#[test]
fn an_edit_that_leaves_size_and_time_is_not_taken_for_settled() {
    let tree = Tree::new(&[("f", "one")]);
    let extractor = Extractor::new("/nothing".into());
    let found = tree.gather(&["f"]).files.remove(0);
    let at = |now_ns: i64| {
        let reading = Reading { limits: &LIMITS, now_ns, extractor: &extractor, budget: &Budget::default() };
        tree.roots().read(&found, &reading).unwrap()
    };
    let before = at(0);
    let now = before.stat.ctime_ns;
    let old = std::time::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    let edit = |text: &str| {
        fs::write(tree.at("f"), text).unwrap();
        File::options().append(true).open(tree.at("f")).unwrap().set_modified(old).unwrap();
    };
    edit("two");
    let second = at(now + 1);
    edit("six");
    let third = at(now + 1);
    assert_eq!(second.stat.mtime_ns, third.stat.mtime_ns);
    assert_eq!((second.stat.size, second.is_settled, third.is_settled), (3, false, false));
    assert_ne!(second.raw, third.raw);
    assert!(
        !at(now + 35_000_000_000).is_settled,
        "a mapping may still be written to without moving the times"
    );
    let is_in_memory = !folder::keeps_times(&File::open(tree.at("f")).unwrap());
    assert_eq!(at(now + 61_000_000_000).is_settled, !is_in_memory);
}

/// A file that a program wrote through a mapping used to count as unchanged, because its times stayed.
#[test]
#[cfg(target_os = "linux")]
fn a_file_in_memory_is_never_settled() {
    let Ok(folder) = tempfile::tempdir_in("/dev/shm") else { return };
    let file = File::create(folder.path().join("f")).unwrap();
    assert!(!folder::keeps_times(&file));
}

#[test]
fn an_image_is_known_by_its_bytes() {
    let tree = Tree::new(&[]);
    for (name, bytes, media_type) in [
        ("a.png", &b"\x89PNG\r\n\x1a\n...."[..], "image/png"),
        ("a.txt", b"\xff\xd8\xff\xe0....", "image/jpeg"),
        ("b", b"GIF89a....", "image/gif"),
        ("c.png", b"RIFF\x10\0\0\0WEBPVP8 ", "image/webp"),
    ] {
        tree.write(name, bytes);
        let expected = Image { media_type, bytes: bytes.to_vec() };
        assert_eq!(tree.roots().image(name), Ok(expected), "{name}");
    }
    tree.write("d.png", "<svg/>");
    assert_eq!(tree.roots().image("d.png"), Err(Refusal::NoImage));
    File::create(tree.at("e.png")).unwrap().set_len(5_000_001).unwrap();
    assert_eq!(tree.roots().image("e.png"), Err(Refusal::TooLarge(5_000_000)));
}

#[test]
fn a_hundred_thousand_files_are_found_and_one_more_is_too_much() {
    let tree = Tree::new(&[]);
    for number in 0..100_000 {
        File::create(tree.at(&format!("{number}.rs"))).unwrap();
    }
    let walk = || gather(&tree.roots(), &strings(&["."]), &Limits::default());
    let all = walk();
    assert_eq!((all.files.len(), all.cut), (100_000, None));
    tree.write("one-more.rs", "x");
    let cut = walk();
    assert_eq!((cut.files.len(), cut.cut), (0, Some(Cut::Entries(100_000))));
}

#[test]
fn a_file_of_secrets_is_read_only_if_the_user_allowed_it() {
    let tree =
        Tree::new(&[("prod.env", "MODE=plain"), ("prod.tfvars", "a = 1"), ("src/env.rs", "fn f() {}")]);
    symlink(tree.at("prod.tfvars"), tree.at("src/vars.rs")).unwrap();
    let names = |roots: &Roots| {
        let found = gather(roots, &strings(&[".", "prod.env", "src/vars.rs"]), &LIMITS);
        found.files.into_iter().map(|found| found.path).collect::<Vec<_>>()
    };
    assert_eq!(names(&tree.roots()), ["src/env.rs"]);
    let allowing = tree.roots().with_secrets(&strings(&["prod.env"]));
    assert_eq!(names(&allowing), ["prod.env", "src/env.rs"]);
    fs::remove_file(tree.at("prod.env")).unwrap();
    symlink(tree.at("prod.tfvars"), tree.at("prod.env")).unwrap();
    assert_eq!(names(&allowing), ["src/env.rs"], "a link leads to no other file of secrets");
    assert_eq!(tree.roots().with_secrets(&strings(&["other.env"])).resolve("prod.env"), Err(Refusal::Secret));
}

#[test]
fn a_hard_link_to_secrets_is_refused_as_they_are() {
    let tree = Tree::new(&[
        ("config/.env", "TOKEN=x"),
        ("src/a.rs", "fn a() {}"),
        ("src/twice.rs", "fn twice() {}"),
        ("node_modules/x/.env", "TOKEN=y"),
    ]);
    let home = tree.dir.path().join("home");
    fs::create_dir_all(home.join(".ssh/old")).unwrap();
    fs::create_dir_all(home.join("work")).unwrap();
    for secret in [".ssh/old/key", ".netrc", "work/.env"] {
        fs::write(home.join(secret), "secret").unwrap();
    }
    let hard = |from: &Path, to: &str| fs::hard_link(from, tree.at(to)).unwrap();
    hard(&tree.at("config/.env"), "notes.txt");
    hard(&tree.at("src/twice.rs"), "src/again.rs");
    hard(&home.join(".ssh/old/key"), "key.txt");
    hard(&home.join(".netrc"), "login.txt");
    // Names that are not looked at: the text is redacted all the same.
    hard(&home.join("work/.env"), "work.txt");
    let roots = || tree.roots().with_home(Some(home.clone()));
    let why = |path: &str| {
        let gathered = gather(&roots(), &strings(&[path]), &LIMITS);
        gathered.refused.first().map(|refused| refused.why)
    };
    for secret in ["notes.txt", "key.txt", "login.txt"] {
        assert_eq!(why(secret), Some(Refusal::SecretLink), "{secret}");
    }
    for plain in ["src/a.rs", "src/again.rs", "src/twice.rs", "work.txt"] {
        assert_eq!(why(plain), None, "{plain}");
    }
    let walked = gather(&roots(), &strings(&["."]), &LIMITS);
    let taken: Vec<&str> = walked.files.iter().map(|found| found.path.as_str()).collect();
    assert_eq!(taken, ["src/a.rs", "src/again.rs", "src/twice.rs", "work.txt"]);
    // A file that the user allowed is read, by the name that was allowed.
    let gathered = |secret: &str, path: &str| {
        let roots = roots().with_secrets(&[secret.to_owned()]);
        gather(&roots, &strings(&[path]), &LIMITS).files.len()
    };
    assert_eq!((gathered("notes.txt", "notes.txt"), gathered("config/.env", "config/.env")), (1, 1));
    assert_eq!(gathered("key.txt", "notes.txt"), 0);
    // A file that was found before another name of it appeared is refused when it is read.
    let roots = roots();
    let found = gather(&roots, &strings(&["src/a.rs"]), &LIMITS).files.remove(0);
    fs::hard_link(tree.at("src/a.rs"), tree.at("config/prod.env")).unwrap();
    assert_eq!(read(&roots, &found).unwrap_err(), Refusal::SecretLink);
}
