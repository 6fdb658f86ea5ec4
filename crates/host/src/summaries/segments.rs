//! Closes a session's segments and makes their summaries.
//!
//! The idle server, imports and calls that write do this work in bounded steps. Equal messages lead to equal results.
//! So two processes that do the same work at the same time store one result, and a read-only call can make missing
//! results for itself.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::engine::Engine;
use crate::project::WritableProject;
use crate::summaries::known::Known;
use crate::summaries::messages::{self, blocking, count};
use crate::summaries::notes::corrections::corrections;
use tiro_base::error::Result;
use tiro_base::memory::{Draft, Level, Memory, Provenance};
use tiro_base::scope::{Scope, SessionId};
use tiro_digest::context::segment::{self, Segment};
use tiro_digest::context::tier::Tiers;
use tiro_digest::context::{Message, importance};
use tiro_digest::summarize;
use tiro_digest::tuning::summaries::SEGMENT_TOKENS;
use tiro_intake::prepare;
use tiro_store::{MessageRow, SegmentRow, Store, Summary, source_hash};

/// The maximum number of messages that one call divides into segments, which usually takes less than a second. A
/// session may have a hundred thousand messages.
const STEP: usize = 4000;

/// An earlier version of the program stored facts without chunks. One step makes at most this many of them searchable.
/// Arbitrary: a step takes about ten milliseconds.
const MENDED_AT_ONCE: usize = 200;

/// The number of bytes of a message that are used to determine its topic. Arbitrary.
const MOST_READ: usize = 4096;

/// The longest time to wait for other writers. It is short because the wait delays the answer, and a result that isn't
/// stored can be made again.
const TURN: Duration = Duration::from_millis(250);

/// Returns the configured tiers.
pub fn tiers(engine: &Engine) -> Tiers {
    let options = &engine.config().options;
    let kept = |percent: f64| 1.0 - percent / 100.0;
    Tiers {
        recent: options.max_recent_messages,
        medium_share: kept(options.compression_medium),
        long_share: kept(options.compression_long),
        ancient_share: kept(options.compression_ancient),
        ..Tiers::default()
    }
}

/// Returns the configured weights of importance.
pub fn weights(engine: &Engine) -> importance::Weights {
    let options = &engine.config().options;
    importance::Weights {
        recency: options.weight_recency,
        semantic: options.weight_semantic,
        entity: options.weight_entity,
        user: options.weight_user,
    }
}

/// Returns the segment that `row` stores.
pub fn segment(row: &SegmentRow) -> Segment {
    let count = |count: i64| usize::try_from(count).unwrap_or(0);
    Segment { first: row.first, last: row.last, messages: count(row.messages), tokens: count(row.tokens) }
}

/// The closed segments of a session.
#[derive(Debug, Default)]
pub struct Closed {
    /// All closed segments of the session, in order.
    pub segments: Vec<SegmentRow>,
    /// How many of the last segments are not stored yet.
    pub new: usize,
    /// The number of messages that are not examined yet. The next call continues with them.
    pub waiting: usize,
}

/// Returns the segments that are complete in the session's messages. One call processes a bounded number of messages.
/// Stores nothing.
pub async fn closed(known: &Known<'_>) -> Result<Closed> {
    let segments = known.segments().await?;
    let from = segments.last().map_or(0, |row| row.last + 1);
    let rows = known.messages(from).await?;
    let waiting = rows.len().saturating_sub(STEP);
    let read = known.texts(&rows[..rows.len() - waiting]).await?;
    let messages: Vec<Message<'_>> = read.iter().map(|(row, text)| message(row, text)).collect();
    let new = segment::close(&messages);
    if new.is_empty() {
        return Ok(Closed { segments, ..Closed::default() });
    }
    let added = new.iter().zip(segments.len() as i64..).map(|(segment, number)| SegmentRow {
        number,
        first: segment.first,
        last: segment.last,
        messages: segment.messages as i64,
        tokens: segment.tokens as i64,
    });
    let added: Vec<SegmentRow> = added.collect();
    Ok(Closed { new: added.len(), segments: [segments, added].concat(), waiting })
}

/// Closes and stores the segments that are complete in the session's messages. One call processes a bounded number of
/// messages.
pub async fn close(project: &WritableProject, session: &SessionId) -> Result<Closed> {
    let (store, scope) = (project.store.as_ref(), &project.scope);
    let closed = closed(&Known::unread(project, session)).await?;
    if closed.new == 0 {
        return Ok(closed);
    }
    store.await_turn(scope, TURN).await?;
    let added = closed.segments[closed.segments.len() - closed.new..].to_vec();
    store.add_segments(scope, session, added).await?;
    // The segments are read from the store, because another process may have closed them first, with other boundaries.
    Ok(Closed { segments: store.segments(scope, session).await?, new: 0, waiting: closed.waiting })
}

fn message<'a>(row: &MessageRow, text: &'a str) -> Message<'a> {
    Message {
        ordinal: row.ordinal,
        role: row.role,
        time: row.time,
        tokens: usize::try_from(row.tokens).unwrap_or(0),
        text: &text[..text.floor_char_boundary(MOST_READ)],
    }
}

