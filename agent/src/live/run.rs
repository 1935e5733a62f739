//! Runs one live case from an empty private directory to its tables, in a child process, so that
//! cleanup follows however it ends: a return, a panic, a signal from the keyboard, or the kernel's
//! SIGBUS where a mapped file finds the disk full. There is no tracer: the tables of requests, page
//! runs and files stay empty, and the manifest says so.

use std::io::{self, Write as _};
use std::mem::MaybeUninit;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;

use anyhow::Context;
use rustix::fs::Advice;
use serde_json::{Value, json};

use super::directory::{PrivateDirectory, explain_full_disk, refuse_unless_free};
use crate::device::counters::Reading;
use crate::device::location::Location;
use crate::record::LiveCase;
use crate::tables::capture::{Manifest, Origin, Tables};
use crate::tables::timeline::{Counters, Timeline, Watch};
use crate::workload;
use crate::workload::kind::ClosedWorkload;
use crate::workload::threads::task::Observer;

/// Runs `case` in `directory`; writes its tables to `output`. `nand` is the configuration of raw
/// NAND, where the directory is on it.
///
/// # Errors
/// When any step fails; nothing in `output` counts then.
pub fn run(
    case: &LiveCase,
    directory: &PrivateDirectory,
    nand: Option<&Value>,
    output: &Path,
) -> anyhow::Result<()> {
    run_and_write(case, directory, nand, output)
        .map_err(|error| explain_full_disk(error, directory.path()))
}

fn run_and_write(
    case: &LiveCase,
    directory: &PrivateDirectory,
    nand: Option<&Value>,
    output: &Path,
) -> anyhow::Result<()> {
    let request = workload::read(&case.case.workload)?;
    let location = Location::find(directory.path())?;
    refuse_unless_free(directory.path(), request.space_needed())?;
    print_stage("prepare");
    let workload = request.prepare(directory.path(), case.seed)?;
    let mut configuration = workload.configuration()?;
    if let Some(us) = configuration["lasts_us"].as_u64() {
        print_stage(&format!("lasts {} s", us.div_ceil(1_000_000)));
    }
    let found = location.configuration();
    for each in [Some(&found), nand].into_iter().flatten() {
        if let (Some(all), Some(each)) = (configuration.as_object_mut(), each.as_object()) {
            all.extend(each.clone());
        }
    }
    directory.sync()?;
    if workload.needs_cold_cache() {
        forget_pages(directory)?;
    }

    let mut progress = LiveProgress::start(&location)?;
    let (background, path) = (case.case.background, directory.path());
    let sync = || directory.sync();
    let closed = workload::run(workload, background, path, &mut progress, sync)?;
    let timeline = progress.finish()?;

    print_stage("check");
    closed.remains.check()?;
    write_tables(case, &closed, &timeline, &location, configuration, output)
}

/// Asks the kernel to drop the clean pages of the workload's files from its cache
/// (posix_fadvise(2)): all that can be done without root and without harm to others.
fn forget_pages(directory: &PrivateDirectory) -> anyhow::Result<()> {
    let what = || format!("emptying the cache of {}", directory.path().display());
    let forget = |file: &std::fs::File| Ok(rustix::fs::fadvise(file, 0, None, Advice::DontNeed)?);
    directory.visit_files(forget).with_context(what)
}

fn write_tables(
    case: &LiveCase,
    closed: &ClosedWorkload,
    timeline: &Timeline,
    location: &Location,
    configuration: Value,
    output: &Path,
) -> anyhow::Result<()> {
    let settings = json!(case.case);
    let device = json!({ "name": location.disk_name() });
    let (seed, clock) = (case.seed, "wall");
    let mut manifest = Manifest::new(Origin { case: settings, seed, clock, device, configuration });
    manifest.note("phases", timeline.phases());
    manifest.note("operation_hash", &closed.operation_hash);
    closed.manifest.iter().for_each(|(key, value)| manifest.note(key, value));
    let counters = timeline.counters();
    let tables = Tables {
        transactions: Some(&closed.transactions),
        counters: Some(&counters),
        ..Tables::default()
    };
    let manifest = manifest.rows(&tables.names(), None, &closed.incomplete_reasons);
    Ok(tables.write(output, &manifest)?)
}

/// The signals by which users and machines ask a program to end.
const ENDING: [libc::c_int; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

/// The end of the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChildEnd {
    /// It ended by itself, with this exit code.
    Exited(u8),
    /// It died of this signal, which it brought upon itself.
    Died(i32),
    /// Because this signal asked us to end.
    Interrupted(i32),
}

/// From here on the signals that end a program wait, until `run` looks at them.
pub struct Supervisor {
    waited_for: libc::sigset_t,
    before: libc::sigset_t,
}

impl Supervisor {
    /// Blocks the signals: to be called before there is anything to clean up.
    ///
    /// # Errors
    /// Only if the kernel refuses the mask.
    pub fn new() -> io::Result<Self> {
        // A child whose end is ignored could not be waited for (sigaction(2), NOTES).
        // SAFETY: the default disposition has no handler.
        unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
        let mut waited_for = MaybeUninit::<libc::sigset_t>::uninit();
        let mut before = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: the pointers are to live sigset_t; sigemptyset makes the first one whole, and
        // pthread_sigmask the second.
        unsafe {
            libc::sigemptyset(waited_for.as_mut_ptr());
            libc::sigaddset(waited_for.as_mut_ptr(), libc::SIGCHLD);
            for signal in ENDING.into_iter().filter(|signal| !is_ignored(*signal)) {
                libc::sigaddset(waited_for.as_mut_ptr(), signal);
            }
            let blocked =
                libc::pthread_sigmask(libc::SIG_BLOCK, waited_for.as_ptr(), before.as_mut_ptr());
            if blocked != 0 {
                return Err(io::Error::from_raw_os_error(blocked));
            }
            Ok(Self { waited_for: waited_for.assume_init(), before: before.assume_init() })
        }
    }

