//! Random numbers that depend only on the seed, so that measurements can be repeated on any machine.

/// The SplitMix64 generator (Steele, Lea and Flood, 2014). It is small, quick, and good enough for test data.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Returns a generator whose sequence depends only on `seed`.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// Returns the next 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// Returns a number from 0 up to but not including `end`, which is at least 1.
    pub fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.bits()) * end as u128) >> 64) as usize
    }

    /// Returns a number from 0 up to but not including 1.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns true with the given probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// Returns one of `items`, which is not empty.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    /// Returns a random number that is normally distributed with mean 0 and deviation 1 (Box and Muller).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// Returns a rank from 0 up to but not including `end`. Rank r is about 1/(r+1) times as likely as rank 0.
    pub fn zipf(&mut self, end: usize) -> usize {
        let rank = ((end as f64 + 1.0).ln() * self.unit()).exp() - 1.0;
        (rank as usize).min(end - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zipf_stays_in_range_and_falls() {
        let mut random = Random::new(7);
        let mut counts = [0usize; 10];
        (0..10_000).for_each(|_| counts[random.zipf(10)] += 1);
        assert!(counts.windows(2).all(|pair| pair[0] > pair[1]), "{counts:?}");
    }

    #[test]
    fn the_seed_decides() {
        let draw = |seed| {
            (0..4).map(|_| 0).scan(Random::new(seed), |r, _: i32| Some(r.below(1000))).collect::<Vec<_>>()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }
}
