//! What is said of databases that a power cut left as they were some commits before, on this
//! machine's own files.

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
    /// Of scripts in a folder, in a directory beside it.
    fn new(scripts: &[(&str, &str)], ask: impl Fn(PathBuf) -> Box<dyn WorkloadRequest>) -> Self {
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

    fn recorded(scripts: &[(&str, &str)]) -> Self {
        Self::new(scripts, |folder| Box::new(recorded_sql_settings(folder)))
    }

    fn change(&self, sql: &str) {
        let path = self.folder.path().join("run/main.db");
        Connection::open(path).unwrap().execute_batch(sql).unwrap();
    }

    fn survived(&self, at_ns: i64) -> Survival {
        self.remains.survived(&Cut { transactions: &[], at_ns }).unwrap()
    }
}

#[test]
fn scripts_played_again_leave_the_same_and_older_rows_are_lost_commits() {
    let one = [("schema.sql", SCHEMA), ("transaction.sql", WRITES)];
    let played = PlayedApp::recorded(&one);
    played.remains.check_oracle().unwrap();
    let whole = played.survived(i64::MAX);
    assert_eq!((whole.outcome, whole.found), (CutOutcome::Kept, vec![Some(9)]));
    assert_eq!(played.survived(0).outcome, CutOutcome::Corrupt, "too early");
    // The last insert alone was never there without the update beside it.
    played.change("DELETE FROM t WHERE id = 9");
    assert_eq!(played.survived(i64::MAX).outcome, CutOutcome::Corrupt, "half a transaction");
    // One that is rolled back whole is.
    let shorter = WRITES.replace("repeat 9", "repeat 6");
    let earlier = PlayedApp::recorded(&[one[0], ("transaction.sql", &shorter)]);
    let main = |app: &PlayedApp| app.folder.path().join("run/main.db");
    std::fs::copy(main(&earlier), main(&played)).unwrap();
    let found = played.survived(i64::MAX);
    assert_eq!((found.outcome, found.lost), (CutOutcome::Lost, 3));
}

#[test]
fn connections_that_share_a_database_have_one_history() {
    let scripts = [
        ("schema.sql", SCHEMA),
        ("transaction-one.sql", &WRITES.replace("BEGIN", "BEGIN IMMEDIATE")),
        ("transaction-two.sql", ALONE),
    ];
    let played = PlayedApp::recorded(&scripts);
    played.remains.check_oracle().unwrap();
    assert_eq!(played.survived(i64::MAX).found, [Some(16)]);
    let drawn = PlayedApp::new(&scripts, |folder| Box::new(sql_settings(folder)));
    drawn.remains.check_oracle().unwrap();
}

#[test]
fn values_that_nobody_can_draw_again_are_refused() {
    let text = "INSERT INTO t (body) VALUES (strftime('%f', 'now') || :text(3));\n";
    let scripts = [("schema.sql", SCHEMA), ("transaction.sql", text)];
    let played = PlayedApp::recorded(&scripts);
    std::thread::sleep(std::time::Duration::from_millis(2));
    let error = played.remains.check_oracle().unwrap_err();
    assert!(error.is_wrong_use() && error.to_string().contains("time of day"), "{error}");
}
