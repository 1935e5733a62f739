//! The verdict on a run whose power is cut. Reads the record that the modelled disks made of the
//! run that was measured; chooses states that cuts leave of it, puts the disks into each, mounts
//! the filesystem, and has the workload compare what is there with what had been acknowledged.
//! Produces power_cuts.json in the output directory, with a row for each state.
//!
//! writes -> walk -> states: which states there are, without a disk; disks: puts the disks into
//! them; judge: what is found there; shrink -> smallest: the least that a cut must take for a harm.

mod disks;
mod judge;
mod shrink;
mod smallest;
mod states;
mod walk;
mod writes;

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::ops::RangeInclusive;
use std::path::Path;

use anyhow::Context;
use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::case::Finished;
use super::owners::Owners;
use crate::errors::WrongUse;
use crate::record::{Case, PowerCuts};
use crate::workload;
use crate::workload::kind::ClosedWorkload;
use crate::workload::power_cut::{Cut, CutFindings, CutOutcome, FaultFindings};
use disks::CutDisks;
use judge::{BootFindings, Judge, Judgement};
use shrink::damages;
use smallest::{HarmfulState, Shrinker, SmallestCut};
use states::{Chooser, PromiseTimes, State, States, draw_second};
use walk::{Choice, StateKind, Walk};
use writes::{DiskContents, DurabilityModel};

/// Judges states of a case's run; its tables in `output` become their hashes.
///
/// # Errors
/// If a step fails; what a power cut destroys is none, but in the verdict.
pub fn run(cuts: &PowerCuts, case: &Case, finished: Finished, output: &Path) -> anyhow::Result<()> {
    refuse(case)?;
    let models: Vec<DurabilityModel> = case
        .device_model
        .iter()
        .chain(&case.journal_model)
        .map(DurabilityModel::from_profile)
        .collect();
    let Finished { stand, mounted, mut closed, configuration, end_ns, capture } = finished;
    let sync_calls = closed.transactions.iter().map(|it| it.sync_calls).sum();
    closed.transactions = closed.remains.operations(&closed.transactions);
    closed.remains.check_oracle()?;
    mounted.unmount()?;
    stand.detach()?;
    let mut disks = CutDisks::new(&stand.disks, &models);
    let written = disks.record()?;
    let times = PromiseTimes::new(&closed.transactions, &closed.remains.promise_times_ns());
    let fault = closed.remains.planted_fault();
    let whole = times.span(end_ns);
    let span = fault.as_ref().and_then(|it| it.at_ns).map_or(whole.clone(), |at_ns| at_ns..=end_ns);
    let chooser = Chooser {
        written: &written,
        times: &times,
        span,
        state_limit: cuts.states,
        seed: case.seed,
    };
    let states = chooser.choose();
    let mut known: HashSet<(u64, u64)> =
        states.chosen.iter().map(|state| (state.hash, state.promises)).collect();
    let tables = take_tables(output)?;
    let mut judge = Judge::new(&stand, &*closed.remains, output)?;
    let is_image = |hash: u64| cuts.image.as_ref() == Some(&hash_words(hash));
    if let Some(state) = states.chosen.iter().find(|state| is_image(state.hash)) {
        let mut walk = Walk::new(&written);
        walk.go_to(state.at_ns);
        disks.put(&written, walk.contents(state.choice))?;
        return judge.finish_with_image(output);
    }
    let is_foreign = closed.remains.has_foreign_judge();
    let mut remount = None;
    if fault.is_some() {
        remount = Some(judge.findings(&Cut { transactions: &[], at_ns: i64::MAX })?);
    } else if is_foreign {
        prove(&mut judge, "what was left, unmounted and mounted again", i64::MAX)?;
    }
    let mut unchecked = closed.remains.unchecked();
    if let Some(reason) = judge.refusal_to_go_on()? {
        unchecked.push(format!("whether one can go on: without a power cut neither: {reason}"));
    }
    if is_foreign {
        disks.put(&written, DiskContents::before(&written))?;
        prove(&mut judge, "what was there before the program began", whole.start() - 1)?;
    }
    let own = |(number, _): &(usize, &State)| number % cuts.parts == cuts.part;
    let own: Vec<(usize, &State)> = states.chosen.iter().enumerate().filter(own).collect();
    let names = stand.disks.iter().map(|disk| disk.name().to_owned()).collect();
    let judgings = own.len() / 2 + LEAST_JUDGINGS;
    let mut shrinker = Shrinker::new(&written, Owners::from_capture(capture), names, judgings);
    let mut found: Vec<Judged> = Vec::new();
    // Those of cuts of the run: which of `found`, and of which state.
    let mut harmful = Vec::new();
    let mut unmountable = Vec::new();
    let mut second_draws = 0;
    let mut walk = Walk::new(&written);
    for (number, state) in own {
        walk.go_to(state.at_ns);
        disks.put(&written, walk.contents(state.choice))?;
        let cut = Cut { transactions: &closed.transactions, at_ns: state.at_ns };
        let judgement = if state.has_second {
            disks.record_recovery()?;
            judge.judge_recovery(&cut)?
        } else {
            judge.judge(&cut)?
        };
        let judged = Judged::new(state, None, state.hash, judgement);
        let first_outcome = judged.findings.outcome;
        if judged.is_shrinkable() {
            harmful.push((found.len(), state));
        }
        if first_outcome == CutOutcome::Unmountable {
            unmountable.push((found.len(), state));
        }
        shrinker.note(state.hash, state.promises, &judged.findings);
        found.push(judged);
        if !state.has_second {
            continue;
        }
        let recovery = disks.recovery()?;
        second_draws += 1;
        let (at_ns, choice) = draw_second(&recovery, case.seed, number as u64);
        let mut second = Walk::new(&recovery);
        second.go_to(at_ns);
        let choice = second.without_impossible_tear(choice);
        let contents = second.contents(choice);
        let hash = state.hash ^ contents.hash;
        if known.insert((hash, state.promises)) {
            disks.put_second(&recovery, &contents)?;
            if is_image(hash) {
                return judge.finish_with_image(output);
            }
            let mut judged = Judged::new(state, Some(choice), hash, judge.judge(&cut)?);
            let outcome = judged.findings.outcome;
            if outcome == CutOutcome::Unmountable {
                disks.put_second(&recovery, &contents)?;
                judged.at_boot = judge.boot_findings(&cut)?;
            }
            if judged.is_shrinkable() && outcome == first_outcome {
                harmful.push((found.len(), state));
            } else if judged.is_shrinkable() {
                let harm = HarmfulState { state, cut: &cut, outcome };
                let first_slots = damages(&walk.survivors(state.choice)).len();
                let recovery = (&recovery, at_ns, choice);
                judged.smallest =
                    shrinker.second(harm, first_slots, recovery, &disks, &mut judge)?;
            }
            found.push(judged);
        }
    }
    for (number, state) in unmountable {
        let mut walk = Walk::new(&written);
        walk.go_to(state.at_ns);
        disks.put(&written, walk.contents(state.choice))?;
        let cut = Cut { transactions: &closed.transactions, at_ns: state.at_ns };
        found[number].at_boot = judge.boot_findings(&cut)?;
    }
    // The worst first, as there may not be judgings for all.
    harmful.sort_by_key(|(number, _)| Reverse(found[*number].badness()));
    for (number, state) in harmful {
        let cut = Cut { transactions: &closed.transactions, at_ns: state.at_ns };
        let harm = HarmfulState { state, cut: &cut, outcome: found[number].findings.outcome };
        found[number].smallest = shrinker.first(harm, &mut disks, &mut judge)?;
    }
    if let Some(image) = &cuts.image {
        return Err(WrongUse(format!("power cuts: this run has no state {image}")).into());
    }
    judge.finish()?;
    let answer = Answer {
        case,
        cuts,
        models: &models,
        closed: &closed,
        sync_calls,
        configuration,
        tables,
        span: chooser.span.clone(),
        fault,
        remount,
        states: &states,
        second_draws,
        unchecked,
        found,
    };
    answer.write(output)
}

