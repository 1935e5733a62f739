//! Why a bio exists: which call it serves, and which file changes a filesystem's commit carries.
//! Reads the records of calls, changes and names in order, together with the bios.

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
use changes::{Changed, Changes, Reason, Scope};
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

/// What is going on, and what is still to be committed.
#[derive(Debug)]
pub struct Causes {
    calls: SyncCalls,
    changes: Changes,
    names: NameLookup,
    submitted: UringNames,
    disks: BTreeSet<u32>,
    /// By the device of a journal of jbd2: the transaction whose blocks are written.
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
        self.names.unmatched()
    }

    /// Changes whose files no reason names: see `Changes::dropped`.
    pub fn dropped_changes(&self) -> u64 {
        self.changes.dropped()
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
            let file = Changed::File(FileKey { filesystem, inode, generation, subvolume });
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
        if bits == changes::REPLACED && matches!(changed, Changed::Named(_)) {
            // Nothing had that name before.
            return;
        }
        self.changes.add(place.0, &changed, bits, name.time_ns);
    }

    /// Why the bio is there.
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

    /// Which changes the bio may carry; None if it is not the way they are made to last.
    fn scope(&self, bio: &Bio, runs: &[(Run, Class)], asker: Option<&Asker>) -> Option<Scope> {
        if bio.flags & OPERATION_MASK != OPERATION_WRITE {
            return None;
        }
        let on_btrfs = self.by_device.contains_key(&bio.partition_device);
        let asked = || {
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
            (BlockType::FsJournal, _) if class.subtype == "log-tree" => Some(asked()),
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
                Some(asked())
            }
            (BlockType::FsMetadata, BTRFS_MAGIC) => Some(Scope::All),
            _ => None,
        };
        runs.iter().find_map(of_run)
    }
}

#[cfg(test)]
#[path = "causes_test.rs"]
mod tests;
