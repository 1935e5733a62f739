//! Finds the transactions of a program that is not ours from its calls on files: SQLite's commits
//! by the rules of its file format, and calls that sync, where there is no SQLite. docs/commits.md
//! has the rules.
//!
//! call (its record) -> witness (sees calls by BPF); call, recent_map -> database (its files,
//! and the frames of its WAL); unit_of_work; all these -> finder

pub mod call;
pub mod database;
pub mod finder;
#[cfg(test)]
mod finder_test;
pub mod recent_map;
pub mod unit_of_work;
pub mod witness;
