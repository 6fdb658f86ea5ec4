use std::fs;

use super::folder::LIMIT;
use super::*;

fn spool() -> (tempfile::TempDir, Spool) {
    let data = tempfile::tempdir().unwrap();
    let spool = Spool::of(data.path(), Path::new("/repo/.git"));
    (data, spool)
}

fn reference(session: &str, at: Millis) -> Reference {
    Reference {
        client: "codex".into(),
        event: "Stop".into(),
        session: session.into(),
        transcript: Some("/tmp/t.jsonl".into()),
        commit: None,
        directory: "/repo".into(),
        at,
        trouble: None,
    }
}

#[test]
fn a_session_has_one_reference_and_the_latest_counts() {
    let (_data, spool) = spool();
    assert!(spool.is_empty() && spool.take().is_empty());
    for (session, at) in [("b", 2), ("a", 1), ("b", 3)] {
        spool.leave(&reference(session, at)).unwrap();
    }
    assert_eq!(spool.waiting(), 2);
    let taken = spool.take();
    assert_eq!(taken.iter().map(|each| each.reference.at).collect::<Vec<_>>(), [1, 3]);
    taken.into_iter().for_each(Taken::done);
    assert!(spool.is_empty());
}

#[test]
fn references_that_a_dying_process_took_are_found_again() {
    let (_data, spool) = spool();
    spool.leave(&reference("a", 1)).unwrap();
    drop(spool.take());
    assert_eq!(spool.take().len(), 1);
    spool.leave(&reference("a", 2)).unwrap();
    let again = spool.take();
    assert_eq!(again.iter().map(|each| each.reference.at).collect::<Vec<_>>(), [2]);
}

#[test]
fn a_file_that_is_not_a_reference_is_removed() {
    let (_data, spool) = spool();
    spool.leave(&reference("a", 1)).unwrap();
    fs::write(spool.folder.join("0123456789abcdef.json"), "{\"client\":").unwrap();
    assert_eq!(spool.take().len(), 1);
    assert!(!spool.folder.join("0123456789abcdef.taken").exists());
}

#[test]
fn an_unusable_spool_is_reported() {
    let (data, spool) = spool();
    assert_eq!(spool.trouble(), None);
    spool.leave(&reference("a", 1)).unwrap();
    assert_eq!(spool.trouble(), None);
    let other = Spool::of(data.path(), Path::new("/other"));
    fs::write(&other.folder, "a file in its place").unwrap();
    assert!(other.trouble().unwrap().contains("can't be used"));
}

#[test]
fn the_pointer_is_kept() {
    let (_data, spool) = spool();
    assert_eq!(spool.pointer(), None);
    spool.set_pointer("12 commits").unwrap();
    assert_eq!(spool.pointer().as_deref(), Some("12 commits"));
}

#[test]
fn pauses_are_remembered_after_they_end() {
    let (_data, spool) = spool();
    assert!(spool.set_paused(true, 10).unwrap());
    assert!(!spool.set_paused(true, 20).unwrap());
    assert_eq!((spool.is_paused(), spool.pauses()), (true, vec![(10, Millis::MAX)]));
    assert!(spool.set_paused(false, 30).unwrap());
    assert!(!spool.set_paused(false, 40).unwrap());
    spool.set_paused(true, 50).unwrap();
    assert_eq!(spool.pauses(), [(10, 30), (50, Millis::MAX)]);
    // The clock is set back.
    spool.set_paused(false, 45).unwrap();
    assert_eq!(spool.pauses(), [(10, 30), (45, 50)]);
}

#[test]
fn a_pause_outlasts_a_move_and_the_first_id() {
    let data = tempfile::tempdir().unwrap();
    let place = data.path().join("one.git");
    fs::create_dir(&place).unwrap();
    Spool::of(data.path(), &place).leave(&reference("a", 1)).unwrap();
    Spool::of(data.path(), &place).set_paused(true, 5).unwrap();
    identity::write(&place, "project-id-1").unwrap();
    let known = Spool::of(data.path(), &place);
    assert!(known.is_paused() && known.waiting() == 1);
    assert!(known.set_paused(false, 9).unwrap() && known.set_paused(true, 20).unwrap());

    let elsewhere = data.path().join("other.git");
    fs::rename(&place, &elsewhere).unwrap();
    let moved = Spool::of(data.path(), &elsewhere);
    assert_eq!((moved.is_paused(), moved.pauses()), (true, vec![(5, 9), (20, Millis::MAX)]));
    // A repository that replaces another at its path does not inherit its pause.
    fs::create_dir(&place).unwrap();
    assert!(!Spool::of(data.path(), &place).is_paused());
    // A repository that gets another id keeps its pause.
    identity::replace(&elsewhere, "project-id-2").unwrap();
    let linked = Spool::of(data.path(), &elsewhere);
    linked.inherit(&moved).unwrap();
    assert_eq!((linked.is_paused(), linked.pauses()), (true, vec![(5, 9), (20, Millis::MAX)]));
}

