//! The data file of a file workload, and what it left: every sector must be what was written last,
//! or, after a power cut, what may be left of it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::stream::{INITIAL, RecordOperation, RecordStream};
use crate::workload::error::{WorkloadError, step_error};
use crate::workload::kind::Remains;
use crate::workload::power_cut::{CutFindings, CutMoment, CutOutcome, Progress};

/// The damage of a power cut to one thread's files.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Damage {
    /// Records and names that are not as the last operation that had returned left them.
    pub lost: u64,
    /// Changes of names that are there by half.
    pub torn: u64,
    /// Records that are there by part where each write was to be whole or not there at all.
    pub mixed: u64,
}

/// The files of one thread.
pub trait FilesOfThread {
    /// Checks that they are as the operations must have left them.
    ///
    /// # Errors
    /// If they cannot be read, or are not.
    fn check(&self) -> Result<(), WorkloadError>;

    /// Return what is there after a power cut, at which the thread had come so far.
    ///
    /// # Errors
    /// If it cannot be read, or is what no operation left there.
    fn judge(&self, progress: Progress) -> Result<Damage, WorkloadError>;
}

/// The files of all threads.
pub struct FilesLeft(pub Vec<Box<dyn FilesOfThread>>);

impl Remains for FilesLeft {
    fn check(&self) -> Result<(), WorkloadError> {
        self.0.iter().try_for_each(|files| files.check())
    }

    fn judge(&self, cut: &CutMoment) -> Result<CutFindings, WorkloadError> {
        let mut all = Damage::default();
        for (thread, files) in (0..).zip(&self.0) {
            let found = files.judge(cut.progress_of_thread(thread))?;
            all.lost += found.lost;
            all.torn += found.torn;
            all.mixed += found.mixed;
        }
        Ok(file_findings(all))
    }
}

fn file_findings(Damage { lost, torn, mixed }: Damage) -> CutFindings {
    let (outcome, message) = match (lost, torn, mixed) {
        (_, _, 1..) => {
            (CutOutcome::Torn, format!("of {mixed} records an atomic write is there by part"))
        }
        (_, 1.., 0) => {
            (CutOutcome::Torn, format!("{torn} names are there beside those they replace"))
        }
        (1.., 0, 0) => (CutOutcome::Lost, String::new()),
        (0, 0, 0) => (CutOutcome::Kept, String::new()),
    };
    CutFindings { outcome, found: Vec::new(), lost, message }
}

/// The name of what a thread has alone: the first thread's is the plain one.
pub fn own_name(name: &str, thread: u64) -> String {
    if thread == 0 { name.into() } else { format!("{name}-{thread}") }
}

/// Says what a sector may hold, and what it must.
enum Sector {
    /// Says what the last write that had returned put there, or one that had begun since.
    Fresh,
    /// Says what was there before, or zeros of a file that grew.
    Stale,
    Strange,
}

/// Read a file of which `records` records were made before the first operation. Before the cut
/// `returned` operations had returned, and `begun` had begun.
///
/// A record that was being overwritten may be half old and half new: no manual promises more,
/// unless each write `is_atomic`.
///
/// # Errors
/// If the file cannot be read, or holds what no operation put there.
pub fn judge(
    path: &Path,
    stream: &RecordStream,
    records: u64,
    is_atomic: bool,
    Progress { returned, begun }: Progress,
) -> Result<Damage, WorkloadError> {
    let record_bytes = stream.shape.record_bytes;
    let read_back = step_error("read back", path);
    let mut file = File::open(path).map_err(&read_back)?;
    let file_bytes = file.metadata().map_err(&read_back)?.len();
    let wrong = |what: String| Err(WorkloadError::Contents { path: path.to_owned(), what });
    let mut writers: BTreeMap<u64, Vec<u64>> =
        (0..records).map(|record| (record, vec![INITIAL])).collect();
    for (index, RecordOperation { record, is_read }) in (0..).zip(stream.again(begun)) {
        if !is_read {
            writers.entry(record).or_default().push(index);
        }
    }
    let most = writers.last_key_value().map_or(0, |(&record, _)| record + 1) * record_bytes;
    if file_bytes > most {
        return wrong(format!("is {file_bytes} bytes long where {most} are the most"));
    }
    let mut damage = Damage::default();
    let length = usize::try_from(record_bytes).unwrap_or(usize::MAX);
    let (mut wanted, mut found) = (vec![0; length], Vec::with_capacity(length));
    stream.fill(&mut wanted, INITIAL);
    for (record, writers) in writers {
        // Those before this one may not be there any more.
        let settled = writers.iter().rposition(|&it| it == INITIAL || it < returned);
        let (stale, fresh) = writers.split_at(settled.unwrap_or(0));
        let is_new = writers[0] != INITIAL;
        file.seek(SeekFrom::Start(record * record_bytes)).map_err(&read_back)?;
        found.clear();
        Read::by_ref(&mut file).take(record_bytes).read_to_end(&mut found).map_err(&read_back)?;
        let mut is_stale = settled.is_some() && found.len() < length;
        for (found, wanted) in
            found.chunks(RecordStream::SECTOR_BYTES).zip(wanted.chunks(RecordStream::SECTOR_BYTES))
        {
            match sector(found, wanted, stale, fresh, is_new) {
                Sector::Fresh => {}
                // A record that was being appended may be there as zeros.
                Sector::Stale => is_stale |= settled.is_some(),
                Sector::Strange => {
                    return wrong(format!("holds in record {record} what nobody wrote there"));
                }
            }
        }
        damage.lost += u64::from(is_stale);
        damage.mixed += u64::from(is_atomic && !is_of_one_write(&found, length));
    }
    Ok(damage)
}

