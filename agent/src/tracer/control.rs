//! Traces disks. Controls the BPF programs and turns their records into tables. It has no thread of
//! its own: before the ring is full, the caller must call `drain` (whole tables at the end) or
//! `digest` and `take_finished` (rows as they come, indefinitely).
//!
//! Load early: on an emulated processor the verifier and the search through BTF take seconds. The
//! programs are attached at once and send nothing until `start`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::rc::Rc;
use std::time::{Duration, Instant};

use crate::bpf::{BpfError, Symbols, SymbolsError, split_records};
use crate::device::disk::MODULES;
use crate::device::layers::Layer;
use crate::device::{counters, sysfs};
use crate::raw_nand::follower::AttributedOperations;
use crate::tables::rows;
use crate::tables::timeline::now_ns;
use crate::tracer::assembly::{Assembler, Capture, FinishedRows, NEVER_NS, Totals};
use crate::tracer::files::Files;
use crate::tracer::files::file_kind::FileKinds;
use crate::tracer::program::{Attribution, AttributionError, TracerState, functions};
use crate::tracer::records::decode::{CountedRuns, DecodeError, decode};
use crate::tracer::requests::TracedDisk;
use crate::tracer::requests::completions::{Completions, Span};
use crate::tracer::requests::gaps::Gaps;
use crate::tracer::surroundings::{MountWatch, Surroundings};

/// Requests issued this soon after the begin may be of bios queued before it.
const SETTLED_NS: u64 = 2_000_000_000;

/// The time after which what is not issued or complete has got lost.
const LATE_NS: u64 = 60_000_000_000;

/// A request that takes so long is asked about, as often as that.
const OVERDUE_NS: u64 = 1_000_000_000;

/// The time for which a tracing waits at its end for what is still queued, or not yet complete.
const REST: Duration = Duration::from_secs(2);

/// The part of `REST` after which what is not complete is asked about too.
const OVERDUE_PART: Duration = Duration::from_millis(50);

/// The time within which a disk must say that it has what was not seen to complete.
const UNDER_WAY: Duration = Duration::from_millis(100);

/// Pieces of records, a MiB each, that `digest` ties up at a time at most: some 20,000 requests.
const PIECES: usize = 8;

/// Files that are kept in memory: some 60 MB.
const FILES_LIMIT: usize = 131_072;

/// The programs in the kernel, and what is needed to make tables of what they send.
pub struct Tracer {
    program: Attribution,
    ring_bytes: usize,
    /// Files that are kept in memory, some 450 bytes each.
    pub files_kept: usize,
    symbols: Symbols,
    /// /proc/modules when the symbols were read.
    modules: String,
    /// The kinds of files by this table, from the next `start` on.
    pub kinds: Rc<FileKinds>,
    /// The assembler of the tracing under way.
    assembler: Option<Assembler>,
    mounts: Option<MountWatch>,
    given_up: bool,
    /// Records lost up to the last `finish`.
    lost_before: u64,
    /// Program runs skipped by the kernel up to the last `start`, and up to the end of the tracing.
    skipped_before: u64,
    skipped_end: Option<u64>,
    /// The time of the last question about requests that take long.
    asked_ns: u64,
    totals_alone: bool,
    /// Bios counted, and runs that were not, up to the last `start`.
    counted_before: u64,
    uncounted_before: u64,
}

impl Tracer {
    /// Loads and attaches the programs. `ring_bytes` is a power of two. The modules of the
    /// filesystems to be traced must be in: the layout of their structures is looked up now.
    ///
    /// # Errors
    /// If the kernel refuses the programs, or hides its addresses.
    pub fn load(ring_bytes: u32) -> Result<Self, TracerError> {
        let (modules, symbols) = (loaded_modules(), functions::read()?);
        let program = Attribution::load(ring_bytes, &symbols)?;
        Ok(Tracer {
            program,
            ring_bytes: ring_bytes as usize,
            files_kept: FILES_LIMIT,
            symbols,
            modules,
            kinds: Rc::default(),
            assembler: None,
            mounts: None,
            given_up: false,
            lost_before: 0,
            skipped_before: 0,
            skipped_end: None,
            asked_ns: 0,
            totals_alone: false,
            counted_before: 0,
            uncounted_before: 0,
        })
    }

