//! A power cut as a workload sees it: how many operations had returned and had begun by then, and
//! what it then finds of them.

use serde::Serialize;

use crate::record::words;
use crate::tables::rows::Transaction;

/// A moment of a run at which the power was cut.
#[derive(Debug, Clone, Copy)]
pub struct Cut<'a> {
    /// Without checkpoints and reopenings, which put nothing into the files.
    pub transactions: &'a [Transaction],
    pub at_ns: i64,
}

/// Operations that had returned by a moment, and those that had begun: no fewer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    pub returned: u64,
    pub begun: u64,
}

impl Cut<'_> {
    /// Of all threads together.
    pub fn progress(&self) -> Progress {
        self.progress_of(|_| true)
    }

    /// Of one thread.
    pub fn progress_of_thread(&self, thread: i64) -> Progress {
        self.progress_of(|transaction| transaction.thread == thread)
    }

    fn progress_of(&self, is_counted: impl Fn(&Transaction) -> bool) -> Progress {
        let counted = |at_ns: fn(&Transaction) -> i64| {
            let all = self.transactions.iter();
            all.filter(|it| is_counted(it) && at_ns(it) <= self.at_ns).count() as u64
        };
        Progress { returned: counted(|it| it.return_ns), begun: counted(|it| it.begin_ns) }
    }
}

words! {
    /// The worse, the later.
    CutOutcome {
        Kept = "kept", Lost = "lost", Torn = "torn", Corrupt = "corrupt",
        Unmountable = "unmountable",
    }
}

/// What is there after a power cut, and what of it shows that.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Survival {
    pub outcome: CutOutcome,
    /// Transactions that each database holds; none where it holds what no number of them gives.
    /// Empty where the workload is not SQLite's.
    pub found: Vec<Option<u64>>,
    /// Acknowledged transactions that are gone: the last ones of SQLite's; of files' the records
    /// and names that are not as the last of them left them. 0 where that cannot be told.
    pub lost: u64,
    /// What SQLite or the kernel said; empty where what is there is sound.
    pub message: String,
}

impl Survival {
    /// Nothing of it can be told, for the reason that the kernel or SQLite gave.
    pub fn untold(outcome: CutOutcome, message: String) -> Self {
        Self { outcome, found: Vec::new(), lost: 0, message }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_counts_from_its_begin_and_its_return_on() {
        let one = |number: i64| Transaction {
            thread: number % 2,
            begin_ns: 100 + 10 * number,
            return_ns: 108 + 10 * number,
            ..Transaction::default()
        };
        let transactions: Vec<Transaction> = (0..5_i64).map(one).collect();
        let progress = |at_ns| {
            let Progress { returned, begun } =
                Cut { transactions: &transactions, at_ns }.progress();
            (returned, begun)
        };
        assert_eq!(progress(99), (0, 0));
        assert_eq!(progress(110), (1, 2));
        assert_eq!(progress(118), (2, 2));
        let cut = Cut { transactions: &transactions, at_ns: 118 };
        assert_eq!(cut.progress_of_thread(1), Progress { returned: 1, begun: 1 });
    }
}
