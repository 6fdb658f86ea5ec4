//! Git's post-commit hook: a nudge that there is something to import.
//!
//! A shell script gets a marked block right behind its first line, since scripts of other tools end in `exit` or
//! `exec`; the block leaves stdin and the exit code to them. What is no shell script, or would not be run by git, is
//! kept beside under its own name, by which some tools know what they are to do, and ours hands over to it. Hooks
//! that other repositories share, or that everybody gets with the repository, are not ours to change.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use super::file::{self, Bytes, State};
use super::{Change, Client, Finding, GitPlace, Plan, Setup, quoted};
use crate::error::{Error, Result};

const NAME: &str = "post-commit";

/// The directory of hooks that ours hand over to.
const KEPT: &str = "tiro-kept";

const BEGIN: &str = "# >>> tiro: `tiro init --remove` takes this out";
const END: &str = "# <<< tiro";

/// What runs a hook that is a shell script.
const SHELLS: &[&str] = &["sh", "bash", "dash", "ash", "ksh", "mksh", "zsh"];

/// Adds what git needs to `plan`.
pub fn plan(setup: &Setup<'_>, project: &GitPlace, plan: &mut Plan) {
    let path = project.hooks.join(NAME);
    match changes(setup, project, &path) {
        Ok(changes) => plan.changes.extend(changes),
        Err(error) => plan.findings.push(Finding::new(Client::Git, &path, &error)),
    }
}

fn changes(setup: &Setup<'_>, project: &GitPlace, path: &Path) -> Result<Vec<Change>> {
    let by_hand = |found: &str| {
        Error::bad_input(found)
            .hint(format!("add this to it yourself, behind its first line: {}", line(setup)))
    };
    let owned = [Some(&project.common), project.work_tree.as_ref()];
    if !owned.into_iter().flatten().any(|dir| is_beneath(path, dir)) {
        return Err(by_hand(
            "`core.hooksPath` leads out of the repository: other repositories share this hook",
        ));
    }
    let is_link = path.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink());
    let place = file::look(path)?;
    let reason = "tells Tiro that there is a commit to remember; your hook runs as before";
    let change = |path: PathBuf, before, after| Change {
        client: Client::Git,
        path,
        before,
        after,
        reason: reason.to_owned(),
    };
    let Some(now) = place.now else {
        let script = format!("#!/bin/sh\n{}", block(setup));
        return Ok(vec![change(path.to_owned(), None, executable(script))]);
    };
    let text = std::str::from_utf8(&now.bytes.0).ok().filter(|text| is_shell_script(text));
    let after = match text {
        Some(text) if is_executable(&now) => {
            let text = with_block(text, &block(setup))?;
            State { bytes: Bytes(text.into_bytes()), mode: now.mode }
        }
        Some(text) if text.contains(BEGIN) => {
            return Err(Error::bad_input("it holds our lines but is not executable, so git ignores it")
                .hint(format!("chmod +x {}", quoted(&path.display().to_string()))));
        }
        _ => executable(format!("#!/bin/sh\n{}{HAND_OVER}", block(setup))),
    };
    if after == now {
        return Ok(Vec::new());
    }
    if project.is_tracked {
        return Err(by_hand("the hook is part of the repository: everybody would get what is written there"));
    }
    if is_link {
        return Err(by_hand(&format!(
            "it is a link to `{}`, which may serve others",
            place.target.display()
        )));
    }
    if text.is_some_and(|text| text.contains("\r\n")) && is_executable(&now) {
        return Err(by_hand("its lines end as on Windows, which shells take for part of a command"));
    }
    file::check(path, &file::Place { target: path.to_owned(), now: Some(now.clone()) }, &project.common)?;
    let mut changes = Vec::new();
    if text.is_none() || !is_executable(&now) {
        let kept = project.hooks.join(KEPT).join(NAME);
        if let Some(other) = file::look(&kept)?.now.filter(|other| *other != now) {
            return Err(Error::bad_input(format!(
                "`{}` keeps another hook of {} bytes already",
                kept.display(),
                other.bytes.0.len()
            ))
            .hint("move one of the two away, then run `tiro init` again"));
        }
        if file::look(&kept)?.now.is_none() {
            changes.push(change(kept, None, now.clone()));
        }
    }
    changes.push(change(path.to_owned(), Some(now), after));
    Ok(changes)
}

