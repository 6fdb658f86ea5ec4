//! Finds candidates by meaning: computes the cosine of each vector of the searched lists.
//!
//! This is exact, and takes as long as the vectors of the reader's parts are many; a long list has a [`graph`]. The nearest
//! of each list are read from the table of vectors alone, more than are wanted; then those that scope and filter admit are
//! looked up, as in a search by words. If too few of a list are admitted, more of it are read. So no plan depends on how well the planner knows the
//! tables: a store that was just filled is as fast as any other.

use std::collections::{HashMap, HashSet};

use pgvector::HalfVector;

use super::admitted::Admitted;
use super::graph::{self, Near, graphs};
use super::label::labels;
use crate::columns::number;
use crate::database::Database;
use crate::database::sql::Sql;
use crate::error::Result;
use crate::transactions::Transaction;
use tiro_base::scope::{Scope, Sessions};
use tiro_store::tuning::FEW_CHUNKS;
use tiro_store::{CandidateQuery, ChunkKey, DenseCandidate};

/// How many times as many chunks as are wanted are read first. Arbitrary: few of a store's memories are forgotten.
const FIRST: usize = 2;

/// How many times as many are read each further time. Arbitrary.
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
    database: &Database,
    tx: &Transaction,
    (scope, query): (&Scope, &CandidateQuery),
    admitted: &mut Admitted<'_>,
    (space, embedding): (&str, &[f32]),
) -> Result<Vec<DenseCandidate>> {
    let CandidateQuery { filter, groups, limit, .. } = query;
    let narrows = scope.sessions != Sessions::All || groups.iter().any(|group| filter.narrows(*group));
    let only = if narrows { admitted.all(FEW_CHUNKS).await? } else { None };
    let graphs = match only {
        Some(_) => Vec::new(),
        None => graphs(database, tx, space, embedding.len()).await?,
    };
    let mut lists: Vec<(i16, Vec<DenseCandidate>)> =
        labels(groups).into_iter().map(|label| (label, Vec::new())).collect();
    let mut wanted: Vec<i16> = lists.iter().map(|(label, _)| *label).collect();
    let mut most = limit * FIRST;
    while !wanted.is_empty() {
        let found = nearest(tx, (space, embedding), &wanted, (&graphs, only.as_ref()), most).await?;
        admitted.look_up(found.iter().map(|near| near.chunk), usize::MAX).await?;
        let mut short = Vec::new();
        for (label, list) in lists.iter_mut().filter(|(label, _)| wanted.contains(label)) {
            let own = found.iter().filter(|near| near.label == *label).map(|near| near.chunk);
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
/// for each list; with `only`, those among these chunks. The lists of `graphs`, each a part and a label, are read from
/// their graphs.
async fn nearest(
    tx: &Transaction,
    (space, embedding): (&str, &[f32]),
    labels: &[i16],
    (graphs, only): (&[(i64, i16)], Option<&HashSet<i64>>),
    most: usize,
) -> Result<Vec<Near>> {
    let mut found = Vec::new();
    for list in graphs.iter().filter(|(_, label)| labels.contains(label)) {
        found.extend(graph::nearest(tx, *list, space, embedding, most).await?);
    }
    // The other lists: labels and parts, pair by pair.
    let pairs = labels.iter().flat_map(|label| tx.seen.parts.iter().map(move |part| (*part, *label)));
    let (parts, labels): (Vec<i64>, Vec<i16>) = pairs.filter(|pair| !graphs.contains(pair)).unzip();
    let mut sql = Sql::new("");
    let (is_of_space, distance) = distance(&mut sql, space, embedding);
    let (parts, labels) = (sql.bind(parts), sql.bind(labels));
    let limit = sql.bind(number(most));
    let only = match only {
        Some(only) => {
            format!(" AND v.chunk = ANY ({})", sql.bind(only.iter().copied().collect::<Vec<i64>>()))
        }
        None => String::new(),
    };
    sql.push(&format!(
        "SELECT l.label, n.distance, n.chunk FROM unnest({parts}::bigint[], {labels}::int2[]) l (part, label)
         CROSS JOIN LATERAL (
             SELECT v.chunk, {distance} AS distance FROM vectors v
             WHERE v.owner = l.part AND v.label = l.label AND {is_of_space}{only}
             ORDER BY distance, v.chunk LIMIT {limit}) n"
    ));
    for row in tx.query(&sql).await? {
        found.push(Near { label: row.try_get(0)?, distance: row.try_get(1)?, chunk: row.try_get(2)? });
    }
    found.sort_by(|a, b| a.distance.total_cmp(&b.distance).then(a.chunk.cmp(&b.chunk)));
    // Each part gave so many; beyond the nearest of them, there may be nearer ones that were not read.
    let mut counts: HashMap<i16, usize> = HashMap::new();
    found.retain(|near| {
        let count = counts.entry(near.label).or_default();
        *count += 1;
        *count <= most
    });
    Ok(found)
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
