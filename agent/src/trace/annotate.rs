//! Puts requests into the case's story: reads the timeline and the transactions; fills in each
//! request's phase and transaction.

use super::rows::{Request, Transaction};
use crate::case::timeline::Timeline;

/// Fills `phase` (by issue time) and `transaction_id` of every request. A request belongs to the
/// transaction it was queued in, if the process that ran the transaction submitted it or waited
/// for it; background writeback that merely happens at the same time does not.
pub fn annotate(
    requests: &mut [Request],
    timeline: &Timeline,
    transactions: &[Transaction],
    workload_pid: i64,
) {
    for request in requests {
        request.phase = timeline.phase_at(request.issue_ns).into();
        let own = request.submitter_pid == workload_pid || request.asker_pid == Some(workload_pid);
        request.transaction_id = transaction_at(transactions, request.queue_ns)
            .filter(|_| own)
            .map(|transaction| transaction.transaction_id);
    }
}

/// The transaction whose interval holds a time; transactions are in order and do not overlap.
fn transaction_at(transactions: &[Transaction], time_ns: i64) -> Option<&Transaction> {
    let after = transactions.partition_point(|transaction| transaction.begin_ns <= time_ns);
    let transaction = &transactions[after.checked_sub(1)?];
    (time_ns <= transaction.return_ns).then_some(transaction)
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
        let transactions = [
            Transaction { begin_ns: 110, return_ns: 140, ..Transaction::default() },
            Transaction {
                transaction_id: 1,
                begin_ns: 150,
                return_ns: 190,
                ..Transaction::default()
            },
        ];
        let request = |queue_ns, submitter_pid, asker_pid| Request {
            queue_ns,
            issue_ns: queue_ns + 2,
            submitter_pid,
            asker_pid,
            ..Request::default()
        };
        let mut requests = [
            request(120, 1, None),
            request(145, 1, None),
            request(160, 77, Some(1)),
            request(161, 77, None),
            request(199, 1, None),
        ];
        annotate(&mut requests, &timeline, &transactions, 1);
        let found: Vec<_> = requests.iter().map(|r| (r.phase.as_str(), r.transaction_id)).collect();
        assert_eq!(
            found,
            [
                ("commit", Some(0)),
                ("commit", None),
                ("commit", Some(1)),
                ("commit", None),
                ("pause", None)
            ]
        );
    }
}
