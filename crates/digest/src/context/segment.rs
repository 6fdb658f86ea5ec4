//! Cuts a conversation into segments. A segment is an immutable run of messages. It is summarised as a whole and
//! changes its tier as a whole.
//!
//! The end of a segment depends only on its messages and on the next message. So a closed segment never changes, and a
//! session can be cut while it grows. The messages after the last closed segment are the session's open end.

use std::collections::HashSet;

use super::{Message, topic_words};
use crate::tuning::contexts::{LONGEST_SEGMENT, NEW_WORDS, SEGMENT, SHORTEST_SEGMENT, SILENCE};
use tiro_base::memory::Role;

/// An immutable run of messages of one session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The ordinal of the first message.
    pub first: i64,
    /// The ordinal of the last message.
    pub last: i64,
    /// The number of messages.
    pub messages: usize,
    /// The number of tokens (o200k) of all messages.
    pub tokens: usize,
}

/// Returns the segments that end within `open`, in order. `open` contains the messages after the last closed segment.
///
/// Messages appended later change none of these segments. Cutting the remaining messages together with later ones gives
/// the same segments as cutting the whole session at once.
pub fn close(open: &[Message<'_>]) -> Vec<Segment> {
    let mut closed = Vec::new();
    let mut start = 0;
    let mut said: HashSet<String> = HashSet::new();
    for (place, next) in open.iter().enumerate() {
        let run = &open[start..place];
        if ends(run, next, &said) {
            closed.push(Segment {
                first: run[0].ordinal,
                last: run[run.len() - 1].ordinal,
                messages: run.len(),
                tokens: run.iter().map(|message| message.tokens).sum(),
            });
            start = place;
            said.clear();
        }
        said.extend(topic_words::characteristic(next.text));
    }
    closed
}

/// Returns whether a segment ends before the message `next`. `run` has the segment's messages so far, and `said`
/// has the words of these messages.
fn ends(run: &[Message<'_>], next: &Message<'_>, said: &HashSet<String>) -> bool {
    let Some(last) = run.last().filter(|_| run.len() >= SHORTEST_SEGMENT) else { return false };
    if run.len() >= LONGEST_SEGMENT || next.time.saturating_sub(last.time) > SILENCE {
        return true;
    }
    let begins_turn = next.role == Some(Role::User) && last.role != Some(Role::User);
    begins_turn && (run.len() >= SEGMENT || is_new_topic(next, said))
}

/// Returns whether `next` has enough words to have a topic and none of these words is in `said`.
fn is_new_topic(next: &Message<'_>, said: &HashSet<String>) -> bool {
    let new = topic_words::set(next.text);
    new.len() >= NEW_WORDS && new.is_disjoint(said)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use tiro_base::memory::Millis;

    const MINUTE: Millis = 60_000;

    /// Returns messages a minute apart, by user and assistant in turns, all about the same topic.
    fn conversation(count: i64) -> Vec<Message<'static>> {
        let role = |place| Some(if place % 2 == 0 { Role::User } else { Role::Assistant });
        let message = |place| Message {
            ordinal: place,
            role: role(place),
            time: place * MINUTE,
            tokens: 10,
            text: "the parser fails on nested brackets",
        };
        (0..count).map(message).collect()
    }

    fn lengths(messages: &[Message<'_>]) -> Vec<usize> {
        close(messages).iter().map(|segment| segment.messages).collect()
    }

    #[test]
    fn a_segment_ends_with_the_turn_after_twenty_messages() {
        assert!(close(&conversation(20)).is_empty());
        assert_eq!(lengths(&conversation(21)), [20]);
        let mut long_turn = conversation(60);
        long_turn[20..25].iter_mut().for_each(|message| message.role = Some(Role::Tool));
        assert_eq!(lengths(&long_turn), [26, 20]);
    }

    #[test]
    fn only_tool_output_is_cut_too() {
        let mut tools = conversation(100);
        tools.iter_mut().for_each(|message| message.role = Some(Role::Tool));
        assert_eq!(lengths(&tools), [30, 30, 30]);
    }

    #[test]
    fn a_silence_ends_a_segment_that_says_enough() {
        let after = |count: usize| {
            let mut messages = conversation(count as i64 + 1);
            messages[count].time += 31 * MINUTE;
            lengths(&messages)
        };
        assert_eq!((after(7), after(8), after(11)), (vec![], vec![8], vec![11]));
    }

    #[test]
    fn a_new_topic_ends_a_segment_at_a_turn() {
        let mut messages = conversation(30);
        messages[10].text = "Switching over: invoices should print customer addresses beside totals";
        assert_eq!(lengths(&messages), [10]);
        messages[10].role = Some(Role::Assistant);
        assert_eq!(lengths(&messages), [20]);
    }

    #[test]
    fn a_clock_set_back_ends_nothing() {
        let mut messages = conversation(12);
        messages[9..].iter_mut().for_each(|message| message.time = Millis::MIN);
        assert!(close(&messages).is_empty());
    }

    proptest! {
        #[test]
        fn closed_segments_never_change(
            kinds in prop::collection::vec((0..3u8, 0..40i64, 0..8usize), 0..120),
            cut in 0..120usize,
        ) {
            let topics = ["", "brackets nested parser", "one two", "invoices customer address totals printer margin",
                "harbour ferries timetable seagulls lighthouse pier", "x", "日本語の文章", "brackets again nested parser fails often today"];
            let mut time = 0;
            let messages: Vec<Message<'_>> = kinds.iter().enumerate().map(|(place, (role, minutes, topic))| {
                time += minutes * MINUTE;
                let role = [Role::User, Role::Assistant, Role::Tool][usize::from(*role)];
                // Only even ordinals exist, as if the others were forgotten.
                Message { ordinal: 2 * place as i64, role: Some(role), time, tokens: place, text: topics[*topic] }
            }).collect();
            let whole = close(&messages);
            prop_assert!(whole.iter().all(|segment| (SHORTEST_SEGMENT..=LONGEST_SEGMENT).contains(&segment.messages)));
            let before = close(&messages[..cut.min(messages.len())]);
            prop_assert_eq!(&before[..], &whole[..before.len()]);
            let left = before.last().map_or(0, |last| messages.iter().position(|m| m.ordinal > last.last).unwrap());
            prop_assert_eq!(close(&messages[left..]), &whole[before.len()..]);
        }
    }
}
