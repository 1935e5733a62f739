//! Runs a program without privileges: in a root directory that is made for it, in namespaces of its
//! own, as a user without capabilities.

use std::convert::Infallible;
use std::ffi::CString;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{PermissionsExt, lchown, symlink};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::{fs, io};

use anyhow::Context;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_bind, mount_change};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};
use serde::{Deserialize, Serialize};

use super::sync_watch::{self, FilteredProgram, SyncWatch};
use crate::workload::error::{WorkloadError, step_error};
use crate::workload::fault::{SyncFault, SyncFindings};

/// A program that a shell could not start ends so.
const NOT_STARTED: i32 = 127;

/// Most processes and open files; bytes that each process may have as its own. A process that
/// wants more is told so by the kernel.
const LIMITS: [(libc::__rlimit_resource_t, u64); 4] = [
    (libc::RLIMIT_NPROC, 64),
    (libc::RLIMIT_NOFILE, 1024),
    (libc::RLIMIT_DATA, 256 << 20),
    (libc::RLIMIT_CORE, 0),
];

/// Holds what is to be run.
#[derive(Debug, Serialize, Deserialize)]
pub struct ConfinedProgram {
    pub root: PathBuf,
    /// Holds what is mounted as its working directory.
    pub directory: PathBuf,
    /// The file that tells how it ended.
    pub status: PathBuf,
    /// Path in its root, and arguments.
    pub command: Vec<String>,
    pub environment: Vec<String>,
    pub time_limit_ms: u64,
    /// Whether the keeper's standard input is a pipe for acknowledgments, which the program has as
    /// descriptor `ACKS`.
    pub acks_on_stdin: bool,
    /// The site whose syncs are left out, or a word for none; None where no sync is watched.
    pub omitted_sync: Option<String>,
    /// The sync that fails, where one does.
    pub failed_sync: Option<SyncFault>,
}

/// The descriptor that a program acknowledges by.
pub const ACKS: i32 = 3;

/// The end of a confined program.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProgramEnd {
    /// None where a signal ended it.
    pub exit_code: Option<i32>,
    pub signal: Option<i32>,
    /// Its time, or that of a process it started, was over.
    pub timed_out: bool,
    /// Its syncs, where they were watched.
    pub syncs: SyncFindings,
}

impl ProgramEnd {
    /// Return it in words.
    pub fn words(&self, time_limit_ms: u64) -> String {
        match self {
            Self { timed_out: true, .. } => format!("it did not end within {time_limit_ms} ms"),
            Self { exit_code: Some(code), .. } => format!("exit code {code}"),
            Self { signal: Some(signal), .. } => format!("signal {signal}"),
            _ => "nobody knows how it ended".to_owned(),
        }
    }
}

/// The outer process: returns when no process of the program is left.
///
/// # Errors
/// If it cannot be started.
pub fn run(program: &ConfinedProgram) -> anyhow::Result<()> {
    let spaces = libc::CLONE_NEWPID
        | libc::CLONE_NEWNS
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWUTS
        | libc::CLONE_NEWNET;
    // SAFETY: takes flags; this process has one thread.
    check(unsafe { libc::unshare(spaces) }).context("unshare")?;
    // SAFETY: this process has one thread.
    let inner = check(unsafe { libc::fork() }).context("fork")?;
    if inner == 0 {
        let code = match reap(program) {
            Ok(()) => 0,
            Err(error) => {
                eprintln!("joj-agent: {error:#}");
                NOT_STARTED
            }
        };
        std::process::exit(code);
    }
    let pid = Pid::from_raw(inner).context("the process's number")?;
    let watched = pidfd_open(pid, PidfdFlags::empty()).context("pidfd_open")?;
    let limit = Timespec {
        tv_sec: (program.time_limit_ms / 1000) as i64,
        tv_nsec: (program.time_limit_ms % 1000 * 1_000_000) as i64,
    };
    let is_over = {
        let mut ends = [PollFd::from_borrowed_fd(watched.as_fd(), PollFlags::IN)];
        poll(&mut ends, Some(&limit)).context("poll")? > 0
    };
    if !is_over {
        rustix::process::kill_process(pid, Signal::KILL).context("kill")?;
    }
    // Process 1 of a namespace is gone when all others there are (pid_namespaces(7)).
    wait(inner).context("waitpid")?;
    if !is_over {
        let mut end = read_end(&program.status).unwrap_or_default();
        end.timed_out = true;
        tell(&program.status, &end)?;
    }
    Ok(())
}

