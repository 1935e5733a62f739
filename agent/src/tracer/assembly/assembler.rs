//! Turns records into tables as they arrive: finds files, ties runs to bios and bios to the calls
//! they serve, and passes everything to the joiner. Keeps only what is in progress.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use super::raw_nand;
use super::totals::{Sums, Totals};
use crate::bpf::Symbols;
use crate::raw_nand::follower::{AttributedOperations, NamedInode, TracedOperation};
use crate::tables::rows::{self, Request};
use crate::tracer::causes::Causes;
use crate::tracer::classify::layout::Layout;
use crate::tracer::classify::{Class, RunOwner, classify};
use crate::tracer::files::file_kind::FileKinds;
use crate::tracer::files::{Files, NumberedFile};
use crate::tracer::records::decode::CountedRuns;
use crate::tracer::records::kernel::BLOCK_DEVICE_MAGIC;
use crate::tracer::records::{Bio, Record, Run};
use crate::tracer::requests::gaps::Gaps;
use crate::tracer::requests::{Joiner, TracedDisk};
use crate::tracer::surroundings::Surroundings;

/// Bios whose runs may wait for them; a run's bio comes right after it unless it was lost.
const PENDING_BIOS: usize = 1024;

/// A deadline that everything is before.
pub const NEVER_NS: u64 = i64::MAX as u64;

/// The state of a tracing under way.
pub struct Assembler {
    /// Runs whose bio did not come yet, by its serial.
    pending: BTreeMap<u64, Vec<Run>>,
    /// Runs whose bio never came.
    orphans: u64,
    /// The layout of each device: the disk or a partition of it.
    layouts: BTreeMap<u32, Layout>,
    surroundings: Surroundings,
    files: Files,
    causes: Causes,
    joiner: Joiner,
    sequence: Sequence,
    sums: Sums,
    /// Operations of raw NAND that were not fed yet.
    operations: VecDeque<TracedOperation>,
    /// The files and directories that those are of.
    inodes: Vec<NamedInode>,
    /// Number (s_dev) of the filesystem on it.
    on_raw_nand: u32,
}

impl Assembler {
    /// Begins with disks by number. `surroundings` are asked for the layout of each device once,
    /// and again when a filesystem appears; so for the mounts. `settled_ns`: see Joiner::new.
    pub fn new(
        disks: &BTreeMap<u32, TracedDisk>,
        surroundings: Surroundings,
        kinds: Rc<FileKinds>,
        settled_ns: u64,
    ) -> Self {
        Assembler {
            pending: BTreeMap::new(),
            orphans: 0,
            layouts: BTreeMap::new(),
            surroundings,
            files: Files::with_kinds(kinds),
            causes: Causes::new(disks.keys().copied().collect(), surroundings),
            joiner: Joiner::new(disks.clone(), settled_ns),
            sequence: Sequence::default(),
            sums: Sums::default(),
            operations: VecDeque::new(),
            inodes: Vec::new(),
            on_raw_nand: 0,
        }
    }

    /// There is a filesystem on raw NAND of this name.
    pub fn learn_raw_nand(&mut self, name: &str, filesystem: u32) {
        self.on_raw_nand = filesystem;
        self.joiner.add_raw_nand(name);
        self.learn(filesystem);
    }

    /// Add what raw NAND did while it was traced: each operation is fed before the records of later
    /// times.
    pub fn add_operations(&mut self, told: AttributedOperations) {
        self.operations.extend(told.operations);
        self.inodes.extend(told.inodes);
    }

    fn feed_operations(&mut self, until_ns: u64) {
        while self.operations.front().is_some_and(|it| it.operation.queue_ns < until_ns) {
            let operation = self.operations.pop_front().expect("there is one");
            let (bio, runs) = raw_nand::bio_and_runs(&operation, self.on_raw_nand);
            let cause = self.causes.cause(&bio, &runs);
            self.joiner.operate(&operation.operation, bio, runs, cause);
        }
    }

    /// Something was mounted or unmounted.
    pub fn read_mounts(&mut self) {
        self.causes.read_mounts();
    }

