//! A collector from begin to end: reads what the tracer and the witness of calls saw, makes rows of
//! it, and closes segment after segment into the spool.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::bills::Bills;
use super::clock::WallClock;
use super::io_sums::IoSums;
use super::lives::LifeCounts;
use super::lives::Writers;
use super::privacy::{Privacy, PrivacyLevel};
use super::spool::Segment;
use super::spool::Spool;
use super::uploader::{Server, Uploader};
use crate::commits::finder::{CHECKPOINT, COMMIT, CommitFinder};
use crate::commits::witness::{CallWitness, WatchScope};
use crate::device::disks::{Disks, FilesystemPlaces};
use crate::device::{counters, sysfs};
use crate::live_trace::{End, Lives, TraceEnd};
use crate::messages::say;
use crate::tables::fleet::{Commit, SegmentFacts};
use crate::tables::timeline::now_ns;
use crate::tracer::Tracer;

/// Between two looks at what was seen, and between two rounds of rows.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
const ROWS_INTERVAL: Duration = Duration::from_secs(2);
const REQUESTS_PER_ROUND: usize = 4096;

/// With so many bytes of records waiting, the next look is at once.
const BACKLOG_TO_SKIP_SLEEP_BYTES: usize = 1 << 20;

/// Records that wait beside the ring, the ring of calls, and files: memory has a bound.
const BACKLOG_BYTES: usize = 16 << 20;
const CALLS_RING_BYTES: u32 = 4 << 20;
const CALLS_BACKLOG_BYTES: usize = 8 << 20;
const FILES_LIMIT: usize = 32_768;

/// A commit may be added to for so long: its journals end, its directory is synced.
const SETTLED_NS: i64 = 200_000_000;

/// Commits of a segment, some 400 bytes each and as much again while it is written; it is closed
/// then.
const MAX_COMMITS_PER_SEGMENT: usize = 20_000;

/// Collects until it is told to end.
///
/// # Errors
/// If the kernel refuses the tracer, or the spool cannot be used.
pub fn collect(settings: CollectorSettings) -> anyhow::Result<End> {
    keep_little();
    let spool = Spool::open(&settings.spool, settings.spool_bytes)?;
    let privacy = Privacy { level: settings.privacy, salt: spool.salt };
    let numbers: Vec<u32> = settings.disks.numbers.iter().copied().collect();
    let mut tracer = Tracer::load(settings.ring_bytes)?;
    tracer.files_kept = FILES_LIMIT;
    let mut witness = CallWitness::load(CALLS_RING_BYTES, false)?;
    let mut trace_end = TraceEnd::new(None, settings.duration)?;
    let server = settings.server.clone();
    let mut uploader = server.map(|server| Uploader::start(server, &settings.spool)).transpose()?;
    tracer.start_live(&numbers, BACKLOG_BYTES, false)?;
    witness.follow(WatchScope::Everyone, CALLS_BACKLOG_BYTES)?;
    let begun = BegunSegment::now(&tracer, &witness, &settings.disks)?;
    let own = own_processes(&mut uploader);
    let places = FilesystemPlaces::new(&settings.disks.numbers);
    let mut session = Collecting {
        spool,
        privacy,
        tracer,
        witness,
        uploader,
        begun,
        settings,
        lives_of_disks: Lives::new(&numbers),
        finder: CommitFinder::default(),
        writers: Writers::default(),
        lives: LifeCounts::default(),
        sums: IoSums::default(),
        bills: Bills::default(),
        commits: Vec::new(),
        own,
        places,
        clock: WallClock::read(),
    };
    session.begin();
    let names: Vec<&str> =
        session.settings.disks.layers.iter().map(|layer| layer.name.as_str()).collect();
    let (names, spool) = (names.join(", "), session.settings.spool.display());
    say(format_args!("joj-agent: collecting {names}; segments go to {spool}"));
    for reason in &session.settings.disks.left_out {
        say(format_args!("joj-agent: not collecting {reason}"));
    }
    let end = session.watch(&mut trace_end)?;
    session.finish()?;
    Ok(end)
}

