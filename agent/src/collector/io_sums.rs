//! Sums of requests by ten minutes, process, kind of file, block type and operation, and of the
//! bytes written to each file. What the collector does itself is counted apart. The number of rows
//! has a bound: beyond it, processes are summed as others.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::clock::WallClock;
use super::lives::{OTHERS, Writers};
use super::privacy::Privacy;
use crate::tables::fleet::{FileSum, IoSum};
use crate::tables::rows::{File, PageRun, Request, Word};
use crate::tracer::{Files, FinishedRows};

const TEN_MINUTES: i64 = 10;
const SMALL_BYTES: i64 = 4096;

/// Rows with the name of a process.
const SUMS_LIMIT: usize = 20_000;
/// Files that are summed one by one, and those of which the segment has the path.
const FILES_LIMIT: usize = 65_536;
const PATHS_LIMIT: usize = 4096;
/// Processes that are told apart of a file.
const WRITERS_LIMIT: usize = 16;

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

/// Holds what was written to a file that the tracer keeps. There may be many, of one process each.
#[derive(Debug, Default)]
struct WrittenFile(Vec<(Box<str>, i64)>);

impl WrittenFile {
    fn add(&mut self, process: &str, bytes: i64) {
        let place = |name: &str| self.0.iter().position(|(known, _)| &**known == name);
        let name = match place(process) {
            None if self.0.len() >= WRITERS_LIMIT => OTHERS,
            _ => process,
        };
        match place(name) {
            Some(place) => self.0[place].1 += bytes,
            None => {
                self.0.reserve_exact(1);
                self.0.push((name.into(), bytes));
            }
        }
    }

    fn into_file(self, path: &str, kind: &str) -> NamedFile {
        let bytes = Reverse(self.0.iter().map(|(_, bytes)| bytes).sum());
        let most =
            self.0.into_iter().max_by(|one, other| (one.1, &one.0).cmp(&(other.1, &other.0)));
        let process = most.map(|(name, _)| name).unwrap_or_default();
        NamedFile { bytes, path: path.into(), kind: kind.into(), process }
    }
}

/// A file to which nothing more is added; in the order of the rows.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct NamedFile {
    bytes: Reverse<i64>,
    path: Box<str>,
    kind: Box<str>,
    process: Box<str>,
}

/// Holds what was observed while a segment is made.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct ObservedIo {
    pub requests: i64,
    pub read_bytes: i64,
    pub write_bytes: i64,
    pub own_write_bytes: i64,
}

/// The sums of one segment.
#[derive(Debug, Default)]
pub struct IoSums {
    pub observed: ObservedIo,
    sums: BTreeMap<SumKey, RequestSum>,
    files: BTreeMap<i64, WrittenFile>,
    /// Files that the tracer has let go: those that may be named.
    gone: Vec<NamedFile>,
    /// Files beyond those that are kept: how many pieces, and bytes, by kind and process.
    others: BTreeMap<(String, String), (i64, i64)>,
}

impl IoSums {
    /// Adds finished requests; `own` are the processes of the collector.
    pub fn add(
        &mut self,
        rows: &FinishedRows,
        files: &Files,
        (own, writers): (&BTreeSet<i64>, &Writers),
        clock: &WallClock,
    ) {
        for (request, of_request) in rows.requests_with_runs() {
            if is_own(request, own) {
                self.observed.own_write_bytes += written_bytes(request);
                continue;
            }
            self.observed.requests += 1;
            self.observed.write_bytes += written_bytes(request);
            if request.operation == "read" {
                self.observed.read_bytes += request.length_bytes;
            }
            self.add_request(request, of_request, files, writers, clock);
        }
    }

    fn add_request(
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
        if self.sums.len() >= SUMS_LIMIT && !self.sums.contains_key(&key) {
            key.process = OTHERS.to_owned();
        }
        self.sums.entry(key).or_default()
    }

    fn wrote(&mut self, file_id: i64, key: &SumKey, bytes: i64) {
        if self.files.len() >= FILES_LIMIT && !self.files.contains_key(&file_id) {
            let other = self.others.entry((key.file_kind.to_string(), OTHERS.to_owned()));
            let other = other.or_default();
            *other = (other.0 + 1, other.1 + bytes);
            return;
        }
        self.files.entry(file_id).or_default().add(&key.process, bytes);
    }

    /// The tracer lets these files go: none of them gets that number again.
    pub fn let_go(&mut self, gone: &[File]) {
        for file in gone {
            let written = self.files.remove(&file.file_id);
            self.gone.extend(written.map(|it| it.into_file(&file.path, &file.file_kind)));
        }
        if self.gone.len() > 2 * PATHS_LIMIT {
            self.gone.sort();
            let rest = self.gone.split_off(PATHS_LIMIT);
            rest.into_iter().for_each(|file| self.sum_other(file));
        }
    }

