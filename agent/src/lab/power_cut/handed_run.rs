//! A run that a guest performed and another machine judges: User Mode Linux, whose kernel is of the
//! guest's own source and runs at the processor's own speed. The guest hands out what its disks
//! held before the run, each piece that it wrote, and which states are to be judged; there all of
//! it is written to disks of the same models, whose record must then be the guest's.
//!
//! run.json says what is there; run_pages holds, of one disk after the other, the slots from before
//! the run and then the pieces, each a slot. jojlab/guest/user_mode.py carries both files.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use anyhow::Context;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::disks::{MOST_PAGES, until_free};
use super::durability::DurabilityModel;
use super::states::State;
use crate::device::disk::Disk;
use crate::device::flash::{self, DiskRecord, RecordCommand, RecordedPiece, SECTORS, SLOT_BYTES};
use crate::device::flash_states::{ChosenSlot, SlotBatch, SlotContents, StateFiles};
use crate::errors::WrongUse;
use crate::lab::owners::Owners;

const RUN: &str = "run.json";
const PAGES: &str = "run_pages";

const SECTOR_BYTES: usize = SLOT_BYTES / SECTORS;

/// A run, and the states of it that are judged elsewhere.
#[derive(Debug, Serialize, Deserialize)]
pub struct HandedRun {
    /// In the order of time, with their numbers among those of the whole job.
    pub states: Vec<(usize, State)>,
    /// The hashes and promises of all states of the job.
    pub known: HashSet<(u64, u64)>,
    /// The hash of a state whose disks are handed out, in the place of all judgements.
    pub image: Option<String>,
    /// The workload's own (`Remains::handed_facts`).
    pub remains: Value,
    /// Whether one could go on where the run ended, so that one must after each cut.
    pub must_go_on: bool,
    /// Whether these are states in which only the filesystem's checker finds harm: it looks at all
    /// smaller cuts there, where it is slow (jojlab/lab/power_cuts.py).
    pub checks_all: bool,
    pub owners: Owners,
    /// Filled as the disks are handed out.
    pub disks: Vec<HandedDisk>,
}

/// The record of a disk.
#[derive(Debug, Serialize, Deserialize)]
pub struct HandedDisk {
    record: DiskRecord,
    /// The slots that were not zeroes before the run.
    slots: Vec<u64>,
}

/// A slot in memory that is aligned as direct writes need it (open(2), NOTES).
#[repr(align(4096))]
struct Page([u8; SLOT_BYTES]);

impl HandedRun {
    /// Hands it out with what `disks` wrote; they are as before the run afterwards, and note anew
    /// which slots change.
    ///
    /// # Errors
    /// If they cannot be read, or hold more than there is room for.
    pub fn hand_out(
        mut self,
        disks: &[Disk],
        models: &[DurabilityModel],
        output: &Path,
    ) -> anyhow::Result<()> {
        let mut pages = BufWriter::new(File::create(output.join(PAGES)).context(PAGES)?);
        let mut room = MOST_PAGES;
        for (disk, model) in disks.iter().zip(models) {
            let folder = disk.folder();
            let record = flash::read_record(folder, model.erases_early)?;
            for command in [RecordCommand::Clear(0), RecordCommand::Follow] {
                until_free(|| flash::write_command(folder, command))?;
            }
            let (files, contents) = (StateFiles::open(folder)?, SlotContents::open(folder)?);
            let mut batch = SlotBatch::default();
            let mut slots = Vec::new();
            for slot in until_free(|| contents.read_changes())? {
                let content = contents.read(slot)?;
                if content.iter().any(|byte| *byte != 0) {
                    room = room.checked_sub(1).ok_or_else(too_much)?;
                    pages.write_all(&content).context(PAGES)?;
                    slots.push(slot);
                }
            }
            room = room.checked_sub(record.pieces.len()).ok_or_else(too_much)?;
            let mut first = 0;
            for pieces in batches(&record.pieces) {
                let chosen: Vec<_> = pieces.iter().zip(first + 1..).map(chosen_piece).collect();
                until_free(|| files.choose(&chosen))?;
                let slots: Vec<u64> = pieces.iter().map(|piece| piece.slot).collect();
                for content in batch.read(&contents, &slots)? {
                    pages.write_all(content).context(PAGES)?;
                }
                first += pieces.len() as u32;
            }
            for command in [RecordCommand::Clear(0), RecordCommand::Follow] {
                until_free(|| flash::write_command(folder, command))?;
            }
            self.disks.push(HandedDisk { record, slots });
        }
        pages.flush().context(PAGES)?;
        fs::write(output.join(RUN), serde_json::to_vec(&self)?).context(RUN)
    }

