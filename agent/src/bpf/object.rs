//! A BPF object as libbpf handles it: opened from bytes, its maps and global variables found, its
//! programs left out, loaded, attached and asked; closed when it is dropped.

use std::ffi::{CStr, c_void};
use std::ptr::{NonNull, null, null_mut};

use libbpf_sys as bpf;

use super::error::{BpfError, check};

/// Types of programs that are attached to nothing, but asked: the second where the kernel has not
/// the first (Linux 5.14). Those that are attached to a tracepoint are of another, as they know the
/// types of its arguments.
const ASKED: [bpf::bpf_prog_type; 2] =
    [bpf::BPF_PROG_TYPE_SYSCALL, bpf::BPF_PROG_TYPE_RAW_TRACEPOINT];

/// An open object.
pub struct Object(NonNull<bpf::bpf_object>);

impl Object {
    /// Opens the bytes of an object file.
    ///
    /// # Errors
    /// If they are none.
    pub fn open(bytes: &[u8]) -> Result<Self, BpfError> {
        // SAFETY: a valid byte range that outlives the call, which copies it.
        let object =
            unsafe { bpf::bpf_object__open_mem(bytes.as_ptr().cast(), bytes.len() as _, null()) };
        NonNull::new(object).map(Object).ok_or_else(|| BpfError::last("open"))
    }

    /// A map, valid as long as the object.
    ///
    /// # Errors
    /// If there is none of that name.
    pub fn map(&self, name: &CStr) -> Result<*mut bpf::bpf_map, BpfError> {
        // SAFETY: the object is open and the name ends in NUL.
        let map = unsafe { bpf::bpf_object__find_map_by_name(self.0.as_ptr(), name.as_ptr()) };
        NonNull::new(map).map(NonNull::as_ptr).ok_or_else(|| BpfError::last("find a map of"))
    }

    /// The memory of a section of global variables, of at least `size` bytes; valid as long as the
    /// object.
    ///
    /// # Errors
    /// If the section is not there, or smaller.
    pub fn section(&self, name: &CStr, size: usize) -> Result<NonNull<c_void>, BpfError> {
        let map = self.map(name)?;
        let mut actual = 0;
        // SAFETY: `map` is of this object.
        let value = unsafe { bpf::bpf_map__initial_value(map, &mut actual) };
        match NonNull::new(value) {
            Some(value) if actual as usize >= size => Ok(value),
            _ => Err(BpfError::last("map the variables of")),
        }
    }

    /// Does not load a program, which the object may be without. Before `load`.
    ///
    /// # Errors
    /// If it is loaded already.
    pub fn leave_out(&self, name: &CStr) -> Result<(), BpfError> {
        let Some(program) = self.program(name) else { return Ok(()) };
        // SAFETY: `program` is of this object, which is not loaded yet.
        check("choose the programs of", unsafe { bpf::bpf_program__set_autoload(program, false) })
    }

    /// Hands the programs and maps to the kernel.
    ///
    /// # Errors
    /// If it refuses one.
    pub fn load(&self) -> Result<(), BpfError> {
        // SAFETY: the object is open and not loaded.
        check("load", unsafe { bpf::bpf_object__load(self.0.as_ptr()) })
    }

    /// Attaches every program of a loaded object that has something to be attached to.
    ///
    /// # Errors
    /// If the kernel refuses one.
    pub fn attach(&self) -> Result<Vec<Link>, BpfError> {
        let mut links = Vec::new();
        for program in self.loaded_programs() {
            // SAFETY: `program` is of this object.
            if ASKED.contains(&unsafe { bpf::bpf_program__type(program) }) {
                continue;
            }
            // SAFETY: `program` is of this loaded object.
            let link = unsafe { bpf::bpf_program__attach(program) };
            links.push(Link(NonNull::new(link).ok_or_else(|| BpfError::last("attach"))?));
        }
        Ok(links)
    }

    /// How often the kernel did not run programs because they were running on that CPU already
    /// (bpf_prog_info.recursion_misses), of those whose names `counts`.
    ///
    /// # Errors
    /// If the kernel does not report it.
    pub fn skipped_runs(&self, counts: impl Fn(&[u8]) -> bool) -> Result<u64, BpfError> {
        let mut sum: u64 = 0;
        for program in self.loaded_programs() {
            // SAFETY: `program` is of this object, whose names end in NUL.
            let name = unsafe { CStr::from_ptr(bpf::bpf_program__name(program)) };
            if !counts(name.to_bytes()) {
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
        Ok(sum)
    }

    /// What a program that is asked returns for a question; None where the kernel does not
    /// run it.
    pub fn ask(&self, name: &CStr, mut question: u64) -> Option<u32> {
        let program = self.program(name)?;
        let mut options = bpf::bpf_test_run_opts {
            sz: size_of::<bpf::bpf_test_run_opts>() as _,
            ctx_in: (&raw mut question).cast(),
            ctx_size_in: size_of_val(&question) as u32,
            ..Default::default()
        };
        // SAFETY: the program is of the loaded object, and reads a question of this size.
        let result =
            unsafe { bpf::bpf_prog_test_run_opts(bpf::bpf_program__fd(program), &raw mut options) };
        (result == 0).then_some(options.retval)
    }

    fn program(&self, name: &CStr) -> Option<*mut bpf::bpf_program> {
        // SAFETY: the object is open, and the name ends in NUL.
        let program =
            unsafe { bpf::bpf_object__find_program_by_name(self.0.as_ptr(), name.as_ptr()) };
        NonNull::new(program).map(NonNull::as_ptr)
    }

    fn loaded_programs(&self) -> impl Iterator<Item = *mut bpf::bpf_program> {
        let mut program = null_mut();
        let all = std::iter::from_fn(move || {
            // SAFETY: the object is open; a null program asks for the first.
            program = unsafe { bpf::bpf_object__next_program(self.0.as_ptr(), program) };
            (!program.is_null()).then_some(program)
        });
        // SAFETY: `program` is of this object.
        all.filter(|&program| unsafe { bpf::bpf_program__autoload(program) })
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        // SAFETY: whoever has pointers into the object drops them before it.
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
