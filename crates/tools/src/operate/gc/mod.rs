//! Deletes expired entries and reports their number for each kind.
//!
//! Messages, notes and commits never expire, and deleting a merged branch removes none of them. Old sessions that led
//! to no commit are forgotten only if the caller gives a number of days. `tiro undo` restores them. A quarter is
//! summarised only on request, and this removes nothing. The summary of a quarter stays when its sessions are forgotten
//! because of their age.
//!
//! If the clock is much later than all stored times, it may have jumped. In this case, nothing is removed because of
//! its age.

mod leftovers;

use serde::Serialize;

use tiro_base::error::{Error, Result};
use tiro_base::humanize::{counted, thousands};
use tiro_base::memory::Millis;
use tiro_base::times;
use tiro_host::caller::WritingCaller;
use tiro_host::engine::Engine;
use tiro_host::project::WritableProject;
use tiro_host::summaries::quarters::{self, Quarter};
use tiro_host::tuning::KEPT;
use tiro_store::decide::clock;
use tiro_store::tuning::GRACE;
use tiro_store::{Expired, Reach, Selection};

/// How many milliseconds a day has.
const DAY: Millis = 24 * 60 * 60 * 1000;

/// The arguments of `tiro gc`.
#[derive(Debug, Default)]
pub struct Args {
    /// Whether only to report what would be deleted.
    pub dry_run: bool,
    /// Sessions are forgotten if they ended at least this many days ago and led to no commit. If the value is `None`,
    /// no session is forgotten.
    pub sessions_after_days: Option<u32>,
    /// Whether to summarise the sessions of each quarter that is over.
    pub quarters: bool,
}

/// The answer of `tiro gc`.
#[derive(Debug, Serialize)]
pub struct Output {
    /// Whether this was a dry run, which changes nothing.
    pub dry_run: bool,
    /// How many cached answers had expired.
    pub cached_answers: i64,
    /// The number of bytes of these answers.
    pub cached_bytes: i64,
    /// The number of queue entries that were completed or given up more than a week ago.
    pub queue_entries: i64,
    /// The number of summaries that a later version replaced more than a week ago.
    pub superseded_summaries: i64,
    /// The number of texts of the stash that expired more than a week ago. These texts are removed.
    pub stashed_texts: i64,
    /// The operation with which `tiro undo` restores these texts. Absent if there are none, or in a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stash_operation: Option<String>,
    /// The number of texts that were restored to the stash. An earlier call had removed them because the clock was
    /// wrong.
    pub returned: i64,
    /// The number of other memories that left the stash because they expired there. They stay in the memory.
    pub unstashed: i64,
    /// The number of days by which the clock is later than all stored times, if this is implausible. In this case,
    /// nothing is removed because of its age.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock_ahead_days: Option<i64>,
    /// How many unfinished files of killed processes were removed.
    pub leftovers: usize,
    /// The number of bytes by which the project's store became smaller.
    pub freed_bytes: u64,
    /// Forgotten sessions that led to no commit.
    pub sessions: Vec<ForgottenSession>,
    /// The quarters that were summed up.
    pub quarters: Vec<Quarter>,
}

/// A session that was, or would be, forgotten.
#[derive(Debug, Serialize)]
pub struct ForgottenSession {
    /// Its name.
    pub session_id: String,
    /// How many memories it had.
    pub memories: usize,
    /// When it ended.
    pub last: String,
    /// The operation with which `tiro undo` restores the session. Absent in a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
}

/// Deletes expired entries from the project's store and the owner's. Errors if `sessions_after_days` is 0.
pub async fn run(engine: &Engine, caller: &WritingCaller, args: Args) -> Result<Output> {
    if args.sessions_after_days == Some(0) {
        return Err(Error::bad_input("sessions can't be forgotten after 0 days").hint("give at least 1"));
    }
    let project = caller.writable_project(engine).await?;
    let owners = &engine.installation().await?.registry;
    let (now, newest) = (engine.now(), project.store.newest(&project.scope).await?);
    let ahead = clock::ahead(newest.max(owners.memories().newest(owners.scope()).await?), now);
    let mut all = Expired::default();
    let places = [(project.store.as_ref(), &project.scope), (owners.memories().as_ref(), owners.scope())];
    for (store, scope) in places.iter().filter(|_| ahead.is_none()) {
        let expired = match args.dry_run {
            true => store.expired(scope, now, now - KEPT).await?,
            false => store.remove_expired(scope, now, now - KEPT).await?,
        };
        all.answers += expired.answers;
        all.answer_bytes += expired.answer_bytes;
        all.made += expired.made;
        all.given_up += expired.given_up;
        all.superseded += expired.superseded;
    }
    if !args.dry_run {
        for (store, scope) in places {
            let gone = store.finish_purges(scope, Millis::MAX).await?.sessions;
            owners.forget_sent(&project.scope.project, &gone).await?;
        }
    }
    let stash = match ahead {
        Some(_) => Ended::default(),
        None => end_stash(engine, &project, args.dry_run).await?,
    };
    // Quarters come first, so that their summaries include the sessions that are forgotten afterwards.
    let quarters = match args.quarters {
        true => quarters::sum_up(engine, &project, args.dry_run).await?,
        false => Vec::new(),
    };
    if quarters.iter().any(|quarter| quarter.tokens > 0) {
        engine.wrote();
    }
    let mut sessions = Vec::new();
    if let Some(days) = args.sessions_after_days.filter(|_| ahead.is_none()) {
        let before = now - Millis::from(days) * DAY;
        for left in project.store.left_sessions(&project.scope, before).await? {
            let selection = Selection::Session(left.session.clone());
            let forgotten = match args.dry_run {
                true => project.store.selected(&project.scope, &selection, Reach::Living).await?,
                false => {
                    let operation = engine.operation();
                    project.store.retire(&project.scope, &left.session, &operation, now).await?
                }
            };
            sessions.push(ForgottenSession {
                session_id: left.session.to_string(),
                memories: forgotten.ids.len(),
                last: times::show_time(left.last),
                operation: Some(forgotten.operation).filter(|operation| !operation.is_empty()),
            });
        }
    }
    let freed_bytes = if args.dry_run { 0 } else { project.store.shrink(&project.scope).await? };
    Ok(Output {
        dry_run: args.dry_run,
        leftovers: leftovers::remove(engine, &project, args.dry_run),
        clock_ahead_days: ahead.map(|ahead| ahead / DAY),
        stashed_texts: stash.removed,
        stash_operation: stash.operation,
        returned: stash.returned,
        unstashed: stash.ended,
        freed_bytes,
        cached_answers: all.answers,
        cached_bytes: all.answer_bytes,
        queue_entries: all.made + all.given_up,
        superseded_summaries: all.superseded,
        sessions,
        quarters,
    })
}

