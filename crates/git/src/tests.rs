//! Tests, with small repositories that the real `git` makes.
#![expect(clippy::disallowed_methods, reason = "one test runs itself in another environment")]

use std::path::Path;
use std::process::{Command, Stdio};

use super::diff::digest::Digest;
use super::repository::Head;
use super::testing::{Fixture, discover};
use super::*;
use tiro_base::encoding::How;
use tiro_base::error::Kind;

pub fn walked(repository: &Repository) -> History {
    let tips = repository.tips().found;
    repository.history(&tips, KnownCommit::CoversAncestors, &Stop::default(), &mut |_| false).unwrap()
}

fn all(repository: &Repository) -> Vec<Sha> {
    let history = walked(repository);
    assert!(history.unreadable.is_empty(), "{:?}", history.unreadable);
    history.commits.iter().map(|commit| commit.sha).collect()
}

fn counted(insertions: u64, deletions: u64) -> Lines {
    Lines::Counted { insertions, deletions }
}

#[test]
fn repositories_are_found_from_within_with_their_properties() {
    let fixture = Fixture::new();
    let empty = fixture.repository();
    assert!(
        empty.is_empty() && empty.work_dir().is_some() && !empty.is_shallow() && !empty.location.is_linked()
    );
    assert_eq!(empty.head().unwrap(), Head { branch: Some("main".to_owned()), commit: None });
    assert_eq!(all(&empty), []);

    let first = fixture.commit("src/deep/a.rs", "fn a() {}\n", "first");
    let from_within = discover(&fixture.path.join("src/deep/a.rs")).unwrap().unwrap();
    assert_eq!(from_within.work_dir(), Some(fixture.path.canonicalize().unwrap()));
    assert_eq!(from_within.common_dir(), fixture.path.join(".git").canonicalize().unwrap());
    assert!(from_within.contains(&first) && !from_within.is_empty());
    assert!(discover(fixture.root.path()).unwrap().is_none());
    assert_eq!(discover(Path::new("/nowhere")).err().unwrap().kind(), Kind::BadInput);

    fixture.git(&["checkout", "-q", "--detach"]);
    assert_eq!(from_within.head().unwrap(), Head { branch: None, commit: Some(first) });

    let bare = fixture.cloned_as("bare.git", &["--bare"]);
    assert!(bare.work_dir().is_none() && bare.work_dir().is_none());
    assert_eq!(all(&bare), [first]);
}

#[test]
fn worktrees_share_a_repository_and_submodules_do_not() {
    let fixture = Fixture::new();
    fixture.commit("a", "1\n", "first");
    fixture.git(&["worktree", "add", "-q", "-b", "side", "../side"]);
    let side = discover(&fixture.root.path().join("side")).unwrap().unwrap();
    assert!(side.location.is_linked() && side.work_dir().is_some());
    assert_eq!(side.common_dir(), fixture.repository().common_dir());
    assert_eq!(side.head().unwrap().branch.as_deref(), Some("side"));

    let library = Fixture::new();
    library.commit("lib", "1\n", "library");
    fixture.git(&["submodule", "add", "-q", library.path.to_str().unwrap(), "lib"]);
    let sha = fixture.commit_all("add the library");
    let module = discover(&fixture.path.join("lib")).unwrap().unwrap();
    assert_ne!(module.common_dir(), fixture.repository().common_dir());
    assert_eq!(all(&module), [library.head()]);
    let files = fixture.detail(&sha).changes.files;
    assert!(files.iter().any(|file| file.path == "lib" && file.lines == Lines::Submodule), "{files:?}");
}

