//! One call on a file, as far as commits are found from it.

/// A file for as long as it lives: filesystem, inode, generation.
pub type FileLife = (u32, u64, u32);

/// What a call did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deed {
    /// Opened a file by a path as it was given.
    Open { path: String },
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
    Sync { name: &'static str },
    /// Committed a batch atomic write of F2FS.
    CommitAtomicWrite,
    /// Took or gave back a lock of bytes; a length of 0 is up to the end.
    Lock { is_unlock: bool, offset_bytes: u64, length_bytes: u64 },
}

/// One call, that succeeded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileCall {
    pub pid: u32,
    pub tid: u32,
    pub begin_ns: i64,
    pub end_ns: i64,
    /// None where it names none by a descriptor.
    pub file: Option<FileLife>,
    pub deed: Deed,
}
