//! What a store knows of the memories of incoming changes, read for all of them at once.

use std::collections::{HashMap, HashSet};

use super::giving::{STATE, state};
use crate::columns;
use crate::error::Result;
use crate::forget::{IS_DERIVED, SELECTED, SelectedRow, selected_row};
use crate::transactions::Transaction;
use crate::write::nul::storable;
use tiro_base::memory::MemoryId;
use tiro_base::scope::{AuthorId, Scope};
use tiro_store::decide::exchange::{self, KnownState};
use tiro_store::{ExchangedState, Incoming};

/// The memory of an incoming change.
pub(super) struct Known {
    pub state: KnownState,
    pub at: At,
    /// Whether the memory belongs to the reader.
    pub is_own: bool,
}

/// Where a known memory is.
pub(super) enum At {
    /// In a row of `memories`.
    Here(SelectedRow),
    /// Nowhere: only its state is known, by its part and its id.
    Absent(i64, String),
}

/// What the parts that a reader sees have of some memories, by part and by the id under which each travels.
pub(super) struct Lookup {
    here: HashMap<(i64, String), Here>,
    /// Several people may have had a commit that travels under an id.
    absent: HashMap<(i64, String), Vec<Absent>>,
    /// Ids that were purged without a trace of the memory's author and kind.
    purged: HashSet<(i64, String)>,
    /// The commits among the changes that are here.
    commits: HashSet<(i64, String)>,
    /// Ids that are taken by memories which travel under other ids.
    taken: HashSet<(i64, String)>,
    /// The ids to which derived memories refer, with the authors of these.
    derived: Vec<(String, String)>,
}

struct Here {
    row: SelectedRow,
    author: String,
    by: Option<String>,
    is_same: bool,
    state: ExchangedState,
}

struct Absent {
    id: String,
    author: AuthorId,
    by: Option<String>,
    state: ExchangedState,
}

impl Lookup {
    /// Reads what is known of the memories of changes.
    pub async fn of(tx: &Transaction, incoming: &[&Incoming]) -> Result<Lookup> {
        let ids: Vec<&str> = incoming.iter().map(|each| each.id.as_str()).collect();
        let (parts, here) = (&tx.seen.parts, Lookup::here(tx, incoming).await?);
        let (absent, purged, taken) = (HashMap::new(), HashSet::new(), HashSet::new());
        let mut lookup = Lookup { here, absent, purged, commits: HashSet::new(), taken, derived: Vec::new() };
        let shas: Vec<&str> = incoming.iter().filter_map(|each| each.commit()).collect();
        if !shas.is_empty() {
            let sql = "SELECT owner, sha FROM commit_ids WHERE owner = ANY ($1) AND sha = ANY ($2)";
            for row in tx.rows(sql, &[parts, &shas]).await? {
                lookup.commits.insert((row.try_get(0)?, row.try_get(1)?));
            }
        }
        let sql = format!(
            "SELECT owner, coalesce(exchange_id, id), id, author, changed_by, {STATE} FROM absent
             WHERE owner = ANY ($1) AND (exchange_id = ANY ($2) OR exchange_id IS NULL AND id = ANY ($2))"
        );
        for row in tx.rows(&sql, &[parts, &ids]).await? {
            let author = AuthorId::new(row.try_get::<_, String>(3)?);
            let absent = Absent { id: row.try_get(2)?, author, by: row.try_get(4)?, state: state(&row, 5)? };
            lookup.absent.entry((row.try_get(0)?, row.try_get(1)?)).or_default().push(absent);
        }
        let sql = "SELECT p.owner, p.id FROM purged p WHERE p.owner = ANY ($1) AND p.id = ANY ($2)
                   AND NOT EXISTS (SELECT FROM absent a WHERE a.owner = p.owner AND a.id = p.id)";
        for row in tx.rows(sql, &[parts, &ids]).await? {
            lookup.purged.insert((row.try_get(0)?, row.try_get(1)?));
        }
        let sql = "SELECT owner, id FROM memories WHERE owner = ANY ($1) AND id = ANY ($2)
                   UNION SELECT owner, id FROM absent
                       WHERE owner = ANY ($1) AND id = ANY ($2) AND exchange_id <> id
                   UNION SELECT owner, id FROM purged WHERE owner = ANY ($1) AND id = ANY ($2)";
        for row in tx.rows(sql, &[parts, &ids]).await? {
            lookup.taken.insert((row.try_get(0)?, row.try_get(1)?));
        }
        let sql = format!(
            "SELECT DISTINCT r.target, m.author FROM memory_references r
             JOIN memories m ON m.owner = r.owner AND m.seq = r.memory
             WHERE r.owner = ANY ($1) AND r.target = ANY ($2) AND {IS_DERIVED}"
        );
        for row in tx.rows(&sql, &[parts, &ids]).await? {
            lookup.derived.push((row.try_get(0)?, row.try_get(1)?));
        }
        Ok(lookup)
    }

