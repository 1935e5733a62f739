//! The tables of one capture and its manifest: which tables there are, their files, and what the
//! capture says of itself, key by key. A table that is not there could not be seen; one without
//! rows was looked at, and there was nothing. Requests are placed in the course of the case: each
//! gets its phase and transaction from the timeline and the transactions.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;
use serde_json::{Value, json};

use super::rows::{Counter, File, FlashOperation, PageRun, Request, Table, Transaction};
use super::timeline::Timeline;
use super::write::{ManifestRow, WriteError, write};

/// The rows of each table; None where the capture does not have it. The manifest is always there.
#[derive(Default)]
pub struct Tables<'a> {
    pub requests: Option<&'a [Request]>,
    pub page_runs: Option<&'a [PageRun]>,
    pub flash_operations: Option<&'a [FlashOperation]>,
    pub files: Option<&'a [File]>,
    pub transactions: Option<&'a [Transaction]>,
    pub counters: Option<&'a [Counter]>,
}

impl Tables<'_> {
    /// Names of those that there are, for the manifest to declare.
    pub fn names(&self) -> Vec<&'static str> {
        let Self { requests, page_runs, flash_operations, files, transactions, counters } = self;
        let of_trace = [name(requests), name(page_runs), name(flash_operations), name(files)];
        of_trace.into_iter().chain([name(transactions), name(counters)]).flatten().collect()
    }

    /// Writes them and the manifest's rows to a directory that is there.
    ///
    /// # Errors
    /// With the file's name, when one cannot be written.
    pub fn write(&self, directory: &Path, manifest: &[ManifestRow]) -> Result<(), WriteError> {
        write_if_there(directory, self.requests)?;
        write_if_there(directory, self.page_runs)?;
        write_if_there(directory, self.flash_operations)?;
        write_if_there(directory, self.files)?;
        write_if_there(directory, self.transactions)?;
        write_if_there(directory, self.counters)?;
        write(directory, manifest)
    }
}

fn name<Row: Table>(rows: &Option<&[Row]>) -> Option<&'static str> {
    rows.map(|_| Row::NAME)
}

fn write_if_there<Row: Table>(directory: &Path, rows: Option<&[Row]>) -> Result<(), WriteError> {
    rows.map_or(Ok(()), |rows| write(directory, rows))
}

/// The version of the tables in schema/.
const SCHEMA_VERSION: u32 = 3;

/// The workload and the machine of a capture.
pub struct Origin {
    /// The fields of the case, or the command.
    pub case: Value,
    pub seed: u64,
    /// Holds what the times mean: virtual, guest-wall or wall.
    pub clock: &'static str,
    pub device: Value,
    /// Holds what was found in force: settings of the workload, mounts, queues.
    pub configuration: Value,
}

/// The losses of a tracer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceLoss {
    pub lost_events: u64,
    pub unattributed_bytes: u64,
}

/// Keys and values, in the order in which they were noted.
#[derive(Debug, Clone)]
pub struct Manifest {
    facts: Vec<(&'static str, Value)>,
}

impl Manifest {
    /// Begins with what every capture has, and the kernel that runs.
    pub fn new(origin: Origin) -> Self {
        let Origin { case, seed, clock, device, configuration } = origin;
        let kernel = rustix::system::uname();
        let kernel = json!({
            "release": kernel.release().to_string_lossy(),
            "version": kernel.version().to_string_lossy(),
        });
        let facts = vec![
            ("schema_version", json!(SCHEMA_VERSION)),
            ("case", case),
            ("seed", json!(seed)),
            ("clock", json!(clock)),
            ("kernel", kernel),
            ("device", device),
            ("configuration", configuration),
        ];
        Self { facts }
    }

    /// Adds a fact.
    ///
    /// # Panics
    /// If the key was noted before, or the value is none that JSON has.
    pub fn note(&mut self, key: &'static str, value: impl Serialize) {
        assert!(self.facts.iter().all(|(known, _)| *known != key), "{key} is noted twice");
        self.facts.push((key, json!(value)));
    }