    /// Runs `work` in a child, whose exit code is its result, and waits for it to end. A signal
    /// kills the child: it has nothing to save.
    ///
    /// # Errors
    /// If there can be no child.
    ///
    /// # Panics
    /// If there are several threads: of them a child has one, with all locks as they were.
    pub fn run(&self, work: impl FnOnce() -> u8) -> io::Result<ChildEnd> {
        let threads = std::fs::read_dir("/proc/self/task")?.count();
        assert_eq!(threads, 1, "fork() with several threads");
        let parent = std::process::id();
        // A background load outlives a workload that was killed by the time it takes to notice.
        // SAFETY: a plain system call.
        unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) };
        // SAFETY: there is no other thread (see above), so the child may do anything.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                self.become_child(parent);
                std::process::exit(work().into());
            }
            child => {
                let ended = self.wait(child);
                wait_for_orphans();
                Ok(ended)
            }
        }
    }

    /// Takes the child's signals back to what they were, and has it die with its parent.
    fn become_child(&self, parent: u32) {
        // SAFETY: plain system calls on values that live.
        unsafe {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, std::ptr::null_mut());
        }
        // The parent may have died before prctl asked for its signal.
        if std::os::unix::process::parent_id() != parent {
            std::process::abort();
        }
    }

    fn wait(&self, child: libc::pid_t) -> ChildEnd {
        let mut interrupted = None;
        loop {
            let mut status = 0;
            // SAFETY: the pointer is to a live int; the child is ours and was not waited for yet.
            let ended = unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) };
            if ended == child {
                let status = ExitStatus::from_raw(status);
                // From a keyboard the child gets the signal too, and may be the first to end.
                let interrupted = interrupted.or_else(|| self.pending());
                return match (interrupted, status.code(), status.signal()) {
                    (Some(signal), _, _) => ChildEnd::Interrupted(signal),
                    (None, Some(code), _) => {
                        ChildEnd::Exited(u8::try_from(code).unwrap_or(u8::MAX))
                    }
                    (None, None, Some(signal)) if ENDING.contains(&signal) => {
                        ChildEnd::Interrupted(signal)
                    }
                    (None, None, signal) => ChildEnd::Died(signal.unwrap_or_default()),
                };
            }
            // SAFETY: the set is whole; no information is asked for.
            let signal =
                unsafe { libc::sigwaitinfo(&raw const self.waited_for, std::ptr::null_mut()) };
            if ENDING.contains(&signal) {
                interrupted.get_or_insert(signal);
                // SAFETY: the child was not waited for, so its number is still its own.
                unsafe { libc::kill(child, libc::SIGKILL) };
            }
        }
    }

    /// A signal that has come and was not looked at.
    fn pending(&self) -> Option<i32> {
        let no_time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        loop {
            // SAFETY: set and time are whole; no information is asked for.
            let signal = unsafe {
                libc::sigtimedwait(
                    &raw const self.waited_for,
                    std::ptr::null_mut(),
                    &raw const no_time,
                )
            };
            match signal {
                signal if ENDING.contains(&signal) => return Some(signal),
                libc::SIGCHLD => {}
                _ => return None,
            }
        }
    }
}

/// Waits for what the child left running, which became ours when it ended: it may still write.
fn wait_for_orphans() {
    // SAFETY: nothing is asked for but to wait; the status may be left out.
    while unsafe { libc::waitpid(-1, std::ptr::null_mut(), 0) } > 0 {}
}

/// Return whether a signal is ignored, as nohup(1) has it with SIGHUP: then it stays so.
fn is_ignored(signal: i32) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: with no new action the call only fills in the old one, which is all zeroes before.
    unsafe {
        libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr());
        action.assume_init().sa_sigaction == libc::SIG_IGN
    }
}

/// The observer of a live workload in real time: the timeline, and the counters of process, kernel
/// and disk in each phase. It prints the current phase on standard output.
struct LiveProgress<'a> {
    location: &'a Location,
    watch: Watch<&'a Location>,
    stages: Vec<&'static str>,
}

impl<'a> LiveProgress<'a> {
    /// Begins now.
    ///
    /// # Errors
    /// If /proc is not mounted.
    fn start(location: &'a Location) -> anyhow::Result<Self> {
        Ok(Self { location, watch: Watch::new(location, location.read()?), stages: Vec::new() })
    }

    /// Return the timeline until now, with the counters of the whole as phase `all`.
    ///
    /// # Errors
    /// If /proc is not mounted.
    fn finish(self) -> anyhow::Result<Timeline> {
        Ok(self.watch.finish(&self.location.read()?))
    }
}

/// Tells whoever started us what comes now. Nobody may be listening.
fn print_stage(stage: &str) {
    let _ = writeln!(io::stdout(), "stage {stage}");
}

impl Counters for &Location {
    fn read(&self) -> anyhow::Result<Reading> {
        Ok(Reading::read(&[("device", self.statistics())])?)
    }
}

impl Observer for LiveProgress<'_> {
    fn enter(&mut self, phase: &'static str) -> anyhow::Result<()> {
        if !self.stages.contains(&phase) {
            self.stages.push(phase);
            print_stage(phase);
        }
        self.watch.enter(phase)
    }

    fn leave(&mut self) -> anyhow::Result<()> {
        self.watch.leave()
    }
}
