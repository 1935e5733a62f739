//! Who waits. Follows the calls that wait for the device (fsync and its kin) from their begin to
//! their end, and answers which one a bio serves.
//!
//! A kernel thread does most of the writing (jbd2, f2fs_ckpt, segctord), so the submitter is not
//! the answer; the call that is going on on the same filesystem is.

use std::collections::{BTreeMap, BTreeSet};

use super::classify::Class;
use super::files::{Key, run_key, sync_key};
use super::kernel::{OPERATION_MASK, OPERATION_READ};
use super::record::{Bio, Run, Sync};

/// The name of a sync call by its system call's number on x86_64.
pub fn call_name(number: u32) -> &'static str {
    match number {
        // The one ioctl that the program tells of: F2FS_IOC_COMMIT_ATOMIC_WRITE.
        16 => "f2fs-commit-atomic-write",
        26 => "msync",
        74 => "fsync",
        75 => "fdatasync",
        162 => "sync",
        277 => "sync_file_range",
        306 => "syncfs",
        _ => "",
    }
}

/// The call a bio serves.
#[derive(Debug, Clone, PartialEq)]
pub struct Asker {
    pub pid: u32,
    pub tid: u32,
    pub comm: String,
    pub call: &'static str,
    /// None for sync and msync, which name no file.
    pub file: Option<Key>,
}

/// The calls that are going on.
#[derive(Debug)]
pub struct SyncCalls {
    /// By thread, with the order in which they began.
    active: BTreeMap<u32, (u64, Sync)>,
    begun: u64,
    disks: BTreeSet<u32>,
    /// s_dev of the filesystems that are known to be on the disks.
    filesystems: BTreeSet<u32>,
}

impl SyncCalls {
    /// No call is going on. `disks` are the numbers of the traced disks.
    pub fn new(disks: BTreeSet<u32>) -> Self {
        SyncCalls { active: BTreeMap::new(), begun: 0, disks, filesystems: BTreeSet::new() }
    }

    /// A filesystem (s_dev) is on a traced disk; true if that is news.
    pub fn learn(&mut self, filesystem: u32) -> bool {
        self.filesystems.insert(filesystem)
    }

    /// A call began. Whether it is on a traced disk may come out only later (Btrfs has no device
    /// of its own).
    pub fn begin(&mut self, sync: Sync) {
        self.active.insert(sync.tid, (self.begun, sync));
        self.begun += 1;
    }

    /// The call is about everything, or about a filesystem on a traced disk as far as is known.
    pub fn is_here(&self, sync: &Sync) -> bool {
        sync.filesystem == 0
            || self.disks.contains(&sync.disk)
            || self.filesystems.contains(&sync.filesystem)
    }

    /// The call that a thread was in, if any, ended.
    pub fn end(&mut self, tid: u32) {
        self.active.remove(&tid);
    }

    /// The submitter itself if it is in such a call; else the call on the file that a run is of;
    /// else the one begun first. What somebody else reads meanwhile serves nobody's sync.
    pub fn asker(&self, bio: &Bio, runs: &[(Run, Class)]) -> Option<Asker> {
        let own = self.active.get(&bio.tid).map(|(_, own)| own);
        if let Some(own) = own.filter(|own| self.is_here(own)) {
            return Some(asker(own));
        }
        if bio.flags & OPERATION_MASK == OPERATION_READ {
            return None;
        }
        let keys: BTreeSet<Key> = runs.iter().map(|(run, _)| run_key(run)).collect();
        let of_file = |sync: &Sync| sync.inode != 0 && keys.contains(&sync_key(sync));
        let calls = self.active.values().filter(|(_, sync)| self.is_here(sync));
        let (_, call) = calls.min_by_key(|(begun, sync)| (!of_file(sync), *begun))?;
        Some(asker(call))
    }
}

fn asker(sync: &Sync) -> Asker {
    Asker {
        pid: sync.pid,
        tid: sync.tid,
        comm: sync.comm.clone(),
        call: call_name(sync.call),
        file: (sync.inode != 0).then(|| sync_key(sync)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::classify::classify;
    use super::super::layout::Layout;
    use super::super::symbols::Symbols;
    use super::*;

    fn call(tid: u32, number: u32, inode: u64, disk: u32) -> Sync {
        let filesystem = if inode == 0 { 0 } else { disk };
        Sync { tid, pid: tid, call: number, inode, disk, filesystem, ..Sync::default() }
    }

    fn calls() -> SyncCalls {
        SyncCalls::new(BTreeSet::from([9]))
    }

    fn write_by(tid: u32) -> Bio {
        Bio { tid, flags: 1, ..Bio::default() }
    }

    fn run_of(inode: u64) -> Vec<(Run, Class)> {
        let run = Run { inode, filesystem: 9, ..Run::default() };
        let class = classify(&Bio::default(), &run, &Symbols::default(), &Layout::default());
        vec![(run, class)]
    }

    #[test]
    fn the_submitter_itself_comes_first() {
        let mut calls = calls();
        calls.begin(call(1, 74, 11, 9));
        calls.begin(call(2, 75, 12, 9));
        assert_eq!(calls.asker(&write_by(2), &run_of(11)).unwrap().call, "fdatasync");
    }

    #[test]
    fn then_whose_file_it_is_then_who_began_first() {
        let mut calls = calls();
        calls.begin(call(5, 74, 11, 9));
        calls.begin(call(2, 74, 12, 9));
        assert_eq!(calls.asker(&write_by(77), &run_of(12)).unwrap().tid, 2);
        assert_eq!(calls.asker(&write_by(77), &run_of(99)).unwrap().tid, 5);
        calls.end(5);
        assert_eq!(calls.asker(&write_by(77), &run_of(99)).unwrap().tid, 2);
        calls.end(2);
        assert_eq!(calls.asker(&write_by(77), &[]), None);
    }

    #[test]
    fn an_atomic_write_of_f2fs_serves_the_file_it_commits() {
        let mut calls = calls();
        calls.begin(call(3, 16, 11, 9));
        let asker = calls.asker(&write_by(77), &run_of(99)).unwrap();
        assert_eq!((asker.tid, asker.call), (3, "f2fs-commit-atomic-write"));
        assert_eq!(asker.file, Some(Key { filesystem: 9, inode: 11, generation: 0 }));
        calls.end(3);
        assert_eq!(calls.asker(&write_by(77), &run_of(11)), None);
    }

    #[test]
    fn other_filesystems_and_other_readers_are_not_served() {
        let mut calls = calls();
        calls.begin(call(1, 74, 11, 8));
        assert_eq!(calls.asker(&write_by(1), &[]), None);
        calls.begin(call(1, 162, 0, 0));
        assert_eq!(calls.asker(&write_by(2), &[]).unwrap().file, None);
        let read = Bio { tid: 2, flags: 0, ..Bio::default() };
        assert_eq!(calls.asker(&read, &[]), None);
    }

    #[test]
    fn a_filesystem_without_a_device_of_its_own_is_known_by_its_pages() {
        let mut calls = calls();
        calls.begin(Sync { disk: 0, filesystem: 39, ..call(1, 74, 11, 0) });
        calls.begin(Sync { disk: 0, filesystem: 40, ..call(2, 74, 11, 0) });
        assert_eq!(calls.asker(&write_by(3), &[]), None);
        assert!(calls.learn(39) && !calls.learn(39));
        assert_eq!(calls.asker(&write_by(3), &[]).unwrap().tid, 1);
        assert_eq!(calls.asker(&write_by(2), &[]).unwrap().tid, 1);
    }
}
