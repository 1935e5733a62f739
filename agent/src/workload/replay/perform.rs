//! Makes one step in the directory of a replay: takes what its arguments are made of to numbers and
//! addresses, makes the call, and notes what it opened, closed or mapped. Gives what the kernel
//! said. A path is always one of the plan's in the directory, a descriptor one of its slots.

use std::ffi::CString;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use super::kept::KeptContents;
use super::memory::Memory;
use crate::script::plan::{Action, CallArgument, CallEffect, PlannedStep, RecordedEnd, Slot};
use crate::system_calls;

/// How long a lock is waited for that another open file holds, and how often it is tried.
const LOCK_TRIES: u32 = 10_000;
const LOCK_REST: Duration = Duration::from_millis(1);

type OpenSlot = RwLock<Option<OwnedFd>>;

/// What the steps of all threads work on.
pub struct ReplayStage {
    pub root: OwnedFd,
    /// By name: absolute paths.
    pub paths: Vec<CString>,
    pub texts: Vec<CString>,
    pub locks: Vec<libc::flock>,
    pub kept: KeptContents,
    /// Open files; none where one was closed, or not opened yet. A call holds it open while it
    /// runs: its number must not become another file's.
    pub slots: Vec<OpenSlot>,
    /// Address and length.
    pub mappings: Vec<Mutex<Option<(usize, u64)>>>,
}

impl ReplayStage {
    /// Makes a step; gives its result, -errno if it failed.
    pub fn perform(&self, step: &PlannedStep, memory: &mut Memory) -> i64 {
        match &step.action {
            Action::Call { number, arguments, effect } => {
                self.call(*number, arguments, *effect, step, memory)
            }
            Action::Inherit(pairs) => {
                let results = pairs.iter().map(|(from, to)| self.copy(*from, *to));
                results.min().unwrap_or(0)
            }
            Action::Release(slots, mappings) => {
                slots.iter().for_each(|slot| drop(self.write(*slot).take()));
                mappings.iter().for_each(|mapping| self.unmap(*mapping));
                0
            }
        }
    }

    fn read(&self, slot: Slot) -> RwLockReadGuard<'_, Option<OwnedFd>> {
        self.slots[slot as usize].read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, slot: Slot) -> RwLockWriteGuard<'_, Option<OwnedFd>> {
        self.slots[slot as usize].write().unwrap_or_else(PoisonError::into_inner)
    }

    fn call(
        &self,
        number: i64,
        arguments: &[CallArgument],
        effect: CallEffect,
        step: &PlannedStep,
        memory: &mut Memory,
    ) -> i64 {
        if let CallEffect::Closes(slot) = effect {
            let Some(file) = self.write(slot).take() else { return -i64::from(libc::EBADF) };
            return system_call(number, [file.into_raw_fd().into(), 0, 0, 0, 0, 0]);
        }
        if let CallEffect::Dirties(mapping, offset, bytes) = effect
            && let Some(address) = self.address(mapping, offset)
        {
            memory.store(address, bytes);
        }
        let mut held = Held::default();
        let mut numbers = [0_i64; 6];
        memory.begin(step.call, step.writes.map(|number| self.kept.address(number)));
        for (number, argument) in numbers.iter_mut().zip(arguments) {
            *number = match *argument {
                CallArgument::Number(number) => number,
                CallArgument::Slot(slot) => held.descriptor(self, slot).into(),
                CallArgument::SlotPath(slot) => memory.path_of(held.descriptor(self, slot)),
                CallArgument::Root => self.root.as_raw_fd().into(),
                CallArgument::Path(name) => self.paths[name as usize].as_ptr() as i64,
                CallArgument::Text(text) | CallArgument::Target(text) => {
                    self.texts[text as usize].as_ptr() as i64
                }
                CallArgument::Lock(lock) => memory.lock(self.locks[lock as usize]),
                CallArgument::Mapped(mapping, offset) => match self.address(mapping, offset) {
                    Some(address) => address as i64,
                    None => return -i64::from(libc::EINVAL),
                },
                CallArgument::Into(_) => memory.address_to_read_into(),
                CallArgument::From(_) => memory.address_to_write_from(),
                CallArgument::VectorsInto { count, bytes } => memory.vectors(count, bytes, false),
                CallArgument::VectorsFrom { count, bytes } => memory.vectors(count, bytes, true),
                CallArgument::Offset(offset) => memory.offset(offset),
            };
        }
        let mut result = system_call(number, numbers);
        if effect == CallEffect::Locks
            && matches!(step.ended, RecordedEnd::With(_) | RecordedEnd::Well)
        {
            for _ in 0..LOCK_TRIES {
                if result != -i64::from(libc::EWOULDBLOCK) {
                    break;
                }
                std::thread::sleep(LOCK_REST);
                result = system_call(number, numbers);
            }
        }
        drop(held);
        self.take_effect(effect, result);
        result
    }

    fn take_effect(&self, effect: CallEffect, result: i64) {
        match effect {
            CallEffect::Opens(slot) => *self.write(slot) = opened(result),
            CallEffect::Tries => drop(opened(result)),
            CallEffect::Maps(mapping, bytes) if result > 0 => {
                *self.mapping(mapping) = Some((result as usize, bytes));
            }
            CallEffect::Unmaps(mapping) if result == 0 => *self.mapping(mapping) = None,
            CallEffect::Remaps(mapping, bytes) if result > 0 => {
                *self.mapping(mapping) = Some((result as usize, bytes));
            }
            CallEffect::Cuts(mapping, bytes) if result == 0 => {
                if let Some((_, length)) = &mut *self.mapping(mapping) {
                    *length = bytes;
                }
            }
            _ => {}
        }
    }

    fn mapping(&self, number: u32) -> std::sync::MutexGuard<'_, Option<(usize, u64)>> {
        self.mappings[number as usize].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn address(&self, mapping: u32, offset: u64) -> Option<usize> {
        let (address, bytes) = (*self.mapping(mapping))?;
        (offset < bytes).then(|| address + offset as usize)
    }

    fn unmap(&self, number: u32) {
        if let Some((address, bytes)) = self.mapping(number).take() {
            // SAFETY: mmap(2) gave this memory, nothing points into it, and it is taken away once.
            unsafe { libc::munmap(address as *mut libc::c_void, bytes as usize) };
        }
    }

    /// A process begins with a copy of another's descriptor, where that is open.
    fn copy(&self, from: Slot, to: Slot) -> i64 {
        let result = match &*self.read(from) {
            Some(file) => {
                let command = i64::from(libc::F_DUPFD_CLOEXEC);
                let numbers = [file.as_raw_fd().into(), command, 3, 0, 0, 0];
                system_call(system_calls::SYS_fcntl, numbers)
            }
            None => return 0,
        };
        *self.write(to) = opened(result);
        result.min(0)
    }
}

