//! Compares origins with those of the real `git blame -w -M`.

use super::*;
use crate::Trust;
use crate::testing::Fixture;
use proptest::prelude::*;

fn blame(fixture: &Fixture, path: &str, content: Option<&[u8]>) -> Result<Vec<Blamed>> {
    let repository = Repository::discover(&fixture.path, &Trust::new(None)).unwrap().unwrap();
    let commit = repository.head().unwrap().commit.unwrap();
    repository.blame(&BlameQuery { commit, path, content, lines: 0..usize::MAX }, &mut |_| true)
}

/// Returns the origin of each line.
fn origins(runs: &[Blamed]) -> Vec<Origin> {
    runs.iter().flat_map(|run| run.lines.clone().map(|_| run.origin)).collect()
}

/// Returns the commit of each line, according to git.
fn by_git(fixture: &Fixture, path: &str) -> Vec<Origin> {
    let printed = fixture.git(&["blame", "-w", "-M", "--porcelain", "HEAD", "--", path]);
    let is_head =
        |line: &&str| line.split(' ').next().is_some_and(|word| word.len() == 40) && !line.starts_with('\t');
    let heads = printed.lines().filter(is_head).filter_map(|line| line[..40].parse().ok());
    heads.map(Origin::Commit).collect()
}

const LINES: [&str; 6] = [
    "let first_of_many_names = one;",
    "let second_of_many_names = two;",
    "call(the_third_of_many, names);",
    "return first_of_many_names + 4;",
    "let fifth_of_many_names = five;",
    "let sixth_of_many_names = six;",
];