/// Reads how a program ended.
///
/// # Errors
/// If it was not told.
pub fn read_end(status: &Path) -> anyhow::Result<ProgramEnd> {
    let json = fs::read(status).with_context(|| status.display().to_string())?;
    Ok(serde_json::from_slice(&json)?)
}

fn tell(status: &Path, end: &ProgramEnd) -> anyhow::Result<()> {
    fs::write(status, serde_json::to_vec(end)?).with_context(|| status.display().to_string())
}

/// The inner process: starts the program, and waits for all that it leaves behind.
fn reap(program: &ConfinedProgram) -> anyhow::Result<()> {
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", private).context("making mounts private")?;
    let (work, proc) = (program.root.join(WORK), program.root.join("proc"));
    mount_bind(&program.directory, &work).context("mounting its working directory")?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("proc", &proc, "proc", flags, None).context("mounting its /proc")?;
    let (ours, its) = UnixStream::pair().context("socketpair")?;
    // SAFETY: this process has one thread.
    let main = check(unsafe { libc::fork() }).context("fork")?;
    if main == 0 {
        drop(ours);
        let Err(error) = become_program(program, its);
        eprintln!("{}: {error:#}", program.command[0]);
        std::process::exit(NOT_STARTED);
    }
    drop(its);
    let watched = FilteredProgram { pid: main, root: program.root.clone(), work: WORK, uid: UID };
    let omitted = program.omitted_sync.as_deref();
    let fault = program.failed_sync.clone();
    let watch = omitted.map(|site| SyncWatch::start(&watched, site, fault, ours)).transpose()?;
    let mut end = ProgramEnd::default();
    loop {
        match wait(-1) {
            Ok((pid, status)) if pid == main => {
                end.exit_code = libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status));
                end.signal = libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status));
                tell(&program.status, &end)?;
            }
            Ok(_) => {}
            Err(error) if error.raw_os_error() == Some(libc::ECHILD) => break,
            Err(error) => return Err(error).context("waitpid"),
        }
    }
    if let Some(watch) = watch {
        end.syncs = watch.findings();
        tell(&program.status, &end)?;
    }
    Ok(())
}

fn become_program(program: &ConfinedProgram, keeper: UnixStream) -> anyhow::Result<Infallible> {
    rustix::process::chroot(&program.root).context("chroot")?;
    rustix::process::chdir(Path::new("/").join(WORK).as_path()).context("chdir")?;
    for (resource, most) in LIMITS {
        let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
        // SAFETY: reads a struct of ours.
        check(unsafe { libc::setrlimit(resource, &raw const limit) }).context("setrlimit")?;
    }
    // SAFETY: integers, and an empty list.
    unsafe {
        // Until one is refused, as there is none of that number.
        for capability in 0..64 {
            if libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) != 0 {
                break;
            }
        }
        check(libc::setgroups(0, std::ptr::null())).context("setgroups")?;
        check(libc::setgid(UID)).context("setgid")?;
        // Who leaves user 0 has no capabilities any more (capabilities(7)).
        check(libc::setuid(UID)).context("setuid")?;
        check(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)).context("no_new_privs")?;
        check(libc::setsid()).context("setsid")?;
    }
    let strings = |texts: &[String]| -> Result<Vec<CString>, _> {
        texts.iter().map(|text| CString::new(text.as_str())).collect()
    };
    let (command, environment) = (strings(&program.command)?, strings(&program.environment)?);
    let pointers = |strings: &[CString]| -> Vec<*const libc::c_char> {
        strings.iter().map(|it| it.as_ptr()).chain([std::ptr::null()]).collect()
    };
    let (arguments, variables) = (pointers(&command), pointers(&environment));
    if program.acks_on_stdin {
        // SAFETY: takes numbers of descriptors.
        check(unsafe { libc::dup2(libc::STDIN_FILENO, ACKS) }).context("dup2")?;
        let nothing = fs::File::open("/dev/null").context("/dev/null")?;
        // SAFETY: likewise.
        check(unsafe { libc::dup2(nothing.as_raw_fd(), libc::STDIN_FILENO) }).context("dup2")?;
    }
    if program.omitted_sync.is_some() {
        sync_watch::begin(keeper)?;
    }
    // SAFETY: lists of strings that end in NUL, and in a null pointer.
    unsafe { libc::execve(command[0].as_ptr(), arguments.as_ptr(), variables.as_ptr()) };
    Err(io::Error::last_os_error()).context("cannot be started")
}

