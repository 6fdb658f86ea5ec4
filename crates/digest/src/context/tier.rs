//! Computes the tier of each segment. The tier depends on the segment's distance from the end, and decides how much of
//! the segment is shown.
//!
//! The distance is counted from the end of the last closed segment, not from the end of the session. So tiers change
//! only when a segment closes. Until then, the lines of the closed segments stay the same, byte for byte.

use super::segment::Segment;
use crate::tuning::contexts;
use tiro_base::memory::Level;

/// How much of a segment is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Tier {
    /// All messages.
    Recent,
    /// A detailed summary.
    Medium,
    /// A standard summary.
    Long,
    /// A brief summary.
    Ancient,
}

/// The end of each tier, counted in messages from the end of the last closed segment, and the length of the tier's
/// summaries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tiers {
    /// The distance, in messages, at which the recent tier ends. This tier is shown in full.
    pub recent: usize,
    /// The distance, in messages, at which the medium tier ends.
    pub medium: usize,
    /// The distance, in messages, at which the long tier ends.
    pub long: usize,
    /// The length of a summary of the medium tier, as a share of its messages' tokens.
    pub medium_share: f64,
    /// The length of a summary of the long tier, as a share of its messages' tokens.
    pub long_share: f64,
    /// The length of a summary of the ancient tier, as a share of its messages' tokens.
    pub ancient_share: f64,
}

impl Default for Tiers {
    fn default() -> Tiers {
        Tiers {
            recent: contexts::RECENT_MESSAGES,
            medium: contexts::MEDIUM_MESSAGES,
            long: contexts::LONG_MESSAGES,
            medium_share: contexts::MEDIUM_SHARE,
            long_share: contexts::LONG_SHARE,
            ancient_share: contexts::ANCIENT_SHARE,
        }
    }
}

impl Tiers {
    /// Returns the tier of each of a session's closed segments, in their order.
    ///
    /// The distance of a segment's last message decides the segment's tier, so the last segment is always recent.
    pub fn of(&self, segments: &[Segment]) -> Vec<Tier> {
        let mut distance = 0;
        let mut tiers: Vec<Tier> = Vec::with_capacity(segments.len());
        for segment in segments.iter().rev() {
            tiers.push(match distance {
                0 => Tier::Recent,
                _ if distance < self.recent => Tier::Recent,
                _ if distance < self.medium => Tier::Medium,
                _ if distance < self.long => Tier::Long,
                _ => Tier::Ancient,
            });
            distance += segment.messages;
        }
        tiers.reverse();
        tiers
    }

    /// Returns how many tokens are shown of a segment that has `tokens` tokens and is in `tier`.
    pub fn tokens(&self, tier: Tier, tokens: usize) -> usize {
        let share = match tier {
            Tier::Recent => return tokens,
            Tier::Medium => self.medium_share,
            Tier::Long => self.long_share,
            Tier::Ancient => self.ancient_share,
        };
        (tokens as f64 * share.clamp(0.0, 1.0)).ceil() as usize
    }
}

impl Tier {
    /// Returns the level of the summary that is shown for a segment. Returns `None` if the segment's messages are shown
    /// instead.
    pub fn level(self) -> Option<Level> {
        match self {
            Tier::Recent => None,
            Tier::Medium => Some(Level::Detailed),
            Tier::Long => Some(Level::Standard),
            Tier::Ancient => Some(Level::Brief),
        }
    }

    /// Returns the tier's name in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Tier::Recent => "recent",
            Tier::Medium => "medium",
            Tier::Long => "long",
            Tier::Ancient => "ancient",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segments(messages: &[usize]) -> Vec<Segment> {
        let segment = |messages| Segment { first: 0, last: 0, messages, tokens: 100 };
        messages.iter().map(|messages| segment(*messages)).collect()
    }

    #[test]
    fn tiers_are_counted_from_the_end_of_the_last_closed_segment() {
        use Tier::*;
        let tiers = Tiers::default();
        assert!(tiers.of(&segments(&[])).is_empty());
        assert_eq!(tiers.of(&segments(&[20])), [Recent]);
        assert_eq!(tiers.of(&segments(&[20, 20, 20])), [Medium, Medium, Recent]);
        assert_eq!(
            tiers.of(&segments(&[20, 20, 20, 20, 20, 20, 20])),
            [Ancient, Ancient, Long, Long, Medium, Medium, Recent]
        );
        // The recent tier has ten messages here, so it reaches into the second of the two short segments.
        assert_eq!(tiers.of(&segments(&[20, 8, 8])), [Medium, Recent, Recent]);
    }

    #[test]
    fn a_tier_keeps_its_share() {
        let tiers = Tiers::default();
        let kept = |tier| tiers.tokens(tier, 1000);
        assert_eq!(
            [kept(Tier::Recent), kept(Tier::Medium), kept(Tier::Long), kept(Tier::Ancient)],
            [1000, 300, 150, 50]
        );
        assert_eq!(tiers.tokens(Tier::Ancient, 0), 0);
    }
}
