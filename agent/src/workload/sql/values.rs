//! Draws the values that a script names: takes an expression and the keys given so far, gives a
//! value of SQLite. A pure function of seed and script.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::RngCore;
use rusqlite::types::Value;

use crate::sql_script::expression::Expression;
use crate::workload::draw::below;
use crate::workload::error::WorkloadError;

/// The keys of every name: those of the set-up are 1, 2, 3 ..., and after them each connection has
/// its share of what follows, so that none is given twice in whichever order threads run.
#[derive(Debug, Clone)]
pub struct KeysGiven {
    names: Vec<String>,
    before: Vec<u64>,
    own: Vec<u64>,
    sharer: u64,
    sharers: u64,
}

impl KeysGiven {
    /// Of the set-up: none yet.
    pub fn new(names: Vec<String>) -> Self {
        let none = vec![0; names.len()];
        Self { names, before: none.clone(), own: none, sharer: 0, sharers: 1 }
    }

    /// Those of one connection of several, after the set-up, whose keys these are.
    pub fn share(&self, sharer: u64, sharers: u64) -> Self {
        let own = vec![0; self.own.len()];
        Self { names: self.names.clone(), before: self.own.clone(), own, sharer, sharers }
    }

    fn nth(&self, name: usize, number: u64) -> i64 {
        let before = self.before[name];
        let key = match number.checked_sub(before) {
            None => number + 1,
            Some(own) => before + 1 + self.sharer + own * self.sharers,
        };
        key.cast_signed()
    }

    fn give(&mut self, name: usize) -> i64 {
        let key = self.nth(name, self.before[name] + self.own[name]);
        self.own[name] += 1;
        key
    }

    fn given(&self, name: usize) -> Result<u64, WorkloadError> {
        match self.before[name] + self.own[name] {
            0 => Err(WorkloadError::refused(format!(
                "known({0}) or recent({0}) comes before any key({0}); have the set-up give some",
                self.names[name]
            ))),
            given => Ok(given),
        }
    }
}

/// What values are drawn from.
#[derive(Debug, Clone)]
pub struct ValueDraw {
    pub random: ChaCha8Rng,
    pub keys: KeysGiven,
    pub variables: Vec<Value>,
}

impl ValueDraw {
    /// The value of an expression.
    ///
    /// # Errors
    /// If a known key is asked for, and none was given yet.
    pub fn value(&mut self, expression: &Expression) -> Result<Value, WorkloadError> {
        let random = &mut self.random;
        Ok(match expression {
            Expression::Literal(value) => value.clone(),
            Expression::Int { low, high } => {
                let offset = below(random, low.abs_diff(*high) + 1);
                Value::Integer(low.wrapping_add(offset.cast_signed()))
            }
            Expression::Skewed { low, high } => {
                let offset = self_similar(random, low.abs_diff(*high) + 1);
                Value::Integer(low.wrapping_add(offset.cast_signed()))
            }
            Expression::Exponential { mean } => {
                Value::Integer(exponential(random, *mean).cast_signed())
            }
            Expression::Text { shortest, longest } => {
                let mut bytes = self.bytes(*shortest, *longest);
                bytes.iter_mut().for_each(|byte| *byte = b'a' + *byte % 26);
                Value::Text(String::from_utf8(bytes).unwrap_or_default())
            }
            Expression::Blob { shortest, longest } => Value::Blob(self.bytes(*shortest, *longest)),
            Expression::One(values) => {
                let chosen = below(random, values.len() as u64);
                values[usize::try_from(chosen).unwrap_or(0)].clone()
            }
            Expression::Key(name) => Value::Integer(self.keys.give(*name)),
            Expression::Known(name) => {
                let number = below(random, self.keys.given(*name)?);
                Value::Integer(self.keys.nth(*name, number))
            }
            Expression::Recent(name) => {
                let given = self.keys.given(*name)?;
                Value::Integer(self.keys.nth(*name, given - 1 - self_similar(random, given)))
            }
            Expression::Variable(slot) => self.variables[*slot].clone(),
        })
    }

