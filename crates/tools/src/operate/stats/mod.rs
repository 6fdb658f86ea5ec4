//! Reports the content of the project's memory, its use, and its cost.

mod threads;

use serde::Serialize;

use crate::provider::spending;
use tiro_base::envelope;
use tiro_base::error::Result;
use tiro_base::humanize::{bytes, counted, thousands};
use tiro_base::memory::Level as SummaryLevel;
use tiro_digest::context::tier::{Tier, Tiers};
use tiro_host::ask;
use tiro_host::caller::Caller;
use tiro_host::engine::Engine;
use tiro_host::summaries::segments;
use tiro_store::{LevelCount, Measurement, SummarisedSegment};

pub use self::threads::ThreadUse;

/// The answer of `tiro stats`.
#[derive(Debug, Serialize)]
pub struct Output {
    /// The project's name.
    pub project: String,
    /// The project's id.
    pub project_id: String,
    /// The path of its store.
    pub store: String,
    /// Memories that are not forgotten, by kind.
    pub kinds: Vec<KindCount>,
    /// Conversations.
    pub sessions: i64,
    /// Chunks with an embedding.
    pub embedded: i64,
    /// Chunks without an embedding.
    pub pending: i64,
    /// Memories that are forgotten and can be brought back.
    pub forgotten: i64,
    /// Bytes of the store on disk; 0 if it is in a database.
    pub bytes_on_disk: u64,
    /// Memories that belong to the owner, and so to all projects.
    pub owner_memories: i64,
    /// The vector space of the embedding model; absent if none is installed.
    pub embedder: Option<String>,
    /// The number of commits that were made since the first session began.
    pub commits_since_sessions: i64,
    /// How many of these commits are linked to a session.
    pub commits_linked: i64,
    /// How many sessions changed a file that was committed within a month.
    pub sessions_committed: i64,
    /// How many of these sessions are linked to a commit.
    pub sessions_linked: i64,
    /// `sessions_linked` divided by `sessions_committed`; absent if the latter is 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub join_rate: Option<f64>,
    /// The number of tool outputs that were only counted, because they were very similar to an earlier output.
    pub repeats: i64,
    /// Memories stored in the last seven days.
    pub stored_lately: i64,
    /// The tokens that contexts saved, compared with whole conversations.
    pub contexts: Contexts,
    /// Closed segments and their summaries, by tier.
    pub tiers: Vec<TierUse>,
    /// Summaries of ranges of messages, by level and provider.
    pub summaries: Vec<Level>,
    /// The cache of answers.
    pub cache: Cache,
    /// The queue of summaries that a provider will write.
    pub queue: Queue,
    /// Calls and latencies of each tool.
    pub tools: Vec<ToolUse>,
    /// The threads with assistants, the latest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<ThreadUse>,
    /// The cost of models by day and provider, in all projects.
    pub spending: Vec<spending::Day>,
}

/// The number of tokens of contexts, compared with the tokens of the whole conversations. Calls of all processes are
/// included.
#[derive(Debug, Serialize)]
pub struct Contexts {
    /// The number of returned contexts of a single conversation, including cached ones.
    pub answers: i64,
    /// The sum of the tokens (o200k) of those conversations. A conversation counts once for each of its contexts.
    pub conversation_tokens: i64,
    /// The tokens of the answers.
    pub sent_tokens: i64,
    /// The share of tokens saved. Absent if there was no answer. It is below 0 if the answers were longer than the
    /// conversations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub saved: Option<f64>,
}

/// The closed segments of one tier.
#[derive(Debug, Serialize)]
pub struct TierUse {
    /// The tier.
    pub tier: String,
    /// How many.
    pub segments: i64,
    /// The number of segments that have the summary that their tier shows. The recent tier shows messages, so all its
    /// segments are counted.
    pub summarised: i64,
    /// The tokens of the messages of the summarised segments (o200k).
    pub tokens: i64,
    /// The number of tokens shown for the summarised segments. These are the tokens of their summaries, or in the
    /// recent tier the tokens of their messages.
    pub shown_tokens: i64,
    /// The share of `tokens` saved, from 0 to 1.
    pub saved: f64,
}