fn file(lines: &[&str]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

#[test]
fn lines_that_were_indented_moved_or_renamed_keep_their_commit() {
    let fixture = Fixture::new();
    let [a, b, c, d, e, f] = LINES;
    let first = fixture.commit("src/old.rs", file(&[a, b, c, d]), "first");
    let second = fixture.commit("src/old.rs", file(&[a, b, e, c, d]), "second");
    fixture.commit("src/old.rs", file(&[a, b, &format!("\t{e}"), &format!("    {c}"), d]), "indents");
    fixture.git(&["mv", "src/old.rs", "src/new.rs"]);
    let renamed = fixture.commit("src/new.rs", file(&[a, b, e, c, d, f]), "renames, and adds a line");
    fixture.commit("src/new.rs", file(&[d, a, b, e, c, f]), "moves a line up");
    let runs = blame(&fixture, "src/new.rs", None).unwrap();
    let [first, second, renamed] = [first, second, renamed].map(Origin::Commit);
    assert_eq!(origins(&runs), [first, first, first, second, first, renamed]);
    assert_eq!(origins(&runs), by_git(&fixture, "src/new.rs"));
    let places: Vec<(&str, usize)> = runs.iter().map(|run| (run.path.as_str(), run.line)).collect();
    assert_eq!(
        places,
        [("src/old.rs", 3), ("src/old.rs", 0), ("src/old.rs", 2), ("src/old.rs", 2), ("src/new.rs", 5)]
    );
}

#[test]
fn both_sides_of_a_merge_are_followed() {
    let fixture = Fixture::new();
    let [a, b, c, d, e, f] = LINES;
    fixture.commit("x", file(&[a, b, c, d]), "first");
    fixture.git(&["checkout", "-q", "-b", "side"]);
    let side = fixture.commit("x", file(&[a, b, c, d, e]), "side");
    fixture.git(&["checkout", "-q", "main"]);
    let main = fixture.commit("x", file(&[f, a, b, c, d]), "main");
    fixture.git(&["merge", "-q", "--no-edit", "side"]);
    let found = origins(&blame(&fixture, "x", None).unwrap());
    assert_eq!(found, by_git(&fixture, "x"));
    assert_eq!((found[0], found[5]), (Origin::Commit(main), Origin::Commit(side)));
}

#[test]
fn commits_that_only_reflow_and_listed_commits_are_passed_over() {
    let fixture = Fixture::new();
    let [a, b, c, d, ..] = LINES;
    let first = fixture.commit("x", file(&[a, b, c, d]), "first");
    fixture.commit("x", file(&[a, b, "call(", "    the_third_of_many,", "    names,", ");", d]), "reflows");
    let text = file(&[
        a,
        "let second_of_many_names = TWO;",
        "call(",
        "    the_third_of_many,",
        "    names,",
        ");",
        d,
    ]);
    let listed = fixture.commit("x", text, "writes numbers in capitals");
    let found = origins(&blame(&fixture, "x", None).unwrap());
    let mut all = [Origin::Commit(first); 7];
    all[1] = Origin::Commit(listed);
    assert_eq!(found, all);
    fixture.commit(IGNORED, format!("# Capitals.\n{listed} # numbers\nnonsense\n"), "lists a commit");
    assert_eq!(origins(&blame(&fixture, "x", None).unwrap()), [Origin::Commit(first); 7]);
}

#[test]
fn lines_that_are_not_committed_say_so() {
    let fixture = Fixture::new();
    let [a, b, c, ..] = LINES;
    let first = Origin::Commit(fixture.commit("x", file(&[a, b]), "first"));
    let found = blame(&fixture, "x", Some(file(&[c, b, a]).as_bytes())).unwrap();
    assert_eq!(origins(&found), [Origin::Uncommitted, first, first]);
    let found = blame(&fixture, "new", Some(file(&[c, b]).as_bytes())).unwrap();
    assert_eq!(origins(&found), [Origin::Uncommitted; 2]);
    assert_eq!(blame(&fixture, "x", Some(b"")).unwrap(), []);
}

#[test]
fn what_has_no_lines_is_refused_and_what_ends_early_says_so() {
    let fixture = Fixture::new();
    fixture.commit("binary", b"a\0b\n", "binary");
    let [a, b, ..] = LINES;
    let first = fixture.commit("x", file(&[a]), "first");
    fixture.commit("x", file(&[a, b]), "second");
    assert_eq!(blame(&fixture, "binary", None).unwrap_err().kind(), Kind::BadInput);
    for path in ["gone", "x/y", ""] {
        assert_eq!(blame(&fixture, path, None).unwrap_err().kind(), Kind::NotFound, "{path}");
    }
    let clone = fixture.root.path().join("clone");
    let source = format!("file://{}", fixture.path.display());
    fixture.git(&["clone", "-q", "--depth", "1", &source, clone.to_str().unwrap()]);
    let repository = Repository::discover(&clone, &Trust::new(None)).unwrap().unwrap();
    let commit = repository.head().unwrap().commit.unwrap();
    let query = BlameQuery { commit, path: "x", content: None, lines: 0..5 };
    assert_eq!(origins(&repository.blame(&query, &mut |_| true).unwrap()), [Origin::Boundary(commit); 2]);
    let stopped = repository.blame(&query, &mut |_| false).unwrap();
    assert_eq!(origins(&stopped), [Origin::Unknown; 2]);
    std::fs::remove_file(fixture.object(&first.to_string())).unwrap();
    assert_eq!(origins(&blame(&fixture, "x", None).unwrap()), [Origin::Unknown; 2]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// Each line is in the version and at the place that the answer names, and no parent of that commit has the file
    /// with this line at the end of a walk that found its commit.
    #[test]
    fn every_line_is_in_the_commit_that_the_answer_names(
        versions in proptest::collection::vec(proptest::collection::vec(0..LINES.len(), 1..9), 1..7)
    ) {
        let fixture = Fixture::new();
        for (number, version) in versions.iter().enumerate() {
            let lines: Vec<&str> = version.iter().map(|line| LINES[*line]).collect();
            fixture.commit("x", file(&lines), &number.to_string());
        }
        let runs = blame(&fixture, "x", None).unwrap();
        let last = versions.last().unwrap();
        prop_assert_eq!(origins(&runs).len(), last.len());
        for run in &runs {
            let Origin::Commit(sha) = run.origin else { panic!("{run:?}") };
            let message = fixture.git(&["log", "-1", "--format=%s", &sha.to_string()]);
            let version = &versions[message.parse::<usize>().unwrap()];
            prop_assert_eq!(&version[run.line..run.line + run.lines.len()], &last[run.lines.clone()]);
        }
    }
}
