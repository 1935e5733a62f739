//! What a power cut leaves of what was not durable: a choice of the pieces that survive, as one
//! draw, or as all or none of them.

use std::ops::Range;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

use super::contents::WHOLE;
use crate::device::flash_record::SECTORS;
use crate::record::words;

words! {
    /// How a state was come by.
    StateKind {
        BoundaryNone = "boundary-none", BoundaryAll = "boundary-all", DropOne = "drop-one",
        Prefix = "prefix", Subset = "subset", Torn = "torn", Second = "second",
    }
}

impl StateKind {
    /// Whether it is all or nothing of what was not durable.
    pub fn is_boundary(self) -> bool {
        matches!(self, Self::BoundaryNone | Self::BoundaryAll)
    }
}

/// Which pieces survive; the same for the same seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    pub kind: StateKind,
    pub seed: u64,
}

/// A request that is not durable at a moment.
#[derive(Debug, Clone, Copy)]
pub struct UncertainRequest {
    pub piece_count: usize,
    /// Whether the cut may leave some sectors of a slot of it and take others.
    pub may_tear: bool,
}

/// What is not durable at a moment.
#[derive(Debug, Clone, Copy)]
pub struct OpenPieces<'a>(pub &'a [UncertainRequest]);

impl OpenPieces<'_> {
    fn pieces(&self) -> usize {
        self.0.iter().map(|request| request.piece_count).sum()
    }

    /// The places of the pieces of one request.
    fn of_request(&self, number: usize) -> Range<usize> {
        let begin = OpenPieces(&self.0[..number]).pieces();
        begin..begin + self.0[number].piece_count
    }

    /// The places of those that may be torn.
    fn tearable(&self) -> Vec<usize> {
        let requests = (0..self.0.len()).filter(|number| self.0[*number].may_tear);
        requests.flat_map(|number| self.of_request(number)).collect()
    }
}

impl Choice {
    pub const NONE: Self = Self { kind: StateKind::BoundaryNone, seed: 0 };
    pub const ALL: Self = Self { kind: StateKind::BoundaryAll, seed: 0 };

    /// One of the drawn kinds.
    pub fn draw(random: &mut ChaCha8Rng) -> Self {
        let kind = match random.next_u64() % 10 {
            0..3 => StateKind::DropOne,
            3..5 => StateKind::Prefix,
            5 => StateKind::Torn,
            _ => StateKind::Subset,
        };
        Self { kind, seed: random.next_u64() }
    }

    /// The surviving sectors of each open piece, in order.
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
                    kept[open.of_request(below(open.0.len()))].fill(0);
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
                let mut kept: Vec<u8> =
                    (0..count).map(|_| if below(8) < share { WHOLE } else { 0 }).collect();
                let torn = if self.kind == StateKind::Torn { open.tearable() } else { Vec::new() };
                if !torn.is_empty() {
                    let place = torn[below(torn.len())];
                    kept[place] = u8::try_from(1 + below((1 << SECTORS) - 2)).expect("a byte");
                }
                kept
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
        UncertainRequest { piece_count: 1, may_tear: false },
        UncertainRequest { piece_count: 4, may_tear: false },
        UncertainRequest { piece_count: 2, may_tear: true },
    ];
    const OPEN: OpenPieces = OpenPieces(&REQUESTS);

    fn kept(kind: StateKind, seed: u64) -> Vec<u8> {
        Choice { kind, seed }.survivors(OPEN)
    }

    #[test]
    fn all_none_and_a_fresh_draw_for_each_seed() {
        assert_eq!(Choice::ALL.survivors(OPEN), [WHOLE; 7]);
        assert_eq!(Choice::NONE.survivors(OPEN), [0; 7]);
        let subsets: HashSet<_> = (0..400).map(|seed| kept(StateKind::Subset, seed)).collect();
        assert!(subsets.len() > 100, "{}", subsets.len());
        assert_eq!(kept(StateKind::Subset, 3), kept(StateKind::Subset, 3));
    }

    proptest! {
        #[test]
        fn each_kind_is_what_its_word_says(seed in any::<u64>()) {
            let dropped = kept(StateKind::DropOne, seed).iter().filter(|it| **it == 0).count();
            prop_assert!([1, 2, 4].contains(&dropped));
            let prefix = kept(StateKind::Prefix, seed);
            prop_assert!(prefix.is_sorted_by(|one, next| one >= next));
            let torn = kept(StateKind::Torn, seed);
            let is_torn = |sectors: &u8| ![0, WHOLE].contains(sectors);
            prop_assert_eq!(torn.iter().filter(|it| is_torn(it)).count(), 1);
            prop_assert!(torn[5..].iter().any(is_torn), "only what may be torn");
            let subset = kept(StateKind::Subset, seed);
            prop_assert!(subset.iter().all(|it| [0, WHOLE].contains(it)));
        }

        #[test]
        fn nothing_open_leaves_nothing_to_choose(seed in any::<u64>()) {
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            let choice = Choice::draw(&mut random);
            prop_assert!(choice.survivors(OpenPieces(&[])).is_empty());
        }
    }
}