/// Adds chunks to facts and decisions that an earlier version of the program stored without chunks, so that a search
/// finds them. Processes a bounded number of them and returns this number.
pub async fn mend(engine: &Engine, store: &dyn Store, scope: &Scope) -> Result<usize> {
    let bare = store.derived_without_chunk(scope, MENDED_AT_ONCE).await?;
    let count = bare.len();
    let chunked = move || {
        let chunked = bare.into_iter().map(|memory| {
            let Memory { id, key, kind, provenance, text, session, time, .. } = memory;
            let draft = Draft { session, ..Draft::new(kind, provenance, text, time) };
            let chunks = prepare::pieces(&draft, &id);
            (key, draft, chunks)
        });
        chunked.collect::<Vec<_>>()
    };
    if count > 0 {
        store.add_chunks(scope, blocking(chunked).await?).await?;
        engine.wrote();
    }
    Ok(count)
}

/// The summaries of a session's segments.
#[derive(Debug, Default)]
pub struct Leaves {
    /// The summaries that exist, keyed by the ordinal of their first message.
    pub made: BTreeMap<i64, Summary>,
    /// The summaries that are not stored yet. Each is given by the ordinal of its first message.
    pub new: Vec<i64>,
    /// The number of wanted summaries that are still missing.
    pub waiting: usize,
}

/// Returns the wanted summaries. `wanted` contains the segment, level and length of each. Makes up to `most` missing
/// summaries, starting with the latest segments. Stores nothing.
pub async fn summaries(
    session: &Known<'_>,
    wanted: &[(SegmentRow, Level, usize)],
    most: usize,
) -> Result<Leaves> {
    let mut leaves = Leaves::default();
    let mut levels: Vec<Level> = wanted.iter().map(|(_, level, _)| *level).collect();
    levels.sort_unstable();
    levels.dedup();
    let mut known: BTreeMap<(i64, Level), Summary> = BTreeMap::new();
    for level in levels {
        let rows = session.summaries(level).await?;
        let of_segments = rows.into_iter().map(|row| row.summary).filter(|summary| summary.segment.is_some());
        known.extend(of_segments.map(|summary| ((summary.first, level), summary)));
    }
    let mut missing: Vec<&(SegmentRow, Level, usize)> = Vec::new();
    for each in wanted.iter().rev() {
        let (row, level, _) = each;
        match known.remove(&(row.first, *level)) {
            Some(found) => drop(leaves.made.insert(row.first, found)),
            None if row.messages == 0 => {}
            None if missing.len() < most => missing.push(each),
            None => leaves.waiting += 1,
        }
    }
    let Some(from) = missing.iter().map(|(row, ..)| row.first).min() else { return Ok(leaves) };
    // The messages are read once for all missing summaries, because a session may have a hundred thousand of them.
    let rows = session.messages(from).await?;
    for (row, level, tokens) in missing {
        let start = rows.partition_point(|each| each.ordinal < row.first);
        let end = rows.partition_point(|each| each.ordinal <= row.last);
        let made = make(session, row, &rows[start..end], *level, *tokens).await?;
        leaves.made.insert(row.first, made);
        leaves.new.push(row.first);
    }
    Ok(leaves)
}

/// Makes and stores up to `most` of the wanted summaries that are missing. Returns how many are still missing.
pub async fn keep_summaries(
    engine: &Engine,
    project: &WritableProject,
    session: &SessionId,
    wanted: &[(SegmentRow, Level, usize)],
    most: usize,
) -> Result<usize> {
    let (store, scope) = (project.store.as_ref(), &project.scope);
    let known = Known::unread(project, session);
    let Leaves { mut made, new, waiting } = summaries(&known, wanted, most).await?;
    for first in new {
        let Some(summary) = made.remove(&first) else { continue };
        store.await_turn(scope, TURN).await?;
        // If a message of the segment was forgotten while its summary was made, the summary isn't stored.
        store.save_summary(scope, summary, engine.now()).await?;
    }
    Ok(waiting)
}

/// Makes the summary of a segment.
async fn make(
    session: &Known<'_>,
    row: &SegmentRow,
    messages: &[MessageRow],
    level: Level,
    tokens: usize,
) -> Result<Summary> {
    let read = session.texts(messages).await?;
    let hash = source_hash(read.iter().map(|(row, _)| &row.id));
    let number = row.number;
    let (first, last) = (row.first, row.last);
    let session_name = session.session.clone();
    let summarise = move || {
        let corrected = corrections(&read);
        let sources = messages::corrected(&read, &corrected);
        let most = tokens.max(SEGMENT_TOKENS);
        let summary = summarize::extract(&sources, level, most, "", &count);
        let quality = summarize::quality(&summary.text, &sources);
        let text = messages::without_damaged(summary.text, &read);
        Summary {
            session: session_name,
            segment: Some(number),
            level,
            first,
            last,
            messages: read.len() as i64,
            tokens: count(&text) as i64,
            text,
            provider: "extractive".into(),
            model: String::new(),
            quality,
            provenance: Provenance::lowest(read.iter().map(|(row, _)| row.provenance)),
            cited: summary.cited,
            source_hash: hash,
        }
    };
    blocking(summarise).await
}

/// Returns, for each segment, the level and the length in tokens that its tier requires of its summary. Segments that
/// are shown in full are left out.
pub fn wanted(tiers: &Tiers, closed: &[SegmentRow]) -> Vec<(SegmentRow, Level, usize)> {
    let segments: Vec<Segment> = closed.iter().map(segment).collect();
    let by_tier = closed.iter().zip(tiers.of(&segments)).zip(&segments);
    by_tier
        .filter_map(|((row, tier), segment)| {
            Some((row.clone(), tier.level()?, tiers.tokens(tier, segment.tokens)))
        })
        .collect()
}
