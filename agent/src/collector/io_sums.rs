//! Sums of requests by ten minutes, process, kind of file, block type and operation, and of the
//! bytes written to each file. What the collector does itself is counted apart. The number of rows
//! has a bound: beyond it, processes are summed as others.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::clock::WallClock;
use super::privacy::Privacy;
use super::writers::{OTHERS, Writers};
use crate::tables::fleet::{FileSum, IoSum};
use crate::tables::rows::{File, PageRun, Request, Word};
use crate::tracer::{Files, FinishedRows};

const TEN_MINUTES: i64 = 10;
const SMALL_BYTES: i64 = 4096;

/// Rows with the name of a process.
const SUMS_KEPT: usize = 20_000;
/// Files that are summed one by one, and those of which the segment has the path.
const FILES_KEPT: usize = 65_536;
const FILES_NAMED: usize = 4096;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct SumKey {
    minute: i64,
    process: String,
    file_kind: Word,
    block_type: Word,
    operation: Word,
    sync: bool,
}

#[derive(Debug, Clone, Default)]
struct RequestSum {
    requests: i64,
    moved_bytes: i64,
    random_requests: i64,
    small_requests: i64,
}

/// What was written to a file.
#[derive(Debug, Clone, Default)]
struct WrittenFile {
    bytes: BTreeMap<String, i64>,
    /// Path and kind, of a file that the tracer has let go.
    gone: Option<(String, String)>,
}

/// What was observed while a segment is made.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Observed {
    pub requests: i64,
    pub read_bytes: i64,
    pub write_bytes: i64,
    pub own_write_bytes: i64,
}

/// Of one segment.
#[derive(Debug, Default)]
pub struct IoSums {
    pub observed: Observed,
    sums: BTreeMap<SumKey, RequestSum>,
    files: BTreeMap<i64, WrittenFile>,
    /// Files beyond those that are kept: how many pieces, and bytes, by kind and process.
    others: BTreeMap<(String, String), (i64, i64)>,
}

impl IoSums {
    /// Adds finished requests; `own` are the processes of the collector.
    pub fn take(
        &mut self,
        rows: &FinishedRows,
        files: &Files,
        (own, writers): (&BTreeSet<i64>, &Writers),
        clock: &WallClock,
    ) {
        let mut runs = rows.page_runs.as_slice();
        for request in &rows.requests {
            let first = runs.partition_point(|run| run.request_id < request.request_id);
            let count = runs[first..].partition_point(|run| run.request_id == request.request_id);
            let of_request = &runs[first..first + count];
            runs = &runs[first + count..];
            if is_own(request, own) {
                self.observed.own_write_bytes += written_bytes(request);
                continue;
            }
            self.observed.requests += 1;
            self.observed.write_bytes += written_bytes(request);
            if request.operation == "read" {
                self.observed.read_bytes += request.length_bytes;
            }
            self.add(request, of_request, files, writers, clock);
        }
    }

    fn add(
        &mut self,
        request: &Request,
        runs: &[PageRun],
        files: &Files,
        writers: &Writers,
        clock: &WallClock,
    ) {
        let minute = clock.minute(clock.unix_ns(request.issue_ns));
        let key = |file_id: Option<i64>, file_kind: &Word, block_type: &Word| SumKey {
            minute: minute - minute % TEN_MINUTES,
            process: process(request, file_id, files, writers),
            file_kind: file_kind.clone(),
            block_type: block_type.clone(),
            operation: request.operation.clone(),
            sync: request.sync,
        };
        let whole = runs.is_empty();
        let first = match runs.first() {
            Some(run) => key(run.file_id, &run.file_kind, &run.block_type),
            None => key(request.file_id, &request.file_kind, &request.block_type),
        };
        let sum = self.sum(first);
        sum.requests += 1;
        sum.random_requests +=
            i64::from(!request.sequential && ["read", "write"].contains(&&*request.operation));
        let is_small = request.length_bytes <= SMALL_BYTES && request.operation != "flush";
        sum.small_requests += i64::from(is_small);
        if whole {
            sum.moved_bytes += request.length_bytes;
        }
        for run in runs {
            let key = key(run.file_id, &run.file_kind, &run.block_type);
            if let (true, "data", "write") =
                (run.file_id.is_some(), &*run.block_type, &*request.operation)
            {
                self.wrote(run.file_id.unwrap_or_default(), &key, run.length_bytes);
            }
            self.sum(key).moved_bytes += run.length_bytes;
        }
    }

