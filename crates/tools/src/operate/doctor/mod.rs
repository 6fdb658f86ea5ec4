//! Checks the installation and reports how to repair each fault.

mod clients;
mod programs;
mod server;
mod surroundings;

use std::io::Write;
use std::path::Path;

use serde::Serialize;

use crate::common;
use crate::operate::init;
use tiro_base::envelope;
use tiro_base::error::{Error, Kind, Result, cleaned};
use tiro_base::humanize::{self, counted};
use tiro_base::memory::Content;
use tiro_base::private;
use tiro_base::scope::Scope;
use tiro_capture::follow::history::{Share, Stored, share};
use tiro_host::caller::Caller;
use tiro_host::config::{Configured, Encoding, build};
use tiro_host::engine::Engine;
use tiro_host::project::{OpenProject, SeenProject};
use tiro_store::{Check, Damage, ProjectRow, ReadStore, Registry};

/// The answer of `tiro doctor`.
#[derive(Debug, Serialize)]
pub struct Output {
    /// The program's version.
    pub version: &'static str,
    /// The checks, in order.
    pub findings: Vec<Finding>,
    /// Whether no check found a fault.
    pub ok: bool,
}

/// The result of one check.
#[derive(Debug, Serialize)]
pub struct Finding {
    /// The part that was checked.
    pub what: &'static str,
    /// Whether the check found no fault.
    pub ok: bool,
    /// The state that was found.
    pub found: String,
    /// The command or step that repairs or improves it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mend: Option<String>,
}

/// The number of bytes that a check writes, and then removes, to test whether the disk has room. Arbitrary: more than a
/// small write needs.
const PROBE_BYTES: usize = 64 << 10;

/// Runs every check. Reads the whole store and changes nothing.
pub async fn run(engine: &Engine, caller: &Caller) -> Result<Output> {
    let mut findings = vec![configuration(engine), data_directory(engine), surroundings::disk(engine)];
    // Opening the list of projects makes an open data directory private, so this comes after the check of it.
    findings.splice(0..0, programs::check(engine, caller).await);
    findings.extend(providers(engine));
    findings.push(model(engine));
    findings.push(surroundings::documents(engine).await);
    let owner = "memories of the owner";
    match engine.existing_installation().await {
        Ok(Some(installation)) => {
            let registry = &installation.registry;
            findings.push(store(owner, registry.memories().as_ref(), registry.scope()).await);
            findings.extend(strays(registry.as_ref()).await);
        }
        Ok(None) => {
            findings.push(Finding { what: owner, ok: true, found: "none are stored yet".into(), mend: None });
        }
        Err(error) => findings.push(failed(owner, &error)),
    }
    match caller.look(engine).await {
        Ok(project) => {
            match &project.open {
                Some(open) => {
                    findings.push(registered(engine, open).await);
                    findings.push(store("store", open.store.as_ref(), &open.scope).await);
                    findings.extend(commits(engine, caller, open).await);
                    findings.push(pending(open).await);
                    findings.extend(queued(open).await);
                    findings.extend(server::check(engine, open));
                }
                None => findings.push(not_registered(engine, &project)),
            }
            if let Some(trouble) = &project.trouble {
                findings.push(failed("git", trouble));
            }
            findings.extend(surroundings::spool(engine, &project));
            findings.extend(clients::sessions(engine, caller, &project).await);
        }
        Err(error) => findings.push(failed("project", &error)),
    }
    findings.extend(clients::check(engine, caller).await);
    findings.extend(clients::retention(engine));
    let ok = findings.iter().all(|finding| finding.ok);
    Ok(Output { version: build::description(), findings, ok })
}

fn configuration(engine: &Engine) -> Finding {
    let what = "configuration";
    let config = engine.config();
    let file = config.sources.file.as_deref();
    match (&config.fault, file) {
        (Some(fault), _) => failed(what, fault),
        (None, Some(file)) if file.exists() => {
            Finding { what, ok: true, found: file.display().to_string(), mend: None }
        }
        (None, Some(file)) => Finding {
            what,
            ok: true,
            found: format!("{} does not exist: defaults apply", file.display()),
            mend: None,
        },
        (None, None) => Finding { what, ok: true, found: "defaults".into(), mend: None },
    }
}

