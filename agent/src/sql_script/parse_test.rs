//! Scripts as people write and recorders make them, and whatever else comes.

use std::ffi::CString;

use proptest::prelude::*;
use rusqlite::ffi;
use rusqlite::types::Value;

use super::*;
use crate::fuzz::{self, Random};
use crate::sql_script::statement::TransactionRole;

fn read(text: &str) -> Result<SqlScript, SqlScriptError> {
    parse(text, "it", ScriptUse::Transactions, &mut ScriptNames::default())
}

fn statements(script: &SqlScript) -> Vec<&SqlStatement> {
    let mut found = Vec::new();
    for step in &script.steps {
        if let SqlStep::Statement(statement) = step {
            found.push(&**statement);
        }
    }
    found
}

#[test]
fn drawn_parameters_become_numbered_ones() {
    let script = read(
        "--! let who = key(person)\nBEGIN;\n\
         INSERT INTO t VALUES (:who, :int(-1,5), ':int(1,2)', :text(3)); -- :no\nCOMMIT",
    )
    .unwrap();
    let found = statements(&script);
    assert_eq!(found[1].sql(), "INSERT INTO t VALUES (?1, ?2, ':int(1,2)', ?3)");
    assert_eq!(
        found[1].arguments,
        [
            Expression::Variable(0),
            Expression::Int { low: -1, high: 5 },
            Expression::Text { shortest: 3, longest: 3 }
        ]
    );
    let roles: Vec<&TransactionRole> = found.iter().map(|it| &it.role).collect();
    assert_eq!(roles, [&TransactionRole::Begin, &TransactionRole::Plain, &TransactionRole::End]);
    // What SQLite says of the prepared text is told of the written one.
    let offset = found[1].sql().find("?3").unwrap();
    assert_eq!(found[1].place_of(offset), ScriptPlace { line: 3, column: 54 });
    assert_eq!(found[1].place_of(0), ScriptPlace { line: 3, column: 1 });
}

#[test]
fn a_recorded_script_is_read_as_it_was_recorded() {
    let script = read(
        "--! connection 0x55 of thread 7\n--! database stories.db\n--! attach media.db AS media\n\
         --! wait_us 1500\n--! may_fail\n--! bind 42, -1.5, 'it''s', x'00fF', NULL, text(100)\n\
         INSERT INTO t VALUES (?, :a, @b, $c, ?5, ?6);\nBEGIN;",
    )
    .unwrap();
    assert_eq!(script.connection, "0x55 of thread 7");
    assert_eq!(script.database, "stories.db");
    assert_eq!(script.attached, [("media.db".to_owned(), "media".to_owned())]);
    let insert = statements(&script)[0];
    assert_eq!(insert.sql(), "INSERT INTO t VALUES (?, :a, @b, $c, ?5, ?6)");
    let literals: Vec<Expression> = [
        Value::Integer(42),
        Value::Real(-1.5),
        Value::Text("it's".into()),
        Value::Blob(vec![0, 255]),
        Value::Null,
    ]
    .map(Expression::Literal)
    .into();
    assert_eq!(insert.arguments[..5], literals);
    assert!(insert.may_fail && script.ends_open);
}

#[test]
fn parts_repeats_and_triggers_keep_their_bounds() {
    let script = read(
        "--! transaction send 3\nBEGIN;\n--! repeat int(1,8)\nINSERT INTO t VALUES (:key);\n\
         --! end\nCOMMIT;\n--! transaction look 1\nSELECT 1;\nCREATE TRIGGER x AFTER INSERT ON t \
         BEGIN SELECT 1; SELECT ';'; END;\nSELECT 2;",
    )
    .unwrap();
    let parts: Vec<_> =
        script.parts.iter().map(|it| (it.name.as_str(), it.weight, it.begin, it.end)).collect();
    assert_eq!(parts, [("send", 3, 0, 5), ("look", 1, 5, 8)]);
    assert!(matches!(script.steps[1], SqlStep::Repeat { after: 4, .. }));
    assert!(matches!(script.steps[3], SqlStep::Again { repeat: 1 }));
}

#[test]
fn text_that_no_line_holds_is_read_from_its_bytes() {
    let bind = "--! bind text x'610a00', zeroblob(3), -9e999, text(5)\nSELECT ?, ?, ?, ?;";
    let script = read(bind).unwrap();
    let literals: Vec<Expression> =
        [Value::Text("a\n\0".into()), Value::Blob(vec![0; 3]), Value::Real(f64::NEG_INFINITY)]
            .map(Expression::Literal)
            .into();
    assert_eq!(statements(&script)[0].arguments[..3], literals);
}