/// A segment under way: what was so when it was begun.
struct BegunSegment {
    /// None where the spool could not remember that it is taken.
    sequence: Option<i64>,
    since: Instant,
    boot_ns: i64,
    clock: WallClock,
    day: String,
    lost: u64,
    /// Syncs of 32-bit and x32 programs.
    other_syncs: u64,
    unattributed: u64,
    disk_bytes: DiskBytes,
}

/// Holds what the disks counted.
#[derive(Debug, Clone, Copy, Default)]
struct DiskBytes {
    read: i64,
    written: i64,
    capacity: i64,
}

impl BegunSegment {
    fn now(tracer: &Tracer, witness: &CallWitness, disks: &Disks) -> anyhow::Result<Self> {
        let (lost, gaps) = tracer.missing()?;
        let (clock, boot_ns) = (WallClock::read(), now_ns());
        Ok(BegunSegment {
            sequence: None,
            since: Instant::now(),
            boot_ns,
            clock,
            day: clock.day(clock.unix_ns(boot_ns)),
            lost: lost + witness.lost_calls(),
            other_syncs: witness.foreign_calls(),
            unattributed: gaps.unattributed_bytes,
            disk_bytes: DiskBytes::read(disks),
        })
    }
}

impl DiskBytes {
    fn read(disks: &Disks) -> Self {
        let mut sum = DiskBytes::default();
        for folder in disks.numbers.iter().map(|&disk| sysfs::device_folder(disk)) {
            let counters = counters::read_iostats(&folder).unwrap_or_default();
            sum.read += counters.get("read_bytes").copied().unwrap_or(0);
            sum.written += counters.get("write_bytes").copied().unwrap_or(0);
            let sectors = std::fs::read_to_string(folder.join("size")).unwrap_or_default();
            sum.capacity += sectors.trim().parse::<i64>().unwrap_or(0) * 512;
        }
        sum
    }
}

struct Collecting {
    settings: CollectorSettings,
    spool: Spool,
    privacy: Privacy,
    tracer: Tracer,
    witness: CallWitness,
    uploader: Option<Uploader>,
    begun: BegunSegment,
    lives_of_disks: Lives,
    finder: CommitFinder,
    writers: Writers,
    lives: LifeCounts,
    sums: IoSums,
    bills: Bills,
    commits: Vec<Commit>,
    own: BTreeSet<i64>,
    places: FilesystemPlaces,
    clock: WallClock,
}

impl Collecting {
    fn watch(&mut self, trace_end: &mut TraceEnd) -> anyhow::Result<End> {
        let mut round = Instant::now();
        loop {
            let is_late = self.tracer.backlog_bytes() > BACKLOG_TO_SKIP_SLEEP_BYTES;
            if let Some(end) =
                trace_end.wait(if is_late { Duration::ZERO } else { LOOK_INTERVAL })?
            {
                return Ok(end);
            }
            if self.digest()? || round.elapsed() >= ROWS_INTERVAL {
                self.round(SETTLED_NS)?;
                round = Instant::now();
                if self.is_due() {
                    self.close()?;
                    self.begin();
                }
            }
        }
    }

    /// Takes some of what was seen; true where there is enough for a round of rows. Rows are large:
    /// what waits for long is made into them in small parts.
    fn digest(&mut self) -> anyhow::Result<bool> {
        self.look()?;
        let pending_rows = self.tracer.digest(REQUESTS_PER_ROUND)?;
        Ok(pending_rows >= REQUESTS_PER_ROUND || self.tracer.is_crowded())
    }

    /// Reads the calls that were seen.
    fn look(&mut self) -> anyhow::Result<()> {
        for call in self.witness.read_calls()? {
            let filesystem = call.file.map_or(0, |file| file.filesystem);
            if !self.own.contains(&i64::from(call.pid)) && self.places.may_hold(filesystem) {
                self.finder.see(&call);
                self.writers.see(&call);
                self.lives.see(&call, &self.finder, self.tracer.files().map(|it| &*it));
            }
        }
        Ok(())
    }

