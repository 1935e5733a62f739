//! Tests of the replay: real files, several threads, what cannot be done, and the real script where
//! it is at hand (JOJ_SHARED_DATA).

use std::io::Write;

use proptest::prelude::*;

use super::*;
use crate::import::{Trace, import};
use crate::tables::timeline::now_ns;
use crate::workload::power_cut::{CutMoment, CutOutcome};
use crate::workload::threads::noted_phases::NotedPhases;

/// A folder with a script beside the directory of its replay.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new(script: &[u8]) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        std::fs::write(folder.0.path().join("script"), script).unwrap();
        std::fs::create_dir(folder.directory()).unwrap();
        folder
    }

    fn directory(&self) -> PathBuf {
        self.0.path().join("private")
    }

    fn prepare(&self) -> Result<Replay, WorkloadError> {
        self.prepare_at(Timing::Recorded)
    }

    fn prepare_at(&self, timing: Timing) -> Result<Replay, WorkloadError> {
        let recording = self.0.path().join("recording");
        if !recording.exists() {
            let script = self.0.path().join("script");
            import(&Trace::Mobigen(&script), &recording, None)
                .map_err(|error| WorkloadError::refusal(format!("{error:#}")))?;
        }
        let settings = ReplaySettings {
            workload: ReplayWorkload::Replay,
            recording,
            recorded_root: "/".into(),
            timing,
            timing_percent: 100,
        };
        Replay::prepare(&self.directory(), &settings, 1)
    }

    fn run(&self) -> ClosedWorkload {
        let mut replay = self.prepare().unwrap();
        replay.run(&mut NotedPhases::default()).unwrap();
        Box::new(replay).close().unwrap()
    }
}

fn replay(closed: &ClosedWorkload) -> &Value {
    &closed.manifest[0].1
}

const SCRIPT: &str = "\
1 0 open \"/data/x.db\" O_RDWR|O_CREAT 5
1 100 read 5 100
2 200 write 5 50
1 300 fsync 5 0
3 400 access \"/data/x.db-wal\" -1
3 500 open \"/data/x.db-journal\" O_RDWR|O_CREAT|O_EXCL 6
3 500 pwrite 6 512 512
3 600 close 6 0
2 700 unlink \"/data/x.db-journal\" 0
2 2000 stat64 \"/data/x.db-journal\" -1
2 2100 close 5 0
";

#[test]
fn calls_are_made_on_files_of_the_directory() {
    let folder = Folder::new(SCRIPT.as_bytes());
    let before_ns = now_ns();
    let closed = folder.run();
    closed.remains.check().unwrap();
    assert_eq!(replay(&closed)["calls"], 11);
    assert_eq!(replay(&closed)["read_bytes"], 100);
    assert_eq!(replay(&closed)["written_bytes"], 562);
    assert_eq!(replay(&closed)["otherwise"], json!({}));
    assert!(closed.incomplete_reasons.is_empty());
    // The write went on where the read of another thread had come to.
    assert_eq!(std::fs::metadata(folder.directory().join("data/x.db")).unwrap().len(), 150);
    assert!(!folder.directory().join("data/x.db-journal").exists());
    let kinds: Vec<&str> = closed.transactions.iter().map(|row| row.kind.as_str()).collect();
    assert_eq!(kinds.iter().filter(|kind| **kind == "fsync").count(), 1);
    // A call never begins before its time; by how much later it begins is the machine's.
    let last_ns = closed.transactions.iter().map(|row| row.begin_ns).max().unwrap();
    assert!(last_ns - before_ns >= 2_000_000, "times are kept: {before_ns} to {last_ns}");
}

/// The first thread stops after its first write, for a pause that is asked for while all sleep; the
/// second waits for the other write.
#[test]
fn a_pause_stops_a_thread_that_waits_for_another() {
    let folder = Folder::new(
        b"1 0 open \"/a\" O_RDWR|O_CREAT 5\n1 60000 write 5 10\n1 61000 write 5 10\n\
          2 62000 write 5 10\n",
    );
    let mut observer = NotedPhases::with_pauses(1);
    let mut replay = folder.prepare().unwrap();
    replay.run(&mut observer).unwrap();
    assert_eq!(observer.pauses, 0);
    assert_eq!(observer.phases, ["commit"; 2]);
    let closed = Box::new(replay).close().unwrap();
    closed.remains.check().unwrap();
    assert_eq!(self::replay(&closed)["calls"], 4);
    assert_eq!(self::replay(&closed)["written_bytes"], 30);
}

