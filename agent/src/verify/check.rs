//! The judgement: what the tracer said of each sector, against what the sector says itself.
//!
//! A sector holds what was written to it last, so the last write of each is checked. Of a stamped
//! file, the stamp must be of that file and offset; of SQLite's files and the few others, the
//! bytes must be some that were written at that offset; journal and metadata must hold no stamp,
//! but for the journal's copies of a file's data. And every durable sector of a stamped file must
//! have been seen as its data at least once.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use anyhow::Context;
use serde::Serialize;

use super::askers::{self, Askers};
use super::log::{KnownFile, Log};
use super::sectors::{SECTOR, Stamp};
use super::writers::{LastWriter, last_writes, writers};
use crate::tables::rows::{self, PageRun};
use crate::tracer::Capture;

/// A compressed file of a page may be kept with the metadata.
const INLINE_BYTES: u64 = 4096;

/// Complaints that are told; the others are counted.
const COMPLAINTS_LIMIT: usize = 20;

/// Discards of several ranges in one request, as NVMe takes them.
const SEVERAL_RANGES: &str = "several ranges discarded";

/// The result of the check.
#[derive(Debug, Default, Serialize)]
pub struct Verdict {
    /// All that was written to the devices.
    pub bytes: u64,
    /// The bytes by block type; those of discards are `discard`.
    pub types: BTreeMap<String, u64>,
    /// The bytes that were compared with the devices: the last write of each sector.
    pub checked_bytes: u64,
    /// The bytes of those whose contents nobody knows: of SQLite's shared memory, and compressed
    /// ones.
    pub uncheckable_bytes: u64,
    pub misattributed_bytes: u64,
    /// The bytes of those checked that are told to be data of the right file, without their place
    /// there.
    pub offsetless_bytes: u64,
    pub unknown_bytes: u64,
    /// Durable sectors of stamped files that were never seen as their data.
    pub missing_bytes: u64,
    pub lost_events: u64,
    /// The requests within a sync: whether they are told as what they serve.
    #[serde(flatten)]
    pub askers: Askers,
    /// The steps of the workload that were done, in order.
    pub did: Vec<&'static str>,
    /// The steps that were left out, and why: this machine or filesystem cannot do them.
    pub left_out: BTreeMap<&'static str, String>,
    /// The reasons why the capture is incomplete.
    pub reasons: Vec<String>,
    /// The first that was wrong.
    pub complaints: Vec<String>,
    /// The last writers of the filesystem's disk, for tools that know the filesystem.
    pub writers: Vec<LastWriter>,
}

impl Verdict {
    /// Return a verdict with what was written and lost; nothing is compared yet.
    pub(super) fn begin(capture: &Capture, log: &Log) -> Self {
        let mut verdict = Self {
            lost_events: capture.lost_events,
            reasons: capture.gaps.reasons(capture.lost_events),
            did: log.did.clone(),
            left_out: log.left_out.clone(),
            ..Self::default()
        };
        add_up(capture, &mut verdict);
        verdict.note_ranges(capture);
        let files: Vec<_> = owners(capture, log).iter().map(Owner::known_file).collect();
        let (askers, complaints) = askers::check(capture, log, &files);
        verdict.askers = askers;
        verdict.complaints.extend(complaints.into_iter().take(COMPLAINTS_LIMIT));
        verdict
    }

    /// Note whether discards of several ranges came. Their step is not known: whether ranges are
    /// joined is the kernel's choice.
    fn note_ranges(&mut self, capture: &Capture) {
        let has_several = capture.page_runs.windows(2).any(|pair| {
            let [first, second] = pair else { return false };
            let request = &capture.requests[first.request_id as usize];
            first.request_id == second.request_id && request.operation == "discard"
        });
        if has_several {
            self.did.push(SEVERAL_RANGES);
        } else {
            let reason = "no disk was sent several in one request".to_owned();
            self.left_out.insert(SEVERAL_RANGES, reason);
        }
    }

    /// A sector is another's than was told.
    pub(super) fn complain(&mut self, what: String) {
        self.misattributed_bytes += SECTOR as u64;
        if self.complaints.len() < COMPLAINTS_LIMIT {
            self.complaints.push(what);
        }
    }
}

