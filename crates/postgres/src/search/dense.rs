//! Finds candidates by meaning: computes the cosine of each vector of the searched lists.
//!
//! This is exact, and takes as long as the vectors of the reader's parts are many. The nearest of each list are read from
//! the table of vectors alone, more than are wanted; then those that scope and filter admit are looked up, as in a search
//! by words. If too few of a list are admitted, more of it are read. So no plan depends on how well the planner knows the
//! tables: a store that was just filled is as fast as any other.

use std::collections::HashSet;

use pgvector::HalfVector;

use super::admitted::Admitted;
use super::label::labels;
use crate::columns::number;
use crate::database::sql::Sql;
use crate::error::Result;
use crate::transactions::Transaction;
use tiro_base::scope::{Scope, Sessions};
use tiro_store::tuning::FEW_CHUNKS;
use tiro_store::{CandidateQuery, ChunkKey, DenseCandidate};

/// How many times as many chunks as are wanted are read first, and how many times as many each further time. Arbitrary:
/// few of a store's memories are forgotten.
const MORE: usize = 4;

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
    admitted: &mut Admitted<'_>,
    (space, embedding): (&str, &[f32]),
) -> Result<Vec<DenseCandidate>> {
    let CandidateQuery { filter, groups, limit, .. } = query;
    let narrows = scope.sessions != Sessions::All || groups.iter().any(|group| filter.narrows(*group));
    let only = if narrows { admitted.all(FEW_CHUNKS).await? } else { None };
    let mut lists: Vec<(i16, Vec<DenseCandidate>)> =
        labels(groups).into_iter().map(|label| (label, Vec::new())).collect();
    let mut wanted: Vec<i16> = lists.iter().map(|(label, _)| *label).collect();
    let mut most = limit * MORE;
    while !wanted.is_empty() {
        let found = nearest(tx, (space, embedding), &wanted, only.as_ref(), most).await?;
        admitted.look_up(found.iter().map(|(_, chunk)| *chunk), usize::MAX).await?;
        let mut short = Vec::new();
        for (label, list) in lists.iter_mut().filter(|(label, _)| wanted.contains(label)) {
            let own = found.iter().filter(|(of, _)| of == label).map(|(_, chunk)| *chunk);
            let candidate = |chunk| {
                let memory = admitted.of(chunk)?.memory;
                Some(DenseCandidate { memory, chunk: ChunkKey::from_store(chunk) })
            };
            *list = own.clone().filter_map(candidate).take(*limit).collect();
            if list.len() < *limit && own.count() == most {
                short.push(*label);
            }
        }
        wanted = short;
        most *= MORE;
    }
    Ok(lists.into_iter().flat_map(|(_, list)| list).collect())
}

/// Returns the chunks of each of the lists that are nearest to the embedding in the space, the nearest first, up to `most`
/// for each list; with `only`, those among these chunks.
async fn nearest(
    tx: &Transaction,
    (space, embedding): (&str, &[f32]),
    labels: &[i16],
    only: Option<&HashSet<i64>>,
    most: usize,
) -> Result<Vec<(i16, i64)>> {
    let mut sql = Sql::new("");
    let (is_of_space, distance) = distance(&mut sql, space, embedding);
    let (labels, parts) = (sql.bind(labels.to_vec()), sql.bind(tx.seen.parts.clone()));
    let limit = sql.bind(number(most));
    let only = match only {
        Some(only) => {
            format!(" AND v.chunk = ANY ({})", sql.bind(only.iter().copied().collect::<Vec<i64>>()))
        }
        None => String::new(),
    };
    sql.push(&format!(
        "SELECT l.label, n.chunk FROM unnest({labels}::int2[]) l (label) CROSS JOIN LATERAL (
             SELECT v.chunk, {distance} AS distance FROM vectors v
             WHERE v.owner = ANY ({parts}) AND v.label = l.label AND {is_of_space}{only}
             ORDER BY distance, v.chunk LIMIT {limit}) n
         ORDER BY l.label, n.distance, n.chunk"
    ));
    let found = |row: &tokio_postgres::Row| Ok((row.try_get(0)?, row.try_get(1)?));
    tx.query(&sql).await?.iter().map(found).collect()
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
