//! Finds why a bio exists: which call it serves, and which file changes a filesystem's commit
//! carries. Reads the records of calls, changes and names in order, together with the bios.

pub mod calls;
pub mod changes;
mod mounts;
mod names;
mod sync_calls;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use crate::tracer::classify::{BlockType, Class, RunOwner};
use crate::tracer::files::{Effect, FileKey};
use crate::tracer::records::kernel::{
    BLOCK_DEVICE_MAGIC, BTRFS_MAGIC, F2FS_MAGIC, NILFS_MAGIC, OPERATION_MASK, OPERATION_WRITE,
    UBIFS_MAGIC,
};
use crate::tracer::records::{Bio, Change, JournalTransaction, Name, PathRecord, Run, Sync};
use crate::tracer::surroundings::Surroundings;
use calls::{LINK, LINKAT, RENAME, RENAMEAT, RENAMEAT2, RMDIR, TRUNCATE, UNLINK, UNLINKAT};
use changes::{ChangedSubject, Changes, Reason, Scope};
use mounts::{FilesystemPath, Mounts};
use names::{NameLookup, UringNames};
use sync_calls::{Asker, SyncCalls};

/// h_blocktype of a commit block (include/linux/jbd2.h).
const JBD2_COMMIT: u8 = 2;

/// The cause of one bio.
#[derive(Debug, Clone, Default)]
pub struct Cause {
    pub asker: Option<Asker>,
    /// None for what carries no changes: data, a table that is brought up to date in place.
    pub reason: Option<Rc<Reason>>,
}

/// The calls that are going on, and the changes that are still to be committed.
#[derive(Debug)]
pub struct Causes {
    calls: SyncCalls,
    changes: Changes,
    names: NameLookup,
    submitted: UringNames,
    disks: BTreeSet<u32>,
    /// The transaction whose blocks are written, by the device of the journal of jbd2.
    commits: BTreeMap<u32, u32>,
    /// The filesystem (s_dev) on a device that is not its own: Btrfs, or that of a journal. Set by
    /// runs whose filesystem is known alone: it decides on all later bios of the device.
    by_device: BTreeMap<u32, u32>,
}

impl Causes {
    /// Nothing is going on. `disks` are the numbers of the traced disks.
    pub fn new(disks: BTreeSet<u32>, surroundings: Surroundings) -> Self {
        let mounts = Mounts::new(surroundings, disks.clone());
        Causes {
            calls: SyncCalls::new(disks.clone()),
            changes: Changes::default(),
            names: NameLookup::new(mounts, (surroundings.own_root)()),
            submitted: UringNames::default(),
            disks,
            commits: BTreeMap::new(),
            by_device: BTreeMap::new(),
        }
    }

    /// Something was mounted or unmounted.
    pub fn read_mounts(&mut self) {
        self.names.read_mounts();
    }

    /// Names that were changed and could not be followed: see `NameLookup::unmatched`.
    pub fn unmatched_names(&self) -> u64 {
        self.names.unmatched_names()
    }

    /// Changes whose files no reason names: see `Changes::dropped`.
    pub fn dropped_changes(&self) -> u64 {
        self.changes.dropped_changes()
    }

    /// A filesystem (s_dev) is on a traced disk; true if that is news.
    pub fn learn(&mut self, filesystem: u32) -> bool {
        self.calls.learn(filesystem)
    }

    /// The call is about everything, or about a filesystem on a traced disk as far as is known.
    pub fn is_here(&self, sync: &Sync) -> bool {
        self.calls.is_here(sync)
    }

    /// A call that waits began.
    pub fn begin(&mut self, sync: Sync) {
        self.calls.begin(sync);
    }

    /// A kernel thread begins what a call left to it.
    pub fn begin_work(&mut self, sync: &Sync) {
        self.calls.begin_work(sync);
    }

    /// A call that waits ended.
    pub fn end(&mut self, sync: &Sync) {
        if let Some(number) = self.calls.end(sync) {
            self.changes.end_call(number);
        }
    }

    /// A journal of jbd2 gets blocks of a transaction.
    pub fn commit(&mut self, commit: &JournalTransaction) {
        self.commits.insert(commit.device, commit.number);
    }

    /// A call waits for a transaction.
    pub fn wait(&mut self, call: &JournalTransaction) {
        self.calls.wait(call.caller, call.number);
    }

    /// The kernel reported the path of a file.
    pub fn see_path(&mut self, path: &PathRecord) {
        self.names.see_path(path);
    }

    /// A file was changed.
    pub fn change(&mut self, change: &Change) {
        let Change { filesystem, inode, generation, subvolume, .. } = *change;
        // One that the kernel's side met on the way to a name may be on any disk.
        if change.disk == 0 || self.disks.contains(&change.disk) {
            let file = ChangedSubject::File(FileKey { filesystem, inode, generation, subvolume });
            self.changes.add(filesystem, &file, change.changes, change.time_ns);
        }
    }

