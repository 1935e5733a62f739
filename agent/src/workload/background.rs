//! Background load: a second process of the agent's program that does what a phone does besides the
//! measured workload. Starts it before the warm-up, ends it after the last transaction, and returns
//! what it did. The tables show its name, joj-background, as its requests' submitter.
//!
//! The parent holds the child's standard input open. End of file is the signal to stop; it also
//! comes when the parent dies.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use anyhow::Context;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::record::Background;
use crate::sqlite::contents;
use crate::sqlite::databases::Databases;
use crate::sqlite::error::step_error;
use crate::sqlite::options::SqliteOptions;
use crate::sqlite::pragmas::JournalMode;
use crate::sqlite::vfs::Vfs;
use crate::sqlite::wal::Database;
use crate::tables::rows::Transaction;
use crate::tables::timeline::now_ns;
use crate::workload::error::WorkloadError;
use crate::workload::fault::FaultLeft;
use crate::workload::kind::Remains;
use crate::workload::power_cut::{CutFindings, CutMoment, CutOutcome};

/// Its files' directory, in the filesystem's root.
const DIRECTORY: &str = "background";

/// A load that is on.
pub struct BackgroundLoad {
    kind: Background,
    directory: PathBuf,
    child: Child,
    output: BufReader<ChildStdout>,
}

impl BackgroundLoad {
    /// Starts the load; its files go to a directory of their own in `directory`. None for `none`.
    ///
    /// # Errors
    /// If the process cannot be started, or does not begin.
    pub fn start(kind: Background, directory: &Path) -> anyhow::Result<Option<Self>> {
        if kind == Background::None {
            return Ok(None);
        }
        let (parent, directory) = (directory, directory.join(DIRECTORY));
        let name = || directory.display().to_string();
        std::fs::create_dir(&directory).with_context(name)?;
        if kind == Background::Sqlite {
            // An app's directory is there long before its commits, which do not make it durable.
            File::open(parent).and_then(|parent| parent.sync_all()).with_context(name)?;
        }
        let mut child = Command::new("/proc/self/exe")
            .args(["background", kind.word()])
            .arg(&directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("starting the background load")?;
        let output = child.stdout.take().context("the background load's output")?;
        let output = BufReader::new(output);
        let mut background = Self { kind, directory, child, output };
        let first = background.line()?;
        anyhow::ensure!(first == READY, "the background load {kind} did not begin");
        Ok(Some(background))
    }

    /// Ends the load; gives what it did, for the manifest, and what it left.
    ///
    /// # Errors
    /// If it failed.
    pub fn stop(mut self) -> anyhow::Result<(Value, BackgroundLeft)> {
        drop(self.child.stdin.take());
        let report = self.line()?;
        let status = self.child.wait().context("waiting for the background load")?;
        anyhow::ensure!(status.success(), "the background load {} failed: {status}", self.kind);
        let what = "the background load's report";
        let mut did: Value = serde_json::from_str(&report).context(what)?;
        let times = did.as_object_mut().and_then(|did| did.remove(TIMES));
        let left = match (self.kind, times) {
            (Background::Sqlite, Some(times)) => {
                let times = serde_json::from_value(times).context(what)?;
                BackgroundLeft::App(AppLeft { directory: self.directory.clone(), times })
            }
            (kind, _) => BackgroundLeft::NothingPromised(kind),
        };
        let did = json!({ "kind": self.kind.word(), "pid": self.child.id(), "did": did });
        Ok((did, left))
    }

    fn line(&mut self) -> anyhow::Result<String> {
        let mut line = String::new();
        self.output.read_line(&mut line).context("reading from the background load")?;
        Ok(line)
    }
}

impl Drop for BackgroundLoad {
    /// On an error of the workload, the load ends with it.
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// Says what a background load left.
pub enum BackgroundLeft {
    /// A database whose every commit was synced.
    App(AppLeft),
    /// Files that nobody synced, or none.
    NothingPromised(Background),
}

/// Holds what a workload and the load beside it left.
pub struct RemainsOfBoth {
    pub workload: Box<dyn Remains>,
    pub background: BackgroundLeft,
}

impl Remains for RemainsOfBoth {
    fn check(&self) -> Result<(), WorkloadError> {
        self.workload.check()?;
        match &self.background {
            BackgroundLeft::App(app) => app.check(),
            BackgroundLeft::NothingPromised(_) => Ok(()),
        }
    }

    fn check_oracle(&self) -> Result<(), WorkloadError> {
        self.workload.check_oracle()
    }

    fn operations(&self, transactions: &[Transaction]) -> Vec<Transaction> {
        self.workload.operations(transactions)
    }

