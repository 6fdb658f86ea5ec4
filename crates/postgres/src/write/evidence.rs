//! What is recorded beside memories: the ids of commits, the files that tool calls changed, the commits that they made,
//! and how often an output came again.

use std::collections::HashSet;

use crate::error::Result;
use crate::transactions::Transaction;
use tiro_base::memory::Draft;

/// The rows that are recorded beside the memories of a batch. A row that exists already is replaced.
#[derive(Default)]
pub(crate) struct Evidence {
    /// The ids of commits: part, id, memory.
    commits: (Vec<i64>, Vec<String>, Vec<i64>),
    writes: Writes,
    calls: Calls,
    /// The occurrences of outputs: part, memory, key.
    repeats: (Vec<i64>, Vec<i64>, Vec<String>),
    seen: HashSet<(i64, i64, String)>,
}

/// The changes of files, by column.
#[derive(Default)]
struct Writes {
    owner: Vec<i64>,
    memory: Vec<i64>,
    time: Vec<i64>,
    path: Vec<String>,
    worktree: Vec<Option<String>>,
    branch: Vec<Option<String>>,
    lines: Vec<Option<Vec<u8>>>,
}

/// The calls that made a commit, by column.
#[derive(Default)]
struct Calls {
    owner: Vec<i64>,
    memory: Vec<i64>,
    began: Vec<i64>,
    ended: Vec<i64>,
    sha: Vec<String>,
    worktree: Vec<Option<String>>,
}

impl Evidence {
    /// Adds the id of a commit, and the file changes and commits of a tool call. Equal tool calls share one stored
    /// memory. Each further call adds its changes and commits to this memory.
    pub(crate) fn add(&mut self, owner: i64, memory: i64, draft: &Draft) {
        if let Some(commit) = &draft.commit {
            self.commit(owner, memory, &commit.sha);
        }
        for write in &draft.work.writes {
            let lines = write.lines.iter().flat_map(|hash| hash.to_le_bytes()).collect();
            let place = (write.worktree.clone(), draft.branch.clone());
            self.write((owner, memory), draft.time, &write.path, place, Some(lines));
        }
        let Some(printed) = &draft.work.commits else { return };
        // If git printed no id, an empty id is stored, and the call is linked to a commit by its time.
        let quiet = [String::new()];
        let printed = if printed.is_empty() { &quiet[..] } else { printed };
        for sha in printed {
            let time = (draft.time, draft.work.ended.unwrap_or(draft.time));
            self.call((owner, memory), time, sha, draft.work.worktree.clone());
        }
    }

    /// Adds an id of a commit.
    pub(crate) fn commit(&mut self, owner: i64, memory: i64, sha: &str) {
        self.commits.0.push(owner);
        self.commits.1.push(sha.to_owned());
        self.commits.2.push(memory);
    }

    /// Adds a change of a file at `time`, in a work tree and on a branch.
    pub(crate) fn write(
        &mut self,
        (owner, memory): (i64, i64),
        time: i64,
        path: &str,
        (worktree, branch): (Option<String>, Option<String>),
        lines: Option<Vec<u8>>,
    ) {
        self.writes.owner.push(owner);
        self.writes.memory.push(memory);
        self.writes.time.push(time);
        self.writes.path.push(path.to_owned());
        self.writes.worktree.push(worktree);
        self.writes.branch.push(branch);
        self.writes.lines.push(lines);
    }

    /// Adds a call that began and ended at `time` and made the commit `sha`.
    pub(crate) fn call(
        &mut self,
        (owner, memory): (i64, i64),
        time: (i64, i64),
        sha: &str,
        worktree: Option<String>,
    ) {
        self.calls.owner.push(owner);
        self.calls.memory.push(memory);
        self.calls.began.push(time.0);
        self.calls.ended.push(time.1);
        self.calls.sha.push(sha.to_owned());
        self.calls.worktree.push(worktree);
    }

    /// Adds the occurrence of a new memory.
    pub(crate) fn new_repeat(&mut self, owner: i64, memory: i64, occurrence: &str) {
        if self.seen.insert((owner, memory, occurrence.to_owned())) {
            self.repeats.0.push(owner);
            self.repeats.1.push(memory);
            self.repeats.2.push(occurrence.to_owned());
        }
    }

    /// Adds an occurrence of a memory that may be stored already. Returns whether the occurrence is new.
    pub(crate) async fn repeat(
        &mut self,
        tx: &Transaction,
        owner: i64,
        memory: i64,
        occurrence: &str,
    ) -> Result<bool> {
        let sql = "SELECT FROM repeats WHERE owner = $1 AND memory = $2 AND key = $3";
        let is_known = self.seen.contains(&(owner, memory, occurrence.to_owned()))
            || tx.exists(sql, &[&owner, &memory, &occurrence]).await?;
        self.new_repeat(owner, memory, occurrence);
        Ok(!is_known)
    }

    /// Inserts the rows.
    pub(crate) async fn insert(&self, tx: &Transaction) -> Result<()> {
        let (owners, shas, memories) = &self.commits;
        if !owners.is_empty() {
            tx.execute(
                "INSERT INTO commit_ids (owner, sha, memory)
                 SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[]) ON CONFLICT DO NOTHING",
                &[owners, shas, memories],
            )
            .await?;
        }
        let Writes { owner, memory, time, path, worktree, branch, lines } = &self.writes;
        if !owner.is_empty() {
            tx.execute(
                "INSERT INTO file_writes (owner, memory, time, path, worktree, branch, lines)
                 SELECT DISTINCT ON (u.owner, u.memory, u.time, u.path)
                     u.owner, u.memory, u.time, u.path, u.worktree, u.branch, u.lines
                 FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::bytea[])
                     WITH ORDINALITY AS u (owner, memory, time, path, worktree, branch, lines, place)
                 ORDER BY u.owner, u.memory, u.time, u.path, u.place DESC
                 ON CONFLICT (owner, memory, time, path) DO UPDATE SET worktree = excluded.worktree,
                     branch = excluded.branch, lines = excluded.lines",
                &[owner, memory, time, path, worktree, branch, lines],
            )
            .await?;
        }
        let Calls { owner, memory, began, ended, sha, worktree } = &self.calls;
        if !owner.is_empty() {
            tx.execute(
                "INSERT INTO commit_calls (owner, memory, began, ended, sha, worktree)
                 SELECT DISTINCT ON (u.owner, u.memory, u.began, u.sha)
                     u.owner, u.memory, u.began, u.ended, u.sha, u.worktree
                 FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::text[], $6::text[])
                     WITH ORDINALITY AS u (owner, memory, began, ended, sha, worktree, place)
                 ORDER BY u.owner, u.memory, u.began, u.sha, u.place DESC
                 ON CONFLICT (owner, memory, began, sha) DO UPDATE SET ended = excluded.ended,
                     worktree = excluded.worktree",
                &[owner, memory, began, ended, sha, worktree],
            )
            .await?;
        }
        let (owners, memories, keys) = &self.repeats;
        if !owners.is_empty() {
            tx.execute(
                "INSERT INTO repeats (owner, memory, key)
                 SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[]) ON CONFLICT DO NOTHING",
                &[owners, memories, keys],
            )
            .await?;
        }
        Ok(())
    }
}
