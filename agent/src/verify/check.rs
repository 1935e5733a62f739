//! The judgement: what the tracer said of each sector, against what the sector says itself.
//!
//! A sector holds what was written to it last, so the last write of each is checked. Of a stamped
//! file, the stamp must be of that file and offset; of SQLite's files, the bytes must be those that
//! the filesystem reads at that offset, unless they were written again elsewhere or cut off since;
//! journal and metadata must hold no stamp. And every durable sector of a stamped file must have
//! been seen as its data at least once.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use anyhow::Context;
use serde::Serialize;

use super::log::{Known, Log};
use super::stamp::{SECTOR, Stamp};
use crate::block::Capture;
use crate::trace::rows::{self, PageRun};

/// Complaints that are told; the others are counted.
const TOLD: usize = 20;

/// What came out.
#[derive(Debug, Default, Serialize)]
pub struct Verdict {
    /// All that was written to the device.
    pub bytes: u64,
    pub data_bytes: u64,
    /// What was compared with the device: the last write of each sector.
    pub checked_bytes: u64,
    /// Of those, contents that nobody knows any more: of SQLite's files that are gone, or older
    /// copies of what was written again elsewhere.
    pub uncheckable_bytes: u64,
    pub misattributed_bytes: u64,
    /// Of those checked, data told to be of the right file without its place there.
    pub offsetless_bytes: u64,
    pub unknown_bytes: u64,
    /// Durable sectors of stamped files that were never seen as their data.
    pub missing_bytes: u64,
    pub lost_events: u64,
    /// Why the capture is incomplete.
    pub reasons: Vec<String>,
    /// The first that was wrong.
    pub complaints: Vec<String>,
    /// Where the data of files that are still there is: for tools that know the filesystem.
    pub extents: Vec<Extent>,
    /// Where requests of the journal went.
    pub journal: Vec<Stretch>,
}

/// A stretch of a file on the device.
#[derive(Debug, Serialize)]
pub struct Extent {
    pub path: String,
    pub offset_bytes: i64,
    pub sector: i64,
    pub sectors: i64,
}

/// A stretch of the device.
#[derive(Debug, Serialize)]
pub struct Stretch {
    pub sector: i64,
    pub sectors: i64,
    pub subtype: String,
}

impl Verdict {
    fn complain(&mut self, what: String) {
        self.misattributed_bytes += SECTOR as u64;
        if self.complaints.len() < TOLD {
            self.complaints.push(what);
        }
    }
}

/// Who a file of the tables is.
enum Owner<'a> {
    Stamped(&'a Known),
    Database(File),
    /// One of SQLite's that is gone.
    Gone,
    Stranger,
}

/// Compares.
///
/// # Errors
/// If the device or a file cannot be read.
pub fn check(
    capture: &Capture,
    log: &Log,
    directory: &Path,
    node: &Path,
) -> anyhow::Result<Verdict> {
    let mut verdict = Verdict {
        lost_events: capture.lost_events,
        reasons: capture.gaps.reasons(capture.lost_events),
        ..Verdict::default()
    };
    let owners: Vec<Owner> = capture.files.iter().map(|row| owner(row, log, directory)).collect();
    let last = last_writes(capture, &mut verdict);
    let newest = newest_places(capture);
    let device = File::open(node).with_context(|| node.display().to_string())?;
    let mut sector_bytes = [0; SECTOR];
    let mut seen = BTreeSet::new();
    for (&sector, &(run, skipped)) in &last {
        let at = sector as u64 * SECTOR as u64;
        device.read_exact_at(&mut sector_bytes, at).with_context(|| node.display().to_string())?;
        verdict.checked_bytes += SECTOR as u64;
        let place = run.file_id.zip(run.file_offset_bytes.map(|offset| offset + skipped));
        let is_newest = place.is_none_or(|place| newest.get(&place) == Some(&sector));
        let owner = run.file_id.map(|id| &owners[id as usize]);
        if let Some(Owner::Gone) | Some(Owner::Database(_)) = owner
            && !is_newest
            && run.block_type == "data"
        {
            verdict.uncheckable_bytes += SECTOR as u64;
            continue;
        }
        if run.block_type == "data" && run.file_offset_bytes.is_none() {
            seen.extend(Stamp::read(&sector_bytes).map(|stamp| (stamp.file, stamp.offset)));
        }
        if let Some(wrong) = judge(run, skipped, &sector_bytes, &owners, &log.known, &mut verdict)?
        {
            let owner = run.file_id.map_or("", |id| &capture.files[id as usize].path);
            let PageRun { block_type, block_subtype, .. } = run;
            let offset = run.file_offset_bytes.map(|offset| offset + skipped);
            let told = format!("{block_type} {block_subtype} {owner} at {offset:?}");
            verdict.complain(format!("sector {sector}, told as {told}: {wrong}"));
        }
    }
    missing(capture, log, &owners, seen, &mut verdict);
    places(capture, &newest, &owners, &mut verdict);
    Ok(verdict)
}

