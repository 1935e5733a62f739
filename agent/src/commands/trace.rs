//! `joj-agent trace -- COMMAND`: traces the disks behind a device or a directory while a command or
//! a process runs, or for a time. Writes the tables of schema/ as rows come; at the end prints a
//! summary of the I/O and whom it served.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::json;

use crate::device::disks::{self, Disks};
use crate::device::layers::Layer;
use crate::device::number;
use crate::errors::WrongUse;
use crate::messages::{print, say};
use crate::parent;
use crate::tables::manifest::{Manifest, Origin};
use crate::tables::rows::Counter;
use crate::tracer::live_trace::counted::Counted;
use crate::tracer::live_trace::output::Output;
use crate::tracer::live_trace::room::Room;
use crate::tracer::live_trace::summary::Summary;
use crate::tracer::live_trace::totals;
use crate::tracer::live_trace::until::{End, Until};
use crate::tracer::{FileKinds, Totals, Tracer};

/// The command succeeded, but the tables are incomplete.
const INCOMPLETE: u8 = 4;

/// Rows are written when this many requests wait, or after this time.
const ROUND_REQUESTS: usize = 16_384;
const ROUND: Duration = Duration::from_secs(10);

/// How long records may wait to be read: longer when none come. When many wait, they are read at
/// once.
const USUAL: Duration = Duration::from_millis(20);
const LONG: Duration = Duration::from_millis(100);
const MUCH_BYTES: usize = 8 << 20;

/// Nice value of the thread that makes rows when it is late: ahead of tasks that compute.
const PRIORITY: i32 = -15;

/// The command line of `trace`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Trace this block device, or the disk of this partition; repeat it for several disks, such as
    /// that of an external journal
    #[arg(long, conflicts_with = "directory")]
    device: Vec<PathBuf>,
    /// Trace the disks of this directory's filesystem [default: the current directory]
    #[arg(long)]
    directory: Option<PathBuf>,
    /// Write the tables to this new folder
    #[arg(short, long)]
    output: Option<PathBuf>,
    /// Trace until this process ends
    #[arg(long, conflicts_with = "command")]
    pid: Option<i32>,
    /// Trace for at most this many seconds
    #[arg(long, value_parser = seconds)]
    duration: Option<Duration>,
    /// Additional file kinds, tried before the built-in ones; a file like schema/file_kinds.toml
    #[arg(long)]
    file_kinds: Option<PathBuf>,
    /// Process that started this one: when it ends, stop and keep what was traced
    #[arg(long)]
    parent: Option<i32>,
    /// Size of the ring buffer in MiB, rounded up to a power of two [default: by memory and
    /// processors]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1024))]
    ring_mib: Option<u32>,
    /// Keep no rows: add up bytes by file in the kernel, for loads too heavy for rows
    #[arg(long)]
    totals: bool,
    /// Print the summary as JSON on standard output
    #[arg(long)]
    json: bool,
    /// Command to run, as the user who called this
    #[arg(last = true)]
    command: Vec<String>,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| format!("{text}: no number of seconds"))?;
    Duration::try_from_secs_f64(seconds).map_err(|error| format!("{text}: {error}"))
}

