//! A writer whose cgroup may write so many bytes a second (io.max, Documentation/admin-guide/
//! cgroup-v2.rst; blkio.throttle.write_bps_device, cgroup-v1/blkio-controller.rst): a thread of the
//! kernel sends what was held back.

use std::ffi::CStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context;
use rustix::fs::IFlags;
use rustix::mount::MountFlags;

use super::device_node::{NO_NODE, node_of};
use super::log::{KnownFile, Log};
use super::mounts::elsewhere;
use super::side_writes::LeftOutReason;
use crate::device::sysfs;
use crate::workload::files::engine::AlignedBuffer;

const PAGE: usize = 4096;
const BYTES_A_SECOND: u64 = 4 << 20;
const DIRECT_BYTES: usize = 256 << 10;
/// A bio has at most 256 parts (BIO_MAX_VECS).
const SCATTERED_PAGES: usize = 300;

/// Writes past the page cache and through it, both held back.
pub fn write_throttled(directory: &Path, log: &mut Log) -> anyhow::Result<LeftOutReason> {
    let Some(node) = node_of(directory)? else { return Ok(Some(NO_NODE.to_owned())) };
    let disk = sysfs::number_text(sysfs::disk_number(sysfs::number_of_node(&node)?)?);
    let place = directory.join("cgroups");
    fs::create_dir(&place)?;
    elsewhere(|| {
        let group = match LimitedGroup::new(&place, &disk) {
            Ok(group) => group,
            Err(error) => return Ok(Some(format!("{error:#}"))),
        };
        let written =
            group.enter().context("entering the cgroup").and_then(|()| write(directory, log));
        let charged = group.charged_bytes(&disk);
        group.leave().context("leaving the cgroup")?;
        let written = written?;
        Ok((charged? < written).then(|| "the limit did not count what was written".to_owned()))
    })
}

/// Returns how many bytes were written to the device.
fn write(directory: &Path, log: &mut Log) -> anyhow::Result<u64> {
    let number = log.known.len() as u32;
    let mut known = create_direct(directory, "throttled", number)?;
    let mut buffer = AlignedBuffer::new(2 * SCATTERED_PAGES * PAGE);
    for offset in (0..4 * DIRECT_BYTES).step_by(DIRECT_BYTES) {
        known.write_direct(&mut buffer.bytes()[..DIRECT_BYTES], offset as u64)?;
    }
    known.sync()?;
    let mut scattered = create_direct(directory, "throttled-scattered", number + 1)?;
    scattered.is_placeless = true;
    scattered.write_scattered(buffer.bytes())?;
    scattered.sync()?;
    let mut buffered = KnownFile::create(directory, "throttled-buffered", number + 2, 0)?;
    for round in 0..3 {
        buffered.write_durably(round * 8 * PAGE as u64, 32 * PAGE)?;
    }
    // It has none: nilfs_direct_IO() leaves them to the page cache, and its own thread sends them.
    if rustix::fs::statfs(directory)?.f_type == libc::NILFS_SUPER_MAGIC {
        known.direct_writes.clear();
        scattered.direct_writes.clear();
    }
    log.known.extend([known, scattered, buffered]);
    Ok(4 * DIRECT_BYTES as u64)
}

fn create_direct(directory: &Path, name: &str, number: u32) -> anyhow::Result<KnownFile> {
    let known = KnownFile::create(directory, name, number, libc::O_DIRECT)?;
    // Btrfs writes what has checksums through the page cache, from Linux 6.15 on; others do not
    // know the flag.
    let _ = rustix::fs::ioctl_setflags(known.file(), IFlags::NOCOW);
    Ok(known)
}

/// A cgroup of our own, in the hierarchy that has the controller of block I/O.
struct LimitedGroup {
    folder: PathBuf,
    /// The cgroup that this process was in before.
    own: PathBuf,
    is_unified: bool,
    /// The file that lets the controller into cgroups below the first, where we changed it.
    enabled: Option<PathBuf>,
}

