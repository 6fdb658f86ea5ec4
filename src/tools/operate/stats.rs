//! Says how much the project remembers.

use serde::Serialize;

use crate::caller::Caller;
use crate::context::tier::{Tier, Tiers};
use crate::engine::{Embedding, Engine};
use crate::envelope;
use crate::error::Result;
use crate::memory::Level as SummaryLevel;
use crate::store::{LevelCount, Measurement, SummarisedSegment};
use crate::summaries::segments;
use crate::tools::provider::spending;

/// What `tiro stats` answers.
#[derive(Debug, Serialize)]
pub struct Output {
    /// The project's name.
    pub project: String,
    /// The project's id.
    pub project_id: String,
    /// Where its store lies.
    pub store: String,
    /// Living memories by kind.
    pub kinds: Vec<KindCount>,
    /// Conversations.
    pub sessions: i64,
    /// Pieces of text with an embedding.
    pub embedded: i64,
    /// Pieces that wait for one.
    pub pending: i64,
    /// Memories that are forgotten and can be brought back.
    pub forgotten: i64,
    /// Bytes of the store on disk.
    pub bytes_on_disk: u64,
    /// Memories that belong to the owner, in all projects.
    pub owner_memories: i64,
    /// The vector space of the embedder, where one is installed.
    pub embedder: Option<String>,
    /// Commits made since the first session began.
    pub commits_since_sessions: i64,
    /// Those of them that have a session behind them.
    pub commits_linked: i64,
    /// Sessions that changed a file which was committed within a month.
    pub sessions_committed: i64,
    /// Those of them that a commit is linked to.
    pub sessions_linked: i64,
    /// The share of the last two; absent where there is nothing to join.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub join_rate: Option<f64>,
    /// Outputs so like an earlier one that only their number is kept.
    pub repeats: i64,
    /// Memories stored in the last seven days.
    pub stored_lately: i64,
    /// What contexts of conversations were answered in the place of.
    pub contexts: Contexts,
    /// What closed segments come down to, by tier.
    pub tiers: Vec<TierUse>,
    /// Summaries of ranges of messages, by level and provider.
    pub summaries: Vec<Level>,
    /// Answers that were kept to be given again.
    pub cache: Cache,
    /// Summaries that were asked of a provider.
    pub queue: Queue,
    /// How often each tool was called, and how long that took.
    pub tools: Vec<ToolUse>,
    /// What asking models has cost by day and provider, in all projects.
    pub spending: Vec<spending::Day>,
}

/// What was sent instead of whole conversations, in all processes.
#[derive(Debug, Serialize)]
pub struct Contexts {
    /// Contexts answered within a conversation, kept ones included.
    pub answers: i64,
    /// The tokens of those conversations, one for each answer (o200k).
    pub conversation_tokens: i64,
    /// The tokens of the answers.
    pub sent_tokens: i64,
    /// The share that was saved; absent where nothing was asked. Below 0 where answers were longer than what was said.
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
    /// Those that have the summary that stands for them; in the recent tier the messages themselves do.
    pub summarised: i64,
    /// The tokens of the messages of those (o200k).
    pub tokens: i64,
    /// The tokens of what stands for them.
    pub shown_tokens: i64,
    /// The share that is saved.
    pub saved: f64,
}

/// The summaries of one level by one provider.
#[derive(Debug, Serialize)]
pub struct Level {
    /// The level.
    pub level: String,
    /// `extractive`, or who wrote them.
    pub provider: String,
    /// How many, each range once.
    pub summaries: i64,
    /// Their tokens (o200k).
    pub tokens: i64,
    /// The tokens of the messages they stand for.
    pub source_tokens: i64,
    /// The share of those tokens that they save.
    pub saved: f64,
}

/// What the cache holds, and of how much use it was.
#[derive(Debug, Serialize)]
pub struct Cache {
    /// Answers it holds.
    pub entries: i64,
    /// Their bytes.
    pub bytes: i64,
    /// How often it had the answer.
    pub hits: i64,
    /// How often not.
    pub misses: i64,
    /// The share of the two; absent where nothing was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hit_rate: Option<f64>,
}

/// How many entries of the queue are in which state.
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

/// How a tool was used, in all processes.
#[derive(Debug, Serialize)]
pub struct ToolUse {
    /// The tool.
    pub name: String,
    /// How often it was called.
    pub calls: u64,
    /// Half of the calls took at most about so long, in milliseconds.
    pub p50_ms: f64,
    /// Of a hundred calls 99 took at most about so long, in milliseconds.
    pub p99_ms: f64,
}

/// How many memories of one kind there are.
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

/// Counts; nothing is changed.
pub async fn run(engine: &Engine, caller: &Caller) -> Result<Output> {
    let project = caller.project(engine).await?;
    let owners = &engine.installation().await?.registry;
    let stats = project.store.stats(&project.scope, engine.now()).await?;
    let owner_stats = owners.memories().stats(owners.scope(), engine.now()).await?;
    let embedder = match engine.embedding().await {
        Embedding::Ready(embedder) => Some(embedder.space().to_string()),
        Embedding::Missing(_) => None,
    };
    let kinds = stats.kinds.into_iter().map(|each| KindCount {
        kind: each.kind,
        memories: each.memories,
        bytes: each.bytes,
        tokens: each.tokens,
    });
    let cache = project.store.cache_stats(&project.scope).await?;
    let queue = project.store.queue_counts(&project.scope).await?;
    let savings = project.store.savings(&project.scope).await?;
    let segments = project.store.summarised_segments(&project.scope).await?;
    Ok(Output {
        project: project.name.clone(),
        project_id: project.scope.project.as_str().to_owned(),
        store: project.store.path().display().to_string(),
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
        tiers: tier_use(&segments::tiers(engine), &segments),
        summaries: project.store.summary_counts(&project.scope).await?.into_iter().map(level).collect(),
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
        tools: tool_use(&project.store.measurements(&project.scope).await?),
        spending: spending::days(owners.spending().await?),
    })
}