    /// A count, such as of repetitions or microseconds.
    ///
    /// # Errors
    /// If the value is none.
    pub fn count(&mut self, expression: &Expression) -> Result<u64, WorkloadError> {
        let value = self.value(expression)?;
        let count = match &value {
            Value::Integer(count) => u64::try_from(*count).ok(),
            _ => None,
        };
        count.ok_or_else(|| {
            WorkloadError::refused(format!("a count must be a whole number from 0, not {value:?}"))
        })
    }

    fn bytes(&mut self, shortest: usize, longest: usize) -> Vec<u8> {
        let more = below(&mut self.random, (longest - shortest) as u64 + 1);
        let mut bytes = vec![0; shortest + usize::try_from(more).unwrap_or(0)];
        self.random.fill_bytes(&mut bytes);
        bytes
    }
}

/// A number below `count`: 80 % of the draws are in the first fifth, 80 % of these in its first
/// fifth, and so on (Gray et al., SIGMOD 1994, 3.2: self-similar, h = 0.2).
fn self_similar(random: &mut ChaCha8Rng, count: u64) -> u64 {
    let mut left = count;
    while left > 1 {
        let hot = left.div_ceil(5);
        if below(random, 5) == 0 {
            return hot + below(random, left - hot);
        }
        left = hot;
    }
    0
}

/// An exponential number of a mean, by inversion; rounded to whole numbers.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "53 bits are as many as are drawn, the mean is at most 2^40, and no logarithm of a \
              number up to 1 is positive"
)]
fn exponential(random: &mut ChaCha8Rng, mean: u64) -> u64 {
    let uniform = ((random.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
    (-uniform.ln() * mean as f64).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::draw::generator;

    fn draw() -> ValueDraw {
        let keys = KeysGiven::new(vec!["a".into()]);
        ValueDraw { random: generator(7, 0), keys, variables: Vec::new() }
    }

    fn number(draw: &mut ValueDraw, expression: &Expression) -> i64 {
        let Value::Integer(number) = draw.value(expression).unwrap() else { panic!() };
        number
    }

    #[test]
    fn numbers_are_spread_as_they_say() {
        let mut draw = draw();
        let skewed = Expression::Skewed { low: 1, high: 1000 };
        let hot = (0..10_000).filter(|_| number(&mut draw, &skewed) <= 200).count();
        assert!((7_800..8_200).contains(&hot), "{hot}");
        let hottest = (0..10_000).filter(|_| number(&mut draw, &skewed) <= 40).count();
        assert!((6_200..6_600).contains(&hottest), "{hottest}");
        let wide = Expression::Int { low: i64::MIN, high: -1 };
        assert!((0..100).all(|_| number(&mut draw, &wide) < 0));
        let mean = Expression::Exponential { mean: 1000 };
        let sum: i64 = (0..10_000).map(|_| number(&mut draw, &mean)).sum();
        assert!((9_700_000..10_300_000).contains(&sum), "{sum}");
    }

    #[test]
    fn keys_are_given_once_over_all_connections() {
        let mut set_up = draw();
        assert!(set_up.value(&Expression::Known(0)).is_err());
        let given: Vec<i64> = (0..3).map(|_| number(&mut set_up, &Expression::Key(0))).collect();
        assert_eq!(given, [1, 2, 3]);
        let mut all: Vec<i64> = Vec::new();
        for thread in 0..2 {
            let mut own = ValueDraw { keys: set_up.keys.share(thread, 2), ..draw() };
            let keys: Vec<i64> = (0..4).map(|_| number(&mut own, &Expression::Key(0))).collect();
            for expression in [Expression::Known(0), Expression::Recent(0)] {
                let found: std::collections::BTreeSet<i64> =
                    (0..500).map(|_| number(&mut own, &expression)).collect();
                let known: Vec<i64> = given.iter().chain(&keys).copied().collect();
                assert_eq!(found.into_iter().collect::<Vec<_>>(), known, "{expression:?}");
            }
            all.extend(keys);
        }
        all.sort_unstable();
        assert_eq!(all, (4..12).collect::<Vec<_>>());
    }
}
