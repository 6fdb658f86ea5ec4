//! What `tiro doctor` says of everything around the store: the disk it lies on, clients, hooks, and what they left.

use std::path::Path;

use super::finding::{Finding, failed};
use crate::caller::Caller;
use crate::clients::{self, Client};
use crate::engine::Engine;
use crate::humanize::counted;
use crate::project::SeenProject;
use crate::spool::Spool;
use crate::spool::capture::Scope;
use crate::times;
use crate::tools::operate::init;

/// Folders by whose names programs are known that copy files to other machines while they are written.
const SYNCED: &[&str] = &[
    "Dropbox",
    "OneDrive",
    "Google Drive",
    "GoogleDrive",
    "CloudStorage",
    "Mobile Documents",
    "iCloudDrive",
    "Nextcloud",
    "ownCloud",
    "pCloudDrive",
    "Syncthing",
    "Sync",
    "MEGA",
    "Box Sync",
];

/// Says whether the data directory is where a database can live.
pub fn disk(engine: &Engine) -> Finding {
    let what = "disk";
    let folder = &engine.config().data_dir;
    let local = Finding { what, ok: true, found: "local".into(), mend: None };
    let named = |part: &std::ffi::OsStr| SYNCED.iter().any(|name| part.eq_ignore_ascii_case(name));
    if folder.components().any(|part| named(part.as_os_str())) {
        let found = "the data directory lies in a folder that is synced: two machines would damage each other's database";
        let mend = "set TIRO_DATA_DIR to a folder that isn't, and `tiro backup` to the synced one".into();
        return Finding { what, ok: false, found: found.into(), mend: Some(mend) };
    }
    match file_system(there(folder)) {
        Some(System::Network(name)) => Finding {
            what,
            ok: false,
            found: format!(
                "the data directory is on a network ({name}), where SQLite's locks can't be relied on"
            ),
            mend: Some("set TIRO_DATA_DIR to a local folder".into()),
        },
        Some(System::Ephemeral(name)) => Finding {
            what,
            ok: true,
            found: format!(
                "the data directory is on {name}: it may be gone with the container or the machine"
            ),
            mend: Some("mount a volume there, or set TIRO_DATA_DIR to one".into()),
        },
        None => local,
    }
}

/// Returns `folder`, or the one above it that is there.
pub fn there(folder: &Path) -> &Path {
    folder.ancestors().find(|above| above.exists()).unwrap_or(folder)
}

