//! The disks of a run that is over: reads their records, and puts them into chosen states.

use std::path::Path;
use std::thread;
use std::time::Duration;

use super::contents::Contents;
use super::written::{Promise, Written};
use crate::device::disk::Disk;
use crate::device::flash_record::{self, ChosenSlot, Command, FlashRecordError, SECTORS};
use crate::errors::WrongUse;

/// Attempts at what can only be done with a device that nobody uses, and pauses between: 60 s.
const FREE_ATTEMPTS: u32 = 60_000;
const FREE_PAUSE: Duration = Duration::from_millis(1);

/// Record of a run, and of what recovered a state of it.
const RUN: u8 = 0;
const RECOVERY: u8 = 1;

/// The disks, whose filesystem is not mounted.
pub struct Disks<'a> {
    disks: &'a [Disk],
    promises: &'a [Promise],
    /// What they were last put into; none at first.
    there: Option<Contents>,
}

impl<'a> Disks<'a> {
    pub fn new(disks: &'a [Disk], promises: &'a [Promise]) -> Self {
        Self { disks, promises, there: None }
    }

    /// What was written in the run.
    ///
    /// # Errors
    /// If the record is not whole.
    pub fn record(&self) -> anyhow::Result<Written> {
        let mut records = Vec::new();
        for (disk, promise) in self.disks.iter().zip(self.promises) {
            let requests = flash_record::requests(disk.folder()).map_err(told)?;
            let pieces = flash_record::pieces(disk.folder()).map_err(told)?;
            records.push((*promise, requests, pieces));
        }
        Ok(Written::of(records))
    }

    /// Puts the disks into a state of the run.
    ///
    /// # Errors
    /// If they cannot be.
    pub fn put(&mut self, written: &Written, contents: Contents) -> anyhow::Result<()> {
        let command = match self.there {
            Some(_) => Command::Restore(RUN),
            None => Command::Clear(RUN),
        };
        self.tell(command)?;
        let there = self.there.take().unwrap_or_else(|| Contents::before(written));
        self.choose(written, &there, &contents)?;
        self.there = Some(contents);
        Ok(())
    }

    /// Records what is written from now on: the recovery of the present state.
    ///
    /// # Errors
    /// If the disks cannot.
    pub fn record_recovery(&self) -> anyhow::Result<()> {
        self.tell(Command::Begin(RECOVERY))
    }

    /// Ends that record, and gives it.
    ///
    /// # Errors
    /// If it is not whole.
    pub fn recovery(&self) -> anyhow::Result<Written> {
        self.tell(Command::End)?;
        self.record()
    }

    /// Puts the disks into a state of the recovery, which began at the present one.
    ///
    /// # Errors
    /// If they cannot be.
    pub fn put_second(&self, recovery: &Written, contents: &Contents) -> anyhow::Result<()> {
        self.tell(Command::Clear(RECOVERY))?;
        self.choose(recovery, &Contents::before(recovery), contents)
    }

    /// Changes the slots that differ.
    fn choose(&self, written: &Written, from: &Contents, to: &Contents) -> anyhow::Result<()> {
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

    fn tell(&self, command: Command) -> anyhow::Result<()> {
        let tell = |folder: &Path| until_free(|| flash_record::command(folder, command));
        self.disks.iter().try_for_each(|disk| tell(disk.folder()))
    }
}

/// Tries until nobody has the device open.
fn until_free(mut act: impl FnMut() -> Result<(), FlashRecordError>) -> anyhow::Result<()> {
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
