//! The verdict on a program's SQLite databases after a power cut, without a check of the user's:
//! each must open, pass integrity_check, and hold the rows that it had after one of its commits, no
//! earlier than the last that had returned. The run's own disks tell these rows, by what had been
//! issued then; where they do not, those of the end are owed once the last commit has returned.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::commits::finder::CHECKPOINT;
use crate::commits::unit_of_work::DetectedTransaction;
use crate::messages::plural;
use crate::sqlite::contents::{self, ContentsDigest};
use crate::sqlite::error::step_error as sqlite_step_error;
use crate::workload::error::{WorkloadError, step_error};
use crate::workload::power_cut::{
    CutFindings, CutMoment, CutOutcome, DatabaseStates, Progress, judge_databases,
};

/// The first bytes of a database (sqlite.org/fileformat2.html).
const MAGIC: &[u8; 16] = b"SQLite format 3\0";
/// The digest of a database without tables; one that is not there has no other rows.
const NO_ROWS: ContentsDigest = 0;
/// The root of what a program sees, and names its databases by.
const PROGRAM_DIRECTORY: &str = "/app";
/// More commits of one database are not looked at, as each takes a mount, nor are larger files.
const MOST_LOOKS: usize = 1_000;
const MOST_BYTES: u64 = 32 << 20;
/// The reason why nothing is compared: when commits returned is not known.
const SHARED: &str = "several threads of one process use it at once";
/// A WAL begins so, and has its pages' length at byte 8 (section 4.1 of the file format).
const WAL_HEADER_BYTES: usize = 32;
const FRAME_HEADER_BYTES: usize = 24;

/// The rows of each database, by its path in the program's directory.
type Rows = BTreeMap<PathBuf, ContentsDigest>;

/// The begin and the return of each COMMIT, in the order of the commits.
type CommitTimes = Vec<(i64, i64)>;

/// Something that a moment of the run tells of a database.
#[derive(Debug)]
enum HistoryLook {
    /// The rows before the program began.
    Begin,
    /// After a commit of this number, whose journal is over: the rows of the file by itself.
    File(usize),
    /// The file that the next frames of the WAL change.
    Base,
    /// The WAL, and how many frames it had after commits of these numbers.
    Wal(Vec<(usize, usize)>),
}

/// The rows of one database after its commits.
#[derive(Debug, Default)]
struct DatabaseHistory {
    times_ns: CommitTimes,
    /// The looks that are left, each with its moment.
    looks: Vec<(i64, HistoryLook)>,
    /// After 0, 1, 2 ... commits, as far as that was seen.
    digests: Vec<Option<ContentsDigest>>,
    base: Vec<u8>,
    /// The reason why they cannot be known, where there is one.
    gap: Option<&'static str>,
}

impl DatabaseHistory {
    fn new(transactions: &[DetectedTransaction]) -> Self {
        let mut history = Self { looks: vec![(i64::MIN, HistoryLook::Begin)], ..Self::default() };
        let mut in_order: Vec<&DetectedTransaction> = transactions.iter().collect();
        in_order.sort_by_key(|it| it.row.commit_ns);
        let mut frames: Vec<(usize, usize)> = Vec::new();
        let mut file_until_ns = i64::MIN;
        for DetectedTransaction { row, journal_mode, guards, .. } in in_order {
            if row.kind == CHECKPOINT {
                if row.sync_calls < 2 {
                    history.gap = Some("a checkpoint did not sync WAL and database");
                }
                if !frames.is_empty() {
                    let look = HistoryLook::Wal(std::mem::take(&mut frames));
                    history.looks.push((row.return_ns, look));
                }
                continue;
            }
            history.times_ns.push((row.commit_ns, row.return_ns));
            let number = history.times_ns.len();
            if row.commit_ns < file_until_ns {
                history.gap = Some("one commit began before another had returned");
            }
            match *journal_mode {
                "wal" => {
                    let last = usize::try_from(row.wal_frames).unwrap_or(0);
                    if frames.last().is_some_and(|(_, before)| *before >= last) {
                        history.gap =
                            Some("its WAL began again without a checkpoint that was seen");
                    }
                    if frames.is_empty() {
                        history.looks.push((row.commit_ns, HistoryLook::Base));
                    }
                    frames.push((number, last));
                }
                "batch-atomic" => history.gap = Some("F2FS committed it as a batch"),
                _ if !guards.database_synced => {
                    history.gap = Some("a commit returned before its database was synced");
                }
                _ => {
                    history.looks.push((row.return_ns, HistoryLook::File(number)));
                    file_until_ns = row.return_ns;
                }
            }
        }
        if !frames.is_empty() {
            history.looks.push((i64::MAX, HistoryLook::Wal(frames)));
        }
        if transactions.iter().any(|it| it.is_ended_by_other) {
            history.gap = Some(SHARED);
        }
        if history.looks.len() > MOST_LOOKS {
            history.gap = Some("it has too many commits");
        }
        if history.gap.is_some() {
            history.looks.clear();
        }
        history.digests = vec![None; history.times_ns.len() + 1];
        history
    }

