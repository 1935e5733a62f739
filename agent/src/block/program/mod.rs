//! The BPF object behind safe calls: load, attach, the mapped control block, the ring.
//! The only file that talks to libbpf.

mod ring;
pub mod symbols;

use std::ffi::{CStr, c_int, c_void};
use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::{NonNull, null, null_mut};

use libbpf_sys as bpf;

use ring::{CHUNK_BYTES, Ends, Ring};
use symbols::Symbols;

static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/attribution.bpf.o"));

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

/// Programs for a tracepoint that not every kernel has, each with the function that says that it is
/// there (DECLARE_TRACE of include/linux/tracepoint.h).
const OPTIONAL: [(&CStr, &str); 3] = [
    (c"uring_submitted", "__traceiter_io_uring_submit_req"),
    (c"uring_submitted_before", "__traceiter_io_uring_submit_sqe"),
    (c"uring_completed", "__traceiter_io_uring_complete"),
];

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
}

const _: () = assert!(size_of::<Control>() == 224);

/// struct settings of kernel/block/event.h: what the verifier knows.
#[repr(C)]
struct Settings {
    has_rdonly_cast: u32,
    ring_chunks: u32,
}

/// The loaded and attached programs.
pub struct Program {
    // Dropped in this order: what refers to the object before the object.
    _links: Vec<Link>,
    ring: Ring,
    control: NonNull<Control>,
    object: Object,
    /// What the ring gave: (length u32, record) one after the other.
    collected: Vec<u8>,
}

impl Program {
    /// Loads and attaches, switched off. What the kernel has is told by its symbols.
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
        let settings = Settings { has_rdonly_cast: has_rdonly_cast.into(), ring_chunks };
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
        let collected = Vec::new();
        let mut program = Program { _links: links, ring, control, object, collected };
        program.set_addresses(symbols);
        Ok(program)
    }

    /// Records that did not fit in the ring since the programs were loaded.
    pub fn lost_records(&self) -> u64 {
        // SAFETY: the map stays mapped while the object lives; the programs may change counters
        // meanwhile, so the read is volatile.
        let control = unsafe { self.control.as_ptr().read_volatile() };
        let lost = [
            control.lost_bios,
            control.lost_runs,
            control.lost_paths,
            control.lost_syncs,
            control.lost_requests,
            control.lost_changes,
        ];
        lost.iter().sum()
    }

    /// Times since the load that the kernel did not run a program because the program was running
    /// on this CPU already: an interrupt came in between (bpf_prog_info.recursion_misses). Less
    /// those that another program took over.
    ///
    /// # Errors
    /// If the kernel does not tell.
    pub fn skipped_runs(&self) -> Result<u64, ProgramError> {
        let mut sum: u64 = 0;
        let mut program = null_mut();
        loop {
            // SAFETY: the object is loaded; a null program asks for the first.
            program = unsafe { bpf::bpf_object__next_program(self.object.0.as_ptr(), program) };
            if program.is_null() {
                // SAFETY: as in lost_records.
                let control = unsafe { self.control.as_ptr().read_volatile() };
                return Ok(sum.saturating_sub(control.caught_runs));
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

    /// Traces these disks (major << 20 | minor) from now on.
    ///
    /// # Errors
    /// If there are more than `DISKS_LIMIT`.
    pub fn switch_on(&mut self, disks: &[u32]) -> Result<(), ProgramError> {
        let control = self.control.as_ptr();
        let mut places = [0; DISKS_LIMIT];
        let first = places.get_mut(..disks.len()).ok_or(ProgramError::Disks(disks.len()))?;
        first.copy_from_slice(disks);
        // SAFETY: the map stays mapped while the object lives. The fields are aligned, and written
        // by user space alone.
        unsafe {
            (&raw mut (*control).disks).write_volatile(places);
            (&raw mut (*control).unmounting).write_volatile(0);
            let session = &raw mut (*control).session;
            session.write_volatile(session.read_volatile() + 1);
            (&raw mut (*control).enabled).write_volatile(ON);
        }
        Ok(())
    }

    /// The programs tell of no new bio any more, but of the requests of those seen.
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
        self.ring.waiting_bytes()
    }

    /// Moves what waits in the ring to memory of ours.
    pub fn collect(&mut self) {
        self.ring.read(&mut self.collected);
    }

    /// Gives what was collected, and begins anew.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.collected)
    }
}

