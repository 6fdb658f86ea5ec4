use std::sync::LazyLock;

use proptest::prelude::*;

use super::*;

const DIMENSIONS: usize = 24;

/// Returns a vector of length 1 that depends on `seed` alone.
fn vector(seed: i64, dimensions: usize) -> Vec<f32> {
    let mut state = seed as u64;
    let values: Vec<f32> = (0..dimensions)
        .map(|_| {
            // splitmix64
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((mixed ^ mixed >> 31) >> 40) as f32 / (1 << 23) as f32 - 1.0
        })
        .collect();
    let length = dot(&values, &values).sqrt();
    values.into_iter().map(|value| value / length).collect()
}

fn entry(chunk: i64) -> VectorRow {
    VectorRow { chunk, memory: chunk / 2, session: 0, group: (chunk % 3) as u8 }
}

fn index_of(chunks: impl IntoIterator<Item = i64>, dimensions: usize) -> VectorIndex {
    let mut index = VectorIndex::new(dimensions);
    for chunk in chunks {
        index.insert(entry(chunk), &vector(chunk, dimensions));
    }
    index
}

fn chunks_of(hits: &[Hit]) -> Vec<i64> {
    hits.iter().map(|hit| hit.chunk).collect()
}

/// Returns the nearest of `chunks` by their exact vectors.
fn nearest(chunks: impl IntoIterator<Item = i64>, query: &[f32], k: usize) -> Vec<i64> {
    let dimensions = query.len();
    let score = |chunk: i64| dot(query, &decode_f16(&encode_f16(&vector(chunk, dimensions))).unwrap());
    let mut ranked: Vec<_> = chunks.into_iter().map(|chunk| (score(chunk), chunk)).collect();
    ranked.sort_by(|left, right| right.0.total_cmp(&left.0).then(left.1.cmp(&right.1)));
    ranked.into_iter().take(k).map(|(_, chunk)| chunk).collect()
}

fn search_and_rescore(index: &VectorIndex, query: &[f32], k: usize, filter: Filter<'_>) -> Vec<i64> {
    let hits = index.search(query, 4 * k, filter, 1);
    let stored = |chunk| Ok(Some(encode_f16(&vector(chunk, query.len()))));
    chunks_of(&rescore(query, &hits, k, stored).unwrap())
}

#[test]
fn rescored_hits_are_the_nearest() {
    let rows = 2 * BLOCK as i64 + 100;
    for dimensions in [DIMENSIONS, 384] {
        let index = index_of(0..rows, dimensions);
        for seed in -10..0 {
            let query = vector(seed, dimensions);
            let expected = nearest(0..rows, &query, 10);
            assert_eq!(search_and_rescore(&index, &query, 10, Filter::All), expected);
        }
    }
}

#[test]
fn scores_are_near_the_products() {
    for dimensions in [1, 3, 24, 383, 384, 400] {
        let index = index_of(0..100, dimensions);
        let query = vector(-1, dimensions);
        for hit in index.search(&query, 100, Filter::All, 1) {
            let exact = dot(&query, &vector(hit.chunk, dimensions));
            assert!((hit.score - exact).abs() < 0.01, "{} for {exact}", hit.score);
        }
    }
}

#[test]
fn filters_leave_only_what_they_name() {
    let index = index_of(0..5000, DIMENSIONS);
    let query = vector(-1, DIMENSIONS);
    let wanted: Vec<i64> = (0..9000).step_by(7).flat_map(|chunk| [chunk, chunk]).collect();
    let expected = nearest((0..5000).step_by(7), &query, 10);
    assert_eq!(search_and_rescore(&index, &query, 10, Filter::Chunks(&wanted)), expected);
    let is_wanted = |entry: &VectorRow| entry.chunk % 7 == 0;
    assert_eq!(search_and_rescore(&index, &query, 10, Filter::Where(&is_wanted)), expected);
    assert!(index.search(&query, 10, Filter::Chunks(&[]), 1).is_empty());
    assert!(index.search(&query, 10, Filter::Where(&|_| false), 1).is_empty());
}

#[test]
fn groups_are_searched_apart() {
    let index = index_of(0..10_000, DIMENSIONS);
    let query = vector(-1, DIMENSIONS);
    let lists = index.search_groups(&query, 7, Filter::All, 1, 2);
    for (group, hits) in lists.iter().enumerate() {
        let alone = index.search(&query, 7, Filter::Where(&|entry| usize::from(entry.group) == group), 1);
        assert_eq!(*hits, alone);
    }
    assert_eq!(lists.len(), 2);
}

#[test]
fn threads_change_nothing() {
    let index = index_of(0..3 * ROWS_PER_THREAD as i64, 8);
    let query = vector(-1, 8);
    let alone = index.search(&query, 50, Filter::All, 1);
    assert_eq!(index.search(&query, 50, Filter::All, 3), alone);
    assert_eq!(index.search(&query, 50, Filter::All, 99), alone);
}

#[test]
fn equal_scores_are_ordered_by_chunk() {
    let mut index = VectorIndex::new(4);
    for chunk in (0..100).rev() {
        index.insert(entry(chunk), &[0.5; 4]);
    }
    assert_eq!(chunks_of(&index.search(&[0.5; 4], 3, Filter::All, 1)), [0, 1, 2]);
}

