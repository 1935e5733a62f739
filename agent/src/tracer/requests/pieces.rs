//! Finds the bios behind a request. Holds every range of a queued bio that was not issued yet;
//! returns, for a request's range of sectors, the ranges it consists of.
//!
//! Matches by sectors, because bios are merged into requests, and large ones are split after they
//! were seen: neither the address nor the length of a bio need be a request's. Of ranges with the
//! same sectors, the one queued first is issued first.

use std::collections::BTreeMap;

/// A stretch of one run of one bio, in sectors of the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Number of the bio and of its run, as counted by the caller.
    pub bio: usize,
    pub run: usize,
    /// Bytes into the run where the piece begins.
    pub skipped_bytes: u64,
    pub sector: u64,
    pub sectors: u64,
}

/// A stretch of a request: a piece of a bio, or sectors that no bio was seen for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestPart {
    Known(Piece),
    Unknown { sector: u64, sectors: u64 },
}

/// A disk's number, and an operation (kernel::OPERATION_*): only pieces of one lane can meet.
pub type Lane = (u32, u32);

/// Orders pieces by lane, sector, and then age.
type PieceKey = (Lane, u64, usize, usize);

/// The pieces queued and not issued yet.
#[derive(Debug, Default)]
pub struct Pieces {
    waiting: BTreeMap<PieceKey, Piece>,
    lanes: BTreeMap<Lane, LaneLengths>,
}

/// Pieces that wait in a lane, by the number of bits that their length in sectors takes.
#[derive(Debug)]
struct LaneLengths {
    counts: [u32; 65],
    /// A bit for each length that there is.
    present: u128,
}

impl Default for LaneLengths {
    fn default() -> Self {
        Self { counts: [0; 65], present: 0 }
    }
}

impl LaneLengths {
    fn add(&mut self, sectors: u64) {
        let bits = (u64::BITS - sectors.leading_zeros()) as usize;
        self.counts[bits] += 1;
        self.present |= 1 << bits;
    }

    fn remove(&mut self, sectors: u64) {
        let bits = (u64::BITS - sectors.leading_zeros()) as usize;
        self.counts[bits] -= 1;
        if self.counts[bits] == 0 {
            self.present &= !(1 << bits);
        }
    }

    /// Return how many sectors back a piece that covers one may begin: the longest that waits has
    /// as many at most, and half as many at least.
    fn reach_sectors(&self) -> u64 {
        let bits = u128::BITS - self.present.leading_zeros();
        if bits > 1 { u64::MAX >> (65 - bits) } else { 0 }
    }
}

impl Pieces {
    /// A piece was queued.
    pub fn add(&mut self, lane: Lane, piece: Piece) {
        if piece.sectors > 0 {
            self.lanes.entry(lane).or_default().add(piece.sectors);
            self.waiting.insert((lane, piece.sector, piece.bio, piece.run), piece);
        }
    }

    fn shorten(lanes: &mut BTreeMap<Lane, LaneLengths>, lane: Lane, sectors: u64) {
        let Some(lengths) = lanes.get_mut(&lane) else { return };
        lengths.remove(sectors);
        if lengths.present == 0 {
            lanes.remove(&lane);
        }
    }

    /// Removes what a request of this range is made of, in order of sectors.
    pub fn take_parts(&mut self, lane: Lane, sector: u64, sectors: u64) -> Vec<RequestPart> {
        let end = sector.saturating_add(sectors);
        let mut parts = Vec::new();
        let (mut cursor, mut last_bio) = (sector, None);
        while cursor < end {
            let Some(place) = self.covering(lane, cursor, last_bio) else {
                let next = self.next_begin(lane, cursor, end);
                parts.push(RequestPart::Unknown { sector: cursor, sectors: next - cursor });
                cursor = next;
                continue;
            };
            let piece = self.cut(place, cursor, end);
            last_bio = Some(piece.bio);
            cursor += piece.sectors;
            parts.push(RequestPart::Known(piece));
        }
        parts
    }

    /// No piece waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Forgets what waits of some bios.
    pub fn forget(&mut self, is_gone: impl Fn(usize) -> bool) {
        self.waiting.retain(|(lane, ..), piece| {
            let stays = !is_gone(piece.bio);
            if !stays {
                Self::shorten(&mut self.lanes, *lane, piece.sectors);
            }
            stays
        });
    }

