//! The table of the calls that are replayed: what each of their arguments becomes, and what their
//! result means, a descriptor, another file behind a name, or a number that the replay must give as
//! well. What is not in the table is not made: a recording is a stranger's, and no call of it may
//! do more than work on files in the directory of the replay. Orders of arguments are those of
//! x86_64.

use super::files_before::add_text;
use super::names::{Place, ReplayNames, bytes_of};
use super::order::Resource;
use super::scene::{NOT_OPENED, NoStep, Scene, TOO_FAR, TOO_LONG};
use crate::recorder::calls::{changes_names, descriptor_of_path, follows_links};
use crate::system_calls;
use crate::tables::recording::RecordedCall;
use crate::workload::replay::plan::{CallArgument, CallEffect, FileHandle, PlanText, RecordedEnd};

/// Longest call whose bytes pass through memory of ours.
const MOST_BYTES: i64 = 64 << 20;
/// End of the largest file that is replayed: that of ext4 (ext4(5), 16 TiB).
const MOST_OFFSET: i64 = 1 << 44;
/// IOV_MAX of readv(2).
const MOST_VECTORS: i64 = 1024;
/// The bytes of the longest answer of stat(2), statfs(2) and their like, and more.
const ANSWER_BYTES: u32 = 512;

const CHANGES_ROOT: NoStep = NoStep::LeftOut("it moves or removes the root of the replay");

/// The role of an argument.
#[derive(Debug, Clone, Copy)]
enum ArgumentRole {
    Descriptor,
    Descriptor2,
    Path,
    Path2,
    /// A directory's descriptor and a path: two arguments.
    At,
    At2,
    /// Memory of the length that the row has.
    Into,
    From,
    VectorsInto,
    VectorsFrom,
    Vectors,
    /// The length of memory.
    Bytes,
    /// The length of a range of a file.
    Range,
    Offset,
    OffsetAt,
    Offset2At,
    Whence,
    Flags,
    RenameFlags,
    FileMode,
    DirectoryMode,
    Access,
    /// The kind of a new node: a regular file, and nothing else.
    Node,
    Text,
    Target,
    Answer,
    User,
    Group,
    Number(i64),
}

static CALLS: &[(i64, &str, &[ArgumentRole])] =
    include!(concat!(env!("OUT_DIR"), "/replayed_calls.rs"));

/// A call, ready to become a step.
#[derive(Debug)]
pub struct PreparedCall {
    pub name: &'static str,
    pub number: i64,
    pub arguments: Vec<CallArgument>,
    pub effect: CallEffect,
    pub resources: Vec<Resource>,
}

/// A call whose arguments are being made.
pub struct CallDraft<'a> {
    pub scene: &'a mut Scene,
    pub row: &'a RecordedCall,
    /// The process of its thread.
    pub process: i64,
    /// Permissions that new files do not get.
    pub umask: i64,
    pub arguments: Vec<CallArgument>,
    pub resources: Vec<Resource>,
}

/// Makes the arguments of a call that the table has.
///
/// # Errors
/// If it is not replayed.
pub fn make_from_table(draft: &mut CallDraft) -> Result<(&'static str, i64), NoStep> {
    let name = &*draft.row.name;
    let call = CALLS.iter().find(|call| call.1 == name);
    let (number, name, roles) = call.ok_or(NoStep::LeftOut("such calls are not replayed"))?;
    if changes_names(name) {
        draft.check_names()?;
    }
    for role in *roles {
        draft.argument(*role)?;
    }
    Ok((name, *number))
}

