//! Where `HEAD` has been: which commit was checked out when, and what made it so.
//!
//! Reflogs are read as text, from their end and only so far: a line is written for every commit, checkout, rebase step
//! and pull. They expire and can be switched off, so what they don't tell is simply not known.

use super::commit::Moment;
use super::sha::Sha;
use crate::memory::Millis;

/// Where the `HEAD` of one work tree has been.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reflog {
    /// Its moves, oldest first.
    pub moves: Vec<Move>,
}

/// A move of `HEAD`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// When.
    pub time: Millis,
    /// What was checked out before; `None` at the beginning.
    pub from: Option<Sha>,
    /// What is checked out since.
    pub to: Sha,
    /// The name that git knew whoever did it by.
    pub who: String,
    /// What was done.
    pub action: Action,
    /// The branch on which it was done, where that is told.
    pub branch: Option<String>,
}

/// What moved `HEAD`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// A commit was made, also by a merge.
    Commit,
    /// The last commit was replaced.
    Amend,
    /// What was committed before was committed anew elsewhere in the history, by a rebase or a cherry-pick.
    Rebase,
    /// Commits came from another repository.
    Pull,
    /// What was there before was checked out.
    Other,
}

impl Action {
    fn of(message: &str) -> Action {
        let (what, rest) = message.split_once(": ").unwrap_or((message, ""));
        let verb = what.split(' ').next().unwrap_or_default();
        let step = what.rsplit_once('(').map_or("", |(_, step)| step.trim_end_matches(')'));
        let is_merge = rest.starts_with("Merge made by");
        match verb {
            "commit" if step == "amend" => Action::Amend,
            "commit" if step == "cherry-pick" => Action::Rebase,
            "commit" | "revert" => Action::Commit,
            "cherry-pick" | "am" => Action::Rebase,
            _ if (verb == "rebase" || what.contains("--rebase"))
                && !matches!(step, "start" | "finish" | "") =>
            {
                Action::Rebase
            }
            "pull" | "merge" if is_merge => Action::Commit,
            "pull" | "clone" | "fetch" => Action::Pull,
            _ => Action::Other,
        }
    }

    /// Whether the commit that is checked out afterwards was made by it.
    pub fn makes(self) -> bool {
        matches!(self, Action::Commit | Action::Amend | Action::Rebase)
    }
}

impl Reflog {
    /// Reads the lines of a reflog; those that are none are passed over. `branch` is what is checked out now.
    pub fn parse(text: &str, branch: Option<&str>) -> Reflog {
        let mut moves: Vec<Move> = Vec::new();
        let mut messages: Vec<&str> = Vec::new();
        for line in text.lines() {
            let (who_and_when, message) = line.split_once('\t').unwrap_or((line, ""));
            let parse = || {
                let (old, new, rest) = three(who_and_when)?;
                let mut words = rest.rsplit(' ');
                let (_zone, seconds) = (words.next()?, words.next()?);
                // As a commit's time: what is beyond the calendar is its border.
                let time = seconds.parse::<i64>().ok()?.clamp(Moment::FIRST, Moment::LAST) * 1000;
                let who = rest.split_once(" <").map_or("", |(who, _)| who).to_owned();
                let from = old.parse().ok().filter(|sha: &Sha| sha.as_bytes() != &[0; 20]);
                let action = Action::of(message);
                Some(Move { time, from, to: new.parse().ok()?, who, action, branch: None })
            };
            if let Some(parsed) = parse() {
                moves.push(parsed);
                messages.push(message);
            }
        }
        let branches = branches_of(&messages, branch);
        moves.iter_mut().zip(branches).for_each(|(each, branch)| each.branch = branch);
        Reflog { moves }
    }

    /// Returns the commit that was checked out at `time`, or `None` where the reflog doesn't reach back so far.
    pub fn at(&self, time: Millis) -> Option<Sha> {
        // A clock that was set back leaves times out of order; the last line that fits is the one that counts.
        self.moves.iter().rev().find(|each| each.time <= time).map(|each| each.to)
    }
}

