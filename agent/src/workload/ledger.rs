//! The notes of each thread about its transactions while they run: numbers alone, so that noting
//! costs next to nothing. Rows of the transactions table are made of them afterwards.

use crate::tables::rows::Transaction;

/// The kind of a checkpoint in the transactions table.
pub const CHECKPOINT: &str = "checkpoint";
/// Says what closing and opening a connection again is there: with its checkpoint, where there is a
/// WAL.
pub const REOPENING: &str = "reopening";

/// A transaction of SQLite that changed no database, and one that was rolled back after it began to
/// change one.
pub const READ_ONLY: &str = "read-only";
pub const ROLLBACK: &str = "rollback";

/// Return whether a row is no transaction, but work that transactions leave to be done after them.
fn is_deferred(verb: &str) -> bool {
    [CHECKPOINT, REOPENING].contains(&verb)
}

/// Return whether a row of this kind is a commit, or an operation on files: what a power cut may
/// take.
pub fn is_commit(kind: &str) -> bool {
    !is_deferred(kind) && ![READ_ONLY, ROLLBACK].contains(&kind)
}

/// One transaction or checkpoint.
#[derive(Debug, Clone, Copy)]
pub struct LedgerEntry {
    /// Holds what it did, as in the transactions table.
    pub verb: &'static str,
    pub databases: u16,
    pub sync_calls: u32,
    pub busy_retries: u32,
    pub wal_frames: u32,
    pub begin_ns: i64,
    pub commit_ns: i64,
    pub return_ns: i64,
}

impl LedgerEntry {
    /// Says what stands where nothing has been noted yet; not all zeroes, which the kernel would
    /// lend without any page of ours.
    const NOTHING: Self = Self {
        verb: "nothing",
        databases: 0,
        sync_calls: 0,
        busy_retries: 0,
        wal_frames: 0,
        begin_ns: -1,
        commit_ns: -1,
        return_ns: -1,
    };

    /// One that failed: what it did may be there or not.
    pub fn without_return(begin_ns: i64) -> Self {
        Self { begin_ns, commit_ns: begin_ns, return_ns: i64::MAX, ..Self::NOTHING }
    }

    /// One that begins at a time, commits what it does from then on, and has not waited yet.
    #[inline]
    pub fn begin(verb: &'static str, begin_ns: i64) -> Self {
        Self { verb, begin_ns, commit_ns: begin_ns, return_ns: begin_ns, ..Self::NOTHING }
    }
}

/// One thread's transactions in order: those of the warm-up first. A checkpoint that SQLite made
/// inside a COMMIT stands after it.
#[derive(Debug, Default)]
pub struct Ledger {
    /// The kernel's number of the thread.
    pub tid: i64,
    pub entries: Vec<LedgerEntry>,
    /// The number of entries of the warm-up.
    pub warmup: usize,
}

impl Ledger {
    /// Make room for a thread that will perform so many transactions, where that is known. Their
    /// memory is written to now: a page that is first touched while they run costs a fault of the
    /// time of those that are measured, a tenth of a buffered write of 4 KiB where it was tried.
    pub fn with_room(tid: i64, transactions: u64) -> Self {
        let mut entries = vec![LedgerEntry::NOTHING; usize::try_from(transactions).unwrap_or(0)];
        entries.clear();
        Self { tid, entries, warmup: 0 }
    }

    /// Return when each transaction returned, without checkpoints.
    pub fn returns(&self) -> Vec<i64> {
        let transactions = self.entries.iter().filter(|done| !is_deferred(done.verb));
        transactions.map(|done| done.return_ns).collect()
    }

    /// Transactions in it, warm-up and measured, without checkpoints.
    pub fn transactions(&self) -> u64 {
        self.entries.iter().filter(|done| !is_deferred(done.verb)).count() as u64
    }
}

/// The transactions table: every thread's entries in the order in which they began.
pub fn rows(ledgers: &[Ledger]) -> Vec<Transaction> {
    let mut rows: Vec<Transaction> = Vec::new();
    for (thread, ledger) in (0..).zip(ledgers) {
        rows.extend(ledger.entries.iter().enumerate().map(|(index, done)| Transaction {
            transaction_id: 0,
            thread,
            tid: ledger.tid,
            phase: phase(done.verb, index < ledger.warmup).into(),
            kind: done.verb.into(),
            databases: done.databases.into(),
            begin_ns: done.begin_ns,
            commit_ns: done.commit_ns,
            return_ns: done.return_ns,
            sync_calls: done.sync_calls.into(),
            wal_frames: done.wal_frames.into(),
            busy_retries: done.busy_retries.into(),
        }));
    }
    // Stable: one thread's own stay in order even if the clock stood still.
    rows.sort_by_key(|row| (row.begin_ns, row.thread));
    for (id, row) in (0..).zip(&mut rows) {
        row.transaction_id = id;
    }
    rows
}

fn phase(verb: &'static str, warmup: bool) -> &'static str {
    match verb {
        _ if is_deferred(verb) => "checkpoint",
        _ if warmup => "warm-up",
        READ_ONLY | ROLLBACK => verb,
        _ => "commit",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(verb: &'static str, begin_ns: i64) -> LedgerEntry {
        let (databases, sync_calls, busy_retries, wal_frames) = (1, 2, 3, 4);
        let (commit_ns, return_ns) = (begin_ns + 1, begin_ns + 5);
        LedgerEntry {
            verb,
            databases,
            sync_calls,
            busy_retries,
            wal_frames,
            begin_ns,
            commit_ns,
            return_ns,
        }
    }

    #[test]
    fn rows_are_in_order_of_their_beginning_over_all_threads() {
        let first = vec![entry("insert", 10), entry("insert", 20), entry(READ_ONLY, 40)];
        let second = vec![entry(ROLLBACK, 10), entry("insert", 15), entry(CHECKPOINT, 30)];
        let ledgers = [
            Ledger { tid: 70, entries: first, warmup: 1 },
            Ledger { tid: 71, entries: second, warmup: 1 },
        ];
        assert_eq!(ledgers[1].transactions(), 2);
        let found: Vec<_> = rows(&ledgers)
            .into_iter()
            .map(|row| (row.transaction_id, row.thread, row.tid, row.begin_ns, row.phase))
            .collect();
        let wanted = [
            (0, 0, 70, 10, "warm-up"),
            (1, 1, 71, 10, "warm-up"),
            (2, 1, 71, 15, "commit"),
            (3, 0, 70, 20, "commit"),
            (4, 1, 71, 30, "checkpoint"),
            (5, 0, 70, 40, "read-only"),
        ];
        assert_eq!(found, wanted.map(|(id, n, tid, ns, phase)| (id, n, tid, ns, phase.into())));
    }
}
