//! Watches the sync calls of a program by a filter of its calls (seccomp_unotify(2)), counts them
//! by their sites, and leaves out those of one: the call returns 0 and does nothing; a file that is
//! opened with O_SYNC or O_DSYNC is opened without. Or has one call fail: the keeper makes it, on
//! the program's own open file, while the disk refuses the first write; so filesystem and page
//! cache do what they do after such a write, and the program gets what the kernel returned. All
//! other calls go on as they are. What syncs in a way of which no call can be left out is counted
//! too.
//!
//! Works for programs of any kind, and in all their threads and children: the filter is inherited.
//! The program waits while its keeper looks, so that nothing depends on who runs first.

use std::ffi::{CStr, CString};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context;
use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

use crate::workload::fault::{SyncFault, SyncFindings, SyncRecord};
use crate::workload::sync_site::SyncSite;

/// The calls that sync, and how they name what they sync.
const SYNCS: [(&str, libc::c_long, SyncObject); 6] = [
    ("fsync", libc::SYS_fsync, SyncObject::Descriptor),
    ("fdatasync", libc::SYS_fdatasync, SyncObject::Descriptor),
    ("sync_file_range", libc::SYS_sync_file_range, SyncObject::Descriptor),
    ("syncfs", libc::SYS_syncfs, SyncObject::Descriptor),
    ("msync", libc::SYS_msync, SyncObject::Address),
    ("sync", libc::SYS_sync, SyncObject::Nothing),
];

#[derive(Clone, Copy)]
enum SyncObject {
    Descriptor,
    Address,
    Nothing,
}

/// The calls that open by flags, and which argument those are.
#[cfg(target_arch = "x86_64")]
const OPENS: [(libc::c_long, u32); 2] = [(libc::SYS_open, 1), (libc::SYS_openat, 2)];
#[cfg(not(target_arch = "x86_64"))]
const OPENS: [(libc::c_long, u32); 1] = [(libc::SYS_openat, 2)];

/// Calls whose flags or requests are in memory, which no filter reads.
const INDIRECT_CALLS: [libc::c_long; 3] =
    [libc::SYS_openat2, libc::SYS_io_submit, libc::SYS_io_uring_setup];

/// The number of the argument of pwritev2(2) that has its flags.
const WRITE_FLAGS: u32 = 5;

/// Opcodes of struct iocb that sync (include/uapi/linux/aio_abi.h), and places in it.
const IOCB_SYNCS: [u16; 2] = [2, 3];
const IOCB_FLAGS_AT: usize = 12;
const IOCB_OPCODE_AT: usize = 16;
const IOCB_BYTES: usize = 64;
/// More than any program submits at once.
const MOST_IOCBS: u64 = 1024;

/// AUDIT_ARCH_X86_64 and AUDIT_ARCH_AARCH64 of include/uapi/linux/audit.h.
const ARCHITECTURE: u32 = if cfg!(target_arch = "x86_64") { 0xc000_003e } else { 0xc000_00b7 };

/// Places in struct seccomp_data of include/uapi/linux/seccomp.h.
const NUMBER_AT: u32 = 0;
const ARCHITECTURE_AT: u32 = 4;
const ARGUMENTS_AT: u32 = 16;

/// More than any path has (PATH_MAX).
const MOST_PATH_BYTES: usize = 4096;

