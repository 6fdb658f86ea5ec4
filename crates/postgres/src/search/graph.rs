//! Indexes of vectors: a graph (HNSW, Malkov and Yashunin 2018) for each long list of a part of a store.
//!
//! A list is what a search reads for a label: the messages of a part, say, in a space. A shorter one is searched exactly,
//! which finds all and needs no memory. For a longer one, the first search that meets it has a graph built in the
//! background, one list after the other, while all others read and write; until it is there, searches are exact. A graph
//! is a partial index of the table, so it changes in the same transaction as the rows.

use deadpool_postgres::Object;
use pgvector::HalfVector;

use crate::columns::number;
use crate::database::Database;
use crate::error::Result;
use crate::transactions::Transaction;

/// How many graphs a database may have. Every write looks at each of them. Arbitrary.
const MOST_GRAPHS: i64 = 64;

/// How many neighbours a search of a graph keeps in view: the most that pgvector allows. With fewer, more of the nearest are
/// missed.
const IN_VIEW: &str = "1000";

/// The key of the lock under which one process builds graphs.
const LOCK: i64 = 0x7469_726f_0001;

/// A chunk that may be near.
#[derive(Clone, Copy, Debug)]
pub(super) struct Near {
    /// The label of its list.
    pub label: i16,
    /// The cosine distance of its vector from the embedding.
    pub distance: f64,
    pub chunk: i64,
}

/// A list of vectors.
#[derive(Clone, Debug)]
struct List {
    part: i64,
    space: String,
    label: i16,
    dimensions: usize,
}

/// Returns the lists of the reader's parts that have graphs: part and label. Has graphs built for long lists without one.
pub(super) async fn graphs(
    database: &Database,
    tx: &Transaction,
    space: &str,
    dimensions: usize,
) -> Result<Vec<(i64, i16)>> {
    let mut found = Vec::new();
    for part in tx.seen.parts.iter().copied() {
        let labels = match database.graphs().known(part, space) {
            Some(labels) => labels,
            None => {
                let labels = labels_with_graphs(database, tx, part, space, dimensions).await?;
                database.graphs().remember(part, space, labels.clone());
                labels
            }
        };
        found.extend(labels.into_iter().map(|label| (part, label)));
    }
    Ok(found)
}

async fn labels_with_graphs(
    database: &Database,
    tx: &Transaction,
    part: i64,
    space: &str,
    dimensions: usize,
) -> Result<Vec<i16>> {
    let many = database.graphs().many();
    // How many documents there are is known, so a small part costs no count.
    let sql = "SELECT coalesce(sum(documents), 0)::bigint FROM index_sizes WHERE owner = $1";
    if tx.only(sql, &[&part]).await?.try_get::<_, i64>(0)? < many {
        return Ok(Vec::new());
    }
    let sql =
        "SELECT label FROM vectors WHERE owner = $1 AND space = $2 GROUP BY label HAVING count(*) >= $3";
    let mut labels = Vec::new();
    for row in tx.rows(sql, &[&part, &space, &many]).await? {
        let list = List { part, space: space.to_owned(), label: row.try_get(0)?, dimensions };
        match is_valid(tx, &list).await? {
            true => labels.push(list.label),
            false => database.in_background(build(database.clone(), list)),
        }
    }
    Ok(labels)
}

async fn is_valid(tx: &Transaction, list: &List) -> Result<bool> {
    let sql = "SELECT FROM pg_index WHERE indexrelid = to_regclass($1) AND indisvalid";
    tx.exists(sql, &[&list.index()]).await
}

/// Returns the chunks of the list that are nearest to the embedding, up to `most`. A few of them may be missing, with
/// farther ones in their place.
pub(super) async fn nearest(
    tx: &Transaction,
    (part, label): (i64, i16),
    space: &str,
    embedding: &[f32],
    most: usize,
) -> Result<Vec<Near>> {
    let list = List { part, space: space.to_owned(), label, dimensions: embedding.len() };
    // The index serves only a statement that repeats its condition word by word.
    let sql = format!(
        "SELECT chunk, {0} <=> $1 AS distance FROM vectors WHERE {1} ORDER BY {0} <=> $1 LIMIT $2",
        list.expression(),
        list.condition()
    );
    tx.execute("SELECT set_config('hnsw.iterative_scan', 'strict_order', true)", &[]).await?;
    tx.execute("SELECT set_config('hnsw.ef_search', $1, true)", &[&IN_VIEW]).await?;
    let rows = tx.rows(&sql, &[&HalfVector::from_f32_slice(embedding), &number(most)]).await?;
    let near =
        |row: &tokio_postgres::Row| Ok(Near { label, distance: row.try_get(1)?, chunk: row.try_get(0)? });
    rows.iter().map(near).collect()
}

impl List {
    fn index(&self) -> String {
        let space = blake3::hash(self.space.as_bytes()).to_hex();
        format!("graph_{}_{}_{}_{}", self.part, self.label, self.dimensions, &space[..8])
    }

    fn expression(&self) -> String {
        format!("(embedding::halfvec({}))", self.dimensions)
    }

    /// Vectors of another length can't be compared, and must keep neither the index from being built nor a memory from
    /// being stored.
    fn condition(&self) -> String {
        let List { part, label, dimensions, .. } = self;
        let space = self.space.replace('\'', "''");
        format!(
            "owner = {part} AND space = '{space}' AND label = {label} AND vector_dims(embedding) = {dimensions}"
        )
    }
}

/// Builds the graph of a list, unless another process builds one now. What goes wrong is logged: searches stay exact.
async fn build(database: Database, list: List) {
    match try_build(&database, &list).await {
        Ok(true) => {
            database.graphs().forget();
            tracing::info!(index = list.index(), "built an index of vectors");
        }
        Ok(false) => {}
        Err(error) => tracing::warn!(%error, index = list.index(), "an index of vectors was not built"),
    }
}

async fn try_build(database: &Database, list: &List) -> Result<bool> {
    // The connection is closed afterwards: it has a lock and settings of its own.
    let connection = Object::take(database.connection().await?);
    let locked = connection.query_one("SELECT pg_try_advisory_lock($1)", &[&LOCK]).await?;
    let sql = "SELECT count(*) FROM pg_indexes WHERE schemaname = current_schema() AND starts_with(indexname, 'graph_')";
    let count: i64 = connection.query_one(sql, &[]).await?.try_get(0)?;
    if !locked.try_get::<_, bool>(0)? || count >= MOST_GRAPHS {
        return Ok(false);
    }
    connection.batch_execute("SET statement_timeout = 0").await?;
    // What a process that ended had begun is there, but of no use.
    let index = list.index();
    let sql = "SELECT FROM pg_index WHERE indexrelid = to_regclass($1) AND NOT indisvalid";
    if connection.query_opt(sql, &[&index]).await?.is_some() {
        connection.batch_execute(&format!("DROP INDEX CONCURRENTLY IF EXISTS {index}")).await?;
    }
    let sql = format!(
        "CREATE INDEX CONCURRENTLY IF NOT EXISTS {index} ON vectors
         USING hnsw ({} halfvec_cosine_ops) WHERE {}",
        list.expression(),
        list.condition()
    );
    connection.batch_execute(&sql).await?;
    Ok(true)
}