/// Returns the faults of configured providers, and the keys that no provider uses. Everything that needs no provider
/// works despite these faults.
fn providers(engine: &Engine) -> Vec<Finding> {
    let config = engine.config();
    // If the file can't be read, the check of the configuration reports this.
    let providers = config.sources.providers(&config.options).unwrap_or_default();
    let faults = providers.iter().filter_map(|each| each.check_encryption().err());
    let unused = init::unused_keys(engine);
    // This is not a fault, because the key may be there for another program.
    let unused = unused.iter().map(|key| Finding {
        what: "providers",
        ok: true,
        found: format!("{} is set but not used; the command makes an assistant of it", key.variable),
        mend: Some(key.command()),
    });
    faults.map(|fault| failed("providers", &fault)).chain(unused).collect()
}

fn data_directory(engine: &Engine) -> Finding {
    let folder = &engine.config().data_dir;
    let what = "data directory";
    let mut found = folder.display().to_string();
    let existing = surroundings::existing(folder);
    if existing != folder {
        found += "; the first call that stores something creates it";
    }
    let probe = || {
        let mut file = tempfile::tempfile_in(existing)?;
        // On a full disk a file can still be created, and the system may accept bytes for which it has no room. So the
        // check writes some bytes and syncs them.
        file.write_all(&[0x5a; PROBE_BYTES])?;
        file.sync_all()
    };
    match probe() {
        Ok(()) => match exposed(folder) {
            None => Finding { what, ok: true, found, mend: None },
            Some((exposed, mend)) => {
                Finding { what, ok: false, found: format!("{found}: {exposed}"), mend: Some(mend) }
            }
        },
        Err(error) => Finding {
            what,
            ok: false,
            found: Error::new(Kind::Io, format!("{found} can't be written")).source(error).to_string(),
            mend: Some("make it writable, free some space, or set TIRO_DATA_DIR".into()),
        },
    }
}

/// Returns what other users of the machine can do with the data directory, and the repair. Returns `None` if they can
/// do nothing.
fn exposed(folder: &Path) -> Option<(String, String)> {
    let open = private::open_to_others(folder);
    if let Some((path, how)) = open.first() {
        let place = path.strip_prefix(folder).ok().filter(|rest| !rest.as_os_str().is_empty());
        let name = place.map_or("it".to_owned(), |rest| format!("`{}`", rest.display()));
        let more = match open.len() - 1 {
            0 => String::new(),
            more => format!(", and {more} more files or folders in it are open to them"),
        };
        let mend = format!("`chmod -R go= '{}'`, as its owner", folder.display());
        return Some((format!("{name} {how}{more}"), mend));
    }
    let above = private::replaceable(folder)?;
    let exposed = format!("other users can replace it, since they can write to `{}`", above.display());
    let mend =
        format!("`chmod go-w '{}'`, or set TIRO_DATA_DIR to a folder within your home", above.display());
    Some((exposed, mend))
}

fn model(engine: &Engine) -> Finding {
    let models = engine.config().models.list();
    let what = "embedding model";
    let sources = &engine.config().sources;
    let encoding = sources.options().and_then(|options| sources.encoding(&options, Content::Prose));
    if let Ok(Encoding::Provider(provider)) = encoding {
        let Configured { provider: asked, .. } = &*provider;
        let found = format!("`{}` of provider `{}` at {}", asked.model, asked.name, asked.host());
        return Finding { what, ok: true, found, mend: None };
    }
    match models.first() {
        // This is not a fault, because keyword search works without a model.
        None => Finding {
            what,
            ok: true,
            found: "none installed: search uses keywords only".into(),
            mend: Some("tiro model install".into()),
        },
        Some(model) => match &model.problem {
            None => Finding {
                what,
                ok: true,
                found: format!("{}, {} bytes", model.model.name(), model.bytes),
                mend: None,
            },
            Some(problem) => Finding {
                what,
                ok: false,
                found: format!("{}: {problem}", model.model.name()),
                mend: Some(model.model.installation().into()),
            },
        },
    }
}