/// Return whether a record of whole sectors is wholly there, of one write, or not at all.
fn is_of_one_write(found: &[u8], length: usize) -> bool {
    let mut sectors = found.chunks(RecordStream::SECTOR_BYTES).map(|sector| {
        (sector.iter().all(|&byte| byte == 0), &sector[..size_of::<u64>().min(sector.len())])
    });
    let first = sectors.next();
    [0, length].contains(&found.len()) && sectors.all(|sector| Some(sector) == first)
}

/// Compares a sector, or what is left of the last one, with all that it may hold. `wanted` is as in
/// any record but for the stamp.
fn sector(found: &[u8], wanted: &[u8], stale: &[u64], fresh: &[u64], is_new: bool) -> Sector {
    let stamp = size_of::<u64>().min(found.len());
    let holds = |writers: &[u64]| {
        found[stamp..] == wanted[stamp..found.len()]
            && writers.iter().any(|writer| found[..stamp] == writer.to_le_bytes()[..stamp])
    };
    if holds(fresh) {
        Sector::Fresh
    } else if holds(stale) || (is_new && found.iter().all(|&byte| byte == 0)) {
        Sector::Stale
    } else {
        Sector::Strange
    }
}

/// Bytes that one write of the preparation has, or one record where that is longer: a page. What
/// is written in longer pieces stands in the page cache in large folios (ext4 since Linux 6.16,
/// XFS since 6.6), which every later small write and sync goes through; a file that a program
/// wrote record by record does not. With 1 MiB here, a random 4 KiB write and fsync on ext4 of
/// Linux 6.18 took an eighth longer (bench.workload).
const CHUNK_BYTES: usize = 1 << 12;

/// Bytes that are read at a time when the file is checked.
const CHECKED_BYTES: usize = 1 << 20;

/// Makes a thread's file, of `records` records that no operation wrote.
///
/// # Errors
/// If it cannot be made.
pub fn make(
    directory: &Path,
    thread: u64,
    stream: &RecordStream,
    records: u64,
) -> Result<PathBuf, WorkloadError> {
    let path = directory.join(own_name("data", thread));
    let mut file = File::create(&path).map_err(step_error("create", &path))?;
    let mut record = vec![0; usize::try_from(stream.shape.record_bytes).unwrap_or(usize::MAX)];
    stream.fill(&mut record, INITIAL);
    let together = (CHUNK_BYTES / record.len()).max(1);
    let chunk = record.repeat(together);
    let (chunks, rest) = (records / together as u64, records % together as u64);
    for _ in 0..chunks {
        file.write_all(&chunk).map_err(step_error("fill", &path))?;
    }
    for _ in 0..rest {
        file.write_all(&record).map_err(step_error("fill", &path))?;
    }
    Ok(path)
}

