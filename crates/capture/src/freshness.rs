//! Finds out whether the commit, the file or the code that a memory refers to has changed since the memory was made.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use crate::tuning::{FRESHNESS_PATIENCE, NAMES_PATIENCE};
use tiro_base::error::Result;
use tiro_git::{Around, Fate, MadeAt, Reach, Repository, Sha};
use tiro_intake::{Freshness, Gone, Standing, Subject};
use tiro_text::words::CodeNames;

/// The maximum number of names of code that a standing has. Arbitrary: a line of text.
const MOST_NAMES: usize = 5;

/// Returns the standing of each of `subjects`, in their order.
///
/// This function reads git objects, which blocks, so `subjects` should contain at most the hits of one answer. It stops
/// reading after [`FRESHNESS_PATIENCE`] and [`NAMES_PATIENCE`]. The next call continues.
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
    let mut standings: Vec<Standing> = subjects
        .iter()
        .map(|subject| if Instant::now() < until { of(subject) } else { Standing::UNKNOWN })
        .collect();
    // Names of code take more time, so they come last.
    let until = Instant::now() + NAMES_PATIENCE;
    let is_open = |place: &usize| {
        standings[*place].freshness == Freshness::Current && !subjects[*place].names.is_empty()
    };
    let open: Vec<usize> = (0..subjects.len()).filter(is_open).collect();
    let moment = |place: &usize| moment(&subjects[*place]);
    let around = repository.around(&head, &open.iter().map(moment).collect::<Vec<_>>(), until);
    for (place, around) in open.into_iter().zip(around) {
        let named = around.map_or(Standing::UNKNOWN, |around| {
            named(repository, (around, &head), &subjects[place].names, until)
        });
        standings[place] = Standing { reached: standings[place].reached.take(), ..named };
    }
    standings
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

/// Returns the standing of a subject, apart from the code that it names.
fn one(
    repository: &Repository,
    head: &Sha,
    subject: &Subject,
    places: &HashMap<Sha, CommitPlace>,
) -> Standing {
    if let (Some(path), Some(blob)) = (&subject.path, &subject.blob) {
        return Standing::only(match repository.blob_at(head, path) {
            Ok(Some(now)) if now.to_string() == *blob => Freshness::Current,
            Ok(Some(_)) => Freshness::FileChanged,
            Ok(None) => Freshness::Gone,
            Err(_) => Freshness::Unknown,
        });
    }
    let Some(first) = made_at(subject).next() else { return Standing::CURRENT };
    let best = made_at(subject).filter_map(|sha| Some((*places.get(&sha)?, sha))).min();
    let Some((place, sha)) = best else { return Standing::UNKNOWN };
    let gone = |gone| Standing { gone: Some(gone), ..Standing::only(Freshness::CommitGone) };
    match place {
        CommitPlace::Head => {
            let standing = match file_changed(repository, head, &first, subject.path.as_deref()) {
                Ok(true) => Standing::only(Freshness::FileChanged),
                Ok(false) => Standing::CURRENT,
                Err(_) => Standing::UNKNOWN,
            };
            Standing { reached: Some(sha.to_string()), ..standing }
        }
        CommitPlace::Unknown => Standing::UNKNOWN,
        CommitPlace::Branch => Standing::only(Freshness::OtherBranch),
        CommitPlace::Reflog => gone(Gone::InReflog),
        CommitPlace::Object => gone(Gone::Unnamed),
        CommitPlace::Nowhere => gone(Gone::Removed),
    }
}

/// Returns the moment with which the subject's names of code are compared: that of its commit, or else of its time.
fn moment(subject: &Subject) -> MadeAt {
    MadeAt { then: made_at(subject).next(), seconds: subject.time / 1000 }
}

/// Returns what became of the named files and identifiers since a moment. What is gone counts more than what changed.
fn named(
    repository: &Repository,
    (around, head): (Around, &Sha),
    CodeNames { files, identifiers }: &CodeNames,
    until: Instant,
) -> Standing {
    let Ok((of_files, of_identifiers)) = repository.fates(around, head, files, identifiers, until) else {
        return Standing::UNKNOWN;
    };
    let names = || files.iter().zip(&of_files).chain(identifiers.iter().zip(&of_identifiers));
    let with =
        |fate| names().filter(|(_, own)| **own == fate).map(|(name, _)| name.clone()).collect::<Vec<_>>();
    for (fate, freshness) in [(Fate::Gone, Freshness::Gone), (Fate::Changed, Freshness::FileChanged)] {
        let mut names = with(fate);
        if !names.is_empty() {
            let more = names.len().saturating_sub(MOST_NAMES);
            names.truncate(MOST_NAMES);
            names.extend((more > 0).then(|| format!("{more} more")));
            return Standing { names, ..Standing::only(freshness) };
        }
    }
    if of_files.iter().chain(&of_identifiers).any(|fate| *fate == Fate::Unknown) {
        return Standing::UNKNOWN;
    }
    Standing::CURRENT
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
        Subject {
            made_at: vec![sha.to_string()],
            path: None,
            blob: None,
            names: CodeNames::default(),
            time: 0,
        }
    }

    #[test]
    fn a_note_names_code_that_changed_or_is_gone() {
        let fixture = Fixture::new();
        fixture.write("src/retry.rs", "fn retry_call() {}\n");
        fixture.write("src/pool.rs", "fn acquire_one() {}\n");
        let first = fixture.commit_all("first");
        fixture.write("src/retry.rs", "fn retry_call() { again() }\n");
        fixture.commit_all("what the notes describe");
        fixture.write("src/retry.rs", "fn attempt() {}\n");
        fixture.commit_all("third");
        let repository = fixture.repository();
        let of = |made_at: Option<Sha>, text: &str| {
            let made_at: Vec<String> = made_at.iter().map(ToString::to_string).collect();
            let time = 1000 * i64::from(u32::MAX);
            let subject = Subject { made_at, path: None, blob: None, names: CodeNames::of(text), time };
            let Standing { freshness, names, .. } = standing(&repository, &[subject]).remove(0);
            (freshness, names.join(" "))
        };
        let gone = "Use `retry_call` of src/retry.rs, not `acquire_one`.";
        assert_eq!(of(Some(first), gone), (Freshness::Gone, "retry_call".to_owned()));
        let changed = "Retries are in retry.rs, pools in src/pool.rs.";
        assert_eq!(of(Some(first), changed), (Freshness::FileChanged, "retry.rs".to_owned()));
        assert_eq!(of(Some(first), "Pools are in src/pool.rs."), (Freshness::Current, String::new()));
        // A note of a later time is compared with the last commit.
        assert_eq!(of(None, gone), (Freshness::Current, String::new()));
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