#[test]
fn the_same_script_has_the_same_hash() {
    let hash = |text: &str| Folder::new(text.as_bytes()).run().operation_hash;
    assert_eq!(hash(SCRIPT), hash(SCRIPT));
    assert_ne!(hash(SCRIPT), hash(&SCRIPT.replace("pwrite 6 512", "pwrite 6 1024")));
}

#[test]
fn calls_that_are_left_out_or_go_otherwise_are_told() {
    let folder = Folder::new(
        b"1 0 open \"/a\" O_RDWR|O_CREAT|O_EXCL 5\n1 1 open \"/a\" O_RDWR|O_CREAT|O_EXCL 6\n\
          1 2 write 6 10\n1 3 ioctl 6 1\n1 4 fsync 77\n1 5 access \"/a\" -1\n2 6 fsync 77\n",
    );
    let closed = folder.run();
    closed.remains.check().unwrap();
    assert_eq!(
        replay(&closed)["otherwise"],
        json!({
            "open": { "calls": 1, "first_call": 1 },
            "write": { "calls": 1, "first_call": 2 },
            "access": { "calls": 1, "first_call": 4 },
        })
    );
    assert_eq!(
        closed.incomplete_reasons,
        ["2 calls of fsync left out: its descriptor is one that no recorded call opened"]
    );
    assert_eq!(replay(&closed)["idle_threads"], json!([1]));
}

#[test]
fn a_script_that_is_none_is_refused() {
    for (text, words) in [
        ("", "no file system call"),
        ("1 0 ioctl 3", "no file system call"),
        ("1 0 close 3", "the recording names no file"),
        ("1 0 close 3\n1 1 write 3 x", "script: line 2, bytes: \"x\" is no whole number"),
        ("1 0 close 3\n1 9000000000000000 close 3", "line 2, microseconds: 9000000000000000 is"),
        ("1 0 open \"/a\" O_RDONLY 3\n1 0 pread 3 17592186044416 10", "must be there before"),
    ] {
        let error = Folder::new(text.as_bytes()).prepare().err().unwrap();
        assert!(error.to_string().contains(words), "{error}");
    }
}

#[test]
fn nothing_outside_is_touched() {
    let folder = Folder::new(
        b"1 0 open \"../script\" O_WRONLY|O_TRUNC 3\n1 1 write 3 9\n\
          1 2 unlink \"/../../../../../../etc/passwd\" 0\n1 3 open \"/\" O_RDONLY|O_DIRECTORY 4\n\
          1 4 fsync 4\n1 5 unlink \"..\" 0\n",
    );
    let before = std::fs::read(folder.0.path().join("script")).unwrap();
    folder.run().remains.check().unwrap();
    assert_eq!(std::fs::read(folder.0.path().join("script")).unwrap(), before);
    assert!(Path::new("/etc/passwd").exists());
    let names = std::fs::read_dir(folder.0.path()).unwrap().count();
    assert_eq!(names, 3, "the script, its recording and the directory");
}

#[test]
fn an_error_of_the_machine_ends_all_threads() {
    // The second thread waits for its turn on the same file, the third for a quarter of an hour.
    let folder = Folder::new(
        b"1 0 open \"/d/full\" O_WRONLY 5\n1 1 write 5 10\n2 2 write 5 10\n\
          3 900000000 access \"/b\" -1\n",
    );
    let mut replay = folder.prepare().unwrap();
    // A write to it fails with ENOSPC (full(4)).
    std::fs::remove_dir_all(folder.directory().join("d")).unwrap();
    std::os::unix::fs::symlink("/dev", folder.directory().join("d")).unwrap();
    let error = replay.run(&mut NotedPhases::default()).unwrap_err();
    let Some(WorkloadError::File { step, source, .. }) = error.downcast_ref() else {
        panic!("{error:#}")
    };
    assert_eq!(step, "call 1 of the recording, write");
    assert_eq!(source.raw_os_error(), Some(libc::ENOSPC));
    assert!(replay.shared.turns.has_ended());
    assert_eq!(self::replay(&Box::new(replay).close().unwrap())["written_bytes"], 0);
}

