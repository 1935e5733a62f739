//! The verdict on a run whose power is cut. Reads the record that the modelled disks made of the
//! run that was measured; chooses states that cuts leave of it, puts the disks into each, mounts
//! the filesystem, and has the workload compare what is there with what had been acknowledged.
//! Produces power_cuts.json in the output directory, with a row for each state.
//!
//! durability, writes -> choice, walk -> states: which states there are, without a disk;
//! disks: puts the disks into them; judge: what is found there; shrink -> smallest: the least that
//! a cut must take for a harm; handed_run: has them judged in User Mode Linux, which runs at the
//! processor's own speed.

mod choice;
mod disks;
mod durability;
mod handed_run;
mod judge;
mod shrink;
mod smallest;
mod states;
mod walk;
mod writes;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::ops::RangeInclusive;
use std::path::Path;

use anyhow::Context;
use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::case::FinishedCase;
use super::owners::Owners;
use crate::errors::WrongUse;
use crate::lab::stand::{MOUNT_POINT, Stand};
use crate::record::{Case, PowerCuts};
use crate::sqlite::vfs::leave_known_answers_out;
use crate::tables::rows::Transaction;
use crate::workload;
use crate::workload::kind::ClosedWorkload;
use crate::workload::power_cut::{CutFindings, CutMoment, CutOutcome, FaultFindings};
use choice::{Choice, StateKind};
use disks::CutDisks;
use durability::DurabilityModel;
use handed_run::HandedRun;
use judge::{BootFindings, Judge, Judgement};
use shrink::damages;
use smallest::{HarmfulState, Shrinker, SmallestCut};
use states::{Chooser, PromiseTimes, State, States, draw_second};
use walk::Walk;
use writes::{DiskContents, WrittenRun};

/// Judges states of a case's run; its tables in `output` become their hashes.
///
/// # Errors
/// If a step fails; what a power cut destroys is none, but in the verdict.
pub fn run(
    cuts: &PowerCuts,
    case: &Case,
    finished: FinishedCase,
    output: &Path,
) -> anyhow::Result<()> {
    refuse(case)?;
    let models = durability_models(case);
    let FinishedCase { stand, mounted, mut closed, configuration, end_ns, capture } = finished;
    let sync_calls = closed.transactions.iter().map(|it| it.sync_calls).sum();
    closed.transactions = closed.remains.operations(&closed.transactions);
    closed.remains.check_oracle()?;
    mounted.unmount()?;
    stand.detach()?;
    let mut disks = CutDisks::new(&stand.disks, &models)?;
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
    let tables = take_tables(output)?;
    let mut judge = Judge::new(&stand, &*closed.remains, output, false)?;
    let is_image = |state: &&State| cuts.image.as_ref() == Some(&hash_words(state.hash));
    if let Some(state) = states.chosen.iter().find(is_image) {
        let mut walk = Walk::new(&written);
        walk.go_to(state.at_ns);
        disks.put(&written, walk.contents(state.choice))?;
        return judge.finish_with_image(output);
    }
    let is_foreign = closed.remains.has_foreign_judge();
    let mut remount = None;
    if fault.is_some() {
        remount = Some(judge.findings(&CutMoment { transactions: &[], at_ns: i64::MAX })?);
    } else if is_foreign {
        prove(&mut judge, "what was left, unmounted and mounted again", i64::MAX)?;
    }
    let refusal = judge.refusal_to_go_on()?;
    let must_go_on = refusal.is_none();
    if is_foreign {
        disks.put(&written, DiskContents::before(&written))?;
        prove(&mut judge, "what was there before the program began", whole.start() - 1)?;
    }
    let mut walk = Walk::new(&written);
    for at_ns in BTreeSet::from_iter(closed.remains.history_times_ns()) {
        walk.go_to(at_ns);
        disks.put(&written, walk.contents(Choice::ALL))?;
        judge.teach(at_ns)?;
    }
    let mut unchecked = closed.remains.unchecked_parts();
    if models.iter().any(|model| model.erases_early) && !written.has_moves() {
        unchecked.push(NOTHING_MOVED.to_owned());
    }
    if let Some(reason) = refusal {
        unchecked.push(format!("whether one can go on: without a power cut neither: {reason}"));
    }
    let own = states.chosen.iter().copied().enumerate();
    let own: Vec<(usize, State)> =
        own.filter(|(number, _)| number % cuts.parts == cuts.part).collect();
    let known = states.chosen.iter().map(|state| (state.hash, state.promises)).collect();
    let owners = Owners::from_capture(capture);
    let (found, second_draws) = if cuts.native.is_some() {
        let remains =
            closed.remains.handed_facts().ok_or_else(|| WrongUse(NOT_HANDED.to_owned()))?;
        let (image, disks) = (cuts.image.clone(), Vec::new());
        let checks_all = false;
        let run =
            HandedRun { states: own, known, image, remains, must_go_on, checks_all, owners, disks };
        run.hand_out(&stand.disks, &models, output)?;
        judge.finish()?;
        (Vec::new(), 0)
    } else {
        let judging = Judging {
            written: &written,
            transactions: &closed.transactions,
            seed: case.seed,
            image: cuts.image.as_deref(),
            known,
            shrinker: Shrinker::new(&written, owners, disk_names(&stand), most_judgings(&own)),
            disks,
            judge,
            second_draws: 0,
        };
        match judging.finish(&own, output)? {
            Some(found) => found,
            None => return Ok(()),
        }
    };
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

/// The judging of states, one after the other.
struct Judging<'a> {
    written: &'a WrittenRun,
    transactions: &'a [Transaction],
    seed: u64,
    /// The hash of a state whose disks are handed out.
    image: Option<&'a str>,
    /// States that need not be judged again, by their hashes and promises.
    known: HashSet<(u64, u64)>,
    shrinker: Shrinker<'a>,
    disks: CutDisks<'a>,
    judge: Judge<'a>,
    second_draws: u64,
}

