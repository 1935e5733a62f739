//! The descriptor tables of the recorded processes: which open file each number is, at each moment.
//! A number may also be of what is no file on a disk: a pipe, a socket, a terminal.

use std::collections::BTreeMap;

use crate::script::plan::Slot;

/// What a number leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opened {
    File(Slot),
    Elsewhere,
}

#[derive(Debug, Clone, Copy)]
struct OpenNumber {
    opened: Opened,
    closes_on_exec: bool,
}

/// One table, which threads of one process share.
#[derive(Debug, Clone, Default)]
struct DescriptorTable {
    entries: BTreeMap<i64, OpenNumber>,
    /// Threads that have it.
    users: usize,
}

/// All tables, by thread.
#[derive(Debug, Default)]
pub struct DescriptorTables {
    tables: Vec<DescriptorTable>,
    of_thread: BTreeMap<i64, usize>,
    /// Numbers of all copies that were made.
    pub copied: usize,
}

impl DescriptorTables {
    /// Whether a thread has begun.
    pub fn has(&self, thread: i64) -> bool {
        self.of_thread.contains_key(&thread)
    }

    /// A thread begins with a table of its own, which is empty.
    pub fn begin(&mut self, thread: i64) {
        self.of_thread.insert(thread, self.tables.len());
        self.tables.push(DescriptorTable { users: 1, ..DescriptorTable::default() });
    }

    /// A thread begins with the table of another.
    pub fn share(&mut self, thread: i64, creator: i64) {
        let table = self.of_thread[&creator];
        self.tables[table].users += 1;
        self.of_thread.insert(thread, table);
    }

    /// A thread begins with a copy of another's table, of slots that `copy` makes of those.
    pub fn copy(&mut self, thread: i64, creator: i64, mut copy: impl FnMut(Slot) -> Slot) {
        let mut table = self.tables[self.of_thread[&creator]].clone();
        table.users = 1;
        self.copied += table.entries.len();
        for entry in table.entries.values_mut() {
            if let Opened::File(slot) = &mut entry.opened {
                *slot = copy(*slot);
            }
        }
        self.of_thread.insert(thread, self.tables.len());
        self.tables.push(table);
    }

    fn table(&mut self, thread: i64) -> &mut DescriptorTable {
        let table = self.of_thread[&thread];
        &mut self.tables[table]
    }

    /// What a number of a thread leads to.
    pub fn at(&mut self, thread: i64, number: i64) -> Option<Opened> {
        self.table(thread).entries.get(&number).map(|entry| entry.opened)
    }

    /// A number leads to something from now on.
    pub fn set(&mut self, thread: i64, number: i64, opened: Opened, closes_on_exec: bool) {
        self.table(thread).entries.insert(number, OpenNumber { opened, closes_on_exec });
    }

    /// A number is closed.
    pub fn remove(&mut self, thread: i64, number: i64) {
        self.table(thread).entries.remove(&number);
    }

    /// Whether an execve shall close a number.
    pub fn mark(&mut self, thread: i64, number: i64, closes_on_exec: bool) {
        if let Some(entry) = self.table(thread).entries.get_mut(&number) {
            entry.closes_on_exec = closes_on_exec;
        }
    }

    /// The numbers of a range.
    pub fn between(&mut self, thread: i64, first: i64, last: i64) -> Vec<i64> {
        if first > last {
            return Vec::new();
        }
        self.table(thread).entries.range(first..=last).map(|(number, _)| *number).collect()
    }

    /// A thread runs another program: gives the files that are closed by that.
    pub fn execute(&mut self, thread: i64) -> Vec<Slot> {
        let mut closed = Vec::new();
        self.table(thread).entries.retain(|_, entry| {
            if let (Opened::File(slot), true) = (entry.opened, entry.closes_on_exec) {
                closed.push(slot);
            }
            !entry.closes_on_exec
        });
        closed
    }

    /// A thread ends: gives the files that are closed by that, of the last one with its table.
    pub fn end(&mut self, thread: i64) -> Vec<Slot> {
        let table = self.table(thread);
        table.users = table.users.saturating_sub(1);
        if table.users > 0 {
            return Vec::new();
        }
        let closed = std::mem::take(&mut table.entries).into_values();
        let slot = |entry: OpenNumber| match entry.opened {
            Opened::File(slot) => Some(slot),
            Opened::Elsewhere => None,
        };
        closed.filter_map(slot).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_a_table_of_its_own_and_an_execve_closes_what_is_marked() {
        let mut tables = DescriptorTables::default();
        tables.begin(0);
        tables.set(0, 3, Opened::File(0), true);
        tables.set(0, 4, Opened::File(1), false);
        tables.set(0, 5, Opened::Elsewhere, false);
        tables.copy(1, 0, |slot| slot + 10);
        tables.remove(0, 4);
        assert_eq!(tables.at(1, 4), Some(Opened::File(11)));
        assert_eq!(tables.execute(1), [10]);
        assert_eq!(tables.at(1, 3), None);
        assert_eq!((tables.end(1), tables.end(0)), (vec![11], vec![0]));
    }

    #[test]
    fn a_shared_table_is_closed_by_the_last_thread() {
        let mut tables = DescriptorTables::default();
        tables.begin(0);
        tables.share(1, 0);
        tables.set(1, 3, Opened::File(0), false);
        assert_eq!(tables.between(0, 0, 9), [3]);
        assert!(tables.end(0).is_empty());
        assert_eq!(tables.end(1), [0]);
    }
}
