//! The writes to the disks of a run, and from when on a power cut takes them no more: reads the
//! records of the disks and the durability model of each; makes one list of requests in the order
//! of issue. The contents of the disks in one state are numbers of pieces, with a hash of all.
//!
//! A device with a volatile cache owes the host what a flush that completed before the cut found
//! completed, and completed FUA writes (JESD84-B51, 6.6.34; Documentation/block/
//! writeback_cache_control.rst). One without owes every completed write. One that lies about
//! flushes owes nothing.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::device::flash::{self, RecordedPiece, RecordedRequest, SECTORS, UNREADABLE};
use crate::record::DeviceModel;

/// The time of a write that nothing makes durable.
pub const NEVER_NS: i64 = i64::MAX;
/// Bytes of a slot of the record.
const SLOT_BYTES: i64 = flash::SLOT_BYTES as i64;

/// The rules by which a disk keeps what it has completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DurabilityModel {
    pub is_volatile: bool,
    pub has_fua: bool,
    pub lies_about_flushes: bool,
    /// Bytes that a power cut leaves whole or not at all, of a write that is not durable: whether
    /// it is under way, or in the cache and drained as the power goes.
    pub torn_bytes: i64,
    /// The most slots of which one cut leaves some sectors, where it may.
    pub torn_slots_max: usize,
    /// Whether what was written to a torn slot cannot be read until it is written again.
    pub has_unreadable_tears: bool,
}

impl DurabilityModel {
    /// As the device's profile says (devices/README.md).
    pub fn from_profile(model: &DeviceModel) -> Self {
        let value = |name| model.get(name).copied().unwrap_or(0);
        Self {
            is_volatile: value("cache_bytes") != 0 && value("power_loss_protection") == 0,
            has_fua: value("fua") != 0,
            lies_about_flushes: value("flush_lies") != 0,
            torn_bytes: if value("atomic_slots") == 0 { 512 } else { SLOT_BYTES },
            torn_slots_max: usize::try_from(value("torn_slots_max")).unwrap_or(1).max(1),
            has_unreadable_tears: value("unreadable_torn_slots") != 0,
        }
    }

    /// Return how many slots one cut may tear.
    fn tearable_slots(self) -> usize {
        if self.torn_bytes < SLOT_BYTES { self.torn_slots_max } else { 0 }
    }

    /// Return the moment when each request is durable.
    fn durable_ns(self, requests: &[RecordedRequest]) -> Vec<i64> {
        // Of the flushes issued at a time or later, the first to complete.
        let mut flushed_ns = BTreeMap::new();
        let mut first_ns = NEVER_NS;
        for flush in requests.iter().rev().filter(|request| request.is_flush) {
            first_ns = first_ns.min(flush.completion_ns);
            flushed_ns.insert(flush.issue_ns, first_ns);
        }
        let durable_ns = |request: &RecordedRequest| {
            if !self.is_volatile || (request.is_fua && !self.lies_about_flushes) {
                return request.completion_ns;
            }
            let mut later = flushed_ns.range(request.completion_ns..);
            let flushed_ns = later.next().map_or(NEVER_NS, |(_, at_ns)| *at_ns);
            if self.lies_about_flushes { NEVER_NS } else { flushed_ns }
        };
        requests.iter().map(durable_ns).collect()
    }
}

/// A write, a discard, a write of zeroes, or a flush.
#[derive(Debug, Clone)]
pub struct WrittenRequest {
    pub issue_ns: i64,
    pub completion_ns: i64,
    pub durable_ns: i64,
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
}

