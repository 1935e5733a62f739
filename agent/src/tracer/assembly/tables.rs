//! What comes out of a tracing: rows as they are finished, or whole tables with what is missing
//! from them.

use crate::tables::rows;
use crate::tracer::requests::gaps::Gaps;

/// Tables of one tracing, and what is missing from them.
#[derive(Debug, Default)]
pub struct Capture {
    /// In order of issue.
    pub requests: Vec<rows::Request>,
    pub page_runs: Vec<rows::PageRun>,
    pub files: Vec<rows::File>,
    /// Records that did not fit in the ring, and runs whose bio's record did not.
    pub lost_events: u64,
    pub gaps: Gaps,
}

/// Rows that are finished.
#[derive(Debug, Default)]
pub struct FinishedRows {
    pub requests: Vec<rows::Request>,
    pub page_runs: Vec<rows::PageRun>,
}
