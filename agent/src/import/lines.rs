//! The lines of a trace's file, one at a time, however long the file or a line of it is.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use crate::errors::WrongUse;

/// A line of strace has a call's buffers, if -s asks for so much; more is no line.
const MOST_LINE_BYTES: usize = 16 << 20;

/// A file under way.
pub struct Lines {
    pub path: PathBuf,
    reader: Box<dyn BufRead>,
    /// Of the line that was read last, from 1.
    pub number: u64,
}

/// A line, without the letter that ends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    Line,
    /// It is longer than a line can be; what is in the buffer is its beginning.
    TooLong,
    End,
}

impl Lines {
    /// Opens a file.
    ///
    /// # Errors
    /// If it is none, or cannot be read.
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        let cannot = |error: io::Error| WrongUse(format!("{}: {error}", path.display()));
        let file = File::open(path).map_err(cannot)?;
        if !file.metadata().map_err(cannot)?.is_file() {
            let message = format!("{}: not a regular file; name a trace's file", path.display());
            return Err(WrongUse(message).into());
        }
        let reader = Box::new(BufReader::with_capacity(1 << 18, file));
        Ok(Lines { path: path.to_owned(), reader, number: 0 })
    }

    /// Of a text in memory.
    #[cfg(test)]
    pub fn of(path: &Path, text: Vec<u8>) -> Self {
        Lines { path: path.to_owned(), reader: Box::new(io::Cursor::new(text)), number: 0 }
    }

    /// Reads the next line into a buffer.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn next(&mut self, line: &mut Vec<u8>) -> io::Result<Next> {
        line.clear();
        let limited =
            (&mut self.reader).take(MOST_LINE_BYTES as u64 + 1).read_until(b'\n', line)?;
        if limited == 0 {
            return Ok(Next::End);
        }
        self.number += 1;
        if line.last() == Some(&b'\n') {
            line.pop();
            return Ok(Next::Line);
        }
        if limited <= MOST_LINE_BYTES {
            return Ok(Next::Line);
        }
        line.truncate(80);
        loop {
            let buffer = self.reader.fill_buf()?;
            let (used, is_end) = match buffer.iter().position(|letter| *letter == b'\n') {
                Some(at) => (at + 1, true),
                None => (buffer.len(), buffer.is_empty()),
            };
            self.reader.consume(used);
            if is_end {
                return Ok(Next::TooLong);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_without_end_is_passed_over() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let long = vec![b'x'; MOST_LINE_BYTES + 5];
        std::fs::write(file.path(), [b"one\n\n", long.as_slice(), b"\nlast"].concat()).unwrap();
        let mut lines = Lines::open(file.path()).unwrap();
        let mut line = Vec::new();
        let mut next = || (lines.next(&mut line).unwrap(), line.len());
        let read = [next(), next(), next(), next(), next()];
        assert_eq!(
            read.each_ref().map(|(next, _)| *next),
            [Next::Line, Next::Line, Next::TooLong, Next::Line, Next::End,]
        );
        assert_eq!(read.map(|(_, length)| length), [3, 0, 80, 4, 0]);
        assert!(Lines::open(Path::new("/")).is_err());
        assert!(Lines::open(Path::new("/no/such")).is_err());
    }
}
