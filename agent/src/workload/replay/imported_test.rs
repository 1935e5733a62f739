//! Traces of strace as people have them, imported and replayed: what the program wrote, and how
//! often it synced, comes out again; or it is left out, and counted.

use std::io::Write;

use super::*;
use crate::import::{ImportCounts, Trace, import};
use crate::tables::read::read;
use crate::tables::recording::{RecordedCall, RecordedThread};
use crate::workload::threads::noted_phases::NotedPhases;

/// A trace, its recording, and the replay of that.
pub struct ImportedTrace {
    folder: tempfile::TempDir,
    pub imported: ImportCounts,
}

impl ImportedTrace {
    pub fn import(text: &[u8]) -> anyhow::Result<Self> {
        // In memory, where there is such a filesystem: syncs of many programs take long on a disk.
        let memory = Path::new("/dev/shm");
        let folder = match memory.is_dir() {
            true => tempfile::tempdir_in(memory)?,
            false => tempfile::tempdir()?,
        };
        let file = folder.path().join("app.strace");
        std::fs::write(&file, text)?;
        let trace = Trace::Strace { files: &[file], is_strict: false };
        let imported = import(&trace, &folder.path().join("recording"), None)?;
        Ok(Self { folder, imported })
    }

    fn calls(&self) -> Vec<RecordedCall> {
        let mut calls: Vec<RecordedCall> =
            read(&self.folder.path().join("recording"), 1000).unwrap();
        calls.sort_by_key(|call| call.call_id);
        calls
    }

    fn call(&self, name: &str) -> RecordedCall {
        self.calls().into_iter().find(|call| call.name == name).expect("there is one")
    }

    fn threads(&self) -> Vec<RecordedThread> {
        read(&self.folder.path().join("recording"), 1000).unwrap()
    }

    /// The directory of its replay.
    pub fn directory(&self) -> PathBuf {
        self.folder.path().join("private")
    }

    fn settings(&self) -> ReplaySettings {
        ReplaySettings {
            workload: ReplayWorkload::Replay,
            recording: self.folder.path().join("recording"),
            recorded_root: "/".into(),
            timing: Timing::None,
            timing_percent: 100,
        }
    }

    /// Return why it cannot be replayed.
    fn refusal(&self) -> String {
        Replay::prepare(self.folder.path(), &self.settings(), 1).err().unwrap().to_string()
    }

    pub fn replay(&self) -> ClosedWorkload {
        let directory = self.directory();
        std::fs::create_dir(&directory).unwrap();
        let mut replay = Replay::prepare(&directory, &self.settings(), 1).unwrap();
        replay.run(&mut NotedPhases::default()).unwrap();
        Box::new(replay).close().unwrap()
    }

    /// Threads, calls that were made, bytes that were written, syncs; and nothing is missing.
    fn whole(&self) -> (usize, u64, u64, u64) {
        assert_eq!(self.imported.reasons, [""; 0], "{:?}", self.imported.bad);
        let closed = self.replay();
        assert_eq!(closed.incomplete_reasons, [""; 0]);
        let told = &closed.manifest[0].1;
        assert_eq!(told["otherwise"], json!({}));
        assert_eq!(told["comparable_calls"], told["as_recorded_calls"]);
        (self.threads().len(), number(&told["calls"]), number(&told["written_bytes"]), syncs(told))
    }
}

pub fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

pub fn syncs(told: &Value) -> u64 {
    SYNC_CALLS.iter().map(|name| number(&told["by_name"][name]["calls"])).sum()
}

fn import_text(text: &str) -> ImportedTrace {
    ImportedTrace::import(text.as_bytes()).unwrap()
}

