//! The block layer's own counts of the traced disks from the begin of a trace to its end: reads
//! their statistics; returns rows of the counters table. They are independent of the tracer: they
//! count the requests of all processes, and those that began before the trace and ended within it.

use std::collections::BTreeMap;
use std::path::Path;

use crate::device::{iostats, number};
use crate::tables::rows::Counter;

use super::output::PHASE;

/// Counters of several disks, added up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counted(BTreeMap<String, i64>);

impl Counted {
    /// Of these disks, as of now; one that has gone counts nothing.
    pub fn now(disks: &[u32]) -> Self {
        let folder = |disk: &u32| format!("/sys/dev/block/{}", number::text(*disk));
        Self::of(disks.iter().filter_map(|disk| iostats::read(Path::new(&folder(disk))).ok()))
    }

    fn of(disks: impl Iterator<Item = BTreeMap<String, i64>>) -> Self {
        let mut sums = BTreeMap::new();
        for (name, value) in disks.flatten() {
            *sums.entry(name).or_default() += value;
        }
        Counted(sums)
    }

    /// The increase since `before`, of the counters that both have.
    pub fn since(&self, before: &Self) -> Vec<Counter> {
        let row = |(name, value): (&String, &i64)| {
            let value = value - before.0.get(name)?;
            Some(Counter {
                phase: PHASE.into(),
                source: "device".into(),
                name: name.clone(),
                value,
            })
        };
        self.0.iter().filter_map(row).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_all_disks_are_added_up_and_told_as_their_increase() {
        let disk = |bytes, flushes| {
            let named = [("write_bytes", bytes), ("flush_requests", flushes)];
            named.map(|(name, value)| (name.to_owned(), value)).into()
        };
        let before = Counted::of([disk(512, 1), disk(1024, 0)].into_iter());
        let mut after = Counted::of([disk(4608, 1), disk(1536, 2)].into_iter());
        after.0.insert("new".into(), 7);
        let rows = after.since(&before);
        let found: Vec<_> = rows.iter().map(|row| (row.name.as_str(), row.value)).collect();
        assert_eq!(found, [("flush_requests", 2), ("write_bytes", 4608)]);
        assert!(rows.iter().all(|row| row.phase == "trace" && row.source == "device"));
    }
}
