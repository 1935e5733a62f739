//! Checks who asked for a write: the syncs that the workload made are known, with their times. What
//! a filesystem sends for its journal, and for the data of a synced file, while one of them goes on
//! is asked for by it, or by another of those that go on.

use serde::Serialize;

use super::log::{KnownFile, KnownSync, Log};
use crate::tables::rows::Request;
use crate::tracer::Capture;

impl KnownSync {
    fn goes_on(&self, time_ns: i64) -> bool {
        (self.begin_ns..=self.end_ns).contains(&time_ns)
    }

    /// The tables say that it is this one; of direct I/O they say no begin.
    fn is_told(&self, request: &Request) -> bool {
        let begun = match request.asker_begin_ns {
            Some(begin_ns) => self.goes_on(begin_ns),
            None => request.asker_call.as_deref() == Some("O_DIRECT write"),
        };
        request.asker_tid == Some(self.tid.into()) && begun
    }
}

/// Requests that were compared with the syncs.
#[derive(Debug, Default, Serialize)]
pub struct Askers {
    pub checked_requests: u64,
    pub askerless_requests: u64,
    pub wrong_asker_requests: u64,
}

/// Compares; gives what was wrong in words too. `files` are those of the tables that the workload
/// wrote, by their numbers.
pub(super) fn check(
    capture: &Capture,
    log: &Log,
    files: &[Option<&KnownFile>],
) -> (Askers, Vec<String>) {
    let (mut askers, mut complaints) = (Askers::default(), Vec::new());
    for request in capture.requests.iter().filter(|request| request.operation == "write") {
        let goes_on = |sync: &&KnownSync| sync.goes_on(request.queue_ns);
        let mut candidates: Vec<&KnownSync> = match request.block_type.as_ref() {
            "fs-journal" => log.known.iter().flat_map(|known| &known.syncs).collect(),
            // The file's own alone.
            "data" => match request.file_id.and_then(|id| files[id as usize]) {
                Some(known) => known.syncs.iter().chain(&known.direct_writes).collect(),
                None => continue,
            },
            _ => continue,
        };
        candidates.retain(goes_on);
        if candidates.is_empty() {
            continue;
        }
        askers.checked_requests += 1;
        let what = || {
            let Request { request_id, block_type, block_subtype, queue_ns, complete_ns, .. } =
                request;
            format!(
                "request {request_id}, {block_type} {block_subtype}, queued at {queue_ns}, \
                 complete at {complete_ns:?}"
            )
        };
        let (tid, call) = (request.asker_tid, request.asker_call.as_deref());
        let (begin_ns, known) = (request.asker_begin_ns, candidates[0]);
        if tid.is_none() {
            askers.askerless_requests += 1;
            complaints.push(format!("{} within {known:?}: no asker", what()));
        } else if !candidates.iter().any(|sync| sync.is_told(request)) {
            askers.wrong_asker_requests += 1;
            complaints.push(format!(
                "{} within {known:?}: asker {tid:?} in {call:?}, begun at {begin_ns:?}",
                what()
            ));
        }
    }
    (askers, complaints)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(block_type: &'static str, queue_ns: i64, asker: Option<(i64, i64)>) -> Request {
        Request {
            operation: "write".into(),
            block_type: block_type.into(),
            file_id: (block_type == "data").then_some(0),
            queue_ns,
            asker_tid: asker.map(|(tid, _)| tid),
            asker_begin_ns: asker.map(|(_, begin_ns)| begin_ns),
            ..Request::default()
        }
    }

    #[test]
    fn a_request_within_a_sync_is_asked_for_by_it() {
        let mut known = KnownFile::new(0, "/a", tempfile::tempfile().unwrap()).unwrap();
        known.syncs.push(KnownSync { tid: 5, begin_ns: 100, end_ns: 200 });
        let mut other = KnownFile::new(1, "/b", tempfile::tempfile().unwrap()).unwrap();
        other.syncs.push(KnownSync { tid: 6, begin_ns: 150, end_ns: 250 });
        let log = Log { known: vec![known, other], ..Log::default() };
        let files = [Some(&log.known[0])];
        let counts = |request: Request| {
            let capture = Capture {
                requests: vec![request],
                page_runs: Vec::new(),
                files: Vec::new(),
                lost_events: 0,
                gaps: Default::default(),
            };
            let (askers, complaints) = check(&capture, &log, &files);
            let wrong = askers.askerless_requests + askers.wrong_asker_requests;
            assert_eq!(complaints.len() as u64, wrong);
            (askers.checked_requests, askers.askerless_requests, askers.wrong_asker_requests)
        };
        assert_eq!(counts(write("fs-journal", 120, Some((5, 100)))), (1, 0, 0));
        assert_eq!(counts(write("fs-journal", 160, Some((6, 150)))), (1, 0, 0));
        assert_eq!(counts(write("fs-journal", 120, None)), (1, 1, 0));
        assert_eq!(counts(write("fs-journal", 120, Some((6, 90)))), (1, 0, 1));
        // The data of a file are of its own sync, whoever syncs meanwhile.
        assert_eq!(counts(write("data", 160, Some((6, 150)))), (1, 0, 1));
        assert_eq!(counts(write("data", 220, None)), (0, 0, 0));
        assert_eq!(counts(write("fs-metadata", 120, None)), (0, 0, 0));
    }
}
