//! Folders of scripts on this machine's own files.

use std::path::Path;

use rusqlite::Connection;

use super::folder::tests::{recorded_sql_settings, sql_settings};
use super::folder::{RecordedSqlSettings, SqlSettings};
use super::*;
use crate::workload::kind::WorkloadRequest;
use crate::workload::threads::noted_phases::NotedPhases;

/// A folder of scripts, and beside it the directory of the databases.
struct Folders(tempfile::TempDir);

impl Folders {
    fn new(files: &[(&str, &str)]) -> Self {
        let folders = Self(tempfile::tempdir().unwrap());
        for folder in ["scripts", "run"] {
            std::fs::create_dir(folders.0.path().join(folder)).unwrap();
        }
        for (name, text) in files {
            std::fs::write(folders.scripts().join(name), text).unwrap();
        }
        folders
    }

    fn scripts(&self) -> PathBuf {
        self.0.path().join("scripts")
    }

    fn directory(&self) -> PathBuf {
        self.0.path().join("run")
    }

    fn drawn_settings(&self) -> SqlSettings {
        sql_settings(self.scripts())
    }

    fn replayed_settings(&self) -> RecordedSqlSettings {
        recorded_sql_settings(self.scripts())
    }

    fn run(&self, asked: &dyn WorkloadRequest) -> (NotedPhases, ClosedWorkload) {
        let mut workload = asked.prepare(&self.directory(), 5).unwrap();
        workload.configuration().unwrap();
        let mut notes = NotedPhases::default();
        workload.run(&mut notes).unwrap();
        let closed = workload.close().unwrap();
        closed.remains.check().unwrap();
        (notes, closed)
    }

    fn refusal(&self, asked: &dyn WorkloadRequest) -> String {
        let error = asked.prepare(&self.directory(), 5).err().unwrap();
        assert!(error.is_wrong_use(), "{error}");
        error.to_string()
    }
}

fn count(path: &Path, sql: &str) -> i64 {
    Connection::open(path).unwrap().query_row(sql, [], |row| row.get(0)).unwrap()
}

const SCHEMA: (&str, &str) = (
    "schema.sql",
    "CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT);
     CREATE TABLE letter (id INTEGER PRIMARY KEY, person INTEGER, body BLOB);",
);
const SET_UP: (&str, &str) = (
    "setup.sql",
    "--! repeat 10\nINSERT INTO person VALUES (:key(person), :text(5,9));\n--! end\n",
);
const WRITE: &str = "--! transaction write 3\nBEGIN;\n--! repeat 2\n\
    INSERT INTO letter VALUES (:key(letter), :known(person), :blob(50));\n--! end\n\
    UPDATE person SET name = :text(7) WHERE id = :recent(person);\nCOMMIT;\n\
    --! transaction look 1\nSELECT * FROM letter JOIN person ON person.id = letter.person;\n";

#[test]
fn parts_are_drawn_and_measured() {
    let folders = Folders::new(&[SCHEMA, SET_UP, ("transaction.sql", WRITE)]);
    let (notes, closed) = folders.run(&folders.drawn_settings());
    assert_eq!(notes.phases, ["warm-up", "commit"]);
    let rows = &closed.transactions;
    assert_eq!(rows.len(), 22);
    let writes = came_to(&closed)[0];
    assert!((10..22).contains(&writes), "{writes}");
    assert!(rows.iter().all(|row| (row.kind == "write") == (row.sync_calls > 0)));
    assert!(rows.iter().all(|row| row.begin_ns <= row.commit_ns && row.commit_ns <= row.return_ns));
    let main = folders.directory().join("main.db");
    assert_eq!(count(&main, "SELECT count(*) FROM letter"), 2 * writes as i64);
    assert_eq!(count(&main, "SELECT count(*) FROM person"), 10);
    assert!(closed.incomplete_reasons.is_empty());
    let again = Folders::new(&[SCHEMA, SET_UP, ("transaction.sql", WRITE)]);
    assert_eq!(again.run(&again.drawn_settings()).1.operation_hash, closed.operation_hash);
}