impl<'a> Judging<'a> {
    /// Judges these states, and ends the judge; gives them, and how many second cuts were drawn.
    /// None where one of them was looked for: its image is in `output`.
    ///
    /// # Errors
    /// If a state cannot be judged, or there is none such as was looked for.
    fn finish(
        mut self,
        own: &[(usize, State)],
        output: &'a Path,
    ) -> anyhow::Result<Option<(Vec<JudgedState>, u64)>> {
        let Some(found) = self.judge_all(own)? else {
            self.judge.finish_with_image(output)?;
            return Ok(None);
        };
        if let Some(image) = self.image {
            return Err(WrongUse(format!("power cuts: this run has no state {image}")).into());
        }
        self.judge.finish()?;
        Ok(Some((found, self.second_draws)))
    }

    /// Judges numbered states of the run, in the order of time, and second cuts of those that have
    /// one; shrinks what did harm. Return the verdicts; None where one is the state of which an
    /// image is wanted: the disks hold it then.
    ///
    /// # Errors
    /// Where this machine failed to look: that says nothing of what is there.
    fn judge_all(&mut self, own: &[(usize, State)]) -> anyhow::Result<Option<Vec<JudgedState>>> {
        let (written, transactions) = (self.written, self.transactions);
        let mut found: Vec<JudgedState> = Vec::new();
        // Those of cuts of the run: which of `found`, and of which state.
        let mut harmful = Vec::new();
        let mut unmountable = Vec::new();
        let mut walk = Walk::new(written);
        for (number, state) in own {
            walk.go_to(state.at_ns);
            self.disks.put(written, walk.contents(state.choice))?;
            let cut = CutMoment { transactions, at_ns: state.at_ns };
            let judgement = if state.has_second {
                self.disks.record_recovery()?;
                self.judge.judge_recovery(&cut)?
            } else {
                self.judge.judge(&cut)?
            };
            let judged = JudgedState::new(state, None, state.hash, judgement);
            let first_outcome = judged.findings.outcome;
            if self.is_shrunk(&judged) {
                harmful.push((found.len(), state));
            }
            if first_outcome == CutOutcome::Unmountable {
                unmountable.push((found.len(), state));
            }
            self.shrinker.note(state.hash, state.promises, &judged.findings);
            found.push(judged);
            if !state.has_second {
                continue;
            }
            let recovery = self.disks.recovery()?;
            self.second_draws += 1;
            let (at_ns, choice) = draw_second(&recovery, self.seed, *number as u64);
            let mut second = Walk::new(&recovery);
            second.go_to(at_ns);
            let choice = second.possible(choice);
            let contents = second.contents(choice);
            let hash = state.hash ^ contents.hash;
            if !self.known.insert((hash, state.promises)) {
                continue;
            }
            self.disks.put_second(&recovery, &contents)?;
            if self.image == Some(&hash_words(hash)) {
                return Ok(None);
            }
            let mut judged = JudgedState::new(state, Some(choice), hash, self.judge.judge(&cut)?);
            let outcome = judged.findings.outcome;
            if outcome == CutOutcome::Unmountable {
                self.disks.put_second(&recovery, &contents)?;
                judged.at_boot = self.judge.boot_findings(&cut)?;
            }
            if self.is_shrunk(&judged) && outcome == first_outcome {
                harmful.push((found.len(), state));
            } else if self.is_shrunk(&judged) {
                let harm = HarmfulState { state, cut: &cut, outcome };
                let first_slots = damages(&walk.survivors(state.choice)).len();
                let recovery = (&recovery, at_ns, choice);
                judged.smallest = self.shrinker.second(
                    harm,
                    first_slots,
                    recovery,
                    &self.disks,
                    &mut self.judge,
                )?;
            }
            found.push(judged);
        }
        for (number, state) in unmountable {
            let mut walk = Walk::new(written);
            walk.go_to(state.at_ns);
            self.disks.put(written, walk.contents(state.choice))?;
            let cut = CutMoment { transactions, at_ns: state.at_ns };
            found[number].at_boot = self.judge.boot_findings(&cut)?;
        }
        // The worst first, as there may not be judgings for all.
        harmful.sort_by_key(|(number, _)| {
            let CutFindings { outcome, lost, .. } = found[*number].findings;
            Reverse((outcome as u8, lost))
        });
        for (number, state) in harmful {
            let cut = CutMoment { transactions, at_ns: state.at_ns };
            let harm = HarmfulState { state, cut: &cut, outcome: found[number].findings.outcome };
            let (disks, judge) = (&mut self.disks, &mut self.judge);
            found[number].smallest = self.shrinker.first(harm, disks, judge)?;
        }
        Ok(Some(found))
    }