/// The summaries of one level by one provider.
#[derive(Debug, Serialize)]
pub struct Level {
    /// The level.
    pub level: String,
    /// `extractive`, or the provider that wrote them.
    pub provider: String,
    /// The number of ranges that have such a summary.
    pub summaries: i64,
    /// Their tokens (o200k).
    pub tokens: i64,
    /// The number of tokens of the messages that were summarised.
    pub source_tokens: i64,
    /// The share of `source_tokens` saved, from 0 to 1.
    pub saved: f64,
}

/// The size of the cache and its hit rate.
#[derive(Debug, Serialize)]
pub struct Cache {
    /// The number of cached answers.
    pub entries: i64,
    /// Their bytes.
    pub bytes: i64,
    /// Lookups that found an answer.
    pub hits: i64,
    /// Lookups that found none.
    pub misses: i64,
    /// `hits` divided by all lookups; absent if there were none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hit_rate: Option<f64>,
}

/// The entries of the queue by state.
#[derive(Debug, Serialize)]
pub struct Queue {
    /// Waiting.
    pub pending: i64,
    /// Being made.
    pub processing: i64,
    /// Made.
    pub completed: i64,
    /// Given up.
    pub failed: i64,
}

/// The use of a tool. Calls of all processes are included.
#[derive(Debug, Serialize)]
pub struct ToolUse {
    /// The tool.
    pub name: String,
    /// How often it was called.
    pub calls: u64,
    /// The approximate median duration of a call, in milliseconds.
    pub p50_ms: f64,
    /// The approximate 99th percentile of the durations, in milliseconds.
    pub p99_ms: f64,
}

/// The memories of one kind.
#[derive(Debug, Serialize)]
pub struct KindCount {
    /// The kind.
    pub kind: String,
    /// How many.
    pub memories: i64,
    /// Bytes of their texts.
    pub bytes: i64,
    /// Their tokens (o200k).
    pub tokens: i64,
}

/// Returns the counts and changes nothing. Loads the embedding model to report its vector space.
pub async fn run(engine: &Engine, caller: &Caller) -> Result<Output> {
    let project = caller.project(engine).await?;
    let owners = &engine.installation().await?.registry;
    let (store, scope) = (project.store.as_ref(), &project.scope);
    let (stats, owner_stats, cache, queue, savings, threads, segments, summaries, measurements) = tokio::try_join!(
        store.stats(scope, engine.now()),
        owners.memories().stats(owners.scope(), engine.now()),
        store.cache_stats(scope),
        store.queue_counts(scope),
        store.savings(scope),
        store.threads(scope, None),
        store.summarised_segments(scope),
        store.summary_counts(scope),
        store.measurements(scope),
    )?;
    let embedder = ask::encoders(engine, caller, &mut Vec::new()).await.names();
    let kinds = stats.kinds.into_iter().map(|each| KindCount {
        kind: each.kind,
        memories: each.memories,
        bytes: each.bytes,
        tokens: each.tokens,
    });
    Ok(Output {
        project: project.name.clone(),
        project_id: project.scope.project.as_str().to_owned(),
        store: match project.is_blank {
            true => "not made yet: the first memory makes it".to_owned(),
            false => project.store.place(),
        },
        kinds: kinds.collect(),
        sessions: stats.sessions,
        embedded: stats.embedded,
        pending: stats.pending,
        forgotten: stats.tombstoned,
        bytes_on_disk: stats.file_bytes,
        owner_memories: owner_stats.kinds.iter().map(|each| each.memories).sum(),
        embedder,
        commits_since_sessions: stats.commits_since,
        commits_linked: stats.commits_linked,
        sessions_committed: stats.sessions_committed,
        sessions_linked: stats.sessions_linked,
        join_rate: (stats.sessions_committed > 0)
            .then(|| stats.sessions_linked as f64 / stats.sessions_committed as f64),
        repeats: stats.repeats,
        stored_lately: stats.stored_lately,
        contexts: Contexts {
            answers: savings.answers,
            conversation_tokens: savings.whole,
            sent_tokens: savings.sent,
            saved: (savings.whole > 0).then(|| share(savings.sent, savings.whole)),
        },
        threads: threads::uses(&threads),
        tiers: tier_use(&segments::tiers(engine), &segments),
        summaries: summaries.into_iter().map(level).collect(),
        cache: Cache {
            entries: cache.entries,
            bytes: cache.bytes,
            hits: cache.hits,
            misses: cache.misses,
            hit_rate: (cache.hits + cache.misses > 0)
                .then(|| cache.hits as f64 / (cache.hits + cache.misses) as f64),
        },
        queue: Queue {
            pending: queue.pending,
            processing: queue.processing,
            completed: queue.completed,
            failed: queue.failed,
        },
        tools: tool_use(&measurements),
        spending: spending::days(owners.spending().await?),
    })
}