/// Has the user's judge look at a state in which nothing can have been lost.
///
/// # Errors
/// If it finds harm there: then its verdict on others would say nothing.
fn prove(judge: &mut Judge, state: &str, at_ns: i64) -> anyhow::Result<()> {
    let found = judge.findings(&Cut { transactions: &[], at_ns })?;
    if found.outcome == CutOutcome::Kept {
        return Ok(());
    }
    let message = &found.message;
    let text = format!("the check does not pass on {state}, where no power was cut: {message}");
    Err(WrongUse(text).into())
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

const NAME: &str = "power_cuts.json";

/// Judgings that shrink what did harm: half as many as there are states, and these.
const LEAST_JUDGINGS: usize = 32;

/// A state, and what was found there.
#[derive(Debug, Serialize)]
pub struct Judged {
    cut_ns: i64,
    kind: StateKind,
    /// Whether a write was torn, at the first cut or at a second.
    is_torn: bool,
    after_return: bool,
    acknowledged: u64,
    begun: u64,
    promises: u64,
    #[serde(flatten)]
    findings: CutFindings,
    fsck: String,
    kernel_log: String,
    hash: String,
    /// The least that does this harm; none where there is no harm, where the filesystem's checker
    /// alone found it, and where there were no judgings left.
    smallest: Option<SmallestCut>,
    /// The verdict on what a boot makes of what could not be mounted, where it makes anything.
    at_boot: Option<BootFindings>,
}

impl Judged {
    /// A state of the run, or what a cut by the choice `second` while it recovered left of it.
    pub fn new(state: &State, second: Option<Choice>, hash: u64, verdict: Judgement) -> Self {
        let choices = [Some(state.choice), second];
        Self {
            cut_ns: state.at_ns,
            kind: if second.is_some() { StateKind::Second } else { state.choice.kind },
            is_torn: choices.iter().flatten().any(|choice| choice.kind == StateKind::Torn),
            after_return: state.after_return,
            acknowledged: state.acknowledged,
            begun: state.begun,
            promises: state.promises,
            findings: verdict.findings,
            fsck: verdict.fsck.to_string(),
            kernel_log: verdict.kernel_log,
            hash: hash_words(hash),
            smallest: None,
            at_boot: None,
        }
    }

    /// Return whether it can be told here whether a smaller cut does the same harm.
    fn is_shrinkable(&self) -> bool {
        self.findings.outcome != CutOutcome::Kept && !self.findings.message.starts_with("fsck: ")
    }

    /// The worse, the greater.
    fn badness(&self) -> (u8, u64) {
        (self.findings.outcome as u8, self.findings.lost)
    }
}

/// A state's hash, as answers have it.
fn hash_words(hash: u64) -> String {
    format!("{hash:016x}")
}

/// The answer to one part of a job.
pub struct Answer<'a> {
    pub case: &'a Case,
    pub cuts: &'a PowerCuts,
    pub models: &'a [DurabilityModel],
    pub closed: &'a ClosedWorkload,
    /// Syncs within all transactions and checkpoints.
    pub sync_calls: i64,
    pub configuration: Value,
    /// SHA-256 of each table of the run, by its name.
    pub tables: BTreeMap<String, String>,
    pub span: RangeInclusive<i64>,
    /// The course of the run after the error that was planted, where one was, and the findings
    /// when the filesystem was unmounted and mounted again.
    pub fault: Option<FaultFindings>,
    pub remount: Option<CutFindings>,
    pub states: &'a States,
    /// Draws in this guest among what recoveries wrote.
    pub second_draws: u64,
    /// Sentences on what was not looked at, and why.
    pub unchecked: Vec<String>,
    pub found: Vec<Judged>,
}

