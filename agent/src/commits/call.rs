//! One call on a file, as far as commits are found from it.

use crate::tracer::FileKey;

/// What a call did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deed {
    /// Opened a file by a path as it was given; `is_created`: it was not there before.
    Open { path: String, is_created: bool },
    /// Read at a place.
    Read,
    /// Wrote at a place; `head` is what the first bytes were, as far as they are known.
    Write { offset_bytes: u64, length_bytes: u64, head: Vec<u8>, is_synced: bool },
    /// Set the size.
    Truncate { size_bytes: u64 },
    /// Likewise, by a path as it was given.
    TruncatePath { path: String, size_bytes: u64 },
    /// Removed a name, as it was given.
    Unlink { path: String },
    /// Made it durable: the name of the system call.
    Sync { name: &'static str, is_directory: bool },
    /// Committed a batch atomic write of F2FS.
    CommitAtomicWrite,
    /// Took or gave back a lock of bytes; a length of 0 is up to the end.
    Lock { is_unlock: bool, offset_bytes: u64, length_bytes: u64 },
}

/// What an absolute path means: two callers with equal ones see the same files by the same paths.
/// Zeroes where all callers are known to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct PathRoot {
    /// Number of the mount namespace, as in /proc/PID/ns/mnt (mount_namespaces(7)).
    pub namespace: u32,
    /// mnt_id of the mount that the root directory is in, and the inode number of that directory.
    pub mount: u32,
    pub inode: u64,
}

impl PathRoot {
    /// None is greater.
    pub const LAST: PathRoot = PathRoot { namespace: u32::MAX, mount: u32::MAX, inode: u64::MAX };
}

/// Who made a call: what is not known is 0 and empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Caller {
    pub uid: u32,
    /// Of a call with a path.
    pub root: PathRoot,
    /// The process's command name, up to the first 0 (comm of proc(5)).
    pub process: [u8; 16],
}

/// One call, that succeeded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileCall {
    pub pid: u32,
    pub tid: u32,
    pub caller: Caller,
    pub begin_ns: i64,
    pub end_ns: i64,
    /// None where it names none by a descriptor.
    pub file: Option<FileKey>,
    pub deed: Deed,
}

impl FileCall {
    /// Bytes that it wrote.
    pub fn written_bytes(&self) -> u64 {
        match self.deed {
            Deed::Write { length_bytes, .. } => length_bytes,
            _ => 0,
        }
    }

    /// The call by which it syncs.
    pub fn sync_name(&self) -> &'static str {
        match self.deed {
            Deed::Sync { name, .. } => name,
            Deed::CommitAtomicWrite => "ioctl",
            _ => "write",
        }
    }
}
