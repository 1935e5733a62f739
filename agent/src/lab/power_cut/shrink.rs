//! The smallest cut that does a harm: of all that a cut lost or tore, the least that still does it.
//!
//! Delta debugging (Zeller and Hildebrandt, Simplifying and Isolating Failure-Inducing Input, IEEE
//! TSE 28, 2002). It asks by trials alone, so it is told what a trial is; whatever it gives has
//! done the harm in a trial, and where it says so, nothing of it can be left out by itself.

use super::writes::WHOLE;

/// The damage that a cut did to one open piece: which of its sectors survived, bit n is sector n;
/// not all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PieceDamage {
    /// The number of the open piece, in order.
    pub place: usize,
    pub survivors: u8,
}

impl PieceDamage {
    /// Return whether some sectors survived and others did not.
    pub fn is_torn(self) -> bool {
        self.survivors != 0
    }

    fn as_lost(self) -> Self {
        Self { survivors: 0, ..self }
    }
}

/// Return the damages of open pieces of which these sectors survive.
pub fn damages(survivors: &[u8]) -> Vec<PieceDamage> {
    let all = survivors.iter().enumerate();
    all.filter(|(_, survivors)| **survivors != WHOLE)
        .map(|(place, &survivors)| PieceDamage { place, survivors })
        .collect()
}

/// The sectors that survive of `count` open pieces where that is damaged, and nothing else.
pub fn survivors(damages: &[PieceDamage], count: usize) -> Vec<u8> {
    let mut survivors = vec![WHOLE; count];
    damages.iter().for_each(|damage| survivors[damage.place] = damage.survivors);
    survivors
}

/// The least damage that was found to do the harm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SmallestDamage {
    pub damages: Vec<PieceDamage>,
    /// Whether it was tried that no part of it can be left out, and that no tear can be a loss.
    pub is_minimal: bool,
}

/// Shrinks `all`, which does the harm. `trial` says whether some of it does, None where no more may
/// be tried. `hints` are what did this harm elsewhere: they are tried first.
///
/// # Errors
/// Those of `trial`.
pub fn shrink<Error>(
    all: &[PieceDamage],
    hints: &[Vec<PieceDamage>],
    mut trial: impl FnMut(&[PieceDamage]) -> Result<Option<bool>, Error>,
) -> Result<SmallestDamage, Error> {
    let mut is_minimal = true;
    let mut does_harm = |damages: &[PieceDamage]| {
        let found = trial(damages)?;
        is_minimal &= found.is_some();
        Ok(found == Some(true))
    };
    if does_harm(&[])? {
        return Ok(SmallestDamage { damages: Vec::new(), is_minimal });
    }
    let mut damages = all.to_vec();
    for hint in hints.iter().filter(|hint| hint.len() < all.len()) {
        if hint.iter().all(|damage| all.contains(damage)) && does_harm(hint)? {
            damages.clone_from(hint);
            break;
        }
    }
    // Where no tear is needed, none is left to be asked about.
    let lost: Vec<PieceDamage> = damages.iter().map(|damage| damage.as_lost()).collect();
    if lost != damages && does_harm(&lost)? {
        damages = lost;
    }
    damages = minimal(damages, &mut does_harm)?;
    while let Some(less) = lesser_damages(&damages, &mut does_harm)? {
        damages = less;
    }
    Ok(SmallestDamage { damages, is_minimal })
}

/// One damage less, or one tear that is a loss instead, where that does the harm too.
fn lesser_damages<Error>(
    damages: &[PieceDamage],
    does_harm: &mut impl FnMut(&[PieceDamage]) -> Result<bool, Error>,
) -> Result<Option<Vec<PieceDamage>>, Error> {
    for number in (0..damages.len()).filter(|_| damages.len() > 1) {
        let mut fewer = damages.to_vec();
        fewer.remove(number);
        if does_harm(&fewer)? {
            return Ok(Some(fewer));
        }
    }
    for number in (0..damages.len()).filter(|number| damages[*number].is_torn()) {
        let mut lost = damages.to_vec();
        lost[number] = lost[number].as_lost();
        if does_harm(&lost)? {
            return Ok(Some(lost));
        }
    }
    Ok(None)
}