#[test]
fn the_real_script_is_replayed() {
    let Some(data) = std::env::var_os("JOJ_SHARED_DATA") else {
        // Listed in tests/skips.toml. The test harness keeps what eprintln! prints to itself.
        let reason = "JOJ_SHARED_DATA names no folder with mobigen.out.facebook";
        let mut stderr = std::io::stderr();
        writeln!(stderr, "skipped: {}: {reason}", file!()).unwrap();
        return;
    };
    let script = std::fs::read_to_string(Path::new(&data).join("mobigen.out.facebook")).unwrap();
    // A thousand times as fast: two minutes in a fraction of a second.
    let faster = |line: &str| {
        let mut fields = line.splitn(3, ' ');
        let (thread, us, rest) = (fields.next()?, fields.next()?, fields.next()?);
        Some(format!("{thread} {} {rest}\n", us.parse::<u64>().ok()? / 1000))
    };
    let script: String = script.lines().filter_map(faster).collect();
    let folder = Folder::new(script.as_bytes());
    let closed = folder.run();
    closed.remains.check().unwrap();
    let found = replay(&closed);
    let left_out = found["left_out"].as_array().unwrap().iter();
    let left_out = left_out.filter_map(|it| it["calls"].as_u64());
    assert_eq!(found["calls"].as_u64().unwrap() + left_out.sum::<u64>(), 30_819);
    let otherwise = found["otherwise"].as_object().unwrap().values();
    let otherwise: u64 = otherwise.filter_map(|it| it["calls"].as_u64()).sum();
    assert!(otherwise < 30_819 / 50, "{found}");
}

fn any_call() -> impl Strategy<Value = String> {
    let path = prop::sample::select(vec!["/a", "/a/b", "/../c", "/d d", "."]);
    let flags = prop::sample::select(vec![
        "O_RDONLY",
        "O_RDWR|O_CREAT",
        "O_WRONLY|O_CREAT|O_TRUNC",
        "O_RDWR|O_CREAT|O_EXCL",
        "O_WRONLY|O_APPEND",
    ]);
    let name = prop::sample::select(vec![
        "read", "write", "pread", "pwrite", "fsync", "close", "unlink", "stat", "open",
    ]);
    (name, path, flags, 3..6_u32, 0..9000_u32, 0..9000_u32).prop_map(
        |(name, path, flags, descriptor, offset, bytes)| match name {
            "open" => format!("open \"{path}\" {flags} {descriptor}"),
            "read" | "write" => format!("{name} {descriptor} {bytes}"),
            "pread" | "pwrite" => format!("{name} {descriptor} {offset} {bytes}"),
            "stat" | "unlink" => format!("{name} \"{path}\""),
            _ => format!("{name} {descriptor}"),
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn files_end_as_foreseen_where_all_goes_as_recorded(
        calls in prop::collection::vec((1..4_u32, 0..50_u32, any_call()), 1..40)
    ) {
        let line = |(thread, us, call): &(u32, u32, String)| format!("{thread} {us} {call}\n");
        let folder = Folder::new(calls.iter().map(line).collect::<String>().as_bytes());
        if let Ok(mut replay) = folder.prepare() {
            replay.run(&mut NotedPhases::default()).unwrap();
            Box::new(replay).close().unwrap().remains.check().unwrap();
        }
    }
}

/// Every kind of call that the oracle of power cuts follows, on a real filesystem.
#[test]
fn the_oracle_of_power_cuts_knows_what_the_calls_left() {
    let folder = Folder::new(
        b"1 0 open \"/d/a\" O_RDWR|O_CREAT 5\n1 1 write 5 5000\n1 2 lseek 5 100 SEEK_SET\n\
          1 3 write 5 50\n1 4 fsync 5 0\n1 5 ftruncate 5 3000\n1 6 pwrite 5 7000 200\n\
          1 7 open \"/d/b\" O_RDWR|O_CREAT|O_TRUNC 6\n1 8 write 6 300\n1 9 fdatasync 6 0\n\
          1 11 close 6 0\n1 12 unlink \"/d/gone\" 0\n",
    );
    let closed = folder.run();
    closed.remains.check_oracle().unwrap();
    let at = |name: &str| folder.directory().join("d").join(name);
    let end = CutMoment { transactions: &[], at_ns: i64::MAX - 1 };
    let outcome = || closed.remains.judge(&end).map(|found| (found.outcome, found.lost)).ok();
    assert_eq!(outcome(), Some((CutOutcome::Kept, 0)));
    // No directory was synced: a name may be gone, and what is there must be as it was synced.
    std::fs::remove_file(at("a")).unwrap();
    assert_eq!(outcome(), Some((CutOutcome::Kept, 0)));
    std::fs::OpenOptions::new().write(true).open(at("b")).unwrap().set_len(299).unwrap();
    assert_eq!(outcome(), Some((CutOutcome::Lost, 1)));
    std::fs::write(at("b"), [1; 300]).unwrap();
    assert_eq!(outcome(), None);
    closed.remains.check_oracle().unwrap_err();
    let unchecked = closed.remains.unchecked_parts();
    assert!(unchecked[0].contains("names in directories that were not synced"), "{unchecked:?}");
}