#[test]
fn the_first_process_has_no_number_until_there_is_another() {
    let found = import_text(
        r#"openat(AT_FDCWD, "/d/p", O_WRONLY|O_CREAT|O_APPEND, 0666) = 3
clone(child_stack=NULL, flags=CLONE_CHILD_SETTID|SIGCHLD, child_tidptr=0x7f11aa00aa10) = 812
strace: Process 812 attached
[pid   811] write(3, "parent\n", 7)     = 7
[pid   812] write(3, "child\n", 6)      = 6
[pid   811] openat(AT_FDCWD, "/d/q", O_WRONLY|O_CREAT|O_TRUNC, 0666) = 4
[pid   811] wait4(-1,  <unfinished ...>
[pid   812] exit_group(0)               = ?
[pid   812] +++ exited with 0 +++
<... wait4 resumed>NULL, 0, NULL) = 812
--- SIGCHLD {si_signo=SIGCHLD, si_code=CLD_EXITED, si_pid=812, si_uid=0, si_status=0} ---
write(4, "late\n", 5)                   = 5
fsync(4)                                = 0
fsync(3)                                = 0
exit_group(0)                           = ?
+++ exited with 0 +++
"#,
    );
    assert_eq!(found.whole(), (2, 7, 18, 2));
    let threads = found.threads();
    assert_eq!((threads[0].tid, threads[1].tid), (811, 812));
    assert_eq!((threads[0].exit_code, threads[1].creator_id), (Some(0), Some(0)));
}

#[test]
fn a_program_may_live_among_other_numbers_than_strace() {
    let found = import_text(
        r#"42 1711000100.1 openat(AT_FDCWD, "/d/main.db", O_RDWR|O_CREAT|O_CLOEXEC, 0644) = 3
42 1711000100.2 clone(child_stack=NULL, flags=SIGCHLD) = 7 /* 43 in strace's PID NS */
43 1711000100.3 pwrite64(3, "page", 4, 4096) = 4
43 1711000100.4 fdatasync(3)      = 0
43 1711000100.5 exit_group(0)     = ?
43 1711000100.6 +++ exited with 0 +++
42 1711000100.7 wait4(-1, NULL, 0, NULL) = 7 /* 43 in strace's PID NS */
42 1711000100.8 close(3)          = 0
"#,
    );
    assert_eq!(found.whole(), (2, 4, 4, 1));
    assert_eq!(found.call("clone").result, Some(7));
}

#[test]
fn messages_of_straces_own_may_come_within_a_line() {
    for clone in [
        "clone(child_stack=NULL, flags=CLONE_FILES|SIGCHLDstrace: Process 92 attached\n\
         , child_tidptr=0x7f) = 92\n",
        "clone(Process 92 attached\nchild_stack=0, flags=CLONE_FILES|SIGCHLD) = 92\n",
        "clone(child_stack=0, flags=CLONE_FILES|SIGCHLDstrace: Process 92 attached, tls=0) = 92\n",
        "[pid    91] clone(child_stack=0, flags=CLONE_FILES|SIGCHLD/bin/strace: Process 92 \
         attached\n <unfinished ...>\n[pid    91] <... clone resumed>) = 92\n",
    ] {
        let found = import_text(&format!(
            "openat(AT_FDCWD, \"/d/a\", O_WRONLY|O_CREAT, 0666) = 3\n{clone}\
             [pid    92] write(3, \"hi\\n\", 3)         = 3\n\
             [pid    92] fsync(3)                    = 0\n\
             [pid    92] +++ exited with 0 +++\nwrite(3, \"bye\\n\", 4)  = 4\nclose(3) = 0\n",
        ));
        assert_eq!(found.whole(), (2, 5, 7, 1), "{clone}");
        assert_eq!(found.call("clone").flags, Some(0x411), "{clone}");
        assert!(found.threads()[1].shares_descriptors);
    }
}