    /// Its rows, with the `tables` that stand beside it, what the tracer lost (nothing is said of
    /// that where there was none), and how the capture ended: without `incomplete_reasons` it is
    /// complete.
    pub fn rows(
        &self,
        tables: &[&str],
        loss: Option<TraceLoss>,
        incomplete_reasons: &[String],
    ) -> Vec<ManifestRow> {
        let mut all = self.clone();
        all.note("tables", [tables, &[ManifestRow::NAME]].concat());
        if let Some(TraceLoss { lost_events, unattributed_bytes }) = loss {
            all.note("lost_events", lost_events);
            all.note("unattributed_bytes", unattributed_bytes);
        }
        all.note("incomplete", !incomplete_reasons.is_empty());
        all.note("incomplete_reasons", incomplete_reasons);
        let entry =
            |(key, value): (&str, Value)| ManifestRow { key: key.into(), value: value.to_string() };
        all.facts.into_iter().map(entry).collect()
    }
}

/// Fills `phase` (by issue time) and `transaction_id` of every request. A request belongs to the
/// transaction that the thread which waited for it, or else the one that submitted it, had open
/// when it was queued; background writeback that merely happens at the same time does not. What an
/// io_uring's worker does is its ring's thread's.
pub fn annotate(requests: &mut [Request], timeline: &Timeline, transactions: &[Transaction]) {
    let mut spans = TransactionSpans::default();
    transactions.iter().for_each(|transaction| spans.add(transaction));
    for request in requests {
        request.phase = timeline.phase_at(request.issue_ns).into();
        request.transaction_id = spans.transaction_of(request);
    }
}

/// The times of the transactions of each thread, by which a request finds its own.
#[derive(Debug, Default)]
pub struct TransactionSpans(BTreeMap<i64, Vec<TransactionSpan>>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TransactionSpan {
    transaction_id: i64,
    begin_ns: i64,
    return_ns: i64,
}

impl TransactionSpans {
    /// Adds a transaction, after all of its thread that began before it.
    pub fn add(&mut self, transaction: &Transaction) {
        let &Transaction { transaction_id, tid, begin_ns, return_ns, .. } = transaction;
        self.0.entry(tid).or_default().push(TransactionSpan {
            transaction_id,
            begin_ns,
            return_ns,
        });
    }

    /// The transaction that the thread which waited for a request, or else the one that submitted
    /// it, had open when it was queued.
    pub fn transaction_of(&self, request: &Request) -> Option<i64> {
        let of = |tid: i64| transaction_at(self.0.get(&tid)?, request.queue_ns);
        let asker_comm = request.asker_comm.as_deref().unwrap_or_default();
        let asker_tid = ring_owner(asker_comm).or(request.asker_tid);
        let submitter_tid = ring_owner(&request.submitter_comm).unwrap_or(request.submitter_tid);
        asker_tid.and_then(of).or_else(|| of(submitter_tid))
    }

    /// Forgets those that returned before a time.
    pub fn forget(&mut self, before_ns: i64) {
        self.0.retain(|_, spans| {
            spans.retain(|span| span.return_ns >= before_ns);
            !spans.is_empty()
        });
    }
}

/// The thread that an io_uring's worker works for: the kernel names it so (`io_wq_worker()` in
/// io_uring/io-wq.c).
pub fn ring_owner(comm: &str) -> Option<i64> {
    comm.strip_prefix("iou-wrk-")?.parse().ok()
}

/// The transaction whose interval holds a time, of one thread's, which are in order. They do not
/// overlap, but for a checkpoint inside the transaction before it: the innermost is meant.
fn transaction_at(spans: &[TransactionSpan], time_ns: i64) -> Option<i64> {
    let after = spans.partition_point(|span| span.begin_ns <= time_ns);
    let begun = spans[..after].iter().rev().take(2);
    let mut holding = begun.filter(|span| time_ns <= span.return_ns);
    holding.next().map(|span| span.transaction_id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::counters::Reading;

    #[test]
    fn the_manifest_declares_the_written_tables() {
        let directory = tempfile::tempdir().unwrap();
        let tables = Tables { transactions: Some(&[]), counters: Some(&[]), ..Tables::default() };
        assert_eq!(tables.names(), ["transactions", "counters"]);
        tables.write(directory.path(), &[ManifestRow::default()]).unwrap();
        let entries = std::fs::read_dir(directory.path()).unwrap();
        let mut files: Vec<_> = entries.map(|it| it.unwrap().file_name()).collect();
        files.sort();
        assert_eq!(files, ["counters.parquet", "manifest.parquet", "transactions.parquet"]);
    }

    fn manifest() -> Manifest {
        let (case, device, configuration) = (json!({"a": 1}), Value::Null, json!({}));
        Manifest::new(Origin { case, seed: 7, clock: "wall", device, configuration })
    }

    fn value<'a>(rows: &'a [ManifestRow], key: &str) -> Option<&'a str> {
        rows.iter().find(|row| row.key == key).map(|row| row.value.as_str())
    }

    #[test]
    fn an_untraced_capture_declares_no_requests_and_counts_none() {
        let rows = manifest().rows(&["transactions"], None, &[]);
        assert_eq!(value(&rows, "tables"), Some("[\"transactions\",\"manifest\"]"));
        assert_eq!(value(&rows, "lost_events"), None);
        assert_eq!(value(&rows, "unattributed_bytes"), None);
        assert_eq!(value(&rows, "incomplete"), Some("false"));
        assert_eq!(value(&rows, "seed"), Some("7"));
    }

    #[test]
    fn a_reason_makes_a_capture_incomplete() {
        let mut manifest = manifest();
        manifest.note("totals", [1, 2]);
        let loss = TraceLoss { lost_events: 3, unattributed_bytes: 0 };
        let rows = manifest.rows(&["requests"], Some(loss), &["3 events were lost".to_owned()]);
        assert_eq!(value(&rows, "lost_events"), Some("3"));
        assert_eq!(value(&rows, "incomplete"), Some("true"));
        assert_eq!(value(&rows, "incomplete_reasons"), Some("[\"3 events were lost\"]"));
        assert_eq!(value(&rows, "totals"), Some("[1,2]"));
    }

    #[test]
    #[should_panic(expected = "seed is noted twice")]
    fn a_key_is_noted_once() {
        manifest().note("seed", 1);
    }

    #[test]
    fn requests_find_their_phase_and_transaction() {
        let mut timeline = Timeline::default();
        timeline.enter("commit", Reading::default(), 100);
        timeline.leave(200, &Reading::default());
        let transaction = |transaction_id, tid, begin_ns, return_ns| Transaction {
            transaction_id,
            tid,
            begin_ns,
            return_ns,
            ..Transaction::default()
        };
        // The second thread's lies over both of the first.
        let transactions =
            [transaction(0, 1, 110, 140), transaction(1, 2, 120, 170), transaction(2, 1, 150, 190)];
        let request = |queue_ns, submitter_tid, asker_tid| Request {
            queue_ns,
            issue_ns: queue_ns + 2,
            submitter_tid,
            asker_tid,
            ..Request::default()
        };
        let mut requests = [
            request(120, 1, None),
            request(145, 1, None),
            request(145, 2, None),
            request(160, 77, Some(1)),
            request(160, 1, Some(2)),
            request(160, 1, Some(78)),
            request(161, 77, None),
            request(161, 77, None),
            request(199, 1, None),
        ];
        requests[6].submitter_comm = "iou-wrk-2".into();
        annotate(&mut requests, &timeline, &transactions);
        let found: Vec<_> = requests.iter().map(|r| (&*r.phase, r.transaction_id)).collect();
        assert_eq!(
            found,
            [
                ("commit", Some(0)),
                ("commit", None),
                ("commit", Some(1)),
                ("commit", Some(2)),
                ("commit", Some(1)),
                ("commit", Some(2)),
                ("commit", Some(1)),
                ("commit", None),
                ("pause", None)
            ]
        );
    }

    #[test]
    fn a_checkpoint_inside_a_commit_has_its_own_requests() {
        let span = |transaction_id, begin_ns, return_ns| TransactionSpan {
            transaction_id,
            begin_ns,
            return_ns,
        };
        let (first, commit, checkpoint) = (span(0, 10, 20), span(1, 30, 90), span(2, 50, 80));
        let of = |time_ns| transaction_at(&[first, commit, checkpoint], time_ns);
        assert_eq!([25, 40, 60, 85, 95].map(of), [None, Some(1), Some(2), Some(1), None]);
    }
}