#[test]
fn a_history_is_walked_oldest_first_and_resumed() {
    let fixture = Fixture::new();
    let first = fixture.commit("a", "1\n", "first");
    let second = fixture.commit("a", "2\n", "second");
    fixture.git(&["checkout", "-q", "-b", "side", &first.to_string()]);
    let side = fixture.commit("b", "1\n", "on the side");
    fixture.git(&["checkout", "-q", "main"]);
    fixture.git(&["merge", "-q", "--no-ff", "-m", "merge the side", "side"]);
    let merge = fixture.head();
    fixture.git(&["branch", "-q", "alone", &second.to_string()]);
    let repository = fixture.repository();
    let tips = repository.tips().found;
    let names: Vec<_> = tips.iter().map(|tip| tip.branch.as_deref().unwrap()).collect();
    assert_eq!(names, ["main", "alone", "side"]);

    let history = walked(&repository);
    let found: Vec<_> = history.commits.iter().map(|commit| (commit.sha, history.branch(commit))).collect();
    // Several branches reach the other commits, and git doesn't record on which branch those were made.
    assert_eq!(found, [(first, None), (second, None), (side, None), (merge, Some("main"))]);

    let walk = |known: KnownCommit, have: &[Sha]| {
        let history =
            repository.history(&tips, known, &Stop::default(), &mut |sha| have.contains(sha)).unwrap();
        history.commits.iter().map(|commit| commit.sha).collect::<Vec<_>>()
    };
    assert_eq!(walk(KnownCommit::CoversAncestors, &[first, second]), [side, merge]);
    assert_eq!(
        walk(KnownCommit::CoversAncestors, &[second, side]),
        [merge],
        "ancestors of a known commit are known"
    );
    assert_eq!(walk(KnownCommit::OnlyItself, &[second, side]), [first, merge]);
}

#[test]
fn a_commit_has_its_files_names_and_words() {
    let fixture = Fixture::new();
    let body = "    one();\n".repeat(10);
    fixture.write("CHANGELOG.md", "# Next\n");
    fixture.commit(
        "src/a.rs",
        format!("impl Paint {{\n    fn draw(&self) {{\n{body}    }}\n}}\n\nfn old_name() {{}}\n"),
        "a",
    );
    fixture.write("CHANGELOG.md", "# Next\n- Blank lines can be squeezed with `--squeeze-blank`\n");
    let text = format!(
        "impl Paint {{\n    fn draw(&self) {{\n{body}        squeeze_blank();\n    }}\n}}\n\nfn new_name() {{}}\n"
    );
    let detail = fixture.detail(&fixture.commit("src/a.rs", text, "Squeeze blanks\n\nThey were many."));
    assert_eq!((detail.author.name.as_str(), detail.message.subject()), ("Ada", "Squeeze blanks"));
    assert_eq!(detail.author_time, Moment { seconds: 1_700_000_000, offset: 3600, nonsense: false });
    assert_eq!(detail.commit_time.seconds, 1_700_000_500);
    let changes = detail.changes;
    let files: Vec<_> = changes.files.iter().map(|file| (file.path.as_str(), file.lines)).collect();
    assert_eq!(files, [("CHANGELOG.md", counted(1, 0)), ("src/a.rs", counted(2, 1))]);
    assert_eq!((changes.insertions, changes.deletions), (3, 1));
    assert_eq!(changes.digest.headings, ["# Next", "fn draw(&self)", "impl Paint"]);
    assert_eq!(
        (changes.digest.added, changes.digest.removed),
        (vec!["new_name".to_owned()], vec!["old_name".to_owned()])
    );
    assert_eq!(changes.digest.lines, ["- Blank lines can be squeezed with `--squeeze-blank`"]);
    for word in ["--squeeze-blank", "squeeze_blank", "new_name"] {
        assert!(changes.digest.words.iter().any(|found| found == word), "{word}: {:?}", changes.digest.words);
    }
}

