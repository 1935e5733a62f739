//! The remains in the databases of scripts, compared with the states that their transactions made
//! when they were played again.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::sqlite::contents::{self, ContentsDigest, file_digest};
use crate::sqlite::vfs::Vfs;
use crate::workload::error::{WorkloadError, step_error};
use crate::workload::fault::FaultLeft;
use crate::workload::kind::Remains;
use crate::workload::power_cut::{
    CutFindings, CutMoment, CutOutcome, DatabaseStates, Progress, judge_databases,
};

/// The closed databases.
pub struct SqlRemains {
    /// All of them, and the directory that they are in.
    pub files: Vec<PathBuf>,
    pub directory: PathBuf,
    pub vfs: Vfs,
    pub threads: Vec<PlayedThread>,
    pub again: Box<dyn PlayAgain>,
    pub fault: FaultLeft,
    /// Played again when it is asked for: it takes a while, and few runs are cut.
    pub histories: OnceCell<Vec<Sharers>>,
}

impl SqlRemains {
    fn histories(&self) -> Result<&[Sharers], WorkloadError> {
        if let Some(found) = self.histories.get() {
            return Ok(found);
        }
        let found = histories(&self.threads, &self.directory, &*self.again)?;
        Ok(self.histories.get_or_init(|| found))
    }

    fn judge_at(&self, at_ns: i64) -> Result<CutFindings, WorkloadError> {
        let from_sharers = |sharers: &Sharers| {
            let digests = contents::closed_digests(&sharers.files, self.vfs)?;
            let found: Vec<_> = sharers.states.iter().zip(digests).collect();
            Ok(judge_databases(&found, sharers.progress(at_ns)))
        };
        self.histories()?.iter().map(from_sharers).collect()
    }
}

impl Remains for SqlRemains {
    /// Checks that they are sound; what they must hold, only the scripts' author knows. Beneath a
    /// planted error nothing is due before it has been looked at.
    fn check(&self) -> Result<(), WorkloadError> {
        if self.fault.findings.is_some() {
            return Ok(());
        }
        self.files.iter().try_for_each(|path| Ok(contents::open(path).map(drop)?))
    }

    fn check_oracle(&self) -> Result<(), WorkloadError> {
        // What is there beneath a planted error is looked at when it is mounted again.
        if self.fault.findings.is_some() {
            return Ok(());
        }
        let found = self.judge_at(i64::MAX)?;
        if found.outcome == CutOutcome::Kept {
            return Ok(());
        }
        Err(WorkloadError::refusal(
            "power cuts: the scripts leave other rows when they are played again, as those do that \
             use random() or the time of day: nobody could say which rows a power cut took; give \
             the values as arguments",
        ))
    }

    fn judge(&self, cut: &CutMoment) -> Result<CutFindings, WorkloadError> {
        self.fault.make_room()?;
        self.judge_at(cut.at_ns)
    }

    fn databases(&self) -> Result<Vec<PathBuf>, WorkloadError> {
        Ok(self.files.clone())
    }

    fn vfs(&self) -> Vfs {
        self.vfs
    }

    fn fault(&self) -> Option<&FaultLeft> {
        Some(&self.fault)
    }
}

/// A transaction of a script, as it was played.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlayedTransaction {
    /// None where it changed nothing.
    pub committed_ns: Option<i64>,
    pub return_ns: i64,
}

/// The played transactions of one connection.
#[derive(Debug, Clone)]
pub struct PlayedThread {
    pub files: BTreeSet<PathBuf>,
    pub transactions: Vec<PlayedTransaction>,
}

impl PlayedThread {
    /// Return the thread of the files that it had open, the times at which its transactions
    /// committed, and those at which they returned.
    pub fn new(
        files: impl IntoIterator<Item = PathBuf>,
        committed_ns: &[Option<i64>],
        returns_ns: &[i64],
    ) -> Self {
        let both = committed_ns.iter().zip(returns_ns);
        let transaction = |(committed_ns, return_ns): (&Option<i64>, &i64)| PlayedTransaction {
            committed_ns: *committed_ns,
            return_ns: *return_ns,
        };
        Self { files: files.into_iter().collect(), transactions: both.map(transaction).collect() }
    }
}

