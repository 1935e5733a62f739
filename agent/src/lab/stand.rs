//! A filesystem on the disks of a guest: inserts or finds the disks, makes the filesystem, mounts
//! it, ages the disks. Cases, self-tests and power cuts all stand on one.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use serde_json::{Value, json};

use crate::device::disk;
use crate::device::disk::Disk;
use crate::errors::WrongUse;
use crate::filesystem::mount::{MountedFilesystem, drop_caches};
use crate::filesystem::{FilesystemError, tools};

use crate::raw_nand::ubi;
use crate::record::{Allocator, Case, Completion, DeviceModel, Filesystem};
use crate::workload;
use crate::workload::kind::Workload;

/// The mount point of the filesystem.
pub const MOUNT_POINT: &str = "/mnt/flash";

/// Longest wait before the measured part: two periods of the kernel's timer tick (CONFIG_HZ=250).
/// A seed so meets another phase of tick and timers: deterministic is not free of noise.
const START_DELAY_NS: u64 = 8_000_000;

/// Settings of a disk's queue that the manifest has.
const QUEUE: [&str; 5] = ["write_cache", "fua", "scheduler", "nr_requests", "max_sectors_kb"];

/// Disks, and the filesystem that they are for.
pub struct Stand<'a> {
    /// As they count; that of the journal last, where it has one.
    pub disks: Vec<Disk>,
    /// Holds what the filesystem is made on: a disk, a part of one, or several.
    pub device: PathBuf,
    pub journal: Option<PathBuf>,
    pub filesystem: Filesystem,
    pub mkfs_options: &'a str,
    pub mount_options: &'a str,
    /// Allocators of the buffers of UBI and of UBIFS, where the case chooses them.
    pub allocators: Option<(Allocator, Allocator)>,
}

/// A workload that can begin: its filesystem is mounted, and the disks are at rest soon.
pub struct PreparedWorkload {
    pub mounted: MountedFilesystem,
    pub workload: Box<dyn Workload>,
    /// Holds what is in force, as the manifest has it.
    pub configuration: Value,
}

impl<'a> Stand<'a> {
    /// Finds the disk of a case, or inserts the modelled ones.
    ///
    /// # Errors
    /// If there is none, or the kernel refuses it.
    pub fn for_case(case: &'a Case, flash_module: &Path) -> anyhow::Result<Self> {
        let settings = &case.case;
        let disks = match &case.disk {
            Some(name) => vec![Disk::find(name)?],
            None if settings.filesystem.is_on_raw_nand() => {
                let model = case.device_model.as_ref();
                vec![insert_raw_nand(flash_module, model)?]
            }
            None => {
                let models: Vec<_> = case.device_model.iter().chain(&case.journal_model).collect();
                insert(flash_module, &models, settings.completion)?
            }
        };
        Ok(Self {
            device: device_of(settings.filesystem, &disks[0]),
            journal: disks.get(1).map(|disk| disk.node().to_owned()),
            disks,
            filesystem: settings.filesystem,
            mkfs_options: &settings.mkfs_options,
            mount_options: &settings.mount_options,
            allocators: settings.ubi_allocator.zip(settings.ubifs_allocator),
        })
    }

    /// Makes the filesystem, and mounts it; `begin` hears the step that comes next.
    ///
    /// # Errors
    /// If its mkfs or the kernel refuses.
    pub fn make(&self, begin: &mut dyn FnMut(&str)) -> anyhow::Result<MountedFilesystem> {
        begin("make");
        if let Some((ubi, ubifs)) = self.allocators {
            ubi::choose_allocator("ubi", ubi)?;
            ubi::choose_allocator("ubifs", ubifs)?;
        }
        if self.filesystem.is_on_raw_nand() {
            ubi::make_volume(&self.disks[0])?;
        }
        let journal = self.journal.as_deref();
        tools::make(self.filesystem, &self.device, journal, self.mkfs_options)?;
        begin("mount");
        Ok(self.mount()?)
    }

    /// The disk, if it is raw NAND.
    pub fn raw_nand(&self) -> Option<&Disk> {
        self.disks.first().filter(|disk| !disk.is_block())
    }

    /// Has raw NAND used by UBI, once the power is back; other disks are there by themselves.
    ///
    /// # Errors
    /// If UBI cannot use what is on it.
    pub fn attach(&self) -> anyhow::Result<()> {
        self.raw_nand().map_or(Ok(()), |_| ubi::attach())
    }