impl CallDraft<'_> {
    pub fn number(&mut self, number: i64) {
        self.arguments.push(CallArgument::Number(number));
    }

    /// A descriptor of the row.
    pub fn handle(&mut self, number: Option<i64>) -> Result<FileHandle, NoStep> {
        let handle = self.scene.handle(self.row.thread_id, number)?;
        self.scene.resources(handle, &mut self.resources);
        self.arguments.push(CallArgument::Handle(handle));
        Ok(handle)
    }

    /// A path of the row. By /proc a program names a file that it has open, though it may have no
    /// name: that of O_TMPFILE, before linkat(2).
    pub fn path(&mut self, path_id: Option<i64>, path: Option<&str>) -> Result<(), NoStep> {
        if let Some(number) = path.and_then(|path| descriptor_of_path(path, self.process))
            && follows_links(self.row)
        {
            let handle = match self.scene.handle(self.row.thread_id, Some(number)) {
                // It was not open when it was recorded, and is not now (proc_pid_fd(5)).
                Err(why) if why == NOT_OPENED && self.row.error.as_deref() == Some("ENOENT") => {
                    return Err(NoStep::Carried);
                }
                handle => handle?,
            };
            self.scene.resources(handle, &mut self.resources);
            self.arguments.push(CallArgument::HandlePath(handle));
            return Ok(());
        }
        let name = self.scene.name(path_id)?;
        self.scene.names.resources(name, &mut self.resources);
        self.arguments.push(CallArgument::Path(name));
        Ok(())
    }

    /// A directory's descriptor and a path; that of a file itself where the path is empty.
    fn at(
        &mut self,
        number: Option<i64>,
        id: Option<i64>,
        path: Option<&str>,
    ) -> Result<(), NoStep> {
        if id.is_some() || path.is_some_and(|path| !path.is_empty()) {
            self.number(libc::AT_FDCWD.into());
            return self.path(id, path);
        }
        if number == Some(libc::AT_FDCWD.into()) {
            return Err(NoStep::LeftOut("it is about the current directory itself"));
        }
        self.handle(number)?;
        match path {
            Some(_) => self.text(PlanText::Plain(Vec::new())),
            None => self.number(0),
        }
        Ok(())
    }

    /// Looks at the names that a call makes, moves or removes: the root of the replay is not the
    /// recording's to do so, and what has one name elsewhere can be done by halves only.
    fn check_names(&self) -> Result<(), NoStep> {
        let row = self.row;
        let is_by_descriptor = row.path.as_deref().is_some_and(|path| {
            descriptor_of_path(path, self.process).is_some() && follows_links(row)
        });
        let ids = [row.path_id.filter(|_| !is_by_descriptor), row.path2_id];
        let places: Vec<Place> =
            ids.into_iter().flatten().filter_map(|id| self.scene.names.place(id)).collect();
        let is_root = |place: &Place| match place {
            Place::Here(name) => self.scene.names.paths[*name as usize].is_empty(),
            Place::Elsewhere => false,
        };
        let has_failed = row.result.is_some_and(|result| result < 0);
        let makes_directory = row.name.starts_with("mkdir");
        if places.iter().any(is_root) && !(has_failed && makes_directory) {
            // Making it has an effect that is there already.
            return Err(if has_failed || makes_directory { NoStep::Carried } else { CHANGES_ROOT });
        }
        let is_here = |place: &Place| matches!(place, Place::Here(_));
        if !has_failed && places.iter().any(is_here) && !places.iter().all(is_here) {
            return Err(NoStep::LeftOut("one of its two names is not in the replay"));
        }
        Ok(())
    }

    fn text(&mut self, text: PlanText) {
        let number = add_text(&mut self.scene.texts, text);
        self.arguments.push(CallArgument::Text(number));
    }

    /// The length of memory.
    fn bytes(&self) -> Result<u32, NoStep> {
        let bytes = self.row.length_bytes.unwrap_or(0);
        if !(0..=MOST_BYTES).contains(&bytes) {
            return Err(TOO_LONG);
        }
        Ok(bytes as u32)
    }

    /// An offset or the length of a range; of a negative one the kernel says what is wrong.
    fn far(&mut self, bytes: Option<i64>) -> Result<i64, NoStep> {
        Some(bytes.unwrap_or(0)).filter(|bytes| *bytes <= MOST_OFFSET).ok_or(TOO_FAR)
    }

    /// An offset in memory; none where the call has none.
    fn offset_at(&mut self, offset: Option<i64>) -> Result<(), NoStep> {
        match offset {
            Some(_) => {
                let offset = self.far(offset)?;
                self.arguments.push(CallArgument::Offset(offset));
            }
            None => self.number(0),
        }
        Ok(())
    }

    fn vectors(&self) -> Result<(u16, u32), NoStep> {
        let count = self.row.vectors.unwrap_or(0);
        if !(0..=MOST_VECTORS).contains(&count) {
            return Err(NoStep::LeftOut("it has more buffers than IOV_MAX"));
        }
        Ok((count as u16, self.bytes()?))
    }

    fn mode(&self) -> i64 {
        self.row.mode.unwrap_or(0o600)
    }

    fn argument(&mut self, role: ArgumentRole) -> Result<(), NoStep> {
        let row = self.row;
        match role {
            ArgumentRole::Descriptor => drop(self.handle(row.descriptor)?),
            ArgumentRole::Descriptor2 => drop(self.handle(row.descriptor2)?),
            ArgumentRole::Path => self.path(row.path_id, row.path.as_deref())?,
            ArgumentRole::Path2 => self.path(row.path2_id, row.path2.as_deref())?,
            ArgumentRole::At => self.at(row.directory, row.path_id, row.path.as_deref())?,
            ArgumentRole::At2 => self.at(row.directory2, row.path2_id, row.path2.as_deref())?,
            ArgumentRole::Into => self.arguments.push(CallArgument::Into(self.bytes()?)),
            ArgumentRole::From => self.arguments.push(CallArgument::From(self.bytes()?)),
            ArgumentRole::VectorsInto => {
                let (count, bytes) = self.vectors()?;
                self.arguments.push(CallArgument::VectorsInto { count, bytes });
            }
            ArgumentRole::VectorsFrom => {
                let (count, bytes) = self.vectors()?;
                self.arguments.push(CallArgument::VectorsFrom { count, bytes });
            }
            ArgumentRole::Vectors => self.number(row.vectors.unwrap_or(0)),
            ArgumentRole::Bytes => self.number(self.bytes()?.into()),
            ArgumentRole::Range if matches!(&*row.name, "sendfile" | "copy_file_range") => {
                // cp asks for all that there may be.
                self.number(row.length_bytes.unwrap_or(0).clamp(0, MOST_OFFSET));
            }
            ArgumentRole::Range => {
                let bytes = self.far(row.length_bytes)?;
                self.number(bytes);
            }
            ArgumentRole::Offset => {
                let offset = self.far(row.offset_bytes)?;
                self.number(offset);
            }
            ArgumentRole::OffsetAt => self.offset_at(row.offset_bytes)?,
            ArgumentRole::Offset2At => self.offset_at(row.offset2_bytes)?,
            ArgumentRole::Whence => self.number(whence(row.command.as_deref())?),
            ArgumentRole::Flags => self.number(row.flags.unwrap_or(0)),
            // RENAME_WHITEOUT makes a device.
            ArgumentRole::RenameFlags => self.number(row.flags.unwrap_or(0) & 3),
            ArgumentRole::FileMode => self.number(self.mode() & 0o777 | 0o700),
            ArgumentRole::DirectoryMode => self.number(self.mode() & 0o777 & !self.umask | 0o700),
            ArgumentRole::Access => self.number(self.mode() & 7),
            ArgumentRole::Node => {
                let kind = self.mode() as u32 & libc::S_IFMT;
                if kind != 0 && kind != libc::S_IFREG {
                    return Err(NoStep::LeftOut("it makes a device, pipe or socket"));
                }
                self.number(i64::from(libc::S_IFREG) | self.mode() & 0o777 & !self.umask);
            }
            ArgumentRole::Text => {
                let name = bytes_of(row.text.as_deref().unwrap_or_default());
                if !name.starts_with(b"user.")
                    && name.contains(&b'.')
                    && !row.name.ends_with("getxattr")
                {
                    return Err(NoStep::LeftOut("it sets an attribute that is not the user's"));
                }
                self.text(PlanText::Plain(name));
            }
            ArgumentRole::Target => self.target()?,
            ArgumentRole::Answer => self.arguments.push(CallArgument::Into(ANSWER_BYTES)),
            ArgumentRole::User => self.number(rustix::process::getuid().as_raw().into()),
            ArgumentRole::Group => self.number(rustix::process::getgid().as_raw().into()),
            ArgumentRole::Number(number) => self.number(number),
        }
        Ok(())
    }

    fn target(&mut self) -> Result<(), NoStep> {
        let link = self.scene.name(self.row.path_id)?;
        let text = bytes_of(self.row.text.as_deref().unwrap_or_default());
        let text = self.scene.names.target(&self.scene.names.paths[link as usize], &text);
        let number = add_text(&mut self.scene.texts, text);
        self.arguments.push(CallArgument::Target(number));
        Ok(())
    }
}

