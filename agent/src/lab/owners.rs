//! The owner of a written slot: the file, kind and call of the requests that a run wrote, by the
//! place and time of a write in a disk's record (kernel/flash). Reads the rows of the trace.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::device::flash::SLOT_BYTES;
use crate::tables::rows::{PageRun, Request, Word};
use crate::tracer::Capture;

const SECTOR_BYTES: i64 = 512;
const SLOT_SECTORS: i64 = SLOT_BYTES as i64 / SECTOR_BYTES;

/// One owner of a written slot, as the tables requests and page_runs have it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotOwner {
    pub block_type: Word,
    pub block_subtype: Word,
    pub file_kind: Word,
    /// The file that the bytes are of, or that they are metadata of; empty where none is known.
    pub file: String,
    pub file_offset_bytes: Option<i64>,
    /// The call that waited for it, or that it was submitted in; empty where none is known.
    pub call: Word,
    /// The file of that call.
    pub call_file: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct OwnedWrite {
    device: String,
    issue_ns: i64,
    sector: i64,
    end_sector: i64,
    owner: SlotOwner,
}

/// A flush, as the table requests has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnedFlush {
    issue_ns: i64,
    /// The call that waited for it, or that it was submitted in; empty where none is known.
    pub call: Word,
    /// The file of that call.
    pub call_file: String,
}

/// The owners of all that a run wrote, and of its flushes.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
pub struct Owners {
    /// In the order of issue.
    writes: Vec<OwnedWrite>,
    flushes: Vec<OwnedFlush>,
}

impl Owners {
    /// Keep of a capture what was written, and whose it was.
    pub fn from_capture(capture: Capture) -> Self {
        let paths: BTreeMap<i64, String> =
            capture.files.into_iter().map(|file| (file.file_id, file.path)).collect();
        let path =
            |file: Option<i64>| file.and_then(|file| paths.get(&file)).cloned().unwrap_or_default();
        let is_write = |request: &Request| !["read", "flush"].contains(&&*request.operation);
        let requests: BTreeMap<i64, &Request> = capture
            .requests
            .iter()
            .filter(|request| is_write(request))
            .map(|request| (request.request_id, request))
            .collect();
        let call = |request: &Request| {
            let call = request.asker_call.clone().or_else(|| request.submitter_call.clone());
            (call.unwrap_or_default(), path(request.asker_file_id))
        };
        let flush = |request: &Request| {
            let (call, call_file) = call(request);
            OwnedFlush { issue_ns: request.issue_ns, call, call_file }
        };
        let is_flush = |request: &&Request| request.operation == "flush";
        let mut flushes: Vec<OwnedFlush> =
            capture.requests.iter().filter(is_flush).map(flush).collect();
        flushes.sort_by_key(|it| it.issue_ns);
        let described = |run: &PageRun| {
            let request = requests.get(&run.request_id)?;
            let (call, call_file) = call(request);
            Some(OwnedWrite {
                device: request.device.clone(),
                issue_ns: request.issue_ns,
                sector: run.sector,
                end_sector: run.sector + (run.length_bytes + SECTOR_BYTES - 1) / SECTOR_BYTES,
                owner: SlotOwner {
                    block_type: run.block_type.clone(),
                    block_subtype: run.block_subtype.clone(),
                    file_kind: run.file_kind.clone(),
                    file: path(run.file_id),
                    file_offset_bytes: run.file_offset_bytes,
                    call,
                    call_file,
                },
            })
        };
        let mut writes: Vec<OwnedWrite> = capture.page_runs.iter().filter_map(described).collect();
        writes.sort_by_key(|write| write.issue_ns);
        Self { writes, flushes }
    }

    /// The last flush that the driver had got by a time.
    pub fn flush(&self, at_ns: i64) -> Option<OwnedFlush> {
        let known = self.flushes.partition_point(|flush| flush.issue_ns <= at_ns);
        self.flushes[..known].last().cloned()
    }

    /// The owners of a slot by the last write that the driver had got by a time; none where the
    /// trace has no such write.
    pub fn find(&self, device: &str, slot: u64, at_ns: i64) -> Vec<SlotOwner> {
        let sector = slot.cast_signed() * SLOT_SECTORS;
        let known = &self.writes[..self.writes.partition_point(|write| write.issue_ns <= at_ns)];
        let overlaps = |write: &&OwnedWrite| {
            write.device == device
                && write.sector < sector + SLOT_SECTORS
                && write.end_sector > sector
        };
        let Some(last) = known.iter().rev().find(overlaps) else { return Vec::new() };
        let mut owners: Vec<SlotOwner> = Vec::new();
        for write in known.iter().filter(|it| it.issue_ns == last.issue_ns).filter(overlaps) {
            let begin = SECTOR_BYTES * (sector - write.sector).max(0);
            let mut owner = write.owner.clone();
            owner.file_offset_bytes = owner.file_offset_bytes.map(|offset| offset + begin);
            owners.push(owner);
        }
        owners.dedup();
        owners
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::rows::File;

    fn request(request_id: i64, issue_ns: i64, operation: &'static str) -> Request {
        Request {
            request_id,
            issue_ns,
            device: "flash0".into(),
            operation: operation.into(),
            asker_call: Some("fsync".into()),
            asker_file_id: Some(1),
            ..Request::default()
        }
    }

    fn run(request_id: i64, sector: i64, length_bytes: i64, block_type: &'static str) -> PageRun {
        PageRun {
            request_id,
            sector,
            length_bytes,
            block_type: block_type.into(),
            file_id: (block_type == "data").then_some(1),
            file_offset_bytes: (block_type == "data").then_some(8192),
            ..PageRun::default()
        }
    }

    #[test]
    fn a_slot_is_of_the_last_write_that_was_issued_by_then() {
        let capture = Capture {
            requests: vec![
                request(0, 10, "write"),
                request(1, 20, "write"),
                request(2, 30, "read"),
                request(3, 40, "flush"),
            ],
            page_runs: vec![
                run(0, 80, 3 * 4096, "data"),
                run(1, 88, 2048, "fs-metadata"),
                run(1, 92, 2048, "fs-journal"),
                run(2, 88, 4096, "data"),
            ],
            files: vec![File { file_id: 1, path: "/log".into(), ..File::default() }],
            ..Capture::default()
        };
        let owners = Owners::from_capture(capture);
        let at = |slot, at_ns| {
            let found = owners.find("flash0", slot, at_ns);
            found.into_iter().map(|it| (it.block_type, it.file_offset_bytes)).collect::<Vec<_>>()
        };
        let data = |offset| vec![("data".into(), Some(offset))];
        assert_eq!(at(10, 15), data(8192));
        assert_eq!(at(11, 15), data(8192 + 4096));
        assert_eq!(at(12, 99), data(8192 + 8192));
        let both = ["fs-metadata", "fs-journal"].map(|word| (Word::from(word), None));
        assert_eq!(at(11, 99), both);
        assert_eq!((at(11, 9), at(13, 99)), (Vec::new(), Vec::new()));
        assert!(owners.find("flash1", 10, 99).is_empty());
        assert_eq!(owners.flush(39), None);
        let flush = OwnedFlush { issue_ns: 40, call: "fsync".into(), call_file: "/log".into() };
        assert_eq!(owners.flush(99), Some(flush));
        let [owner] = &owners.find("flash0", 10, 99)[..] else { panic!("one owner") };
        assert_eq!((&*owner.file, &*owner.call, &*owner.call_file), ("/log", "fsync", "/log"));
    }
}
