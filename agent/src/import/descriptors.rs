//! The descriptor tables of the processes of a trace: which open file a number leads to, in which
//! process. A table is copied by fork, shared by threads, and thinned by execve.

use std::collections::{BTreeMap, HashSet};
use std::rc::Rc;

use super::files::FileId;

/// Entries of all tables: as many as Linux lets one process have (fs.nr_open), four times.
const MOST_ENTRIES: usize = 4 << 20;

/// An open file description (open(2)): copies of a descriptor share it.
#[derive(Debug, Clone)]
pub struct OpenFile {
    /// None of what is no file: a pipe, a socket.
    pub file: Option<FileId>,
    /// Absolute; empty where it is not known.
    pub path: Vec<u8>,
    /// The least that it can be: a file's end, where an appending write leaves it, is not known.
    pub position: i64,
    pub is_position_exact: bool,
    pub appends: bool,
    /// The thread that opened it.
    pub opener: usize,
}

impl OpenFile {
    pub fn at_begin(file: Option<FileId>, opener: usize) -> Self {
        let (path, appends) = (Vec::new(), false);
        Self { file, path, position: 0, is_position_exact: true, appends, opener }
    }
}

/// The index of an open file description.
pub type OpenId = usize;

#[derive(Debug, Clone, Copy)]
struct TableEntry {
    open: OpenId,
    closes_on_exec: bool,
}

/// More descriptors than any program has.
#[derive(Debug, PartialEq, Eq)]
pub struct TooMany;

type Table = Rc<BTreeMap<i64, TableEntry>>;

/// All tables.
#[derive(Debug, Default)]
pub struct Descriptors {
    tables: Vec<Table>,
    /// Threads that have each.
    users: Vec<usize>,
    pub opens: Vec<OpenFile>,
    /// Numbers that each table had at any time.
    ever: HashSet<(usize, i64)>,
    entries: usize,
}

impl Descriptors {
    /// A table of nothing; its number.
    pub fn add(&mut self) -> usize {
        self.tables.push(Table::default());
        self.users.push(1);
        self.tables.len() - 1
    }

    /// A copy of a table; its number.
    pub fn copy(&mut self, table: usize) -> usize {
        self.tables.push(self.tables[table].clone());
        self.users.push(1);
        self.tables.len() - 1
    }

    /// A thread more has a table; its number.
    pub fn share(&mut self, table: usize) -> usize {
        self.users[table] += 1;
        table
    }

    /// The open file of a number.
    pub fn at(&self, table: usize, number: i64) -> Option<OpenId> {
        self.tables[table].get(&number).map(|entry| entry.open)
    }

    /// Return whether a number led to anything before.
    pub fn was_ever(&self, table: usize, number: i64) -> bool {
        self.ever.contains(&(table, number))
    }

    /// A table that may change: its own from now on, and counted.
    fn own(&mut self, table: usize) -> Result<&mut BTreeMap<i64, TableEntry>, TooMany> {
        if Rc::strong_count(&self.tables[table]) > 1 {
            self.entries += self.tables[table].len();
        }
        if self.entries >= MOST_ENTRIES {
            self.entries = self.count();
        }
        if self.entries >= MOST_ENTRIES {
            return Err(TooMany);
        }
        Ok(Rc::make_mut(&mut self.tables[table]))
    }

    /// Entries in fact; those of a table that is shared once for each that shares it.
    fn count(&self) -> usize {
        self.tables.iter().map(|table| table.len() / Rc::strong_count(table).max(1)).sum()
    }

    /// A new open file under a number.
    pub fn open(
        &mut self,
        table: usize,
        number: i64,
        file: OpenFile,
        closes_on_exec: bool,
    ) -> Result<OpenId, TooMany> {
        self.opens.push(file);
        let open = self.opens.len() - 1;
        self.put(table, number, open, closes_on_exec)?;
        Ok(open)
    }

    /// A number leads to an open file.
    pub fn put(
        &mut self,
        table: usize,
        number: i64,
        open: OpenId,
        closes_on_exec: bool,
    ) -> Result<(), TooMany> {
        let is_new = self.own(table)?.insert(number, TableEntry { open, closes_on_exec }).is_none();
        self.entries += usize::from(is_new);
        self.ever.insert((table, number));
        Ok(())
    }

    pub fn close(&mut self, table: usize, number: i64) -> Result<(), TooMany> {
        if self.tables[table].contains_key(&number) {
            self.own(table)?.remove(&number);
        }
        Ok(())
    }

    /// close_range(2): the numbers of a range are closed, or will be on exec.
    pub fn close_range(
        &mut self,
        table: usize,
        first: i64,
        last: i64,
        on_exec: bool,
    ) -> Result<(), TooMany> {
        if first > last {
            return Ok(());
        }
        let own = self.own(table)?;
        if on_exec {
            own.range_mut(first..=last).for_each(|(_, entry)| entry.closes_on_exec = true);
        } else {
            own.retain(|number, _| !(first..=last).contains(number));
        }
        Ok(())
    }

    pub fn set_closes_on_exec(
        &mut self,
        table: usize,
        number: i64,
        closes: bool,
    ) -> Result<(), TooMany> {
        if let Some(entry) = self.own(table)?.get_mut(&number) {
            entry.closes_on_exec = closes;
        }
        Ok(())
    }

    /// execve(2) succeeded.
    pub fn execute(&mut self, table: usize) -> Result<(), TooMany> {
        self.own(table)?.retain(|_, entry| !entry.closes_on_exec);
        Ok(())
    }

    /// A thread has ended; with the last one the table is no more.
    pub fn leave(&mut self, table: usize) {
        self.users[table] = self.users[table].saturating_sub(1);
        if self.users[table] == 0 {
            self.tables[table] = Table::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> OpenFile {
        OpenFile { path: b"/a".to_vec(), ..OpenFile::at_begin(Some(1), 0) }
    }

    #[test]
    fn tables_are_copied_by_fork_and_thinned_by_execve() {
        let mut all = Descriptors::default();
        let first = all.add();
        let open = all.open(first, 3, file(), true).unwrap();
        all.put(first, 4, open, false).unwrap();
        let child = all.copy(first);
        all.execute(child).unwrap();
        assert_eq!((all.at(child, 3), all.at(child, 4)), (None, Some(open)));
        assert_eq!(all.at(first, 3), Some(open));
        all.set_closes_on_exec(first, 3, false).unwrap();
        all.close_range(first, 4, i64::MAX, false).unwrap();
        assert_eq!((all.at(first, 3), all.at(first, 4)), (Some(open), None));
        all.close(first, 3).unwrap();
        assert_eq!((all.at(first, 3), all.was_ever(first, 3)), (None, true));
        assert_eq!(all.share(child), child);
        all.leave(child);
        assert!(all.at(child, 4).is_some());
        all.leave(child);
        assert_eq!(all.at(child, 4), None);
    }

    #[test]
    fn more_descriptors_than_any_program_has_are_refused() {
        let mut all = Descriptors::default();
        let first = all.add();
        let open = all.open(first, 0, file(), false).unwrap();
        for number in 1..(1 << 20) {
            all.put(first, number, open, false).unwrap();
        }
        let refused = (0..10).any(|_| {
            let child = all.copy(first);
            all.close(child, 0).is_err()
        });
        assert!(refused);
    }
}