/// Returns `text` without our lines, or `None` for what we kept or wrote whole.
pub fn without(path: &Path, text: &str) -> Result<Option<String>> {
    if is_kept(path) {
        return Ok(None);
    }
    let left = match find_block(text)? {
        Some(range) => format!("{}{}", &text[..range.start], &text[range.end..]),
        None => text.to_owned(),
    };
    let is_empty = left.strip_prefix("#!/bin/sh").unwrap_or(&left).trim().is_empty();
    Ok((!is_empty).then_some(left))
}

/// Returns the hook that `hook`, which is at `path`, hands over to: it may have been changed since it was kept, and is
/// what comes back.
pub fn kept(path: &Path, hook: &State) -> Option<State> {
    let is_ours = String::from_utf8_lossy(&hook.bytes.0).contains(HAND_OVER);
    if is_ours { file::look(&path.parent()?.join(KEPT).join(NAME)).ok()?.now } else { None }
}

/// Returns whether `kept`, at `path`, is a hook that we keep and that did not come back: the one in its place still
/// hands over to it, or is another.
pub fn is_needed(path: &Path, kept: &State) -> bool {
    let hook = || file::look(&path.parent()?.parent()?.join(NAME)).ok()?.now;
    is_kept(path) && hook().is_none_or(|hook| hook.bytes != kept.bytes)
}

fn is_kept(path: &Path) -> bool {
    path.parent().and_then(Path::file_name) == Some(OsStr::new(KEPT))
}

/// Hands over to the kept hook as git would have called it: not at all, if it is not executable.
const HAND_OVER: &str = "kept=\"$(dirname \"$0\")/tiro-kept/post-commit\"\n\
     [ -x \"$kept\" ] || exit 0\n\
     exec \"$kept\" \"$@\"\n";

fn block(setup: &Setup<'_>) -> String {
    format!("{BEGIN}\n{}\n{END}\n", line(setup))
}

/// Returns the line that calls us: not in CI, without the script's stdin, with nothing to say and no exit code.
fn line(setup: &Setup<'_>) -> String {
    let binary = quoted(setup.binary);
    format!(
        "[ -z \"${{CI-}}\" ] && [ -x {binary} ] && {binary} hook git-post-commit </dev/null >/dev/null 2>&1 || :"
    )
}

/// Returns `text` with `block` in the place of an older one, else behind the first line if that names the shell.
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

/// Returns where our lines are in `text`.
fn find_block(text: &str) -> Result<Option<std::ops::Range<usize>>> {
    let Some(start) = text.find(BEGIN) else { return Ok(None) };
    let Some(end) = text[start..].find(END).map(|at| start + at + END.len()) else {
        return Err(Error::bad_input(format!("our lines begin with `{BEGIN}` but do not end"))
            .hint(format!("remove them, or add a line `{END}` behind them")));
    };
    let end = end + usize::from(text[end..].starts_with('\n'));
    Ok(Some(start..end))
}

/// Returns whether git would have a shell run `text`: named in the first line, or for want of one.
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

fn executable(text: String) -> State {
    State { bytes: Bytes(text.into_bytes()), mode: if cfg!(unix) { 0o755 } else { 0 } }
}

/// Returns whether git would run it; everywhere but on Unix it runs what is there.
fn is_executable(state: &State) -> bool {
    !cfg!(unix) || state.mode & 0o111 != 0
}

/// Returns whether `path`, which may not exist yet, is beneath `dir`, through links.
fn is_beneath(path: &Path, dir: &Path) -> bool {
    let real = path.ancestors().skip(1).find_map(|above| fs::canonicalize(above).ok());
    match (real, fs::canonicalize(dir)) {
        (Some(real), Ok(dir)) => real.starts_with(dir),
        _ => false,
    }
}
