//! Numbers that a seed draws, and the hash over several streams of operations.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use sha2::{Digest, Sha256};

/// The generator of one stream of a seed. ChaCha numbers its streams, and none is part of another
/// (Bernstein, "ChaCha, a variant of Salsa20", 2008: key, nonce and counter).
pub fn generator(seed: u64, stream: u64) -> ChaCha8Rng {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    random.set_stream(stream);
    random
}

/// A uniform number below `limit` by rejection, so that none is likelier than another.
pub fn below(random: &mut ChaCha8Rng, limit: u64) -> u64 {
    let zone = u64::MAX - u64::MAX % limit;
    loop {
        let drawn = random.next_u64();
        if drawn < zone {
            return drawn % limit;
        }
    }
}

/// Says yes in exactly `percent` of every hundred draws, in random order.
#[derive(Debug, Clone)]
pub struct Share {
    percent: u64,
    left: u64,
    yes_left: u64,
}

impl Share {
    pub fn new(percent: u64) -> Self {
        Self { percent, left: 0, yes_left: 0 }
    }

    /// The next answer; nothing is drawn where it is always the same.
    #[inline]
    pub fn draw(&mut self, random: &mut ChaCha8Rng) -> bool {
        if self.percent == 0 || self.percent >= 100 {
            return self.percent > 0;
        }
        if self.left == 0 {
            (self.left, self.yes_left) = (100, self.percent);
        }
        let yes = below(random, self.left) < self.yes_left;
        self.left -= 1;
        self.yes_left -= u64::from(yes);
        yes
    }
}

/// Numbers below a limit, each once in random order before any comes again, but for a share of the
/// draws, which repeat one that came before.
#[derive(Debug, Clone)]
pub struct Shuffle {
    order: Vec<u32>,
    /// The number of those of `order` that have come in this round.
    drawn: usize,
    repeats: Share,
}

impl Shuffle {
    pub fn new(limit: u32, repeat_percent: u64) -> Self {
        Self { order: (0..limit).collect(), drawn: 0, repeats: Share::new(repeat_percent) }
    }

    /// The next number.
    pub fn draw(&mut self, random: &mut ChaCha8Rng) -> u64 {
        if self.drawn > 0 && self.repeats.draw(random) {
            return self.order[index(below(random, self.drawn as u64))].into();
        }
        if self.drawn == self.order.len() {
            self.drawn = 0;
        }
        let left = (self.order.len() - self.drawn) as u64;
        self.order.swap(self.drawn, self.drawn + index(below(random, left)));
        self.drawn += 1;
        self.order[self.drawn - 1].into()
    }
}

/// A number that is below some length.
fn index(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// The hash of all threads' streams, in hexadecimal: of one, its own; of several, over their hashes
/// in order.
pub fn hash_of(threads: Vec<Sha256>) -> String {
    let mut digests = threads.into_iter().map(Sha256::finalize);
    let digest = match (digests.next(), digests.len()) {
        (Some(only), 0) => only,
        (first, _) => {
            first.into_iter().chain(digests).fold(Sha256::new(), Sha256::chain_update).finalize()
        }
    };
    format!("{digest:x}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn streams_of_a_seed_differ() {
        let first = |seed, stream| below(&mut generator(seed, stream), u64::MAX);
        assert_eq!(first(1, 0), below(&mut ChaCha8Rng::seed_from_u64(1), u64::MAX));
        assert_ne!(first(1, 0), first(1, 1));
        assert_ne!(first(1, 1), first(2, 1));
    }

    proptest! {
        #[test]
        fn a_share_is_exact_in_every_hundred(percent in 0..101_u64, seed: u64) {
            let (mut random, mut share) = (generator(seed, 0), Share::new(percent));
            for _ in 0..3 {
                let yes = (0..100).filter(|_| share.draw(&mut random)).count() as u64;
                prop_assert_eq!(yes, percent);
            }
        }

        #[test]
        fn a_shuffle_without_repeats_draws_each_number_once_a_round(limit in 1..50_u32, seed: u64) {
            let (mut random, mut shuffle) = (generator(seed, 0), Shuffle::new(limit, 0));
            for _ in 0..3 {
                let round: BTreeSet<u64> = (0..limit).map(|_| shuffle.draw(&mut random)).collect();
                prop_assert_eq!(round.len() as u64, u64::from(limit));
                prop_assert!(round.iter().all(|number| *number < u64::from(limit)));
            }
        }

        #[test]
        fn repeats_are_of_what_came_before(percent in 1..100_u64, seed: u64) {
            let (mut random, mut shuffle) = (generator(seed, 0), Shuffle::new(1000, percent));
            let mut seen = BTreeSet::new();
            // The first cannot repeat anything, and is no draw of the share.
            let repeats = (0..101).filter(|_| !seen.insert(shuffle.draw(&mut random))).count();
            prop_assert_eq!(repeats as u64, percent);
        }
    }
}
