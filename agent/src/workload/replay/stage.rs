//! The directory of a replay: makes the files that are there before the first step, opens what is
//! open then, and makes one step after the other. A step's arguments become numbers and addresses;
//! what its call opened, closed or mapped is noted; the result is what the kernel answered. A path
//! is always one of the plan's in the directory, a descriptor one of its open files.

use std::ffi::{CString, OsStr};
use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind, Write};
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use rand_chacha::rand_core::RngCore;
use rustix::fs::{Mode, OFlags, SeekFrom};

use super::memory::{CHUNK_BYTES, KeptContents, Memory};
use super::plan::{
    Action, CallArgument, CallEffect, FileBefore, FileHandle, Name, PlanText, PlannedStep,
    RecordedEnd, ReplayPlan,
};
use crate::system_calls;
use crate::workload::draw::generator;
use crate::workload::error::{WorkloadError, step_error};

/// The number of tries to get a lock that another open file holds, and the time between them.
const LOCK_TRIES: u32 = 10_000;
const LOCK_REST: Duration = Duration::from_millis(1);

type HandleFile = RwLock<Option<OwnedFd>>;

/// The things that the steps of all threads work on.
pub struct ReplayStage {
    pub root: OwnedFd,
    /// Absolute paths of the names.
    pub paths: Vec<CString>,
    pub texts: Vec<CString>,
    pub locks: Vec<libc::flock>,
    pub kept: KeptContents,
    /// Open files; none where one was closed, or not opened yet. A call holds it open while it
    /// runs: its number must not become another file's.
    pub handles: Vec<HandleFile>,
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
            Action::Release(handles, mappings) => {
                handles.iter().for_each(|handle| drop(self.write(*handle).take()));
                mappings.iter().for_each(|mapping| self.unmap(*mapping));
                0
            }
        }
    }

    fn read(&self, handle: FileHandle) -> RwLockReadGuard<'_, Option<OwnedFd>> {
        self.handles[handle as usize].read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, handle: FileHandle) -> RwLockWriteGuard<'_, Option<OwnedFd>> {
        self.handles[handle as usize].write().unwrap_or_else(PoisonError::into_inner)
    }

    fn call(
        &self,
        number: i64,
        arguments: &[CallArgument],
        effect: CallEffect,
        step: &PlannedStep,
        memory: &mut Memory,
    ) -> i64 {
        if let CallEffect::Closes(handle) = effect {
            let Some(file) = self.write(handle).take() else { return -i64::from(libc::EBADF) };
            return system_call(number, [file.into_raw_fd().into(), 0, 0, 0, 0, 0]);
        }
        if let CallEffect::Dirties(mapping, offset, bytes) = effect
            && let Some(address) = self.address(mapping, offset)
        {
            memory.store(address, bytes);
        }
        let mut held = FilesInUse::default();
        let mut numbers = [0_i64; 6];
        memory.begin(step.call, step.writes.map(|number| self.kept.address(number)));
        for (number, argument) in numbers.iter_mut().zip(arguments) {
            *number = match *argument {
                CallArgument::Number(number) => number,
                CallArgument::Handle(handle) => held.descriptor(self, handle).into(),
                CallArgument::HandlePath(handle) => memory.path_of(held.descriptor(self, handle)),
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
            CallEffect::Opens(handle) => *self.write(handle) = descriptor_of(result),
            CallEffect::Tries => drop(descriptor_of(result)),
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
    fn copy(&self, from: FileHandle, to: FileHandle) -> i64 {
        let result = match &*self.read(from) {
            Some(file) => {
                let command = i64::from(libc::F_DUPFD_CLOEXEC);
                let numbers = [file.as_raw_fd().into(), command, 3, 0, 0, 0];
                system_call(system_calls::SYS_fcntl, numbers)
            }
            None => return 0,
        };
        *self.write(to) = descriptor_of(result);
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
struct FilesInUse<'a>(Vec<(FileHandle, RwLockReadGuard<'a, Option<OwnedFd>>)>);

impl<'a> FilesInUse<'a> {
    /// The number of a handle's file; -1 where it is not open, of which the kernel says EBADF.
    fn descriptor(&mut self, stage: &'a ReplayStage, handle: FileHandle) -> RawFd {
        if self.0.iter().all(|(held, _)| *held != handle) {
            self.0.push((handle, stage.read(handle)));
        }
        let found = self.0.iter().find(|(held, _)| *held == handle);
        found.and_then(|(_, file)| file.as_ref()).map_or(-1, AsRawFd::as_raw_fd)
    }
}

fn descriptor_of(result: i64) -> Option<OwnedFd> {
    let number = RawFd::try_from(result).ok().filter(|number| *number >= 0)?;
    // SAFETY: the kernel has just given this descriptor, and nobody else has its number.
    Some(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Makes a call, by its number on x86_64; gives its result, -errno if it failed.
fn system_call(number: i64, numbers: [i64; 6]) -> i64 {
    let Some((number, numbers)) = system_calls::native_call(number, numbers) else {
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

/// Return whether an error is the machine's, and not an answer that the recorded program may have
/// got.
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

/// The stage with the files before the first call.
pub struct FirstFiles {
    pub stage: ReplayStage,
    /// Paths of the snapshot that could not be made: one above them is no directory.
    pub not_made: u64,
}

/// Makes in `directory`, which is empty, what is there before the first step; the steps write
/// what was `kept`.
///
/// # Errors
/// If there is no room for it, or a step fails.
pub fn make(
    directory: &Path,
    plan: &ReplayPlan,
    kept: KeptContents,
    seed: u64,
) -> Result<FirstFiles, WorkloadError> {
    refuse_large(directory, plan)?;
    change_nothing(directory).map_err(step_error("chmod", directory))?;
    let mut contents = vec![0; CHUNK_BYTES];
    generator(seed, 0).fill_bytes(&mut contents);
    let path = |name: Name| directory.join(OsStr::from_bytes(&plan.names[name as usize]));
    let text = |text: u32| text_of(directory, &plan.texts[text as usize]);
    let mut not_made = 0;
    for before in &plan.before {
        let (place, made) = match before {
            FileBefore::Directory(name) => (path(*name), make_directory(&path(*name))),
            FileBefore::File { name, bytes, mode } => {
                (path(*name), fill(&path(*name), &contents, *bytes, *mode))
            }
            FileBefore::Link { name, of } => (path(*name), fs::hard_link(path(*of), path(*name))),
            FileBefore::Symlink { name, target } => {
                let text = OsStr::from_bytes(&text(*target)).to_owned();
                (path(*name), std::os::unix::fs::symlink(text, path(*name)))
            }
        };
        match made {
            Err(error) if is_of_the_path(&error) => not_made += 1,
            made => made.map_err(step_error("make", &place))?,
        }
    }
    let stage = ReplayStage {
        root: rustix::fs::open(directory, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
            .map_err(step_error("open", directory))?,
        paths: (0..plan.names.len())
            .map(|name| c_string(path(name as Name).as_os_str().as_bytes()))
            .collect(),
        texts: plan.texts.iter().map(|text| c_string(&text_of(directory, text))).collect(),
        locks: plan.locks.iter().map(lock_of).collect(),
        kept,
        handles: (0..plan.handles).map(|_| RwLock::new(None)).collect(),
        mappings: (0..plan.mappings).map(|_| Mutex::new(None)).collect(),
    };
    for open in &plan.open_before {
        match open_file(&path(open.name), open.flags, open.position) {
            Ok(file) => *stage.handles[open.handle as usize].write().expect("is ours") = Some(file),
            Err(error) if is_of_the_path(&error) => not_made += 1,
            Err(error) => return Err(step_error("open", &path(open.name))(error)),
        }
    }
    Ok(FirstFiles { stage, not_made })
}

fn lock_of(lock: &super::plan::RecordLock) -> libc::flock {
    libc::flock {
        l_type: lock.kind,
        l_whence: lock.whence,
        l_start: lock.start,
        l_len: lock.length,
        l_pid: 0,
    }
}

fn text_of(directory: &Path, text: &PlanText) -> Vec<u8> {
    match text {
        PlanText::Plain(bytes) => bytes.clone(),
        PlanText::Inside(path) => {
            directory.join(OsStr::from_bytes(path)).into_os_string().into_vec()
        }
    }
}

/// The plan's names and texts have no zero byte; of another, what is before it.
fn c_string(bytes: &[u8]) -> CString {
    CString::new(bytes).unwrap_or_else(|error| {
        let end = error.nul_position();
        CString::new(&bytes[..end]).unwrap_or_default()
    })
}

/// Return whether a path cannot be there, as a name above it or in it is something else.
fn is_of_the_path(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(
            libc::ENOENT
                | libc::ENOTDIR
                | libc::ELOOP
                | libc::EEXIST
                | libc::ENAMETOOLONG
                | libc::EISDIR
                | libc::EMLINK
                | libc::EINVAL
                | libc::EILSEQ
        )
    )
}

/// Changes the directory to what it is. Of a filesystem that was not changed since its mkfs, the
/// first change writes more than others: ext4 the superblock of its journal (JBD2_FLUSHED in
/// jbd2_journal_commit_transaction() of Linux). That is no cost of a recorded call.
fn change_nothing(directory: &Path) -> io::Result<()> {
    fs::set_permissions(directory, fs::metadata(directory)?.permissions())
}

fn make_directory(path: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        made => made,
    }
}

fn fill(path: &Path, contents: &[u8], bytes: u64, mode: u32) -> io::Result<()> {
    let mut file = File::options().write(true).create_new(true).mode(mode).open(path)?;
    let mut left = bytes;
    while left > 0 {
        let length = usize::try_from(left).unwrap_or(usize::MAX).min(contents.len());
        file.write_all(&contents[..length])?;
        left -= length as u64;
    }
    Ok(())
}

fn open_file(path: &Path, flags: i32, position: i64) -> io::Result<OwnedFd> {
    let flags = OFlags::from_bits_retain(flags.cast_unsigned()) | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty())?;
    if position > 0 && !flags.contains(OFlags::PATH) {
        rustix::fs::seek(&file, SeekFrom::Start(position.cast_unsigned()))?;
    }
    Ok(file)
}

/// Refuses files that there is no room for.
fn refuse_large(directory: &Path, plan: &ReplayPlan) -> Result<(), WorkloadError> {
    let bytes = |before: &FileBefore| match before {
        FileBefore::File { bytes, .. } => *bytes,
        _ => 0,
    };
    let needed = plan.before.iter().map(bytes).fold(0_u64, u64::saturating_add);
    let room = rustix::fs::statvfs(directory).map_err(step_error("statvfs", directory))?;
    let free = room.f_bavail.saturating_mul(room.f_frsize);
    let place = directory.display();
    if needed > free {
        return Err(WorkloadError::refusal(format!(
            "files of {needed} bytes must be there before the first call, and the filesystem of \
             {place} has {free} free; name another directory"
        )));
    }
    let files = plan.before.len() as u64;
    // Some filesystems make inodes as they go, and count none.
    if room.f_files > 0 && files > room.f_favail {
        return Err(WorkloadError::refusal(format!(
            "{files} files must be there before the first call, and the filesystem of {place} has \
             room for {} more; name another directory",
            room.f_favail
        )));
    }
    Ok(())
}
