//! Goes through the moments of a run in order, and says what the disks hold if the power is cut
//! there: what is durable by then, and of the rest a choice of pieces that survive: a draw, or all,
//! or none. Of a device whose mapping a cut may leave stale, a draw may take what was durable too.

use std::collections::BTreeSet;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

use super::choice::{Choice, OpenPieces, StateKind, UncertainRequest};
use super::writes::{DiskContents, ReplacedContent, WHOLE, WrittenRequest, WrittenRun};

/// The disks at one moment of the run: what is durable, and what is open.
pub struct Walk<'a> {
    written: &'a WrittenRun,
    at_ns: i64,
    /// Requests that were issued by now: the first ones.
    issued: usize,
    /// The first request that some cut may take.
    first_unsafe: usize,
    /// Holds what the disks hold of the requests before that one.
    contents: DiskContents,
}

impl<'a> Walk<'a> {
    /// Begin before everything.
    pub fn new(written: &'a WrittenRun) -> Self {
        let contents = DiskContents::before(written);
        Self { written, at_ns: i64::MIN, issued: 0, first_unsafe: 0, contents }
    }

    /// Goes to a moment, not before the present one.
    pub fn go_to(&mut self, at_ns: i64) {
        debug_assert!(at_ns >= self.at_ns);
        let requests = &self.written.requests;
        self.at_ns = at_ns;
        while requests.get(self.issued).is_some_and(|next| next.issue_ns <= at_ns) {
            self.issued += 1;
        }
        while self.first_unsafe < self.issued && requests[self.first_unsafe].safe_ns <= at_ns {
            for place in requests[self.first_unsafe].pieces.clone() {
                self.contents.put(self.written, place, WHOLE);
            }
            self.first_unsafe += 1;
        }
    }

