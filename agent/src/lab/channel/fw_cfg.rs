//! Reads a named file that the host handed to QEMU with `-fw_cfg`, through the two I/O ports of
//! the device and without a driver. The reads are synchronous: no interrupt, no host thread.
//! The interface is described in docs/specs/fw_cfg.txt of QEMU's source.

use super::ports::Ports;
use std::io;

/// Selector register (two bytes, little-endian) and data register (one byte).
const PORT: u16 = 0x510;
const DATA: u16 = 1;

const KEY_SIGNATURE: u16 = 0x00;
const KEY_DIRECTORY: u16 = 0x19;

/// A directory entry: size (u32), selector (u16), reserved (u16), name (56 bytes, NUL-padded).
const ENTRY_BYTES: usize = 64;
/// QEMU's own limit is 0x20 slots by default; a directory far above it is not one.
const MOST_ENTRIES: u32 = 4096;
/// A case is a record of some fields; a file above this is not one.
const MOST_FILE_BYTES: u32 = 16 << 20;

/// Why the host's file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum FwCfgError {
    #[error("no right to the fw_cfg ports: {0}")]
    NoPorts(#[from] io::Error),
    #[error("no fw_cfg device answers at port {PORT:#x}: this is not a guest of the lab")]
    NoDevice,
    #[error("fw_cfg holds no file {0:?}: the lab passes it with -fw_cfg name={0},file=...")]
    NoFile(String),
    #[error("the fw_cfg file {name:?} has {bytes} bytes, above the limit of {MOST_FILE_BYTES}")]
    TooBig { name: String, bytes: u32 },
    #[error("the fw_cfg directory claims {0} entries, above the limit of {MOST_ENTRIES}")]
    Directory(u32),
}

/// Reads the whole file `name`.
///
/// # Errors
/// If there is no such device or file, or what it says of itself cannot be.
pub fn read(name: &str) -> Result<Vec<u8>, FwCfgError> {
    read_from(&Device { ports: Ports::acquire(PORT, 2)? }, name)
}

/// What the device offers: choose an item, then read its bytes in order.
trait Items {
    fn select(&self, key: u16);
    fn next_byte(&self) -> u8;

    fn next_array<const N: usize>(&self) -> [u8; N] {
        std::array::from_fn(|_| self.next_byte())
    }
}

struct Device {
    ports: Ports,
}

impl Items for Device {
    fn select(&self, key: u16) {
        self.ports.write_u16(0, key);
    }

    fn next_byte(&self) -> u8 {
        self.ports.read_u8(DATA)
    }
}

fn read_from(items: &impl Items, name: &str) -> Result<Vec<u8>, FwCfgError> {
    items.select(KEY_SIGNATURE);
    if &items.next_array::<4>() != b"QEMU" {
        return Err(FwCfgError::NoDevice);
    }
    items.select(KEY_DIRECTORY);
    let entries = u32::from_be_bytes(items.next_array());
    if entries > MOST_ENTRIES {
        return Err(FwCfgError::Directory(entries));
    }
    for _ in 0..entries {
        let entry = Entry::decode(&items.next_array());
        if entry.name != name.as_bytes() {
            continue;
        }
        if entry.bytes > MOST_FILE_BYTES {
            return Err(FwCfgError::TooBig { name: name.into(), bytes: entry.bytes });
        }
        items.select(entry.key);
        return Ok((0..entry.bytes).map(|_| items.next_byte()).collect());
    }
    Err(FwCfgError::NoFile(name.into()))
}

struct Entry {
    bytes: u32,
    key: u16,
    name: Vec<u8>,
}