/// Traces, prints the summary, and returns the exit code: the command's, or 4 if the tables are
/// incomplete.
///
/// # Errors
/// If the disks cannot be traced, or the command cannot be run.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let endless = arguments.command.is_empty() && arguments.pid.is_none();
    if endless && arguments.duration.is_none() {
        return Err(WrongUse("name a command after --, a --pid or a --duration".into()).into());
    }
    let disks = match arguments.device.as_slice() {
        devices @ [_, ..] => Disks::of_devices(devices)?,
        [] => {
            let here = Path::new(".").to_owned();
            Disks::of_directory(arguments.directory.as_ref().unwrap_or(&here))?
        }
    };
    for unknown in &disks.unknown_types {
        say(format_args!(
            "joj-agent: {unknown}: a filesystem whose metadata the tracer does not know; \
             what it cannot tell will be of type unknown"
        ));
    }
    for note in disks.layers.iter().filter_map(Layer::note) {
        say(format_args!("joj-agent: {note}"));
    }
    let kinds = arguments.file_kinds.as_deref().map(FileKinds::read).transpose();
    let kinds = kinds.map_err(|error| WrongUse(error.to_string()))?;
    let numbers: Vec<u32> = disks.numbers.iter().copied().collect();
    let lives: BTreeMap<u32, Option<String>> =
        numbers.iter().map(|&disk| (disk, disks::life(disk))).collect();
    let room = Room::here(arguments.ring_mib);
    let mut tracer = Tracer::load(room.ring)?;
    kinds.into_iter().for_each(|kinds| tracer.set_file_kinds(kinds));
    let mut until = Until::new(arguments.pid, arguments.duration)?;
    arguments.parent.map(parent::end_with).transpose()?;
    let output = arguments.output.as_ref().map(|folder| open(folder, arguments, &disks));
    let output = output.transpose()?;
    let (summary, totals) = (Summary::default(), Totals::default());
    let mut session = Session { output, summary, totals, room, hurries: false };
    let counted = Counted::now(&numbers);
    let begun = tracer.start_live(&numbers, room.backlog, arguments.totals).map_err(Into::into);
    if let Err(error) = begun.and_then(|()| until.run(&arguments.command)) {
        session.output.into_iter().for_each(Output::abandon);
        return Err(error);
    }
    let end = session.watch(&mut tracer, &mut until)?;
    session.catch_up(&mut tracer)?;
    tracer.rest()?;
    session.count(&Counted::now(&numbers).since(&counted))?;
    let reasons = session.finish(&mut tracer, &lives)?;
    session.print(arguments.json, &mut tracer, &reasons)?;
    Ok(exit_code(end, !reasons.is_empty()))
}

/// What collects the rows of one tracing.
struct Session {
    output: Option<Output>,
    summary: Summary,
    totals: Totals,
    room: Room,
    /// Making rows goes before other work of the machine.
    hurries: bool,
}

impl Session {
    /// Makes rows of what comes until the end does.
    fn watch(&mut self, tracer: &mut Tracer, until: &mut Until) -> anyhow::Result<End> {
        let mut round = Instant::now();
        let mut pause = USUAL;
        loop {
            if let Some(end) = until.wait(pause)? {
                return Ok(end);
            }
            let backlog = tracer.backlog_bytes();
            self.hurry(backlog);
            let kept = tracer.digest()?;
            pause = match tracer.backlog_bytes() {
                MUCH_BYTES.. => Duration::ZERO,
                _ if backlog > 0 => USUAL,
                _ => LONG.min(pause.max(USUAL) * 2),
            };
            if kept >= ROUND_REQUESTS || tracer.is_crowded() || round.elapsed() >= ROUND {
                tracer.notice_modules()?;
                self.write(tracer)?;
                round = Instant::now();
            }
        }
    }

    /// The machine's own work goes first, until so much waits for us that it may be lost.
    fn hurry(&mut self, backlog: usize) {
        let limit = self.room.backlog / if self.hurries { 16 } else { 4 };
        if self.hurries != (backlog > limit) {
            self.hurries = !self.hurries;
            // Of this thread (setpriority(2), NOTES); it goes on as it is if it may not.
            let priority = if self.hurries { PRIORITY } else { 0 };
            let _ = rustix::process::setpriority_process(None, priority);
        }
    }

    /// Makes rows of what waits, before the last of it is waited for.
    fn catch_up(&mut self, tracer: &mut Tracer) -> anyhow::Result<()> {
        tracer.end();
        while tracer.backlog_bytes() > MUCH_BYTES {
            if tracer.digest()? >= ROUND_REQUESTS {
                self.write(tracer)?;
            }
        }
        Ok(())
    }

    /// Keeps what the disks counted meanwhile.
    fn count(&self, counters: &[Counter]) -> anyhow::Result<()> {
        self.output.as_ref().map_or(Ok(()), |output| output.counters(counters))
    }

    /// Takes the rows that are finished, and writes them.
    fn write(&mut self, tracer: &mut Tracer) -> anyhow::Result<()> {
        let (mut rows, gone) = tracer.take();
        let Some(files) = tracer.files() else { return Ok(()) };
        self.summary.add(&rows, files, own_pid());
        let Some(output) = &mut self.output else { return Ok(()) };
        output.add(&mut rows, &gone, &files.take_changed())
    }