/// The filter: who makes one of the calls waits for an answer.
fn filter() -> Vec<libc::sock_filter> {
    let load = |k| step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, k, 0, 0);
    let give = |k| step(libc::BPF_RET | libc::BPF_K, k, 0, 0);
    let (allow, notify) = (give(libc::SECCOMP_RET_ALLOW), give(libc::SECCOMP_RET_USER_NOTIF));
    let unless = |k| step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, k, 0, 1);
    let mut steps = vec![load(ARCHITECTURE_AT)];
    steps.push(step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, ARCHITECTURE, 1, 0));
    steps.extend([allow, load(NUMBER_AT)]);
    for number in SYNCS.map(|(_, number, _)| number).into_iter().chain(INDIRECT_CALLS) {
        steps.extend([unless(number as u32), notify]);
    }
    // O_SYNC has the bit of O_DSYNC too.
    let opens = OPENS.map(|(number, place)| (number, place, libc::O_DSYNC));
    let write = (libc::SYS_pwritev2, WRITE_FLAGS, libc::RWF_SYNC | libc::RWF_DSYNC);
    for (number, place, bits) in opens.into_iter().chain([write]) {
        // The low half comes first: both machines are little-endian.
        let flags = load(ARGUMENTS_AT + 8 * place);
        let any = step(libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K, bits as u32, 0, 1);
        steps.push(step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, number as u32, 0, 4));
        steps.extend([flags, any, notify, allow]);
    }
    steps.push(allow);
    steps
}

fn step(code: u32, k: u32, jt: u8, jf: u8) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt, jf, k }
}

/// Has this process's calls watched from now on, by who has the other end of the stream.
///
/// # Errors
/// If the kernel cannot, or nobody takes it.
pub fn begin(mut stream: UnixStream) -> anyhow::Result<()> {
    let mut steps = filter();
    let program = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
    let (mode, flags) = (libc::SECCOMP_SET_MODE_FILTER, libc::SECCOMP_FILTER_FLAG_NEW_LISTENER);
    // SAFETY: the filter lives until the call has copied it.
    let listener =
        unsafe { libc::syscall(libc::SYS_seccomp, mode, flags, &raw const program) } as RawFd;
    if listener < 0 {
        return Err(io::Error::last_os_error()).context("seccomp: watching its syncs");
    }
    // SAFETY: the call made it. It is closed once the other end has its own.
    let listener = unsafe { OwnedFd::from_raw_fd(listener) };
    stream.write_all(&listener.as_raw_fd().to_le_bytes()).context("telling of the filter")?;
    stream.read_exact(&mut [0]).context("nobody watches its syncs")
}

/// A program whose calls wait for answers.
pub struct FilteredProgram {
    /// Its first process, which `begin`s.
    pub pid: i32,
    pub root: PathBuf,
    /// Its working directory there.
    pub work: &'static str,
    pub uid: u32,
}

/// Answers the calls that wait, in a thread of its own, for as long as this process lives.
pub struct SyncWatch(Arc<Mutex<SyncRecord>>);

impl SyncWatch {
    /// Begins to answer the calls of a program; those of the site `omitted` are left out.
    ///
    /// # Errors
    /// If it ended before, or its filter cannot be had.
    pub fn start(
        program: &FilteredProgram,
        omitted: &str,
        fault: Option<SyncFault>,
        mut stream: UnixStream,
    ) -> anyhow::Result<Self> {
        let mut number = [0; 4];
        stream.read_exact(&mut number).context("the program ended before it began")?;
        let pid = Pid::from_raw(program.pid).context("the program's number")?;
        let process = pidfd_open(pid, PidfdFlags::empty()).context("pidfd_open")?;
        let number = RawFd::from_le_bytes(number);
        let listener =
            pidfd_getfd(process, number, PidfdGetfdFlags::empty()).context("pidfd_getfd")?;
        stream.write_all(&[0]).context("letting the program begin")?;
        let root = program.root.canonicalize().context("the program's root")?;
        let seen = Arc::default();
        let watcher = Watcher {
            listener,
            proc: root.join("proc"),
            work: root.join(program.work),
            root,
            uid: program.uid,
            omitted: omitted.to_owned(),
            fault,
            seen: Arc::clone(&seen),
        };
        std::thread::Builder::new().spawn(move || watcher.answer_all()).context("a thread")?;
        Ok(Self(seen))
    }

    /// The calls until now, by their sites, and the one that was to fail.
    pub fn findings(&self) -> SyncFindings {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).findings()
    }
}