/// Refuses files that take more than three quarters of their filesystem: the rest is for the
/// filesystem's own, and what a log-structured one needs in order to clean.
///
/// # Errors
/// If they do, or the filesystem does not tell.
pub fn refuse_large(directory: &Path, file_bytes: u64, files: u64) -> Result<(), WorkloadError> {
    let space = rustix::fs::statvfs(directory).map_err(step_error("statvfs", directory))?;
    let most = space.f_blocks * space.f_frsize / 4 * 3;
    if file_bytes.saturating_mul(files) > most {
        return Err(WorkloadError::refusal(format!(
            "{files} x {file_bytes} bytes of files take more than three quarters of {}, {most} \
             bytes; lower file_bytes or threads",
            directory.display()
        )));
    }
    Ok(())
}

/// Holds what the file must hold when the operations are done.
pub struct Records {
    pub path: PathBuf,
    pub stream: RecordStream,
    /// Records that were made before the first operation.
    pub records: u64,
    pub performed: u64,
    /// Whether a power cut may leave no part of a write.
    pub is_atomic: bool,
}

impl FilesOfThread for Records {
    fn check(&self) -> Result<(), WorkloadError> {
        let wrong = |what: String| WorkloadError::Contents { path: self.path.clone(), what };
        let read_back = |source: std::io::Error| step_error("read back", &self.path)(source);
        let record_bytes = self.stream.shape.record_bytes;
        // The last operation that wrote each record.
        let writes = (0..).zip(self.stream.again(self.performed)).filter(|(_, it)| !it.is_read);
        let writers: BTreeMap<u64, u64> = writes.map(|(index, it)| (it.record, index)).collect();
        let grown = writers.last_key_value().map_or(0, |(&record, _)| record + 1);
        let records = self.records.max(grown);
        let file = File::open(&self.path).map_err(read_back)?;
        let found = file.metadata().map_err(read_back)?.len();
        let due = records * record_bytes;
        if found != due {
            return Err(wrong(format!("is {found} bytes long where {due} were due")));
        }
        let mut file = BufReader::with_capacity(CHECKED_BYTES, file);
        let mut wanted = vec![0; usize::try_from(record_bytes).unwrap_or(usize::MAX)];
        let mut found = wanted.clone();
        self.stream.fill(&mut wanted, INITIAL);
        for record in 0..records {
            RecordStream::stamp(&mut wanted, writers.get(&record).copied().unwrap_or(INITIAL));
            file.read_exact(&mut found).map_err(read_back)?;
            if found != wanted {
                return Err(wrong(format!("record {record} does not hold what was written last")));
            }
        }
        Ok(())
    }

    fn judge(&self, progress: Progress) -> Result<Damage, WorkloadError> {
        judge(&self.path, &self.stream, self.records, self.is_atomic, progress)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::files::stream::tests::shape;
    use crate::workload::files::stream::{Access, Shape};

    #[test]
    fn lost_records_are_counted() {
        let found = file_findings(Damage { lost: 2, ..Damage::default() });
        assert_eq!((found.outcome, found.lost), (CutOutcome::Lost, 2));
        assert_eq!(file_findings(Damage { lost: 2, torn: 1, mixed: 0 }).outcome, CutOutcome::Torn);
        let mixed = file_findings(Damage { mixed: 3, ..Damage::default() });
        assert_eq!(mixed.outcome, CutOutcome::Torn);
        assert_eq!(mixed.message, "of 3 records an atomic write is there by part");
        assert_eq!(file_findings(Damage::default()).outcome, CutOutcome::Kept);
    }

    const RECORD_BYTES: u64 = 1030;

    /// Operations 0, 1, 2 ... write records 0, 1, 2, 0, 1 ... or append.
    fn stream(access: Access) -> RecordStream {
        stream_of(access, RECORD_BYTES)
    }

    fn stream_of(access: Access, record_bytes: u64) -> RecordStream {
        let file_bytes = if access == Access::Append { 20 } else { 3 } * record_bytes;
        let shape = Shape { access, record_bytes, file_bytes, ..shape() };
        RecordStream::new(shape, 1, 0).unwrap()
    }

    fn records(stream: &RecordStream, writers: &[u64]) -> Vec<u8> {
        let mut file = Vec::new();
        for &writer in writers {
            let mut record = vec![0; stream.shape.record_bytes as usize];
            stream.fill(&mut record, writer);
            file.extend(record);
        }
        file
    }

    fn sector_state(
        stream: &RecordStream,
        made: u64,
        file: &[u8],
        (returned, begun): (u64, u64),
    ) -> Option<u64> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        std::fs::write(&path, file).unwrap();
        let found = judge(&path, stream, made, false, Progress { returned, begun });
        found.ok().map(|it| it.lost)
    }