#[test]
fn every_journal_mode_runs_several_connections() {
    use crate::sqlite::pragmas::JournalMode::{Delete, Memory, Off, Persist, Truncate, Wal};
    let write = WRITE.replace("BEGIN;", "BEGIN IMMEDIATE;");
    for journal_mode in [Delete, Truncate, Persist, Memory, Wal, Off] {
        let folders = Folders::new(&[
            SCHEMA,
            SET_UP,
            ("transaction-a.sql", &write),
            ("transaction-b.sql", &write),
        ]);
        let mut settings = folders.drawn_settings();
        settings.sql.options.journal_mode = journal_mode;
        settings.sql.options.wal_autocheckpoint_pages = 4;
        let (_, closed) = folders.run(&settings);
        assert!(closed.incomplete_reasons.is_empty(), "{:?}", closed.incomplete_reasons);
        let rows = closed.transactions.iter();
        let checkpoints = rows.clone().filter(|row| row.kind == "checkpoint").count();
        assert_eq!(checkpoints > 0, journal_mode == Wal, "{journal_mode}");
        assert_eq!(rows.filter(|row| row.kind != "checkpoint").count(), 22);
    }
}

#[test]
fn a_recording_is_played_once_with_its_databases_and_pauses() {
    let folders = Folders::new(&[
        (
            "schema.sql",
            "--! database a.db\nCREATE TABLE t (x);\n--! database b.db\n\
                        CREATE TABLE u (x UNIQUE);",
        ),
        (
            "transaction-0.sql",
            "--! connection first\n--! database a.db\n--! attach b.db AS b\n\
             --! wait_us 3000\nBEGIN;\n\
             --! bind 'it''s', x'00'\nINSERT INTO t VALUES (? || hex($y));\n\
             --! wait_us 2000\n--! bind 1\nINSERT INTO b.u VALUES (?);\nCOMMIT;\n\
             INSERT INTO u VALUES (1);\n--! may_fail\nINSERT INTO u VALUES (1);\n\
             INSERT INTO nowhere VALUES (1);\nBEGIN;\nINSERT INTO t VALUES (2);",
        ),
    ]);
    let mut settings = folders.replayed_settings();
    settings.sql.think_time = ThinkTime::Recorded;
    let (_, closed) = folders.run(&settings);
    let rows = &closed.transactions;
    let kinds: Vec<&str> = rows.iter().map(|row| row.kind.as_str()).collect();
    assert_eq!(kinds, ["write", "rollback", "rollback", "read-only", "rollback"]);
    assert_eq!(rows[0].databases, 2);
    // A pause is never shorter than asked for (nanosleep(2)).
    assert!(rows[0].return_ns - rows[0].begin_ns >= 2_000_000);
    assert_eq!(
        closed.incomplete_reasons,
        [
            "1 statement failed: UNIQUE constraint failed: u.x (first: transaction-0.sql, line 12)",
            "1 statement failed: no such table: nowhere (first: transaction-0.sql, line 15)",
        ]
    );
    assert!(closed.manifest.contains(&("open_at_end", 1.into())));
    let (_, failed) =
        closed.manifest.iter().find(|(name, _)| *name == "failed_statements").unwrap();
    assert_eq!(failed["UNIQUE constraint failed: u.x"]["statements"], 2);
    let a = folders.directory().join("a.db");
    assert_eq!(count(&a, "SELECT x = 'it''s00' FROM t"), 1);
    assert_eq!(count(&a, "SELECT count(*) FROM t"), 1);
}