/// The algorithm ddmin: some of `damages` of which no one can be left out.
fn minimal<Error>(
    mut damages: Vec<PieceDamage>,
    does_harm: &mut impl FnMut(&[PieceDamage]) -> Result<bool, Error>,
) -> Result<Vec<PieceDamage>, Error> {
    let mut parts = 2;
    while damages.len() > 1 {
        let length = damages.len().div_ceil(parts);
        let chunks: Vec<Vec<PieceDamage>> =
            damages.chunks(length).map(<[PieceDamage]>::to_vec).collect();
        let mut found = None;
        for chunk in &chunks {
            if chunks.len() > 1 && does_harm(chunk)? {
                found = Some((chunk.clone(), 2));
                break;
            }
        }
        for chunk in chunks.iter().filter(|_| found.is_none() && chunks.len() > 2) {
            let rest: Vec<PieceDamage> =
                damages.iter().filter(|damage| !chunk.contains(damage)).copied().collect();
            if does_harm(&rest)? {
                found = Some((rest, (chunks.len() - 1).max(2)));
                break;
            }
        }
        match found {
            Some((fewer, next_parts)) => (damages, parts) = (fewer, next_parts),
            None if length == 1 => break,
            None => parts = (parts * 2).min(damages.len()),
        }
    }
    Ok(damages)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::convert::Infallible;

    use proptest::prelude::*;

    use super::*;

    fn cut_damage() -> impl Strategy<Value = Vec<PieceDamage>> {
        let survivors = prop_oneof![3 => Just(0_u8), 1 => 1..WHOLE];
        prop::collection::vec(prop::option::weighted(0.7, survivors), 1..24).prop_map(|all| {
            let all = all.into_iter().enumerate();
            all.filter_map(|(place, it)| it.map(|survivors| PieceDamage { place, survivors }))
                .collect()
        })
    }

    /// Shrinks without a limit; gives what was found, and how many trials it took.
    fn shrunk(
        all: &[PieceDamage],
        hints: &[Vec<PieceDamage>],
        does_harm: impl Fn(&[PieceDamage]) -> bool,
    ) -> (SmallestDamage, usize) {
        let mut trials = 0;
        let trial = |damages: &[PieceDamage]| {
            trials += 1;
            Ok::<_, Infallible>(Some(does_harm(damages)))
        };
        (shrink(all, hints, trial).unwrap(), trials)
    }

    proptest! {
        /// Harm that takes certain pieces, some of them torn, is shrunk to them and nothing else.
        #[test]
        fn shrinking_finds_the_needed_damages(
            all in cut_damage(), chosen in prop::collection::vec(any::<prop::sample::Index>(), 0..5)
        ) {
            let needed: BTreeSet<PieceDamage> = if all.is_empty() { BTreeSet::new() } else {
                chosen.iter().map(|index| *index.get(&all)).collect()
            };
            let does_harm = |damages: &[PieceDamage]| needed.iter().all(|it| damages.contains(it));
            let (found, trials) = shrunk(&all, &[], does_harm);
            prop_assert_eq!(found.damages.iter().copied().collect::<BTreeSet<_>>(), needed.clone());
            prop_assert!(found.is_minimal);
            let bound = 4 + 12 * needed.len() * (all.len() + 1).ilog2() as usize + 8 * all.len();
            prop_assert!(trials <= bound, "{} trials of {}", trials, all.len());
        }

        /// A tear stays only where a loss in its place does no harm.
        #[test]
        fn a_tear_is_left_only_where_it_is_needed(all in cut_damage(), seed in any::<u64>()) {
            // Any two of the damaged places, of which some have to be torn.
            let must_be_torn = |damage: &PieceDamage| seed >> (damage.place % 64) & 1 == 1;
            let counts = |damage: &&PieceDamage| !must_be_torn(damage) || damage.is_torn();
            let does_harm = |damages: &[PieceDamage]| damages.iter().filter(counts).count() >= 2;
            if !does_harm(&all) {
                return Ok(());
            }
            let (found, _) = shrunk(&all, &[], does_harm);
            prop_assert!(does_harm(&found.damages));
            prop_assert_eq!(found.damages.len(), 2);
            for damage in found.damages.iter().filter(|damage| damage.is_torn()) {
                prop_assert!(must_be_torn(damage), "{:?}", damage);
            }
        }

        /// Whatever the predicate, the shrunk damage does the harm, and is less than there was.
        #[test]
        fn a_shrunk_cut_still_does_the_harm(
            all in cut_damage(), seed in any::<u64>(), most in 0_usize..40
        ) {
            let does_harm = |damages: &[PieceDamage]| {
                let sum: usize = damages.iter().map(|it| it.place + it.survivors as usize).sum();
                damages.len() == all.len() || (seed >> (sum % 64)) & 1 == 1
            };
            let mut left = most;
            let mut harmful = vec![all.clone()];
            let found = shrink(&all, &[], |damages| {
                if left == 0 {
                    return Ok::<_, Infallible>(None);
                }
                left -= 1;
                if does_harm(damages) {
                    harmful.push(damages.to_vec());
                }
                Ok(Some(does_harm(damages)))
            });
            let found = found.unwrap();
            prop_assert!(harmful.contains(&found.damages));
            prop_assert!(found.damages.len() <= all.len());
            if found.is_minimal {
                for number in 0..found.damages.len() {
                    let mut fewer = found.damages.clone();
                    fewer.remove(number);
                    prop_assert!(!does_harm(&fewer), "{:?}", fewer);
                }
            }
        }

        #[test]
        fn damages_are_those_of_the_survivors(all in prop::collection::vec(any::<u8>(), 0..20)) {
            prop_assert_eq!(survivors(&damages(&all), all.len()), all);
        }
    }

    #[test]
    fn a_hint_spares_the_search() {
        let all: Vec<PieceDamage> =
            (0..64).map(|place| PieceDamage { place, survivors: 0 }).collect();
        let does_harm = |damages: &[PieceDamage]| damages.iter().any(|damage| damage.place == 41);
        let hint = vec![all[41]];
        let (found, trials) = shrunk(&all, std::slice::from_ref(&hint), does_harm);
        assert_eq!((found.damages, trials), (hint, 2));
        assert!(shrunk(&all, &[vec![all[3]]], does_harm).1 > 8);
    }

    #[test]
    fn harm_without_any_damage_needs_none() {
        let all = [PieceDamage { place: 0, survivors: 7 }, PieceDamage { place: 1, survivors: 0 }];
        let (found, trials) = shrunk(&all, &[], |_| true);
        assert_eq!((found.damages, trials), (Vec::new(), 1));
    }
}