#[test]
fn vectors_that_are_no_numbers_are_far_from_everything() {
    let mut index = VectorIndex::new(2);
    for (chunk, vector) in [[f32::NAN, 1.0], [f32::INFINITY, 1.0], [0.0, 0.0], [0.6, 0.8]].iter().enumerate()
    {
        index.insert(entry(chunk as i64), vector);
    }
    assert_eq!(chunks_of(&index.search(&[0.6, 0.8], 4, Filter::All, 1)), [3, 0, 1, 2]);
    assert!(index.search(&[f32::NAN, 1.0], 4, Filter::All, 1).iter().all(|hit| hit.score == 0.0));
    assert!(index.search(&[0.6, 0.8], 0, Filter::All, 1).is_empty());
    assert!(VectorIndex::new(2).search(&[0.6, 0.8], 4, Filter::All, 2).is_empty());
}

#[test]
fn hits_without_their_vector_are_left_out() {
    let hits = [1, 2, 3].map(|chunk| Hit { chunk, memory: 0, score: 0.0 });
    let stored =
        |chunk: i64| Ok([None, Some(vec![0; 3]), Some(encode_f16(&[1.0, 0.0]))][chunk as usize - 1].clone());
    assert_eq!(chunks_of(&rescore(&[1.0, 0.0], &hits, 3, stored).unwrap()), [3]);
}

#[test]
fn half_floats_are_stored_little_endian() {
    assert_eq!(encode_f16(&[1.0, -2.0]), [0x00, 0x3c, 0x00, 0xc0]);
    assert_eq!(decode_f16(&[0x00, 0x3c, 0x00, 0xc0]), Some(vec![1.0, -2.0]));
    assert_eq!(decode_f16(&[0]), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// After rows are inserted, replaced and removed in any order, the index has exactly the remaining ones.
    #[test]
    fn an_index_is_its_rows(changes in prop::collection::vec((any::<bool>(), 0..60i64), 0..200), filler in 0..2usize) {
        // With filler the rows of interest lie across two blocks.
        let filler: Vec<i64> = (0..(filler * (BLOCK - 20)) as i64).map(|place| 1000 + place).collect();
        let mut index = index_of(filler.iter().copied(), 8);
        let mut rows: std::collections::BTreeSet<i64> = filler.into_iter().collect();
        for (insert, chunk) in changes {
            if insert {
                index.insert(entry(chunk), &vector(chunk, 8));
                rows.insert(chunk);
            } else {
                prop_assert_eq!(index.remove(chunk), rows.remove(&chunk));
            }
        }
        prop_assert_eq!(index.len(), rows.len());
        prop_assert!((0..60).all(|chunk| index.contains(chunk) == rows.contains(&chunk)));
        let query = vector(-1, 8);
        let fresh = index_of(rows, 8);
        prop_assert_eq!(index.search(&query, 5000, Filter::All, 1), fresh.search(&query, 5000, Filter::All, 1));
    }

    /// Bounds save scoring rows and lose no hit: the hits are those of a scan that scores every row.
    #[test]
    fn bounds_hide_no_hit(
        seed in -1000..0i64,
        k in 1..=100usize,
        threads in 1..=2usize,
        groups in 1..=4usize,
        every in 1..20i64,
    ) {
        static INDEXES: LazyLock<Vec<(Kind, VectorIndex)>> = LazyLock::new(|| {
            let kinds = [
                (Kind::Random, 384, BLOCK + 1000),
                (Kind::Clustered, 384, BLOCK + 1000),
                (Kind::TwoValues, 384, BLOCK + 1000),
                (Kind::Sparse, 384, BLOCK + 1000),
                (Kind::Clustered, 30, 2 * ROWS_PER_THREAD + 100),
            ];
            let index = |(kind, dimensions, rows): (Kind, usize, usize)| {
                let mut index = VectorIndex::new(dimensions);
                (0..rows as i64).for_each(|chunk| index.insert(entry(chunk), &kind.vector(chunk, dimensions)));
                (kind, index)
            };
            kinds.map(index).into()
        });
        for (kind, index) in INDEXES.iter() {
            let query = kind.vector(seed, index.dimensions);
            let admits = |entry: &VectorRow| entry.chunk % every == 0;
            let admitted: Vec<i64> = (0..index.len() as i64).step_by(every as usize).collect();
            let plain = index.search_groups(&query, k, Filter::Chunks(&admitted), 1, groups);
            prop_assert_eq!(&index.search_groups(&query, k, Filter::Where(&admits), threads, groups), &plain);
            let plain = index.search(&query, k, Filter::Chunks(&admitted), 1);
            prop_assert_eq!(&index.search(&query, k, Filter::Where(&admits), threads), &plain);
            if every == 1 {
                prop_assert_eq!(&index.search(&query, k, Filter::All, threads), &plain);
            }
        }
    }
}

/// Vectors whose remainders differ.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Random,
    /// Around one of eleven centres.
    Clustered,
    /// Around one of eleven centres, of which only the signs are kept.
    TwoValues,
    /// Around one of eleven centres; values below zero become zero.
    Sparse,
}

impl Kind {
    fn vector(self, seed: i64, dimensions: usize) -> Vec<f32> {
        let mut vector = vector(seed, dimensions);
        if !matches!(self, Kind::Random) {
            let centre = self::vector(seed.rem_euclid(11) + (1 << 40), dimensions);
            vector.iter_mut().zip(centre).for_each(|(value, centre)| *value += 2.0 * centre);
        }
        match self {
            Kind::Random | Kind::Clustered => {}
            Kind::TwoValues => vector.iter_mut().for_each(|value| *value = value.signum()),
            Kind::Sparse => vector.iter_mut().for_each(|value| *value = value.max(0.0)),
        }
        let length = dot(&vector, &vector).sqrt();
        vector.iter_mut().for_each(|value| *value /= length);
        vector
    }
}
