//! Checks the surroundings of the store: its disk, and the references that hooks left for the next call.

use std::path::Path;

use super::{Finding, failed};
use tiro_base::humanize::counted;
use tiro_base::parallel::beside;
use tiro_base::times;
use tiro_capture::spool::Spool;
use tiro_capture::spool::capture::Scope;
use tiro_files::Confinement;
use tiro_host::engine::Engine;
use tiro_host::project::SeenProject;

/// Names of folders that sync programs use. A sync program copies a database while it is being written, which damages
/// the database.
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

/// Reports whether the data directory is on a disk that suits a database.
pub fn disk(engine: &Engine) -> Finding {
    let what = "disk";
    let folder = &engine.config().data_dir;
    let local = Finding { what, ok: true, found: "local".into(), mend: None };
    let named = |part: &std::ffi::OsStr| SYNCED.iter().any(|name| part.eq_ignore_ascii_case(name));
    if folder.components().any(|part| named(part.as_os_str())) {
        let found =
            "the data directory is in a synced folder: two machines would damage each other's database";
        let mend = "set TIRO_DATA_DIR to a folder that is not synced, and back up to the synced one with `tiro backup`".into();
        return Finding { what, ok: false, found: found.into(), mend: Some(mend) };
    }
    match file_system(existing(folder)) {
        Some(System::Network(name)) => Finding {
            what,
            ok: false,
            found: format!(
                "the data directory is on a network file system ({name}), where SQLite's locks are not reliable"
            ),
            mend: Some("set TIRO_DATA_DIR to a local folder".into()),
        },
        Some(System::Ephemeral(name)) => Finding {
            what,
            ok: true,
            found: format!(
                "the data directory is on {name}: it may be lost when the container or the machine stops"
            ),
            mend: Some("mount a volume there, or set TIRO_DATA_DIR to one".into()),
        },
        None => local,
    }
}

/// Returns `folder`, or its nearest existing ancestor.
pub fn existing(folder: &Path) -> &Path {
    folder.ancestors().find(|above| above.exists()).unwrap_or(folder)
}

#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only Linux reports the file system"))]
enum System {
    Network(&'static str),
    Ephemeral(&'static str),
}

#[cfg(target_os = "linux")]
fn file_system(folder: &Path) -> Option<System> {
    let kind = rustix::fs::statfs(folder).ok()?.f_type as u32;
    // The numbers are from linux/magic.h.
    match kind {
        0x6969 => Some(System::Network("NFS")),
        0x517b | 0xff53_4d42 | 0xfe53_4d42 => Some(System::Network("SMB")),
        0x0102_1997 => Some(System::Network("9p")),
        0x5346_414f => Some(System::Network("AFS")),
        0x00c3_6400 => Some(System::Network("Ceph")),
        0x794c_7630 => Some(System::Ephemeral("an overlay")),
        0x0102_1994 => Some(System::Ephemeral("a disk in memory (tmpfs)")),
        _ => None,
    }
}

#[cfg(not(target_os = "linux"))]
fn file_system(_folder: &Path) -> Option<System> {
    None
}

/// Reports the restrictions on the process that parses documents. They prevent the process from doing anything else.
pub async fn documents(engine: &Engine) -> Finding {
    let what = "documents";
    let extractor = engine.extractor().clone();
    let tried = match beside(move || extractor.attempt()).await {
        Ok(Ok(tried)) => tried,
        Ok(Err(_)) => {
            let found = "the process that parses documents cannot be started, so no text of PDF and office documents is sent";
            let mend =
                "let Tiro start itself once more, for example in the profile of the container".to_owned();
            return Finding { what, ok: false, found: found.into(), mend: Some(mend) };
        }
        Err(error) => return failed(what, &error),
    };
    let Confinement { limits, landlock, seccomp } = tried.confinement;
    let walls = [(limits, "limits on memory and time"), (landlock, "Landlock"), (seccomp, "seccomp")];
    let named = |wanted: bool| {
        let these: Vec<&str> =
            walls.iter().filter(|(holds, _)| *holds == wanted).map(|(_, name)| *name).collect();
        these.join(", ")
    };
    let mut found = match named(true) {
        none if none.is_empty() => "parsed in a process of its own with a limit on time".to_owned(),
        walls => format!("parsed in a process of its own under {walls}"),
    };
    let missing = named(false);
    if cfg!(target_os = "linux") && !missing.is_empty() {
        found += &format!("; this kernel or container lacks {missing}");
    }
    let possible = tried.possible();
    // Only Linux has all restrictions, so on other systems some missing ones are expected.
    let ok = !(seccomp && landlock) || possible.is_empty();
    if !possible.is_empty() {
        found += &format!("; a hostile document could {}", possible.join(", "));
    }
    Finding { what, ok, found, mend: None }
}

/// Reports which projects are captured. Returns `None` if the user never chose.
fn scope(engine: &Engine, spool: &Spool) -> Option<Finding> {
    let (found, mend) = match Scope::chosen(&engine.config().data_dir)? {
        Scope::Machine => ("sessions and commits of every project on this machine", None),
        Scope::Project if spool.is_captured() => {
            ("sessions and commits of this project, which was chosen", None)
        }
        Scope::Project => ("other projects only; this one was not chosen", Some("tiro init".to_owned())),
    };
    Some(Finding { what: "captured", ok: true, found: found.into(), mend })
}

/// Reports how many references of hooks wait for the next call, and whether capture is paused.
pub fn spool(engine: &Engine, project: &SeenProject) -> Vec<Finding> {
    let spool = engine.spool_of(&project.root, project.repository.as_deref());
    let what = "spool";
    if let Some(found) = spool.trouble() {
        let mend = "make yourself its owner, or remove it: hooks create it again".into();
        return vec![Finding { what, ok: false, found, mend: Some(mend) }];
    }
    let found = match spool.waiting() {
        0 => Finding { what, ok: true, found: "empty".into(), mend: None },
        count => Finding {
            what,
            ok: true,
            found: format!("{} for the next call", counted(count, "reference waits", "references wait")),
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
            found: format!("{count} to become readable: {}", troubles.join("; ")),
            mend: Some("make the file readable; Tiro tries again for a week".into()),
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
