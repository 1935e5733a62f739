//! What a modelled flash disk offers by its files in /sys/block: reads its statistics; gives it a
//! past, records what is written to it, and cuts its power.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::io::Errno;

/// Why a modelled disk cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FlashError {
    #[error("cannot age the flash device by {path}: {source}")]
    Ageing { path: PathBuf, source: io::Error },
    #[error("cannot let the flash device record what is written by {path}: {source}")]
    Record { path: PathBuf, source: io::Error },
    #[error("cannot cut the flash device's power by {path}: {source}")]
    PowerCut { path: PathBuf, source: io::Error },
    #[error("more was written than memory holds a record of")]
    RecordOverflown,
    #[error("cannot read the flash statistics {path}: {source}")]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("flash statistics, line {line}: \"{text}\" is not \"name value\"")]
    Malformed { line: usize, text: String },
    #[error("flash statistics have no {name}: flash.ko is not of this version")]
    Missing { name: &'static str },
}

/// Attempts at what can only be done with a device that nobody uses, and pauses between: 60 s.
pub const FREE_ATTEMPTS: u32 = 60_000;
pub const FREE_PAUSE: Duration = Duration::from_millis(1);

impl FlashError {
    /// Whether it is only that the device is in use.
    pub fn is_busy(&self) -> bool {
        match self {
            Self::PowerCut { source, .. } => source.kind() == io::ErrorKind::ResourceBusy,
            _ => false,
        }
    }
}

/// Gives the device with this folder the past its parameters ask for: filled and overwritten,
/// beside what the host has written.
///
/// # Errors
/// If it is not a modelled disk.
pub fn age(folder: &Path) -> Result<(), FlashError> {
    let path = folder.join("flash_age");
    fs::write(&path, "1").map_err(|source| FlashError::Ageing { path, source })
}

/// Begins or ends the record of what is written to the device with this folder.
///
/// # Errors
/// If memory does not hold the device's contents twice.
pub fn record(folder: &Path, on: bool) -> Result<(), FlashError> {
    let path = folder.join("flash_record");
    fs::write(&path, if on { "1" } else { "0" })
        .map_err(|source| FlashError::Record { path, source })
}

/// Puts the device with this folder into the state that a power cut at `cut_ns` would have left, a
/// moment of the record. `survivors` are none, some or all (kernel/flash/model/power_cut.h).
///
/// # Errors
/// If somebody has the device open, there is no record, or it is not whole as memory ran out.
pub fn cut_power(folder: &Path, cut_ns: i64, survivors: &str, seed: u64) -> Result<(), FlashError> {
    let path = folder.join("flash_power_cut");
    fs::write(&path, format!("{cut_ns} {survivors} {seed}")).map_err(|source| {
        match Errno::from_io_error(&source) {
            Some(Errno::OVERFLOW) => FlashError::RecordOverflown,
            _ => FlashError::PowerCut { path, source },
        }
    })
}

/// What the device with this folder counted, all of one instant; the names are in
/// kernel/flash/model/.
///
/// # Errors
/// With the line, if the file is not as this version of the module writes it.
pub fn statistics(folder: &Path) -> Result<BTreeMap<String, i64>, FlashError> {
    let path = folder.join("flash_statistics");
    let text =
        fs::read_to_string(&path).map_err(|source| FlashError::Unreadable { path, source })?;
    parse_statistics(&text)
}

fn parse_statistics(text: &str) -> Result<BTreeMap<String, i64>, FlashError> {
    let mut statistics = BTreeMap::new();
    for (index, line) in text.lines().enumerate() {
        let malformed = || FlashError::Malformed { line: index + 1, text: line.to_owned() };
        let (name, value) = line.split_once(' ').ok_or_else(malformed)?;
        let value = value.parse().map_err(|_| malformed())?;
        if name.is_empty() || statistics.insert(name.to_owned(), value).is_some() {
            return Err(malformed());
        }
    }
    in_flight(&statistics)?; // an empty or foreign file is not taken for an idle device
    Ok(statistics)
}

fn in_flight(statistics: &BTreeMap<String, i64>) -> Result<i64, FlashError> {
    const NAME: &str = "in_flight";
    statistics.get(NAME).copied().ok_or(FlashError::Missing { name: NAME })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_are_names_and_values() {
        let statistics = parse_statistics("read_requests 3\nbusy_ns 855774\nin_flight 0\n");
        let expected = [("busy_ns", 855_774), ("in_flight", 0), ("read_requests", 3)];
        let expected = expected.map(|(name, value)| (name.to_owned(), value));
        assert_eq!(statistics.expect("well-formed"), BTreeMap::from(expected));
    }

    #[test]
    fn a_malformed_line_is_named() {
        let cases = ["busy_ns", "busy_ns x", " 1", "busy_ns 1 2", "in_flight 0", ""];
        for line in cases {
            let error = parse_statistics(&format!("in_flight 0\n{line}\n")).unwrap_err();
            let text = error.to_string();
            assert!(text.contains("line 2") && text.contains(line), "{text}");
        }
    }

    #[test]
    fn a_number_beyond_i64_is_an_error_and_not_another_number() {
        let text = format!("busy_ns {}\nin_flight 0\n", u64::MAX);
        assert!(matches!(parse_statistics(&text), Err(FlashError::Malformed { line: 1, .. })));
    }

    #[test]
    fn statistics_without_in_flight_are_refused() {
        for text in ["", "busy_ns 1\n"] {
            assert!(matches!(parse_statistics(text), Err(FlashError::Missing { .. })));
        }
    }
}
