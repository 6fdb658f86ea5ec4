//! Imports the sessions that a client recorded as transcripts.

use crate::common;
use tiro_base::error::Result;
use tiro_base::humanize::{self, counted};
use tiro_host::caller::WritingCaller;
use tiro_host::engine::Engine;
use tiro_host::own_files;

pub use tiro_capture::follow::sessions::{Args, Imported as Output};

/// Stores the new entries of the project's transcripts. Calls `progress` with the number of bytes read and the number
/// of all bytes.
///
/// The import can be interrupted and repeated, because an entry has the same id each time.
pub async fn run(
    engine: &Engine,
    caller: &WritingCaller,
    args: Args,
    progress: impl FnMut(u64, u64) + Send,
) -> Result<Output> {
    own_files::import_sessions(engine, caller, args, progress).await
}

/// Returns the answer as text.
pub fn text(output: &Output) -> String {
    let mut text = format!(
        "Imported {} from {} ({} new bytes)",
        counted(output.imported, "entry", "entries"),
        counted(output.grown, "transcript", "transcripts"),
        output.bytes
    );
    for (count, what) in [
        (output.already_stored, "stored before"),
        (output.repeated, "repeats of an earlier one, only counted"),
        (output.forgotten, "forgotten before and not stored again"),
        (output.left_out, "left out"),
    ] {
        if count > 0 {
            text += &format!(", {count} {what}");
        }
    }
    text.push('.');
    if output.headless > 0 {
        let left_out = counted(output.headless, "entry is", "entries are");
        text += &format!("\n{left_out} left out because a script ran the session (`ignore.headless`).");
    }
    if output.commits_linked > 0 {
        text += &format!("\n{} linked to sessions.", counted(output.commits_linked, "commit", "commits"));
    }
    if output.private > 0 {
        text += &format!("\n{} left out.", counted(output.private, "private passage", "private passages"));
    }
    if !output.unknown.is_empty() || output.unreadable > 0 {
        let kinds: Vec<String> =
            output.unknown.iter().map(|each| format!("{} {}", each.count, each.rule)).collect();
        text += &format!(
            "\nSkipped lines: {} unreadable; unknown types: {}.",
            output.unreadable,
            match kinds.is_empty() {
                true => "none".to_owned(),
                false => kinds.join(", "),
            }
        );
    }
    if let Some(account) = &output.account {
        text += &format!("\n{}.", account.text());
    }
    if output.prompts.prompts > 0 {
        text += &format!(
            "\nOf {} whose transcripts are deleted, {} in `history.jsonl`.",
            counted(output.prompts.sessions, "session", "sessions"),
            counted(output.prompts.prompts, "prompt is left", "prompts are left"),
        );
    }
    for (count, how) in [
        (output.replaced, "with replaced characters"),
        (output.shortened, "in part, because of long texts or a missing end"),
    ] {
        if count > 0 {
            text += &format!("\n{} read {how}.", counted(count, "line", "lines"));
        }
    }
    if !output.failed.is_empty() {
        text += &format!("\nUnreadable: {}.", humanize::some(&output.failed));
    }
    if output.bytes_left > 0 {
        text += &format!("\n{} bytes are left for the next import.", output.bytes_left);
    }
    text + &common::footnotes(&output.redactions, output.pending, &output.notices)
}
