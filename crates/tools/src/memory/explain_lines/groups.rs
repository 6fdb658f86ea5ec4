//! Puts lines with one origin and one writer into groups. The functions are pure.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Range;

use tiro_base::memory::{MemoryKey, Millis};
use tiro_capture::import::evidence::MOST_LINES;
use tiro_capture::tuning::{HORIZON, MANY_WRITERS};
use tiro_intake::{LineOrigin, LineOrigins, OriginCommit};
use tiro_store::{SessionKey, WriteRow};

/// How many tool calls are looked for that wrote lines of one commit. Arbitrary: the lines of further calls have no
/// known writer.
const MOST_WRITERS: usize = 12;

/// How many calls are looked at that may have written lines although no recorded line of theirs is equal. Arbitrary.
const MOST_CHANGES: usize = 24;

/// The numbers of lines of a change of which only a sample is recorded: that of an earlier version, and that of this one.
const SAMPLES: [usize; 2] = [64, MOST_LINES];

/// The least confidence of a sure link. Set by hand: the links by printed ids, and by most of the lines, are surer.
const SURE: f64 = 0.9;

/// A link of less confidence is weak: that of the files alone, or of a few lines. Set by hand.
const WEAK: f64 = 0.75;

/// If nothing but its lines links a session to the commit, it wrote at least this many of them. Arbitrary: fewer lines
/// may be equal by chance.
const MOST_LIKELY: usize = 3;

/// A line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Its number, beginning with 1.
    pub number: usize,
    /// Its hash; `None` if it says too little.
    pub hash: Option<u32>,
    /// Its text, without a secret; empty in a long run of lines.
    pub text: String,
}

/// A tool call that wrote lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Writer {
    /// The tool call.
    pub memory: MemoryKey,
    /// Its session.
    pub session: SessionKey,
    /// The file that it wrote.
    pub path: String,
    /// When it was called.
    pub time: Millis,
}

impl Writer {
    fn of(row: &WriteRow) -> Writer {
        Writer { memory: row.memory, session: row.session, path: row.path.clone(), time: row.time }
    }
}

/// Lines with one origin and one writer.
#[derive(Clone, Debug)]
pub struct Group {
    /// The lines, in order.
    pub lines: Vec<Line>,
    /// The hashes of the lines around all lines that were asked for.
    pub around: Vec<u32>,
    /// Where they came from.
    pub origin: LineOrigin,
    /// The commit, if the origin has one that could be read.
    pub commit: Option<OriginCommit>,
    /// The paths that the file had.
    pub paths: BTreeSet<String>,
    /// The memory of the commit.
    pub memory: Option<MemoryKey>,
    /// The sessions that led to the commit, each with its confidence, the likeliest first.
    pub links: Vec<(SessionKey, f64)>,
    /// The calls that [may have written](Group::find_changes) the lines in the month before: the latest first, or, if the
    /// commit made the file, the first one first.
    pub changes: Vec<Writer>,
    /// Whether not all lines of these changes are recorded.
    pub is_guessed: bool,
    /// The tool call that wrote the lines.
    pub writer: Option<Writer>,
}

impl Group {
    /// The number of tokens that a group takes in an answer at least. Arbitrary: its lines, commit and author.
    pub const LEAST_TOKENS: usize = 30;

    fn is_linked(&self, session: SessionKey) -> bool {
        self.links.iter().any(|(linked, _)| *linked == session)
    }

    /// Returns whether the commit made the file.
    pub fn makes_file(&self) -> bool {
        self.commit.as_ref().is_some_and(|commit| commit.makes_file)
    }

    /// Returns whether the likeliest session is so surely linked to the commit that it is named, although none of its
    /// recorded changes has the lines.
    pub fn has_sure_link(&self) -> bool {
        self.links.first().is_some_and(|(_, confidence)| *confidence >= SURE)
    }

    /// Returns whether little links the session to the commit.
    pub fn is_weakly_linked(&self, session: SessionKey) -> bool {
        self.links.iter().any(|(linked, confidence)| *linked == session && *confidence < WEAK)
    }

    /// Returns the runs of lines without a gap between them.
    pub fn runs(&self) -> Vec<Range<usize>> {
        let mut runs: Vec<Range<usize>> = Vec::new();
        for line in &self.lines {
            match runs.last_mut().filter(|run| run.end == line.number) {
                Some(run) => run.end += 1,
                None => runs.push(line.number..line.number + 1),
            }
        }
        runs
    }