/// Is called between transactions, with what each database held with one whose COMMIT failed.
pub type BeforeAndAfter<'a> =
    dyn FnMut(&[(PathBuf, ContentsDigest)]) -> Result<(), WorkloadError> + 'a;

/// A player that plays the scripts again.
pub trait PlayAgain {
    /// Makes the databases in a directory, and plays the next transaction of each thread of
    /// `order`; `before_and_after` is called once before all of them, and after each.
    ///
    /// # Errors
    /// If a step fails, or of `before_and_after`.
    fn play(
        &self,
        directory: &Path,
        order: &[usize],
        before_and_after: &mut BeforeAndAfter,
    ) -> Result<(), WorkloadError>;
}

/// Connections that share databases, or one that shares none, and what they hold.
#[derive(Debug)]
pub struct Sharers {
    pub files: Vec<PathBuf>,
    /// The states of each file.
    pub states: Vec<DatabaseStates>,
    /// The times when each transaction committed and returned, in the order of commits.
    commits: Vec<(i64, i64)>,
}

impl Sharers {
    /// Return how far their commits had come.
    pub fn progress(&self, at_ns: i64) -> Progress {
        Progress::from_sharers(self.commits.iter().copied(), at_ns)
    }
}

/// The histories of all that the threads played, whose files are in `directory`.
///
/// # Errors
/// If it cannot be played again.
pub fn histories(
    threads: &[PlayedThread],
    directory: &Path,
    again: &dyn PlayAgain,
) -> Result<Vec<Sharers>, WorkloadError> {
    let groups = groups(threads);
    let order = order(threads);
    let files_of = |group: &BTreeSet<usize>| -> Vec<PathBuf> {
        let files = group.iter().flat_map(|thread| threads[*thread].files.iter().cloned());
        files.collect::<BTreeSet<_>>().into_iter().collect()
    };
    let sharers = |group: &BTreeSet<usize>| {
        let files = files_of(group);
        let states = vec![DatabaseStates::default(); files.len()];
        Sharers { files, states, commits: Vec::new() }
    };
    let mut found: Vec<Sharers> = groups.iter().map(sharers).collect();
    let memory = MemoryDirectory::new()?;
    let of_memory = |file: &Path| memory.0.join(file.strip_prefix(directory).unwrap_or(file));
    let mut steps = order.iter();
    let mut is_first = true;
    let mut note = |with_failed: &[(PathBuf, ContentsDigest)]| -> Result<(), WorkloadError> {
        for found in &mut found {
            for (file, states) in found.files.iter().zip(&mut found.states) {
                let number = states.digests.len().saturating_sub(1) as u64;
                let own = with_failed.iter().filter(|(path, _)| *path == of_memory(file));
                states.with_failed.extend(own.map(|(_, digest)| (number, *digest)));
            }
        }
        let next = if std::mem::take(&mut is_first) { None } else { steps.next() };
        for (group, found) in groups.iter().zip(&mut found) {
            match next {
                Some((thread, PlayedTransaction { committed_ns: Some(ns), return_ns }))
                    if group.contains(thread) =>
                {
                    found.commits.push((*ns, *return_ns));
                }
                None => {}
                Some(_) => continue,
            }
            for (file, states) in found.files.iter().zip(&mut found.states) {
                states.digests.push(file_digest(&of_memory(file))?);
            }
        }
        Ok(())
    };
    let threads: Vec<usize> = order.iter().map(|(thread, _)| *thread).collect();
    again.play(&memory.0, &threads, &mut note)?;
    Ok(found)
}

/// The transactions of all threads in an order that has the same effect: each where it committed,
/// and those that changed nothing where they returned.
fn order(threads: &[PlayedThread]) -> Vec<(usize, PlayedTransaction)> {
    let of_thread = |(number, thread): (usize, &PlayedThread)| {
        thread.transactions.iter().map(move |it| (number, *it)).collect::<Vec<_>>()
    };
    let mut all: Vec<_> = threads.iter().enumerate().flat_map(of_thread).collect();
    all.sort_by_key(|(_, it)| it.committed_ns.unwrap_or(it.return_ns));
    all
}

