//! The stream of a script's transactions, and the values of its statements, drawn from the seed.

use std::sync::Arc;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::RngCore;
use rusqlite::types::Value;
use sha2::{Digest, Sha256};

use crate::sql_script::expression::Expression;
use crate::sql_script::statement::{OpenTransaction, SqlScript, SqlStep};
use crate::workload::draw::{below, generator};
use crate::workload::error::WorkloadError;

/// Statements that are drawn before the first of them runs, at most: a transaction may be longer
/// than memory.
const MOST_AHEAD: usize = 4096;
/// Steps without a statement after which none is expected any more.
const MOST_IDLE_STEPS: u64 = 10_000_000;

/// The way a script is played.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Course {
    /// From its first step to its last.
    Once,
    /// Part after part, drawn by their weights.
    RoundAndRound,
}

/// A step to do, with the values of its parameters.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DrawnStatement {
    /// The step of the script: a statement, or in a set-up a change of the database.
    pub step: usize,
    pub values: Vec<Value>,
    /// Think time before it.
    pub wait_us: u64,
}

/// The reach of the statements that were drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// To a transaction's end.
    End,
    /// Not there yet.
    Within,
    /// To the script's end.
    OfScript,
}

#[derive(Debug, Clone)]
pub struct SqlStream {
    pub script: Arc<SqlScript>,
    course: Course,
    seed: u64,
    stream: u64,
    /// The keys at the beginning.
    first_keys: KeyCounts,
    draw: ValueDraw,
    /// The next step, and where its part ends.
    at: usize,
    end: usize,
    /// Parts begun so far.
    parts: usize,
    /// The number of times that each open `repeat` is still done.
    repeats: Vec<u64>,
    open: OpenTransaction,
    /// Drawn, and the first of the next transaction.
    ahead: Option<DrawnStatement>,
    /// Whether what was drawn last has not reached its transaction's end.
    is_unfinished: bool,
    /// Steps drawn so far.
    pub drawn: u64,
}

impl SqlStream {
    /// At its beginning; `stream` is the seed's.
    pub fn new(
        script: Arc<SqlScript>,
        course: Course,
        seed: u64,
        stream: u64,
        keys: KeyCounts,
    ) -> Self {
        let variables = vec![Value::Null; script.variables.0.len()];
        let draw = ValueDraw { random: generator(seed, stream), keys: keys.clone(), variables };
        Self {
            script,
            course,
            seed,
            stream,
            first_keys: keys,
            draw,
            at: 0,
            end: 0,
            parts: 0,
            repeats: Vec::new(),
            open: OpenTransaction::default(),
            ahead: None,
            is_unfinished: false,
            drawn: 0,
        }
    }

    /// The keys that it has given so far.
    pub fn keys(&self) -> &KeyCounts {
        &self.draw.keys
    }

    /// The same from its beginning.
    fn again(&self) -> Self {
        let (script, keys) = (Arc::clone(&self.script), self.first_keys.clone());
        Self::new(script, self.course, self.seed, self.stream, keys)
    }

    /// The next statement; none at the end of a script that is played once.
    ///
    /// # Errors
    /// If a value cannot be drawn, or no statement comes.
    pub fn next(&mut self) -> Result<Option<DrawnStatement>, WorkloadError> {
        for _ in 0..MOST_IDLE_STEPS {
            if self.at == self.end && !self.begin_part() {
                return Ok(None);
            }
            let step = self.at;
            self.at += 1;
            match &self.script.steps[step] {
                SqlStep::Statement(statement) => {
                    let draw = |value| self.draw.value(value);
                    let values = statement.arguments.iter().map(draw).collect::<Result<_, _>>()?;
                    let wait = statement.wait_us.as_ref().map(|wait| self.draw.count(wait));
                    self.drawn += 1;
                    let wait_us = wait.transpose()?.unwrap_or(0);
                    return Ok(Some(DrawnStatement { step, values, wait_us }));
                }
                SqlStep::Database(_) => {
                    self.drawn += 1;
                    return Ok(Some(DrawnStatement { step, values: Vec::new(), wait_us: 0 }));
                }
                SqlStep::Repeat { times, after } => match self.draw.count(times)? {
                    0 => self.at = *after,
                    times => self.repeats.push(times),
                },
                SqlStep::Again { repeat } => {
                    if let Some(left) = self.repeats.last_mut() {
                        *left -= 1;
                        if *left > 0 {
                            self.at = repeat + 1;
                        } else {
                            self.repeats.pop();
                        }
                    }
                }
                SqlStep::Let { variable, value } => {
                    self.draw.variables[*variable] = self.draw.value(value)?;
                }
            }
        }
        Err(WorkloadError::refusal(format!(
            "{}: no statement comes in {MOST_IDLE_STEPS} steps; repeat something at least once",
            self.script.connection
        )))
    }

