//! The tables of a live trace, written as they come. From the first moment the folder is a complete
//! capture that is marked incomplete; it stays one if the tracer is killed.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::Serialize;

use crate::errors::WrongUse;
use crate::tables::capture::{Manifest, TraceLoss};
use crate::tables::rows::{Counter, File, PageRun, Request};
use crate::tables::write::Segments;
use crate::tables::write::Table;
use crate::tracer::assembly::FinishedRows;
use crate::tracer::requests::gaps::Gaps;

/// In `requests`, for all of a live tracing: it has no parts.
pub const PHASE: &str = "trace";

/// It has no transactions: nobody said where one begins.
const TABLES: [&str; 4] = [Request::NAME, PageRun::NAME, File::NAME, Counter::NAME];

/// The folder, and what the manifest says of the tracing whatever becomes of it.
pub struct TraceOutput {
    segments: Segments,
    directory: PathBuf,
    manifest: Manifest,
}

impl TraceOutput {
    /// Makes the folder, and in it a capture of nothing.
    ///
    /// # Errors
    /// If something is there already, or it cannot be written.
    pub fn create(directory: &Path, manifest: Manifest) -> anyhow::Result<Self> {
        let name = || directory.display().to_string();
        fs::create_dir_all(directory).with_context(name)?;
        if fs::read_dir(directory).with_context(name)?.next().is_some() {
            let message = format!("{}: not empty; name a new folder", directory.display());
            return Err(WrongUse(message).into());
        }
        let segments = Segments::new(directory);
        segments.replace::<Request>(&[])?;
        segments.replace::<PageRun>(&[])?;
        segments.replace::<File>(&[])?;
        segments.replace::<Counter>(&[])?;
        let output = TraceOutput { segments, directory: directory.to_owned(), manifest };
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
        rows: &mut FinishedRows,
        gone: &[File],
        changed: &[(i64, Vec<File>)],
    ) -> anyhow::Result<()> {
        for request in &mut rows.requests {
            request.phase = PHASE.to_owned();
        }
        self.segments.append(&rows.page_runs)?;
        self.segments.append(gone)?;
        for (part, files) in changed {
            self.segments.replace_part(*part, files)?;
        }
        self.segments.append(&rows.requests)?;
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
        manifest.note("unmatched_names", gaps.unmatched_names);
        manifest.note("dropped_changes", gaps.dropped_changes);
        manifest.note("forgotten_files", gaps.forgotten_files);
        let loss = TraceLoss { lost_events, unattributed_bytes: gaps.unattributed_bytes };
        let rows = manifest.rows(&TABLES, Some(loss), reasons);
        Ok(self.segments.replace(&rows)?)
    }

    /// Adds what is only known at the end to what the manifest says.
    pub fn note(&mut self, key: &'static str, value: impl Serialize) {
        self.manifest.note(key, value);
    }
}
