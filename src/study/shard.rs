//! Parts of a sweep, for many machines.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Part `number` of `of` of a sweep, counted from 1: the cells `number - 1`, `number - 1 + of`,
/// `number - 1 + 2 of`, … in index order.
///
/// Neighbouring cells take about the same time, so that dealing them out in turn gives every part
/// its share of the slow ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shard {
    number: u32,
    of: u32,
}

impl Shard {
    /// Part `number` of `of`; `None` unless `1 <= number <= of`.
    #[must_use]
    pub fn new(number: u32, of: u32) -> Option<Self> {
        (1..=of).contains(&number).then_some(Self { number, of })
    }

    /// Its number, from 1.
    #[must_use]
    pub fn number(self) -> u32 {
        self.number
    }

    /// How many parts there are.
    #[must_use]
    pub fn of(self) -> u32 {
        self.of
    }

    /// Whether the cell with this index, from 0, belongs to it.
    #[must_use]
    pub fn takes(self, index: usize) -> bool {
        index % self.of as usize == self.number as usize - 1
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let read = || {
            let (number, of) = text.split_once('/')?;
            Self::new(number.trim().parse().ok()?, of.trim().parse().ok()?)
        };
        read().ok_or_else(|| "write i/n with 1 <= i <= n, as in 2/3".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_written_as_fractions() {
        assert_eq!("2/3".parse(), Ok(Shard { number: 2, of: 3 }));
        assert_eq!(Shard { number: 2, of: 3 }.to_string(), "2/3");
        for bad in ["", "2", "0/3", "4/3", "-1/3", "1/0", "a/b", "1/3/5"] {
            assert!(bad.parse::<Shard>().is_err(), "{bad}");
        }
    }

    #[test]
    fn every_cell_belongs_to_one_part() {
        for of in 1..6 {
            for index in 0..20 {
                let takers = (1..=of).filter(|n| Shard::new(*n, of).unwrap().takes(index));
                assert_eq!(takers.count(), 1);
            }
        }
        let second = Shard::new(2, 3).unwrap();
        let cells: Vec<usize> = (0..10).filter(|i| second.takes(*i)).collect();
        assert_eq!(cells, [1, 4, 7]);
    }
}
