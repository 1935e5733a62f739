//! The folder in which segments wait to be sent, under a name with number and hash. After a kill a
//! segment is there whole or not at all; where the power went while it was written, its bytes may
//! not be those of its name, and the uploader refuses it. It costs one commit of the filesystem's
//! journal, and the number of the next none: a device writes little for us.
//!
//!     SPOOL/ready/SEQUENCE-HASH.tar     waits; the uploader deletes it when the server has it
//!     SPOOL/refused/SEQUENCE-HASH.tar   the server will never take it
//!     SPOOL/state.json                  the spool's number, and that of the next segment
//!     SPOOL/salt                        of hashed names; never leaves the device
//!
//! Where the spool is full, refused segments go first, the oldest first; then the newest segment is
//! not kept. Every one that goes leaves a gap in the numbers, and is counted.

use std::fs::{File, OpenOptions};
use std::io::{Cursor, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::{fs, io};

use anyhow::Context;
use parquet::errors::ParquetError;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::errors::WrongUse;
use crate::tables::fleet::{Commit, FileLives, FileSum, IoSum, SegmentFacts};
use crate::tables::rows::Table;
use crate::tables::write::encode;

const READY: &str = "ready";
const REFUSED: &str = "refused";
const STATE: &str = "state.json";
const SALT: &str = "salt";
const LOCK: &str = "collector.lock";
/// Says what is written before it gets its name.
const PART: &str = "part";

/// So long is the state at all times, by spaces at its end: longer than any, and no longer than a
/// sector of any disk.
const STATE_BYTES: usize = 128;

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SpoolState {
    spool_id: String,
    next_sequence: i64,
}

/// The spool, which no other collector uses meanwhile.
#[derive(Debug)]
pub struct Spool {
    folder: PathBuf,
    state: SpoolState,
    pub salt: [u8; 32],
    bound_bytes: u64,
    /// Segments that were dropped since this was told.
    pub dropped: i64,
    _lock: File,
}

impl Spool {
    /// Opens the spool, or makes it.
    ///
    /// # Errors
    /// If it cannot be written, another collector uses it, or its state is damaged.
    pub fn open(folder: &Path, bound_bytes: u64) -> anyhow::Result<Self> {
        for part in [folder.to_owned(), folder.join(READY), folder.join(REFUSED)] {
            let created = fs::DirBuilder::new().recursive(true).mode(0o700).create(&part);
            created.with_context(|| format!("cannot make {}", part.display()))?;
        }
        let path = folder.join(LOCK);
        let lock = OpenOptions::new().create(true).append(true).mode(0o600).open(&path);
        let lock = lock.with_context(|| path.display().to_string())?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
            WrongUse(format!("{}: another collector uses this spool", folder.display()))
        })?;
        let _ = fs::remove_file(folder.join(PART));
        let salt = salt(folder)?;
        let state = state(folder)?;
        let mut spool =
            Spool { folder: folder.to_owned(), state, salt, bound_bytes, dropped: 0, _lock: lock };
        let after = |(_, path): &(u64, PathBuf)| sequence(path).map_or(0, |it| it + 1);
        let known = spool.waiting(READY)?.iter().chain(&spool.waiting(REFUSED)?).map(after).max();
        spool.state.next_sequence = spool.state.next_sequence.max(known.unwrap_or(0));
        Ok(spool)
    }

    /// The number of the spool.
    pub fn id(&self) -> &str {
        &self.state.spool_id
    }

    /// A number for a segment, which no other gets, whatever happens.
    ///
    /// # Errors
    /// If that cannot be remembered.
    pub fn next_sequence(&mut self) -> io::Result<i64> {
        let sequence = self.state.next_sequence;
        let next = SpoolState { next_sequence: sequence + 1, ..self.state.clone() };
        let text = serde_json::to_string(&next).map_err(io::Error::other)?;
        self.remember(format!("{text:<STATE_BYTES$}").as_bytes())?;
        self.state = next;
        Ok(sequence)
    }

    /// Writes the state in place. As it is always of one length, no metadata has to be written, and
    /// after a power cut it is the old one or the new one.
    fn remember(&self, text: &[u8]) -> io::Result<()> {
        let path = self.folder.join(STATE);
        let file = match OpenOptions::new().write(true).open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return put(&self.folder, &path, text);
            }
            opened => opened?,
        };
        file.write_all_at(text, 0)?;
        file.sync_data()
    }

    /// Keeps a segment; gives how large it is, or None where it was dropped for want of room.
    ///
    /// # Errors
    /// If it cannot be written; it is dropped then, too.
    pub fn store(&mut self, sequence: i64, archive: &[u8]) -> io::Result<Option<u64>> {
        let bytes = archive.len() as u64;
        let stored = self.make_room(bytes).and_then(|has_room| {
            let name = format!("{sequence:012}-{}.tar", hash(archive));
            let to = self.folder.join(READY).join(name);
            if !has_room {
                return Ok(None);
            }
            put_segment(&self.folder, &to, archive).map(|()| Some(bytes))
        });
        if !matches!(stored, Ok(Some(_))) {
            self.dropped += 1;
        }
        stored
    }

    /// Segments that were dropped since this was asked last.
    pub fn take_dropped(&mut self) -> i64 {
        std::mem::take(&mut self.dropped)
    }

    fn make_room(&mut self, bytes: u64) -> io::Result<bool> {
        let mut refused = self.waiting(REFUSED)?;
        let sum = |files: &[(u64, PathBuf)]| files.iter().map(|(size, _)| size).sum::<u64>();
        let mut used = sum(&self.waiting(READY)?) + sum(&refused);
        refused.reverse();
        while used + bytes > self.bound_bytes {
            let Some((size, path)) = refused.pop() else { return Ok(false) };
            fs::remove_file(path)?;
            self.dropped += 1;
            used -= size;
        }
        Ok(true)
    }

    /// Segments with their sizes, in the order of their numbers; the uploader may take some away
    /// meanwhile.
    fn waiting(&self, part: &str) -> io::Result<Vec<(u64, PathBuf)>> {
        let mut files = Vec::new();
        for entry in fs::read_dir(self.folder.join(part))? {
            let entry = entry?;
            match entry.metadata() {
                Ok(metadata) => files.push((metadata.len(), entry.path())),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        files.sort_by(|one, other| one.1.cmp(&other.1));
        Ok(files)
    }
}

/// The sequence number in a name SEQUENCE-HASH.tar.
fn sequence(path: &Path) -> Option<i64> {
    path.file_name()?.to_str()?.split_once('-')?.0.parse().ok()
}

/// Writes a file that is there whole, and on stable storage, or not at all.
fn put(folder: &Path, to: &Path, bytes: &[u8]) -> io::Result<()> {
    write_part(folder, bytes)?.sync_all()?;
    fs::rename(folder.join(PART), to)?;
    File::open(folder)?.sync_all()
}

/// Writes a segment; on return it is on stable storage. Its name is synced with its bytes, so that
/// a journal has both in one commit.
fn put_segment(folder: &Path, to: &Path, bytes: &[u8]) -> io::Result<()> {
    let file = write_part(folder, bytes)?;
    fs::rename(folder.join(PART), to)?;
    let synced = file.sync_all().and_then(|()| File::open(folder.join(READY))?.sync_all());
    if synced.is_err() {
        let _ = fs::remove_file(to);
    }
    synced
}

fn write_part(folder: &Path, bytes: &[u8]) -> io::Result<File> {
    let part = folder.join(PART);
    let mut options = OpenOptions::new();
    let mut file = options.create(true).truncate(true).write(true).mode(0o600).open(&part)?;
    let written = file.write_all(bytes);
    if written.is_err() {
        // It may be what fills the disk.
        let _ = fs::remove_file(&part);
    }
    written.map(|()| file)
}

fn random<const BYTES: usize>() -> io::Result<[u8; BYTES]> {
    let mut bytes = [0; BYTES];
    let read = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    if read == BYTES { Ok(bytes) } else { Err(io::Error::other("too few random bytes")) }
}

fn salt(folder: &Path) -> anyhow::Result<[u8; 32]> {
    let path = folder.join(SALT);
    let name = || path.display().to_string();
    if !path.exists() {
        put(folder, &path, &random::<32>()?).with_context(name)?;
    }
    let salt = fs::read(&path).with_context(name)?;
    let wrong = |_| WrongUse(format!("{}: not 32 bytes; delete it for a new salt", name()));
    Ok(<[u8; 32]>::try_from(salt).map_err(wrong)?)
}

fn state(folder: &Path) -> anyhow::Result<SpoolState> {
    let path = folder.join(STATE);
    let text = match fs::read_to_string(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let id = random::<16>()?.iter().map(|byte| format!("{byte:02x}")).collect();
            return Ok(SpoolState { spool_id: id, next_sequence: 0 });
        }
        read => read.with_context(|| path.display().to_string())?,
    };
    Ok(serde_json::from_str(&text).map_err(|error| {
        let path = path.display();
        WrongUse(format!("{path}: {error}; delete it to begin to count anew"))
    })?)
}