/// Reports the stores that belong to no registered project. Returns `None` if there are none.
async fn strays(registry: &dyn Registry) -> Option<Finding> {
    let what = "stores of no project";
    let strays = match registry.strays().await {
        Ok(strays) => strays,
        Err(error) => return Some(failed(what, &error)),
    };
    let folder = |row: &ProjectRow| {
        row.file.parent().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned())
    };
    let folders: Vec<String> = strays.iter().filter_map(folder).collect();
    let first = strays.first()?;
    // This is not necessarily a fault, because a merge leaves such a store behind.
    let mend = format!(
        "`tiro projects link {} DIR` assigns it to DIR; a store that a merge left behind can be removed",
        first.id.as_str()
    );
    Some(Finding { what, ok: true, found: humanize::some(&folders), mend: Some(mend) })
}

/// Reports the project of the working directory, and whether the project is a copy of another project.
async fn registered(engine: &Engine, project: &OpenProject) -> Finding {
    let what = "project";
    let found = format!("{} in {}", project.name, cleaned(&project.root.display().to_string()));
    let original = match engine.installation().await {
        Ok(installation) => installation.registry.original(&project.scope.project).await,
        Err(error) => Err(error),
    };
    match original {
        Ok(None) => Finding { what, ok: true, found, mend: None },
        // This is not a fault, because the user may want the copy to have its own memory.
        Ok(Some(original)) => Finding {
            what,
            ok: true,
            found: format!("{found}, {}", common::copied_from(&original)),
            mend: Some(common::share(&original, &project.root)),
        },
        Err(error) => failed(what, &error),
    }
}

/// Reports a project that has no store yet.
fn not_registered(engine: &Engine, project: &SeenProject) -> Finding {
    let makes = init::first_call_makes(engine, project).join(", ");
    let (name, root) = (&project.name, cleaned(&project.root.display().to_string()));
    let found = format!(
        "{name} in {root}; nothing is stored yet, and the first call that stores something creates {makes}"
    );
    let Some(original) = &project.original else {
        return Finding { what: "project", ok: true, found, mend: None };
    };
    let found = format!("{found}; it is {}", common::copied_from(original));
    Finding { what: "project", ok: true, found, mend: Some(common::share(original, &project.root)) }
}

async fn store(what: &'static str, store: &dyn ReadStore, scope: &Scope) -> Finding {
    let check = match store.check(scope).await {
        Ok(check) => check,
        Err(error) => return failed(what, &error),
    };
    let ok = check.is_sound();
    let found = match ok {
        true => format!("{}: sound", store.place()),
        false => format!("{}: {}", store.place(), complaints(&check)),
    };
    let mend = match is_only_damage(&check) {
        true if check.damage.memories.is_empty() && check.damage.copies + check.damage.rows == 0 => {
            "`tiro index` computes damaged embeddings and wrong counts again, and indexes what the text index lacks"
        }
        true => {
            "save the same messages again, or restore an earlier backup with `tiro restore`: a right text replaces a \
             damaged one; `tiro index` computes damaged embeddings again; other damaged texts are marked in answers"
        }
        false => "see “A damaged store” in docs/limits.md",
    };
    Finding { what, ok, found, mend: (!ok).then(|| mend.into()) }
}

/// Returns whether the only fault is damaged content. The store works in spite of this fault.
fn is_only_damage(check: &Check) -> bool {
    let rest = Check { damage: Damage::default(), chunks_unindexed: 0, counts_off: 0, ..check.clone() };
    rest.is_sound()
}

/// Returns the faults that `check` found, as text.
fn complaints(check: &Check) -> String {
    let mut found: Vec<String> = check.integrity.iter().chain(&check.text_index).cloned().collect();
    if check.chunks_without_vector > 0 {
        let pieces = counted(check.chunks_without_vector, "piece is", "pieces are");
        found.push(format!("{pieces} neither embedded nor queued for embedding"));
    }
    if check.chunks_unindexed > 0 {
        let pieces = counted(check.chunks_unindexed, "piece is", "pieces are");
        found.push(format!("{pieces} missing in the text index, or only in the index"));
    }
    if check.counts_off > 0 {
        let counts = counted(check.counts_off, "count differs", "counts differ");
        found.push(format!("{counts} from the memories"));
    }
    let Damage { memories, vectors, copies, rows } = &check.damage;
    if !memories.is_empty() {
        let which = counted(memories.len(), "memory is", "memories are");
        found.push(format!("{which} damaged and not as they were stored: {}", humanize::some(memories)));
    }
    if *vectors > 0 {
        found.push(format!("{} damaged", counted(*vectors, "embedding is", "embeddings are")));
    }
    if *copies > 0 {
        found.push(format!("{} damaged", counted(*copies, "text of a thread is", "texts of threads are")));
    }
    if *rows > 0 {
        found.push(format!("{} damaged", counted(*rows, "other row is", "other rows are")));
    }
    found.join("; ")
}