    /// Divides the group by the tool calls that wrote its lines. `rows` are the changes of the file. `until` is the time
    /// at which the lines were there.
    ///
    /// The call that wrote the most lines gets them, then the one that wrote the most of the rest, and so on. A call of
    /// a session that led to the commit comes before all others. If calls are equal, the one that wrote the most lines
    /// around them wins, then the earliest, because later ones wrote the lines again. A line that says too little goes
    /// with the line before it. If nothing but its lines links a session to the commit, it counts only with most of the
    /// lines.
    pub fn by_writer(self, rows: &[WriteRow], until: Millis) -> Vec<Group> {
        let rows: Vec<&WriteRow> = rows.iter().filter(|row| self.paths.contains(&row.path)).collect();
        self.by_writer_among(&rows, until)
    }

    /// Does as [`Group::by_writer`] with the calls of the likeliest session that wrote files of which this one may be a
    /// [copy](originals).
    pub fn by_original(self, rows: &[WriteRow], until: Millis) -> Vec<Group> {
        let session = self.links.first().map(|(session, _)| *session);
        let is_its = |row: &&WriteRow| Some(row.session) == session && !self.paths.contains(&row.path);
        let rows: Vec<&WriteRow> = rows.iter().filter(is_its).collect();
        self.by_writer_among(&rows, until)
    }

    fn by_writer_among(self, rows: &[&WriteRow], until: Millis) -> Vec<Group> {
        let common = common(rows);
        let mut left: HashSet<u32> = self.lines.iter().filter_map(|line| line.hash).collect();
        let all = left.len();
        let mut writers: Vec<(Writer, HashSet<u32>)> = Vec::new();
        while writers.len() < MOST_WRITERS {
            let rated = rows.iter().filter_map(|row| {
                let is_linked = self.is_linked(row.session);
                let own: HashSet<u32> = left
                    .iter()
                    .copied()
                    .filter(|hash| {
                        row.lines.binary_search(hash).is_ok() && (is_linked || !common.contains(hash))
                    })
                    .collect();
                let is_near = (until - HORIZON..=until).contains(&row.time);
                let is_enough = match (is_linked, self.origin.commit()) {
                    (true, _) => !own.is_empty(),
                    (false, None) => !own.is_empty() && row.time <= until,
                    (false, Some(_)) => own.len() >= MOST_LIKELY && own.len() * 2 > all && is_near,
                };
                let near = self.around.iter().filter(|hash| row.lines.binary_search(hash).is_ok()).count();
                let rank = (is_linked, own.len(), near, Reverse((row.time, row.memory)));
                is_enough.then_some((rank, Writer::of(row), own))
            });
            let Some((_, writer, own)) = rated.max_by(|a, b| a.0.cmp(&b.0)) else { break };
            left.retain(|hash| !own.contains(hash));
            writers.push((writer, own));
        }
        self.divided(&writers)
    }

    /// Finds the calls that may have written the lines although no recorded line of a call is equal to one of them: those
    /// of linked sessions of which not all lines are known, or else those of the likeliest session, if it is surely linked.
    pub fn find_changes(&mut self, rows: &[WriteRow], until: Millis) {
        let is_near =
            |row: &&WriteRow| self.paths.contains(&row.path) && (until - HORIZON..=until).contains(&row.time);
        let linked: Vec<&WriteRow> =
            rows.iter().filter(|row| self.is_linked(row.session)).filter(is_near).collect();
        let is_partly_known = |row: &WriteRow| row.lines.is_empty() || SAMPLES.contains(&row.lines.len());
        let sure = self.links.first().filter(|_| self.has_sure_link()).map(|(session, _)| *session);
        self.is_guessed = linked.iter().any(|row| is_partly_known(row));
        let is_candidate = |row: &&WriteRow| match self.is_guessed {
            true => is_partly_known(row),
            false => Some(row.session) == sure,
        };
        let mut changes: Vec<&WriteRow> = linked.into_iter().filter(is_candidate).collect();
        if self.makes_file() {
            changes.reverse();
        }
        self.changes = changes.into_iter().take(MOST_CHANGES).map(Writer::of).collect();
    }