struct Watcher {
    listener: OwnedFd,
    /// The program's root, in it the file system of its processes, and its working directory.
    root: PathBuf,
    proc: PathBuf,
    work: PathBuf,
    uid: u32,
    omitted: String,
    fault: Option<SyncFault>,
    seen: Arc<Mutex<SyncRecord>>,
}

/// The answer to a call that waits.
enum Reply {
    GoOn,
    Done,
    Error(i32),
    Opened(io::Result<(OwnedFd, i32)>),
}

impl Watcher {
    fn answer_all(self) {
        loop {
            // SAFETY: zeros are a valid one, and what the kernel wants to be given.
            let mut call: libc::seccomp_notif = unsafe { std::mem::zeroed() };
            // SAFETY: fills a struct of ours.
            if unsafe { self.control(libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut call) } < 0 {
                // The call ended, as by a signal, before it was read.
                continue;
            }
            let reply = self.reply(&call);
            let mut answer = libc::seccomp_notif_resp { id: call.id, val: 0, error: 0, flags: 0 };
            match reply {
                Reply::GoOn => answer.flags = libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32,
                Reply::Done => {}
                Reply::Error(number) => answer.error = -number,
                Reply::Opened(opened) => {
                    match opened.and_then(|(file, flags)| self.give(call.id, &file, flags)) {
                        Ok(descriptor) => answer.val = descriptor.into(),
                        Err(error) => answer.error = -error.raw_os_error().unwrap_or(libc::EIO),
                    }
                }
            }
            // SAFETY: reads a struct of ours. If it fails, nobody waits any more.
            unsafe { self.control(libc::SECCOMP_IOCTL_NOTIF_SEND, &raw mut answer) };
        }
    }

    /// # Safety
    /// The request must be one that takes a `Given`.
    unsafe fn control<Given>(&self, request: libc::Ioctl, given: *mut Given) -> i32 {
        // SAFETY: as our caller promises.
        unsafe { libc::ioctl(self.listener.as_raw_fd(), request, given) }
    }

    /// Gives the program an open file; its number there.
    fn give(&self, id: u64, file: &OwnedFd, flags: i32) -> io::Result<i32> {
        let mut request = libc::seccomp_notif_addfd {
            id,
            flags: 0,
            srcfd: file.as_raw_fd() as u32,
            newfd: 0,
            newfd_flags: (flags & libc::O_CLOEXEC) as u32,
        };
        // SAFETY: reads a struct of ours.
        match unsafe { self.control(libc::SECCOMP_IOCTL_NOTIF_ADDFD, &raw mut request) } {
            descriptor if descriptor < 0 => Err(io::Error::last_os_error()),
            descriptor => Ok(descriptor),
        }
    }

    fn reply(&self, call: &libc::seccomp_notif) -> Reply {
        let process = self.proc.join(call.pid.to_string());
        if let Some(open) = OpenCall::read(call, &process) {
            return self.open_reply(open, &process).unwrap_or(Reply::GoOn);
        }
        let site = self.sync_site(call).or_else(|| self.fixed_site(call, &process));
        let Some(site) = site else { return Reply::GoOn };
        let name = (!site.is_fixed()).then(|| site.to_string());
        let number = self.count(site);
        let is_faulty = |it: &&SyncFault| it.number == number && Some(&it.site) == name.as_ref();
        if let Some(fault) = self.fault.as_ref().filter(is_faulty) {
            return self.fail(fault, call, &process).unwrap_or(Reply::GoOn);
        }
        if name.as_ref() == Some(&self.omitted) { Reply::Done } else { Reply::GoOn }
    }

