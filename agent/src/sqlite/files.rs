//! The files that SQLite keeps of a database: how large each is, and the number by which a WAL
//! counts how often it is begun anew. Reads the files' metadata and the WAL's header, and changes
//! nothing.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::Serialize;

/// What SQLite appends to the database's name: nothing, rollback journal, WAL, its index.
const SUFFIXES: [&str; 4] = ["", "-journal", "-wal", "-shm"];
/// Place and length of the checkpoint sequence number in a WAL's header
/// (sqlite.org/fileformat2.html#the_write_ahead_log); big-endian.
const SEQUENCE: std::ops::Range<usize> = 12..16;

/// One file's size at one moment, as stat(2) has it; all zero where there is none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct FileSize {
    pub name: String,
    pub size_bytes: u64,
    /// Blocks of 512 bytes.
    pub blocks: u64,
}

/// The file of a database that has a suffix.
pub fn path(database: &Path, suffix: &str) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// The sizes of all files of a database.
///
/// # Errors
/// If one is there and cannot be looked at.
pub fn sizes(database: &Path) -> std::io::Result<Vec<FileSize>> {
    let of = |suffix| {
        let path = path(database, suffix);
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match std::fs::metadata(&path) {
            Ok(found) => Ok(FileSize { name, size_bytes: found.len(), blocks: found.blocks() }),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Ok(FileSize { name, ..FileSize::default() })
            }
            Err(error) => Err(error),
        }
    };
    SUFFIXES.into_iter().map(of).collect()
}

/// The number in the header of the database's WAL, one more each time that it is begun anew
/// (walRestartHdr() in src/wal.c). None where there is no WAL, or nothing is in it.
///
/// # Errors
/// If it is there and cannot be read.
pub fn wal_sequence(database: &Path) -> std::io::Result<Option<u32>> {
    let mut header = [0; 32];
    let read = File::open(path(database, "-wal")).and_then(|mut file| file.read_exact(&mut header));
    match read {
        Ok(()) => {
            let number = header[SEQUENCE].try_into().map(u32::from_be_bytes).unwrap_or_default();
            Ok(Some(number))
        }
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::UnexpectedEof) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
