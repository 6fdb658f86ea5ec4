//! Orders hits so that a conversation comes before the commit that it led to. The function is pure.
//!
//! A commit is linked to a session that wrote its lines or made the commit. If both are among the hits, the
//! conversation comes first, because it tells why something was changed. The commit only shows what was changed.

/// Returns the order of `count` hits in which each commit follows the conversations that led to it.
///
/// `behind(i)` returns the positions of the hits from conversations that led to hit `i`. Such a hit is only moved
/// forward, to the position just before the first commit that it led to. All other hits keep their order.
pub fn order(count: usize, mut behind: impl FnMut(usize) -> Vec<usize>) -> Vec<usize> {
    let mut order = Vec::with_capacity(count);
    let mut placed = vec![false; count];
    for hit in 0..count {
        if placed[hit] {
            continue;
        }
        for conversation in behind(hit).into_iter().filter(|place| *place < count && *place != hit) {
            if !std::mem::replace(&mut placed[conversation], true) {
                order.push(conversation);
            }
        }
        if !std::mem::replace(&mut placed[hit], true) {
            order.push(hit);
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_conversation_behind_a_commit_comes_just_before_it() {
        let behind = |hit| if hit == 1 { vec![3] } else { vec![] };
        assert_eq!(order(5, behind), [0, 3, 1, 2, 4]);
    }

    #[test]
    fn every_hit_is_there_once_whatever_the_links() {
        let all = |_| vec![4, 0, 2, 9];
        let mut ordered = order(5, all);
        ordered.sort_unstable();
        assert_eq!(ordered, [0, 1, 2, 3, 4]);
    }
}
