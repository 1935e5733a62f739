//! Finds the files of SQLite: those locked as it locks a database, and those beside them by name
//! (sqlite.org/fileformat2.html, sections 3 and 4; sqlite.org/lockingv3.html).

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::call::{Deed, FileCall, PathRoot};
use super::recent_map::RecentMap;
use crate::device::sysfs;
use crate::tracer::FileKey;

/// PENDING_BYTE, and the bytes from it on that locks of a database lie in (os.h of SQLite).
pub const LOCKS: std::ops::Range<u64> = 0x4000_0000..0x4000_0200;

/// Says what a file is to the database of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileRole {
    Database(usize),
    Journal(usize),
    Wal(usize),
    Shm(usize),
    SuperJournal(usize),
}

/// Files of which paths are kept: so many recent ones, and as many others; and databases beyond
/// which idle ones are forgotten. Memory has a bound, however long calls come.
const FILES_LIMIT: usize = 16_384;
const LASTING_FILES_LIMIT: usize = 8_192;
const DATABASES_LIMIT: usize = 32_768;

/// A path, and what it means to those that gave it.
type Place = (String, PathRoot);

/// Databases by their places, and the places that files were opened by. Two files that one path
/// leads to, in two containers, are two databases; one file that two paths lead to is one.
#[derive(Debug, Default)]
pub struct DatabaseFiles {
    databases: BTreeMap<Place, usize>,
    /// Each known database by its number: the place that it was met by first, and the file that was
    /// there last.
    known: BTreeMap<usize, (Place, FileKey)>,
    next: usize,
    numbers: RecentMap<FileKey, usize, LASTING_FILES_LIMIT>,
    places: RecentMap<FileKey, Place, FILES_LIMIT>,
    /// Likewise of databases, WALs and their shared memory, which a process keeps open: others, of
    /// which there are many, put none of them out.
    lasting_places: RecentMap<FileKey, Place, LASTING_FILES_LIMIT>,
}

impl DatabaseFiles {
    /// Know the files of all calls at once.
    pub fn from_calls(calls: &[FileCall]) -> Self {
        let mut places: BTreeMap<FileKey, (&str, PathRoot)> = BTreeMap::new();
        let mut file_by_place: BTreeMap<Place, FileKey> = BTreeMap::new();
        for call in calls {
            match (&call.deed, call.file) {
                (Deed::Open { path, .. }, Some(file)) => {
                    places.insert(file, (path, call.caller.root));
                }
                (Deed::Lock { offset_bytes, .. }, Some(file)) if LOCKS.contains(offset_bytes) => {
                    let place = places.get(&file).map(|(path, root)| ((*path).to_owned(), *root));
                    file_by_place.extend(place.map(|place| (place, file)));
                }
                _ => {}
            }
        }
        let mut files = Self::default();
        file_by_place.into_iter().for_each(|(place, file)| files.learn(place, file));
        files
    }

    /// A lock of bytes was taken on a file, or given back: it is a database, if they are SQLite's.
    pub fn note_lock(&mut self, file: FileKey, offset_bytes: u64) {
        if !LOCKS.contains(&offset_bytes) {
            return;
        }
        let Some(place) = self.place(file).cloned() else { return };
        self.learn(place.clone(), file);
        self.note_open(file, &place.0, place.1);
    }