    /// Lets the disks go, whose filesystem is not mounted, so that they can be put into a state.
    ///
    /// # Errors
    /// If UBI does not let raw NAND go.
    pub fn detach(&self) -> anyhow::Result<()> {
        self.raw_nand().map_or(Ok(()), |_| ubi::detach())
    }

    /// Mounts the filesystem that is there.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn mount(&self) -> Result<MountedFilesystem, FilesystemError> {
        self.mount_at(Path::new(MOUNT_POINT), self.mount_options)
    }

    /// Mounts it elsewhere, and only to be read.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn mount_read_only(&self, place: &Path) -> Result<MountedFilesystem, FilesystemError> {
        self.mount_at(place, &format!("{},ro", self.mount_options))
    }

    fn mount_at(&self, place: &Path, options: &str) -> Result<MountedFilesystem, FilesystemError> {
        let journal = self.journal.as_deref();
        MountedFilesystem::new(self.filesystem, &self.device, journal, place, options)
    }

    /// Makes the filesystem and in it what the workload of `case` starts from. Everything is on the
    /// disks then, these have their past and record what is written, the caches are as the workload
    /// needs them, and the seed's delay is over. `begin` hears the step that comes next.
    ///
    /// # Errors
    /// If a step fails, or a setting is refused.
    pub fn prepare(
        &self,
        case: &Case,
        begin: &mut dyn FnMut(&str),
    ) -> anyhow::Result<PreparedWorkload> {
        let request = workload::read(&case.case.workload)?;
        let mounted = self.make(begin)?;
        begin("prepare");
        let workload = request.prepare(mounted.directory(), case.seed)?;
        let mut configuration = workload.configuration()?;
        configuration["mount"] = mounted.line()?.into();
        if let Some((ubi, ubifs)) = self.allocators {
            configuration["buffers"] = json!(ubi::read_buffers(ubi, ubifs)?);
        }
        if let Some(nand) = self.raw_nand() {
            configuration["nand_before"] = json!(nand.statistics()?);
        }
        for (disk, place) in self.disks.iter().zip(["queue", "journal_queue"]) {
            if !disk.is_block() {
                continue; // it has no queue
            }
            for setting in QUEUE {
                configuration[place][setting] = disk.queue_setting(setting)?.into();
            }
        }
        mounted.sync()?;
        self.disks.iter().try_for_each(Disk::age)?; // after mkfs, which discards the disk
        if workload.needs_cold_cache() {
            drop_caches()?;
        }
        // Before the delay: it waits for the queue to be free, which ends with a tick of the
        // kernel, so that after it every seed would begin in the same phase of the tick.
        self.disks.iter().try_for_each(Disk::begin_record)?;
        let delay_ns = ChaCha8Rng::seed_from_u64(!case.seed).next_u64() % START_DELAY_NS;
        std::thread::sleep(Duration::from_nanos(delay_ns));
        Ok(PreparedWorkload { mounted, workload, configuration })
    }
}

/// Return what a filesystem is made on and mounted from.
fn device_of(filesystem: Filesystem, disk: &Disk) -> PathBuf {
    if filesystem.is_on_raw_nand() { ubi::VOLUME.into() } else { disk.node().to_owned() }
}

/// Inserts modelled raw NAND.
///
/// # Errors
/// If there is no model of it, or the kernel refuses it.
pub fn insert_raw_nand(flash_module: &Path, model: Option<&DeviceModel>) -> anyhow::Result<Disk> {
    let wrong = || WrongUse("the job: ubifs needs the device_model of raw NAND".to_owned());
    let model = model.filter(|model| model.contains_key("page_bytes")).ok_or_else(wrong)?;
    Ok(disk::insert_raw_nand(flash_module, model)?)
}

/// Inserts modelled disks, one for each model.
///
/// # Errors
/// If there are none, or the kernel refuses one.
pub fn insert(
    flash_module: &Path,
    models: &[&DeviceModel],
    completion: Completion,
) -> anyhow::Result<Vec<Disk>> {
    if models.is_empty() {
        return Err(WrongUse("the job: neither disk nor device_model".to_owned()).into());
    }
    Ok(disk::insert_flash_module(flash_module, models, completion.word())?)
}
