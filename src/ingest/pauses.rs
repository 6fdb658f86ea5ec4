//! Keeps out what was said while capture was paused.
//!
//! Transcripts still contain it; it is recognised by its time. In doubt an entry is kept out: a line without a time
//! that may fall into a pause, the output of a tool that was running when one began, and a summary or title of a
//! session with a pause in it, since these repeat what was said.

use crate::engine::Engine;
use crate::import::transcript::Entry;
use crate::memory::Millis;
use crate::project::OpenProject;
use crate::spool::Spool;

/// How far back the summary at the beginning of a transcript may reach, in milliseconds. Claude Code lets a session be
/// continued for 30 days.
const REACH: Millis = 30 * 24 * 60 * 60 * 1000;

/// The pauses of this project and those of all projects, as times from and to.
pub(crate) struct KeptOut {
    pauses: Vec<(Millis, Millis)>,
}

impl KeptOut {
    /// Reads the pauses from the spools.
    pub(crate) fn of(engine: &Engine, project: &OpenProject) -> KeptOut {
        let mut pauses = engine.spool(project).pauses();
        pauses.extend(Spool::everywhere(&engine.config().data_dir).pauses());
        KeptOut { pauses }
    }

    /// Whether an entry is kept out. Its session began at `first`.
    pub(crate) fn said(&self, said: &Entry, first: Option<Millis>) -> bool {
        // A summary repeats everything since the session began.
        let since = if said.is_summary { said.since.min(first) } else { said.since };
        self.between(since, said.until)
    }

    /// Whether the title of a session that began at `first` and was read up to `last` is kept out.
    pub(crate) fn title(&self, first: Option<Millis>, last: Option<Millis>) -> bool {
        self.between(first, last)
    }

    /// Whether a pause overlaps the time from `since` to `until`. `None` is unbounded.
    fn between(&self, since: Option<Millis>, until: Option<Millis>) -> bool {
        let (since, until) = (since.unwrap_or(Millis::MIN), until.unwrap_or(Millis::MAX));
        // A clock may be set back.
        let (since, until) = (since.min(until), since.max(until));
        self.pauses.iter().any(|(from, to)| *from <= until && since < *to)
    }
}

/// Returns when a session began whose first entry is `said`.
pub(crate) fn began(said: &Entry) -> Option<Millis> {
    match said.is_summary {
        // The summary covers another session, which this one continues.
        true => said.since.map(|since| since.saturating_sub(REACH)),
        false => said.since,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_that_may_fall_into_a_pause_are_kept_out() {
        let kept_out = KeptOut { pauses: vec![(100, 200)] };
        for (since, until, expected) in [
            (Some(99), Some(99), false),
            (Some(100), Some(100), true),
            (Some(200), Some(200), false),
            (Some(50), Some(150), true),
            (Some(50), Some(300), true),
            (Some(300), Some(150), true),
            (Some(200), None, false),
            (Some(50), None, true),
            (None, Some(99), false),
            (None, Some(100), true),
            (None, None, true),
        ] {
            assert_eq!(kept_out.between(since, until), expected, "{since:?} {until:?}");
        }
        assert!(!KeptOut { pauses: Vec::new() }.between(None, None));
    }
}