/// The owner that a file of the tables stands for.
pub(super) enum Owner<'a> {
    Stamped(&'a KnownFile),
    Recorded(&'a str),
    /// Written through a mapping by SQLite.
    SharedMemory,
    Stranger,
}

impl<'a> Owner<'a> {
    fn known_file(&self) -> Option<&'a KnownFile> {
        match self {
            Owner::Stamped(known) => Some(known),
            _ => None,
        }
    }
}

/// Durable sectors that were seen, by number of the file and offset.
pub(super) type SeenSectors = BTreeSet<(u32, u64)>;

/// Compares. `nodes` are the disks, that of the filesystem first.
///
/// # Errors
/// If a device cannot be read.
pub fn check(capture: &Capture, log: &Log, nodes: &[PathBuf]) -> anyhow::Result<Verdict> {
    let mut verdict = Verdict::begin(capture, log);
    let owners = owners(capture, log);
    let last = last_writes(capture);
    let devices = open(nodes)?;
    let mut sector_bytes = [0; SECTOR];
    let mut seen = SeenSectors::new();
    for (&(disk, sector), &(run, skipped)) in &last {
        let device = devices.get(disk).with_context(|| format!("{disk} was not to be traced"))?;
        let at = sector as u64 * SECTOR as u64;
        device.read_exact_at(&mut sector_bytes, at).with_context(|| disk.to_owned())?;
        verdict.checked_bytes += SECTOR as u64;
        if run.block_type == "data" && run.file_offset_bytes.is_none() || is_copy(run) {
            seen.extend(Stamp::read(&sector_bytes).map(|stamp| (stamp.file, stamp.offset)));
        }
        let wrong = judge(run, skipped, &sector_bytes, &owners, log, &mut verdict);
        if let Some(wrong) = wrong {
            let owner = run.file_id.map_or("", |id| &capture.files[id as usize].path);
            let PageRun { block_type, block_subtype, .. } = run;
            let offset = run.file_offset_bytes.map(|offset| offset + skipped);
            let words = format!("{block_type} {block_subtype} {owner} at {offset:?}");
            verdict.complain(format!("{disk} sector {sector}, told as {words}: {wrong}"));
        }
    }
    missing(capture, log, &owners, seen, &mut verdict);
    let first = nodes.first().map(|node| name_of(node)).unwrap_or_default();
    verdict.writers = writers(capture, &last, &first);
    Ok(verdict)
}

