//! The record of operations that the module of raw NAND keeps (kernel/nand/operation.h): reads what
//! has come since the last time.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::byte_text;
use crate::record::words;

/// Bytes of the header, before the data.
const HEADER_BYTES: usize = 88;

/// More than any operation has.
const READ_BYTES: usize = 1 << 20;

/// A kernel thread is in no call.
const NO_CALL: u32 = u32::MAX;

words! {
    /// enum operation_kind, as schema/flash_operations.toml spells it.
    #[derive(Default)]
    OperationKind { #[default] Read = "read", Program = "program", Erase = "erase" }
}

/// An operation on a page, or on a whole block.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Operation {
    pub queue_ns: u64,
    pub issue_ns: u64,
    pub complete_ns: u64,
    /// The address of its first byte, through all blocks.
    pub address_bytes: u64,
    pub kind: OperationKind,
    /// enum raw_nand_outcome of kernel/nand/model/raw_nand.h; 0: it is done.
    pub outcome: u32,
    pub block: u32,
    /// In the block; from the end of a page on are its out-of-band bytes.
    pub offset_bytes: u32,
    pub length_bytes: u32,
    pub flipped_bits: u32,
    pub pid: u32,
    pub tid: u32,
    pub call: Option<u32>,
    pub comm: String,
    /// Holds what was programmed.
    pub data: Vec<u8>,
}

impl Operation {
    /// Return how it ended, as schema/flash_operations.toml spells it.
    pub fn outcome_word(&self) -> &'static str {
        match self.outcome {
            0 => "done",
            1 => "uncorrectable",
            2 => "failed",
            _ => "cut", // what was refused, or found no power, is in no record
        }
    }
}

/// Takes the operations out of the record at `node`, in the order of their issue.
///
/// # Errors
/// If it cannot be read, or is not of this version.
pub fn read_operations(node: &Path) -> io::Result<Vec<Operation>> {
    let mut file = File::open(node)?;
    let mut operations = Vec::new();
    let mut buffer = vec![0; READ_BYTES];
    loop {
        let length = file.read(&mut buffer)?;
        if length == 0 {
            return Ok(operations);
        }
        let mut left = &buffer[..length];
        while !left.is_empty() {
            let (operation, rest) = parse(left).ok_or_else(|| {
                io::Error::new(io::ErrorKind::InvalidData, "a damaged record of raw NAND")
            })?;
            operations.push(operation);
            left = rest;
        }
    }
}

fn parse(bytes: &[u8]) -> Option<(Operation, &[u8])> {
    let word = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let long = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    let data_bytes = word(56)? as usize;
    let comm = bytes.get(72..HEADER_BYTES)?;
    let operation = Operation {
        queue_ns: long(0)?,
        issue_ns: long(8)?,
        complete_ns: long(16)?,
        address_bytes: long(24)?,
        kind: match word(32)? {
            0 => OperationKind::Read,
            1 => OperationKind::Program,
            2 => OperationKind::Erase,
            _ => return None,
        },
        outcome: word(36)?,
        block: word(40)?,
        offset_bytes: word(44)?,
        length_bytes: word(48)?,
        flipped_bits: word(52)?,
        pid: word(60)?,
        tid: word(64)?,
        call: Some(word(68)?).filter(|&call| call != NO_CALL),
        comm: byte_text::comm(comm),
        data: bytes.get(HEADER_BYTES..HEADER_BYTES + data_bytes)?.to_vec(),
    };
    Some((operation, &bytes[HEADER_BYTES + data_bytes..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u32, data: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        [7_u64, 8, 9, 4096].iter().for_each(|time| bytes.extend(time.to_le_bytes()));
        let words = [kind, 0, 3, 2048, 512, 1, data.len() as u32, 11, 12, NO_CALL];
        words.iter().for_each(|word| bytes.extend(word.to_le_bytes()));
        bytes.extend(*b"ubi_bgt0d\0\0\0\0\0\0\0");
        bytes.extend(data);
        bytes
    }

    #[test]
    fn operations_follow_each_other() {
        let folder = tempfile::tempdir().unwrap();
        let node = folder.path().join("nand0");
        std::fs::write(&node, [record(1, b"UBI#"), record(2, b"")].concat()).unwrap();
        let found = read_operations(&node).unwrap();
        let kinds: Vec<_> = found.iter().map(|operation| operation.kind).collect();
        assert_eq!(kinds, [OperationKind::Program, OperationKind::Erase]);
        let first = &found[0];
        assert_eq!(
            (first.queue_ns, first.complete_ns, first.block, first.address_bytes),
            (7, 9, 3, 4096)
        );
        assert_eq!((first.comm.as_str(), first.call, first.tid), ("ubi_bgt0d", None, 12));
        assert_eq!((first.offset_bytes, first.data.as_slice()), (2048, &b"UBI#"[..]));
    }

    #[test]
    fn a_damaged_record_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let node = folder.path().join("nand0");
        for bytes in [record(4, b""), record(1, b"x")[..88].to_vec(), vec![0; 9]] {
            std::fs::write(&node, bytes).unwrap();
            assert!(read_operations(&node).is_err());
        }
    }
}