    #[test]
    fn a_record_holds_its_last_write_that_returned_or_one_under_way() {
        let stream = stream(Access::Sequential);
        let lost =
            |writers: &[u64], counts| sector_state(&stream, 3, &records(&stream, writers), counts);
        assert_eq!(lost(&[3, 1, 2], (4, 5)), Some(0));
        assert_eq!(lost(&[3, 4, 2], (4, 5)), Some(0));
        assert_eq!(lost(&[0, 1, 2], (4, 5)), Some(1));
        assert_eq!(lost(&[INITIAL, 1, INITIAL], (4, 5)), Some(2));
        assert_eq!(lost(&[INITIAL, INITIAL, INITIAL], (0, 1)), Some(0));
        // Not begun by then, or of another record.
        assert_eq!(lost(&[3, 4, 2], (4, 4)), None);
        assert_eq!(lost(&[1, 1, 2], (4, 5)), None);
    }

    #[test]
    fn a_record_under_way_may_be_there_by_half_and_no_other() {
        let stream = stream(Access::Sequential);
        let (old, new) = (records(&stream, &[0, 1, 2]), records(&stream, &[3, 1, 2]));
        let half = [&new[..512], &old[512..]].concat();
        assert_eq!(sector_state(&stream, 3, &half, (3, 4)), Some(0));
        assert_eq!(sector_state(&stream, 3, &half, (4, 4)), Some(1));
        let mut strange = new;
        strange[600] ^= 1;
        assert_eq!(sector_state(&stream, 3, &strange, (4, 4)), None);
    }

    #[test]
    fn an_atomic_write_is_whole_or_not_there_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        let mixed = |stream: &RecordStream, made: u64, file: &[u8], (returned, begun)| {
            std::fs::write(&path, file).unwrap();
            judge(&path, stream, made, true, Progress { returned, begun }).unwrap().mixed
        };
        let own = stream_of(Access::Sequential, 1024);
        let (old, new) = (records(&own, &[0, 1, 2]), records(&own, &[3, 1, 2]));
        let half = [&new[..512], &old[512..]].concat();
        for (file, expected) in [(&old, 0), (&new, 0), (&half, 1)] {
            assert_eq!(mixed(&own, 3, file, (3, 4)), expected);
        }
        let own = stream_of(Access::Append, 1024);
        let (whole, length) = (records(&own, &[0, 1]), 1024);
        let zeros = [&whole[..length], &vec![0; length][..]].concat();
        let part = [&whole[..length + 512], &vec![0; length - 512][..]].concat();
        for (file, expected) in [(&whole[..length], 0), (&zeros, 0), (&part, 1)] {
            assert_eq!(mixed(&own, 0, file, (1, 2)), expected);
        }
        assert_eq!(mixed(&own, 0, &whole[..length + 700], (1, 2)), 1);
    }

    #[test]
    fn a_file_larger_than_memory_is_read_a_record_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        File::create(&path).unwrap().set_len(1 << 40).unwrap();
        let stream = stream(Access::Sequential);
        let none = Progress { returned: 0, begun: 0 };
        let error = judge(&path, &stream, 3, false, none).unwrap_err();
        assert!(error.to_string().ends_with("is 1099511627776 bytes long where 3090 are the most"));
    }

    #[test]
    fn an_appended_record_may_be_missing_or_zero_until_it_returned() {
        let stream = stream(Access::Append);
        let whole = records(&stream, &[0, 1, 2]);
        let length = RECORD_BYTES as usize;
        let zeros = [&whole[..2 * length], &vec![0; length][..]].concat();
        for file in [&whole[..2 * length], &whole[..2 * length + 700], &zeros] {
            assert_eq!(sector_state(&stream, 0, file, (2, 3)), Some(0));
            assert_eq!(sector_state(&stream, 0, file, (3, 3)), Some(1));
        }
        assert_eq!(sector_state(&stream, 0, &whole, (3, 3)), Some(0));
        assert_eq!(sector_state(&stream, 0, &whole, (2, 2)), None);
    }
}
