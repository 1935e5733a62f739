//! The flash device of the guest: inserts the module flash.ko with the parameters of a device
//! profile, which makes the disk /dev/flash0; reads its statistics.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rustix::fs::OFlags;

use super::number;

const NODE: &str = "/dev/flash0";
const STATISTICS: &str = "/sys/block/flash0/flash_statistics";
const AGE: &str = "/sys/block/flash0/flash_age";
const QUEUE: &str = "/sys/block/flash0/queue";
const KERNEL_LOG: &str = "/dev/kmsg";

/// devtmpfs makes the node before the module's insertion returns; udev may still rename or chmod.
const NODE_ATTEMPTS: u32 = 1000;
const NODE_PAUSE: Duration = Duration::from_millis(1);

/// Why the flash device cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FlashError {
    #[error("cannot open the flash module {path}: {source}")]
    Open { path: PathBuf, source: io::Error },
    #[error("the kernel refuses the flash module {path} with \"{parameters}\": {source}{messages}")]
    Refused { path: PathBuf, parameters: String, source: io::Error, messages: String },
    #[error("the flash module is in, but {NODE} did not appear: is devtmpfs mounted on /dev?")]
    NoNode,
    #[error("cannot look at {NODE}: {source}")]
    Node { source: io::Error },
    #[error("cannot read the queue setting {path}: {source}")]
    Setting { path: PathBuf, source: io::Error },
    #[error("cannot age the flash device by {AGE}: {source}")]
    Ageing { source: io::Error },
    #[error("cannot read the flash statistics {STATISTICS}: {source}")]
    Unreadable { source: io::Error },
    #[error("flash statistics {STATISTICS}, line {line}: \"{text}\" is not \"name value\"")]
    Malformed { line: usize, text: String },
    #[error("flash statistics {STATISTICS} have no {name}: flash.ko is not of this version")]
    Missing { name: &'static str },
}

/// The flash device, while its module is in the kernel.
pub struct Flash(());

impl Flash {
    /// Inserts the module file and waits for the disk. The parameters are the profile's `[model]`;
    /// what the kernel said about a wrong one is in the error.
    ///
    /// # Errors
    /// If the module is missing, the kernel refuses it, or its disk does not appear.
    pub fn insert(module: &Path, parameters: &BTreeMap<String, i64>) -> Result<Flash, FlashError> {
        let file = File::open(module)
            .map_err(|source| FlashError::Open { path: module.to_owned(), source })?;
        let parameters = parameter_line(parameters);
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
        for _ in 0..NODE_ATTEMPTS {
            if Path::new(NODE).exists() {
                return Ok(Flash(()));
            }
            thread::sleep(NODE_PAUSE);
        }
        Err(FlashError::NoNode)
    }

    /// The disk's node.
    pub fn node(&self) -> &'static Path {
        Path::new(NODE)
    }

    /// The disk's number, as the kernel has it.
    ///
    /// # Errors
    /// If the node is gone.
    pub fn disk(&self) -> Result<u32, FlashError> {
        let metadata = fs::metadata(NODE).map_err(|source| FlashError::Node { source })?;
        Ok(number::of_node(metadata.rdev()))
    }

    /// A setting of the disk's queue, as the kernel has it in force
    /// (Documentation/ABI/stable/sysfs-block).
    ///
    /// # Errors
    /// With the file's name, if the kernel has no such setting.
    pub fn queue_setting(&self, name: &str) -> Result<String, FlashError> {
        let path = Path::new(QUEUE).join(name);
        let text =
            fs::read_to_string(&path).map_err(|source| FlashError::Setting { path, source })?;
        Ok(text.trim_end().to_owned())
    }

    /// Gives the device the past its parameters ask for: filled and overwritten, beside what the
    /// host has written. The disk must be at rest.
    ///
    /// # Errors
    /// If requests are under way.
    pub fn age(&self) -> Result<(), FlashError> {
        fs::write(AGE, "1").map_err(|source| FlashError::Ageing { source })
    }

    /// What the device counted, all of one instant; the names are in kernel/flash/model/.
    ///
    /// # Errors
    /// With the line, if the file is not as this version of the module writes it.
    pub fn statistics(&self) -> Result<BTreeMap<String, i64>, FlashError> {
        let text =
            fs::read_to_string(STATISTICS).map_err(|source| FlashError::Unreadable { source })?;
        parse_statistics(&text)
    }
}

fn parameter_line(parameters: &BTreeMap<String, i64>) -> String {
    let words: Vec<String> =
        parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
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
        let parameters = [("queue_depth", 1), ("capacity_bytes", 2_147_483_648)];
        let parameters = parameters.map(|(name, value)| (name.to_owned(), value));
        let line = parameter_line(&BTreeMap::from(parameters));
        assert_eq!(line, "capacity_bytes=2147483648 queue_depth=1");
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
        let error = Flash::insert(Path::new("/nowhere/flash.ko"), &BTreeMap::new());
        let text = error.err().expect("no such file").to_string();
        assert!(text.contains("/nowhere/flash.ko"), "{text}");
    }
}
