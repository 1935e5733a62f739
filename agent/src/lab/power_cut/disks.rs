//! The disks of a run that is over: reads their records, and puts them into chosen states.

use std::path::Path;
use std::thread;
use std::time::Duration;

use super::contents::DiskContents;
use super::written::{Promise, WrittenRun};
use crate::device::disk::Disk;
use crate::device::flash_record::{self, ChosenSlot, FlashRecordError, RecordCommand, SECTORS};
use crate::errors::WrongUse;

/// Attempts at what can only be done with a device that nobody uses, and pauses between: 60 s.
const FREE_ATTEMPTS: u32 = 60_000;
const FREE_PAUSE: Duration = Duration::from_millis(1);

/// Record of a run, and of what recovered a state of it.
const RUN: u8 = 0;
const RECOVERY: u8 = 1;

/// The disks, whose filesystem is not mounted.
pub struct CutDisks<'a> {
    disks: &'a [Disk],
    promises: &'a [Promise],
    /// What they were last put into; none at first.
    there: Option<DiskContents>,
}

impl<'a> CutDisks<'a> {
    pub fn new(disks: &'a [Disk], promises: &'a [Promise]) -> Self {
        Self { disks, promises, there: None }
    }

    /// What was written in the run.
    ///
    /// # Errors
    /// If the record is not whole.
    pub fn record(&self) -> anyhow::Result<WrittenRun> {
        let mut records = Vec::new();
        for (disk, promise) in self.disks.iter().zip(self.promises) {
            let requests = flash_record::requests(disk.folder()).map_err(told)?;
            let pieces = flash_record::pieces(disk.folder()).map_err(told)?;
            records.push((*promise, requests, pieces));
        }
        Ok(WrittenRun::of(records))
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
        self.tell(command)?;
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
        self.tell(RecordCommand::Begin(RECOVERY))
    }

    /// Ends that record, and gives it.
    ///
    /// # Errors
    /// If it is not whole.
    pub fn recovery(&self) -> anyhow::Result<WrittenRun> {
        self.tell(RecordCommand::End)?;
        self.record()
    }

    /// Puts the disks into a state of the recovery, which began at the present one.
    ///
    /// # Errors
    /// If they cannot be.
    pub fn put_second(&self, recovery: &WrittenRun, contents: &DiskContents) -> anyhow::Result<()> {
        self.tell(RecordCommand::Clear(RECOVERY))?;
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
            0 => 0,
            place => written.pieces[place as usize - 1].number,
        };
        let mut chosen = vec![Vec::new(); self.disks.len()];
        let both = from.slots.iter().zip(&to.slots).zip(&written.slots);
        for ((_, sectors), slot) in both.filter(|((old, new), _)| old != new) {
            let pieces: [u32; SECTORS] = sectors.map(number);
            chosen[slot.disk].push(ChosenSlot { slot: slot.number, pieces });
        }
        for (disk, chosen) in self.disks.iter().zip(chosen) {
            until_free(|| flash_record::choose(disk.folder(), &chosen))?;
        }
        Ok(())
    }

    fn tell(&self, command: RecordCommand) -> anyhow::Result<()> {
        let tell = |folder: &Path| until_free(|| flash_record::command(folder, command));
        self.disks.iter().try_for_each(|disk| tell(disk.folder()))
    }
}

/// Tries until nobody has the device open.
pub fn until_free<Found>(
    mut act: impl FnMut() -> Result<Found, FlashRecordError>,
) -> anyhow::Result<Found> {
    for _ in 0..FREE_ATTEMPTS {
        match act() {
            Err(error) if error.is_busy() => thread::sleep(FREE_PAUSE),
            other => return other.map_err(told),
        }
    }
    act().map_err(told)
}

/// A run that is too long is the user's.
fn told(error: FlashRecordError) -> anyhow::Error {
    match error {
        FlashRecordError::Overflown => {
            WrongUse(format!("power cuts: {error}; lower transactions or value_bytes")).into()
        }
        error => error.into(),
    }
}