    /// Looks at what the moment tells, of the file at a path.
    fn learn(&mut self, at_ns: i64, path: &Path, scratch: &Path) -> Result<(), WorkloadError> {
        let due: Vec<(i64, HistoryLook)> = self.looks.extract_if(.., |it| it.0 == at_ns).collect();
        for (_, look) in due {
            match look {
                HistoryLook::Begin => {
                    self.digests[0] = match is_database(path) {
                        Ok(true) => without_read_failure(rows_in_place(path))?,
                        _ => Some(NO_ROWS),
                    };
                }
                HistoryLook::File(number) => {
                    self.digests[number] =
                        without_read_failure(copied_rows(scratch, &content(path)?, None))?;
                }
                HistoryLook::Base => self.base = content(path)?,
                HistoryLook::Wal(commits) => {
                    let wal = content(&path_with_suffix(path, "-wal"))?;
                    for (number, frames) in commits {
                        let rows = copied_rows(scratch, &self.base, Some((&wal, frames)));
                        self.digests[number] = without_read_failure(rows)?;
                    }
                    self.base = Vec::new();
                }
            }
        }
        Ok(())
    }

    /// Return the rows after each commit; otherwise why they are not known. The last ones are those
    /// of the end: else a commit was not found.
    fn states(&self, end: ContentsDigest) -> Result<DatabaseStates, &'static str> {
        if let Some(gap) = self.gap {
            return Err(gap);
        }
        let digests: Option<Vec<ContentsDigest>> = self.digests.iter().copied().collect();
        let digests = digests.ok_or("what a commit left could not be read when it had returned")?;
        match digests.last() {
            Some(last) if *last == end => Ok(DatabaseStates { digests, ..Default::default() }),
            _ => Err("its commits do not lead to the rows of the end"),
        }
    }
}

/// Nothing where a file could not be read for what it holds.
fn without_read_failure(
    rows: Result<Option<ContentsDigest>, WorkloadError>,
) -> Result<Option<ContentsDigest>, WorkloadError> {
    match rows {
        Err(error) if error.is_of_this_machine() => Err(error),
        other => Ok(other.ok().flatten()),
    }
}

/// The content of a file; nothing where it is too large or cannot be read, which is no database.
fn content(path: &Path) -> Result<Vec<u8>, WorkloadError> {
    match fs::metadata(path) {
        Ok(found) if found.len() <= MOST_BYTES => {
            match fs::read(path).map_err(step_error("read", path)) {
                Err(error) if error.is_of_this_machine() => Err(error),
                other => Ok(other.unwrap_or_default()),
            }
        }
        _ => Ok(Vec::new()),
    }
}

fn path_with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn rows_in_place(path: &Path) -> Result<Option<ContentsDigest>, WorkloadError> {
    Ok(Some(contents::database_digest(&contents::open(path)?, "main", path)?))
}

