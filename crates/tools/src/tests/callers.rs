//! Callers of one process.

use std::path::Path;
use std::sync::Arc;

use tiro_capture::sources::Ignored;
use tiro_host::caller::{Caller, WritingCaller};
use tiro_host::config::{Config, List, Options};
use tiro_host::engine::{Duty, Engine, MOST_OPEN};
use tiro_host::principals::{Access, Principal, Rights};
use tiro_sqlite::SqliteFiles;

use tiro_base::memory::Kind;
use tiro_base::scope::{AuthorId, ProjectId, Scope, TenantId};

use crate::memory::{save_messages, store_memory};

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
    assert_eq!(listed(&all).len(), 16);
    let of_memory: Vec<String> = listed(&memory);
    assert_eq!(of_memory.len(), 8);
    assert!(of_memory.iter().all(|tool| listed(&all).contains(tool)));
}

/// An author with a personal key reads and writes in the store that the owner has open, as this author and without the
/// owner's files.
#[tokio::test]
async fn an_author_joins_the_owner_and_keeps_what_it_saves() {
    let folder = tempfile::tempdir().unwrap();
    let (engine, owner, _) = engine_and_callers(folder.path());
    let join = |name: &str, access, rights: Option<&Rights>| {
        let principal = Principal { author: AuthorId::new(name), access };
        owner.joined_by(Some((&principal, rights)), usize::MAX)
    };
    let rights = Rights { may_write: true, kinds: vec![Kind::Decision] };
    let (ana, ben) = (join("ana", Access::Write, Some(&rights)), join("ben", Access::Read, Some(&rights)));
    let eve = join("eve", Access::Write, None);
    let args = |text: &str| store_memory::Args { text: text.into(), ..store_memory::Args::default() };
    store_memory::run(&engine, &owner, args("the pump is blue")).await.unwrap();
    store_memory::run(&engine, &ana, args("the valve is green")).await.unwrap();
    let count = async |caller: &Caller| {
        let project = caller.project(&engine).await.unwrap();
        project
            .store
            .stats(&project.scope, engine.now())
            .await
            .unwrap()
            .kinds
            .iter()
            .map(|kind| kind.memories)
            .sum()
    };
    let counts = async || {
        let [own, of_ana] = [count(&owner).await, count(&ana).await];
        [own, of_ana, count(&ben).await, count(&eve).await]
    };
    // A fact is not of a shared kind.
    assert_eq!(counts().await, [1_i64, 2, 1, 0]);
    let decision = |text: &str| store_memory::Args { kind: Some("decision".into()), ..args(text) };
    store_memory::run(&engine, &ana, decision("we paint the pump")).await.unwrap();
    assert_eq!(counts().await, [2, 3, 2, 0]);
    store_memory::run(&engine, &eve, decision("nobody paints the pump")).await.unwrap();
    assert_eq!(counts().await, [2, 3, 2, 1]);
    let [own, anas] = [&owner, &ana].map(|caller| caller.begin_project(&engine));
    let (own, anas) = (own.await.unwrap(), anas.await.unwrap());
    assert!(own.store.identity() == anas.store.identity() && anas.scope.reader.as_str() == "ana");
    assert!(!ana.has_files() && owner.has_files());
    let names = |caller: WritingCaller| -> Vec<String> {
        crate::offered(&engine, &Arc::new(caller)).into_iter().map(|tool| tool.name).collect()
    };
    let (of_ana, of_ben) = (names(ana), names(ben));
    assert!(of_ana.contains(&"store_memory".to_owned()) && !of_ben.contains(&"store_memory".to_owned()));
    assert!(!of_ana.iter().any(|name| name == "explain_lines" || name == "configure_llm_provider"));
}

/// What a process has open doesn't grow with the number of its callers, even if all of them stay.
#[tokio::test]
async fn hundreds_of_callers_have_few_projects_open() {
    open_one_after_the_other(200).await;
}

/// Prints how much memory a thousand callers take. To run it:
/// `cargo test -p tiro-tools -- --ignored --nocapture a_thousand_callers`.
#[tokio::test]
#[ignore = "it makes a thousand stores on the disk, which takes minutes"]
async fn a_thousand_callers_take_no_more_memory_than_hundreds() {
    let [after_hundreds, after_all] = open_one_after_the_other(1_000).await;
    eprintln!("after 200 callers: {after_hundreds} KiB, after 1,000: {after_all} KiB");
    assert!(after_all < after_hundreds + 64 * 1024);
}

