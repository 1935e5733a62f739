//! What survives of a run when the power is cut. Reads the record that the modelled disks made of
//! the run that was measured; chooses states that cuts leave of it, puts the disks into each,
//! mounts the filesystem, and has the workload compare what is there with what had been
//! acknowledged. Produces power_cuts.json in the output directory.
//!
//! written -> contents, choice -> walk -> states: which states there are, without a disk;
//! disks: puts the disks into them; handed_disks, of_this_machine -> judge: what is found there,
//! and whether it is damage by the cut or a failure of this machine; answer: writes it down

mod answer;
mod choice;
mod contents;
mod disks;
mod handed_disks;
mod judge;
mod of_this_machine;
mod states;
mod walk;
mod written;

use std::collections::HashSet;
use std::path::Path;

use super::case::Finished;
use crate::errors::WrongUse;
use crate::record::{Case, PowerCuts};
use crate::workload;
use crate::workload::ledger::is_commit;
use crate::workload::power_cut::Cut;
use answer::{Answer, Judged};
use disks::CutDisks;
use judge::Judge;
use states::{Chooser, PromiseTimes, State, draw_second};
use walk::Walk;
use written::Promise;

/// Judges states of a case's run; its tables in `output` become their hashes.
///
/// # Errors
/// If a step fails; what a power cut destroys is none, but in the verdict.
pub fn run(cuts: &PowerCuts, case: &Case, finished: Finished, output: &Path) -> anyhow::Result<()> {
    refuse(case)?;
    let promises: Vec<Promise> =
        case.device_model.iter().chain(&case.journal_model).map(Promise::of).collect();
    let Finished { stand, mounted, mut closed, configuration, end_ns } = finished;
    closed.transactions.retain(|transaction| is_commit(&transaction.kind));
    closed.remains.check_oracle()?;
    mounted.unmount()?;
    stand.detach()?;
    let mut disks = CutDisks::new(&stand.disks, &promises);
    let written = disks.record()?;
    let times = PromiseTimes::of(&closed.transactions, &closed.remains.promise_times_ns());
    let chooser = Chooser {
        written: &written,
        times: &times,
        span: times.span(end_ns),
        asked: cuts.states,
        seed: case.seed,
    };
    let states = chooser.choose();
    let mut known: HashSet<(u64, u64)> =
        states.chosen.iter().map(|state| (state.hash, state.promises)).collect();
    let tables = answer::take_tables(output)?;
    let mut judge = Judge::new(&stand, &*closed.remains, output)?;
    let mut found = Vec::new();
    let mut second_draws = 0;
    let mut walk = Walk::new(&written);
    let own = |(number, _): &(usize, &State)| number % cuts.parts == cuts.part;
    for (number, state) in states.chosen.iter().enumerate().filter(own) {
        walk.go_to(state.at_ns);
        disks.put(&written, walk.contents(state.choice))?;
        let cut = Cut { transactions: &closed.transactions, at_ns: state.at_ns };
        if state.has_second {
            disks.record_recovery()?;
        }
        found.push(Judged::new(state, None, state.hash, judge.judge(&cut)?));
        if !state.has_second {
            continue;
        }
        let recovery = disks.recovery()?;
        second_draws += 1;
        let (at_ns, choice) = draw_second(&recovery, case.seed, number as u64);
        let mut second = Walk::new(&recovery);
        second.go_to(at_ns);
        let choice = second.fitted(choice);
        let contents = second.contents(choice);
        let hash = state.hash ^ contents.hash;
        if known.insert((hash, state.promises)) {
            disks.put_second(&recovery, &contents)?;
            found.push(Judged::new(state, Some(choice), hash, judge.judge(&cut)?));
        }
    }
    judge.finish()?;
    let answer = Answer {
        case,
        cuts,
        promises: &promises,
        closed: &closed,
        configuration,
        tables,
        span: chooser.span.clone(),
        states: &states,
        second_draws,
        found,
    };
    answer.write(output)
}

/// Refuses a case of which nothing could be said.
fn refuse(case: &Case) -> anyhow::Result<()> {
    if let Some(reason) = workload::read(&case.case.workload)?.refuses_power_cut() {
        return Err(WrongUse(format!("power cuts: {reason}")).into());
    }
    if case.disk.is_some() || case.device_model.is_none() {
        return Err(WrongUse("power cuts: the device must be a modelled one".into()).into());
    }
    Ok(())
}