/// The kernel's name of a disk, as in the tables.
fn name_of(node: &std::path::Path) -> String {
    node.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn open(nodes: &[PathBuf]) -> anyhow::Result<BTreeMap<String, File>> {
    let open = |node: &PathBuf| {
        let file = File::open(node).with_context(|| node.display().to_string())?;
        Ok((name_of(node), file))
    };
    nodes.iter().map(open).collect()
}

/// The bytes that were written, and those whose owner is unknown.
fn add_up(capture: &Capture, verdict: &mut Verdict) {
    for run in &capture.page_runs {
        let bytes = run.length_bytes as u64;
        if run.block_type == "unknown" {
            verdict.unknown_bytes += bytes;
        }
        let name = match capture.requests[run.request_id as usize].operation.as_ref() {
            "write" => run.block_type.as_ref(),
            "discard" => "discard",
            _ => continue,
        };
        *verdict.types.entry(name.to_owned()).or_default() += bytes;
        if name != "discard" {
            verdict.bytes += bytes;
        }
    }
}

/// Return the owner of each file of the tables.
pub(super) fn owners<'a>(capture: &'a Capture, log: &'a Log) -> Vec<Owner<'a>> {
    capture.files.iter().map(|row| owner(row, log)).collect()
}

fn owner<'a>(row: &'a rows::File, log: &'a Log) -> Owner<'a> {
    let had =
        |path: &str| row.path == path || row.path_history.contains(&format!("\"path\":\"{path}\""));
    let named = |known: &&KnownFile| {
        known.inode == row.inode as u64
            && (row.path.is_empty() || known.paths.iter().any(|path| had(path)))
    };
    match log.known.iter().find(named) {
        Some(known) => Owner::Stamped(known),
        _ if row.file_kind == "shm" => Owner::SharedMemory,
        _ if log.recorded.has(&row.path) => Owner::Recorded(&row.path),
        _ => Owner::Stranger,
    }
}

/// A file's data on its way through ext4's journal.
fn is_copy(run: &PageRun) -> bool {
    run.block_type == "fs-journal" && run.block_subtype == "copy" && run.file_id.is_some()
}

/// Zeroes of a file whose place in it the kernel does not say: ext4 writes them into the rest of a
/// small unwritten extent (ext4_issue_zeroout), where its blocks are smaller than a page or it is
/// mounted with dioread_lock.
fn is_zeroes(run: &PageRun) -> bool {
    run.block_type == "data" && run.block_subtype == "zeroes" && run.file_offset_bytes.is_none()
}

/// Return what is wrong with what was said of a sector; None if it is right.
fn judge(
    run: &PageRun,
    skipped: i64,
    sector: &[u8],
    owners: &[Owner],
    log: &Log,
    verdict: &mut Verdict,
) -> Option<String> {
    let stamp = Stamp::read(sector);
    let holds = || format!("it holds {stamp:?}");
    let owner = run.file_id.map(|id| &owners[id as usize]);
    if run.block_type != "data" {
        // A file's few bytes that are kept with the metadata may happen to lie as in a sector.
        let file = stamp?.file;
        let is_small =
            log.known.get(file as usize).is_some_and(|known| known.small_bytes.is_some());
        let of_file = matches!(owner, Some(Owner::Stamped(known)) if known.number == file);
        let is_its_copy = is_copy(run) && of_file;
        return (!is_small && !is_its_copy).then(holds);
    }
    let Some(owner) = owner else { return Some(format!("no file; {}", holds())) };
    if run.block_subtype == "compressed" {
        verdict.uncheckable_bytes += SECTOR as u64;
        return (stamp.is_some() || matches!(owner, Owner::Stranger)).then(holds);
    }
    let offset = run.file_offset_bytes.map(|offset| (offset + skipped) as u64);
    let is_placeless = owner.known_file().is_some_and(|known| known.is_placeless);
    if offset.is_none() && !is_placeless {
        verdict.offsetless_bytes += SECTOR as u64;
    }
    if is_zeroes(run) {
        let is_stranger = matches!(owner, Owner::Stranger);
        let is_zero = sector.iter().all(|&byte| byte == 0);
        return (is_stranger || !is_zero)
            .then(|| format!("not zeroes of a known file; {}", holds()));
    }
    wrong_data(owner, offset, sector, log, verdict)
}

/// Return what is wrong with a sector that was told to be of a file's data; `offset` is its place
/// there, if told.
pub(super) fn wrong_data(
    owner: &Owner,
    offset: Option<u64>,
    sector: &[u8],
    log: &Log,
    verdict: &mut Verdict,
) -> Option<String> {
    let stamp = Stamp::read(sector);
    let holds = || format!("it holds {stamp:?}");
    match owner {
        Owner::Stamped(known) => wrong_stamp(known, offset, stamp, sector),
        Owner::Recorded(path) => {
            let offset = offset?;
            (!log.recorded.had_content(path, offset, sector))
                .then(|| format!("that was never written there; {}", holds()))
        }
        Owner::SharedMemory => {
            verdict.uncheckable_bytes += SECTOR as u64;
            stamp.map(|_| holds())
        }
        Owner::Stranger => Some(format!("a file nobody wrote; {}", holds())),
    }
}

/// Return what is wrong with a sector of a stamped file's data.
fn wrong_stamp(
    known: &KnownFile,
    offset: Option<u64>,
    stamp: Option<Stamp>,
    sector: &[u8],
) -> Option<String> {
    match (stamp, offset) {
        (Some(stamp), offset)
            if stamp.file == known.number && offset.is_none_or(|at| at == stamp.offset) =>
        {
            None
        }
        (None, Some(at)) if !known.durable.contains(&at) || known.small_bytes.is_some() => {
            (sector != known.without_stamp(at)).then(|| "neither a stamp nor zeros".to_owned())
        }
        (stamp, _) => Some(format!("it holds {stamp:?}")),
    }
}

/// Durable sectors that were never told to be data of their file.
/// `seen` are those that were told without an offset.
fn missing(
    capture: &Capture,
    log: &Log,
    owners: &[Owner],
    mut seen: SeenSectors,
    verdict: &mut Verdict,
) {
    // What is compressed is not at its place: which sectors are in it cannot be told.
    let mut packed = BTreeSet::new();
    for run in capture.page_runs.iter().filter(|run| run.block_type == "data") {
        let request = &capture.requests[run.request_id as usize];
        let known = run.file_id.and_then(|id| match &owners[id as usize] {
            Owner::Stamped(known) => Some(known),
            _ => None,
        });
        let Some(known) = known.filter(|_| request.operation == "write") else { continue };
        if run.block_subtype == "compressed" {
            packed.insert(known.number);
        }
        if let Some(offset) = run.file_offset_bytes {
            let sectors = (0..run.length_bytes).step_by(SECTOR);
            seen.extend(sectors.map(|at| (known.number, (offset + at) as u64)));
        }
    }
    let is_packed = |known: &&KnownFile| packed.contains(&known.number);
    // Btrfs may keep a compressed first page with the metadata (max_inline, btrfs(5)).
    let first = if packed.is_empty() { 0 } else { INLINE_BYTES };
    let judged = log.known.iter().filter(|known| !is_packed(known));
    complain_of_missing(judged, first, &seen, verdict);
}

/// Complains of durable sectors, from an offset on, that were not seen.
pub(super) fn complain_of_missing<'a>(
    judged: impl Iterator<Item = &'a KnownFile>,
    first: u64,
    seen: &SeenSectors,
    verdict: &mut Verdict,
) {
    for known in judged.filter(|known| known.small_bytes.is_none()) {
        let durable = known.durable.range(first..);
        for offset in durable.filter(|&&at| !seen.contains(&(known.number, at))) {
            verdict.missing_bytes += SECTOR as u64;
            if verdict.complaints.len() < COMPLAINTS_LIMIT {
                let path = &known.paths[0];
                verdict.complaints.push(format!("{path} at {offset}: written, and never seen"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeroes_without_a_place_must_be_zeroes_of_a_known_file() {
        let run = PageRun {
            block_type: "data".into(),
            block_subtype: "zeroes".into(),
            file_id: Some(0),
            ..PageRun::default()
        };
        let file = tempfile::tempfile().unwrap();
        let log = Log { known: vec![KnownFile::new(0, "/a", file).unwrap()], ..Log::default() };
        let wrong = |owner: Owner, sector: &[u8]| {
            let mut verdict = Verdict::default();
            judge(&run, 0, sector, &[owner], &log, &mut verdict).is_some()
        };
        let mut stamped = [0; SECTOR];
        super::super::sectors::fill(&mut stamped, 0, 1, 0);
        let mut noise = [0; SECTOR];
        noise[SECTOR - 1] = 1;
        assert!(!wrong(Owner::Stamped(&log.known[0]), &[0; SECTOR]));
        assert!(!wrong(Owner::Recorded("/b"), &[0; SECTOR]));
        assert!(wrong(Owner::Stranger, &[0; SECTOR]));
        assert!(wrong(Owner::Stamped(&log.known[0]), &stamped));
        assert!(wrong(Owner::Recorded("/b"), &noise));
    }

    #[test]
    fn ranges_that_were_discarded_one_by_one_show_nothing() {
        let discard = rows::Request { operation: "discard".into(), ..rows::Request::default() };
        let run = |request_id| PageRun { request_id, ..PageRun::default() };
        let did = |runs: [i64; 2]| {
            let capture = Capture {
                requests: vec![discard.clone(), discard.clone()],
                page_runs: runs.map(run).to_vec(),
                ..Capture::default()
            };
            let mut verdict = Verdict::default();
            verdict.note_ranges(&capture);
            (verdict.did.len(), verdict.left_out.len())
        };
        assert_eq!((did([0, 0]), did([0, 1])), ((1, 0), (0, 1)));
    }
}