    /// A call changed a name; gives what became of the files that are known.
    pub fn name(&mut self, name: Name) -> Vec<Effect> {
        let mut effects = Vec::new();
        for name in self.submitted.settle(name) {
            let calls = &self.calls;
            let place = self.names.place(&name, |filesystem| calls.is_known(filesystem));
            if let Some(place) = &place {
                self.note_name(&name, place);
            }
            match (name.call, place) {
                (RENAME | RENAMEAT | RENAMEAT2, place) => {
                    effects.extend(self.names.rename(&name, place));
                }
                (LINK | LINKAT, place) => effects.extend(self.names.link(&name, place)),
                (RMDIR | UNLINK | UNLINKAT, Some(place)) => {
                    effects.extend(self.names.unlink(&place));
                }
                _ => {}
            }
        }
        effects
    }

    fn note_name(&mut self, name: &Name, place: &FilesystemPath) {
        let changed = self.names.find(place);
        let bits = match name.call {
            // The one that changes no name.
            TRUNCATE => changes::SHRANK,
            RENAME | RENAMEAT | RENAMEAT2 if name.second => changes::REPLACED,
            RENAME | RENAMEAT | RENAMEAT2 => changes::RENAMED,
            LINK | LINKAT if name.second => changes::CREATED,
            LINK | LINKAT => changes::LINKED,
            RMDIR | UNLINK | UNLINKAT => changes::UNLINKED,
            _ => changes::CREATED,
        };
        if bits == changes::REPLACED && matches!(changed, ChangedSubject::Named(_)) {
            // Nothing had that name before.
            return;
        }
        self.changes.add(place.0, &changed, bits, name.time_ns);
    }

    /// Return why the bio is there.
    pub fn cause(&mut self, bio: &Bio, runs: &[(Run, Class)]) -> Cause {
        let filesystem = self.filesystem_of(bio, runs);
        let transaction = self.transaction(bio, runs);
        let asker = self.calls.asker(bio, runs, filesystem, transaction);
        let is_last = bio.journal_block_type == JBD2_COMMIT;
        let reason = self.scope(bio, runs, asker.as_ref()).map(|scope| {
            let call = asker.as_ref().and_then(|asker| asker.number);
            self.changes.reason(filesystem, scope, call, bio.time_ns, is_last)
        });
        if is_last {
            self.calls.serve(filesystem, transaction);
        }
        Cause { asker, reason }
    }

    /// The number of the transaction that the bio is a block of, if that is known.
    fn transaction(&self, bio: &Bio, runs: &[(Run, Class)]) -> Option<u32> {
        let is_of_commit = |(_, class): &(Run, Class)| {
            class.block_type == BlockType::FsJournal && class.subtype != "superblock"
        };
        let number = self.commits.get(&bio.partition_device)?;
        (bio.kernel_thread && runs.iter().any(is_of_commit)).then_some(*number)
    }

    /// s_dev of the filesystem that the bio is of.
    fn filesystem_of(&mut self, bio: &Bio, runs: &[(Run, Class)]) -> u32 {
        let device = bio.partition_device;
        let elsewhere = |(run, _): &(Run, Class)| {
            let filesystem = run.filesystem_known().filter(|&filesystem| filesystem != device)?;
            let is_sure = run.magic != BLOCK_DEVICE_MAGIC || self.calls.is_known(filesystem);
            is_sure.then_some(filesystem)
        };
        if let Some(filesystem) = runs.iter().find_map(elsewhere) {
            // A filesystem without a device of its own, or a copy in a journal on another disk.
            self.by_device.insert(device, filesystem);
            return filesystem;
        }
        if let Some(filesystem) = self.by_device.get(&device) {
            return *filesystem;
        }
        let log = runs.iter().any(|(_, class)| class.block_type == BlockType::FsJournal);
        if log
            && !self.calls.is_known(device)
            && let Some(filesystem) = self.calls.only_filesystem()
        {
            // A log on a disk of its own: nothing in it names its filesystem.
            self.by_device.insert(device, filesystem);
            return filesystem;
        }
        device
    }

