//! This process: the size of the kernel's pages, and an end together with the process that started
//! it.

use rustix::process::{Signal, getppid, kill_process, set_parent_process_death_signal};

/// Returns the bytes of a page, the unit of memory and of the page cache: 4096 on x86_64; also
/// 16384 or 65536 on arm64.
pub fn page_bytes() -> usize {
    // SAFETY: no memory is involved.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as usize }
}

/// Has the end of `parent`, however that happens, come as SIGTERM from here on
/// (PR_SET_PDEATHSIG(2const)), at once where it has ended already: a parent that is killed cannot
/// pass a signal on. A child of ours does not inherit it.
///
/// # Errors
/// Only if the kernel refuses.
pub fn end_with(parent: i32) -> rustix::io::Result<()> {
    set_parent_process_death_signal(Some(Signal::TERM))?;
    if getppid().is_none_or(|pid| pid.as_raw_nonzero().get() != parent) {
        kill_process(rustix::process::getpid(), Signal::TERM)?;
    }
    Ok(())
}