#[test]
fn a_fault_of_a_script_is_told_with_its_place() {
    for (text, place, words) in [
        ("SELECT 1;\n  SELECT :oops;", "line 2, column 10", "\"oops\" is neither a value of"),
        ("SELECT :int(3,1);", "line 1, column 13", "3 to 1 is no range"),
        ("SELECT :zeroblob(5,10);", "line 1, column 8", "a zeroblob has one length"),
        ("SELECT ?;", "line 1, column 8", "nothing gives ? a value"),
        ("SELECT 'x;", "line 1, column 8", "a string that does not end"),
        ("\n.import x y\n", "line 2, column 1", "command of the sqlite3 shell"),
        ("SELECT 1\n--! end\n", "line 2, column 1", "a directive within a statement"),
        ("--! jump 3\nSELECT 1;", "line 1, column 4", "\"jump\" is no directive"),
        ("--! repeat 3\nBEGIN;\n--! end\n", "line 3, column 4", "as many open transactions"),
        ("--! repeat 3\nSELECT 1;", "line 2, column 1", "a repeat has no end"),
        ("--! bind 1,\nSELECT ?;", "line 1, column 12", "\"\" is neither"),
        ("--! bind text x'ff'\nSELECT ?;", "line 1, column 10", "must be UTF-8"),
        ("-- nothing", "line 1, column 1", "there is no statement"),
        ("ATTACH '/etc/passwd' AS x;", "line 1, column 1", "--! attach"),
        ("VACUUM main INTO 'x';", "line 1, column 1", "writes another file"),
        ("PRAGMA main.synchronous = off;", "line 1, column 13", "the case's field synchronous"),
        ("PRAGMA no_such(1);", "line 1, column 8", "none of those that a script may"),
        ("PRAGMA wal_checkpoint;", "line 1, column 8", "is for no script"),
        ("PRAGMA mmap_size = 5;", "line 1, column 8", "read by a script, and not set"),
        ("--! after transaction.sql\nSELECT 1;", "line 1, column", "FILE.sql STATEMENTS"),
        ("--! database ../x.db\nSELECT 1;", "line 1, column", "a file's bare name"),
        ("--! attach x.db AS main\nSELECT 1;", "line 1, column", "a NAME of letters that is free"),
        ("--! transaction a 1\nBEGIN;\n--! transaction b 1\nSELECT 1;", "line 3", "without COMMIT"),
    ] {
        let error = read(text).unwrap_err().to_string();
        assert!(error.starts_with(place) && error.contains(words), "{text}: {error}");
    }
}

fn is_complete(sql: &str) -> bool {
    let sql = CString::new(sql).unwrap();
    // SAFETY: a C string, that lives as long as the call.
    unsafe { ffi::sqlite3_complete(sql.as_ptr()) == 1 }
}

fn any_script() -> impl Strategy<Value = String> {
    let words = prop::sample::select(vec![
        "SELECT",
        "1",
        ";",
        "\n",
        " ",
        "'",
        "\"",
        "[",
        "]",
        "`",
        "--",
        "--!",
        "--! bind 1,'x'\n",
        "--! repeat 2\n",
        "--! end\n",
        "/*",
        "*/",
        "CREATE",
        "TEMP",
        "TRIGGER",
        "BEGIN",
        "END",
        "COMMIT",
        ":int(1,2)",
        ":text(3)",
        ":key",
        ":",
        "(",
        ")",
        ",",
        "?",
        "x'00'",
        "é",
        ".",
        "EXPLAIN",
        "PRAGMA",
        "SAVEPOINT a",
        "RELEASE a",
        "--! let a = int(1,2)\n",
        ":a",
        "--! transaction x 1\n",
        "--! wait_us 5\n",
        "\r\n",
        "NULL",
        "-",
        "$",
    ]);
    prop::collection::vec(words, 0..30).prop_map(|words| words.concat())
}

proptest! {
    #[test]
    fn whatever_comes_is_read_or_refused_with_a_place_in_it(text in any_script()) {
        if let Err(error) = read(&text) {
            prop_assert!(error.place.line <= text.lines().count() + 1, "{}", error);
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(text in "\\PC*") {
        let _ = read(&text);
    }

    #[test]
    fn statements_end_where_sqlite_ends_them(text in any_script()) {
        let mut items = ScriptItems::new(&text);
        while let Ok(Some(item)) = items.next() {
            if let ScriptItem::Statement { offset, text: found } = item {
                // A comment at its end goes to the end of its line.
                let whole = format!("{found}\n;");
                let has_end = text[offset + found.len()..].trim_start().starts_with(';');
                prop_assert!(!has_end || is_complete(&whole), "{}", whole);
            }
        }
    }
}

/// Lines that scripts of the fuzzing are mixed of.
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

/// Return 1 where an input was a script. None may panic; what is one has steps whose jumps lead to
/// steps that are there, and what is none is told at a place of its text.
fn check_input(number: u64) -> usize {
    let mut random = Random::from_seed(number);
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
            SqlStep::Let { variable, .. } => assert!(*variable < script.variables.0.len()),
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
fn mutated_scripts_panic_nowhere() {
    // Some inputs are still scripts, or nothing would be tested behind the first error.
    assert!((0..2000).map(check_input).sum::<usize>() > 100);
}

#[test]
#[ignore = "ten million inputs take a minute: make fuzz"]
fn fuzz_sql_scripts() {
    fuzz::run("SQL scripts", 10_000_000, check_input);
}