// A segment as it is sent: a tar archive of the tables of schema/fleet/, whose bytes are a pure
// function of the rows.

/// The rows of a segment.
#[derive(Debug, Default)]
pub struct Segment {
    pub facts: SegmentFacts,
    pub commits: Vec<Commit>,
    pub io_sums: Vec<IoSum>,
    pub file_sums: Vec<FileSum>,
    pub file_lives: Vec<FileLives>,
}

impl Segment {
    /// The archive. Rows are let go as their table is there: memory has a bound.
    ///
    /// # Errors
    /// If a table cannot be encoded, as where memory ends.
    pub fn archive(self) -> Result<Vec<u8>, ParquetError> {
        let mut builder = tar::Builder::new(Vec::new());
        add(&mut builder, vec![self.facts])?;
        add(&mut builder, self.commits)?;
        add(&mut builder, self.io_sums)?;
        add(&mut builder, self.file_sums)?;
        add(&mut builder, self.file_lives)?;
        builder.into_inner().map_err(|error| ParquetError::External(Box::new(error)))
    }
}

fn add<Row: Table>(
    builder: &mut tar::Builder<Vec<u8>>,
    rows: Vec<Row>,
) -> Result<(), ParquetError> {
    let mut table = Vec::new();
    encode(&mut table, &rows)?;
    drop(rows);
    let mut header = tar::Header::new_ustar();
    header.set_size(table.len() as u64);
    header.set_mode(0o644);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    let name = format!("{}.parquet", Row::NAME);
    let added: io::Result<()> = builder.append_data(&mut header, name, Cursor::new(table));
    added.map_err(|error| ParquetError::External(Box::new(error)))
}

