//! The files that a walk finds in random trees, compared with a simple model of the rules.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{LIMITS, Tree, fs, gather};
use crate::FoundFile;

const FOLDERS: &[&str] = &["a", "a-b", "b", "c.d"];
const FILES: &[&str] = &["a", "b.log", "g.txt", ".env", ".hidden", "z"];
/// Lines of `.gitignore` that the model knows.
const RULES: &[&str] = &["*.log", "/a", "b/", "g.txt", "!g.txt", "!*.log", "a/z"];

fn path() -> impl Strategy<Value = String> {
    let folders = prop::collection::vec(prop::sample::select(FOLDERS), 0..4);
    (folders, prop::sample::select(FILES))
        .prop_map(|(folders, file)| folders.into_iter().chain([file]).collect::<Vec<_>>().join("/"))
}

fn rules() -> impl Strategy<Value = (String, Vec<&'static str>)> {
    let folders = prop::collection::vec(prop::sample::select(FOLDERS), 0..3);
    let lines = prop::collection::vec(prop::sample::select(RULES), 1..4);
    (folders.prop_map(|folders| folders.join("/")), lines)
}

/// Returns whether `rule`, in the folder of `path`'s first component, matches `path`.
fn matches(rule: &str, path: &str, is_folder: bool) -> bool {
    let name = path.rsplit('/').next().unwrap();
    match rule.trim_start_matches('!') {
        "*.log" => name.ends_with(".log"),
        "/a" => path == "a",
        "b/" => name == "b" && is_folder,
        "g.txt" => name == "g.txt",
        "a/z" => path == "a/z",
        rule => unreachable!("{rule}"),
    }
}

/// Returns whether the rules ignore `path` itself. The rules are by folder, and the innermost go first.
fn is_ignored(rules: &BTreeMap<String, Vec<&str>>, path: &str, is_folder: bool) -> bool {
    let mut folder = path;
    while !folder.is_empty() {
        folder = folder.rsplit_once('/').map_or("", |(folder, _)| folder);
        let below = path[folder.len()..].trim_start_matches('/');
        for rule in rules.get(folder).into_iter().flatten().rev() {
            if matches(rule, below, is_folder) {
                return !rule.starts_with('!');
            }
        }
    }
    false
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn a_walk_finds_what_the_model_does(
        paths in prop::collection::btree_set(path(), 0..30),
        rules in prop::collection::btree_map(rules().prop_map(|(folder, _)| folder), rules().prop_map(|(_, lines)| lines), 0..4),
    ) {
        let tree = Tree::new(&[]);
        // A file may stand where a folder should be, so that some paths can't be made.
        let mut made: Vec<String> = Vec::new();
        for path in &paths {
            let is_free = !tree.at(path).exists();
            if is_free && fs::create_dir_all(tree.at(path).parent().unwrap()).is_ok() && fs::write(tree.at(path), "x").is_ok() {
                made.push(path.clone());
            }
        }
        let mut kept = BTreeMap::new();
        for (folder, lines) in rules {
            if tree.at(&folder).is_dir() {
                let path = if folder.is_empty() { ".gitignore".to_owned() } else { format!("{folder}/.gitignore") };
                fs::write(tree.at(&path), lines.join("\n")).unwrap();
                made.push(path);
                kept.insert(folder, lines);
            }
        }
        let is_taken = |path: &String| {
            let folders: Vec<&str> = path.match_indices('/').map(|(at, _)| &path[..at]).collect();
            !folders.iter().any(|folder| is_ignored(&kept, folder, true))
                && !is_ignored(&kept, path, false)
                && !path.ends_with(".env")
        };
        let mut expected: Vec<&String> = made.iter().filter(|path| is_taken(path)).collect();
        expected.sort();
        let gathered = gather(&tree.roots(), &[".".to_owned()], &LIMITS);
        let found: Vec<&String> = gathered.files.iter().map(|FoundFile { path, .. }| path).collect();
        prop_assert_eq!(&found, &expected);
        // Each file that was not found is counted, or lies in a folder that is.
        let skipped: usize = gathered.skipped.iter().map(|it| it.files).sum();
        let in_folders = made.iter().filter(|path| {
            path.match_indices('/').any(|(at, _)| is_ignored(&kept, &path[..at], true))
        });
        prop_assert_eq!(found.len() + skipped + in_folders.count(), made.len());
    }
}
