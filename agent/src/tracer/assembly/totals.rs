//! Bytes of every bio by disk, operation and block type. Adds bios with records as they come, and
//! bios that the programs only counted: the ring had no room for them, or no records were
//! requested. The sums are exact even where tables lack rows.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::tracer::classify::{BlockType, Class, RunOwner};
use crate::tracer::files::{Files, file_kind, run_key};
use crate::tracer::records::Bio;
use crate::tracer::records::decode::{ANY_FILE, CountedRuns};
use crate::tracer::records::kernel::OPERATION_MASK;
use crate::tracer::requests::operation_name;

/// The file of those that were too many to keep apart.
const FURTHER: &str = "(further files)";

/// The key of a sum: the disk's number, the operation, and the block type.
type SumKey = (u32, &'static str, BlockType);

/// The sums so far.
#[derive(Debug, Default)]
pub struct Sums {
    sums: BTreeMap<SumKey, ByteSum>,
    lines: BTreeMap<(SumKey, &'static str, String), (u64, u64)>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct ByteSum {
    bytes: u64,
    bytes_without_rows: u64,
}

/// One sum (schema/manifest.toml, totals).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Total {
    pub device: String,
    pub operation: &'static str,
    pub block_type: &'static str,
    /// The bytes of bios that were queued.
    pub bytes: u64,
    /// The bytes of those bios that have no rows in requests and page_runs.
    pub bytes_without_rows: u64,
}

/// The bytes of one file that were counted without rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CountedFile {
    pub operation: &'static str,
    pub block_type: &'static str,
    pub file_kind: &'static str,
    pub file: String,
    pub runs: u64,
    pub bytes: u64,
}

/// All of a tracing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Nothing is missing from the sums.
    pub exact: bool,
    /// Bios that were counted and have no rows.
    pub bios_without_rows: u64,
    pub sums: Vec<Total>,
    /// The files whose bytes have no rows, where rows are missing or there are none.
    pub without_rows: Vec<CountedFile>,
}

impl Sums {
    /// A run of a bio that has records.
    pub fn add(&mut self, bio: &Bio, class: &Class, bytes: u32) {
        self.sums.entry(key(bio, class)).or_default().bytes += u64::from(bytes);
    }

    /// Add runs that were counted without records, as the rules say.
    pub fn add_counted(&mut self, counted: &CountedRuns, class: &Class, files: &Files) {
        let key = key(&counted.bio, class);
        let sum = self.sums.entry(key).or_default();
        sum.bytes += counted.bytes;
        sum.bytes_without_rows += counted.bytes;
        let (kind, path) = match class.owner {
            RunOwner::Inode if counted.run.inode == ANY_FILE => (file_kind::OTHER, FURTHER),
            RunOwner::Inode => files.kind_and_path(run_key(&counted.run)),
            _ => (file_kind::NONE, ""),
        };
        let line = self.lines.entry((key, kind, path.to_owned())).or_default();
        *line = (line.0 + counted.runs, line.1 + counted.bytes);
    }

    /// The sums as they are reported; `name` gives a disk's name.
    pub fn totals(&self, name: impl Fn(u32) -> String) -> Totals {
        let total = |(&(device, operation, block_type), sum): (&SumKey, &ByteSum)| Total {
            device: name(device),
            operation,
            block_type: block_type.as_str(),
            bytes: sum.bytes,
            bytes_without_rows: sum.bytes_without_rows,
        };
        let mut without_rows: Vec<CountedFile> = self
            .lines
            .iter()
            .map(|(((_, operation, block_type), file_kind, file), &(runs, bytes))| CountedFile {
                operation,
                block_type: block_type.as_str(),
                file_kind,
                file: file.clone(),
                runs,
                bytes,
            })
            .collect();
        without_rows.sort_by_key(|line| std::cmp::Reverse(line.bytes));
        let sums = self.sums.iter().map(total).collect();
        Totals { sums, without_rows, ..Totals::default() }
    }
}

fn key(bio: &Bio, class: &Class) -> SumKey {
    (bio.device, operation_name(bio.flags & OPERATION_MASK), class.block_type)
}
