//! Traces one disk. Steers the programs and turns what they sent into tables; has no thread of
//! its own, so somebody calls `drain` when the ring buffer may be getting full.
//!
//! Load early: on an emulated processor the verifier and the search through BTF take seconds. The
//! programs are attached at once and send nothing until `start`.

use std::collections::BTreeMap;
use std::fs;

use super::capture::{self, Capture, Surroundings};
use super::layout::Layout;
use super::program::{Program, ProgramError};
use super::record::DecodeError;
use super::symbols::{Symbols, SymbolsError};
use crate::device::number;

/// Why a disk cannot be traced.
#[derive(Debug, thiserror::Error)]
pub enum TracerError {
    #[error(transparent)]
    Program(#[from] ProgramError),
    #[error(transparent)]
    Symbols(#[from] SymbolsError),
    #[error("the BPF tracer sent a damaged record: {0}")]
    Decode(#[from] DecodeError),
    #[error("{path}: {source}; is /sys mounted, and {path} the number of a disk?")]
    Disk { path: String, source: std::io::Error },
}

/// The programs in the kernel, and what is needed to make tables of what they send.
pub struct Tracer {
    program: Program,
    ring_bytes: usize,
    symbols: Symbols,
    /// /proc/modules when the symbols were read.
    modules: String,
    disk: u32,
    /// Records lost up to the last `finish`.
    lost_before: u64,
}

impl Tracer {
    /// Loads and attaches the programs. `ring_bytes` is a power of two. The modules of the
    /// filesystems to be traced must be in: the layout of their structures is looked up now.
    ///
    /// # Errors
    /// If the kernel refuses the programs, or hides its addresses.
    pub fn load(ring_bytes: u32) -> Result<Self, TracerError> {
        let (modules, symbols) = (loaded_modules(), Symbols::read()?);
        let has_rdonly_cast = symbols.address("bpf_rdonly_cast") != 0;
        let mut program = Program::load(ring_bytes, has_rdonly_cast)?;
        program.set_addresses(&symbols);
        let ring_bytes = ring_bytes as usize;
        Ok(Tracer { program, ring_bytes, symbols, modules, disk: 0, lost_before: 0 })
    }

    /// Begins to trace a disk: the number of the whole disk, not of a partition.
    ///
    /// # Errors
    /// If a module came since, and the kernel's addresses cannot be read again.
    pub fn start(&mut self, disk: u32) -> Result<(), TracerError> {
        self.disk = disk;
        if loaded_modules() != self.modules {
            self.resolve_symbols()?;
        }
        self.program.switch_on(&[disk])?;
        Ok(())
    }

    /// Looks the kernel's functions up again.
    fn resolve_symbols(&mut self) -> Result<(), TracerError> {
        self.modules = loaded_modules();
        self.symbols = Symbols::read()?;
        self.program.set_addresses(&self.symbols);
        Ok(())
    }

    /// More than half of the ring buffer is full: `drain` before the next piece of work.
    pub fn is_half_full(&self) -> bool {
        self.program.waiting_bytes() > self.ring_bytes / 2
    }

    /// Moves the records out of the ring buffer.
    ///
    /// # Errors
    /// If libbpf cannot read it.
    pub fn drain(&mut self) -> Result<(), TracerError> {
        Ok(self.program.collect()?)
    }

    /// Ends the tracing; what was recorded stays to be read.
    pub fn stop(&mut self) {
        self.program.switch_off();
    }

    /// Stops, and makes tables of all that was recorded since the last `finish`.
    ///
    /// # Errors
    /// If a record is damaged, or the disk is gone.
    pub fn finish(&mut self) -> Result<Capture, TracerError> {
        self.stop();
        self.drain()?;
        let records = capture::decode_all(&self.program.take())?;
        let name = disk_name(self.disk)?;
        let layouts = read_layouts(capture::partitions(&records));
        let lost = self.program.lost_records();
        let lost_events = lost - std::mem::replace(&mut self.lost_before, lost);
        let (disk, symbols) = (self.disk, &self.symbols);
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let around =
            Surroundings { disk, name: &name, symbols, layouts: &layouts, mounts: &mounts };
        Ok(capture::build(records, lost_events, &around))
    }
}

/// Empty in a kernel without modules.
fn loaded_modules() -> String {
    fs::read_to_string("/proc/modules").unwrap_or_default()
}

/// The kernel's name of a disk, as in /sys/block.
fn disk_name(disk: u32) -> Result<String, TracerError> {
    let path = format!("/sys/dev/block/{}", number::text(disk));
    let link = fs::read_link(&path).map_err(|source| TracerError::Disk { path, source })?;
    Ok(link.file_name().unwrap_or_default().to_string_lossy().into_owned())
}

/// Layouts of the filesystems on these devices. Subtypes of metadata are all they are for: a
/// device that cannot be read, because it is gone, leaves them empty.
fn read_layouts(devices: impl IntoIterator<Item = u32>) -> BTreeMap<u32, Layout> {
    let read = |device: u32| {
        let path = format!("/dev/{}", disk_name(device).ok()?);
        Some((device, Layout::read(&fs::File::open(path).ok()?).ok()?))
    };
    devices.into_iter().filter_map(read).collect()
}
