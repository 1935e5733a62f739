//! The module flash.ko of the guest: inserts it with the parameters of device profiles, which makes
//! the disks /dev/flash0, /dev/flash1 ...

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::disk::{Disk, DiskError, Witness};

const KERNEL_LOG: &str = "/dev/kmsg";

/// Why the module makes no disks.
#[derive(Debug, thiserror::Error)]
pub enum FlashModuleError {
    #[error("cannot open the flash module {path}: {source}")]
    Open { path: PathBuf, source: io::Error },
    #[error("the kernel refuses the flash module {path} with \"{parameters}\": {source}{messages}")]
    Refused { path: PathBuf, parameters: String, source: io::Error, messages: String },
    #[error(transparent)]
    Disk(#[from] DiskError),
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
) -> Result<Vec<Disk>, FlashModuleError> {
    let file = File::open(module)
        .map_err(|source| FlashModuleError::Open { path: module.to_owned(), source })?;
    let parameters = format!("completion={completion} {}", parameter_line(models));
    let mut log = kernel_log();
    let inserted = CString::new(parameters.as_str())
        .map_err(io::Error::from)
        .and_then(|line| Ok(rustix::system::finit_module(&file, &line, 0)?));
    inserted.map_err(|source| FlashModuleError::Refused {
        path: module.to_owned(),
        parameters,
        source,
        messages: log.as_mut().map(flash_messages).unwrap_or_default(),
    })?;
    let disk = |index| Disk::wait_for(format!("flash{index}"), Witness::Model);
    Ok((0..models.len()).map(disk).collect::<Result<_, _>>()?)
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

#[cfg(test)]
mod tests {
    use super::*;

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
