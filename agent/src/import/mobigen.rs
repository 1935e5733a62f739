//! MobiGen's scripts, the input of Mobibench's -g, as recordings: a line for each call, of fields
//! between blanks, `THREAD MICROSECONDS CALL ARGUMENTS`, in which the arguments are
//!
//!     open PATH FLAG|FLAG DESCRIPTOR         close|fsync|fdatasync|fstat DESCRIPTOR [RESULT]
//!     read|write DESCRIPTOR BYTES            pread|pwrite DESCRIPTOR OFFSET BYTES
//!     access|stat|lstat|unlink "PATH" [RESULT]
//!
//! A path without quotes, or with one of them, is that of a file that was open before the recording
//! began: MobiGen knew no more than where it was. In the recording a name of ours stands for each,
//! `/_opened-before/1` and on, so that what was written to it is not left out. Names of calls may
//! end in 64. A script has one descriptor table for all its threads; of most calls it tells neither
//! what they returned nor when they ended.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::book::{Book, Impossible};
use super::effects;
use super::traced_call::TracedCall;
use crate::errors::WrongUse;
use crate::recorder::calls::SystemCall;
use crate::recorder::words;
use crate::tables::rows::Word;

/// Bytes of a script: the parser has it whole in memory.
const MOST_SCRIPT_BYTES: u64 = 1 << 30;
/// Longest call that Linux makes of a read or write is 2 GiB less a page (read(2), NOTES); the
/// recorded ones were far shorter, and each thread has a buffer of that size.
const MOST_BYTES: i64 = 64 << 20;
/// End of the largest file that is replayed: that of ext4 (ext4(5), 16 TiB).
const MOST_OFFSET: u64 = 1 << 44;
/// 30 days: a replay waits for a call until its time, and so long a recording is a wrong number.
const MOST_TIME_US: u64 = 30 * 24 * 3600 * 1_000_000;
/// Each is a thread of the replay.
const MOST_THREADS: usize = 1000;
/// PATH_MAX.
const MOST_PATH_BYTES: usize = 4096;

/// The flags of open(2) that are replayed, by their bits.
const FLAGS: [(&str, i32); 15] = [
    ("O_RDONLY", libc::O_RDONLY),
    ("O_WRONLY", libc::O_WRONLY),
    ("O_RDWR", libc::O_RDWR),
    ("O_APPEND", libc::O_APPEND),
    ("O_CREAT", libc::O_CREAT),
    ("O_DIRECT", libc::O_DIRECT),
    ("O_DIRECTORY", libc::O_DIRECTORY),
    ("O_DSYNC", libc::O_DSYNC),
    ("O_EXCL", libc::O_EXCL),
    ("O_NOATIME", libc::O_NOATIME),
    ("O_RSYNC", libc::O_RSYNC),
    ("O_SYNC", libc::O_SYNC),
    ("O_TRUNC", libc::O_TRUNC),
    ("O_NOFOLLOW", libc::O_NOFOLLOW),
    ("O_NONBLOCK", libc::O_NONBLOCK),
];
/// Those that say nothing of what is done to the file.
const OTHER_FLAGS: [&str; 6] =
    ["O_LARGEFILE", "O_CLOEXEC", "O_NDELAY", "O_NOCTTY", "O_ASYNC", "O_ACCMODE"];

/// One line of a script.
#[derive(Debug)]
struct ScriptCall {
    line: usize,
    /// As the script numbers them.
    thread: u64,
    /// Since the recording began.
    time_us: u64,
    call: TracedCall,
}

/// A script that was read.
#[derive(Debug, Default)]
pub struct Script {
    calls: Vec<ScriptCall>,
    /// Lines, of which each has a call.
    pub lines: usize,
    /// As the script numbers them.
    threads: BTreeSet<u64>,
    /// Calls that are not imported, by their name: how many there were.
    pub unknown: BTreeMap<String, u64>,
    /// Files that were open before and got a name of ours.
    pub opened_before: u64,
}

/// A fault of a script.
#[derive(Debug, thiserror::Error)]
#[error("line {line}, {field}: {what}")]
pub struct ScriptError {
    line: usize,
    field: &'static str,
    what: String,
}