    /// Writes what is left, and says why the tables are incomplete; not at all if nothing is.
    fn finish(
        &mut self,
        tracer: &mut Tracer,
        lives: &BTreeMap<u32, Option<String>>,
    ) -> anyhow::Result<Vec<String>> {
        self.write(tracer)?;
        tracer.give_up();
        self.write(tracer)?;
        let (lost_events, gaps) = tracer.missing()?;
        let mut reasons = gaps.reasons(lost_events);
        self.totals = tracer.totals()?;
        for (disk, life) in lives.iter().filter(|(disk, life)| disks::life(**disk) != **life) {
            let what = if life.is_some() { "went away or became another" } else { "had no size" };
            reasons.push(format!("disk {} {what} while it was traced", number::text(*disk)));
        }
        if let Some(output) = &mut self.output {
            let (own_requests, own_bytes) = (self.summary.own_requests, self.summary.own_bytes);
            output.note("own_requests", own_requests);
            output.note("own_bytes", own_bytes);
            output.note("totals", &self.totals);
            output.end(lost_events, &gaps, &reasons)?;
        }
        Ok(reasons)
    }

    /// The table goes where messages go: standard output is the command's.
    fn print(&self, as_json: bool, tracer: &mut Tracer, reasons: &[String]) -> anyhow::Result<()> {
        tracer.stop();
        let (lost_events, gaps) = tracer.missing()?;
        if as_json {
            let mut json = self.summary.json(lost_events, &gaps);
            json["incomplete_reasons"] = json!(reasons);
            json["totals"] = json!(self.totals);
            print(json)?;
            return Ok(());
        }
        say(self.summary.text(lost_events, &gaps).trim_end());
        if let Some(text) = totals::text(&self.totals) {
            say(text.trim_end());
        }
        for reason in reasons {
            say(format_args!("incomplete: {reason}"));
        }
        if let Some(output) = &self.output {
            say(format_args!("tables in {}", output.directory().display()));
        }
        Ok(())
    }
}

fn own_pid() -> i64 {
    i64::from(std::process::id())
}

/// The folder for the tables, with what the manifest is to say of this tracing.
fn open(folder: &Path, arguments: &Arguments, disks: &Disks) -> anyhow::Result<Output> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let numbers: Vec<String> = disks.numbers.iter().map(|&disk| number::text(disk)).collect();
    let made_of = disks.layers.iter().filter(|layer| layer.takes_bios());
    let made_of: BTreeMap<&str, Vec<String>> =
        made_of.map(|layer| (layer.name.as_str(), layer.below())).collect();
    let mut manifest = Manifest::new(Origin {
        case: json!({ "command": arguments.command }),
        seed: 0,
        clock: "wall",
        device: json!({ "disks": numbers, "made_of": made_of }),
        configuration: json!({ "mounts": disks.mounts }),
    });
    manifest.note("began_unix_ns", now.as_nanos() as u64);
    manifest.note("tracer_pid", own_pid());
    let output = Output::create(folder, manifest)?;
    let own = Disks::of_directory(folder);
    if own.is_ok_and(|own| !own.numbers.is_disjoint(&disks.numbers)) {
        say(format_args!(
            "joj-agent: {}: on a traced disk; what the tracer writes there is traced too, and \
             counted apart",
            folder.display()
        ));
    }
    Ok(output)
}

/// The command's own, as a shell gives it.
fn exit_code(end: End, incomplete: bool) -> ExitCode {
    let code = match end {
        End::Command(status) => {
            let signalled = || status.signal().map_or(1, |signal| 128 + signal);
            status.code().unwrap_or_else(signalled) as u8
        }
        End::Signal(signal) => (128 + signal) as u8,
        End::Process | End::Time => 0,
    };
    ExitCode::from(if code == 0 && incomplete { INCOMPLETE } else { code })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commands_exit_code_comes_before_ours() {
        let ended = |status| End::Command(std::process::ExitStatus::from_raw(status));
        let code = |end, incomplete| format!("{:?}", exit_code(end, incomplete));
        let is = |code: u8| format!("{:?}", ExitCode::from(code));
        assert_eq!(code(ended(0), false), is(0));
        assert_eq!(code(ended(0), true), is(INCOMPLETE));
        assert_eq!(code(ended(7 << 8), true), is(7));
        assert_eq!(code(ended(9), false), is(137));
        assert_eq!(code(End::Signal(2), false), is(130));
        assert_eq!(code(End::Time, true), is(INCOMPLETE));
    }
}
