//! A disk under test, as one thing whatever its driver: its node, its number, its queue, and what
//! it counts. A modelled one counts for itself; of any other the block layer and the interrupts of
//! its adapter are read.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CString;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io, thread};

use super::counters;
use super::kernel_log::KernelLog;
use crate::device::flash::{FlashRecordError, RecordCommand};
use crate::device::{flash, sysfs};

/// A driver may look for its disk in the background; devtmpfs makes the node when it is found.
const NODE_ATTEMPTS: u32 = 10_000;
const NODE_PAUSE: Duration = Duration::from_millis(1);

/// The reason why a disk cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    #[error("{node} did not appear: is its driver in, and devtmpfs mounted on /dev?")]
    NoNode { node: PathBuf },
    #[error("{0:?} is no name of a disk")]
    Name(String),
    #[error("cannot look at {node}: {source}")]
    Node { node: PathBuf, source: io::Error },
    #[error("cannot read or write the queue setting {path}: {source}")]
    Setting { path: PathBuf, source: io::Error },
    #[error("cannot read the statistics of {node}: {source}")]
    Statistics { node: PathBuf, source: io::Error },
    #[error(transparent)]
    Flash(#[from] flash::FlashError),
    #[error(transparent)]
    Record(#[from] FlashRecordError),
}

/// The counter of a disk's requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Witness {
    /// The modelled device itself.
    Model,
    /// Modelled raw NAND, which is no block device.
    RawNand,
    /// The block layer; and the lines of its adapter in /proc/interrupts.
    BlockLayer(BTreeSet<u32>),
}

/// One of them.
#[derive(Debug)]
pub struct Disk {
    name: String,
    node: PathBuf,
    /// Its folder in /sys.
    folder: PathBuf,
    witness: Witness,
}

impl Disk {
    /// A disk of any driver, such as nvme0n1; waits for it.
    ///
    /// # Errors
    /// If it does not appear.
    pub fn find(name: &str) -> Result<Self, DiskError> {
        // A name in /sys/block has an exclamation mark where the node has a folder.
        if name.is_empty() || name.contains(['/', '!', '.']) {
            return Err(DiskError::Name(name.to_owned()));
        }
        let mut disk = Self::wait_for(name.to_owned(), Witness::Model)?;
        disk.witness = Witness::BlockLayer(counters::interrupt_lines(&disk.folder));
        Ok(disk)
    }

    /// The modelled raw NAND; its node has the record of its operations, and is no block device.
    ///
    /// # Errors
    /// If its module is not in.
    pub fn raw_nand() -> Result<Self, DiskError> {
        let name = "nand0".to_owned();
        let (node, folder) = (Path::new("/dev").join(&name), Path::new("/sys/class/misc"));
        wait_for_node(&node)?;
        Ok(Self { folder: folder.join(&name), name, node, witness: Witness::RawNand })
    }

    /// It has requests, a queue and a number of a block device.
    pub fn is_block(&self) -> bool {
        self.witness != Witness::RawNand
    }

    /// The disk of this name, as soon as its node is there.
    pub(super) fn wait_for(name: String, witness: Witness) -> Result<Self, DiskError> {
        let (node, folder) = (Path::new("/dev").join(&name), Path::new("/sys/block").join(&name));
        wait_for_node(&node)?;
        Ok(Self { name, node, folder, witness })
    }

    /// Its name in the kernel.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its node.
    pub fn node(&self) -> &Path {
        &self.node
    }

    /// Its folder in /sys.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Return the witness that counts its requests.
    pub fn witness(&self) -> &Witness {
        &self.witness
    }

    /// Its number, as the kernel has it.
    ///
    /// # Errors
    /// If the node is gone.
    pub fn number(&self) -> Result<u32, DiskError> {
        let metadata = fs::metadata(&self.node)
            .map_err(|source| DiskError::Node { node: self.node.clone(), source })?;
        Ok(sysfs::device_number(metadata.rdev()))
    }

    /// A setting of its queue, as the kernel has it in force
    /// (Documentation/ABI/stable/sysfs-block).
    ///
    /// # Errors
    /// With the file's name, if the kernel has no such setting.
    pub fn queue_setting(&self, name: &str) -> Result<String, DiskError> {
        let path = self.folder.join("queue").join(name);
        let text =
            fs::read_to_string(&path).map_err(|source| DiskError::Setting { path, source })?;
        Ok(text.trim_end().to_owned())
    }