    /// Takes one record, in the order of the ring.
    pub fn feed(&mut self, record: Record, symbols: &Symbols) {
        if !self.operations.is_empty() {
            self.feed_operations(record.time_ns());
        }
        match record {
            Record::Run(run) => self.keep(run),
            Record::Bio(bio, last_run) => self.queue(bio, last_run, symbols),
            Record::Path(path) => {
                self.files.see_path(&path);
                self.causes.see_path(&path);
            }
            Record::SyncBegin(sync) => {
                let here = self.causes.is_here(&sync);
                if sync.inode > 0 {
                    self.files.see_sync(&sync, here);
                }
                if here && sync.filesystem > 0 {
                    self.learn(sync.filesystem);
                }
                self.causes.begin(sync);
            }
            Record::Change(change) => self.causes.change(&change),
            Record::Name(name) => {
                let time_ns = name.time_ns;
                for effect in self.causes.name(name) {
                    self.files.see_effect(&effect, time_ns);
                }
            }
            Record::SyncEnd(sync) => self.causes.end(&sync),
            Record::SyncWorker(sync) => self.causes.begin_work(&sync),
            Record::Issue(request) => self.joiner.issue(&request),
            Record::Complete(request) => self.joiner.complete(&request),
            Record::BioEnd(end) => self.joiner.end_bio(&end),
            Record::Range(range) => self.joiner.add_range(range),
            Record::Commit(commit) => self.causes.commit(&commit),
            Record::Waits(call) => self.causes.wait(&call),
        }
    }

    fn keep(&mut self, run: Run) {
        self.pending.entry(run.serial).or_default().push(run);
        if self.pending.len() > PENDING_BIOS {
            let (_, runs) = self.pending.pop_first().expect("there are many");
            self.orphans += runs.len() as u64;
        }
    }

    fn queue(&mut self, bio: Bio, last_run: Option<Run>, symbols: &Symbols) {
        let mut runs = self.pending.remove(&bio.serial).unwrap_or_default();
        runs.extend(last_run);
        for run in runs.iter().filter(|run| run.magic != BLOCK_DEVICE_MAGIC) {
            if let Some(filesystem) = run.filesystem_known() {
                self.learn(filesystem);
            }
        }
        let runs = fill_gaps(runs, bio.serial, bio.length_bytes);
        let device = bio.partition_device;
        let layout =
            self.layouts.entry(device).or_insert_with(|| (self.surroundings.read_layout)(device));
        let classify = |run: Run| {
            let class = classify(&bio, &run, symbols, layout);
            (run, class)
        };
        let runs: Vec<(Run, Class)> = runs.into_iter().map(classify).collect();
        for (run, _) in runs.iter().filter(|(_, class)| class.owner == RunOwner::Inode) {
            self.files.see_run(run, bio.time_ns);
        }
        for (run, class) in &runs {
            self.sums.add(&bio, class, run.length_bytes);
        }
        let cause = self.causes.cause(&bio, &runs);
        self.joiner.queue(bio, runs, cause);
    }

    /// The sums of all bios, those among them that were counted without records.
    pub fn totals(&mut self, counted: &[CountedRuns], symbols: &Symbols) -> Totals {
        for each in counted {
            let device = each.bio.partition_device;
            let layout = self
                .layouts
                .entry(device)
                .or_insert_with(|| (self.surroundings.read_layout)(device));
            let class = classify(&each.bio, &each.run, symbols, layout);
            self.sums.add_counted(each, &class, &self.files);
        }
        self.sums.totals(|device| self.joiner.name_of(device))
    }

    /// A filesystem is on a traced disk. What is new may have been made just now, so that the
    /// layouts read before are another's.
    fn learn(&mut self, filesystem: u32) {
        if self.causes.learn(filesystem) {
            self.files.see_filesystem(filesystem);
            self.layouts.clear();
            self.causes.read_mounts();
        }
    }

    /// The join under way.
    pub fn joiner(&mut self) -> &mut Joiner {
        &mut self.joiner
    }

    /// No bio that is queued from this time on will come: what was queued may still be issued and
    /// completed.
    pub fn end(&mut self, time_ns: u64) {
        self.joiner.end(time_ns);
    }

    /// Every bio seen was issued and is complete.
    pub fn is_idle(&self) -> bool {
        self.joiner.is_idle()
    }

    /// Requests that are kept until they are complete and taken.
    pub fn waiting_requests(&self) -> usize {
        self.joiner.waiting_requests()
    }

