//! Starts the program that is recorded, which waits to be watched first; tells of threads what
//! /proc has.

use std::ffi::{CString, OsStr};
use std::fs;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::errors::WrongUse;

/// A program that waits to be let go.
pub struct WaitingCommand {
    pub pid: i32,
    /// Its file.
    pub program: PathBuf,
    name: String,
    go: PipeWriter,
    failed: PipeReader,
}

/// The way a command starts.
pub enum Starts {
    /// With a filter of its calls (seccomp(2)).
    Filtered(Vec<libc::sock_filter>),
    Plain,
}

/// Makes a process that waits; after `go` it becomes the command.
///
/// # Errors
/// If there is no such program, or no process can be made.
pub fn command(command: &[String], mut starts: Starts) -> anyhow::Result<WaitingCommand> {
    let [name, ..] = command else { return Err(WrongUse("name a command after --".into()).into()) };
    let file = find(name)?;
    let program = CString::new(file.as_os_str().as_bytes())?;
    let arguments: Vec<CString> =
        command.iter().map(|it| CString::new(it.as_bytes())).collect::<Result<_, _>>()?;
    let mut pointers: Vec<_> = arguments.iter().map(|it| it.as_ptr()).collect();
    pointers.push(std::ptr::null());
    // Both ends are closed on exec.
    let (mut wait, go) = io::pipe()?;
    let (failed, mut fail) = io::pipe()?;
    // SAFETY: the child makes system calls only, as it must beside other threads (fork(2)): what
    // it needs is made above.
    let pid = unsafe { libc::fork() };
    match pid {
        -1 => Err(io::Error::last_os_error().into()),
        0 => {
            drop(go);
            drop(failed);
            let error = become_program(&mut wait, &mut starts, &program, &pointers);
            let _ = fail.write_all(&error.to_ne_bytes());
            // SAFETY: ends this process at once.
            unsafe { libc::_exit(127) }
        }
        pid => {
            drop(wait);
            drop(fail);
            Ok(WaitingCommand { pid, program: file, name: name.clone(), go, failed })
        }
    }
}

/// In the child: waits, takes its filter on, and becomes the program; returns the error number.
fn become_program(
    wait: &mut PipeReader,
    starts: &mut Starts,
    program: &CString,
    arguments: &[*const libc::c_char],
) -> i32 {
    let errno = || io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO);
    match wait.read(&mut [0]) {
        // Nobody is there to watch.
        Ok(0) => return libc::ECANCELED,
        Ok(_) => {}
        Err(_) => return errno(),
    }
    if let Starts::Filtered(steps) = starts {
        let filter =
            libc::sock_fprog { len: steps.len() as libc::c_ushort, filter: steps.as_mut_ptr() };
        // SAFETY: the filter lives until the call has copied it.
        let set = || unsafe {
            libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter)
        };
        // Without privileges a filter needs this first (seccomp(2), EACCES).
        // SAFETY: prctl with numbers only.
        let give_up = || unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
        if set() < 0 && (give_up() < 0 || set() < 0) {
            return errno();
        }
    }
    // SAFETY: `arguments` ends with a null pointer, and environ is this process's own.
    unsafe {
        // Rust ignores it, and a program must find it as it is by default (signal(7)).
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        libc::execv(program.as_ptr(), arguments.as_ptr());
    }
    errno()
}

impl WaitingCommand {
    /// Lets it become the command.
    pub fn go(&mut self) -> io::Result<()> {
        self.go.write_all(&[1])
    }

    /// Once the process has ended: an error where it could not become the command.
    pub fn check(&mut self) -> Result<(), WrongUse> {
        let mut number = [0; 4];
        if self.failed.read_exact(&mut number).is_err() {
            return Ok(());
        }
        let error = io::Error::from_raw_os_error(i32::from_ne_bytes(number));
        Err(WrongUse(format!("cannot run {}: {error}", self.name)))
    }
}

/// The file of a program, as execvp(3) finds it: a look-up that is not part of the recording.
pub fn find(name: &str) -> Result<PathBuf, WrongUse> {
    if name.contains('/') {
        return Ok(name.into());
    }
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
    let is_program = |file: &PathBuf| {
        fs::metadata(file).is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
    };
    std::env::split_paths(&path)
        .map(|folder| if folder == Path::new("") { "./".into() } else { folder }.join(name))
        .find(is_program)
        .ok_or_else(|| WrongUse(format!("cannot run {name}: no such program in PATH")))
}

/// The threads of a process.
pub fn threads(pid: i32) -> io::Result<Vec<i32>> {
    let entries = fs::read_dir(format!("/proc/{pid}/task"))?;
    let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse().ok();
    Ok(entries.flatten().filter_map(number).collect())
}

/// Return whether a thread is there and has not begun to end: field 9 of proc_pid_stat(5).
pub fn is_alive(tid: i32) -> bool {
    /// The flag of a thread that exits (include/linux/sched.h).
    const PF_EXITING: u32 = 4;
    let stat = fs::read(format!("/proc/{tid}/stat")).unwrap_or_default();
    let stat = String::from_utf8_lossy(&stat);
    // Its name, field 2, may have blanks and parentheses.
    let behind_name = stat.rsplit_once(") ").map(|it| it.1);
    let flags = behind_name.and_then(|it| it.split(' ').nth(6)?.parse::<u32>().ok());
    flags.is_some_and(|it| it & PF_EXITING == 0)
}

/// Return whether a program's file gives its user other rights (execve(2)).
pub fn is_set_id(executable: &[u8]) -> bool {
    fs::metadata(OsStr::from_bytes(executable))
        .is_ok_and(|it| it.permissions().mode() & (libc::S_ISUID | libc::S_ISGID) != 0)
}

/// A link of /proc, as bytes; empty where it cannot be read.
pub fn link(tid: i32, name: &str) -> Vec<u8> {
    let found = fs::read_link(format!("/proc/{tid}/{name}")).unwrap_or_default();
    OsStr::as_bytes(found.as_os_str()).to_vec()
}

/// The umask of a thread (proc_pid_status(5), Linux 4.7).
pub fn umask(tid: i32) -> Option<i64> {
    i64::from_str_radix(&status(tid, "Umask:")?, 8).ok()
}

/// The process of a thread (proc_pid_status(5)); the thread's own where it has gone.
pub fn process(tid: i32) -> i32 {
    status(tid, "Tgid:").and_then(|field| field.parse().ok()).unwrap_or(tid)
}

fn status(tid: i32, name: &str) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    Some(text.lines().find_map(|line| line.strip_prefix(name))?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_nobody_has_waited_for_is_not_alive() {
        let mut child =
            std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let tid = child.id() as i32;
        assert!(is_alive(tid) && is_alive(std::process::id() as i32));
        drop(child.stdin.take());
        // SAFETY: a structure of numbers, for which zeroes are values.
        let mut found: libc::siginfo_t = unsafe { std::mem::zeroed() };
        let options = libc::WEXITED | libc::WNOWAIT;
        // SAFETY: the structure is ours.
        let done = unsafe { libc::waitid(libc::P_PID, tid as u32, &raw mut found, options) };
        assert_eq!(done, 0);
        assert!(!is_alive(tid));
        child.wait().unwrap();
        assert!(!is_alive(tid));
    }
}