/// For each sector the run that wrote it last, and how far into the run it is.
fn last_writes<'a>(
    capture: &'a Capture,
    verdict: &mut Verdict,
) -> BTreeMap<i64, (&'a PageRun, i64)> {
    let mut last = BTreeMap::new();
    for run in &capture.page_runs {
        let request = &capture.requests[run.request_id as usize];
        if run.block_type == "unknown" {
            verdict.unknown_bytes += run.length_bytes as u64;
        }
        if request.operation == "read" {
            continue;
        }
        let sectors = run.length_bytes / SECTOR as i64;
        for index in 0..sectors {
            let sector = run.sector + index;
            match request.operation.as_str() {
                "write" => last.insert(sector, (run, index * SECTOR as i64)),
                _ => last.remove(&sector),
            };
        }
        if request.operation == "write" {
            verdict.bytes += run.length_bytes as u64;
            if run.block_type == "data" {
                verdict.data_bytes += run.length_bytes as u64;
            }
        }
        if run.block_type == "fs-journal" {
            let subtype = run.block_subtype.clone();
            verdict.journal.push(Stretch { sector: run.sector, sectors, subtype });
        }
    }
    last
}

/// Where each sector of each file was written last: by file and offset.
fn newest_places(capture: &Capture) -> BTreeMap<(i64, i64), i64> {
    let mut newest = BTreeMap::new();
    for run in capture.page_runs.iter().filter(|run| run.block_type == "data") {
        let request = &capture.requests[run.request_id as usize];
        if let (Some(id), Some(offset), "write") =
            (run.file_id, run.file_offset_bytes, request.operation.as_str())
        {
            let sectors = 0..run.length_bytes / SECTOR as i64;
            newest.extend(sectors.map(|n| ((id, offset + n * SECTOR as i64), run.sector + n)));
        }
    }
    newest
}

fn owner<'a>(row: &rows::File, log: &'a Log, directory: &Path) -> Owner<'a> {
    let named = |known: &&Known| {
        let had = |path: &String| {
            row.path == *path || row.path_history.contains(&format!("\"path\":\"{path}\""))
        };
        known.inode == row.inode as u64 && (row.path.is_empty() || known.paths.iter().any(had))
    };
    if let Some(known) = log.known.iter().find(named) {
        return Owner::Stamped(known);
    }
    let path = directory.join(row.path.trim_start_matches('/'));
    let same = |file: &File| file.metadata().is_ok_and(|now| now.ino() == row.inode as u64);
    match File::open(&path) {
        Ok(file) if log.databases.contains(&path) && same(&file) => Owner::Database(file),
        _ if matches!(row.file_kind.as_str(), "db-journal" | "wal" | "shm") => Owner::Gone,
        _ => Owner::Stranger,
    }
}

