//! How much there is to do, and each thread's share of it.

use std::time::Duration;

/// How much is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// That many transactions, over all threads.
    Count(u64),
    /// Until the first transaction of each thread that returns after this time in the phase.
    Time(Duration),
}

impl Length {
    /// Of a case's fields, of which the other is 0.
    fn new(transactions: u64, duration_ms: u64) -> Self {
        match duration_ms {
            0 => Self::Count(transactions),
            milliseconds => Self::Time(Duration::from_millis(milliseconds)),
        }
    }
}

/// How much there is to do, over all threads.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    pub warmup: u64,
    pub measured: Length,
}

impl Plan {
    /// Of a case's fields, of whose last two one is 0.
    pub fn new(warmup_transactions: u64, transactions: u64, duration_ms: u64) -> Self {
        Self { warmup: warmup_transactions, measured: Length::new(transactions, duration_ms) }
    }

    /// One thread's part of it: counts are shared out evenly, the first threads get the rest.
    pub fn share(self, thread: u64, threads: u64) -> Self {
        let share = |total: u64| total / threads + u64::from(thread < total % threads);
        let measured = match self.measured {
            Length::Count(count) => Length::Count(share(count)),
            time @ Length::Time(_) => time,
        };
        Self { warmup: share(self.warmup), measured }
    }

    /// Transactions in it, warm-up and measured; none where a time decides.
    pub fn count(self) -> Option<u64> {
        match self.measured {
            Length::Count(count) => Some(self.warmup + count),
            Length::Time(_) => None,
        }
    }
}
