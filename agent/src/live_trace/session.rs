//! A live trace from begin to end: loads the tracer, switches it on, makes rows of what comes until
//! the end does, and writes them with what is missing from them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::commits::Commits;
use super::disk_witness::{DiskCounts, Lives};
use super::output::{PlacedRows, TraceOutput};
use super::pace::{Pace, ROUND_REQUESTS, Room};
use super::summary::{Outcome, Summary};
use super::trace_end::{End, TraceEnd};
use crate::commits::witness::WatchScope;
use crate::device::disks::Disks;
use crate::device::location::Location;
use crate::device::sysfs;
use crate::messages::say;
use crate::process;
use crate::tables::capture::{Manifest, Origin};
use crate::tracer::{FileKinds, Totals, Tracer};

/// Between a look at the disks' counters and what was or is traced beside it.
const SETTLE: Duration = Duration::from_millis(2);

/// As long as this, counters and trace may differ at the end.
const AGREE: Duration = Duration::from_millis(500);

/// The order for a trace: what is traced, until when, and what becomes of it.
pub struct LiveTrace {
    pub disks: Disks,
    /// Kinds of files beside those that are built in.
    pub kinds: Option<FileKinds>,
    /// The trace ends with this command, which is run; empty for none.
    pub command: Vec<String>,
    /// A program and its arguments that run the command; empty where it is run by itself.
    pub launcher: Vec<String>,
    /// Or with this process.
    pub pid: Option<i32>,
    /// Or after this time.
    pub duration: Option<Duration>,
    /// Or with the process that started us.
    pub parent: Option<i32>,
    /// Size of the ring, where the default shall not hold.
    pub ring_mib: Option<u32>,
    /// Only sums, no rows.
    pub totals_alone: bool,
    /// A new folder for the tables.
    pub folder: Option<PathBuf>,
}

impl LiveTrace {
    /// Traces.
    ///
    /// # Errors
    /// If the disks cannot be traced, the command cannot be run, or the tables not be written.
    pub fn run(self) -> anyhow::Result<Outcome> {
        let numbers: Vec<u32> = self.disks.numbers.iter().copied().collect();
        let lives = Lives::new(&numbers);
        let command = self.program();
        let room = Room::here(self.ring_mib);
        let mut tracer = Tracer::load(room.ring)?;
        let commits = (!self.totals_alone)
            .then(|| Commits::load(&self.disks, self.watch_scope(), own_pid()))
            .transpose()?;
        if let Some(kinds) = self.kinds {
            tracer.kinds = Rc::new(kinds);
        }
        let mut trace_end = TraceEnd::new(self.pid, self.duration)?;
        self.parent.map(process::end_with).transpose()?;
        let output = self
            .folder
            .as_ref()
            .map(|folder| open(folder, &self.command, &self.disks, commits.is_some()))
            .transpose()?;
        let (summary, pace) = (Summary::default(), Pace::new(room.backlog));
        let mut session = Session { tracer, commits, output, summary, pace };
        let begun = session.begin(&numbers, room.backlog, self.totals_alone);
        let run = [self.launcher.as_slice(), &self.command].concat();
        // Before the command, which may have ended by the time that its start is heard of.
        let begin = Instant::now();
        let begun = begun.and_then(|counted| trace_end.run(&run).map(|()| counted));
        let counted = match begun {
            Ok(counted) => counted,
            Err(error) => {
                session.output.into_iter().for_each(TraceOutput::abandon);
                return Err(error);
            }
        };
        if self.command.is_empty() {
            let names: Vec<&str> = self.disks.layers.iter().map(|it| it.name.as_str()).collect();
            let names = names.join(", ");
            say(format_args!("joj-agent: tracing {names}; Ctrl-C ends it and keeps what it saw"));
        }
        let end = session.watch(&mut trace_end)?;
        let traced = begin.elapsed();
        session.catch_up()?;
        session.tracer.rest()?;
        let (differences, comparable) = session.count(&numbers, &counted)?;
        let mut reasons = lives.changes();
        let is_whole = !self.totals_alone && session.tracer.missing()?.0 == 0;
        let agrees = is_whole && differences.is_empty();
        session.tracer.leave_under_way(if agrees { comparable } else { BTreeSet::new() })?;
        reasons.extend(differences.into_iter().filter(|_| is_whole));
        session.finish(end, reasons, (&command, traced), self.folder)
    }

