//! Chooses the states of the disks that are judged: reads what a run wrote, when its transactions
//! began and returned, and when it promised something else; produces distinct states. First those
//! at the boundaries: at every issue, completion and promise, none or all of what was not durable.
//! Then drawn ones, each by a fresh draw.
//!
//! States are distinct if the disks' contents differ, or what had been promised does.

use std::collections::{BTreeSet, HashSet};
use std::ops::RangeInclusive;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use serde::{Deserialize, Serialize};

use super::walk::Walk;
use crate::lab::power_cut::choice::Choice;
use crate::lab::power_cut::writes::WrittenRun;
use crate::tables::rows::Transaction;

/// All boundary states are chosen where they are so many in ten at most: the rest is drawn.
const ALL_BOUNDARY_TENTHS: usize = 8;
/// The tenths of all states that are boundary states where there are more of them, as none of them
/// stands for all.
const BOUNDARY_TENTHS: usize = 6;
/// One of so many drawn states is a second cut: of the recovery from another state.
const SECOND_EVERY: usize = 4;
/// Rounds of draws before it is held that there are no other states.
const ROUNDS: u64 = 6;

/// A state of the disks that a power cut may leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    pub at_ns: i64,
    pub choice: Choice,
    pub hash: u64,
    /// Transactions that had returned by then, and had begun.
    pub acknowledged: u64,
    pub begun: u64,
    /// Promises that had been made by then, the returns of transactions among them.
    pub promises: u64,
    /// Whether it is the instant after a transaction returned.
    pub after_return: bool,
    /// Whether it is the instant after a promise.
    pub after_promise: bool,
    /// Whether its recovery is cut again.
    pub has_second: bool,
}

/// The states that are judged, and how they were found.
#[derive(Debug, Default)]
pub struct States {
    /// In the order of time.
    pub chosen: Vec<State>,
    pub boundary_left_out: usize,
    /// The number of draws, with those of states that were known.
    pub draws: u64,
}

/// The times at which transactions began and returned, and at which anything was promised.
pub struct PromiseTimes {
    begins_ns: Vec<i64>,
    returns_ns: Vec<i64>,
    /// The returns, and what was promised beside them; each moment once.
    promises_ns: Vec<i64>,
}

impl PromiseTimes {
    /// Sort the times of transactions, each of which promises something as it returns, and what is
    /// promised by anything else at these moments.
    pub fn new(transactions: &[Transaction], other_ns: &[i64]) -> Self {
        let sorted = |at_ns: fn(&Transaction) -> i64| {
            let mut all: Vec<i64> = transactions.iter().map(at_ns).collect();
            all.sort_unstable();
            all
        };
        let returns_ns = sorted(|it| it.return_ns);
        let promises_ns: BTreeSet<i64> = returns_ns.iter().chain(other_ns).copied().collect();
        let promises_ns = promises_ns.into_iter().collect();
        Self { begins_ns: sorted(|it| it.begin_ns), returns_ns, promises_ns }
    }

    /// From the first transaction's begin, or the first promise, until everything was written back.
    pub fn span(&self, end_ns: i64) -> RangeInclusive<i64> {
        let first = [&self.begins_ns, &self.promises_ns].into_iter().filter_map(|all| all.first());
        first.min().copied().unwrap_or(end_ns)..=end_ns
    }

    fn state(&self, at_ns: i64, choice: Choice, hash: u64) -> State {
        let by = |times: &[i64]| times.partition_point(|time| *time <= at_ns) as u64;
        State {
            at_ns,
            choice,
            hash,
            acknowledged: by(&self.returns_ns),
            begun: by(&self.begins_ns),
            promises: by(&self.promises_ns),
            after_return: self.returns_ns.binary_search(&at_ns).is_ok(),
            after_promise: self.is_promise(at_ns),
            has_second: false,
        }
    }

    fn is_promise(&self, at_ns: i64) -> bool {
        self.promises_ns.binary_search(&at_ns).is_ok()
    }
}

/// Chooses `state_limit` states of a run, or all that there are.
pub struct Chooser<'a> {
    pub written: &'a WrittenRun,
    pub times: &'a PromiseTimes,
    pub span: RangeInclusive<i64>,
    pub state_limit: usize,
    pub seed: u64,
}

