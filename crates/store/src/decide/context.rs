//! Decides which messages of a session a context may show in full.

use crate::{ContextQuery, SegmentRow};

/// Returns two ordinals for a context. The messages of the session are read from the first ordinal on, and their texts
/// from the second ordinal on. `noted` is the last message whose facts are extracted.
///
/// Texts are read for the messages after the last of `segments`, and for messages near the end of the session, which a
/// context shows in full. If the session is short, all texts are read.
pub fn read_from(segments: &[SegmentRow], noted: i64, query: &ContextQuery) -> (i64, i64) {
    let mut with_texts = segments.last().map_or(0, |last| last.last + 1);
    let is_whole = segments.iter().map(|segment| segment.tokens).sum::<i64>() <= query.whole;
    let mut distance = 0;
    for segment in segments.iter().rev() {
        if !is_whole
            && distance > 0
            && usize::try_from(distance).is_ok_and(|distance| distance >= query.recent)
        {
            break;
        }
        with_texts = segment.first;
        distance += segment.messages;
    }
    ((noted - query.look_back).clamp(0, with_texts), with_texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_of_the_last_segments_or_of_a_short_session() {
        let segment = |number: i64| SegmentRow {
            number,
            first: 10 * number,
            last: 10 * number + 9,
            messages: 10,
            tokens: 100,
        };
        let segments: Vec<SegmentRow> = (0..5).map(segment).collect();
        let read = |recent, whole, noted| {
            let query = ContextQuery { recent, whole, look_back: 5, ..ContextQuery::default() };
            read_from(&segments, noted, &query)
        };
        assert_eq!(read(0, 0, 49), (40, 40), "the last segment is always near");
        assert_eq!(read(10, 0, 49), (40, 40));
        assert_eq!(read(11, 0, 49), (30, 30));
        assert_eq!(read(11, 500, 49), (0, 0), "it is short");
        assert_eq!(read(11, 499, 20), (15, 30), "facts are extracted of messages before");
        assert_eq!(read(11, 499, -1), (0, 30));
        assert_eq!(read_from(&[], -1, &ContextQuery::default()), (0, 0));
    }
}