    fn has_foreign_judge(&self) -> bool {
        self.workload.has_foreign_judge()
    }

    fn judge(&self, cut: &CutMoment) -> Result<CutFindings, WorkloadError> {
        let of_workload = self.workload.judge(cut)?;
        Ok(match &self.background {
            BackgroundLeft::App(app) => [of_workload, app.judge(cut.at_ns)?].into_iter().collect(),
            BackgroundLeft::NothingPromised(_) => of_workload,
        })
    }

    fn databases(&self) -> Result<Vec<PathBuf>, WorkloadError> {
        self.workload.databases()
    }

    fn vfs(&self) -> Vfs {
        self.workload.vfs()
    }

    fn fault(&self) -> Option<&FaultLeft> {
        self.workload.fault()
    }

    fn promise_times_ns(&self) -> Vec<i64> {
        let mut times = self.workload.promise_times_ns();
        if let BackgroundLeft::App(app) = &self.background {
            times.extend(app.times.promises_ns());
        }
        times
    }

    fn unchecked_parts(&self) -> Vec<String> {
        let mut unchecked = self.workload.unchecked_parts();
        if let BackgroundLeft::NothingPromised(kind @ Background::Video) = self.background {
            unchecked.push(format!("the file of background {kind}: it is never synced"));
        }
        unchecked
    }
}

// The child process of a background load, and what it does: a CPU hog, which computes without a
// pause, and does no I/O at all; HD video recording, 1920x1080 at 30 frames a second, of which
// each frame takes a share of the CPU, and its bytes go to the end of a file with a plain write,
// as recorders do not sync while they record; a second app that uses SQLite, which inserts a row a
// transaction into a database of its own, with a rollback journal that is truncated and every
// commit synced, as apps of Android 4 did. After a power cut, every insert that had returned must
// be there, and none by half.

/// The process's name; the longest the kernel keeps has 15 bytes.
const NAME: &std::ffi::CStr = c"joj-background";

/// Return what the child's process does: the load, until its standard input ends.
///
/// # Errors
/// If the load fails.
pub fn run(kind: Background, directory: &Path) -> anyhow::Result<()> {
    rustix::thread::set_name(NAME).context("naming the process")?;
    let did = match kind {
        Background::None => anyhow::bail!("none is no load to run"),
        Background::Video => run_video(directory)?,
        Background::Cpu => run_cpu()?,
        Background::Sqlite => run_sqlite(directory)?,
    };
    let mut output = std::io::stdout();
    writeln!(output, "{did}").and_then(|()| output.flush()).context("reporting")
}

/// Says what the child says when it has begun.
pub const READY: &str = "ready\n";

/// The child's side: says that it has begun, and when to stop.
pub struct Signals {
    input: File,
}

impl Signals {
    /// Says that it has begun.
    ///
    /// # Errors
    /// If nobody can be told.
    pub fn begin() -> anyhow::Result<Self> {
        let mut output = std::io::stdout();
        output.write_all(READY.as_bytes()).and_then(|()| output.flush()).context("saying ready")?;
        Ok(Self { input: File::open("/proc/self/fd/0").context("standard input")? })
    }