/// Returns the branch that was checked out after each of the moves that `messages` tell of, `now` being that after the last.
fn branches_of(messages: &[&str], now: Option<&str>) -> Vec<Option<String>> {
    let named = |name: &str| Some(name.to_owned()).filter(|name| name.parse::<Sha>().is_err());
    let short = |name: &str| name.trim().strip_prefix("refs/heads/").map(str::to_owned);
    let checkout = |message: &str| {
        let (from, to) = message.strip_prefix("checkout: moving from ")?.split_once(" to ")?;
        Some((named(from), named(to)))
    };
    let renamed = |message: &str| {
        let (from, to) = message.strip_prefix("Branch: renamed ")?.split_once(" to ")?;
        Some((short(from), short(to)))
    };
    let returned = |message: &str| message.split_once("returning to ").map(|(_, name)| short(name));
    // From the end: each message says what was checked out before it, too.
    let mut after = now.map(str::to_owned);
    let mut branches = Vec::with_capacity(messages.len());
    for message in messages.iter().rev() {
        if let Some(name) = returned(message) {
            // The steps of a rebase make the branch anew that it returns to.
            after = name;
        }
        match checkout(message).or_else(|| renamed(message)) {
            Some((before, to)) => {
                branches.push(to);
                after = before;
            }
            None => branches.push(after.clone()),
        }
    }
    branches.reverse();
    branches
}

fn three(line: &str) -> Option<(&str, &str, &str)> {
    let mut parts = line.splitn(3, ' ');
    Some((parts.next()?, parts.next()?, parts.next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    const B: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

    #[test]
    fn the_commit_checked_out_is_that_of_the_last_line_before() {
        let text = format!(
            "{B} {A} Ann Example <a@example.org> 100 +0200\tcommit: x\nno line\n{A} {B} Ann <a@b> 200 -0100\tcheckout: y\n"
        );
        let log = Reflog::parse(&text, None);
        assert_eq!(log.at(99_999), None);
        assert_eq!(log.at(100_000), Some(A.parse().unwrap()));
        assert_eq!(log.at(5_000_000), Some(B.parse().unwrap()));
        assert_eq!((log.moves[0].who.as_str(), log.moves[0].action), ("Ann Example", Action::Commit));
    }

    /// A commit at such a time ended the program that looked for what was done a second later.
    #[test]
    fn a_time_beyond_the_calendar_is_its_border() {
        let times =
            [(i64::MAX / 1000, Moment::LAST), (i64::MIN / 1000, Moment::FIRST), (i64::MAX, Moment::LAST)];
        for (seconds, border) in times {
            let log = Reflog::parse(&format!("{A} {B} Ann <a@b> {seconds} +0000\tcommit: x\n"), None);
            assert_eq!(log.moves[0].time, border * 1000, "{seconds}");
        }
    }

    #[test]
    fn what_was_done_on_which_branch_is_told_by_the_messages() {
        use Action::*;
        let table = [
            ("commit (initial): a", Commit, Some("old")),
            ("Branch: renamed refs/heads/old to refs/heads/main", Other, Some("main")),
            ("checkout: moving from main to topic", Other, Some("topic")),
            ("commit: checkout: moving from here to there", Commit, Some("topic")),
            ("commit (amend): b", Amend, Some("topic")),
            ("checkout: moving from topic to main", Other, Some("main")),
            ("pull: Fast-forward", Pull, Some("main")),
            ("pull: Merge made by the 'ort' strategy.", Commit, Some("main")),
            ("merge topic: Fast-forward", Other, Some("main")),
            ("checkout: moving from main to bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb", Other, None),
            ("commit: alone", Commit, None),
            ("checkout: moving from bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb to main", Other, Some("main")),
            ("rebase (start): checkout main", Other, Some("topic")),
            ("rebase (pick): b", Rebase, Some("topic")),
            ("rebase (finish): returning to refs/heads/topic", Other, Some("topic")),
            ("pull --rebase origin main (pick): b", Rebase, Some("topic")),
            ("cherry-pick: c", Rebase, Some("topic")),
        ];
        let lines = table.map(|(message, ..)| format!("{A} {B} Ann <a@b> 200 -0100\t{message}\n"));
        let found = Reflog::parse(&lines.concat(), Some("topic")).moves;
        for (each, (message, action, branch)) in found.iter().zip(table) {
            assert_eq!((each.action, each.branch.as_deref()), (action, branch), "{message}");
        }
        assert_eq!(found.len(), table.len());
    }
}
