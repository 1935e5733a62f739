//! The system calls that are recorded, and what each of their arguments is. Numbers are those of
//! x86_64; the order of arguments is the same on arm64 (syscall(2)).

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::system_calls;
use crate::tables::recording::RecordedCall;

/// The role of an argument. A row of `calls` has a column for most of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// An argument of no interest, such as the address of a buffer that is read into.
    Other,
    Descriptor,
    Descriptor2,
    /// Address of two descriptors that the call makes.
    Pair,
    /// Descriptor of the directory in which the path behind it is looked up.
    Directory,
    Directory2,
    Path,
    Path2,
    Text,
    Offset,
    /// Address of an offset, which may be null.
    OffsetAt,
    Offset2At,
    Length,
    /// The length before the call, of mremap(2).
    OldLength,
    /// Address of buffers; the next argument is their number.
    Vectors,
    /// Address of bytes that are written; the next argument is their length.
    Bytes,
    /// Address of buffers that are written; the next argument is their number.
    VectorsOut,
    Flags,
    Mode,
    Address,
    Whence,
    /// A command of fcntl(2), on which the next argument depends.
    Command,
    /// An operation of flock(2).
    LockOperation,
    /// Address of a struct open_how, of openat2(2).
    OpenHow,
    /// Address of a struct clone_args, of clone3(2).
    CloneArguments,
    /// Address of a struct io_uring_params, of io_uring_setup(2).
    RingParameters,
    /// Address of a struct stat that the call fills in.
    Stat,
    /// Address of a struct statx, likewise.
    Statx,
}

/// One system call.
#[derive(Debug, Clone, Copy)]
pub struct SystemCall {
    pub number: i64,
    pub name: &'static str,
    pub roles: &'static [Role],
    pub does: Does,
}

/// The effect of a call that the recorder must know of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Does {
    /// Nothing but what its arguments say.
    Plain,
    /// Its result is a descriptor of a file that it opened.
    Opens,
    /// Its result is a descriptor of what is no file of a disk.
    OpensOther,
    /// It never returns.
    Exits,
    /// It runs another program.
    Executes,
    /// Its result is how many operations it handed over, which cannot be recorded.
    HandsOver,
    /// Paths may mean something else after it.
    MovesRoot,
}

/// Every call that is recorded.
static ALL: &[(i64, &str, &[Role], Does)] =
    include!(concat!(env!("OUT_DIR"), "/recorded_calls.rs"));

/// Larger than every number.
const MOST: usize = 512;

static CALLS_BY_NUMBER: LazyLock<[Option<SystemCall>; MOST]> = LazyLock::new(|| {
    let mut table = [None; MOST];
    for &(number, name, roles, does) in ALL {
        table[number as usize] = Some(SystemCall { number, name, roles, does });
    }
    table
});

impl SystemCall {
    /// The call of a number; none if it is not recorded.
    pub fn find(number: u64) -> Option<&'static Self> {
        CALLS_BY_NUMBER.get(usize::try_from(number).ok()?)?.as_ref()
    }

    /// The call that this kernel has of a number, in a 64-bit program; none if it is not recorded.
    pub fn find_in_kernel(number: u64) -> Option<&'static Self> {
        Self::find(system_calls::from_kernel(i64::try_from(number).ok()?)?.try_into().ok()?)
    }

    /// Every call that is recorded and that this kernel has, with the number it has there.
    pub fn in_kernel() -> impl Iterator<Item = (i64, &'static Self)> {
        let number = |call: &&'static Self| system_calls::to_kernel(call.number);
        CALLS_BY_NUMBER.iter().flatten().filter_map(move |call| Some((number(&call)?, call)))
    }

    /// The call of a name.
    pub fn find_name(name: &str) -> Option<&'static Self> {
        static CALLS_BY_NAME: LazyLock<HashMap<&'static str, &'static SystemCall>> =
            LazyLock::new(|| {
                CALLS_BY_NUMBER.iter().flatten().map(|call| (call.name, call)).collect()
            });
        CALLS_BY_NAME.get(name).copied()
    }

    /// Return whether its result is the number of a thread or process that it made.
    pub fn makes_thread(&self) -> bool {
        let makes = [
            system_calls::SYS_clone,
            system_calls::SYS_clone3,
            system_calls::SYS_fork,
            system_calls::SYS_vfork,
        ];
        makes.contains(&self.number)
    }
}