    /// Counts a call; gives its number at its site.
    fn count(&self, site: SyncSite) -> u64 {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).count(site)
    }

    /// Makes a sync in the program's place while the disk refuses the first write; None where only
    /// the program itself can make it, as msync(2), or it is gone.
    fn fail(&self, fault: &SyncFault, call: &libc::seccomp_notif, process: &Path) -> Option<Reply> {
        let number = libc::c_long::from(call.data.nr);
        let (_, _, object) = SYNCS.iter().find(|(_, sync, _)| *sync == number)?;
        let [descriptor, second, third, fourth, ..] = call.data.args;
        // Its own open file, as a file's error is told once to each open file (errseq_t).
        let file = match object {
            SyncObject::Address => return None,
            SyncObject::Nothing => None,
            SyncObject::Descriptor => {
                let leader = status_value(process, "Tgid:")?.parse().ok()?;
                let leader = pidfd_open(Pid::from_raw(leader)?, PidfdFlags::empty()).ok()?;
                Some(pidfd_getfd(leader, descriptor as RawFd, PidfdGetfdFlags::empty()).ok()?)
            }
        };
        let descriptor = file.as_ref().map_or(-1, AsRawFd::as_raw_fd);
        let failed = fault.fail(|| {
            // SAFETY: one of SYNCS, which take numbers, and of these none that takes an address.
            unsafe { libc::syscall(number, descriptor, second, third, fourth) < 0 }
        })?;
        let errno = failed.errno;
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).failed = Some(failed);
        Some(if errno == 0 { Reply::Done } else { Reply::Error(errno) })
    }

    /// The site of a sync of something in the working directory.
    fn sync_site(&self, call: &libc::seccomp_notif) -> Option<SyncSite> {
        let number = libc::c_long::from(call.data.nr);
        let (name, _, names) = SYNCS.iter().find(|(_, sync, _)| *sync == number)?;
        let process = self.proc.join(call.pid.to_string());
        let [first, _, third, ..] = call.data.args;
        match names {
            SyncObject::Nothing => Some(SyncSite::on_all(name)),
            SyncObject::Address if third & libc::MS_SYNC as u64 == 0 => None,
            SyncObject::Address => {
                let maps = fs::read_to_string(process.join("maps")).ok()?;
                let path = mapped_file(&maps, first)?;
                Some(SyncSite::on_file(name, &self.in_work(Path::new(path))?, false))
            }
            SyncObject::Descriptor => {
                let link = process.join("fd").join((first as i32).to_string());
                let is_directory = fs::metadata(&link).ok()?.is_dir();
                let path = fs::read_link(&link).ok()?;
                // One of the whole filesystem is the same by whatever it is named.
                if *name == "syncfs" {
                    return self.in_work(&path).map(|_| SyncSite::on_all(name));
                }
                Some(SyncSite::on_file(name, &self.in_work(&path)?, is_directory))
            }
        }
    }

    /// Return the site of a sync that cannot be left out alone: of a write that syncs itself, of
    /// requests of Linux AIO, and of all that a ring of io_uring does.
    fn fixed_site(&self, call: &libc::seccomp_notif, process: &Path) -> Option<SyncSite> {
        let [first, second, third, ..] = call.data.args;
        match libc::c_long::from(call.data.nr) {
            libc::SYS_pwritev2 => {
                let flags = call.data.args[WRITE_FLAGS as usize] as i32;
                let name = if flags & libc::RWF_SYNC == 0 { "RWF_DSYNC" } else { "RWF_SYNC" };
                let path = fs::read_link(process.join("fd").join((first as i32).to_string()));
                Some(SyncSite::on_file(name, &self.in_work(&path.ok()?)?, false))
            }
            libc::SYS_io_submit => {
                has_sync(process, second, third).then(|| SyncSite::on_all("io_submit"))
            }
            libc::SYS_io_uring_setup => Some(SyncSite::on_all("io_uring_setup")),
            _ => None,
        }
    }

    /// Return the place of a path of this process in the working directory; None where it is not in
    /// it.
    fn in_work(&self, path: &Path) -> Option<PathBuf> {
        let inside = path.strip_prefix(&self.work).ok()?;
        let name = inside.as_os_str().as_bytes();
        let name = name.strip_suffix(b" (deleted)").unwrap_or(name);
        Some(PathBuf::from(std::ffi::OsStr::from_bytes(name)))
    }

    /// Return the answer to an open by which each write syncs; None where it is none of ours.
    fn open_reply(&self, open: OpenCall, process: &Path) -> Option<Reply> {
        let OpenCall { folder, path, flags, mode, is_fixed } = open;
        let text = path_at(process, path)?;
        let folder = match folder {
            libc::AT_FDCWD => fs::read_link(process.join("cwd")).ok()?,
            descriptor => fs::read_link(process.join("fd").join(descriptor.to_string())).ok()?,
        };
        let folder = folder.strip_prefix(&self.root).ok()?;
        // An absolute path takes the folder's place.
        let path = lexical(&Path::new("/").join(folder).join(text));
        let inside = self.in_work(&self.root.join(path.strip_prefix("/").ok()?))?;
        let name = match flags & libc::O_SYNC == libc::O_SYNC {
            _ if is_fixed => "openat2",
            true => "O_SYNC",
            false => "O_DSYNC",
        };
        let site = SyncSite::on_file(name, &inside, false);
        let is_omitted = !site.is_fixed() && site.to_string() == self.omitted;
        self.count(site);
        if !is_omitted {
            return Some(Reply::GoOn);
        }
        let umask = u32::from_str_radix(&status_value(process, "Umask:")?, 8).ok()?;
        Some(Reply::Opened(self.open(&path, flags & !libc::O_SYNC, mode & !umask)))
    }

    /// Opens a path of the program's root, as the program's user.
    fn open(&self, path: &Path, flags: i32, mode: u32) -> io::Result<(OwnedFd, i32)> {
        let root = File::open(&self.root)?;
        let path = CString::new(path.as_os_str().as_bytes())?;
        let is_made = [libc::O_CREAT, libc::O_TMPFILE].iter().any(|made| flags & made == *made);
        let mode = Mode::from_raw_mode(if is_made { mode & 0o7777 } else { 0 });
        let kept = OFlags::from_bits_retain(flags as u32) | OFlags::CLOEXEC;
        // SAFETY: numbers alone; they are of this thread (setfsuid(2)), and its umask is nobody's.
        let become_user = |number| unsafe {
            libc::setfsgid(number);
            libc::setfsuid(number);
        };
        // SAFETY: likewise.
        unsafe { libc::umask(0) };
        become_user(self.uid);
        let opened = openat2(&root, path.as_c_str(), kept, mode, ResolveFlags::IN_ROOT);
        become_user(0);
        Ok((opened?, flags))
    }
}