impl Answer<'_> {
    /// Writes it down.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(self, output: &Path) -> anyhow::Result<()> {
        let boundary = self.found.iter().filter(|one| one.kind.is_boundary()).count();
        let mut outcomes: BTreeMap<&str, u64> = BTreeMap::new();
        for one in &self.found {
            *outcomes.entry(one.findings.outcome.word()).or_default() += 1;
        }
        let answer = json!({
            "case": self.case.case,
            "seed": self.case.seed,
            "operation_hash": self.closed.operation_hash,
            "configuration": self.configuration,
            "transactions": self.closed.transactions.len(),
            "last_return_ns": self.closed.transactions.iter().map(|it| it.return_ns).max(),
            "sync_calls": self.sync_calls,
            "sync_sites": self.closed.remains.sync_sites(),
            "tables": self.tables,
            "part": self.cuts.part,
            "parts": self.cuts.parts,
            "begin_ns": self.span.start(),
            "end_ns": self.span.end(),
            "model": self.model(),
            "fault": self.fault,
            "remount": self.remount,
            "asked_states": self.cuts.states,
            "boundary_states_left_out": self.states.boundary_left_out,
            "draws": self.states.draws + self.second_draws,
            "second_draws": self.second_draws,
            "boundary_states": boundary,
            "sampled_states": self.found.len() - boundary,
            "outcomes": outcomes,
            "unchecked": self.unchecked,
            "states": self.found,
        });
        let path = output.join(NAME);
        fs::write(&path, answer.to_string()).with_context(|| path.display().to_string())
    }

    /// Return what could happen, of one disk, or of each where there are two.
    fn model(&self) -> Value {
        let each = |value: fn(&DurabilityModel) -> Value| match self.models {
            [one] => value(one),
            all => all.iter().map(value).collect(),
        };
        json!({
            "volatile_cache": each(|promise| promise.is_volatile.into()),
            "fua": each(|promise| promise.has_fua.into()),
            "flush_lies": each(|promise| promise.lies_about_flushes.into()),
            "torn_bytes": each(|promise| promise.torn_bytes.into()),
            "torn_slots_max": each(|promise| promise.torn_slots_max.into()),
            "unreadable_tears": each(|promise| promise.has_unreadable_tears.into()),
            "torn_pages": self.case.case.filesystem.is_on_raw_nand(),
            "second_cuts": true,
            "fsck": crate::filesystem::tools::checker_words(self.case.case.filesystem),
        })
    }
}

/// Removes what the run handed out; gives the SHA-256 of each file by its name.
///
/// # Errors
/// If a file cannot be read or removed.
pub fn take_tables(output: &Path) -> anyhow::Result<BTreeMap<String, String>> {
    let mut tables = BTreeMap::new();
    for entry in fs::read_dir(output).with_context(|| output.display().to_string())? {
        let path = entry?.path();
        let content = fs::read(&path).with_context(|| path.display().to_string())?;
        let hash = Sha256::digest(&content);
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        tables.insert(name, hash.iter().map(|byte| format!("{byte:02x}")).collect());
        fs::remove_file(&path)?;
    }
    Ok(tables)
}