    fn sum(&mut self, mut key: SumKey) -> &mut RequestSum {
        if self.sums.len() >= SUMS_KEPT && !self.sums.contains_key(&key) {
            key.process = OTHERS.to_owned();
        }
        self.sums.entry(key).or_default()
    }

    fn wrote(&mut self, file_id: i64, key: &SumKey, bytes: i64) {
        if self.files.len() >= FILES_KEPT && !self.files.contains_key(&file_id) {
            let other = self.others.entry((key.file_kind.to_string(), OTHERS.to_owned()));
            let other = other.or_default();
            *other = (other.0 + 1, other.1 + bytes);
            return;
        }
        let file = self.files.entry(file_id).or_default();
        let name = if file.bytes.len() < 16 { &key.process } else { OTHERS };
        *file.bytes.entry(name.to_owned()).or_default() += bytes;
    }

    /// The tracer lets these files go.
    pub fn let_go(&mut self, gone: &[File]) {
        for file in gone {
            if let Some(written) = self.files.get_mut(&file.file_id) {
                written.gone = Some((file.path.clone(), file.file_kind.clone()));
            }
        }
    }

    /// The rows of both tables; begins anew.
    pub fn finish(&mut self, files: &Files, privacy: &Privacy) -> (Vec<IoSum>, Vec<FileSum>) {
        let sums = std::mem::take(&mut self.sums).into_iter().map(|(key, sum)| IoSum {
            minute: key.minute,
            process: privacy.process(&key.process),
            file_kind: key.file_kind,
            block_type: key.block_type,
            operation: key.operation,
            sync: key.sync,
            requests: sum.requests,
            moved_bytes: sum.moved_bytes,
            random_requests: sum.random_requests,
            small_requests: sum.small_requests,
        });
        let mut others = std::mem::take(&mut self.others);
        let mut named = Vec::new();
        for (number, written) in std::mem::take(&mut self.files) {
            let bytes: i64 = written.bytes.values().sum();
            let most = written.bytes.into_iter().max_by_key(|(_, bytes)| *bytes);
            let process = most.map(|(name, _)| name).unwrap_or_default();
            let (path, kind) = written
                .gone
                .unwrap_or_else(|| (files.path(number).to_owned(), files.kind(number).to_owned()));
            named.push((Reverse(bytes), path, kind, process));
        }
        named.sort();
        let is_named = |path: &str| privacy.path(path).filter(|_| !path.is_empty());
        let mut rows = Vec::new();
        for (place, (Reverse(bytes), path, kind, process)) in named.into_iter().enumerate() {
            match is_named(&path).filter(|_| place < FILES_NAMED) {
                Some(path) => rows.push(FileSum {
                    path: Some(path),
                    file_kind: kind.into(),
                    process: privacy.process(&process),
                    files: 1,
                    write_bytes: bytes,
                }),
                None => {
                    let other = others.entry((kind, process)).or_default();
                    *other = (other.0 + 1, other.1 + bytes);
                }
            }
        }
        rows.extend(others.into_iter().map(|((kind, process), (files, bytes))| FileSum {
            path: None,
            file_kind: kind.into(),
            process: privacy.process(&process),
            files,
            write_bytes: bytes,
        }));
        self.observed = Observed::default();
        (sums.collect(), rows)
    }
}

fn written_bytes(request: &Request) -> i64 {
    if request.operation == "write" { request.length_bytes } else { 0 }
}