    /// Begins to trace disks at rest: the numbers of whole disks, not of partitions.
    ///
    /// # Errors
    /// If there is no such disk, or a module came since, and the kernel's addresses cannot be
    /// read again.
    pub fn start(&mut self, disks: &[u32]) -> Result<(), TracerError> {
        self.start_at(disks, 0)
    }

    /// Begins to trace a filesystem on raw NAND at rest, by its number (s_dev). There are no
    /// requests: `add_operations` gives what the NAND did.
    ///
    /// # Errors
    /// As `start`.
    pub fn start_raw_nand(&mut self, name: &str, filesystem: u32) -> Result<(), TracerError> {
        self.start_at(&[], 0)?;
        self.assembler.iter_mut().for_each(|it| it.learn_raw_nand(name, filesystem));
        Ok(())
    }

    /// Add what raw NAND did while it was traced, in order; before `finish`.
    pub fn add_operations(&mut self, told: AttributedOperations) {
        if let Some(assembler) = &mut self.assembler {
            assembler.add_operations(told);
        }
    }

    /// Begins to trace disks that others use. The ring is emptied by a thread of its own, unless
    /// more than `backlog_bytes` wait for `digest`. With `totals_alone`, there will be no rows.
    ///
    /// # Errors
    /// As `start`, and if there can be no thread.
    pub fn start_live(
        &mut self,
        disks: &[u32],
        backlog_bytes: usize,
        totals_alone: bool,
    ) -> Result<(), TracerError> {
        self.program.collect_by_itself(backlog_bytes)?;
        self.totals_alone = totals_alone;
        self.start_at(disks, now_ns() as u64 + SETTLED_NS)
    }

    fn start_at(&mut self, disks: &[u32], settled_ns: u64) -> Result<(), TracerError> {
        let known = |disk: &u32| Ok((*disk, known_disk(*disk)?));
        let known: BTreeMap<u32, TracedDisk> =
            disks.iter().map(known).collect::<Result<_, TracerError>>()?;
        self.notice_modules()?;
        let kinds = self.kinds.clone();
        self.mounts = MountWatch::new();
        self.assembler = Some(Assembler::new(&known, Surroundings::here(), kinds, settled_ns));
        self.skipped_before = self.program.skipped_runs()?;
        self.skipped_end = None;
        self.counted_before = self.program.counted_bios();
        self.uncounted_before = self.program.uncounted_runs();
        self.program.switch_on(disks, self.totals_alone)?;
        Ok(())
    }

    /// Looks the kernel's functions up again if a module came or went.
    ///
    /// # Errors
    /// If the kernel's addresses cannot be read again.
    pub fn notice_modules(&mut self) -> Result<(), TracerError> {
        let modules = loaded_modules();
        if modules != self.modules {
            self.modules = modules;
            self.symbols = functions::read()?;
            self.program.set_addresses(&self.symbols);
        }
        Ok(())
    }

    /// More than half of the ring is full: `drain` before the next piece of work.
    pub fn is_half_full(&self) -> bool {
        self.program.waiting_bytes() > self.ring_bytes / 2
    }

    /// Bytes of records that were not processed yet.
    pub fn backlog_bytes(&self) -> usize {
        self.program.waiting_bytes() + self.program.collected_bytes()
    }

    /// Moves the records out of the ring.
    pub fn drain(&mut self) {
        self.program.collect();
    }

    /// Moves the records out of the ring, and ties some of them up, until `enough` requests wait
    /// to be taken, or too many files are there; gives how many wait.
    ///
    /// # Errors
    /// If a record is damaged.
    pub fn digest(&mut self, enough: usize) -> Result<usize, TracerError> {
        // What is left is what the thread that empties the ring has a limit for.
        if self.program.collected_bytes() == 0 {
            self.drain();
        }
        for _ in 0..PIECES {
            let is_enough = self.feed()?.is_none_or(|kept| kept >= enough);
            if is_enough || self.is_crowded() {
                break;
            }
        }
        let now_ns = now_ns() as u64;
        if now_ns - self.asked_ns >= OVERDUE_NS && self.backlog_bytes() == 0 {
            self.asked_ns = now_ns;
            self.ask(now_ns - OVERDUE_NS)?;
        }
        Ok(self.assembler.as_ref().map_or(0, Assembler::waiting_requests))
    }

