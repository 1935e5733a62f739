//! Mutated scripts through the parser: none may panic; what is one has steps whose jumps lead to
//! steps that are there, and what is none is told at a place of its text.

use super::*;
use crate::fuzz::{self, Random};

const SCRIPT: [&str; 35] = [
    "BEGIN;",
    "BEGIN IMMEDIATE;",
    "COMMIT;",
    "ROLLBACK TO SAVEPOINT s;",
    "SAVEPOINT s; RELEASE s;",
    "INSERT INTO t VALUES (:key(task), :int(1,1000), :text(10,60));",
    "UPDATE t SET a = a + :skewed(1,20) WHERE id = :known(task); -- :no",
    "DELETE FROM t WHERE id = :recent(task) /* ; */;",
    "SELECT 'it''s', \"a\"\"b\", [c d], `e`, x'00ff' FROM t WHERE a = :of;",
    "INSERT INTO t VALUES (?, ?3, @b, $c::d(e));",
    "CREATE TRIGGER r AFTER INSERT ON t BEGIN SELECT 1; SELECT CASE WHEN 1 THEN 2 END; END;",
    "CREATE TEMP TRIGGER IF NOT EXISTS r BEGIN UPDATE t SET a = 1; END;",
    "EXPLAIN QUERY PLAN SELECT * FROM t;",
    "PRAGMA journal_mode;",
    "PRAGMA main.user_version = 3;",
    "PRAGMA table_info(t);",
    "ATTACH 'x.db' AS y;",
    "VACUUM INTO 'x';",
    "INSERT INTO t VALUES (:one('a','b',3,-1.5e10,NULL,x'00'), :exponential(40), :blob(1,9));",
    "--! transaction add 30",
    "--! transaction look 70",
    "--! repeat 3",
    "--! repeat int(1,8)",
    "--! end",
    "--! end",
    "--! let of = skewed(1,20)",
    "--! wait_us 1500",
    "--! wait_us exponential(100)",
    "--! bind 42, 'it''s', x'00ff', NULL, text(100), text x'610a', -9223372036854775808, .5e-3",
    "--! may_fail",
    "--! after transaction-001.sql 17",
    "--! connection \u{e9}t\u{e9} 1",
    "--! database a.db",
    "--! attach b.db AS b",
    "\u{1f600} SELECT '\u{e9}';",
];

/// One input; whether it was a script.
fn input(number: u64) -> usize {
    let mut random = Random::seeded(number);
    let text = random.text(&SCRIPT, 12);
    let text = String::from_utf8_lossy(&text);
    let usage =
        if number.is_multiple_of(4) { ScriptUse::Preparation } else { ScriptUse::Transactions };
    let script = match parse(&text, "it", usage, &mut ScriptNames::default()) {
        Ok(script) => script,
        Err(error) => {
            let line = text.split('\n').nth(error.place.line - 1).expect("a line of the text");
            assert!((1..=line.chars().count() + 1).contains(&error.place.column), "{error}");
            return 0;
        }
    };
    for (at, step) in script.steps.iter().enumerate() {
        match step {
            SqlStep::Repeat { after, .. } => {
                let last = &script.steps[*after - 1];
                assert!(matches!(last, SqlStep::Again { repeat } if *repeat == at));
            }
            SqlStep::Again { repeat } => {
                assert!(matches!(script.steps[*repeat], SqlStep::Repeat { .. }) && *repeat < at);
            }
            SqlStep::Statement(statement) => {
                let sql = statement.sql();
                for offset in 0..=sql.len() {
                    let place = statement.place_of(offset);
                    assert!(place.line >= statement.place.line && place.column >= 1);
                }
            }
            SqlStep::Let { slot, .. } => assert!(*slot < script.variables.0.len()),
            SqlStep::Database(_) => {}
        }
    }
    let mut end = 0;
    for part in &script.parts {
        assert!(part.begin == end && part.begin <= part.end && part.weight > 0);
        end = part.end;
    }
    assert_eq!(end, script.steps.len());
    1
}

#[test]
fn a_slice_of_the_fuzzing() {
    // Some inputs are still scripts, or nothing would be tested behind the first error.
    assert!((0..2000).map(input).sum::<usize>() > 100);
}

#[test]
#[ignore = "ten million inputs take a minute: make fuzz"]
fn fuzz_sql_scripts() {
    fuzz::run("SQL scripts", 10_000_000, input);
}