    fn sum_other(&mut self, file: NamedFile) {
        let other = self.others.entry((file.kind.into(), file.process.into())).or_default();
        *other = (other.0 + 1, other.1 + file.bytes.0);
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
        let mut named = std::mem::take(&mut self.gone);
        for (number, written) in std::mem::take(&mut self.files) {
            named.push(written.into_file(files.path(number), files.kind(number)));
        }
        named.sort();
        let mut rows = Vec::new();
        for (place, file) in named.into_iter().enumerate() {
            let may_be_named = place < PATHS_LIMIT && !file.path.is_empty();
            match privacy.path(&file.path).filter(|_| may_be_named) {
                Some(path) => rows.push(FileSum {
                    path: Some(path),
                    file_kind: String::from(file.kind).into(),
                    process: privacy.process(&file.process),
                    files: 1,
                    write_bytes: file.bytes.0,
                }),
                None => self.sum_other(file),
            }
        }
        let others = std::mem::take(&mut self.others);
        rows.extend(others.into_iter().map(|((kind, process), (files, bytes))| FileSum {
            path: None,
            file_kind: kind.into(),
            process: privacy.process(&process),
            files,
            write_bytes: bytes,
        }));
        self.observed = ObservedIo::default();
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

/// Return the name of the process that waited for it; else of one that is known to write the file;
/// else of the one that submitted it.
fn process(request: &Request, file_id: Option<i64>, files: &Files, writers: &Writers) -> String {
    if let Some(comm) = &request.asker_comm {
        return comm.clone();
    }
    let key = file_id.and_then(|number| files.key(number));
    let writer =
        key.filter(|_| request.operation == "write").and_then(|key| writers.last_writer(key));
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
        sums.add(&rows, &Files::default(), (&own, &Writers::default()), &WallClock::read());
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
            ObservedIo { requests: 3, read_bytes: 4096, write_bytes: 12288, own_write_bytes: 4096 };
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
    fn files_that_were_let_go_are_named_as_if_they_were_kept() {
        let count = 5 * PATHS_LIMIT as i64;
        let mut all = IoSums::default();
        for first in (0..count).step_by(1000) {
            let ids = first..count.min(first + 1000);
            let requests = ids.clone().map(|id| request(id, "write", 512 * (id + 1), id % 2 + 1));
            let page_runs = ids.clone().map(|id| run(id, id, 512 * (id + 1))).collect();
            sums(&mut all, FinishedRows { requests: requests.collect(), page_runs });
            let gone = |file_id: i64| File {
                file_id,
                path: format!("/f{file_id}"),
                file_kind: "db".into(),
                ..File::default()
            };
            all.let_go(&ids.map(gone).collect::<Vec<_>>());
            assert!(all.files.is_empty() && all.gone.len() <= 2 * PATHS_LIMIT);
        }
        let (_, rows) = all.finish(&Files::default(), &PRIVACY);
        let (named, others): (Vec<_>, Vec<_>) =
            rows.into_iter().partition(|row| row.path.is_some());
        let largest = (0..count).rev().take(PATHS_LIMIT).map(|id| Some(format!("/f{id}")));
        assert!(named.iter().map(|row| row.path.clone()).eq(largest));
        assert_eq!(others.len(), 2);
        assert_eq!(others.iter().map(|row| row.files).sum::<i64>(), count - PATHS_LIMIT as i64);
        let written = |rows: &[FileSum]| rows.iter().map(|row| row.write_bytes).sum::<i64>();
        assert_eq!(written(&named) + written(&others), 512 * count * (count + 1) / 2);
    }

    #[test]
    fn a_file_is_its_process_s_that_wrote_most_though_it_has_many() {
        let mut file = WrittenFile::default();
        (0..100).for_each(|number| file.add(&format!("p{number:02}"), 1));
        file.add("p03", 200);
        assert!(file.0.len() <= WRITERS_LIMIT + 1);
        let file = file.into_file("/f", "other");
        assert_eq!((file.bytes.0, &*file.process), (300, "p03"));
    }

    #[test]
    fn more_processes_than_there_are_rows_for_are_summed_as_others() {
        let mut all = IoSums::default();
        let count = SUMS_LIMIT as i64 + 500;
        let requests = (0..count).map(|id| request(id, "write", 512, id + 1000)).collect();
        sums(&mut all, FinishedRows { requests, page_runs: Vec::new() });
        let (io, _) = all.finish(&Files::default(), &PRIVACY);
        assert_eq!(io.iter().map(|row| row.requests).sum::<i64>(), count);
        assert!(io.len() <= SUMS_LIMIT + 1 && io.iter().any(|row| row.process == OTHERS));
    }
}
