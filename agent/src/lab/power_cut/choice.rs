//! Draws what survives a power cut of all that is not durable at a moment: all or nothing of it, or
//! a choice of pieces that a seed says. Which pieces there are, the walk tells.

use std::ops::Range;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use serde::{Deserialize, Serialize};

use super::writes::WHOLE;
use crate::device::flash::SECTORS;
use crate::record::words;

words! {
    /// The ways in which a state is chosen.
    StateKind {
        BoundaryNone = "boundary-none", BoundaryAll = "boundary-all", DropOne = "drop-one",
        Prefix = "prefix", Subset = "subset", Torn = "torn", StaleMapping = "stale-mapping",
        Second = "second",
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
            StateKind::BoundaryAll | StateKind::StaleMapping => vec![WHOLE; count],
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

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

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
}