fn whence(word: Option<&str>) -> Result<i64, NoStep> {
    Ok(i64::from(match word {
        Some("SEEK_SET") => libc::SEEK_SET,
        Some("SEEK_CUR") => libc::SEEK_CUR,
        Some("SEEK_END") => libc::SEEK_END,
        Some("SEEK_DATA") => libc::SEEK_DATA,
        Some("SEEK_HOLE") => libc::SEEK_HOLE,
        _ => return Err(NoStep::LeftOut("what it seeks from is not known")),
    }))
}

/// Calls whose result is a descriptor, an address, or depends on the filesystem.
const OWN_RESULTS: [&str; 15] = [
    "open",
    "openat",
    "openat2",
    "creat",
    "dup",
    "dup2",
    "dup3",
    "fcntl",
    "mmap",
    "mremap",
    "getdents",
    "getdents64",
    "readlink",
    "readlinkat",
    "ioctl",
];

/// Notes the names that a call makes, takes away or moves.
pub fn note_changes(row: &RecordedCall, names: &mut ReplayNames) {
    let changes = ["mkdir", "rmdir", "rename", "symlink", "unlinkat"];
    let succeeded = row.result.is_some_and(|result| result >= 0);
    if succeeded && changes.iter().any(|name| row.name.starts_with(name)) {
        names.note_change(row.path_id);
        names.note_change(row.path2_id);
    }
}

