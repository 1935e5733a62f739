//! The logs that the library of agent/preload writes: their records, and the values in them.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

const PAGE: u64 = 4096;
const MAGIC: &[u8; 8] = b"JOJ-SQL\n";
const VERSION: u32 = 2;
/// Bytes before the counters, and before the executable's name behind them.
const COUNTERS_AT: usize = 32;
/// Counters of the head, in the order of `enum counter` in agent/preload/preload.h.
pub const COUNTERS: usize = 11;

/// A log cannot be read further.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    #[error("{path}: {source}")]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("{path}: damaged at byte {at}: {what}")]
    Damaged { path: PathBuf, at: u64, what: &'static str },
}

/// A statement that ran.
#[derive(Debug, Clone, PartialEq)]
pub struct LoggedExecution {
    pub statement: u32,
    pub flags: u32,
    pub tid: i32,
    pub result: i32,
    pub begin_ns: i64,
    pub end_ns: i64,
    pub inside_ns: i64,
    /// The time of SQLite's commit, while it ran.
    pub committed_ns: Option<i64>,
    pub rows: i64,
    pub changes: i32,
    /// Values that were bound since its last record.
    pub bindings: Vec<Binding>,
}

/// One record of a log.
#[derive(Debug, Clone, PartialEq)]
pub enum LogRecord {
    Opened {
        connection: u32,
        flags: i32,
        open_ns: i64,
        /// The size of its file then; none where it has none.
        size_bytes: Option<i64>,
        tid: i32,
        sqlite_version: Vec<u8>,
        path: Vec<u8>,
        build_options: Vec<u8>,
    },
    Closed {
        connection: u32,
        close_ns: i64,
    },
    Prepared {
        statement: u32,
        connection: u32,
        parameters: u32,
        sql: Vec<u8>,
    },
    Bound {
        statement: u32,
        bindings: Vec<Binding>,
    },
    Executed(LoggedExecution),
    Finalized {
        statement: u32,
    },
    Withdrawn {
        statement: u32,
    },
    /// A connection has attached one more database.
    Attached {
        connection: u32,
        attached_ns: i64,
        size_bytes: Option<i64>,
        name: Vec<u8>,
        path: Vec<u8>,
    },
}

/// A log that is read.
pub struct ProcessLog {
    path: PathBuf,
    file: File,
    size_bytes: u64,
    pub pid: i32,
    pub executable: Vec<u8>,
    pub counted: [u64; COUNTERS],
    /// The chunk that is read, where it begins in the file, and how far it is read.
    chunk: Vec<u8>,
    chunk_at: u64,
    position: usize,
}

impl ProcessLog {
    /// Opens a log and reads its head.
    ///
    /// # Errors
    /// If it cannot be read, or is none.
    pub fn open(path: &Path) -> Result<Self, LogError> {
        let unreadable = |source| LogError::Unreadable { path: path.to_owned(), source };
        let mut file = File::open(path).map_err(unreadable)?;
        let size_bytes = file.metadata().map_err(unreadable)?.len();
        let mut page = vec![0; PAGE as usize];
        file.read_exact(&mut page).map_err(unreadable)?;
        let damaged = |what| LogError::Damaged { path: path.to_owned(), at: 0, what };
        let mut head = LogFields(&page);
        let is_ours = head.split_off(MAGIC.len()) == Some(MAGIC) && head.u32() == Some(VERSION);
        let pid = head.i32().filter(|_| is_ours).ok_or(damaged("no log of this release"))?;
        let mut counted = [0; COUNTERS];
        let mut fields = LogFields(&page[COUNTERS_AT..]);
        for counter in &mut counted {
            *counter = fields.u64().unwrap_or(0);
        }
        let executable = fields.text().unwrap_or_default();
        Ok(ProcessLog {
            path: path.to_owned(),
            file,
            size_bytes,
            pid,
            executable,
            counted,
            chunk: Vec::new(),
            chunk_at: 0,
            position: 0,
        })
    }

    /// The next record; none at the end.
    ///
    /// # Errors
    /// If the file cannot be read, or what is there is no record.
    pub fn next(&mut self) -> Result<Option<LogRecord>, LogError> {
        loop {
            let rest = self.chunk.get(self.position..).unwrap_or_default();
            let length = LogFields(rest).u32().unwrap_or(0) as usize;
            if length == 0 {
                if !self.next_chunk()? {
                    return Ok(None);
                }
                continue;
            }
            if length < 8 || length > rest.len() || !length.is_multiple_of(8) {
                return Err(self.damage("a record's length"));
            }
            let record = record(&rest[4..length]).ok_or_else(|| self.damage("a record"))?;
            self.position += length;
            return Ok(Some(record));
        }
    }

    fn next_chunk(&mut self) -> Result<bool, LogError> {
        let at = if self.chunk_at == 0 { PAGE } else { self.chunk_at + self.chunk.len() as u64 };
        if at >= self.size_bytes {
            return Ok(false);
        }
        self.read_chunk(at)
            .map_err(|source| LogError::Unreadable { path: self.path.clone(), source })?
            .ok_or_else(|| self.damage("a chunk's length"))
    }

