//! The files of a replay: makes what is there before its first step, and opens what is open then.

use std::ffi::{CString, OsStr};
use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Mutex, RwLock};

use rand_chacha::rand_core::RngCore;
use rustix::fs::{Mode, OFlags, SeekFrom};

use super::kept::KeptContents;
use super::memory::CHUNK_BYTES;
use super::perform::ReplayStage;
use crate::script::plan::{FileBefore, Name, PlanText, ReplayPlan};
use crate::workload::draw::generator;
use crate::workload::error::{WorkloadError, failed};

/// What was made.
pub struct MadeFiles {
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
) -> Result<MadeFiles, WorkloadError> {
    refuse_large(directory, plan)?;
    change_nothing(directory).map_err(failed("chmod", directory))?;
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
            made => made.map_err(failed("make", &place))?,
        }
    }
    let stage = ReplayStage {
        root: rustix::fs::open(directory, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
            .map_err(failed("open", directory))?,
        paths: (0..plan.names.len())
            .map(|name| c_string(path(name as Name).as_os_str().as_bytes()))
            .collect(),
        texts: plan.texts.iter().map(|text| c_string(&text_of(directory, text))).collect(),
        locks: plan.locks.iter().map(lock_of).collect(),
        kept,
        slots: (0..plan.slots).map(|_| RwLock::new(None)).collect(),
        mappings: (0..plan.mappings).map(|_| Mutex::new(None)).collect(),
    };
    for open in &plan.open_before {
        match open_file(&path(open.name), open.flags, open.position) {
            Ok(file) => *stage.slots[open.slot as usize].write().expect("is ours") = Some(file),
            Err(error) if is_of_the_path(&error) => not_made += 1,
            Err(error) => return Err(failed("open", &path(open.name))(error)),
        }
    }
    Ok(MadeFiles { stage, not_made })
}

fn lock_of(lock: &crate::script::plan::RecordLock) -> libc::flock {
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

/// Whether a path cannot be there, as a name above it or in it is something else.
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
    let room = rustix::fs::statvfs(directory).map_err(failed("statvfs", directory))?;
    let free = room.f_bavail.saturating_mul(room.f_frsize);
    let place = directory.display();
    if needed > free {
        return Err(WorkloadError::refused(format!(
            "files of {needed} bytes must be there before the first call, and the filesystem of \
             {place} has {free} free; name another directory"
        )));
    }
    let files = plan.before.len() as u64;
    // Some filesystems make inodes as they go, and count none.
    if room.f_files > 0 && files > room.f_favail {
        return Err(WorkloadError::refused(format!(
            "{files} files must be there before the first call, and the filesystem of {place} has \
             room for {} more; name another directory",
            room.f_favail
        )));
    }
    Ok(())
}