impl Drop for ReplayStage {
    fn drop(&mut self) {
        (0..self.mappings.len()).for_each(|mapping| self.unmap(mapping as u32));
    }
}

/// The files that a call holds open while it runs.
#[derive(Default)]
struct Held<'a>(Vec<(Slot, RwLockReadGuard<'a, Option<OwnedFd>>)>);

impl<'a> Held<'a> {
    /// The number of a slot's file; -1 where it is not open, of which the kernel says EBADF.
    fn descriptor(&mut self, stage: &'a ReplayStage, slot: Slot) -> RawFd {
        if self.0.iter().all(|(held, _)| *held != slot) {
            self.0.push((slot, stage.read(slot)));
        }
        let found = self.0.iter().find(|(held, _)| *held == slot);
        found.and_then(|(_, file)| file.as_ref()).map_or(-1, AsRawFd::as_raw_fd)
    }
}

fn opened(result: i64) -> Option<OwnedFd> {
    let number = RawFd::try_from(result).ok().filter(|number| *number >= 0)?;
    // SAFETY: the kernel has just given this descriptor, and nobody else has its number.
    Some(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Makes a call, by its number on x86_64; gives its result, -errno if it failed.
fn system_call(number: i64, numbers: [i64; 6]) -> i64 {
    let Some((number, numbers)) = system_calls::made_here(number, numbers) else {
        return -i64::from(libc::ENOSYS);
    };
    let [a, b, c, d, e, f] = numbers;
    // SAFETY: the plan has only calls of its table, whose pointers are to strings of the stage,
    // and to memory of this thread that is as long as the call says.
    let result = unsafe { libc::syscall(number, a, b, c, d, e, f) };
    if result == -1 {
        return -i64::from(std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO));
    }
    result
}

/// Whether an error is the machine's, and not an answer that the recorded program may have got.
pub fn is_fatal(error: i32) -> bool {
    matches!(
        error,
        libc::ENOSPC
            | libc::EDQUOT
            | libc::EIO
            | libc::EMFILE
            | libc::ENFILE
            | libc::ENOMEM
            | libc::EROFS
    )
}
