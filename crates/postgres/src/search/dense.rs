//! Finds candidates by meaning: computes the cosine of each admitted chunk.
//!
//! This is exact, and takes as long as the admitted vectors are many. An index of vectors (HNSW) would belong into
//! [`dense`]: for a scope and filter that admit nearly everything, it would return some thousand chunks that are near,
//! of which the admitted ones are kept, group by group; a filter that admits few chunks is better searched as now.
//! Vectors of different spaces have different numbers of dimensions, so such an index needs an expression
//! (`embedding::halfvec(n)`) and a condition for each space.

use pgvector::HalfVector;

use crate::columns::{is_answer, memory_key, number};
use crate::database::sql::Sql;
use crate::error::Result;
use crate::read::conditions::{Which, narrow, of_scope};
use crate::transactions::Transaction;
use tiro_base::memory::Kind;
use tiro_base::scope::Scope;
use tiro_store::{CandidateQuery, ChunkKey, DenseCandidate};

/// Returns the SQL condition that the vector `v` is one of the space and can be compared with the query, and the
/// expression for its distance from the query. The expression is safe for other vectors too, because nothing says that
/// the condition is evaluated first.
fn distance(sql: &mut Sql, space: &str, embedding: &[f32]) -> (String, String) {
    let space = sql.bind(space.to_owned());
    let dimensions = sql.bind(i32::try_from(embedding.len()).unwrap_or(i32::MAX));
    let query = sql.bind(HalfVector::from_f32_slice(embedding));
    let is_of_space = format!("v.space = {space} AND vector_dims(v.embedding) = {dimensions}");
    let distance = format!("CASE WHEN {is_of_space} THEN v.embedding <=> {query} END");
    (is_of_space, distance)
}

/// Returns the living chunks that are nearest to the query in the space, up to the limit for each group. The chunks of
/// long answers are in a separate list, because they would fill the list of messages.
pub(super) async fn dense(
    tx: &Transaction,
    scope: &Scope,
    query: &CandidateQuery,
    space: &str,
    embedding: &[f32],
) -> Result<Vec<DenseCandidate>> {
    let CandidateQuery { filter, groups, limit, .. } = query;
    let of_group = |kind: &&Kind| groups.contains(&kind.group());
    let kinds: Vec<Kind> = Kind::ALL.iter().filter(of_group).copied().collect();
    let place = |kind: &Kind| groups.iter().position(|group| *group == kind.group()).unwrap_or_default();
    let labels: Vec<i64> = kinds.iter().map(|kind| number(place(kind))).collect();
    let mut sql = Sql::new("");
    let (is_of_space, distance) = distance(&mut sql, space, embedding);
    let words: Vec<&str> = kinds.iter().map(|kind| kind.as_str()).collect();
    let (words, labels, answers) = (sql.bind(words), sql.bind(labels), sql.bind(number(groups.len())));
    sql.push(&format!(
        "SELECT n.memory, n.chunk FROM (
             SELECT d.*, row_number() OVER (PARTITION BY d.label ORDER BY d.distance, d.chunk) AS place FROM (
                 SELECT m.seq AS memory, c.seq AS chunk, {distance} AS distance,
                     CASE WHEN {} THEN {answers}::bigint ELSE k.label END AS label
                 FROM memories m JOIN unnest({words}::text[], {labels}::bigint[]) k (kind, label) ON k.kind = m.kind
                 JOIN chunks c ON c.owner = m.owner AND c.memory = m.seq
                 JOIN vectors v ON v.owner = c.owner AND v.chunk = c.seq WHERE {is_of_space} AND ",
        is_answer()
    ));
    of_scope(tx, scope, Which::Living, &mut sql).await?;
    narrow(tx, filter, &mut sql).await?;
    let limit = sql.bind(number(*limit));
    sql.push(&format!(") d) n WHERE n.place <= {limit} ORDER BY n.label, n.place"));
    let rows = tx.query(&sql).await?;
    let found = |row: &tokio_postgres::Row| {
        Ok(DenseCandidate { memory: memory_key(row, 0)?, chunk: ChunkKey::from_store(row.try_get(1)?) })
    };
    rows.iter().map(found).collect()
}

/// Returns the cosine of the embedding with each chunk that has a vector of the space, the nearest chunk first.
pub(super) async fn cosines(
    tx: &Transaction,
    space: &str,
    embedding: &[f32],
    chunks: &[ChunkKey],
) -> Result<Vec<(ChunkKey, f64)>> {
    let chunks: Vec<i64> = chunks.iter().map(|chunk| chunk.in_store()).collect();
    if chunks.is_empty() {
        return Ok(Vec::new());
    }
    let mut sql = Sql::new("");
    let (is_of_space, distance) = distance(&mut sql, space, embedding);
    let (parts, chunks) = (sql.bind(tx.seen.parts.clone()), sql.bind(chunks));
    sql.push(&format!(
        "SELECT v.chunk, {distance} FROM vectors v
         WHERE v.owner = ANY ({parts}) AND v.chunk = ANY ({chunks}) AND {is_of_space} ORDER BY 2, 1"
    ));
    let cosine = |row: &tokio_postgres::Row| {
        let cosine = 1.0 - row.try_get::<_, f64>(1)?;
        // A vector of zeros has no direction.
        Ok((ChunkKey::from_store(row.try_get(0)?), if cosine.is_nan() { 0.0 } else { cosine }))
    };
    tx.query(&sql).await?.iter().map(cosine).collect()
}
