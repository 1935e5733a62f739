//! A BPF object as libbpf handles it: opens it from bytes, finds its maps and global variables,
//! leaves programs out, loads and attaches the others, and closes it when it is dropped. Errors say
//! what can be done. A hash map of a loaded object can be read and changed while its programs run.

use std::ffi::{CStr, c_int, c_void};
use std::io;
use std::marker::PhantomData;
use std::ptr::{NonNull, null, null_mut};

use libbpf_sys as bpf;

use super::ring::CHUNK_BYTES;

/// A step that failed.
#[derive(Debug, thiserror::Error)]
pub enum BpfError {
    #[error("cannot {step} the BPF program: {source}; {remedy}")]
    Step { step: &'static str, source: io::Error, remedy: &'static str },
    #[error("the ring cannot have {0} bytes: a power of two from {CHUNK_BYTES} on is needed")]
    RingSize(u32),
}

impl BpfError {
    /// Return what the system said of a step.
    pub fn new(step: &'static str, source: io::Error) -> Self {
        let remedy = match source.kind() {
            io::ErrorKind::PermissionDenied => "run as root (CAP_BPF and CAP_PERFMON are needed)",
            io::ErrorKind::NotFound => "the kernel needs BTF: /sys/kernel/btf/vmlinux",
            _ => "libbpf's messages above say what the kernel refused",
        };
        BpfError::Step { step, source, remedy }
    }

    /// Return the error in errno, where libbpf leaves it when it returns a null pointer.
    pub fn last(step: &'static str) -> Self {
        Self::new(step, io::Error::last_os_error())
    }
}

/// Return what libbpf returns: 0 or more, or a negative error number.
pub fn check(step: &'static str, result: c_int) -> Result<(), BpfError> {
    if result >= 0 {
        return Ok(());
    }
    Err(BpfError::new(step, io::Error::from_raw_os_error(-result)))
}

/// Types of programs that are attached to nothing, but asked: the second where the kernel has not
/// the first (Linux 5.14). Those that are attached to a tracepoint are of another, as they know the
/// types of its arguments.
const QUERY_TYPES: [bpf::bpf_prog_type; 2] =
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
            if QUERY_TYPES.contains(&unsafe { bpf::bpf_program__type(program) }) {
                continue;
            }
            // SAFETY: `program` is of this loaded object.
            let link = unsafe { bpf::bpf_program__attach(program) };
            links.push(Link(NonNull::new(link).ok_or_else(|| BpfError::last("attach"))?));
        }
        Ok(links)
    }

    /// Return how often the kernel did not run programs because they were running on that CPU
    /// already (bpf_prog_info.recursion_misses), of those whose names `counts`.
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

    /// Return what a program that is asked returns for a question; None where the kernel does not
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

/// A key and its value.
type KeyAndValue<const KEY_BYTES: usize, const VALUE_WORDS: usize> =
    ([u8; KEY_BYTES], [u64; VALUE_WORDS]);

/// Keys are bytes, values are words; both laid out as the program has them.
pub struct Map<'a, const KEY_BYTES: usize, const VALUE_WORDS: usize> {
    /// Open as long as the object.
    descriptor: c_int,
    object: PhantomData<&'a Object>,
}

impl<'a, const KEY_BYTES: usize, const VALUE_WORDS: usize> Map<'a, KEY_BYTES, VALUE_WORDS> {
    /// Return the map of that name.
    ///
    /// # Errors
    /// If there is none, or its keys or values have other sizes.
    pub fn find(object: &'a Object, name: &CStr) -> Result<Self, BpfError> {
        let map = object.map(name)?;
        // SAFETY: the map is of the object, which keeps its descriptor open.
        let (key_bytes, value_bytes, descriptor) = unsafe {
            (bpf::bpf_map__key_size(map), bpf::bpf_map__value_size(map), bpf::bpf_map__fd(map))
        };
        if (key_bytes as usize, value_bytes as usize) != (KEY_BYTES, VALUE_WORDS * 8) {
            return Err(BpfError::new("find a map of", io::ErrorKind::InvalidData.into()));
        }
        Ok(Map { descriptor, object: PhantomData })
    }

    /// All entries, as of now.
    ///
    /// # Errors
    /// If the kernel does not hand one out.
    pub fn entries(&self) -> Result<Vec<KeyAndValue<KEY_BYTES, VALUE_WORDS>>, BpfError> {
        let entry = |key: [u8; KEY_BYTES]| {
            let mut value = [0; VALUE_WORDS];
            // SAFETY: key and value have the map's sizes.
            let result = unsafe {
                let (key, value) = ((&raw const key).cast(), (&raw mut value).cast());
                bpf::bpf_map_lookup_elem(self.descriptor, key, value)
            };
            check("read a map of", result).map(|()| (key, value))
        };
        self.keys().into_iter().map(entry).collect()
    }

    /// Adds an entry; false where the key is there already.
    ///
    /// # Errors
    /// If the kernel does not take it.
    pub fn add(&self, key: &[u8; KEY_BYTES], value: &[u64; VALUE_WORDS]) -> Result<bool, BpfError> {
        // SAFETY: key and value have the map's sizes.
        let result = unsafe {
            let (key, value) = ((&raw const *key).cast(), (&raw const *value).cast());
            bpf::bpf_map_update_elem(self.descriptor, key, value, bpf::BPF_NOEXIST.into())
        };
        if result == -libc::EEXIST {
            return Ok(false);
        }
        check("fill a map of", result).map(|()| true)
    }

    /// Removes an entry; false where there is none.
    pub fn remove(&self, key: &[u8; KEY_BYTES]) -> bool {
        // SAFETY: the key has the map's size.
        unsafe { bpf::bpf_map_delete_elem(self.descriptor, (&raw const *key).cast()) == 0 }
    }

    /// Removes all entries.
    ///
    /// # Errors
    /// If the kernel keeps one.
    pub fn clear(&self) -> Result<(), BpfError> {
        for key in self.keys() {
            // SAFETY: the key has the map's size.
            let result =
                unsafe { bpf::bpf_map_delete_elem(self.descriptor, (&raw const key).cast()) };
            // A program may have removed it since.
            if result != -libc::ENOENT {
                check("empty a map of", result)?;
            }
        }
        Ok(())
    }

    /// All keys, as of now; some twice, where programs remove others meanwhile.
    pub fn keys(&self) -> Vec<[u8; KEY_BYTES]> {
        let mut keys = Vec::<[u8; KEY_BYTES]>::new();
        loop {
            let mut next = [0; KEY_BYTES];
            let last = keys.last().map_or(null(), |key| (&raw const *key).cast());
            // SAFETY: both keys have the map's size, or the first is null: the first key is asked
            // for.
            let result =
                unsafe { bpf::bpf_map_get_next_key(self.descriptor, last, (&raw mut next).cast()) };
            if result != 0 {
                return keys;
            }
            keys.push(next);
        }
    }
}