#[test]
fn a_fault_of_scripts_is_told_with_file_line_and_column() {
    for (files, words) in [
        (vec![("schema.sql", "SELECT 1;")], "holds no transaction.sql"),
        (vec![("transaction.sql", "SELECT 1;"), ("x.sql", "")], "x.sql is none of schema.sql"),
        (
            vec![("transaction.sql", "SELECT 1;\nSELECT nope;")],
            "transaction.sql: line 2, column 8: no such column: nope",
        ),
        (
            vec![("transaction.sql", "SELECT :int(1,2),\n  FROM;")],
            "transaction.sql: line 2, column 3: near \"FROM\": syntax error",
        ),
        (vec![("transaction.sql", "--! bind 1\nSELECT ?, ?;")], "has 2 parameters, and 1 values"),
        (vec![("transaction.sql", "BEGIN; SELECT 1;")], "ends without COMMIT"),
        (
            vec![
                SCHEMA,
                ("setup.sql", "INSERT INTO person VALUES ('x', 1);"),
                ("transaction.sql", "SELECT 1;"),
            ],
            "setup.sql: line 1, column 1: datatype mismatch",
        ),
        (vec![("transaction.sql", "SELECT load_extension('/tmp/x');")], "not authorized"),
        (vec![("transaction.sql", "SELECT :known(x);")], "comes before any key(x)"),
    ] {
        let folders = Folders::new(&files);
        let asked = folders.drawn_settings();
        let message = match words {
            "comes before any key(x)" => {
                let mut workload = asked.prepare(&folders.directory(), 5).unwrap();
                workload.run(&mut NotedPhases::default()).unwrap_err().to_string()
            }
            _ => folders.refusal(&asked),
        };
        assert!(message.contains(words), "{message}");
    }
}

#[test]
fn nothing_outside_the_directory_is_touched() {
    let outside = tempfile::tempdir().unwrap();
    let path = outside.path().join("x.db");
    let statements = [
        format!("EXPLAIN ATTACH '{0}' AS x;", path.display()),
        format!("SELECT 1; /* */ VACUUM/**/INTO '{0}';", path.display()),
        format!("CREATE VIEW v AS SELECT 1; ATTACH 'file:{0}' AS x;", path.display()),
        "PRAGMA temp_store_directory = '/etc';".to_owned(),
    ];
    for statement in statements {
        let folders = Folders::new(&[("transaction.sql", &statement)]);
        let asked = folders.replayed_settings();
        match asked.prepare(&folders.directory(), 5) {
            Ok(mut workload) => {
                workload.run(&mut NotedPhases::default()).unwrap();
                assert!(!workload.close().unwrap().incomplete_reasons.is_empty(), "{statement}");
            }
            Err(error) => assert!(error.is_wrong_use(), "{error}"),
        }
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0, "{statement}");
    }
}

#[test]
fn vacuum_and_sql_of_the_schema_go_through() {
    let folders = Folders::new(&[
        SCHEMA,
        SET_UP,
        (
            "transaction.sql",
            "CREATE TABLE x (y); INSERT INTO x VALUES (random()); DROP TABLE x; \
                             VACUUM; PRAGMA user_version = 3; PRAGMA journal_mode;",
        ),
    ]);
    let (_, closed) = folders.run(&folders.drawn_settings());
    assert_eq!(closed.incomplete_reasons, Vec::<String>::new());
}

#[test]
fn a_script_changes_the_journal_mode_on_its_way_and_its_rows_are_known() {
    let write = "INSERT INTO note VALUES (NULL, 'x');";
    let script = format!(
        "{write}\nPRAGMA main.journal_mode = wal;\n{write}\nPRAGMA journal_mode=Delete;\n{write}\n\
         PRAGMA journal_mode(persist);\n{write}\nPRAGMA main.journal_mode = TRUNCATE;\n{write}\n"
    );
    for journal_mode in [JournalMode::Truncate, JournalMode::Wal] {
        let schema = ("schema.sql", "CREATE TABLE note (k INTEGER PRIMARY KEY, v);");
        let folders = Folders::new(&[schema, ("transaction.sql", &script)]);
        let mut settings = folders.replayed_settings();
        settings.sql.options.journal_mode = journal_mode;
        let prepared = settings.prepare(&folders.directory(), 5).unwrap();
        let modes = json!(["delete", "persist", "truncate", "wal"]);
        assert_eq!(prepared.configuration().unwrap()["scripts"][0]["journal_modes"], modes);
        drop(prepared);
        std::fs::remove_dir_all(folders.directory()).unwrap();
        std::fs::create_dir(folders.directory()).unwrap();
        let (_, closed) = folders.run(&settings);
        assert_eq!(closed.incomplete_reasons, Vec::<String>::new());
        let inserts = closed.transactions.iter().filter(|it| it.kind == "write").count();
        assert!(inserts >= 5, "{inserts}");
        closed.remains.check_oracle().unwrap();
    }
}

