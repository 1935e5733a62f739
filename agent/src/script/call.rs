//! Recorded calls as a script has them, whatever its format.

use std::collections::{BTreeMap, BTreeSet};

use crate::record::words;

words! {
    /// What a call does, named as in section 2 of the manual.
    CallName {
        Open = "open", Close = "close", Read = "read", Pread = "pread", Write = "write",
        Pwrite = "pwrite", Fsync = "fsync", Fdatasync = "fdatasync", Fstat = "fstat",
        Stat = "stat", Lstat = "lstat", Access = "access", Unlink = "unlink",
    }
}

/// What a call is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallTarget {
    Path(Vec<u8>),
    /// The number that the recorded process knew the file by.
    Descriptor(i64),
}

/// One recorded call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Of the script, from 1.
    pub line: usize,
    /// As the script numbers them.
    pub thread: u64,
    /// Since the recording began.
    pub time_us: u64,
    pub name: CallName,
    pub target: CallTarget,
    /// Of pread and pwrite.
    pub offset: u64,
    /// Of reads and writes.
    pub bytes: u64,
    /// Of open: open(2)'s.
    pub flags: i32,
    /// Of open: the descriptor it gave, negative where it failed.
    pub descriptor: i64,
    /// Whether it succeeded; none where the script does not tell.
    pub succeeded: Option<bool>,
}

/// A script that was read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Script {
    pub calls: Vec<Call>,
    /// Lines, of which each has a call.
    pub lines: usize,
    /// Of all lines, as the script numbers them.
    pub threads: BTreeSet<u64>,
    /// Calls that are not among ours, by their name: how many there were.
    pub unknown: BTreeMap<String, u64>,
}

/// What is wrong with a script.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, {field}: {what}")]
pub struct ScriptError {
    pub line: usize,
    pub field: &'static str,
    pub what: String,
}
