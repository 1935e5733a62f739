//! A sum of runs whose bios got no record (struct total_key of kernel/block/event.h), as the facts
//! of a bio and a run that the rules for block types use.

use super::fields::Fields;
use super::kernel::{BTRFS_MAGIC, F2FS_MAGIC};
use super::{Bio, Run};

pub const KEY_BYTES: usize = 112;

/// F2FS_AREA_BITS of event.h.
const F2FS_AREA_BITS: u32 = 21;

/// ANY_FILE of event.h: a file whose number was not kept.
pub const ANY_FILE: u64 = u64::MAX;

/// Runs of bios without records, and whose rules look at the same facts.
#[derive(Debug, Clone, PartialEq)]
pub struct CountedRuns {
    pub bio: Bio,
    pub run: Run,
    pub runs: u64,
    pub bytes: u64,
}

impl CountedRuns {
    /// A sum by its key.
    pub fn decode(key: &[u8; KEY_BYTES], runs: u64, bytes: u64) -> Self {
        let mut fields = Fields::new(key);
        let (mut bio, mut run) = (Bio::default(), Run::default());
        bio.end_io = fields.u64();
        bio.buffer_end_io = fields.u64();
        run.operations = fields.u64();
        run.inode = fields.u64();
        let detail = fields.u64();
        run.subvolume = fields.u64();
        bio.holder = fields.text(8);
        bio.comm = fields.text(16);
        bio.device = fields.u32();
        bio.partition_device = fields.u32();
        bio.flags = fields.u32();
        run.flags = fields.u32();
        run.magic = fields.u32();
        run.filesystem = fields.u32();
        run.generation = fields.u32();
        run.mode = fields.u32();
        bio.journal_block_type = fields.u8();
        bio.kernel_thread = fields.u8() != 0;
        match run.magic {
            BTRFS_MAGIC => run.detail = detail,
            F2FS_MAGIC => run.file_offset_bytes = detail << F2FS_AREA_BITS,
            _ => {}
        }
        CountedRuns { bio, run, runs, bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A key with these fields, by their offsets in event.h.
    fn key(words: &[(usize, u64)], halves: &[(usize, u32)]) -> [u8; KEY_BYTES] {
        let mut key = [0; KEY_BYTES];
        for &(offset, word) in words {
            key[offset..offset + 8].copy_from_slice(&word.to_le_bytes());
        }
        for &(offset, half) in halves {
            key[offset..offset + 4].copy_from_slice(&half.to_le_bytes());
        }
        key
    }

    #[test]
    fn a_key_is_decoded_by_the_offsets_of_event_h() {
        let words = [(0, 0x10), (8, 0x20), (16, 0x30), (24, 12), (32, 7), (40, 257)];
        let halves =
            [(72, 5), (76, 6), (80, 1), (84, 16), (88, 3), (92, 39), (96, 9), (100, 0o100)];
        let mut key = key(&words, &halves);
        key[48..52].copy_from_slice(b"ext4");
        key[56..68].copy_from_slice(b"ext4lazyinit");
        (key[104], key[105]) = (2, 1);
        let CountedRuns { bio, run, runs, bytes } = CountedRuns::decode(&key, 3, 12288);
        assert_eq!((runs, bytes), (3, 12288));
        assert_eq!((bio.end_io, bio.buffer_end_io, bio.flags), (0x10, 0x20, 1));
        assert_eq!((bio.device, bio.partition_device), (5, 6));
        assert_eq!((bio.holder.as_str(), bio.comm.as_str()), ("ext4", "ext4lazyinit"));
        assert_eq!((bio.journal_block_type, bio.kernel_thread), (2, true));
        assert_eq!((run.operations, run.inode, run.detail), (0x30, 12, 0));
        assert_eq!(run.subvolume, 257);
        assert_eq!((run.flags, run.magic, run.filesystem), (16, 3, 39));
        assert_eq!((run.generation, run.mode), (9, 0o100));
    }

    #[test]
    fn what_decides_on_a_tree_or_an_area_is_kept() {
        let of = |magic| CountedRuns::decode(&key(&[(32, 3)], &[(88, magic)]), 1, 1).run;
        assert_eq!((of(BTRFS_MAGIC).detail, of(BTRFS_MAGIC).file_offset_bytes), (3, 0));
        assert_eq!((of(F2FS_MAGIC).detail, of(F2FS_MAGIC).file_offset_bytes), (0, 6 << 20));
    }
}