fn wait(pid: i32) -> io::Result<(i32, i32)> {
    let mut status = 0;
    loop {
        // SAFETY: writes an integer of ours.
        match check(unsafe { libc::waitpid(pid, &raw mut status, 0) }) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            found => return Ok((found?, status)),
        }
    }
}

fn check(result: i32) -> io::Result<i32> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// The user that runs the program, and nothing else in the guest.
pub const UID: u32 = 1000;
/// Its working directory, in its own root.
pub const WORK: &str = "app";
/// Libraries that do not lie where the system's do (jojlab/guest/program_files.py).
const OWN_LIBRARIES: &str = "opt/program/lib";

/// Character devices by their numbers (Documentation/admin-guide/devices.txt of Linux).
const DEVICES: [(&str, u32); 5] =
    [("null", 3), ("zero", 5), ("full", 7), ("random", 8), ("urandom", 9)];

/// A path, and what is written there where nothing is.
const USERS: [(&str, &str); 2] = [
    ("etc/passwd", "root:x:0:0::/:/bin/sh\napp:x:1000:1000::/app:/bin/sh\n"),
    ("etc/group", "root:x:0:\napp:x:1000:\n"),
];

/// Makes in `root` all that is not the program's own; gives the path of the program there.
///
/// # Errors
/// If there is no program in it, or a step fails.
pub fn furnish(root: &Path) -> Result<PathBuf, WorkloadError> {
    let link = root.join("program");
    let target = fs::read_link(&link).map_err(step_error("read the link", &link))?;
    for folder in ["dev", "proc", "etc", WORK] {
        let folder = root.join(folder);
        fs::create_dir_all(&folder).map_err(step_error("mkdir", &folder))?;
    }
    fs::set_permissions(root, fs::Permissions::from_mode(0o755))
        .map_err(step_error("chmod", root))?;
    for (name, minor) in DEVICES {
        let path = root.join("dev").join(name);
        let mode = Mode::from_raw_mode(0o666);
        mknodat(CWD, &path, FileType::CharacterDevice, mode, makedev(1, minor))
            .map_err(step_error("mknod", &path))?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666))
            .map_err(step_error("chmod", &path))?;
    }
    for (path, text) in USERS {
        let path = root.join(path);
        if !path.exists() {
            fs::write(&path, text).map_err(step_error("write", &path))?;
        }
    }
    Ok(Path::new("/").join(target))
}

/// The environment that every program has, then its own.
pub fn environment(root: &Path, own: &[String]) -> Vec<String> {
    let fixed = [
        "PATH=/usr/local/bin:/usr/bin:/bin",
        "HOME=/app",
        "TMPDIR=/app",
        "USER=app",
        "LOGNAME=app",
        "LANG=C.UTF-8",
        "TZ=UTC",
    ];
    let mut all: Vec<String> = fixed.map(String::from).to_vec();
    if root.join(OWN_LIBRARIES).is_dir() {
        all.push(format!("LD_LIBRARY_PATH=/{OWN_LIBRARIES}"));
    }
    all.extend_from_slice(own);
    all
}

/// Copies a tree into `directory` and gives all of it to the program; links stay links.
///
/// # Errors
/// If a step fails.
pub fn give_files(from: &Path, directory: &Path) -> Result<(), WorkloadError> {
    if !from.as_os_str().is_empty() {
        copy(from, directory).map_err(step_error("copy the files of", from))?;
    }
    lchown(directory, Some(UID), Some(UID)).map_err(step_error("chown", directory))
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let mut entries = fs::read_dir(from)?.collect::<io::Result<Vec<_>>>()?;
    // Equal trees are to lie equally on the disk.
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type()?;
        if kind.is_symlink() {
            symlink(fs::read_link(&source)?, &target)?;
        } else if kind.is_dir() {
            fs::create_dir_all(&target)?;
            copy(&source, &target)?;
            fs::set_permissions(&target, entry.metadata()?.permissions())?;
        } else {
            fs::copy(&source, &target)?;
        }
        lchown(&target, Some(UID), Some(UID))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_is_fixed_but_for_what_is_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let own = ["A=1".to_owned()];
        let found = environment(folder.path(), &own);
        assert_eq!(found.last().unwrap(), "A=1");
        assert!(!found.iter().any(|it| it.starts_with("LD_LIBRARY_PATH")));
        fs::create_dir_all(folder.path().join(OWN_LIBRARIES)).unwrap();
        let found = environment(folder.path(), &own);
        assert!(found.contains(&"LD_LIBRARY_PATH=/opt/program/lib".to_owned()));
    }
}
