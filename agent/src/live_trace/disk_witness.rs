//! The block layer's own counts of the traced disks: reads their statistics; returns rows of the
//! counters table, and says where they and the trace differ. They are independent of the tracer:
//! they count the requests of all processes, and those that began before the trace and ended
//! within it.
//!
//! And whether the disks are still those that they were at the begin.

use std::collections::{BTreeMap, BTreeSet};

use super::output::PHASE;
use crate::device::layers::Layer;
use crate::device::{counters, disks, nvme, sysfs};
use crate::tables::rows::Counter;
use crate::tables::timeline::now_ns;
use crate::tracer::{Completions, Direction, Span};

/// The directions that are compared, with the names of their counters. Bytes alone: requests are
/// counted when their last part is complete, and a write that is flushed for is counted as several
/// or none.
const COMPARED: [(Direction, &str); 3] = [
    (Direction::Read, "read_bytes"),
    (Direction::Write, "write_bytes"),
    (Direction::Discard, "discard_bytes"),
];

/// The counts of one disk.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct DiskCount {
    name: String,
    counters: BTreeMap<String, i64>,
    /// The counters count just the requests that the tracer sees complete. Not those of a driver
    /// that takes bios: it counts bios, some when they begin.
    is_comparable: bool,
}

/// Counters of the disks by number, as of one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DiskCounts {
    disks: BTreeMap<u32, DiskCount>,
    /// The time in which they were read.
    pub read: Span,
}

impl DiskCounts {
    /// Return the counts of some disks as of now; a disk that has gone counts nothing.
    pub fn now(disks: &[u32]) -> Self {
        let written = |&disk: &u32| {
            let name = sysfs::device_name(disk).ok();
            (disk, name.and_then(|name| nvme::lifetime_write_bytes(&name)))
        };
        // Before the time that the others are compared in: a command to the disk is slow.
        let lifetime: BTreeMap<u32, Option<i64>> = disks.iter().map(written).collect();
        let begin_ns = now_ns() as u64;
        let count = |&disk: &u32| {
            let folder = sysfs::device_folder(disk);
            let takes_bios = Layer::new(&folder).takes_bios();
            let mut counted = counters::read_iostats(&folder).ok()?;
            let written = lifetime.get(&disk).copied().flatten();
            counted.extend(written.map(|bytes| (nvme::LIFETIME_WRITES.to_owned(), bytes)));
            let count = DiskCount {
                name: sysfs::device_name(disk).ok()?,
                counters: counted,
                is_comparable: !takes_bios && counters::counts_all(&folder),
            };
            Some((disk, count))
        };
        let disks = disks.iter().filter_map(count).collect();
        DiskCounts { disks, read: (begin_ns, now_ns() as u64) }
    }

    /// The increase since `before`, of the counters that both have, added up over the disks.
    pub fn since(&self, before: &Self) -> Vec<Counter> {
        let (now, before) = (self.sums(), before.sums());
        let row = |(name, value): (&str, i64)| {
            let value = value - before.get(name)?;
            let (phase, source) = (PHASE.into(), "device".into());
            Some(Counter { phase, source, name: name.into(), value })
        };
        now.into_iter().filter_map(row).collect()
    }

    fn sums(&self) -> BTreeMap<&str, i64> {
        let mut sums = BTreeMap::new();
        for (name, value) in self.disks.values().flat_map(|disk| &disk.counters) {
            *sums.entry(name.as_str()).or_default() += value;
        }
        sums
    }

    /// The disks whose counters can be compared with the trace.
    pub fn comparable(&self) -> BTreeSet<u32> {
        let comparable = self.disks.iter().filter(|(_, disk)| disk.is_comparable);
        comparable.map(|(number, _)| *number).collect()
    }

    /// Says, in words, where the disks counted other bytes since `before` than the tracer saw them
    /// complete.
    pub fn differences(&self, before: &Self, completions: &Completions) -> Vec<String> {
        let of_disk = |(number, disk): (&u32, &DiskCount)| {
            let earlier = before.disks.get(number)?;
            let compare = disk.is_comparable && earlier.is_comparable;
            compare.then(|| disk.differences(*number, earlier, completions))
        };
        self.disks.iter().filter_map(of_disk).flatten().collect()
    }
}

