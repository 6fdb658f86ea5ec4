//! Searches everything the project remembers.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{catch_up, common, history, times};
use crate::budget::Budget;
use crate::chunk::excerpt::Shown;
use crate::engine::{Engine, OpenProject};
use crate::envelope;
use crate::error::{Error, Result, quoted};
use crate::filter::Filter;
use crate::memory::Kind;
use crate::redact::Redactor;
use crate::retrieve::freshness::{Standing, Subject};
use crate::retrieve::rank::{Ranked, Weights};
use crate::retrieve::{self, fit, pair};
use crate::scope::{Scope, SessionId, Sessions};
use crate::store::{ShownMemory, Store};
use crate::tokens::{Tokenizer, bounded};

/// The name agents call it by.
pub const NAME: &str = "search_project_memory";
/// The name people are shown.
pub const TITLE: &str = "Search project memory";
/// What agents are told of it.
pub const DESCRIPTION: &str = "To read one memory whole use expand_detail. Finds what was said, decided and committed \
    here; search before asking why code is as it is. Returns excerpts, best first.";

/// Hits of one page at most.
const MOST_HITS: usize = 50;

/// The least budget, in tokens: the envelope and one short hit.
const LEAST_TOKENS: usize = 100;

/// The largest budget: clients cut tool results at 25,000 tokens, and the data repeats the text.
const MOST_TOKENS: usize = 20_000;

/// What the call takes.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct Args {
    /// A question or key words.
    #[schemars(description = "")]
    pub query: String,
    /// 10 if left out.
    pub k: Option<usize>,
    /// Such as message, commit, decision.
    pub kinds: Option<Vec<String>>,
    /// Only these sessions.
    #[schemars(description = "")]
    pub sessions: Option<Vec<String>>,
    /// Only this branch.
    #[schemars(description = "")]
    pub branch: Option<String>,
    /// File or directory.
    pub path: Option<String>,
    /// Like 2026-03-01.
    pub since: Option<String>,
    /// Before this time.
    #[schemars(description = "")]
    pub until: Option<String>,
    /// 2000 if left out.
    #[schemars(range(min = LEAST_TOKENS))]
    pub max_tokens: Option<usize>,
    /// `next_cursor` of the answer before.
    #[schemars(description = "")]
    pub cursor: Option<String>,
}

/// What the call answers.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// How to take what is quoted.
    pub caution: &'static str,
    /// What was found, best first.
    pub hits: Vec<Hit>,
    /// Which sessions were searched: all, or their names.
    pub covered: Vec<String>,
    /// Tokens of the text (o200k), at most.
    pub tokens_used: usize,
    /// Whether hits of this page did not fit the budget.
    pub truncated: bool,
    /// How many did not fit.
    pub dropped: usize,
    /// Pieces of text that are found by words only so far.
    pub pending: usize,
    /// Where the next page begins.
    pub next_cursor: Option<String>,
    /// What the answer is missing.
    pub notices: Vec<String>,
    /// Milliseconds by stage, where asked for.
    pub timings: Option<HashMap<&'static str, f64>>,
    #[serde(skip)]
    rendered: String,
}

/// A memory that was found.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Hit {
    /// The memory's id.
    pub id: String,
    /// The client's message id, or the commit's full SHA.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_id: Option<String>,
    /// What it is.
    pub kind: String,
    /// project, or owner: it belongs to all of the owner's projects.
    pub scope: String,
    /// The best piece of its text.
    pub text: String,
    /// Whether the memory says more than the piece.
    pub is_part: bool,
    /// The conversation it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Who spoke or committed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speaker: Option<String>,
    /// The branch it was made on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The commit it is, or was made at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// When it was made.
    pub time: String,
    /// Where the text came from.
    pub provenance: String,
    /// current, file_changed, other_branch, commit_gone or unknown.
    pub freshness: String,
    /// Of a commit that is gone: in_reflog, unnamed or removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gone: Option<String>,
    /// How well it answers; comparable within one answer.
    pub score: f64,
    /// What the score is made of.
    pub score_parts: ScoreParts,
    /// Tokens of its part of the text (o200k).
    pub tokens: usize,
    /// Conversations at work on a commit's parent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conversations: Vec<String>,
    /// Other memories with the same text.
    #[serde(skip_serializing_if = "is_zero")]
    pub duplicates: usize,
    #[serde(skip)]
    excerpt: String,
}

