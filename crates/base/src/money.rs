//! Amounts of money.

use std::fmt;

/// An amount in millionths of a US dollar.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Money(pub u64);

impl Money {
    /// The largest amount, in dollars. Arbitrary: a billion, so that sums don't overflow.
    const MOST: f64 = 1e9;

    /// Parses an amount in dollars, such as `0.25`. Returns `None` if the amount is no number, is negative, is more
    /// than a billion, or is greater than 0 but would be rounded to 0.
    pub fn parse(dollars: &str) -> Option<Money> {
        let dollars: f64 = dollars.parse().ok()?;
        let money = Money((dollars * 1e6).round().clamp(0.0, Money::MOST * 1e6) as u64);
        let is_kept = dollars == 0.0 || money.0 > 0;
        ((0.0..=Money::MOST).contains(&dollars) && is_kept).then_some(money)
    }

    /// Returns `dollars`, rounded up to a whole millionth.
    pub fn from_dollars(dollars: f64) -> Money {
        // `dollars` is a sum of floats. An error in its fifteenth digit must not round it up to the next millionth.
        Money((dollars * 1e6 - 1e-6).ceil().clamp(0.0, Money::MOST * 1e6) as u64)
    }

    /// Returns the amount in dollars.
    pub fn dollars(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// Returns the amount in dollars in the form that [`Money::parse`] reads, such as `0.25`.
    pub fn plain(self) -> String {
        self.dollars().to_string()
    }
}

/// Prints dollars and cents, such as `$0.25`, and more digits if the amount has them.
impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.is_multiple_of(10_000) {
            true => write!(f, "${:.2}", self.dollars()),
            false => write!(f, "${}", self.dollars()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_be_counted_as_nothing_is_no_amount() {
        for (text, expected) in [
            ("0", Some(0)),
            ("0.000001", Some(1)),
            ("0.0000001", None),
            ("-0.1", None),
            ("NaN", None),
            ("1e10", None),
        ] {
            assert_eq!(Money::parse(text).map(|money| money.0), expected, "{text}");
        }
    }

    #[test]
    fn dollars_are_rounded_up_but_not_by_the_error_of_a_float() {
        let millionths = |dollars| Money::from_dollars(dollars).0;
        assert_eq!(millionths(0.1 + 0.2), 300_000);
        assert_eq!((millionths(0.000_000_1), millionths(0.000_001_1), millionths(-1.0)), (1, 2, 0));
        assert_eq!(Money(250_000).to_string(), "$0.25");
        assert_eq!((Money(1_500).to_string(), Money(1_500).plain()), ("$0.0015".into(), "0.0015".into()));
    }
}
