//! Excludes entries that were made while capture was paused, so that they are not stored.
//!
//! Transcripts still contain what was said during a pause, so an entry that belongs to a pause is recognised by its
//! time. If in doubt, an entry is excluded. For example, a line without a time is excluded if it may fall into a pause.
//! The output of a tool is excluded if the tool was running when a pause began. The summary and the title of a session
//! with a pause are excluded too, because they repeat what was said.

use crate::import::transcript::TranscriptEntry;
use crate::sources::Sources;
use crate::spool::Spool;
use tiro_base::memory::Millis;

/// A transcript may begin with a summary of an earlier conversation. This is the greatest age of that conversation, in
/// milliseconds. In Claude Code, a session can be continued for 30 days.
const REACH: Millis = 30 * 24 * 60 * 60 * 1000;

/// The pauses of this project, and those that apply to all projects. Each pause is a pair: the time of its beginning
/// and the time of its end.
pub struct KeptOut {
    pauses: Vec<(Millis, Millis)>,
}

impl KeptOut {
    /// Reads the pauses from the spools.
    pub fn of(sources: &Sources) -> KeptOut {
        let mut pauses = sources.spool().pauses();
        pauses.extend(Spool::everywhere(&sources.machine.data_dir).pauses());
        KeptOut { pauses }
    }

    /// Returns whether the entry `said` is excluded. `first` is the time when its session began.
    pub fn said(&self, said: &TranscriptEntry, first: Option<Millis>) -> bool {
        // A summary repeats everything since the session began.
        let since = if said.is_summary { said.since.min(first) } else { said.since };
        self.between(since, said.until)
    }

    /// Returns whether the title of a session is excluded. The session began at `first` and was read up to `last`.
    pub fn title(&self, first: Option<Millis>, last: Option<Millis>) -> bool {
        self.between(first, last)
    }

    /// Returns whether a pause overlaps the time from `since` to `until`. `None` means that the time is not limited on
    /// this side.
    fn between(&self, since: Option<Millis>, until: Option<Millis>) -> bool {
        let (since, until) = (since.unwrap_or(Millis::MIN), until.unwrap_or(Millis::MAX));
        // If the clock was set back, `until` may be before `since`.
        let (since, until) = (since.min(until), since.max(until));
        self.pauses.iter().any(|(from, to)| *from <= until && since < *to)
    }
}

/// Returns the time when a session began. `said` is the session's first entry.
pub fn began(said: &TranscriptEntry) -> Option<Millis> {
    match said.is_summary {
        // The summary covers an earlier session, which this session continues.
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