#[test]
fn a_line_that_is_none_does_not_decide_the_form() {
    let found = import_text(
        r#"/usr/bin/strace: Process 52 attached with 2 threads
[pid    53] 1711000000.000010 restart_syscall(<... resuming interrupted read ...> <unfinished ...>
[pid    52] 1711000000.000120 openat(AT_FDCWD, "/q.db", O_RDWR|O_CREAT, 0644) = 7 <0.000031>
[pid    52] 1711000000.000300 clone3({flags=CLONE_VM|CLONE_FILES|CLONE_THREAD}, 88) = 54 <0.05>
/usr/bin/strace: Process 54 attached
[pid    54] 1711000000.000420 pwrite64(7, "abcd", 4, 0) = 4 <0.000015>
[pid    53] 1711000000.000500 fdatasync(7) = 0 <0.004100>
[pid    52] 1711000000.010000 close(7)   = 0 <0.000008>
/usr/bin/strace: Process 52 detached
"#,
    );
    assert_eq!(found.whole(), (3, 4, 4, 1));
    assert!(found.calls().iter().all(|call| call.begin_ns > 1_711_000_000_000_000_000));
    let prompt = import_text(
        "user@host:~$ strace -ttt ./app\nMakefile:12: warning (ignored)\n\
         1795575468.100000 openat(AT_FDCWD, \"/a\", O_WRONLY|O_CREAT, 0644) = 3 <0.000050>\n\
         1795575468.100200 write(3, \"hello\\n\", 6) = 6 <0.000030>\n\
         1795575468.100300 fsync(3) = 0 <0.004000>\n",
    );
    assert_eq!(prompt.imported.reasons, ["2 lines could not be read"]);
    let begins: Vec<i64> = prompt.calls().iter().map(|call| call.begin_ns % 1_000_000).collect();
    assert_eq!(begins, [0, 200_000, 300_000]);
    assert!(prompt.calls().iter().all(|call| call.end_ns.is_some()));
}

#[test]
fn contexts_of_security_are_passed_over() {
    let found = import_text(
        r#"61 [u:app_t:s0] 1711000200.1 openat(AT_FDCWD [u:c1,c2], "/q.db" [v], O_CREAT|O_RDWR) = 3
61 [u:r:app_t:s0] 1711000200.2 pwrite64(3 [u:object_r:var_lib_t:s0], "abcd", 4, 0) = 4 <0.000010>
61 [app_t] 1711000200.3 openat(AT_FDCWD, "/q.db-wal" [v], O_RDWR|O_CREAT, 0644) = 4</q.db-wal> [v]
61 [app_t] 1711000200.4 fdatasync(4</q.db-wal> [v]) = 0 <0.001000>
61 [app_t] 1711000200.5 rename("/q.db-wal" [v!!etc_t], "/q.old") = 0 <0.000020>
61 [app_t] 1711000200.6 close(3</q.db> [v]) = 0 <0.000005>
"#,
    );
    assert_eq!(found.whole(), (1, 6, 4, 1));
    assert_eq!(found.call("rename").path2.as_deref(), Some("/q.old"));
}

#[test]
fn numbers_are_read_beside_their_words_and_without_them() {
    let found = import_text(
        r#"73 1711000300.1 openat(-100 /* AT_FDCWD */, "/v.db", 0x42 /* O_RDWR|O_CREAT */) = 3
73 1711000300.2 fcntl(3, 6 /* F_SETLK */, {l_type=0 /* F_RDLCK */, l_start=1073741824, l_len=1}) = 0
73 1711000300.3 lseek(3, 0, 0x2 /* SEEK_END */) = 0 <0.000004>
73 1711000300.4 fallocate(3, 0x3 /* FALLOC_FL_KEEP_SIZE|FALLOC_FL_PUNCH_HOLE */, 0, 4096) = 0
73 1711000300.5 openat(-100, "/r.db", 0x80000) = -1 ENOENT (No such file or directory) <0.000010>
73 1711000300.6 openat(0xffffff9c, "/s.db", 0x80042, 0x1a4) = 0x4 <0.000020>
73 1711000300.7 fcntl(0x4, 0x6, {l_type=0x1, l_whence=0, l_start=0x40000000, l_len=0x1}) = 0
73 1711000300.8 write(0x4, 0x55aa00, 0x10) = 0x10 <0.000010>
73 1711000300.9 fsync(0x4) = 0 <0.002000>
"#,
    );
    assert_eq!(found.whole(), (1, 9, 16, 1));
    let locks: Vec<RecordedCall> =
        found.calls().into_iter().filter(|call| call.name == "fcntl").collect();
    for (lock, kind) in locks.iter().zip(["F_RDLCK", "F_WRLCK"]) {
        assert_eq!((lock.command.as_deref(), lock.lock.as_deref()), (Some("F_SETLK"), Some(kind)));
        assert_eq!((lock.offset_bytes, lock.length_bytes), (Some(1 << 30), Some(1)));
    }
    assert_eq!(found.call("lseek").command.as_deref(), Some("SEEK_END"));
    assert_eq!(found.call("openat").directory, Some(-100));
    let raw = import_text("fcntl(3, 0x6, 0x7ffd0000aa00) = 0\nwrite(3, 0x55, 0x1) = 0x1\n");
    assert_eq!(raw.imported.reasons, ["1 argument in memory that could not be read"]);
}

#[test]
fn calls_of_32_bit_programs_have_their_own_names_and_orders() {
    let found = import_text(
        r#"strace: [ Process PID=903 runs in 32 bit mode. ]
openat(AT_FDCWD, "/log.db", O_RDWR|O_CREAT|O_NOFOLLOW|O_LARGEFILE|O_CLOEXEC, 0644) = 3
[ Process PID=903 runs in 32 bit mode. ]
fcntl64(3, F_SETLK64, {l_type=F_WRLCK, l_whence=SEEK_SET, l_start=1073741825, l_len=1}) = 0
fcntl64(3, F_GETLK64, {l_type=F_UNLCK, l_whence=SEEK_SET, l_start=1073741826, l_len=1}) = 0
_llseek(3, 4096, [4096], SEEK_SET)      = 0
pwrite64(3, "\331\325\5\371 \241c\327", 8, 0) = 8
ftruncate64(3, 8192)                    = 0
sync_file_range2(3, SYNC_FILE_RANGE_WRITE, 4096, 8192) = 0
arm_fadvise64_64(3, POSIX_FADV_DONTNEED, 0, 4096) = 0
pwrite64#64(3, "xyz", 3, 0)             = 3
fdatasync(3)                            = 0
"#,
    );
    assert_eq!(found.whole(), (1, 10, 11, 2));
    let range = found.call("sync_file_range");
    assert_eq!((range.flags, range.offset_bytes), (Some(2), Some(4096)));
    assert_eq!(range.length_bytes, Some(8192));
    assert_eq!(found.call("fadvise64").flags, Some(4));
    assert_eq!(found.call("fcntl").command.as_deref(), Some("F_SETLK"));
}

#[test]
fn a_call_that_was_killed_or_let_go_has_no_end() {
    let killed = import_text(
        r#"88 1711000400.1 openat(AT_FDCWD, "/k.db", O_RDWR|O_CREAT, 0644) = 3
89 1711000400.2 openat(AT_FDCWD, "/k.db-journal", O_RDWR|O_CREAT, 0644 <unfinished ...>
88 1711000400.3 fsync(3 <unfinished ...>
89 1711000400.4 <... openat resumed> <unfinished ...>) = ?
88 1711000400.5 <... fsync resumed> <unfinished ...>) = ?
90 1711000400.6 pwrite64(3, "abc", 3, 0 <unfinished ...>) = ?
89 1711000400.7 +++ killed by SIGKILL +++
88 1711000400.8 +++ killed by SIGKILL +++
"#,
    );
    assert_eq!(killed.imported.reasons, [""; 0]);
    let ends: Vec<bool> = killed.calls().iter().map(|call| call.result.is_some()).collect();
    assert_eq!(ends, [true, false, false, false]);
    assert_eq!(killed.calls()[1].mode, Some(0o644));
    assert_eq!(killed.threads()[0].exit_signal, Some(9));
    assert!(killed.imported.notes.contains(
        &"3 calls without an end: a replay makes them and compares the result with nothing".into()
    ));
    // Each is made as it began.
    let closed = killed.replay();
    let told = &closed.manifest[0].1;
    assert_eq!((number(&told["calls"]), number(&told["comparable_calls"])), (4, 1));
    assert_eq!(syncs(told), 1);
    assert!(killed.directory().join("k.db-journal").is_file());
    assert_eq!(closed.incomplete_reasons, [""; 0]);
    let stopped = import_text(
        "strace: Process 115 attached\n\
         restart_syscall(<... resuming interrupted clock_nanosleep ...>) = 0\n\
         pwrite64(5, \"tick\", 4, 100) = 4\nread(6, ^Cstrace: Process 115 detached\n \
         <detached ...>\n",
    );
    assert_eq!(stopped.imported.reasons, [""; 0]);
    assert_eq!(stopped.imported.left_out.keys().collect::<Vec<_>>(), ["restart_syscall"]);
    let calls = stopped.calls();
    assert_eq!((calls.len(), calls[1].descriptor, calls[1].result), (2, Some(6), None));
    assert_eq!(stopped.threads()[0].tid, 115);
    let refused = stopped.refusal();
    assert!(refused.contains("names no file") && refused.contains("-y"), "{refused}");
}

#[test]
fn a_lock_and_a_mapping_without_an_end_are_not_made() {
    let found = import_text(
        r#"66 1711000400.1 openat(AT_FDCWD, "/w.db", O_RDWR|O_CREAT, 0644) = 3
66 1711000400.2 mmap(NULL, 4096, PROT_READ, MAP_SHARED|MAP_POPULATE, 3, 0 <unfinished ...>) = ?
67 1711000400.3 openat(AT_FDCWD, "/w.db", O_RDWR) = 4
67 1711000400.4 flock(4, LOCK_EX <unfinished ...>) = ?
"#,
    );
    assert_eq!(found.imported.reasons, [""; 0], "{:?}", found.imported.bad);
    let closed = found.replay();
    let told = &closed.manifest[0].1;
    assert_eq!(number(&told["calls"]), 2);
    assert_eq!(told["carried"], json!({"flock": 1}));
    assert_eq!(told["left_out"][0]["name"], "mmap");
}

#[test]
fn a_table_behind_the_calls_is_passed_over() {
    let found = import_text(
        "openat(AT_FDCWD, \"/c.db\", O_RDWR|O_CREAT, 0644) = 3 <0.000031>\n\
         pwrite64(3, \"abcd\", 4, 0)               = 4 <0.000011>\n\
         fsync(3)                                = 0 <0.003100>\n\
         close(3)                                = 0 <0.000004>\n+++ exited with 0 +++\n\
         % time     seconds  usecs/call     calls    errors syscall\n\
         ------ ----------- ----------- --------- --------- ----------------\n \
         98.40    0.003100        3100         1           fsync\n  \
         0.35    0.000011          11         1         1 pwrite64\n\
         ------ ----------- ----------- --------- --------- ----------------\n\
         100.00    0.003146         786         4         1 total\n",
    );
    assert_eq!(found.whole(), (1, 4, 4, 1));
    assert_eq!(found.imported.lines, 11);
}

#[test]
fn a_descriptor_of_unknown_origin_is_left_out_and_counted() {
    let found = import_text(
        r#"91 1711000500.1 openat(AT_FDCWD, "/u.db", O_RDWR|O_CREAT, 0644) = 3
91 1711000500.2 syscall_437(0xffffff9c, 0x7ffd0000aa40, 0x7ffd0000aa80, 0x18, 0, 0) = 4
91 1711000500.3 pwrite64(4, "xyz", 3, 0) = 3
91 1711000500.4 fdatasync(4) = 0
91 1711000500.5 pwrite64(3, "xyz", 3, 0) = 3
91 1711000500.6 ioctl(1, TCGETS, {c_iflag=ICRNL|IXON}) = 0
91 1711000500.7 write(1, "done\n", 5) = 5
91 1711000500.8 lseek(0, 0, SEEK_CUR) = -1 ESPIPE (Illegal seek)
91 1711000500.9 read(0, "", 10) = 0
"#,
    );
    assert_eq!(found.imported.reasons, ["1 call that strace had no name for"]);
    let closed = found.replay();
    let told = &closed.manifest[0].1;
    assert_eq!(number(&told["written_bytes"]), 3);
    let left_out = told["left_out"].as_array().unwrap();
    let names: Vec<&str> = left_out.iter().filter_map(|it| it["name"].as_str()).collect();
    assert_eq!(names, ["fdatasync", "pwrite64"]);
    // What is of a terminal or a pipe its calls show.
    assert_eq!(told["elsewhere"], json!({"ioctl": 1, "lseek": 1, "read": 1, "write": 1}));
}

#[test]
fn a_file_without_a_name_gets_one_by_its_descriptor() {
    let found = import_text(
        r#"11 openat(AT_FDCWD, "/state", O_RDWR|O_TMPFILE|O_CLOEXEC, 0600) = 3
11 write(3, "settings"..., 500) = 500
11 fsync(3) = 0
11 linkat(AT_FDCWD, "/proc/self/fd/3", AT_FDCWD, "/state/.new", AT_SYMLINK_FOLLOW) = 0
11 openat(AT_FDCWD, "/proc/11/fd/3", O_RDWR) = 4
11 pwrite64(4, "ab", 2, 500) = 2
11 newfstatat(AT_FDCWD, "/dev/fd/4", {st_mode=S_IFREG|0600, st_size=502, ...}, 0) = 0
11 rename("/state/.new", "/state/settings") = 0
11 readlink("/proc/self/fd/3", "/state/settings", 100) = 15
11 truncate("/state/settings", 501) = 0
11 fstat(4, {st_mode=S_IFREG|0600, st_size=501, ...}) = 0
"#,
    );
    assert_eq!(found.whole(), (1, 10, 502, 1));
    let made = found.directory().join("state/settings");
    assert_eq!(std::fs::metadata(made).unwrap().len(), 501);
}

#[test]
fn ioctl_may_say_what_execve_closes() {
    let found = import_text(
        r#"11 openat(AT_FDCWD, "/a", O_RDWR|O_CREAT, 0600) = 3
11 openat(AT_FDCWD, "/b", O_RDWR|O_CREAT|O_CLOEXEC, 0600) = 4
11 ioctl(3, FIOCLEX) = 0
11 ioctl(4, FIONCLEX) = 0
11 ioctl(4, FICLONE, 3) = -1 EOPNOTSUPP (Operation not supported)
11 execve("/bin/x", ["x"], 0x7ffc /* 38 vars */) = 0
11 openat(AT_FDCWD, "/c", O_RDWR|O_CREAT, 0600) = 3
11 write(3, "c", 1) = 1
11 write(4, "bb", 2) = 2
"#,
    );
    assert_eq!(found.whole(), (1, 7, 3, 0));
    let length = |name| std::fs::metadata(found.directory().join(name)).unwrap();
    assert_eq!([length("a").len(), length("b").len(), length("c").len()], [0, 2, 1]);
}

#[test]
fn a_mapping_grows_as_that_of_sqlite_does() {
    let found = import_text(
        r#"11 openat(AT_FDCWD, "/a", O_RDWR|O_CREAT, 0600) = 3
11 ftruncate(3, 100000) = 0
11 mmap(NULL, 40000, PROT_READ|PROT_WRITE, MAP_SHARED, 3, 0) = 0x7f0000000000
11 munmap(0x7f0000008000, 7232) = 0
11 mremap(0x7f0000000000, 32768, 65536, MREMAP_MAYMOVE) = 0x7f1100000000
11 msync(0x7f1100008000, 4096, MS_SYNC) = 0
11 mremap(0x7f1100000000, 65536, 4096, 0) = 0x7f1100000000
11 mremap(0x7f1100000000, 4096, 8192, 0) = -1 ENOMEM (Cannot allocate memory)
11 munmap(0x7f1100000000, 4096) = 0
11 mremap(0x7f5500000000, 4096, 8192, MREMAP_MAYMOVE) = 0x7f6600000000
"#,
    );
    if crate::process::page_bytes() == 4096 {
        assert_eq!(found.whole(), (1, 8, 0, 1));
    }
    let part = import_text(
        r#"11 openat(AT_FDCWD, "/a", O_RDWR|O_CREAT, 0600) = 3
11 mmap(NULL, 65536, PROT_READ, MAP_SHARED, 3, 0) = 0x7f0000000000
11 mremap(0x7f0000000000, 16384, 32768, MREMAP_MAYMOVE) = 0x7f1100000000
"#,
    );
    let reasons = part.replay().incomplete_reasons;
    assert_eq!(reasons, ["1 call of mremap left out: it is about a part of a mapping, or several"]);
}

#[test]
fn mappings_are_filled_with_as_much_memory_as_a_replay_may_take() {
    let found = import_text(
        r#"11 openat(AT_FDCWD, "/a", O_RDWR|O_CREAT, 0600) = 3
11 ftruncate(3, 2147483648) = 0
11 mmap(NULL, 2147483648, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_POPULATE, 3, 0) = 0x7f0000000000
11 mmap(NULL, 8192, PROT_READ, MAP_SHARED|MAP_POPULATE, 3, 0) = 0x7e0000000000
11 mmap(NULL, 2147483648, PROT_READ, MAP_SHARED, 3, 0) = 0x7d0000000000
"#,
    );
    let reasons = found.replay().incomplete_reasons;
    let reason = "1 call of mmap left out: mappings would be filled with more than 1 GiB of memory";
    assert_eq!(reasons, [reason]);
}

#[test]
fn the_root_of_a_replay_stays() {
    let found = import_text(
        r#"11 rmdir("/") = 0
11 mkdir("/", 0777) = 0
11 rename("/", "/b") = -1 EBUSY (Device or resource busy)
11 mkdir("/.", 0777) = -1 EEXIST (File exists)
11 openat(AT_FDCWD, "/a", O_RDWR|O_CREAT, 0600) = 3
11 rename("/a", "/proc/x") = 0
"#,
    );
    let closed = found.replay();
    assert_eq!(
        closed.incomplete_reasons,
        [
            "1 call of rename left out: one of its two names is not in the replay",
            "1 call of rmdir left out: it moves or removes the root of the replay",
        ]
    );
    let told = &closed.manifest[0].1;
    assert_eq!((&told["carried"], &told["calls"]), (&json!({"mkdir": 1, "rename": 1}), &json!(2)));
    assert!(found.directory().join("a").exists());
}

#[test]
fn threads_of_several_processes_are_not_taken_for_one() {
    let found = import_text(
        "7 openat(AT_FDCWD, \"/a\", O_RDWR|O_CREAT, 0644) = 3\n\
         8 openat(AT_FDCWD, \"/b\", O_RDWR|O_CREAT, 0644) = 3\n7 write(3, \"a\", 1) = 1\n",
    );
    let [reason] = found.imported.reasons.as_slice() else { panic!("it is not told") };
    assert!(reason.starts_with("1 descriptor was opened under a number open before"));
}

#[test]
fn marks_and_ends_of_other_systems_are_passed_over_and_other_encodings_named() {
    let text = "openat(AT_FDCWD, \"/c.db\", O_RDWR|O_CREAT, 0644) = 3 <0.000031>\r\n\
                pwrite64(3, \"abcd\", 4, 0) = 4 <0.000011>\r\nfsync(3) = 0 <0.003100>\r\n";
    assert_eq!(import_text(&format!("\u{feff}{text}")).whole(), (1, 3, 4, 1));
    let refused = |bytes: &[u8]| ImportedTrace::import(bytes).err().unwrap().to_string();
    let wide: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let message = refused(&wide);
    let says = "app.strace: text in UTF-16LE, which is not read; convert it: iconv";
    assert!(message.contains(says), "{message}");
    let mut packed = vec![0x1f, 0x8b];
    packed.write_all(text.as_bytes()).unwrap();
    assert!(refused(&packed).contains("compressed by gzip, which is not read; unpack it"));
}