/// What a score is the sum of.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ScoreParts {
    /// From the words.
    pub lexical: f64,
    /// From the meaning.
    pub semantic: f64,
    /// From the speaker's name.
    pub speaker: f64,
    /// From marks.
    pub importance: f64,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// Searches the project's memories and those of the owner.
pub async fn run(engine: &Engine, args: Args) -> Result<Output> {
    let query = args.query.trim();
    if query.is_empty() {
        return Err(Error::bad_input("`query` is empty").hint("ask a question or give key words"));
    }
    let k = within("k", args.k.unwrap_or(10), 1, MOST_HITS)?;
    let (max_tokens, clamped) = common::max_tokens(args.max_tokens, 2000, LEAST_TOKENS, MOST_TOKENS)?;
    let filter = filter(&args)?;
    let offset = offset(args.cursor.as_deref())?;
    let project = engine.project().await?;
    let installation = engine.installation().await?;
    let (scope, covered) = narrowed(&project.scope, &project.redactor, args.sessions.as_deref())?;

    // The owner's memories belong to no session, so a search of some sessions leaves them out.
    let owners = &installation.registry;
    let mut places: Vec<(&Store, &Scope)> = vec![(&project.store, &scope)];
    if scope.sessions == Sessions::All {
        places.push((owners.memories(), owners.scope()));
    }
    // A later page is of the same memory as the first.
    let mut notices = if offset == 0 { catch_up::before_a_call(engine).await } else { Vec::new() };
    notices.extend(clamped);
    let embedder = engine.embedder_or_say(&mut notices).await;
    notices.extend(missing_sessions(project, &scope).await?);
    let found = retrieve::search(&places, embedder, query, &filter, &Weights::default()).await?;
    notices.extend(found.notices);
    if found.ranked.is_empty() && project.store.is_empty(&project.scope).await? {
        notices.insert(0, common::nothing_yet(engine, project).await?);
    }
    let page: Vec<&Ranked> = found.ranked.iter().skip(offset).take(k).collect();
    let has_more = found.ranked.len() > offset + page.len();

    let mut shown: Vec<(&Ranked, ShownMemory, &'static str)> = Vec::with_capacity(page.len());
    for (number, (store, scope)) in places.iter().enumerate() {
        let own: Vec<&Ranked> = page.iter().copied().filter(|ranked| ranked.store == number).collect();
        let wanted = own.iter().map(|ranked| (ranked.place.seq, ranked.chunk)).collect();
        let name = if number == 0 { "project" } else { "owner" };
        let found = store.shown(scope, wanted).await?;
        shown.extend(found.into_iter().map(|memory| (own[memory.place], memory, name)));
    }
    // Two stores were read one after the other; the order is still that of the ranking.
    let rank_of = |ranked: &Ranked| page.iter().position(|other| std::ptr::eq(*other, ranked));
    shown.sort_by_key(|(ranked, ..)| rank_of(ranked));
    let standing = ask_git(project, shown.iter().map(|(_, shown, _)| shown)).await;
    let hits = shown.into_iter().zip(standing);
    let hits: Vec<Hit> =
        hits.map(|((ranked, shown, scope), fresh)| hit(ranked, shown, scope, fresh)).collect();
    let order = pair::order(hits.len(), |commit| {
        let behind = &hits[commit].conversations;
        let talks = |other: &Hit| other.session_id.as_ref().is_some_and(|session| behind.contains(session));
        hits.iter().enumerate().filter(|(_, other)| talks(other)).map(|(place, _)| place).collect()
    });
    let mut taken: Vec<Option<Hit>> = hits.into_iter().map(Some).collect();
    let hits: Vec<Hit> = order.into_iter().filter_map(|place| taken[place].take()).collect();

    let mut pending = 0;
    for (store, scope) in &places {
        pending += store.pending(scope).await?;
    }
    let next_cursor = has_more.then(|| (offset + k).to_string());
    let mut output = Output {
        caution: envelope::CAUTION,
        hits,
        covered,
        tokens_used: 0,
        truncated: false,
        dropped: 0,
        pending,
        next_cursor,
        notices,
        timings: None,
        rendered: String::new(),
    };
    output.fit(max_tokens, &installation.secret);
    if engine.config().timings {
        let timings = found.timings;
        output.timings = Some(HashMap::from([
            ("embed", timings.embed as f64 / 1000.0),
            ("lexical", timings.lexical as f64 / 1000.0),
            ("dense", timings.dense as f64 / 1000.0),
            ("rank", timings.rank as f64 / 1000.0),
        ]));
    }
    Ok(output)
}

fn within(name: &str, value: usize, least: usize, most: usize) -> Result<usize> {
    if (least..=most).contains(&value) {
        return Ok(value);
    }
    Err(Error::bad_input(format!("`{name}` is not between {least} and {most}: {value}")))
}

fn filter(args: &Args) -> Result<Filter> {
    let kinds = args.kinds.as_ref().filter(|kinds| !kinds.is_empty());
    let kinds = kinds
        .map(|kinds| kinds.iter().map(|word| common::kind("kinds", word)).collect::<Result<Vec<Kind>>>());
    let short =
        |name, text: &Option<String>| text.as_deref().map(|text| common::short(name, text)).transpose();
    let (since, until) = times::range(("since", args.since.as_deref()), ("until", args.until.as_deref()))?;
    Ok(Filter {
        kinds: kinds.transpose()?,
        branch: short("branch", &args.branch)?,
        path: short("path", &args.path)?,
        topic: None,
        source_id: None,
        since,
        until,
    })
}

fn offset(cursor: Option<&str>) -> Result<usize> {
    let Some(cursor) = cursor else { return Ok(0) };
    cursor.parse::<u16>().map(usize::from).map_err(|_| {
        Error::bad_input(format!("`cursor` is none of this tool: `{}`", quoted(cursor)))
            .hint("leave it out to start anew")
    })
}

/// Returns the scope of the sessions that were named, and how the answer calls them.
fn narrowed(scope: &Scope, redactor: &Redactor, sessions: Option<&[String]>) -> Result<(Scope, Vec<String>)> {
    let Some(names) = sessions.filter(|names| !names.is_empty()) else {
        return Ok((scope.clone(), vec!["all".to_owned()]));
    };
    let ids: Vec<SessionId> =
        names.iter().map(|name| common::session(redactor, "sessions", name)).collect::<Result<_>>()?;
    let covered = ids.iter().map(SessionId::to_string).collect();
    Ok((Scope { sessions: Sessions::Only(ids), ..scope.clone() }, covered))
}

/// Returns what to say of the sessions of the scope that hold nothing.
pub(super) async fn missing_sessions(project: &OpenProject, scope: &Scope) -> Result<Vec<String>> {
    let Sessions::Only(ids) = &scope.sessions else { return Ok(Vec::new()) };
    let known = project.store.sessions(scope, 0, ids.len()).await?;
    let missing = ids.iter().filter(|id| !known.iter().any(|row| row.id == **id));
    Ok(missing.map(|id| format!("no session is called `{}`; list_sessions shows them", quoted(id))).collect())
}

/// Returns the hit that `ranked` is.
fn hit(ranked: &Ranked, found: ShownMemory, scope: &str, standing: Standing) -> Hit {
    let ShownMemory { mut memory, chunk, conversations, .. } = found;
    let mut tokens = usize::try_from(chunk.tokens).unwrap_or(0);
    // Of a commit's ids, the one that can still be looked up is cited.
    if let (Kind::Commit, Some(sha)) = (memory.kind, standing.reached.map(|sha| sha.to_string()))
        && memory.source_id.as_ref() != Some(&sha)
    {
        memory.source_id = Some(sha);
        // Ten other digits were counted; a digit is at most one token.
        tokens += 10;
    }
    let piece = memory.text.get(chunk.start..chunk.end).unwrap_or_default();
    let about = Shown::of_memory(&memory);
    let excerpt = about.excerpt(piece);
    if about.may_count_otherwise(piece) {
        tokens = tokens.max(Tokenizer::O200k.count(&excerpt).high);
    }
    let shown = |text: &str| envelope::escape(text).into_owned();
    let parts = &ranked.parts;
    Hit {
        id: memory.id.to_string(),
        kind: memory.kind.to_string(),
        scope: scope.to_owned(),
        text: shown(piece.trim()),
        is_part: chunk.end - chunk.start < memory.text.trim().len(),
        session_id: memory.session.as_ref().map(|session| shown(session.as_str())),
        speaker: memory.speaker.as_deref().or(memory.role.map(|role| role.as_str())).map(shown),
        branch: memory.branch.as_deref().map(shown),
        commit: match memory.kind {
            Kind::Commit => memory.source_id.clone(),
            _ => memory.head_sha.clone(),
        },
        source_id: memory.source_id.as_deref().map(shown),
        time: times::show_time(memory.time),
        provenance: memory.provenance.to_string(),
        freshness: standing.freshness.as_str().to_owned(),
        gone: standing.gone.map(|gone| gone.as_str().to_owned()),
        score: rounded(ranked.score),
        score_parts: ScoreParts {
            lexical: rounded(parts.lexical),
            semantic: rounded(parts.semantic),
            speaker: rounded(parts.speaker),
            importance: rounded(parts.importance),
        },
        tokens,
        conversations: conversations.iter().map(|session| shown(session.as_str())).collect(),
        duplicates: ranked.duplicates,
        excerpt,
    }
}

/// Asks git what became of what the memories speak of.
async fn ask_git(project: &OpenProject, found: impl Iterator<Item = &ShownMemory>) -> Vec<Standing> {
    let subjects: Vec<Subject> = found.map(|found| Subject::of(&found.memory, &found.commit_ids)).collect();
    history::standing(project, subjects).await
}

fn rounded(score: f64) -> f64 {
    (score * 1000.0).round() / 1000.0
}

impl Output {
    /// Keeps the hits that fit the budget and renders the answer.
    fn fit(&mut self, max_tokens: usize, secret: &[u8; 32]) {
        let mut budget = Budget::new(max_tokens);
        budget.spend(envelope::OVERHEAD_TOKENS);
        // What stands below the hits may take half of what is left; what doesn't fit is still told as data.
        let mut below = Budget::new(budget.left() / 2);
        let mut footer: Vec<String> = self.footer();
        // A line that says how many were dropped is never longer than that of all.
        let dropped = |count: usize| format!("\n{count} more did not fit max_tokens.");
        let says_dropped = below.spend(dropped(self.hits.len()).len());
        footer.retain(|line| below.spend(bounded(line).high));
        budget.spend(below.used());
        for hit in &mut self.hits {
            let stale = stale_line(hit);
            hit.tokens += stale.len();
            hit.excerpt += &stale;
        }
        let tokens: Vec<usize> = self.hits.iter().map(|hit| hit.tokens).collect();
        let mut fits = fit::fit(&mut budget, &tokens).into_iter();
        let before = self.hits.len();
        self.hits.retain(|_| fits.next().unwrap_or(false));
        self.dropped = before - self.hits.len();
        self.truncated = self.dropped > 0;
        self.tokens_used = budget.used();
        self.rendered = match (self.hits.is_empty(), self.dropped) {
            (true, 0) => "Nothing found.".to_owned(),
            // The envelope's tokens, which nothing else needs, are more than this takes.
            (true, dropped) => {
                format!("Of {} none fits max_tokens.", common::counted(dropped, "hit", "hits"))
            }
            (false, _) => {
                let body: String = self.hits.iter().map(|hit| hit.excerpt.as_str()).collect();
                envelope::wrap(secret, &body)
            }
        };
        if self.dropped > 0 && says_dropped && !self.hits.is_empty() {
            self.rendered += &dropped(self.dropped);
        }
        self.rendered += &footer.concat();
    }

    /// Returns the lines that stand below the hits, the most important first.
    fn footer(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(cursor) = &self.next_cursor {
            lines.push(format!("\nMore with cursor `{cursor}`."));
        }
        if self.pending > 0 {
            let pending = common::counted(self.pending, "piece is", "pieces are");
            lines.push(format!("\n{pending} found by words only so far."));
        }
        lines.extend(self.notices.iter().map(|notice| format!("\nNote: {notice}.")));
        lines
    }

    /// Returns the answer in words.
    pub fn text(&self) -> String {
        self.rendered.clone()
    }
}

/// Returns a line that says what became of what the hit speaks of; empty where it is current. ASCII: a byte is at
/// most one token.
fn stale_line(hit: &Hit) -> String {
    match hit.freshness.as_str() {
        "file_changed" => "[the file changed since]\n".to_owned(),
        "other_branch" => "[on another branch]\n".to_owned(),
        "commit_gone" => match hit.gone.as_deref() {
            Some("in_reflog") => "[commit gone from all branches; the reflog still has it]\n".to_owned(),
            Some("unnamed") => "[commit gone from all branches and reflogs]\n".to_owned(),
            _ => "[commit gone]\n".to_owned(),
        },
        "unknown" => "[not compared with git yet]\n".to_owned(),
        _ => String::new(),
    }
}
