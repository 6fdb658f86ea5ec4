//! Sets up git's post-commit hook, which reports a new commit to Tiro at once.
//!
//! Our lines are a marked block right after the script's first line. At the end of the script they might never run,
//! because scripts of other tools may end in `exit` or `exec`. The block doesn't touch the script's stdin and exit
//! code, and runs in the background.
//!
//! A hook is not changed if it is not a shell script, or if another program reads the script: such a hook may depend on
//! its own bytes, its path, or files next to it. Hooks that other repositories share, or that are part of the
//! repository, are not changed either. Without the hook nothing is lost, because the next call finds new commits
//! itself.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Change, Client, Finding, GitPlace, Plan, Setup, quoted, unquoted};
use tiro_base::error::{Error, Result};
use tiro_base::file::user_file::{self, Bytes, FileSnapshot};

const NAME: &str = "post-commit";

const BEGIN: &str = "# >>> tiro: `tiro init --remove` takes this out";
const END: &str = "# <<< tiro";

/// Programs that run a hook as a shell script.
const SHELLS: &[&str] = &["sh", "bash", "dash", "ash", "ksh", "mksh", "zsh"];

/// Commands with which a script passes itself to another program.
const READERS: &[&str] = &["exec", "tail"];

/// Adds the changes for git to `plan`.
pub fn plan(setup: &Setup<'_>, project: &GitPlace, plan: &mut Plan) {
    let path = project.hooks.join(NAME);
    match change(setup, project, &path) {
        Ok(change) => plan.changes.extend(change),
        Err(error) => plan.findings.push(Finding::new(Client::Git, &path, &error)),
    }
}

fn change(setup: &Setup<'_>, project: &GitPlace, path: &Path) -> Result<Option<Change>> {
    let by_hand = |found: &str| {
        Error::bad_input(found)
            .hint(format!("add this line yourself after the hook's first line: {}", line(setup)))
    };
    let owned = [Some(&project.common), project.work_tree.as_ref()];
    if !owned.into_iter().flatten().any(|dir| is_beneath(path, dir)) {
        return Err(by_hand(
            "`core.hooksPath` leads out of the repository: other repositories share this hook",
        ));
    }
    let is_link = path.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink());
    let target = user_file::look(path)?;
    let reason = "notifies Tiro of new commits; your hook runs as before".to_owned();
    let change =
        |before, after| Some(Change { client: Client::Git, path: path.to_owned(), before, after, reason });
    let Some(now) = target.state else {
        return Ok(change(None, executable(format!("#!/bin/sh\n{}", block(setup)))));
    };
    let text = std::str::from_utf8(&now.bytes.0).ok().filter(|text| is_shell_script(text));
    let Some(text) = text.filter(|text| !is_read_by_another(text)) else {
        let called = call(setup);
        return Err(Error::bad_input(
            "it is not a plain shell script, and might not work with our lines in it or at another path",
        )
        .hint(format!(
            "nothing has to be done, because the next call finds new commits; to report them at once, let the hook run {called}"
        )));
    };
    if !is_executable(&now) {
        let found = match text.contains(BEGIN) {
            true => "it holds our lines but is not executable, so git ignores it",
            false => "it is not executable, so git ignores it, and our lines would do nothing in it",
        };
        return Err(Error::bad_input(found).hint(format!(
            "chmod +x {}, or remove it, then run `tiro init` again",
            quoted(&path.display().to_string())
        )));
    }
    let after = FileSnapshot { bytes: Bytes(with_block(text, &block(setup))?.into_bytes()), mode: now.mode };
    if after == now {
        return Ok(None);
    }
    if project.is_tracked {
        return Err(by_hand("the hook is part of the repository, so every clone would get our lines"));
    }
    if is_link {
        return Err(by_hand(&format!(
            "it is a link to `{}`, which others may use too",
            tiro_base::error::quoted(target.path.display())
        )));
    }
    if text.contains("\r\n") {
        return Err(by_hand("its lines end with CR LF, and shells read the CR as part of a command"));
    }
    user_file::check(
        path,
        &user_file::Target { path: path.to_owned(), state: Some(now.clone()) },
        &project.common,
    )?;
    Ok(change(Some(now), after))
}

/// Returns `text` without our lines, or `None` if we wrote the whole hook and nothing else is in it.
pub fn without(text: &str) -> Result<Option<String>> {
    let left = match find_block(text)? {
        Some(range) => format!("{}{}", &text[..range.start], &text[range.end..]),
        None => text.to_owned(),
    };
    let is_empty = left.strip_prefix("#!/bin/sh").unwrap_or(&left).trim().is_empty();
    Ok((!is_empty).then_some(left))
}

/// Returns the path of the repository's hook if it contains our lines. Returns `None` for a hook that is part of the
/// repository or lies outside of it.
pub fn own(project: &GitPlace) -> Option<PathBuf> {
    let path = project.hooks.join(NAME);
    let owned = [Some(&project.common), project.work_tree.as_ref()];
    let is_own = !project.is_tracked && owned.into_iter().flatten().any(|dir| is_beneath(&path, dir));
    (is_own && holds_ours(&path)).then_some(path)
}