    fn is_shrunk(&self, judged: &JudgedState) -> bool {
        let is_complaint = judged.findings.message.starts_with("fsck: ");
        judged.findings.outcome != CutOutcome::Kept && (self.judge.checks_all || !is_complaint)
    }
}

/// Judges, in User Mode Linux, the states of a run that a guest handed out to the folder `place`;
/// its verdicts are in the order of time, as those of `run` are.
///
/// # Errors
/// As `run`, and if what was handed out is not whole.
pub fn run_handed(
    case: &Case,
    flash_module: &Path,
    place: &Path,
    output: &Path,
) -> anyhow::Result<()> {
    let models = durability_models(case);
    leave_known_answers_out(Path::new(MOUNT_POINT));
    let stand = Stand::for_case(case, flash_module)?;
    let mut handed = HandedRun::take_in(place, &stand.disks)?;
    let request = workload::read(&case.case.workload)?;
    let remains = request.handed_remains(case.seed, handed.remains.take())?;
    let records = models.iter().copied().zip(handed.take_records());
    let written = WrittenRun::from_records(records.collect());
    let mut judge = Judge::new(&stand, &*remains, output, handed.checks_all)?;
    let refusal = judge.refusal_to_go_on()?;
    anyhow::ensure!(
        refusal.is_none() == handed.must_go_on,
        "where the run ended one goes on in the guest or here, not in both: {refusal:?}"
    );
    let judgings = most_judgings(&handed.states);
    let judging = Judging {
        written: &written,
        transactions: &[],
        seed: case.seed,
        image: handed.image.as_deref(),
        known: handed.known,
        shrinker: Shrinker::new(&written, handed.owners, disk_names(&stand), judgings),
        disks: CutDisks::new(&stand.disks, &models)?,
        judge,
        second_draws: 0,
    };
    let found = judging.finish(&handed.states, output)?;
    found.map_or(Ok(()), |(found, second_draws)| {
        write(output, &json!({ "states": found, "second_draws": second_draws }))
    })
}

fn disk_names(stand: &Stand) -> Vec<String> {
    stand.disks.iter().map(|disk| disk.name().to_owned()).collect()
}

/// Has the user's judge look at a state in which nothing can have been lost.
///
/// # Errors
/// If it finds harm there: then its verdict on others would say nothing.
fn prove(judge: &mut Judge, state: &str, at_ns: i64) -> anyhow::Result<()> {
    let found = judge.findings(&CutMoment { transactions: &[], at_ns })?;
    if found.outcome == CutOutcome::Kept {
        return Ok(());
    }
    let message = &found.message;
    let text = format!("the check does not pass on {state}, where no power was cut: {message}");
    Err(WrongUse(text).into())
}

/// Return what each disk of a case promises.
fn durability_models(case: &Case) -> Vec<DurabilityModel> {
    let models = case.device_model.iter().chain(&case.journal_model);
    models.map(DurabilityModel::from_profile).collect()
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

const NOT_HANDED: &str = "power cuts: only the databases of joj's own SQLite workloads, without a \
                          background load, are judged outside the guest; leave --native out";
const NOTHING_MOVED: &str = "cuts in the middle of garbage collection: in the run no slot that it \
                             moved was at risk; device.preload_percent and \
                             device.overwrite_percent give the device a past";
const NAME: &str = "power_cuts.json";

fn write(output: &Path, answer: &Value) -> anyhow::Result<()> {
    let path = output.join(NAME);
    fs::write(&path, answer.to_string()).with_context(|| path.display().to_string())
}

/// Judgings that shrink what did harm: half as many as there are states, and these.
const LEAST_JUDGINGS: usize = 32;

fn most_judgings(states: &[(usize, State)]) -> usize {
    states.len() / 2 + LEAST_JUDGINGS
}

/// A state, and what was found there.
#[derive(Debug, Serialize)]
pub struct JudgedState {
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

impl JudgedState {
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
    pub found: Vec<JudgedState>,
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
            "program": self.program(),
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
        write(output, &answer)
    }

    /// Return the commits that were seen of a program; null where none was run.
    fn program(&self) -> Value {
        let mut manifest = self.closed.manifest.iter();
        let Some((_, program)) = manifest.find(|(name, _)| *name == "program") else {
            return Value::Null;
        };
        let names = ["databases", "journal_modes", "lost_calls"];
        names.into_iter().map(|name| (name.to_owned(), program[name].clone())).collect()
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
            "stale_mapping_flushes": each(|promise| promise.stale_mapping_flushes.into()),
            "atomic_write_bytes": each(|promise| promise.atomic_write_bytes.into()),
            "torn_atomic_writes": each(|promise| promise.tears_atomic_writes.into()),
            "early_erase": each(|promise| promise.erases_early.into()),
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