fn level(count: LevelCount) -> Level {
    let LevelCount { level, provider, summaries, tokens, source_tokens } = count;
    let saved = share(tokens, source_tokens).max(0.0);
    Level { level: level.to_string(), provider, summaries, tokens, source_tokens, saved }
}

/// Returns the share of `whole` that `part` saves.
fn share(part: i64, whole: i64) -> f64 {
    1.0 - part as f64 / whole.max(1) as f64
}

/// Sums up segments, which are in order of session and place, by the tier that each is in.
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
            // What has no summary yet would make the tier look better, or worse, than it is.
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

/// Sums up measurements, which are in order of name and bucket.
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
    /// Returns the answer in words.
    pub fn text(&self) -> String {
        let (project, store) = (envelope::one_line(&self.project), envelope::one_line(&self.store));
        let mut text = format!("project {project} ({})\nstore {store}\n\n", self.project_id);
        text += &format!("{:14} {:>9} {:>12} {:>12}\n", "kind", "memories", "bytes", "tokens");
        for each in &self.kinds {
            text +=
                &format!("{:14} {:>9} {:>12} {:>12}\n", each.kind, each.memories, each.bytes, each.tokens);
        }
        let embedder =
            self.embedder.as_deref().unwrap_or("none: lexical search only; run `tiro model install`");
        text += &format!(
            "\nsessions {}, embedded pieces {}, pending {}, forgotten {}, bytes on disk {}, memories of the owner {}\n\
             embedder {embedder}",
            self.sessions,
            self.embedded,
            self.pending,
            self.forgotten,
            self.bytes_on_disk,
            self.owner_memories,
        );
        text += &format!(
            "\nstored in the last seven days {}, outputs only counted again {}",
            self.stored_lately, self.repeats
        );
        if let Some(rate) = self.join_rate {
            text += &format!(
                "\nsessions whose changes were committed {}, linked to a commit {} ({:.0}%)",
                self.sessions_committed,
                self.sessions_linked,
                rate * 100.0
            );
        }
        if let Contexts { answers, conversation_tokens, sent_tokens, saved: Some(saved) } = self.contexts {
            text += &format!(
                "\ncontexts of conversations {answers}, tokens {sent_tokens} for {conversation_tokens} ({:.0}% saved)",
                saved * 100.0
            );
        }
        text += &self.savings_text();
        if let Some(rate) = self.cache.hit_rate {
            text += &format!(
                "\nanswers kept {} ({} bytes), asked for again {} of {} times ({:.0}%)",
                self.cache.entries,
                self.cache.bytes,
                self.cache.hits,
                self.cache.hits + self.cache.misses,
                rate * 100.0
            );
        }
        let Queue { pending, processing, completed, failed } = self.queue;
        if pending + processing + completed + failed > 0 {
            text += &format!(
                "\nsummaries asked of a provider: waiting {pending}, being made {processing}, made {completed}, \
                 given up {failed}"
            );
        }
        if !self.tools.is_empty() {
            text += &format!("\n\n{:28} {:>9} {:>12} {:>12}", "tool", "calls", "p50, ms", "p99, ms");
        }
        for ToolUse { name, calls, p50_ms, p99_ms } in &self.tools {
            text += &format!("\n{name:28} {calls:>9} {p50_ms:>12.1} {p99_ms:>12.1}");
        }
        if !self.spending.is_empty() {
            text += &format!("\n\n{}", spending::table(&self.spending));
        }
        text
    }

    /// Returns what summaries save, a line for each tier and for each level by each provider.
    fn savings_text(&self) -> String {
        let mut text = String::new();
        for TierUse { tier, segments, summarised, tokens, shown_tokens, saved } in &self.tiers {
            text += &format!(
                "\n{tier} segments {segments}, tokens {shown_tokens} for {tokens} ({:.0}% saved)",
                saved * 100.0
            );
            if summarised < segments {
                text += &format!(", still to be summarised {}", segments - summarised);
            }
        }
        for Level { level, provider, summaries, tokens, source_tokens, saved } in &self.summaries {
            text += &format!(
                "\n{level} summaries by {provider} {summaries}, tokens {tokens} for {source_tokens} ({:.0}% saved)",
                saved * 100.0
            );
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{SegmentRow, SessionKey};

    #[test]
    fn a_tier_counts_what_stands_for_its_segments_and_what_is_still_to_be_made() {
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
        let told: Vec<_> = used
            .iter()
            .map(|tier| (tier.tier.as_str(), tier.segments, tier.summarised, tier.tokens, tier.shown_tokens))
            .collect();
        assert_eq!(told, [("recent", 1, 1, 400, 400), ("medium", 2, 2, 800, 240), ("long", 2, 2, 800, 120)]);
        assert!((used[1].saved - 0.7).abs() < 1e-9 && used[0].saved == 0.0, "{used:?}");
        // The next session begins anew; its only segment is recent.
        let other = SummarisedSegment { session: SessionKey::from_store(2), ..segment(0, [None; 3]) };
        let missing = SummarisedSegment { summaries: [Some(9), None, None], ..segment(1, all) };
        let used =
            tier_use(&Tiers::default(), &[segment(0, all), missing, segment(2, all), segment(3, all), other]);
        let told: Vec<_> =
            used.iter().map(|tier| (tier.tier.as_str(), tier.segments, tier.summarised)).collect();
        assert_eq!(told, [("recent", 2, 2), ("medium", 2, 1), ("long", 1, 1)]);
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
