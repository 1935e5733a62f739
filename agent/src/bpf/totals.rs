//! The sums that the programs keep of what got no record (kernel/block/totals.bpf.h): reads and
//! empties their maps.

use std::ffi::{CStr, c_int, c_void};

use libbpf_sys as bpf;

use super::object::check;
use super::{Program, ProgramError};

const MAPS: [&CStr; 2] = [c"totals", c"further_totals"];

/// struct total_key of event.h, aligned as it is.
#[repr(C, align(8))]
#[derive(Debug, Clone, Copy)]
struct Key([u8; 104]);

/// struct total.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct Value {
    runs: u64,
    bytes: u64,
}

/// One sum: struct total_key and struct total of event.h.
#[derive(Debug, Clone, Copy)]
pub struct Total {
    pub key: [u8; 104],
    pub runs: u64,
    pub bytes: u64,
}

impl Program {
    /// What was counted since the last `switch_on`.
    ///
    /// # Errors
    /// If the kernel does not hand it out.
    pub fn totals(&self) -> Result<Vec<Total>, ProgramError> {
        let mut found = Vec::new();
        for map in self.totals_maps()? {
            for key in keys(map) {
                let mut value = Value::default();
                // SAFETY: the map is of the loaded object; key and value have its sizes.
                let result = unsafe {
                    let (key, value) = ((&raw const key).cast(), (&raw mut value).cast());
                    bpf::bpf_map_lookup_elem(map, key, value)
                };
                check("read the totals of", result)?;
                found.push(Total { key: key.0, runs: value.runs, bytes: value.bytes });
            }
        }
        Ok(found)
    }

    pub(super) fn forget_totals(&mut self) -> Result<(), ProgramError> {
        for map in self.totals_maps()? {
            for key in keys(map) {
                // SAFETY: as in `totals`.
                let result = unsafe { bpf::bpf_map_delete_elem(map, (&raw const key).cast()) };
                check("empty the totals of", result)?;
            }
        }
        Ok(())
    }

    fn totals_maps(&self) -> Result<Vec<c_int>, ProgramError> {
        // SAFETY: the map is of the loaded object, which keeps its descriptor open.
        let descriptor = |map| unsafe { bpf::bpf_map__fd(map) };
        MAPS.iter().map(|name| Ok(descriptor(self.object.map(name)?))).collect()
    }
}

/// All keys of a map, as of now.
fn keys(map: c_int) -> Vec<Key> {
    let mut keys = Vec::<Key>::new();
    loop {
        let mut next = Key([0; 104]);
        let last = keys.last().map_or(std::ptr::null(), |key| (&raw const *key).cast::<c_void>());
        // SAFETY: both keys have the map's size, or the first is null: the first key is asked for.
        if unsafe { bpf::bpf_map_get_next_key(map, last, (&raw mut next).cast()) } != 0 {
            return keys;
        }
        keys.push(next);
    }
}
