//! Stores the memories of a backup. Existing rows are not changed, and new rows are added as they are in the backup.

use std::collections::BTreeMap;
use std::collections::HashMap;

use crate::PostgresStore;
use crate::database::seen::NO_OWNER;
use crate::error::Result;
use crate::forget::select::{SELECTED, SelectedRow, selected_row};
use crate::forget::tombstone;
use crate::superseded;
use crate::transactions::{Transaction, write};
use crate::write::evidence::Evidence;
use crate::write::{Batch, NewMemory, Wanted};
use tiro_base::error;
use tiro_base::memory::{MemoryId, Millis};
use tiro_base::scope::{Scope, Visibility};
use tiro_store::tuning::LEAST_CONFIDENCE;
use tiro_store::{ForeignForgotten, ForeignSession, Outcome, Receipt, RestoredMemory};

impl PostgresStore {
    pub(crate) async fn restore_sessions(
        &self,
        scope: &Scope,
        sessions: Vec<ForeignSession>,
    ) -> error::Result<()> {
        write!(self, scope, tx => { restore_sessions(&tx, scope, &sessions).await })
    }

    pub(crate) async fn restore(
        &self,
        scope: &Scope,
        restored: Vec<RestoredMemory>,
        now: Millis,
    ) -> error::Result<Receipt> {
        write!(self, scope, tx => { restore(&tx, scope, &restored, now).await })
    }

    pub(crate) async fn restore_forgotten(
        &self,
        scope: &Scope,
        forgotten: ForeignForgotten,
    ) -> error::Result<usize> {
        write!(self, scope, tx => { restore_forgotten(&tx, scope, &forgotten).await })
    }
}

/// The origin of a session, of which nothing is known where a field is `None`.
#[derive(Default)]
struct SessionFields<'s> {
    client: Option<&'s str>,
    worktree: Option<&'s str>,
    title: Option<&'s str>,
    branch: Option<&'s str>,
    head_sha: Option<&'s str>,
}

async fn restore_sessions(tx: &Transaction, scope: &Scope, sessions: &[ForeignSession]) -> Result<()> {
    let names: Vec<&str> = sessions.iter().map(|each| each.session.as_str()).collect();
    let sql = "SELECT name FROM sessions WHERE owner = $1 AND name = ANY ($2)";
    let rows = tx.rows(sql, &[&tx.seen.mine, &names]).await?;
    let private: Vec<&str> = rows.iter().map(|row| row.get(0)).collect();
    let mut found: BTreeMap<(i64, &str), SessionFields<'_>> = BTreeMap::new();
    let (mut owners, mut aliases, mut of) = (Vec::new(), Vec::new(), Vec::new());
    for ForeignSession { session, origin, branch, head_sha, .. } in sessions {
        let name = session.as_str();
        let is_private = match origin.visibility {
            Some(visibility) => visibility == Visibility::Private,
            None => private.contains(&name),
        };
        let owner = match is_private {
            true => tx.private_part(scope, scope.reader.as_str()).await?,
            false => tx.seen.shared,
        };
        // Different names may be the same after their secrets were replaced.
        let fields = found.entry((owner, name)).or_default();
        fields.client = fields.client.or(origin.client.as_deref());
        fields.worktree = fields.worktree.or(origin.worktree.as_deref());
        fields.title = fields.title.or(origin.title.as_deref());
        fields.branch = fields.branch.or(branch.as_deref());
        fields.head_sha = fields.head_sha.or(head_sha.as_deref());
        for alias in &origin.aliases {
            owners.push(owner);
            aliases.push(alias.as_str());
            of.push(name);
        }
    }
    put_sessions(tx, &found).await?;
    tx.execute(
        "INSERT INTO session_aliases (owner, alias, session)
         SELECT s.owner, u.alias, s.seq FROM unnest($1::bigint[], $2::text[], $3::text[]) AS u (owner, alias, name)
         JOIN sessions s ON s.owner = u.owner AND s.name = u.name ON CONFLICT DO NOTHING",
        &[&owners, &aliases, &of],
    )
    .await?;
    Ok(())
}

