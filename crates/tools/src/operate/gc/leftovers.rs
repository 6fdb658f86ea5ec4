//! Removes unfinished files of killed processes: in the data directory, beside files of clients, and in the repository.
//! A file stays if a running process holds it or if it is younger than an hour.

use std::fs;
use std::path::{Path, PathBuf};

use crate::operate::backup::restore_everything;
use tiro_base::file::unfinished;
use tiro_base::file::user_file::TEMPORARY;
use tiro_capture::clients::Client;
use tiro_git::Repository;
use tiro_host::engine::Engine;
use tiro_host::project::OpenProject;

/// Removes the unfinished files of killed processes. Returns the number of files and folders. If `dry_run` is true,
/// only counts them.
pub fn remove(engine: &Engine, project: &OpenProject, dry_run: bool) -> usize {
    let config = engine.config();
    let mut count = if dry_run { 0 } else { restore_everything::clean(&config.data_dir) };
    let is_part = |name: &str| name.ends_with(unfinished::UNFINISHED) || name.contains(".part-");
    let is_begun = |name: &str| name.starts_with(".unfinished-");
    let is_temporary = |name: &str| {
        name.strip_prefix(TEMPORARY).is_some_and(|rest| rest.len() == 6 || rest.starts_with("project-id"))
    };
    let mut clear = |folder: &Path, is_ours: &dyn Fn(&str) -> bool| {
        count += match dry_run {
            true => unfinished::abandoned(folder, is_ours).len(),
            false => unfinished::remove_abandoned(folder, is_ours),
        };
    };
    clear(&config.data_dir, &is_part);
    clear(&config.data_dir.join("owner.db.backups"), &is_part);
    for store in folders(&config.data_dir.join("projects")) {
        clear(&store, &is_part);
        clear(&store.join("tiro.db.backups"), &is_part);
    }
    clear(&config.data_dir.join("looks"), &is_begun);
    for spool in folders(&config.data_dir.join("spool")) {
        clear(&spool, &is_begun);
    }
    let in_project = Client::AGENTS.into_iter().filter_map(Client::project_folder).chain(["."]);
    let mut beside: Vec<PathBuf> = in_project.map(|name| project.root.join(name)).collect();
    beside.extend(config.sources.file.as_deref().and_then(Path::parent).map(Path::to_owned));
    if let Some(clients) = &config.clients {
        beside.push(clients.home.clone());
        beside.extend(Client::AGENTS.into_iter().filter_map(|client| clients.folder(client)));
    }
    if let Some(git) = project.repository.as_deref().map(Repository::common_dir) {
        beside.extend([git.join("hooks"), git]);
    }
    for folder in beside {
        clear(&folder, &is_temporary);
    }
    count
}

/// Returns the folders in `folder`. Links are not followed.
fn folders(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_type().is_ok_and(|it| it.is_dir())).map(|entry| entry.path()).collect()
}
