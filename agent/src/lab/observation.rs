//! Observes one case: starts and stops the tracer, the disks' statistics and the timeline together,
//! so that trace and counters cover exactly the same requests.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context;

use super::channel::handout::Marks;
use crate::device::counters::Reading;
use crate::device::disk::Disk;
use crate::raw_nand::follower::{AttributedOperations, NandWatch, TracedOperation};
use crate::tables::rows::FlashOperation;
use crate::tables::timeline::{Counters, Timeline, Watch};
use crate::tracer::Tracer;
use crate::workload::threads::task::Observer;

/// Pause between looks at a device that is still busy.
const SETTLE: Duration = Duration::from_millis(1);
/// Looks before a device that never rests is given up: 60 s.
const SETTLE_LOOKS: u32 = 60_000;
/// The phase that a workload divides into parts.
const DIVIDED: &str = "commit";

/// Sources of the disks' counters, in the order of the disks.
pub const SOURCES: [&str; 2] = ["device", "journal-device"];

/// Says what every disk counted, by source.
type Statistics = Vec<(&'static str, BTreeMap<String, i64>)>;

/// Raw NAND, where that is the disk.
pub struct TracedNand<'a> {
    pub watch: NandWatch<'a>,
    /// The number (s_dev) of the filesystem on it.
    pub filesystem: u32,
}

/// A case being watched.
pub struct Observation<'a> {
    disks: &'a [Disk],
    tracer: &'a mut Tracer,
    watch: Watch<&'a [Disk]>,
    nand: Option<TracedNand<'a>>,
    marks: Marks,
    /// The part of the measured phase, where it has several.
    part: &'static str,
    /// The part whose loads and stores are counted now.
    counted: Option<&'static str>,
}

impl<'a> Observation<'a> {
    /// Starts tracing at a moment when the disks have nothing to do.
    ///
    /// # Errors
    /// If they never rest, or the tracer cannot be started.
    pub fn start(
        disks: &'a [Disk],
        mut nand: Option<TracedNand<'a>>,
        tracer: &'a mut Tracer,
        marks: Marks,
    ) -> anyhow::Result<Self> {
        let blocks = disks.iter().filter(|disk| disk.is_block());
        let numbers: Vec<u32> = blocks.map(Disk::number).collect::<Result<_, _>>()?;
        for _ in 0..SETTLE_LOOKS {
            let before = statistics(disks)?;
            if at_rest(&before) {
                match &mut nand {
                    Some(nand) => {
                        tracer.start_raw_nand(disks[0].name(), nand.filesystem)?;
                        nand.watch.begin()?;
                    }
                    None => tracer.start(&numbers)?,
                }
                let after = statistics(disks)?;
                if before == after {
                    let watch = Watch::new(disks, Reading::read(&after)?);
                    return Ok(Self { disks, tracer, watch, nand, marks, part: "", counted: None });
                }
                tracer.finish().context("dropping events of an untimely start")?;
            }
            std::thread::sleep(SETTLE);
        }
        anyhow::bail!("the device never came to rest before the measured part")
    }

    /// Stops tracing once the disks rest; gives the timeline with the counters of the whole traced
    /// part as phase `all`, and the operations of raw NAND, where that is the disk.
    ///
    /// # Errors
    /// If they never rest, or the record of raw NAND cannot be read.
    pub fn finish(mut self) -> anyhow::Result<(Timeline, Option<AttributedOperations>)> {
        self.marks.end();
        for _ in 0..SETTLE_LOOKS {
            let before = statistics(self.disks)?;
            if at_rest(&before) {
                self.tracer.drain();
                // UBI erases in the background, at any time: its operations end with the counters.
                self.nand.iter_mut().try_for_each(|nand| nand.watch.collect())?;
                let after = statistics(self.disks)?;
                if before == after {
                    self.tracer.stop();
                    let operations = self.nand.map(|nand| nand.watch.finish());
                    return Ok((self.watch.finish(&Reading::read(&after)?), operations));
                }
            }
            std::thread::sleep(SETTLE);
        }
        anyhow::bail!("the device never came to rest after the measured part")
    }
}

fn statistics(disks: &[Disk]) -> anyhow::Result<Statistics> {
    let of_disk = |(disk, source): (&Disk, _)| Ok((source, disk.statistics()?));
    disks.iter().zip(SOURCES).map(of_disk).collect()
}

fn at_rest(statistics: &Statistics) -> bool {
    statistics.iter().all(|(_, counted)| counted.get("in_flight") == Some(&0))
}

impl Counters for &[Disk] {
    fn read(&self) -> anyhow::Result<Reading> {
        Ok(Reading::read(&statistics(self)?)?)
    }
}

impl Observer for Observation<'_> {
    fn enter(&mut self, phase: &'static str) -> anyhow::Result<()> {
        self.watch.enter(phase)?;
        let is_divided = phase == DIVIDED && !self.part.is_empty();
        let name = if is_divided { self.part } else { phase };
        self.counted = Some(name);
        self.marks.begin(name);
        Ok(())
    }

    fn part(&mut self, name: &'static str) {
        self.part = name;
    }

    fn leave(&mut self) -> anyhow::Result<()> {
        self.counted = None;
        self.marks.pause();
        self.watch.leave()
    }

    fn is_pause_due(&self) -> bool {
        self.tracer.is_half_full()
    }

    fn pause(&mut self) -> anyhow::Result<()> {
        // A phase may go on meanwhile; what this reads is none of it.
        let counted = self.counted;
        if counted.is_some() {
            self.marks.pause();
        }
        self.tracer.drain();
        if let Some(name) = counted {
            self.marks.begin(name);
        }
        Ok(())
    }
}

/// Rows of operations: their requests have the same order, and there are no others.
pub fn flash_operation_rows(operations: &[TracedOperation]) -> Vec<FlashOperation> {
    let row = |(request_id, traced): (usize, &TracedOperation)| {
        let operation = &traced.operation;
        FlashOperation {
            request_id: request_id as i64,
            kind: operation.kind.word().into(),
            block: operation.block.into(),
            offset_bytes: operation.offset_bytes.into(),
            length_bytes: operation.length_bytes.into(),
            volume_id: traced.volume.map(i64::from),
            logical_block: traced.logical_block.map(i64::from),
            erase_count: traced.erases.map(|count| count as i64),
            cause: traced.cause.word().into(),
            flipped_bits: operation.flipped_bits.into(),
            outcome: operation.outcome_word().into(),
        }
    };
    operations.iter().enumerate().map(row).collect()
}
