//! The workload's knowledge of its own writes, which is all that the check believes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, IoSlice};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use anyhow::Context;

use super::sectors::SectorVersions;
use super::sectors::{self, SECTOR};
use crate::tables::timeline::now_ns;

const PAGE: usize = 4096;

/// One call that synced a file, by its times.
#[derive(Debug, Clone, Copy)]
pub struct KnownSync {
    pub tid: u32,
    pub begin_ns: i64,
    pub end_ns: i64,
}

impl KnownSync {
    /// Does it, and takes the times.
    fn measure(call: impl FnOnce() -> std::io::Result<()>) -> std::io::Result<Self> {
        let begin_ns = now_ns();
        call()?;
        let tid = rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned();
        Ok(Self { tid, begin_ns, end_ns: now_ns() })
    }
}

/// A file whose every sector is stamped.
pub struct KnownFile {
    pub number: u32,
    pub inode: u64,
    /// Names it had, from the root of the filesystem.
    pub paths: Vec<String>,
    /// Sectors that were written and made durable, as offsets.
    pub durable: BTreeSet<u64>,
    /// Bytes of a file so short that the filesystem may keep it with its metadata.
    pub small_bytes: Option<usize>,
    /// The syncs of it, in order.
    pub syncs: Vec<KnownSync>,
    /// The calls that wrote to it past the page cache and waited for the device.
    pub direct_writes: Vec<KnownSync>,
    /// Nobody can tell the place of what was written to it: several bios of a call were held back.
    pub is_placeless: bool,
    /// Held open: the blocks of an unlinked file shall not become another's.
    file: Option<File>,
    dirty: BTreeSet<u64>,
    version: u32,
}

impl KnownFile {
    /// A file that is just made.
    pub fn new(number: u32, path: &str, file: File) -> std::io::Result<Self> {
        let inode = file.metadata()?.ino();
        Ok(KnownFile {
            number,
            inode,
            paths: vec![path.to_owned()],
            durable: BTreeSet::new(),
            small_bytes: None,
            syncs: Vec::new(),
            direct_writes: Vec::new(),
            is_placeless: false,
            file: Some(file),
            dirty: BTreeSet::new(),
            version: 0,
        })
    }

    /// Makes a file of a name in the root of the filesystem; `flags` are further ones of open(2).
    pub fn create(directory: &Path, name: &str, number: u32, flags: i32) -> anyhow::Result<Self> {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create_new(true).custom_flags(flags);
        let file = file.open(directory.join(name)).with_context(|| name.to_owned())?;
        Ok(Self::new(number, &format!("/{name}"), file)?)
    }

    /// The open file.
    ///
    /// # Panics
    /// After it is closed.
    pub fn file(&self) -> &File {
        self.file.as_ref().expect("written to before the log is closed")
    }

    /// Fills what is to be written at an offset, and notes it.
    pub fn stamp(&mut self, buffer: &mut [u8], offset: u64) {
        self.version += 1;
        sectors::fill(buffer, self.number, self.version, offset);
        let sectors = (0..buffer.len()).step_by(SECTOR).map(|at| offset + at as u64);
        self.dirty.extend(sectors);
    }

    /// Stamps and writes bytes, buffered or as the file was opened.
    pub fn write(&mut self, offset: u64, length: usize) -> std::io::Result<()> {
        let mut buffer = vec![0; length];
        self.stamp(&mut buffer, offset);
        self.file().write_all_at(&buffer, offset)
    }

    /// Writes so, and syncs.
    pub fn write_durably(&mut self, offset: u64, length: usize) -> std::io::Result<()> {
        self.write(offset, length)?;
        self.sync()
    }

    /// Note that all that was written is on the device: the caller has synced.
    pub fn settle(&mut self) {
        self.durable.append(&mut self.dirty);
    }

    /// Stamps a buffer that is aligned as it must be, and writes it past the page cache.
    pub fn write_direct(&mut self, buffer: &mut [u8], offset: u64) -> std::io::Result<()> {
        self.stamp(buffer, offset);
        let call = KnownSync::measure(|| self.file().write_all_at(buffer, offset))?;
        self.direct_writes.push(call);
        Ok(())
    }

    /// As `write_direct`, to the begin of the file: every other page of the buffer, so that none is
    /// next to another in memory.
    pub fn write_scattered(&mut self, buffer: &mut [u8]) -> std::io::Result<()> {
        let mut pages = Vec::new();
        for (number, two_pages) in buffer.chunks_exact_mut(2 * PAGE).enumerate() {
            let (page, _) = two_pages.split_at_mut(PAGE);
            self.stamp(page, (number * PAGE) as u64);
            pages.push(IoSlice::new(page));
        }
        let call = KnownSync::measure(|| {
            let written = rustix::io::pwritev(self.file(), &pages, 0)?;
            if written == pages.len() * PAGE { Ok(()) } else { Err(ErrorKind::WriteZero.into()) }
        })?;
        self.direct_writes.push(call);
        Ok(())
    }

    /// fsync, and so durable.
    pub fn sync(&mut self) -> std::io::Result<()> {
        self.sync_by(File::sync_all)
    }

    /// A sync of another kind, which this thread waits for.
    pub fn sync_by(
        &mut self,
        sync: impl FnOnce(&File) -> std::io::Result<()>,
    ) -> std::io::Result<()> {
        let call = KnownSync::measure(|| sync(self.file()))?;
        self.syncs.push(call);
        self.settle();
        Ok(())
    }

    /// Closes the file before `Log::close` does.
    pub fn close(&mut self) {
        self.file = None;
    }

    /// Return the contents of a sector without a whole stamp: zeros where nothing was written; the
    /// last of a short file is cut off.
    pub fn without_stamp(&self, offset: u64) -> [u8; SECTOR] {
        let mut sector = [0; SECTOR];
        let end = self.small_bytes.unwrap_or(0) as u64;
        let length = end.saturating_sub(offset).min(SECTOR as u64) as usize;
        sectors::fill(&mut sector[..length], self.number, self.version, offset);
        sector
    }
}

/// All that was written.
#[derive(Default)]
pub struct Log {
    pub known: Vec<KnownFile>,
    /// The sectors that were written without stamps, most of them by SQLite.
    pub recorded: SectorVersions,
    /// The steps that were done, in order.
    pub did: Vec<&'static str>,
    /// The steps that were left out, and why.
    pub left_out: BTreeMap<&'static str, String>,
}

impl Log {
    /// A step is over: it was done, or left out for a reason.
    pub fn note(&mut self, name: &'static str, left_out: Option<String>) {
        match left_out {
            None => self.did.push(name),
            Some(reason) => drop(self.left_out.insert(name, reason)),
        }
    }

    /// Closes the files, so that the filesystem can be unmounted.
    pub fn close(&mut self) {
        self.known.iter_mut().for_each(KnownFile::close);
    }
}
