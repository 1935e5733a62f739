//! Which files are SQLite's: those locked as it locks a database, and what lies beside them by name
//! (sqlite.org/fileformat2.html, sections 3 and 4; sqlite.org/lockingv3.html).

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::call::{Deed, FileCall};
use super::recent_map::RecentMap;
use crate::tracer::FileKey;

/// PENDING_BYTE, and the bytes from it on that locks of a database lie in (os.h of SQLite).
const LOCKS: std::ops::Range<u64> = 0x4000_0000..0x4000_0200;

/// What a file is to the database of a number.
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
const FILES_KEPT: usize = 16_384;
const LASTING_KEPT: usize = 8_192;
const DATABASES_KEPT: usize = 32_768;

/// Databases by their paths, and the paths that files were opened by.
#[derive(Debug, Default)]
pub struct DatabaseFiles {
    databases: BTreeMap<String, usize>,
    next: usize,
    paths: RecentMap<FileKey, String, FILES_KEPT>,
    /// Likewise of databases, WALs and their shared memory, which a process keeps open: others, of
    /// which there are many, put none of them out.
    lasting_paths: RecentMap<FileKey, String, LASTING_KEPT>,
}

impl DatabaseFiles {
    /// Of all calls that there are.
    pub fn of(calls: &[FileCall]) -> Self {
        let mut paths: BTreeMap<FileKey, &str> = BTreeMap::new();
        let mut found: BTreeSet<String> = BTreeSet::new();
        for call in calls {
            match (&call.deed, call.file) {
                (Deed::Open { path, .. }, Some(file)) => drop(paths.insert(file, path)),
                (Deed::Lock { offset_bytes, .. }, Some(file)) if LOCKS.contains(offset_bytes) => {
                    found.extend(paths.get(&file).map(ToString::to_string));
                }
                _ => {}
            }
        }
        let next = found.len();
        Self { databases: found.into_iter().zip(0..).collect(), next, ..Self::default() }
    }

    /// A lock of bytes was taken on a file: it is a database, if they are SQLite's.
    pub fn locked(&mut self, file: FileKey, offset_bytes: u64) {
        if !LOCKS.contains(&offset_bytes) {
            return;
        }
        let Some(path) = self.path(file).map(str::to_owned) else { return };
        if !self.databases.contains_key(&path) {
            self.databases.insert(path.clone(), self.next);
            self.next += 1;
        }
        self.opened(file, &path);
    }

    /// The path of a database.
    pub fn name(&self, database: usize) -> &str {
        let found = self.databases.iter().find(|(_, number)| **number == database);
        found.map_or("", |(path, _)| path)
    }

    /// There are more databases than are kept.
    pub fn is_crowded(&self) -> bool {
        self.databases.len() > DATABASES_KEPT
    }

    /// Forgets the databases but these, and those of which files are known; gives what is left. One
    /// that is met again gets a new number.
    pub fn forget_idle(&mut self, busy: BTreeSet<usize>) -> BTreeSet<usize> {
        let known = self.lasting_paths.values().map(|path| database_of_lasting(path));
        let known: BTreeSet<&str> = known.collect();
        self.databases.retain(|path, number| busy.contains(number) || known.contains(&**path));
        self.databases.values().copied().collect()
    }

    /// How many databases there are.
    pub fn count(&self) -> usize {
        self.databases.len()
    }

    /// A file was opened by a path.
    pub fn opened(&mut self, file: FileKey, path: &str) {
        if self.databases.contains_key(database_of_lasting(path)) {
            self.paths.remove(&file);
            self.lasting_paths.insert(file, path.to_owned());
        } else {
            self.lasting_paths.remove(&file);
            self.paths.insert(file, path.to_owned());
        }
    }

    /// A path that is asked for is kept.
    fn path(&mut self, file: FileKey) -> Option<&str> {
        self.lasting_paths.get(&file).or_else(|| self.paths.get(&file)).map(String::as_str)
    }

    /// What a file is.
    pub fn role(&mut self, file: FileKey) -> Option<FileRole> {
        let path = self.path(file)?.to_owned();
        self.role_of_path(&path)
    }

    /// What a path is of.
    pub fn role_of_path(&self, path: &str) -> Option<FileRole> {
        let of = |suffix| self.databases.get(path.strip_suffix(suffix)?).copied();
        if let Some(&database) = self.databases.get(path) {
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
                let number = self.databases.get(database).copied().filter(|_| is_number)?;
                Some(FileRole::SuperJournal(number))
            })
    }

    /// The databases in a directory that was opened.
    pub fn beneath(&mut self, directory: FileKey) -> Vec<usize> {
        let Some(directory) = self.path(directory).map(str::to_owned) else { return Vec::new() };
        let inside = |path: &str| Path::new(path).parent() == Some(Path::new(&directory));
        let databases = self.databases.iter().filter(|(path, _)| inside(path));
        databases.map(|(_, &number)| number).collect()
    }
}

/// The database of such a file, by its path.
fn database_of_lasting(path: &str) -> &str {
    path.strip_suffix("-wal").or_else(|| path.strip_suffix("-shm")).unwrap_or(path)
}
