//! When the power is cut: reads the times of a run's transactions and a seed; produces the moments,
//! and what of the unflushed data survives each. Every other cut comes at any time, the rest in the
//! instant after a transaction has returned, when it must be there and least may be on the flash.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use serde::Serialize;

use crate::record::words;
use crate::tables::rows::Transaction;

words! {
    /// What survives of what was written and neither flushed nor forced: kernel/flash/model/
    /// power_cut.h.
    Survivors { None = "none", Some = "some", All = "all" }
}

/// One moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Instant {
    pub cut_ns: i64,
    /// Whether it is the instant after a transaction returned.
    pub after_return: bool,
    pub survivors: Survivors,
}

/// The time in which the power may be cut.
#[derive(Debug, Clone, Copy)]
pub struct CutSpan {
    begin_ns: i64,
    end_ns: i64,
}

impl CutSpan {
    /// From the first transaction's begin until everything was written back.
    pub fn of(transactions: &[Transaction], end_ns: i64) -> Self {
        let begin_ns = transactions.iter().map(|it| it.begin_ns).min().unwrap_or(end_ns);
        Self { begin_ns, end_ns }
    }
}

/// The moments, in no order; the same for the same seed.
pub fn choose(span: CutSpan, transactions: &[Transaction], count: u64, seed: u64) -> Vec<Instant> {
    let mut random = ChaCha8Rng::seed_from_u64(seed ^ u64::from_le_bytes(*b"powercut"));
    let survivors = [Survivors::None, Survivors::Some, Survivors::All];
    let mut below = |limit: u64| random.next_u64() % limit.max(1);
    // Pairs of one moment of each sort go through the survivors in turn.
    let choose_one = |number: u64| {
        let survivors = survivors[usize::try_from(number / 2 % 3).unwrap_or(0)];
        let after_return = number % 2 == 1 && !transactions.is_empty();
        let cut_ns = if after_return {
            let which = usize::try_from(below(transactions.len() as u64)).unwrap_or(0);
            transactions[which].return_ns
        } else {
            let length = span.end_ns.saturating_sub(span.begin_ns).unsigned_abs();
            span.begin_ns.saturating_add_unsigned(below(length))
        };
        Instant { cut_ns, after_return, survivors }
    };
    (0..count).map(choose_one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transactions() -> Vec<Transaction> {
        let one = |number: i64| Transaction {
            begin_ns: 100 + 10 * number,
            return_ns: 108 + 10 * number,
            ..Transaction::default()
        };
        (0..5_i64).map(one).collect()
    }

    #[test]
    fn the_moments_are_of_both_sorts_within_the_span_and_the_same_again() {
        let all = transactions();
        let span = CutSpan::of(&all, 200);
        let found = choose(span, &all, 60, 7);
        assert_eq!(found, choose(span, &all, 60, 7));
        assert_ne!(found, choose(span, &all, 60, 8));
        assert!(found.iter().all(|it| (100..200).contains(&it.cut_ns)));
        let returns: Vec<i64> = all.iter().map(|it| it.return_ns).collect();
        let after: Vec<&Instant> = found.iter().filter(|it| it.after_return).collect();
        assert_eq!(after.len(), 30);
        assert!(after.iter().all(|it| returns.contains(&it.cut_ns)));
        for survivors in [Survivors::None, Survivors::Some, Survivors::All] {
            let these = found.iter().filter(|it| it.survivors == survivors);
            assert_eq!(these.filter(|it| it.after_return).count(), 10, "{survivors:?}");
        }
    }

    #[test]
    fn a_run_without_transactions_is_cut_at_any_time() {
        let found = choose(CutSpan::of(&[], 50), &[], 4, 1);
        assert!(found.iter().all(|it| it.cut_ns == 50 && !it.after_return));
    }
}
