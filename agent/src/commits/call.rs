//! One call on a file, as far as commits are found from it, and its record (kernel/calls).

use crate::bpf::split_records;
use crate::byte_text::path_text;
use crate::system_calls;
use crate::system_calls::CommitRole;
use crate::tracer::FileKey;

/// The effect of a call.
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

/// The root that absolute paths begin at: two callers with equal ones see the same files by the
/// same paths. Zeroes where all callers are known to.
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

/// The task that made a call; what is not known is 0 or empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Caller {
    pub uid: u32,
    /// The root of a call with a path.
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

// Decodes the records of kernel/calls/call_record.h; calls that failed are left out.

/// CALL_RECORD_BYTES, CALL_HEAD_BYTES and CALL_PATH_BYTES of call_record.h.
const RECORD_BYTES: usize = 160;
const HEAD_BYTES: usize = 32;
const PATH_BYTES: usize = 256;

/// A record whose length or number is none of ours.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum CallRecordError {
    #[error("a call's record of {0} bytes")]
    Length(usize),
    #[error("a record of the call {0}, which is not watched")]
    Call(u32),
}

/// Decodes (length u32, record) one after the other.
///
/// # Errors
/// If one is damaged.
pub fn decode_calls(bytes: &[u8], into: &mut Vec<FileCall>) -> Result<(), CallRecordError> {
    for record in split_records(bytes) {
        into.extend(decode(record.map_err(CallRecordError::Length)?)?);
    }
    Ok(())
}

/// Return when the first of these calls ended for which the filesystem had no room (ENOSPC).
pub fn first_without_room_ns(bytes: &[u8]) -> Option<i64> {
    let i64_at = |record: &[u8], at: usize| {
        Some(i64::from_le_bytes(record.get(at..at + 8)?.try_into().ok()?))
    };
    let is_without = |it: &&[u8]| i64_at(it, 48) == Some(-i64::from(libc::ENOSPC));
    i64_at(split_records(bytes).map_while(Result::ok).find(is_without)?, 16)
}

