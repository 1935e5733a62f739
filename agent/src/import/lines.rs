//! The lines of a trace's file, one at a time, however long the file or a line of it is. Lines that
//! cannot be read are counted, and the first of them reported by file, line and column; or the
//! import ends at the first, if the user wants it so.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use crate::errors::WrongUse;

/// A line of strace has a call's buffers, if -s asks for so much; more is no line.
const MOST_LINE_BYTES: usize = 16 << 20;

/// The byte order mark of UTF-8, which some editors put before a text.
const UTF8_MARK: &[u8] = b"\xef\xbb\xbf";

/// Return the encoding of a file whose bytes are no lines of a trace as they stand, and the command
/// that turns it into lines.
fn encoding(begin: &[u8]) -> Option<(&'static str, &'static str)> {
    let compressed = [
        (&b"\x1f\x8b"[..], "compressed by gzip", "unpack it: gunzip FILE"),
        (b"\x28\xb5\x2f\xfd", "compressed by zstd", "unpack it: unzstd FILE"),
        (b"\xfd7zXZ\0", "compressed by xz", "unpack it: unxz FILE"),
        (b"BZh", "compressed by bzip2", "unpack it: bunzip2 FILE"),
        (b"PK\x03\x04", "a ZIP archive", "unpack it: unzip FILE"),
    ];
    if let Some((_, what, remedy)) = compressed.iter().find(|it| begin.starts_with(it.0)) {
        return Some((what, remedy));
    }
    // Without a mark, letters of ASCII have a zero before or behind each.
    let head = &begin[..begin.len().min(64) & !1];
    let is_zero = |odd: usize| head.iter().skip(odd).step_by(2).all(|byte| *byte == 0);
    let is_some = |odd: usize| head.iter().skip(odd).step_by(2).all(|byte| *byte != 0);
    let is_wide = head.len() >= 4;
    if begin.starts_with(b"\xff\xfe") || is_wide && is_some(0) && is_zero(1) {
        return Some(("text in UTF-16LE", "convert it: iconv -f UTF-16LE -t UTF-8 FILE"));
    }
    if begin.starts_with(b"\xfe\xff") || is_wide && is_zero(0) && is_some(1) {
        return Some(("text in UTF-16BE", "convert it: iconv -f UTF-16BE -t UTF-8 FILE"));
    }
    None
}

/// A file under way.
pub struct Lines {
    pub path: PathBuf,
    reader: Box<dyn BufRead>,
    /// The number of the line that was read last, from 1.
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
        let mut reader = BufReader::with_capacity(1 << 18, file);
        let begin = reader.fill_buf().map_err(cannot)?;
        if let Some((what, remedy)) = encoding(begin) {
            let path = path.display();
            let message = format!("{path}: {what}, which is not read; {remedy}");
            return Err(WrongUse(message).into());
        }
        if begin.starts_with(UTF8_MARK) {
            reader.consume(UTF8_MARK.len());
        }
        Ok(Lines { path: path.to_owned(), reader: Box::new(reader), number: 0 })
    }

    /// Return the lines of a text in memory.
    #[cfg(test)]
    pub fn from_text(path: &Path, text: Vec<u8>) -> Self {
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

/// As many are told; all are counted.
const MOST_MESSAGES: usize = 5;
/// Letters of a line that are shown.
const SHOWN_LETTERS: usize = 60;

/// The lines so far.
#[derive(Debug, Default)]
pub struct BadLines {
    pub is_strict: bool,
    pub count: u64,
    pub messages: Vec<String>,
}

impl BadLines {
    /// A line that is none, from a column on (from 0).
    ///
    /// # Errors
    /// If the import is to end at it.
    pub fn line(
        &mut self,
        path: &Path,
        number: u64,
        at: usize,
        what: &str,
        text: &[u8],
    ) -> Result<(), WrongUse> {
        self.count += 1;
        if !self.is_strict && self.messages.len() >= MOST_MESSAGES {
            return Ok(());
        }
        let shown = String::from_utf8_lossy(&text[..text.len().min(SHOWN_LETTERS)]);
        let message = format!(
            "{}: line {number}, column {}: {what}: {:?}; record with strace -o FILE, so that \
             nothing else writes there, or correct the line",
            path.display(),
            at + 1,
            shown,
        );
        if self.is_strict {
            return Err(WrongUse(message));
        }
        self.messages.push(message);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_no_plain_text_are_refused_by_their_kind() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let wide = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>();
        for (bytes, says) in [
            (wide("close(3) = 0\n"), "text in UTF-16LE, which is not read; convert it: iconv"),
            (wide("\u{feff}close"), "UTF-16LE"),
            (wide("close").into_iter().rev().collect(), "UTF-16BE"),
            (b"\x1f\x8b\x08\0".to_vec(), "compressed by gzip"),
        ] {
            std::fs::write(file.path(), bytes).unwrap();
            let refused = Lines::open(file.path()).err().unwrap().to_string();
            assert!(refused.contains(says), "{refused}");
        }
        std::fs::write(file.path(), b"\xef\xbb\xbfone\r\n").unwrap();
        let (mut lines, mut line) = (Lines::open(file.path()).unwrap(), Vec::new());
        assert_eq!((lines.next(&mut line).unwrap(), line.as_slice()), (Next::Line, &b"one\r"[..]));
    }

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
