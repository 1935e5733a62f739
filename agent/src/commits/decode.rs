//! Decodes the records of kernel/calls/call_record.h; calls that failed are left out.

use super::call::{Caller, Deed, FileCall, PathRoot};
use crate::system_calls::{self, CommitRole};
use crate::tracer::FileKey;

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
pub fn decode_calls(mut bytes: &[u8], into: &mut Vec<FileCall>) -> Result<(), CallRecordError> {
    while let Some((length, rest)) = bytes.split_first_chunk::<4>() {
        let length = u32::from_le_bytes(*length) as usize;
        let (record, after) =
            rest.split_at_checked(length).ok_or(CallRecordError::Length(length))?;
        into.extend(decode(record)?);
        bytes = after;
    }
    Ok(())
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
        String::from_utf8_lossy(&bytes[..end]).into_owned()
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
    use super::*;
    use proptest::prelude::*;

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

    fn decoded(bytes: &[u8]) -> Result<Vec<FileCall>, CallRecordError> {
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
        let calls = decoded(&bytes.concat()).unwrap();
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
        assert_eq!(decoded(&record(99, 0, None)), Err(CallRecordError::Call(99)));
        assert_eq!(decoded(&[9, 0, 0, 0]), Err(CallRecordError::Length(9)));
    }

    proptest! {
        #[test]
        fn any_bytes_are_decoded_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            let _ = decoded(&bytes);
            let mut whole = 136_u32.to_le_bytes().to_vec();
            whole.extend(bytes.iter().copied().chain(std::iter::repeat(0)).take(136));
            let _ = decoded(&whole);
        }
    }
}
