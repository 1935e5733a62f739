//! The records of the attribution program (kernel/block/event.h), typed.

pub mod decode;
mod fields;

use fields::{Fields, RecordField};

/// Kernel constants that the records carry and several rules use: request operations
/// and flags, file types, filesystem magic numbers. They are the same in Linux 6.1 and
/// 6.18.
pub mod kernel {
    /// enum req_op (include/linux/blk_types.h): the low byte of a bio's flags.
    pub const OPERATION_MASK: u32 = 0xff;
    pub const OPERATION_READ: u32 = 0;
    pub const OPERATION_WRITE: u32 = 1;
    pub const OPERATION_FLUSH: u32 = 2;
    pub const OPERATION_DISCARD: u32 = 3;
    pub const OPERATION_SECURE_ERASE: u32 = 5;
    pub const OPERATION_WRITE_ZEROES: u32 = 9;
    /// Operations that a driver was asked for past the block layer.
    pub const OPERATION_DRIVER_IN: u32 = 34;
    pub const OPERATION_DRIVER_OUT: u32 = 35;

    /// enum req_flag_bits (include/linux/blk_types.h).
    pub const FLAG_SYNC: u32 = 1 << 11;
    pub const FLAG_META: u32 = 1 << 12;
    pub const FLAG_PRIO: u32 = 1 << 13;
    pub const FLAG_IDLE: u32 = 1 << 15;
    pub const FLAG_FUA: u32 = 1 << 17;
    pub const FLAG_PREFLUSH: u32 = 1 << 18;
    pub const FLAG_READAHEAD: u32 = 1 << 19;

    /// BLK_STS_AGAIN (include/linux/blk_types.h): of a bio that shall not wait.
    pub const STATUS_AGAIN: u32 = 12;

    /// Types of files in a mode (inode(7)).
    pub const MODE_TYPE: u32 = 0o170000;
    pub const MODE_BLOCK_DEVICE: u32 = 0o060000;
    pub const MODE_DIRECTORY: u32 = 0o040000;
    pub const MODE_REGULAR: u32 = 0o100000;

    /// The bits of the minor number in a device's number as the kernel keeps it
    /// (include/linux/kdev_t.h). The major number of a filesystem that is on no disk of its own is
    /// 0.
    pub const MINOR_BITS: u32 = 20;

    /// s_magic of filesystems (include/uapi/linux/magic.h); bdevfs is that of block devices'
    /// caches.
    pub const BLOCK_DEVICE_MAGIC: u32 = 0x6264_6576;
    pub const BTRFS_MAGIC: u32 = 0x9123_683e;
    pub const EXT4_MAGIC: u32 = 0xef53;
    pub const F2FS_MAGIC: u32 = 0xf2f5_2010;
    pub const NILFS_MAGIC: u32 = 0x3434;
    pub const UBIFS_MAGIC: u32 = 0x2405_1905;
}

/// enum run_flag of event.h, as far as the rules look at them.
pub const RUN_UNMAPPED: u32 = 1;
pub const RUN_ANONYMOUS: u32 = 2;
pub const RUN_DIRECT: u32 = 4;
pub const RUN_FROM_CALL: u32 = 8;
pub const RUN_OFFSET: u32 = 16;
pub const RUN_LOG_TREE: u32 = 32;
pub const RUN_COMPRESSED: u32 = 64;
pub const RUN_NODES: u32 = 128;

/// enum call_flag.
pub const CALL_DIRECT: u32 = 1;
pub const CALL_DSYNC: u32 = 2;
pub const CALL_SYNC_ALL: u32 = 4;

/// In the number of a call: it is one of 32-bit programs, and no other is known for it
/// (kernel/block/abi.bpf.h).
pub const CALL_OF_32_BITS: u32 = 1 << 30;

