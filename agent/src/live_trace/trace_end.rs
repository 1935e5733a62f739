//! The end of a live trace: of a command or of another process, of a time span, or a signal. Waits
//! for any of them.

use std::io;
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::errors::WrongUse;
use crate::messages::say;

/// The last signal that asked us to end; 0 for none.
static SIGNAL: AtomicI32 = AtomicI32::new(0);

/// The time that we wait for a command that got our signal too.
const GRACE: Duration = Duration::from_secs(2);

/// The reason why the tracing ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Command(ExitStatus),
    Process,
    Time,
    Signal(i32),
}

/// Whatever of these comes first.
pub struct TraceEnd {
    child: Option<Child>,
    /// Readable when the process has ended (pidfd_open(2)).
    process: Option<OwnedFd>,
    deadline: Option<Instant>,
}

impl TraceEnd {
    /// Ends with a process that is there, or after a time, or with a signal (from now on).
    ///
    /// # Errors
    /// If there is no such process.
    pub fn new(pid: Option<i32>, duration: Option<Duration>) -> anyhow::Result<Self> {
        let open = |pid: i32| {
            let known = if pid > 0 { Pid::from_raw(pid) } else { None };
            let known = known.ok_or_else(|| WrongUse(format!("--pid {pid}: no process number")))?;
            pidfd_open(known, PidfdFlags::empty())
                .map_err(|error| anyhow::Error::new(WrongUse(format!("--pid {pid}: {error}"))))
        };
        let process = pid.map(open).transpose()?;
        catch_signals()?;
        let deadline = duration.map(|duration| Instant::now() + duration);
        Ok(TraceEnd { child: None, process, deadline })
    }

    /// Starts the command whose end is the end.
    ///
    /// # Errors
    /// If it cannot be run.
    pub fn run(&mut self, command: &[String]) -> anyhow::Result<()> {
        let [program, arguments @ ..] = command else { return Ok(()) };
        let child = Command::new(program)
            .args(arguments)
            .spawn()
            .map_err(|error| WrongUse(format!("cannot run {program}: {error}")))?;
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| io::Error::other("a process without a number"))?;
        self.process = Some(pidfd_open(pid, PidfdFlags::empty())?);
        self.child = Some(child);
        Ok(())
    }

    /// Waits for the end, but not longer than `time`.
    ///
    /// # Errors
    /// If the system cannot tell of the process.
    pub fn wait(&mut self, time: Duration) -> io::Result<Option<End>> {
        let left = self.deadline.map(|end| end.saturating_duration_since(Instant::now()));
        let time = left.map_or(time, |left| left.min(time));
        let timeout =
            Timespec { tv_sec: time.as_secs() as i64, tv_nsec: time.subsec_nanos().into() };
        let mut sets: Vec<PollFd> =
            self.process.iter().map(|process| PollFd::new(process, PollFlags::IN)).collect();
        let ended = match poll(&mut sets, Some(&timeout)) {
            Ok(ready) => ready > 0,
            Err(rustix::io::Errno::INTR) => false,
            Err(error) => return Err(error.into()),
        };
        if ended {
            return match &mut self.child {
                Some(child) => Ok(Some(End::Command(child.wait()?))),
                None => Ok(Some(End::Process)),
            };
        }
        let signal = SIGNAL.load(Ordering::Relaxed);
        if signal != 0 {
            return Ok(Some(self.after_signal(signal)?));
        }
        let over = self.deadline.is_some_and(|deadline| deadline <= Instant::now());
        Ok(over.then_some(End::Time))
    }

    /// A terminal's Ctrl-C goes to the command as well, and its own way to end is the answer.
    fn after_signal(&mut self, signal: i32) -> io::Result<End> {
        let begin = Instant::now();
        while let Some(child) = &mut self.child {
            if let Some(status) = child.try_wait()? {
                return Ok(End::Command(status));
            }
            if begin.elapsed() >= GRACE {
                say(format_args!("joj-agent: the command goes on (process {})", child.id()));
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(End::Signal(signal))
    }
}

extern "C" fn remember(signal: libc::c_int) {
    SIGNAL.store(signal, Ordering::Relaxed);
}

/// SIGINT and SIGTERM end the tracing and not the process.
fn catch_signals() -> io::Result<()> {
    let handler: extern "C" fn(libc::c_int) = remember;
    for signal in [libc::SIGINT, libc::SIGTERM] {
        // SAFETY: the handler stores to an atomic, which is safe at any time (signal-safety(7)).
        let previous = unsafe { libc::signal(signal, handler as libc::sighandler_t) };
        if previous == libc::SIG_ERR {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(mut until: TraceEnd) -> End {
        loop {
            if let Some(end) = until.wait(Duration::from_millis(50)).unwrap() {
                return end;
            }
        }
    }

    #[test]
    fn a_command_ends_it_with_its_status() {
        let mut until = TraceEnd::new(None, None).unwrap();
        until.run(&["sh".into(), "-c".into(), "exit 7".into()]).unwrap();
        let End::Command(status) = end(until) else { panic!("the command ended it") };
        assert_eq!(status.code(), Some(7));
    }

    #[test]
    fn a_process_or_a_time_ends_it() {
        let mut child = Command::new("true").spawn().unwrap();
        let until = TraceEnd::new(Some(child.id() as i32), None).unwrap();
        assert_eq!(end(until), End::Process);
        child.wait().unwrap();
        assert_eq!(end(TraceEnd::new(None, Some(Duration::from_millis(1))).unwrap()), End::Time);
    }

    #[test]
    fn an_unknown_process_or_program_to_follow_is_wrong_use() {
        assert!(TraceEnd::new(Some(-1), None).is_err_and(|error| error.is::<WrongUse>()));
        assert!(TraceEnd::new(Some(i32::MAX), None).is_err_and(|error| error.is::<WrongUse>()));
        let mut until = TraceEnd::new(None, None).unwrap();
        let error = until.run(&["/no/such/program".into()]).unwrap_err();
        assert!(error.to_string().contains("/no/such/program"), "{error}");
    }
}
