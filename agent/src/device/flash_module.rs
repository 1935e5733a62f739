//! The modules flash.ko and raw_nand.ko of the guest: inserts them with the parameters of device
//! profiles, which makes the disks /dev/flash0, /dev/flash1 ..., or raw NAND.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use super::disk::{Disk, DiskError, Witness};
use super::kernel_log::KernelLog;

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
    insert_file(module, format!("completion={completion} {}", parameter_line(models)))?;
    let disk = |index| Disk::wait_for(format!("flash{index}"), Witness::Model);
    Ok((0..models.len()).map(disk).collect::<Result<_, _>>()?)
}

/// Inserts the module of raw NAND beside `flash_module`, with the `[model]` of its profile.
///
/// # Errors
/// As `insert`.
pub fn insert_raw_nand(
    flash_module: &Path,
    model: &BTreeMap<String, i64>,
) -> Result<Disk, FlashModuleError> {
    insert_file(&flash_module.with_file_name("raw_nand.ko"), parameter_line(&[model]))?;
    Ok(Disk::raw_nand()?)
}

fn insert_file(module: &Path, parameters: String) -> Result<(), FlashModuleError> {
    let file = File::open(module)
        .map_err(|source| FlashModuleError::Open { path: module.to_owned(), source })?;
    let log = KernelLog::from_now();
    let inserted = CString::new(parameters.as_str())
        .map_err(io::Error::from)
        .and_then(|line| Ok(rustix::system::finit_module(&file, &line, 0)?));
    inserted.map_err(|source| FlashModuleError::Refused {
        path: module.to_owned(),
        parameters,
        source,
        messages: own_messages(log),
    })
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

/// What the module wrote to the log, which may not be readable: then errors only say less.
fn own_messages(log: io::Result<KernelLog>) -> String {
    let lines = log.map(|mut log| log.lines()).unwrap_or_default();
    let is_own = |text: &str| text.starts_with("flash: ") || text.starts_with("raw_nand: ");
    let own = lines.iter().filter(|line| is_own(&line.text));
    own.map(|line| format!("\n  {}", line.text)).collect()
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
    fn a_module_that_is_not_there_is_named() {
        let error = insert(Path::new("/nowhere/flash.ko"), &[&BTreeMap::new()], "direct");
        let text = error.expect_err("no such file").to_string();
        assert!(text.contains("/nowhere/flash.ko"), "{text}");
    }
}
