//! Nodes on NAND, right and wrong, worked out by hand.

use std::os::unix::fs::MetadataExt;

use super::super::log::KnownFile;
use super::super::stamp;
use super::*;
use crate::tables::rows::{File as FileRow, Request};

const BLOCK_BYTES: u64 = 1 << 17;

/// A node of data with a stamped block of 1024 bytes at 4096 in file 0, between other things.
fn contents() -> Vec<u8> {
    let mut bytes = vec![0x31; 160];
    let mut node = vec![0; HEADER_BYTES + 1024];
    node[..4].copy_from_slice(&MAGIC.to_le_bytes());
    node[16..20].copy_from_slice(&((HEADER_BYTES + 1024) as u32).to_le_bytes());
    node[20] = 1;
    stamp::fill(&mut node[HEADER_BYTES..], 0, 1, 4096);
    bytes.extend(node);
    bytes.resize(2048, 0xce);
    bytes
}

/// The verdict on runs as (type, length, file, offset) that were programmed at once.
fn verdict(runs: &[(&str, i64, Option<i64>, Option<i64>)], erased_after: bool) -> Verdict {
    let folder = tempfile::tempdir().unwrap();
    let (node, path) = (folder.path().join("mtd0"), folder.path().join("a"));
    std::fs::write(&node, contents()).unwrap();
    let file = File::create_new(&path).unwrap();
    let inode = file.metadata().unwrap().ino() as i64;
    let mut known = KnownFile::new(0, "/a", file).unwrap();
    known.durable.extend([4096, 4608]);
    let log = Log { known: vec![known], ..Log::default() };
    let request = |request_id, operation: &str| Request {
        request_id,
        operation: operation.to_owned().into(),
        sector: Some(0),
        ..Request::default()
    };
    let page_run = |&(block_type, length_bytes, file_id, file_offset_bytes): &(&str, _, _, _)| {
        let block_type = block_type.to_owned().into();
        PageRun { block_type, length_bytes, file_id, file_offset_bytes, ..PageRun::default() }
    };
    let stranger = FileRow { file_id: 1, inode: -1, ..FileRow::default() };
    let mut requests = vec![request(0, "write")];
    requests.extend(erased_after.then(|| request(1, "erase")));
    let capture = Capture {
        requests,
        page_runs: runs.iter().map(page_run).collect(),
        files: vec![FileRow { inode, path: "/a".into(), ..FileRow::default() }, stranger],
        ..Capture::default()
    };
    check(&capture, &log, &node, BLOCK_BYTES).unwrap()
}

const NODE: i64 = (HEADER_BYTES + 1024) as i64;
const REST: i64 = 2048 - 160 - NODE;

#[test]
fn what_is_right_is_right_and_a_node_may_be_in_two_pieces() {
    let right = [
        ("fs-metadata", 160, None, None),
        ("data", 600, Some(0), Some(4096)),
        ("data", NODE - 600, Some(0), Some(4096)),
        ("fs-metadata", REST, None, None),
    ];
    let found = verdict(&right, false);
    assert_eq!((found.misattributed_bytes, found.missing_bytes), (0, 0), "{:?}", found.complaints);
    assert_eq!((found.checked_bytes, found.writers.len()), (2048, 4));
    assert_eq!(found.writers[1].begin_bytes, 160);
    // What was erased since is not there to be compared, nor to be found.
    let erased = verdict(&right, true);
    assert_eq!((erased.checked_bytes, erased.missing_bytes), (0, 1024));
}

#[test]
fn each_wrong_answer_is_found() {
    let told = |before, block_type, length, file, offset| {
        let rest = 2048 - before - length;
        let first = ("fs-metadata", before, None, None);
        verdict(
            &[first, (block_type, length, file, offset), ("fs-metadata", rest, None, None)],
            false,
        )
    };
    for wrong in [
        told(160, "fs-metadata", NODE, None, None),
        told(160, "data", NODE, Some(1), Some(4096)),
        told(160, "data", NODE, None, Some(4096)),
        told(160, "data", NODE, Some(0), Some(0)),
        told(160, "data", 600, Some(0), Some(4096)),
        told(0, "data", 160 + NODE, Some(0), Some(4096)),
        told(160, "data", NODE + 64, Some(0), Some(4096)),
    ] {
        assert!(wrong.misattributed_bytes > 0, "{wrong:?}");
    }
}
