//! The judgement on raw NAND: what the tracer said of each byte, against what the NAND holds.
//!
//! The bytes between two nodes of UBIFS are not of whole sectors, so that they are compared from
//! both sides. Each stamp that is found, wherever it lies, must have been told as data of its file
//! and block. And what was told as data must be nodes of that file and block: the payload is held
//! against the stamps, or against what was written there. Of a node's header no more is believed
//! than its lengths; what it says of inode and block is what the tracer read too.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use anyhow::Context;

use super::check::{Owner, SeenSectors, Verdict, complain_of_missing, owners, wrong_data};
use super::log::Log;
use super::sectors::{SECTOR, Stamp};
use super::writers::LastWriter;
use crate::tables::rows::PageRun;
use crate::tracer::Capture;

/// UBIFS's nodes begin at multiples of so many bytes.
const ALIGNMENT_BYTES: usize = 8;
/// A node of data has at most so many of a file (UBIFS_BLOCK_SIZE).
const FILE_BLOCK_BYTES: u64 = 4096;
/// struct ubifs_data_node without the data.
const HEADER_BYTES: usize = 48;
/// UBIFS_NODE_MAGIC.
const MAGIC: u32 = 0x0610_1831;

/// Compares; `node` is the NAND's, of blocks of so many bytes.
///
/// # Errors
/// If it cannot be read.
pub fn check(
    capture: &Capture,
    log: &Log,
    node: &Path,
    block_bytes: u64,
) -> anyhow::Result<Verdict> {
    let mut verdict = Verdict::begin(capture, log);
    let owners = owners(capture, log);
    let nand = File::open(node).with_context(|| node.display().to_string())?;
    let mut seen = SeenSectors::new();
    let last = last_programs(capture, block_bytes);
    for stretch in stretches(&last, block_bytes) {
        let mut bytes = vec![0; stretch.length_bytes()];
        nand.read_exact_at(&mut bytes, stretch.begin).context("reading NAND")?;
        verdict.checked_bytes += bytes.len() as u64;
        let compared = ComparedStretch { stretch, bytes, owners: &owners, log };
        compared.stamps(&mut seen, &mut verdict);
        compared.data(&mut verdict);
    }
    complain_of_missing(log.known.iter(), 0, &seen, &mut verdict);
    let writer = |(&begin, run): (&u64, &&PageRun)| {
        LastWriter::new(run, (begin as i64, run.length_bytes), capture)
    };
    verdict.writers = last.iter().map(writer).collect();
    Ok(verdict)
}

/// The runs that were programmed since the last erase of their block, by their first byte.
fn last_programs(capture: &Capture, block_bytes: u64) -> BTreeMap<u64, &PageRun> {
    let mut last = BTreeMap::new();
    let mut runs = capture.page_runs.iter().peekable();
    for request in &capture.requests {
        let mut at = request.sector.unwrap_or(0) as u64 * SECTOR as u64;
        if request.operation == "erase" {
            last.retain(|begin, _| !(at..at + block_bytes).contains(begin));
        }
        while let Some(run) = runs.next_if(|run| run.request_id == request.request_id) {
            if request.operation == "write" {
                last.insert(at, run);
            }
            at += run.length_bytes as u64;
        }
    }
    last
}

/// Runs that follow each other in a block, each with its first byte in the stretch.
struct Stretch<'a> {
    begin: u64,
    runs: Vec<(usize, &'a PageRun)>,
}

impl Stretch<'_> {
    fn length_bytes(&self) -> usize {
        self.runs.last().map_or(0, |(at, run)| at + run.length_bytes as usize)
    }
}

fn stretches<'a>(last: &BTreeMap<u64, &'a PageRun>, block_bytes: u64) -> Vec<Stretch<'a>> {
    let mut found: Vec<Stretch> = Vec::new();
    for (&begin, run) in last {
        let follows = |stretch: &&mut Stretch| {
            stretch.begin + stretch.length_bytes() as u64 == begin
                && stretch.begin / block_bytes == begin / block_bytes
        };
        match found.last_mut().filter(follows) {
            Some(stretch) => stretch.runs.push(((begin - stretch.begin) as usize, run)),
            None => found.push(Stretch { begin, runs: vec![(0, run)] }),
        }
    }
    found
}

/// A stretch as it was told, and the bytes that it holds.
struct ComparedStretch<'a> {
    stretch: Stretch<'a>,
    bytes: Vec<u8>,
    owners: &'a [Owner<'a>],
    log: &'a Log,
}

