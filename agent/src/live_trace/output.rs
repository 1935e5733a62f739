//! The tables of a live trace, written as they come. From the first moment the folder is a complete
//! capture that is marked incomplete; it stays one if the tracer is killed.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::tables::capture::{Manifest, TraceLoss};
use crate::tables::rows::{Counter, File, PageRun, Request, Table, Transaction, Writer};
use crate::tables::write::{Segments, new_folder};
use crate::tracer::Gaps;

/// The phase of what counts for no program that is watched.
pub const PHASE: &str = "trace";

/// The tables of a trace; one that sees no calls has no transactions.
const TABLES: [&str; 6] =
    [Request::NAME, PageRun::NAME, File::NAME, Counter::NAME, Transaction::NAME, Writer::NAME];

/// Rows that are ready to be written.
#[derive(Debug, Default)]
pub struct PlacedRows {
    pub requests: Vec<Request>,
    pub page_runs: Vec<PageRun>,
    pub transactions: Vec<Transaction>,
    pub writers: Vec<Writer>,
}

/// The folder, and what the manifest says of the tracing whatever becomes of it.
pub struct TraceOutput {
    segments: Segments,
    directory: PathBuf,
    manifest: Manifest,
    /// Names of the tables.
    tables: &'static [&'static str],
}

impl TraceOutput {
    /// Makes the folder, and in it a capture of nothing.
    ///
    /// # Errors
    /// If something is there already, or it cannot be written.
    pub fn create(directory: &Path, manifest: Manifest, sees_calls: bool) -> anyhow::Result<Self> {
        new_folder(directory)?;
        let segments = Segments::new(directory);
        segments.replace::<Request>(&[])?;
        segments.replace::<PageRun>(&[])?;
        segments.replace::<File>(&[])?;
        segments.replace::<Counter>(&[])?;
        if sees_calls {
            segments.replace::<Transaction>(&[])?;
            segments.replace::<Writer>(&[])?;
        }
        let tables = if sees_calls { &TABLES[..] } else { &TABLES[..4] };
        let output = TraceOutput { segments, directory: directory.to_owned(), manifest, tables };
        output.end(0, &Gaps::default(), &["the tracing was not ended properly".to_owned()])?;
        Ok(output)
    }

    /// Takes the folder away again: nothing was traced.
    pub fn abandon(self) {
        // It was empty when we got it. That it stays behind would hide the error that comes next.
        let _ = fs::remove_dir_all(&self.directory);
    }

    /// Adds a round of rows: `gone` are files that are heard of no more, `changed` the parts of the
    /// table of the others that are not as they were. Requests come last, so that what they refer
    /// to is there.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn add(
        &mut self,
        placed: &PlacedRows,
        gone: &[File],
        changed: &[(i64, Vec<File>)],
    ) -> anyhow::Result<()> {
        self.segments.append(&placed.page_runs)?;
        self.segments.append(&placed.transactions)?;
        self.segments.append(&placed.writers)?;
        self.segments.append(gone)?;
        for (part, files) in changed {
            self.segments.replace_part(*part, files)?;
        }
        self.segments.append(&placed.requests)?;
        self.segments.begin_round();
        Ok(())
    }

    /// Writes what the disks counted.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn counters(&self, counters: &[Counter]) -> anyhow::Result<()> {
        Ok(self.segments.replace(counters)?)
    }

    /// Says how the tracing ended; without `reasons` it is complete.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn end(&self, lost_events: u64, gaps: &Gaps, reasons: &[String]) -> anyhow::Result<()> {
        let mut manifest = self.manifest.clone();
        manifest.note("skipped_runs", gaps.skipped_runs);
        manifest.note("edge_requests", gaps.edge_requests);
        manifest.note("untimed_requests", gaps.untimed_requests);
        manifest.note("under_way_requests", gaps.under_way_requests);
        manifest.note("waiting_bios", gaps.waiting_bios);
        manifest.note("unmatched_names", gaps.unmatched_names);
        manifest.note("dropped_changes", gaps.dropped_changes);
        manifest.note("forgotten_files", gaps.forgotten_files);
        let loss = TraceLoss { lost_events, unattributed_bytes: gaps.unattributed_bytes };
        let rows = manifest.rows(self.tables, Some(loss), reasons);
        Ok(self.segments.replace(&rows)?)
    }

    /// Adds what is only known at the end to what the manifest says.
    pub fn note(&mut self, key: &'static str, value: impl Serialize) {
        self.manifest.note(key, value);
    }
}