fn level(count: LevelCount) -> Level {
    let LevelCount { level, provider, summaries, tokens, source_tokens } = count;
    let saved = share(tokens, source_tokens).max(0.0);
    Level { level: level.to_string(), provider, summaries, tokens, source_tokens, saved }
}

/// Returns the share of `whole` that is saved if `part` replaces `whole`.
fn share(part: i64, whole: i64) -> f64 {
    1.0 - part as f64 / whole.max(1) as f64
}

/// Sums up `segments` by tier. `segments` must be ordered by session and position.
fn tier_use(tiers: &Tiers, segments: &[SummarisedSegment]) -> Vec<TierUse> {
    let mut used: Vec<TierUse> = [Tier::Recent, Tier::Medium, Tier::Long, Tier::Ancient]
        .map(|tier| TierUse {
            tier: tier.as_str().into(),
            segments: 0,
            summarised: 0,
            tokens: 0,
            shown_tokens: 0,
            saved: 0.0,
        })
        .into();
    for session in segments.chunk_by(|one, other| one.session == other.session) {
        let in_session: Vec<_> = session.iter().map(|each| segments::segment(&each.segment)).collect();
        for (SummarisedSegment { segment, summaries, .. }, tier) in session.iter().zip(tiers.of(&in_session))
        {
            let shown = match tier.level() {
                None => Some(segment.tokens),
                Some(SummaryLevel::Brief) => summaries[0],
                Some(SummaryLevel::Standard) => summaries[1],
                Some(SummaryLevel::Detailed) => summaries[2],
            };
            let used = &mut used[tier as usize];
            used.segments += 1;
            // A segment without a summary would distort the tier's share, so its tokens aren't counted.
            if let Some(shown) = shown {
                used.summarised += 1;
                used.tokens += segment.tokens;
                used.shown_tokens += shown;
            }
        }
    }
    used.retain(|tier| tier.segments > 0);
    used.iter_mut().for_each(|tier| tier.saved = share(tier.shown_tokens, tier.tokens).max(0.0));
    used
}

/// Sums up `measurements` by tool. `measurements` must be ordered by name and bucket.
fn tool_use(measurements: &[Measurement]) -> Vec<ToolUse> {
    let by_name = measurements.chunk_by(|one, other| one.name == other.name);
    let summed = by_name.map(|buckets| {
        let calls: u64 = buckets.iter().map(|bucket| bucket.count).sum();
        let within = |share: f64| {
            let mut left = (calls as f64 * share).ceil() as u64;
            let reached = buckets.iter().find(|bucket| {
                left = left.saturating_sub(bucket.count);
                left == 0
            });
            reached.or(buckets.last()).map_or(0.0, |bucket| (bucket.millis() * 100.0).round() / 100.0)
        };
        ToolUse { name: buckets[0].name.clone(), calls, p50_ms: within(0.5), p99_ms: within(0.99) }
    });
    summed.collect()
}

