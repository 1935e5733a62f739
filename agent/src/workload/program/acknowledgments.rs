//! Acknowledgments of a program while it runs: lines that it writes into a pipe of its own, each
//! with the time at which its end was written. A line is a promise from then on; what the lines
//! mean, only the program and its check know.

use std::io::{PipeReader, Read};
use std::thread::JoinHandle;

use anyhow::Context;

use super::schedule::{READER, set_rank};
use crate::record::words;
use crate::tables::rows::Transaction;
use crate::tables::timeline::now_ns;

words! {
    /// The descriptor that a program acknowledges by.
    AckPlace { Descriptor = "descriptor", Stdout = "stdout" }
}

/// The variable of the program's environment that has the number of the descriptor.
pub const VARIABLE: &str = "JOJ_ACKS";

/// More is not kept, and the case is refused power cuts.
const MOST_BYTES: usize = 16 << 20;

/// The lines that were acknowledged, with their times.
#[derive(Debug, Default)]
pub struct Acknowledgments {
    bytes: Vec<u8>,
    /// The times by which so many bytes were there; in order.
    pieces: Vec<(i64, usize)>,
    is_too_long: bool,
}

impl Acknowledgments {
    fn add(&mut self, at_ns: i64, piece: &[u8]) {
        if self.bytes.len() + piece.len() > MOST_BYTES {
            self.is_too_long = true;
        }
        if !self.is_too_long {
            self.bytes.extend_from_slice(piece);
            self.pieces.push((at_ns, self.bytes.len()));
        }
    }

    /// The whole lines that were there at a moment.
    pub fn lines_until(&self, at_ns: i64) -> &[u8] {
        let count = self.pieces.partition_point(|(time, _)| *time <= at_ns);
        let length = self.pieces[..count].last().map_or(0, |(_, length)| *length);
        let written = &self.bytes[..length];
        let end = written.iter().rposition(|byte| *byte == b'\n').map_or(0, |place| place + 1);
        &written[..end]
    }

    /// Return when each line ended, in order.
    pub fn times_ns(&self) -> Vec<i64> {
        let ends = self.bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        let time = |(place, _): (usize, &u8)| {
            self.pieces[self.pieces.partition_point(|(_, length)| *length <= place)].0
        };
        ends.map(time).collect()
    }

    /// The lines as operations, each of which begins as the one before ends.
    pub fn operations(&self, start_ns: i64) -> Vec<Transaction> {
        let times_ns = self.times_ns();
        let begins_ns = std::iter::once(start_ns).chain(times_ns.iter().copied());
        let operation = |(begin_ns, return_ns)| Transaction {
            begin_ns,
            commit_ns: begin_ns,
            return_ns,
            ..Transaction::default()
        };
        begins_ns.zip(times_ns.iter().copied()).map(operation).collect()
    }

    /// Return why nothing can be said of a power cut; None where all was read.
    pub fn fault(&self) -> Option<String> {
        if self.is_too_long {
            return Some(format!(
                "the program acknowledged more than {} MiB, which is not kept: write shorter lines",
                MOST_BYTES >> 20
            ));
        }
        let last = self.bytes.last().filter(|byte| **byte != b'\n');
        last.map(|_| {
            "the last acknowledgment of the program has no end, and so promises nothing: end each \
             line with a newline"
                .to_owned()
        })
    }
}

/// Reads acknowledgments until nobody can write any more.
pub struct AckReader(JoinHandle<std::io::Result<Acknowledgments>>);

impl AckReader {
    /// Begins to read. The reader goes before all others of this machine, so that a line's time is
    /// that of the return of the call that wrote it, and not that of the program's next pause.
    pub fn start(mut pipe: PipeReader) -> Self {
        Self(std::thread::spawn(move || {
            set_rank(0, READER)?;
            let mut found = Acknowledgments::default();
            let mut piece = [0; 4 << 10];
            loop {
                match pipe.read(&mut piece)? {
                    0 => return Ok(found),
                    length => found.add(now_ns(), &piece[..length]),
                }
            }
        }))
    }

    /// Waits until nobody can write any more, and gives what was read.
    ///
    /// # Errors
    /// If it could not be read.
    pub fn finish(self) -> anyhow::Result<Acknowledgments> {
        let read =
            self.0.join().map_err(|_| anyhow::anyhow!("the reader of acknowledgments ended"));
        read?.context("reading the program's acknowledgments")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn acknowledgments(pieces: &[(i64, &str)]) -> Acknowledgments {
        let mut found = Acknowledgments::default();
        pieces.iter().for_each(|(at_ns, piece)| found.add(*at_ns, piece.as_bytes()));
        found
    }

    #[test]
    fn a_line_is_promised_when_its_end_was_written() {
        let found = acknowledgments(&[(10, "one\n"), (20, "tw"), (30, "o\nthree\n"), (40, "4\n")]);
        assert_eq!(found.times_ns(), [10, 30, 30, 40]);
        let lines = |at_ns| String::from_utf8(found.lines_until(at_ns).to_vec()).unwrap();
        assert_eq!([lines(9), lines(10), lines(29)], ["", "one\n", "one\n"]);
        assert_eq!([lines(30), lines(99)], ["one\ntwo\nthree\n", "one\ntwo\nthree\n4\n"]);
        assert_eq!(found.fault(), None);
        let times: Vec<_> =
            found.operations(5).iter().map(|it| (it.begin_ns, it.return_ns)).collect();
        assert_eq!(times, [(5, 10), (10, 30), (30, 30), (30, 40)]);
    }

    #[test]
    fn acknowledgments_without_an_end_or_too_long_are_told() {
        assert!(acknowledgments(&[(1, "a\nb")]).fault().unwrap().contains("no end"));
        let mut found = acknowledgments(&[(1, "a\n")]);
        found.add(2, &vec![b'\n'; MOST_BYTES]);
        assert!(found.fault().unwrap().contains("more than 16 MiB"));
        assert_eq!(found.lines_until(9), b"a\n");
    }

    proptest! {
        #[test]
        fn acknowledged_lines_are_those_that_had_ended_by_then(
            pieces in prop::collection::vec("[a\n]{0,6}", 0..12), at_ns in 0_i64..14
        ) {
            let mut found = Acknowledgments::default();
            (1..).zip(&pieces).for_each(|(time, piece)| found.add(time, piece.as_bytes()));
            let ended = found.times_ns().iter().filter(|time| **time <= at_ns).count();
            let lines = found.lines_until(at_ns);
            prop_assert_eq!(lines.iter().filter(|byte| **byte == b'\n').count(), ended);
            prop_assert!(lines.last().is_none_or(|byte| *byte == b'\n'));
        }
    }
}
