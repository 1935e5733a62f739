//! Hands the results out: reads a folder, writes it as a tar archive behind a small header into
//! the memory that the kernel command line reserves for it, from where the host copies it once
//! the guest has stopped.
//!
//! The header, little-endian: magic (8 bytes), version (u32), CRC-32 of the archive (u32), length
//! of the archive in bytes (u64). jojlab/guest/handout.py is its reader.

use std::cell::Cell;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::{fs, io};

use super::physical::PhysicalMapping;

const MAGIC: [u8; 8] = *b"joj-tar\0";
const VERSION: u32 = 1;
const HEADER_BYTES: usize = 24;
const PAGE_BYTES: usize = 4096;

/// The name of the kernel command line's field: `joj.handout=ADDRESS:LENGTH`, hexadecimal bytes.
const FIELD: &str = "joj.handout=";

/// The reason why results cannot be handed out.
#[derive(Debug, thiserror::Error)]
pub enum HandoutError {
    #[error("the kernel command line has no valid {FIELD}ADDRESS:LENGTH (hexadecimal)")]
    NoRegion,
    #[error("cannot map the hand-out memory at {address:#x} through /dev/mem: {source}")]
    Map { address: u64, source: io::Error },
    #[error("the results do not fit into the {0} bytes of hand-out memory")]
    Full(usize),
    #[error("{0}: only regular files can be handed out")]
    NotAFile(PathBuf),
    #[error("{0}: {1}")]
    Read(PathBuf, io::Error),
}

/// The reserved memory, mapped.
pub struct Region {
    memory: PhysicalMapping,
}

impl Region {
    /// Maps the region that this kernel's command line names.
    ///
    /// # Errors
    /// If it names none, or the kernel does not let us map it.
    pub fn open() -> Result<Self, HandoutError> {
        let (address, length_bytes) = place()?;
        Self::map(address, length_bytes)
    }

    /// Maps its last page, which results of a usual size do not reach.
    ///
    /// # Errors
    /// As `open`.
    pub fn open_last_page() -> Result<Self, HandoutError> {
        let (address, length_bytes) = place()?;
        let before = length_bytes.checked_sub(PAGE_BYTES).ok_or(HandoutError::NoRegion)?;
        Self::map(address + before as u64, PAGE_BYTES)
    }

    fn map(address: u64, length_bytes: usize) -> Result<Self, HandoutError> {
        let memory = PhysicalMapping::new(address, length_bytes)
            .map_err(|source| HandoutError::Map { address, source })?;
        Ok(Self { memory })
    }

    /// The mapped memory.
    pub fn cells(&self) -> &[Cell<u8>] {
        self.memory.cells()
    }

    /// Writes the regular files of `folder` in the order of their names.
    ///
    /// # Errors
    /// If they do not fit, cannot be read, or are not all regular files; the host then finds no
    /// header.
    pub fn write(&mut self, folder: &Path) -> Result<(), HandoutError> {
        write_to(self.memory.cells(), folder)
    }
}

fn place() -> Result<(u64, usize), HandoutError> {
    let line = fs::read_to_string("/proc/cmdline").map_err(|_| HandoutError::NoRegion)?;
    parse_field(&line).ok_or(HandoutError::NoRegion)
}

fn parse_field(line: &str) -> Option<(u64, usize)> {
    let value = line.split_ascii_whitespace().find_map(|word| word.strip_prefix(FIELD))?;
    let (address, length) = value.split_once(':')?;
    let hexadecimal = |text: &str| u64::from_str_radix(text.strip_prefix("0x")?, 16).ok();
    let length_bytes = usize::try_from(hexadecimal(length)?).ok()?;
    (length_bytes > HEADER_BYTES).then_some((hexadecimal(address)?, length_bytes))
}