impl ComparedStretch<'_> {
    /// Every stamp is told as data of its file.
    fn stamps(&self, seen: &mut SeenSectors, verdict: &mut Verdict) {
        let mut at = 0;
        while at + SECTOR <= self.bytes.len() {
            let Some(stamp) = Stamp::read(&self.bytes[at..at + SECTOR]) else {
                at += ALIGNMENT_BYTES;
                continue;
            };
            match self.wrong_owner(at, stamp) {
                None => drop(seen.insert((stamp.file, stamp.offset))),
                Some(wrong) => verdict.complain(self.complaint(at, &wrong)),
            }
            at += SECTOR;
        }
    }

    /// Return the wrong owner that the tables give the bytes of a stamp, if they do.
    fn wrong_owner(&self, at: usize, stamp: Stamp) -> Option<String> {
        let block = (stamp.offset / FILE_BLOCK_BYTES * FILE_BLOCK_BYTES) as i64;
        let is_right = |run: &PageRun| {
            let owner = run.file_id.map(|id| &self.owners[id as usize]);
            matches!(owner, Some(Owner::Stamped(known)) if known.number == stamp.file)
                && run.block_type == "data"
                && run.file_offset_bytes == Some(block)
        };
        let runs = &self.stretch.runs;
        let first = runs.partition_point(|(begin, run)| begin + run.length_bytes as usize <= at);
        let later = runs[first..].iter().take_while(|(begin, _)| *begin < at + SECTOR);
        let wrong = later.map(|(_, run)| run).find(|run| !is_right(run))?;
        let PageRun { block_type, block_subtype, file_offset_bytes, .. } = wrong;
        Some(format!("{stamp:?}, told as {block_type} {block_subtype} at {file_offset_bytes:?}"))
    }

    /// Check that what is told as data is nodes of data, whose payload is the file's.
    fn data(&self, verdict: &mut Verdict) {
        let is_data = |run: &PageRun| run.block_type == "data";
        let one = |one: &PageRun, next: &PageRun| {
            (one.file_id, one.file_offset_bytes) == (next.file_id, next.file_offset_bytes)
        };
        let groups =
            self.stretch.runs.chunk_by(|(_, a), (_, b)| is_data(a) && is_data(b) && one(a, b));
        for group in groups {
            let (begin, run) = group[0];
            if !is_data(run) {
                continue;
            }
            let length: i64 = group.iter().map(|(_, run)| run.length_bytes).sum();
            self.nodes(begin, begin + length as usize, run, verdict);
        }
    }

    fn nodes(&self, begin: usize, end: usize, run: &PageRun, verdict: &mut Verdict) {
        let mut at = begin;
        while at < end {
            let node = &self.bytes[at..end];
            let Some((length, is_packed)) = data_node(node) else {
                verdict.complain(self.complaint(at, "told as data, but no node of data"));
                return;
            };
            let payload = &node[HEADER_BYTES..length];
            if is_packed {
                verdict.uncheckable_bytes += payload.len() as u64;
            } else {
                self.payload(at, payload, run, verdict);
            }
            at += length.next_multiple_of(ALIGNMENT_BYTES);
        }
    }

    fn payload(&self, at: usize, payload: &[u8], run: &PageRun, verdict: &mut Verdict) {
        for (index, part) in payload.chunks(SECTOR).enumerate() {
            let mut sector = [0; SECTOR];
            sector[..part.len()].copy_from_slice(part);
            let within = (index * SECTOR) as i64;
            let offset = run.file_offset_bytes.map(|block| (block + within) as u64);
            let wrong = match run.file_id.map(|id| &self.owners[id as usize]) {
                Some(owner) => wrong_data(owner, offset, &sector, self.log, verdict),
                None => Some("data of no file".to_owned()),
            };
            if let Some(wrong) = wrong {
                verdict.complain(self.complaint(at, &format!("at {offset:?}: {wrong}")));
            }
        }
    }

    fn complaint(&self, at: usize, what: &str) -> String {
        format!("byte {} of NAND: {what}", self.stretch.begin + at as u64)
    }
}

/// The length of the node of data that bytes begin with, and whether it is compressed.
fn data_node(bytes: &[u8]) -> Option<(usize, bool)> {
    let word = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let length = word(16)? as usize;
    let is_node = word(0)? == MAGIC && *bytes.get(20)? == 1;
    let is_whole = (HEADER_BYTES..=bytes.len()).contains(&length);
    (is_node && is_whole).then_some((length, *bytes.get(44)? != 0))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::super::log::KnownFile;
    use super::super::sectors;
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
        sectors::fill(&mut node[HEADER_BYTES..], 0, 1, 4096);
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
        let page_run =
            |&(block_type, length_bytes, file_id, file_offset_bytes): &(&str, _, _, _)| {
                let block_type = block_type.to_owned().into();
                PageRun {
                    block_type,
                    length_bytes,
                    file_id,
                    file_offset_bytes,
                    ..PageRun::default()
                }
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
    fn a_right_map_has_no_fault_and_a_node_may_be_in_two_parts() {
        let right = [
            ("fs-metadata", 160, None, None),
            ("data", 600, Some(0), Some(4096)),
            ("data", NODE - 600, Some(0), Some(4096)),
            ("fs-metadata", REST, None, None),
        ];
        let found = verdict(&right, false);
        assert_eq!(
            (found.misattributed_bytes, found.missing_bytes),
            (0, 0),
            "{:?}",
            found.complaints
        );
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
}
