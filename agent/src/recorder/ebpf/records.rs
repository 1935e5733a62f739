//! Decodes the records of kernel/recorder/recorded.h.

use crate::bpf::split_records;

/// Sizes of recorded.h.
const PIECE_HEAD_BYTES: usize = 16;
const BEGIN_BYTES: usize = 72;
const END_HEAD_BYTES: usize = 24;
const END_BYTES: usize = 56;
const FORK_BYTES: usize = 32;
const EXEC_BYTES: usize = 24;
const EXIT_BYTES: usize = 24;

/// enum piece_place: addresses of what is no memory of the program.
pub const DIRECTORY: u64 = 1;
pub const DIRECTORY2: u64 = 2;
pub const WORKING_DIRECTORY: u64 = 3;
pub const EXECUTABLE: u64 = 4;

/// enum file_knowledge.
pub const WAS_THERE: u32 = 1;
pub const WAS_MADE: u32 = 2;
pub const WAS_CUT: u32 = 4;

/// A record that is none of ours.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("a record of {length} bytes and kind {kind}, which the recorder does not know")]
pub struct UnknownRecord {
    kind: u32,
    length: usize,
}

/// The file that a call opened, as it was before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OpenedFile {
    pub inode: u64,
    pub size_bytes: u64,
    /// s_dev.
    pub filesystem: u32,
    pub links: u32,
    pub mode: u32,
    /// Bits of `WAS_THERE` and the others.
    pub knowledge: u32,
}

/// A record of the kernel's program.
#[derive(Debug, PartialEq, Eq)]
pub enum KernelRecord {
    /// Memory of the program, or one of the places above.
    Piece {
        address: u64,
        bytes: Vec<u8>,
    },
    Begin {
        begin_ns: i64,
        number: u32,
        is_other_abi: bool,
        /// The number of pieces that are its own, the last ones of its thread.
        pieces: u16,
        arguments: [u64; 6],
    },
    End {
        end_ns: i64,
        result: i64,
        file: OpenedFile,
    },
    Fork {
        time_ns: i64,
        creator: i32,
        pid: i32,
        umask: u32,
    },
    Exec {
        former_tid: i32,
        time_ns: i64,
    },
    Exit {
        time_ns: i64,
        status: i32,
    },
}

/// Decodes (length u32, record) one after the other; each is told with its thread.
///
/// # Errors
/// If one is unknown.
pub fn decode(bytes: &[u8], mut tell: impl FnMut(i32, KernelRecord)) -> Result<(), UnknownRecord> {
    for record in split_records(bytes) {
        let record = record.map_err(|length| UnknownRecord { kind: 0, length })?;
        let (tid, content) = record_of(record)?;
        tell(tid, content);
    }
    Ok(())
}

fn record_of(record: &[u8]) -> Result<(i32, KernelRecord), UnknownRecord> {
    let length = record.len();
    if length < PIECE_HEAD_BYTES {
        return Err(UnknownRecord { kind: 0, length });
    }
    let u16_at = |at: usize| u16::from_le_bytes(record[at..at + 2].try_into().expect("2 bytes"));
    let u32_at = |at: usize| u32::from_le_bytes(record[at..at + 4].try_into().expect("4 bytes"));
    let u64_at = |at: usize| u64::from_le_bytes(record[at..at + 8].try_into().expect("8 bytes"));
    let i64_at = |at: usize| u64_at(at).cast_signed();
    let file_at = |at: usize| OpenedFile {
        inode: u64_at(at),
        size_bytes: u64_at(at + 8),
        filesystem: u32_at(at + 16),
        links: u32_at(at + 20),
        mode: u32_at(at + 24),
        knowledge: u32_at(at + 28),
    };
    let kind = u32_at(0);
    let content = match (kind, length) {
        (1, _) => {
            KernelRecord::Piece { address: u64_at(8), bytes: record[PIECE_HEAD_BYTES..].to_vec() }
        }
        (2, BEGIN_BYTES) => KernelRecord::Begin {
            begin_ns: i64_at(8),
            number: u32_at(16),
            is_other_abi: u16_at(20) != 0,
            pieces: u16_at(22),
            arguments: std::array::from_fn(|place| u64_at(24 + 8 * place)),
        },
        (3, END_HEAD_BYTES) => {
            KernelRecord::End { end_ns: i64_at(8), result: i64_at(16), file: OpenedFile::default() }
        }
        (3, END_BYTES) => KernelRecord::End {
            end_ns: i64_at(8),
            result: i64_at(16),
            file: file_at(END_HEAD_BYTES),
        },
        (4, FORK_BYTES) => KernelRecord::Fork {
            time_ns: i64_at(8),
            creator: u32_at(16).cast_signed(),
            pid: u32_at(20).cast_signed(),
            umask: u32_at(24),
        },
        (5, EXEC_BYTES) => {
            KernelRecord::Exec { time_ns: i64_at(8), former_tid: u32_at(16).cast_signed() }
        }
        (6, EXIT_BYTES) => {
            KernelRecord::Exit { time_ns: i64_at(8), status: u32_at(16).cast_signed() }
        }
        _ => return Err(UnknownRecord { kind, length }),
    };
    Ok((u32_at(4).cast_signed(), content))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(words: &[u32]) -> Vec<u8> {
        let record: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        [&(record.len() as u32).to_le_bytes()[..], &record].concat()
    }

    fn decode_all(bytes: &[u8]) -> Result<Vec<(i32, KernelRecord)>, UnknownRecord> {
        let mut all = Vec::new();
        decode(bytes, |tid, content| all.push((tid, content)))?;
        Ok(all)
    }

    #[test]
    fn records_are_told_with_their_threads() {
        let exec = frame(&[5, 77, 9, 0, 78, 0]);
        let piece = frame(&[1, 77, 3, 0, 0x0061_0062]);
        let mut begin = [0; 18];
        (begin[0], begin[1], begin[2], begin[4], begin[6]) = (2, 77, 8, 0, 5);
        begin[5] = 2 << 16;
        let arguments = [5, 0, 0, 0, 0, 0];
        let begin = frame(&begin);
        let wanted = [
            (
                77,
                KernelRecord::Begin {
                    begin_ns: 8,
                    number: 0,
                    is_other_abi: false,
                    pieces: 2,
                    arguments,
                },
            ),
            (77, KernelRecord::Exec { former_tid: 78, time_ns: 9 }),
            (77, KernelRecord::Piece { address: 3, bytes: vec![b'b', 0, b'a', 0] }),
        ];
        assert_eq!(decode_all(&[begin, exec, piece].concat()).unwrap(), wanted);
    }

    #[test]
    fn bytes_that_are_no_record_are_an_error() {
        assert_eq!(decode_all(&frame(&[5, 77, 9, 0])), Err(UnknownRecord { kind: 5, length: 16 }));
        assert_eq!(decode_all(&frame(&[1])), Err(UnknownRecord { kind: 0, length: 4 }));
        assert!(decode_all(&[200, 0, 0, 0, 1]).is_err());
    }
}
