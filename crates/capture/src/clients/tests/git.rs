#![cfg(unix)]
#![expect(clippy::disallowed_methods, reason = "a hook is proved by running it")]

use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::*;

/// A repository as the hook sees it, and a binary that records that it ran.
struct Repository {
    home: Home,
    git: GitPlace,
    binary: PathBuf,
}

impl Repository {
    fn new() -> Repository {
        let home = Home::new();
        for client in Client::AGENTS.into_iter().filter_map(|client| home.places.folder(client)) {
            fs::remove_dir(client).unwrap();
        }
        let binary = home.put(
            "bin dir/it's tiro",
            "#!/bin/sh\ncat > \"$0.stdin\"\necho \"$@\" >> \"$0.ran\"\necho noise\nexit 9\n",
        );
        make_executable(&binary);
        let common = home.path("repo/.git");
        fs::create_dir_all(common.join("hooks")).unwrap();
        let git = GitPlace {
            hooks: common.join("hooks"),
            common,
            work_tree: Some(home.path("repo")),
            is_tracked: false,
            formerly: Vec::new(),
        };
        Repository { home, git, binary }
    }

    fn hook(&self) -> PathBuf {
        self.git.hooks.join("post-commit")
    }

    fn put(&self, text: impl AsRef<[u8]>, mode: u32) {
        fs::write(self.hook(), text).unwrap();
        fs::set_permissions(self.hook(), fs::Permissions::from_mode(mode)).unwrap();
    }

    fn plan(&self) -> Plan {
        plan(&self.home.places, &self.binary, Some(&self.git), &[]).unwrap()
    }

    fn set_up(&self) {
        let plan = self.plan();
        assert!(plan.findings.is_empty(), "{}", plan.text());
        assert!(!plan.changes.is_empty());
        let applied = apply(&plan.changes, &self.home.record()).unwrap();
        assert!(applied.findings.is_empty(), "{applied:?}");
        assert!(self.plan().is_set_up(Client::Git), "{}", self.plan().text());
    }

    fn finding(&self) -> Finding {
        let before = self.home.everything();
        let mut plan = self.plan();
        assert!(plan.changes.is_empty(), "{}", plan.text());
        assert_eq!(self.home.everything(), before);
        plan.findings.remove(0)
    }

