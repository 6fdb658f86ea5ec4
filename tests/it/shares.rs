//! A session belongs to its own project and to each repository in which it worked. Each of these repositories gets only
//! the work that was done there.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::harness::{Home, feed};
use crate::talk::{BEGAN, Talk};

/// A folder of two repositories, the first of which has a second work tree, and a session that runs in the folder.
struct Folder {
    home: Home,
    talk: Talk,
    work: PathBuf,
}

impl Folder {
    fn new() -> Folder {
        let home = Home::new();
        home.dir("home/.claude");
        let work = home.dir("work");
        for name in ["work/one", "work/two"] {
            home.repo(name).commit("a.txt", "a\n", "Begin");
        }
        home.repo_at(work.join("one")).git(&["worktree", "add", "-q", "../one-tree"]);
        let talk = Talk::new(&home, "8d1f2a44-5af3-46fb-8473-94dff3a77ff6", &work, "main");
        Folder { home, talk, work }
    }

    /// Writes the turns: one about no repository, one in each repository, which is known by the files, one after the
    /// agent changed its directory to the first repository, and one in the first repository's other work tree.
    fn speak(&self) {
        let talk = &self.talk;
        talk.says("user", 0, "what is the weather at the quay?");
        talk.says("assistant", 1, "the quay is foggy");
        talk.says("user", 10, "mend the gearbox");
        talk.says("assistant", 11, "the gearbox wants grease");
        talk.calls(12, "Bash", json!({"command": "cat notes"}), "the folder has notes on barnacles");
        talk.edits(13, "one/src/gear.rs");
        talk.says("assistant", 14, "the gearbox turns again");
        talk.says("user", 20, "paint the hull");
        talk.edits(21, "two/hull.rs");
        talk.says("assistant", 22, "the hull is vermilion");
        self.says_in("one", "user", 30, "why does the yardarm creak?");
        self.says_in("one/src", "assistant", 31, "its block is dry");
        talk.says("user", 40, "try the windlass elsewhere");
        talk.edits(41, "one-tree/windlass.rs");
    }

    fn says_in(&self, directory: &str, role: &str, at: i64, text: &str) {
        let mut line = self.talk.line(role, (BEGAN + at) * 1000, json!(text));
        line["cwd"] = json!(self.work.join(directory));
        self.talk.put(&line);
    }

    /// Runs the hook with `directory` as the agent's working directory.
    fn hook(&self, directory: &Path) {
        let mut payload: Value = serde_json::from_slice(&self.talk.payload("Stop")).unwrap();
        payload["cwd"] = json!(directory);
        let before = self.home.waiting();
        let left = (0..50).any(|_| {
            feed(self.home.tiro(directory, &["hook", "claude-code"]), payload.to_string().as_bytes());
            self.home.waiting() > before
        });
        assert!(left, "no reference was left");
    }

    /// Checks what is found in each of the projects, and in the first through both of its work trees.
    fn check(&self) {
        let all = ["quay", "gearbox", "barnacles", "vermilion", "yardarm", "windlass"];
        for (directory, expected) in [
            ("one", ["gearbox", "yardarm", "windlass"].as_slice()),
            ("one-tree", &["gearbox", "yardarm", "windlass"]),
            ("two", &["vermilion"]),
            ("", &["quay", "gearbox", "barnacles", "vermilion", "windlass"]),
        ] {
            let directory = self.work.join(directory);
            let mut server = self.home.serve(&directory);
            for word in all {
                let hits = server.search(word);
                let found = hits.iter().any(|hit| hit["text"].as_str().unwrap_or_default().contains(word));
                assert_eq!(found, expected.contains(&word), "{word} in {directory:?}: {hits:?}");
            }
            let sessions = server.data("list_sessions", json!({}));
            assert_eq!(sessions["sessions"].as_array().unwrap().len(), 1, "{sessions}");
        }
    }
}

/// A session that ran in a folder of repositories used to be stored only in the folder's project.
#[test]
fn a_session_above_repositories_belongs_to_each_it_worked_in() {
    let folder = Folder::new();
    folder.speak();
    folder.hook(&folder.work);
    // A call in the folder, or its idle server, passes the work on.
    folder.home.serve(&folder.work).search("anything");
    folder.check();
    assert_eq!(folder.home.waiting(), 0, "nobody tells anybody twice");
}

