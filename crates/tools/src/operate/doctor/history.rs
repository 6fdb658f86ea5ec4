//! Accounts for the transcripts of all clients, and checks how long they are kept.

use super::finding::Finding;
use crate::operate::init;
use tiro_capture::clients::Client;
use tiro_capture::clients::retention::Retention;
use tiro_host::caller::Caller;
use tiro_host::engine::Engine;
use tiro_host::own_files::search_sessions;
use tiro_host::project::SeenProject;

/// Reports what became of the transcripts of each client that has some.
pub(super) async fn sessions(engine: &Engine, caller: &Caller, project: &SeenProject) -> Vec<Finding> {
    let mut findings = Vec::new();
    for client in [Client::ClaudeCode, Client::Codex, Client::Gemini] {
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

/// Reports how long Claude Code keeps transcripts; `None` if it is not installed.
pub(super) fn retention(engine: &Engine) -> Option<Finding> {
    let retention = init::retention(engine)?;
    let mend = |retention: &Retention| {
        retention.is_short().then(|| "`tiro init` offers to keep them for ten years".to_owned())
    };
    // Not a fault: what was imported stays.
    Some(Finding { what: "transcripts", ok: true, found: retention.text(), mend: mend(&retention) })
}