    /// Returns the calls that may have written the lines after `time`, when an earlier commit changed the file; all of them if
    /// none is later.
    pub fn changes_after(&self, time: Option<Millis>) -> Vec<&Writer> {
        let is_later = |change: &&Writer| time.is_none_or(|time| change.time > time);
        let later: Vec<&Writer> = self.changes.iter().filter(is_later).collect();
        if later.is_empty() { self.changes.iter().collect() } else { later }
    }

    /// Returns whether the lines may be copied from another file of a session that surely led to the commit: no recorded
    /// change of this file has them.
    pub fn may_be_copied(&self) -> bool {
        self.writer.is_none() && self.changes.is_empty() && self.has_sure_link()
    }

    fn divided(self, writers: &[(Writer, HashSet<u32>)]) -> Vec<Group> {
        let place =
            |line: &Line| line.hash.map(|hash| writers.iter().position(|(_, own)| own.contains(&hash)));
        let mut groups: BTreeMap<Option<usize>, Group> = BTreeMap::new();
        let mut last: Option<(usize, Option<usize>)> = None;
        // A line that says too little goes with its neighbour: the line before it, or else the next that says enough.
        let mut places: Vec<Option<Option<usize>>> = self.lines.iter().map(place).collect();
        self.close_gaps(&mut places, writers);
        let mut known = None;
        let mut after: Vec<Option<Option<usize>>> = vec![None; places.len()];
        for at in (0..places.len()).rev() {
            known = places[at].or(known);
            after[at] = known;
        }
        for (at, line) in self.lines.iter().enumerate() {
            let before = last.filter(|(number, _)| number + 1 == line.number).map(|(_, writer)| writer);
            let writer = places[at].or(before).or(after[at]).unwrap_or(None);
            last = Some((line.number, writer));
            let group = groups.entry(writer).or_insert_with(|| Group {
                lines: Vec::new(),
                around: self.around.clone(),
                writer: writer.map(|place| writers[place].0.clone()),
                origin: self.origin.clone(),
                commit: self.commit.clone(),
                paths: self.paths.clone(),
                memory: self.memory,
                links: self.links.clone(),
                changes: self.changes.clone(),
                is_guessed: self.is_guessed,
            });
            group.lines.push(line.clone());
        }
        groups.into_values().collect()
    }

    /// Gives lines without a writer to the call that wrote the lines before and after them in the same run, if its
    /// session led to the commit. Of a long change, only a sample of the lines is recorded.
    fn close_gaps(&self, places: &mut [Option<Option<usize>>], writers: &[(Writer, HashSet<u32>)]) {
        let mut last: Option<(usize, usize)> = None;
        for at in 0..places.len() {
            if at > 0 && self.lines[at - 1].number + 1 != self.lines[at].number {
                last = None;
            }
            let Some(Some(place)) = places[at] else { continue };
            if let Some((from, _)) =
                last.filter(|(_, before)| *before == place && self.is_linked(writers[place].0.session))
            {
                places[from + 1..at].fill(Some(Some(place)));
            }
            last = Some((at, place));
        }
    }
}

/// Keeps the changes of files of which a file with one of the names `paths` may be a copy, as programs that build or
/// install make them: the file and the two folders around it have the same names.
pub fn originals(mut rows: Vec<WriteRow>, paths: &BTreeSet<String>) -> Vec<WriteRow> {
    let ends: HashSet<&str> = paths.iter().filter_map(|path| end(path)).collect();
    rows.retain(|row| end(&row.path).is_some_and(|end| ends.contains(end)));
    rows
}

/// Returns the name of a file with those of the two folders around it; `None` if there are fewer folders.
fn end(path: &str) -> Option<&str> {
    let mut slashes = path.rmatch_indices('/').map(|(at, _)| at);
    let (_, outer) = (slashes.next()?, slashes.next()?);
    Some(&path[slashes.next().map_or(0, |at| at.min(outer) + 1)..])
}

/// Returns the lines that many sessions wrote.
fn common(rows: &[&WriteRow]) -> HashSet<u32> {
    let mut writers: HashMap<u32, HashSet<SessionKey>> = HashMap::new();
    for row in rows {
        for hash in &row.lines {
            writers.entry(*hash).or_default().insert(row.session);
        }
    }
    writers.into_iter().filter(|(_, sessions)| sessions.len() >= MANY_WRITERS).map(|(hash, _)| hash).collect()
}