    fn begin_part(&mut self) -> bool {
        let parts = &self.script.parts;
        let number = match self.course {
            Course::Once => self.parts,
            Course::RoundAndRound if parts.len() == 1 => 0,
            Course::RoundAndRound => {
                let all = parts.iter().map(|part| part.weight).sum();
                let mut drawn = below(&mut self.draw.random, all);
                let is_it = |weight: u64| match drawn.checked_sub(weight) {
                    None => true,
                    Some(left) => {
                        drawn = left;
                        false
                    }
                };
                let mut weights = parts.iter().map(|part| part.weight);
                weights.position(is_it).unwrap_or(0)
            }
        };
        let Some(part) = parts.get(number) else { return false };
        (self.at, self.end) = (part.begin, part.end);
        self.parts += 1;
        true
    }

    /// Draws into `planned` what follows up to the end of a transaction, or as much as there may be
    /// at once.
    ///
    /// # Errors
    /// If a value cannot be drawn, or no statement comes.
    pub fn draw(&mut self, planned: &mut Vec<DrawnStatement>) -> Result<Reach, WorkloadError> {
        planned.clear();
        while planned.len() < MOST_AHEAD {
            let was_ahead = self.ahead.is_some();
            let next = self.ahead.take().map_or_else(|| self.next(), |it| Ok(Some(it)))?;
            let Some(statement) = next else { return Ok(Reach::OfScript) };
            if let SqlStep::Statement(of_script) = &self.script.steps[statement.step] {
                if self.course == Course::Once && !of_script.after.is_empty() && !was_ahead {
                    // Where it was recorded no transaction was open, whatever the texts say: SQLite
                    // ends some by itself (ON CONFLICT ROLLBACK).
                    self.open = OpenTransaction::default();
                    if !planned.is_empty() || self.is_unfinished {
                        self.ahead = Some(statement);
                        self.is_unfinished = false;
                        return Ok(Reach::End);
                    }
                }
                self.open.apply(&of_script.role);
            }
            planned.push(statement);
            if !self.open.is_open() {
                self.is_unfinished = false;
                return Ok(Reach::End);
            }
        }
        self.is_unfinished = true;
        Ok(Reach::Within)
    }

    /// The transactions that there are in all, of a script that is played once.
    ///
    /// # Errors
    /// If a value cannot be drawn.
    pub fn transactions(&self) -> Result<u64, WorkloadError> {
        let (mut again, mut count) = (self.again(), 0);
        let (mut planned, mut is_unfinished) = (Vec::new(), false);
        loop {
            match again.draw(&mut planned)? {
                Reach::End => (count, is_unfinished) = (count + 1, false),
                Reach::Within => is_unfinished = true,
                Reach::OfScript => {
                    return Ok(count + u64::from(is_unfinished || !planned.is_empty()));
                }
            }
        }
    }

    /// SHA-256 over the texts and values of what was drawn so far.
    ///
    /// # Errors
    /// Never, as it was drawn once.
    pub fn hash(&self) -> Result<Sha256, WorkloadError> {
        let (mut again, mut hasher) = (self.again(), Sha256::new());
        while again.drawn < self.drawn {
            let Some(DrawnStatement { step, values, wait_us }) = again.next()? else { break };
            if let SqlStep::Statement(statement) = &self.script.steps[step] {
                hasher.update((statement.sql().len() as u64).to_le_bytes());
                hasher.update(statement.sql());
            }
            hasher.update(wait_us.to_le_bytes());
            values.iter().for_each(|value| add(&mut hasher, value));
        }
        Ok(hasher)
    }
}

fn add(hasher: &mut Sha256, value: &Value) {
    let (kind, bytes): (u8, &[u8]) = match value {
        Value::Null => (0, &[]),
        Value::Integer(number) => (1, &number.to_le_bytes()),
        Value::Real(number) => (2, &number.to_le_bytes()),
        Value::Text(text) => (3, text.as_bytes()),
        Value::Blob(bytes) => (4, bytes),
    };
    hasher.update([kind]);
    hasher.update((bytes.len() as u64).to_le_bytes());
    hasher.update(bytes);
}

