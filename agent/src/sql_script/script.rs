//! A script as it is played: its steps in order, with jumps for what is repeated, and its parts.

use super::expression::{Expression, ScriptNames};
use super::statement::SqlStatement;

/// One script: its head, and what it does.
#[derive(Debug, Clone, Default)]
pub struct SqlScript {
    /// What its connection is called.
    pub connection: String,
    /// The file that is `main` to it.
    pub database: String,
    /// Further files, with the name that SQL knows each by.
    pub attached: Vec<(String, String)>,
    pub parts: Vec<SqlPart>,
    pub steps: Vec<SqlStep>,
    /// The names of `let`.
    pub variables: ScriptNames,
    /// Whether it ends within a transaction, as what was recorded may.
    pub ends_open: bool,
}

/// A part that is played whole.
#[derive(Debug, Clone)]
pub struct SqlPart {
    /// As `transaction` names it; empty where the script has one part.
    pub name: String,
    pub weight: u64,
    /// Its steps: from this one up to that.
    pub begin: usize,
    pub end: usize,
}

#[derive(Debug, Clone)]
pub enum SqlStep {
    Statement(Box<SqlStatement>),
    /// What follows is done so many times, up to the `Again` before `after`.
    Repeat {
        times: Expression,
        after: usize,
    },
    /// The end of what is repeated, which begins after the step `repeat`.
    Again {
        repeat: usize,
    },
    Let {
        slot: usize,
        value: Expression,
    },
    /// What follows goes to this file.
    Database(String),
}
