#![cfg(unix)]
#![expect(clippy::disallowed_methods, reason = "a hook is proved by running it")]

use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Command, Stdio};

use super::*;

/// A repository as the hook sees it, and a binary that tells that it ran.
struct Repository {
    home: Home,
    git: GitPlace,
    binary: PathBuf,
}

impl Repository {
    fn new() -> Repository {
        let home = Home::new();
        for client in [&home.places.claude_code, &home.places.codex, &home.places.gemini] {
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
        plan(&self.home.places, &self.binary, TOOLSETS, Some(&self.git)).unwrap()
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

    /// Runs the hook as git does; returns exit code, output, and how often we ran.
    fn commit(&self, variables: &[(&str, &str)]) -> (i32, String, usize) {
        let mut child = Command::new(self.hook())
            .env_remove("CI")
            .envs(variables.iter().copied())
            .current_dir(self.home.path("repo"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // A hook may end without reading.
        let _ = child.stdin.take().unwrap().write_all(b"from git\n");
        let output = child.wait_with_output().unwrap();
        let ran = fs::read_to_string(format!("{}.ran", self.binary.display())).unwrap_or_default();
        assert!(ran.lines().all(|line| line == "hook git-post-commit"), "{ran}");
        if !ran.is_empty() {
            let stdin = fs::read_to_string(format!("{}.stdin", self.binary.display())).unwrap();
            assert_eq!(stdin, "", "stdin is the other hook's");
        }
        (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap(), ran.lines().count())
    }

    fn remove(&self) -> Removed {
        // What the hook wrote when it ran is none of ours.
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
fn without_a_hook_ours_is_written_and_leaves_no_trace() {
    let repository = Repository::new();
    fs::remove_dir(&repository.git.hooks).unwrap();
    let before = repository.home.everything();
    repository.set_up();
    assert_eq!(repository.commit(&[]), (0, String::new(), 1));
    assert_eq!(repository.commit(&[("CI", "true")]), (0, String::new(), 1), "nothing in CI");
    fs::rename(&repository.binary, repository.binary.with_extension("away")).unwrap();
    assert_eq!(repository.commit(&[]), (0, String::new(), 1), "a binary that is gone is no error");
    fs::rename(repository.binary.with_extension("away"), &repository.binary).unwrap();
    repository.remove();
    assert_eq!(repository.home.everything(), before);
}

#[test]
fn a_script_keeps_its_exit_code_stdin_and_bytes_and_ours_runs_whatever_it_does() {
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
        assert_eq!(repository.commit(&[]), (code, says.to_owned(), 1), "{script}");
        assert_eq!(repository.commit(&[("CI", "1")]), (code, says.to_owned(), 1), "{script}");
        repository.remove();
        assert_eq!(repository.home.everything(), before, "{script}");
    }
}

#[test]
fn a_script_without_a_first_line_for_the_shell_is_one_too() {
    let repository = Repository::new();
    repository.put("echo mine\n", 0o755);
    repository.set_up();
    let text = fs::read_to_string(repository.hook()).unwrap();
    assert!(text.starts_with("# >>> tiro") && text.ends_with("\necho mine\n"), "{text}");
}

#[test]
fn what_is_no_shell_script_is_kept_and_called_by_its_own_name() {
    let repository = Repository::new();
    let hook = "#!/usr/bin/env python3\nimport sys, os\nprint(os.path.basename(sys.argv[0]), sys.stdin.read().strip())\nsys.exit(4)\n";
    repository.put(hook, 0o711);
    let before = repository.home.everything();
    repository.set_up();
    assert_eq!(repository.commit(&[]), (4, "post-commit from git\n".to_owned(), 1));
    assert_eq!(repository.commit(&[("CI", "1")]), (4, "post-commit from git\n".to_owned(), 1));
    repository.remove();
    assert_eq!(repository.home.everything(), before);

    repository.put(b"\x7fELF\0\xff", 0o755);
    let before = repository.home.everything();
    repository.set_up();
    repository.remove();
    assert_eq!(repository.home.everything(), before);
}

#[test]
fn a_kept_hook_that_was_changed_comes_back_as_it_is_now() {
    let repository = Repository::new();
    repository.put("#!/usr/bin/env python3\n1\n", 0o755);
    repository.set_up();
    let kept = repository.git.hooks.join("tiro-kept/post-commit");
    fs::write(&kept, "#!/usr/bin/env python3\n2\n").unwrap();
    repository.remove();
    assert_eq!(fs::read_to_string(repository.hook()).unwrap(), "#!/usr/bin/env python3\n2\n");
    assert!(!kept.parent().unwrap().exists());
}

#[test]
fn a_script_that_took_the_place_of_ours_is_not_replaced_by_the_kept_hook() {
    let repository = Repository::new();
    repository.put("#!/usr/bin/env python3\n1\n", 0o755);
    repository.set_up();
    repository.put("#!/bin/sh\necho new\n", 0o755);
    repository.set_up();
    repository.remove();
    assert_eq!(fs::read_to_string(repository.hook()).unwrap(), "#!/bin/sh\necho new\n");
    let kept = repository.git.hooks.join("tiro-kept/post-commit");
    assert_eq!(fs::read_to_string(kept).unwrap(), "#!/usr/bin/env python3\n1\n", "nothing of theirs is lost");
}

#[test]
fn a_kept_hook_stays_while_it_is_called() {
    let repository = Repository::new();
    repository.put("#!/usr/bin/env python3\nprint('kept')\n", 0o755);
    repository.set_up();
    let text =
        fs::read_to_string(repository.hook()).unwrap().replace("# <<< tiro\n", "# <<< tiro\necho mine\n");
    fs::write(repository.hook(), text).unwrap();
    repository.remove();
    assert_eq!(repository.commit(&[]), (0, "mine\nkept\n".to_owned(), 0));
}

#[test]
fn a_hook_that_git_ignores_does_not_become_active() {
    for script in ["#!/bin/sh\necho never\n", "#!/usr/bin/env python3\nprint('never')\n"] {
        let repository = Repository::new();
        repository.put(script, 0o644);
        let before = repository.home.everything();
        repository.set_up();
        assert_eq!(repository.commit(&[]), (0, String::new(), 1));
        repository.remove();
        assert_eq!(repository.home.everything(), before);
    }
}

#[test]
fn another_binary_takes_the_place_of_the_first_in_one_block() {
    let repository = Repository::new();
    repository.put("#!/bin/sh\necho mine\n", 0o755);
    let before = repository.home.everything();
    repository.set_up();
    let moved =
        plan(&repository.home.places, Path::new("/new/tiro"), TOOLSETS, Some(&repository.git)).unwrap();
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
    // The same for one that was ours alone.
    let repository = Repository::new();
    repository.set_up();
    repository.put(fs::read_to_string(repository.hook()).unwrap() + "echo later\n", 0o755);
    repository.remove();
    assert_eq!(fs::read_to_string(repository.hook()).unwrap(), "#!/bin/sh\necho later\n");
}

#[test]
fn hooks_that_are_not_the_repositorys_own_are_left_alone() {
    let mut repository = Repository::new();
    let own = repository.git.clone();
    repository.git.hooks = repository.home.path("hooks-of-all");
    assert!(repository.finding().found.contains("out of the repository"));
    assert!(repository.finding().mend.contains("hook git-post-commit"));

    repository.git = GitPlace { is_tracked: true, ..own.clone() };
    repository.put("#!/bin/sh\n", 0o755);
    assert!(repository.finding().found.contains("everybody"));

    repository.git = own;
    fs::rename(repository.hook(), repository.home.path("repo/script")).unwrap();
    symlink("../../script", repository.hook()).unwrap();
    assert!(repository.finding().found.contains("is a link"));
    fs::remove_file(repository.hook()).unwrap();

    repository.put("#!/bin/sh\r\necho mine\r\n", 0o755);
    assert!(repository.finding().found.contains("Windows"));

    repository.put("#!/bin/sh\n# >>> tiro: `tiro init --remove` takes this out\n", 0o755);
    assert!(repository.finding().found.contains("do not end"));

    repository.put("#!/bin/sh\n", 0o555);
    assert!(repository.finding().found.contains("read-only"));
}

#[test]
fn our_hook_without_the_right_to_run_is_reported() {
    let repository = Repository::new();
    repository.set_up();
    repository.put(fs::read(repository.hook()).unwrap(), 0o644);
    assert!(repository.finding().mend.starts_with("chmod +x "));
}
