//! Callers of one process.

use std::path::Path;
use std::sync::Arc;

use tiro_host::caller::{Caller, WritingCaller};
use tiro_host::config::Config;
use tiro_host::engine::{Engine, MOST_OPEN};
use tiro_sqlite::SqliteFiles;

use crate::memory::store_memory;

/// Returns an engine with its data in `folder`, and two callers, each with a different directory in `folder`.
fn engine_and_callers(folder: &Path) -> (Arc<Engine>, WritingCaller, WritingCaller) {
    let config = Config::of_test(folder);
    let caller = WritingCaller::of_process(&config);
    let in_directory = |name: &str| {
        let directory = folder.join(name);
        std::fs::create_dir(&directory).unwrap();
        caller.in_directory(&directory, false)
    };
    let (one, other) = (in_directory("one"), in_directory("other"));
    (Arc::new(Engine::new(config.clone(), Arc::new(SqliteFiles::new(config.data_dir)))), one, other)
}

#[tokio::test]
async fn callers_of_one_process_work_on_their_own_projects() {
    let folder = tempfile::tempdir().unwrap();
    let (engine, one, other) = engine_and_callers(folder.path());
    let args = store_memory::Args { text: "the pump is blue".into(), ..store_memory::Args::default() };
    store_memory::run(&engine, &one, args).await.unwrap();
    let count = async |caller: &Caller| {
        let project = caller.project(&engine).await.unwrap();
        project.store.stats(&project.scope, engine.now()).await.unwrap().kinds.len()
    };
    assert_eq!((count(&one).await, count(&other).await), (1, 0));
    assert!(other.project(&engine).await.unwrap().is_blank, "reading creates no store");
}

#[test]
fn a_caller_is_offered_the_tools_that_it_may_use_and_always_in_the_same_words() {
    let folder = tempfile::tempdir().unwrap();
    let (engine, one, other) = engine_and_callers(folder.path());
    let listed = |caller: &Arc<WritingCaller>| -> Vec<String> {
        let tools = crate::offered(&engine, caller);
        tools.iter().map(|tool| format!("{} {:?}", tool.name, tool.input_schema)).collect()
    };
    let (all, memory) = (Arc::new(one), Arc::new(other.with_toolsets("memory".parse().unwrap())));
    assert_eq!(listed(&all), listed(&all));
    assert_eq!(listed(&all).len(), 15);
    let of_memory: Vec<String> = listed(&memory);
    assert_eq!(of_memory.len(), 7);
    assert!(of_memory.iter().all(|tool| listed(&all).contains(tool)));
}

/// What a process has open doesn't grow with the number of its callers, even if all of them stay.
#[tokio::test]
async fn hundreds_of_callers_have_few_projects_open() {
    /// A thousand pass too, in minutes: each makes a store on the disk.
    const CALLERS: usize = 200;
    let folder = tempfile::tempdir().unwrap();
    let (engine, one, _) = engine_and_callers(folder.path());
    let (mut callers, mut opened) = (Vec::new(), Vec::new());
    for number in 0..CALLERS {
        let directory = folder.path().join(format!("project-{number}"));
        std::fs::create_dir(&directory).unwrap();
        let caller = one.in_directory(&directory, false);
        opened.push(Arc::downgrade(&caller.begin_project(&engine).await.unwrap().store));
        callers.push(caller);
    }
    let open = || opened.iter().filter(|store| store.strong_count() > 0).count();
    assert_eq!(open(), MOST_OPEN);
    let used = callers[0].begin_project(&engine).await.unwrap();
    callers[1].begin_project(&engine).await.unwrap();
    assert!(used.store.is_empty(&used.scope).await.unwrap(), "it was opened again");
    drop(callers);
    assert_eq!(open(), 0, "what callers have open ends with them");
}
