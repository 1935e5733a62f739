//! Commits that wait for their bill: the requests that their sync calls waited for, which are
//! finished some time after the commit. A request belongs to a commit by the thread that waited for
//! it and by the begin of its call.

use std::collections::{BTreeMap, VecDeque};

use super::clock::WallClock;
use super::lives::process_name;
use super::privacy::Privacy;
use crate::commits::unit_of_work::DetectedTransaction;
use crate::tables::fleet::Commit;
use crate::tables::rows::{PageRun, Request};
use crate::tracer::FinishedRows;

/// Rows of requests come so long after their end at most, unless their completion was not seen.
const LATE_NS: i64 = 5_000_000_000;

/// Parts of bills, and commits, that are kept: memory has a bound.
const PARTS_LIMIT: usize = 65_536;
const COMMITS_LIMIT: usize = 32_768;

/// The longest JSON list of databases.
const LIST_BYTES: usize = 65_536;

/// The sums of the requests of one sync call.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct BillPart {
    requests: i64,
    database_bytes: i64,
    journal_bytes: i64,
    filesystem_bytes: i64,
    flushes: i64,
}

/// A commit, with the paths of its databases.
#[derive(Debug)]
struct Waiting {
    transaction: DetectedTransaction,
    databases: Vec<String>,
    end_unix_ns: i64,
}

/// Bills that wait for their requests, across segments.
#[derive(Debug, Default)]
pub struct Bills {
    /// The bills under way, by the thread that waits and the time at which its call began.
    parts: BTreeMap<(i64, i64), BillPart>,
    waiting: VecDeque<Waiting>,
    /// No part is missing of calls that began then or later.
    complete_from_ns: i64,
    /// Commits that were not kept.
    pub dropped: i64,
}

impl Bills {
    /// Adds the requests that somebody waits for by a call.
    pub fn add_requests(&mut self, rows: &FinishedRows) {
        for (request, of_request) in rows.requests_with_runs() {
            let asker = request.asker_tid.zip(request.asker_begin_ns);
            let Some(asker) = asker.filter(|_| request.operation != "read") else { continue };
            if self.parts.len() >= PARTS_LIMIT && !self.parts.contains_key(&asker) {
                self.complete_from_ns = self.complete_from_ns.max(asker.1 + 1);
                continue;
            }
            self.parts.entry(asker).or_default().add(request, of_request);
        }
    }

    /// A commit was made; its databases are `databases`.
    pub fn add(
        &mut self,
        transaction: DetectedTransaction,
        databases: Vec<String>,
        clock: &WallClock,
    ) {
        if self.waiting.len() >= COMMITS_LIMIT {
            self.dropped += 1;
            return;
        }
        let end_unix_ns = clock.unix_ns(transaction.row.return_ns);
        self.waiting.push_back(Waiting { transaction, databases, end_unix_ns });
    }

    /// Commits whose requests are all there, as of now.
    pub fn finish(&mut self, now_ns: i64, is_exact: bool, privacy: &Privacy) -> Vec<Commit> {
        let rows = self.settle(now_ns - LATE_NS, is_exact, privacy);
        let oldest_ns = self.waiting.front().map_or(now_ns, |it| it.transaction.row.begin_ns);
        let from_ns = oldest_ns.min(now_ns - LATE_NS) - LATE_NS;
        self.parts.retain(|(_, begin_ns), _| *begin_ns >= from_ns);
        self.complete_from_ns = self.complete_from_ns.max(from_ns);
        rows
    }

    /// All of them.
    pub fn finish_all(&mut self, is_exact: bool, privacy: &Privacy) -> Vec<Commit> {
        self.settle(i64::MAX, is_exact, privacy)
    }

    fn settle(&mut self, before_ns: i64, is_exact: bool, privacy: &Privacy) -> Vec<Commit> {
        let mut rows = Vec::new();
        while self.waiting.front().is_some_and(|it| it.transaction.row.return_ns < before_ns) {
            let next = self.waiting.pop_front().expect("there is one");
            let part = self.part(&next.transaction);
            rows.push(row(next, part.filter(|_| is_exact), privacy));
        }
        rows
    }

    /// Return what its thread waited for; None where it waited and no request is known, or not all
    /// are.
    fn part(&self, transaction: &DetectedTransaction) -> Option<BillPart> {
        let (tid, row) = (transaction.row.tid, &transaction.row);
        if row.sync_calls > 0 && row.commit_ns < self.complete_from_ns {
            return None;
        }
        let parts = self.parts.range((tid, row.begin_ns)..=(tid, row.return_ns));
        let mut sum = BillPart::default();
        parts.for_each(|(_, part)| sum.join(part));
        (row.sync_calls == 0 || sum.requests > 0).then_some(sum)
    }
}

impl BillPart {
    fn add(&mut self, request: &Request, runs: &[PageRun]) {
        self.requests += 1;
        self.flushes += i64::from(request.operation == "flush" || request.preflush);
        if request.operation != "write" {
            return;
        }
        let mut moved =
            |block_type: &str, file_kind: &str, bytes: i64| match (block_type, file_kind) {
                ("data", "db") => self.database_bytes += bytes,
                ("data", "db-journal" | "wal" | "super-journal") => self.journal_bytes += bytes,
                _ => self.filesystem_bytes += bytes,
            };
        if runs.is_empty() {
            moved(&request.block_type, &request.file_kind, request.length_bytes);
        }
        runs.iter().for_each(|run| moved(&run.block_type, &run.file_kind, run.length_bytes));
    }