    async fn here(tx: &Transaction, incoming: &[&Incoming]) -> Result<HashMap<(i64, String), Here>> {
        let ids: Vec<&str> = incoming.iter().map(|each| each.id.as_str()).collect();
        let text = |each: &Incoming| {
            let content = each.content.as_ref()?;
            Some((each.id.as_str().to_owned(), storable(&content.memory).draft.text.clone()))
        };
        let texts: HashMap<String, String> = incoming.iter().filter_map(|each| text(each)).collect();
        let hash = |each: &&Incoming| {
            let text = texts.get(each.id.as_str());
            text.map(|text| blake3::hash(text.as_bytes()).as_bytes().to_vec())
        };
        let hashes: Vec<Option<Vec<u8>>> = incoming.iter().map(hash).collect();
        // The text of a forgotten memory doesn't matter. A text is read only if it may differ by more than redaction.
        let sql = format!(
            "SELECT {SELECTED}, u.id, m.author, x.changed_by,
                 CASE WHEN m.tombstoned_at IS NULL AND m.text_hash <> u.hash THEN m.text END,
                 m.marked, m.importance, x.marked_at, m.tombstoned_at IS NOT NULL, x.forgotten_at, false
             FROM unnest($2::text[], $3::bytea[]) AS u (id, hash)
             CROSS JOIN LATERAL (
                 SELECT e.owner, e.memory, 1 AS place FROM exchange e
                 WHERE e.owner = ANY ($1) AND e.exchange_id = u.id
                 UNION ALL SELECT o.owner, o.seq, 0 FROM memories o JOIN exchange e ON e.owner = o.owner AND e.memory = o.seq
                 WHERE o.owner = ANY ($1) AND o.id = u.id AND e.exchange_id IS NULL) f
             JOIN memories m ON m.owner = f.owner AND m.seq = f.memory
             JOIN exchange x ON x.owner = f.owner AND x.memory = f.memory ORDER BY f.place"
        );
        let mut here = HashMap::new();
        for found in tx.rows(&sql, &[&tx.seen.parts, &ids, &hashes]).await? {
            let row = selected_row(&found)?;
            let travelling: String = found.try_get(6)?;
            let other: Option<String> = found.try_get(9)?;
            let is_same = match (other, texts.get(&travelling)) {
                (Some(other), Some(text)) => tiro_redact::alike(&other, text),
                _ => true,
            };
            let (author, by, state) = (found.try_get(7)?, found.try_get(8)?, state(&found, 10)?);
            here.insert((row.owner, travelling), Here { row, author, by, is_same, state });
        }
        Ok(here)
    }

    /// Returns what is known of the memory of a change whose author is called `author` here. What is here counts before
    /// what is only remembered, and the reader's private part before the shared one.
    pub fn find(
        &self,
        tx: &Transaction,
        scope: &Scope,
        (incoming, named): (&Incoming, &AuthorId),
        peer: &str,
    ) -> Option<Known> {
        for owner in [tx.seen.mine, tx.seen.shared] {
            let place = (owner, incoming.id.as_str().to_owned());
            let is_private = owner == tx.seen.mine;
            if let Some(Here { row, author, by, is_same, state }) = self.here.get(&place) {
                let (is_by_author, is_of_peer) = (author == named.as_str(), by.as_deref() == Some(peer));
                let state =
                    KnownState { state: *state, is_here: true, is_by_author, is_same: *is_same, is_of_peer };
                let is_own = is_private || author == scope.reader.as_str();
                return Some(Known { state, at: At::Here(row.clone()), is_own });
            }
        }
        for owner in [tx.seen.mine, tx.seen.shared] {
            let place = (owner, incoming.id.as_str().to_owned());
            let is_private = owner == tx.seen.mine;
            if incoming.commit().is_some_and(|sha| self.commits.contains(&(owner, sha.to_owned()))) {
                let at = At::Absent(owner, place.1);
                return Some(Known {
                    state: KnownState::under_another_id(),
                    at,
                    is_own: *named == scope.reader,
                });
            }
            let counts =
                |absent: &&Absent| exchange::counts(&absent.state, &absent.author, named, &scope.reader);
            let absent = self.absent.get(&place).and_then(|absent| absent.iter().find(counts));
            if let Some(Absent { id, author, by, state }) = absent {
                let state = KnownState::absent(*state, by.as_deref() == Some(peer));
                let is_own = is_private || *author == scope.reader;
                return Some(Known { state, at: At::Absent(owner, id.clone()), is_own });
            }
            if self.purged.contains(&place) {
                let (at, is_own) = (At::Absent(owner, place.1), *named == scope.reader);
                return Some(Known { state: KnownState::purged(), at, is_own });
            }
        }
        None
    }

    /// Returns the id under which a new memory of `author` is stored in a part: that of the change, unless another memory
    /// has this id, or had it before it was purged, or what is derived from a memory of somebody else refers to it.
    pub fn free(&self, owner: i64, incoming: &Incoming, author: &AuthorId) -> MemoryId {
        let id = incoming.id.as_str();
        let is_meant = self.derived.iter().any(|(target, by)| target == id && by != author.as_str());
        match is_meant || self.taken.contains(&(owner, id.to_owned())) {
            true => exchange::id_beside(incoming.kind, &incoming.id),
            false => incoming.id.clone(),
        }
    }
}

/// Returns the rows of memories, by part and id.
pub(super) async fn rows(
    tx: &Transaction,
    owners: &[i64],
    ids: &[String],
) -> Result<HashMap<(i64, MemoryId), SelectedRow>> {
    let sql = format!(
        "SELECT {SELECTED} FROM unnest($1::bigint[], $2::text[]) AS u (owner, id)
         JOIN memories m ON m.owner = u.owner AND m.id = u.id"
    );
    let rows = tx.rows(&sql, &[&owners, &ids]).await?;
    rows.iter().map(|row| Ok(((row.try_get(0)?, columns::id(row, 2)?), selected_row(row)?))).collect()
}