/// The manifest's entry of a regime, and why it was not reached.
fn regime_entry(settings: &SqlSettings) -> (Value, Vec<String>) {
    let folders = Folders::new(&[SCHEMA, SET_UP, ("transaction.sql", WRITE)]);
    let mut settings = settings.clone();
    settings.sql.scripts = folders.scripts();
    let (_, closed) = folders.run(&settings);
    let found = closed.manifest.into_iter().find(|(name, _)| *name == "regime").unwrap().1;
    (found, closed.incomplete_reasons)
}

#[test]
fn scripts_run_in_files_that_do_not_grow_or_in_bursts() {
    use JournalMode::{Persist, Truncate, Wal};
    let mut settings = sql_settings(PathBuf::new());
    for journal_mode in [Persist, Truncate, Wal] {
        settings.sql.options.journal_mode = journal_mode;
        settings.sql.regime.regime = Regime::Fresh;
        let (fresh, missed) = regime_entry(&settings);
        assert!(missed.is_empty() && fresh["reopenings"] == 0, "{fresh}");
        settings.sql.regime.regime = Regime::Steady;
        let (steady, missed) = regime_entry(&settings);
        assert!(missed.is_empty(), "{journal_mode} {missed:?}");
        let [grown, main] =
            [&fresh, &steady].map(|found| &found["files"]["sizes"][0]["size_bytes"]);
        assert!(main[0] == main[1] && main[0].as_u64() > grown[1].as_u64(), "{fresh} {steady}");
        settings.sql.regime.regime = Regime::Reopened;
        settings.sql.regime.burst_transactions = std::num::NonZeroU64::new(5).unwrap();
        let (reopened, missed) = regime_entry(&settings);
        // 2 of the warm-up and 20.
        assert!(missed.is_empty() && reopened["reopenings"] == 5, "{reopened} {missed:?}");
    }
}

#[test]
fn a_shared_database_is_not_opened_again() {
    let folders = Folders::new(&[
        SCHEMA,
        ("transaction-a.sql", "SELECT 1;"),
        ("transaction-b.sql", "SELECT 1;"),
    ]);
    let mut settings = folders.drawn_settings();
    settings.sql.regime.regime = Regime::Reopened;
    assert!(folders.refusal(&settings).contains("several scripts use main.db"));
}

#[test]
fn a_transaction_begins_when_those_of_others_that_come_first_have_ended() {
    // Each script's statements come between those of the other: no other order succeeds.
    let one = "CREATE TABLE t (n INTEGER PRIMARY KEY, last INTEGER);\n\
        INSERT INTO t VALUES (0, 0);\n--! after transaction-two.sql 3\nBEGIN;\n\
        UPDATE t SET last = 2 WHERE last = 1;\n\
        INSERT INTO t SELECT changes() * 2, 0;\nCOMMIT;\n";
    let two = "--! after transaction-one.sql 2\nBEGIN;\nUPDATE t SET last = 1 WHERE last = 0;\n\
        COMMIT;\n--! after transaction-one.sql 6\n\
        UPDATE t SET last = 3 WHERE n = 0 AND last = 2;\n";
    let scripts = [("transaction-one.sql", one), ("transaction-two.sql", two)];
    for _ in 0..10 {
        let folders = Folders::new(&scripts);
        let (_, closed) = folders.run(&folders.replayed_settings());
        assert_eq!(closed.incomplete_reasons, Vec::<String>::new());
        let main = folders.directory().join("main.db");
        assert_eq!(count(&main, "SELECT sum(n) * 10 + sum(last) FROM t"), 23);
    }
    let folders = Folders::new(&[("transaction.sql", "--! after transaction-x.sql 1\nSELECT 1;")]);
    assert!(
        folders.refusal(&folders.replayed_settings()).contains("is no other transaction script")
    );
}

