//! Makes tables of a ring buffer's bytes: finds the files, ties runs to bios, bios to the calls
//! they serve, and hands all to the joiner. Works when the tracing is over, on memory only.

use std::collections::{BTreeMap, BTreeSet};

use super::causes::Causes;
use super::classify::{Class, Owner, classify};
use super::files::{Files, change_key, path_key, run_key, sync_key};
use super::kernel::BLOCK_DEVICE_MAGIC;
use super::layout::Layout;
use super::record::{Bio, Change, DecodeError, Name, Path, Record, Request, Run, Sync, decode};
use super::requests::{Gaps, Joiner};
use super::symbols::Symbols;
use crate::trace::rows;

/// Tables of one tracing, and what is missing from them.
#[derive(Debug, Default)]
pub struct Capture {
    /// In order of issue.
    pub requests: Vec<rows::Request>,
    pub page_runs: Vec<rows::PageRun>,
    pub files: Vec<rows::File>,
    /// Records that did not fit in the ring buffer, and runs whose bio's record did not.
    pub lost_events: u64,
    pub gaps: Gaps,
}

enum Event {
    Queue(Bio, Vec<(Run, Class)>),
    Path(Path),
    SyncBegin(Sync),
    SyncEnd(Sync),
    Issue(Request),
    Complete(Request),
    Change(Change),
    Name(Name),
}

/// What surrounds the records: the disk they are of.
pub struct Surroundings<'a> {
    /// Number of the whole disk; its name as in /sys/block.
    pub disk: u32,
    pub name: &'a str,
    pub symbols: &'a Symbols,
    pub layouts: &'a BTreeMap<u32, Layout>,
    /// Text of /proc/self/mountinfo.
    pub mounts: &'a str,
}

/// Decodes a sequence of (length u32, record) as the tracer collects them.
///
/// # Errors
/// If a record is cut off, or is none that event.h knows.
pub fn decode_all(bytes: &[u8]) -> Result<Vec<Record>, DecodeError> {
    let mut records = Vec::new();
    let mut rest = bytes;
    while let Some((length, after)) = rest.split_first_chunk::<4>() {
        let length = u32::from_le_bytes(*length) as usize;
        let Some((record, after)) = after.split_at_checked(length) else {
            return Err(DecodeError::Short { kind: 0, actual: after.len(), expected: length });
        };
        records.push(decode(record)?);
        rest = after;
    }
    Ok(records)
}

/// Device numbers of the partitions (or the whole disk) that bios went to.
pub fn partitions(records: &[Record]) -> BTreeSet<u32> {
    let partition = |record: &Record| match record {
        Record::Bio(bio) => Some(bio.partition_device),
        _ => None,
    };
    records.iter().filter_map(partition).collect()
}

/// Builds the tables.
pub fn build(records: Vec<Record>, lost_events: u64, around: &Surroundings) -> Capture {
    let filesystems = filesystems(&records, around.disk);
    let (events, orphans) = gather(records, around);
    let files = find_files(&events, &filesystems);
    let mut causes = Causes::new(BTreeSet::from([around.disk]));
    causes.set_mounts(around.mounts);
    filesystems.iter().for_each(|&filesystem| _ = causes.learn(filesystem));
    let mut joiner = Joiner::new(around.name, &files);
    for event in events {
        match event {
            Event::Queue(bio, runs) => {
                let cause = causes.of(&bio, &runs);
                joiner.queue(bio, runs, cause);
            }
            Event::SyncBegin(sync) if causes.is_here(&sync) => causes.begin(sync),
            Event::SyncBegin(_) => {}
            Event::SyncEnd(sync) => causes.end(sync.tid),
            Event::Change(change) => causes.change(&change),
            Event::Name(name) => causes.name(&name),
            Event::Issue(request) => joiner.issue(&request),
            Event::Complete(request) => joiner.complete(&request),
            Event::Path(path) => causes.see_path(&path),
        }
    }
    let (requests, page_runs, gaps) = joiner.finish();
    let lost_events = lost_events + orphans;
    Capture { requests, page_runs, files: files.rows(), lost_events, gaps }
}

