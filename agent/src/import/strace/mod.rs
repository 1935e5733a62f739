//! Traces of strace. Reads their lines, in the forms that its options and its versions give them;
//! puts the halves of calls together; gives the book each call, in the order in which they began.
//!
//! line -> values -> decode; joined -> merge -> threads

mod decode;
mod joined;
mod line;
mod merge;
mod threads;
mod values;

use std::collections::BTreeMap;

use super::book::Book;
use super::lines::BadLines;

#[cfg(test)]
pub use merge::FileForm;
pub use merge::{MergedLines, Times, forms};
pub use threads::creations;

/// The counts of a trace besides the calls that are recorded.
#[derive(Debug, Default)]
pub struct ReadCounts {
    pub lines: u64,
    /// Calls that are no file system calls, by name.
    pub left_out: BTreeMap<String, u64>,
    pub times: Times,
    /// The first call's time.
    pub began_ns: Option<i64>,
    /// Lines without a number of a thread, although several were followed.
    pub doubtful_lines: u64,
}

/// Reads the files of a trace into a book.
///
/// # Errors
/// If a file cannot be read, or is no trace.
pub fn read(
    mut merged: MergedLines,
    book: &mut Book,
    bad: &mut BadLines,
) -> anyhow::Result<ReadCounts> {
    let mut threads = threads::Threads::new(merged.is_of_several());
    while let Some(next) = merged.next(bad)? {
        threads.line(next, book, bad)?;
    }
    threads.end(book)?;
    let times = merged.times(&threads.ends);
    Ok(ReadCounts {
        lines: merged.lines,
        left_out: threads.left_out,
        times,
        began_ns: threads.began_ns,
        doubtful_lines: merged.doubtful(),
    })
}
