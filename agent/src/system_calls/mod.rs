//! System calls. table.txt says all of each: its numbers, and what it is to the recorder, imports,
//! replays, the finder of commits and the tracer. Everything in the agent and in its tables goes by
//! the numbers of x86_64, on whatever processor: arm64 has others, and no open, rename or unlink
//! but those that take a directory. A kernel's numbers are turned into these where they are met, by
//! `from_kernel`, and back where a kernel is asked, by `to_kernel`.
#![allow(non_upper_case_globals, dead_code, reason = "not every constant is used")]

#[cfg(test)]
mod generator;

/// One call of the table.
#[derive(Debug)]
pub struct SystemCallRow {
    pub name: &'static str,
    /// On x86_64.
    pub number: i64,
    pub arm64: Option<i64>,
    pub commits: Option<CommitRole>,
    /// Whether block I/O is submitted in it, so that the tracer has a name for it.
    pub is_traced: bool,
}

/// The role of a call for the finder of commits (docs/commits.md).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitRole {
    Open,
    Read,
    Write,
    Truncate,
    TruncatePath,
    Unlink,
    /// It makes something durable: sync_file_range(2) does not, which flushes no cache of a disk.
    Sync,
    /// An ioctl, if it is the one that commits an atomic write of F2FS.
    CommitAtomicWrite,
    /// A command of fcntl(2), if it locks.
    Lock,
}

include!(concat!(env!("OUT_DIR"), "/numbers.rs"));

/// Returns the row of a number on x86_64.
pub fn row(number: i64) -> Option<&'static SystemCallRow> {
    ROWS.binary_search_by_key(&number, |row| row.number).ok().map(|index| &ROWS[index])
}

const IS_ARM64: bool = cfg!(target_arch = "aarch64");

/// The number on x86_64 of arm64's call of a number; none where none of ours is the same.
pub fn from_arm64(number: i64) -> Option<i64> {
    ROWS.iter().find(|row| row.arm64 == Some(number)).map(|row| row.number)
}

/// The number of this kernel's call, of a 64-bit program, on x86_64; none where it is none of ours.
pub fn from_kernel(number: i64) -> Option<i64> {
    if IS_ARM64 { from_arm64(number) } else { Some(number) }
}

/// The number that this kernel has for the call of a number on x86_64; none where it has none.
pub fn to_kernel(number: i64) -> Option<i64> {
    if !IS_ARM64 {
        return Some(number);
    }
    row(number)?.arm64
}

/// Return the number and the arguments by which this kernel makes a call that has a number on
/// x86_64; none where it cannot.
pub fn native_call(number: i64, arguments: [i64; 6]) -> Option<(i64, [i64; 6])> {
    if IS_ARM64 { arm64_call(number, arguments) } else { Some((number, arguments)) }
}

/// As `native_call`, on arm64: what it lacks it does by the call that takes a directory.
pub fn arm64_call(number: i64, arguments: [i64; 6]) -> Option<(i64, [i64; 6])> {
    let [a, b, c, ..] = arguments;
    let here = i64::from(libc::AT_FDCWD);
    let no_follow = i64::from(libc::AT_SYMLINK_NOFOLLOW);
    let call = match number {
        SYS_rename => (SYS_renameat, [here, a, here, b, 0, 0]),
        SYS_link => (SYS_linkat, [here, a, here, b, 0, 0]),
        SYS_symlink => (SYS_symlinkat, [a, here, b, 0, 0, 0]),
        SYS_unlink => (SYS_unlinkat, [here, a, 0, 0, 0, 0]),
        SYS_rmdir => (SYS_unlinkat, [here, a, libc::AT_REMOVEDIR.into(), 0, 0, 0]),
        SYS_mkdir => (SYS_mkdirat, [here, a, b, 0, 0, 0]),
        SYS_mknod => (SYS_mknodat, [here, a, b, c, 0, 0]),
        SYS_stat => (SYS_newfstatat, [here, a, b, 0, 0, 0]),
        SYS_lstat => (SYS_newfstatat, [here, a, b, no_follow, 0, 0]),
        SYS_access => (SYS_faccessat, [here, a, b, 0, 0, 0]),
        SYS_readlink => (SYS_readlinkat, [here, a, b, c, 0, 0]),
        SYS_chmod => (SYS_fchmodat, [here, a, b, 0, 0, 0]),
        SYS_chown => (SYS_fchownat, [here, a, b, c, 0, 0]),
        SYS_lchown => (SYS_fchownat, [here, a, b, c, no_follow, 0]),
        // Their times are null, which means now.
        SYS_utime | SYS_utimes if b == 0 => (SYS_utimensat, [here, a, 0, 0, 0, 0]),
        SYS_futimesat if c == 0 => (SYS_utimensat, [a, b, 0, 0, 0, 0]),
        // The same names, in entries of another form.
        SYS_getdents => (SYS_getdents64, arguments),
        _ => (number, arguments),
    };
    Some((row(call.0)?.arm64?, call.1))
}

/// O_DIRECT and O_LARGEFILE of x86_64; O_DIRECTORY and O_NOFOLLOW of arm64. The other two of each
/// are two bits above.
const LOWER_FLAGS: i64 = 0o140_000;

