//! Waits for processes of ours and for threads that are traced (waitpid(2)).

use std::io;

/// What waiting for threads found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waited {
    Changed {
        tid: i32,
        status: i32,
    },
    /// A signal came.
    Interrupted,
    NobodyLeft,
}

/// Waits for a change of any traced thread; not at all if `now`, when Interrupted means none.
pub fn wait(now: bool) -> io::Result<Waited> {
    let mut status = 0;
    let options = libc::__WALL | if now { libc::WNOHANG } else { 0 };
    // SAFETY: the status is ours.
    let tid = unsafe { libc::waitpid(-1, &raw mut status, options) };
    match tid {
        1.. => Ok(Waited::Changed { tid, status }),
        0 => Ok(Waited::Interrupted),
        _ => match io::Error::last_os_error() {
            error if error.raw_os_error() == Some(libc::EINTR) => Ok(Waited::Interrupted),
            error if error.raw_os_error() == Some(libc::ECHILD) => Ok(Waited::NobodyLeft),
            error => Err(error),
        },
    }
}