/// Has `count` callers open a project each and stay. Returns how many KiB of memory the process had after 200 of them and
/// after all.
async fn open_one_after_the_other(count: usize) -> [u64; 2] {
    let folder = tempfile::tempdir().unwrap();
    let (engine, one, _) = engine_and_callers(folder.path());
    let (mut callers, mut opened, mut after_hundreds) = (Vec::new(), Vec::new(), 0);
    for number in 0..count {
        let directory = folder.path().join(format!("project-{number}"));
        std::fs::create_dir(&directory).unwrap();
        let caller = one.in_directory(&directory, false);
        opened.push(Arc::downgrade(&caller.begin_project(&engine).await.unwrap().store));
        callers.push(caller);
        if number + 1 == 200 {
            after_hundreds = resident();
        }
    }
    let after_all = resident();
    let open = || opened.iter().filter(|store| store.strong_count() > 0).count();
    assert_eq!(open(), MOST_OPEN);
    let used = callers[0].begin_project(&engine).await.unwrap();
    callers[1].begin_project(&engine).await.unwrap();
    assert!(used.store.is_empty(&used.scope).await.unwrap(), "it was opened again");
    drop(callers);
    assert_eq!(open(), 0, "what callers have open ends with them");
    [after_hundreds, after_all]
}

/// Returns how many KiB of memory this process has; 0 where the system does not tell.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or_default()
}

/// What is noted in the empty installation that a user has before anything is stored is not seen by another user of the
/// process, even if both are called the same.
#[tokio::test]
async fn users_of_one_process_have_their_own_blank_installation() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let [config, other] = folders.each_ref().map(|folder| Config::of_test(folder.path()));
    let of_ana = Engine::new(config.clone(), Arc::new(SqliteFiles::new(config.data_dir.clone())));
    let of_ben = of_ana.of_another(other.clone(), Arc::new(SqliteFiles::new(other.data_dir.clone())));
    let [of_ana, of_ben] =
        [of_ana.installation().await.unwrap().registry, of_ben.installation().await.unwrap().registry];
    assert_ne!(of_ana.memories().identity(), of_ben.memories().identity());
    let scope = Scope::own(config.owner.clone(), ProjectId::owner_wide());
    of_ana.memories().set_import_cursor(&scope, "git", "seen", 1).await.unwrap();
    assert_eq!(of_ben.memories().import_cursor(&scope, "git").await.unwrap(), None);
}

/// Two users of one process have their own settings, projects and ledgers; what is open is bounded for both together.
#[tokio::test]
async fn users_of_one_process_share_what_is_open_and_nothing_else() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let of = |folder: &Path, owner: &str, ignored: &[&str]| {
        let sessions = List(ignored.iter().map(|&name| name.to_owned()).collect());
        let options = Options { ignore_sessions: sessions, ..Options::default() };
        let ignored = Ignored::new(&options.ignore_sessions.0, &[], false).unwrap();
        let config = Config { owner: TenantId::new(owner), options, ignored, ..Config::of_test(folder) };
        (config.clone(), Arc::new(SqliteFiles::new(config.data_dir)))
    };
    let (config, stores) = of(folders[0].path(), "ana", &["private-*"]);
    let ana = WritingCaller::of_process(&config);
    let of_ana = Arc::new(Engine::new(config, stores));
    let (config, stores) = of(folders[1].path(), "ben", &[]);
    let ben = WritingCaller::of_process(&config);
    let of_ben = Arc::new(of_ana.of_another(config, stores));
    let said = |text: &str| {
        let message = serde_json::json!({"role": "user", "text": text});
        let args = serde_json::json!({"session_id": "private-1", "messages": [message]});
        serde_json::from_value::<save_messages::Args>(args).unwrap()
    };
    let kept = save_messages::run(&of_ana, &ana, said("the quay is closed")).await.unwrap();
    assert_eq!(kept.left_out, 1, "the setting is Ana's");
    let kept = save_messages::run(&of_ben, &ben, said("the quay is open")).await.unwrap();
    assert_eq!(kept.left_out, 0, "and not Ben's");
    let secrets = [of_ana.begin_installation().await.unwrap(), of_ben.begin_installation().await.unwrap()];
    assert_ne!(secrets[0].secret, secrets[1].secret, "each has an installation");
    for installation in &secrets {
        assert_eq!(installation.registry.all().await.unwrap().len(), 1, "with its own project");
    }

    let mut opened = Vec::new();
    let mut callers = Vec::new();
    for number in 0..MOST_OPEN {
        for (engine, caller, folder) in [(&of_ana, &ana, &folders[0]), (&of_ben, &ben, &folders[1])] {
            let directory = folder.path().join(format!("project-{number}"));
            std::fs::create_dir(&directory).unwrap();
            let caller = caller.in_directory(&directory, false);
            opened.push(Arc::downgrade(&caller.begin_project(engine).await.unwrap().store));
            callers.push(caller);
        }
    }
    let open = opened.iter().filter(|store| store.strong_count() > 0).count();
    assert_eq!(open, MOST_OPEN, "of both together");
    let project = callers[0].project(&of_ana).await.unwrap();
    let turn = of_ana.works_on(&project.scope.project, Duty::Upkeep);
    assert!(turn.is_some() && of_ana.works_on(&project.scope.project, Duty::Upkeep).is_none());
    assert!(of_ben.works_on(&project.scope.project, Duty::Upkeep).is_some(), "Ben has another store of it");
}
