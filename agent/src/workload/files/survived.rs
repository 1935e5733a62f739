//! What of the records is there after a power cut: reads a file sector by sector, and the
//! operations drawn again; tells which records are older than the last write that had returned.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use super::left::Damage;
use super::stream::{INITIAL, RecordOperation, RecordStream};
use crate::workload::error::{WorkloadError, failed};
use crate::workload::power_cut::Progress;

/// What a sector may hold, and what it must.
enum Sector {
    /// What the last write that had returned put there, or one that had begun since.
    Fresh,
    /// What was there before, or zeros of a file that grew.
    Stale,
    Strange,
}

/// Of a file of which `records` records of `record_bytes` bytes were made before the first
/// operation. Before the cut `returned` operations had returned, and `begun` had begun.
///
/// A record that was being overwritten may be half old and half new: no manual promises more.
///
/// # Errors
/// If the file cannot be read, or holds what no operation put there.
pub fn survived(
    path: &Path,
    stream: &RecordStream,
    (records, record_bytes): (u64, u64),
    Progress { returned, begun }: Progress,
) -> Result<Damage, WorkloadError> {
    let read_back = failed("read back", path);
    let mut file = File::open(path).map_err(&read_back)?;
    let file_bytes = file.metadata().map_err(&read_back)?.len();
    let wrong = |what: String| Err(WorkloadError::Contents { path: path.to_owned(), what });
    let mut writers: BTreeMap<u64, Vec<u64>> =
        (0..records).map(|record| (record, vec![INITIAL])).collect();
    for (index, RecordOperation { record, is_read }) in (0..).zip(stream.again(begun)?) {
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
        file.by_ref().take(record_bytes).read_to_end(&mut found).map_err(&read_back)?;
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
    }
    Ok(damage)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::files::stream::tests::shape;
    use crate::workload::files::stream::{Access, Shape};

    const RECORD_BYTES: u64 = 1030;

    /// Operations 0, 1, 2 ... write records 0, 1, 2, 0, 1 ... or append.
    fn stream(access: Access) -> RecordStream {
        let file_bytes = if access == Access::Append { 20 } else { 3 } * RECORD_BYTES;
        let shape = Shape { access, record_bytes: RECORD_BYTES, file_bytes, ..shape() };
        RecordStream::new(shape, 1, 0).unwrap()
    }

    fn records(stream: &RecordStream, writers: &[u64]) -> Vec<u8> {
        let mut file = Vec::new();
        for &writer in writers {
            let mut record = vec![0; RECORD_BYTES as usize];
            stream.fill(&mut record, writer);
            file.extend(record);
        }
        file
    }

    fn found(
        stream: &RecordStream,
        made: u64,
        file: &[u8],
        (returned, begun): (u64, u64),
    ) -> Option<u64> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        std::fs::write(&path, file).unwrap();
        let found = survived(&path, stream, (made, RECORD_BYTES), Progress { returned, begun });
        found.ok().map(|it| it.lost)
    }

    #[test]
    fn a_record_holds_its_last_write_that_returned_or_one_under_way() {
        let stream = stream(Access::Sequential);
        let lost = |writers: &[u64], counts| found(&stream, 3, &records(&stream, writers), counts);
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
        assert_eq!(found(&stream, 3, &half, (3, 4)), Some(0));
        assert_eq!(found(&stream, 3, &half, (4, 4)), Some(1));
        let mut strange = new;
        strange[600] ^= 1;
        assert_eq!(found(&stream, 3, &strange, (4, 4)), None);
    }

    #[test]
    fn a_file_larger_than_memory_is_read_a_record_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        File::create(&path).unwrap().set_len(1 << 40).unwrap();
        let stream = stream(Access::Sequential);
        let none = Progress { returned: 0, begun: 0 };
        let error = survived(&path, &stream, (3, RECORD_BYTES), none).unwrap_err();
        assert!(error.to_string().ends_with("is 1099511627776 bytes long where 3090 are the most"));
    }

    #[test]
    fn what_was_appended_may_be_missing_or_zero_until_it_returned() {
        let stream = stream(Access::Append);
        let whole = records(&stream, &[0, 1, 2]);
        let length = RECORD_BYTES as usize;
        let zeros = [&whole[..2 * length], &vec![0; length][..]].concat();
        for file in [&whole[..2 * length], &whole[..2 * length + 700], &zeros] {
            assert_eq!(found(&stream, 0, file, (2, 3)), Some(0));
            assert_eq!(found(&stream, 0, file, (3, 3)), Some(1));
        }
        assert_eq!(found(&stream, 0, &whole, (3, 3)), Some(0));
        assert_eq!(found(&stream, 0, &whole, (2, 2)), None);
    }
}
