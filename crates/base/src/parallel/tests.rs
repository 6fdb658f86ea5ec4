//! Tests of dividing work.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

#[test]
fn every_item_is_worked_on_once_and_results_keep_their_order() {
    for count in [0, 1, 2, 1000] {
        let items: Vec<usize> = (0..count).collect();
        let calls = AtomicUsize::new(0);
        let doubled = on_all_cores(&items, |item| {
            calls.fetch_add(1, Ordering::Relaxed);
            item * 2
        });
        assert_eq!(doubled, items.iter().map(|item| item * 2).collect::<Vec<_>>());
        assert_eq!(calls.into_inner(), count);
    }
}
