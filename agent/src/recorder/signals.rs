//! Signals to the recorder itself, and waiting for children.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

static FIRST: AtomicI32 = AtomicI32::new(0);
static COUNT: AtomicI32 = AtomicI32::new(0);
static FROM_TERMINAL: AtomicBool = AtomicBool::new(false);

/// A signal may come between the look at the count and the wait: this one comes again and again.
static AGAIN: libc::itimerval = libc::itimerval {
    it_interval: libc::timeval { tv_sec: 0, tv_usec: 50_000 },
    it_value: libc::timeval { tv_sec: 0, tv_usec: 50_000 },
};

extern "C" fn remember(signal: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    if signal == libc::SIGALRM {
        return;
    }
    // SAFETY: the kernel gives a handler with SA_SIGINFO what it knows of the signal.
    let is_from_terminal = unsafe { (*info).si_code } > 0;
    FROM_TERMINAL.store(is_from_terminal, Ordering::Relaxed);
    let _ = FIRST.compare_exchange(0, signal, Ordering::Relaxed, Ordering::Relaxed);
    COUNT.fetch_add(1, Ordering::Relaxed);
    // SAFETY: a system call without any state of this process.
    unsafe { libc::setitimer(libc::ITIMER_REAL, &raw const AGAIN, std::ptr::null_mut()) };
}

/// From here on these signals interrupt a wait and do nothing else.
pub fn catch() -> io::Result<()> {
    type Handler = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);
    let handler: Handler = remember;
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGALRM] {
        // SAFETY: a struct of numbers and an empty set.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = handler as libc::sighandler_t;
        action.sa_flags = libc::SA_SIGINFO;
        // SAFETY: the handler only counts and makes a system call (signal-safety(7)). Without
        // SA_RESTART a wait ends with EINTR.
        if unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Signals that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caught {
    /// 0 where none came.
    pub first: i32,
    pub count: i32,
    /// A terminal's goes to all processes of the foreground, the program among them.
    pub from_terminal: bool,
}

/// Return what came so far.
pub fn caught() -> Caught {
    Caught {
        first: FIRST.load(Ordering::Relaxed),
        count: COUNT.load(Ordering::Relaxed),
        from_terminal: FROM_TERMINAL.load(Ordering::Relaxed),
    }
}

/// Leaves all signals to the other threads.
pub fn block_here() {
    // SAFETY: a set of ours, filled before it is used.
    unsafe {
        let mut all = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, std::ptr::null_mut());
    }
}

/// Says what waiting for threads found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitResult {
    Changed {
        tid: i32,
        status: i32,
    },
    /// A signal came.
    Interrupted,
    NobodyLeft,
}

/// Waits for a change of any traced thread; not at all if `now`, when Interrupted means none.
pub fn wait(now: bool) -> io::Result<WaitResult> {
    let mut status = 0;
    let options = libc::__WALL | if now { libc::WNOHANG } else { 0 };
    // SAFETY: the status is ours.
    let tid = unsafe { libc::waitpid(-1, &raw mut status, options) };
    match tid {
        1.. => Ok(WaitResult::Changed { tid, status }),
        0 => Ok(WaitResult::Interrupted),
        _ => match io::Error::last_os_error() {
            error if error.raw_os_error() == Some(libc::EINTR) => Ok(WaitResult::Interrupted),
            error if error.raw_os_error() == Some(libc::ECHILD) => Ok(WaitResult::NobodyLeft),
            error => Err(error),
        },
    }
}
