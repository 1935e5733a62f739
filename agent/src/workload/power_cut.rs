//! The remains of a workload after a power cut, of databases too: which transactions had returned,
//! and which are there.

use serde::Serialize;

use super::ledger::is_commit;
use crate::record::words;
use crate::sqlite::contents::ContentsDigest;
use crate::tables::rows::Transaction;

/// A moment of a run at which the power was cut.
#[derive(Debug, Clone, Copy)]
pub struct CutMoment<'a> {
    /// Without what puts nothing into the files: checkpoints and reopenings, transactions that read
    /// and those that were rolled back.
    pub transactions: &'a [Transaction],
    pub at_ns: i64,
}

/// Operations that had returned by a moment, and those that had begun: no fewer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    pub returned: u64,
    pub begun: u64,
}

impl CutMoment<'_> {
    /// Return the progress of one thread.
    pub fn progress_of_thread(&self, thread: i64) -> Progress {
        let counted = |at_ns: fn(&Transaction) -> i64| {
            let own = self.transactions.iter().filter(|it| it.thread == thread);
            own.filter(|it| at_ns(it) <= self.at_ns).count() as u64
        };
        Progress { returned: counted(|it| it.return_ns), begun: counted(|it| it.begin_ns) }
    }
}

impl Progress {
    /// Count transactions on the same databases in the order in which they committed, by when each
    /// did and when it returned: one that has returned has those before it in the same file, and
    /// none is there before its COMMIT.
    pub fn from_sharers(times: impl IntoIterator<Item = (i64, i64)>, at_ns: i64) -> Self {
        let mut progress = Self { returned: 0, begun: 0 };
        for ((commit_ns, return_ns), number) in times.into_iter().zip(1..) {
            if commit_ns <= at_ns {
                progress.begun = number;
            }
            if return_ns <= at_ns {
                progress.returned = number;
            }
        }
        progress
    }
}

/// The transactions of some threads as they committed. Each had the write lock
/// of its databases before its COMMIT began, and kept it until that was done: so they committed in
/// the order of these begins.
pub fn in_commit_order(
    transactions: &[Transaction],
    is_meant: impl Fn(u64) -> bool,
) -> Vec<&Transaction> {
    let is_meant = |it: &&Transaction| is_commit(&it.kind) && is_meant(it.thread.cast_unsigned());
    let mut all: Vec<&Transaction> = transactions.iter().filter(is_meant).collect();
    all.sort_by_key(|it| it.commit_ns);
    all
}

words! {
    /// The worse, the later.
    CutOutcome {
        Kept = "kept", Lost = "lost", Torn = "torn", Corrupt = "corrupt",
        Unmountable = "unmountable",
    }
}

/// The remains after a power cut, and what shows them.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct CutFindings {
    pub outcome: CutOutcome,
    /// Transactions that each database holds; none where it holds what no number of them gives.
    /// Empty where the workload is not SQLite's.
    pub found: Vec<Option<u64>>,
    /// Acknowledged transactions that are gone: the last ones of SQLite's; of files' the records
    /// and names that are not as the last of them left them. 0 where that cannot be told.
    pub lost: u64,
    /// Holds what SQLite or the kernel said; empty where what is there is sound.
    pub message: String,
}

impl CutFindings {
    /// Nothing of it can be told, for the reason that the kernel or SQLite gave.
    pub fn without_states(outcome: CutOutcome, message: String) -> Self {
        Self { outcome, found: Vec::new(), lost: 0, message }
    }

    /// Nothing was there that could be lost.
    pub fn without_harm() -> Self {
        Self::without_states(CutOutcome::Kept, String::new())
    }
}

words! {
    /// The errors that come in the place of a power cut.
    FaultKind { SyncError = "sync-error", NoSpace = "no-space" }
}

/// The course of a program, or of SQLite's transactions, beneath which a fault was planted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FaultFindings {
    pub kind: FaultKind,
    /// The time at which a call of the program first returned it, or the sync without; none where
    /// nothing failed.
    pub at_ns: Option<i64>,
    /// The error that the sync returned; 0: none.
    pub errno: Option<i32>,
    /// The room that was free when the program began.
    pub free_bytes: Option<u64>,
    /// The end, in words, and the last line that the program printed, or SQLite's last error.
    pub ended: String,
    pub last_line: String,
    /// Lines that it acknowledged, or commits that returned, until the fault, and in all.
    pub acknowledged_before: usize,
    pub acknowledged: usize,
}

