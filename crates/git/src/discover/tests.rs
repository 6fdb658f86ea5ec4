//! Tests with malicious repositories, and with honest ones that look like them.

use std::fs;
use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::time::Duration;

use super::*;
use crate::testing::{Fixture, discover};
use crate::{Repository, Stop};

/// The content of a file outside the repository, which no error may quote.
const SECRET: &str = "the first line of a private key";

fn refused(path: &Path) -> String {
    let error = Repository::discover(path, &Trust::new(None)).map(|found| found.map(|it| it.common_dir()));
    let error = error.expect_err("it should be refused");
    assert_eq!(error.kind(), Kind::Git);
    assert!(error.way_out().is_some(), "{error}");
    let text = format!("{error} {} {error:?}", error.with_hint());
    assert!(!text.contains(SECRET), "{text}");
    error.to_string()
}

/// Returns a victim's repository, and the path of a directory next to it for the attacker's files.
fn victim() -> (Fixture, PathBuf) {
    let fixture = Fixture::new();
    fixture.commit("a.txt", "a", "Begin");
    fs::write(fixture.path.join(".git/tiro-project-id"), "0123456789abcdef").unwrap();
    let planted = fixture.path.with_file_name("planted");
    fs::create_dir(&planted).unwrap();
    (fixture, planted)
}

/// Creates a directory that git accepts as a git directory.
fn git_dir(path: &Path) {
    fs::create_dir_all(path.join("objects")).unwrap();
    fs::create_dir_all(path.join("refs/heads")).unwrap();
    fs::write(path.join("HEAD"), "ref: refs/heads/main\n").unwrap();
}

#[test]
fn a_git_file_that_names_another_repository_is_refused_until_it_is_trusted() {
    let (fixture, planted) = victim();
    fs::write(planted.join(".git"), format!("gitdir: {}/.git\n", fixture.path.display())).unwrap();
    assert!(refused(&planted).contains("does not point back"));
    fs::create_dir(planted.join("within")).unwrap();
    refused(&planted.join("within"));
    let trust = Trust::new(None).and_in([planted.to_str().unwrap()], None);
    let trusted = Repository::discover(&planted, &trust).unwrap().unwrap();
    assert_eq!(trusted.common_dir(), fixture.repository().common_dir());
    assert_eq!(trusted.work_dir(), Some(planted.canonicalize().unwrap()));
}

#[test]
fn a_commondir_that_names_another_repository_is_refused() {
    let (fixture, planted) = victim();
    git_dir(&planted.join(".git"));
    let victims = fixture.path.join(".git");
    for names in [format!("{}\n", victims.display()), "../../repo/.git\n".to_owned()] {
        fs::write(planted.join(".git/commondir"), names).unwrap();
        assert!(refused(&planted).contains("commondir"));
    }
    // These look like a worktree that the victim's repository doesn't list, and like one that it lists for another
    // directory.
    let worktree = planted.join("own");
    git_dir(&worktree);
    fs::write(worktree.join("commondir"), format!("{}\n", victims.display())).unwrap();
    fs::write(worktree.join("gitdir"), format!("{}/.git\n", planted.display())).unwrap();
    fs::remove_dir_all(planted.join(".git")).unwrap();
    fs::write(planted.join(".git"), "gitdir: own\n").unwrap();
    assert!(refused(&planted).contains("commondir"));
    fixture.git(&["worktree", "add", "-q", "../side"]);
    fs::write(planted.join(".git"), format!("gitdir: {}/worktrees/side\n", victims.display())).unwrap();
    assert!(refused(&planted).contains("commondir"));
    assert!(discover(&fixture.path.with_file_name("side")).unwrap().unwrap().location.is_linked());
}

