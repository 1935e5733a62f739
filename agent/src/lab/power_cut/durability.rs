//! The rules by which a disk keeps what it was given, as its profile says them: from when on a
//! power cut takes a request no more, and what it may leave of one until then.
//!
//! A device with a volatile cache owes the host what a flush that completed before the cut found
//! completed, and completed FUA writes (JESD84-B51, 6.6.34; Documentation/block/
//! writeback_cache_control.rst). One without owes every completed write. One that lies about
//! flushes owes nothing. What a cut in the middle of the device's own work takes beyond that, the
//! profile says: `stale_mapping_flushes`, `early_erase` (devices/README.md).

use std::collections::BTreeMap;

use crate::device::flash::{self, RecordedRequest};
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
    /// The most flushes that one cut takes back of a part of the mapping that is programmed.
    pub stale_mapping_flushes: usize,
    /// The most bytes of one write that the device says it makes atomic; 0: it says nothing.
    pub atomic_write_bytes: i64,
    /// Whether a cut leaves a part of an atomic write all the same.
    pub tears_atomic_writes: bool,
    /// Whether a cut takes what was moved out of a row that is erased, until a flush ends.
    pub erases_early: bool,
}

impl DurabilityModel {
    /// As the device's profile says (devices/README.md).
    pub fn from_profile(model: &DeviceModel) -> Self {
        let value = |name| model.get(name).copied().unwrap_or(0);
        let is_protected = value("power_loss_protection") != 0;
        let unprotected = |name| if is_protected { 0 } else { value(name) };
        Self {
            is_volatile: value("cache_bytes") != 0 && !is_protected,
            has_fua: value("fua") != 0,
            lies_about_flushes: value("flush_lies") != 0,
            torn_bytes: if value("atomic_slots") == 0 { 512 } else { SLOT_BYTES },
            torn_slots_max: usize::try_from(value("torn_slots_max")).unwrap_or(1).max(1),
            has_unreadable_tears: value("unreadable_torn_slots") != 0,
            stale_mapping_flushes: usize::try_from(unprotected("stale_mapping_flushes"))
                .unwrap_or(0),
            atomic_write_bytes: value("atomic_write_bytes"),
            tears_atomic_writes: value("atomic_write_lies") != 0,
            erases_early: unprotected("early_erase") != 0,
        }
    }

    /// Return whether the device makes its mapping durable before the request is done.
    pub fn is_mapping_flush(self, request: &RecordedRequest) -> bool {
        !self.lies_about_flushes && (request.is_flush || request.is_fua || !self.is_volatile)
    }

    /// Return whether a cut leaves all of a request or nothing.
    pub fn is_whole(self, request: &RecordedRequest) -> bool {
        request.is_atomic && !self.tears_atomic_writes
    }

    /// Return how many slots one cut may tear, a request's among them.
    pub fn tearable_slots(self, request: &RecordedRequest) -> usize {
        let is_torn = self.torn_bytes < SLOT_BYTES && !self.is_whole(request);
        if is_torn { self.torn_slots_max } else { 0 }
    }

    /// Return the moment when each request is durable.
    pub fn durable_ns(self, requests: &[RecordedRequest]) -> Vec<i64> {
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
        stale_mapping_flushes: 0,
        atomic_write_bytes: 0,
        tears_atomic_writes: false,
        erases_early: false,
    };

    /// A write, a flush or a FUA write, without pieces.
    pub fn request(issue_ns: i64, completion_ns: i64, word: &str) -> RecordedRequest {
        let (is_flush, is_fua) = (word == "flush", word == "fua");
        let (first_piece, piece_count, is_atomic) = (0, 0, false);
        RecordedRequest {
            issue_ns,
            completion_ns,
            first_piece,
            piece_count,
            is_flush,
            is_fua,
            is_atomic,
        }
    }

    fn durable_ns(promise: DurabilityModel, requests: &[(i64, i64, &str)]) -> Vec<i64> {
        let requests: Vec<_> = requests.iter().map(|it| request(it.0, it.1, it.2)).collect();
        promise.durable_ns(&requests)
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
        let own = [("stale_mapping_flushes", 3), ("early_erase", 1)];
        let of_own = |model: DurabilityModel| (model.stale_mapping_flushes, model.erases_early);
        assert_eq!(of_own(of(&own)), (3, true));
        assert_eq!(of_own(of(&[own[0], own[1], ("power_loss_protection", 1)])), (0, false));
    }
}