/// Reads a script into a book.
///
/// # Errors
/// If the file cannot be read, or is no script.
pub fn read(file: &Path, book: &mut Book) -> anyhow::Result<Script> {
    let cannot = |error: std::io::Error| WrongUse(format!("{}: {error}", file.display()));
    let found = std::fs::metadata(file).map_err(cannot)?;
    if !found.is_file() || found.len() > MOST_SCRIPT_BYTES {
        let message = format!("{}: no file of at most 1 GiB; name a script", file.display());
        return Err(WrongUse(message).into());
    }
    let text = std::fs::read(file).map_err(cannot)?;
    let located = |error: &dyn std::fmt::Display| {
        WrongUse(format!("{}: {error}; correct the line, or leave it out", file.display()))
    };
    let mut script = parse(&text).map_err(|error| located(&error))?;
    add_calls(&mut script, book).map_err(|(line, it)| located(&format!("line {line}: {it}")))?;
    Ok(script)
}

/// Moves the calls of a script into a book; on error returns the line that no program can have.
pub(super) fn add_calls(script: &mut Script, book: &mut Book) -> Result<(), (usize, Impossible)> {
    for ScriptCall { line, thread, time_us, mut call } in std::mem::take(&mut script.calls) {
        let is_open = call.row.flags.is_some();
        if is_open && call.path.is_none() && call.success().is_some() {
            script.opened_before += 1;
            let name = format!("/_opened-before/{}", script.opened_before);
            call.set_path(Some(name.as_bytes()));
        }
        let begun = book.begin(thread as i64, (time_us * 1000).cast_signed());
        effects::end_call(book, begun, call, None).map_err(|error| (line, error))?;
    }
    Ok(())
}

/// Parses a script.
///
/// # Errors
/// If a line is none of a script's: the error names the first one and its field.
pub(super) fn parse(text: &[u8]) -> Result<Script, ScriptError> {
    let mut script = Script::default();
    for (line, text) in (1..).zip(text.split(|byte| *byte == b'\n')) {
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        if text.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        script.lines += 1;
        let mut fields = CallFields { line, rest: text };
        let thread = fields.number("thread", 0, u64::from(u32::MAX))?;
        let time_us = fields.number("microseconds", 0, u64::MAX)?;
        if time_us > MOST_TIME_US {
            let what = format!(
                "{time_us} is more than 30 days after the beginning, and a replay would wait for \
                 so long; correct it, or leave the call out"
            );
            return Err(fields.error("microseconds", what));
        }
        if script.threads.insert(thread) && script.threads.len() > MOST_THREADS {
            let what = format!("{MOST_THREADS} threads are replayed at most");
            return Err(fields.error("thread", what));
        }
        let word = String::from_utf8_lossy(fields.next("call")?).into_owned();
        match fields.call(word.strip_suffix("64").unwrap_or(&word))? {
            Some(call) => script.calls.push(ScriptCall { line, thread, time_us, call }),
            None => *script.unknown.entry(word).or_default() += 1,
        }
    }
    Ok(script)
}

/// The rest of a line.
struct CallFields<'a> {
    line: usize,
    rest: &'a [u8],
}

impl<'a> CallFields<'a> {
    fn error(&self, field: &'static str, what: impl Into<String>) -> ScriptError {
        ScriptError { line: self.line, field, what: what.into() }
    }

    fn is_over(&mut self) -> bool {
        self.rest = self.rest.trim_ascii_start();
        self.rest.is_empty()
    }

    fn next(&mut self, field: &'static str) -> Result<&'a [u8], ScriptError> {
        if self.is_over() {
            return Err(self.error(field, "is missing"));
        }
        let end = self.rest.iter().position(u8::is_ascii_whitespace).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        Ok(word)
    }

    /// A whole number that a program could have given, which may be negative.
    fn integer(&mut self, field: &'static str) -> Result<i64, ScriptError> {
        let word = self.next(field)?;
        let number = std::str::from_utf8(word).ok().and_then(|word| word.parse().ok());
        number.ok_or_else(|| {
            self.error(field, format!("{:?} is no whole number", String::from_utf8_lossy(word)))
        })
    }

    fn number(&mut self, field: &'static str, least: u64, most: u64) -> Result<u64, ScriptError> {
        let number = self.integer(field)?;
        u64::try_from(number)
            .ok()
            .filter(|number| (least..=most).contains(number))
            .ok_or_else(|| self.error(field, format!("{number} is not {least} to {most}")))
    }

    /// A path between quotes, which may have blanks; none where there is another word.
    fn quoted_path(&mut self) -> Result<Option<&'a [u8]>, ScriptError> {
        if self.is_over() || self.rest[0] != b'"' {
            return Ok(None);
        }
        let inner = &self.rest[1..];
        // The quote that ends it stands before a blank or the line's end.
        let is_end = |at: &usize| {
            inner[*at] == b'"' && inner.get(at + 1).is_none_or(u8::is_ascii_whitespace)
        };
        let Some(end) = (0..inner.len()).find(is_end) else {
            return Err(self.error("path", "has no quote at its end"));
        };
        let path = &inner[..end];
        if path.len() >= MOST_PATH_BYTES || path.contains(&0) {
            return Err(self.error("path", "is longer than a path may be, or has a zero byte"));
        }
        self.rest = &inner[end + 1..];
        Ok(Some(path))
    }

