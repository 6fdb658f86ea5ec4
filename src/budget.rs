//! Token arithmetic: the one place where tokens are added up and taken away.

/// Tokens that an answer never exceeds, and what is spent of them.
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

    /// Spends `tokens` where they are left and says whether they were; spends nothing otherwise.
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