/// The name of a segment: 64 hexadecimal digits.
pub fn hash(archive: &[u8]) -> String {
    Sha256::digest(archive).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path, part: &str) -> Vec<String> {
        let entries = fs::read_dir(folder.join(part)).unwrap();
        let mut names: Vec<String> =
            entries.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn numbers_go_on_where_the_spool_is_opened_again() {
        let folder = tempfile::tempdir().unwrap();
        let mut spool = Spool::open(folder.path(), 1 << 20).unwrap();
        let (id, salt) = (spool.id().to_owned(), spool.salt);
        assert_eq!(spool.next_sequence().unwrap(), 0);
        assert_eq!(spool.store(0, b"first").unwrap(), Some(5));
        assert!(Spool::open(folder.path(), 1 << 20).is_err_and(|it| it.is::<WrongUse>()));
        drop(spool);
        let mut again = Spool::open(folder.path(), 1 << 20).unwrap();
        assert_eq!((again.id(), again.salt), (id.as_str(), salt));
        assert_eq!(again.next_sequence().unwrap(), 1);
        let name = format!("000000000000-{}.tar", hash(b"first"));
        assert_eq!(names(folder.path(), READY), [name]);
        assert!(!folder.path().join(PART).exists());
    }

    #[test]
    fn the_state_is_as_long_after_ten_numbers_as_before() {
        let folder = tempfile::tempdir().unwrap();
        let mut spool = Spool::open(folder.path(), 1 << 20).unwrap();
        for number in 0..11 {
            assert_eq!(spool.next_sequence().unwrap(), number);
            let length = fs::metadata(folder.path().join(STATE)).unwrap().len();
            assert_eq!(length, STATE_BYTES as u64);
        }
        drop(spool);
        assert_eq!(Spool::open(folder.path(), 1 << 20).unwrap().next_sequence().unwrap(), 11);
    }

    #[test]
    fn a_state_that_was_lost_takes_no_number_twice() {
        let folder = tempfile::tempdir().unwrap();
        let mut spool = Spool::open(folder.path(), 1 << 20).unwrap();
        spool.store(7, b"x").unwrap();
        drop(spool);
        assert_eq!(Spool::open(folder.path(), 1 << 20).unwrap().next_sequence().unwrap(), 8);
    }

    #[test]
    fn a_full_spool_drops_refused_segments_and_then_the_newest() {
        let folder = tempfile::tempdir().unwrap();
        let mut spool = Spool::open(folder.path(), 100).unwrap();
        fs::write(folder.path().join(REFUSED).join("000000000000-a.tar"), [0; 60]).unwrap();
        assert_eq!(spool.store(1, &[1; 40]).unwrap(), Some(40));
        assert_eq!(spool.store(2, &[2; 50]).unwrap(), Some(50));
        assert!(names(folder.path(), REFUSED).is_empty());
        assert_eq!(spool.store(3, &[3; 50]).unwrap(), None);
        assert_eq!(names(folder.path(), READY).len(), 2);
        assert_eq!((spool.take_dropped(), spool.take_dropped()), (2, 0));
    }

    #[test]
    fn a_damaged_state_is_told_with_its_file() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(STATE), "{").unwrap();
        let error = Spool::open(folder.path(), 1).unwrap_err();
        assert!(error.to_string().contains("state.json"), "{error}");
    }

    #[test]
    fn the_same_rows_make_the_same_archive_of_five_tables() {
        let segment = || {
            Segment { commits: vec![Commit::default(); 3], ..Segment::default() }.archive().unwrap()
        };
        assert_eq!(hash(&segment()), hash(&segment()));
        let archive = segment();
        let mut archive = tar::Archive::new(archive.as_slice());
        let names: Vec<String> = archive
            .entries()
            .unwrap()
            .map(|entry| entry.unwrap().path().unwrap().display().to_string())
            .collect();
        let tables = ["segments", "commits", "io_sums", "file_sums", "file_lives"];
        assert_eq!(names, tables.map(|name| format!("{name}.parquet")));
    }
}
