//! Accounts for all transcripts of a client. Each transcript is in exactly one class, and those that are left out are
//! named.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::clients::Client;
use tiro_base::error::quoted;
use tiro_base::humanize::{counted, thousands};

/// The maximum number of paths that are named for one reason.
const NAMED: usize = 3;

/// The counts of a client's transcripts, by what was done with them.
#[derive(Clone, Debug, Serialize)]
pub struct Account {
    /// The client.
    pub client: Client,
    /// The number of all transcripts. It is the sum of those of this project, those of other projects, and those left
    /// out.
    pub seen: usize,
    /// The number of transcripts that belong to this project, as a whole or in part.
    pub here: usize,
    /// The number of transcripts of this project that are imported.
    pub imported: usize,
    /// The number of transcripts of this project that are not imported yet, or that have grown since they were
    /// imported. After an import: how many of these transcripts it read.
    pub new: usize,
    /// The number of transcripts of this project whose sessions began in another directory, and ran or worked here in
    /// part.
    pub in_part: usize,
    /// The number of transcripts that belong to other projects only.
    pub elsewhere: usize,
    /// The transcripts that are left out, grouped by reason.
    pub left_out: Vec<LeftOut>,
    /// Folders that were not searched, because they can't be read or are nested too deeply.
    pub folders: Vec<String>,
    /// Whether the transcripts in `new` are imported now.
    #[serde(skip)]
    pub is_done: bool,
}

/// Transcripts that are left out for the same reason.
#[derive(Clone, Debug, Serialize)]
pub struct LeftOut {
    /// The reason.
    pub why: Why,
    /// The number of transcripts.
    pub sessions: usize,
    /// The first few paths of the transcripts, or the first few directories that are gone.
    pub named: Vec<String>,
    /// A transcript that can be imported if the user names it.
    #[serde(skip)]
    pub example: Option<String>,
}

/// Why a transcript is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// The transcript can't be read.
    Unreadable,
    /// The transcript contains no working directory, and its folder is not named after a known directory.
    NoDirectory,
    /// The transcript's directory no longer exists, and nothing proves to which project it belonged.
    DirectoryGone,
}

/// A transcript that belongs to the project, wholly or perhaps in part.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The path of the transcript.
    pub path: PathBuf,
    /// The length of the transcript in bytes.
    pub bytes: u64,
    /// The number of these bytes that are not read yet.
    pub unread: u64,
    /// Whether the session began in the project. Otherwise only reading the transcript shows whether the session worked
    /// here.
    pub is_certain: bool,
}

impl Account {
    /// Returns the account of a client without transcripts.
    pub fn new(client: Client) -> Account {
        Account {
            client,
            seen: 0,
            here: 0,
            imported: 0,
            new: 0,
            in_part: 0,
            elsewhere: 0,
            left_out: Vec::new(),
            folders: Vec::new(),
            is_done: false,
        }
    }

    /// Counts a transcript that is left out for the reason `why`. `named` is the name that is shown for it.
    pub fn leave_out(&mut self, why: Why, named: &str, path: &Path) {
        let at = self.left_out.iter().position(|each| each.why == why).unwrap_or_else(|| {
            self.left_out.push(LeftOut { why, sessions: 0, named: Vec::new(), example: None });
            self.left_out.len() - 1
        });
        let left_out = &mut self.left_out[at];
        left_out.sessions += 1;
        left_out.example.get_or_insert_with(|| quoted(path.display()));
        let named = quoted(named);
        if left_out.named.len() < NAMED && !left_out.named.contains(&named) {
            left_out.named.push(named);
        }
    }

    /// Counts a transcript of this project. If all of it is unread, nothing of it is imported.
    pub fn count_here(&mut self, candidate: &Candidate) {
        self.here += 1;
        self.in_part += usize::from(!candidate.is_certain);
        match candidate.unread {
            0 => self.imported += 1,
            _ => self.new += 1,
        }
    }

    /// Corrects the counts for a transcript that was counted as new, but belongs to other projects only or can't be
    /// read.
    pub fn take_back(&mut self, candidate: &Candidate) {
        self.here -= 1;
        self.new -= 1;
        self.in_part -= usize::from(!candidate.is_certain);
    }

    /// Returns how many transcripts are left out.
    pub fn left_out(&self) -> usize {
        self.left_out.iter().map(|each| each.sessions).sum()
    }

    /// Returns the account as one line of text.
    pub fn text(&self) -> String {
        let name = self.client.name();
        if self.seen == 0 && self.folders.is_empty() {
            return format!("{name}: no sessions seen");
        }
        let number = |count: usize| thousands(count);
        let mut text = format!(
            "{name}: {} seen; {} of this project",
            counted(self.seen, "session", "sessions"),
            number(self.here)
        );
        if self.here > 0 {
            let (before, now) = if self.is_done { ("imported before", "now") } else { ("imported", "new") };
            text += &format!(" ({} {before}, {} {now}", number(self.imported), number(self.new));
            if self.in_part > 0 {
                text += &format!("; {} began elsewhere but worked here", number(self.in_part));
            }
            text += ")";
        }
        text +=
            &format!(", {} of other projects, {} left out", number(self.elsewhere), number(self.left_out()));
        let reasons: Vec<String> = self.left_out.iter().map(|each| each.text(self.client)).collect();
        if !reasons.is_empty() {
            text += &format!(": {}", reasons.join(", "));
        }
        if !self.folders.is_empty() {
            let folders = counted(self.folders.len(), "folder was", "folders were");
            text += &format!(
                "; {folders} not searched (unreadable, or nested too deeply): `{}`",
                self.folders[0]
            );
        }
        text
    }
}

impl LeftOut {
    fn text(&self, client: Client) -> String {
        let named: Vec<String> = self.named.iter().map(|named| format!("`{named}`")).collect();
        let named = named.join(", ");
        let example = self.example.as_deref().unwrap_or_default();
        let by_name = format!("`tiro import {} '{example}'` imports one whole", client.word());
        match self.why {
            Why::Unreadable => format!("{} unreadable ({named})", self.sessions),
            Why::NoDirectory => format!("{} without a directory ({named}; {by_name})", self.sessions),
            Why::DirectoryGone => format!(
                "{} in a directory that is gone, such as a removed worktree, so its project is unknown ({named}; {by_name})",
                self.sessions
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_one_line_and_adds_up() {
        let mut account = Account {
            seen: 1512,
            here: 20,
            imported: 18,
            new: 2,
            in_part: 1,
            elsewhere: 1489,
            ..Account::new(Client::ClaudeCode)
        };
        account.leave_out(Why::Unreadable, "/h/a.jsonl", Path::new("/h/a.jsonl"));
        for name in ["b", "c"] {
            account.leave_out(Why::DirectoryGone, "/w/repo-fix", Path::new(&format!("/h/{name}.jsonl")));
        }
        assert_eq!(account.seen, account.here + account.elsewhere + account.left_out());
        insta::assert_snapshot!(account.text(), @"Claude Code: 1512 sessions seen; 20 of this project (18 imported, 2 new; 1 began elsewhere but worked here), 1,489 of other projects, 3 left out: 1 unreadable (`/h/a.jsonl`), 2 in a directory that is gone, such as a removed worktree, so its project is unknown (`/w/repo-fix`; `tiro import claude-code '/h/b.jsonl'` imports one whole)");
        assert_eq!(Account::new(Client::Codex).text(), "Codex: no sessions seen");
    }
}
