//! Finds the last writer of each sector of a disk by the tracer's tables: a tool that knows the
//! filesystem can be asked about it.

use std::collections::BTreeMap;

use serde::Serialize;

use super::sectors::SECTOR;
use crate::tables::rows::{PageRun, Word};
use crate::tracer::Capture;

/// The run that wrote a sector last, and how far into the run it is; by disk and sector.
pub type Last<'a> = BTreeMap<(&'a str, i64), (&'a PageRun, i64)>;

/// Neighbouring bytes that one owner wrote last.
#[derive(Debug, Serialize)]
pub struct LastWriter {
    pub begin_bytes: i64,
    pub length_bytes: i64,
    pub block_type: Word,
    pub block_subtype: Word,
    pub inode: Option<i64>,
    pub path: String,
    pub file_offset_bytes: Option<i64>,
}

/// The last writes of all sectors; what was discarded or zeroed since is out.
pub fn last_writes(capture: &Capture) -> Last<'_> {
    let mut last = Last::new();
    for run in &capture.page_runs {
        let request = &capture.requests[run.request_id as usize];
        if request.operation == "read" {
            continue;
        }
        let (device, sectors) = (request.device.as_str(), run.length_bytes / SECTOR as i64);
        if request.operation == "write" {
            let place = |index| ((device, run.sector + index), (run, index * SECTOR as i64));
            last.extend((0..sectors).map(place));
            continue;
        }
        let covered = last.range((device, run.sector)..(device, run.sector + sectors));
        let covered: Vec<(&str, i64)> = covered.map(|(&place, _)| place).collect();
        for place in covered {
            last.remove(&place);
        }
    }
    last
}

/// Those of one disk, in stretches.
pub fn writers(capture: &Capture, last: &Last, disk: &str) -> Vec<LastWriter> {
    let mut stretches: Vec<LastWriter> = Vec::new();
    let mut before: Option<(&PageRun, i64)> = None;
    for (&(_, sector), &(run, skipped)) in last.range((disk, 0)..=(disk, i64::MAX)) {
        let continues = before.is_some_and(|(earlier, at)| {
            std::ptr::eq(earlier, run) && at + SECTOR as i64 == skipped
        });
        before = Some((run, skipped));
        if let Some(stretch) = stretches.last_mut().filter(|_| continues) {
            stretch.length_bytes += SECTOR as i64;
            continue;
        }
        let file_offset_bytes = run.file_offset_bytes.map(|offset| offset + skipped);
        let place = (sector * SECTOR as i64, SECTOR as i64);
        stretches.push(LastWriter { file_offset_bytes, ..LastWriter::new(run, place, capture) });
    }
    stretches
}

impl LastWriter {
    /// Return the writer of a run, at a place given as begin and length in bytes.
    pub fn new(run: &PageRun, (begin_bytes, length_bytes): (i64, i64), capture: &Capture) -> Self {
        let file = run.file_id.map(|id| &capture.files[id as usize]);
        Self {
            begin_bytes,
            length_bytes,
            block_type: run.block_type.clone(),
            block_subtype: run.block_subtype.clone(),
            inode: file.map(|file| file.inode),
            path: file.map(|file| file.path.clone()).unwrap_or_default(),
            file_offset_bytes: run.file_offset_bytes,
        }
    }
}
