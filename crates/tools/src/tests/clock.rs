//! A clock that is ten years ahead or behind removes nothing: what was hidden comes back when the clock is right again.
//! A day that a question names is another one tomorrow.

use std::sync::Arc;

use serde_json::json;

use crate::context::retrieve_context;
use crate::memory::save_messages;
use crate::operate::gc;
use crate::stash::{export_stash, retrieve_stashed_context, stash_context};
use tiro_base::memory::Millis;
use tiro_host::caller::{Caller, WritingCaller};
use tiro_host::config::Config;
use tiro_host::engine::Engine;
use tiro_host::idle;
use tiro_sqlite::SqliteFiles;

const DAY: Millis = 24 * 60 * 60 * 1000;
const YEARS: Millis = 3_652 * DAY;

/// The time at which the texts are stashed: 2026-03-01.
const THEN: Millis = 1_772_323_200_000;

/// Returns an engine whose clock stands at [`THEN`], with 20 texts in the stash that expire after three days.
async fn stashed(folder: &std::path::Path) -> (Arc<Engine>, Arc<WritingCaller>) {
    let mut settings = Config::of_test(folder);
    settings.options.stash_max_age_days = 90;
    let project = folder.join("project");
    std::fs::create_dir(&project).unwrap();
    settings.current_dir = Some(project);
    let caller = Arc::new(WritingCaller::of_process(&settings));
    let engine = Arc::new(Engine::new(settings.clone(), Arc::new(SqliteFiles::new(settings.data_dir))));
    engine.clock().set(THEN);
    stash(&engine, &caller).await;
    (engine, caller)
}

async fn stash(engine: &Engine, caller: &WritingCaller) {
    let segments: Vec<_> = (0..20)
        .map(|n| json!({"text": format!("the boiler ticks {n} times"), "type": "debug_output"}))
        .collect();
    let args = serde_json::from_value(json!({"segments": segments, "expires_in_days": 3})).unwrap();
    stash_context::run(engine, caller, args).await.unwrap();
}

/// Returns how many texts the stash shows and exports.
async fn shown(engine: &Engine, caller: &Caller) -> usize {
    let args = serde_json::from_value(json!({"query": "boiler ticks", "top_k": 20})).unwrap();
    let found = retrieve_stashed_context::run(engine, caller, args).await.unwrap();
    let mut exported = 0;
    let each = |_: &export_stash::Exported| {
        exported += 1;
        Ok(())
    };
    export_stash::run(engine, caller, each).await.unwrap();
    assert_eq!(found.total_found, exported);
    exported
}

/// Does what the idle worker and `tiro gc` do, and returns what both say.
async fn clean_up(engine: &Engine, caller: &WritingCaller) -> (Option<String>, gc::Output) {
    let project = caller.begin_project(engine).await.unwrap();
    let said = idle::expire_stash(engine, project.store.as_ref(), &project.scope).await;
    let args = gc::Args { sessions_after_days: Some(30), ..gc::Args::default() };
    (said, gc::run(engine, caller, args).await.unwrap())
}

#[tokio::test]
async fn a_clock_ten_years_ahead_or_behind_removes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (engine, caller) = stashed(folder.path()).await;
    for (now, seen) in [(THEN + YEARS, 0), (THEN + DAY, 20), (THEN - YEARS, 20), (THEN + 2 * DAY, 20)] {
        engine.clock().set(now);
        assert_eq!(shown(&engine, &caller).await, seen, "{now}");
        let (said, cleaned) = clean_up(&engine, &caller).await;
        assert_eq!((cleaned.stashed_texts, cleaned.unstashed, cleaned.sessions.len()), (0, 0, 0));
        assert_eq!(cleaned.clock_ahead_days.is_some(), now > THEN + YEARS / 2);
        assert_eq!(said.is_some_and(|said| said.contains("the clock")), now > THEN + YEARS / 2);
    }
    assert!(
        engine.clock().now() < THEN + 3 * DAY && shown(&engine, &caller).await == 20,
        "the texts are found again"
    );
}

/// The answer of one day used to be given again on the next day, from the cache.
#[tokio::test]
async fn yesterday_is_another_day_tomorrow() {
    let folder = tempfile::tempdir().unwrap();
    let (engine, caller) = stashed(folder.path()).await;
    let painted = |id: &str, text: &str, time: Millis| json!({"id": id, "role": "user", "text": text, "time": tiro_base::times::show_time(time)});
    let messages = [
        painted("1", "We painted the tug black.", THEN + DAY / 2),
        painted("2", "We painted the barge green.", THEN + DAY + DAY / 2),
    ];
    let args = json!({"session_id": "s", "messages": messages});
    save_messages::run(&engine, &caller, serde_json::from_value(args).unwrap()).await.unwrap();
    for (days, seen, unseen) in [(1, "tug", "barge"), (2, "barge", "tug")] {
        engine.clock().set(THEN + days * DAY + DAY / 2);
        for _ in 0..2 {
            let args = serde_json::from_value(json!({"query": "what did we paint yesterday"})).unwrap();
            let text = retrieve_context::run(&engine, &caller, args).await.unwrap().text();
            assert!(text.contains(seen) && !text.contains(unseen), "{days}: {text}");
        }
    }
}

#[tokio::test]
async fn what_expired_is_removed_a_week_later_and_said_and_can_be_undone() {
    let folder = tempfile::tempdir().unwrap();
    let (engine, caller) = stashed(folder.path()).await;
    engine.clock().set(THEN + 4 * DAY);
    assert_eq!((shown(&engine, &caller).await, clean_up(&engine, &caller).await.1.stashed_texts), (0, 0));
    engine.clock().set(THEN + 11 * DAY);
    let cleaned = gc::run(&engine, &caller, gc::Args::default()).await.unwrap();
    assert_eq!(cleaned.stashed_texts, 20);
    let operation = cleaned.stash_operation.clone().unwrap();
    assert!(cleaned.text().contains(&format!("`tiro undo {operation}` brings back")), "{}", cleaned.text());
    let project = caller.begin_project(&engine).await.unwrap();
    let undone = project.store.undo(&project.scope, Some(&operation), engine.now()).await.unwrap();
    assert_eq!((undone.ids.len(), shown(&engine, &caller).await), (20, 20));
    assert_eq!(clean_up(&engine, &caller).await.1.stashed_texts, 0, "they don't expire again");
}

#[tokio::test]
async fn a_text_that_expired_is_stashed_anew() {
    let folder = tempfile::tempdir().unwrap();
    let (engine, caller) = stashed(folder.path()).await;
    for days in [4, 15, 115] {
        engine.clock().set(THEN + days * DAY);
        clean_up(&engine, &caller).await;
        stash(&engine, &caller).await;
        assert_eq!(shown(&engine, &caller).await, 20, "{days}");
    }
}