#[test]
fn unreadable_pauses_keep_everything_out() {
    let (_data, spool) = spool();
    spool.set_paused(true, 10).unwrap();
    spool.set_paused(false, 20).unwrap();
    for damage in ["10 20\n".repeat(LIMIT as usize), "10 20\nten twenty\n".to_owned()] {
        fs::write(spool.folder.join(PAUSES), damage).unwrap();
        assert!(spool.is_paused());
        assert_eq!(spool.pauses(), [(0, Millis::MAX)]);
    }
    assert!(spool.set_paused(false, 30).unwrap());
    assert_eq!((spool.is_paused(), spool.pauses()), (false, vec![(0, 30)]));
}

#[test]
fn a_pause_that_began_with_a_clock_far_ahead_ends() {
    let (_data, spool) = spool();
    let ahead = 1_000 * FARTHEST;
    spool.set_paused(true, ahead).unwrap();
    spool.set_paused(false, 50).unwrap();
    assert_eq!(spool.pauses(), [(0, 50), (ahead, ahead + FARTHEST)]);
}

#[test]
fn many_pauses_stay_few_lines_and_none_is_lost() {
    let (_data, spool) = spool();
    let pauses: Vec<Pause> = (0..5000).map(|n| (n * 100, n * 100 + 10 + n % 7)).collect();
    spool.put(PAUSES, listed(pauses.clone()).as_bytes()).unwrap();
    let kept = spool.pauses();
    assert_eq!(kept.len(), MOST_PAUSES);
    assert!(pauses.iter().all(|(from, until)| kept.iter().any(|it| it.0 <= *from && *until <= it.1)));
    assert_eq!(listed(vec![(5, 9), (1, 5), (20, 30)]), "1 9\n20 30\n");
}

#[test]
fn only_files_are_references() {
    let (_data, spool) = spool();
    spool.leave(&reference("a", 1)).unwrap();
    spool.take().into_iter().for_each(Taken::done);
    fs::create_dir(spool.folder.join("x.json")).unwrap();
    assert!(spool.is_empty() && spool.take().is_empty());
    assert!(spool.folder.join("x.json").is_dir());
}

#[test]
fn a_kept_reference_records_the_reason() {
    let (_data, spool) = spool();
    spool.leave(&reference("a", 1)).unwrap();
    spool.take().into_iter().for_each(|taken| taken.keep("locked away".into()));
    assert_eq!((spool.waiting(), spool.troubles()), (1, vec!["locked away".to_owned()]));
    assert_eq!(spool.take().len(), 1);
}

#[cfg(unix)]
#[test]
fn a_link_in_place_of_a_folder_is_not_followed() {
    let elsewhere = tempfile::tempdir().unwrap();
    let own = ["0123456789abcdef.json", "fedcba9876543210.taken", "notes.json", PAUSED, PAUSES, "pointer"];
    let others = || own.map(|name| (name, fs::read_to_string(elsewhere.path().join(name)).unwrap()));
    let all_of = |folder: &Path| fs::read_dir(folder).unwrap().count();
    for is_root in [true, false] {
        for name in own {
            fs::write(elsewhere.path().join(name), "somebody else's").unwrap();
        }
        let before = others();
        let (_data, spool) = spool();
        if is_root {
            std::os::unix::fs::symlink(elsewhere.path(), &spool.root).unwrap();
            fs::create_dir_all(elsewhere.path().join(spool.folder.file_name().unwrap())).unwrap();
        } else {
            fs::create_dir(&spool.root).unwrap();
            std::os::unix::fs::symlink(elsewhere.path(), &spool.folder).unwrap();
        }
        let count = all_of(elsewhere.path());
        assert!(spool.take().is_empty() && spool.is_empty() && spool.troubles().is_empty());
        assert!(spool.pointer().is_none() && spool.set_pointer("1 commit").is_err());
        assert!(spool.leave(&reference("a", 1)).is_err());
        assert!(spool.trouble().unwrap().contains("is in place of the folder"));
        // A mark that can't be read counts as a pause, and can't be removed there.
        assert!(spool.is_paused() && spool.set_paused(false, 9).is_err());
        assert_eq!((others(), all_of(elsewhere.path())), (before, count));
    }
}

#[cfg(unix)]
#[test]
fn a_link_or_a_pipe_in_place_of_a_file_is_not_read() {
    let (data, spool) = spool();
    spool.leave(&reference("a", 1)).unwrap();
    let secret = data.path().join("secret");
    fs::write(&secret, serde_json::to_vec(&reference("b", 2)).unwrap()).unwrap();
    std::os::unix::fs::symlink(&secret, spool.folder.join("0123456789abcdef.json")).unwrap();
    std::os::unix::fs::symlink(&secret, spool.folder.join("pointer")).unwrap();
    let pipe = spool.folder.join("fedcba9876543210.json");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    assert_eq!((spool.take().len(), spool.pointer()), (1, None));
    assert!(secret.exists() && pipe.exists());
}