/// A slot that was written to.
#[derive(Debug, Clone)]
pub struct Slot {
    pub disk: usize,
    /// Its number on the disk.
    pub number: u64,
    pub before: [u64; SECTORS],
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
    /// Read the records of the disks, each with its promise.
    pub fn from_records(
        records: Vec<(DurabilityModel, Vec<RecordedRequest>, Vec<RecordedPiece>)>,
    ) -> Self {
        let mut written = Self::default();
        let mut known = BTreeMap::new();
        for (disk, (promise, requests, pieces)) in records.into_iter().enumerate() {
            let base = written.pieces.len();
            for (request, durable_ns) in requests.iter().zip(promise.durable_ns(&requests)) {
                let begin = base + request.first_piece;
                written.requests.push(WrittenRequest {
                    issue_ns: request.issue_ns,
                    completion_ns: request.completion_ns,
                    durable_ns,
                    torn_slots_max: promise.tearable_slots(),
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
                let is_unreadable_torn = promise.has_unreadable_tears;
                let piece = WrittenPiece { slot, sectors, after, number, is_unreadable_torn };
                written.pieces.push(piece);
            }
        }
        written.requests.sort_by_key(|request| request.issue_ns);
        written
    }

    /// Return when the last flush was issued by which a write was durable at a time.
    pub fn last_kept_flush(&self, at_ns: i64) -> Option<i64> {
        let by_flush = self.requests.iter().filter(|it| {
            !it.pieces.is_empty() && it.durable_ns > it.completion_ns && it.durable_ns <= at_ns
        });
        let done_ns = by_flush.map(|it| it.durable_ns).max()?;
        let is_it = |it: &&WrittenRequest| it.pieces.is_empty() && it.completion_ns == done_ns;
        self.requests.iter().rev().find(is_it).map(|it| it.issue_ns)
    }
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
    /// slot, all of these become unreadable.
    pub fn put(&mut self, written: &WrittenRun, place: usize, sectors: u8) -> ReplacedContent {
        let piece = &written.pieces[place];
        let slot = &written.slots[piece.slot];
        let there = &mut self.slots[piece.slot];
        let replaced = ReplacedContent { slot: piece.slot, sectors: *there, hash: self.hash };
        let survivors = piece.sectors & sectors;
        let is_torn = ![0, piece.sectors].contains(&survivors);
        let (changed, number) = match piece.is_unreadable_torn && is_torn {
            true => (piece.sectors, UNREADABLE),
            false => (survivors, place as u32 + 1),
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
    mixed(mixed(place).wrapping_add(content))
}

/// The finalizer of SplitMix64: every bit of the result depends on every bit of the value.
fn mixed(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub const CACHED: DurabilityModel = DurabilityModel {
        is_volatile: true,
        has_fua: true,
        lies_about_flushes: false,
        torn_bytes: 512,
        torn_slots_max: 1,
        has_unreadable_tears: false,
    };

    fn request(issue_ns: i64, completion_ns: i64, word: &str) -> RecordedRequest {
        let (is_flush, is_fua) = (word == "flush", word == "fua");
        let (first_piece, piece_count) = (0, 0);
        RecordedRequest { issue_ns, completion_ns, first_piece, piece_count, is_flush, is_fua }
    }

    fn durable_ns(promise: DurabilityModel, requests: &[(i64, i64, &str)]) -> Vec<i64> {
        let requests: Vec<_> = requests.iter().map(|it| request(it.0, it.1, it.2)).collect();
        promise.durable_ns(&requests)
    }

    /// A slot, none of a flush; issue, completion and content.
    pub type SlotRequest = (Option<u64>, i64, i64, u64);

    /// Writes of one slot each, and flushes, on one disk with a cache.
    pub fn written(requests: &[SlotRequest]) -> WrittenRun {
        WrittenRun::from_records(vec![record_of(CACHED, requests)])
    }

    /// The record of a disk.
    pub fn record_of(
        promise: DurabilityModel,
        requests: &[SlotRequest],
    ) -> (DurabilityModel, Vec<RecordedRequest>, Vec<RecordedPiece>) {
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
        (promise, requests, pieces)
    }

    #[test]
    fn a_flush_covers_what_had_completed_when_it_was_issued() {
        let all = [(100, 200, "write"), (200, 300, "flush"), (400, 500, "flush")];
        assert_eq!(durable_ns(CACHED, &all)[0], 300);
        let early = [(100, 200, "write"), (199, 300, "flush"), (400, 500, "flush")];
        assert_eq!(durable_ns(CACHED, &early)[0], 500);
        assert_eq!(durable_ns(CACHED, &early[..2])[0], NEVER_NS);
        // A later flush may be done first.
        let crossed = [(100, 200, "write"), (210, 900, "flush"), (220, 300, "flush")];
        assert_eq!(durable_ns(CACHED, &crossed)[0], 300);
    }

    #[test]
    fn completed_is_durable_by_fua_or_without_a_cache_and_never_on_a_device_that_lies() {
        let all = [(100, 200, "fua"), (110, 220, "write"), (250, 300, "flush")];
        assert_eq!(durable_ns(CACHED, &all)[..2], [200, 300]);
        let direct = DurabilityModel { is_volatile: false, ..CACHED };
        assert_eq!(durable_ns(direct, &all)[..2], [200, 220]);
        let liar = DurabilityModel { lies_about_flushes: true, ..CACHED };
        assert_eq!(durable_ns(liar, &all)[..2], [NEVER_NS, NEVER_NS]);
    }

    #[test]
    fn the_last_flush_that_kept_a_write_is_told_from_one_that_kept_nothing() {
        let all = written(&[
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
    }

    #[test]
    fn a_profile_says_what_is_promised() {
        let of = |keys: &[(&str, i64)]| {
            let model = keys.iter().map(|(name, value)| ((*name).to_owned(), *value));
            DurabilityModel::from_profile(&model.collect())
        };
        assert!(of(&[("cache_bytes", 1), ("fua", 1)]).is_volatile);
        assert!(!of(&[("cache_bytes", 1), ("power_loss_protection", 1)]).is_volatile);
        assert!(!of(&[("cache_bytes", 0)]).is_volatile);
        assert!(of(&[("flush_lies", 1)]).lies_about_flushes);
        let torn = [0, 1].map(|whole| of(&[("atomic_slots", whole)]).torn_bytes);
        assert_eq!(torn, [512, 4096]);
        let slots = [0, 8].map(|most| of(&[("torn_slots_max", most)]).torn_slots_max);
        assert_eq!(slots, [1, 8]);
        assert!(of(&[("unreadable_torn_slots", 1)]).has_unreadable_tears);
    }

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
