//! Mutated traces and scripts, through the parsers and the book: none may panic, and every row
//! must lead to rows that are there. A slice runs with the tests; `make fuzz` runs ten million.

use std::path::Path;

use super::book::Book;
use super::lines::{BadLines, Lines};
use super::strace::{self, FileForm, MergedLines};
use super::{mobigen, summary};
use crate::fuzz::{self, Random};
use crate::recorder::output::Round;

/// Lines of strace's, of several versions and options.
const TRACE: [&str; 41] = [
    concat!(
        r#"12 1700000000.000001 openat(AT_FDCWD</w>, "a\"b", O_RDWR|O_CREAT, 0644)"#,
        r#" = 3</w/a\"b> <0.000009>"#,
    ),
    r#"12 1700000000.000002 read(3</w/a>, "abc"..., 4096) = 100 <0.000001>"#,
    r#"12 1700000000.000003 pwrite64(3, "\377\0x", 4096, 8192) = 4096"#,
    r#"12 1700000000.000004 write(3, "a", 1 <unfinished ...>"#,
    r#"12 1700000000.000005 <... write resumed>) = 1 <0.000002>"#,
    r#"[pid    13] read(3,  <unfinished ...>"#,
    r#"[pid    13] <... read resumed> "x", 5) = 1"#,
    r#"12 clone(child_stack=NULL, flags=CLONE_FILES|CLONE_FS|CLONE_THREAD|SIGCHLD) = 13"#,
    r#"12 clone3({flags=CLONE_VM, exit_signal=SIGCHLD} => {parent_tid=[14]}, 88) = 14"#,
    r#"12 execve("/bin/sh", ["sh", "-c", "x"], 0x7ffc /* 38 vars */) = 0"#,
    r#"12 newfstatat(3, "", {st_mode=S_IFREG|0644, st_size=5, ...}, AT_EMPTY_PATH) = 0"#,
    r#"12 stat("/a/b", {st_mode=S_IFDIR|0755, st_size=4096, ...}) = 0"#,
    r#"12 fcntl(3, F_SETLK, {l_type=F_WRLCK, l_whence=SEEK_SET, l_start=5, l_len=10}) = 0"#,
    r#"12 fcntl64(3, F_DUPFD_CLOEXEC, 10) = 10"#,
    r#"12 dup2(3, 9) = 9"#,
    r#"12 close_range(3, 4294967295, CLOSE_RANGE_CLOEXEC) = 0"#,
    r#"12 rename("a", "/d/../b") = 0"#,
    r#"12 renameat2(AT_FDCWD, "/a", 3, "c", RENAME_EXCHANGE) = 0"#,
    r#"12 unlink("b") = -1 ENOENT (No such file or directory)"#,
    r#"12 link("a", "z") = 0"#,
    r#"12 mkdir("d", 0777) = -1 EEXIST (File exists)"#,
    r#"12 chdir("d") = 0"#,
    r#"12 _llseek(3, 4294967296, [4294967296], SEEK_SET) = 0"#,
    r#"12 lseek(3, -5, SEEK_END) = 95"#,
    r#"12 pwritev2(3, [{iov_base="ab", iov_len=2}, {"c"..., 40}], 2, 5, RWF_DSYNC) = 42"#,
    r#"12 copy_file_range(3, [0] => [10], 4, NULL, 10, 0) = 10"#,
    r#"12 mmap(NULL, 8192, PROT_READ, MAP_SHARED, 3</a>, 0x1000) = 0x7f0000000000"#,
    r#"12 pipe2([5<pipe:[470617]>, 6<pipe:[470617]>], O_CLOEXEC) = 0"#,
    r#"12 --- SIGCHLD {si_signo=SIGCHLD, si_code=CLD_EXITED} ---"#,
    r#"13 12:34:56.000001 +++ exited with 0 +++"#,
    r#"12 +++ superseded by execve in pid 13 +++"#,
    r#"clone(child_stack=NULL, flags=SIGCHLDstrace: Process 13 attached"#,
    r#", child_tidptr=0x7f11aa00aa10) = 7 /* 13 in strace's PID NS */"#,
    r#"12 read(6, ^Cstrace: Process 12 detached"#,
    r#" <detached ...>"#,
    r#"12 <... openat resumed> <unfinished ...>) = ?"#,
    r#"% time     seconds  usecs/call     calls    errors syscall"#,
    r#" 98.40    0.003100        3100         1           fsync"#,
    r#"12 [app_t] openat(-100 /* AT_FDCWD */ [var_t], "x" [y!!z], 0x42 /* O_RDWR */) = 0x3 [w]"#,
    r#"12 fcntl64(0x3, 0xd, {l_type=0 /* F_RDLCK */, l_start=5, l_len=1}) = 0"#,
    concat!(
        r#"     0.000123 ftruncate64(3<TCP:[1.1.1.1:5->2.2.2.2:6]>, 9223372036854775807)"#,
        r#" = ? ERESTARTSYS (x)"#,
    ),
];

