//! Counts the tokens of an answer and compares them with its limit.

/// A limit of tokens, and the number of tokens spent so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    limit: usize,
    used: usize,
}

impl Budget {
    /// Returns an unspent budget of `limit` tokens.
    pub fn new(limit: usize) -> Budget {
        Budget { limit, used: 0 }
    }

    /// Spends `tokens` if that many are left. Returns whether they were spent.
    pub fn spend(&mut self, tokens: usize) -> bool {
        let fits = tokens <= self.left();
        if fits {
            self.used += tokens;
        }
        fits
    }

    /// Returns the tokens spent.
    pub fn used(&self) -> usize {
        self.used
    }

    /// Returns the tokens left.
    pub fn left(&self) -> usize {
        self.limit - self.used
    }
}
