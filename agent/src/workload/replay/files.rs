//! The files of a replay: reads the script; makes the files that are there before its first call,
//! says where each is, and checks in the end that they are as the calls must have left them.

use std::fs::{self, DirBuilder, File};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rand_chacha::rand_core::RngCore;

use crate::script::call::Script;
use crate::script::mobigen;
use crate::script::step::ReplayFile;
use crate::workload::draw::generator;
use crate::workload::error::{WorkloadError, failed};
use crate::workload::kind::Remains;
use crate::workload::power_cut::{Cut, Survival};

/// A call takes 12 bytes at the least, so that there are never more than a few million.
const MOST_SCRIPT_BYTES: u64 = 64 << 20;
/// What is written at once.
const CHUNK_BYTES: usize = 1 << 20;

/// Reads a script.
///
/// # Errors
/// If it cannot be read, or is none.
pub fn read_script(path: &Path) -> Result<Script, WorkloadError> {
    let refuse = |what: String| WorkloadError::refused(format!("{}: {what}", path.display()));
    let file = File::open(path).map_err(|error| refuse(error.to_string()))?;
    let mut text = Vec::new();
    file.take(MOST_SCRIPT_BYTES + 1)
        .read_to_end(&mut text)
        .map_err(|error| refuse(error.to_string()))?;
    if text.len() as u64 > MOST_SCRIPT_BYTES {
        return Err(refuse(format!("is longer than {MOST_SCRIPT_BYTES} bytes; replay a part")));
    }
    mobigen::parse(&text).map_err(|error| refuse(error.to_string()))
}

/// Makes bytes to write, that no device can make shorter.
pub fn fill_contents(seed: u64, bytes: &mut [u8]) {
    generator(seed, 0).fill_bytes(bytes);
}

/// The files of one replay.
pub struct ReplayFiles {
    files: Vec<ReplayFile>,
    paths: Vec<PathBuf>,
}

impl ReplayFiles {
    /// Makes those that are there before the first call, and the directories of all.
    ///
    /// # Errors
    /// If there is no room for them, or a step fails.
    pub fn make(
        directory: &Path,
        files: Vec<ReplayFile>,
        seed: u64,
    ) -> Result<Self, WorkloadError> {
        refuse_large(directory, &files)?;
        let mut contents = vec![0; CHUNK_BYTES];
        fill_contents(seed, &mut contents);
        let paths: Vec<PathBuf> = files.iter().map(|file| directory.join(&file.path)).collect();
        for (file, path) in files.iter().zip(&paths) {
            let folder = if file.is_directory { Some(path.as_path()) } else { path.parent() };
            if let Some(folder) = folder.filter(|_| !file.is_nowhere) {
                let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
                made.map_err(failed("mkdir", folder))?;
            }
            if let Some(bytes) = file.begins.filter(|_| !file.is_directory) {
                fill(path, &contents, bytes).map_err(failed("fill", path))?;
            }
        }
        Ok(Self { files, paths })
    }

    /// Where a file is.
    pub fn path(&self, file: usize) -> &Path {
        &self.paths[file]
    }

    /// Its name in the directory of the replay.
    pub fn name(&self, file: usize) -> &Path {
        &self.files[file].path
    }

    /// What there is to check: nothing, where calls ended otherwise than they should.
    pub fn left(self, as_it_should: bool) -> ReplayLeft {
        let nothing = Self { files: Vec::new(), paths: Vec::new() };
        ReplayLeft(if as_it_should { self } else { nothing })
    }
}

fn fill(path: &Path, contents: &[u8], bytes: u64) -> std::io::Result<()> {
    let mut file = File::options().write(true).create_new(true).mode(0o600).open(path)?;
    let mut left = bytes;
    while left > 0 {
        let length = usize::try_from(left).unwrap_or(usize::MAX).min(contents.len());
        file.write_all(&contents[..length])?;
        left -= length as u64;
    }
    Ok(())
}

/// Refuses files that there is no room for.
fn refuse_large(directory: &Path, files: &[ReplayFile]) -> Result<(), WorkloadError> {
    let needed = files.iter().filter_map(|file| file.begins).fold(0_u64, u64::saturating_add);
    let room = rustix::fs::statvfs(directory).map_err(failed("statvfs", directory))?;
    let free = room.f_bavail.saturating_mul(room.f_frsize);
    if needed <= free {
        return Ok(());
    }
    Err(WorkloadError::refused(format!(
        "the script reads {needed} bytes that must be there before, and the filesystem of {} has \
         {free} free; name another directory",
        directory.display()
    )))
}

/// The files after the last call.
pub struct ReplayLeft(ReplayFiles);

impl Remains for ReplayLeft {
    /// Checks that they are as long as the script left them.
    fn check(&self) -> Result<(), WorkloadError> {
        for (file, path) in self.0.files.iter().zip(&self.0.paths) {
            if file.is_directory || file.is_nowhere {
                continue;
            }
            let found = match fs::symlink_metadata(path) {
                Ok(found) => Some(found.len()),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
                Err(error) => return Err(failed("stat", path)(error)),
            };
            if found != file.ends {
                let size = |bytes: Option<u64>| {
                    bytes.map_or("not there".into(), |bytes| format!("{bytes} bytes long"))
                };
                let what = format!("is {} where {} was due", size(found), size(file.ends));
                return Err(WorkloadError::Contents { path: path.clone(), what });
            }
        }
        Ok(())
    }

    fn survived(&self, _: &Cut) -> Result<Survival, WorkloadError> {
        Err(WorkloadError::refused("workload replay: what a power cut leaves of it is not known"))
    }
}