/// Lines of MobiGen's.
const SCRIPT: [&str; 10] = [
    r#"1 0 open "/data/a b.db" O_RDWR|O_CREAT|O_LARGEFILE 36"#,
    "2 10 open /data O_WRONLY|O_TRUNC -1",
    "1 20 pwrite64 36 4096 1024",
    "1 30 read 36 -1",
    "1 40 fsync 36 0",
    r#"1 50 access "/data/wal" -1"#,
    r#"16 60 unlink "/x" 0"#,
    "1 70 fstat64 36",
    "1 80 ioctl 3 0x5401",
    "1 90 close 36",
];

/// The rows of a book that was given something, checked; how many calls there are.
fn rows(read: impl FnOnce(&mut Book)) -> usize {
    let mut rounds: Vec<Round> = Vec::new();
    let take = Box::new(|round| {
        rounds.push(round);
        true
    });
    let mut book = Book::new(take, std::collections::HashMap::new(), None);
    read(&mut book);
    let closed = book.finish();
    let last = rounds.last().unwrap();
    assert_eq!(last.threads.len() as u64, closed.threads);
    let calls: Vec<_> = rounds.iter().flat_map(|round| &round.calls).collect();
    assert_eq!(calls.len() as u64, closed.calls);
    for call in &calls {
        assert!((0..closed.threads as i64).contains(&call.thread_id));
        for path_id in [call.path_id, call.path2_id].into_iter().flatten() {
            assert!((0..last.snapshot.len() as i64).contains(&path_id));
        }
    }
    for thread in &last.threads {
        assert!(thread.creator_id.is_none_or(|creator| creator < thread.thread_id));
    }
    let bad = BadLines::default();
    let _ = summary(&closed, 0, Default::default(), bad, Vec::new(), Vec::new());
    calls.len()
}

/// One input; how many calls it was.
fn input(number: u64) -> usize {
    let mut random = Random::from_seed(number);
    if number % 4 == 3 {
        let text = random.text(&SCRIPT, 4);
        let Ok(mut script) = mobigen::parse(&text) else { return 0 };
        return rows(|book| {
            let _ = mobigen::add_calls(&mut script, book);
        });
    }
    let files: Vec<_> = (0..=number % 16 / 15).map(|_| random.text(&TRACE, 4)).collect();
    let lines = |text: &Vec<u8>| Lines::from_text(Path::new("log.12"), text.clone());
    let forms: Vec<_> = files.iter().map(|text| FileForm::read(lines(text)).unwrap()).collect();
    let open = || MergedLines::from_files(files.iter().map(lines).collect(), &forms);
    let _ = strace::creations(open());
    rows(|book| {
        let mut bad = BadLines { is_strict: number % 64 == 1, ..BadLines::default() };
        let _ = strace::read(open(), book, &mut bad);
    })
}

#[test]
fn a_slice_of_the_fuzzing() {
    // Most inputs are still traces, or nothing would be tested behind the parsers.
    assert!((0..4000).map(input).sum::<usize>() > 2000);
}

#[test]
#[ignore = "ten million inputs take some minutes: make fuzz"]
fn fuzz_traces_and_scripts() {
    fuzz::run("calls of traces and MobiGen's scripts", 10_000_000, input);
}
