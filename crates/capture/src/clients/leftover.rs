//! Removes our entries when there is no record, for example after the data directory was lost or the record was
//! moved.
//!
//! The former content of the files is unknown. So only entries that no other program writes are removed: our marked
//! lines in a hook, hooks that run this program, and a server `tiro` with exactly the settings that we write. A server
//! that a user configured by hand stays.

use std::fs;
use std::path::{Path, PathBuf};

use super::record::{Removed, needed};
use super::servers::{self, Server};
use super::{Client, Finding, GitPlace, Keep, Places, SERVE, TOOL_TIMEOUT, git_hook, mcp, without};
use tiro_base::error::{Error, Result};
use tiro_base::file::user_file::{self, Bytes, FileSnapshot};

/// Removes our entries from the files of all clients and of `repositories`, except from files in the record, and adds
/// the result to `removed`.
pub fn remove(places: Option<&Places>, repositories: &[GitPlace], keep: &Keep, removed: &mut Removed) {
    let mut files: Vec<(Client, PathBuf, &Path)> = Vec::new();
    if let Some(places) = places {
        // The files are handled in reverse order, because the last file shows whether the other files belong to a
        // plugin.
        files.extend(
            places.files().into_iter().rev().map(|(client, path)| (client, path, places.home.as_path())),
        );
    }
    if let Some(places) = places {
        let roots = repositories.iter().filter_map(|repository| repository.work_tree.as_deref());
        let servers = mcp::files(places, roots).into_iter();
        files.extend(servers.map(|(client, path)| (Client::Mcp(client), path, places.home.as_path())));
    }
    for repository in repositories {
        files.extend(git_hook::own(repository).map(|path| (Client::Git, path, repository.common.as_path())));
    }
    files.retain(|(client, path, _)| {
        let is_kept = keep.keeps(*client, path);
        if is_kept && *client == Client::Git && !removed.kept.contains(path) {
            removed.kept.push(path.clone());
        }
        !is_kept && !removed.recorded.contains(path)
    });
    for (client, path, home) in files {
        if path.exists() && client.agent().is_some_and(|agent| agent.is_needed(&path)) {
            removed.notes.push(needed(&path));
            continue;
        }
        match remove_entries(client, &path, home) {
            Ok(true) => removed.swept.push(path),
            Ok(false) => {}
            Err(error) => removed.findings.push(Finding::new(client, &path, &error)),
        }
    }
    if let Some(places) = places.filter(|_| !keep.clients) {
        let agents = Client::AGENTS.into_iter().filter_map(Client::agent);
        for folder in agents.flat_map(|agent| agent.made(places)) {
            // This fails if the user put something into the folder, which then stays.
            let _ = fs::remove_dir(folder);
        }
    }
}

/// Removes our entries from the file at `path`; returns whether there were any.
fn remove_entries(client: Client, path: &Path, home: &Path) -> Result<bool> {
    let target = user_file::look(path)?;
    let Some(now) = &target.state else { return Ok(false) };
    let text = std::str::from_utf8(&now.bytes.0)
        .map_err(|error| Error::bad_input("it is not UTF-8").source(error))?;
    // If the user configured the server, the current text is passed as the former text, so that the server is kept.
    let is_theirs = match client {
        Client::Mcp(client) => !client.is_certainly_ours(text),
        _ => {
            let server = servers::in_text(path, text).into_iter().find(|server| server.name == "tiro");
            server.is_some_and(|server| !is_ours(path, &server))
        }
    };
    let before = is_theirs.then_some(text);
    let left = match without(client, path, text, before, None) {
        // An invalid file is no failure if it contains none of our entries.
        Err(_) if !text.contains("tiro") => return Ok(false),
        left => left?,
    };
    if left.as_deref() == Some(text) || text.trim().is_empty() || text.trim() == "{}" {
        return Ok(false);
    }
    user_file::check(path, &target, home)?;
    match left {
        Some(left) => user_file::replace(
            &target.path,
            &FileSnapshot { bytes: Bytes(left.into_bytes()), mode: now.mode },
        )?,
        None => user_file::delete(&target.path)?,
    }
    Ok(true)
}

fn is_plugin(path: &Path) -> bool {
    path.ancestors().nth(2).is_some_and(|folder| folder.ends_with("skills"))
}

/// Returns whether the current or an earlier version of Tiro wrote these settings. They consist of the full path of the
/// program, and of either our timeout or the toolsets of earlier versions.
fn is_ours(path: &Path, Server { words, timeout, .. }: &Server) -> bool {
    let Some((command, arguments)) = words.split_first() else { return false };
    let program = Path::new(command);
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    // Clients count in seconds or in milliseconds. The plugin's server sets no timeout. It counts as having our timeout,
    // because everything in the plugin is ours.
    let ours = [i64::from(TOOL_TIMEOUT), i64::from(TOOL_TIMEOUT) * 1000];
    let has_our_timeout = timeout.is_some_and(|timeout| ours.contains(&timeout)) || is_plugin(path);
    let is_started_so = match arguments {
        [serve] => serve == SERVE[0] && has_our_timeout,
        [serve, toolsets, _] => serve == SERVE[0] && toolsets == "--toolsets",
        _ => false,
    };
    program.is_absolute() && name.starts_with("tiro") && is_started_so
}
