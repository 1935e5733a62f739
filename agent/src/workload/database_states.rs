//! What a database holds after each of the transactions that change it, as digests; and what a
//! power cut left of databases, by the digests that are found in them then.

use super::power_cut::{CutOutcome, Progress, Survival};
use crate::sqlite::contents::ContentsDigest;

/// The digests of one database after 0, 1, 2 ... transactions, in the order in which they
/// committed.
#[derive(Debug, Clone, Default)]
pub struct DatabaseStates(pub Vec<ContentsDigest>);

impl DatabaseStates {
    /// The numbers of transactions, `most` at most, after which it held that.
    fn places(&self, found: ContentsDigest, most: u64) -> Vec<u64> {
        let all = (0..).zip(&self.0).take_while(|(number, _)| *number <= most);
        all.filter(|(_, digest)| **digest == found).map(|(number, _)| number).collect()
    }

    /// Whether a transaction, of which the first is number 1, changed it.
    fn is_changed_by(&self, number: u64) -> bool {
        let at = |number: u64| usize::try_from(number).ok().and_then(|at| self.0.get(at));
        number > 0 && at(number) != at(number - 1)
    }
}

/// What databases show that have all their transactions in common, each found with a digest.
pub fn survival(
    found: &[(&DatabaseStates, ContentsDigest)],
    Progress { returned, begun }: Progress,
) -> Survival {
    let places: Vec<Vec<u64>> =
        found.iter().map(|(states, digest)| states.places(*digest, begun)).collect();
    let found_last = places.iter().map(|places| places.last().copied()).collect::<Vec<_>>();
    let told = |outcome, lost, message: &str| Survival {
        outcome,
        found: found_last.clone(),
        lost,
        message: message.to_owned(),
    };
    if found_last.contains(&None) {
        let message = "sound for SQLite, but with rows that were never there together";
        return told(CutOutcome::Corrupt, 0, message);
    }
    let Some((first, others)) = places.split_first() else {
        return told(CutOutcome::Kept, 0, "");
    };
    let common = |place: &&u64| others.iter().all(|other| other.contains(place));
    let Some(&place) = first.iter().rev().find(common) else {
        return told(CutOutcome::Torn, 0, "");
    };
    let changes = |number: &u64| found.iter().any(|(states, _)| states.is_changed_by(*number));
    match (place + 1..=returned).filter(changes).count() as u64 {
        0 => told(CutOutcome::Kept, 0, ""),
        lost => told(CutOutcome::Lost, lost, ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of databases that hold 0, 10, 20 ... after 0, 1, 2 ... transactions.
    fn of(found: &[ContentsDigest], returned: u64) -> (CutOutcome, u64, Vec<Option<u64>>) {
        let states = DatabaseStates((0..20).map(|number| number * 10).collect());
        let found: Vec<_> = found.iter().map(|digest| (&states, *digest)).collect();
        let found = survival(&found, Progress { returned, begun: returned + 1 });
        (found.outcome, found.lost, found.found)
    }

    #[test]
    fn the_transaction_under_way_may_be_there_and_an_acknowledged_one_must() {
        assert_eq!(of(&[50], 5), (CutOutcome::Kept, 0, vec![Some(5)]));
        assert_eq!(of(&[60], 5), (CutOutcome::Kept, 0, vec![Some(6)]));
        assert_eq!(of(&[40], 7), (CutOutcome::Lost, 3, vec![Some(4)]));
        assert_eq!(of(&[70], 5), (CutOutcome::Corrupt, 0, vec![None]));
    }

    #[test]
    fn databases_that_disagree_are_torn_and_strange_rows_are_corrupt() {
        assert_eq!(of(&[50, 50], 5).0, CutOutcome::Kept);
        assert_eq!(of(&[50, 60], 5).0, CutOutcome::Torn);
        assert_eq!(of(&[50, 55], 5).0, CutOutcome::Corrupt);
    }

    #[test]
    fn what_a_transaction_left_as_it_was_tells_nothing() {
        let (one, other) =
            (DatabaseStates(vec![0, 1, 1, 1, 4]), DatabaseStates(vec![0, 0, 2, 2, 2]));
        let of = |found: (u64, u64), returned| {
            let found = [(&one, found.0), (&other, found.1)];
            let found = survival(&found, Progress { returned, begun: 4 });
            (found.outcome, found.lost)
        };
        // The third changed nothing: whoever reads cannot miss it.
        assert_eq!(of((1, 2), 3), (CutOutcome::Kept, 0));
        assert_eq!(of((1, 0), 3), (CutOutcome::Lost, 1));
        assert_eq!(of((0, 0), 4), (CutOutcome::Lost, 3));
        assert_eq!(of((4, 0), 4).0, CutOutcome::Torn);
    }
}