/// Returns where the hook that was written at `path` is now. Returns `None` if the hook's repository is no longer at
/// its former path and is not one of `repositories` either.
pub fn current_path(path: &Path, repositories: &[GitPlace]) -> Option<PathBuf> {
    if holds_ours(path) {
        return Some(path.to_owned());
    }
    let moved = repositories.iter().find_map(|repository| {
        let beneath = |old: &Path, new: &Path| Some(new.join(path.strip_prefix(old).ok()?));
        let places = repository.formerly.iter().flat_map(|common| {
            let root = common.parent().filter(|_| common.ends_with(".git"));
            let work_tree = root.zip(repository.work_tree.as_deref());
            [beneath(common, &repository.common), work_tree.and_then(|(old, new)| beneath(old, new))]
        });
        places.flatten().find(|place| holds_ours(place))
    });
    // Returns whether a repository is still there, that is, whether the directory of hooks, its parent or its
    // grandparent is a git directory or the root of a work tree.
    let stands = || {
        path.ancestors().skip(1).take(3).any(|dir| {
            dir.join(".git").exists() || (dir.join("HEAD").exists() && dir.join("objects").exists())
        })
    };
    moved.or_else(|| stands().then(|| path.to_owned()))
}

fn holds_ours(path: &Path) -> bool {
    let now = user_file::look(path).ok().and_then(|target| target.state);
    now.is_some_and(|now| String::from_utf8_lossy(&now.bytes.0).contains(BEGIN))
}

/// Returns the program that our lines in `text` run.
pub fn program(text: &str) -> Option<String> {
    let lines = &text[find_block(text).ok().flatten()?];
    let (_, rest) = lines.split_once("[ -x ")?;
    unquoted(rest.split_once(" ] && ")?.0)
}

fn block(setup: &Setup<'_>) -> String {
    format!("{BEGIN}\n{}\n{END}\n", line(setup))
}

/// Returns the line of the hook that runs Tiro. The line does nothing in CI or if the program is gone. Otherwise
/// it runs Tiro in the background, without the script's stdin, without output, and without an effect on the exit
/// code.
fn line(setup: &Setup<'_>) -> String {
    let binary = quoted(setup.binary);
    format!("[ -z \"${{CI-}}\" ] && [ -x {binary} ] && ({} &) || :", call(setup))
}

/// Returns the command that runs Tiro. The command closes every file descriptor that a shell can name, except stdin,
/// stdout and stderr, which it redirects to `/dev/null`.
fn call(setup: &Setup<'_>) -> String {
    let others: String = (3..=9).map(|number| format!(" {number}>&-")).collect();
    format!("{} hook git-post-commit </dev/null >/dev/null 2>&1{others}", quoted(setup.binary))
}

/// Returns `text` with `block` in place of an older block. If there is no older block, `block` is put at the beginning,
/// after the `#!` line if there is one.
fn with_block(text: &str, block: &str) -> Result<String> {
    let range = match find_block(text)? {
        Some(range) => range,
        None if text.starts_with("#!") => {
            let Some(end) = text.find('\n') else { return Ok(format!("{text}\n{block}")) };
            end + 1..end + 1
        }
        None => 0..0,
    };
    Ok(format!("{}{block}{}", &text[..range.start], &text[range.end..]))
}

/// Returns the range of our lines in `text`.
fn find_block(text: &str) -> Result<Option<std::ops::Range<usize>>> {
    let Some(start) = text.find(BEGIN) else { return Ok(None) };
    let Some(end) = text[start..].find(END).map(|at| start + at + END.len()) else {
        return Err(Error::bad_input(format!("our lines begin with `{BEGIN}` but do not end"))
            .hint(format!("remove them, or add a line `{END}` after them")));
    };
    let end = end + usize::from(text[end..].starts_with('\n'));
    Ok(Some(start..end))
}

/// Returns whether git runs `text` with a shell: its `#!` line names a shell, or it has no `#!` line.
fn is_shell_script(text: &str) -> bool {
    if text.contains('\0') {
        return false;
    }
    let Some(first) = text.strip_prefix("#!").map(|rest| rest.lines().next().unwrap_or_default()) else {
        return true;
    };
    let name = |word: &str| word.rsplit('/').next().unwrap_or_default().to_owned();
    let mut words = first.split_whitespace().map(name);
    let program = match words.next() {
        Some(env) if env == "env" => words.find(|word| !word.starts_with('-') && !word.contains('=')),
        program => program,
    };
    program.is_some_and(|program| SHELLS.contains(&program.as_str()))
}

/// Returns whether a shell script passes itself to another program, for example because the rest of the script is
/// Python code or an archive. That program would read our lines too.
fn is_read_by_another(text: &str) -> bool {
    let reads = |line: &str| line.contains("$0") && READERS.iter().any(|reader| line.contains(reader));
    text.lines().any(|line| reads(line) && !line.contains("dirname"))
}

fn executable(text: String) -> FileSnapshot {
    FileSnapshot { bytes: Bytes(text.into_bytes()), mode: if cfg!(unix) { 0o755 } else { 0 } }
}

/// Returns whether git runs the file. Outside Unix, git runs any file.
fn is_executable(state: &FileSnapshot) -> bool {
    !cfg!(unix) || state.mode & 0o111 != 0
}

/// Returns whether `path` is below `dir` after links are resolved. `path` need not exist.
fn is_beneath(path: &Path, dir: &Path) -> bool {
    let real = path.ancestors().skip(1).find_map(|above| fs::canonicalize(above).ok());
    match (real, fs::canonicalize(dir)) {
        (Some(real), Ok(dir)) => real.starts_with(dir),
        _ => false,
    }
}