/// What is wrong with what was said of a sector; None if it is right.
fn judge(
    run: &PageRun,
    skipped: i64,
    sector: &[u8],
    owners: &[Owner],
    known: &[Known],
    verdict: &mut Verdict,
) -> anyhow::Result<Option<String>> {
    let stamp = Stamp::read(sector);
    if run.block_type != "data" {
        // A file's few bytes that are kept with the metadata may happen to lie as in a sector.
        let of_small = |stamp: &Stamp| known.get(stamp.file as usize).is_some_and(|k| k.small);
        return Ok(stamp
            .filter(|stamp| !of_small(stamp))
            .map(|stamp| format!("it holds {stamp:?}")));
    }
    let Some(id) = run.file_id else {
        return Ok(Some(format!("no file; it holds {stamp:?}")));
    };
    let Some(offset) = run.file_offset_bytes else {
        let right = matches!(&owners[id as usize], Owner::Stamped(known)
            if stamp.is_some_and(|stamp| stamp.file == known.number));
        verdict.offsetless_bytes += SECTOR as u64;
        return Ok((!right).then(|| format!("it holds {stamp:?}")));
    };
    let offset = (offset + skipped) as u64;
    match &owners[id as usize] {
        Owner::Stamped(known) => Ok(match stamp {
            Some(stamp) if stamp.file == known.number && stamp.offset == offset => None,
            Some(stamp) => Some(format!("it holds {stamp:?}")),
            // What was never written reads as zeros; a short file's last sector is not full.
            None if !known.durable.contains(&offset) || known.small => {
                let mut wanted = [0; SECTOR];
                let read = known.file.read_at(&mut wanted, offset)?;
                (sector != wanted).then(|| format!("not what the file holds ({read} bytes)"))
            }
            None => Some("it holds no stamp".to_owned()),
        }),
        Owner::Database(file) => {
            let mut wanted = [0; SECTOR];
            if file.read_at(&mut wanted, offset)? == 0 {
                // It was cut off since.
                verdict.uncheckable_bytes += SECTOR as u64;
                return Ok(stamp.map(|stamp| format!("it holds {stamp:?}")));
            }
            Ok((sector != wanted).then(|| format!("not what SQLite's file holds; {stamp:?}")))
        }
        Owner::Gone => {
            verdict.uncheckable_bytes += SECTOR as u64;
            Ok(stamp.map(|stamp| format!("it holds {stamp:?}")))
        }
        Owner::Stranger => Ok(Some(format!("a file nobody wrote; it holds {stamp:?}"))),
    }
}

/// Durable sectors that were never told to be data of their file.
/// `seen` are those, by file and offset, that were told without an offset.
fn missing(
    capture: &Capture,
    log: &Log,
    owners: &[Owner],
    mut seen: BTreeSet<(u32, u64)>,
    verdict: &mut Verdict,
) {
    for run in capture.page_runs.iter().filter(|run| run.block_type == "data") {
        let request = &capture.requests[run.request_id as usize];
        let known = run.file_id.and_then(|id| match &owners[id as usize] {
            Owner::Stamped(known) => Some(known),
            _ => None,
        });
        if let (Some(known), Some(offset), "write") =
            (known, run.file_offset_bytes, request.operation.as_str())
        {
            let sectors = (0..run.length_bytes).step_by(SECTOR);
            seen.extend(sectors.map(|at| (known.number, (offset + at) as u64)));
        }
    }
    for known in log.known.iter().filter(|known| !known.small) {
        for offset in known.durable.iter().filter(|&&at| !seen.contains(&(known.number, at))) {
            verdict.missing_bytes += SECTOR as u64;
            if verdict.complaints.len() < TOLD {
                let path = &known.paths[0];
                verdict.complaints.push(format!("{path} at {offset}: written, and never seen"));
            }
        }
    }
}

/// Where the data is of stamped files that still have a name; neighbours are one extent.
fn places(
    capture: &Capture,
    newest: &BTreeMap<(i64, i64), i64>,
    owners: &[Owner],
    verdict: &mut Verdict,
) {
    for (&(id, offset_bytes), &sector) in newest {
        let Owner::Stamped(known) = &owners[id as usize] else { continue };
        // What was cut off is on the device still, and of no file any more.
        let is_there = known
            .file
            .metadata()
            .is_ok_and(|now| now.nlink() > 0 && offset_bytes < now.len() as i64);
        if !is_there {
            continue;
        }
        let path = &capture.files[id as usize].path;
        if let Some(extent) = verdict.extents.last_mut()
            && extent.path == *path
            && extent.sector + extent.sectors == sector
            && extent.offset_bytes + extent.sectors * SECTOR as i64 == offset_bytes
        {
            extent.sectors += 1;
            continue;
        }
        verdict.extents.push(Extent { path: path.clone(), offset_bytes, sector, sectors: 1 });
    }
}
