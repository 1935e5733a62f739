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
use super::symbols::{PREEMPTIBLE, RDONLY_CAST, Symbols};
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
    last_place: u32,
}

const _: () = assert!(size_of::<ProgramSettings>() == 24);

/// The object file of some programs, and that of the same programs for older kernels
/// (kernel/bpf/kernel_age.bpf.h).
pub struct Objects {
    since_5_17: &'static [u8],
    before_5_17: &'static [u8],
}

/// The objects that build.rs compiles of the program of this name.
macro_rules! objects {
    ($name:literal) => {
        Objects {
            since_5_17: include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".bpf.o")),
            before_5_17: include_bytes!(concat!(env!("OUT_DIR"), "/", $name, "_before_5_17.bpf.o")),
        }
    };
}

impl Objects {
    /// kernel/block, for the tracer.
    pub const ATTRIBUTION: Self = objects!("attribution");
    /// kernel/calls, for the finder of commits.
    pub const CALLS: Self = objects!("calls");
    /// kernel/recorder, for the recorder.
    pub const RECORDER: Self = objects!("recorder");
}

/// Holds what is to be loaded, and how.
pub struct LoadPlan<'a> {
    pub objects: &'a Objects,
    /// Size of the ring: a power of two.
    pub ring_bytes: u32,
    /// Bytes of the ring for each processor, kept for records of several parts that have begun.
    pub kept_bytes_each: u64,
    /// Programs for a tracepoint that not every kernel has, each with the kernel's function that
    /// shows it is there (DECLARE_TRACE of include/linux/tracepoint.h).
    pub optional: &'a [(&'a CStr, &'a str)],
    /// Programs that are not needed.
    pub unused: &'a [&'a CStr],
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
        let last_place = if symbols.address(PREEMPTIBLE) == 0 { 1 } else { 2 };
        let settings =
            ProgramSettings { has_rdonly_cast, ring_chunks, kept_bytes, page_shift, last_place };
        let place = object.section(c".rodata.settings", size_of::<ProgramSettings>())?;
        // SAFETY: the section holds just the struct settings, and is writable until loaded.
        unsafe { place.cast().write(settings) };
        let missing = plan.optional.iter().filter(|(_, function)| symbols.address(function) == 0);
        missing.into_iter().try_for_each(|(program, _)| object.leave_out(program))?;
        plan.unused.iter().try_for_each(|program| object.leave_out(program))?;
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

/// Return whether programs may call bpf_loop (Linux 5.17): the kernel is asked, by a program that
/// does. Where it refuses to say, it is taken for a younger one, whose refusal of the programs is
/// told.
fn has_loops() -> bool {
    let (kind, helper) = (bpf::BPF_PROG_TYPE_RAW_TRACEPOINT, bpf::BPF_FUNC_loop);
    // SAFETY: two numbers, and no options.
    unsafe { bpf::libbpf_probe_bpf_helper(kind, helper, null()) != 0 }
}

#[cfg(test)]
mod tests {
    use super::Objects;

    // Says what in an object file no kernel of 5.10 would take: tests ask it of the objects for
    // kernels before 5.17, which no test of this tier can load. Reads the instructions of an ELF
    // file (elf(5), Documentation/bpf/standardization/instruction-set.rst of Linux).

    /// bpf_redirect_peer, the last of Linux 5.10 (include/uapi/linux/bpf.h).
    const LAST_HELPER: i32 = 155;

    const EXECUTABLE: u64 = 4; // SHF_EXECINSTR
    const CALL: u8 = 0x85;
    const LOAD_64_BITS: u8 = 0x18;
    const ATOMIC: [u8; 2] = [0xc3, 0xdb];
    const ATOMIC_ADD: i32 = 0;
    /// In the upper half of the registers' byte: whom a call is to, and what is loaded.
    const TO_HELPER: u8 = 0;
    const A_FUNCTION: u8 = 4; // BPF_PSEUDO_FUNC

    /// The faults, each in words; and how many instructions were looked at.
    fn faults(object: &[u8]) -> (Vec<String>, usize) {
        let (mut faults, mut seen) = (Vec::new(), 0);
        let u64_at = |at: usize| u64::from_le_bytes(object[at..at + 8].try_into().unwrap());
        let u16_at = |at: usize| usize::from(u16::from_le_bytes([object[at], object[at + 1]]));
        let (table, size, count) = (u64_at(0x28) as usize, u16_at(0x3a), u16_at(0x3c));
        for section in (0..count).map(|number| table + number * size) {
            if u64_at(section + 8) & EXECUTABLE == 0 {
                continue;
            }
            let (begin, bytes) = (u64_at(section + 0x18) as usize, u64_at(section + 0x20) as usize);
            for (number, words) in object[begin..begin + bytes].chunks_exact(8).enumerate() {
                seen += 1;
                let (code, kind) = (words[0], words[1] >> 4);
                let value = i32::from_le_bytes(words[4..8].try_into().unwrap());
                let fault = match code {
                    CALL if kind == TO_HELPER && value > LAST_HELPER => "calls a younger helper",
                    LOAD_64_BITS if kind == A_FUNCTION => "has a callback",
                    _ if ATOMIC.contains(&code) && value != ATOMIC_ADD => "has an atomic operation",
                    _ => continue,
                };
                faults.push(format!("instruction {number} at {begin:#x} {fault}: {value:#x}"));
            }
        }
        (faults, seen)
    }

    #[test]
    fn older_kernels_get_what_they_know() {
        for objects in [Objects::ATTRIBUTION, Objects::CALLS, Objects::RECORDER] {
            let (found, seen) = faults(objects.before_5_17);
            assert!(seen > 500 && found.is_empty(), "{seen} instructions: {found:#?}");
            // So the question can be answered with no.
            assert!(!faults(objects.since_5_17).0.is_empty());
        }
    }
}
