//! The disks of a run that is over: reads their records, and puts them into chosen states. Where a
//! checker outside the guest, which is not emulated, shall look at what they hold, the slots that
//! changed since the last such state are handed out: disk_pages has each content of a slot once,
//! and disk_states.json says what is where (jojlab/lab/power_cuts.py reads it).

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::thread;
use std::time::Duration;

use anyhow::Context;
use serde_json::json;

use super::durability::DurabilityModel;
use super::writes::{DiskContents, WrittenRun};
use crate::device::disk::Disk;
use crate::device::flash::{self, FlashRecordError, RecordCommand, SECTORS, SLOT_BYTES};
use crate::device::flash_states::{ChosenSlot, SlotBatch, SlotContents, StateFiles, UNREADABLE};
use crate::errors::WrongUse;
use crate::filesystem::Checker;

/// Attempts at what can only be done with a device that nobody uses, and pauses between: 60 s.
const FREE_ATTEMPTS: u32 = 60_000;
const FREE_PAUSE: Duration = Duration::from_millis(1);

/// Record of a run, and of what recovered a state of it.
const RUN: u8 = 0;
const RECOVERY: u8 = 1;

/// The disks, whose filesystem is not mounted.
pub struct CutDisks<'a> {
    disks: &'a [Disk],
    files: Vec<StateFiles>,
    models: &'a [DurabilityModel],
    /// Holds what they were last put into; none at first.
    there: Option<DiskContents>,
}

impl<'a> CutDisks<'a> {
    /// Nothing is chosen yet.
    ///
    /// # Errors
    /// If a disk is no modelled one.
    pub fn new(disks: &'a [Disk], models: &'a [DurabilityModel]) -> anyhow::Result<Self> {
        let files = disks.iter().map(|disk| StateFiles::open(disk.folder()));
        Ok(Self { disks, files: files.collect::<Result<_, _>>()?, models, there: None })
    }

    /// Return what was written in the run.
    ///
    /// # Errors
    /// If the record is not whole.
    pub fn record(&self) -> anyhow::Result<WrittenRun> {
        let mut records = Vec::new();
        for (disk, model) in self.disks.iter().zip(self.models) {
            let record = flash::read_record(disk.folder(), model.erases_early);
            records.push((*model, record.map_err(user_error)?));
        }
        Ok(WrittenRun::from_records(records))
    }

    /// Puts the disks into a state of the run.
    ///
    /// # Errors
    /// If they cannot be.
    pub fn put(&mut self, written: &WrittenRun, contents: DiskContents) -> anyhow::Result<()> {
        let command = match self.there {
            Some(_) => RecordCommand::Restore(RUN),
            None => RecordCommand::Clear(RUN),
        };
        self.command_all(command)?;
        let there = self.there.take().unwrap_or_else(|| DiskContents::before(written));
        self.choose(written, &there, &contents)?;
        self.there = Some(contents);
        Ok(())
    }

    /// Records what is written from now on: the recovery of the present state.
    ///
    /// # Errors
    /// If the disks cannot.
    pub fn record_recovery(&self) -> anyhow::Result<()> {
        self.command_all(RecordCommand::Begin(RECOVERY))
    }

    /// Ends that record, and gives it.
    ///
    /// # Errors
    /// If it is not whole.
    pub fn recovery(&self) -> anyhow::Result<WrittenRun> {
        self.command_all(RecordCommand::End)?;
        self.record()
    }

    /// Puts the disks into a state of the recovery, which began at the present one.
    ///
    /// # Errors
    /// If they cannot be.
    pub fn put_second(&self, recovery: &WrittenRun, contents: &DiskContents) -> anyhow::Result<()> {
        self.command_all(RecordCommand::Clear(RECOVERY))?;
        self.choose(recovery, &DiskContents::before(recovery), contents)
    }

    /// Changes the slots that differ.
    fn choose(
        &self,
        written: &WrittenRun,
        from: &DiskContents,
        to: &DiskContents,
    ) -> anyhow::Result<()> {
        let number = |piece: u32| match piece {
            0 | UNREADABLE => piece,
            place => written.pieces[place as usize - 1].number,
        };
        let mut chosen = vec![Vec::new(); self.disks.len()];
        let both = from.slots.iter().zip(&to.slots).zip(&written.slots);
        for ((_, sectors), slot) in both.filter(|((old, new), _)| old != new) {
            let pieces: [u32; SECTORS] = sectors.map(number);
            chosen[slot.disk].push(ChosenSlot { slot: slot.number, pieces });
        }
        for (files, chosen) in self.files.iter().zip(chosen) {
            until_free(|| files.choose(&chosen))?;
        }
        Ok(())
    }

    fn command_all(&self, command: RecordCommand) -> anyhow::Result<()> {
        let write = |files: &StateFiles| until_free(|| files.write_command(command));
        self.files.iter().try_for_each(write)
    }
}

/// Tries until nobody has the device open.
pub fn until_free<Found>(
    mut act: impl FnMut() -> Result<Found, FlashRecordError>,
) -> anyhow::Result<Found> {
    for _ in 0..FREE_ATTEMPTS {
        match act() {
            Err(error) if error.is_busy() => thread::sleep(FREE_PAUSE),
            other => return other.map_err(user_error),
        }
    }
    act().map_err(user_error)
}