#[test]
fn renames_binaries_and_large_files_are_distinguished() {
    let fixture = Fixture::new();
    let lines: String = (0..50).map(|n| format!("line {n}\n")).collect();
    fixture.write("same.txt", "kept as it is\n");
    fixture.write("gone.txt", "nothing like it\n");
    fixture.commit("edited.txt", &lines, "before");
    fixture.git(&["mv", "same.txt", "moved.txt"]);
    fixture.git(&["mv", "edited.txt", "renamed.txt"]);
    fixture.git(&["rm", "-q", "gone.txt"]);
    fixture.write("renamed.txt", lines.replace("line 7\n", "line seven\n"));
    fixture.write("binary", b"\0\x01\x02");
    fixture.write("large", "x\n".repeat(600_000));
    let changes = fixture.detail(&fixture.commit_all("after")).changes;
    let files: Vec<_> = changes.files.into_iter().map(|file| (file.path, file.kind, file.lines)).collect();
    let from = |path: &str| ChangeKind::Renamed { from: path.to_owned() };
    let expected = [
        ("binary", ChangeKind::Added, Lines::Binary),
        ("gone.txt", ChangeKind::Deleted, counted(0, 1)),
        ("large", ChangeKind::Added, Lines::TooLarge),
        ("moved.txt", from("same.txt"), counted(0, 0)),
        ("renamed.txt", from("edited.txt"), counted(1, 1)),
    ];
    assert_eq!(files, expected.map(|(path, kind, lines)| (path.to_owned(), kind, lines)));
}

#[test]
fn a_rebased_commit_keeps_its_patch_id() {
    let fixture = Fixture::new();
    let text = "a\nb\nc\nd\ne\nf\ng\nh\n";
    fixture.commit("t", text, "base");
    fixture.git(&["checkout", "-q", "-b", "topic"]);
    let original = fixture.commit("t", text.replace("g\n", "g  1\ng2\n"), "change g");
    fixture.git(&["checkout", "-q", "main"]);
    fixture.commit("t", format!("0\n{text}"), "another line above");
    fixture.git(&["checkout", "-q", "topic"]);
    fixture.git(&["rebase", "-q", "main"]);
    let rebased = fixture.head();
    let other = fixture.commit("t", "x\n", "something else");
    let empty = fixture.commit_all("nothing at all");
    let id = |sha: &Sha| fixture.detail(sha).patch_id;
    assert_ne!(original, rebased);
    assert_eq!(id(&original), id(&rebased));
    assert!(id(&original).is_some() && id(&original) != id(&other));
    assert_eq!(id(&empty), None);
}

#[test]
fn a_merge_lists_files_but_no_lines_and_has_no_patch_id() {
    let fixture = Fixture::new();
    fixture.commit("a", "1\n", "base");
    fixture.git(&["checkout", "-q", "-b", "side"]);
    fixture.commit("b.rs", "fn b() {}\n", "side");
    fixture.git(&["checkout", "-q", "main"]);
    fixture.git(&["merge", "-q", "--no-ff", "-m", "Merge branch 'side'", "side"]);
    let detail = fixture.detail(&fixture.head());
    assert_eq!((detail.parents.len(), detail.patch_id), (2, None));
    assert_eq!(
        detail.changes.files,
        [FileChange { path: "b.rs".to_owned(), kind: ChangeKind::Added, lines: Lines::Merge }]
    );
    assert_eq!(detail.changes.digest, Digest::default());
}

#[test]
fn odd_messages_and_dates_are_read_and_flagged() {
    let fixture = Fixture::new();
    fixture.commit("a", "1\n", "base");
    let people = "author Ada <a@b> 9999999999999 +0000\ncommitter Bob <b@c> -1 +0000\n";
    let latin = fixture.raw_commit(&[people.as_bytes(), b"encoding ISO-8859-1\n\nGr\xfc\xdfe\n"].concat());
    let broken = fixture.raw_commit(&[people.as_bytes(), b"\nGr\xfc\xdfe\0\n"].concat());
    let huge =
        fixture.raw_commit(&[people.as_bytes(), b"\nhuge\n\n", "word ".repeat(2 << 20).as_bytes()].concat());
    let unnamed = fixture.raw_commit(b"author x\ncommitter y <> 12 +0000\n\nmine\n");

    let detail = fixture.detail(&latin);
    assert_eq!((detail.message.text.as_str(), detail.message.how), ("Grüße", How::AsNamed));
    assert!(detail.author_time.nonsense && !detail.commit_time.nonsense);
    assert_eq!(detail.commit_time.seconds, -1);
    let message = fixture.detail(&broken).message;
    assert!(message.how == How::Replaced && message.text.starts_with("Gr\u{fffd}"));
    let message = fixture.detail(&huge).message;
    assert!(message.cut && message.bytes > 10_000_000 && message.text.len() <= 32 << 10);
    assert_eq!(message.subject(), "huge");
    assert_eq!(fixture.detail(&unnamed).author.name, "x");
    assert_eq!(all(&fixture.repository()).len(), 5);
}

