//! Says how much the project remembers.

use serde::Serialize;

use super::provider;
use crate::engine::{Embedding, Engine};
use crate::error::Result;
use crate::store::{LevelCount, Measurement};

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
    /// The share of the two; absent where there is nothing to join.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub join_rate: Option<f64>,
    /// Outputs so like an earlier one that only their number is kept.
    pub repeats: i64,
    /// Memories stored in the last seven days.
    pub stored_lately: i64,
    /// Summaries of ranges of messages, by level.
    pub summaries: Vec<Level>,
    /// Answers that were kept to be given again.
    pub cache: Cache,
    /// Summaries that were asked of a provider.
    pub queue: Queue,
    /// How often each tool was called, and how long that took.
    pub tools: Vec<ToolUse>,
    /// What asking models has cost by day and provider, in all projects.
    pub spending: Vec<provider::Day>,
}

/// The summaries of one level.
#[derive(Debug, Serialize)]
pub struct Level {
    /// The level.
    pub level: String,
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
pub async fn run(engine: &Engine) -> Result<Output> {
    let project = engine.project().await?;
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
        join_rate: (stats.commits_since > 0)
            .then(|| stats.commits_linked as f64 / stats.commits_since as f64),
        repeats: stats.repeats,
        stored_lately: stats.stored_lately,
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
        spending: provider::days(owners.spending().await?),
    })
}

fn level(count: LevelCount) -> Level {
    let LevelCount { level, summaries, tokens, source_tokens } = count;
    let saved = 1.0 - tokens as f64 / source_tokens.max(1) as f64;
    Level { level: level.to_string(), summaries, tokens, source_tokens, saved: saved.max(0.0) }
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
        let mut text = format!("project {} ({})\nstore {}\n\n", self.project, self.project_id, self.store);
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
                "\ncommits since the first session {}, with a session behind them {} ({:.0}%)",
                self.commits_since_sessions,
                self.commits_linked,
                rate * 100.0
            );
        }
        for Level { level, summaries, tokens, source_tokens, saved } in &self.summaries {
            text += &format!(
                "\n{level} summaries {summaries}, tokens {tokens} for {source_tokens} ({:.0}% saved)",
                saved * 100.0
            );
        }
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
            text += &format!("\n\n{}", provider::table(&self.spending));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