/// The keys of every name: those of the set-up are 1, 2, 3 ..., and after them each connection has
/// its share of what follows, so that none is given twice in whichever order threads run.
#[derive(Debug, Clone)]
pub struct KeyCounts {
    names: Vec<String>,
    before: Vec<u64>,
    own: Vec<u64>,
    sharer: u64,
    sharers: u64,
}

impl KeyCounts {
    /// Return the keys of the set-up: none yet.
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

    fn count(&self, name: usize) -> Result<u64, WorkloadError> {
        match self.before[name] + self.own[name] {
            0 => Err(WorkloadError::refusal(format!(
                "known({0}) or recent({0}) comes before any key({0}); have the set-up give some",
                self.names[name]
            ))),
            given => Ok(given),
        }
    }
}

/// The source of values.
#[derive(Debug, Clone)]
pub struct ValueDraw {
    pub random: ChaCha8Rng,
    pub keys: KeyCounts,
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
                let number = below(random, self.keys.count(*name)?);
                Value::Integer(self.keys.nth(*name, number))
            }
            Expression::Recent(name) => {
                let keys = self.keys.count(*name)?;
                Value::Integer(self.keys.nth(*name, keys - 1 - self_similar(random, keys)))
            }
            Expression::Variable(variable) => self.variables[*variable].clone(),
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
            WorkloadError::refusal(format!("a count must be a whole number from 0, not {value:?}"))
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
    use crate::sql_script::expression::ScriptNames;
    use crate::sql_script::parse::{ScriptUse, parse};
    use crate::workload::draw::generator;

    fn stream(text: &str, course: Course) -> SqlStream {
        let mut names = ScriptNames::default();
        let script = parse(text, "it", ScriptUse::Transactions, &mut names).unwrap();
        SqlStream::new(Arc::new(script), course, 7, 0, KeyCounts::new(names.0))
    }

    #[test]
    fn a_script_is_played_once_or_its_parts_by_their_weights() {
        let text = "--! transaction a 3\nSELECT 1;\n--! transaction b 1\nBEGIN;\n\
            --! repeat int(0,2)\nSELECT :key;\n--! end\nCOMMIT;\n";
        assert_eq!(stream(text, Course::Once).transactions().unwrap(), 2);
        let mut round = stream(text, Course::RoundAndRound);
        let (mut planned, mut lengths) = (Vec::new(), Vec::new());
        for _ in 0..1000 {
            assert_eq!(round.draw(&mut planned).unwrap(), Reach::End);
            lengths.push(planned.len());
        }
        let alone = lengths.iter().filter(|length| **length == 1).count();
        assert!((700..800).contains(&alone), "{alone}");
        assert!(lengths.iter().all(|length| (1..=4).contains(length)));
        let hash = round.hash().unwrap().finalize();
        assert_eq!(hash, round.hash().unwrap().finalize());
        assert_ne!(hash, stream(text, Course::RoundAndRound).hash().unwrap().finalize());
    }

    #[test]
    fn a_script_without_an_end_of_its_transaction_is_one_transaction() {
        let mut once = stream("BEGIN; SELECT 1;", Course::Once);
        assert_eq!(once.transactions().unwrap(), 1);
        assert_eq!(once.draw(&mut Vec::new()).unwrap(), Reach::OfScript);
    }

    #[test]
    fn a_statement_that_follows_others_begins_a_transaction() {
        let text = "BEGIN;\nINSERT INTO t VALUES (1);\n--! after transaction-x.sql 1\n\
            INSERT INTO t VALUES (2);\nCOMMIT;\n";
        let mut once = stream(text, Course::Once);
        assert_eq!(once.transactions().unwrap(), 3);
        let (mut planned, mut lengths) = (Vec::new(), Vec::new());
        while once.draw(&mut planned).unwrap() == Reach::End {
            lengths.push(planned.len());
        }
        assert_eq!((lengths, planned.len()), (vec![2, 1, 1], 0));
        let mut round = stream(text, Course::RoundAndRound);
        assert_eq!(round.draw(&mut planned).unwrap(), Reach::End);
        assert_eq!(planned.len(), 4);
    }

    #[test]
    fn a_script_that_never_gives_a_statement_is_refused() {
        let text = "--! repeat int(0,0)\nSELECT 1;\n--! end\n";
        let error = stream(text, Course::RoundAndRound).next().unwrap_err();
        assert!(error.is_wrong_use(), "{error}");
    }

    fn draw() -> ValueDraw {
        let keys = KeyCounts::new(vec!["a".into()]);
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