#[cfg(unix)]
#[test]
fn links_in_the_place_of_control_files_are_refused_and_show_nothing() {
    use std::os::unix::fs::symlink;
    for name in ["HEAD", "config", "commondir", "objects", "refs"] {
        let (fixture, planted) = victim();
        let secret = planted.join("secret");
        fs::write(&secret, SECRET).unwrap();
        let path = fixture.path.join(".git").join(name);
        let elsewhere = fixture.path.with_file_name("elsewhere");
        if path.is_dir() {
            fs::rename(&path, &elsewhere).unwrap();
            symlink(&elsewhere, &path).unwrap();
        } else {
            let _ = fs::remove_file(&path);
            symlink(&secret, &path).unwrap();
        }
        if name == "HEAD" {
            let repository = fixture.repository();
            let error = repository.head().unwrap_err().to_string();
            assert!(error.contains("is a link") && !error.contains(SECRET), "{error}");
            assert!(repository.tips().faults[0].contains("`HEAD` is a link"));
            continue;
        }
        let text = refused(&fixture.path);
        assert!(text.contains(name) && text.contains("link"), "{text}");
    }
    // A link to a whole git directory proves as little as a `.git` file that names it.
    let (fixture, planted) = victim();
    symlink(fixture.path.join(".git"), planted.join(".git")).unwrap();
    assert!(refused(&planted).contains("does not point back"));
}

#[cfg(unix)]
#[test]
fn a_branch_that_cannot_be_read_is_left_out_and_named() {
    use std::os::unix::fs::symlink;
    let (fixture, planted) = victim();
    let secret = planted.join("secret");
    fs::write(&secret, SECRET).unwrap();
    let heads = fixture.path.join(".git/refs/heads");
    symlink(&secret, heads.join("link")).unwrap();
    symlink(&planted, heads.join("folder")).unwrap();
    symlink("refs/heads/main", heads.join("old-style")).unwrap();
    fs::write(heads.join("nonsense"), SECRET).unwrap();
    fs::write(heads.join("up"), "ref: ../../../planted/secret\n").unwrap();
    fs::write(heads.join("cycle"), "ref: refs/heads/cycle2\n").unwrap();
    fs::write(heads.join("cycle2"), "ref: refs/heads/cycle\n").unwrap();
    fs::write(heads.join("large"), vec![b'a'; 1 << 20]).unwrap();
    let tips = fixture.repository().tips();
    let names: Vec<_> = tips.found.iter().filter_map(|tip| tip.branch.as_deref()).collect();
    assert_eq!(names, ["main", "old-style"]);
    let faults = tips.faults.join("\n");
    for name in ["link", "folder", "nonsense", "up", "cycle", "large"] {
        assert!(faults.contains(&format!("refs/heads/{name}")), "{name}: {faults}");
    }
    assert!(!faults.contains(SECRET), "{faults}");
}

#[test]
fn control_files_of_gigabytes_are_refused_by_their_size() {
    for name in [
        "HEAD",
        "config",
        "packed-refs",
        "commondir",
        "shallow",
        "refs/heads/main",
        "objects/info/alternates",
    ] {
        let fixture = Fixture::new();
        fixture.commit("a.txt", "a", "Begin");
        fs::File::create(fixture.path.join(".git").join(name)).unwrap().set_len(3 << 30).unwrap();
        let text = match Repository::discover(&fixture.path, &Trust::new(None)) {
            Err(error) => error.to_string(),
            Ok(found) => {
                let repository = found.unwrap();
                let history =
                    repository.history(&[], crate::KnownCommit::OnlyItself, &Stop::default(), &mut |_| false);
                let faults = repository.tips().faults.join(" ");
                format!(
                    "{faults} {} {}",
                    history.map_or_else(|it| it.to_string(), |_| String::new()),
                    repository.lacks_alternates()
                )
            }
        };
        assert!(text.contains("3221225472") || name.ends_with("alternates"), "{name}: {text}");
    }
}