/// The collector's: it submitted the request, or waited for it.
fn is_own(request: &Request, own: &BTreeSet<i64>) -> bool {
    let asker = request.asker_pid.unwrap_or(request.submitter_pid);
    own.contains(&asker)
}

/// Who waited for it; else who is known to write the file; else who submitted it.
fn process(request: &Request, file_id: Option<i64>, files: &Files, writers: &Writers) -> String {
    if let Some(comm) = &request.asker_comm {
        return comm.clone();
    }
    let key = file_id.and_then(|number| files.key(number));
    let writer = key.filter(|_| request.operation == "write").and_then(|key| writers.of(key));
    writer.unwrap_or_else(|| match request.submitter_comm.split_once('/') {
        // Of the kernel's workers there are many, with numbers.
        Some(("kworker", _)) => "kworker".to_owned(),
        _ => request.submitter_comm.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::privacy::PrivacyLevel;
    use super::*;

    fn request(id: i64, operation: &'static str, bytes: i64, pid: i64) -> Request {
        Request {
            request_id: id,
            operation: operation.into(),
            length_bytes: bytes,
            submitter_pid: pid,
            submitter_comm: format!("p{pid}"),
            block_type: "data".into(),
            file_kind: "other".into(),
            one_run: true,
            ..Request::default()
        }
    }

    fn run(id: i64, file_id: i64, bytes: i64) -> PageRun {
        let file_id = Some(file_id);
        let (block_type, file_kind) = ("data".into(), "db".into());
        PageRun {
            request_id: id,
            file_id,
            block_type,
            file_kind,
            length_bytes: bytes,
            ..PageRun::default()
        }
    }

    fn sums(sums: &mut IoSums, rows: FinishedRows) {
        let own = BTreeSet::from([99]);
        sums.take(&rows, &Files::default(), (&own, &Writers::default()), &WallClock::read());
    }

    const PRIVACY: Privacy = Privacy { level: PrivacyLevel::Names, salt: [0; 32] };

    #[test]
    fn bytes_go_by_page_runs_and_requests_by_their_first() {
        let mut all = IoSums::default();
        let requests = vec![
            request(0, "write", 12288, 1),
            request(1, "flush", 0, 1),
            request(2, "write", 4096, 99),
            request(3, "read", 4096, 1),
        ];
        let page_runs = vec![run(0, 0, 8192), run(0, 1, 4096), run(2, 0, 4096), run(3, 0, 4096)];
        sums(&mut all, FinishedRows { requests, page_runs });
        let observed =
            Observed { requests: 3, read_bytes: 4096, write_bytes: 12288, own_write_bytes: 4096 };
        assert_eq!(all.observed, observed);
        let (io, files) = all.finish(&Files::default(), &PRIVACY);
        let write = io.iter().find(|row| row.operation == "write").unwrap();
        assert_eq!((write.requests, write.moved_bytes, write.small_requests), (1, 12288, 0));
        let flush = io.iter().find(|row| row.operation == "flush").unwrap();
        assert_eq!((flush.random_requests, flush.small_requests), (0, 0));
        // Files without a known name are summed.
        assert_eq!(files.iter().map(|row| row.write_bytes).sum::<i64>(), 12288);
        assert_eq!(files.iter().map(|row| row.files).sum::<i64>(), 2);
        assert!(all.finish(&Files::default(), &PRIVACY).0.is_empty());
    }

    #[test]
    fn more_processes_than_there_are_rows_for_are_summed_as_others() {
        let mut all = IoSums::default();
        let count = SUMS_KEPT as i64 + 500;
        let requests = (0..count).map(|id| request(id, "write", 512, id + 1000)).collect();
        sums(&mut all, FinishedRows { requests, page_runs: Vec::new() });
        let (io, _) = all.finish(&Files::default(), &PRIVACY);
        assert_eq!(io.iter().map(|row| row.requests).sum::<i64>(), count);
        assert!(io.len() <= SUMS_KEPT + 1 && io.iter().any(|row| row.process == OTHERS));
    }
}