/// Returns the groups of lines by origin.
pub fn of(origins: &LineOrigins) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut places: BTreeMap<Option<&str>, usize> = BTreeMap::new();
    for run in &origins.runs {
        let sha = run.origin.commit();
        // Lines without a commit are one group for each kind of origin.
        let key = sha.or(Some(match run.origin {
            LineOrigin::Uncommitted => "uncommitted",
            _ => "unknown",
        }));
        let place = *places.entry(key).or_insert(groups.len());
        if place == groups.len() {
            groups.push(Group {
                lines: Vec::new(),
                around: origins.around.clone(),
                origin: run.origin.clone(),
                commit: sha.and_then(|sha| origins.commits.get(sha)).cloned(),
                paths: BTreeSet::from([origins.path.clone()]),
                memory: None,
                links: Vec::new(),
                changes: Vec::new(),
                is_guessed: false,
                writer: None,
            });
        }
        let group = &mut groups[place];
        group.paths.insert(run.path.clone());
        let mut texts = run.text.lines();
        for (number, hash) in run.lines.clone().zip(&run.hashes) {
            let text = texts.next().unwrap_or_default().to_owned();
            group.lines.push(Line { number, hash: *hash, text });
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiro_intake::LineRun;

    fn run(lines: Range<usize>, origin: LineOrigin, hashes: &[u32]) -> LineRun {
        let hashes = hashes.iter().map(|hash| Some(*hash).filter(|hash| *hash > 0)).collect();
        LineRun { lines, origin, path: "old.rs".into(), text: "x\n".into(), hashes }
    }

    fn row(session: i64, time: Millis, lines: &[u32]) -> WriteRow {
        let (memory, session) = (MemoryKey::from_store(time), SessionKey::from_store(session));
        let path = "new.rs".to_owned();
        WriteRow { memory, session, time, path, worktree: None, branch: None, lines: lines.to_vec() }
    }

    fn groups(runs: Vec<LineRun>) -> Vec<Group> {
        of(&LineOrigins { path: "new.rs".into(), runs, ..LineOrigins::default() })
    }

    /// Returns the runs of lines of each group, such as `1..3 4..5`, and the key of its writer.
    fn shown(groups: Vec<Group>) -> Vec<(String, Option<i64>)> {
        let runs = |group: &Group| group.runs().iter().map(|run| format!("{run:?}")).collect::<Vec<_>>();
        let writer = |group: &Group| group.writer.as_ref().map(|writer| writer.memory.in_store());
        groups.iter().map(|group| (runs(group).join(" "), writer(group))).collect()
    }

    fn commit() -> LineOrigin {
        LineOrigin::Commit("a".into())
    }

    /// The first call that wrote the line used to win, also if its component was rewritten later.
    #[test]
    fn of_calls_with_the_same_line_the_one_that_wrote_its_neighbours_wins() {
        let origins = LineOrigins {
            path: "new.rs".into(),
            runs: vec![run(5..6, commit(), &[1])],
            around: vec![2, 3],
            ..LineOrigins::default()
        };
        let mut group = of(&origins).remove(0);
        group.links = [7, 8].map(|session| (SessionKey::from_store(session), 0.95)).to_vec();
        let rows = [row(7, 10, &[1, 9]), row(8, 20, &[1, 2, 3]), row(8, 30, &[1, 2, 3])];
        assert_eq!(shown(group.by_writer(&rows, 100)), [("5..6".to_owned(), Some(20))]);
    }

    #[test]
    fn lines_are_grouped_by_origin_and_then_by_writer() {
        let bare = || LineOrigin::Uncommitted;
        let runs = vec![
            run(1..3, commit(), &[1, 0]),
            run(3..4, bare(), &[2]),
            run(4..5, commit(), &[3]),
            run(5..8, bare(), &[4, 0, 5]),
        ];
        let mut groups = groups(runs);
        assert_eq!(groups.len(), 2);
        let rows = [row(7, 10, &[2]), row(8, 20, &[4, 5])];
        let uncommitted = groups.remove(1);
        assert_eq!(
            shown(uncommitted.by_writer(&rows, 100)),
            [("5..8".to_owned(), Some(20)), ("3..4".to_owned(), Some(10))]
        );
        assert_eq!(shown(groups.remove(0).by_writer(&rows, 100)), [("1..3 4..5".to_owned(), None)]);
    }

    #[test]
    fn the_session_behind_the_commit_comes_first_and_of_equal_calls_the_first_one() {
        let group = || groups(vec![run(1..4, commit(), &[1, 2, 3])]).remove(0);
        let rows = [row(7, 10, &[1, 2]), row(8, 20, &[1, 2, 3]), row(7, 30, &[1, 2]), row(9, 5, &[9])];
        assert_eq!(shown(group().by_writer(&rows, 100)), [("1..4".to_owned(), Some(20))]);
        assert_eq!(shown(group().by_writer(&rows, 15)), [("1..4".to_owned(), None)]);
        assert_eq!(shown(group().by_writer(&rows[..1], 10 + HORIZON + 1)), [("1..4".to_owned(), None)]);
        let linked = Group { links: vec![(SessionKey::from_store(7), 0.9)], ..group() };
        assert_eq!(
            shown(linked.by_writer(&rows, 0)),
            [("3..4".to_owned(), None), ("1..3".to_owned(), Some(10))]
        );
    }

    #[test]
    fn a_gap_within_the_lines_of_a_linked_call_is_closed() {
        let group = groups(vec![run(1..6, commit(), &[1, 2, 3, 4, 5])]).remove(0);
        let rows = [row(7, 10, &[1, 4])];
        let linked = Group { links: vec![(SessionKey::from_store(7), 0.9)], ..group };
        assert_eq!(
            shown(linked.by_writer(&rows, 100)),
            [("5..6".to_owned(), None), ("1..5".to_owned(), Some(10))]
        );
    }

    #[test]
    fn a_copy_of_a_file_leads_to_the_call_that_wrote_the_original() {
        let paths = BTreeSet::from(["apps/docs/parts/card/new.rs".to_owned()]);
        let group = || {
            let group = groups(vec![run(1..3, commit(), &[1, 2])]).remove(0);
            let links = vec![(SessionKey::from_store(7), 0.95), (SessionKey::from_store(8), 0.6)];
            Group { links, paths: paths.clone(), ..group }
        };
        let writer = |path: &str, session: i64| {
            assert!(group().may_be_copied());
            let rows = vec![WriteRow { path: path.into(), ..row(session, 10, &[1, 2]) }];
            shown(group().by_original(&originals(rows, &paths), 100)).remove(0).1
        };
        assert_eq!(writer("packages/ui/parts/card/new.rs", 7), Some(10));
        assert_eq!(writer("parts/card/new.rs", 7), Some(10));
        let others = ["packages/lists/card/new.rs", "card/new.rs", "parts/card/other.rs", "new.rs"];
        for (path, session) in others.map(|path| (path, 7)).into_iter().chain([("x/parts/card/new.rs", 8)]) {
            assert_eq!(writer(path, session), None, "{path}");
        }
    }

    /// A session that wrote one common line of a commit used to be shown as its reason.
    #[test]
    fn a_few_lines_or_a_line_of_many_sessions_link_no_session() {
        let group = || groups(vec![run(1..4, commit(), &[1, 2, 3])]).remove(0);
        assert_eq!(shown(group().by_writer(&[row(7, 10, &[1])], 100)), [("1..4".to_owned(), None)]);
        let many = [row(7, 10, &[1, 2]), row(8, 11, &[1, 2]), row(9, 12, &[1, 2])];
        assert_eq!(shown(group().by_writer(&many, 100)), [("1..4".to_owned(), None)]);
    }

    /// An earlier version looked at all lines after each of them.
    #[test]
    fn many_lines_that_say_too_little_take_no_longer_than_their_number() {
        let count = 300_000;
        let run =
            LineRun { text: "x\n".repeat(count), ..run(0..count, LineOrigin::Uncommitted, &vec![0; count]) };
        let origins = LineOrigins { runs: vec![run], path: "old.rs".into(), ..LineOrigins::default() };
        let groups = of(&origins).remove(0).by_writer(&[], 0);
        assert_eq!(groups.iter().map(|group| group.lines.len()).sum::<usize>(), count);
    }

    /// An answer used to quote the request for the commit before.
    #[test]
    fn a_change_before_an_earlier_commit_of_the_file_did_not_write_the_lines() {
        let mut group = groups(vec![run(1..2, LineOrigin::Uncommitted, &[7])]).remove(0);
        let times = |group: &Group, after| {
            group.changes_after(Some(after)).iter().map(|change| change.time).collect::<Vec<_>>()
        };
        group.changes = [row(1, 5, &[]), row(1, 2, &[])].iter().map(Writer::of).collect();
        assert_eq!(times(&group, 9), [5, 2]);
        assert_eq!(times(&group, 3), [5]);
    }
}