#[test]
fn a_git_dir_found_on_the_way_up_is_a_bare_repository_only_by_the_users_word() {
    let (fixture, planted) = victim();
    git_dir(&planted);
    assert!(refused(&planted).contains("bare"));
    assert!(
        Repository::discover(&planted, &Trust::new(Some(&planted))).unwrap().unwrap().work_dir().is_none()
    );
    fs::create_dir(planted.join("within")).unwrap();
    let within = Repository::discover(&planted.join("within"), &Trust::new(Some(&planted.join("within"))));
    assert_eq!(within.map(drop).unwrap_err().kind(), Kind::Git, "another directory was named");
    // Within a clone, a folder that looks like a bare repository is just a folder of the clone.
    let inner = fixture.path.join("sub");
    git_dir(&inner);
    fs::write(inner.join("commondir"), SECRET).unwrap();
    let found = Repository::discover(&inner, &Trust::new(None)).unwrap().unwrap();
    assert_eq!(found.common_dir(), fixture.repository().common_dir());
}

#[test]
fn git_directories_that_git_itself_makes_elsewhere_are_accepted() {
    let fixture = Fixture::new();
    fixture.commit("a", "1\n", "first");
    let root = fixture.path.parent().unwrap();
    fixture.git(&["worktree", "add", "-q", "../side"]);
    fixture.git(&["config", "extensions.worktreeConfig", "true"]);
    let side = discover(&root.join("side")).unwrap().unwrap();
    assert_eq!(
        (side.location.is_linked(), side.work_dir()),
        (true, Some(root.join("side").canonicalize().unwrap()))
    );

    let library = Fixture::new();
    library.commit("lib", "1\n", "library");
    fixture.git(&["submodule", "add", "-q", library.path.to_str().unwrap(), "lib"]);
    let module = discover(&fixture.path.join("lib")).unwrap().unwrap();
    assert!(module.common_dir().ends_with(".git/modules/lib"));
    assert_eq!(module.work_dir(), Some(fixture.path.join("lib").canonicalize().unwrap()));
    // The repository is also found by its common directory, under which the registry knows it.
    let known = Repository::open(&module.common_dir(), &Trust::new(None)).unwrap();
    assert_eq!(known.work_dir(), module.work_dir());
    let main = Repository::open(&fixture.repository().common_dir(), &Trust::new(None)).unwrap();
    assert_eq!(main.work_dir(), fixture.repository().work_dir());

    fixture.git(&["clone", "-q", "--bare", ".", "../around/.bare"]);
    fs::write(root.join("around/.git"), "gitdir: ./.bare\n").unwrap();
    assert!(discover(&root.join("around")).unwrap().unwrap().common_dir().ends_with("around/.bare"));

    fixture.git(&["clone", "-q", "--separate-git-dir=../apart.git", ".", "../apart"]);
    assert!(refused(&root.join("apart")).contains("does not point back"));
    let apart = root.join("apart").canonicalize().unwrap();
    let beneath = format!("{}/*", root.display());
    assert!(Repository::discover(&apart, &Trust::new(None).and_in([&*beneath], None)).unwrap().is_some());
    let git_dir = format!("--git-dir={}", root.join("apart.git").display());
    fixture.git(&[&git_dir, "config", "core.worktree", apart.to_str().unwrap()]);
    assert!(discover(&apart).unwrap().is_some(), "now it names it back");
}

#[test]
fn objects_of_another_repository_are_read_only_where_that_is_trusted() {
    let fixture = Fixture::new();
    let sha = fixture.commit("a", "1\n", "first");
    let root = fixture.path.parent().unwrap();
    fixture.git(&["clone", "-q", "--shared", ".", "../shared"]);
    let shared = root.join("shared");
    let found = discover(&shared).unwrap().unwrap();
    assert!(found.lacks_alternates() && !found.contains(&sha));
    let trust = Trust::new(None).and_in([shared.to_str().unwrap()], None);
    let found = Repository::discover(&shared, &trust).unwrap().unwrap();
    assert!(!found.lacks_alternates() && found.contains(&sha));
    assert!(found.reader(&|_| false).commit(&sha).is_ok());
}