impl Output {
    /// Returns the answer as text.
    pub fn text(&self) -> String {
        let (project, store) = (envelope::one_line(&self.project), envelope::one_line(&self.store));
        let mut text = format!("Project {project} ({}), kept in {store}\n\n", self.project_id);
        text += &format!("{:14} {:>9} {:>12} {:>12}\n", "kind", "memories", "size", "tokens");
        for each in &self.kinds {
            let (memories, tokens) = (thousands(each.memories as u64), thousands(each.tokens as u64));
            text +=
                &format!("{:14} {memories:>9} {:>12} {tokens:>12}\n", each.kind, bytes(each.bytes as u64));
        }
        text += "\n";
        let count = |count: i64, one, several| counted(count, one, several);
        let lines = [
            Some(count(self.sessions, "session", "sessions")),
            Some(count(self.stored_lately, "memory", "memories") + " stored in the last seven days"),
            Some(count(self.owner_memories, "memory", "memories") + " for all your projects"),
            (self.forgotten > 0).then(|| {
                count(self.forgotten, "forgotten memory", "forgotten memories")
                    + ", which `tiro undo` restores"
            }),
            (self.repeats > 0).then(|| {
                count(self.repeats, "tool output", "tool outputs") + " that repeated another, stored once"
            }),
            // A store in a database has no size of its own.
            (self.bytes_on_disk > 0).then(|| format!("{} on disk", bytes(self.bytes_on_disk))),
            Some(self.embeddings_text()),
            self.join_rate.map(|rate| {
                format!(
                    "{} of {} whose changes were committed are linked to a commit ({:.0}%)",
                    self.sessions_linked,
                    count(self.sessions_committed, "session", "sessions"),
                    rate * 100.0
                )
            }),
        ];
        for line in lines.into_iter().flatten() {
            text += &format!("{line}\n");
        }
        text += &self.savings_text();
        if let Some(rate) = self.cache.hit_rate {
            text += &format!(
                "{} of {} came from the cache ({:.0}%), which has {} now\n",
                thousands(self.cache.hits as u64),
                count(self.cache.hits + self.cache.misses, "answer", "answers"),
                rate * 100.0,
                bytes(self.cache.bytes as u64),
            );
        }
        let Queue { pending, processing, completed, failed } = self.queue;
        if pending + processing + completed + failed > 0 {
            text += &format!(
                "summaries asked of a provider: {completed} made, {processing} in progress, {pending} waiting, \
                 {failed} given up\n"
            );
        }
        if !self.tools.is_empty() {
            text += &format!("\n{:28} {:>9} {:>12} {:>12}", "tool", "calls", "median, ms", "99th %, ms");
        }
        for ToolUse { name, calls, p50_ms, p99_ms } in &self.tools {
            text += &format!("\n{name:28} {calls:>9} {p50_ms:>12.1} {p99_ms:>12.1}");
        }
        text += &threads::table(&self.threads);
        if !self.spending.is_empty() {
            text += &format!("\n\n{}", spending::table(&self.spending));
        }
        text
    }

    fn embeddings_text(&self) -> String {
        let Some(embedder) = &self.embedder else {
            return "no embedding model, so search finds words only; run `tiro model install`".to_owned();
        };
        let found = counted(self.embedded, "piece of text is", "pieces of text are");
        let text = format!("{found} found by meaning ({embedder})");
        match self.pending {
            0 => text,
            pending => format!("{text}, {} by words only until `tiro index`", thousands(pending as u64)),
        }
    }