#[test]
fn a_dump_plays_as_the_shell_plays_it() {
    let dump = "PRAGMA foreign_keys=OFF;\nBEGIN TRANSACTION;\n\
        CREATE TABLE note(id INTEGER PRIMARY KEY AUTOINCREMENT, body TEXT);\n\
        INSERT INTO note VALUES(3,'a; b');\nPRAGMA writable_schema=ON;\n\
        INSERT INTO sqlite_schema(type,name,tbl_name,rootpage,sql)VALUES('table','f','f',0,\
        'CREATE VIRTUAL TABLE f USING fts5(body, content=''note'', content_rowid=''id'')');\n\
        CREATE TABLE IF NOT EXISTS 'f_data'(id INTEGER PRIMARY KEY, block BLOB);\n\
        INSERT INTO f_data VALUES(1,X''),(10,X'00000000000000');\n\
        CREATE TABLE IF NOT EXISTS 'f_idx'(segid, term, pgno, \
        PRIMARY KEY(segid, term)) WITHOUT ROWID;\n\
        CREATE TABLE IF NOT EXISTS 'f_docsize'(id INTEGER PRIMARY KEY, sz BLOB);\n\
        CREATE TABLE IF NOT EXISTS 'f_config'(k PRIMARY KEY, v) WITHOUT ROWID;\n\
        INSERT INTO f_config VALUES('version',4);\n\
        DELETE FROM sqlite_sequence;\nINSERT INTO sqlite_sequence VALUES('note',41);\n\
        PRAGMA writable_schema=OFF;\nCOMMIT;\n";
    let next = "INSERT INTO note(body) VALUES ('next');\n";
    for files in [
        vec![("setup.sql", dump), ("transaction.sql", next)],
        vec![("transaction.sql", &*format!("{dump}{next}"))],
    ] {
        let folders = Folders::new(&files);
        let (_, closed) = folders.run(&folders.replayed_settings());
        assert_eq!(closed.incomplete_reasons, Vec::<String>::new());
        let main = folders.directory().join("main.db");
        assert_eq!(count(&main, "SELECT max(id) FROM note"), 42);
        assert_eq!(count(&main, "SELECT count(*) FROM sqlite_schema WHERE name GLOB 'f*'"), 5);
    }
}

#[test]
fn a_missing_collation_is_told_before_its_consequences() {
    let script = "CREATE TABLE place(title TEXT COLLATE unicase);\n\
        CREATE UNIQUE INDEX a ON place(title);\nINSERT INTO place VALUES (1);\n\
        INSERT INTO place VALUES (2);\nCREATE INDEX b ON place(mirrored(title));\n";
    let folders = Folders::new(&[("transaction.sql", script)]);
    let (_, closed) = folders.run(&folders.replayed_settings());
    let first = "no such collation sequence: unicase, which the app has of its own";
    assert!(closed.incomplete_reasons[0].contains(first), "{:?}", closed.incomplete_reasons);
}

#[test]
fn a_script_may_begin_with_a_byte_order_mark_and_has_no_nul() {
    let folders = Folders::new(&[("transaction.sql", "\u{feff}--! may_fail\nSELECT 1;;\n;")]);
    let (_, closed) = folders.run(&folders.replayed_settings());
    assert_eq!(closed.transactions.len(), 1);
    let folders = Folders::new(&[("transaction.sql", "SELECT 1;\nSELECT 'x\0y';")]);
    assert!(
        folders
            .refusal(&folders.replayed_settings())
            .contains("line 2, column 10: a NUL character")
    );
}

/// Return how many of the measured transactions were commits, read only, and rolled back.
fn came_to(closed: &ClosedWorkload) -> [usize; 3] {
    ["write", "read-only", "rollback"]
        .map(|kind| closed.transactions.iter().filter(|row| row.kind == kind).count())
}

const GUARDED: (&str, &str) = (
    "schema.sql",
    "CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT UNIQUE ON CONFLICT ROLLBACK);
     CREATE TABLE log (id INTEGER PRIMARY KEY, what TEXT);
     CREATE TABLE guarded (x INTEGER);
     CREATE TRIGGER guarded_bi BEFORE INSERT ON guarded WHEN new.x < 0
     BEGIN
       SELECT CASE WHEN new.x < -1 THEN RAISE(ROLLBACK, 'too small')
         ELSE RAISE(FAIL, 'negative') END;
     END;
     INSERT INTO item (name) VALUES ('dup');",
);

