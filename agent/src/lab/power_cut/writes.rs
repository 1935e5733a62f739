//! The writes to the disks of a run, and from when on a power cut takes them no more: reads the
//! records of the disks and the durability model of each; makes one list of requests in the order
//! of issue. The contents of the disks in one state are numbers of pieces, with a hash of all.

use std::collections::BTreeMap;
use std::ops::Range;

use super::durability::{DurabilityModel, NEVER_NS};
use crate::device::flash::{DiskRecord, RecordedMove, RecordedPiece, RecordedRequest, SECTORS};
use crate::device::flash_states::UNREADABLE;

/// Slots whose places one part of a device's mapping table holds: 4 bytes each, in 4 KiB
/// (kernel/flash/model/mapping.h).
const MAPPING_PART_SLOTS: u64 = 1024;

/// A write, a discard, a write of zeroes, or a flush.
#[derive(Debug, Clone)]
pub struct WrittenRequest {
    pub disk: usize,
    pub issue_ns: i64,
    /// The end of its service; of a move, the begin of the erase of the row that the slots had been
    /// in, before which no cut takes them.
    pub completion_ns: i64,
    pub durable_ns: i64,
    /// The moment from which on not even a cut takes it that comes while the mapping is programmed.
    pub safe_ns: i64,
    /// The number of the disk's mapping flushes that had ended when it was durable, that one
    /// included.
    pub flushes: usize,
    /// Whether the device programs its mapping before it is done.
    pub is_mapping_flush: bool,
    /// Whether it is the device's own move of slots.
    pub is_move: bool,
    /// Whether a cut leaves all of it or nothing.
    pub is_whole: bool,
    /// The most slots of its disk of which one cut may leave a part, until they are durable.
    pub torn_slots_max: usize,
    /// The part of `WrittenRun::pieces` that it made; empty for a flush.
    pub pieces: Range<usize>,
}

/// A request's change of a slot.
#[derive(Debug, Clone)]
pub struct WrittenPiece {
    /// Its place in `WrittenRun::slots`.
    pub slot: usize,
    /// Sectors that the request wrote; bit n is sector n.
    pub sectors: u8,
    pub after: [u64; SECTORS],
    /// The number by which the disk knows the piece, plus one.
    pub number: u32,
    /// Whether none of its sectors can be read where only some survive.
    pub is_unreadable_torn: bool,
    /// Whether the slot is moved and not changed, and cannot be read where that is lost.
    pub is_move: bool,
}

/// A slot that was written to.
#[derive(Debug, Clone)]
pub struct Slot {
    pub disk: usize,
    /// Its number on the disk.
    pub number: u64,
    pub before: [u64; SECTORS],
}

impl Slot {
    /// Return its part of the mapping, among those of all disks.
    pub fn mapping_part(&self) -> (usize, u64) {
        (self.disk, self.number / MAPPING_PART_SLOTS)
    }
}

/// All of a run.
#[derive(Debug, Default)]
pub struct WrittenRun {
    /// In the order of issue.
    pub requests: Vec<WrittenRequest>,
    pub pieces: Vec<WrittenPiece>,
    pub slots: Vec<Slot>,
}

impl WrittenRun {
    /// Return whether some cut takes what the devices moved.
    pub fn has_moves(&self) -> bool {
        self.requests.iter().any(|request| request.is_move)
    }

