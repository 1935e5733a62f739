//! Safe calls around the BPF object: load, attach, the mapped control block, the ring. Only this
//! folder uses libbpf.

mod drain;
mod object;
mod ring;
pub mod symbols;
pub mod totals;

use std::ffi::CStr;
use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::{NonNull, null_mut};

use libbpf_sys as bpf;

use drain::Drain;
use object::{Link, Object, check, failed};
use ring::{CHUNK_BYTES, Ends, Ring};
use symbols::Symbols;

/// Why the programs cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    #[error("cannot {step} the BPF tracer: {source}; {remedy}")]
    Step { step: &'static str, source: io::Error, remedy: &'static str },
    #[error("the ring cannot have {0} bytes: a power of two from {CHUNK_BYTES} on is needed")]
    RingSize(u32),
    #[error("{0} disks at once: at most {DISKS_LIMIT} can be traced together")]
    Disks(usize),
}

/// How the names end of programs that take over where another was skipped (within.bpf.h).
const TAKES_OVER: &[u8] = b"_within";

/// enum enabled of event.h.
const OFF: u32 = 0;
const ON: u32 = 1;
const ENDING: u32 = 2;

/// DISKS_LIMIT of kernel/block/event.h: how many disks can be traced at once.
pub const DISKS_LIMIT: usize = 8;

/// struct control of kernel/block/event.h, mapped: the programs see every write at once.
#[repr(C)]
struct Control {
    enabled: u32,
    unmounting: u32,
    disks: [u32; DISKS_LIMIT],
    buffer_end_io: u64,
    direct_end_io: u64,
    xfs_buffer_end_io: u64,
    xfs_log_end_io: u64,
    btrfs_simple_end_io: u64,
    btrfs_first_end_io: u64,
    btrfs_copy_end_io: u64,
    btrfs_packed_write: u64,
    btrfs_packed_read: u64,
    btrfs_direct: u64,
    chain_end_io: u64,
    vmemmap_base: u64,
    page_offset_base: u64,
    bios: u64,
    lost_bios: u64,
    lost_runs: u64,
    lost_paths: u64,
    lost_syncs: u64,
    lost_requests: u64,
    lost_changes: u64,
    session: u64,
    renames: u64,
    caught_runs: u64,
    counted_bios: u64,
    lost_totals: u64,
    totals_alone: u64,
}

const _: () = assert!(size_of::<Control>() == 248);

/// Of the ring, for each processor: what the runs of a bio may need, and the bio.
const KEPT_BYTES: u64 = 32 << 10;

/// struct settings of kernel/block/event.h: what the verifier knows.
#[repr(C)]
struct Settings {
    has_rdonly_cast: u32,
    ring_chunks: u32,
    kept_bytes: u64,
}

/// The loaded and attached programs.
pub struct Program {
    // Dropped in this order: what refers to the object before the object.
    _links: Vec<Link>,
    drain: Drain,
    control: NonNull<Control>,
    object: Object,
}

impl Program {
    /// Loads and attaches, switched off. The symbols show which features the kernel has.
    ///
    /// # Errors
    /// If the ring's size is no power of two, or the kernel refuses a step.
    pub fn load(ring_bytes: u32, symbols: &Symbols) -> Result<Self, ProgramError> {
        if !ring_bytes.is_power_of_two() || ring_bytes < CHUNK_BYTES {
            return Err(ProgramError::RingSize(ring_bytes));
        }
        // libbpf's own error for it is ESRCH, which says nothing.
        std::fs::metadata("/sys/kernel/btf/vmlinux").map_err(|source| failed("load", source))?;
        let object = Object::open()?;
        let records = object.map(c"records")?;
        let ring_chunks = ring_bytes / CHUNK_BYTES;
        // SAFETY: `records` is a map of the open object, which is not loaded yet.
        check("size", unsafe { bpf::bpf_map__set_max_entries(records, ring_chunks) })?;
        let has_rdonly_cast = symbols.address("bpf_rdonly_cast") != 0;
        // SAFETY: no argument; a count, or a negative error.
        let processors = unsafe { bpf::libbpf_num_possible_cpus() }.max(1) as u64;
        let kept_bytes = (processors * KEPT_BYTES).min(u64::from(ring_bytes) / 4);
        let has_rdonly_cast = has_rdonly_cast.into();
        let settings = Settings { has_rdonly_cast, ring_chunks, kept_bytes };
        let place = object.value(c".rodata.settings", size_of::<Settings>())?;
        // SAFETY: the section holds just the struct settings, and is writable until loaded.
        unsafe { place.cast().write(settings) };
        object.leave_out(symbols)?;
        // SAFETY: the object is open and not loaded.
        check("load", unsafe { bpf::bpf_object__load(object.0.as_ptr()) })?;
        let control = object.value(c".data.control", size_of::<Control>())?.cast();
        let ends = object.value(c".data.ring", size_of::<Ends>())?.cast();
        // SAFETY: the object is loaded, and keeps the descriptor open meanwhile.
        let records = unsafe { BorrowedFd::borrow_raw(bpf::bpf_map__fd(records)) };
        let ring = Ring::map(records, ends, ring_chunks)
            .map_err(|source| failed("map the ring of", source))?;
        let links = object.attach()?;
        let mut program = Program { _links: links, drain: Drain::new(ring), control, object };
        program.set_addresses(symbols);
        Ok(program)
    }

