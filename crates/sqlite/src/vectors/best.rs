//! Finds the best `k` of many rows without sorting the rest.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use super::block::Block;
use super::{Hit, MAX_GROUPS, VectorRow};

/// Whether the hits are returned in one list or in one list for each label.
#[derive(Clone, Copy)]
pub(super) enum Split {
    No,
    ByGroup(usize),
}

/// The best rows seen so far.
pub(super) struct Best {
    k: usize,
    split: Split,
    /// The best rows of each list. The worst row is on top of the heap.
    heaps: Vec<BinaryHeap<Reverse<Ranked>>>,
    /// For each label, the lowest score with which a row can still enter its list.
    thresholds: [f32; MAX_GROUPS],
}

impl Best {
    pub(super) fn new(k: usize, split: Split) -> Best {
        let lists = match split {
            Split::No => 1,
            Split::ByGroup(groups) => groups,
        };
        let mut thresholds = [f32::INFINITY; MAX_GROUPS];
        if k > 0 {
            let labels = if matches!(split, Split::No) { MAX_GROUPS } else { lists };
            thresholds[..labels].fill(f32::NEG_INFINITY);
        }
        Best { k, split, heaps: vec![BinaryHeap::new(); lists], thresholds }
    }

    /// Adds rows of a block to their lists, if `accepts` admits them and they are among the best so far. `score` is
    /// called only for rows whose bound reaches the threshold of their list.
    pub(super) fn offer_block(
        &mut self,
        block: &Block,
        bounds: &[f32],
        score: impl Fn(usize) -> f32,
        accepts: &(dyn Fn(&VectorRow) -> bool + Sync),
    ) {
        // Labels that don't occur in this block are left out, because they would lower the floor as long as their lists
        // aren't full.
        let lowest = |thresholds: &[f32]| {
            let thresholds = block.labels.iter().map(|&label| thresholds[usize::from(label)]);
            thresholds.fold(f32::INFINITY, f32::min)
        };
        let mut floor = lowest(&self.thresholds);
        for (part, bounds) in bounds.chunks(32).enumerate() {
            // Most parts have no row whose bound reaches the floor. This test compiles to vector instructions.
            if !bounds.iter().fold(false, |any, &bound| any | (bound >= floor)) {
                continue;
            }
            for (place, &bound) in bounds.iter().enumerate() {
                let row = part * 32 + place;
                let threshold = self.thresholds[usize::from(block.groups[row])];
                if bound < threshold {
                    continue;
                }
                let score = score(row);
                if score >= threshold {
                    let entry = block.entry(row);
                    if accepts(&entry) && self.offer(entry, score) {
                        floor = lowest(&self.thresholds);
                    }
                }
            }
        }
    }

    /// Adds the row if it is among the best rows seen so far. Returns whether the row was added.
    pub(super) fn offer(&mut self, VectorRow { chunk, memory, group, .. }: VectorRow, score: f32) -> bool {
        let list = match self.split {
            Split::No => 0,
            Split::ByGroup(_) => usize::from(group),
        };
        let Some(heap) = self.heaps.get_mut(list).filter(|_| self.k > 0) else { return false };
        let ranked = Reverse(Ranked(Hit { chunk, memory, score }));
        if heap.len() < self.k {
            heap.push(ranked);
        } else {
            let mut worst = heap.peek_mut().expect("k is above 0");
            if ranked >= *worst {
                return false;
            }
            *worst = ranked;
        }
        if heap.len() == self.k {
            let threshold = heap.peek().map_or(f32::NEG_INFINITY, |worst| worst.0.0.score);
            match self.split {
                Split::No => self.thresholds.fill(threshold),
                Split::ByGroup(_) => self.thresholds[list] = threshold,
            }
        }
        true
    }

    pub(super) fn merge(&mut self, other: Best) {
        for (heap, more) in self.heaps.iter_mut().zip(other.heaps) {
            heap.extend(more);
            while heap.len() > self.k {
                heap.pop();
            }
        }
    }

    pub(super) fn into_hits(self) -> Vec<Vec<Hit>> {
        let hits =
            |heap: BinaryHeap<Reverse<Ranked>>| heap.into_sorted_vec().into_iter().map(|ranked| ranked.0.0);
        self.heaps.into_iter().map(|heap| hits(heap).collect()).collect()
    }
}

/// A hit that can be compared with others. A better hit is greater.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ranked(pub(super) Hit);

impl Ord for Ranked {
    fn cmp(&self, other: &Ranked) -> Ordering {
        self.0.score.total_cmp(&other.0.score).then(other.0.chunk.cmp(&self.0.chunk))
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Ranked) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ranked {
    fn eq(&self, other: &Ranked) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Ranked {}
