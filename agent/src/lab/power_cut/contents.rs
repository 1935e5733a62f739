//! The contents of the disks in one state, as numbers of pieces, and a hash of them: equal contents
//! have equal hashes, whatever wrote them. Changes can be taken back.

use super::written::{Slot, WrittenRun};
use crate::device::flash_record::SECTORS;

/// Which piece each sector of a slot is of: its place plus one, 0 for what was before the run.
pub type Sectors = [u32; SECTORS];

/// All sectors of a slot.
pub const WHOLE: u8 = 0xff;

/// Slots of the disks.
#[derive(Debug, Clone)]
pub struct DiskContents {
    pub slots: Vec<Sectors>,
    /// 0 for what was before the run: of each other sector something is mixed in.
    pub hash: u64,
}

/// What a change replaced.
pub struct Replaced {
    slot: usize,
    sectors: Sectors,
    hash: u64,
}

impl DiskContents {
    /// What was before the run.
    pub fn before(written: &WrittenRun) -> Self {
        Self { slots: vec![[0; SECTORS]; written.slots.len()], hash: 0 }
    }

    /// Puts sectors of a piece there, of those that it wrote.
    pub fn put(&mut self, written: &WrittenRun, place: usize, sectors: u8) -> Replaced {
        let piece = &written.pieces[place];
        let slot = &written.slots[piece.slot];
        let there = &mut self.slots[piece.slot];
        let replaced = Replaced { slot: piece.slot, sectors: *there, hash: self.hash };
        for sector in (0..SECTORS).filter(|sector| piece.sectors & sectors & (1 << sector) != 0) {
            let old = match there[sector] {
                0 => slot.before[sector],
                number => written.pieces[number as usize - 1].after[sector],
            };
            self.hash ^= mark(slot, sector, old) ^ mark(slot, sector, piece.after[sector]);
            there[sector] = place as u32 + 1;
        }
        replaced
    }

    /// Takes the last change back that was not yet.
    pub fn take_back(&mut self, replaced: &Replaced) {
        self.slots[replaced.slot] = replaced.sectors;
        self.hash = replaced.hash;
    }
}

/// What a sector with this content mixes into the hash.
fn mark(slot: &Slot, sector: usize, content: u64) -> u64 {
    let place = (slot.number * SECTORS as u64 + sector as u64) ^ ((slot.disk as u64) << 56);
    mixed(mixed(place).wrapping_add(content))
}

/// The finalizer of SplitMix64: every bit of the result depends on every bit of the value.
fn mixed(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::super::written::tests::written;
    use super::*;

    #[test]
    fn equal_contents_have_equal_hashes_by_whatever_way() {
        // The third writes again what the first wrote; the fourth what was there before.
        let all = written(&[
            (Some(7), 1, 2, 5),
            (Some(7), 3, 4, 6),
            (Some(7), 5, 6, 5),
            (Some(7), 7, 8, 0),
            (Some(8), 9, 10, 5),
        ]);
        let after = |places: &[usize]| {
            let mut contents = DiskContents::before(&all);
            for &place in places {
                contents.put(&all, place, WHOLE);
            }
            contents.hash
        };
        assert_eq!(after(&[0]), after(&[0, 1, 2]));
        assert_eq!(after(&[1, 3]), after(&[]));
        assert_ne!(after(&[0]), after(&[1]));
        assert_ne!(after(&[0]), after(&[4]));
        assert_eq!(after(&[0, 4]), after(&[4, 0]));
    }

    #[test]
    fn a_change_is_taken_back_and_a_torn_slot_is_of_two_pieces() {
        let all = written(&[(Some(7), 1, 2, 5), (Some(7), 3, 4, 6)]);
        let mut contents = DiskContents::before(&all);
        contents.put(&all, 0, WHOLE);
        let hash = contents.hash;
        let replaced = contents.put(&all, 1, 0x0f);
        assert_eq!(contents.slots, [[2, 2, 2, 2, 1, 1, 1, 1]]);
        assert_ne!(contents.hash, hash);
        contents.take_back(&replaced);
        assert_eq!((contents.hash, &contents.slots[0]), (hash, &[1; SECTORS]));
    }
}