/// A call that opens a file by which each write syncs.
struct OpenCall {
    folder: i32,
    /// The address of its path.
    path: u64,
    flags: i32,
    mode: u32,
    /// Whether it opens by rules that the keeper cannot follow.
    is_fixed: bool,
}

impl OpenCall {
    /// None where the call is another one.
    fn read(call: &libc::seccomp_notif, process: &Path) -> Option<Self> {
        let number = libc::c_long::from(call.data.nr);
        let [folder, path, how, ..] = call.data.args;
        if number == libc::SYS_openat2 {
            let mut bytes = [0; 24];
            let memory = File::open(process.join("mem")).ok()?;
            memory.read_exact_at(&mut bytes, how).ok()?;
            // struct open_how of include/uapi/linux/openat2.h.
            let [flags, mode, resolve] = [0, 8, 16].map(|at| word(&bytes[at..]));
            let (flags, mode) = (flags as i32, mode as u32);
            let open = Self { folder: folder as i32, path, flags, mode, is_fixed: resolve != 0 };
            return (flags & libc::O_DSYNC != 0).then_some(open);
        }
        let (_, place) = OPENS.iter().find(|(open, _)| *open == number)?;
        let place = *place as usize;
        let folder = if place == 1 { libc::AT_FDCWD } else { folder as i32 };
        let (flags, mode) = (call.data.args[place] as i32, call.data.args[place + 1] as u32);
        Some(Self { folder, path: call.data.args[place - 1], flags, mode, is_fixed: false })
    }
}