/// The findings of several parts are as bad as the worst.
impl FromIterator<CutFindings> for CutFindings {
    fn from_iter<Parts: IntoIterator<Item = Self>>(parts: Parts) -> Self {
        parts.into_iter().fold(Self::without_harm(), |mut all, part| {
            if (part.outcome as u8) > (all.outcome as u8) || all.message.is_empty() {
                all.message = part.message;
            }
            if (part.outcome as u8) > (all.outcome as u8) {
                all.outcome = part.outcome;
            }
            all.found.extend(part.found);
            all.lost += part.lost;
            all
        })
    }
}

/// The digests of one database after 0, 1, 2 ... transactions, in the order in which they
/// committed.
#[derive(Debug, Clone, Default)]
pub struct DatabaseStates {
    pub digests: Vec<ContentsDigest>,
    /// After so many of them and one more, whose COMMIT failed: it may be there or not. The same
    /// ones, in the same order, of each database that they changed.
    pub with_failed: Vec<(u64, ContentsDigest)>,
}

/// A number of transactions, and which that failed is there too: counted from 1; 0: none.
type HistoryPlace = (u64, u64);

impl DatabaseStates {
    /// The places, of `most` transactions at most, at which it held that.
    fn places(&self, found: ContentsDigest, most: u64) -> Vec<HistoryPlace> {
        let without = (0..).zip(&self.digests).map(|(number, digest)| ((number, 0), *digest));
        let failed = (1..).zip(&self.with_failed);
        let with = failed.map(|(failed, (number, digest))| ((*number, failed), *digest));
        let all = without.chain(with).filter(|((number, _), _)| *number <= most);
        let mut places: Vec<_> = all.filter(|(_, it)| *it == found).map(|(it, _)| it).collect();
        places.sort_unstable();
        places
    }

    /// Return whether a transaction, of which the first is number 1, changed it.
    fn is_changed_by(&self, number: u64) -> bool {
        let at = |number: u64| usize::try_from(number).ok().and_then(|at| self.digests.get(at));
        number > 0 && at(number) != at(number - 1)
    }
}