    /// Return which changes the bio may carry; None if it is not the way they are made to last.
    fn scope(&self, bio: &Bio, runs: &[(Run, Class)], asker: Option<&Asker>) -> Option<Scope> {
        if bio.flags & OPERATION_MASK != OPERATION_WRITE {
            return None;
        }
        let on_btrfs = self.by_device.contains_key(&bio.partition_device);
        let scope = || {
            let file = asker.and_then(|asker| asker.file);
            file.map_or(Scope::All, |key| Scope::Inode(key.inode))
        };
        let of_run = |(run, class): &(Run, Class)| match (class.block_type, run.magic) {
            // Its nodes are of one file each, and nothing else carries changes.
            (_, UBIFS_MAGIC) => match class.owner {
                RunOwner::Number(inode) if class.block_type == BlockType::FsMetadata => {
                    Some(Scope::Inode(inode))
                }
                _ => None,
            },
            (BlockType::FsJournal, _) if class.subtype == "log-tree" => Some(scope()),
            // Of the journal itself.
            (BlockType::FsJournal, _) if class.subtype == "superblock" => None,
            (BlockType::FsJournal, _) => Some(Scope::All),
            (BlockType::FsMetadata, F2FS_MAGIC) => match class.owner {
                RunOwner::None => Some(Scope::All),
                RunOwner::Number(inode) => Some(Scope::Inode(inode)),
                RunOwner::Inode => Some(Scope::Inode(run.inode)),
            },
            (BlockType::FsMetadata, NILFS_MAGIC) => Some(Scope::All),
            (BlockType::FsMetadata, _) if class.subtype == "superblock" && on_btrfs => {
                Some(scope())
            }
            (BlockType::FsMetadata, BTRFS_MAGIC) => Some(Scope::All),
            _ => None,
        };
        runs.iter().find_map(of_run)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bpf::Symbols;
    use crate::tracer::classify::classify;
    use crate::tracer::classify::layout::Layout;
    use crate::tracer::records::RUN_FROM_CALL;
    use crate::tracer::records::kernel::MODE_DIRECTORY;

    const DISK: u32 = 7 << 20;
    const LOG_DISK: u32 = 8 << 20;

    fn fsync(tid: u32, inode: u64) -> Sync {
        let place = Sync { filesystem: DISK, disk: DISK, inode, ..Sync::default() };
        Sync { tid, pid: tid, call: 74, comm: format!("task-{tid}"), ..place }
    }

    fn change(inode: u64, changes: u32, time_ns: u64) -> Change {
        Change { inode, changes, time_ns, filesystem: DISK, disk: DISK, ..Change::default() }
    }

    /// A block of jbd2, by its type; pages are of the page cache of `device`.
    fn journal_block(block_type: u8, time_ns: u64, device: u32) -> (Bio, Vec<(Run, Class)>) {
        let bio = Bio { flags: 1, time_ns, tid: 77, partition_device: device, ..Bio::default() };
        let bio = Bio { journal_block_type: block_type, device, kernel_thread: true, ..bio };
        let run = Run { magic: BLOCK_DEVICE_MAGIC, inode: 1, filesystem: device, ..Run::default() };
        let class = classify(&bio, &run, &Symbols::default(), &Layout::default());
        assert_eq!(class.block_type, BlockType::FsJournal);
        (bio, vec![(run, class)])
    }

    fn causes() -> Causes {
        let mut causes = Causes::new(BTreeSet::from([DISK, LOG_DISK]), Surroundings::nothing());
        causes.learn(DISK);
        let path =
            PathRecord { filesystem: DISK, inode: 12, path: "/a".into(), ..PathRecord::default() };
        causes.see_path(&path);
        causes.see_path(&PathRecord { inode: 2, mode: MODE_DIRECTORY, path: "/".into(), ..path });
        causes
    }

    fn reason(cause: &Cause) -> String {
        let names = |key: FileKey| if key.inode == 12 { "/a" } else { "/b" };
        cause.reason.as_ref().map_or_else(|| "none".to_owned(), |reason| reason.text(names))
    }

    #[test]
    fn a_journal_s_commit_carries_the_changes_and_serves_the_caller() {
        let mut causes = causes();
        causes.change(&change(12, 3, 10));
        causes.begin(fsync(5, 12));
        for (block_type, time_ns) in [(1, 20), (2, 30)] {
            let (bio, runs) = journal_block(block_type, time_ns, DISK);
            let cause = causes.cause(&bio, &runs);
            assert_eq!(cause.asker.as_ref().unwrap().tid, 5);
            assert_eq!(reason(&cause), "a: created, grew");
        }
        causes.end(&fsync(5, 12));
        let (bio, runs) = journal_block(1, 40, DISK);
        let cause = causes.cause(&bio, &runs);
        assert!(cause.asker.is_none());
        assert_eq!(reason(&cause), "unknown");
    }

    #[test]
    fn a_commit_for_two_callers_is_the_first_one_s_and_the_next_is_for_who_came_later() {
        let mut causes = causes();
        causes.begin(fsync(5, 12));
        causes.begin(fsync(6, 13));
        let (bio, runs) = journal_block(2, 20, DISK);
        let first = causes.cause(&bio, &runs).asker.unwrap();
        assert_eq!((first.tid, first.waiting), (5, 2));
        assert_eq!(first.all.as_deref(), Some("1 of task-5, 1 of task-6"));
        causes.begin(fsync(7, 14));
        let (bio, runs) = journal_block(2, 30, DISK);
        assert_eq!(causes.cause(&bio, &runs).asker.unwrap().tid, 7);
    }

    #[test]
    fn a_commit_is_for_who_waits_for_its_transaction_and_not_for_who_joined_the_next() {
        let mut causes = causes();
        let transaction = |caller, number| {
            let device = LOG_DISK;
            JournalTransaction { caller, number, device, ..JournalTransaction::default() }
        };
        causes.begin(fsync(5, 12));
        causes.begin(fsync(6, 13));
        for (caller, number) in [(5, 8), (6, 7)] {
            causes.wait(&transaction(caller, number));
        }
        for (number, tid) in [(7, 6), (8, 5)] {
            causes.commit(&transaction(0, number));
            for (block_type, time_ns) in [(1, 20), (2, 30)] {
                let (bio, runs) = journal_block(block_type, time_ns, LOG_DISK);
                let asker = causes.cause(&bio, &runs).asker.unwrap();
                assert_eq!((asker.tid, asker.waiting), (tid, 1), "transaction {number}");
            }
        }
        causes.commit(&transaction(0, 9));
        let (bio, runs) = journal_block(1, 40, LOG_DISK);
        assert_eq!(causes.cause(&bio, &runs).asker, None);
    }

    #[test]
    fn a_journal_on_another_disk_is_of_the_filesystem_that_waits() {
        let mut causes = causes();
        causes.change(&change(12, 2, 10));
        causes.begin(fsync(5, 12));
        let (bio, runs) = journal_block(1, 20, LOG_DISK);
        let cause = causes.cause(&bio, &runs);
        assert_eq!((cause.asker.as_ref().unwrap().tid, reason(&cause).as_str()), (5, "a: grew"));
    }

    #[test]
    fn a_bio_on_the_disk_s_node_takes_neither_asker_nor_reason_from_later_ones() {
        // The inode of the call that a bio was sent in: a node below /dev, a pipe that is read
        // while memory is swapped out. And memory without a disk that is written past the cache.
        let guess = Run { flags: RUN_FROM_CALL, inode: 99, filesystem: 5, ..Run::default() };
        let node = Run { magic: 0x0102_1994, mode: 0o060660, ..guess.clone() };
        let file_elsewhere = Run { magic: 0xef53, mode: 0o100644, filesystem: 9 << 20, ..guess };
        let memory = Run { flags: 0, mode: 0o100600, ..node.clone() };
        for (flags, run) in [(0, &node), (3, &node), (1, &file_elsewhere), (1, &memory)] {
            let mut causes = causes();
            let bio = Bio { flags, partition_device: DISK, time_ns: 5, ..Bio::default() };
            let class = classify(&bio, run, &Symbols::default(), &Layout::default());
            causes.cause(&bio, &[(run.clone(), class)]);
            causes.change(&change(12, 3, 10));
            causes.begin(fsync(5, 12));
            let (bio, runs) = journal_block(1, 20, DISK);
            let cause = causes.cause(&bio, &runs);
            assert_eq!(cause.asker.as_ref().map(|asker| asker.tid), Some(5), "{run:?}");
            assert_eq!(reason(&cause), "a: created, grew", "{run:?}");
        }
    }

    #[test]
    fn calls_on_names_are_changes_too() {
        let mut causes = causes();
        let name = |call, name: &str, second| Name {
            call,
            second,
            name: name.into(),
            inode: 2,
            filesystem: DISK,
            time_ns: 10,
            ..Name::default()
        };
        causes.name(name(87, "a", false));
        causes.name(name(82, "x", false));
        causes.name(name(82, "y", true));
        causes.name(name(83, "made", false));
        let (bio, runs) = journal_block(2, 20, DISK);
        let text = reason(&causes.cause(&bio, &runs));
        assert_eq!(text, "a: unlinked; made: created; x: renamed");
    }

    #[test]
    fn data_and_reads_carry_no_changes() {
        let mut causes = causes();
        causes.change(&change(12, 3, 10));
        let (bio, runs) = journal_block(1, 20, DISK);
        let read = Bio { flags: 0, ..bio.clone() };
        assert!(causes.cause(&read, &runs).reason.is_none());
        let run = Run { inode: 12, magic: 0xef53, mode: 0o100644, ..Run::default() };
        let class = classify(&bio, &run, &Symbols::default(), &Layout::default());
        assert!(causes.cause(&bio, &[(run, class)]).reason.is_none());
    }
}