/// The rows of a copy of a database, with the first frames of a WAL; none where SQLite does not
/// take these for whole.
fn copied_rows(
    scratch: &Path,
    database: &[u8],
    wal: Option<(&[u8], usize)>,
) -> Result<Option<ContentsDigest>, WorkloadError> {
    if !database.starts_with(MAGIC) {
        return Ok(None);
    }
    let path = scratch.join("database");
    let copy =
        |path: &Path, bytes: &[u8]| fs::write(path, bytes).map_err(step_error("write", path));
    fs::create_dir_all(scratch).map_err(step_error("make", scratch))?;
    copy(&path, database)?;
    if let Some((wal, frames)) = wal {
        let page_bytes = wal
            .get(8..12)
            .map_or(0, |bytes| u32::from_be_bytes(bytes.try_into().expect("four bytes")) as usize);
        let length = WAL_HEADER_BYTES + frames * (FRAME_HEADER_BYTES + page_bytes);
        let Some(whole) = wal.get(..length) else { return Ok(None) };
        copy(&path_with_suffix(&path, "-wal"), whole)?;
    }
    let rows = rows_in_place_of(&path, wal.map(|(_, frames)| frames));
    fs::remove_dir_all(scratch).map_err(step_error("remove", scratch))?;
    rows
}

fn rows_in_place_of(
    path: &Path,
    frames: Option<usize>,
) -> Result<Option<ContentsDigest>, WorkloadError> {
    let connection = contents::open(path)?;
    let rows = contents::database_digest(&connection, "main", path)?;
    let step = sqlite_step_error("look at the WAL", path);
    connection.execute_batch("COMMIT").map_err(&step)?;
    let found: i64 =
        connection.query_row("PRAGMA wal_checkpoint", [], |row| row.get(1)).map_err(&step)?;
    let is_whole = frames.is_none_or(|frames| usize::try_from(found) == Ok(frames));
    Ok(is_whole.then_some(rows))
}

/// Judges the databases in a directory.
pub struct DatabaseJudge {
    directory: PathBuf,
    /// A folder in memory that is made where databases are copied to.
    scratch: PathBuf,
    /// The rows at the end of the run: found where all of it is there.
    end: OnceCell<Rows>,
    histories: RefCell<BTreeMap<PathBuf, DatabaseHistory>>,
    has_joint_commits: bool,
}

impl DatabaseJudge {
    /// Begin with the commits of each database by its name in the program's world; of none, no
    /// rows but those of the end are compared.
    pub fn new(
        directory: &Path,
        scratch: &Path,
        by_database: &BTreeMap<String, Vec<DetectedTransaction>>,
    ) -> Self {
        let history = |(name, transactions): (&String, &Vec<DetectedTransaction>)| {
            let inside = Path::new(name).strip_prefix(PROGRAM_DIRECTORY).ok()?;
            Some((inside.to_owned(), DatabaseHistory::new(transactions)))
        };
        let is_joint =
            |it: &DetectedTransaction| it.row.databases > 1 || it.guards.several_databases;
        Self {
            directory: directory.to_owned(),
            scratch: scratch.to_owned(),
            end: OnceCell::new(),
            histories: RefCell::new(by_database.iter().filter_map(history).collect()),
            has_joint_commits: by_database.values().flatten().any(is_joint),
        }
    }

    /// Return the moments that tell rows.
    pub fn history_times_ns(&self) -> Vec<i64> {
        let histories = self.histories.borrow();
        histories.values().flat_map(|it| it.looks.iter().map(|(at_ns, _)| *at_ns)).collect()
    }

    /// Looks at what is there, which is all that had been issued at that moment.
    ///
    /// # Errors
    /// If this machine fails.
    pub fn learn(&self, at_ns: i64) -> Result<(), WorkloadError> {
        let mut histories = self.histories.borrow_mut();
        histories.iter_mut().try_for_each(|(path, history)| {
            history.learn(at_ns, &self.directory.join(path), &self.scratch)
        })
    }

