//! The statements of one script in the order in which they are played, with their values: a pure
//! function of script, seed and connection, drawn as they go.

use std::sync::Arc;

use rusqlite::types::Value;
use sha2::{Digest, Sha256};

use super::values::{KeysGiven, ValueDraw};
use crate::sql_script::open_transaction::OpenTransaction;
use crate::sql_script::script::{SqlScript, SqlStep};
use crate::workload::draw::{below, generator};
use crate::workload::error::WorkloadError;

/// Statements that are drawn before the first of them runs, at most: a transaction may be longer
/// than memory.
const MOST_AHEAD: usize = 4096;
/// Steps without a statement after which none is expected any more.
const MOST_IDLE_STEPS: u64 = 10_000_000;

/// How a script is played.
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

/// How far the statements drawn reach.
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
    first_keys: KeysGiven,
    draw: ValueDraw,
    /// The next step, and where its part ends.
    at: usize,
    end: usize,
    /// Parts begun so far.
    parts: usize,
    /// Of each `repeat` that is open, how often it is still done.
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
        keys: KeysGiven,
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
    pub fn keys(&self) -> &KeysGiven {
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
                SqlStep::Let { slot, value } => {
                    self.draw.variables[*slot] = self.draw.value(value)?;
                }
            }
        }
        Err(WorkloadError::refused(format!(
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql_script::expression::ScriptNames;
    use crate::sql_script::parse::{ScriptUse, parse};

    fn stream(text: &str, course: Course) -> SqlStream {
        let mut names = ScriptNames::default();
        let script = parse(text, "it", ScriptUse::Transactions, &mut names).unwrap();
        SqlStream::new(Arc::new(script), course, 7, 0, KeysGiven::new(names.0))
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
    fn what_never_gives_a_statement_is_refused() {
        let text = "--! repeat int(0,0)\nSELECT 1;\n--! end\n";
        let error = stream(text, Course::RoundAndRound).next().unwrap_err();
        assert!(error.is_wrong_use(), "{error}");
    }
}