    /// Return the requests that were issued and of which some cut may take something, and others.
    fn unsafe_requests(&self) -> &'a [WrittenRequest] {
        &self.written.requests[self.first_unsafe..self.issued]
    }

    /// Return whether a cut now takes what it will of a request.
    fn is_open(&self, request: &WrittenRequest) -> bool {
        request.durable_ns > self.at_ns && !(request.is_move && request.completion_ns > self.at_ns)
    }

    /// Return whether a cut now takes something of a request, if only by a stale mapping.
    fn may_lose(&self, request: &WrittenRequest) -> bool {
        request.safe_ns > self.at_ns && (self.is_open(request) || request.durable_ns <= self.at_ns)
    }

    /// The requests that changed something and are not durable.
    fn open(&self) -> Vec<UncertainRequest> {
        let some = self.unsafe_requests().iter();
        let open = some.filter(|it| self.is_open(it) && !it.pieces.is_empty());
        let described = |request: &WrittenRequest| UncertainRequest {
            piece_count: request.pieces.len(),
            torn_slots_max: request.torn_slots_max,
        };
        open.map(described).collect()
    }

    /// Return whether a cut could take anything.
    pub fn has_open(&self) -> bool {
        !self.open().is_empty()
    }

    /// Return the choice as this moment allows it. One that tears is a subset where it tears
    /// nothing: where nothing may be torn, or where what it leaves is the same with all of any torn
    /// slot's sectors or with none. Half of the subsets, and of those that drop one, leave a part
    /// of the mapping stale instead, where a cut now may.
    pub fn possible(&mut self, choice: Choice) -> Choice {
        let may_be_stale = matches!(choice.kind, StateKind::Subset | StateKind::DropOne);
        if may_be_stale && choice.seed.is_multiple_of(2) && !self.stale_parts().is_empty() {
            return Choice { kind: StateKind::StaleMapping, ..choice };
        }
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

    /// Return the parts of the mapping that are being programmed now, and of which durable pieces
    /// could be taken back, in order: the disk, and the number there.
    fn stale_parts(&self) -> Vec<(usize, u64)> {
        let requests = self.unsafe_requests().iter();
        let flushes = requests.clone().filter(|it| it.is_mapping_flush);
        let under_way: BTreeSet<(usize, i64)> = flushes
            .filter(|it| it.completion_ns > self.at_ns)
            .map(|it| (it.disk, it.completion_ns))
            .collect();
        let parts = |is_in: &dyn Fn(&WrittenRequest) -> bool| -> BTreeSet<(usize, u64)> {
            let requests = requests.clone().filter(|request| is_in(request));
            requests.flat_map(|it| it.pieces.clone()).map(|place| self.part(place)).collect()
        };
        let programmed = parts(&|it| under_way.contains(&(it.disk, it.durable_ns)));
        let durable = parts(&|it| it.durable_ns <= self.at_ns && it.safe_ns > self.at_ns);
        programmed.intersection(&durable).copied().collect()
    }

    /// Return the part of the mapping that a piece is in.
    fn part(&self, place: usize) -> (usize, u64) {
        self.written.slots[self.written.pieces[place].slot].mapping_part()
    }

    /// Takes from the survivors of each piece that a cut now may lose what a stale part of the
    /// mapping does not have: what was written there since a flush before, which is drawn.
    fn take_stale(&self, seed: u64, survivors: &mut [u8]) {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut below = |limit: usize| {
            usize::try_from(random.next_u64() % limit as u64).expect("below a usize")
        };
        let parts = self.stale_parts();
        let Some(&part) = parts.get(below(parts.len().max(1))) else { return };
        let requests = self.unsafe_requests().iter().filter(|it| self.may_lose(it));
        let pieces = requests.flat_map(|it| it.pieces.clone().map(move |place| (place, it)));
        let pieces: Vec<_> =
            pieces.zip(survivors).filter(|((at, _), _)| self.part(*at) == part).collect();
        // The flushes that made something there durable: the first that is taken back is drawn.
        let since: BTreeSet<usize> = pieces
            .iter()
            .filter(|((_, request), _)| request.durable_ns <= self.at_ns)
            .map(|((_, request), _)| request.flushes)
            .collect();
        let Some(&first) = since.iter().nth(below(since.len().max(1))) else { return };
        for ((_, request), survivors) in pieces {
            if request.flushes >= first && !request.is_move {
                *survivors = 0;
            }
        }
    }

    /// Return the surviving sectors of each piece that a cut now may lose.
    pub fn survivors(&self, choice: Choice) -> Vec<u8> {
        let mut open = choice.survivors(OpenPieces(&self.open())).into_iter();
        let mut survivors = Vec::new();
        for request in self.unsafe_requests().iter().filter(|it| self.may_lose(it)) {
            let is_open = self.is_open(request);
            let next = |_| if is_open { open.next().unwrap_or(0) } else { WHOLE };
            survivors.extend(request.pieces.clone().map(next));
        }
        if choice.kind == StateKind::StaleMapping {
            self.take_stale(choice.seed, &mut survivors);
        }
        self.take_whole(&mut survivors);
        survivors
    }

    /// Takes from the survivors the rest of each request that a cut leaves whole or not at all, and
    /// of which it took something.
    pub fn take_whole(&self, mut survivors: &mut [u8]) {
        for request in self.unsafe_requests().iter().filter(|it| self.may_lose(it)) {
            let (own, rest) = survivors.split_at_mut(request.pieces.len());
            if request.is_whole && own.iter().any(|sectors| *sectors != WHOLE) {
                own.fill(0);
            }
            survivors = rest;
        }
    }

    /// Return the places in `WrittenRun::pieces` of those that a cut now may lose, with the issue
    /// of each.
    pub fn unsafe_pieces(&self) -> Vec<(usize, i64)> {
        let requests = self.unsafe_requests().iter().filter(|it| self.may_lose(it));
        requests.flat_map(|it| it.pieces.clone().map(|place| (place, it.issue_ns))).collect()
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

    /// Return what a cut leaves now that has these sectors survive of each piece that it may lose.
    pub fn contents_with(&mut self, survivors: &[u8]) -> DiskContents {
        let replaced = self.apply(survivors);
        let contents = self.contents.clone();
        replaced.iter().rev().for_each(|one| self.contents.take_back(one));
        contents
    }

    /// Puts what survives of each piece into the contents.
    fn apply(&mut self, survivors: &[u8]) -> Vec<ReplacedContent> {
        let mut survivors = survivors.iter().copied();
        let mut replaced = Vec::new();
        for request in self.unsafe_requests() {
            let may_lose = self.may_lose(request);
            for place in request.pieces.clone() {
                let sectors = if may_lose { survivors.next().unwrap_or(0) } else { WHOLE };
                if sectors != 0 || request.is_move {
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
    use crate::device::flash::RecordedMove;
    use crate::device::flash_states::UNREADABLE;
    use crate::lab::power_cut::durability::DurabilityModel;
    use crate::lab::power_cut::durability::tests::CACHED;
    use crate::lab::power_cut::writes::tests::{record_of, written_run};
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// Slot 1 is written, flushed, written again and again; slot 2 once.
    fn run() -> WrittenRun {
        written_run(&[
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

    /// Slots that torn draws at a moment leave mixed, and of which pieces; 0 is what was before.
    fn torn_slots(written: &WrittenRun, at_ns: i64) -> BTreeSet<(usize, BTreeSet<u32>)> {
        let mut walk = Walk::new(written);
        walk.go_to(at_ns);
        let mut found = BTreeSet::new();
        for seed in 0..200 {
            let choice = walk.possible(Choice { kind: StateKind::Torn, seed });
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
        let found = torn_slots(&run(), 90);
        assert!(found.contains(&(0, set(&[1, 2]))) && found.contains(&(1, set(&[0, 3]))));
        // At 25 it had completed, and nothing had flushed it; from 40 on it is durable.
        assert_eq!(torn_slots(&run(), 25), BTreeSet::from([(0, set(&[0, 1]))]));
        assert_eq!(torn_slots(&run(), 45), BTreeSet::new());
    }

    #[test]
    fn a_write_that_is_durable_at_completion_is_torn_under_way_alone() {
        let direct = DurabilityModel { is_volatile: false, ..CACHED };
        let run = WrittenRun::from_records(vec![record_of(direct, &[(Some(1), 10, 20, 5)])]);
        assert_eq!(torn_slots(&run, 15).len(), 1);
        assert_eq!(torn_slots(&run, 20), BTreeSet::new());
    }

    #[test]
    fn a_disk_that_keeps_slots_whole_is_not_torn_beside_one_that_does_not() {
        let whole = DurabilityModel { torn_bytes: 4096, ..CACHED };
        let run = WrittenRun::from_records(
            [whole, CACHED].map(|promise| record_of(promise, &[(Some(1), 10, 20, 5)])).into(),
        );
        let of_second = BTreeSet::from([(1, BTreeSet::from([0, 2]))]);
        for at_ns in [15, 25] {
            assert_eq!(torn_slots(&run, at_ns), of_second, "{at_ns}");
        }
    }

    /// The slots that draws leave of one request of three of them: which are new.
    fn parts_of_one(disk: DurabilityModel) -> BTreeSet<[bool; 3]> {
        let (_, mut record) = record_of(disk, &[1, 2, 3].map(|slot| (Some(slot), 10, 20, 5)));
        record.requests.truncate(1);
        record.requests[0].piece_count = 3;
        record.requests[0].is_atomic = true;
        let run = WrittenRun::from_records(vec![(disk, record)]);
        let mut walk = Walk::new(&run);
        walk.go_to(15);
        let mut random = ChaCha8Rng::seed_from_u64(7);
        let mut found = BTreeSet::new();
        for _ in 0..400 {
            let choice = walk.possible(Choice::draw(&mut random));
            let slots = walk.contents(choice).slots;
            let is_torn = slots.iter().any(|sectors| sectors.iter().any(|it| *it != sectors[0]));
            assert_eq!(is_torn, choice.kind == StateKind::Torn);
            assert!(disk.tears_atomic_writes || !is_torn);
            found.insert(std::array::from_fn(|slot| slots[slot][0] != 0));
        }
        found
    }

    #[test]
    fn an_atomic_write_survives_whole_or_not_at_all_unless_the_device_tears_it() {
        let whole = BTreeSet::from([[false; 3], [true; 3]]);
        assert_eq!(parts_of_one(CACHED), whole);
        let torn = parts_of_one(DurabilityModel { tears_atomic_writes: true, ..CACHED });
        assert_eq!(torn.len(), 8);
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
            assert_eq!(walk.possible(choice).kind, StateKind::Subset);
        }
    }

    /// The pieces of the slots that stale mappings leave of a run of three commits: each writes
    /// slot 1 and is flushed; the third writes slot 2000 too, which is in another part.
    fn stale(stale_mapping_flushes: usize, at_ns: i64) -> BTreeSet<Vec<u32>> {
        let disk = DurabilityModel { stale_mapping_flushes, ..CACHED };
        let requests = [
            (Some(1), 10, 20, 5),
            (None, 30, 40, 0),
            (Some(1), 50, 60, 6),
            (None, 70, 80, 0),
            (Some(1), 90, 100, 7),
            (Some(2000), 92, 102, 8),
            (None, 110, 120, 0),
        ];
        let written = WrittenRun::from_records(vec![record_of(disk, &requests)]);
        let mut walk = Walk::new(&written);
        walk.go_to(at_ns);
        let mut found = BTreeSet::new();
        for seed in 0..100 {
            let choice = walk.possible(Choice { kind: StateKind::Subset, seed });
            if choice.kind == StateKind::StaleMapping {
                let contents = walk.contents(choice);
                assert_eq!(contents.hash, walk.hash(choice));
                found.insert(contents.slots.iter().map(|sectors| sectors[0]).collect());
            }
        }
        found
    }

    #[test]
    fn a_cut_while_the_mapping_is_programmed_takes_back_a_part_of_what_was_flushed() {
        let set = |of: &[[u32; 2]]| of.iter().map(|it| it.to_vec()).collect::<BTreeSet<_>>();
        assert_eq!(stale(1, 110), set(&[[1, 4]]));
        assert_eq!(stale(2, 110), set(&[[0, 4], [1, 4]]));
        assert_eq!(stale(9, 75), set(&[[0, 0]]));
        // No flush is under way; none was before; the device has no such fault.
        for (flushes, at_ns) in [(2, 105), (2, 120), (2, 35), (0, 110)] {
            assert_eq!(stale(flushes, at_ns), set(&[]), "{flushes} {at_ns}");
        }
    }

    #[test]
    fn a_moved_slot_is_unreadable_from_the_erase_until_the_flush_unless_it_is_newer() {
        let disk = DurabilityModel { erases_early: true, ..CACHED };
        let requests =
            [(Some(1), 10, 20, 5), (None, 30, 40, 0), (Some(1), 52, 60, 6), (None, 70, 80, 0)];
        let (_, mut record) = record_of(disk, &requests);
        let moved = |slot| RecordedMove { slot, request: 2, erase_ns: Some(55) };
        record.moves = vec![moved(1), moved(9)];
        let written = WrittenRun::from_records(vec![(disk, record)]);
        let mut walk = Walk::new(&written);
        let firsts = |contents: DiskContents| -> Vec<u32> {
            contents.slots.iter().map(|sectors| sectors[0]).collect()
        };
        let mut slots = |at_ns, choice| {
            walk.go_to(at_ns);
            firsts(walk.contents(choice))
        };
        assert_eq!(slots(54, Choice::NONE), [1, 0]);
        assert_eq!(slots(55, Choice::NONE), [UNREADABLE, UNREADABLE]);
        assert_eq!(slots(79, Choice::NONE), [UNREADABLE, UNREADABLE]);
        assert_eq!(slots(79, Choice::ALL), [2, 0]);
        assert_eq!(slots(80, Choice::NONE), [2, 0]);
        let mut walk = Walk::new(&written);
        walk.go_to(60);
        // The newer write survives, and the slot with it.
        assert_eq!(firsts(walk.contents_with(&[0, 0, WHOLE])), [2, UNREADABLE]);
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
