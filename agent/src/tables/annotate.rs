//! Places requests in the course of the case: reads the timeline and the transactions; fills in
//! each request's phase and transaction.

use std::collections::BTreeMap;

use super::rows::{Request, Transaction};
use crate::tables::timeline::Timeline;

/// Fills `phase` (by issue time) and `transaction_id` of every request. A request belongs to the
/// transaction that the thread which waited for it, or else the one that submitted it, had open
/// when it was queued; background writeback that merely happens at the same time does not. What an
/// io_uring's worker does is its ring's thread's.
pub fn annotate(requests: &mut [Request], timeline: &Timeline, transactions: &[Transaction]) {
    let mut threads: BTreeMap<i64, Vec<&Transaction>> = BTreeMap::new();
    for transaction in transactions {
        threads.entry(transaction.tid).or_default().push(transaction);
    }
    for request in requests {
        request.phase = timeline.phase_at(request.issue_ns).into();
        let of = |tid: i64| transaction_at(threads.get(&tid)?, request.queue_ns);
        let asker_comm = request.asker_comm.as_deref().unwrap_or_default();
        let asker_tid = ring_owner(asker_comm).or(request.asker_tid);
        let submitter_tid = ring_owner(&request.submitter_comm).unwrap_or(request.submitter_tid);
        request.transaction_id = asker_tid.and_then(of).or_else(|| of(submitter_tid));
    }
}

/// The thread that an io_uring's worker works for: the kernel names it so (`io_wq_worker()` in
/// io_uring/io-wq.c).
pub fn ring_owner(comm: &str) -> Option<i64> {
    comm.strip_prefix("iou-wrk-")?.parse().ok()
}

/// The transaction whose interval holds a time, of one thread's, which are in order. They do not
/// overlap, but for a checkpoint inside the transaction before it: the innermost is meant.
fn transaction_at(transactions: &[&Transaction], time_ns: i64) -> Option<i64> {
    let after = transactions.partition_point(|transaction| transaction.begin_ns <= time_ns);
    let begun = transactions[..after].iter().rev().take(2);
    let mut holding = begun.filter(|transaction| time_ns <= transaction.return_ns);
    holding.next().map(|transaction| transaction.transaction_id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::counters::Reading;

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
        let found: Vec<_> = requests.iter().map(|r| (r.phase.as_str(), r.transaction_id)).collect();
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
        let transaction = |transaction_id, begin_ns, return_ns| Transaction {
            transaction_id,
            tid: 1,
            begin_ns,
            return_ns,
            ..Transaction::default()
        };
        let (first, commit, checkpoint) =
            (transaction(0, 10, 20), transaction(1, 30, 90), transaction(2, 50, 80));
        let of = |time_ns| transaction_at(&[&first, &commit, &checkpoint], time_ns);
        assert_eq!([25, 40, 60, 85, 95].map(of), [None, Some(1), Some(2), Some(1), None]);
    }
}