    /// Writes a run that was handed out to the folder `place` to disks that nothing was written to,
    /// as they recorded it there.
    ///
    /// # Errors
    /// If it is not whole, or the disks record something else.
    pub fn take_in(place: &Path, disks: &[Disk]) -> anyhow::Result<Self> {
        let run: Self =
            serde_json::from_slice(&fs::read(place.join(RUN)).context(RUN)?).context(RUN)?;
        anyhow::ensure!(run.disks.len() == disks.len(), "{RUN} is of {} disks", run.disks.len());
        let mut pages = BufReader::new(File::open(place.join(PAGES)).context(PAGES)?);
        let mut page = Page([0; SLOT_BYTES]);
        for (disk, handed) in disks.iter().zip(&run.disks) {
            let node = File::options()
                .write(true)
                .custom_flags(libc::O_DIRECT)
                .open(disk.node())
                .with_context(|| disk.name().to_owned())?;
            let mut write = |slot: u64, sectors: u8| {
                pages.read_exact(&mut page.0).context(PAGES)?;
                let first = sectors.trailing_zeros() as usize * SECTOR_BYTES;
                let end = (u8::BITS - sectors.leading_zeros()) as usize * SECTOR_BYTES;
                let offset = slot * SLOT_BYTES as u64 + first as u64;
                node.write_all_at(&page.0[first..end], offset)
                    .with_context(|| disk.name().to_owned())
            };
            handed.slots.iter().try_for_each(|slot| write(*slot, u8::MAX))?;
            disk.begin_record()?;
            handed.record.pieces.iter().try_for_each(|piece| write(piece.slot, piece.sectors))?;
            disk.end_record()?;
            let there = flash::read_record(disk.folder(), false)?.pieces;
            anyhow::ensure!(
                there == handed.record.pieces,
                "{}: it recorded another run than the guest's: {} pieces for {}",
                disk.name(),
                there.len(),
                handed.record.pieces.len()
            );
        }
        Ok(run)
    }

    /// Return the guest's record of each disk.
    pub fn take_records(&mut self) -> Vec<DiskRecord> {
        self.disks.drain(..).map(|disk| disk.record).collect()
    }
}

/// Pieces in their order, as many at a time as can be chosen together: of no slot two.
fn batches(mut pieces: &[RecordedPiece]) -> impl Iterator<Item = &[RecordedPiece]> {
    std::iter::from_fn(move || {
        let mut slots = HashSet::new();
        let is_new = |piece: &&RecordedPiece| slots.insert(piece.slot);
        let count = pieces.iter().take(SlotBatch::MOST).take_while(is_new).count();
        let batch = pieces.split_off(..count)?;
        (count > 0).then_some(batch)
    })
}

/// Return the choice of what a piece wrote, by its number, beside what was there before.
fn chosen_piece((piece, number): (&RecordedPiece, u32)) -> ChosenSlot {
    let has = |sector: usize| piece.sectors & (1 << sector) != 0;
    let pieces = std::array::from_fn(|sector| if has(sector) { number } else { 0 });
    ChosenSlot { slot: piece.slot, pieces }
}

fn too_much() -> anyhow::Error {
    let most = (MOST_PAGES * SLOT_BYTES) >> 20;
    let what = format!("power cuts: the run holds more than the {most} MiB that can be handed out");
    WrongUse(format!("{what}; lower transactions, or leave --native out")).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_have_all_pieces_in_order_and_no_slot_twice() {
        let piece = |slot| RecordedPiece { slot, sectors: 1, after: [0; 8], before: [0; 8] };
        let slots = [1, 2, 2, 3, 1, 1].into_iter().chain(10..10 + 2 * SlotBatch::MOST as u64);
        let pieces: Vec<_> = slots.map(piece).collect();
        let found: Vec<&[RecordedPiece]> = batches(&pieces).collect();
        assert_eq!(found.concat(), pieces);
        let lengths: Vec<usize> = found.iter().map(|batch| batch.len()).collect();
        assert_eq!(lengths, [2, 3, SlotBatch::MOST, SlotBatch::MOST, 1]);
        assert!(batches(&[]).next().is_none());
    }
}
