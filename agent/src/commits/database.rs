//! Which files are SQLite's: those locked as it locks a database, and what lies beside them by name
//! (sqlite.org/fileformat2.html, sections 3 and 4; sqlite.org/lockingv3.html).

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::call::{Deed, FileCall, FileLife};

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

/// Databases by their paths, and the paths that files were opened by.
#[derive(Debug, Default)]
pub struct DatabaseFiles {
    databases: BTreeMap<String, usize>,
    paths: BTreeMap<FileLife, String>,
}

impl DatabaseFiles {
    /// Of all calls that there are.
    pub fn of(calls: &[FileCall]) -> Self {
        let mut paths: BTreeMap<FileLife, &str> = BTreeMap::new();
        let mut found: BTreeSet<String> = BTreeSet::new();
        for call in calls {
            match (&call.deed, call.file) {
                (Deed::Open { path }, Some(file)) => drop(paths.insert(file, path)),
                (Deed::Lock { offset_bytes, .. }, Some(file)) if LOCKS.contains(offset_bytes) => {
                    found.extend(paths.get(&file).map(ToString::to_string));
                }
                _ => {}
            }
        }
        Self { databases: found.into_iter().zip(0..).collect(), ..Self::default() }
    }

    /// How many databases there are.
    pub fn count(&self) -> usize {
        self.databases.len()
    }

    /// A file was opened by a path.
    pub fn opened(&mut self, file: FileLife, path: &str) {
        self.paths.insert(file, path.to_owned());
    }

    /// What a file is.
    pub fn role(&self, file: FileLife) -> Option<FileRole> {
        self.role_of_path(self.paths.get(&file)?)
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
    pub fn beneath(&self, directory: FileLife) -> Vec<usize> {
        let Some(directory) = self.paths.get(&directory) else { return Vec::new() };
        let inside = |path: &str| Path::new(path).parent() == Some(Path::new(directory));
        let databases = self.databases.iter().filter(|(path, _)| inside(path));
        databases.map(|(_, &number)| number).collect()
    }
}
