//! Imports the commits of the project's repository.

use crate::common;
use crate::context::summarize_commits;
use serde::Serialize;

use tiro_base::error::{Kind, Result};
use tiro_base::humanize::{self, counted};
use tiro_capture::follow::commits;
use tiro_capture::import::git::Flag;
use tiro_host::caller::WritingCaller;
use tiro_host::engine::Engine;
use tiro_host::own_files;
use tiro_host::summaries::of_commits::{self, Summarised};
use tiro_redact::Redaction;

/// The arguments of `tiro import git`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Args {
    /// The number of threads that read commits.
    pub threads: usize,
    /// The maximum number of commits to import; the newest ones are chosen.
    pub limit: Option<usize>,
    /// Whether a model summarises commits after the import. It summarises at most `limit` commits that have no summary.
    pub summarize: bool,
}

/// The result of `tiro import git`.
#[derive(Debug, Default, Serialize)]
pub struct Output {
    /// Commits stored by this call.
    pub imported: usize,
    /// Documents of the repository stored now: instructions for agents and records of decisions.
    pub documents: usize,
    /// Commits that were stored before, under this id or as the same change under another id.
    pub already_stored: usize,
    /// Commits that were forgotten before and stay forgotten.
    pub forgotten: usize,
    /// Commits that `limit` left out, usually the older ones.
    pub left_out: usize,
    /// Commits left out because they change only files that `ignore.paths` names.
    pub ignored: usize,
    /// Imported commits that are now linked to at least one session.
    pub linked: usize,
    /// Commits that could not be read, with the reason.
    pub unreadable: Vec<String>,
    /// Kinds of incomplete or special commits, such as merges, each with its count.
    pub flags: Vec<Redaction>,
    /// Secrets replaced, by rule.
    pub redactions: Vec<Redaction>,
    /// The result of summarising, if it was requested.
    pub summaries: Option<Summarised>,
    /// Pieces of text that are not embedded yet.
    pub pending: usize,
    /// Further notices for the user.
    pub notices: Vec<String>,
}

/// Stores every commit that the store doesn't have. Calls `progress` with the number of commits done and the number of
/// all commits.
///
/// The import can be interrupted and repeated. Errors with [`Kind::Git`] if the project is not
/// a repository.
pub async fn run(
    engine: &Engine,
    caller: &WritingCaller,
    args: Args,
    mut progress: impl FnMut(usize, usize) + Send,
) -> Result<Output> {
    let Args { threads, limit, summarize } = args;
    let args = commits::Args { threads, limit, ..commits::Args::default() };
    let imported = own_files::import_commits(engine, caller, args, &mut progress).await?;
    let mut output = Output {
        imported: imported.imported,
        documents: imported.documents,
        already_stored: imported.already_stored,
        forgotten: imported.forgotten,
        left_out: imported.left_out,
        ignored: imported.ignored,
        linked: imported.linked,
        unreadable: imported.unreadable,
        flags: imported.flags,
        redactions: imported.redactions,
        summaries: None,
        pending: imported.pending,
        notices: imported.notices,
    };
    if !summarize {
        return Ok(output);
    }
    match of_commits::summarise(engine, caller, of_commits::Args { limit, dry_run: false }, progress).await {
        Ok(made) => output.summaries = Some(made),
        // The imported commits stay, so the import succeeds even if the model fails.
        Err(error) if error.kind() == Kind::Provider => output.notices.push(error.to_string()),
        Err(error) => return Err(error),
    }
    Ok(output)
}

/// Returns the answer as text.
pub fn text(output: &Output) -> String {
    let mut text = format!("Imported {}", counted(output.imported, "commit", "commits"));
    if output.already_stored > 0 {
        let copies = counted(output.already_stored, "more is a copy", "more are copies");
        text += &format!("; {copies} of stored ones (cherry-picked or rebased)");
    }
    if output.forgotten > 0 {
        let one = "was forgotten before and stays forgotten";
        let several = "were forgotten before and stay forgotten";
        text += &format!(", {}", counted(output.forgotten, one, several));
    }
    text.push('.');
    if output.documents > 0 {
        let documents = counted(output.documents, "document", "documents");
        text += &format!(
            "\nImported {documents} of the repository: instructions for agents and records of decisions."
        );
    }
    if output.ignored > 0 {
        let one = "commit was left out: it changes";
        let several = "commits were left out: they change";
        text += &format!(
            "\n{} nothing but files that `ignore.paths` names.",
            counted(output.ignored, one, several)
        );
    }
    if !output.unreadable.is_empty() {
        text += &format!(
            "\n{} can't be read: {}.",
            counted(output.unreadable.len(), "commit", "commits"),
            humanize::some(&output.unreadable)
        );
    }
    if !output.flags.is_empty() {
        let flags: Vec<String> = output.flags.iter().map(flag).collect();
        text += &format!("\nOf the commits read, {}.", flags.join("; "));
    }
    if let Some(summaries) = &output.summaries {
        text += &format!("\n{}", summarize_commits::text(summaries));
    }
    text + &common::footnotes(&output.redactions, output.pending, &output.notices)
}

/// Returns the part of a sentence that says how many commits have a flag.
fn flag(flag: &Redaction) -> String {
    let words = |one: &str, several: &str| counted(flag.count, one, several);
    let Some(known) = Flag::parse(&flag.rule) else {
        return format!("{} marked `{}`", flag.count, flag.rule);
    };
    match known {
        Flag::Merge => {
            words("is a merge, whose lines are not compared", "are merges, whose lines are not compared")
        }
        Flag::MessageCut => {
            words("has a message too long to store whole", "have messages too long to store whole")
        }
        Flag::MessageLossy => words(
            "has a message with bytes that are not valid text",
            "have messages with bytes that are not valid text",
        ),
        Flag::EncodingGuessed => {
            words("has a message whose encoding was guessed", "have messages whose encoding was guessed")
        }
        Flag::NonsenseTime => words("has no valid time", "have no valid time"),
        Flag::ChangesUnknown => words(
            "has a parent or tree missing from this clone",
            "have parents or trees missing from this clone",
        ),
        Flag::BlobMissing => {
            words("changes a file missing from this clone", "change files missing from this clone")
        }
        Flag::BlobTooLarge => {
            words("changes a file too large to compare", "change files too large to compare")
        }
        Flag::FilesCut => words("changes more files than are listed", "change more files than are listed"),
        Flag::FilesIgnored => words(
            "changes files that `ignore.paths` leaves out",
            "change files that `ignore.paths` leaves out",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_flag_is_said_in_words() {
        for each in Flag::ALL {
            let text = flag(&Redaction { rule: each.as_str().to_owned(), count: 2 });
            assert!(text.starts_with("2 ") && !text.contains("marked"), "{text}");
        }
    }

    #[test]
    fn copies_are_not_called_stored_before() {
        let flags = vec![Redaction { rule: "merge".to_owned(), count: 179 }];
        let output = Output { imported: 4614, already_stored: 11, flags, ..Output::default() };
        assert_eq!(
            text(&output),
            "Imported 4614 commits; 11 more are copies of stored ones (cherry-picked or rebased).\n\
             Of the commits read, 179 are merges, whose lines are not compared."
        );
    }
}
