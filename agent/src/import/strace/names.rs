//! The name of a call on x86_64: a trace of another machine, or of another strace, has others.

use crate::recorder::calls::SystemCall;

/// How the printed arguments differ from the kernel's on x86_64.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArgumentShape {
    /// Not at all.
    Same,
    /// `_llseek(DESCRIPTOR, OFFSET, [RESULT], WHENCE)`.
    LongSeek,
    /// The offset is one argument, of two in the kernel: `preadv2(.., .., .., OFFSET, FLAGS)`.
    OneOffset,
    /// The flags come second: `sync_file_range2(DESCRIPTOR, FLAGS, OFFSET, LENGTH)` of arm and
    /// powerpc, whose pairs of registers begin at even ones (sync_file_range(2)).
    FlagsSecond,
}

/// The recorded call of a printed name; none if it is none.
pub fn call(name: &str) -> Option<(&'static SystemCall, ArgumentShape)> {
    // Of a process of another kind than the one before: read#64, read#x32.
    let name = name.split('#').next().unwrap_or(name);
    let (name, shape) = match name {
        "sync_file_range2" | "arm_sync_file_range" => {
            ("sync_file_range", ArgumentShape::FlagsSecond)
        }
        "arm_fadvise64_64" => ("fadvise64", ArgumentShape::FlagsSecond),
        "_llseek" | "llseek" => ("lseek", ArgumentShape::LongSeek),
        "preadv2" | "pwritev2" => (name, ArgumentShape::OneOffset),
        "pread" => ("pread64", ArgumentShape::Same),
        "pwrite" => ("pwrite64", ArgumentShape::Same),
        "mmap2" | "old_mmap" => ("mmap", ArgumentShape::Same),
        "fstatat64" | "fstatat" => ("newfstatat", ArgumentShape::Same),
        "fadvise64_64" => ("fadvise64", ArgumentShape::Same),
        "umount" => ("umount2", ArgumentShape::Same),
        "oldstat" => ("stat", ArgumentShape::Same),
        "oldlstat" => ("lstat", ArgumentShape::Same),
        "oldfstat" => ("fstat", ArgumentShape::Same),
        "chown32" | "fchown32" | "lchown32" => (&name[..name.len() - 2], ArgumentShape::Same),
        "utimensat_time64" => ("utimensat", ArgumentShape::Same),
        "stat64" | "lstat64" | "fstat64" | "truncate64" | "ftruncate64" | "fcntl64"
        | "sendfile64" | "statfs64" | "fstatfs64" => (&name[..name.len() - 2], ArgumentShape::Same),
        _ => (name, ArgumentShape::Same),
    };
    SystemCall::named(name).map(|call| (call, shape))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_other_machines_are_known() {
        let of = |name| call(name).map(|(call, shape)| (call.name, shape));
        assert_eq!(of("fstat64"), Some(("fstat", ArgumentShape::Same)));
        assert_eq!(of("fchown32"), Some(("fchown", ArgumentShape::Same)));
        assert_eq!(of("_llseek"), Some(("lseek", ArgumentShape::LongSeek)));
        assert_eq!(of("getdents64"), Some(("getdents64", ArgumentShape::Same)));
        assert_eq!(of("pwrite64#64"), Some(("pwrite64", ArgumentShape::Same)));
        let ranged = Some(("sync_file_range", ArgumentShape::FlagsSecond));
        assert_eq!(of("sync_file_range2"), ranged);
        assert_eq!(of("brk"), None);
    }
}
