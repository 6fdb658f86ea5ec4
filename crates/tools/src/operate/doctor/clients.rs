//! Checks the clients: their configuration and hooks, how many of their transcripts are imported, and how long they
//! keep transcripts.

use std::path::Path;

use super::{Finding, failed};
use crate::operate::init;
use tiro_base::error::quoted;
use tiro_capture::clients::retention::Retention;
use tiro_capture::clients::{self, Client, ConfiguredProgram};
use tiro_host::caller::Caller;
use tiro_host::engine::Engine;
use tiro_host::own_files::search_sessions;
use tiro_host::project::SeenProject;

const WHAT: &str = "clients and hooks";

/// Reports how clients and hooks are set up. There is a finding for each client, for each file that `tiro init` would
/// change, and for each program that is gone.
pub async fn check(engine: &Engine, caller: &Caller) -> Vec<Finding> {
    let prepared = match init::prepare(engine, caller, None, &[]).await {
        Ok(prepared) => prepared,
        Err(error) => return vec![failed(WHAT, &error)],
    };
    let mut found: Vec<Finding> = Vec::new();
    for client in prepared.plan.found.iter().filter(|client| prepared.plan.is_set_up(**client)) {
        found.push(Finding {
            what: WHAT,
            ok: true,
            found: format!("{} is set up", client.name()),
            mend: None,
        });
    }
    let written = match init::written(engine, caller).await {
        Ok(written) => written,
        Err(error) => return vec![failed(WHAT, &error)],
    };
    let was_set_up = init::was_applied(engine);
    let is_here = |path: &Path| prepared.plan.changes.iter().any(|change| change.path == path);
    for each in written.iter().filter(|each| !each.program.exists()) {
        found.push(gone(each, each.client != Client::Git || is_here(&each.path)));
    }
    for change in &prepared.plan.changes {
        let mut programs =
            written.iter().filter(|each| each.path == change.path).map(|each| each.program.as_path());
        if programs.clone().any(|program| !program.exists()) {
            continue;
        }
        let file = format!("{}: `{}`", change.client.name(), quoted(change.path.display()));
        let finding = |ok, found| Finding { what: WHAT, ok, found, mend: Some("tiro init".into()) };
        found.push(match programs.next() {
            Some(program)
                if engine.config().is_started_by(program)
                    && init::differs_by_path(engine, caller, &change.path, program).await =>
            {
                let program = quoted(program.display());
                finding(
                    true,
                    format!("{file} starts Tiro by `{program}`; `tiro init` would write another path to it"),
                )
            }
            // The hook is optional, because each call checks the repository for new commits.
            None if change.client == Client::Git && !init::wrote_hook(engine, caller, &change.path).await => {
                finding(
                    true,
                    "git: this repository has no hook of Tiro; new commits are found at the next call"
                        .to_owned(),
                )
            }
            // Setup is optional, so only a file that was changed after setup is a fault. A client that gets only the
            // server is checked only if it has an entry of ours.
            _ if was_set_up || matches!(change.client, Client::Mcp(_)) => {
                finding(false, format!("{file} differs from what `tiro init` would write"))
            }
            _ => finding(true, format!("{file} is not set up")),
        });
    }
    for finding in &prepared.plan.findings {
        found.push(Finding {
            // Capture also works without the git hook.
            ok: !was_set_up || finding.client == Client::Git,
            ..remark(finding)
        });
    }
    // This is not a fault, because a second server works. It only costs the agent more tokens.
    match init::additional_servers(engine, &prepared) {
        Err(error) => found.push(failed(WHAT, &error)),
        Ok(servers) => found.extend(servers.iter().map(remark)),
    }
    match init::lost(engine, caller).await {
        Err(error) => found.push(failed(WHAT, &error)),
        // This is not a fault, because the repository may have been deleted.
        Ok(lost) => found.extend(lost.iter().map(remark)),
    }
    found
}

/// For each client that has transcripts, reports how many there are and how many are new.
pub(super) async fn sessions(engine: &Engine, caller: &Caller, project: &SeenProject) -> Vec<Finding> {
    let mut findings = Vec::new();
    for client in Client::AGENTS {
        let search = search_sessions(engine, caller, project, client).await;
        // Without a home directory, there are no clients.
        let Ok(account) = search.map(|search| search.account) else { continue };
        if account.seen == 0 && account.folders.is_empty() {
            continue;
        }
        let mend = format!("`tiro import {}` imports those that are new", client.word());
        let mend = (account.new > 0).then_some(mend);
        findings.push(Finding { what: "sessions", ok: true, found: account.text(), mend });
    }
    findings
}

/// Reports how long Claude Code keeps transcripts. Returns `None` if it is not installed.
pub(super) fn retention(engine: &Engine) -> Option<Finding> {
    let retention = init::retention(engine)?;
    let mend = |retention: &Retention| {
        retention.is_short().then(|| "`tiro init` offers to keep them for ten years".to_owned())
    };
    // This is not a fault, because imported messages stay.
    Some(Finding { what: "transcripts", ok: true, found: retention.text(), mend: mend(&retention) })
}

/// Reports a program that is gone. `is_here` says whether `tiro init` replaces it when it runs in this directory.
fn gone(written: &ConfiguredProgram, is_here: bool) -> Finding {
    let ConfiguredProgram { client, path, program } = written;
    let (file, program) = (quoted(path.display()), quoted(program.display()));
    let found = format!("{}: `{file}` starts `{program}`, which is gone", client.name());
    match is_here {
        true => Finding { what: WHAT, ok: false, found, mend: Some("tiro init".into()) },
        // This is not a fault here, because the hook belongs to another repository and nothing depends on it.
        false => Finding { what: WHAT, ok: true, found, mend: Some("`tiro init` in that repository".into()) },
    }
}

/// Returns a finding that is not a fault.
fn remark(finding: &clients::Finding) -> Finding {
    let clients::Finding { client, path, found, mend } = finding;
    let found = format!("{}: `{}`: {found}", client.name(), quoted(path.display()));
    Finding { what: WHAT, ok: true, found, mend: Some(mend.clone()) }
}