/// Inserts the sessions, and adds what is not known yet of those that are stored.
async fn put_sessions(tx: &Transaction, sessions: &BTreeMap<(i64, &str), SessionFields<'_>>) -> Result<()> {
    let (owners, names): (Vec<i64>, Vec<&str>) = sessions.keys().copied().unzip();
    let fields = || sessions.values();
    let clients: Vec<_> = fields().map(|fields| fields.client).collect();
    let worktrees: Vec<_> = fields().map(|fields| fields.worktree).collect();
    let titles: Vec<_> = fields().map(|fields| fields.title).collect();
    let branches: Vec<_> = fields().map(|fields| fields.branch).collect();
    let heads: Vec<_> = fields().map(|fields| fields.head_sha).collect();
    tx.execute(
        "INSERT INTO sessions AS s (owner, name, client, worktree, title, branch, head_sha)
         SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[])
         ON CONFLICT (owner, name) DO UPDATE SET client = coalesce(s.client, excluded.client),
             worktree = coalesce(s.worktree, excluded.worktree), title = coalesce(s.title, excluded.title),
             branch = coalesce(s.branch, excluded.branch), head_sha = coalesce(s.head_sha, excluded.head_sha)",
        &[&owners, &names, &clients, &worktrees, &titles, &branches, &heads],
    )
    .await?;
    Ok(())
}

async fn restore(
    tx: &Transaction,
    scope: &Scope,
    restored: &[RestoredMemory],
    now: Millis,
) -> Result<Receipt> {
    let mut receipt = Receipt::default();
    let mut batch = Batch::open(tx, scope, restored.iter().map(|each| &each.memory), now).await?;
    for RestoredMemory { memory, ordinal, forgotten, is_marked, .. } in restored {
        let (place, is_forgotten) = (ordinal.map_or(Wanted::Next, Wanted::After), forgotten.is_some());
        let new = NewMemory { memory, place, is_forgotten, is_marked: *is_marked };
        let outcome = batch.add(tx, scope, new).await?;
        if outcome == Outcome::Stored && forgotten.is_none() {
            receipt.pending += memory.chunks.iter().filter(|chunk| chunk.embedding.is_none()).count();
        }
        receipt.outcomes.push((memory.id.clone(), outcome));
    }
    let places = batch.close(tx).await?;
    let here = Here::of(tx, restored, places, &receipt).await?;
    here.mark(tx).await?;
    here.supersede(tx).await?;
    here.stash(tx).await?;
    here.link(tx, scope).await?;
    here.add_evidence(tx).await?;
    here.forget(tx, scope).await?;
    Ok(receipt)
}

/// A memory of a backup that is stored here too.
struct Known<'r> {
    restored: &'r RestoredMemory,
    row: SelectedRow,
    /// Whether it was stored just now.
    is_new: bool,
}

/// The memories of a backup that are stored here too, living and with the same text.
struct Here<'r> {
    known: Vec<Known<'r>>,
}