/// Defines a record whose fields follow each other as event.h has them.
macro_rules! record {
    (
        $(#[$attribute:meta])*
        pub struct $name:ident { $($(#[$of_field:meta])* pub $field:ident: $type:ty,)+ }
    ) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, Default, PartialEq)]
        pub struct $name { $($(#[$of_field])* pub $field: $type,)+ }

        impl RecordField for $name {
            fn take_field(fields: &mut Fields) -> Self {
                Self { $($field: RecordField::take_field(fields),)+ }
            }
        }
    };
}

/// One record, by its kind. What each field means, and its unit, stands in event.h under the same
/// name.
#[derive(Debug, Clone, PartialEq)]
pub enum Record {
    /// With its last run, of those it has.
    Bio(Bio, Option<Run>),
    Run(Run),
    Path(PathRecord),
    SyncBegin(Sync),
    SyncEnd(Sync),
    /// A kernel thread, `tid`, begins to do `request`.
    SyncWorker(Sync),
    Issue(RequestRecord),
    Complete(RequestRecord),
    Change(Change),
    Name(Name),
    BioEnd(RequestRecord),
    /// A range of a request that is issued next.
    Range(RequestRecord),
    /// A block of a transaction is sent to a journal.
    Commit(JournalTransaction),
    /// A call waits for one, whose blocks are sent now or later, or were before.
    Waits(JournalTransaction),
}

impl Record {
    /// Return when it was made; 0 for a run, which comes with its bio.
    pub fn time_ns(&self) -> u64 {
        match self {
            Self::Bio(bio, _) => bio.time_ns,
            Self::Run(_) => 0,
            Self::Path(path) => path.time_ns,
            Self::SyncBegin(sync) | Self::SyncEnd(sync) | Self::SyncWorker(sync) => sync.time_ns,
            Self::Issue(request)
            | Self::Complete(request)
            | Self::BioEnd(request)
            | Self::Range(request) => request.time_ns,
            Self::Commit(transaction) | Self::Waits(transaction) => transaction.time_ns,
            Self::Change(change) => change.time_ns,
            Self::Name(name) => name.time_ns,
        }
    }
}

/// struct bio_record.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Bio {
    pub device: u32,
    pub time_ns: u64,
    pub serial: u64,
    pub sector: u64,
    pub length_bytes: u32,
    pub flags: u32,
    pub end_io: u64,
    pub buffer_end_io: u64,
    pub partition_sector: u64,
    pub partition_device: u32,
    pub journal_block_type: u8,
    pub kernel_thread: bool,
    pub pid: u32,
    pub tid: u32,
    pub comm: String,
    pub buffer_type: String,
    /// In place of the type: the first bytes of the block.
    pub buffer_contents: Option<[u8; 16]>,
    /// Number of the system call; None in a kernel thread.
    pub call: Option<u32>,
    pub call_flags: u32,
    pub holder: String,
    pub address: u64,
}

record! {
    /// struct run_record.
    pub struct Run {
        pub flags: u32,
        pub serial: u64,
        pub offset_bytes: u32,
        pub length_bytes: u32,
        pub file_offset_bytes: u64,
        pub inode: u64,
        pub generation: u32,
        pub filesystem: u32,
        pub magic: u32,
        pub mode: u32,
        pub links: u32,
        pub content: u32,
        pub operations: u64,
        pub size_bytes: u64,
        pub detail: u64,
        pub subvolume: u64,
    }
}

impl Run {
    /// The filesystem that its bytes are known to be of. An inode that is that of the call which
    /// the submitter happened to be in says nothing: of a bio on a disk's node it is of devtmpfs,
    /// of memory that is swapped out while a pipe is read, of pipefs. Nor do the pages of a
    /// filesystem without a disk (tmpfs), which direct I/O on a node may be from.
    pub fn filesystem_known(&self) -> Option<u32> {
        let is_guess = self.inode == 0 || self.flags & RUN_FROM_CALL != 0;
        let is_on_disks = self.filesystem >> kernel::MINOR_BITS != 0
            || matches!(self.magic, kernel::BTRFS_MAGIC | kernel::UBIFS_MAGIC);
        (!is_guess && is_on_disks).then_some(self.filesystem)
    }
}

/// struct path_record, its names joined.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PathRecord {
    pub filesystem: u32,
    pub time_ns: u64,
    pub inode: u64,
    pub generation: u32,
    pub mode: u32,
    pub links: u32,
    pub size_bytes: u64,
    pub disk: u32,
    pub subvolume: u64,
    /// The kernel's side knew nothing of the file, or not any more.
    pub first: bool,
    /// From the filesystem's root, which is "/"; empty where no name is left.
    pub path: String,
}

record! {
    /// struct sync_record.
    pub struct Sync {
        pub call: u32,
        pub time_ns: u64,
        pub inode: u64,
        pub generation: u32,
        pub filesystem: u32,
        pub disk: u32,
        pub pid: u32,
        pub tid: u32,
        pub comm: String,
        pub flags: u32,
        /// The address of a request of io_uring, or of the work that Linux AIO leaves to a kernel
        /// thread, until it is over. 0 of a call, of which a thread is in one.
        pub request: u64,
        pub subvolume: u64,
    }
}

record! {
    /// struct transaction_record.
    pub struct JournalTransaction {
        pub number: u32,
        pub time_ns: u64,
        /// The caller: of a call its thread, of io_uring the request's address.
        pub caller: u64,
        /// The device that the journal of a commit is on.
        pub device: u32,
    }
}

/// struct change_record.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Change {
    /// Bits of enum change (changes.rs).
    pub changes: u32,
    pub time_ns: u64,
    pub inode: u64,
    pub generation: u32,
    pub filesystem: u32,
    pub disk: u32,
    pub pid: u32,
    pub tid: u32,
    pub subvolume: u64,
}

/// struct name_record.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Name {
    pub call: u32,
    pub time_ns: u64,
    /// The inode of the directory that the name is relative to, which of an absolute one is the
    /// root.
    pub inode: u64,
    pub generation: u32,
    pub filesystem: u32,
    pub subvolume: u64,
    /// That directory is on no disk that is traced.
    pub elsewhere: bool,
    pub pid: u32,
    pub tid: u32,
    /// The meaning of an absolute path for the caller.
    pub root: Root,
    /// The new name of a rename or link.
    pub second: bool,
    /// The two files of a rename change places.
    pub exchanges: bool,
    /// The address of a request of io_uring, until it is over. 0 of a system call, which is over.
    pub request: u64,
    pub outcome: Option<UringOutcome>,
    /// As the call was given it; empty where it could not be read.
    pub name: String,
}

/// The root directory of a process, and which mounts it sees. Two that are equal have the same
/// absolute paths.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Root {
    /// Number of the mount namespace, as in /proc/PID/ns/mnt (mount_namespaces(7)).
    pub namespace: u32,
    /// mnt_id of the mount that the root directory is in.
    pub mount: u32,
    pub inode: u64,
    /// It is the root of that mount: subvolumes of Btrfs have inode numbers of their own.
    pub of_mount: bool,
}

/// The end of a request of io_uring for names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UringOutcome {
    Done,
    Failed,
}

record! {
    /// struct request_record.
    pub struct RequestRecord {
        pub device: u32,
        pub time_ns: u64,
        pub request: u64,
        pub sector: u64,
        pub length_bytes: u32,
        pub flags: u32,
        pub bio_count: u32,
        pub error: u32,
        pub origin: u64,
    }
}