    /// Records that did not fit in the ring since the programs were loaded; where totals alone are
    /// asked for, bios need none.
    pub fn lost_records(&self) -> u64 {
        let control = self.control();
        let lost = [
            control.lost_bios,
            control.lost_runs,
            control.lost_paths,
            control.lost_syncs,
            control.lost_requests,
            control.lost_changes,
            if control.totals_alone == 0 { control.counted_bios } else { 0 },
        ];
        lost.iter().sum()
    }

    /// Bios that are in the totals and have no record, since the programs were loaded.
    pub fn counted_bios(&self) -> u64 {
        self.control().counted_bios
    }

    /// Bios, and runs of bios, that are neither in a record nor in the totals.
    pub fn untold_runs(&self) -> u64 {
        let control = self.control();
        control.lost_bios + control.lost_runs + control.lost_totals
    }

    fn control(&self) -> Control {
        // SAFETY: the map stays mapped while the object lives; the programs may change counters
        // meanwhile, so the read is volatile.
        unsafe { self.control.as_ptr().read_volatile() }
    }

    /// Times since the load that the kernel did not run a program because the program was running
    /// on this CPU already: an interrupt came in between (bpf_prog_info.recursion_misses). Less
    /// those that another program took over.
    ///
    /// # Errors
    /// If the kernel does not report it.
    pub fn skipped_runs(&self) -> Result<u64, ProgramError> {
        // Read first: a run that is skipped and caught meanwhile is then one too many for a moment,
        // and not one too few for ever.
        let caught_runs = self.control().caught_runs;
        let mut sum: u64 = 0;
        let mut program = null_mut();
        loop {
            // SAFETY: the object is loaded; a null program asks for the first.
            program = unsafe { bpf::bpf_object__next_program(self.object.0.as_ptr(), program) };
            if program.is_null() {
                return Ok(sum.saturating_sub(caught_runs));
            }
            // SAFETY: `program` is of this object, whose names end in NUL.
            let name = unsafe { CStr::from_ptr(bpf::bpf_program__name(program)) };
            // SAFETY: as before.
            let is_loaded = unsafe { bpf::bpf_program__autoload(program) };
            if !is_loaded || name.to_bytes().ends_with(TAKES_OVER) {
                continue;
            }
            let mut size = size_of::<bpf::bpf_prog_info>() as u32;
            // SAFETY: `program` is of this loaded object. The kernel writes at most `size` bytes,
            // and nothing through the pointers within, which are null; all zero is a valid value.
            let (result, info) = unsafe {
                let mut info: bpf::bpf_prog_info = std::mem::zeroed();
                let descriptor = bpf::bpf_program__fd(program);
                (bpf::bpf_prog_get_info_by_fd(descriptor, &mut info, &mut size), info)
            };
            check("count the runs of", result)?;
            sum += info.recursion_misses;
        }
    }

    /// Whether nobody holds the request at an address: it is complete. False where the kernel does
    /// not answer.
    pub fn is_request_free(&self, address: u64) -> bool {
        let name = c"request_is_free".as_ptr();
        // SAFETY: the object is loaded, and the name ends in NUL.
        let program =
            unsafe { bpf::bpf_object__find_program_by_name(self.object.0.as_ptr(), name) };
        let mut question = address;
        let mut options = bpf::bpf_test_run_opts {
            sz: size_of::<bpf::bpf_test_run_opts>() as _,
            ctx_in: (&raw mut question).cast(),
            ctx_size_in: size_of_val(&question) as u32,
            ..Default::default()
        };
        // SAFETY: the program is of the loaded object, and reads a question of this size.
        let result =
            unsafe { bpf::bpf_prog_test_run_opts(bpf::bpf_program__fd(program), &raw mut options) };
        result == 0 && options.retval == 1
    }