/// The segments that left the stash. In a dry run, those that would leave it.
#[derive(Default)]
struct Ended {
    removed: i64,
    ended: i64,
    returned: i64,
    /// The operation that removed the texts, if any were.
    operation: Option<String>,
}

/// Removes due segments from the stash, in steps. Other processes can write between the steps.
async fn end_stash(engine: &Engine, project: &WritableProject, dry_run: bool) -> Result<Ended> {
    const AT_ONCE: usize = 1_000;
    let now = engine.now();
    let before = engine.config().options.stash_made_before(now);
    let mut all = Ended::default();
    if dry_run {
        let (now, before) = (now - GRACE, before.saturating_sub(GRACE));
        let due = project.store.expiring_stash(&project.scope, now, before).await?;
        (all.removed, all.ended) = (due.removed, due.ended);
        return Ok(all);
    }
    let operation = engine.operation();
    loop {
        let step = project.store.expire_stash(&project.scope, (now, before), &operation, AT_ONCE).await?;
        all.removed += step.removed;
        all.ended += step.ended;
        all.returned += step.returned;
        if step.removed + step.ended == 0 {
            all.operation = Some(operation).filter(|_| all.removed > 0);
            return Ok(all);
        }
    }
}

impl Output {
    /// Returns the answer as text.
    pub fn text(&self) -> String {
        let removed = if self.dry_run { "Would remove" } else { "Removed" };
        let mut text = String::new();
        if let Some(days) = self.clock_ahead_days {
            text += &format!(
                "Nothing is removed for its age: the clock is {} later than everything that is stored. If the clock is \
                 right, store something first.\n",
                counted(days, "day", "days")
            );
        }
        text += &format!(
            "{removed} {} ({} bytes), {} and {}.",
            counted(self.cached_answers, "expired cached answer", "expired cached answers"),
            self.cached_bytes,
            counted(self.queue_entries, "old queue entry", "old queue entries"),
            counted(self.superseded_summaries, "superseded summary", "superseded summaries"),
        );
        if self.stashed_texts > 0 {
            let texts = counted(self.stashed_texts, "text that expired", "texts that expired");
            text += &format!("\n{removed} {texts} from the stash");
            if let Some(operation) = &self.stash_operation {
                text += &format!("; `tiro undo {operation}` brings back what is missed");
            }
        }
        if self.returned > 0 {
            let texts = counted(self.returned, "text of the stash is", "texts of the stash are");
            text += &format!("\n{texts} back, removed before by a clock that was ahead");
        }
        if self.unstashed > 0 {
            let ended = if self.dry_run { "would leave" } else { "left" };
            let memories = counted(self.unstashed, "memory", "memories");
            text += &format!("\n{memories} {ended} the stash, and stay in the memory");
        }
        if self.leftovers > 0 {
            let files = counted(self.leftovers, "unfinished file", "unfinished files");
            text += &format!("\n{removed} {files} that killed commands left");
        }
        if self.freed_bytes > 0 {
            text += &format!("\nThe store is {} bytes smaller", thousands(self.freed_bytes));
        }
        let forgotten = if self.dry_run { "Would forget" } else { "Forgot" };
        for left in &self.sessions {
            let memories = counted(left.memories, "memory", "memories");
            text += &format!(
                "\n{forgotten} session `{}`: {memories}, last {}",
                tiro_base::error::quoted(&left.session_id),
                left.last
            );
            if let Some(operation) = &left.operation {
                text += &format!("; `tiro undo {operation}` brings it back");
            }
        }
        let summed = if self.dry_run { "Would sum up" } else { "Summed up" };
        for Quarter { quarter, conversations, .. } in &self.quarters {
            text += &format!("\n{summed} {quarter}: {conversations} conversations, which stay as they are");
        }
        if self.dry_run {
            text += "\nNothing was changed.";
        }
        text
    }
}
