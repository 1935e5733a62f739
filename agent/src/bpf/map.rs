//! A hash map of a loaded BPF object: reads, adds and removes its entries while programs do.

use std::ffi::{CStr, c_int};
use std::io;
use std::marker::PhantomData;
use std::ptr::null;

use libbpf_sys as bpf;

use super::error::{BpfError, check};
use super::object::Object;

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
    /// The map of that name.
    ///
    /// # Errors
    /// If there is none, or its keys or values have other sizes.
    pub fn of(object: &'a Object, name: &CStr) -> Result<Self, BpfError> {
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
