//! Sees calls on files by the program of kernel/calls: all of one user, which nothing reads until
//! the ring is half full or it is finished; or everybody's on files of SQLite and their syncs, as
//! they come.

use std::ptr::NonNull;

use super::call::FileCall;
use super::call::{CallRecordError, decode_calls};
use crate::bpf::{BpfError, LoadPlan, Objects, Program, Symbols, SymbolsError};

/// struct watch of call_record.h.
#[repr(C)]
struct WatchMemory {
    uid: u32,
    is_everyone: u32,
    lost: u64,
    others: u64,
}

const _: () = assert!(size_of::<WatchMemory>() == 24);

/// Why the calls cannot be seen.
#[derive(Debug, thiserror::Error)]
pub enum WitnessError {
    #[error(transparent)]
    Bpf(#[from] BpfError),
    #[error(transparent)]
    Symbols(#[from] SymbolsError),
    #[error(transparent)]
    Record(#[from] CallRecordError),
}

/// The program, loaded; it tells of nobody's calls at first.
pub struct CallWitness {
    // Valid as long as the program, which has it mapped.
    watched: NonNull<WatchMemory>,
    program: Program,
    ring_bytes: usize,
}

impl CallWitness {
    /// Loads and attaches the program.
    ///
    /// # Errors
    /// If the kernel refuses a step.
    pub fn load(ring_bytes: u32) -> Result<Self, WitnessError> {
        let symbols = Symbols::read(&[crate::bpf::RDONLY_CAST, "vfs_fsync_range"])?;
        let plan =
            LoadPlan { objects: &Objects::CALLS, ring_bytes, kept_bytes_each: 0, optional: &[] };
        let program = Program::load(&plan, &symbols)?;
        let watched = program.section(c".data.watch")?;
        Ok(Self { watched, program, ring_bytes: ring_bytes as usize })
    }

    /// Tells of the calls of this user from now on; 0: of nobody's.
    pub fn watch(&mut self, uid: u32) {
        // SAFETY: mapped as long as the program lives; only we write to this field.
        unsafe { (&raw mut (*self.watched.as_ptr()).uid).write_volatile(uid) };
    }

    /// Tells of everybody's calls on files of SQLite from now on, and of all syncs. The ring is
    /// emptied by a thread of its own, unless more than `backlog_bytes` wait for `seen`.
    ///
    /// # Errors
    /// If there can be no thread.
    pub fn watch_everyone(&mut self, backlog_bytes: usize) -> Result<(), WitnessError> {
        self.program.collect_by_itself(backlog_bytes)?;
        // SAFETY: as above.
        unsafe { (&raw mut (*self.watched.as_ptr()).is_everyone).write_volatile(1) };
        Ok(())
    }

    /// The calls that were seen since this was asked last, in the order of their ends.
    ///
    /// # Errors
    /// If a record is damaged.
    pub fn read_calls(&mut self) -> Result<Vec<FileCall>, WitnessError> {
        self.program.collect();
        let mut calls = Vec::new();
        while let Some(bytes) = self.program.take_piece() {
            decode_calls(&bytes, &mut calls)?;
        }
        calls.sort_by_key(|call: &FileCall| call.end_ns);
        Ok(calls)
    }

    /// Calls that were not seen for want of room.
    pub fn lost(&self) -> u64 {
        // SAFETY: mapped as long as the program lives.
        unsafe { (&raw const (*self.watched.as_ptr()).lost).read_volatile() }
    }

    /// Calls of 32-bit and x32 programs, which are not told; where everybody is watched, syncs.
    pub fn foreign_calls(&self) -> u64 {
        // SAFETY: as above.
        unsafe { (&raw const (*self.watched.as_ptr()).others).read_volatile() }
    }

    /// Moves what was seen out of the ring, where it is half full.
    pub fn relieve(&mut self) {
        if self.program.waiting_bytes() > self.ring_bytes / 2 {
            self.program.collect();
        }
    }

    /// Stops; gives all calls in the order of their ends.
    ///
    /// # Errors
    /// If a record is damaged.
    pub fn finish(&mut self) -> Result<Vec<FileCall>, WitnessError> {
        self.watch(0);
        self.read_calls()
    }
}