    /// Return the command that is traced, or the name of the process; empty for everybody.
    fn program(&self) -> Vec<String> {
        match self.pid {
            Some(pid) => fs::read_to_string(format!("/proc/{pid}/comm"))
                .map(|name| vec![name.trim_end().to_owned()])
                .unwrap_or_default(),
            None => self.command.clone(),
        }
    }

    /// Return the scope in which commits are found: the command or the process and its children, if
    /// there is one.
    fn watch_scope(&self) -> WatchScope {
        match self.pid.and_then(|pid| u32::try_from(pid).ok()) {
            Some(pid) => WatchScope::Process(pid),
            None if self.command.is_empty() => WatchScope::Everyone,
            None => WatchScope::StartedBy(std::process::id()),
        }
    }
}

/// A trace under way.
struct Session {
    tracer: Tracer,
    /// None where there are to be no rows.
    commits: Option<Commits>,
    output: Option<TraceOutput>,
    summary: Summary,
    pace: Pace,
}

impl Session {
    /// Switches the tracer on; gives what the disks have counted by then.
    fn begin(
        &mut self,
        disks: &[u32],
        backlog: usize,
        totals_alone: bool,
    ) -> anyhow::Result<DiskCounts> {
        self.tracer.start_live(disks, backlog, totals_alone)?;
        // What completed just before is in the counters by then.
        std::thread::sleep(SETTLE);
        let counted = DiskCounts::now(disks);
        self.tracer.begin_counting(counted.read);
        // After it, since requests have rows by now, and this looks at all files that are open.
        self.commits.iter_mut().try_for_each(Commits::start)?;
        Ok(counted)
    }

    /// Keeps what the disks counted since `before`; gives where that is not what was traced, and
    /// the disks whose counters can be compared.
    fn count(
        &mut self,
        disks: &[u32],
        before: &DiskCounts,
    ) -> anyhow::Result<(Vec<String>, BTreeSet<u32>)> {
        let begin = Instant::now();
        loop {
            let counted = DiskCounts::now(disks);
            let completions = self.tracer.end_counting(counted.read)?;
            let found = completions.map(|it| counted.differences(before, it)).unwrap_or_default();
            // A completion is told of a moment before it is counted.
            if found.is_empty() || begin.elapsed() > AGREE {
                let counters = counted.since(before);
                self.output.iter().try_for_each(|output| output.counters(&counters))?;
                return Ok((found, counted.comparable()));
            }
            std::thread::sleep(SETTLE);
        }
    }

    /// Makes rows of what comes until the end does.
    fn watch(&mut self, trace_end: &mut TraceEnd) -> anyhow::Result<End> {
        loop {
            if let Some(end) = trace_end.wait(self.pace.pause())? {
                return Ok(end);
            }
            let backlog = self.tracer.backlog_bytes();
            self.pace.hurry(backlog);
            let kept = self.tracer.digest(ROUND_REQUESTS)?;
            self.pace.note_look(backlog, self.tracer.backlog_bytes());
            self.commits.iter_mut().try_for_each(|it| it.look(false))?;
            let crowded = self.tracer.is_crowded();
            if Pace::is_enough(kept) || crowded || self.pace.is_round_due() {
                self.tracer.notice_modules()?;
                self.write(false)?;
                self.pace.begin_round();
            }
        }
    }

    /// Makes rows of what waits, before the last of it is waited for.
    fn catch_up(&mut self) -> anyhow::Result<()> {
        self.tracer.end();
        self.commits.iter_mut().for_each(Commits::stop);
        while Pace::is_much(self.tracer.backlog_bytes()) {
            if Pace::is_enough(self.tracer.digest(ROUND_REQUESTS)?) {
                self.write(false)?;
            }
        }
        Ok(())
    }