/// Reports how many commits of the repository are stored. Returns `None` outside a repository.
async fn commits(engine: &Engine, caller: &Caller, project: &OpenProject) -> Option<Finding> {
    let what = "commits";
    let (sources, intake) = (project.sources(caller.machine(engine)), project.read_intake(engine.clock()));
    let looked = async { Ok::<_, Error>((Stored::of(&intake).await?, share(&sources, &intake).await?)) };
    let (state, Share { all, stored }) = match looked.await {
        Ok((state, Some(share))) => (state, share),
        Ok((_, None)) => return None,
        Err(error) => return Some(failed(what, &error)),
    };
    let mend = Some("`tiro import git` imports the others".to_owned());
    Some(match all - stored {
        0 if all == 0 => Finding { what, ok: true, found: "there are none yet".into(), mend: None },
        0 => Finding { what, ok: true, found: format!("all {all} commits are imported"), mend: None },
        // After a complete import, there are two reasons why a commit may be missing. It was left out, or it is new and
        // the next call imports it.
        missing if state.is_whole() => {
            let found = format!(
                "{stored} of {all} commits are imported; {missing} are new, were forgotten, are copies of others or are \
                 left out by `ignore.paths`"
            );
            Finding { what, ok: true, found, mend: None }
        }
        // This is a fault only if the store claims to have all commits. Otherwise the user may have chosen not to
        // import them.
        _ => {
            let found = format!("{stored} of {all} commits are imported");
            Finding { what, ok: !state.claims_all(), found, mend }
        }
    })
}

async fn pending(project: &OpenProject) -> Finding {
    let what = "pending work";
    match project.store.pending(&project.scope).await {
        Ok(0) => Finding { what, ok: true, found: "none".into(), mend: None },
        // This is not a fault, because an idle server embeds them.
        Ok(count) => Finding {
            what,
            ok: true,
            found: counted(
                count,
                "piece has no embedding yet; only keywords find it",
                "pieces have no embedding yet; only keywords find them",
            ),
            mend: Some("tiro index".into()),
        },
        Err(error) => failed(what, &error),
    }
}

/// Reports summaries that wait for a model, or that a model failed to write. Returns `None` if there are none.
async fn queued(project: &OpenProject) -> Option<Finding> {
    let what = "summaries by a model";
    let counts = match project.store.queue_counts(&project.scope).await {
        Ok(counts) => counts,
        Err(error) => return Some(failed(what, &error)),
    };
    let waiting = counts.pending + counts.processing;
    if waiting + counts.failed == 0 {
        return None;
    }
    let found = format!(
        "{waiting} waiting, {} given up; summaries made without a model are used instead",
        counts.failed
    );
    // This is not a fault, because a summary made without a model is used instead.
    let mend = (counts.failed > 0)
        .then(|| "`tiro provider test` reports the fault; `tiro summarize SESSION` asks again".to_owned());
    Some(Finding { what, ok: true, found, mend })
}

/// Returns the finding that the check of `what` failed because of `error`.
fn failed(what: &'static str, error: &Error) -> Finding {
    Finding { what, ok: false, found: error.to_string(), mend: error.way_out().map(str::to_owned) }
}

impl Output {
    /// Returns the answer as text.
    pub fn text(&self) -> String {
        let mut text = format!("tiro {}\n", self.version);
        for Finding { what, ok, found, mend } in &self.findings {
            let mark = if *ok { "ok  " } else { "FAIL" };
            text += &format!("{mark} {what}: {}\n", envelope::one_line(found));
            if let Some(mend) = mend {
                text += &format!("       mend: {}\n", envelope::one_line(mend));
            }
        }
        text.trim_end().to_owned()
    }
}
