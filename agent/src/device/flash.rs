//! What a modelled flash disk offers by its files in /sys/block: reads its statistics; gives it a
//! past.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Why a modelled disk cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FlashError {
    #[error("cannot age the flash device by {path}: {source}")]
    Ageing { path: PathBuf, source: io::Error },
    #[error("cannot read the flash statistics {path}: {source}")]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("flash statistics, line {line}: \"{text}\" is not \"name value\"")]
    Malformed { line: usize, text: String },
    #[error("flash statistics have no {name}: flash.ko is not of this version")]
    Missing { name: &'static str },
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
