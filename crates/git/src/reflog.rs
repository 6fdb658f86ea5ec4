//! Parses reflogs. A reflog records every move of `HEAD`: the time, the commit that `HEAD` moved to, and the command
//! that moved it.
//!
//! Git writes a line for every commit, checkout, rebase step and pull. Lines expire and the reflog can be switched off,
//! so a missing line proves nothing.

use super::commit::Moment;
use super::sha::Sha;
use tiro_base::memory::Millis;

/// The moves of `HEAD` in one work tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reflog {
    /// The moves, oldest first.
    pub moves: Vec<Move>,
}

/// One move of `HEAD`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// When `HEAD` moved.
    pub time: Millis,
    /// The commit at which `HEAD` pointed before the move; `None` if there was no such commit.
    pub from: Option<Sha>,
    /// The commit at which `HEAD` pointed after the move.
    pub to: Sha,
    /// The committer's name.
    pub committer: String,
    /// What moved `HEAD`.
    pub action: Action,
    /// The branch that was checked out after the move, if the reflog shows it.
    pub branch: Option<String>,
}

/// What moved `HEAD`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// A commit, including one made by a merge.
    Commit,
    /// `git commit --amend` replaced the last commit.
    Amend,
    /// A rebase or a cherry-pick applied a copy of an existing commit.
    Rebase,
    /// A pull, clone or fetch brought commits from another repository.
    Pull,
    /// Anything else, such as a checkout of an existing commit.
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

    /// Returns whether the action created the commit that is checked out afterwards.
    pub fn makes(self) -> bool {
        matches!(self, Action::Commit | Action::Amend | Action::Rebase)
    }
}

impl Reflog {
    /// Parses the lines of a reflog and skips invalid ones. `branch` is the branch that is checked out now.
    pub fn parse(text: &str, branch: Option<&str>) -> Reflog {
        let mut moves: Vec<Move> = Vec::new();
        let mut messages: Vec<&str> = Vec::new();
        for line in text.lines() {
            let (who_and_when, message) = line.split_once('\t').unwrap_or((line, ""));
            let parse = || {
                let (old, new, rest) = three(who_and_when)?;
                let mut words = rest.rsplit(' ');
                let (_zone, seconds) = (words.next()?, words.next()?);
                // A time outside the years 1 to 9999 becomes the first or last second of those years, as for commits.
                let time = seconds.parse::<i64>().ok()?.clamp(Moment::FIRST, Moment::LAST) * 1000;
                let committer = rest.split_once(" <").map_or("", |(name, _)| name).to_owned();
                let from = old.parse().ok().filter(|sha: &Sha| sha.as_bytes() != &[0; 20]);
                let action = Action::of(message);
                Some(Move { time, from, to: new.parse().ok()?, committer, action, branch: None })
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

    /// Returns the commit that was checked out at `time`; `None` if the reflog doesn't reach back that far.
    pub fn at(&self, time: Millis) -> Option<Sha> {
        // If the clock was set back, the lines are not in order of time, so the last line that matches counts.
        self.moves.iter().rev().find(|each| each.time <= time).map(|each| each.to)
    }
}

/// Returns, for each move, the branch that was checked out after it. `messages` are the messages of the moves, and
/// `now` is the branch that is checked out after the last move.
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
    // The loop goes from the last move to the first: the message of a checkout also names the branch that was checked
    // out before.
    let mut after = now.map(str::to_owned);
    let mut branches = Vec::with_capacity(messages.len());
    for message in messages.iter().rev() {
        if let Some(name) = returned(message) {
            // When a rebase finishes, it moves the branch to the last commit that it made, and checks the branch out.
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
    fn the_commit_at_a_time_is_that_of_the_last_line_before() {
        let text = format!(
            "{B} {A} Ann Example <a@example.org> 100 +0200\tcommit: x\nno line\n{A} {B} Ann <a@b> 200 -0100\tcheckout: y\n"
        );
        let log = Reflog::parse(&text, None);
        assert_eq!(log.at(99_999), None);
        assert_eq!(log.at(100_000), Some(A.parse().unwrap()));
        assert_eq!(log.at(5_000_000), Some(B.parse().unwrap()));
        assert_eq!((log.moves[0].committer.as_str(), log.moves[0].action), ("Ann Example", Action::Commit));
    }

    /// Guards against a former crash: the program added a second to a time at the limit of its type.
    #[test]
    fn a_time_outside_the_calendar_becomes_its_first_or_last_second() {
        let times =
            [(i64::MAX / 1000, Moment::LAST), (i64::MIN / 1000, Moment::FIRST), (i64::MAX, Moment::LAST)];
        for (seconds, border) in times {
            let log = Reflog::parse(&format!("{A} {B} Ann <a@b> {seconds} +0000\tcommit: x\n"), None);
            assert_eq!(log.moves[0].time, border * 1000, "{seconds}");
        }
    }

    #[test]
    fn the_messages_show_the_branch_of_each_move() {
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