/// The threads that share databases, by way of others too.
fn groups(threads: &[PlayedThread]) -> Vec<BTreeSet<usize>> {
    let mut groups: Vec<(BTreeSet<usize>, BTreeSet<&PathBuf>)> = Vec::new();
    for (number, thread) in threads.iter().enumerate() {
        let mut own = (BTreeSet::from([number]), thread.files.iter().collect::<BTreeSet<_>>());
        let (joined, apart): (Vec<_>, Vec<_>) =
            groups.into_iter().partition(|(_, files)| !files.is_disjoint(&own.1));
        for (numbers, files) in joined {
            own.0.extend(numbers);
            own.1.extend(files);
        }
        groups = apart;
        groups.push(own);
    }
    groups.into_iter().map(|(numbers, _)| numbers).collect()
}

/// A directory that goes with its owner; in a guest it is in memory.
struct MemoryDirectory(PathBuf);

impl MemoryDirectory {
    fn new() -> Result<Self, WorkloadError> {
        static DIRECTORIES: AtomicU64 = AtomicU64::new(0);
        let number = DIRECTORIES.fetch_add(1, Ordering::Relaxed);
        let name = format!("joj-played-again-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).map_err(step_error("make", &path))?;
        Ok(Self(path))
    }
}

impl Drop for MemoryDirectory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod history_tests {
    use super::*;

    fn thread(files: &[&str], transactions: &[(Option<i64>, i64)]) -> PlayedThread {
        let (committed, returns): (Vec<_>, Vec<_>) = transactions.iter().copied().unzip();
        PlayedThread::new(files.iter().map(PathBuf::from), &committed, &returns)
    }

    #[test]
    fn connections_belong_together_by_way_of_others_too() {
        let threads: Vec<_> = [&["a"][..], &["b", "c"], &["d"], &["a", "b"], &["d"]]
            .map(|files| thread(files, &[]))
            .into();
        let found = groups(&threads);
        assert_eq!(found, [BTreeSet::from([0, 1, 3]), BTreeSet::from([2, 4])]);
    }

    #[test]
    fn transactions_are_in_the_order_of_their_commits() {
        let threads = [
            thread(&["a"], &[(Some(10), 30), (None, 40)]),
            thread(&["a"], &[(None, 15), (Some(20), 25)]),
        ];
        let found: Vec<_> = order(&threads).iter().map(|(number, _)| *number).collect();
        assert_eq!(found, [0, 1, 1, 0]);
        let sharers = Sharers {
            files: Vec::new(),
            states: Vec::new(),
            commits: vec![(10, 30), (20, 25), (35, 50)],
        };
        let progress = |at_ns| {
            let Progress { returned, begun } = sharers.progress(at_ns);
            (returned, begun)
        };
        assert_eq!(progress(9), (0, 0));
        assert_eq!(progress(20), (0, 2));
        // The second returned before the first, which it has beneath it.
        assert_eq!(progress(25), (2, 2));
        assert_eq!(progress(49), (2, 3));
    }
}

#[cfg(test)]
mod remains_tests {
    //! Return the verdict on databases that a power cut left as they were some commits before, on
    //! this machine's own files.

    use rusqlite::Connection;

    use super::*;
    use crate::workload::kind::{ClosedWorkload, WorkloadRequest};
    use crate::workload::sql::folder::tests::{recorded_sql_settings, sql_settings};
    use crate::workload::threads::noted_phases::NotedPhases;

    const SCHEMA: &str = "CREATE TABLE t (id INTEGER PRIMARY KEY, body TEXT UNIQUE);\n";
    const WRITES: &str = "--! repeat 9\nBEGIN;\nINSERT INTO t (body) VALUES (:text(30));\n\
    UPDATE t SET body = :text(20) WHERE id = 1;\nCOMMIT;\nSELECT count(*) FROM t;\n--! end\n";
    const ALONE: &str = "--! repeat 7\nBEGIN IMMEDIATE;\nINSERT INTO t (body) VALUES (:text(40));\n\
    COMMIT;\n--! end\n";

