//! The known writes: every way that bytes get into a file, each sector stamped.

use std::fs::{self, File};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

use anyhow::{Context, ensure};
use rustix::fs::FallocateFlags;
use rustix::io::Errno;
use rustix::mm::{MapFlags, MsyncFlags, ProtFlags, mmap, mmap_anonymous, msync, munmap};

use super::asynchronous;
use super::device_node;
use super::log::{KnownFile, Log};
use super::mounts;
use super::sectors::{SectorVersions, record};
use super::side_writes::{self, LeftOutReason};
use super::throttled::write_throttled;
use crate::record::Switch;
use crate::sqlite::databases::Databases;
use crate::sqlite::options::SqliteOptions;
use crate::sqlite::pragmas::JournalMode;
use crate::sqlite::vfs;
use crate::sqlite::wal::Database;

const PAGE: usize = 4096;
const WRITERS: u32 = 8;
const ROUNDS: u64 = 10;
const MODES: [JournalMode; 6] = [
    JournalMode::Delete,
    JournalMode::Truncate,
    JournalMode::Persist,
    JournalMode::Memory,
    JournalMode::Wal,
    JournalMode::Off,
];
const ROWS: usize = 12;

/// Does all of it in `directory`, the root of a mounted filesystem, and tells what was written.
/// `pause` is called now and then.
///
/// # Errors
/// If a step fails.
pub fn run(directory: &Path, pause: &mut dyn FnMut() -> anyhow::Result<()>) -> anyhow::Result<Log> {
    let mut log = Log::default();
    let mut take = |name: &'static str,
                    step: &dyn Fn(&mut Log) -> anyhow::Result<LeftOutReason>| {
        let left_out = step(&mut log);
        log.note(name, left_out.with_context(|| format!("the self-test's step {name}"))?);
        pause()
    };
    // First: whatever is done to the node, all that comes later must be told as without it.
    let steps: [(&'static str, SideStep); 2] =
        [("node read", device_node::read), ("node discarded", device_node::discard)];
    for (name, step) in steps {
        take(name, &|log| step(directory, &mut log.recorded))?;
    }
    let mut steps: Vec<(&'static str, FileStep)> = vec![
        ("buffered", write_buffered),
        ("direct", write_direct),
        ("synchronous", write_synchronously),
        ("mapped", write_mapped),
        ("unlinked", unlink_while_open),
        ("renamed", rename_over_another),
        ("allocated", allocate),
        ("truncated", truncate),
        ("small", small),
        ("concurrent", concurrent),
        ("SQLite", sqlite_databases),
        // Before io_uring: Linux 5.10 moves no process into a cgroup while workers of its io_uring
        // share its context of I/O (blkcg_can_attach()).
        ("throttled", write_throttled),
        ("Linux AIO", asynchronous::linux_aio),
        ("io_uring", asynchronous::io_uring),
        ("bind mount", mounts::write_to_bind_mount),
        ("chroot", mounts::write_below_root),
        ("same path", mounts::write_at_same_path),
        // Its layers are on the filesystem; in a container no other process sees it.
        ("overlay", |directory, log| mounts::on_overlay(directory, "overlay", false, log)),
        ("container", |directory, log| mounts::on_overlay(directory, "container", true, log)),
    ];
    if mounts::has_subvolumes(directory)? {
        steps.push(("snapshot", mounts::snapshots));
    }
    for (name, step) in steps {
        take(name, &|log| step(directory, log))?;
    }
    let steps: [(&'static str, SideStep); 4] = [
        ("linked", side_writes::link),
        ("renamed through io_uring", side_writes::rename_through_io_uring),
        ("swapped", side_writes::swap_out),
        ("trimmed", side_writes::trim),
    ];
    for (name, step) in steps {
        take(name, &|log| step(directory, &mut log.recorded))?;
    }
    log.known.iter_mut().for_each(KnownFile::settle);
    Ok(log)
}

type SideStep = fn(&Path, &mut SectorVersions) -> anyhow::Result<LeftOutReason>;
type FileStep = fn(&Path, &mut Log) -> anyhow::Result<LeftOutReason>;

/// Makes a file, has it written to, and keeps what is known of it.
fn write_file(
    directory: &Path,
    (name, flags): (&str, i32),
    log: &mut Log,
    write: impl FnOnce(&mut KnownFile) -> anyhow::Result<()>,
) -> anyhow::Result<LeftOutReason> {
    let mut file = KnownFile::create(directory, name, log.known.len() as u32, flags)?;
    write(&mut file)?;
    log.known.push(file);
    Ok(None)
}

fn write_buffered(directory: &Path, log: &mut Log) -> anyhow::Result<LeftOutReason> {
    write_file(directory, ("buffered", 0), log, |file| {
        file.write_durably(0, 5 * PAGE)?;
        file.write(2 * PAGE as u64, 2 * PAGE)?;
        file.file().sync_data()?;
        // A part of a page: the whole page goes to the device.
        Ok(file.write_durably(512, 1024)?)
    })
}

/// O_DIRECT from memory that is aligned as it must be (open(2), NOTES).
fn write_direct(directory: &Path, log: &mut Log) -> anyhow::Result<LeftOutReason> {
    let length = 64 * PAGE;
    let mut is_open = false;
    let wrote = write_file(directory, ("direct", libc::O_DIRECT), log, |file| {
        is_open = true;
        // SAFETY: a mapping of our own, used as one slice of its length and unmapped after that.
        let (address, buffer) = unsafe {
            let flags = ProtFlags::READ | ProtFlags::WRITE;
            let address = mmap_anonymous(std::ptr::null_mut(), length, flags, MapFlags::PRIVATE)?;
            (address, std::slice::from_raw_parts_mut(address.cast::<u8>(), length))
        };
        let mut writes = || -> std::io::Result<()> {
            for (offset, length) in [(0, length), (4 * PAGE, PAGE), (8 * PAGE, 3 * PAGE)] {
                let part = &mut buffer[..length];
                file.stamp(part, offset as u64);
                file.file().write_all_at(part, offset as u64)?;
            }
            file.sync()
        };
        let written = writes();
        // SAFETY: as above.
        unsafe { munmap(address, length)? };
        Ok(written?)
    });
    match wrote {
        // UBIFS has none.
        Err(error) if !is_open && is_unsupported(&error) => Ok(Some(format!("{error:#}"))),
        wrote => wrote,
    }
}

fn is_unsupported(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::raw_os_error);
    error == Some(libc::EINVAL)
}

fn write_synchronously(directory: &Path, log: &mut Log) -> anyhow::Result<LeftOutReason> {
    write_file(directory, ("synchronous", libc::O_SYNC), log, |file| {
        for page in [0, 1, 2, 1] {
            file.write(page * PAGE as u64, PAGE)?;
        }
        file.settle();
        Ok(())
    })
}

fn write_mapped(directory: &Path, log: &mut Log) -> anyhow::Result<LeftOutReason> {
    write_file(directory, ("mapped", 0), log, |file| {
        let length = 8 * PAGE;
        file.file().set_len(length as u64)?;
        // SAFETY: nobody else has the file, which is as long as the mapping.
        unsafe {
            let flags = ProtFlags::READ | ProtFlags::WRITE;
            let opened = file.file().as_fd().try_clone_to_owned()?;
            let address = mmap(std::ptr::null_mut(), length, flags, MapFlags::SHARED, opened, 0)?;
            let memory = std::slice::from_raw_parts_mut(address.cast::<u8>(), length);
            file.stamp(&mut memory[..2 * PAGE], 0);
            file.stamp(&mut memory[5 * PAGE..6 * PAGE], 5 * PAGE as u64);
            msync(address, length, MsyncFlags::SYNC)?;
            munmap(address, length)?;
        }
        file.settle();
        Ok(())
    })
}

fn unlink_while_open(directory: &Path, log: &mut Log) -> anyhow::Result<LeftOutReason> {
    write_file(directory, ("unlinked", 0), log, |file| {
        file.write_durably(0, 3 * PAGE)?;
        fs::remove_file(directory.join("unlinked"))?;
        Ok(file.write_durably(2 * PAGE as u64, 4 * PAGE)?)
    })
}

/// A file is renamed over another; both are written before, the one that stays after as well.
fn rename_over_another(directory: &Path, log: &mut Log) -> anyhow::Result<LeftOutReason> {
    write_file(directory, ("renamed", 0), log, |old| Ok(old.write_durably(0, 4 * PAGE)?))?;
    write_file(directory, ("renamed.new", 0), log, |new| {
        new.write_durably(0, 4 * PAGE)?;
        fs::rename(directory.join("renamed.new"), directory.join("renamed"))?;
        File::open(directory)?.sync_all()?;
        new.paths.push("/renamed".to_owned());
        Ok(new.write_durably(PAGE as u64, 5 * PAGE)?)
    })
}

fn allocate(directory: &Path, log: &mut Log) -> anyhow::Result<LeftOutReason> {
    let mut refusal = None;
    write_file(directory, ("allocated", 0), log, |file| {
        match rustix::fs::fallocate(file.file(), FallocateFlags::empty(), 0, 16 * PAGE as u64) {
            Ok(()) => {}
            // NILFS2 has none; the writes are then like any others.
            Err(error @ Errno::OPNOTSUPP) => refusal = Some(("fallocate", error.to_string())),
            Err(error) => return Err(error.into()),
        }
        file.write_durably(3 * PAGE as u64, 3 * PAGE)?;
        Ok(file.write_durably(12 * PAGE as u64, PAGE)?)
    })?;
    log.left_out.extend(refusal);
    Ok(None)
}

fn truncate(directory: &Path, log: &mut Log) -> anyhow::Result<LeftOutReason> {
    write_file(directory, ("truncated", 0), log, |file| {
        file.write_durably(0, 8 * PAGE)?;
        file.file().set_len(2 * PAGE as u64)?;
        // In a block of more than a page, what was there is zeros when the next write is durable.
        file.durable.retain(|at| *at < 2 * PAGE as u64);
        Ok(file.write_durably(5 * PAGE as u64, PAGE)?)
    })
}

/// Some are so small that Btrfs and F2FS keep them with their metadata.
fn small(directory: &Path, log: &mut Log) -> anyhow::Result<LeftOutReason> {
    for length in [32, 480, 512, 1024, 2560, 3072, 3584, 4096, 4608] {
        write_file(directory, (&format!("small-{length}"), 0), log, |file| {
            file.small_bytes = Some(length);
            Ok(file.write_durably(0, length)?)
        })?;
    }
    Ok(None)
}

/// Writers whose fsyncs overlap, each in a file of its own.
fn concurrent(directory: &Path, log: &mut Log) -> anyhow::Result<LeftOutReason> {
    let first = log.known.len() as u32;
    let files = std::thread::scope(|scope| {
        let write = |writer: u32| -> anyhow::Result<KnownFile> {
            let name = format!("writer-{writer}");
            let mut file = KnownFile::create(directory, &name, first + writer, 0)?;
            for round in 0..ROUNDS {
                let page = (round * 7 + u64::from(writer)) % 5 + round / 2;
                file.write_durably(page * PAGE as u64, (1 + round as usize % 3) * PAGE)?;
            }
            Ok(file)
        };
        let threads: Vec<_> =
            (0..WRITERS).map(|writer| scope.spawn(move || write(writer))).collect();
        let joined = threads.into_iter().map(|thread| thread.join().expect("no writer panics"));
        joined.collect::<anyhow::Result<Vec<KnownFile>>>()
    })?;
    log.known.extend(files);
    Ok(None)
}

/// Makes a database by SQLite in every journal mode, with the same inserts, and on F2FS one by
/// batch atomic writes too. The WAL stays as it is.
fn sqlite_databases(directory: &Path, log: &mut Log) -> anyhow::Result<LeftOutReason> {
    let is_f2fs = rustix::fs::statfs(directory)?.f_type == libc::F2FS_SUPER_MAGIC;
    let fill_all = || -> anyhow::Result<()> {
        for mode in MODES {
            fill(directory, mode.word(), mode).context(mode)?;
        }
        if is_f2fs { fill_at_once(directory) } else { Ok(()) }
    };
    let (result, recorded) = record(directory, fill_all);
    log.recorded.join(recorded);
    result.map(|()| None)
}

fn fill_at_once(directory: &Path) -> anyhow::Result<()> {
    let before = vfs::commits();
    vfs::choose(true);
    let filled = fill(directory, "atomic", JournalMode::Delete);
    vfs::choose(false);
    filled.context("batch atomic writes")?;
    let commits = vfs::commits() - before;
    ensure!(commits >= ROWS as i64, "F2FS took {commits} of {ROWS} commits as atomic writes");
    Ok(())
}

fn fill(directory: &Path, name: &str, mode: JournalMode) -> anyhow::Result<()> {
    let database = Database::new("main".into(), directory.join(format!("{name}.db")));
    let mut options = SqliteOptions::with_syncs(mode);
    options.checkpoint_when_closed = Switch::Off;
    let databases = Databases::open(vec![database.clone()], &options)?;
    databases.batch("CREATE TABLE t (k INTEGER PRIMARY KEY, x BLOB)", &database)?;
    let mut insert = databases.statement("INSERT INTO t (x) VALUES (?1)", &database)?;
    for row in 0..ROWS {
        insert.execute([format!("{name}-{row}-").repeat(20)])?;
    }
    drop(insert);
    databases.close()?;
    Ok(())
}