    /// Ties up a piece of what was moved out of the ring; gives how many requests wait to be taken
    /// then, and None where there was no piece.
    fn feed(&mut self) -> Result<Option<usize>, TracerError> {
        let Some(bytes) = self.program.take_piece() else { return Ok(None) };
        let Some(assembler) = &mut self.assembler else { return Ok(Some(0)) };
        if self.mounts.as_ref().is_some_and(MountWatch::is_changed) {
            assembler.read_mounts();
        }
        for record in split_records(&bytes) {
            assembler.feed(decode(record.map_err(DecodeError::Part)?)?, &self.symbols);
        }
        Ok(Some(assembler.waiting_requests()))
    }

    fn feed_all(&mut self) -> Result<(), TracerError> {
        self.drain();
        while self.feed()?.is_some() {}
        Ok(())
    }

    /// The rows that are finished, and those of files that are forgotten now.
    pub fn take_finished(&mut self) -> (FinishedRows, Vec<rows::File>) {
        let Some(assembler) = &mut self.assembler else { return Default::default() };
        let late_ns = (now_ns() as u64).saturating_sub(LATE_NS);
        let finished = assembler.take_finished(if self.given_up { NEVER_NS } else { late_ns });
        let crowded = assembler.files().count() > self.files_kept;
        let gone = if crowded { assembler.files().let_go() } else { Vec::new() };
        (finished, gone)
    }

    /// More files are kept than should be: it is time to `take_finished`.
    pub fn is_crowded(&mut self) -> bool {
        self.assembler.as_mut().is_some_and(|it| it.files().count() > self.files_kept)
    }

    /// Asks the kernel about requests that were issued before a time and not seen to complete.
    fn ask(&mut self, before_ns: u64) -> Result<(), TracerError> {
        let Some(assembler) = &mut self.assembler else { return Ok(()) };
        // Of those nobody holds any more.
        let mut free = assembler.joiner().overdue(before_ns);
        free.retain(|it| self.program.is_request_free(it.address));
        if !free.is_empty() {
            // One that completed just now was seen to, and its record came before it was free.
            self.feed_all()?;
        }
        let Some(assembler) = &mut self.assembler else { return Ok(()) };
        free.into_iter().for_each(|it| assembler.joiner().end_unseen(it));
        Ok(())
    }

    /// Takes no new bio from now on; what is in the ring is to be digested.
    pub fn end(&mut self) {
        // Before the switch: a request of a bio that is queued after it is issued later still.
        let now_ns = now_ns() as u64;
        self.program.set_state(TracerState::Ending);
        self.assembler.iter_mut().for_each(|it| it.end(now_ns));
    }

    /// Takes no new bio, and waits for those under way to be complete.
    ///
    /// # Errors
    /// As `digest`.
    pub fn rest(&mut self) -> Result<(), TracerError> {
        self.end();
        self.feed_all()?;
        let begin = Instant::now();
        while begin.elapsed() < REST && self.assembler.as_ref().is_some_and(|a| !a.is_idle()) {
            std::thread::sleep(Duration::from_millis(5));
            self.feed_all()?;
            if begin.elapsed() > OVERDUE_PART {
                self.ask(now_ns() as u64)?;
            }
        }
        self.assembler.iter_mut().for_each(believe_disks);
        if self.assembler.as_ref().is_some_and(Assembler::is_idle) {
            // What is written may yet be flushed; later the address of its bio is another's.
            std::thread::sleep(Duration::from_millis(5));
            self.feed_all()?;
            self.assembler.iter_mut().for_each(|it| it.joiner().forget_flush_askers());
        }
        self.end_skipping()
    }

    /// The disks' own counters were read meanwhile, before anything was digested.
    pub fn begin_counting(&mut self, read: Span) {
        self.assembler.iter_mut().for_each(|it| it.joiner().completions().begin(read));
    }

