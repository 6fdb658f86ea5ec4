//! Finds out whether the commit or file that a memory refers to has changed since the memory was made.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use crate::tuning::FRESHNESS_PATIENCE;
use tiro_base::error::Result;
use tiro_git::{Reach, Repository, Sha};
use tiro_intake::{Freshness, Gone, Standing, Subject};

/// Returns the standing of each of `subjects`, in their order.
///
/// This function reads git objects, which blocks, so `subjects` should contain at most the hits of one answer. It stops
/// reading after [`FRESHNESS_PATIENCE`]. The next call continues.
pub fn standing(repository: &Repository, subjects: &[Subject]) -> Vec<Standing> {
    let Ok(head) = repository.head() else { return vec![Standing::UNKNOWN; subjects.len()] };
    let Some(head) = head.commit else { return vec![Standing::CURRENT; subjects.len()] };
    let until = Instant::now() + FRESHNESS_PATIENCE;
    let mut left: Vec<Sha> = subjects.iter().flat_map(made_at).collect();
    left.sort();
    left.dedup();
    // Most commits are ancestors of `HEAD`, so each commit is first searched among them.
    let mut places: HashMap<Sha, CommitPlace> = HashMap::new();
    for place in [CommitPlace::Head, CommitPlace::Branch, CommitPlace::Reflog] {
        if left.is_empty() {
            break;
        }
        let tips = match place {
            CommitPlace::Head => Arc::new(vec![head]),
            CommitPlace::Branch => repository.branch_tips(),
            _ => repository.reflog_commits(),
        };
        let reached = repository.reached(&tips, &left, Some(until));
        let found = left.iter().zip(reached).filter_map(|(sha, reach)| match reach {
            Reach::Yes => Some((*sha, place)),
            Reach::No => None,
            Reach::Unknown => Some((*sha, CommitPlace::Unknown)),
        });
        places.extend(found);
        left.retain(|sha| !places.contains_key(sha));
    }
    for sha in left {
        places
            .insert(sha, if repository.contains(&sha) { CommitPlace::Object } else { CommitPlace::Nowhere });
    }
    let of = |subject: &Subject| one(repository, &head, subject, &places);
    subjects
        .iter()
        .map(|subject| if Instant::now() < until { of(subject) } else { Standing::UNKNOWN })
        .collect()
}

/// The places where a commit can be found, the best place first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum CommitPlace {
    Head,
    Unknown,
    Branch,
    Reflog,
    Object,
    Nowhere,
}

/// Returns those commits of `subject` that may exist in git.
fn made_at(subject: &Subject) -> impl Iterator<Item = Sha> {
    subject.made_at.iter().filter_map(|sha| sha.parse().ok())
}

fn one(
    repository: &Repository,
    head: &Sha,
    subject: &Subject,
    places: &HashMap<Sha, CommitPlace>,
) -> Standing {
    let Some(first) = made_at(subject).next() else { return Standing::CURRENT };
    let best = made_at(subject).filter_map(|sha| Some((*places.get(&sha)?, sha))).min();
    let Some((place, sha)) = best else { return Standing::UNKNOWN };
    let gone = |gone| Standing { freshness: Freshness::CommitGone, reached: None, gone: Some(gone) };
    match place {
        CommitPlace::Head => {
            let freshness = match file_changed(repository, head, &first, subject.path.as_deref()) {
                Ok(true) => Freshness::FileChanged,
                Ok(false) => Freshness::Current,
                Err(_) => Freshness::Unknown,
            };
            Standing { freshness, reached: Some(sha.to_string()), gone: None }
        }
        CommitPlace::Unknown => Standing::UNKNOWN,
        CommitPlace::Branch => Standing { freshness: Freshness::OtherBranch, reached: None, gone: None },
        CommitPlace::Reflog => gone(Gone::InReflog),
        CommitPlace::Object => gone(Gone::Unnamed),
        CommitPlace::Nowhere => gone(Gone::Removed),
    }
}

