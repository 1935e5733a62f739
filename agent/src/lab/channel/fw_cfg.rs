//! Reads named files that the host handed to QEMU with `-fw_cfg`, through the registers of the
//! device (`hardware`) and without a driver. The reads are synchronous: no interrupt, no host
//! thread. The interface is described in docs/specs/fw_cfg.txt of QEMU's source.

use super::hardware::FwCfg;
use std::path::{Path, PathBuf};
use std::{fs, io};

const KEY_SIGNATURE: u16 = 0x00;
const KEY_DIRECTORY: u16 = 0x19;

/// A directory entry: size (u32), selector (u16), reserved (u16), name (56 bytes, NUL-padded).
const ENTRY_BYTES: usize = 64;
/// QEMU's own limit is 0x20 slots by default; a directory far above it is not one.
const MOST_ENTRIES: u32 = 4096;
/// The lab takes no larger input file (jojlab/lab/job.py).
const MOST_FILE_BYTES: u32 = 64 << 20;

/// The reason why the host's file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum FwCfgError {
    #[error("no right to the registers of fw_cfg: {0}")]
    NoRegisters(#[from] io::Error),
    #[error("no fw_cfg device answers: this is not a guest of the lab")]
    NoDevice,
    #[error("fw_cfg holds no file {0:?}: the lab passes it with -fw_cfg name={0},file=...")]
    NoFile(String),
    #[error("the fw_cfg file {name:?} has {bytes} bytes, more than {most_bytes}")]
    TooBig { name: String, bytes: u32, most_bytes: u32 },
    #[error("the fw_cfg file {0:?} has no plain name: letters, digits, - and _")]
    Name(String),
    #[error("writing {path}: {source}")]
    Write { path: PathBuf, source: io::Error },
    #[error("the fw_cfg directory claims {0} entries, above the limit of {MOST_ENTRIES}")]
    Directory(u32),
}

/// Reads the whole file `name`.
///
/// # Errors
/// If there is no such device or file, or what it says of itself cannot be.
pub fn read(name: &str) -> Result<Vec<u8>, FwCfgError> {
    read_from(&FwCfg::open()?, name)
}

/// Reads every file whose name is `prefix` and a plain name, of so many bytes at most; gives them
/// by those names.
///
/// # Errors
/// If there is no such device, or what it says of itself cannot be.
pub fn read_below(prefix: &str, most_bytes: u32) -> Result<Vec<(String, Vec<u8>)>, FwCfgError> {
    let device = FwCfg::open()?;
    let files = below(&device, prefix)?;
    let read = |(name, entry): (String, Entry)| {
        let content = content(&device, &entry, most_bytes)?;
        Ok((name, content))
    };
    files.into_iter().map(read).collect()
}

/// Writes every file whose name is `prefix` and a plain name into the new directory `directory`;
/// makes none where there is no such file.
///
/// # Errors
/// If there is no such device, what it says of itself cannot be, or a file cannot be written.
pub fn write_below(prefix: &str, directory: &Path) -> Result<(), FwCfgError> {
    write_from(&FwCfg::open()?, prefix, directory)
}

/// Describes what the device offers: choose an item, then read its bytes in order.
trait Items {
    fn select(&self, key: u16);
    fn read(&self, bytes: &mut [u8]);

    fn next_array<const N: usize>(&self) -> [u8; N] {
        let mut array = [0; N];
        self.read(&mut array);
        array
    }
}

impl Items for FwCfg {
    fn select(&self, key: u16) {
        FwCfg::select(self, key);
    }

    fn read(&self, bytes: &mut [u8]) {
        FwCfg::read(self, bytes);
    }
}

fn read_from(items: &impl Items, name: &str) -> Result<Vec<u8>, FwCfgError> {
    let entries = entries(items)?;
    let found = entries.iter().find(|entry| entry.name == name.as_bytes());
    let found = found.ok_or_else(|| FwCfgError::NoFile(name.into()))?;
    content(items, found, MOST_FILE_BYTES)
}

fn write_from(items: &impl Items, prefix: &str, directory: &Path) -> Result<(), FwCfgError> {
    for (name, entry) in below(items, prefix)? {
        let path = directory.join(name);
        let write = |source| FwCfgError::Write { path: path.clone(), source };
        fs::create_dir_all(directory).map_err(write)?;
        fs::write(&path, content(items, &entry, MOST_FILE_BYTES)?).map_err(write)?;
    }
    Ok(())
}

/// The entries whose names are `prefix` and a plain name, by those.
fn below(items: &impl Items, prefix: &str) -> Result<Vec<(String, Entry)>, FwCfgError> {
    let mut found = Vec::new();
    for entry in entries(items)? {
        let Some(name) = entry.name.strip_prefix(prefix.as_bytes()) else { continue };
        let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-".contains(byte);
        if name.is_empty() || !name.iter().all(is_plain) {
            return Err(FwCfgError::Name(entry.name()));
        }
        found.push((String::from_utf8_lossy(name).into_owned(), entry));
    }
    Ok(found)
}

fn entries(items: &impl Items) -> Result<Vec<Entry>, FwCfgError> {
    items.select(KEY_SIGNATURE);
    if &items.next_array::<4>() != b"QEMU" {
        return Err(FwCfgError::NoDevice);
    }
    items.select(KEY_DIRECTORY);
    let entries = u32::from_be_bytes(items.next_array());
    if entries > MOST_ENTRIES {
        return Err(FwCfgError::Directory(entries));
    }
    Ok((0..entries).map(|_| Entry::decode(&items.next_array())).collect())
}

fn content(items: &impl Items, entry: &Entry, most_bytes: u32) -> Result<Vec<u8>, FwCfgError> {
    if entry.bytes > most_bytes {
        return Err(FwCfgError::TooBig { name: entry.name(), bytes: entry.bytes, most_bytes });
    }
    items.select(entry.key);
    let mut content = vec![0; entry.bytes as usize];
    items.read(&mut content);
    Ok(content)
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

    fn name(&self) -> String {
        String::from_utf8_lossy(&self.name).into_owned()
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

        fn read(&self, bytes: &mut [u8]) {
            for byte in bytes {
                let at = self.position.replace(self.position.get() + 1);
                *byte = self.chosen.borrow().get(at).copied().unwrap_or(0);
            }
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
    fn every_file_below_a_prefix_is_written_and_no_other() {
        let files: [(&str, u32, &[u8]); 4] = [
            ("opt/a/case", 2, b"{}"),
            ("opt/a/in/x", 3, b"x\n1"),
            ("opt/a/in/y_2", 0, b""),
            ("opt/b", 1, b"b"),
        ];
        let folder = tempfile::tempdir().unwrap();
        let inputs = folder.path().join("inputs");
        write_from(&device(b"QEMU", &files), "opt/c/", &inputs).unwrap();
        assert!(!inputs.exists());
        write_from(&device(b"QEMU", &files), "opt/a/in/", &inputs).unwrap();
        assert_eq!(fs::read(inputs.join("x")).unwrap(), b"x\n1");
        assert_eq!(fs::read(inputs.join("y_2")).unwrap(), b"");
        assert_eq!(fs::read_dir(&inputs).unwrap().count(), 2);
    }

    #[test]
    fn a_name_that_leads_out_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["in/", "in/.", "in/../x", "in//etc/x", "in/a/b"] {
            let memory = device(b"QEMU", &[(name, 1, b"x")]);
            let error = write_from(&memory, "in/", &folder.path().join("inputs")).unwrap_err();
            assert!(matches!(error, FwCfgError::Name(found) if found == name));
        }
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