    /// Read the records of the disks, each with its promise.
    pub fn from_records(records: Vec<(DurabilityModel, DiskRecord)>) -> Self {
        let mut written = Self::default();
        let mut known = BTreeMap::new();
        for (disk, (promise, record)) in records.into_iter().enumerate() {
            let DiskRecord { requests, pieces, moves } = record;
            let base = written.pieces.len();
            let ends_ns = mapping_flush_ends(promise, &requests);
            for (request, durable_ns) in requests.iter().zip(promise.durable_ns(&requests)) {
                let begin = base + request.first_piece;
                let flushes = ends_ns.partition_point(|end_ns| *end_ns <= durable_ns);
                let safe_ns = match promise.stale_mapping_flushes {
                    0 => durable_ns,
                    most => ends_ns.get(flushes + most - 1).copied().unwrap_or(NEVER_NS),
                };
                written.requests.push(WrittenRequest {
                    disk,
                    issue_ns: request.issue_ns,
                    completion_ns: request.completion_ns,
                    durable_ns,
                    safe_ns,
                    flushes,
                    is_mapping_flush: promise.is_mapping_flush(request),
                    is_move: false,
                    is_whole: promise.is_whole(request),
                    torn_slots_max: promise.tearable_slots(request),
                    pieces: begin..begin + request.piece_count,
                });
            }
            for (piece, number) in pieces.into_iter().zip(1..) {
                let slot = *known.entry((disk, piece.slot)).or_insert_with(|| {
                    let RecordedPiece { slot: number, before, .. } = piece;
                    written.slots.push(Slot { disk, number, before });
                    written.slots.len() - 1
                });
                let RecordedPiece { sectors, after, .. } = piece;
                let (is_unreadable_torn, is_move) = (promise.has_unreadable_tears, false);
                let piece =
                    WrittenPiece { slot, sectors, after, number, is_unreadable_torn, is_move };
                written.pieces.push(piece);
            }
            for (request, slots) in moves_at_risk(promise, &requests, &moves) {
                let begin = written.pieces.len();
                for number in slots {
                    let slot = *known.entry((disk, number)).or_insert_with(|| {
                        // It is in no other piece: its contents are the same in all states.
                        written.slots.push(Slot { disk, number, before: [0; SECTORS] });
                        written.slots.len() - 1
                    });
                    written.pieces.push(WrittenPiece::new_move(slot));
                }
                let pieces = begin..written.pieces.len();
                written.requests.push(WrittenRequest { disk, pieces, ..request });
            }
        }
        // A move comes before the request beside it, which may be a newer write of its slots.
        written.requests.sort_by_key(|request| (request.issue_ns, !request.is_move));
        written
    }

    /// Return whether a flush had kept what a piece holds at a time.
    pub fn was_durable(&self, place: usize, at_ns: i64) -> bool {
        let request = self.requests.iter().find(|request| request.pieces.contains(&place));
        request.is_some_and(|request| request.is_move || request.durable_ns <= at_ns)
    }

    /// Return when the last flush was issued by which a write was durable at a time.
    pub fn last_kept_flush(&self, at_ns: i64) -> Option<i64> {
        let by_flush = self.requests.iter().filter(|it| {
            let is_write = !it.pieces.is_empty() && !it.is_move;
            is_write && it.durable_ns > it.completion_ns && it.durable_ns <= at_ns
        });
        let done_ns = by_flush.map(|it| it.durable_ns).max()?;
        let is_it = |it: &&WrittenRequest| it.pieces.is_empty() && it.completion_ns == done_ns;
        self.requests.iter().rev().find(is_it).map(|it| it.issue_ns)
    }
}

impl WrittenPiece {
    fn new_move(slot: usize) -> Self {
        let (after, number) = ([0; SECTORS], 0);
        Self { slot, sectors: WHOLE, after, number, is_unreadable_torn: false, is_move: true }
    }
}

/// Return when the requests end that make the mapping durable, in order.
fn mapping_flush_ends(promise: DurabilityModel, requests: &[RecordedRequest]) -> Vec<i64> {
    let flushes = requests.iter().filter(|request| promise.is_mapping_flush(request));
    let mut ends_ns: Vec<i64> = flushes.map(|request| request.completion_ns).collect();
    ends_ns.sort_unstable();
    ends_ns
}

/// Return the moves that a cut takes at some moment, those of one row beside one request together,
/// each as a request without pieces, and the numbers of the slots.
fn moves_at_risk(
    promise: DurabilityModel,
    requests: &[RecordedRequest],
    moves: &[RecordedMove],
) -> Vec<(WrittenRequest, Vec<u64>)> {
    // Of the requests from each one on that make the mapping durable, the first to end.
    let mut ends_ns = vec![NEVER_NS; requests.len() + 1];
    for (place, request) in requests.iter().enumerate().rev() {
        let is_flush = promise.is_mapping_flush(request);
        let end_ns = if is_flush { request.completion_ns } else { NEVER_NS };
        ends_ns[place] = end_ns.min(ends_ns[place + 1]);
    }
    let mut found: Vec<(WrittenRequest, Vec<u64>)> = Vec::new();
    for part in
        moves.chunk_by(|one, next| (one.request, one.erase_ns) == (next.request, next.erase_ns))
    {
        let RecordedMove { request: place, erase_ns, .. } = part[0];
        let place = place.min(requests.len());
        let (Some(erase_ns), durable_ns) = (erase_ns, ends_ns[place]) else { continue };
        if !promise.erases_early || durable_ns <= erase_ns {
            continue;
        }
        let request = WrittenRequest {
            disk: 0,
            issue_ns: requests.get(place).map_or(erase_ns, |it| it.issue_ns.min(erase_ns)),
            completion_ns: erase_ns,
            durable_ns,
            safe_ns: durable_ns,
            flushes: 0,
            is_mapping_flush: false,
            is_move: true,
            is_whole: false,
            torn_slots_max: 0,
            pieces: 0..0,
        };
        found.push((request, part.iter().map(|it| it.slot).collect()));
    }
    found
}

