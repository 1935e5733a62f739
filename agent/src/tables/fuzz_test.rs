//! Mutated Parquet through the reader of tables: bytes of a file of ours that are changed, doubled,
//! left out or lost. What is read has as many rows as may be; where the parquet crate panics is an
//! error like any other.

use std::sync::LazyLock;

use bytes::Bytes;

use super::super::recording::{PathState, RecordedCall};
use super::super::write::write_file;
use super::*;
use crate::fuzz::{self, Random};

const MOST_ROWS: usize = 100;

fn file<Row: Table>(rows: &[Row]) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("table.parquet");
    write_file(&path, rows).unwrap();
    fs::read(path).unwrap()
}

static CALLS: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let call = |call_id: i64| RecordedCall {
        call_id,
        name: if call_id % 2 == 0 { "openat".into() } else { "pwrite64".into() },
        begin_ns: call_id * 1000,
        end_ns: Some(call_id * 1000 + 7),
        path: (call_id % 3 == 0).then(|| format!("/data/{call_id}")),
        result: (call_id % 5 != 0).then_some(call_id),
        ..RecordedCall::default()
    };
    file(&(0..50).map(call).collect::<Vec<_>>())
});
static STATES: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let state = |path_id: i64| PathState {
        path_id,
        path: format!("/a/{path_id}"),
        size_bytes: (path_id % 2 == 0).then_some(path_id << 40),
        made_by_recording: (path_id % 4 == 0).then_some(true),
        ..PathState::default()
    };
    file(&(0..50).map(state).collect::<Vec<_>>())
});

fn rows<Row: Table + Send + 'static>(bytes: Vec<u8>) -> usize {
    let bytes = Bytes::from(bytes);
    let read = as_error(move || read_file::<Row>(bytes, MOST_ROWS, (0, 0)));
    let rows = read.map_or(0, |(rows, _)| rows.len());
    assert!(rows <= MOST_ROWS);
    rows
}

/// One input; how many rows were read.
fn input(number: u64) -> usize {
    let mut random = Random::of(number);
    let of_calls = number.is_multiple_of(2);
    let mut bytes = if of_calls { CALLS.clone() } else { STATES.clone() };
    // The footer, which says where all is, is a third of so small a file. The bytes at the end are
    // its length and the magic; with these changed nothing is read.
    let tail = bytes.split_off(bytes.len() - 8);
    for _ in 0..=random.below(3) {
        if random.below(16) == 0 {
            random.mutate_bytes(&mut bytes);
        } else if !bytes.is_empty() {
            let at = random.below(bytes.len());
            bytes[at] = match random.below(3) {
                0 => 0xff,
                1 => bytes[at] ^ (1 << random.below(8)),
                _ => random.next() as u8,
            };
        }
    }
    bytes.extend(tail);
    if of_calls { rows::<RecordedCall>(bytes) } else { rows::<PathState>(bytes) }
}

#[test]
fn a_slice_of_the_fuzzing() {
    // Many inputs are still tables.
    assert!((0..300).map(input).sum::<usize>() > 1000);
}

#[test]
#[ignore = "takes some minutes: make fuzz"]
fn fuzz_tables() {
    // One in some hundred makes the parquet crate panic, which leaves a thread.
    fuzz::run("rows of damaged tables", 100_000, input);
}