impl Chooser<'_> {
    /// Returns the states, which are the same for the same run and seed.
    pub fn choose(&self) -> States {
        let moments = self.moments();
        let mut known = HashSet::new();
        let mut boundary = self.boundaries(&moments, &mut known);
        let total = boundary.len();
        let fit = total * 10 <= self.state_limit * ALL_BOUNDARY_TENTHS;
        let most = if fit { total } else { (self.state_limit * BOUNDARY_TENTHS).div_ceil(10) };
        let rest = if total > most { keep_evenly(&mut boundary, most) } else { Vec::new() };
        // What is left out is known, and not drawn.
        let mut states = States::default();
        let wanted = self.state_limit.saturating_sub(boundary.len());
        let seconds = wanted / SECOND_EVERY;
        let drawn = self.draw_states(&moments, &mut known, wanted - seconds, &mut states.draws);
        let room = self.state_limit.saturating_sub(boundary.len() + drawn.len() + seconds);
        boundary.extend(rest.into_iter().take(room));
        states.boundary_left_out = total - boundary.len();
        states.chosen = boundary;
        states.chosen.extend(drawn);
        states.chosen.sort_by_key(|state| state.at_ns);
        spread_marks(&mut states.chosen, seconds);
        states
    }

    /// Issues, completions and promises, in order.
    fn moments(&self) -> Vec<i64> {
        let requests = &self.written.requests;
        let of_requests = requests.iter().flat_map(|it| [it.issue_ns, it.completion_ns]);
        let promises = self.times.promises_ns.iter().copied();
        let all = of_requests.chain(promises).chain([*self.span.start()]);
        all.filter(|at_ns| self.span.contains(at_ns)).collect::<BTreeSet<_>>().into_iter().collect()
    }

    fn boundaries(&self, moments: &[i64], known: &mut HashSet<(u64, u64)>) -> Vec<State> {
        let mut walk = Walk::new(self.written);
        let mut found = Vec::new();
        for &at_ns in moments {
            walk.go_to(at_ns);
            for choice in [Choice::NONE, Choice::ALL] {
                let state = self.times.state(at_ns, choice, walk.hash(choice));
                if known.insert((state.hash, state.promises)) {
                    found.push(state);
                }
            }
        }
        found
    }

    /// Half of the draws are made at promises, where most must be there and least may be.
    fn draw_states(
        &self,
        moments: &[i64],
        known: &mut HashSet<(u64, u64)>,
        wanted: usize,
        draws: &mut u64,
    ) -> Vec<State> {
        let open = open_moments(self.written, moments);
        let is_promise = |at_ns: &i64| self.times.is_promise(*at_ns);
        let promises: Vec<i64> = open.iter().copied().filter(is_promise).collect();
        let mut found = Vec::new();
        for _ in 0..ROUNDS {
            if found.len() >= wanted || open.is_empty() {
                break;
            }
            let missing = (wanted - found.len()) as u64;
            let one = |number| self.draw(number, &open, &promises);
            let mut tried: Vec<_> = (*draws..*draws + missing).map(one).collect();
            *draws += missing;
            tried.sort_by_key(|(at_ns, _)| *at_ns);
            let mut walk = Walk::new(self.written);
            for (at_ns, choice) in tried {
                walk.go_to(at_ns);
                let choice = walk.possible(choice);
                let state = self.times.state(at_ns, choice, walk.hash(choice));
                if known.insert((state.hash, state.promises)) {
                    found.push(state);
                }
            }
        }
        found
    }

    fn draw(&self, number: u64, open: &[i64], promises: &[i64]) -> (i64, Choice) {
        let seed = self.seed ^ u64::from_le_bytes(*b"powercut");
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        random.set_stream(number);
        let from = if promises.is_empty() || number.is_multiple_of(2) { open } else { promises };
        let place = usize::try_from(random.next_u64() % from.len() as u64).expect("of a slice");
        (from[place], Choice::draw(&mut random))
    }
}

/// Returns the moments, which are in order, at which a cut could take something.
fn open_moments(written: &WrittenRun, moments: &[i64]) -> Vec<i64> {
    let mut walk = Walk::new(written);
    let mut is_open = |at_ns: &i64| {
        walk.go_to(*at_ns);
        walk.has_open()
    };
    moments.iter().copied().filter(|at_ns| is_open(at_ns)).collect()
}

/// Keeps `most` states, evenly spread, those after promises first; returns the others.
fn keep_evenly(states: &mut Vec<State>, most: usize) -> Vec<State> {
    let (after, between): (Vec<State>, Vec<State>) =
        states.iter().partition(|state| state.after_promise);
    let of_after =
        most.min(after.len()).min(most.div_ceil(2).max(most.saturating_sub(between.len())));
    let (mut chosen, mut rest) = spread(after, of_after);
    let (more, others) = spread(between, most - chosen.len());
    chosen.extend(more);
    rest.extend(others);
    *states = chosen;
    rest
}