/// Judge databases that have all their transactions in common, each found with a digest.
pub fn judge_databases(
    found: &[(&DatabaseStates, ContentsDigest)],
    Progress { returned, begun }: Progress,
) -> CutFindings {
    let places: Vec<Vec<HistoryPlace>> =
        found.iter().map(|(states, digest)| states.places(*digest, begun)).collect();
    let found_last =
        places.iter().map(|places| places.last().map(|(number, _)| *number)).collect::<Vec<_>>();
    let findings = |outcome, lost, message: &str| CutFindings {
        outcome,
        found: found_last.clone(),
        lost,
        message: message.to_owned(),
    };
    if found_last.contains(&None) {
        let message = "sound for SQLite, but with rows that were never there together";
        return findings(CutOutcome::Corrupt, 0, message);
    }
    let Some((first, others)) = places.split_first() else {
        return findings(CutOutcome::Kept, 0, "");
    };
    let common = |place: &&HistoryPlace| others.iter().all(|other| other.contains(place));
    let Some(&(place, _)) = first.iter().rev().find(common) else {
        return findings(CutOutcome::Torn, 0, "");
    };
    let changes = |number: &u64| found.iter().any(|(states, _)| states.is_changed_by(*number));
    match (place + 1..=returned).filter(changes).count() as u64 {
        0 => findings(CutOutcome::Kept, 0, ""),
        lost => findings(CutOutcome::Lost, lost, ""),
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
        let progress = |thread, at_ns| {
            let cut = CutMoment { transactions: &transactions, at_ns };
            let Progress { returned, begun } = cut.progress_of_thread(thread);
            (returned, begun)
        };
        assert_eq!((progress(0, 99), progress(1, 99)), ((0, 0), (0, 0)));
        assert_eq!((progress(0, 110), progress(1, 110)), ((1, 1), (0, 1)));
        assert_eq!((progress(0, 118), progress(1, 118)), ((1, 1), (1, 1)));
        assert_eq!(progress(0, 120), (1, 2));
    }

    #[test]
    fn a_transaction_that_returned_has_those_that_committed_before_it() {
        let one = |thread, begin_ns, commit_ns, return_ns| Transaction {
            thread,
            begin_ns,
            commit_ns,
            return_ns,
            ..Transaction::default()
        };
        // Thread 1 waits for the lock from 11 on, and is told late that it has committed.
        let all = [one(0, 10, 15, 20), one(1, 11, 25, 50), one(0, 21, 30, 40), one(7, 12, 13, 14)];
        let progress = |at_ns| {
            let order = in_commit_order(&all, |thread| thread < 2);
            let times = order.iter().map(|it| (it.commit_ns, it.return_ns));
            let Progress { returned, begun } = Progress::from_sharers(times, at_ns);
            (returned, begun)
        };
        assert_eq!(progress(14), (0, 0));
        assert_eq!(progress(22), (1, 1));
        assert_eq!(progress(30), (1, 3));
        assert_eq!(progress(40), (3, 3));
    }

    #[test]
    fn the_whole_is_as_bad_as_its_worst_part() {
        let part = |outcome, lost, message: &str| CutFindings {
            outcome,
            lost,
            found: vec![Some(lost)],
            message: message.into(),
        };
        let parts = [
            part(CutOutcome::Lost, 2, "old"),
            part(CutOutcome::Corrupt, 0, "damage"),
            part(CutOutcome::Lost, 3, "older"),
        ];
        let all: CutFindings = parts.into_iter().collect();
        let found = vec![Some(2), Some(0), Some(3)];
        let message = "damage".to_owned();
        assert_eq!(all, CutFindings { outcome: CutOutcome::Corrupt, lost: 5, found, message });
    }

    /// The outcome of databases that hold 0, 10, 20 ... after 0, 1, 2 ... transactions.
    fn outcome_of(found: &[ContentsDigest], returned: u64) -> (CutOutcome, u64, Vec<Option<u64>>) {
        let states = DatabaseStates {
            digests: (0..20).map(|number| number * 10).collect(),
            with_failed: vec![(5, 53), (5, 57)],
        };
        let found: Vec<_> = found.iter().map(|digest| (&states, *digest)).collect();
        let found = judge_databases(&found, Progress { returned, begun: returned + 1 });
        (found.outcome, found.lost, found.found)
    }

    #[test]
    fn the_transaction_under_way_may_be_there_and_an_acknowledged_one_must() {
        assert_eq!(outcome_of(&[50], 5), (CutOutcome::Kept, 0, vec![Some(5)]));
        assert_eq!(outcome_of(&[60], 5), (CutOutcome::Kept, 0, vec![Some(6)]));
        assert_eq!(outcome_of(&[40], 7), (CutOutcome::Lost, 3, vec![Some(4)]));
        assert_eq!(outcome_of(&[70], 5), (CutOutcome::Corrupt, 0, vec![None]));
    }

    #[test]
    fn one_whose_commit_failed_may_be_there_until_the_next_one_has_returned() {
        assert_eq!(outcome_of(&[53], 5), (CutOutcome::Kept, 0, vec![Some(5)]));
        assert_eq!(outcome_of(&[53], 4), (CutOutcome::Kept, 0, vec![Some(5)]));
        assert_eq!(outcome_of(&[53], 6), (CutOutcome::Lost, 1, vec![Some(5)]));
        assert_eq!(outcome_of(&[53], 3).0, CutOutcome::Corrupt);
        // The same one in each database, or in none.
        assert_eq!(outcome_of(&[57, 57], 5).0, CutOutcome::Kept);
        assert_eq!(outcome_of(&[53, 50], 5).0, CutOutcome::Torn);
        assert_eq!(outcome_of(&[53, 57], 5).0, CutOutcome::Torn);
    }

    #[test]
    fn databases_that_disagree_are_torn_and_strange_rows_are_corrupt() {
        assert_eq!(outcome_of(&[50, 50], 5).0, CutOutcome::Kept);
        assert_eq!(outcome_of(&[50, 60], 5).0, CutOutcome::Torn);
        assert_eq!(outcome_of(&[50, 55], 5).0, CutOutcome::Corrupt);
    }

    #[test]
    fn a_transaction_that_changed_nothing_is_not_missed() {
        let states = |digests| DatabaseStates { digests, ..DatabaseStates::default() };
        let (one, other) = (states(vec![0, 1, 1, 1, 4]), states(vec![0, 0, 2, 2, 2]));
        let measured = |found: (u64, u64), returned| {
            let found = [(&one, found.0), (&other, found.1)];
            let found = judge_databases(&found, Progress { returned, begun: 4 });
            (found.outcome, found.lost)
        };
        // The third changed nothing: whoever reads cannot miss it.
        assert_eq!(measured((1, 2), 3), (CutOutcome::Kept, 0));
        assert_eq!(measured((1, 0), 3), (CutOutcome::Lost, 1));
        assert_eq!(measured((0, 0), 4), (CutOutcome::Lost, 3));
        assert_eq!(measured((4, 0), 4).0, CutOutcome::Torn);
    }
}
