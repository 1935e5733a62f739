//! Traces of strace. Reads their lines, in the forms that its options and its versions give them;
//! puts the halves of calls together; gives the book each call, in the order in which they began.
//!
//! line -> arguments -> values, flag_words, names, result -> decode -> creations; joined -> form,
//! numbers, times -> merge -> threads

mod arguments;
mod creations;
mod decode;
mod flag_words;
mod form;
mod joined;
mod line;
mod merge;
mod names;
mod numbers;
mod result;
mod threads;
mod times;
mod values;

use std::collections::BTreeMap;

use super::bad::Bad;
use super::book::Book;

pub use creations::creations;
#[cfg(test)]
pub use form::FileForm;
pub use form::forms;
pub use merge::Merged;
pub use times::Times;

/// What a trace had besides calls that are recorded.
#[derive(Debug, Default)]
pub struct Read {
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
pub fn read(mut merged: Merged, book: &mut Book, bad: &mut Bad) -> anyhow::Result<Read> {
    let mut threads = threads::Threads::new(merged.is_of_several());
    while let Some(next) = merged.next(bad)? {
        threads.line(next, book, bad)?;
    }
    threads.end(book)?;
    let times = merged.times(&threads.ends);
    Ok(Read {
        lines: merged.lines,
        left_out: threads.left_out,
        times,
        began_ns: threads.began_ns,
        doubtful_lines: merged.doubtful(),
    })
}
