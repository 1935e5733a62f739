//! The contents that a recording kept, in memory: reads those that the steps of a plan write from
//! the recording's contents.bin before the first step, so that no step waits for a disk.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::script::plan::KeptPiece;
use crate::workload::error::WorkloadError;
use crate::workload::files::aligned_buffer::AlignedBuffer;

/// Most bytes of all contents together.
const MOST_KEPT_BYTES: usize = 1 << 30;
/// What is written past the page cache is a multiple of a device's block, and lies at one.
const BLOCKS_BYTES: [usize; 2] = [4096, 512];

/// Contents by their number in the plan.
#[derive(Default)]
pub struct KeptContents {
    memory: Option<AlignedBuffer>,
    /// Where each begins.
    begins: Vec<usize>,
}

impl KeptContents {
    /// Reads the contents of a plan.
    ///
    /// # Errors
    /// Naming the file, if they are not there, are not what was recorded, or are too many.
    pub fn read(recording: &Path, pieces: &[KeptPiece]) -> Result<Self, WorkloadError> {
        if pieces.is_empty() {
            return Ok(Self::default());
        }
        let path = recording.join("contents.bin");
        let refuse = |what: String| WorkloadError::refused(format!("{}: {what}", path.display()));
        let (begins, bytes) = places(pieces);
        if bytes > MOST_KEPT_BYTES {
            return Err(refuse(format!(
                "the contents that its calls write take {bytes} bytes of memory, more than \
                 {MOST_KEPT_BYTES}; record without --data keep, or a shorter run"
            )));
        }
        let file = File::open(&path).map_err(|error| refuse(error.to_string()))?;
        let mut memory = AlignedBuffer::new(bytes);
        for (piece, begin) in pieces.iter().zip(&begins) {
            let into = &mut memory.bytes()[*begin..begin + piece.bytes as usize];
            file.read_exact_at(into, piece.offset)
                .map_err(|error| refuse(format!("at {}: {error}", piece.offset)))?;
            if !format!("{:x}", Sha256::digest(&*into)).starts_with(&piece.hash) {
                return Err(refuse(format!(
                    "{} bytes at {} are not those that were recorded as {}; record it again",
                    piece.bytes, piece.offset, piece.hash
                )));
            }
        }
        Ok(Self { memory: Some(memory), begins })
    }

    /// All of them, and what lies between.
    pub fn bytes(&self) -> &[u8] {
        self.memory.as_ref().map_or(&[], AlignedBuffer::as_slice)
    }

    /// Where each is in these bytes, if so many others are before them.
    pub fn places_behind(&self, bytes: usize) -> Vec<usize> {
        self.begins.iter().map(|begin| bytes + begin).collect()
    }

    /// Where contents are; they stay there as long as this lives, and nobody changes them.
    pub fn address(&self, number: u32) -> usize {
        self.bytes()[self.begins[number as usize]..].as_ptr() as usize
    }
}

/// Where each of the contents begins, and how many bytes they take together.
fn places(pieces: &[KeptPiece]) -> (Vec<usize>, usize) {
    let mut end = 0_usize;
    let begins = pieces.iter().map(|piece| {
        let bytes = piece.bytes as usize;
        let block = BLOCKS_BYTES.into_iter().find(|block| bytes.is_multiple_of(*block));
        let begin = end.next_multiple_of(block.unwrap_or(1));
        end = begin + bytes;
        begin
    });
    (begins.collect(), end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(offset: u64, contents: &[u8]) -> KeptPiece {
        let mut hash = format!("{:x}", Sha256::digest(contents));
        hash.truncate(32);
        KeptPiece { hash, offset, bytes: contents.len() as u32 }
    }

    #[test]
    fn contents_are_read_to_where_a_device_can_take_them() {
        let folder = tempfile::tempdir().unwrap();
        let (short, block) = (b"abc".as_slice(), [7; 4096]);
        std::fs::write(folder.path().join("contents.bin"), [short, &block].concat()).unwrap();
        let pieces = [piece(0, short), piece(3, &block)];
        let kept = KeptContents::read(folder.path(), &pieces).unwrap();
        assert!(kept.address(1).is_multiple_of(4096));
        let of = |number: u32| {
            let bytes = pieces[number as usize].bytes as usize;
            // SAFETY: the contents are there, and nobody writes to them.
            unsafe { std::slice::from_raw_parts(kept.address(number) as *const u8, bytes) }
        };
        assert_eq!((of(0), of(1)), (short, block.as_slice()));
        for (wrong, words) in [
            (piece(5000, b"abc"), "at 5000"),
            (KeptPiece { offset: 1, ..piece(0, b"abc") }, "are not those that were recorded"),
        ] {
            let refused = KeptContents::read(folder.path(), &[wrong]).err().unwrap().to_string();
            assert!(refused.contains("contents.bin: ") && refused.contains(words), "{refused}");
        }
        let large = KeptPiece { bytes: u32::MAX, ..piece(0, b"") };
        let refused = KeptContents::read(folder.path(), &[large]).err().unwrap().to_string();
        assert!(refused.contains("more than 1073741824"), "{refused}");
    }
}