/// A run that is too long is the user's.
fn user_error(error: FlashRecordError) -> anyhow::Error {
    match error {
        FlashRecordError::Overflown => {
            WrongUse(format!("power cuts: {error}; lower transactions or value_bytes")).into()
        }
        error => error.into(),
    }
}

const PAGES: &str = "disk_pages";
const STATES: &str = "disk_states.json";

/// Contents of slots that are handed out: two thirds of the memory that there is for results.
/// States beyond are checked in the guest.
pub const MOST_PAGES: usize = 32 << 10;

const PAGES_BUFFER_BYTES: usize = 64 * SLOT_BYTES;

/// The number of the contents of a slot of zeroes.
const ZEROES: u32 = 0;

/// Slots that changed on a disk, and which content each has since: its number plus one.
type Changes = Vec<(u64, u32)>;

/// The pages and states that were handed out so far.
pub struct HandedDisks<'a> {
    disks: &'a [Disk],
    contents: Vec<SlotContents>,
    checker: Checker,
    output: &'a Path,
    pages: BufWriter<File>,
    /// Contents by their hash of 128 bits.
    known: HashMap<[u64; 2], u32>,
    states: Vec<Vec<Changes>>,
    batch: SlotBatch,
    /// Contents that there is room for.
    room: usize,
    is_full: bool,
}

impl<'a> HandedDisks<'a> {
    /// Nothing is handed out yet, and there is room for so many contents; the disks note from now
    /// on which slots change.
    ///
    /// # Errors
    /// If they cannot.
    pub fn new(
        disks: &'a [Disk],
        checker: Checker,
        output: &'a Path,
        room: usize,
    ) -> anyhow::Result<Self> {
        let mut contents = Vec::new();
        for disk in disks {
            until_free(|| flash::write_command(disk.folder(), RecordCommand::Follow))?;
            contents.push(SlotContents::open(disk.folder())?);
        }
        let path = output.join(PAGES);
        let file = File::create(&path).with_context(|| path_text(&path))?;
        let pages = BufWriter::with_capacity(PAGES_BUFFER_BYTES, file);
        let (known, states) = (HashMap::new(), Vec::new());
        let (batch, is_full) = (SlotBatch::default(), false);
        Ok(Self { disks, contents, checker, output, pages, known, states, batch, room, is_full })
    }

    /// Hands out what the disks hold now; false where there is no room for it, and from then on.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn hand_out(&mut self) -> anyhow::Result<bool> {
        if self.is_full {
            return Ok(false);
        }
        let mut slots = Vec::new();
        for contents in &self.contents {
            slots.push(until_free(|| contents.read_changes())?);
        }
        let count: usize = slots.iter().map(Vec::len).sum();
        if self.known.len() + count > self.room {
            self.is_full = true;
            return Ok(false);
        }
        let mut state = Vec::new();
        for (contents, slots) in self.contents.iter().zip(slots) {
            let mut changes = Changes::new();
            for slots in slots.chunks(SlotBatch::MOST) {
                for (slot, content) in slots.iter().zip(self.batch.read(contents, slots)?) {
                    changes.push((*slot, number(&mut self.known, &mut self.pages, content)?));
                }
            }
            state.push(changes);
        }
        self.states.push(state);
        Ok(true)
    }

    /// Writes down what is where.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(mut self) -> anyhow::Result<()> {
        self.pages.flush().context(PAGES)?;
        let sizes: Result<Vec<u64>, _> = self.disks.iter().map(Disk::size_bytes).collect();
        let states = json!({
            "program": self.checker.program,
            "arguments": self.checker.arguments,
            "journal_option": self.checker.journal_option,
            "file_option": self.checker.file_option,
            "disk_bytes": sizes?,
            "states": self.states,
        });
        let path = self.output.join(STATES);
        fs::write(&path, states.to_string()).with_context(|| path_text(&path))
    }
}

/// Return the number of a content among those `known`; write it to `pages` if it is new.
fn number(
    known: &mut HashMap<[u64; 2], u32>,
    pages: &mut impl Write,
    content: &[u8; SLOT_BYTES],
) -> anyhow::Result<u32> {
    if content.iter().all(|byte| *byte == 0) {
        return Ok(ZEROES);
    }
    let next = u32::try_from(known.len()).expect("bounded") + 1;
    let number = *known.entry(hash(content)).or_insert(next);
    if number == next {
        pages.write_all(content).context(PAGES)?;
    }
    Ok(number)
}

fn path_text(path: &Path) -> String {
    path.display().to_string()
}

/// Two hashes of 64 bits, by another factor each.
fn hash(content: &[u8; SLOT_BYTES]) -> [u64; 2] {
    let mut hash = [0x9e37_79b9_7f4a_7c15, 0xc2b2_ae3d_27d4_eb4f_u64];
    for word in content.chunks_exact(8) {
        let word = u64::from_ne_bytes(word.try_into().expect("eight bytes"));
        for (own, factor) in hash.iter_mut().zip([0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb]) {
            *own = (*own ^ word).wrapping_mul(factor);
            *own ^= *own >> 29;
        }
    }
    hash
}