/// Return whether one of the requests that are submitted at once syncs; their addresses are at
/// `place`.
fn has_sync(process: &Path, count: u64, place: u64) -> bool {
    let Ok(memory) = File::open(process.join("mem")) else { return false };
    (0..count.min(MOST_IOCBS)).any(|number| {
        let (mut address, mut iocb) = ([0; 8], [0; IOCB_BYTES]);
        let read = memory
            .read_exact_at(&mut address, place + 8 * number)
            .and_then(|()| memory.read_exact_at(&mut iocb, word(&address)));
        read.is_ok() && is_sync(&iocb)
    })
}

fn is_sync(iocb: &[u8; IOCB_BYTES]) -> bool {
    let opcode = u16::from_ne_bytes([iocb[IOCB_OPCODE_AT], iocb[IOCB_OPCODE_AT + 1]]);
    let flags = i32::from(iocb[IOCB_FLAGS_AT]);
    IOCB_SYNCS.contains(&opcode) || flags & (libc::RWF_SYNC | libc::RWF_DSYNC) != 0
}

/// The value of a line of a process's status (proc_pid_status(5)).
fn status_value(process: &Path, name: &str) -> Option<String> {
    let status = fs::read_to_string(process.join("status")).ok()?;
    Some(status.lines().find_map(|line| line.strip_prefix(name))?.trim().to_owned())
}

fn word(bytes: &[u8]) -> u64 {
    u64::from_ne_bytes(bytes[..8].try_into().expect("eight bytes"))
}

/// The text that a process has at an address.
fn path_at(process: &Path, address: u64) -> Option<PathBuf> {
    let memory = File::open(process.join("mem")).ok()?;
    let mut bytes = vec![0; MOST_PATH_BYTES];
    // It may end before the next page does.
    let length = memory.read_at(&mut bytes, address).ok()?;
    let text = CStr::from_bytes_until_nul(&bytes[..length]).ok()?;
    Some(PathBuf::from(std::ffi::OsStr::from_bytes(text.to_bytes())))
}

/// A path without `.` and `..`.
fn lexical(path: &Path) -> PathBuf {
    let mut found = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => _ = found.pop(),
            Component::CurDir => {}
            other => found.push(other),
        }
    }
    found
}

/// The file that is mapped at an address, by /proc/PID/maps (proc(5)).
fn mapped_file(maps: &str, address: u64) -> Option<&str> {
    let number = |text| u64::from_str_radix(text, 16).ok();
    let line = maps.lines().find(|line| {
        let range = line.split(' ').next().and_then(|range| range.split_once('-'));
        let ends = range.and_then(|(begin, end)| Some((number(begin)?, number(end)?)));
        ends.is_some_and(|(begin, end)| (begin..end).contains(&address))
    })?;
    line.find('/').map(|place| &line[place..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_is_found_by_an_address_in_it() {
        let maps = "7f0000000000-7f0000002000 rw-s 00000000 00:1f 12    /root/app/a b\n\
                    7f0000002000-7f0000003000 rw-p 00000000 00:00 0 \n";
        assert_eq!(mapped_file(maps, 0x7f00_0000_1fff), Some("/root/app/a b"));
        assert_eq!(mapped_file(maps, 0x7f00_0000_2000), None);
        assert_eq!(mapped_file(maps, 1), None);
    }

    #[test]
    fn a_request_syncs_by_its_opcode_or_its_flags() {
        let request = |opcode, flags| {
            let mut iocb = [0; IOCB_BYTES];
            (iocb[IOCB_OPCODE_AT], iocb[IOCB_FLAGS_AT]) = (opcode, flags);
            is_sync(&iocb)
        };
        let (write, data_sync) = (1, 3);
        assert!(request(data_sync, 0) && request(write, libc::RWF_DSYNC as u8));
        assert!(!request(write, 0));
    }

    #[test]
    fn a_path_goes_up_by_its_dots() {
        assert_eq!(lexical(Path::new("/app/a/../b/./c")), Path::new("/app/b/c"));
        assert_eq!(lexical(Path::new("/../x")), Path::new("/x"));
    }
}