impl LimitedGroup {
    /// Makes it; `disk` is MAJOR:MINOR.
    ///
    /// # Errors
    /// If this machine cannot: why the step is left out.
    fn new(place: &Path, disk: &str) -> anyhow::Result<Self> {
        let memberships = fs::read_to_string("/proc/self/cgroup").context("no cgroups")?;
        let fields = memberships.lines().map(|line| line.splitn(3, ':').collect::<Vec<_>>());
        let fields: Vec<Vec<&str>> = fields.filter(|fields| fields.len() == 3).collect();
        let has_blkio = |fields: &&Vec<&str>| fields[1].split(',').any(|name| name == "blkio");
        let unified = || fields.iter().find(|fields| fields[0] == "0");
        let old = fields.iter().find(has_blkio);
        // The unified hierarchy is not named before it is mounted for the first time.
        let own = old.or_else(unified).map_or("", |fields| fields[2].trim_start_matches('/'));
        let (kind, data): (_, Option<&CStr>) =
            if old.is_some() { ("cgroup", Some(c"blkio")) } else { ("cgroup2", None) };
        rustix::mount::mount("none", place, kind, MountFlags::empty(), data).context(kind)?;
        let mut group = Self {
            folder: place.join(format!("joj-verify-{}", std::process::id())),
            own: place.join(own),
            is_unified: old.is_none(),
            enabled: None,
        };
        if group.is_unified {
            let has_io = |name: &str| -> anyhow::Result<bool> {
                let words =
                    fs::read_to_string(place.join(name)).with_context(|| name.to_owned())?;
                Ok(words.split_whitespace().any(|word| word == "io"))
            };
            anyhow::ensure!(has_io("cgroup.controllers")?, "no controller of block I/O");
            if !has_io("cgroup.subtree_control")? {
                let path = place.join("cgroup.subtree_control");
                fs::write(&path, "+io").context("cgroup.subtree_control")?;
                group.enabled = Some(path);
            }
        }
        fs::create_dir(&group.folder).context("a cgroup")?;
        let (file, limit) = match group.is_unified {
            true => ("io.max", format!("{disk} wbps={BYTES_A_SECOND}")),
            false => ("blkio.throttle.write_bps_device", format!("{disk} {BYTES_A_SECOND}")),
        };
        fs::write(group.folder.join(file), limit).context(file)?;
        Ok(group)
    }

    /// Moves this thread, or the process where the hierarchy knows no threads.
    fn enter(&self) -> io::Result<()> {
        fs::write(self.folder.join(self.members()), "0")
    }

    fn leave(&self) -> io::Result<()> {
        fs::write(self.own.join(self.members()), "0")
    }

    fn members(&self) -> &'static str {
        if self.is_unified { "cgroup.procs" } else { "tasks" }
    }

    /// Returns the bytes written to a disk that the limit was applied to.
    fn charged_bytes(&self, disk: &str) -> anyhow::Result<u64> {
        let file = if self.is_unified { "io.stat" } else { "blkio.throttle.io_service_bytes" };
        let text = fs::read_to_string(self.folder.join(file)).context(file)?;
        let of_disk = text.lines().filter_map(|line| line.strip_prefix(disk));
        // " rbytes=0 wbytes=4096 ...", or " Write 4096" in a line of its own.
        let mut words = of_disk.flat_map(|line| {
            line.split_whitespace()
                .filter_map(|word| word.strip_prefix("wbytes="))
                .chain(line.strip_prefix(" Write "))
        });
        words.next().map_or(Ok(0), |word| word.parse().context(file))
    }
}

impl Drop for LimitedGroup {
    fn drop(&mut self) {
        // It may not have come to be.
        let _ = fs::remove_dir(&self.folder);
        if let Some(path) = &self.enabled {
            let _ = fs::write(path, "-io");
        }
    }
}