    /// Takes the rows that are finished, and writes them.
    fn write(&mut self, is_end: bool) -> anyhow::Result<()> {
        let (rows, gone) = self.tracer.take_finished();
        let Some(files) = self.tracer.files() else { return Ok(()) };
        self.summary.add(&rows, files, own_pid());
        let placed = match &mut self.commits {
            Some(commits) => commits.place(rows, files, is_end)?,
            None => PlacedRows::default(),
        };
        let Some(output) = &mut self.output else { return Ok(()) };
        output.add(&placed, &gone, &files.take_changed())
    }

    /// Writes what is left, and says why the tables are incomplete; not at all if nothing is.
    fn finish(
        mut self,
        end: End,
        further_reasons: Vec<String>,
        (command, traced): (&[String], Duration),
        folder: Option<PathBuf>,
    ) -> anyhow::Result<Outcome> {
        self.tracer.give_up();
        self.write(true)?;
        let (lost_events, gaps) = self.tracer.missing()?;
        let mut reasons = gaps.reasons(lost_events);
        reasons.extend(further_reasons);
        reasons.extend(self.commits.iter().flat_map(Commits::reasons));
        let totals: Totals = self.tracer.totals()?;
        if let Some(output) = &mut self.output {
            let Summary { own_requests, own_bytes, .. } = self.summary;
            output.note("own_requests", own_requests);
            output.note("own_bytes", own_bytes);
            output.note("totals", &totals);
            output.note("traced_ns", traced.as_nanos() as u64);
            self.commits.iter().for_each(|it| output.note("watch", it.describe(command)));
            output.end(lost_events, &gaps, &reasons)?;
        }
        self.tracer.stop();
        Ok(Outcome { end, summary: self.summary, totals, lost_events, gaps, reasons, folder })
    }
}

fn own_pid() -> i64 {
    i64::from(std::process::id())
}

/// The folder for the tables.
fn open(
    folder: &Path,
    command: &[String],
    disks: &Disks,
    sees_calls: bool,
) -> anyhow::Result<TraceOutput> {
    let manifest = manifest(command, disks, own_pid());
    let output = TraceOutput::create(folder, manifest, sees_calls)?;
    let own = Disks::from_directory(folder);
    if own.is_ok_and(|own| !own.numbers.is_disjoint(&disks.numbers)) {
        say(format_args!(
            "joj-agent: {}: on a traced disk; what the tracer writes there is traced too, and \
             counted apart",
            folder.display()
        ));
    }
    Ok(output)
}

/// Return what is known of the disks: their mounts; and where these are of one filesystem, how it
/// is mounted, and the settings of the disk.
fn configuration(disks: &Disks) -> Value {
    let place = disks.place.as_ref().and_then(|place| Location::find(place).ok());
    let mut configuration = place.map_or_else(|| json!({}), |place| place.configuration());
    configuration["mounts"] = json!(disks.mounts);
    configuration
}

/// The manifest from the first moment: what is traced, and since when; `own_pid` is the tracer's
/// process.
fn manifest(command: &[String], disks: &Disks, own_pid: i64) -> Manifest {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let numbers: Vec<String> = disks.numbers.iter().map(|&disk| sysfs::number_text(disk)).collect();
    let made_of = disks.layers.iter().filter(|layer| layer.takes_bios());
    let made_of: BTreeMap<&str, Vec<String>> =
        made_of.map(|layer| (layer.name.as_str(), layer.below())).collect();
    let mut manifest = Manifest::new(Origin {
        case: json!({ "command": command }),
        seed: 0,
        clock: "wall",
        device: json!({ "disks": numbers, "made_of": made_of }),
        configuration: configuration(disks),
    });
    manifest.note("began_unix_ns", now.as_nanos() as u64);
    manifest.note("tracer_pid", own_pid);
    manifest
}
