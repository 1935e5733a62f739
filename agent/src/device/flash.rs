//! The modelled flash devices of the guest: inserts the module flash.ko with the parameters of
//! device profiles, which makes the disks /dev/flash0, /dev/flash1 ...; reads their statistics.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CString;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::disk::{Disk, DiskError, Witness};

const KERNEL_LOG: &str = "/dev/kmsg";

/// Why the flash device cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FlashError {
    #[error("cannot open the flash module {path}: {source}")]
    Open { path: PathBuf, source: io::Error },
    #[error("the kernel refuses the flash module {path} with \"{parameters}\": {source}{messages}")]
    Refused { path: PathBuf, parameters: String, source: io::Error, messages: String },
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

/// Inserts the module file and waits for the disks. `models` are the `[model]` of the profiles, a
/// disk each, in whose order they are given; `completion` is how their driver waits. What the
/// kernel said about a wrong parameter is in the error.
///
/// # Errors
/// If the module is missing, the kernel refuses it, or a disk does not appear.
pub fn insert(
    module: &Path,
    models: &[&BTreeMap<String, i64>],
    completion: &str,
) -> Result<Vec<Disk>, DiskError> {
    let file = File::open(module)
        .map_err(|source| FlashError::Open { path: module.to_owned(), source })?;
    let parameters = format!("completion={completion} {}", parameter_line(models));
    let mut log = kernel_log();
    let inserted = CString::new(parameters.as_str())
        .map_err(io::Error::from)
        .and_then(|line| Ok(rustix::system::finit_module(&file, &line, 0)?));
    inserted.map_err(|source| FlashError::Refused {
        path: module.to_owned(),
        parameters,
        source,
        messages: log.as_mut().map(flash_messages).unwrap_or_default(),
    })?;
    let disk = |index| Disk::wait_for(format!("flash{index}"), Witness::Model);
    (0..models.len()).map(disk).collect()
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

/// A parameter has a value for each disk.
fn parameter_line(models: &[&BTreeMap<String, i64>]) -> String {
    let names: BTreeSet<&String> = models.iter().flat_map(|model| model.keys()).collect();
    let value = |name: &String| {
        let values = models.iter().map(|model| match model.get(name) {
            Some(value) => value.to_string(),
            None => String::new(), // which the module refuses by name
        });
        values.collect::<Vec<_>>().join(",")
    };
    let words: Vec<String> =
        names.into_iter().map(|name| format!("{name}={}", value(name))).collect();
    words.join(" ")
}

/// The kernel's log from now on. None where it may not be read: then errors only say less.
fn kernel_log() -> Option<File> {
    let mut log = File::options()
        .read(true)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(KERNEL_LOG)
        .ok()?;
    log.seek(SeekFrom::End(0)).ok()?;
    Some(log)
}

/// What the module wrote to the log. A read gives one record, and an error when there is no other.
fn flash_messages(log: &mut File) -> String {
    let mut messages = String::new();
    let mut record = [0; 8192];
    while let Ok(length @ 1..) = log.read(&mut record) {
        if let Some(message) = flash_message(&String::from_utf8_lossy(&record[..length])) {
            messages.push_str("\n  ");
            messages.push_str(message);
        }
    }
    messages
}

/// The text of a record "priority,sequence,time,flags;text" (Documentation/ABI/testing/dev-kmsg) if
/// the flash module wrote it.
fn flash_message(record: &str) -> Option<&str> {
    let (_, text) = record.split_once(';')?;
    text.lines().next().filter(|line| line.starts_with("flash: "))
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

    #[test]
    fn parameters_are_in_one_line() {
        let model = |depth| {
            let parameters = [("queue_depth", depth), ("capacity_bytes", 2_147_483_648)];
            BTreeMap::from(parameters.map(|(name, value)| (name.to_owned(), value)))
        };
        assert_eq!(parameter_line(&[&model(1)]), "capacity_bytes=2147483648 queue_depth=1");
        let two = parameter_line(&[&model(1), &model(32)]);
        assert_eq!(two, "capacity_bytes=2147483648,2147483648 queue_depth=1,32");
    }

    #[test]
    fn only_the_modules_messages_are_taken() {
        let record = "3,482,711555,-;flash: parameter program_ns is 0: must be 1 to 1000000000\n";
        let message = "flash: parameter program_ns is 0: must be 1 to 1000000000";
        assert_eq!(flash_message(record), Some(message));
        assert_eq!(flash_message("6,483,711600,-;EXT4-fs (flash0): mounted\n"), None);
        assert_eq!(flash_message("no record"), None);
    }

    #[test]
    fn a_module_that_is_not_there_is_named() {
        let error = insert(Path::new("/nowhere/flash.ko"), &[&BTreeMap::new()], "direct");
        let text = error.expect_err("no such file").to_string();
        assert!(text.contains("/nowhere/flash.ko"), "{text}");
    }
}
