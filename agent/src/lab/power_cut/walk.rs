//! Goes through the moments of a run in order, and says what the disks hold if the power is cut
//! there: what is durable by then, and of the rest a choice of pieces that survive: a draw, or all,
//! or none.

use std::ops::Range;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use serde::{Deserialize, Serialize};

use super::writes::{DiskContents, ReplacedContent, WHOLE, WrittenRequest, WrittenRun};
use crate::device::flash::SECTORS;
use crate::record::words;

words! {
    /// The ways in which a state is chosen.
    StateKind {
        BoundaryNone = "boundary-none", BoundaryAll = "boundary-all", DropOne = "drop-one",
        Prefix = "prefix", Subset = "subset", Torn = "torn", Second = "second",
    }
}

impl StateKind {
    /// Return whether it is all or nothing of what was not durable.
    pub fn is_boundary(self) -> bool {
        matches!(self, Self::BoundaryNone | Self::BoundaryAll)
    }
}

/// The choice of the pieces that survive; the same for the same seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    pub kind: StateKind,
    pub seed: u64,
}

/// A request that is not durable at a moment.
#[derive(Debug, Clone, Copy)]
pub struct UncertainRequest {
    pub piece_count: usize,
    /// The most slots of its disk of which the cut may leave some sectors and take others; none
    /// where it keeps slots whole.
    pub torn_slots_max: usize,
}

/// The pieces that are not durable at a moment.
#[derive(Debug, Clone, Copy)]
pub struct OpenPieces<'a>(pub &'a [UncertainRequest]);

impl OpenPieces<'_> {
    fn pieces(&self) -> usize {
        self.0.iter().map(|request| request.piece_count).sum()
    }

    /// Return the places of the pieces of one request.
    fn places(&self, number: usize) -> Range<usize> {
        let begin = OpenPieces(&self.0[..number]).pieces();
        begin..begin + self.0[number].piece_count
    }

    /// Return the places of the pieces that may be torn.
    fn tearable(&self) -> Vec<usize> {
        let requests = (0..self.0.len()).filter(|number| self.0[*number].torn_slots_max > 0);
        requests.flat_map(|number| self.places(number)).collect()
    }

    /// Return how many of them one cut may tear.
    fn torn_slots_max(&self) -> usize {
        self.0.iter().map(|request| request.torn_slots_max).max().unwrap_or(0)
    }
}

impl Choice {
    pub const NONE: Self = Self { kind: StateKind::BoundaryNone, seed: 0 };
    pub const ALL: Self = Self { kind: StateKind::BoundaryAll, seed: 0 };

    /// Draw one of the kinds that are no boundaries.
    pub fn draw(random: &mut ChaCha8Rng) -> Self {
        let kind = match random.next_u64() % 10 {
            0..3 => StateKind::DropOne,
            3..5 => StateKind::Prefix,
            5 => StateKind::Torn,
            _ => StateKind::Subset,
        };
        Self { kind, seed: random.next_u64() }
    }

    /// Return the surviving sectors of each open piece, in order: bit n is sector n.
    pub fn survivors(self, open: OpenPieces) -> Vec<u8> {
        let mut random = ChaCha8Rng::seed_from_u64(self.seed);
        let mut below = |limit: usize| {
            usize::try_from(random.next_u64() % limit.max(1) as u64).expect("below a usize")
        };
        let count = open.pieces();
        match self.kind {
            StateKind::BoundaryNone | StateKind::Second => vec![0; count],
            StateKind::BoundaryAll => vec![WHOLE; count],
            StateKind::DropOne => {
                let mut kept = vec![WHOLE; count];
                if below(2) == 0 && !open.0.is_empty() {
                    kept[open.places(below(open.0.len()))].fill(0);
                } else if count > 0 {
                    kept[below(count)] = 0;
                }
                kept
            }
            StateKind::Prefix => {
                let length = below(count + 1);
                (0..count).map(|place| if place < length { WHOLE } else { 0 }).collect()
            }
            StateKind::Subset | StateKind::Torn => {
                // Few, half and most survive equally often.
                let share = 1 + below(7);
                let mut survivors: Vec<u8> =
                    (0..count).map(|_| if below(8) < share { WHOLE } else { 0 }).collect();
                let mut whole = match self.kind {
                    StateKind::Torn => open.tearable(),
                    _ => Vec::new(),
                };
                let most = open.torn_slots_max().min(whole.len());
                let count = if most > 1 { 1 + below(most) } else { most };
                for _ in 0..count {
                    let place = whole.swap_remove(below(whole.len()));
                    // What is programmed in order leaves a beginning.
                    let sectors = match below(2) {
                        0 => (1 << (1 + below(SECTORS - 1))) - 1,
                        _ => 1 + below((1 << SECTORS) - 2),
                    };
                    survivors[place] = u8::try_from(sectors).expect("a byte");
                }
                survivors
            }
        }
    }
}