#[cfg(unix)]
#[test]
fn a_repository_of_another_user_is_refused() {
    let fixture = Fixture::new();
    fixture.commit("a", "1\n", "first");
    let refusal = Repository::discover(&fixture.path, &Trust::of_user(12_345)).err().unwrap();
    assert!(refusal.to_string().contains("another user"), "{refusal}");
    let trust = Trust::of_user(12_345).and_in([fixture.path.to_str().unwrap()], None);
    assert!(Repository::discover(&fixture.path, &trust).unwrap().is_some());
    // Root acts for the user who called `sudo`.
    let owner = std::os::unix::fs::MetadataExt::uid(&fixture.path.metadata().unwrap());
    assert!(Repository::discover(&fixture.path, &Trust::of_user(0).and_of(Some(owner))).unwrap().is_some());
    assert!(Repository::discover(&fixture.path, &Trust::of_user(12_345).and_of(Some(owner))).is_err());
}

/// A session that runs in one of a project's work trees belongs to the project, so a false work tree must not be
/// accepted.
#[test]
fn a_worktree_that_does_not_name_the_repository_back_is_not_listed() {
    let (fixture, planted) = victim();
    let worktree = fixture.path.join(".git/worktrees/evil");
    fs::create_dir_all(&worktree).unwrap();
    fs::write(worktree.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    fs::write(worktree.join("gitdir"), format!("{}/.git\n", planted.display())).unwrap();
    assert_eq!(fixture.repository().reflogs().len(), 1);
    fixture.git(&["config", "core.worktree", planted.to_str().unwrap()]);
    assert_eq!(fixture.repository().work_dir(), Some(fixture.path.canonicalize().unwrap()));
}

/// Replaces the file at `path` with a pipe.
#[cfg(unix)]
fn pipe(path: &Path) {
    let _ = fs::remove_file(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
}

/// Guards against a former fault: opening a pipe in place of a file waited forever for a writer.
#[cfg(unix)]
#[test]
fn a_pipe_in_the_place_of_a_file_is_refused_and_does_not_hang() {
    let read =
        [".git/HEAD", ".git/config", ".git/packed-refs", ".git/commondir", ".git/refs/heads/main", ".git"];
    let unread = [".git/refs/tags/deep/down", ".git/objects/info/alternates", ".git/objects/pack/pack-0.idx"];
    for (place, is_read) in read.iter().map(|it| (it, true)).chain(unread.iter().map(|it| (it, false))) {
        let fixture = Fixture::new();
        let sha = fixture.commit("a.txt", "a", "Begin");
        let path = fixture.path.join(place);
        if *place == ".git" {
            fs::remove_dir_all(&path).unwrap();
        }
        pipe(&path);
        let within = fixture.path.join("src");
        fs::create_dir(&within).unwrap();
        for start in [fixture.path.clone(), within] {
            let (sender, answer) = channel();
            let opening = move || {
                let found = Repository::discover(&start, &Trust::new(None)).map(|found| {
                    let repository = found.expect("it is there");
                    repository.contains(&sha);
                    repository.tips().faults.join(" ")
                });
                let _ = sender.send(found.unwrap_or_else(|error| error.to_string()));
            };
            std::thread::spawn(opening);
            let text = answer.recv_timeout(Duration::from_secs(20));
            let text = text.unwrap_or_else(|_| panic!("{place}: it hangs"));
            let name = place.trim_start_matches(".git/");
            assert_eq!(text.contains(name) && text.contains("pipe"), is_read, "{place}: {text}");
        }
    }
}

#[cfg(unix)]
#[test]
fn a_worktree_of_a_repository_with_a_pipe_is_refused_too() {
    let fixture = Fixture::new();
    fixture.commit("a.txt", "a", "Begin");
    let worktree = fixture.path.with_file_name("worktree");
    fixture.git(&["worktree", "add", "-q", worktree.to_str().unwrap()]);
    assert!(discover(&worktree).unwrap().is_some());
    pipe(&fixture.path.join(".git/config"));
    assert!(refused(&worktree).contains("config"));
}