/// Lets names lead to other files, or to none, as a call did that succeeded.
pub fn rename(row: &RecordedCall, names: &mut ReplayNames) {
    let place = |id: Option<i64>| match id.and_then(|id| names.place(id)) {
        Some(Place::Here(name)) => Some(name),
        _ => None,
    };
    match (&*row.name, place(row.path_id), place(row.path2_id)) {
        ("rename" | "renameat" | "renameat2", Some(from), Some(to)) => {
            *names.file_mut(to) = names.file_mut(from).take();
        }
        ("link" | "linkat", Some(from), Some(to)) => {
            *names.file_mut(to) = *names.file_mut(from);
        }
        ("unlink" | "unlinkat", Some(name), _) => *names.file_mut(name) = None,
        _ => {}
    }
}

/// Return whether a call's result is a descriptor.
pub fn gives_descriptor(row: &RecordedCall) -> bool {
    match &*row.name {
        "open" | "openat" | "openat2" | "creat" | "open_by_handle_at" | "dup" | "dup2" | "dup3"
        | "socket" | "accept" | "accept4" | "eventfd" | "eventfd2" | "epoll_create"
        | "epoll_create1" | "signalfd" | "signalfd4" | "timerfd_create" | "inotify_init"
        | "inotify_init1" | "fanotify_init" | "pidfd_open" | "pidfd_getfd" | "memfd_create"
        | "io_uring_setup" => true,
        "fcntl" => row.command.as_deref().is_some_and(|it| it.starts_with("F_DUPFD")),
        _ => false,
    }
}

/// Return how a call ended, as far as its replay can end in the same way.
pub fn end_of(row: &RecordedCall) -> RecordedEnd {
    match row.result {
        None => RecordedEnd::Unknown,
        Some(result @ ..0) => RecordedEnd::Failed(i32::try_from(-result).ok()),
        Some(_) if OWN_RESULTS.contains(&&*row.name) || row.name.ends_with("xattr") => {
            RecordedEnd::Well
        }
        Some(result) => RecordedEnd::With(result),
    }
}

/// Requests of ioctl(2) that are fcntl(F_SETFD) (asm-generic/ioctls.h).
pub const FIONCLEX: i64 = 0x5450;
pub const FIOCLEX: i64 = 0x5451;

/// Return whether execve(2) shall close a descriptor from then on, of a call that sets it.
pub fn sets_close_on_exec(row: &RecordedCall) -> Option<bool> {
    match (&*row.name, row.command.as_deref(), row.flags) {
        ("fcntl", Some("F_SETFD"), flags) => Some(flags.unwrap_or(0) & 1 != 0),
        ("ioctl", _, Some(FIOCLEX)) => Some(true),
        ("ioctl", _, Some(FIONCLEX)) => Some(false),
        _ => None,
    }
}

/// Return whether the descriptor that a call gave is closed by execve(2).
pub fn closes_on_exec(row: &RecordedCall) -> bool {
    match &*row.name {
        "fcntl" => row.command.as_deref() == Some("F_DUPFD_CLOEXEC"),
        "dup" | "dup2" => false,
        _ => row.flags.unwrap_or(0) & i64::from(libc::O_CLOEXEC) != 0,
    }
}