/// Return whether calls of a name make, move or remove names.
pub fn changes_names(name: &str) -> bool {
    let names = ["mkdir", "rmdir", "rename", "link", "symlink", "unlink", "mknod"];
    names.iter().any(|begin| name.starts_with(begin))
}

/// Return whether a call follows a symbolic link that is the last part of its path.
pub fn follows_links(row: &RecordedCall) -> bool {
    let flags = row.flags.unwrap_or(0);
    let has = |flag: i32| flags & i64::from(flag) != 0;
    match &*row.name {
        "linkat" => has(libc::AT_SYMLINK_FOLLOW),
        // O_NOFOLLOW of x86_64, as tables have it.
        "open" | "openat" | "openat2" => flags & 0o400_000 == 0,
        "newfstatat" | "statx" | "fchownat" | "utimensat" | "fchmodat2" | "faccessat2" => {
            !has(libc::AT_SYMLINK_NOFOLLOW)
        }
        "lstat" | "readlink" | "readlinkat" | "lchown" | "lsetxattr" | "lgetxattr"
        | "llistxattr" | "lremovexattr" => false,
        name => !changes_names(name),
    }
}

/// The number of the descriptor that a process names by a path (proc_pid_fd(5)).
pub fn descriptor_of_path(path: &str, process: i64) -> Option<i64> {
    let number = match path {
        "/dev/stdin" => "0",
        "/dev/stdout" => "1",
        "/dev/stderr" => "2",
        path => path.strip_prefix("/dev/fd/").or_else(|| {
            let (owner, number) = path.strip_prefix("/proc/")?.split_once("/fd/")?;
            let is_own = ["self", "thread-self"].contains(&owner) || owner.parse() == Ok(process);
            is_own.then_some(number)
        })?,
    };
    let is_number = !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit());
    number.parse().ok().filter(|_| is_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_found_by_their_number_and_by_their_name() {
        assert_eq!(SystemCall::find(1).unwrap().name, "write");
        assert_eq!(SystemCall::find_name("pwrite64").unwrap().number, system_calls::SYS_pwrite64);
        assert!(SystemCall::find(39).is_none());
        assert!(SystemCall::find(u64::MAX).is_none());
        let mut numbers: Vec<i64> = ALL.iter().map(|call| call.0).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), ALL.len());
        assert_eq!(CALLS_BY_NUMBER.iter().flatten().count(), ALL.len());
    }

    #[test]
    fn no_call_has_more_arguments_than_the_kernel_gives() {
        assert!(ALL.iter().all(|call| call.2.len() <= 6));
    }

    #[test]
    fn a_path_of_a_descriptor_is_known() {
        let of = |path| descriptor_of_path(path, 12);
        assert_eq!((of("/proc/self/fd/5"), of("/dev/fd/7")), (Some(5), Some(7)));
        assert_eq!((of("/proc/12/fd/5"), of("/dev/stdout")), (Some(5), Some(1)));
        for path in ["/proc/13/fd/5", "/proc/self/fd", "/proc/self/fd/", "/a", "/dev/fd/5/x"] {
            assert_eq!(of(path), None, "{path}");
        }
    }

    #[test]
    fn calls_that_stop_at_a_link_are_known() {
        let row = |name: &'static str, flags| RecordedCall {
            name: name.into(),
            flags: Some(flags),
            ..RecordedCall::default()
        };
        assert!(follows_links(&row("linkat", libc::AT_SYMLINK_FOLLOW.into())));
        assert!(!follows_links(&row("linkat", 0)) && !follows_links(&row("unlink", 0)));
        assert!(follows_links(&row("openat", 2)) && !follows_links(&row("openat", 0o400_002)));
        assert!(follows_links(&row("chmod", 0)) && !follows_links(&row("lchown", 0)));
    }
}