    /// A database is at a place: that which was there before, or the same file by another path, or
    /// a new one.
    fn learn(&mut self, place: Place, file: FileKey) {
        let known = self.databases.get(&place).or_else(|| self.numbers.get(&file)).copied();
        let number = known.unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        });
        self.numbers.insert(file, number);
        self.known.entry(number).or_insert_with(|| (place.clone(), file)).1 = file;
        self.databases.insert(place, number);
    }

    /// The path of a database; where it leads to several, with the inode and the device of its
    /// filesystem before it, so that each has a name of its own.
    pub fn name(&self, database: usize) -> String {
        let Some(((path, _), file)) = self.known.get(&database) else { return String::new() };
        let all = (path.clone(), PathRoot::default())..=(path.clone(), PathRoot::LAST);
        if self.databases.range(all).all(|(_, number)| *number == database) {
            return path.clone();
        }
        let subvolume = match file.subvolume {
            0 => String::new(),
            number => format!(", subvolume {number}"),
        };
        format!(
            "inode {} of {}{subvolume}: {path}",
            file.inode,
            sysfs::number_text(file.filesystem)
        )
    }

    /// The file of a database, as it was last.
    pub fn file(&self, database: usize) -> Option<FileKey> {
        self.known.get(&database).map(|(_, file)| *file)
    }

    /// There are more databases than are kept.
    pub fn is_crowded(&self) -> bool {
        self.databases.len() > DATABASES_LIMIT
    }

    /// Forgets the databases but these, and those of which files are known; gives what is left. One
    /// that is met again gets a new number.
    pub fn forget_idle(&mut self, busy: BTreeSet<usize>) -> BTreeSet<usize> {
        let known = self.lasting_places.values();
        let known: BTreeSet<(&str, PathRoot)> =
            known.map(|(path, root)| (database_of_lasting(path), *root)).collect();
        self.databases.retain(|(path, root), number| {
            busy.contains(number) || known.contains(&(&**path, *root))
        });
        let left: BTreeSet<usize> = self.databases.values().copied().collect();
        self.known.retain(|number, _| left.contains(number));
        self.numbers.retain(|number| left.contains(number));
        left
    }

    /// Return the number of databases.
    pub fn count(&self) -> usize {
        self.known.len()
    }

    /// A file was opened by a path.
    pub fn note_open(&mut self, file: FileKey, path: &str, root: PathRoot) {
        let place = (path.to_owned(), root);
        if self.databases.contains_key(&(database_of_lasting(path).to_owned(), root)) {
            self.places.remove(&file);
            self.lasting_places.insert(file, place);
        } else {
            self.lasting_places.remove(&file);
            self.places.insert(file, place);
        }
    }

    /// A place that is asked for is kept.
    fn place(&mut self, file: FileKey) -> Option<&Place> {
        self.lasting_places.get(&file).or_else(|| self.places.get(&file))
    }

    /// Return the role of a file.
    pub fn role(&mut self, file: FileKey) -> Option<FileRole> {
        let (path, root) = self.place(file)?.clone();
        self.role_of_path(&path, root)
    }

    /// Return the role of the file at a path.
    pub fn role_of_path(&self, path: &str, root: PathRoot) -> Option<FileRole> {
        let at = |path: &str| self.databases.get(&(path.to_owned(), root)).copied();
        let of = |suffix| at(path.strip_suffix(suffix)?);
        if let Some(database) = at(path) {
            return Some(FileRole::Database(database));
        }
        of("-journal")
            .map(FileRole::Journal)
            .or_else(|| of("-wal").map(FileRole::Wal))
            .or_else(|| of("-shm").map(FileRole::Shm))
            .or_else(|| {
                // "%s-mj%06X9%02X" in vdbeCommit(), src/vdbeaux.c of SQLite.
                let (database, number) = path.rsplit_once("-mj")?;
                let is_number =
                    number.len() == 9 && number.bytes().all(|it| it.is_ascii_hexdigit());
                let number = at(database).filter(|_| is_number)?;
                Some(FileRole::SuperJournal(number))
            })
    }

    /// The databases in a directory that was opened.
    pub fn beneath(&mut self, directory: FileKey) -> Vec<usize> {
        let Some((directory, root)) = self.place(directory).cloned() else { return Vec::new() };
        let inside = |(path, of): &Place| {
            *of == root && Path::new(path).parent() == Some(Path::new(&directory))
        };
        let databases = self.databases.iter().filter(|(place, _)| inside(place));
        databases.map(|(_, &number)| number).collect()
    }
}

/// The database of such a file, by its path.
fn database_of_lasting(path: &str) -> &str {
    path.strip_suffix("-wal").or_else(|| path.strip_suffix("-shm")).unwrap_or(path)
}