/// Returns whether the file differs between two commits. Errors if git can't read one of them.
fn file_changed(repository: &Repository, head: &Sha, made_at: &Sha, path: Option<&str>) -> Result<bool> {
    let Some(path) = path else { return Ok(false) };
    let then = repository.blob_at(made_at, path)?;
    Ok(then.is_some() && then != repository.blob_at(head, path)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiro_git::testing::Fixture;

    fn at(sha: Sha) -> Subject {
        Subject { made_at: vec![sha.to_string()], path: None }
    }

    /// Makes a history of `count` commits on `main`, every tenth of which merges two commits on a side branch, and
    /// `topics` branches that are not merged. Returns some commits of `main`, the oldest first.
    fn long_history(fixture: &Fixture, count: usize, topics: usize) -> Vec<Sha> {
        let mut stream = Vec::new();
        let mut mark = 0;
        let mut commit = |branch: &str, parents: &[usize], stream: &mut Vec<u8>| {
            mark += 1;
            let file = format!("M 100644 inline f{}\ndata 5\n{mark:05}\n", mark % 50);
            let time = 1_600_000_000 + mark;
            stream.extend(
                format!(
                    "commit refs/heads/{branch}\nmark :{mark}\ncommitter A <a@b> {time} +0000\ndata 1\nx\n"
                )
                .bytes(),
            );
            for (place, parent) in parents.iter().enumerate() {
                let how = if place == 0 { "from" } else { "merge" };
                stream.extend(format!("{how} :{parent}\n").bytes());
            }
            stream.extend(format!("{file}\n").bytes());
            mark
        };
        let mut main = commit("main", &[], &mut stream);
        let mut made = 1;
        while made < count {
            let first = main;
            for _ in 0..7 {
                main = commit("main", &[main], &mut stream);
            }
            let side = commit("side", &[first], &mut stream);
            let side = commit("side", &[side], &mut stream);
            main = commit("main", &[main, side], &mut stream);
            made += 10;
        }
        for topic in 0..topics {
            commit(&format!("topic/{topic}"), &[1 + topic * 7 % count], &mut stream);
        }
        fixture.git_in(&fixture.path, &["fast-import", "--quiet"], &stream);
        fixture.git(&["branch", "-q", "-D", "side"]);
        fixture.git(&["reset", "-q", "--hard", "main"]);
        let listed = fixture.git(&["rev-list", "--reverse", "main"]);
        listed.lines().step_by(count / 20).map(|line| line.parse().unwrap()).collect()
    }

    #[test]
    fn a_commit_on_no_branch_is_gone_however_long_the_history_is() {
        let fixture = Fixture::new();
        let of_main = long_history(&fixture, 2_500, 3);
        let topic: Sha = fixture.git(&["rev-parse", "topic/1"]).parse().unwrap();
        let amended = fixture.commit("x", "1\n", "will be amended");
        fixture.git(&["commit", "-q", "--amend", "-m", "amended"]);
        let alone: Sha = fixture.git(&["commit-tree", "-m", "alone", "HEAD^{tree}"]).parse().unwrap();
        let never: Sha = "1234567890123456789012345678901234567890".parse().unwrap();
        let standings = |repository: &Repository| {
            let subjects = [at(of_main[0]), at(topic), at(amended), at(alone), at(never)];
            let standing = standing(repository, &subjects);
            standing.iter().map(|each| (each.freshness, each.gone)).collect::<Vec<_>>()
        };
        use Freshness::{CommitGone, Current, OtherBranch};
        let expected = [
            (Current, None),
            (OtherBranch, None),
            (CommitGone, Some(Gone::InReflog)),
            (CommitGone, Some(Gone::Unnamed)),
            (CommitGone, Some(Gone::Removed)),
        ];
        let repository = fixture.repository();
        assert_eq!(standings(&repository), expected, "the first time");
        assert_eq!(standings(&repository), expected, "the second time");
        fixture.git(&["branch", "-q", "-D", "topic/1"]);
        fixture.git(&["reflog", "expire", "--expire=now", "--all"]);
        let gone = |gone| (CommitGone, Some(gone));
        assert_eq!(standings(&repository)[1..3], [gone(Gone::Unnamed), gone(Gone::Unnamed)]);
    }

    #[test]
    fn nothing_is_current_as_long_as_git_cannot_be_read() {
        let fixture = Fixture::new();
        let commit = fixture.commit("x", "1\n", "first");
        let repository = fixture.repository();
        let of = |path: Option<&str>| Subject { path: path.map(str::to_owned), ..at(commit) };
        assert_eq!(standing(&repository, &[of(Some("x"))])[0].freshness, Freshness::Current);
        std::fs::write(fixture.path.join(".git/HEAD"), "damaged\n").unwrap();
        assert_eq!(standing(&repository, &[of(None)]), [Standing::UNKNOWN]);
    }

    /// Prints how long a page of hits takes in a history of 24,000 commits. To run it:
    /// `cargo test -p tiro-recall --release -- --ignored --nocapture a_page`.
    #[test]
    #[ignore = "it measures"]
    fn a_page_of_hits_takes_milliseconds() {
        let fixture = Fixture::new();
        let of_main = long_history(&fixture, 24_000, 200);
        let topic: Sha = fixture.git(&["rev-parse", "topic/1"]).parse().unwrap();
        let alone: Sha = fixture.git(&["commit-tree", "-m", "alone", "HEAD^{tree}"]).parse().unwrap();
        let amended = fixture.commit("x", "1\n", "will be amended");
        fixture.git(&["commit", "-q", "--amend", "-m", "amended"]);
        let mut subjects: Vec<Subject> = of_main.iter().map(|sha| at(*sha)).collect();
        subjects.extend(of_main.iter().map(|sha| Subject { path: Some("f7".into()), ..at(*sha) }));
        let all_current = subjects.clone();
        subjects.extend([at(topic), at(alone), at(amended)]);
        let repository = fixture.repository();
        let timed = |what: &str, repository: &Repository, subjects: &[Subject]| {
            let began = Instant::now();
            let standings = standing(repository, subjects);
            eprintln!("{what}: {:.2} ms, {} hits", began.elapsed().as_secs_f64() * 1e3, standings.len());
        };
        let began = Instant::now();
        let head = repository.head().unwrap().commit.unwrap();
        repository.explore(&[head], None);
        eprintln!("read once: {:.0} ms", began.elapsed().as_secs_f64() * 1e3);
        timed("first page", &repository, &subjects);
        timed("next page", &repository, &subjects);
        timed("all current", &repository, &all_current);
        let part = repository.unsaved_graph().unwrap();
        let again = fixture.repository();
        let began = Instant::now();
        again.take_graph(std::slice::from_ref(&part));
        eprintln!("taken back, {} bytes: {:.2} ms", part.bytes.len(), began.elapsed().as_secs_f64() * 1e3);
        timed("first page of a process", &again, &all_current);
        timed("next page with others", &again, &subjects);
        fixture.commit("y", "1\n", "next");
        timed("after a commit", &again, &subjects);
    }
}