/// Returns `count` states at even distances, and the others.
fn spread(states: Vec<State>, count: usize) -> (Vec<State>, Vec<State>) {
    let total = states.len();
    let is_kept = |place: usize| (place + 1) * count / total > place * count / total;
    let (chosen, rest): (Vec<_>, Vec<_>) =
        states.into_iter().enumerate().partition(|(place, _)| is_kept(*place));
    let bare = |all: Vec<(usize, State)>| all.into_iter().map(|(_, state)| state).collect();
    (bare(chosen), bare(rest))
}

/// Marks `count` states for a second cut, at even distances, half of them after promises, where
/// something can be lost.
fn spread_marks(states: &mut [State], count: usize) {
    let count = count.min(states.len());
    let (mut after, mut between): (Vec<&mut State>, Vec<&mut State>) =
        states.iter_mut().partition(|state| state.after_promise);
    let of_after = (count / 2).min(after.len()).max(count.saturating_sub(between.len()));
    for (some, count) in [(&mut after, of_after), (&mut between, count - of_after)] {
        let total = some.len();
        for (place, state) in some.iter_mut().enumerate() {
            state.has_second = (place + 1) * count / total > place * count / total;
        }
    }
}

/// Return what a cut during a recovery leaves: one draw, boundaries included, among the moments at
/// which it could take something, each as likely as it is long. At any other moment everything is
/// durable, and a cut leaves what one that takes all leaves at the next of these.
pub fn draw_second(recovery: &WrittenRun, seed: u64, number: u64) -> (i64, Choice) {
    let mut random = ChaCha8Rng::seed_from_u64(seed ^ u64::from_le_bytes(*b"recovery"));
    random.set_stream(number);
    let times = recovery.requests.iter().flat_map(|it| [it.issue_ns, it.completion_ns]);
    let moments: Vec<i64> = times.collect::<BTreeSet<_>>().into_iter().collect();
    let open = open_moments(recovery, &moments);
    // A moment lasts until the next one.
    let ends_ns: Vec<u64> = open
        .iter()
        .scan(0, |sum_ns, &at_ns| {
            let next = moments.get(moments.partition_point(|other| *other <= at_ns));
            *sum_ns += next.map_or(1, |next_ns| next_ns.abs_diff(at_ns));
            Some(*sum_ns)
        })
        .collect();
    let drawn_ns = random.next_u64() % ends_ns.last().copied().unwrap_or(1);
    let place = ends_ns.partition_point(|end_ns| *end_ns <= drawn_ns);
    let choice = match random.next_u64() % 4 {
        0 => Choice::NONE,
        1 => Choice::ALL,
        _ => Choice::draw(&mut random),
    };
    (open.get(place).copied().unwrap_or(0), choice)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::lab::power_cut::writes::tests::written_run;

    /// Commits of three writes and a flush: at 100 n a write to the journal, to the database twice,
    /// then the flush, and the return.
    fn run(commits: i64) -> (WrittenRun, PromiseTimes) {
        let mut requests = Vec::new();
        let mut transactions = Vec::new();
        for number in 0..commits {
            let (at, content) = (1000 + 100 * number, number as u64 * 3 + 1);
            requests.push((Some(1), at, at + 10, content));
            requests.push((Some(2), at + 5, at + 15, content + 1));
            requests.push((Some(3 + number as u64 % 5), at + 20, at + 30, content + 2));
            requests.push((None, at + 40, at + 50, 0));
            let (begin_ns, return_ns) = (at - 1, at + 55);
            transactions.push(Transaction { begin_ns, return_ns, ..Transaction::default() });
        }
        (written_run(&requests), PromiseTimes::new(&transactions, &[]))
    }

    fn states(commits: i64, asked: usize, seed: u64) -> States {
        let (written, times) = run(commits);
        let span = times.span(1000 + 100 * commits);
        Chooser { written: &written, times: &times, span, state_limit: asked, seed }.choose()
    }

    fn kinds(states: &States) -> BTreeMap<&'static str, usize> {
        let mut kinds = BTreeMap::new();
        states.chosen.iter().for_each(|it| *kinds.entry(it.choice.kind.word()).or_default() += 1);
        kinds
    }

    #[test]
    fn states_are_distinct_in_order_and_the_same_again() {
        let found = states(40, 300, 7);
        let keys: HashSet<_> = found.chosen.iter().map(|it| (it.hash, it.promises)).collect();
        assert_eq!(keys.len(), found.chosen.len());
        assert!(found.chosen.is_sorted_by_key(|state| state.at_ns));
        assert_eq!(found.chosen, states(40, 300, 7).chosen);
        assert_ne!(found.chosen, states(40, 300, 8).chosen);
        let seconds = found.chosen.iter().filter(|state| state.has_second).count();
        assert!(seconds > 10 && found.chosen.len() + seconds <= 300, "{seconds}");
    }

    #[test]
    fn all_boundaries_come_first_where_there_is_room() {
        // One before everything; of each commit: after each issue, and after the return.
        let found = states(4, 100, 7);
        assert_eq!(found.boundary_left_out, 0);
        let kinds = kinds(&found);
        assert_eq!(kinds["boundary-all"] + kinds["boundary-none"], 1 + 4 * 4, "{kinds:?}");
        for kind in ["drop-one", "subset", "torn"] {
            assert!(kinds.contains_key(kind), "{kind} {kinds:?}");
        }
        // Draws that met a known state count too.
        let drawn = found.chosen.len() - (1 + 4 * 4);
        assert!(drawn > 30 && found.draws > drawn as u64, "{drawn} of {}", found.draws);
    }

    #[test]
    fn all_boundaries_are_chosen_up_to_eight_in_ten() {
        // 1 + 4 * 20 = 81 boundary states.
        let boundary = |asked| {
            let found = states(20, asked, 7);
            let count = found.chosen.iter().filter(|it| it.choice.kind.is_boundary()).count();
            (count, found.boundary_left_out)
        };
        assert_eq!(boundary(102), (81, 0));
        let (chosen, left_out) = boundary(101);
        assert!((61..70).contains(&chosen) && chosen + left_out == 81, "{chosen} {left_out}");
    }

    #[test]
    fn too_many_boundaries_leave_room_for_draws_and_are_counted() {
        let found = states(100, 100, 7);
        let kinds = kinds(&found);
        let boundary = kinds["boundary-all"] + kinds.get("boundary-none").unwrap_or(&0);
        assert!((60..70).contains(&boundary), "{kinds:?}");
        assert_eq!(found.boundary_left_out, 1 + 100 * 4 - boundary);
        let early = found.chosen.iter().filter(|state| state.at_ns < 1000 + 50 * 100).count();
        assert!((30..70).contains(&early), "{early}");
    }

    #[test]
    fn a_state_is_judged_before_and_after_a_promise_that_is_no_return() {
        // Written, flushed and promised by an inner sync, then again, and then it returns.
        let requests = [(Some(1), 10, 20, 5), (None, 30, 40, 0), (Some(2), 60, 70, 6)];
        let (written, transaction) = (
            written_run(&requests),
            Transaction { begin_ns: 5, return_ns: 90, ..Transaction::default() },
        );
        let at_ns = |other_ns: &[i64]| {
            let times = PromiseTimes::new(std::slice::from_ref(&transaction), other_ns);
            let span = times.span(100);
            let chooser =
                Chooser { written: &written, times: &times, span, state_limit: 100, seed: 1 };
            let mut same = chooser.choose().chosen;
            // With the first slot alone there.
            same.retain(|state| state.choice == Choice::NONE && state.at_ns >= 40);
            same.iter().map(|it| (it.at_ns, it.promises, it.after_return)).collect::<Vec<_>>()
        };
        assert_eq!(at_ns(&[]), [(90, 1, true)]);
        assert_eq!(at_ns(&[50]), [(50, 1, false), (90, 2, true)]);
        assert_eq!(PromiseTimes::new(&[transaction], &[3]).span(100), 3..=100);
    }

    #[test]
    fn a_second_cut_is_made_where_something_can_be_lost() {
        let recovery = written_run(&[
            (Some(1), 10, 20, 5),
            (None, 30, 40, 0),
            (Some(2), 100, 120, 6),
            (None, 130, 140, 0),
        ]);
        let at_ns = |number| draw_second(&recovery, 7, number).0;
        let drawn: HashSet<i64> = (0..200).map(at_ns).collect();
        assert_eq!(drawn, HashSet::from([10, 20, 30, 100, 120, 130]));
        assert_eq!(draw_second(&WrittenRun::default(), 7, 1).0, 0);
    }

    #[test]
    fn a_run_without_transactions_or_writes_has_one_state() {
        let (written, times) = (WrittenRun::default(), PromiseTimes::new(&[], &[]));
        let span = times.span(50);
        let chooser = Chooser { written: &written, times: &times, span, state_limit: 9, seed: 1 };
        assert_eq!(chooser.choose().chosen.len(), 1);
    }
}
