//! What the app left, beside real databases on this machine's own files.

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
    let times = AppTimes { ready_ns: 5, begin_ns: vec![10, 20, 30], return_ns: vec![15, 25, 35] };
    let left = AppLeft { directory: directory.path().to_owned(), times };
    (directory, left)
}

#[test]
fn an_insert_that_returned_must_be_there_and_one_under_way_may() {
    let outcome = |rows, at_ns| {
        let (_directory, left) = left(rows);
        left.survived(at_ns).map(|it| (it.outcome, it.lost)).ok()
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
        assert!(left.survived(40).is_err() && left.check().is_err(), "{change}");
        assert_eq!(left.survived(4).unwrap(), Survival::kept());
    }
}
