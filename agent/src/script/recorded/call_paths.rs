//! What calls do with the paths that they name: whether they change names, follow a symbolic link
//! at the end, and whether a path is that of a descriptor.

use crate::tables::recording::RecordedCall;

/// Whether calls of a name make, move or remove names.
pub fn changes(name: &str) -> bool {
    let names = ["mkdir", "rmdir", "rename", "link", "symlink", "unlink", "mknod"];
    let name = name.strip_prefix("SYS_").unwrap_or(name);
    names.iter().any(|begin| name.starts_with(begin))
}

/// Whether a call follows a symbolic link that is the last part of its path.
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
        name => !changes(name),
    }
}

/// The number of the descriptor that a process names by a path (proc_pid_fd(5)).
pub fn descriptor(path: &str, process: i64) -> Option<i64> {
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
    fn a_path_of_a_descriptor_is_known() {
        let of = |path| descriptor(path, 12);
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