impl<'r> Here<'r> {
    /// Returns the memories that were stored now or before. `places` are the parts to which they belong.
    async fn of(
        tx: &Transaction,
        restored: &'r [RestoredMemory],
        places: Vec<i64>,
        receipt: &Receipt,
    ) -> Result<Here<'r>> {
        let ids: Vec<&str> = restored.iter().map(|each| each.memory.id.as_str()).collect();
        let sql = format!("SELECT {SELECTED} FROM memories m WHERE m.owner = ANY ($1) AND m.id = ANY ($2)");
        let rows = tx.rows(&sql, &[&places, &ids]).await?;
        let rows = rows.iter().map(selected_row).collect::<Result<Vec<SelectedRow>>>()?;
        let rows: HashMap<(i64, MemoryId), SelectedRow> =
            rows.into_iter().map(|row| ((row.owner, row.id.clone()), row)).collect();
        let outcomes = receipt.outcomes.iter().map(|(_, outcome)| *outcome);
        let known = restored.iter().zip(places).zip(outcomes).filter_map(|((restored, owner), outcome)| {
            let is_here = !matches!(outcome, Outcome::Forgotten | Outcome::Conflict);
            let row = rows.get(&(owner, restored.memory.id.clone())).filter(|_| is_here)?.clone();
            Some(Known { restored, row, is_new: outcome == Outcome::Stored })
        });
        Ok(Here { known: known.collect() })
    }

    /// Returns those that were stored just now.
    fn stored_now(&self) -> impl Iterator<Item = &Known<'r>> {
        self.known.iter().filter(|known| known.is_new)
    }

    /// Marks the memories that are marked as important in the backup.
    async fn mark(&self, tx: &Transaction) -> Result<()> {
        let marked = self.known.iter().filter(|known| known.restored.is_marked && !known.is_new);
        let (owners, seqs): (Vec<i64>, Vec<i64>) =
            marked.map(|known| (known.row.owner, known.row.seq)).unzip();
        if seqs.is_empty() {
            return Ok(());
        }
        tx.execute(
            "UPDATE memories m SET marked = true FROM unnest($1::bigint[], $2::bigint[]) AS u (owner, seq)
             WHERE m.owner = u.owner AND m.seq = u.seq AND NOT m.marked",
            &[&owners, &seqs],
        )
        .await?;
        Ok(())
    }

    /// Stores which memories replaced others by request. If the other memory isn't stored yet, the link is added when
    /// that memory is restored.
    async fn supersede(&self, tx: &Transaction) -> Result<()> {
        let others = |known: &Known<'r>| {
            let RestoredMemory { memory, superseded_by, .. } = known.restored;
            memory.draft.supersedes.iter().chain(superseded_by)
        };
        let ids: Vec<&str> =
            self.known.iter().flat_map(|known| others(known).map(MemoryId::as_str)).collect();
        if ids.is_empty() {
            return Ok(());
        }
        let owners: Vec<i64> = self.known.iter().map(|known| known.row.owner).collect();
        let sql = "SELECT owner, id, seq FROM memories WHERE owner = ANY ($1) AND id = ANY ($2)";
        let rows = tx.rows(sql, &[&owners, &ids]).await?;
        let rows: HashMap<(i64, &str), i64> =
            rows.iter().map(|row| ((row.get(0), row.get(1)), row.get(2))).collect();
        for Known { restored, row, .. } in &self.known {
            let (owner, own) = (row.owner, (row.owner, row.seq));
            let row_of = |id: &MemoryId| Some((owner, *rows.get(&(owner, id.as_str()))?));
            for older in restored.memory.draft.supersedes.iter().filter_map(row_of) {
                superseded::link(tx, older, own).await?;
            }
            for newer in restored.superseded_by.iter().filter_map(row_of) {
                superseded::link(tx, own, newer).await?;
            }
        }
        Ok(())
    }

    /// Puts the memories into the stash that are in the stash of the backup, if their text is the same here.
    async fn stash(&self, tx: &Transaction) -> Result<()> {
        let stashed =
            || self.known.iter().filter_map(|known| Some((known, known.restored.stashed.as_ref()?)));
        let (owners, seqs): (Vec<i64>, Vec<i64>) =
            stashed().map(|(known, _)| (known.row.owner, known.row.seq)).unzip();
        if seqs.is_empty() {
            return Ok(());
        }
        let hash = |text: &str| blake3::hash(text.as_bytes()).as_bytes().to_vec();
        let hashes: Vec<_> = stashed().map(|(known, _)| hash(&known.restored.memory.draft.text)).collect();
        let times: Vec<i64> = stashed().map(|(_, stash)| stash.stashed_at).collect();
        let expires: Vec<Option<i64>> = stashed().map(|(_, stash)| stash.expires_at).collect();
        let protected: Vec<bool> = stashed().map(|(_, stash)| stash.is_protected).collect();
        let held_out: Vec<bool> = stashed().map(|(_, stash)| stash.is_held_out).collect();
        let given: Vec<bool> = stashed().map(|(_, stash)| stash.is_given).collect();
        let topics: Vec<Option<&str>> = stashed().map(|(_, stash)| stash.topic.as_deref()).collect();
        let causes: Vec<&str> = stashed().map(|(_, stash)| stash.cause.as_str()).collect();
        tx.execute(
            "INSERT INTO stashed (owner, memory, stashed_at, expires_at, is_protected, is_held_out, is_given, topic,
                 cause)
             SELECT m.owner, m.seq, u.stashed_at, u.expires_at, u.is_protected, u.is_held_out, u.is_given, u.topic,
                 u.cause
             FROM unnest($1::bigint[], $2::bigint[], $3::bytea[], $4::bigint[], $5::bigint[], $6::bool[], $7::bool[],
                 $8::bool[], $9::text[], $10::text[])
                 AS u (owner, memory, hash, stashed_at, expires_at, is_protected, is_held_out, is_given, topic, cause)
             JOIN memories m ON m.owner = u.owner AND m.seq = u.memory AND m.text_hash = u.hash
             ON CONFLICT DO NOTHING",
            &[&owners, &seqs, &hashes, &times, &expires, &protected, &held_out, &given, &topics, &causes],
        )
        .await?;
        Ok(())
    }

    /// Stores the sessions that led to commits, unless sessions are already stored for a commit here.
    async fn link(&self, tx: &Transaction, scope: &Scope) -> Result<()> {
        let (mut owners, mut commits, mut places) = (Vec::new(), Vec::new(), Vec::new());
        let (mut names, mut confidences) = (Vec::new(), Vec::new());
        for Known { restored, row, .. } in &self.known {
            let likely = |(_, (_, sure)): &(i64, &(_, f64))| (LEAST_CONFIDENCE..=1.0).contains(sure);
            for (place, (session, confidence)) in (0_i64..).zip(&restored.links).filter(likely) {
                owners.push(row.owner);
                commits.push(row.seq);
                places.push(place);
                names.push(session.as_str());
                confidences.push(*confidence);
            }
        }
        if commits.is_empty() {
            return Ok(());
        }
        // A name means a session of the commit's own part, or of the reader's private part, before a shared session.
        tx.execute(
            "INSERT INTO commit_sessions (owner, memory, place, session_owner, session, confidence)
             SELECT u.owner, u.memory, u.place, s.owner, s.seq, u.confidence
             FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::text[], $5::float8[])
                 AS u (owner, memory, place, name, confidence)
             CROSS JOIN LATERAL (SELECT s.owner, s.seq FROM sessions s
                 WHERE s.owner IN ($6, CASE WHEN u.owner = $6 THEN $7 ELSE u.owner END) AND s.name = u.name
                 ORDER BY s.owner = $6 LIMIT 1) s
             WHERE NOT EXISTS (SELECT FROM commit_sessions c WHERE c.owner = u.owner AND c.memory = u.memory)
             ON CONFLICT DO NOTHING",
            &[&owners, &commits, &places, &names, &confidences, &tx.seen.shared, &mine(tx, scope).await?],
        )
        .await?;
        Ok(())
    }

    /// Adds the ids of new commits, the occurrences of new outputs, and the evidence of new tool calls.
    async fn add_evidence(&self, tx: &Transaction) -> Result<()> {
        let mut evidence = Evidence::default();
        for Known { restored, row, .. } in self.stored_now() {
            let RestoredMemory { shas, repeats, evidence: own, .. } = restored;
            shas.iter().for_each(|sha| evidence.commit(row.owner, row.seq, sha));
            repeats.iter().for_each(|key| evidence.new_repeat(row.owner, row.seq, key));
            for write in &own.writes {
                let place = (write.worktree.clone(), write.branch.clone());
                evidence.write((row.owner, row.seq), write.time, &write.path, place, write.lines.clone());
            }
            for call in &own.calls {
                evidence.call((row.owner, row.seq), call.time, &call.sha, call.worktree.clone());
            }
        }
        evidence.insert(tx).await
    }

    /// Forgets the new memories that are forgotten in the backup.
    async fn forget(&self, tx: &Transaction, scope: &Scope) -> Result<()> {
        let mut forgotten: BTreeMap<&(String, Millis), Vec<SelectedRow>> = BTreeMap::new();
        for Known { restored, row, .. } in self.stored_now() {
            if let Some(operation) = &restored.forgotten {
                forgotten.entry(operation).or_default().push(row.clone());
            }
        }
        if forgotten.is_empty() {
            return Ok(());
        }
        let own = tx.own(scope).await?;
        let ids: Vec<&str> = forgotten.keys().map(|(id, _)| id.as_str()).collect();
        let times: Vec<i64> = forgotten.keys().map(|(_, at)| *at).collect();
        add_operations(tx, own, &ids, &times, &vec![None; ids.len()]).await?;
        for ((operation, at), rows) in forgotten {
            tombstone(tx, (own, operation), &rows, *at).await?;
        }
        Ok(())
    }
}