impl Entry {
    /// Numbers in the directory are big-endian.
    fn decode(raw: &[u8; ENTRY_BYTES]) -> Self {
        Self {
            bytes: u32::from_be_bytes([raw[0], raw[1], raw[2], raw[3]]),
            key: u16::from_be_bytes([raw[4], raw[5]]),
            name: raw[8..].iter().copied().take_while(|&byte| byte != 0).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cell::{Cell, RefCell};
    use std::collections::BTreeMap;

    /// The device's protocol on memory: bytes past an item's end read as zero, as in QEMU.
    struct Memory {
        items: BTreeMap<u16, Vec<u8>>,
        chosen: RefCell<Vec<u8>>,
        position: Cell<usize>,
    }

    impl Items for Memory {
        fn select(&self, key: u16) {
            *self.chosen.borrow_mut() = self.items.get(&key).cloned().unwrap_or_default();
            self.position.set(0);
        }

        fn next_byte(&self) -> u8 {
            let at = self.position.replace(self.position.get() + 1);
            self.chosen.borrow().get(at).copied().unwrap_or(0)
        }
    }

    fn device(signature: &[u8], files: &[(&str, u32, &[u8])]) -> Memory {
        let mut items = BTreeMap::from([(KEY_SIGNATURE, signature.to_vec())]);
        let mut directory = (files.len() as u32).to_be_bytes().to_vec();
        for (key, (name, bytes, content)) in (0x20u16..).zip(files) {
            directory.extend(bytes.to_be_bytes());
            directory.extend(key.to_be_bytes());
            directory.extend([0, 0]);
            directory.extend(name.bytes().chain(std::iter::repeat(0)).take(56));
            items.insert(key, content.to_vec());
        }
        items.insert(KEY_DIRECTORY, directory);
        Memory { items, chosen: RefCell::default(), position: Cell::new(0) }
    }

    #[test]
    fn finds_a_file_by_its_whole_name() {
        let memory = device(b"QEMU", &[("opt/a/case2", 3, b"no!"), ("opt/a/case", 4, b"{\"\"}")]);
        assert_eq!(read_from(&memory, "opt/a/case").unwrap(), b"{\"\"}");
    }

    #[test]
    fn an_absent_file_and_an_absent_device_are_told_apart() {
        let memory = device(b"QEMU", &[("other", 0, b"")]);
        assert!(matches!(read_from(&memory, "case"), Err(FwCfgError::NoFile(_))));
        let memory = device(b"\xff\xff\xff\xff", &[("case", 0, b"")]);
        assert!(matches!(read_from(&memory, "case"), Err(FwCfgError::NoDevice)));
    }

    #[test]
    fn sizes_out_of_bounds_are_refused() {
        let memory = device(b"QEMU", &[("case", MOST_FILE_BYTES + 1, b"")]);
        assert!(matches!(read_from(&memory, "case"), Err(FwCfgError::TooBig { .. })));
        let mut memory = device(b"QEMU", &[]);
        memory.items.insert(KEY_DIRECTORY, u32::MAX.to_be_bytes().to_vec());
        assert!(matches!(read_from(&memory, "case"), Err(FwCfgError::Directory(u32::MAX))));
    }

    proptest! {
        /// Whatever the directory's bytes: a file of a size within bounds or an error, no panic.
        #[test]
        fn a_directory_of_any_bytes_is_read_or_refused(
            entries in 0..6_u32,
            directory in prop::collection::vec(any::<u8>(), 0..400),
            bytes in prop::option::of(any::<u16>()),
        ) {
            let mut memory = device(b"QEMU", &[("case", 4, b"{\"\"}")]);
            let mut item = entries.to_be_bytes().to_vec();
            if let Some(bytes) = bytes {
                let whole = &memory.items[&KEY_DIRECTORY];
                item.extend(u32::from(bytes).to_be_bytes());
                item.extend(&whole[8..4 + ENTRY_BYTES]);
            }
            item.extend(directory);
            memory.items.insert(KEY_DIRECTORY, item);
            match read_from(&memory, "case") {
                Ok(file) => prop_assert_eq!(Some(file.len()), bytes.map(usize::from)),
                Err(FwCfgError::NoFile(name)) => {
                    prop_assert_eq!(name, "case");
                    prop_assert!(entries == 0 || bytes.is_none());
                }
                Err(error) => prop_assert!(false, "{}", error),
            }
        }
    }
}