/// Return the flags of open(2) by x86_64's numbers, which all tables have, for those of this
/// kernel. Four of arm64's are others (arch/arm64/include/uapi/asm/fcntl.h).
pub fn flags_from_kernel(flags: i64) -> i64 {
    if IS_ARM64 { exchange_flags(flags) } else { flags }
}

/// Return this kernel's flags of open(2) for those by x86_64's numbers.
pub fn flags_to_kernel(flags: i64) -> i64 {
    flags_from_kernel(flags)
}

/// Return x86_64's flags as arm64's, and arm64's as x86_64's: two pairs change places.
fn exchange_flags(flags: i64) -> i64 {
    let others = flags & !(LOWER_FLAGS | LOWER_FLAGS << 2);
    others | (flags & LOWER_FLAGS) << 2 | flags >> 2 & LOWER_FLAGS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_this_machine() {
        let libc = [
            (SYS_read, libc::SYS_read),
            (SYS_openat, libc::SYS_openat),
            (SYS_fsync, libc::SYS_fsync),
            (SYS_statx, libc::SYS_statx),
            (SYS_openat2, libc::SYS_openat2),
        ];
        for (ours, libc) in libc {
            assert_eq!((to_kernel(ours), from_kernel(libc)), (Some(libc), Some(ours)));
        }
    }

    #[test]
    fn a_row_that_is_appended_is_in_every_table() {
        let table = include_str!("table.txt").to_owned()
            + "cachestat 451 arm64=451 i386=451 arm=451 recorded=Descriptor,Other,Other,Flags\n    \
               replayed=Descriptor,Number(0) commits=Read traced=File,Waits\n";
        let made = generator::generate(&table);
        let has = |text: &str, part: &str| assert!(text.contains(part), "{part}");
        has(&made.numbers, "pub const SYS_cachestat: i64 = 451;");
        has(&made.numbers, "arm64: Some(451), commits: Some(CommitRole::Read), is_traced: true");
        has(&made.recorded, "\"cachestat\", &[Role::Descriptor, Role::Other, ");
        has(&made.replayed, "&[ArgumentRole::Descriptor, ArgumentRole::Number(0), ]");
        has(&made.header, "CALL_CACHESTAT = 451,");
        has(&made.header, "[451 /* cachestat */] = ROLE_FILE | ROLE_WAITS,");
        has(&made.header, "case 451: /* cachestat */");
        let natives = made.header.matches("[451 /* cachestat */] = NATIVE(451),").count();
        assert_eq!(natives, 3, "of arm64, i386 and arm");
    }

    #[test]
    fn a_row_with_a_wrong_word_is_refused() {
        for wrong in ["x", "x 1 record=Path", "x 1 arm64=1 arm64=2", "x 1 arm64=y"] {
            assert!(std::panic::catch_unwind(|| generator::generate(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn arm64_does_by_another_call_what_it_lacks() {
        let here = i64::from(libc::AT_FDCWD);
        let made = |number| arm64_call(number, [7, 8, 9, 0, 0, 0]);
        assert_eq!(made(SYS_pwrite64), Some((68, [7, 8, 9, 0, 0, 0])));
        assert_eq!(made(SYS_rename), Some((38, [here, 7, here, 8, 0, 0])));
        assert_eq!(made(SYS_rmdir), Some((35, [here, 7, 0x200, 0, 0, 0])));
        assert_eq!(made(SYS_symlink), Some((36, [7, here, 8, 0, 0, 0])));
        assert_eq!(made(SYS_lstat), Some((79, [here, 7, 8, 0x100, 0, 0])));
        // Times that are given have another form.
        assert_eq!(made(SYS_utimes), None);
        assert_eq!(made(SYS_fork), None);
    }

    #[test]
    fn arm64_has_numbers_of_its_own() {
        assert_eq!(from_arm64(56), Some(SYS_openat));
        assert_eq!(from_arm64(68), Some(SYS_pwrite64));
        assert_eq!(from_arm64(2), Some(SYS_io_submit));
        // Its getpid.
        assert_eq!(from_arm64(172), None);
        let mut numbers: Vec<_> = ROWS.iter().filter_map(|row| row.arm64).collect();
        let all = numbers.len();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), all);
        assert!(ROWS.is_sorted_by_key(|row| row.number));
    }

    #[test]
    fn four_flags_of_arm64_have_other_numbers() {
        // O_DIRECT, O_DIRECTORY, O_NOFOLLOW, O_LARGEFILE; O_RDWR, O_CREAT and O_CLOEXEC are equal.
        for (x86_64, arm64) in [
            (0o040_000, 0o200_000),
            (0o200_000, 0o040_000),
            (0o400_000, 0o100_000),
            (0o100_000, 0o400_000),
            (0o2_000_102, 0o2_000_102),
        ] {
            let both = (exchange_flags(x86_64), exchange_flags(arm64));
            assert_eq!(both, (arm64, x86_64), "{x86_64:o}");
        }
        assert_eq!(exchange_flags(-1), -1);
    }

    #[test]
    fn flags_of_this_machine_become_those_of_tables() {
        let flags = [libc::O_DIRECT, libc::O_DIRECTORY, libc::O_NOFOLLOW].map(i64::from);
        assert_eq!(flags.map(flags_from_kernel), [0o040_000, 0o200_000, 0o400_000]);
        assert_eq!(flags.map(flags_from_kernel).map(flags_to_kernel), flags);
    }
}