    /// Looks at what is there; what is there when it is asked first is the end of the run.
    ///
    /// # Errors
    /// If a database cannot be read, or is damaged; at the end of the run, if there is none.
    pub fn judge(&self, cut: &CutMoment) -> Result<CutFindings, WorkloadError> {
        let there = self.rows()?;
        let Some(end) = self.end.get() else {
            if there.is_empty() {
                let words = "check sqlite: the program left no SQLite database: name a check of \
                             your own, which knows its files";
                return Err(WorkloadError::refusal(words));
            }
            self.end.get_or_init(|| there);
            return Ok(CutFindings::without_harm());
        };
        let judged = |(path, end): (&PathBuf, &ContentsDigest)| {
            let there = there.get(path).copied();
            let mut found = match self.states(path, *end) {
                Ok((states, times_ns)) => {
                    let progress = Progress::from_sharers(times_ns, cut.at_ns);
                    judge_databases(&[(&states, there.unwrap_or(NO_ROWS))], progress)
                }
                Err(SHARED) => CutFindings::without_harm(),
                Err(_) => judge_by_end(there, *end, cut),
            };
            if found.outcome != CutOutcome::Kept {
                let what = match (there, found.lost) {
                    (None, _) => "it is not there".to_owned(),
                    (_, 0) => found.message,
                    (_, lost) => {
                        let commits = plural(lost, "commit");
                        format!("its rows are older by {commits} that had returned")
                    }
                };
                found.message = format!("{}: {what}", path.display());
            }
            found
        };
        Ok(end.iter().map(judged).collect())
    }

    /// The rows of a database after each of its commits, and when these began and returned.
    fn states(
        &self,
        path: &Path,
        end: ContentsDigest,
    ) -> Result<(DatabaseStates, CommitTimes), &'static str> {
        let histories = self.histories.borrow();
        let history = histories.get(path).ok_or("no commit of it is known")?;
        Ok((history.states(end)?, history.times_ns.clone()))
    }

    /// Return what is not judged, in words.
    pub fn unchecked_parts(&self) -> Vec<String> {
        let end = self.end.get().into_iter().flatten();
        let unknown = end.filter_map(|(path, end)| {
            let reason = self.states(path, *end).err()?;
            let (before, until) = match reason {
                SHARED => ("", ""),
                _ => (" before its last commit had returned", "until then "),
            };
            let path = path.display();
            Some(format!(
                "rows of {path}{before}, because {reason}: {until}it is judged by integrity_check \
                 alone"
            ))
        });
        let joint = "whether databases that one transaction changed are of the same moment";
        std::iter::once("files that are no SQLite database".to_owned())
            .chain(unknown)
            .chain(self.has_joint_commits.then(|| joint.to_owned()))
            .collect()
    }

    /// The rows of every database that is there.
    fn rows(&self) -> Result<Rows, WorkloadError> {
        let rows = |path: PathBuf| {
            let connection = contents::open(&path)?;
            let rows = contents::database_digest(&connection, "main", &path)?;
            let inside = path.strip_prefix(&self.directory).unwrap_or(&path);
            Ok((inside.to_owned(), rows))
        };
        self.paths()?.into_iter().map(rows).collect()
    }

    /// Every database that is there.
    ///
    /// # Errors
    /// If a folder or a file cannot be read.
    pub fn paths(&self) -> Result<Vec<PathBuf>, WorkloadError> {
        let mut found = Vec::new();
        let mut folders = vec![self.directory.clone()];
        while let Some(folder) = folders.pop() {
            let read = step_error("read", &folder);
            for entry in fs::read_dir(&folder).map_err(&read)? {
                let entry = entry.map_err(&read)?;
                let (path, kind) = (entry.path(), entry.file_type().map_err(&read)?);
                if kind.is_dir() {
                    folders.push(path);
                } else if kind.is_file() && is_database(&path).map_err(step_error("read", &path))? {
                    found.push(path);
                }
            }
        }
        Ok(found)
    }
}

/// Judge a database of which the rows of the end alone are known.
fn judge_by_end(
    there: Option<ContentsDigest>,
    end: ContentsDigest,
    cut: &CutMoment,
) -> CutFindings {
    let is_over = cut.transactions.iter().all(|it| it.return_ns <= cut.at_ns);
    if !is_over || cut.transactions.is_empty() || there == Some(end) {
        return CutFindings::without_harm();
    }
    let text = "its rows are not those after the last commit, which had returned";
    CutFindings::without_states(CutOutcome::Lost, text.to_owned())
}