#[test]
fn a_shallow_clone_reports_where_its_history_ends() {
    let fixture = Fixture::new();
    fixture.commit("a", "1\n", "first");
    fixture.commit("a", "1\n2\n", "second");
    let third = fixture.commit("a", "1\n2\n3\n", "third");
    let shallow = fixture.cloned_as("shallow", &["--depth", "2"]);
    assert!(shallow.is_shallow());
    let commits = all(&shallow);
    assert_eq!((commits.len(), commits[1]), (2, third));
    let mut reader = shallow.reader(&|_| false);
    assert!(reader.commit(&commits[0]).unwrap().changes.unknown.unwrap().contains("shallow"));
    assert_eq!(reader.commit(&third).unwrap().changes.files[0].lines, counted(1, 0));
}

#[test]
fn missing_and_damaged_objects_affect_only_themselves() {
    let fixture = Fixture::new();
    let object = |id: &str| fixture.object(id);
    let first = fixture.commit("a", "1\n", "first");
    let second = fixture.commit("a", "1\n2\n", "second");
    fixture.write("b", "b\n");
    let third = fixture.commit("a", "3\n", "third");
    std::fs::remove_file(object(&fixture.git(&["rev-parse", &format!("{second}:a")]))).unwrap();
    let detail = fixture.detail(&third);
    let lines: Vec<_> = detail.changes.files.iter().map(|file| file.lines).collect();
    assert_eq!((lines, detail.patch_id), (vec![Lines::Missing, counted(1, 0)], None));

    let damaged = object(&first.to_string());
    std::fs::remove_file(&damaged).unwrap();
    std::fs::write(&damaged, b"garbage").unwrap();
    let repository = fixture.repository();
    let history = walked(&repository);
    assert_eq!(history.commits.iter().map(|commit| commit.sha).collect::<Vec<_>>(), [second, third]);
    assert_eq!(history.unreadable[0].sha, first);
    assert!(repository.reader(&|_| false).commit(&first).is_err());
    assert!(repository.reader(&|_| false).commit(&second).unwrap().changes.unknown.is_some());

    std::fs::write(fixture.path.join(".git/config"), "[core\n").unwrap();
    let error = discover(&fixture.path).err().expect("the configuration is damaged");
    assert!(error.kind() == Kind::Git && error.way_out().is_some(), "{error}");
}

