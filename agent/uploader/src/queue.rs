//! The segments that wait in a spool: SPOOL/ready/SEQUENCE-HASH.tar, the oldest first. One that the
//! server will never take goes to SPOOL/refused.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::fs::{FlockOperation, flock};
use sha2::{Digest, Sha256};

/// Far more than a collector makes of a segment.
const SEGMENT_BYTES: u64 = 64 << 20;

/// An uploader whose collector was killed ends soon.
const PATIENCE: Duration = Duration::from_secs(30);

/// A segment that waits. It is read as it is sent, and is never in memory as a whole.
#[derive(Debug)]
pub struct Segment {
    pub name: String,
    /// Holds what its name says.
    pub hash: String,
    /// At its begin.
    pub file: File,
}

/// The spool, which no other uploader uses meanwhile.
pub struct Queue {
    ready: PathBuf,
    refused: PathBuf,
    _lock: File,
}

impl Queue {
    /// Opens it.
    ///
    /// # Errors
    /// If there is none, or another uploader uses it.
    pub fn open(spool: &Path) -> anyhow::Result<Self> {
        let (ready, refused) = (spool.join("ready"), spool.join("refused"));
        for folder in [&ready, &refused] {
            let path = || format!("{}: no spool", folder.display());
            fs::read_dir(folder).with_context(path)?;
        }
        let path = spool.join("uploader.lock");
        let lock = OpenOptions::new().create(true).append(true).mode(0o600).open(&path);
        let lock = lock.with_context(|| path.display().to_string())?;
        let begin = Instant::now();
        while flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            let is_patient = begin.elapsed() < PATIENCE;
            anyhow::ensure!(is_patient, "{}: another uploader sends it", spool.display());
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(Queue { ready, refused, _lock: lock })
    }

    /// The oldest segment. One whose bytes are not those of its name is refused.
    ///
    /// # Errors
    /// If the spool cannot be read.
    pub fn first(&self) -> io::Result<Option<Segment>> {
        let mut names: Vec<String> = Vec::new();
        for entry in fs::read_dir(&self.ready)? {
            names.extend(entry?.file_name().into_string());
        }
        names.sort();
        for name in names {
            let mut file = match File::open(self.ready.join(&name)) {
                Ok(file) => file,
                // The collector has dropped it.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            let mut digest = Sha256::new();
            io::copy(&mut (&file).take(SEGMENT_BYTES), &mut digest)?;
            let hash: String = digest.finalize().iter().map(|it| format!("{it:02x}")).collect();
            if hash_of(&name) == Some(hash.as_str()) {
                file.rewind()?;
                return Ok(Some(Segment { name, hash, file }));
            }
            self.refuse(&name, "its bytes are not those of its name")?;
        }
        Ok(None)
    }

    /// The server has it on stable storage.
    ///
    /// # Errors
    /// If it cannot be deleted.
    pub fn remove(&self, segment: &Segment) -> io::Result<()> {
        ignore_missing(fs::remove_file(self.ready.join(&segment.name)))
    }

    /// It will never be sent again.
    ///
    /// # Errors
    /// If it cannot be moved away.
    pub fn refuse(&self, name: &str, reason: &str) -> io::Result<()> {
        eprintln!("joj-uploader: {name} goes to {}: {reason}", self.refused.display());
        ignore_missing(fs::rename(self.ready.join(name), self.refused.join(name)))
    }
}

fn ignore_missing(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// The hash in a name SEQUENCE-HASH.tar.
fn hash_of(name: &str) -> Option<&str> {
    name.strip_suffix(".tar")?.split_once('-').map(|(_, hash)| hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_comes_first_and_a_damaged_one_is_refused() {
        let spool = tempfile::tempdir().unwrap();
        for folder in ["ready", "refused"] {
            fs::create_dir(spool.path().join(folder)).unwrap();
        }
        let hash = |bytes: &[u8]| -> String {
            Sha256::digest(bytes).iter().map(|it| format!("{it:02x}")).collect()
        };
        let put = |sequence: u32, bytes: &[u8], hash: &str| {
            let name = format!("{sequence:012}-{hash}.tar");
            fs::write(spool.path().join("ready").join(name), bytes).unwrap();
        };
        put(10, b"second", &hash(b"second"));
        put(9, b"first", &hash(b"first"));
        put(8, b"damaged", &hash(b"whole"));
        let queue = Queue::open(spool.path()).unwrap();
        let whole = |segment: &Segment| {
            let mut bytes = Vec::new();
            (&segment.file).read_to_end(&mut bytes).unwrap();
            bytes
        };
        let first = queue.first().unwrap().unwrap();
        assert_eq!(whole(&first), b"first");
        assert_eq!(fs::read_dir(spool.path().join("refused")).unwrap().count(), 1);
        queue.remove(&first).unwrap();
        queue.remove(&first).unwrap();
        assert_eq!(whole(&queue.first().unwrap().unwrap()), b"second");
    }

    #[test]
    fn no_spool_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let error = Queue::open(folder.path()).err().expect("there is none");
        assert!(format!("{error:#}").contains("ready: no spool"), "{error:#}");
    }
}