    /// Return whether the parent wants an end, waiting for it for so long at most.
    pub fn shall_stop(&self, wait_ns: i64) -> bool {
        use std::os::fd::AsRawFd;
        let wait_ns = wait_ns.max(0);
        let time =
            libc::timespec { tv_sec: wait_ns / 1_000_000_000, tv_nsec: wait_ns % 1_000_000_000 };
        let mut poll = libc::pollfd { fd: self.input.as_raw_fd(), events: 0, revents: 0 };
        // SAFETY: one live pollfd, a live timespec, and no signal mask.
        let ready = unsafe { libc::ppoll(&raw mut poll, 1, &raw const time, std::ptr::null()) };
        ready > 0
    }
}

/// Says what it computes: hashes of a block; one takes some 10 us, between which it looks for the
/// end.
const BLOCK_BYTES: usize = 4096;
/// Hashes between two looks.
const HASHES: u64 = 64;

/// Computes until told to stop; gives what it did.
///
/// # Errors
/// If it cannot tell that it has begun.
fn run_cpu() -> anyhow::Result<Value> {
    let signals = Signals::begin()?;
    let mut block = [0_u8; BLOCK_BYTES];
    let mut hashes = 0_u64;
    while !signals.shall_stop(0) {
        for _ in 0..HASHES {
            let digest = Sha256::digest(block);
            block[..digest.len()].copy_from_slice(&digest);
        }
        hashes += HASHES;
    }
    Ok(json!({ "hashes": hashes, "block_bytes": BLOCK_BYTES }))
}

const FRAMES_PER_S: i64 = 30;
/// 17 Mbit/s: what Galaxy phones record in this format (darkskiesfilm.com/?p=53608, of the S7; of
/// a Note 3 of 2013 12 to 15 Mbit/s are told at 24 frames a second, thedailynote.net 2013/10).
const BITS_PER_S: i64 = 17_000_000;
const FRAME_BYTES: i64 = BITS_PER_S / 8 / FRAMES_PER_S;
const FRAME_NS: i64 = 1_000_000_000 / FRAMES_PER_S;
/// CPU time of one frame, a tenth of the frame's time. An assumption: the picture is encoded by
/// hardware, and what is left to the CPU (buffers, sound, the container) we found no number of.
const FRAME_CPU_NS: i64 = FRAME_NS / 10;
/// The file is written anew from its beginning when it is so long, so that no case fills a device.
const MOST_BYTES: u64 = 64 << 20;

/// Records until told to stop; gives what it did.
///
/// # Errors
/// If the file cannot be written.
fn run_video(directory: &Path) -> anyhow::Result<Value> {
    let path = directory.join("video.mp4");
    let name = || path.display().to_string();
    let file = OpenOptions::new().write(true).create_new(true).open(&path).with_context(name)?;
    let mut frame = vec![0_u8; usize::try_from(FRAME_BYTES)?];
    let (mut frames, mut late, mut offset) = (0_i64, 0_i64, 0_u64);
    let signals = Signals::begin()?;
    let begin_ns = now_ns();
    loop {
        let due_ns = begin_ns + frames * FRAME_NS;
        if signals.shall_stop(due_ns - now_ns()) {
            break;
        }
        let encoded_ns = now_ns() + FRAME_CPU_NS;
        while now_ns() < encoded_ns {
            // Each frame has bytes of its own.
            frame.iter_mut().step_by(512).for_each(|byte| *byte = byte.wrapping_add(1));
        }
        if offset + frame.len() as u64 > MOST_BYTES {
            offset = 0;
        }
        file.write_all_at(&frame, offset).with_context(name)?;
        offset += frame.len() as u64;
        frames += 1;
        // The next one comes while this one is still at work: a camera would drop it.
        late += i64::from(now_ns() > due_ns + FRAME_NS);
    }
    Ok(json!({
        "frames": frames,
        "frames_late": late,
        "bytes": frames * FRAME_BYTES,
        "bits_per_s": BITS_PER_S,
        "frame_cpu_ns": FRAME_CPU_NS,
    }))
}

/// Idle time between two transactions: a busy app, but not one that does nothing else.
const INTERVAL_NS: i64 = 10_000_000;
/// Bytes of a row's value, as in the ATC'13 study.
const VALUE_BYTES: usize = 100;

/// The times when its inserts began and returned, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct AppTimes {
    /// The time when the table was there.
    ready_ns: i64,
    begin_ns: Vec<i64>,
    return_ns: Vec<i64>,
}

impl AppTimes {
    /// Yield the times when its table and each of its rows were there to stay.
    pub fn promises_ns(&self) -> impl Iterator<Item = i64> {
        [self.ready_ns].into_iter().chain(self.return_ns.iter().copied())
    }
}

/// The child's key of `AppTimes`, which the manifest does not have.
pub const TIMES: &str = "times";

fn database_path(directory: &Path) -> PathBuf {
    directory.join("app.db")
}

fn value() -> String {
    "a".repeat(VALUE_BYTES)
}

/// Inserts until told to stop; gives what it did.
///
/// # Errors
/// If SQLite fails.
fn run_sqlite(directory: &Path) -> anyhow::Result<Value> {
    let path = database_path(directory);
    let name = || path.display().to_string();
    let database = Database::new("main".into(), path.clone());
    let options = SqliteOptions::with_syncs(JournalMode::Truncate);
    let databases = Databases::open(vec![database.clone()], &options)?;
    let table = "CREATE TABLE record (key INTEGER PRIMARY KEY, value TEXT NOT NULL)";
    databases.batch(table, &database)?;
    let mut times = AppTimes { ready_ns: now_ns(), ..AppTimes::default() };
    let mut insert = databases.statement("INSERT INTO record (value) VALUES (?1)", &database)?;
    let value = value();
    let signals = Signals::begin()?;
    while !signals.shall_stop(INTERVAL_NS) {
        times.begin_ns.push(now_ns());
        insert.execute([&value]).with_context(name)?;
        times.return_ns.push(now_ns());
    }
    let transactions = times.return_ns.len();
    Ok(json!({ "transactions": transactions, "interval_ns": INTERVAL_NS, TIMES: times }))
}

/// The database that it left.
pub struct AppLeft {
    pub directory: PathBuf,
    pub times: AppTimes,
}

impl AppLeft {
    /// Checks that every row is there.
    ///
    /// # Errors
    /// If it cannot be read, or holds something else.
    pub fn check(&self) -> Result<(), WorkloadError> {
        let (found, wanted) = (self.rows()?, self.times.return_ns.len() as u64);
        if found == wanted {
            return Ok(());
        }
        Err(self.wrong(format!("holds {found} rows at the end where {wanted} were due")))
    }