    /// Makes rows of what is finished.
    fn round(&mut self, settled_ns: i64) -> anyhow::Result<()> {
        self.clock = WallClock::read();
        self.tracer.notice_modules()?;
        self.places.forget();
        self.own = own_processes(&mut self.uploader);
        let (rows, gone) = self.tracer.take_finished();
        if let Some(files) = self.tracer.files() {
            self.sums.add(&rows, files, (&self.own, &self.writers), &self.clock);
            self.sums.let_go(&gone);
            files.forget_changed();
        }
        self.bills.add_requests(&rows);
        let now_ns = now_ns();
        for transaction in self.finder.take_finished(now_ns.saturating_sub(settled_ns)) {
            if [COMMIT, CHECKPOINT].contains(&transaction.row.kind.as_str()) {
                let name = |&number: &usize| self.finder.files.name(number);
                let databases = transaction.databases.iter().map(name).collect();
                self.bills.add(transaction, databases, &self.clock);
            }
        }
        let is_exact = self.is_exact()?;
        self.commits.extend(self.bills.finish(now_ns, is_exact, &self.privacy));
        Ok(())
    }

    /// Nothing was lost in this segment.
    fn is_exact(&self) -> anyhow::Result<bool> {
        Ok(self.tracer.missing()?.0 + self.witness.lost_calls() == self.begun.lost)
    }

    /// It is old or large enough, or another day or time zone has begun.
    fn is_due(&self) -> bool {
        let day = self.clock.day(self.clock.unix_ns(now_ns()));
        self.begun.since.elapsed() >= self.settings.segment_time
            || self.commits.len() >= MAX_COMMITS_PER_SEGMENT
            || day != self.begun.day
            || self.clock.utc_offset_s != self.begun.clock.utc_offset_s
    }

    /// A number for the segment that was begun.
    fn begin(&mut self) {
        match self.spool.next_sequence() {
            Ok(sequence) => self.begun.sequence = Some(sequence),
            Err(error) => {
                let spool = self.settings.spool.display();
                say(format_args!("joj-agent: {spool}: {error}"));
            }
        }
    }

    /// Closes the segment; the next begins with it.
    fn close(&mut self) -> anyhow::Result<()> {
        let is_exact = self.is_exact()?;
        self.commits.extend(self.bills.finish_all(is_exact, &self.privacy));
        if self.begun.sequence.is_none() {
            self.begin();
        }
        let next = BegunSegment::now(&self.tracer, &self.witness, &self.settings.disks)?;
        let facts = self.facts(&next)?;
        let dropped = facts.dropped_segments;
        let Some(files) = self.tracer.files() else { return Ok(()) };
        let (io_sums, file_sums) = self.sums.finish(files, &self.privacy);
        let mut commits = std::mem::take(&mut self.commits);
        commits.sort_by_key(|commit| commit.end_unix_ns);
        let file_lives = self.lives.finish(&self.privacy);
        let segment = Segment { facts, commits, io_sums, file_sums, file_lives };
        let spool = self.settings.spool.display();
        let is_stored = match self.begun.sequence {
            Some(sequence) => match self.spool.store(sequence, &segment.archive()?) {
                Ok(Some(_)) => true,
                Ok(None) => {
                    say(format_args!("joj-agent: {spool} is full: segment {sequence} is dropped"));
                    false
                }
                Err(error) => {
                    say(format_args!("joj-agent: {spool}: segment {sequence} is dropped: {error}"));
                    false
                }
            },
            None => {
                self.spool.dropped += 1;
                false
            }
        };
        if is_stored {
            self.uploader.iter_mut().for_each(Uploader::wake);
        } else {
            // It told of those that were dropped before.
            self.spool.dropped += dropped;
        }
        self.begun = next;
        give_back();
        Ok(())
    }