    fn join(&mut self, other: &BillPart) {
        self.requests += other.requests;
        self.database_bytes += other.database_bytes;
        self.journal_bytes += other.journal_bytes;
        self.filesystem_bytes += other.filesystem_bytes;
        self.flushes += other.flushes;
    }
}

fn row(waiting: Waiting, part: Option<BillPart>, privacy: &Privacy) -> Commit {
    let Waiting { transaction, databases, end_unix_ns } = waiting;
    let several = transaction.super_journal.is_some();
    let names: Option<Vec<String>> = databases.iter().map(|path| privacy.path(path)).collect();
    let first = names.as_ref().and_then(|names| names.first().cloned()).unwrap_or_default();
    let list = names.filter(|_| several).map(|mut names| {
        let json = |names: &[String]| serde_json::to_string(names).expect("strings are JSON");
        while json(&names).len() > LIST_BYTES {
            names.pop();
        }
        json(&names)
    });
    Commit {
        end_unix_ns,
        duration_ns: transaction.row.return_ns - transaction.row.commit_ns,
        process: privacy.process(&process_name(&transaction.caller)),
        kind: transaction.row.kind.into(),
        journal_mode: if transaction.journal_mode.is_empty() {
            "wal"
        } else {
            transaction.journal_mode
        }
        .into(),
        database: first,
        super_journal: transaction.super_journal.map(|path| privacy.super_journal(&path)),
        databases: list,
        database_count: transaction.row.databases,
        sync_call: transaction.sync_call.name().into(),
        sync_calls: transaction.row.sync_calls,
        written_bytes: transaction.written_bytes as i64,
        requests: part.map(|it| it.requests),
        database_bytes: part.map(|it| it.database_bytes),
        journal_bytes: part.map(|it| it.journal_bytes),
        filesystem_bytes: part.map(|it| it.filesystem_bytes),
        flushes: part.map(|it| it.flushes),
    }
}

#[cfg(test)]
mod tests {
    use super::super::privacy::PrivacyLevel;
    use super::*;

    const PRIVACY: Privacy = Privacy { level: PrivacyLevel::Names, salt: [0; 32] };

    fn transaction(begin_ns: i64, return_ns: i64) -> DetectedTransaction {
        let mut transaction =
            DetectedTransaction { journal_mode: "delete", ..DetectedTransaction::default() };
        (transaction.row.tid, transaction.row.begin_ns, transaction.row.return_ns) =
            (7, begin_ns, return_ns);
        transaction.row.commit_ns = begin_ns;
        (transaction.row.sync_calls, transaction.row.kind) = (1, "commit".into());
        transaction
    }

    fn request(id: i64, begin_ns: i64, kind: &'static str, bytes: i64) -> Request {
        Request {
            request_id: id,
            operation: if bytes > 0 { "write" } else { "flush" }.into(),
            length_bytes: bytes,
            block_type: "data".into(),
            file_kind: kind.into(),
            asker_tid: Some(7),
            asker_begin_ns: Some(begin_ns),
            ..Request::default()
        }
    }

    #[test]
    fn a_bill_has_the_requests_of_the_calls_within_the_commit() {
        let mut bills = Bills::default();
        let clock = WallClock::read();
        bills.add(transaction(100, 200), vec!["/a.db".into()], &clock);
        bills.add(transaction(300, 400), vec!["/a.db".into()], &clock);
        let requests = vec![
            request(0, 110, "db-journal", 512),
            request(1, 150, "db", 4096),
            request(2, 150, "other", 1024),
            request(3, 150, "none", 0),
            request(4, 250, "db", 9999),
        ];
        bills.add_requests(&FinishedRows { requests, page_runs: Vec::new() });
        assert!(bills.finish(LATE_NS + 100, true, &PRIVACY).is_empty());
        let rows = bills.finish_all(true, &PRIVACY);
        let bill = |row: &Commit| {
            (row.requests, row.database_bytes, row.journal_bytes, row.filesystem_bytes, row.flushes)
        };
        assert_eq!(bill(&rows[0]), (Some(4), Some(4096), Some(512), Some(1024), Some(1)));
        assert_eq!(bill(&rows[1]), (None, None, None, None, None));
        assert_eq!((&*rows[0].database, &rows[0].databases), ("/a.db", &None));
    }

    #[test]
    fn a_commit_of_which_requests_were_forgotten_has_no_bill() {
        let mut bills = Bills::default();
        let rows = |bills: &mut Bills, begin_ns: i64, asked_ns: i64| {
            let requests = vec![request(0, asked_ns, "db", 4096)];
            bills.add_requests(&FinishedRows { requests, page_runs: Vec::new() });
            bills.add(transaction(begin_ns, asked_ns), vec!["/a.db".into()], &WallClock::read());
            bills.finish_all(true, &PRIVACY).remove(0).requests
        };
        // What was asked for just now is kept though a segment ends.
        bills.add_requests(&FinishedRows {
            requests: vec![request(0, 900, "db", 512)],
            page_runs: vec![],
        });
        assert!(bills.finish_all(true, &PRIVACY).is_empty());
        assert_eq!(rows(&mut bills, 800, 1000), Some(2));
        let late_ns = 3 * LATE_NS;
        assert!(bills.finish(late_ns, true, &PRIVACY).is_empty());
        assert_eq!(rows(&mut bills, 1100, late_ns), None);
        assert_eq!(rows(&mut bills, late_ns - 1, late_ns), Some(2));
        let calls = 0..=PARTS_LIMIT as i64;
        let requests = calls.map(|number| request(number, late_ns + 1 + number, "db", 512));
        bills.add_requests(&FinishedRows { requests: requests.collect(), page_runs: Vec::new() });
        assert_eq!(rows(&mut bills, late_ns + 2, late_ns + 3), None);
    }
}