    /// The piece to use at a sector: the same bio's next run, or else the oldest that covers it.
    fn covering(&self, lane: Lane, sector: u64, bio: Option<usize>) -> Option<PieceKey> {
        let here = (lane, sector, 0, 0)..=(lane, sector, usize::MAX, usize::MAX);
        if let Some((place, _)) = self.waiting.range(here).find(|(_, piece)| Some(piece.bio) == bio)
        {
            return Some(*place);
        }
        let first = sector.saturating_sub(self.lanes.get(&lane)?.reach_sectors());
        let reach = (lane, first, 0, 0)..=(lane, sector, usize::MAX, usize::MAX);
        let covers = |piece: &Piece| piece.sector + piece.sectors > sector;
        let candidates = self.waiting.range(reach).filter(|(_, piece)| covers(piece));
        candidates.map(|(place, _)| *place).min_by_key(|&(_, _, bio, run)| (bio, run))
    }

    fn next_begin(&self, lane: Lane, sector: u64, end: u64) -> u64 {
        let after = (lane, sector + 1, 0, 0)..(lane, end, 0, 0);
        self.waiting.range(after).next().map_or(end, |(&(_, begin, _, _), _)| begin)
    }

    /// Takes the part from `sector` up to `end` out of a piece; the rest on both sides waits on.
    fn cut(&mut self, place: PieceKey, sector: u64, end: u64) -> Piece {
        let whole = self.waiting.remove(&place).expect("the place was just found");
        Self::shorten(&mut self.lanes, place.0, whole.sectors);
        let cut_end = end.min(whole.sector + whole.sectors);
        let part = |from: u64, to: u64| Piece {
            sector: from,
            sectors: to - from,
            skipped_bytes: whole.skipped_bytes + (from - whole.sector) * 512,
            ..whole
        };
        self.add(place.0, part(whole.sector, sector));
        self.add(place.0, part(cut_end, whole.sector + whole.sectors));
        part(sector, cut_end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READS: Lane = (7, 0);
    const WRITES: Lane = (7, 1);

    fn piece(bio: usize, run: usize, sector: u64, sectors: u64) -> Piece {
        Piece { bio, run, skipped_bytes: 0, sector, sectors }
    }

    fn bios(parts: &[RequestPart]) -> Vec<(Option<usize>, u64, u64)> {
        let fields = |part: &RequestPart| match *part {
            RequestPart::Known(piece) => (Some(piece.bio), piece.sector, piece.sectors),
            RequestPart::Unknown { sector, sectors } => (None, sector, sectors),
        };
        parts.iter().map(fields).collect()
    }

    #[test]
    fn merged_bios_come_in_order_of_sectors() {
        let mut pieces = Pieces::default();
        pieces.add(WRITES, piece(0, 0, 16, 8));
        pieces.add(WRITES, piece(1, 0, 8, 8));
        assert_eq!(bios(&pieces.take_parts(WRITES, 8, 16)), [(Some(1), 8, 8), (Some(0), 16, 8)]);
        assert!(pieces.is_empty());
    }

    #[test]
    fn a_split_bio_serves_several_requests() {
        let mut pieces = Pieces::default();
        pieces.add(WRITES, piece(0, 0, 100, 64));
        let parts = pieces.take_parts(WRITES, 132, 32);
        assert_eq!(
            parts,
            [RequestPart::Known(Piece { skipped_bytes: 32 * 512, ..piece(0, 0, 132, 32) })]
        );
        assert_eq!(bios(&pieces.take_parts(WRITES, 100, 32)), [(Some(0), 100, 32)]);
    }

    #[test]
    fn equal_ranges_are_issued_in_the_order_queued() {
        let mut pieces = Pieces::default();
        pieces.add(WRITES, piece(0, 0, 8, 8));
        pieces.add(WRITES, piece(1, 0, 8, 8));
        pieces.add(READS, piece(2, 0, 8, 8));
        assert_eq!(bios(&pieces.take_parts(WRITES, 8, 8)), [(Some(0), 8, 8)]);
        assert_eq!(bios(&pieces.take_parts(WRITES, 8, 8)), [(Some(1), 8, 8)]);
        assert_eq!(bios(&pieces.take_parts(WRITES, 8, 8)), [(None, 8, 8)]);
        assert_eq!(bios(&pieces.take_parts(READS, 8, 8)), [(Some(2), 8, 8)]);
    }

    #[test]
    fn disks_do_not_meet_and_what_is_too_old_is_forgotten() {
        let mut pieces = Pieces::default();
        pieces.add(WRITES, piece(0, 0, 8, 8));
        pieces.add((8, 1), piece(1, 0, 8, 8));
        assert_eq!(bios(&pieces.take_parts((8, 1), 8, 8)), [(Some(1), 8, 8)]);
        pieces.forget(|bio| bio < 1);
        assert!(pieces.is_empty());
    }

    #[test]
    fn a_request_stays_with_its_bio_when_an_older_one_overlaps() {
        let mut pieces = Pieces::default();
        pieces.add(WRITES, piece(0, 0, 8, 8));
        pieces.add(WRITES, piece(1, 0, 0, 8));
        pieces.add(WRITES, piece(1, 1, 8, 8));
        assert_eq!(bios(&pieces.take_parts(WRITES, 0, 16)), [(Some(1), 0, 8), (Some(1), 8, 8)]);
        assert_eq!(bios(&pieces.take_parts(WRITES, 8, 8)), [(Some(0), 8, 8)]);
    }

    /// After a discard of gigabytes a write need not be looked for as far back, though others wait.
    #[test]
    fn a_long_piece_that_was_taken_is_looked_for_no_more() {
        let mut pieces = Pieces::default();
        pieces.add(WRITES, piece(0, 0, 0, 1 << 22));
        pieces.add(WRITES, piece(1, 0, 64, 8));
        pieces.add(READS, piece(2, 0, 0, u64::MAX));
        assert_eq!(pieces.lanes[&WRITES].reach_sectors(), (1 << 23) - 1);
        assert_eq!(pieces.lanes[&READS].reach_sectors(), u64::MAX);
        assert_eq!(pieces.take_parts(WRITES, 0, 1 << 22).len(), 1);
        assert_eq!(pieces.lanes[&WRITES].reach_sectors(), 15);
        pieces.forget(|bio| bio == 1);
        assert_eq!(pieces.lanes.keys().collect::<Vec<_>>(), [&READS]);
        pieces.forget(|bio| bio < 3);
        assert!(pieces.lanes.is_empty() && pieces.is_empty());
    }

    #[test]
    fn sectors_nobody_queued_are_unknown() {
        let mut pieces = Pieces::default();
        pieces.add(WRITES, piece(0, 0, 8, 8));
        let parts = pieces.take_parts(WRITES, 0, 32);
        assert_eq!(bios(&parts), [(None, 0, 8), (Some(0), 8, 8), (None, 16, 16)]);
    }

    /// Whatever is queued and asked for: a request's parts fill its range exactly, and no sector
    /// of a bio is given out twice.
    #[test]
    fn parts_always_fill_the_request() {
        let mut seed = 42u64;
        let mut random = move |limit: u64| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) % limit
        };
        let mut pieces = Pieces::default();
        let (mut queued, mut given) = (0, 0);
        for bio in 0..4001 {
            let (sector, sectors) = (random(64), 1 + random(16));
            pieces.add(WRITES, piece(bio, 0, sector, sectors));
            queued += sectors;
            let (sector, sectors) = (random(64), 1 + random(24));
            let mut cursor = sector;
            for (bio, begin, length) in bios(&pieces.take_parts(WRITES, sector, sectors)) {
                assert_eq!(begin, cursor);
                cursor += length;
                given += if bio.is_some() { length } else { 0 };
            }
            assert_eq!(cursor, sector + sectors);
        }
        let left: u64 = pieces.waiting.values().map(|piece| piece.sectors).sum();
        assert_eq!(queued, given + left);
        let counted: u32 = pieces.lanes.values().flat_map(|lengths| lengths.counts).sum();
        assert_eq!(counted as usize, pieces.waiting.len());
    }
}