    /// False where the process was killed before it wrote the chunk; none if its length is wrong.
    fn read_chunk(&mut self, at: u64) -> io::Result<Option<bool>> {
        let mut length = [0; 8];
        self.file.seek(SeekFrom::Start(at))?;
        self.file.read_exact(&mut length)?;
        let length = u64::from_ne_bytes(length);
        if length == 0 {
            return Ok(Some(false));
        }
        if length < PAGE || !length.is_multiple_of(PAGE) || length > self.size_bytes - at {
            return Ok(None);
        }
        self.chunk.resize(length as usize, 0);
        self.file.seek(SeekFrom::Start(at))?;
        self.file.read_exact(&mut self.chunk)?;
        self.chunk_at = at;
        self.position = 8;
        Ok(Some(true))
    }

    fn damage(&self, what: &'static str) -> LogError {
        let at = self.chunk_at + self.position as u64;
        LogError::Damaged { path: self.path.clone(), at, what }
    }
}

/// Return the size of a file; a negative one says that there is none.
fn size(bytes: i64) -> Option<i64> {
    (bytes >= 0).then_some(bytes)
}

/// A record behind its length; none if it is none.
fn record(bytes: &[u8]) -> Option<LogRecord> {
    let mut fields = LogFields(bytes);
    let kind = fields.u32()?;
    Some(match kind {
        1 => LogRecord::Opened {
            connection: fields.u32()?,
            flags: fields.i32()?,
            open_ns: fields.i64()?,
            size_bytes: fields.i64().map(size)?,
            tid: fields.i32()?,
            sqlite_version: fields.text()?,
            path: fields.text()?,
            build_options: fields.text()?,
        },
        2 => LogRecord::Closed { connection: fields.u32()?, close_ns: fields.i64()? },
        3 => LogRecord::Prepared {
            statement: fields.u32()?,
            connection: fields.u32()?,
            parameters: fields.u32()?,
            sql: fields.text()?,
        },
        4 => LogRecord::Bound { statement: fields.u32()?, bindings: bindings(&mut fields)? },
        5 => LogRecord::Executed(LoggedExecution {
            statement: fields.u32()?,
            flags: fields.u32()?,
            tid: fields.i32()?,
            result: fields.i32()?,
            begin_ns: fields.i64()?,
            end_ns: fields.i64()?,
            inside_ns: fields.i64()?,
            committed_ns: fields.i64().map(|ns| (ns > 0).then_some(ns))?,
            rows: fields.i64()?,
            changes: fields.i32()?,
            bindings: bindings(&mut fields)?,
        }),
        6 => LogRecord::Finalized { statement: fields.u32()? },
        7 => LogRecord::Withdrawn { statement: fields.u32()? },
        8 => LogRecord::Attached {
            connection: fields.u32()?,
            attached_ns: fields.i64()?,
            size_bytes: fields.i64().map(size)?,
            name: fields.text()?,
            path: fields.text()?,
        },
        _ => return None,
    })
}

/// The flag of a value of which only the length is there.
const WITHOUT_CONTENTS: u32 = 256;

/// A bound value; none of its contents where only shapes are recorded.
#[derive(Debug, Clone, PartialEq)]
pub enum LoggedValue {
    Null,
    Integer { value: Option<i64>, length_bytes: u64 },
    Real(Option<f64>),
    Text { text: Option<Vec<u8>>, length_bytes: u64 },
    Blob { blob: Option<Vec<u8>>, length_bytes: u64 },
    ZeroBlob { length_bytes: u64 },
    Pointer,
}

/// A change of a statement's parameters.
#[derive(Debug, Clone, PartialEq)]
pub enum Binding {
    Bound { parameter: u32, value: LoggedValue },
    Cleared,
}

/// Their length in bytes, and the values.
pub fn bindings(fields: &mut LogFields) -> Option<Vec<Binding>> {
    let length = fields.u32()? as usize;
    let mut values = LogFields(fields.split_off(length)?);
    let mut bindings = Vec::new();
    while !values.0.is_empty() {
        bindings.push(binding(&mut values)?);
    }
    Some(bindings)
}

fn binding(fields: &mut LogFields) -> Option<Binding> {
    let (parameter, kind, length_bytes) = (fields.u32()?, fields.u32()?, fields.u64()?);
    let has_contents = kind & WITHOUT_CONTENTS == 0;
    let mut contents = || {
        let length = if has_contents { usize::try_from(length_bytes).ok()? } else { 0 };
        fields.split_off(length)
    };
    let value = match kind & !WITHOUT_CONTENTS {
        1 if has_contents => {
            let value = i64::from_ne_bytes(contents()?.try_into().ok()?);
            LoggedValue::Integer { value: Some(value), length_bytes: stored_bytes(value) }
        }
        1 => LoggedValue::Integer { value: None, length_bytes },
        2 if has_contents => {
            LoggedValue::Real(Some(f64::from_ne_bytes(contents()?.try_into().ok()?)))
        }
        2 => LoggedValue::Real(None),
        3 => {
            let text = contents()?.to_vec();
            LoggedValue::Text { text: has_contents.then_some(text), length_bytes }
        }
        4 => {
            let blob = contents()?.to_vec();
            LoggedValue::Blob { blob: has_contents.then_some(blob), length_bytes }
        }
        5 => LoggedValue::Null,
        6 => LoggedValue::ZeroBlob { length_bytes },
        kind @ (7 | 8) if has_contents => {
            let text = utf8_of(contents()?, kind == 8);
            LoggedValue::Text { length_bytes: text.len() as u64, text: Some(text) }
        }
        // Its characters are not known: at least half its bytes.
        7 | 8 => LoggedValue::Text { text: None, length_bytes: length_bytes / 2 },
        9 => LoggedValue::Pointer,
        10 => return Some(Binding::Cleared),
        _ => return None,
    };
    Some(Binding::Bound { parameter, value })
}