fn write_to(memory: &[Cell<u8>], folder: &Path) -> Result<(), HandoutError> {
    let (header, body) = memory.split_at(HEADER_BYTES);
    // A header from before must not vouch for an archive that is only half written.
    store(header, &[0; HEADER_BYTES]);
    let archive = archive(body, folder)?;
    let crc = archive.crc.finalize();
    let mut bytes = Vec::with_capacity(HEADER_BYTES);
    for field in
        [&MAGIC[..], &VERSION.to_le_bytes(), &crc.to_le_bytes(), &archive.length.to_le_bytes()]
    {
        bytes.extend(field);
    }
    store(header, &bytes);
    Ok(())
}

/// Memory that is filled from its beginning, and the CRC-32 of what it was filled with.
struct FilledMemory<'a> {
    memory: &'a [Cell<u8>],
    length: usize,
    crc: crc32fast::Hasher,
}

impl Write for FilledMemory<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let bytes = &bytes[..bytes.len().min(self.memory.len() - self.length)];
        store(&self.memory[self.length..][..bytes.len()], bytes);
        self.crc.update(bytes);
        self.length += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Copies `bytes` to as many of `memory` by aligned stores alone (physical.rs says why).
fn store(memory: &[Cell<u8>], bytes: &[u8]) {
    assert_eq!(memory.len(), bytes.len(), "a byte for each place");
    // SAFETY: any eight cells of bytes are one of a u64, which has their layout.
    let (head, words, tail) = unsafe { memory.align_to::<Cell<u64>>() };
    let (first, bytes) = bytes.split_at(head.len());
    let (middle, last) = bytes.split_at(size_of_val(words));
    for (place, word) in words.iter().zip(middle.chunks_exact(size_of::<u64>())) {
        let word = u64::from_ne_bytes(word.try_into().expect("a chunk of eight bytes"));
        // SAFETY: a cell may be written through its pointer. Volatile, so that no compiler merges
        // stores.
        unsafe { place.as_ptr().write_volatile(word) };
    }
    let bytes = head.iter().zip(first).chain(tail.iter().zip(last));
    for (place, byte) in bytes {
        // SAFETY: as above.
        unsafe { place.as_ptr().write_volatile(*byte) };
    }
}

fn archive<'a>(body: &'a [Cell<u8>], folder: &Path) -> Result<FilledMemory<'a>, HandoutError> {
    let capacity = body.len();
    let full = |error: io::Error| match error.kind() {
        io::ErrorKind::WriteZero => HandoutError::Full(capacity),
        _ => HandoutError::Read(folder.into(), error),
    };
    let filled = FilledMemory { memory: body, length: 0, crc: crc32fast::Hasher::new() };
    let mut builder = tar::Builder::new(filled);
    for path in sorted_files(folder)? {
        let content = File::open(&path).map_err(|error| HandoutError::Read(path.clone(), error))?;
        let bytes = content.metadata().map_err(|e| HandoutError::Read(path.clone(), e))?.len();
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes);
        header.set_mode(0o644);
        let name = path.file_name().expect("a listed file has a name");
        builder.append_data(&mut header, name, content).map_err(full)?;
    }
    builder.into_inner().map_err(full)
}

fn sorted_files(folder: &Path) -> Result<Vec<PathBuf>, HandoutError> {
    let failed = |error| HandoutError::Read(folder.into(), error);
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if !entry.file_type().map_err(failed)?.is_file() {
            return Err(HandoutError::NotAFile(entry.path()));
        }
        paths.push(entry.path());
    }
    paths.sort();
    Ok(paths)
}

// Tells a plugin of QEMU, where there is one, of what this guest does (kernel/memory_model): a
// store at offset N of the last page of the hand-out memory says the byte N. Without a plugin
// nobody reads these stores; they are always made, so that a run is the same with and without.

/// The page, mapped.
pub struct Marks {
    region: Region,
}

impl Marks {
    /// Maps the page.
    ///
    /// # Errors
    /// As `Region::open`.
    pub fn open() -> Result<Self, HandoutError> {
        Ok(Self { region: Region::open_last_page()? })
    }

    /// A part of the run begins, whose loads and stores are counted from now on, with those of
    /// earlier parts of its name.
    pub fn begin(&mut self, name: &str) {
        self.say(&format!("count {name}"));
    }