/// The disks at one moment of the run: what is durable, and what is open.
pub struct Walk<'a> {
    written: &'a WrittenRun,
    at_ns: i64,
    /// Requests that were issued by now: the first ones.
    issued: usize,
    /// The first request that is not durable.
    first_volatile: usize,
    /// Holds what the disks hold of the requests before that one.
    contents: DiskContents,
}

impl<'a> Walk<'a> {
    /// Begin before everything.
    pub fn new(written: &'a WrittenRun) -> Self {
        let contents = DiskContents::before(written);
        Self { written, at_ns: i64::MIN, issued: 0, first_volatile: 0, contents }
    }

    /// Goes to a moment, not before the present one.
    pub fn go_to(&mut self, at_ns: i64) {
        debug_assert!(at_ns >= self.at_ns);
        let requests = &self.written.requests;
        self.at_ns = at_ns;
        while requests.get(self.issued).is_some_and(|next| next.issue_ns <= at_ns) {
            self.issued += 1;
        }
        while self.first_volatile < self.issued && requests[self.first_volatile].durable_ns <= at_ns
        {
            for place in requests[self.first_volatile].pieces.clone() {
                self.contents.put(self.written, place, WHOLE);
            }
            self.first_volatile += 1;
        }
    }

    /// The requests that changed something and are not durable.
    fn open(&self) -> Vec<UncertainRequest> {
        let some = &self.written.requests[self.first_volatile..self.issued];
        let open = some.iter().filter(|it| it.durable_ns > self.at_ns && !it.pieces.is_empty());
        let described = |request: &WrittenRequest| UncertainRequest {
            piece_count: request.pieces.len(),
            torn_slots_max: request.torn_slots_max,
        };
        open.map(described).collect()
    }

    /// Return whether a cut could take anything.
    pub fn is_open(&self) -> bool {
        !self.open().is_empty()
    }

    /// Return the choice, as a subset where it tears nothing: where nothing may be torn, or where
    /// what it leaves is the same with all of any torn slot's sectors or with none.
    pub fn without_impossible_tear(&mut self, choice: Choice) -> Choice {
        if choice.kind != StateKind::Torn {
            return choice;
        }
        let torn = self.survivors(choice);
        let hash = self.hash_of(&torn);
        let mixed = (0..torn.len()).filter(|place| ![0, WHOLE].contains(&torn[*place]));
        let is_torn = mixed.collect::<Vec<usize>>().into_iter().any(|place| {
            [0, WHOLE].into_iter().all(|sectors| {
                let mut untorn = torn.clone();
                untorn[place] = sectors;
                self.hash_of(&untorn) != hash
            })
        });
        if is_torn { choice } else { Choice { kind: StateKind::Subset, ..choice } }
    }

    /// Return the surviving sectors of each open piece now.
    pub fn survivors(&self, choice: Choice) -> Vec<u8> {
        choice.survivors(OpenPieces(&self.open()))
    }

    /// Return the places of the open pieces in `WrittenRun::pieces`, with the issue of each.
    pub fn open_pieces(&self) -> Vec<(usize, i64)> {
        let some = &self.written.requests[self.first_volatile..self.issued];
        let open = some.iter().filter(|it| it.durable_ns > self.at_ns);
        open.flat_map(|it| it.pieces.clone().map(|place| (place, it.issue_ns))).collect()
    }