// Which databases have a WAL, where its frames lie (sqlite.org/fileformat2.html, section 4), and
// how long the pages are: known once the header of the database or of the WAL, or a page of the
// WAL, was written.

pub const WAL_HEADER_BYTES: u64 = 32;
pub const FRAME_HEADER_BYTES: u64 = 24;

/// The beginning of every database that is not empty (section 1.3).
pub const MAGIC: &[u8; 16] = b"SQLite format 3\0";
/// The versions of the format, in the header of a database without a WAL, and of one whose commits
/// are in a redo log (vfs/redo_format.h).
const ROLLBACK_VERSION: u8 = 1;
const MARK_VERSION: u8 = 3;
const PAGE_BYTES: std::ops::RangeInclusive<u64> = 512..=65_536;

/// The pages of each database, the frames in the WAL of those that have one, and those that have
/// the mark of a redo log, by the numbers of databases.
#[derive(Debug, Default)]
pub struct DatabasePages {
    in_wal: BTreeSet<usize>,
    marked: BTreeSet<usize>,
    page_bytes: BTreeMap<usize, u64>,
}

impl DatabasePages {
    /// The database has a WAL.
    pub fn enter(&mut self, database: usize) {
        self.in_wal.insert(database);
    }

    /// It has none any more.
    pub fn leave(&mut self, database: usize) {
        self.in_wal.remove(&database);
    }

    /// The first page of a database was written, whose first bytes these are. Return whether it
    /// says that there is no WAL (section 1.3.3).
    pub fn see_header(&mut self, database: usize, header: &[u8]) -> bool {
        if header.starts_with(MAGIC)
            && let Some(&[high, low]) = header.get(16..18)
        {
            // 1 stands for 65536, which two bytes cannot hold.
            let page = u16::from_be_bytes([high, low]);
            self.learn(database, if page == 1 { 65_536 } else { page.into() });
        }
        let versions = header.get(18..20);
        match versions {
            Some(&[MARK_VERSION, MARK_VERSION]) => drop(self.marked.insert(database)),
            Some(_) => drop(self.marked.remove(&database)),
            None => {}
        }
        versions == Some(&[ROLLBACK_VERSION; 2])
    }

    /// The header of a WAL was written, whose first bytes these are.
    pub fn begin(&mut self, database: usize, header: &[u8]) {
        self.enter(database);
        if let Some(page) = header.get(8..12) {
            self.learn(database, u32::from_be_bytes(page.try_into().expect("4 bytes")).into());
        }
    }

    /// A page was written to it.
    pub fn page(&mut self, database: usize, length_bytes: u64) {
        self.enter(database);
        if !self.page_bytes.contains_key(&database) {
            self.learn(database, length_bytes);
        }
    }

    fn learn(&mut self, database: usize, page_bytes: u64) {
        if PAGE_BYTES.contains(&page_bytes) && page_bytes.is_power_of_two() {
            self.page_bytes.insert(database, page_bytes);
        }
    }

    /// Return the length of its pages, where that was seen.
    pub fn page_bytes(&self, database: usize) -> Option<u64> {
        self.page_bytes.get(&database).copied()
    }

    /// Return whether it has a WAL, as far as was seen.
    pub fn has_wal(&self, database: usize) -> bool {
        self.in_wal.contains(&database)
    }

    /// Return whether its commits are in a redo log, as far as was seen.
    pub fn has_mark(&self, database: usize) -> bool {
        self.marked.contains(&database)
    }

    /// The number of the frame that begins there, from 1.
    pub fn number(&self, database: usize, offset_bytes: u64) -> i64 {
        let frame = self.page_bytes(database).map_or(u64::MAX, |page| page + FRAME_HEADER_BYTES);
        (offset_bytes.saturating_sub(WAL_HEADER_BYTES) / frame) as i64 + 1
    }

    /// Forgets those of all other databases.
    pub fn keep(&mut self, databases: &BTreeSet<usize>) {
        self.in_wal.retain(|number| databases.contains(number));
        self.marked.retain(|number| databases.contains(number));
        self.page_bytes.retain(|number, _| databases.contains(number));
    }
}