    /// Until the next part begins nothing is counted.
    pub fn pause(&mut self) {
        self.say("pause");
    }

    /// Nothing more is counted.
    pub fn end(&mut self) {
        self.say("end");
    }

    /// Says a line of ASCII.
    fn say(&mut self, line: &str) {
        let page = self.region.cells();
        for byte in line.bytes().chain([b'\n']).filter(u8::is_ascii) {
            // SAFETY: a cell may be written through its pointer.
            unsafe { page[usize::from(byte)].as_ptr().write_volatile(0) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder of the test's own, removed at its end.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("joj-{name}-{}", std::process::id()));
            fs::create_dir(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).unwrap();
        }
    }

    fn cells(memory: &mut [u8]) -> &[Cell<u8>] {
        Cell::from_mut(memory).as_slice_of_cells()
    }

    #[test]
    fn a_handout_is_a_tar_behind_a_true_header() {
        let folder = Folder::new("handout");
        fs::write(folder.0.join("b.json"), b"{}").unwrap();
        fs::write(folder.0.join("a.parquet"), vec![7; 1000]).unwrap();
        let mut memory = vec![0xaa; 8192];
        write_to(cells(&mut memory), &folder.0).unwrap();

        assert_eq!(memory[..8], MAGIC);
        assert_eq!(memory[8..12], 1u32.to_le_bytes());
        let length = u64::from_le_bytes(memory[16..24].try_into().unwrap()) as usize;
        let body = &memory[HEADER_BYTES..HEADER_BYTES + length];
        assert_eq!(memory[12..16], crc32fast::hash(body).to_le_bytes());
        let mut archive = tar::Archive::new(body);
        let files: Vec<(PathBuf, u64)> = archive
            .entries()
            .unwrap()
            .map(|entry| entry.unwrap())
            .map(|entry| (entry.path().unwrap().into_owned(), entry.size()))
            .collect();
        assert_eq!(files, [("a.parquet".into(), 1000), ("b.json".into(), 2)]);
    }

    #[test]
    fn bytes_are_stored_unchanged_at_any_alignment() {
        let bytes: Vec<u8> = (1..=40).collect();
        for (begin, length) in (0..16).flat_map(|begin| (0..24).map(move |it| (begin, it))) {
            let mut memory = [0; 64];
            store(cells(&mut memory[begin..begin + length]), &bytes[..length]);
            let mut expected = [0; 64];
            expected[begin..begin + length].copy_from_slice(&bytes[..length]);
            assert_eq!(memory, expected, "{length} bytes at {begin}");
        }
    }

    #[test]
    fn results_that_do_not_fit_leave_no_header() {
        let folder = Folder::new("full");
        fs::write(folder.0.join("big"), vec![0; 4000]).unwrap();
        let mut memory = vec![0xaa; 4000];
        assert!(matches!(write_to(cells(&mut memory), &folder.0), Err(HandoutError::Full(3976))));
        assert_eq!(memory[..HEADER_BYTES], [0; HEADER_BYTES]);
    }

    #[test]
    fn anything_but_a_regular_file_is_refused() {
        let folder = Folder::new("kinds");
        fs::create_dir(folder.0.join("sub")).unwrap();
        let mut memory = vec![0; 4096];
        assert!(matches!(write_to(cells(&mut memory), &folder.0), Err(HandoutError::NotAFile(_))));
    }

    #[test]
    fn the_region_is_read_from_the_kernel_command_line() {
        let line = "quiet memmap=0xc000000$0x40000000 joj.handout=0x40000000:0xc000000\n";
        assert_eq!(parse_field(line), Some((0x4000_0000, 0xc00_0000)));
        for bad in [
            "",
            "joj.handout=",
            "joj.handout=0x1000",
            "joj.handout=0x1000:0x8",
            "joj.handout=4096:8192",
            "joj.handout=0x1000:0xfffffffffffffffff",
        ] {
            assert_eq!(parse_field(bad), None, "{bad}");
        }
    }
}