/// UTF-16 as SQLite stores it in a database of UTF-8; a byte order mark says the order and goes.
fn utf8_of(bytes: &[u8], is_big_endian: bool) -> Vec<u8> {
    let (bytes, is_big_endian) = match bytes {
        [0xfe, 0xff, rest @ ..] => (rest, true),
        [0xff, 0xfe, rest @ ..] => (rest, false),
        _ => (bytes, is_big_endian),
    };
    let unit = |pair: &[u8]| match is_big_endian {
        true => u16::from_be_bytes([pair[0], pair[1]]),
        false => u16::from_le_bytes([pair[0], pair[1]]),
    };
    String::from_utf16_lossy(&bytes.chunks_exact(2).map(unit).collect::<Vec<_>>()).into_bytes()
}

/// Bytes of an integer in SQLite's record format (sqlite.org/fileformat2.html, section 2.1).
fn stored_bytes(value: i64) -> u64 {
    if matches!(value, 0 | 1) {
        return 0;
    }
    let fits = |bytes: &u64| (-(1_i64 << (8 * bytes - 1))..1 << (8 * bytes - 1)).contains(&value);
    [1, 2, 3, 4, 6].into_iter().find(fits).unwrap_or(8)
}

/// Bytes that are taken from the front.
pub struct LogFields<'a>(pub &'a [u8]);

impl<'a> LogFields<'a> {
    pub fn split_off(&mut self, length: usize) -> Option<&'a [u8]> {
        let (front, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(front)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.split_off(N)?.try_into().ok()
    }

    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_ne_bytes)
    }

    pub fn i32(&mut self) -> Option<i32> {
        self.array().map(i32::from_ne_bytes)
    }

    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_ne_bytes)
    }

    pub fn i64(&mut self) -> Option<i64> {
        self.array().map(i64::from_ne_bytes)
    }

    /// To the next zero, which goes too.
    pub fn text(&mut self) -> Option<Vec<u8>> {
        let length = self.0.iter().position(|byte| *byte == 0)?;
        let text = self.split_off(length + 1)?;
        Some(text[..length].to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn log_of(bytes: &[u8]) -> Result<Vec<LogRecord>, LogError> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        let mut log = ProcessLog::open(file.path())?;
        let mut records = Vec::new();
        while let Some(record) = log.next()? {
            records.push(record);
        }
        Ok(records)
    }

    fn head() -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(VERSION.to_ne_bytes());
        bytes.resize(PAGE as usize, 0);
        bytes
    }

    fn chunk(records: &[u8]) -> Vec<u8> {
        let mut bytes = PAGE.to_ne_bytes().to_vec();
        bytes.extend(records);
        bytes.resize(PAGE as usize, 0);
        bytes
    }

    #[test]
    fn a_log_ends_where_its_process_was_killed() {
        let mut records = Vec::new();
        for word in [16_u32, 6, 7, 0] {
            records.extend(word.to_ne_bytes());
        }
        let mut bytes = head();
        bytes.extend(chunk(&records));
        bytes.extend(chunk(&[]));
        bytes.extend([0; PAGE as usize]);
        assert_eq!(log_of(&bytes).unwrap(), [LogRecord::Finalized { statement: 7 }]);
        assert!(log_of(&head()[..100]).unwrap_err().to_string().contains("fill whole buffer"));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_to_their_end_or_refused(
            records in prop::collection::vec(any::<u8>(), 0..300),
            length in 0_u32..40,
            kind in 0_u32..10,
        ) {
            let mut bytes = head();
            let mut all = (length * 8).to_ne_bytes().to_vec();
            all.extend(kind.to_ne_bytes());
            all.extend(records);
            bytes.extend(chunk(&all));
            let _ = log_of(&bytes);
        }
    }

    #[test]
    fn text_of_two_bytes_a_character_becomes_utf8() {
        assert_eq!(utf8_of(&[0xe9, 0, 0, 0], false), "\u{e9}\0".as_bytes());
        assert_eq!(utf8_of(&[0xfe, 0xff, 0, 0xe9], false), "\u{e9}".as_bytes());
        assert_eq!([stored_bytes(1), stored_bytes(-128), stored_bytes(i64::MIN)], [0, 1, 8]);
    }
}