    /// The row of the segment that is closed now, as the next is begun.
    fn facts(&mut self, next: &BegunSegment) -> anyhow::Result<SegmentFacts> {
        let begun = &self.begun;
        let observed = self.sums.observed;
        let lost_events = next.lost.saturating_sub(begun.lost) as i64;
        let mut incomplete = self.lives_of_disks.changes();
        let other_syncs = next.other_syncs - begun.other_syncs;
        if other_syncs > 0 {
            incomplete.push(format!(
                "{other_syncs} syncs of 32-bit or x32 programs, whose commits are not found"
            ));
        }
        let mut facts = SegmentFacts {
            schema_version: 1,
            agent_version: env!("CARGO_PKG_VERSION").to_owned(),
            kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
            spool_id: self.spool.id().to_owned(),
            boot_id: boot_id(),
            sequence: begun.sequence.unwrap_or(-1),
            day: begun.day.clone(),
            utc_offset_s: begun.clock.utc_offset_s,
            begin_unix_ns: begun.clock.unix_ns(begun.boot_ns),
            end_unix_ns: next.clock.unix_ns(next.boot_ns),
            begin_boot_ns: begun.boot_ns,
            end_boot_ns: next.boot_ns,
            privacy: self.privacy.word().into(),
            disk_bytes: next.disk_bytes.capacity,
            requests: observed.requests,
            read_bytes: observed.read_bytes,
            write_bytes: observed.write_bytes,
            own_write_bytes: observed.own_write_bytes,
            lost_events,
            unattributed_bytes: next.unattributed.saturating_sub(begun.unattributed) as i64,
            dropped_rows: std::mem::take(&mut self.bills.dropped),
            dropped_segments: self.spool.take_dropped(),
            incomplete: incomplete.join("; "),
        };
        if lost_events > 0 {
            // The disks' own counters have what has no rows, too.
            let (now, then) = (next.disk_bytes, begun.disk_bytes);
            let written = now.written - then.written - observed.own_write_bytes;
            facts.read_bytes = facts.read_bytes.max(now.read - then.read);
            facts.write_bytes = facts.write_bytes.max(written);
        }
        Ok(facts)
    }

    /// Takes what is left, and closes the last segment.
    fn finish(mut self) -> anyhow::Result<()> {
        self.tracer.end();
        while self.tracer.backlog_bytes() > BACKLOG_TO_SKIP_SLEEP_BYTES {
            if self.digest()? {
                self.round(SETTLED_NS)?;
            }
        }
        self.tracer.rest()?;
        self.look()?;
        self.tracer.give_up();
        self.round(i64::MIN / 2)?;
        self.close()?;
        self.tracer.stop();
        self.uploader.into_iter().for_each(Uploader::stop);
        Ok(())
    }
}

/// The collector's, and the uploader's, which is started again where it has ended: its number may
/// be another's later.
fn own_processes(uploader: &mut Option<Uploader>) -> BTreeSet<i64> {
    let uploader = uploader.as_mut().and_then(Uploader::keep);
    [std::process::id()].into_iter().chain(uploader).map(i64::from).collect()
}

fn boot_id() -> String {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    text.trim().to_owned()
}

// Keeps the process about as large as what it holds: glibc's allocator keeps what was freed, up to
// 64 MiB of it once blocks of 32 MiB were (mallopt(3), M_MMAP_THRESHOLD), and has a heap for each
// thread.

/// Larger blocks are the kernel's, and go back to it when they are freed: rows, pieces of the ring.
const MAPPED_BYTES: libc::c_int = 256 << 10;

/// More than that at the end of the heap goes back, too.
const FREE_BYTES: libc::c_int = 1 << 20;

/// From now on; before there is another thread.
pub fn keep_little() {
    for (what, value) in [
        (libc::M_ARENA_MAX, 1),
        (libc::M_MMAP_THRESHOLD, MAPPED_BYTES),
        (libc::M_TRIM_THRESHOLD, FREE_BYTES),
    ] {
        // SAFETY: sets a number of the allocator's. Where it refuses, it stays as it was.
        unsafe { libc::mallopt(what, value) };
    }
}

/// Gives back what was freed in the middle of the heap, as when a segment is closed.
pub fn give_back() {
    // SAFETY: touches free memory alone.
    unsafe { libc::malloc_trim(0) };
}

/// The settings of one collector.
pub struct CollectorSettings {
    pub disks: Disks,
    pub spool: PathBuf,
    /// None: segments stay in the spool.
    pub server: Option<Server>,
    pub privacy: PrivacyLevel,
    /// A segment is closed after this time.
    pub segment_time: Duration,
    pub spool_bytes: u64,
    pub ring_bytes: u32,
    /// Collects no longer than this.
    pub duration: Option<Duration>,
}