    /// The hash of what a cut leaves now.
    pub fn hash(&mut self, choice: Choice) -> u64 {
        self.hash_of(&self.survivors(choice))
    }

    fn hash_of(&mut self, survivors: &[u8]) -> u64 {
        let replaced = self.apply(survivors);
        let hash = self.contents.hash;
        replaced.iter().rev().for_each(|one| self.contents.take_back(one));
        hash
    }

    /// Return what a cut leaves now.
    pub fn contents(&mut self, choice: Choice) -> DiskContents {
        self.contents_with(&self.survivors(choice))
    }

    /// Return what a cut leaves now that has these sectors of each open piece survive.
    pub fn contents_with(&mut self, survivors: &[u8]) -> DiskContents {
        let replaced = self.apply(survivors);
        let contents = self.contents.clone();
        replaced.iter().rev().for_each(|one| self.contents.take_back(one));
        contents
    }

    /// Puts what survives of each open piece into the contents.
    fn apply(&mut self, survivors: &[u8]) -> Vec<ReplacedContent> {
        let mut survivors = survivors.iter().copied();
        let mut replaced = Vec::new();
        for request in &self.written.requests[self.first_volatile..self.issued] {
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
    use super::*;
    use crate::lab::power_cut::writes::DurabilityModel;
    use crate::lab::power_cut::writes::tests::{CACHED, record_of, written};
    use proptest::prelude::*;
    use std::collections::{BTreeSet, HashSet};

    const REQUESTS: [UncertainRequest; 3] = [
        UncertainRequest { piece_count: 1, torn_slots_max: 0 },
        UncertainRequest { piece_count: 4, torn_slots_max: 0 },
        UncertainRequest { piece_count: 2, torn_slots_max: 1 },
    ];
    const OPEN: OpenPieces = OpenPieces(&REQUESTS);

    fn survivors(kind: StateKind, seed: u64) -> Vec<u8> {
        Choice { kind, seed }.survivors(OPEN)
    }

    #[test]
    fn all_none_and_a_fresh_draw_for_each_seed() {
        assert_eq!(Choice::ALL.survivors(OPEN), [WHOLE; 7]);
        assert_eq!(Choice::NONE.survivors(OPEN), [0; 7]);
        let subsets: HashSet<_> = (0..400).map(|seed| survivors(StateKind::Subset, seed)).collect();
        assert!(subsets.len() > 100, "{}", subsets.len());
        assert_eq!(survivors(StateKind::Subset, 3), survivors(StateKind::Subset, 3));
    }

    proptest! {
        #[test]
        fn each_kind_is_what_its_word_says(seed in any::<u64>()) {
            let dropped = survivors(StateKind::DropOne, seed).iter().filter(|it| **it == 0).count();
            prop_assert!([1, 2, 4].contains(&dropped));
            let prefix = survivors(StateKind::Prefix, seed);
            prop_assert!(prefix.is_sorted_by(|one, next| one >= next));
            let torn = survivors(StateKind::Torn, seed);
            let is_torn = |sectors: &u8| ![0, WHOLE].contains(sectors);
            prop_assert_eq!(torn.iter().filter(|it| is_torn(it)).count(), 1);
            prop_assert!(torn[5..].iter().any(is_torn), "only what may be torn");
            let subset = survivors(StateKind::Subset, seed);
            prop_assert!(subset.iter().all(|it| [0, WHOLE].contains(it)));
        }

        #[test]
        fn nothing_open_leaves_nothing_to_choose(seed in any::<u64>()) {
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            let choice = Choice::draw(&mut random);
            prop_assert!(choice.survivors(OpenPieces(&[])).is_empty());
        }
    }

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
    fn durable_writes_stay_and_unissued_ones_are_never_there() {
        assert_eq!(slots(9, Choice::ALL), [0, 0]);
        assert_eq!(slots(25, Choice::NONE), [0, 0]);
        assert_eq!(slots(25, Choice::ALL), [1, 0]);
        assert_eq!(slots(40, Choice::NONE), [1, 0]);
        assert_eq!(slots(70, Choice::NONE), [1, 0]);
        assert_eq!(slots(70, Choice::ALL), [4, 3]);
        assert_eq!(slots(57, Choice::ALL), [2, 3]);
    }

    #[test]
    fn several_slots_are_torn_where_the_device_may_and_half_of_them_are_beginnings() {
        let requests = [UncertainRequest { piece_count: 9, torn_slots_max: 3 }];
        let mut counts = [0; 4];
        let (mut beginnings, mut all) = (0, 0);
        for seed in 0..600 {
            let choice = Choice { kind: StateKind::Torn, seed };
            let survivors = choice.survivors(OpenPieces(&requests));
            let torn: Vec<u8> =
                survivors.into_iter().filter(|it| ![0, WHOLE].contains(it)).collect();
            counts[torn.len()] += 1;
            all += torn.len();
            beginnings += torn.iter().filter(|it| (**it + 1).is_power_of_two()).count();
        }
        assert!(counts[0] == 0 && counts[1..].iter().all(|count| *count > 150), "{counts:?}");
        assert!((45..62).contains(&(beginnings * 100 / all)), "{beginnings} of {all}");
    }

    /// Slots that torn draws at a moment leave mixed, and of which pieces; 0 is what was before.
    fn torn(written: &WrittenRun, at_ns: i64) -> BTreeSet<(usize, BTreeSet<u32>)> {
        let mut walk = Walk::new(written);
        walk.go_to(at_ns);
        let mut found = BTreeSet::new();
        for seed in 0..200 {
            let choice = walk.without_impossible_tear(Choice { kind: StateKind::Torn, seed });
            let slots = walk.contents(choice).slots;
            let mixed = slots.iter().map(|sectors| sectors.iter().copied().collect());
            let mixed: Vec<BTreeSet<u32>> = mixed.collect();
            let count = mixed.iter().filter(|contents| contents.len() > 1).count();
            assert_eq!(count, usize::from(choice.kind == StateKind::Torn), "{choice:?}");
            found.extend(mixed.into_iter().enumerate().filter(|(_, contents)| contents.len() > 1));
        }
        found
    }

    #[test]
    fn a_completed_write_in_a_volatile_cache_is_torn_until_a_flush() {
        let set = |of: &[u32]| of.iter().copied().collect::<BTreeSet<u32>>();
        // At 90 all has completed, and the flush at 30 covered the first write alone.
        let found = torn(&run(), 90);
        assert!(found.contains(&(0, set(&[1, 2]))) && found.contains(&(1, set(&[0, 3]))));
        // At 25 it had completed, and nothing had flushed it; from 40 on it is durable.
        assert_eq!(torn(&run(), 25), BTreeSet::from([(0, set(&[0, 1]))]));
        assert_eq!(torn(&run(), 45), BTreeSet::new());
    }

    #[test]
    fn a_write_that_is_durable_at_completion_is_torn_under_way_alone() {
        let direct = DurabilityModel { is_volatile: false, ..CACHED };
        let run = WrittenRun::from_records(vec![record_of(direct, &[(Some(1), 10, 20, 5)])]);
        assert_eq!(torn(&run, 15).len(), 1);
        assert_eq!(torn(&run, 20), BTreeSet::new());
    }

    #[test]
    fn a_disk_that_keeps_slots_whole_is_not_torn_beside_one_that_does_not() {
        let whole = DurabilityModel { torn_bytes: 4096, ..CACHED };
        let run = WrittenRun::from_records(
            [whole, CACHED].map(|promise| record_of(promise, &[(Some(1), 10, 20, 5)])).into(),
        );
        let of_second = BTreeSet::from([(1, BTreeSet::from([0, 2]))]);
        for at_ns in [15, 25] {
            assert_eq!(torn(&run, at_ns), of_second, "{at_ns}");
        }
    }

    #[test]
    fn a_write_that_changes_one_sector_is_not_torn() {
        let mut run = run();
        for piece in &mut run.pieces {
            piece.sectors = 1 << 3;
        }
        let mut walk = Walk::new(&run);
        walk.go_to(90);
        for seed in 0..200 {
            let choice = Choice { kind: StateKind::Torn, seed };
            assert_eq!(walk.without_impossible_tear(choice).kind, StateKind::Subset);
        }
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