struct Object(NonNull<bpf::bpf_object>);

impl Object {
    fn open() -> Result<Self, ProgramError> {
        let bytes = OBJECT.as_ptr().cast();
        // SAFETY: OBJECT is a valid byte range that outlives the call, which copies it.
        let object = unsafe { bpf::bpf_object__open_mem(bytes, OBJECT.len() as _, null()) };
        NonNull::new(object).map(Object).ok_or_else(|| last_error("open"))
    }

    fn map(&self, name: &CStr) -> Result<*mut bpf::bpf_map, ProgramError> {
        // SAFETY: the object is open and the name ends in NUL.
        let map = unsafe { bpf::bpf_object__find_map_by_name(self.0.as_ptr(), name.as_ptr()) };
        NonNull::new(map).map(NonNull::as_ptr).ok_or_else(|| last_error("find a map of"))
    }

    /// The memory of a section of global variables, of at least `size` bytes.
    fn value(&self, section: &CStr, size: usize) -> Result<NonNull<c_void>, ProgramError> {
        let map = self.map(section)?;
        let mut actual = 0;
        // SAFETY: `map` is of this object.
        let value = unsafe { bpf::bpf_map__initial_value(map, &mut actual) };
        match NonNull::new(value) {
            Some(value) if actual as usize >= size => Ok(value),
            _ => Err(last_error("map the variables of")),
        }
    }

    /// Does not load the programs whose tracepoint this kernel has not.
    fn leave_out(&self, symbols: &Symbols) -> Result<(), ProgramError> {
        for (name, tracepoint) in OPTIONAL {
            // SAFETY: the object is open, and the name ends in NUL.
            let program =
                unsafe { bpf::bpf_object__find_program_by_name(self.0.as_ptr(), name.as_ptr()) };
            let program = NonNull::new(program).ok_or_else(|| last_error("find a program of"))?;
            let is_there = symbols.address(tracepoint) != 0;
            // SAFETY: `program` is of this object, which is not loaded yet.
            let result = unsafe { bpf::bpf_program__set_autoload(program.as_ptr(), is_there) };
            check("choose the programs of", result)?;
        }
        Ok(())
    }

    fn attach(&self) -> Result<Vec<Link>, ProgramError> {
        let mut links = Vec::new();
        let mut program = null_mut();
        loop {
            // SAFETY: the object is loaded; a null program asks for the first.
            program = unsafe { bpf::bpf_object__next_program(self.0.as_ptr(), program) };
            if program.is_null() {
                return Ok(links);
            }
            // SAFETY: `program` is of this object.
            let (is_loaded, kind) =
                unsafe { (bpf::bpf_program__autoload(program), bpf::bpf_program__type(program)) };
            // One that is asked has nothing to be attached to.
            if !is_loaded || kind == bpf::BPF_PROG_TYPE_SYSCALL {
                continue;
            }
            // SAFETY: `program` is of this loaded object.
            let link = unsafe { bpf::bpf_program__attach(program) };
            links.push(Link(NonNull::new(link).ok_or_else(|| last_error("attach"))?));
        }
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        // SAFETY: nothing refers to the object any more: it is the last field dropped.
        unsafe { bpf::bpf_object__close(self.0.as_ptr()) }
    }
}

struct Link(NonNull<bpf::bpf_link>);

impl Drop for Link {
    fn drop(&mut self) {
        // SAFETY: the link is ours and dropped once. It can only fail to detach what is gone.
        unsafe { bpf::bpf_link__destroy(self.0.as_ptr()) };
    }
}

fn check(step: &'static str, result: c_int) -> Result<(), ProgramError> {
    if result >= 0 {
        return Ok(());
    }
    Err(failed(step, io::Error::from_raw_os_error(-result)))
}

fn last_error(step: &'static str) -> ProgramError {
    failed(step, io::Error::last_os_error())
}

fn failed(step: &'static str, source: io::Error) -> ProgramError {
    let remedy = match source.kind() {
        io::ErrorKind::PermissionDenied => "run as root (CAP_BPF and CAP_PERFMON are needed)",
        io::ErrorKind::NotFound => "the kernel needs BTF: /sys/kernel/btf/vmlinux",
        _ => "libbpf's messages above say what the kernel refused",
    };
    ProgramError::Step { step, source, remedy }
}