    fn flags(&mut self) -> Result<i32, ScriptError> {
        let words = String::from_utf8_lossy(self.next("flags")?);
        let mut flags = 0;
        for word in words.split('|') {
            match FLAGS.iter().find(|(name, _)| *name == word) {
                Some((_, bits)) => flags |= bits,
                None if OTHER_FLAGS.contains(&word) => {}
                None => return Err(self.error("flags", format!("{word:?} is no flag of open(2)"))),
            }
        }
        Ok(flags)
    }

    /// Parses the arguments of a call; returns None if such calls are not imported.
    fn call(&mut self, name: &str) -> Result<Option<TracedCall>, ScriptError> {
        let recorded_name = match name {
            "pread" | "pwrite" => &format!("{name}64"),
            "open" | "close" | "read" | "write" | "fsync" | "fdatasync" | "fstat" | "stat"
            | "lstat" | "access" | "unlink" => name,
            _ => return Ok(None),
        };
        let call = SystemCall::find_name(recorded_name).expect("each of them is recorded");
        let mut call = TracedCall::new(call);
        let mut result = 0;
        // Why a call failed a script does not tell: the commonest reason stands for it.
        let mut error = "EIO";
        match name {
            "open" => {
                let path = self.quoted_path()?;
                if path.is_none() {
                    self.next("path")?;
                }
                let flags = self.flags()?;
                result = self.integer("descriptor")?;
                let makes_file = flags & libc::O_CREAT != 0;
                error = if path.is_some() && !makes_file { "ENOENT" } else { "EACCES" };
                (call.row.flags, call.row.mode) = (Some(flags.into()), Some(0o666));
                call.set_path(path);
            }
            "access" | "stat" | "lstat" | "unlink" => {
                let path = self.quoted_path()?;
                let path = path.ok_or_else(|| self.error("path", "is missing, or unquoted"))?;
                error = "ENOENT";
                call.set_path(Some(path));
            }
            _ => call.row.descriptor = Some(self.integer("descriptor")?),
        }
        if matches!(name, "pread" | "pwrite") {
            let offset = self.number("offset", 0, MOST_OFFSET)?;
            call.row.offset_bytes = Some(offset.cast_signed());
        }
        if matches!(name, "read" | "write" | "pread" | "pwrite") {
            // A failed call has its result in the place of its bytes.
            result = self.integer("bytes")?;
            if result > MOST_BYTES {
                return Err(self.error("bytes", format!("{result} is more than {MOST_BYTES}")));
            }
            call.row.length_bytes = Some(result.max(0));
        } else if name != "open" && !self.is_over() {
            result = self.integer("result")?.min(0);
        }
        if result < 0 {
            result = words::error_number(error).map_or(-1, |number| -i64::from(number));
            call.row.error = Some(Word::Borrowed(error));
        }
        call.row.result = Some(result);
        if !self.is_over() {
            let rest = String::from_utf8_lossy(self.rest).into_owned();
            return Err(self.error("line's end", format!("{rest:?} belongs to no argument")));
        }
        Ok(Some(call))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn call(line: &str) -> ScriptCall {
        let mut script = parse(line.as_bytes()).unwrap();
        assert_eq!(script.calls.len(), 1, "{line}");
        script.calls.pop().unwrap()
    }

    fn error(line: &str) -> String {
        parse(line.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn every_shape_of_a_line_is_read() {
        let open = call(r#"2 701422 open "/data/a b.db" O_RDWR|O_CREAT|O_LARGEFILE 89"#);
        assert_eq!((open.thread, open.time_us, open.line), (2, 701_422, 1));
        assert_eq!(open.call.path.unwrap(), b"/data/a b.db");
        let row = open.call.row;
        assert_eq!(
            (row.flags, row.mode),
            (Some((libc::O_RDWR | libc::O_CREAT).into()), Some(0o666))
        );
        assert_eq!(row.result, Some(89));
        // One that was open before: without quotes, or with one.
        for path in ["/data/data", "dev/fimg2d\"", "x.db\"/nil"] {
            let open = call(&format!("1 0 open {path} O_WRONLY|O_TRUNC -1")).call;
            assert_eq!((open.path, open.row.error), (None, Some("EACCES".into())));
        }
        let pwrite = call("16 5 pwrite64 53 4096 1024").call;
        assert_eq!((pwrite.system_call.name, pwrite.row.descriptor), ("pwrite64", Some(53)));
        assert_eq!(pwrite.row.offset_bytes, Some(4096));
        assert_eq!((pwrite.row.length_bytes, pwrite.row.result), (Some(1024), Some(1024)));
        assert_eq!(call("1 0 read 3 -1").call.row.error, Some("EIO".into()));
        let access = call(r#"1 0 access "/data/wal" -1"#).call;
        assert_eq!((access.system_call.name, access.row.error), ("access", Some("ENOENT".into())));
        assert_eq!(access.row.result, Some(-2));
        assert_eq!(call(r#"1 0 lstat64 "/x""#).call.row.result, Some(0));
        assert_eq!(call("1 0 fstat64 9 0").call.system_call.name, "fstat");
        assert_eq!(call("1 0 fsync 9 0\r\n\n  \n").call.row.result, Some(0));
    }

    #[test]
    fn calls_that_are_not_ours_are_counted() {
        let script = parse(b"1 0 ioctl 3 0x5401\n1 1 mmap2 whatever\n1 2 ioctl 4\n1 3 close 3\n");
        let script = script.unwrap();
        assert_eq!((script.lines, script.calls.len()), (4, 1));
        assert_eq!(script.unknown["ioctl"], 2);
        assert_eq!(script.unknown["mmap2"], 1);
        assert_eq!(script.calls[0].line, 4);
    }

    #[test]
    fn a_malformed_line_is_refused_by_line_and_field() {
        assert_eq!(error("1 0 close 3\nx 1 close 3"), r#"line 2, thread: "x" is no whole number"#);
        let cases = [
            ("-1 0 close 3", "thread: -1 is not 0 to"),
            ("1", "microseconds: is missing"),
            ("1 -7 close 3", "microseconds: -7 is not"),
            ("1 99999999999999999999 close 3", "microseconds: "),
            ("1 0", "call: is missing"),
            ("1 0 close", "descriptor: is missing"),
            ("1 0 open", "path: is missing"),
            (r#"1 0 open "/x O_RDONLY 3"#, "path: has no quote"),
            (r#"1 0 open "/x" O_RDONLY"#, "descriptor: is missing"),
            (r#"1 0 open "/x" O_RDONLY|O_MAGIC 3"#, r#"flags: "O_MAGIC" is no flag"#),
            ("1 0 unlink /x 0", "path: is missing, or unquoted"),
            ("1 0 write 3 1e3", r#"bytes: "1e3" is no whole number"#),
            ("1 0 write 3 67108865", "bytes: 67108865 is more than 67108864"),
            ("1 0 pread 3 -4096 10", "offset: -4096 is not 0 to"),
            ("1 0 pwrite 3 99999999999999 10", "offset: "),
            ("1 0 close 3 0 0", r#"line's end: "0" belongs to no argument"#),
        ];
        for (line, words) in cases {
            let found = error(line);
            assert!(found.starts_with("line 1, ") && found.contains(words), "{line}: {found}");
        }
        let long = format!("1 0 stat \"/{}\"", "x".repeat(5000));
        assert!(error(&long).contains("path: is longer"));
        let many: String = (0..=MOST_THREADS).map(|it| format!("{it} 0 close 3\n")).collect();
        assert!(error(&many).contains("1000 threads"));
    }

    fn any_line() -> impl Strategy<Value = String> {
        let word = prop_oneof![
            Just("open".to_owned()),
            Just("pwrite64".to_owned()),
            Just("close".to_owned()),
            Just("\"/a/../b\"".to_owned()),
            Just("\"".to_owned()),
            Just("O_RDWR|O_CREAT".to_owned()),
            any::<i64>().prop_map(|number| number.to_string()),
            (0..9_i64).prop_map(|number| number.to_string()),
            ".{0,6}",
        ];
        prop::collection::vec(word, 0..8).prop_map(|words| words.join(" "))
    }

    proptest! {
        #[test]
        fn bytes_at_random_are_a_script_or_an_error(bytes: Vec<u8>) {
            let _ = parse(&bytes);
        }

        #[test]
        fn words_at_random_are_a_script_or_an_error(
            lines in prop::collection::vec(any_line(), 0..9)
        ) {
            if let Ok(script) = parse(lines.join("\n").as_bytes()) {
                let known = script.calls.len() as u64 + script.unknown.values().sum::<u64>();
                prop_assert_eq!(known, script.lines as u64);
                for ScriptCall { call, .. } in &script.calls {
                    prop_assert!(call.row.length_bytes <= Some(MOST_BYTES));
                    prop_assert!(call.row.offset_bytes <= Some(MOST_OFFSET as i64));
                }
            }
        }
    }
}