    /// Lets nobody discard it from now on: an SD card reads as ones where it was erased, and an
    /// image of it would be as large as the card.
    ///
    /// # Errors
    /// If the kernel has no such setting.
    pub fn forbid_discards(&self) -> Result<(), DiskError> {
        let path = self.folder.join("queue/discard_max_bytes");
        fs::write(&path, "0").map_err(|source| DiskError::Setting { path, source })
    }

    /// Gives a modelled device the past its parameters ask for; any other has its own.
    ///
    /// # Errors
    /// If requests are under way.
    pub fn age(&self) -> Result<(), DiskError> {
        match self.witness {
            Witness::Model => Ok(flash::age(&self.folder)?),
            Witness::RawNand | Witness::BlockLayer(_) => Ok(()),
        }
    }

    /// Its size (Documentation/ABI/stable/sysfs-block, size: in sectors of 512 bytes).
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn size_bytes(&self) -> Result<u64, DiskError> {
        let path = self.folder.join("size");
        let text = fs::read_to_string(&path)
            .map_err(|source| DiskError::Setting { path: path.clone(), source })?;
        let sectors: u64 = text.trim().parse().map_err(|_| DiskError::Setting {
            path,
            source: io::Error::from(io::ErrorKind::InvalidData),
        })?;
        Ok(sectors * 512)
    }

    /// Has a modelled device record what is written to it, at the cost of a page, and of the copy
    /// of one, for each slot of a write.
    ///
    /// # Errors
    /// If it is not of this version.
    pub fn begin_record(&self) -> Result<(), DiskError> {
        self.tell_record(RecordCommand::Begin(0))
    }

    /// Ends that record.
    ///
    /// # Errors
    /// If it is not of this version.
    pub fn end_record(&self) -> Result<(), DiskError> {
        self.tell_record(RecordCommand::End)
    }

    fn tell_record(&self, command: RecordCommand) -> Result<(), DiskError> {
        match self.witness {
            Witness::Model | Witness::RawNand => Ok(flash::write_command(&self.folder, command)?),
            Witness::BlockLayer(_) => Ok(()),
        }
    }

    /// Return its counters, and `in_flight`, the requests under way.
    ///
    /// # Errors
    /// If its witness does not tell.
    pub fn statistics(&self) -> Result<BTreeMap<String, i64>, DiskError> {
        let unreadable = |source| DiskError::Statistics { node: self.node.clone(), source };
        match &self.witness {
            Witness::Model | Witness::RawNand => Ok(flash::statistics(&self.folder)?),
            Witness::BlockLayer(lines) => {
                let mut counted = counters::read_iostats(&self.folder).map_err(unreadable)?;
                let came = counters::count_interrupts(lines).map_err(unreadable)?;
                counted.insert("interrupts".to_owned(), came);
                Ok(counted)
            }
        }
    }
}

/// Returns as soon as the node is there.
pub(super) fn wait_for_node(node: &Path) -> Result<(), DiskError> {
    for _ in 0..NODE_ATTEMPTS {
        if node.exists() {
            return Ok(());
        }
        thread::sleep(NODE_PAUSE);
    }
    Err(DiskError::NoNode { node: node.to_owned() })
}

// The modules flash.ko and raw_nand.ko of the guest: inserts them with the parameters of device
// profiles, which makes the disks /dev/flash0, /dev/flash1 ..., or raw NAND.

/// Their names in /proc/modules.
pub const MODULES: [&str; 2] = ["flash", "raw_nand"];

/// The reason why the module makes no disks.
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
pub fn insert_flash_module(
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
/// As `insert_flash_module`.
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

/// Return the module's lines in the log, which may not be readable: then errors only say less.
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
    fn a_name_that_leaves_the_folder_of_devices_is_refused() {
        for name in ["", "../sda", "mapper/x", "cciss!c0d0", "."] {
            assert!(matches!(Disk::find(name), Err(DiskError::Name(_))), "{name}");
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
    fn a_module_that_is_not_there_is_named() {
        let error =
            insert_flash_module(Path::new("/nowhere/flash.ko"), &[&BTreeMap::new()], "direct");
        let text = error.expect_err("no such file").to_string();
        assert!(text.contains("/nowhere/flash.ko"), "{text}");
    }
}
