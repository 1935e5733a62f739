//! The programs of one BPF object, loaded and attached, with the ring that their records leave by
//! (kernel/bpf/ring.bpf.h).

use std::ffi::CStr;
use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::{NonNull, null};

use libbpf_sys as bpf;

use super::kernel_ring::KernelRing;
use super::object::{Link, Object};
use super::ring::{CHUNK_BYTES, Ends, Ring};
use super::symbols::{RDONLY_CAST, Symbols};
use crate::bpf::object::Map;
use crate::bpf::object::{BpfError, check};
use crate::bpf::ring::Drain;
use crate::bpf::ring::RecordSource;
use crate::process::page_bytes;

/// struct settings of kernel/bpf/ring.h: what the verifier knows.
#[repr(C)]
struct ProgramSettings {
    has_rdonly_cast: u32,
    ring_chunks: u32,
    kept_bytes: u64,
    page_shift: u32,
    padding: u32,
}

const _: () = assert!(size_of::<ProgramSettings>() == 24);

/// The object file of some programs, and that of the same programs for older kernels
/// (kernel/bpf/kernel_age.bpf.h).
pub struct Objects {
    pub since_5_17: &'static [u8],
    pub before_5_17: &'static [u8],
}

/// What is to be loaded, and how.
pub struct LoadPlan<'a> {
    pub objects: &'a Objects,
    /// Size of the ring: a power of two.
    pub ring_bytes: u32,
    /// Of the ring, for each processor: kept for records of several parts that have begun.
    pub kept_bytes_each: u64,
    /// Programs for a tracepoint that not every kernel has, each with the kernel's function that
    /// shows it is there (DECLARE_TRACE of include/linux/tracepoint.h).
    pub optional: &'a [(&'a CStr, &'a str)],
}

/// The loaded and attached programs.
pub struct Program {
    // Dropped in this order: what refers to the object before the object.
    _links: Vec<Link>,
    drain: Drain,
    object: Object,
}

impl Program {
    /// Loads and attaches. The symbols show which features the kernel has; those of `optional`
    /// must be among the wanted.
    ///
    /// # Errors
    /// If the ring's size is no power of two, or the kernel refuses a step.
    pub fn load(plan: &LoadPlan, symbols: &Symbols) -> Result<Self, BpfError> {
        let ring_bytes = plan.ring_bytes;
        if !ring_bytes.is_power_of_two() || ring_bytes < CHUNK_BYTES {
            return Err(BpfError::RingSize(ring_bytes));
        }
        // libbpf's own error for it is ESRCH, which says nothing.
        std::fs::metadata("/sys/kernel/btf/vmlinux")
            .map_err(|source| BpfError::new("load", source))?;
        let is_before_5_17 = !has_loops();
        let objects = plan.objects;
        let object =
            Object::open(if is_before_5_17 { objects.before_5_17 } else { objects.since_5_17 })?;
        let records = object.map(c"records")?;
        let ring_chunks = ring_bytes / CHUNK_BYTES;
        let entries = if is_before_5_17 { ring_bytes } else { ring_chunks };
        // SAFETY: `records` is a map of the open object, which is not loaded yet.
        check("size", unsafe { bpf::bpf_map__set_max_entries(records, entries) })?;
        // SAFETY: no argument; a count, or a negative error.
        let processors = unsafe { bpf::libbpf_num_possible_cpus() }.max(1) as u64;
        let kept_bytes = (processors * plan.kept_bytes_each).min(u64::from(ring_bytes) / 4);
        let has_rdonly_cast = u32::from(symbols.address(RDONLY_CAST) != 0);
        let page_shift = page_bytes().trailing_zeros();
        let settings =
            ProgramSettings { has_rdonly_cast, ring_chunks, kept_bytes, page_shift, padding: 0 };
        let place = object.section(c".rodata.settings", size_of::<ProgramSettings>())?;
        // SAFETY: the section holds just the struct settings, and is writable until loaded.
        unsafe { place.cast().write(settings) };
        let missing = plan.optional.iter().filter(|(_, function)| symbols.address(function) == 0);
        missing.into_iter().try_for_each(|(program, _)| object.leave_out(program))?;
        object.load()?;
        // SAFETY: the object is loaded, and keeps the descriptor open meanwhile.
        let records = unsafe { BorrowedFd::borrow_raw(bpf::bpf_map__fd(records)) };
        let ring: io::Result<Box<dyn RecordSource>> = if is_before_5_17 {
            KernelRing::map(records, ring_bytes).map(|it| Box::new(it) as _)
        } else {
            let ends = object.section(c".data.ring", size_of::<Ends>())?.cast();
            Ring::map(records, ends, ring_chunks).map(|it| Box::new(it) as _)
        };
        let ring = ring.map_err(|source| BpfError::new("map the ring of", source))?;
        let links = object.attach()?;
        Ok(Program { _links: links, drain: Drain::new(ring), object })
    }

    /// The memory of a section of global variables that begins with a `T`: shared with the
    /// programs, and mapped as long as this lives.
    ///
    /// # Errors
    /// If the section is not there, or smaller.
    pub fn section<T>(&self, name: &CStr) -> Result<NonNull<T>, BpfError> {
        Ok(self.object.section(name, size_of::<T>())?.cast())
    }

    /// A hash map of the programs.
    ///
    /// # Errors
    /// If there is none of that name and these sizes.
    pub fn map<const KEY_BYTES: usize, const VALUE_WORDS: usize>(
        &self,
        name: &CStr,
    ) -> Result<Map<'_, KEY_BYTES, VALUE_WORDS>, BpfError> {
        Map::find(&self.object, name)
    }

    /// See `Object::skipped_runs`.
    ///
    /// # Errors
    /// If the kernel does not report it.
    pub fn skipped_runs(&self, counts: impl Fn(&[u8]) -> bool) -> Result<u64, BpfError> {
        self.object.skipped_runs(counts)
    }

    /// See `Object::ask`.
    pub fn ask(&self, name: &CStr, question: u64) -> Option<u32> {
        self.object.ask(name, question)
    }

    /// Bytes waiting in the ring.
    pub fn waiting_bytes(&self) -> usize {
        self.drain.waiting_bytes()
    }

    /// Moves what waits in the ring to memory of ours.
    pub fn collect(&mut self) {
        self.drain.collect();
    }

    /// A piece of what was collected, the oldest: (length u32, record) one after the other.
    pub fn take_piece(&mut self) -> Option<Vec<u8>> {
        self.drain.take_piece()
    }

    /// Bytes collected and not taken.
    pub fn collected_bytes(&self) -> usize {
        self.drain.read_bytes()
    }

    /// Has a thread of its own collect from now on, unless so many bytes are not taken.
    ///
    /// # Errors
    /// If none can be started.
    pub fn collect_by_itself(&mut self, limit_bytes: usize) -> Result<(), BpfError> {
        let started = self.drain.start(limit_bytes);
        started.map_err(|source| BpfError::new("read the ring of", source))
    }
}

/// Whether programs may call bpf_loop (Linux 5.17): the kernel is asked, by a program that does.
/// Where it refuses to say, it is taken for a younger one, whose refusal of the programs is told.
fn has_loops() -> bool {
    let (kind, helper) = (bpf::BPF_PROG_TYPE_RAW_TRACEPOINT, bpf::BPF_FUNC_loop);
    // SAFETY: two numbers, and no options.
    unsafe { bpf::libbpf_probe_bpf_helper(kind, helper, null()) != 0 }
}