    /// Traces these disks (major << 20 | minor) from now on; with totals alone, no bio has records.
    ///
    /// # Errors
    /// If there are more than `DISKS_LIMIT`.
    pub fn switch_on(&mut self, disks: &[u32], totals_alone: bool) -> Result<(), ProgramError> {
        self.forget_totals()?;
        let control = self.control.as_ptr();
        let mut places = [0; DISKS_LIMIT];
        let first = places.get_mut(..disks.len()).ok_or(ProgramError::Disks(disks.len()))?;
        first.copy_from_slice(disks);
        // SAFETY: the map stays mapped while the object lives. The fields are aligned, and written
        // by user space alone.
        unsafe {
            (&raw mut (*control).disks).write_volatile(places);
            (&raw mut (*control).unmounting).write_volatile(0);
            (&raw mut (*control).totals_alone).write_volatile(totals_alone.into());
            let session = &raw mut (*control).session;
            session.write_volatile(session.read_volatile() + 1);
            (&raw mut (*control).enabled).write_volatile(ON);
        }
        Ok(())
    }

    /// The programs report no new bios, but still the requests of those already seen.
    pub fn switch_to_ending(&mut self) {
        // SAFETY: as in switch_on.
        unsafe { (&raw mut (*self.control.as_ptr()).enabled).write_volatile(ENDING) }
    }

    /// The programs send nothing more.
    pub fn switch_off(&mut self) {
        // SAFETY: as in switch_on.
        unsafe { (&raw mut (*self.control.as_ptr()).enabled).write_volatile(OFF) }
    }

    /// Tells the programs where the kernel's functions are.
    pub fn set_addresses(&mut self, symbols: &Symbols) {
        let control = self.control.as_ptr();
        // SAFETY: as in switch_on.
        let set = |field: *mut u64, name| unsafe { field.write_volatile(symbols.address(name)) };
        // SAFETY: only places in the mapped control block are named, none is read.
        unsafe {
            set(&raw mut (*control).buffer_end_io, "end_bio_bh_io_sync");
            set(&raw mut (*control).direct_end_io, "iomap_dio_bio_end_io");
            set(&raw mut (*control).xfs_buffer_end_io, "xfs_buf_bio_end_io");
            set(&raw mut (*control).xfs_log_end_io, "xlog_bio_end_io");
            set(&raw mut (*control).btrfs_simple_end_io, "btrfs_simple_end_io");
            set(&raw mut (*control).btrfs_first_end_io, "btrfs_orig_write_end_io");
            set(&raw mut (*control).btrfs_copy_end_io, "btrfs_clone_write_end_io");
            set(&raw mut (*control).btrfs_packed_write, "end_compressed_bio_write");
            set(&raw mut (*control).btrfs_packed_read, "end_compressed_bio_read");
            let direct = ["btrfs_end_dio_bio", "btrfs_dio_end_io"];
            let direct = direct.into_iter().find(|name| symbols.address(name) != 0);
            set(&raw mut (*control).btrfs_direct, direct.unwrap_or_default());
            set(&raw mut (*control).chain_end_io, "bio_chain_endio");
            set(&raw mut (*control).vmemmap_base, "vmemmap_base");
            set(&raw mut (*control).page_offset_base, "page_offset_base");
        }
    }

    /// Bytes waiting in the ring.
    pub fn waiting_bytes(&self) -> usize {
        self.drain.waiting_bytes()
    }

    /// Moves what waits in the ring to memory of ours.
    pub fn collect(&mut self) {
        self.drain.collect();
    }

    /// A piece of what was collected, the oldest.
    pub fn take(&mut self) -> Option<Vec<u8>> {
        self.drain.take()
    }

    /// Bytes collected and not taken.
    pub fn collected_bytes(&self) -> usize {
        self.drain.read_bytes()
    }

    /// Has a thread of its own collect, unless so many bytes are not taken.
    ///
    /// # Errors
    /// If none can be started.
    pub fn collect_by_itself(&mut self, limit_bytes: usize) -> Result<(), ProgramError> {
        self.drain.start(limit_bytes).map_err(|source| failed("read the ring of", source))
    }
}