/// When the agent had changed its directory to a repository, its work there used to be stored in the folder's project.
#[test]
fn an_agent_that_changed_into_a_repository_is_remembered_there() {
    let folder = Folder::new();
    folder.speak();
    folder.hook(&folder.work.join("one"));
    let mut server = folder.home.serve(&folder.work.join("one"));
    assert!(!server.search("yardarm").is_empty());
    assert!(
        server.search("vermilion").iter().all(|hit| !hit["text"].as_str().unwrap().contains("vermilion"))
    );
    server.end();
    folder.home.serve(&folder.work).search("anything");
    folder.check();
    // The session continues in the same turn.
    folder.talk.says("assistant", 50, "the windlass runs free now");
    folder.hook(&folder.work.join("one"));
    let found = folder.home.serve(&folder.work.join("one")).search("free");
    assert!(found.iter().any(|hit| hit["text"].as_str().unwrap().contains("runs free")), "{found:?}");
}

/// An import used to read only the transcripts of the project's own folder.
#[test]
fn an_import_finds_sessions_held_above_the_repository() {
    let folder = Folder::new();
    folder.speak();
    let other = Talk::new(&folder.home, "9d1f2a44-5af3-46fb-8473-94dff3a77ff6", &folder.work, "main");
    other.says("user", 0, "this one names none of them");
    for (directory, expected) in [("one", "gearbox"), ("two", "vermilion")] {
        let directory = folder.work.join(directory);
        let looked = folder.home.json(&directory, &["import", "claude-code", "--dry-run"]);
        assert_eq!(looked["transcripts"], 1, "{looked}");
        let imported = folder.home.json(&directory, &["import", "claude-code"]);
        assert!(imported["imported"].as_u64().unwrap() > 0, "{imported}");
        let found = folder.home.json(&directory, &["search", expected]);
        assert!(!found["hits"].as_array().unwrap().is_empty(), "{found}");
    }
    folder.home.json(&folder.work, &["import", "claude-code"]);
    let sessions = folder.home.json(&folder.work, &["sessions"]);
    assert_eq!(sessions["sessions"].as_array().unwrap().len(), 2, "{sessions}");
}

/// A session that ran in a work tree of `one` and changed a file in the repository `two`. A hook reported the session,
/// and the work tree was removed after that.
fn in_a_tree_that_is_gone(folder: &Folder, tree: &Path) {
    let one = folder.home.repo_at(folder.work.join("one"));
    let talk = Talk::new(&folder.home, "9d1f2a44-5af3-46fb-8473-94dff3a77ff6", tree, "one-tree");
    talk.says("user", 0, "overhaul the bilge pump");
    talk.says("assistant", 1, "the bilge pump hums");
    talk.edits(2, "bilge.rs");
    talk.says("user", 10, "paint the hull");
    talk.edits(11, folder.work.join("two/hull.rs").to_str().unwrap());
    talk.hook(&folder.home, "Stop");
    // The session belongs to another project, whose server passes the work on.
    folder.home.serve(&folder.work.join("one")).search("anything");
    assert_eq!(folder.home.waiting(), 1, "the other repository is told of the session");
    one.git(&["worktree", "remove", "--force", tree.to_str().unwrap()]);
    assert!(!tree.exists());
}

fn finds(folder: &Folder, name: &str, word: &str) -> bool {
    let hits = folder.home.serve(&folder.work.join(name)).search(word);
    hits.iter().any(|hit| hit["text"].as_str().unwrap_or_default().contains(word))
}

/// If the directory of a session no longer existed, each repository in which it had worked used to get the whole
/// session.
#[test]
fn a_repository_gets_its_part_of_a_session_whose_directory_is_gone() {
    let folder = Folder::new();
    in_a_tree_that_is_gone(&folder, &folder.work.join("one-tree"));
    assert!(finds(&folder, "two", "hull.rs"));
    assert_eq!(folder.home.waiting(), 0, "it was followed");
    assert!(!finds(&folder, "two", "bilge"), "what was said in another project");
    assert!(finds(&folder, "one", "bilge"));
}

/// Tests the same with a directory inside the other repository.
#[test]
fn a_work_tree_inside_another_repository_does_not_belong_to_it() {
    let folder = Folder::new();
    let tree = folder.work.join("two/trees/one");
    folder.home.repo_at(folder.work.join("one")).git(&["worktree", "add", "-q", tree.to_str().unwrap()]);
    in_a_tree_that_is_gone(&folder, &tree);
    assert!(finds(&folder, "two", "hull.rs"));
    assert!(!finds(&folder, "two", "bilge"), "what was said in another project");
}