    /// The rows that are finished; what began before `deadline_ns` is not waited for.
    pub fn take_finished(&mut self, deadline_ns: u64) -> FinishedRows {
        let drafts = self.joiner.take_drafts(deadline_ns);
        // As many runs as requests, or hardly more: rows are large, and growing copies them.
        let mut finished = FinishedRows {
            requests: Vec::with_capacity(drafts.len()),
            page_runs: Vec::with_capacity(drafts.len()),
        };
        let mut kinds = BTreeMap::new();
        for draft in drafts {
            let mut request = draft.into_rows(&self.files, &mut kinds, &mut finished.page_runs);
            self.sequence.mark(&mut request);
            finished.requests.push(request);
        }
        finished
    }

    /// The files seen.
    pub fn files(&mut self) -> &mut Files {
        &mut self.files
    }

    /// Return what was seen and not tied up so far.
    pub fn gaps(&self) -> Gaps {
        Gaps {
            unmatched_names: self.causes.unmatched_names(),
            dropped_changes: self.causes.dropped_changes(),
            forgotten_files: self.files.forgotten(),
            ..self.joiner.gaps()
        }
    }

    /// Runs whose bio was lost, so far.
    pub fn orphans(&self) -> u64 {
        self.orphans
    }

    /// Everything that is left, as whole tables.
    pub fn finish(mut self, lost_events: u64) -> Capture {
        let first_ns = self.operations.front().map_or(0, |it| it.operation.queue_ns);
        self.feed_operations(NEVER_NS);
        // Calls tell more of a file than the filesystem's own entries, and earlier.
        for inode in std::mem::take(&mut self.inodes) {
            let is_directory = inode.is_directory;
            let file =
                NumberedFile { filesystem: self.on_raw_nand, inode: inode.inode, is_directory };
            self.files.see_numbered(file, &inode.path, first_ns);
        }
        let FinishedRows { requests, page_runs } = self.take_finished(NEVER_NS);
        let left: usize = self.pending.values().map(Vec::len).sum();
        let lost_events = lost_events + self.orphans + left as u64;
        let files = self.files.rows();
        Capture { requests, page_runs, files, lost_events, gaps: self.gaps() }
    }
}

/// Tables of one tracing, and what is missing from them.
#[derive(Debug, Default)]
pub struct Capture {
    /// In order of issue.
    pub requests: Vec<rows::Request>,
    pub page_runs: Vec<rows::PageRun>,
    pub files: Vec<rows::File>,
    /// Records that did not fit in the ring, and runs whose bio's record did not.
    pub lost_events: u64,
    pub gaps: Gaps,
}

/// Rows that are finished.
#[derive(Debug, Default)]
pub struct FinishedRows {
    pub requests: Vec<rows::Request>,
    pub page_runs: Vec<rows::PageRun>,
}

impl FinishedRows {
    /// The requests, each with its page runs; both are in the order of the requests.
    pub fn requests_with_runs(&self) -> impl Iterator<Item = (&rows::Request, &[rows::PageRun])> {
        let mut runs = self.page_runs.as_slice();
        self.requests.iter().map(move |request| {
            let first = runs.partition_point(|run| run.request_id < request.request_id);
            let count = runs[first..].partition_point(|run| run.request_id == request.request_id);
            let (own, rest) = runs[first..].split_at(count);
            runs = rest;
            (request, own)
        })
    }
}

/// The runs of a bio, some of which may have been lost, as runs that cover it whole: in order, and
/// where one was lost, a run without facts stands in, which no rule knows.
fn fill_gaps(mut runs: Vec<Run>, serial: u64, length_bytes: u32) -> Vec<Run> {
    if let [run] = runs.as_slice()
        && (run.offset_bytes, run.length_bytes) == (0, length_bytes)
    {
        return runs;
    }
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

const SECTOR_BYTES: i64 = 512;

/// Finds the sequential reads and writes: those that begin where their device's last one ended.
/// `ends` has that place by the device's name; None where it is not known.
#[derive(Default)]
struct Sequence {
    ends: BTreeMap<String, Option<i64>>,
}

impl Sequence {
    /// Fills `sequential`; requests come in the order of issue.
    fn mark(&mut self, request: &mut Request) {
        if !matches!(request.operation.as_ref(), "read" | "write") {
            return;
        }
        let sectors = (request.length_bytes + SECTOR_BYTES - 1) / SECTOR_BYTES;
        let end = request.sector.map(|sector| sector + sectors);
        if let Some(last) = self.ends.get_mut(&request.device) {
            request.sequential = last.is_some() && *last == request.sector;
            *last = end;
        } else {
            self.ends.insert(request.device.clone(), end);
        }
    }
}

#[cfg(test)]
#[path = "assembler_test.rs"]
mod tests;