#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "elsewhere nothing is known"))]
enum System {
    Network(&'static str),
    Ephemeral(&'static str),
}

#[cfg(target_os = "linux")]
fn file_system(folder: &Path) -> Option<System> {
    let kind = rustix::fs::statfs(folder).ok()?.f_type as u32;
    // From linux/magic.h.
    match kind {
        0x6969 => Some(System::Network("NFS")),
        0x517b | 0xff53_4d42 | 0xfe53_4d42 => Some(System::Network("SMB")),
        0x0102_1997 => Some(System::Network("9p")),
        0x5346_414f => Some(System::Network("AFS")),
        0x00c3_6400 => Some(System::Network("Ceph")),
        0x794c_7630 => Some(System::Ephemeral("an overlay")),
        0x0102_1994 => Some(System::Ephemeral("a disk in memory")),
        _ => None,
    }
}

#[cfg(not(target_os = "linux"))]
fn file_system(_folder: &Path) -> Option<System> {
    None
}

/// Says how clients and hooks are set up, a finding for each that differs from what `tiro init` would write.
pub async fn clients(engine: &Engine, caller: &Caller) -> Vec<Finding> {
    let what = "clients and hooks";
    let prepared = match init::prepare(engine, caller, None).await {
        Ok(prepared) => prepared,
        Err(error) => return vec![failed(what, &error)],
    };
    let mut found: Vec<Finding> = Vec::new();
    for client in prepared.plan.found.iter().filter(|client| prepared.plan.is_set_up(**client)) {
        found.push(Finding { what, ok: true, found: format!("{} is set up", client.name()), mend: None });
    }
    let was_set_up = init::was_applied(engine);
    for change in &prepared.plan.changes {
        let state = if was_set_up { "is not as `tiro init` would write it" } else { "is not set up" };
        let name = change.client.name();
        found.push(Finding {
            what,
            // Nobody has to set up anything; who did wants to know what was lost.
            ok: !was_set_up,
            found: format!("{name}: `{}` {state}", crate::error::quoted(change.path.display())),
            mend: Some("tiro init".into()),
        });
    }
    for finding in &prepared.plan.findings {
        found.push(Finding {
            what,
            // A hook is a nudge, and not missed.
            ok: !was_set_up || finding.client == Client::Git,
            found: format!(
                "{}: `{}`: {}",
                finding.client.name(),
                crate::error::quoted(finding.path.display()),
                finding.found
            ),
            mend: Some(finding.mend.clone()),
        });
    }
    // It is no fault: everything works, and costs the agent more tokens.
    match init::twice(engine, &prepared) {
        Err(error) => found.push(failed(what, &error)),
        Ok(twice) => found.extend(twice.iter().map(|finding| beside(what, finding))),
    }
    match init::lost(engine, caller).await {
        Err(error) => found.push(failed(what, &error)),
        // It is no fault: a repository may be gone for good.
        Ok(lost) => found.extend(lost.iter().map(|finding| beside(what, finding))),
    }
    found
}

/// Returns what is no fault of what was set up.
fn beside(what: &'static str, finding: &clients::Finding) -> Finding {
    let clients::Finding { client, path, found, mend } = finding;
    let found = format!("{}: `{}`: {found}", client.name(), crate::error::quoted(path.display()));
    Finding { what, ok: true, found, mend: Some(mend.clone()) }
}

/// Says which projects are captured, where that was chosen.
fn scope(engine: &Engine, spool: &Spool) -> Option<Finding> {
    let (found, mend) = match Scope::chosen(&engine.config().data_dir)? {
        Scope::Machine => ("sessions and commits of every project on this machine", None),
        Scope::Project if spool.is_captured() => {
            ("sessions and commits of this project, which was chosen", None)
        }
        Scope::Project => ("not of this project: others were chosen", Some("tiro init".to_owned())),
    };
    Some(Finding { what: "captured", ok: true, found: found.into(), mend })
}

/// Says what hooks left that no call has followed, and whether capture is paused.
pub fn spool(engine: &Engine, project: &SeenProject) -> Vec<Finding> {
    let spool = engine.spool_of(&project.root, project.repository.as_deref());
    let what = "spool";
    if let Some(found) = spool.trouble() {
        let mend = "make it a folder of yours, or remove it: hooks make it anew".into();
        return vec![Finding { what, ok: false, found, mend: Some(mend) }];
    }
    let found = match spool.waiting() {
        0 => Finding { what, ok: true, found: "empty".into(), mend: None },
        count => Finding {
            what,
            ok: true,
            found: format!(
                "{}, followed by the next call",
                counted(count, "reference waits", "references wait")
            ),
            mend: Some("tiro sessions".into()),
        },
    };
    let mut found = vec![found];
    let troubles = spool.troubles();
    if !troubles.is_empty() {
        let count = counted(troubles.len(), "transcript waits", "transcripts wait");
        found.push(Finding {
            what,
            ok: false,
            found: format!("{count} until it can be read: {}", troubles.join("; ")),
            mend: Some("make it readable; it is tried again for a week".into()),
        });
    }
    found.extend(scope(engine, &spool));
    for (spool, place, mend) in [
        (spool, "in this project", "tiro resume"),
        (Spool::everywhere(&engine.config().data_dir), "in all projects", "tiro resume --all"),
    ] {
        if let Some((since, _)) = spool.pauses().last().filter(|_| spool.is_paused()) {
            let since = times::show_time(*since);
            let found_text = format!("capture is paused {place} since {since}");
            found.push(Finding { what: "capture", ok: true, found: found_text, mend: Some(mend.into()) });
        }
    }
    found
}