    /// Return what is there after a power cut at that time.
    ///
    /// # Errors
    /// If it cannot be read, or holds what was never inserted.
    pub fn judge(&self, at_ns: i64) -> Result<CutFindings, WorkloadError> {
        if at_ns < self.times.ready_ns {
            // Nothing had returned yet: it may not be there at all.
            return Ok(CutFindings::without_harm());
        }
        let by_then = |times: &[i64]| times.iter().filter(|time| **time <= at_ns).count() as u64;
        let (returned, begun) = (by_then(&self.times.return_ns), by_then(&self.times.begin_ns));
        let found = self.rows()?;
        if found > begun {
            return Err(self.wrong(format!("holds {found} rows where {begun} had begun")));
        }
        Ok(match returned.saturating_sub(found) {
            0 => CutFindings::without_harm(),
            lost => {
                let message = format!("of the background load {lost} inserts that had returned");
                CutFindings { lost, ..CutFindings::without_states(CutOutcome::Lost, message) }
            }
        })
    }

    /// Its rows, which must be the first ones, each whole.
    fn rows(&self) -> Result<u64, WorkloadError> {
        let path = database_path(&self.directory);
        let connection = contents::open(&path)?;
        let sql =
            "SELECT count(*), coalesce(max(key), 0), coalesce(sum(value = ?1), 0) FROM record";
        let read = |row: &rusqlite::Row| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
        let (rows, last, right): (i64, i64, i64) =
            connection.query_row(sql, [value()], read).map_err(step_error("read back", &path))?;
        if rows != last || rows != right {
            return Err(self.wrong(format!("holds {right} right rows of {rows}, up to key {last}")));
        }
        Ok(rows.cast_unsigned())
    }

    fn wrong(&self, what: String) -> WorkloadError {
        WorkloadError::Contents { path: database_path(&self.directory), what }
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;

    fn left(rows: u64) -> (tempfile::TempDir, AppLeft) {
        let directory = tempfile::tempdir().unwrap();
        let connection = Connection::open(database_path(directory.path())).unwrap();
        connection
            .execute_batch("CREATE TABLE record (key INTEGER PRIMARY KEY, value TEXT NOT NULL)")
            .unwrap();
        for _ in 0..rows {
            connection.execute("INSERT INTO record (value) VALUES (?1)", [value()]).unwrap();
        }
        let times =
            AppTimes { ready_ns: 5, begin_ns: vec![10, 20, 30], return_ns: vec![15, 25, 35] };
        let left = AppLeft { directory: directory.path().to_owned(), times };
        (directory, left)
    }

    #[test]
    fn an_insert_that_returned_must_be_there_and_one_under_way_may() {
        let outcome = |rows, at_ns| {
            let (_directory, left) = left(rows);
            left.judge(at_ns).map(|it| (it.outcome, it.lost)).ok()
        };
        assert_eq!(outcome(0, 12), Some((CutOutcome::Kept, 0)));
        assert_eq!(outcome(1, 12), Some((CutOutcome::Kept, 0)));
        assert_eq!(outcome(2, 12), None);
        assert_eq!(outcome(1, 40), Some((CutOutcome::Lost, 2)));
        assert_eq!(outcome(3, 40), Some((CutOutcome::Kept, 0)));
    }

    #[test]
    fn half_a_row_and_a_gap_are_damage_and_before_the_table_nothing_is_due() {
        for change in
            ["UPDATE record SET value = 'aa' WHERE key = 2", "DELETE FROM record WHERE key = 1"]
        {
            let (directory, left) = left(3);
            assert!(left.check().is_ok());
            let connection = Connection::open(database_path(directory.path())).unwrap();
            connection.execute(change, []).unwrap();
            assert!(left.judge(40).is_err() && left.check().is_err(), "{change}");
            assert_eq!(left.judge(4).unwrap(), CutFindings::without_harm());
        }
    }
}