fn is_database(path: &Path) -> io::Result<bool> {
    let mut head = Vec::new();
    File::open(path)?.take(MAGIC.len() as u64).read_to_end(&mut head)?;
    Ok(head == MAGIC)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commits::unit_of_work::{COMMIT, Guards};
    use crate::tables::rows::Transaction;

    fn execute(path: &Path, sql: &str) {
        rusqlite::Connection::open(path).unwrap().execute_batch(sql).unwrap();
    }

    fn transaction(kind: &str, journal_mode: &'static str, at_ns: i64) -> DetectedTransaction {
        DetectedTransaction {
            row: Transaction {
                kind: kind.to_owned(),
                commit_ns: at_ns,
                return_ns: at_ns + 5,
                sync_calls: 2,
                ..Transaction::default()
            },
            journal_mode,
            guards: Guards { database_synced: true, ..Guards::default() },
            ..DetectedTransaction::default()
        }
    }

    fn judge(folder: &Path, transactions: Vec<DetectedTransaction>) -> DatabaseJudge {
        let by_database = BTreeMap::from([("/app/sub/app.db".to_owned(), transactions)]);
        DatabaseJudge::new(folder, &folder.join("scratch"), &by_database)
    }

    fn cut(at_ns: i64) -> CutMoment<'static> {
        CutMoment { transactions: &[], at_ns }
    }

    fn outcome_of(judge: &DatabaseJudge, at_ns: i64) -> (CutOutcome, u64) {
        let found = judge.judge(&cut(at_ns)).unwrap();
        (found.outcome, found.lost)
    }

    fn place() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sub").join("app.db");
        fs::create_dir(path.parent().unwrap()).unwrap();
        (folder, path)
    }

    #[test]
    fn rows_are_those_after_a_commit_no_earlier_than_the_last_that_had_returned() {
        let (folder, path) = place();
        let commits = [10, 20, 30].map(|at_ns| transaction(COMMIT, "delete", at_ns)).to_vec();
        let judge = judge(folder.path(), commits);
        let states = [
            "CREATE TABLE t(x); INSERT INTO t VALUES (1);",
            "INSERT INTO t VALUES (2);",
            "DELETE FROM t; INSERT INTO t VALUES (3);",
        ];
        assert_eq!(judge.history_times_ns(), [i64::MIN, 15, 25, 35]);
        judge.learn(i64::MIN).unwrap();
        for (sql, at_ns) in states.iter().zip([15, 25, 35]) {
            execute(&path, sql);
            judge.learn(at_ns).unwrap();
        }
        // What is there first is the end.
        judge.judge(&cut(i64::MAX)).unwrap();
        assert_eq!(judge.unchecked_parts(), ["files that are no SQLite database"]);
        let outcome = |at_ns| outcome_of(&judge, at_ns);
        // The third commit is there once its COMMIT began.
        assert_eq!([outcome(40), outcome(30)], [(CutOutcome::Kept, 0); 2]);
        assert_eq!(outcome(29), (CutOutcome::Corrupt, 0));
        fs::remove_file(&path).unwrap();
        assert_eq!(outcome(14), (CutOutcome::Kept, 0));
        assert_eq!(outcome(29), (CutOutcome::Lost, 2));
        assert!(judge.judge(&cut(29)).unwrap().message.contains("sub/app.db: it is not there"));
        execute(&path, states[0]);
        assert_eq!([outcome(24), outcome(25)], [(CutOutcome::Kept, 0), (CutOutcome::Lost, 1)]);
        execute(&path, "INSERT INTO t VALUES (9);");
        assert_eq!(outcome(25).0, CutOutcome::Corrupt);
        let message = judge.judge(&cut(25)).unwrap().message;
        assert!(message.ends_with("rows that were never there together"), "{message}");
    }

    #[test]
    fn the_frames_of_a_wal_tell_the_rows_after_each_commit_though_nothing_was_synced() {
        let (folder, path) = place();
        execute(&path, "PRAGMA journal_mode = wal; CREATE TABLE t(x);");
        let wal = |at_ns, wal_frames| {
            let mut one = transaction(COMMIT, "wal", at_ns);
            one.row.wal_frames = wal_frames;
            one
        };
        let all = vec![wal(10, 1), wal(20, 2), transaction(CHECKPOINT, "", 30), wal(40, 1)];
        let judge = judge(folder.path(), all);
        assert_eq!(judge.history_times_ns(), [i64::MIN, 10, 35, 40, i64::MAX]);
        judge.learn(i64::MIN).unwrap();
        judge.learn(10).unwrap();
        let connection = rusqlite::Connection::open(&path).unwrap();
        let commit = |number: i64| {
            connection.execute("INSERT INTO t VALUES (?)", [number]).unwrap();
        };
        commit(1);
        commit(2);
        judge.learn(35).unwrap();
        connection.query_row("PRAGMA wal_checkpoint", [], |_| Ok(())).unwrap();
        judge.learn(40).unwrap();
        commit(3);
        judge.learn(i64::MAX).unwrap();
        judge.judge(&cut(i64::MAX)).unwrap();
        assert_eq!(judge.unchecked_parts(), ["files that are no SQLite database"]);
        let outcome = |at_ns| outcome_of(&judge, at_ns);
        assert_eq!(outcome(50), (CutOutcome::Kept, 0));
        connection.execute("DELETE FROM t WHERE x > 1", []).unwrap();
        assert_eq!([outcome(24), outcome(50)], [(CutOutcome::Kept, 0), (CutOutcome::Lost, 2)]);
        connection.execute("UPDATE t SET x = 2", []).unwrap();
        assert_eq!(outcome(24).0, CutOutcome::Corrupt);
    }

    #[test]
    fn rows_that_no_moment_tells_are_judged_by_the_end_and_named() {
        let (folder, path) = place();
        let mut commits = [10, 20].map(|at_ns| transaction(COMMIT, "delete", at_ns)).to_vec();
        commits[0].guards.database_synced = false;
        let rows: Vec<Transaction> = commits.iter().map(|it| it.row.clone()).collect();
        let judge = judge(folder.path(), commits);
        assert_eq!(judge.history_times_ns(), [0_i64; 0]);
        let judged = |at_ns| judge.judge(&CutMoment { transactions: &rows, at_ns });
        assert!(judged(i64::MAX).unwrap_err().to_string().contains("no SQLite database"));
        execute(&path, "CREATE TABLE t(x); INSERT INTO t VALUES (1), (2);");
        let outcome = |at_ns| judged(at_ns).unwrap().outcome;
        assert_eq!(outcome(i64::MAX), CutOutcome::Kept);
        let unchecked = judge.unchecked_parts();
        let words = "rows of sub/app.db before its last commit had returned, because a commit \
                     returned before its database was synced: ";
        assert!(unchecked[1].starts_with(words), "{unchecked:?}");
        execute(&path, "DELETE FROM t WHERE x = 2;");
        assert_eq!([outcome(24), outcome(25)], [CutOutcome::Kept, CutOutcome::Lost]);
        let message = judged(25).unwrap().message;
        assert!(message.starts_with("sub/app.db: its rows are not those after"), "{message}");
        fs::remove_file(&path).unwrap();
        assert!(judged(25).unwrap().message.contains("is not there"));
        fs::write(&path, b"SQLite format 3\0and no more").unwrap();
        assert!(judged(24).is_err());
    }

    #[test]
    fn rows_whose_commits_other_threads_may_have_ended_are_not_compared() {
        let (folder, path) = place();
        let mut commit = transaction(COMMIT, "wal", 10);
        commit.is_ended_by_other = true;
        let rows = [commit.row.clone()];
        let judge = judge(folder.path(), vec![commit]);
        execute(&path, "CREATE TABLE t(x);");
        let judged = || judge.judge(&CutMoment { transactions: &rows, at_ns: 99 }).unwrap();
        judged();
        execute(&path, "INSERT INTO t VALUES (1);");
        assert_eq!(judged().outcome, CutOutcome::Kept);
        let unchecked = &judge.unchecked_parts()[1];
        assert!(unchecked.starts_with("rows of sub/app.db, because several"), "{unchecked}");
    }

    #[test]
    fn commits_that_do_not_lead_to_the_end_tell_nothing() {
        let (folder, path) = place();
        let judge = judge(folder.path(), vec![transaction(COMMIT, "delete", 10)]);
        judge.learn(i64::MIN).unwrap();
        execute(&path, "CREATE TABLE t(x);");
        judge.learn(15).unwrap();
        execute(&path, "INSERT INTO t VALUES (1);");
        judge.judge(&cut(i64::MAX)).unwrap();
        assert!(judge.unchecked_parts()[1].contains("do not lead to the rows of the end"));
    }
}