/// The piece of each sector of a slot: its place plus one, 0 for what was before the run, or
/// `UNREADABLE`.
pub type Sectors = [u32; SECTORS];

/// All sectors of a slot.
pub const WHOLE: u8 = 0xff;

/// Stands for the content of a sector that cannot be read.
const UNREADABLE_CONTENT: u64 = 0x756e_7265_6164_6162;

/// Slots of the disks.
#[derive(Debug, Clone)]
pub struct DiskContents {
    pub slots: Vec<Sectors>,
    /// 0 for what was before the run: of each other sector something is mixed in.
    pub hash: u64,
}

/// The content that a change replaced.
pub struct ReplacedContent {
    slot: usize,
    sectors: Sectors,
    hash: u64,
}

impl DiskContents {
    /// Return the contents before the run.
    pub fn before(written: &WrittenRun) -> Self {
        Self { slots: vec![[0; SECTORS]; written.slots.len()], hash: 0 }
    }

    /// Puts sectors of a piece there, of those that it wrote; where its disk cannot read a torn
    /// slot, all of these become unreadable, and so does what is lost of a move.
    pub fn put(&mut self, written: &WrittenRun, place: usize, sectors: u8) -> ReplacedContent {
        let piece = &written.pieces[place];
        let slot = &written.slots[piece.slot];
        let there = &mut self.slots[piece.slot];
        let replaced = ReplacedContent { slot: piece.slot, sectors: *there, hash: self.hash };
        let survivors = piece.sectors & sectors;
        let is_torn = ![0, piece.sectors].contains(&survivors);
        let (changed, number) = match piece {
            WrittenPiece { is_move: true, .. } => (piece.sectors & !sectors, UNREADABLE),
            WrittenPiece { is_unreadable_torn: true, .. } if is_torn => (piece.sectors, UNREADABLE),
            _ => (survivors, place as u32 + 1),
        };
        let content = |sector: usize, number: u32| match number {
            0 => slot.before[sector],
            UNREADABLE => UNREADABLE_CONTENT,
            number => written.pieces[number as usize - 1].after[sector],
        };
        for sector in (0..SECTORS).filter(|sector| changed & (1 << sector) != 0) {
            let (old, new) = (content(sector, there[sector]), content(sector, number));
            self.hash ^= mark(slot, sector, old) ^ mark(slot, sector, new);
            there[sector] = number;
        }
        replaced
    }

    /// Takes the last change back that was not yet.
    pub fn take_back(&mut self, replaced: &ReplacedContent) {
        self.slots[replaced.slot] = replaced.sectors;
        self.hash = replaced.hash;
    }
}

/// Return what a sector with this content mixes into the hash.
fn mark(slot: &Slot, sector: usize, content: u64) -> u64 {
    let place = (slot.number * SECTORS as u64 + sector as u64) ^ ((slot.disk as u64) << 56);
    mix_bits(mix_bits(place).wrapping_add(content))
}

