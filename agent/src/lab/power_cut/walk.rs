//! Goes through the moments of a run in order, and says what the disks hold if the power is cut
//! there: reads what was written, keeps what is durable by then.

use super::choice::{Choice, OpenPieces, StateKind, UncertainRequest};
use super::contents::{DiskContents, Replaced, WHOLE};
use super::written::{WrittenRequest, WrittenRun};

/// Where it is.
pub struct Walk<'a> {
    written: &'a WrittenRun,
    at_ns: i64,
    /// Requests that were issued by now: the first ones.
    issued: usize,
    /// Of them, the first that is not durable.
    solid: usize,
    /// What is there of the requests before that one.
    contents: DiskContents,
}

impl<'a> Walk<'a> {
    /// Before everything.
    pub fn new(written: &'a WrittenRun) -> Self {
        let contents = DiskContents::before(written);
        Self { written, at_ns: i64::MIN, issued: 0, solid: 0, contents }
    }

    /// Goes to a moment, not before the present one.
    pub fn go_to(&mut self, at_ns: i64) {
        debug_assert!(at_ns >= self.at_ns);
        let requests = &self.written.requests;
        self.at_ns = at_ns;
        while requests.get(self.issued).is_some_and(|next| next.issue_ns <= at_ns) {
            self.issued += 1;
        }
        while self.solid < self.issued && requests[self.solid].durable_ns <= at_ns {
            for place in requests[self.solid].pieces.clone() {
                self.contents.put(self.written, place, WHOLE);
            }
            self.solid += 1;
        }
    }

    /// The requests that changed something and are not durable.
    fn open(&self) -> Vec<UncertainRequest> {
        let some = &self.written.requests[self.solid..self.issued];
        let open = some.iter().filter(|it| it.durable_ns > self.at_ns && !it.pieces.is_empty());
        let described = |request: &WrittenRequest| UncertainRequest {
            piece_count: request.pieces.len(),
            is_under_way: request.completion_ns > self.at_ns,
        };
        open.map(described).collect()
    }

    /// Whether a cut could take anything.
    pub fn is_open(&self) -> bool {
        !self.open().is_empty()
    }

    /// The choice, as a subset where nothing is under way that could be torn.
    pub fn fitted(&self, choice: Choice) -> Choice {
        let may_tear = self.open().iter().any(|request| request.is_under_way);
        match choice.kind {
            StateKind::Torn if !may_tear => Choice { kind: StateKind::Subset, ..choice },
            _ => choice,
        }
    }

    /// The hash of what a cut leaves now.
    pub fn hash(&mut self, choice: Choice) -> u64 {
        let replaced = self.apply(choice);
        let hash = self.contents.hash;
        replaced.iter().rev().for_each(|one| self.contents.take_back(one));
        hash
    }

    /// What a cut leaves now.
    pub fn contents(&mut self, choice: Choice) -> DiskContents {
        let replaced = self.apply(choice);
        let contents = self.contents.clone();
        replaced.iter().rev().for_each(|one| self.contents.take_back(one));
        contents
    }

    fn apply(&mut self, choice: Choice) -> Vec<Replaced> {
        let open = self.open();
        let mut survivors = choice.survivors(OpenPieces(&open)).into_iter();
        let mut replaced = Vec::new();
        for request in &self.written.requests[self.solid..self.issued] {
            let is_open = request.durable_ns > self.at_ns;
            for place in request.pieces.clone() {
                let sectors = if is_open { survivors.next().unwrap_or(0) } else { WHOLE };
                if sectors != 0 {
                    replaced.push(self.contents.put(self.written, place, sectors));
                }
            }
        }
        replaced
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::written::tests::written;
    use super::*;

    /// Slot 1 is written, flushed, written again and again; slot 2 once.
    fn run() -> WrittenRun {
        written(&[
            (Some(1), 10, 20, 5),
            (None, 30, 40, 0),
            (Some(1), 50, 60, 6),
            (Some(2), 55, 65, 7),
            (Some(1), 70, 80, 8),
        ])
    }

    fn slots(at_ns: i64, choice: Choice) -> Vec<u32> {
        let written = run();
        let mut walk = Walk::new(&written);
        walk.go_to(at_ns);
        walk.contents(choice).slots.iter().map(|sectors| sectors[0]).collect()
    }

    #[test]
    fn what_is_durable_stays_and_what_was_not_issued_is_never_there() {
        assert_eq!(slots(9, Choice::ALL), [0, 0]);
        assert_eq!(slots(25, Choice::NONE), [0, 0]);
        assert_eq!(slots(25, Choice::ALL), [1, 0]);
        assert_eq!(slots(40, Choice::NONE), [1, 0]);
        assert_eq!(slots(70, Choice::NONE), [1, 0]);
        assert_eq!(slots(70, Choice::ALL), [4, 3]);
        assert_eq!(slots(57, Choice::ALL), [2, 3]);
    }

    proptest! {
        /// Any subset may survive, and of the survivors of a slot the last one shows.
        #[test]
        fn hash_and_contents_agree_and_leave_the_walk_as_it_was(seed in any::<u64>()) {
            let written = run();
            let mut walk = Walk::new(&written);
            walk.go_to(90);
            let before = walk.contents.hash;
            let choice = Choice { kind: StateKind::Subset, seed };
            let hash = walk.hash(choice);
            let contents = walk.contents(choice);
            prop_assert_eq!(hash, contents.hash);
            prop_assert_eq!(walk.contents.hash, before);
            prop_assert!([1, 2, 4].contains(&contents.slots[0][0]));
            prop_assert!([0, 3].contains(&contents.slots[1][0]));
        }
    }
}