    /// They were read again meanwhile; gives what was seen to complete between.
    ///
    /// # Errors
    /// As `digest`.
    pub fn end_counting(&mut self, read: Span) -> Result<Option<&Completions>, TracerError> {
        self.assembler.iter_mut().for_each(|it| it.joiner().completions().end(read));
        self.feed_all()?;
        Ok(self.assembler.as_mut().map(|it| &*it.joiner().completions()))
    }

    /// Tells what is under way at the end from what was lost, after the disks' counters were read
    /// again; `agreeing` are disks that counted just what was seen to complete.
    ///
    /// # Errors
    /// As `digest`.
    pub fn leave_under_way(&mut self, agreeing: BTreeSet<u32>) -> Result<(), TracerError> {
        let begin = Instant::now();
        loop {
            self.ask(now_ns() as u64)?;
            let Some(assembler) = &mut self.assembler else { return Ok(()) };
            let in_flight = |disk: u32| (disk, counters::in_flight(&sysfs::device_folder(disk)));
            let disks: Vec<_> =
                assembler.joiner().busy_disks().into_iter().map(in_flight).collect();
            // What was complete when they were counted is told by now.
            self.feed_all()?;
            let Some(assembler) = &mut self.assembler else { return Ok(()) };
            let joiner = assembler.joiner();
            disks.iter().for_each(|&(disk, count)| joiner.leave_under_way(disk, count));
            if joiner.busy_disks().is_empty() || begin.elapsed() > UNDER_WAY {
                joiner.leave_waiting(&agreeing);
                return Ok(());
            }
            // A request leaves the count a moment before its completion is told.
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Wait no longer for what is still under way: the next `take_finished` takes everything.
    pub fn give_up(&mut self) {
        self.given_up = true;
    }

    /// The files of the tables that are in memory.
    pub fn files(&mut self) -> Option<&mut Files> {
        self.assembler.as_mut().map(Assembler::files)
    }

    /// Events lost, and other gaps, of the tracing under way so far.
    ///
    /// # Errors
    /// If the kernel does not report which programs it skipped.
    pub fn missing(&self) -> Result<(u64, Gaps), TracerError> {
        let skipped_runs = self.skipped_runs()?;
        let lost = self.program.lost_records().saturating_sub(self.lost_before) + skipped_runs;
        let Some(assembler) = &self.assembler else {
            return Ok((lost, Gaps { skipped_runs, ..Gaps::default() }));
        };
        Ok((lost + assembler.orphans(), Gaps { skipped_runs, ..assembler.gaps() }))
    }

    /// The sums of all bios, at the end of the tracing.
    ///
    /// # Errors
    /// If the kernel does not hand them out.
    pub fn totals(&mut self) -> Result<Totals, TracerError> {
        let sums = self.program.sums()?;
        let counted: Vec<CountedRuns> = sums
            .iter()
            .map(|(key, [runs, bytes])| CountedRuns::decode(key, *runs, *bytes))
            .collect();
        let uncounted =
            self.program.uncounted_runs() - self.uncounted_before + self.skipped_runs()?;
        let Some(assembler) = &mut self.assembler else { return Ok(Totals::default()) };
        let totals = assembler.totals(&counted, &self.symbols);
        let bios_without_rows = self.program.counted_bios() - self.counted_before;
        Ok(Totals { exact: uncounted == 0, bios_without_rows, ..totals })
    }

    fn skipped_runs(&self) -> Result<u64, TracerError> {
        let now = self.skipped_end.map_or_else(|| self.program.skipped_runs(), Ok)?;
        Ok(now.saturating_sub(self.skipped_before))
    }

    /// End the count of skipped runs: what the programs miss from now on, switched off, is no loss.
    fn end_skipping(&mut self) -> Result<(), TracerError> {
        if self.skipped_end.is_none() {
            self.skipped_end = Some(self.program.skipped_runs()?);
        }
        Ok(())
    }

    /// Ends the tracing; what was recorded stays to be read.
    pub fn stop(&mut self) {
        self.program.set_state(TracerState::Off);
    }

    /// Stops, and makes tables of all that was recorded since the last `finish` and not taken.
    ///
    /// # Errors
    /// If a record is damaged.
    pub fn finish(&mut self) -> Result<Capture, TracerError> {
        self.stop();
        self.end_skipping()?;
        self.feed_all()?;
        let lost = self.program.lost_records();
        let skipped_runs = self.skipped_runs()?;
        let lost_events = lost - std::mem::replace(&mut self.lost_before, lost) + skipped_runs;
        let assembler = self.assembler.take();
        let mut capture = assembler.map(|it| it.finish(lost_events)).unwrap_or_default();
        capture.gaps.skipped_runs = skipped_runs;
        Ok(capture)
    }
}

/// A disk that has nothing to do is done with what we saw issued: the only other witness of a
/// driver that takes bios.
fn believe_disks(assembler: &mut Assembler) {
    for disk in assembler.joiner().busy_disks() {
        if counters::is_at_rest(&sysfs::device_folder(disk)) {
            assembler.joiner().end_all_unseen(disk);
        }
    }
}

/// A text that is another one when a module came, went or is ready now. Empty in a kernel without
/// modules.
fn loaded_modules() -> String {
    names_and_addresses(&fs::read_to_string("/proc/modules").unwrap_or_default())
}

/// Return what tells in /proc/modules of a module that came, went or is ready now. Its other fields
/// change with every mount: who uses a module, and how many do. The lab's own modules, of which a
/// case inserts one, have none of the wanted functions: to read the 116,000 symbols of Debian's 6.1
/// anew took 350 of the 830 million instructions of a case of 200 commits (bench/README.md).
fn names_and_addresses(modules: &str) -> String {
    let is_ours = |line: &&str| line.split(' ').next().is_some_and(|it| MODULES.contains(&it));
    let fields = |line: &str| {
        let fields: Vec<&str> = line.split(' ').collect();
        let field = |place: usize| fields.get(place).copied().unwrap_or_default();
        format!("{} {} {}\n", field(0), field(4), field(5))
    };
    modules.lines().filter(|line| !is_ours(line)).map(fields).collect()
}

/// The disk's name, and whether its driver takes bios.
fn known_disk(disk: u32) -> Result<TracedDisk, TracerError> {
    let folder = sysfs::device_folder(disk);
    let name = sysfs::device_name(disk)
        .map_err(|source| TracerError::Disk { path: folder.display().to_string(), source })?;
    Ok(TracedDisk { name, takes_bios: Layer::new(&folder).takes_bios() })
}

/// The reason why a disk cannot be traced.
#[derive(Debug, thiserror::Error)]
pub enum TracerError {
    #[error(transparent)]
    Bpf(#[from] BpfError),
    #[error(transparent)]
    Attribution(#[from] AttributionError),
    #[error(transparent)]
    Symbols(#[from] SymbolsError),
    #[error("the BPF program sent a damaged record: {0}")]
    Decode(#[from] DecodeError),
    #[error("{path}: {source}; is /sys mounted, and {path} the number of a disk?")]
    Disk { path: String, source: std::io::Error },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_is_no_new_module_and_one_that_is_ready_now_is() {
        let fields = |text: &str| names_and_addresses(text);
        let xfs = "xfs 2445312 1 - Live 0xffffffffc0a00000\nlibcrc32c 12288 1 xfs, Live 0x0\n";
        let used =
            "xfs 2445312 2 - Live 0xffffffffc0a00000\nlibcrc32c 12288 2 xfs,btrfs, Live 0x0\n";
        assert_eq!(fields(xfs), fields(used));
        for other in ["Live 0xffffffffc0b00000", "Loading 0xffffffffc0a00000"] {
            assert_ne!(fields(xfs), fields(&xfs.replace("Live 0xffffffffc0a00000", other)));
        }
        assert_ne!(fields(xfs), fields(&xfs.replace("xfs 2445312", "f2fs 2445312")));
        let ours = "flash 40960 2 - Live 0x1\nraw_nand 1 0 - Live 0x2\n";
        assert_eq!(fields(xfs), fields(&format!("{ours}{xfs}")));
        assert_ne!(fields(xfs), fields(&format!("flash2 40960 2 - Live 0x1\n{xfs}")));
    }
}