impl DiskCount {
    fn differences(&self, number: u32, before: &Self, completions: &Completions) -> Vec<String> {
        let in_flight = before.counters.get("in_flight").copied().unwrap_or(0).max(0) as usize;
        let difference = |&(direction, counter): &(Direction, &str)| {
            let counted = self.counters.get(counter)? - before.counters.get(counter)?;
            let (least, most) = completions.between(number, direction, in_flight);
            let agree = u64::try_from(counted).is_ok_and(|it| (least..=most).contains(&it));
            let name = &self.name;
            (!agree).then(|| {
                format!(
                    "{name}: {counter}: its counter rose by {counted}, but {least} to {most} were \
                     traced"
                )
            })
        };
        COMPARED.iter().filter_map(difference).collect()
    }
}

/// The text that tells each disk from another of the same number; None of one that has no size.
pub struct Lives(BTreeMap<u32, Option<String>>);

impl Lives {
    /// Those of disks, as of now.
    pub fn new(disks: &[u32]) -> Self {
        Lives(disks.iter().map(|&disk| (disk, disks::life(disk))).collect())
    }

    /// A reason for each disk that is another one now.
    pub fn changes(&self) -> Vec<String> {
        let changed = self.0.iter().filter(|(disk, life)| disks::life(**disk) != **life);
        let reason = |(disk, life): (&u32, &Option<String>)| {
            let what = if life.is_some() { "went away or became another" } else { "had no size" };
            format!("disk {} {what} while it was traced", sysfs::number_text(*disk))
        };
        changed.map(reason).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tracer::RequestRecord;

    const DISK: u32 = 7 << 20;

    fn counts_of(disks: &[(u32, &[(&str, i64)])]) -> DiskCounts {
        let disk = |&(number, counters): &(u32, &[(&str, i64)])| {
            let counters = counters.iter().map(|&(name, value)| (name.to_owned(), value));
            let (name, counters) = ("loop0".to_owned(), counters.collect());
            (number, DiskCount { name, counters, is_comparable: true })
        };
        DiskCounts { disks: disks.iter().map(disk).collect(), read: (0, 0) }
    }

    #[test]
    fn counters_of_all_disks_are_added_up_and_told_as_their_increase() {
        let names = |bytes, flushes| [("write_bytes", bytes), ("flush_requests", flushes)];
        let before = counts_of(&[(1, &names(512, 1)), (2, &names(1024, 0))]);
        let mut after = counts_of(&[(1, &names(4608, 1)), (2, &names(1536, 2))]);
        after.disks.get_mut(&1).unwrap().counters.insert("new".into(), 7);
        let rows = after.since(&before);
        let found: Vec<_> = rows.iter().map(|row| (row.name.as_str(), row.value)).collect();
        assert_eq!(found, [("flush_requests", 2), ("write_bytes", 4608)]);
        assert!(rows.iter().all(|row| row.phase == "trace" && row.source == "device"));
    }

    #[test]
    fn a_disk_that_counted_more_or_less_than_was_traced_is_named() {
        let mut completions = Completions::new(0);
        completions.begin((100, 110));
        for time_ns in [105, 200, 300] {
            let (flags, length_bytes) = (1, 4096);
            let part =
                RequestRecord { device: DISK, flags, length_bytes, time_ns, ..Default::default() };
            completions.count(&part, true);
        }
        let before = counts_of(&[(DISK, &[("write_bytes", 4096)])]);
        let differences = |pages: i64| {
            let after = counts_of(&[(DISK, &[("write_bytes", 4096 * (pages + 1))])]);
            after.differences(&before, &completions)
        };
        assert_eq!([differences(2), differences(3)], [Vec::<String>::new(), Vec::new()]);
        for pages in [1, 4] {
            let found = differences(pages);
            let rise =
                format!("loop0: write_bytes: its counter rose by {}, but 8192", 4096 * pages);
            assert!(found.len() == 1 && found[0].starts_with(&rise), "{found:?}");
        }
        let mut silent = counts_of(&[(DISK, &[("write_bytes", 0)])]);
        silent.disks.get_mut(&DISK).unwrap().is_comparable = false;
        assert_eq!(silent.differences(&before, &completions), Vec::<String>::new());
    }
}
