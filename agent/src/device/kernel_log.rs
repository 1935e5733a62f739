//! The kernel's log from a moment on: reads /dev/kmsg (Documentation/ABI/testing/dev-kmsg).

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;

use rustix::fs::OFlags;
use rustix::io::Errno;

const PATH: &str = "/dev/kmsg";

/// Priorities of errors, and of what is worse, are this at most (include/linux/kern_levels.h).
const ERROR: u8 = 3;

/// The part of the log that is written from now on.
#[derive(Debug)]
pub struct KernelLog(File);

/// A line of it.
#[derive(Debug, PartialEq, Eq)]
pub struct LogLine {
    priority: u8,
    pub text: String,
}

impl KernelLog {
    /// The log from now on.
    ///
    /// # Errors
    /// If it may not be read.
    pub fn from_now() -> io::Result<Self> {
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        let mut file = File::options().read(true).custom_flags(flags).open(PATH)?;
        file.seek(SeekFrom::End(0))?;
        Ok(Self(file))
    }

    /// Return what was written since the last call. A read gives one record, and an error when
    /// there is no other; EPIPE says that the next ones were written over, and those after them can
    /// be read.
    pub fn lines(&mut self) -> Vec<LogLine> {
        let mut lines = Vec::new();
        let mut record = [0; 8192];
        loop {
            match self.0.read(&mut record) {
                Ok(length @ 1..) => {
                    lines.extend(LogLine::parse(&String::from_utf8_lossy(&record[..length])));
                }
                Err(error) if Errno::from_io_error(&error) == Some(Errno::PIPE) => {}
                _ => return lines,
            }
        }
    }
}

impl LogLine {
    /// Read a record "priority,sequence,time,flags;text"; the priority has the facility above it.
    fn parse(record: &str) -> Option<Self> {
        let (prefix, text) = record.split_once(';')?;
        let priority: u32 = prefix.split(',').next()?.parse().ok()?;
        let text = text.lines().next()?.to_owned();
        Some(Self { priority: (priority & 7) as u8, text })
    }

    /// Return whether the kernel calls it an error, or worse.
    pub fn is_error(&self) -> bool {
        self.priority <= ERROR
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_has_a_priority_and_a_line() {
        let line = LogLine::parse("11,339,5140900,-;flash: no timers\n SUBSYSTEM=acpi\n").unwrap();
        assert_eq!(line, LogLine { priority: 3, text: "flash: no timers".into() });
        assert!(line.is_error());
        assert!(
            !LogLine::parse("6,1,2,-;EXT4-fs (flash0): recovery complete\n").unwrap().is_error()
        );
        assert_eq!(LogLine::parse("no record"), None);
    }
}
