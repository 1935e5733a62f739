//! Tests of the decoding of printed calls, with lines of strace 6.1 and of older ones.

use super::*;

fn decode_call(text: &str) -> TracedCall {
    match decode(text.as_bytes()).unwrap() {
        DecodedCall::Recorded(call, _) => *call,
        DecodedCall::Other(name) => panic!("{name} is no file system call"),
    }
}

#[test]
fn arguments_find_their_columns() {
    let open =
        decode_call(r#"openat(AT_FDCWD</w>, "a\"b", O_RDWR|O_CREAT|O_CLOEXEC, 0644) = 3</w/a\"b>"#);
    assert_eq!((open.row.directory, open.row.path.as_deref()), (Some(-100), Some("a\"b")));
    assert_eq!((open.row.flags, open.row.mode), (Some(0o2_000_102), Some(0o644)));
    assert_eq!(open.directory_path.unwrap(), b"/w");
    assert_eq!((open.row.result, open.result_path.unwrap()), (Some(3), b"/w/a\"b".to_vec()));
    let write = decode_call(r#"pwrite64(3</w/a>, "abc"..., 4096, 8192) = 4096"#).row;
    assert_eq!((write.descriptor, write.length_bytes), (Some(3), Some(4096)));
    assert_eq!(write.offset_bytes, Some(8192));
    let seek = decode_call("lseek(3, -5, SEEK_END) = 95").row;
    assert_eq!((seek.offset_bytes, seek.command.unwrap()), (Some(-5), "SEEK_END".into()));
    let lock = "fcntl(3, F_SETLK, {l_type=F_WRLCK, l_whence=SEEK_SET, l_start=5, l_len=10}) = 0";
    for text in [lock.to_owned(), lock.replace("l_", "").replace("fcntl", "fcntl64")] {
        let row = decode_call(&text).row;
        assert_eq!((row.lock.unwrap(), row.flags), ("F_WRLCK".into(), Some(0)), "{text}");
        assert_eq!((row.offset_bytes, row.length_bytes), (Some(5), Some(10)));
    }
    let found = lock.replace("F_SETLK", "F_GETLK").replace("F_WRLCK", "F_UNLCK");
    assert_eq!(decode_call(&found).row.lock.unwrap(), "F_WRLCK");
    let vectors =
        decode_call(r#"writev(3, [{iov_base="ab", iov_len=2}, {"c"..., 40}], 2) = 42"#).row;
    assert_eq!((vectors.vectors, vectors.length_bytes), (Some(2), Some(42)));
    let vectors =
        decode_call(r#"pwritev2(3, [{iov_base="a", iov_len=1}], 1, 5, RWF_DSYNC) = 1"#).row;
    assert_eq!((vectors.offset_bytes, vectors.flags), (Some(5), Some(2)));
    let cut = decode_call(r#"readv(3, [{iov_base="a", iov_len=1}, ...], 900) = 900"#);
    assert_eq!((cut.row.length_bytes, cut.unread), (Some(900), 1));
    let copy = decode_call("copy_file_range(3, [0] => [10], 4, NULL, 10, 0) = 10").row;
    assert_eq!((copy.offset_bytes, copy.offset2_bytes), (Some(0), None));
    assert_eq!((copy.descriptor, copy.descriptor2), (Some(3), Some(4)));
    let pair = decode_call("pipe2([3, 4], O_CLOEXEC) = 0").row;
    assert_eq!((pair.descriptor, pair.descriptor2), (Some(3), Some(4)));
    let map =
        decode_call("mmap(NULL, 8192, PROT_READ, MAP_PRIVATE, 3, 0x1000) = 0x7f0000000000").row;
    assert_eq!((map.mode, map.flags, map.offset_bytes), (Some(1), Some(2), Some(4096)));
    let flock = decode_call("flock(3, LOCK_EX|LOCK_NB) = 0").row;
    assert_eq!((flock.command.unwrap(), flock.flags), ("LOCK_EX".into(), Some(6)));
    let how =
        decode_call(r#"openat2(3, "x", {flags=O_RDONLY, resolve=RESOLVE_BENEATH}, 24) = 4"#).row;
    assert_eq!((how.flags, how.mode), (Some(0), Some(0)));
}

#[test]
fn threads_and_programs_are_decoded() {
    let clone =
        "clone(child_stack=NULL, flags=CLONE_VM|CLONE_FILES|SIGCHLD, child_tidptr=0x7f) = 9";
    assert_eq!(decode_call(clone).row.flags, Some(0x100 | 0x400 | 17));
    let clone =
        "clone3({flags=CLONE_THREAD|CLONE_FILES, exit_signal=0} => {parent_tid=[9]}, 88) = 9";
    assert_eq!(decode_call(clone).row.flags, Some(0x10000 | 0x400));
    let run = decode_call(r#"execve("/bin/sh", ["sh", "-c"], 0x7ffc /* 38 vars */) = 0"#);
    assert_eq!((run.path.unwrap(), run.command.len()), (b"/bin/sh".to_vec(), 2));
    assert_eq!(run.unread, 0);
    assert_eq!(decode_call("exit_group(3)   = ?").row.flags, Some(3));
}

#[test]
fn facts_of_files_in_a_trace_are_kept() {
    let found = decode_call(
        r#"newfstatat(3, "", {st_mode=S_IFREG|0644, st_size=5, ...}, AT_EMPTY_PATH) = 0"#,
    );
    let stat = FileStat { mode: Some(0o100_644), size_bytes: Some(5), links: None };
    assert_eq!(found.stat, Some(stat));
    let found = decode_call(
        r#"statx(AT_FDCWD, "/", AT_STATX_SYNC_AS_STAT, STATX_ALL, {stx_mode=S_IFDIR|0755}) = 0"#,
    );
    assert_eq!(found.stat.unwrap().mode, Some(0o40_755));
    assert_eq!(decode_call(r#"readlink("l", "file", 4096) = 4"#).answer.unwrap(), b"file");
    assert_eq!(decode_call(r#"getcwd("/w", 4096) = 3"#).answer.unwrap(), b"/w");
    assert_eq!(decode_call("_llseek(3, 0, [7], SEEK_CUR) = 0").row.result, Some(7));
}

#[test]
fn left_out_parts_are_counted_and_malformed_calls_refused() {
    assert_eq!(decode_call(r#"setxattr("a", "user.long"..., "x", 1, 0) = 0"#).unread, 1);
    assert_eq!(decode_call(r#"open("a", O_NEW) = 3"#).unread, 1);
    assert!(
        matches!(decode(b"brk(NULL) = 0x5").unwrap(), DecodedCall::Other(name) if name == "brk")
    );
    let anonymous = b"mmap(NULL, 8, PROT_READ, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0) = 0x7f";
    assert!(matches!(decode(anonymous).unwrap(), DecodedCall::Other(_)));
    assert_eq!(decode(b"close(3) = x").unwrap_err().at, 11);
    let begun = decode_begun(br#"openat(AT_FDCWD, "x", O_RDONLY"#).unwrap();
    assert!(matches!(begun, DecodedCall::Recorded(call, _) if call.row.result.is_none()));
}