/// Ties runs, which come first, to their bio, and says what they are. Also gives how many runs
/// are left whose bio was lost.
fn gather(records: Vec<Record>, around: &Surroundings) -> (Vec<Event>, u64) {
    let no_layout = Layout::default();
    let mut pending: BTreeMap<u64, Vec<Run>> = BTreeMap::new();
    let mut events = Vec::with_capacity(records.len());
    for record in records {
        events.push(match record {
            Record::Run(run) => {
                pending.entry(run.serial).or_default().push(run);
                continue;
            }
            Record::Bio(bio) => {
                let layout = around.layouts.get(&bio.partition_device).unwrap_or(&no_layout);
                let runs = pending.remove(&bio.serial).unwrap_or_default();
                let runs = fill_gaps(runs, bio.serial, bio.length_bytes);
                let classify = |run: Run| {
                    let class = classify(&bio, &run, around.symbols, layout);
                    (run, class)
                };
                let runs = runs.into_iter().map(classify).collect();
                Event::Queue(bio, runs)
            }
            Record::Change(change) => Event::Change(change),
            Record::Name(name) => Event::Name(name),
            Record::Path(path) => Event::Path(path),
            Record::SyncBegin(sync) => Event::SyncBegin(sync),
            Record::SyncEnd(sync) => Event::SyncEnd(sync),
            Record::Issue(request) => Event::Issue(request),
            Record::Complete(request) => Event::Complete(request),
        });
    }
    (events, pending.values().map(|runs| runs.len() as u64).sum())
}

/// Runs in order that cover the whole bio; where one was lost, a run without facts stands in,
/// which no rule knows.
fn fill_gaps(mut runs: Vec<Run>, serial: u64, length_bytes: u32) -> Vec<Run> {
    runs.sort_by_key(|run| run.offset_bytes);
    let mut filled = Vec::with_capacity(runs.len());
    let mut covered = 0;
    let gap = |from: u32, to: u32| Run {
        serial,
        offset_bytes: from,
        length_bytes: to - from,
        ..Run::default()
    };
    for run in runs {
        if run.offset_bytes > covered {
            filled.push(gap(covered, run.offset_bytes));
        }
        covered = run.offset_bytes.saturating_add(run.length_bytes);
        filled.push(run);
    }
    if covered < length_bytes {
        filled.push(gap(covered, length_bytes));
    }
    filled
}

/// s_dev of the filesystems on the disk: those whose pages went there, or that name it.
fn filesystems(records: &[Record], disk: u32) -> BTreeSet<u32> {
    let filesystem = |record: &Record| match record {
        Record::Run(run) if run.inode > 0 && run.magic != BLOCK_DEVICE_MAGIC => {
            Some(run.filesystem)
        }
        Record::Path(path) if path.disk == disk => Some(path.filesystem),
        _ => None,
    };
    records.iter().filter_map(filesystem).collect()
}

/// The stories of the files that data, metadata or a sync call is about. An inode that only the
/// filesystem knows (a table kept as a file) is none.
fn find_files(events: &[Event], filesystems: &BTreeSet<u32>) -> Files {
    let mut wanted = BTreeSet::new();
    for event in events {
        match event {
            Event::Queue(_, runs) => wanted.extend(owners(runs).map(run_key)),
            Event::SyncBegin(sync) if sync.inode > 0 => _ = wanted.insert(sync_key(sync)),
            Event::Change(change) => _ = wanted.insert(change_key(change)),
            _ => {}
        }
    }
    wanted.retain(|key| filesystems.contains(&key.filesystem));
    let mut files = Files::default();
    for event in events {
        match event {
            Event::Path(path) if wanted.contains(&path_key(path)) => files.see_path(path),
            Event::SyncBegin(sync) if wanted.contains(&sync_key(sync)) => files.see_sync(sync),
            Event::Change(change) if wanted.contains(&change_key(change)) => {
                files.see_change(change);
            }
            Event::Queue(bio, runs) => {
                let here = owners(runs).filter(|run| wanted.contains(&run_key(run)));
                here.for_each(|run| files.see_run(run, bio.time_ns));
            }
            _ => {}
        }
    }
    files
}

fn owners(runs: &[(Run, Class)]) -> impl Iterator<Item = &Run> {
    runs.iter().filter(|(_, class)| class.owner == Owner::Inode).map(|(run, _)| run)
}

#[cfg(test)]
#[path = "capture_test.rs"]
mod tests;