/// The finalizer of SplitMix64: every bit of the result depends on every bit of the value.
fn mix_bits(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::lab::power_cut::durability::tests::{CACHED, request};

    /// A slot, none of a flush; issue, completion and content.
    pub type SlotRequest = (Option<u64>, i64, i64, u64);

    /// Writes of one slot each, and flushes, on one disk with a cache.
    pub fn written_run(requests: &[SlotRequest]) -> WrittenRun {
        WrittenRun::from_records(vec![record_of(CACHED, requests)])
    }

    /// The record of a disk.
    pub fn record_of(
        promise: DurabilityModel,
        requests: &[SlotRequest],
    ) -> (DurabilityModel, DiskRecord) {
        let mut pieces = Vec::new();
        let mut record = |&(slot, issue_ns, completion_ns, content): &SlotRequest| {
            let word = if slot.is_some() { "write" } else { "flush" };
            let mut made = request(issue_ns, completion_ns, word);
            made.first_piece = pieces.len();
            pieces.extend(slot.map(|slot| RecordedPiece {
                slot,
                sectors: 0xff,
                after: [content; SECTORS],
                before: [0; SECTORS],
            }));
            made.piece_count = pieces.len() - made.first_piece;
            made
        };
        let requests = requests.iter().map(&mut record).collect();
        (promise, DiskRecord { requests, pieces, moves: Vec::new() })
    }

    #[test]
    fn the_last_flush_that_kept_a_write_is_told_from_one_that_kept_nothing() {
        let all = written_run(&[
            (Some(7), 1, 2, 5),
            (None, 10, 20, 0),
            (None, 30, 40, 0),
            (Some(8), 50, 60, 6),
            (None, 70, 80, 0),
        ]);
        assert_eq!(
            [19, 20, 79].map(|at_ns| all.last_kept_flush(at_ns)),
            [None, Some(10), Some(10)]
        );
        assert_eq!(all.last_kept_flush(80), Some(70));
        let direct = DurabilityModel { is_volatile: false, ..CACHED };
        let requests = [(Some(7), 1, 2, 5), (None, 10, 20, 0)];
        let direct = WrittenRun::from_records(vec![record_of(direct, &requests)]);
        assert_eq!(direct.last_kept_flush(99), None);
        assert_eq!([19, 20].map(|at_ns| all.was_durable(0, at_ns)), [false, true]);
    }

    #[test]
    fn a_durable_write_is_safe_from_a_stale_mapping_after_so_many_flushes_more() {
        let all = [(Some(1), 10, 20, 5), (None, 30, 40, 0), (None, 50, 60, 0), (None, 70, 80, 0)];
        let times = |stale_mapping_flushes| {
            let disk = DurabilityModel { stale_mapping_flushes, ..CACHED };
            let write = WrittenRun::from_records(vec![record_of(disk, &all)]).requests.remove(0);
            (write.durable_ns, write.safe_ns)
        };
        assert_eq!([0, 1, 2, 3].map(times), [(40, 40), (40, 60), (40, 80), (40, NEVER_NS)]);
    }

    #[test]
    fn a_move_is_at_risk_from_the_erase_until_a_flush_that_knows_of_it_ends() {
        let disk = DurabilityModel { erases_early: true, ..CACHED };
        let requests =
            [(Some(1), 10, 20, 5), (None, 30, 40, 0), (Some(2), 50, 60, 6), (None, 70, 80, 0)];
        let (_, mut record) = record_of(disk, &requests);
        let each = |slot, request, erase_ns| RecordedMove { slot, request, erase_ns };
        record.moves = vec![
            each(7, 0, Some(25)),
            each(8, 0, Some(25)),
            // That flush was computed with the move, and ended before the row was erased.
            each(9, 1, Some(45)),
            each(5, 2, Some(55)),
            each(2, 4, Some(90)),
            each(6, 4, None),
        ];
        let found = |disk| {
            let record = DiskRecord { moves: record.moves.clone(), ..record_of(disk, &requests).1 };
            let written = WrittenRun::from_records(vec![(disk, record)]);
            let moves = written.requests.iter().filter(|it| it.is_move);
            let slot = |place: usize| written.slots[written.pieces[place].slot].number;
            moves
                .map(|it| {
                    let slots: Vec<u64> = it.pieces.clone().map(slot).collect();
                    (slots, it.issue_ns, it.completion_ns, it.durable_ns)
                })
                .collect::<Vec<_>>()
        };
        let expected =
            [(vec![7, 8], 10, 25, 40), (vec![5], 50, 55, 80), (vec![2], 90, 90, NEVER_NS)];
        assert_eq!(found(disk), expected);
        assert_eq!(found(CACHED), []);
    }

    #[test]
    fn equal_contents_have_equal_hashes_by_whatever_way() {
        // The third writes again what the first wrote; the fourth what was there before.
        let all = written_run(&[
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
    fn a_torn_slot_is_unreadable_where_the_disk_cannot_read_it_until_it_is_written_whole() {
        let disk = DurabilityModel { has_unreadable_tears: true, ..CACHED };
        let requests = [(Some(7), 1, 2, 5), (Some(7), 3, 4, 6)];
        let all = WrittenRun::from_records(vec![record_of(disk, &requests)]);
        let mut contents = DiskContents::before(&all);
        contents.put(&all, 0, 0x0f);
        assert_eq!(contents.slots, [[UNREADABLE; SECTORS]]);
        // It is the same, whichever of its sectors survived.
        let hash = contents.hash;
        let replaced = contents.put(&all, 0, 0x01);
        assert_eq!(contents.hash, hash);
        contents.take_back(&replaced);
        contents.put(&all, 1, WHOLE);
        let mut whole = DiskContents::before(&all);
        whole.put(&all, 1, WHOLE);
        assert_eq!((contents.hash, &contents.slots), (whole.hash, &whole.slots));
    }

    #[test]
    fn a_change_is_taken_back_and_a_torn_slot_is_of_two_pieces() {
        let all = written_run(&[(Some(7), 1, 2, 5), (Some(7), 3, 4, 6)]);
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