    /// Runs the hook as git does; waits until Tiro ran `wanted` times, and returns exit code, output and the number of
    /// runs.
    fn commit(&self, variables: &[(&str, &str)], wanted: usize) -> (i32, String, usize) {
        // Descriptor 3 is a copy of the output. A process that the hook leaves running must not keep it open.
        let mut child = Command::new("sh")
            .args(["-c", "exec \"$0\" 3>&1"])
            .arg(self.hook())
            .env_remove("CI")
            .envs(variables.iter().copied())
            .current_dir(self.home.path("repo"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // The hook may end without reading its stdin.
        let _ = child.stdin.take().unwrap().write_all(b"from git\n");
        let output = child.wait_with_output().unwrap();
        let ran = || fs::read_to_string(format!("{}.ran", self.binary.display())).unwrap_or_default();
        let began = Instant::now();
        while ran().lines().count() < wanted && began.elapsed() < Duration::from_secs(20) {
            std::thread::yield_now();
        }
        let ran = ran();
        assert!(ran.lines().all(|line| line == "hook git-post-commit"), "{ran}");
        if !ran.is_empty() {
            let stdin = fs::read_to_string(format!("{}.stdin", self.binary.display())).unwrap();
            assert_eq!(stdin, "", "stdin is the other hook's");
        }
        (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap(), ran.lines().count())
    }

    fn remove(&self) -> Removed {
        // Files that the hook wrote when it ran are not part of the comparison.
        for trace in ["ran", "stdin"] {
            let _ = fs::remove_file(format!("{}.{trace}", self.binary.display()));
        }
        self.home.remove()
    }
}

fn make_executable(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_missing_hook_is_created_and_removed_completely() {
    let repository = Repository::new();
    fs::remove_dir(&repository.git.hooks).unwrap();
    let before = repository.home.everything();
    repository.set_up();
    assert_eq!(repository.commit(&[("CI", "true")], 0), (0, String::new(), 0), "nothing in CI");
    fs::rename(&repository.binary, repository.binary.with_extension("away")).unwrap();
    assert_eq!(repository.commit(&[], 0), (0, String::new(), 0), "a binary that is gone is no error");
    fs::rename(repository.binary.with_extension("away"), &repository.binary).unwrap();
    assert_eq!(repository.commit(&[], 1), (0, String::new(), 1));
    repository.remove();
    assert_eq!(repository.home.everything(), before);
}

#[test]
fn a_script_keeps_its_exit_code_stdin_and_bytes_and_our_line_always_runs() {
    for (script, code, says) in [
        ("#!/bin/sh\nread line; echo \"got $line\"; exit 3\n", 3, "got from git\n"),
        ("#!/usr/bin/env bash\nset -euo pipefail\nexec cat\n", 0, "from git\n"),
        ("#!/bin/sh -eu\necho $?\nfalse\n", 1, "0\n"),
        ("#! /bin/sh\n. \"$(dirname \"$0\")/_/husky.sh\"\necho never\n", 7, "husky\n"),
        ("#!/bin/sh", 0, ""),
        ("#!/usr/bin/env -S bash -e\necho \"$0\" | sed 's|.*/||'", 0, "post-commit\n"),
    ] {
        let repository = Repository::new();
        fs::create_dir(repository.git.hooks.join("_")).unwrap();
        fs::write(repository.git.hooks.join("_/husky.sh"), "echo husky\nexit 7\n").unwrap();
        repository.put(script, 0o750);
        let before = repository.home.everything();
        repository.set_up();
        assert_eq!(repository.commit(&[("CI", "1")], 0), (code, says.to_owned(), 0), "{script}");
        assert_eq!(repository.commit(&[], 1), (code, says.to_owned(), 1), "{script}");
        repository.remove();
        assert_eq!(repository.home.everything(), before, "{script}");
    }
}

#[test]
fn a_script_without_a_shebang_is_a_shell_script() {
    let repository = Repository::new();
    repository.put("echo mine\n", 0o755);
    repository.set_up();
    let text = fs::read_to_string(repository.hook()).unwrap();
    assert!(text.starts_with("# >>> tiro") && text.ends_with("\necho mine\n"), "{text}");
}

/// Guards against a former fault: a hook that was run through our hook saw another path and other files next to it.
#[test]
fn hooks_that_are_not_plain_shell_scripts_are_not_changed() {
    let says = "import os, sys\nhere = os.path.abspath(__file__)\nbeside = os.path.join(os.path.dirname(here), 'beside')\n\
                print(here, open(beside).read())\nsys.exit(4)\n";
    let python = format!("#!/usr/bin/env python3\n{says}");
    let two = format!("#!/bin/sh\n'''exec' python3 \"$0\" \"$@\"\n'''\n{says}");
    let archive = "#!/bin/sh\ntail -n +4 \"$0\"\nexit 5\nthe archive\n";
    for (hook, code) in [
        (python.as_bytes(), Some(4)),
        (two.as_bytes(), Some(4)),
        (archive.as_bytes(), Some(5)),
        (b"\x7fELF\0\xff", None),
    ] {
        let repository = Repository::new();
        fs::write(repository.git.hooks.join("beside"), "what lies beside").unwrap();
        repository.put(hook, 0o711);
        let before = repository.home.everything();
        let said = code.map(|code| {
            let (ended, said, _) = repository.commit(&[], 0);
            assert_eq!(ended, code, "{said}");
            assert!(said.contains("beside\n") || said == "the archive\n", "{said}");
            said
        });
        let finding = repository.finding();
        assert!(finding.found.contains("not a plain shell script"), "{finding:?}");
        assert!(finding.mend.contains("the next call finds new commits"), "{finding:?}");
        apply(&repository.plan().changes, &repository.home.record()).unwrap();
        assert_eq!(repository.home.everything(), before);
        if let (Some(code), Some(said)) = (code, said) {
            assert_eq!(repository.commit(&[], 0), (code, said, 0));
        }
        repository.remove();
        assert_eq!(repository.home.everything(), before);
    }
}

#[test]
fn a_hook_that_git_ignores_does_not_become_active() {
    let repository = Repository::new();
    repository.put("#!/bin/sh\necho never\n", 0o644);
    let finding = repository.finding();
    assert!(finding.found.contains("git ignores it") && finding.mend.starts_with("chmod +x "), "{finding:?}");
}

/// Guards against a former fault: a hanging program in place of Tiro blocked every commit, and every reader of the
/// commit's output.
#[test]
fn a_hanging_program_does_not_delay_git() {
    let repository = Repository::new();
    repository.put("#!/bin/sh\necho mine\nexit 7\n", 0o755);
    repository.set_up();
    let text = "#!/bin/sh\necho \"$@\" > \"$0.stdin.new\"; : > \"$0.stdin\"; echo $$ > \"$0.pid\"\n\
                echo \"$@\" >> \"$0.ran\"\nexec sleep 300\n";
    fs::write(&repository.binary, text).unwrap();
    let began = Instant::now();
    assert_eq!(repository.commit(&[], 1), (7, "mine\n".to_owned(), 1));
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    let id = fs::read_to_string(format!("{}.pid", repository.binary.display())).unwrap();
    assert!(Command::new("kill").arg(id.trim()).status().unwrap().success(), "it was hanging all the while");
}

/// Guards against a former fault: after a repository was moved, its hook stayed and its record was dropped.
#[test]
fn the_hook_of_a_repository_that_was_moved_is_found_or_stays_recorded() {
    let mut repository = Repository::new();
    fs::create_dir(repository.git.common.join("objects")).unwrap();
    fs::write(repository.git.common.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    let hook = "#!/bin/sh";
    repository.put(hook, 0o750);
    repository.set_up();
    let record = repository.home.record();
    assert!(lost(&record, &[]).unwrap().is_empty());

    let (old, new) = (repository.home.path("repo"), repository.home.path("moved"));
    fs::rename(&old, &new).unwrap();
    let ours = fs::read(new.join(".git/hooks/post-commit")).unwrap();
    let found = remove(&record, None, &[], &Keep::default()).unwrap();
    assert_eq!(found.findings.len(), 1, "{found:?}");
    assert!(found.findings[0].found.contains("is gone"), "{found:?}");
    assert!(found.findings[0].mend.contains("where it is now"), "{found:?}");
    assert_eq!(lost(&record, &[]).unwrap().len(), 1);
    assert_eq!(fs::read(new.join(".git/hooks/post-commit")).unwrap(), ours);

    // Another repository is at the former place now.
    fs::create_dir_all(old.join(".git/hooks")).unwrap();
    repository.git = GitPlace {
        hooks: new.join(".git/hooks"),
        common: new.join(".git"),
        work_tree: Some(new.clone()),
        is_tracked: false,
        formerly: vec![old.join(".git")],
    };
    assert!(lost(&record, std::slice::from_ref(&repository.git)).unwrap().is_empty());
    let found = remove(&record, None, std::slice::from_ref(&repository.git), &Keep::default()).unwrap();
    assert_eq!(found.restored, [repository.hook()], "{found:?}");
    assert_eq!(fs::read_to_string(repository.hook()).unwrap(), hook, "to the byte");
    assert!(!record.exists());

    // A deleted hook is not searched for; without a record our lines are recognised by their marks.
    repository.set_up();
    let text = fs::read(repository.hook()).unwrap();
    fs::remove_file(repository.hook()).unwrap();
    assert!(remove(&record, None, &[], &Keep::default()).unwrap().findings.is_empty());
    repository.put(text, 0o755);
    let found = remove(&record, None, std::slice::from_ref(&repository.git), &Keep::default()).unwrap();
    assert_eq!(found.swept, [repository.hook()], "{found:?}");
    assert!(!repository.hook().exists());
}

#[test]
fn another_binary_replaces_the_first_in_one_block() {
    let repository = Repository::new();
    repository.put("#!/bin/sh\necho mine\n", 0o755);
    let before = repository.home.everything();
    repository.set_up();
    let moved = plan(&repository.home.places, Path::new("/new/tiro"), Some(&repository.git), &[]).unwrap();
    apply(&moved.changes, &repository.home.record()).unwrap();
    let text = fs::read_to_string(repository.hook()).unwrap();
    assert_eq!(text.matches("# >>> tiro").count(), 1);
    assert!(text.contains("/new/tiro hook") && !text.contains("bin dir"), "{text}");
    repository.remove();
    assert_eq!(repository.home.everything(), before);
}

#[test]
fn a_hook_that_was_changed_since_loses_only_our_lines() {
    let repository = Repository::new();
    repository.put("#!/bin/sh\necho mine\n", 0o755);
    repository.set_up();
    let text = fs::read_to_string(repository.hook()).unwrap() + "echo later\n";
    repository.put(&text, 0o700);
    assert_eq!(repository.remove().edited.len(), 1);
    assert_eq!(fs::read_to_string(repository.hook()).unwrap(), "#!/bin/sh\necho mine\necho later\n");
    assert_eq!(fs::metadata(repository.hook()).unwrap().permissions().mode() & 0o777, 0o700);
    // Now the hook had only our lines before the user added one.
    let repository = Repository::new();
    repository.set_up();
    repository.put(fs::read_to_string(repository.hook()).unwrap() + "echo later\n", 0o755);
    repository.remove();
    assert_eq!(fs::read_to_string(repository.hook()).unwrap(), "#!/bin/sh\necho later\n");
}

#[test]
fn shared_and_tracked_hooks_are_not_changed() {
    let mut repository = Repository::new();
    let own = repository.git.clone();
    repository.git.hooks = repository.home.path("hooks-of-all");
    assert!(repository.finding().found.contains("out of the repository"));
    assert!(repository.finding().mend.contains("hook git-post-commit"));

    repository.git = GitPlace { is_tracked: true, ..own.clone() };
    repository.put("#!/bin/sh\n", 0o755);
    assert!(repository.finding().found.contains("every clone"));

    repository.git = own;
    fs::rename(repository.hook(), repository.home.path("repo/script")).unwrap();
    symlink("../../script", repository.hook()).unwrap();
    assert!(repository.finding().found.contains("is a link"));
    fs::remove_file(repository.hook()).unwrap();

    repository.put("#!/bin/sh\r\necho mine\r\n", 0o755);
    assert!(repository.finding().found.contains("CR LF"));

    repository.put("#!/bin/sh\n# >>> tiro: `tiro init --remove` takes this out\n", 0o755);
    assert!(repository.finding().found.contains("do not end"));

    repository.put("#!/bin/sh\n", 0o555);
    assert!(repository.finding().found.contains("read-only"));
}

#[test]
fn a_hook_that_is_not_executable_is_reported() {
    let repository = Repository::new();
    repository.set_up();
    repository.put(fs::read(repository.hook()).unwrap(), 0o644);
    assert!(repository.finding().mend.starts_with("chmod +x "));
}