    struct PlayedApp {
        folder: tempfile::TempDir,
        remains: Box<dyn Remains>,
    }

    impl PlayedApp {
        /// Return the databases of scripts in a folder, in a directory beside it.
        fn new(
            scripts: &[(&str, &str)],
            ask: impl Fn(PathBuf) -> Box<dyn WorkloadRequest>,
        ) -> Self {
            let folder = tempfile::tempdir().unwrap();
            let place = |name: &str| folder.path().join(name);
            for name in ["scripts", "run"] {
                std::fs::create_dir(place(name)).unwrap();
            }
            for (name, text) in scripts {
                std::fs::write(place("scripts").join(name), text).unwrap();
            }
            let mut workload = ask(place("scripts")).prepare(&place("run"), 5).unwrap();
            workload.run(&mut NotedPhases::default()).unwrap();
            let ClosedWorkload { remains, .. } = workload.close().unwrap();
            Self { folder, remains }
        }

        fn play_recorded(scripts: &[(&str, &str)]) -> Self {
            Self::new(scripts, |folder| Box::new(recorded_sql_settings(folder)))
        }

        fn change(&self, sql: &str) {
            let path = self.folder.path().join("run/main.db");
            Connection::open(path).unwrap().execute_batch(sql).unwrap();
        }

        fn judge(&self, at_ns: i64) -> CutFindings {
            self.remains.judge(&CutMoment { transactions: &[], at_ns }).unwrap()
        }
    }

    #[test]
    fn scripts_played_again_leave_the_same_and_older_rows_are_lost_commits() {
        let one = [("schema.sql", SCHEMA), ("transaction.sql", WRITES)];
        let played = PlayedApp::play_recorded(&one);
        played.remains.check_oracle().unwrap();
        let whole = played.judge(i64::MAX);
        assert_eq!((whole.outcome, whole.found), (CutOutcome::Kept, vec![Some(9)]));
        assert_eq!(played.judge(0).outcome, CutOutcome::Corrupt, "too early");
        // The last insert alone was never there without the update beside it.
        played.change("DELETE FROM t WHERE id = 9");
        assert_eq!(played.judge(i64::MAX).outcome, CutOutcome::Corrupt, "half a transaction");
        // One that is rolled back whole is.
        let shorter = WRITES.replace("repeat 9", "repeat 6");
        let earlier = PlayedApp::play_recorded(&[one[0], ("transaction.sql", &shorter)]);
        let main = |app: &PlayedApp| app.folder.path().join("run/main.db");
        std::fs::copy(main(&earlier), main(&played)).unwrap();
        let found = played.judge(i64::MAX);
        assert_eq!((found.outcome, found.lost), (CutOutcome::Lost, 3));
    }

    #[test]
    fn connections_that_share_a_database_have_one_history() {
        let scripts = [
            ("schema.sql", SCHEMA),
            ("transaction-one.sql", &WRITES.replace("BEGIN", "BEGIN IMMEDIATE")),
            ("transaction-two.sql", ALONE),
        ];
        let played = PlayedApp::play_recorded(&scripts);
        played.remains.check_oracle().unwrap();
        assert_eq!(played.judge(i64::MAX).found, [Some(16)]);
        let drawn = PlayedApp::new(&scripts, |folder| Box::new(sql_settings(folder)));
        drawn.remains.check_oracle().unwrap();
    }

    #[test]
    fn values_that_nobody_can_draw_again_are_refused() {
        let text = "INSERT INTO t (body) VALUES (strftime('%f', 'now') || :text(3));\n";
        let scripts = [("schema.sql", SCHEMA), ("transaction.sql", text)];
        let played = PlayedApp::play_recorded(&scripts);
        std::thread::sleep(std::time::Duration::from_millis(2));
        let error = played.remains.check_oracle().unwrap_err();
        assert!(error.is_wrong_use() && error.to_string().contains("time of day"), "{error}");
    }
}
