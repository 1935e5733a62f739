//! Tests of MobiGen's scripts: each shape of a line, each error, and bytes at random.

use proptest::prelude::*;

use super::*;

fn call(line: &str) -> ScriptCall {
    let mut script = parse(line.as_bytes()).unwrap();
    assert_eq!(script.calls.len(), 1, "{line}");
    script.calls.pop().unwrap()
}

fn error(line: &str) -> String {
    parse(line.as_bytes()).unwrap_err().to_string()
}

#[test]
fn every_shape_of_a_line_is_read() {
    let open = call(r#"2 701422 open "/data/a b.db" O_RDWR|O_CREAT|O_LARGEFILE 89"#);
    assert_eq!((open.thread, open.time_us, open.line), (2, 701_422, 1));
    assert_eq!(open.call.path.unwrap(), b"/data/a b.db");
    let row = open.call.row;
    assert_eq!((row.flags, row.mode), (Some((libc::O_RDWR | libc::O_CREAT).into()), Some(0o666)));
    assert_eq!(row.result, Some(89));
    // One that was open before: without quotes, or with one.
    for path in ["/data/data", "dev/fimg2d\"", "x.db\"/nil"] {
        let open = call(&format!("1 0 open {path} O_WRONLY|O_TRUNC -1")).call;
        assert_eq!((open.path, open.row.error), (None, Some("EACCES".into())));
    }
    let pwrite = call("16 5 pwrite64 53 4096 1024").call;
    assert_eq!((pwrite.system_call.name, pwrite.row.descriptor), ("pwrite64", Some(53)));
    assert_eq!(pwrite.row.offset_bytes, Some(4096));
    assert_eq!((pwrite.row.length_bytes, pwrite.row.result), (Some(1024), Some(1024)));
    assert_eq!(call("1 0 read 3 -1").call.row.error, Some("EIO".into()));
    let access = call(r#"1 0 access "/data/wal" -1"#).call;
    assert_eq!((access.system_call.name, access.row.error), ("access", Some("ENOENT".into())));
    assert_eq!(access.row.result, Some(-2));
    assert_eq!(call(r#"1 0 lstat64 "/x""#).call.row.result, Some(0));
    assert_eq!(call("1 0 fstat64 9 0").call.system_call.name, "fstat");
    assert_eq!(call("1 0 fsync 9 0\r\n\n  \n").call.row.result, Some(0));
}

#[test]
fn calls_that_are_not_ours_are_counted() {
    let script = parse(b"1 0 ioctl 3 0x5401\n1 1 mmap2 whatever\n1 2 ioctl 4\n1 3 close 3\n");
    let script = script.unwrap();
    assert_eq!((script.lines, script.calls.len()), (4, 1));
    assert_eq!(script.unknown["ioctl"], 2);
    assert_eq!(script.unknown["mmap2"], 1);
    assert_eq!(script.calls[0].line, 4);
}

#[test]
fn what_is_no_line_is_refused_by_line_and_field() {
    assert_eq!(error("1 0 close 3\nx 1 close 3"), r#"line 2, thread: "x" is no whole number"#);
    let cases = [
        ("-1 0 close 3", "thread: -1 is not 0 to"),
        ("1", "microseconds: is missing"),
        ("1 -7 close 3", "microseconds: -7 is not"),
        ("1 99999999999999999999 close 3", "microseconds: "),
        ("1 0", "call: is missing"),
        ("1 0 close", "descriptor: is missing"),
        ("1 0 open", "path: is missing"),
        (r#"1 0 open "/x O_RDONLY 3"#, "path: has no quote"),
        (r#"1 0 open "/x" O_RDONLY"#, "descriptor: is missing"),
        (r#"1 0 open "/x" O_RDONLY|O_MAGIC 3"#, r#"flags: "O_MAGIC" is no flag"#),
        ("1 0 unlink /x 0", "path: is missing, or unquoted"),
        ("1 0 write 3 1e3", r#"bytes: "1e3" is no whole number"#),
        ("1 0 write 3 67108865", "bytes: 67108865 is more than 67108864"),
        ("1 0 pread 3 -4096 10", "offset: -4096 is not 0 to"),
        ("1 0 pwrite 3 99999999999999 10", "offset: "),
        ("1 0 close 3 0 0", r#"line's end: "0" belongs to no argument"#),
    ];
    for (line, words) in cases {
        let found = error(line);
        assert!(found.starts_with("line 1, ") && found.contains(words), "{line}: {found}");
    }
    let long = format!("1 0 stat \"/{}\"", "x".repeat(5000));
    assert!(error(&long).contains("path: is longer"));
    let many: String = (0..=MOST_THREADS).map(|it| format!("{it} 0 close 3\n")).collect();
    assert!(error(&many).contains("1000 threads"));
}

fn any_line() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        Just("open".to_owned()),
        Just("pwrite64".to_owned()),
        Just("close".to_owned()),
        Just("\"/a/../b\"".to_owned()),
        Just("\"".to_owned()),
        Just("O_RDWR|O_CREAT".to_owned()),
        any::<i64>().prop_map(|number| number.to_string()),
        (0..9_i64).prop_map(|number| number.to_string()),
        ".{0,6}",
    ];
    prop::collection::vec(word, 0..8).prop_map(|words| words.join(" "))
}

proptest! {
    #[test]
    fn bytes_at_random_are_a_script_or_an_error(bytes: Vec<u8>) {
        let _ = parse(&bytes);
    }

    #[test]
    fn words_at_random_are_a_script_or_an_error(lines in prop::collection::vec(any_line(), 0..9)) {
        if let Ok(script) = parse(lines.join("\n").as_bytes()) {
            let known = script.calls.len() as u64 + script.unknown.values().sum::<u64>();
            prop_assert_eq!(known, script.lines as u64);
            for ScriptCall { call, .. } in &script.calls {
                prop_assert!(call.row.length_bytes <= Some(MOST_BYTES));
                prop_assert!(call.row.offset_bytes <= Some(MOST_OFFSET as i64));
            }
        }
    }
}