    /// Returns a text about the tokens that contexts and summaries save: a line for contexts, for each tier, and for
    /// each level and provider.
    fn savings_text(&self) -> String {
        let fewer = |shown: i64, whole: i64, saved: f64| {
            let (shown, whole) = (thousands(shown as u64), thousands(whole as u64));
            format!("{shown} tokens instead of {whole} ({:.0}% fewer)", saved * 100.0)
        };
        let mut text = String::new();
        if let Contexts { answers, conversation_tokens, sent_tokens, saved: Some(saved) } = self.contexts {
            let contexts = counted(answers, "context", "contexts");
            text +=
                &format!("{contexts} of conversations: {}\n", fewer(sent_tokens, conversation_tokens, saved));
        }
        for TierUse { tier, segments, summarised, tokens, shown_tokens, saved } in
            self.tiers.iter().filter(|tier| tier.saved > 0.0 || tier.summarised < tier.segments)
        {
            let segments_text = counted(*segments, "part", "parts");
            text += &format!(
                "{tier} messages of conversations, in {segments_text}: {}",
                fewer(*shown_tokens, *tokens, *saved)
            );
            if summarised < segments {
                text += &format!(", {} not summarised yet", segments - summarised);
            }
            text.push('\n');
        }
        for Level { level, provider, summaries, tokens, source_tokens, saved } in &self.summaries {
            let summaries = counted(*summaries, "summary", "summaries");
            text +=
                &format!("{level}, {provider}: {summaries}, {}\n", fewer(*tokens, *source_tokens, *saved));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiro_store::{SegmentRow, SessionKey};

    #[test]
    fn tiers_count_summarised_and_unsummarised_segments() {
        let segment = |number: i64, summaries| SummarisedSegment {
            session: SessionKey::default(),
            segment: SegmentRow {
                number,
                first: number * 20,
                last: number * 20 + 19,
                messages: 20,
                tokens: 400,
            },
            summaries,
        };
        let all = [Some(20), Some(60), Some(120)];
        let segments = [
            segment(0, all),
            segment(1, [None, Some(60), None]),
            segment(2, all),
            segment(3, all),
            segment(4, all),
        ];
        let used = tier_use(&Tiers::default(), &segments);
        let counts: Vec<_> = used
            .iter()
            .map(|tier| (tier.tier.as_str(), tier.segments, tier.summarised, tier.tokens, tier.shown_tokens))
            .collect();
        assert_eq!(
            counts,
            [("recent", 1, 1, 400, 400), ("medium", 2, 2, 800, 240), ("long", 2, 2, 800, 120)]
        );
        assert!((used[1].saved - 0.7).abs() < 1e-9 && used[0].saved == 0.0, "{used:?}");
        // Each session's segments get their tiers separately, so the only segment of the other session is recent.
        let other = SummarisedSegment { session: SessionKey::from_store(2), ..segment(0, [None; 3]) };
        let missing = SummarisedSegment { summaries: [Some(9), None, None], ..segment(1, all) };
        let used =
            tier_use(&Tiers::default(), &[segment(0, all), missing, segment(2, all), segment(3, all), other]);
        let counts: Vec<_> =
            used.iter().map(|tier| (tier.tier.as_str(), tier.segments, tier.summarised)).collect();
        assert_eq!(counts, [("recent", 2, 2), ("medium", 2, 1), ("long", 1, 1)]);
    }

    #[test]
    fn percentiles_are_those_of_all_calls() {
        let measured = |name: &str, micros, count| Measurement { count, ..Measurement::of(name, micros) };
        let used = tool_use(&[measured("a", 1000, 98), measured("a", 64_000, 2), measured("b", 2000, 1)]);
        assert_eq!(
            used.iter().map(|tool| (tool.name.as_str(), tool.calls)).collect::<Vec<_>>(),
            [("a", 100), ("b", 1)]
        );
        assert!((0.8..1.3).contains(&used[0].p50_ms) && (50.0..80.0).contains(&used[0].p99_ms), "{used:?}");
    }
}
