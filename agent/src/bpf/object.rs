//! The BPF object as libbpf handles it: opened from the bytes in this program, its maps, its
//! programs attached; closed when it is dropped.

use std::ffi::{CStr, c_int, c_void};
use std::io;
use std::ptr::{NonNull, null, null_mut};

use libbpf_sys as bpf;

use super::ProgramError;
use super::symbols::Symbols;

static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/attribution.bpf.o"));

/// Programs for a tracepoint that not every kernel has, each with the function that says that it is
/// there (DECLARE_TRACE of include/linux/tracepoint.h).
const OPTIONAL: [(&CStr, &str); 3] = [
    (c"uring_submitted", "__traceiter_io_uring_submit_req"),
    (c"uring_submitted_before", "__traceiter_io_uring_submit_sqe"),
    (c"uring_completed", "__traceiter_io_uring_complete"),
];

/// An open object.
pub struct Object(pub NonNull<bpf::bpf_object>);

impl Object {
    pub fn open() -> Result<Self, ProgramError> {
        let bytes = OBJECT.as_ptr().cast();
        // SAFETY: OBJECT is a valid byte range that outlives the call, which copies it.
        let object = unsafe { bpf::bpf_object__open_mem(bytes, OBJECT.len() as _, null()) };
        NonNull::new(object).map(Object).ok_or_else(|| last_error("open"))
    }

    pub fn map(&self, name: &CStr) -> Result<*mut bpf::bpf_map, ProgramError> {
        // SAFETY: the object is open and the name ends in NUL.
        let map = unsafe { bpf::bpf_object__find_map_by_name(self.0.as_ptr(), name.as_ptr()) };
        NonNull::new(map).map(NonNull::as_ptr).ok_or_else(|| last_error("find a map of"))
    }

    /// The memory of a section of global variables, of at least `size` bytes.
    pub fn value(&self, section: &CStr, size: usize) -> Result<NonNull<c_void>, ProgramError> {
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
    pub fn leave_out(&self, symbols: &Symbols) -> Result<(), ProgramError> {
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

    pub fn attach(&self) -> Result<Vec<Link>, ProgramError> {
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

/// A program attached, as long as this lives.
pub struct Link(NonNull<bpf::bpf_link>);

impl Drop for Link {
    fn drop(&mut self) {
        // SAFETY: the link is ours and dropped once. It can only fail to detach what is gone.
        unsafe { bpf::bpf_link__destroy(self.0.as_ptr()) };
    }
}

pub fn check(step: &'static str, result: c_int) -> Result<(), ProgramError> {
    if result >= 0 {
        return Ok(());
    }
    Err(failed(step, io::Error::from_raw_os_error(-result)))
}

fn last_error(step: &'static str) -> ProgramError {
    failed(step, io::Error::last_os_error())
}

pub fn failed(step: &'static str, source: io::Error) -> ProgramError {
    let remedy = match source.kind() {
        io::ErrorKind::PermissionDenied => "run as root (CAP_BPF and CAP_PERFMON are needed)",
        io::ErrorKind::NotFound => "the kernel needs BTF: /sys/kernel/btf/vmlinux",
        _ => "libbpf's messages above say what the kernel refused",
    };
    ProgramError::Step { step, source, remedy }
}