/// The hook of a session in a work tree left its reference, and the work tree was removed before the next call.
#[test]
fn a_session_in_a_removed_work_tree_belongs_to_its_repository_in_full() {
    let folder = Folder::new();
    let tree = folder.work.join("one-tree");
    let talk = Talk::new(&folder.home, "9d1f2a44-5af3-46fb-8473-94dff3a77ff6", &tree, "one-tree");
    talk.says("user", 0, "overhaul the bilge pump");
    talk.hook(&folder.home, "Stop");
    let one = folder.home.repo_at(folder.work.join("one"));
    one.git(&["worktree", "remove", "--force", tree.to_str().unwrap()]);
    assert!(finds(&folder, "one", "bilge"));
}

/// A client replaces a directory name that is not UTF-8 with one that does not exist.
#[test]
fn a_repository_gets_its_part_of_a_session_in_a_directory_with_an_odd_name() {
    let folder = Folder::new();
    let odd = folder.work.join("odd\u{fffd}");
    let talk = Talk::new(&folder.home, "9d1f2a44-5af3-46fb-8473-94dff3a77ff6", &odd, "main");
    talk.says("user", 0, "overhaul the bilge pump");
    talk.edits(1, folder.work.join("two/hull.rs").to_str().unwrap());
    let mut payload: Value = serde_json::from_slice(&talk.payload("Stop")).unwrap();
    payload["cwd"] = json!(folder.work.join("two"));
    feed(
        folder.home.tiro(&folder.work.join("two"), &["hook", "claude-code"]),
        payload.to_string().as_bytes(),
    );
    assert!(finds(&folder, "two", "hull.rs"));
    assert!(!finds(&folder, "two", "bilge"), "what was said in another project");
}

/// Each time a turn grew, it used to be read again from its beginning, and each reading counted towards the limit of a
/// session.
#[test]
fn a_turn_read_again_counts_once() {
    let folder = Folder::new();
    let (one, talk) = (folder.work.join("one"), &folder.talk);
    talk.says("user", 0, "grease the capstan");
    folder.says_in("one", "assistant", 1, &"the capstan wants much grease. ".repeat(20_000));
    // The limit of a session is 16 MB. If turns were read again, it would be reached after about thirty readings.
    for step in 0..32 {
        folder.says_in("one", "assistant", 10 + step, &format!("pawl {step} is greased"));
        let imported = folder.home.json(&one, &["import", "claude-code"]);
        assert_eq!(
            imported["imported"].as_u64().unwrap(),
            if step == 0 { 3 } else { 1 },
            "{step}: {imported}"
        );
        assert_eq!(imported["left_out"], 0, "{step}: {imported}");
    }
}

/// If a turn was longer than one step, each step used to start again at its beginning.
#[test]
fn a_long_turn_is_not_restarted_each_time() {
    let folder = Folder::new();
    let (one, talk) = (folder.work.join("one"), &folder.talk);
    talk.says("user", 0, "grease the capstan");
    talk.edits(1, "one/capstan.rs");
    for at in 0..3 {
        talk.calls(2 + at, "Bash", json!({"command": "seq"}), &format!("{at} barnacles ").repeat(50_000));
    }
    let imported = folder.home.json(&one, &["import", "claude-code"]);
    assert!(imported["bytes"].as_u64().unwrap() > 1 << 20, "{imported}");
    talk.says("assistant", 10, "the capstan turns again");
    let again = folder.home.json(&one, &["import", "claude-code"]);
    assert!(again["bytes"].as_u64().unwrap() < 1000, "{again}");
    let found = folder.home.json(&one, &["search", "turns again"]);
    assert!(
        found["hits"].to_string().contains("turns again"),
        "said in a turn in which something was done: {found}"
    );
}

/// What exceeded the limit of a session used to be left out of all later imports too, without a notice.
#[test]
fn a_session_beyond_the_limit_is_reported() {
    let folder = Folder::new();
    let talk = &folder.talk;
    talk.says("user", 0, &"barnacles ".repeat(1_700_000));
    talk.says("user", 1, "what is this?");
    folder.hook(&folder.work);
    let mut server = folder.home.serve(&folder.work);
    let said = server.data("search_project_memory", json!({"query": "barnacles"}));
    assert!(said["notices"].to_string().contains("beyond the limit of a session"), "{}", said["notices"]);
}