fn decode(record: &[u8]) -> Result<Option<FileCall>, CallRecordError> {
    if record.len() != RECORD_BYTES && record.len() != RECORD_BYTES + PATH_BYTES {
        return Err(CallRecordError::Length(record.len()));
    }
    let u32_at = |at: usize| u32::from_le_bytes(record[at..at + 4].try_into().expect("4 bytes"));
    let u64_at = |at: usize| u64::from_le_bytes(record[at..at + 8].try_into().expect("8 bytes"));
    let (number, file_flags, result) = (u32_at(0), u32_at(4).cast_signed(), u64_at(48));
    let (offset_bytes, length_bytes, inode) = (u64_at(56), u64_at(64), u64_at(32));
    let result = result.cast_signed();
    if result < 0 {
        return Ok(None);
    }
    let head_bytes = (u32_at(104) as usize).min(HEAD_BYTES);
    let head = record[72..72 + head_bytes].to_vec();
    let path = || {
        let bytes = &record[RECORD_BYTES..];
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        path_text(&bytes[..end])
    };
    let u16_at = |at: usize| u16::from_le_bytes([record[at], record[at + 1]]);
    let (is_created, is_directory) = (u16_at(116) != 0, u16_at(118) != 0);
    let row = system_calls::row(number.into());
    let (row, role) =
        row.and_then(|row| Some((row, row.commits?))).ok_or(CallRecordError::Call(number))?;
    let deed = match role {
        CommitRole::Write => Deed::Write {
            offset_bytes,
            length_bytes: result.cast_unsigned(),
            head,
            is_synced: file_flags & (libc::O_DSYNC | libc::O_SYNC) != 0,
        },
        CommitRole::Open => Deed::Open { path: path(), is_created },
        CommitRole::Read => Deed::Read,
        // Other requests and commands the kernel's program does not send.
        CommitRole::CommitAtomicWrite => Deed::CommitAtomicWrite,
        CommitRole::Lock => Deed::Lock {
            is_unlock: head.first() == Some(&(libc::F_UNLCK as u8)),
            offset_bytes,
            length_bytes,
        },
        CommitRole::TruncatePath => Deed::TruncatePath { path: path(), size_bytes: length_bytes },
        CommitRole::Truncate => Deed::Truncate { size_bytes: length_bytes },
        CommitRole::Unlink => Deed::Unlink { path: path() },
        CommitRole::Sync => Deed::Sync { name: row.name, is_directory },
    };
    Ok(Some(FileCall {
        begin_ns: u64_at(8).cast_signed(),
        end_ns: u64_at(16).cast_signed(),
        pid: u32_at(24),
        tid: u32_at(28),
        caller: Caller {
            uid: u32_at(112),
            root: PathRoot { inode: u64_at(144), mount: u32_at(152), namespace: u32_at(156) },
            process: record[120..136].try_into().expect("16 bytes"),
        },
        file: (inode != 0).then(|| FileKey {
            filesystem: u32_at(44),
            inode,
            generation: u32_at(40),
            subvolume: u64_at(136),
        }),
        deed,
    }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FILE: FileKey = FileKey { filesystem: 9, inode: 7, generation: 8, subvolume: 257 };

    fn record(call: u32, result: i64, path: Option<&str>) -> Vec<u8> {
        let mut record = vec![0; RECORD_BYTES];
        record[..4].copy_from_slice(&call.to_le_bytes());
        for (at, value) in
            [(8, 10_u64), (16, 20), (32, 7), (56, 4096), (64, 24), (136, 257), (144, 2)]
        {
            record[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        for (at, value) in
            [(24, 5_u32), (28, 6), (40, 8), (44, 9), (104, 24), (112, 1000), (152, 29), (156, 77)]
        {
            record[at..at + 4].copy_from_slice(&value.to_le_bytes());
        }
        (record[116], record[120]) = (1, b'p');
        record[48..56].copy_from_slice(&result.to_le_bytes());
        if let Some(path) = path {
            let mut bytes = path.as_bytes().to_vec();
            bytes.resize(PATH_BYTES, 0);
            record.extend(bytes);
        }
        let mut whole = (record.len() as u32).to_le_bytes().to_vec();
        whole.extend(record);
        whole
    }

    fn decode_all(bytes: &[u8]) -> Result<Vec<FileCall>, CallRecordError> {
        let mut calls = Vec::new();
        decode_calls(bytes, &mut calls).map(|()| calls)
    }

    #[test]
    fn every_field_is_where_the_program_puts_it() {
        let bytes = [
            record(18, 24, None),
            record(257, 3, Some("/a/b")),
            record(74, -5, None),
            record(76, 0, Some("c")),
        ];
        let calls = decode_all(&bytes.concat()).unwrap();
        let (pid, tid, begin_ns, end_ns, file) = (5, 6, 10, 20, Some(FILE));
        let mut process = [0; 16];
        process[0] = b'p';
        let root = PathRoot { namespace: 77, mount: 29, inode: 2 };
        let caller = Caller { uid: 1000, root, process };
        let call = |deed| FileCall { pid, tid, caller, begin_ns, end_ns, file, deed };
        let head = vec![0; 24];
        let write = Deed::Write { offset_bytes: 4096, length_bytes: 24, head, is_synced: false };
        assert_eq!(
            calls,
            [
                call(write),
                call(Deed::Open { path: "/a/b".into(), is_created: true }),
                call(Deed::TruncatePath { path: "c".into(), size_bytes: 24 }),
            ]
        );
        assert_eq!(decode_all(&record(99, 0, None)), Err(CallRecordError::Call(99)));
        assert_eq!(decode_all(&[9, 0, 0, 0]), Err(CallRecordError::Length(9)));
    }

    #[test]
    fn the_first_call_without_room_is_told() {
        let records = [24, -5, -i64::from(libc::ENOSPC)].map(|result| record(18, result, None));
        assert_eq!(first_without_room_ns(&records.concat()), Some(20));
        assert_eq!(first_without_room_ns(&records[..2].concat()), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_decoded_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            let _ = decode_all(&bytes);
            let mut whole = 136_u32.to_le_bytes().to_vec();
            whole.extend(bytes.iter().copied().chain(std::iter::repeat(0)).take(136));
            let _ = decode_all(&whole);
        }
    }
}