#[test]
fn only_what_changed_a_database_and_committed_is_a_commit() {
    for journal_mode in ["delete", "wal", "memory", "off", "persist", "truncate"] {
        for (script, wanted) in [
            ("BEGIN; INSERT INTO log (what) VALUES ('x'); ROLLBACK;", [0, 0, 20]),
            ("INSERT INTO log (what) VALUES ('x');", [20, 0, 0]),
            ("SELECT * FROM log;", [0, 20, 0]),
            ("BEGIN; SELECT * FROM log; ROLLBACK;", [0, 20, 0]),
            ("BEGIN IMMEDIATE; SELECT * FROM log; COMMIT;", [0, 20, 0]),
            ("BEGIN; UPDATE log SET what = 'y' WHERE 0; COMMIT;", [0, 20, 0]),
            ("CREATE TABLE IF NOT EXISTS log (x);", [0, 20, 0]),
            ("SAVEPOINT a; INSERT INTO log (what) VALUES ('x'); RELEASE a;", [20, 0, 0]),
            ("CREATE TEMP TABLE IF NOT EXISTS s (x); INSERT INTO s VALUES (1);", [0, 20, 0]),
            ("DROP TABLE IF EXISTS extra; CREATE TABLE extra (x);", [19, 1, 0]),
            ("--! may_fail\nINSERT INTO item (name) VALUES ('dup');", [0, 0, 20]),
            ("--! may_fail\nSELECT * FROM nowhere;", [0, 20, 0]),
            ("BEGIN; INSERT INTO log (what) VALUES ('x'); COMMIT; VACUUM;", [20, 0, 0]),
        ] {
            let folders = Folders::new(&[GUARDED, ("transaction.sql", script)]);
            let mut settings = folders.drawn_settings();
            settings.warmup_transactions = 0;
            settings.sql.options.journal_mode =
                serde_json::from_value(journal_mode.into()).unwrap();
            let (_, closed) = folders.run(&settings);
            // Without a journal SQLite cannot roll back
            // (sqlite.org/pragma.html#pragma_journal_mode).
            if journal_mode != "off" || wanted[2] == 0 {
                assert_eq!(came_to(&closed), wanted, "{journal_mode}: {script}");
            }
            closed.remains.check_oracle().unwrap();
            let apart = closed.transactions.iter().filter(|row| row.kind != "write");
            assert!(apart.clone().all(|row| row.phase == row.kind), "{script}");
        }
    }
}

#[test]
fn statements_after_an_automatic_rollback_are_a_transaction() {
    let script = "BEGIN IMMEDIATE;\nINSERT INTO log (what) VALUES ('first');\n\
        --! may_fail\nINSERT INTO item (name) VALUES ('dup');\n\
        INSERT INTO log (what) VALUES ('after the rollback');\n--! may_fail\nCOMMIT;\n\
        BEGIN;\nINSERT INTO log (what) VALUES ('second');\n\
        --! may_fail\nINSERT INTO guarded VALUES (-2);\n--! may_fail\nCOMMIT;\n\
        BEGIN;\nINSERT INTO log (what) VALUES ('third');\n\
        --! may_fail\nINSERT INTO guarded VALUES (-1);\nCOMMIT;\n";
    let folders = Folders::new(&[GUARDED, ("transaction.sql", script)]);
    let mut settings = folders.drawn_settings();
    (settings.transactions, settings.warmup_transactions) = (15, 0);
    let (_, closed) = folders.run(&settings);
    assert_eq!(came_to(&closed), [10, 0, 10]);
    closed.remains.check_oracle().unwrap();
    let main = folders.directory().join("main.db");
    assert_eq!(count(&main, "SELECT count(*) FROM log WHERE what = 'after the rollback'"), 5);
    assert_eq!(count(&main, "SELECT count(*) FROM log WHERE what = 'third'"), 5);
    assert_eq!(count(&main, "SELECT count(*) FROM log"), 10);
    let one = Folders::new(&[GUARDED, ("transaction.sql", script)]);
    let (_, closed) = one.run(&one.replayed_settings());
    assert_eq!(came_to(&closed), [2, 0, 2]);
    closed.remains.check_oracle().unwrap();
}