/// Returns the reader's private part, which may have been made in this transaction.
async fn mine(tx: &Transaction, scope: &Scope) -> Result<i64> {
    if tx.seen.mine != NO_OWNER {
        return Ok(tx.seen.mine);
    }
    let sql = "SELECT seq FROM owners WHERE tenant = $1 AND project = $2 AND author = $3";
    let names = [scope.tenant.as_str(), scope.project.as_str(), scope.reader.as_str()];
    let row = tx.row(sql, &[&names[0], &names[1], &names[2]]).await?;
    Ok(row.map_or(NO_OWNER, |row| row.get(0)))
}

/// Stores operations that forgot memories in a backup, unless they are known.
async fn add_operations(
    tx: &Transaction,
    own: i64,
    ids: &[&str],
    times: &[Millis],
    undone: &[Option<Millis>],
) -> Result<()> {
    tx.execute(
        "INSERT INTO operations (owner, id, kind, at, undone_at)
         SELECT $1::bigint, u.id, 'forget', u.at, u.undone_at
         FROM unnest($2::text[], $3::bigint[], $4::bigint[]) AS u (id, at, undone_at) ON CONFLICT DO NOTHING",
        &[&own, &ids, &times, &undone],
    )
    .await?;
    Ok(())
}

async fn restore_forgotten(tx: &Transaction, scope: &Scope, forgotten: &ForeignForgotten) -> Result<usize> {
    let ForeignForgotten { purged, operations, retired } = forgotten;
    let own = tx.own(scope).await?;
    let ids: Vec<&str> = operations.iter().map(|(id, ..)| id.as_str()).collect();
    let times: Vec<i64> = operations.iter().map(|(_, at, _)| *at).collect();
    let undone: Vec<Option<i64>> = operations.iter().map(|(.., undone)| *undone).collect();
    add_operations(tx, own, &ids, &times, &undone).await?;
    let (names, stood): (Vec<&str>, Vec<&str>) =
        retired.iter().map(|(session, stood)| (session.as_str(), stood.as_str())).unzip();
    tx.execute(
        "UPDATE sessions s SET retired = u.stood
         FROM unnest($1::text[], $2::text[]) AS u (name, stood)
             CROSS JOIN LATERAL (SELECT f.owner, f.seq FROM sessions f
                 WHERE f.owner = ANY ($3) AND f.name = u.name ORDER BY f.owner = $4 DESC LIMIT 1) f
         WHERE s.owner = f.owner AND s.seq = f.seq AND s.retired IS NULL
             AND EXISTS (SELECT FROM memories m
                 WHERE m.owner = s.owner AND m.id = u.stood AND m.tombstoned_at IS NOT NULL)",
        &[&names, &stood, &tx.seen.parts, &tx.seen.mine],
    )
    .await?;
    // A memory that is in this store stays, even if it was purged in the store of the backup.
    let purged: Vec<&str> = purged.iter().map(MemoryId::as_str).collect();
    let added = tx
        .execute(
            "INSERT INTO purged (owner, id) SELECT $1::bigint, u FROM unnest($2::text[]) u
             WHERE NOT EXISTS (SELECT FROM memories m WHERE m.owner = ANY ($3) AND m.id = u) ON CONFLICT DO NOTHING",
            &[&own, &purged, &tx.seen.parts],
        )
        .await?;
    Ok(usize::try_from(added).unwrap_or(usize::MAX))
}
