//! The gaps of a trace, in numbers and in words.

use serde::Serialize;

use crate::messages::{plural, sentences};

/// The counts of what was seen but not tied up.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Gaps {
    /// Bytes of requests whose page runs are of block_type unknown.
    pub unattributed_bytes: u64,
    /// Flushes for which no bio that asked for one was pending.
    pub unattributed_flushes: u64,
    /// Bios of which a part was still queued at the end, or never came out of the queue.
    pub unissued_bios: u64,
    /// Requests whose completion was not seen, and of which no other witness says that they are
    /// complete.
    pub incomplete_requests: u64,
    /// Requests that are complete according to another witness, at an unknown time.
    pub untimed_requests: u64,
    /// Requests that the block layer still held at the end of the trace, and as many as the disk
    /// said that it had: their times are not known.
    pub under_way_requests: u64,
    /// Bios that no request had taken at the end of the trace, of disks whose own counters agree
    /// with it: they have no rows.
    pub waiting_bios: u64,
    /// Requests that the device refused.
    pub failed_requests: u64,
    /// The lost events that are programs which the kernel did not run, within themselves.
    pub skipped_runs: u64,
    /// Requests of bios queued before the tracing began or after it ended: no part of it.
    pub edge_requests: u64,
    /// Below: what is missing of names and reasons alone. No byte has another owner for it, so it
    /// makes no tables incomplete.
    ///
    /// Changed names that were not followed: they depend on a root directory or on mounts that are
    /// not known.
    pub unmatched_names: u64,
    /// Changes to files beyond those that are kept until a commit takes them.
    pub dropped_changes: u64,
    /// Files that the kernel's side forgot and met again: what changed in between is in no reason.
    pub forgotten_files: u64,
}

impl Gaps {
    /// Return what the tables lack of times; bytes and owners are there.
    pub fn untimed_words(&self) -> Option<String> {
        let count = self.untimed_requests;
        (count > 0).then(|| format!("{} completed at an unknown time", plural(count, "request")))
    }

    /// Return what was not over at the end of the trace; empty where all was.
    pub fn unended_words(&self) -> Vec<String> {
        sentences(&[
            (
                self.under_way_requests,
                "request{s} {was|were} under way at the end: {its|their} times are not \
                 known",
            ),
            (
                self.waiting_bios,
                "bio{s} {was|were} in no request at the end: {it has|they have} no \
                 rows",
            ),
        ])
    }

    /// Return what is missing of names and reasons; empty where nothing is.
    pub fn notes(&self) -> Vec<String> {
        let counts = [
            (
                self.unmatched_names,
                "changes of names, on any disk, were not followed: their processes have another \
                 root directory or other mounts, or their folders are not known; no byte has \
                 another owner for it",
            ),
            (self.dropped_changes, "changes to files are counted in reasons, but not named"),
            (
                self.forgotten_files,
                "files were forgotten and seen again: changes in between are in no reason",
            ),
        ];
        sentences(&counts)
    }

    /// Return the reasons why the tables are incomplete; none where nothing is missing but times,
    /// names and reasons.
    pub fn reasons(&self, lost_events: u64) -> Vec<String> {
        let counts = [
            (lost_events, "events of the tracer were lost"),
            (
                self.skipped_runs,
                "of these: runs that the kernel skipped because the program was already running",
            ),
            (self.unattributed_bytes, "bytes have no known owner"),
            (self.unattributed_flushes, "flushes have no known requester"),
            (self.unissued_bios, "bios were queued and never issued"),
            (self.incomplete_requests, "requests were never seen to complete"),
            (self.failed_requests, "requests were refused by the device"),
        ];
        sentences(&counts)
    }
}