#[test]
fn nothing_a_repository_configures_is_run() {
    let fixture = Fixture::new();
    fixture.write(".gitattributes", "* filter=evil diff=evil\n");
    fixture.commit("a", "1\n", "first");
    let marker = fixture.root.path().join("marker");
    let program = fixture.root.path().join("evil.sh");
    std::fs::write(&program, format!("#!/bin/sh\necho ran >> {}\ncat\n", marker.display())).unwrap();
    Command::new("chmod").arg("+x").arg(&program).status().unwrap();
    for hook in ["post-commit", "post-checkout", "fsmonitor-watchman", "reference-transaction"] {
        std::fs::copy(&program, fixture.path.join(".git/hooks").join(hook)).unwrap();
    }
    let keys = [
        "core.fsmonitor",
        "core.sshCommand",
        "core.pager",
        "core.editor",
        "diff.external",
        "diff.evil.command",
    ];
    let more = ["diff.evil.textconv", "filter.evil.process", "filter.evil.clean", "filter.evil.smudge"];
    let program = program.to_str().unwrap();
    let settings: String = keys
        .iter()
        .chain(&more)
        .map(|key| {
            let (section, name) = key.rsplit_once('.').unwrap();
            let section = section.split_once('.').map_or(section.to_owned(), |(a, b)| format!("{a} \"{b}\""));
            format!("[{section}]\n\t{name} = {program}\n")
        })
        .collect();
    fixture.commit("a", "2\n", "second");
    let config = fixture.path.join(".git/config");
    let before = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, format!("{before}{settings}[include]\n\tpath = /dev/stdin\n")).unwrap();
    fixture.git(&["diff", "HEAD~1"]);
    assert!(marker.exists(), "git itself runs the programs");
    std::fs::remove_file(&marker).unwrap();

    let repository = fixture.repository();
    let commits = all(&repository);
    let mut reader = repository.reader(&|_| false);
    assert!(commits.iter().all(|sha| reader.commit(sha).is_ok()));
    assert!(repository.blob_at_head("a").unwrap().is_some());
    assert!(!marker.exists(), "{}", std::fs::read_to_string(&marker).unwrap_or_default());
}

/// This test runs itself in a second process, because environment variables apply to a whole process.
#[test]
fn the_environment_does_not_choose_the_repository() {
    if let Some(path) = std::env::var_os("TEST_REPOSITORY") {
        let found = discover(Path::new(&path)).unwrap().unwrap();
        assert_eq!(found.common_dir(), Path::new(&path).join(".git").canonicalize().unwrap());
        return;
    }
    let (fixture, other) = (Fixture::new(), Fixture::new());
    fixture.commit("a", "1\n", "first");
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "git::tests::the_environment_does_not_choose_the_repository"])
        .env("TEST_REPOSITORY", &fixture.path)
        .env("GIT_DIR", other.path.join(".git"))
        .env("GIT_COMMON_DIR", other.path.join(".git"))
        .env("GIT_WORK_TREE", &other.path)
        .env("GIT_OBJECT_DIRECTORY", other.path.join(".git/objects"))
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
}

#[test]
fn threads_give_the_same_commits_in_the_same_order() {
    let fixture = Fixture::new();
    for n in 0..50 {
        fixture.commit(&format!("f{}", n % 7), format!("{n}\n"), &format!("step {n}"));
    }
    let repository = fixture.repository();
    let commits = all(&repository);
    let read = |threads: usize, limit: usize| {
        let mut details = Vec::new();
        repository.details(&commits, threads, &|_| false, |outcome| {
            details.push(outcome.unwrap());
            if details.len() == limit {
                std::ops::ControlFlow::Break(())
            } else {
                std::ops::ControlFlow::Continue(())
            }
        });
        details
    };
    let alone = read(1, usize::MAX);
    assert_eq!(alone.iter().map(|detail| detail.sha).collect::<Vec<_>>(), commits);
    assert_eq!(read(3, usize::MAX), alone);
    assert_eq!(read(3, 5), alone[..5]);
}

#[test]
fn blobs_show_whether_a_file_changed_since() {
    let fixture = Fixture::new();
    let first = fixture.commit("src/a", "1\n", "first");
    fixture.commit("b", "1\n", "second");
    let repository = fixture.repository();
    assert_eq!(repository.blob_at(&first, "src/a").unwrap(), repository.blob_at_head("src/a").unwrap());
    assert!(repository.blob_at_head("src/a").unwrap().is_some());
    fixture.commit("src/a", "2\n", "third");
    assert_ne!(repository.blob_at(&first, "src/a").unwrap(), repository.blob_at_head("src/a").unwrap());
    assert_eq!(repository.blob_at_head("src").unwrap(), None);
    assert_eq!(repository.blob_at_head("../x").unwrap(), None);
    assert!(!repository.contains(&"0123456789012345678901234567890123456789".parse().unwrap()));
}
