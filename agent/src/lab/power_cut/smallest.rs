//! The least that a harm takes: shrinks a harmful state to the smallest cut that still does its
//! harm, by judging smaller cuts of the same moment, and names the slots that are lost or torn in
//! it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use serde::Serialize;

use super::choice::Choice;
use super::disks::CutDisks;
use super::judge::Judge;
use super::shrink::{PieceDamage, damages, shrink, survivors};
use super::states::State;
use super::walk::Walk;
use super::writes::{DiskContents, WrittenRun};
use crate::device::flash::SLOT_BYTES;
use crate::lab::owners::{Owners, SlotOwner};
use crate::workload::power_cut::{CutFindings, CutMoment, CutOutcome};

/// Judgings that are spent on one second cut: its recovery's record is there only for now.
const MOST_OF_SECOND: usize = 24;

/// A slot that did not survive, or not as a whole.
#[derive(Debug, Serialize)]
pub struct DamagedSlot {
    pub device: String,
    pub offset_bytes: u64,
    /// The moment when the driver got the write of it.
    pub issue_ns: i64,
    /// The numbers of its sectors of 512 bytes that survived; none: it is lost.
    pub survivors: Vec<u8>,
    /// The owners of the write; empty where the trace does not say.
    pub owners: Vec<SlotOwner>,
}

/// The last flush that kept anything: all that had completed when it was issued.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct KeptFlush {
    pub issue_ns: i64,
    /// The call that it was made in, and that call's file; empty where the trace does not say.
    pub call: String,
    pub call_file: String,
}

/// The smallest cut that was found to do a state's harm.
#[derive(Debug, Serialize)]
pub struct SmallestCut {
    /// The slots that it damages; of a second cut those that the recovery wrote.
    pub slots: Vec<DamagedSlot>,
    /// Slots that the first cut damaged, where the harm takes a second one: these were not shrunk.
    pub first_slots: Option<usize>,
    /// None where no flush had kept anything, where the cut takes what one had kept, and of a
    /// second cut.
    pub kept_flush: Option<KeptFlush>,
    /// Whether no slot can be left out, and no tear be a loss; otherwise that was not tried to the
    /// end.
    pub is_minimal: bool,
    /// The verdict's message after the cut.
    pub message: String,
}

/// A harmful state that is shrunk.
#[derive(Clone, Copy)]
pub struct HarmfulState<'a> {
    pub state: &'a State,
    pub cut: &'a CutMoment<'a>,
    pub outcome: CutOutcome,
}

/// Shrinks states as long as there are judgings left for it.
pub struct Shrinker<'a> {
    written: &'a WrittenRun,
    owners: Owners,
    devices: Vec<String>,
    left: usize,
    /// The verdicts on states, by their contents and promises.
    known: HashMap<(u64, u64), (CutOutcome, String)>,
    /// Smallest damages so far, each by the places of its pieces in the run.
    hints: Vec<(CutOutcome, Vec<(usize, u8)>)>,
}

impl<'a> Shrinker<'a> {
    pub fn new(
        written: &'a WrittenRun,
        owners: Owners,
        devices: Vec<String>,
        judgings: usize,
    ) -> Self {
        let (known, hints) = (HashMap::new(), Vec::new());
        Self { written, owners, devices, left: judgings, known, hints }
    }

    /// Takes note of what was found in a state.
    pub fn note(&mut self, hash: u64, promises: u64, found: &CutFindings) {
        self.known.insert((hash, promises), (found.outcome, found.message.clone()));
    }

    /// Shrinks a cut of the run; none where nothing smaller was found for want of judgings.
    ///
    /// # Errors
    /// If a smaller one cannot be judged.
    pub fn first(
        &mut self,
        harm: HarmfulState,
        disks: &mut CutDisks,
        judge: &mut Judge,
    ) -> anyhow::Result<Option<SmallestCut>> {
        let written = self.written;
        let mut walk = Walk::new(written);
        walk.go_to(harm.state.at_ns);
        let open = walk.unsafe_pieces();
        let mut number_by_place = HashMap::new();
        open.iter().enumerate().for_each(|(number, (place, _))| {
            number_by_place.insert(*place, number);
        });
        let as_damages = |hint: &Vec<(usize, u8)>| -> Option<Vec<PieceDamage>> {
            let damage = |&(place, survivors): &(usize, u8)| {
                Some(PieceDamage { place: *number_by_place.get(&place)?, survivors })
            };
            hint.iter().map(damage).collect()
        };
        let own = self.hints.iter().filter(|(outcome, _)| *outcome == harm.outcome);
        let hints: Vec<Vec<PieceDamage>> = own.filter_map(|(_, hint)| as_damages(hint)).collect();
        let look = |contents: DiskContents| {
            disks.put(written, contents)?;
            judge.findings(harm.cut)
        };
        let limit = self.left;
        let found = self.search(&mut walk, harm.state.choice, 0, harm, (&hints, limit), look)?;
        let Some((damages, is_minimal, message)) = found else { return Ok(None) };
        let by_place = damages.iter().map(|it| (open[it.place].0, it.survivors)).collect();
        let hint = (harm.outcome, by_place);
        if is_minimal && !self.hints.contains(&hint) {
            self.hints.push(hint);
        }
        let slots = damages.iter().map(|it| self.slot(written, open[it.place], *it, false));
        let slots = slots.collect();
        let at_ns = harm.state.at_ns;
        let is_kept = |it: &PieceDamage| written.was_durable(open[it.place].0, at_ns);
        let kept_flush = if damages.iter().any(is_kept) { None } else { self.kept_flush(at_ns) };
        Ok(Some(SmallestCut { slots, first_slots: None, kept_flush, is_minimal, message }))
    }

    /// Shrinks a cut of what recovered from a state, which is recorded.
    ///
    /// # Errors
    /// If a smaller one cannot be judged.
    pub fn second(
        &mut self,
        harm: HarmfulState,
        first_slots: usize,
        recovery: (&WrittenRun, i64, Choice),
        disks: &CutDisks,
        judge: &mut Judge,
    ) -> anyhow::Result<Option<SmallestCut>> {
        let (recovery, at_ns, choice) = recovery;
        let mut walk = Walk::new(recovery);
        walk.go_to(at_ns);
        let open = walk.unsafe_pieces();
        let look = |contents: DiskContents| {
            disks.put_second(recovery, &contents)?;
            judge.findings(harm.cut)
        };
        let (salt, limit) = (harm.state.hash, MOST_OF_SECOND.min(self.left));
        let found = self.search(&mut walk, choice, salt, harm, (&[], limit), look)?;
        Ok(found.map(|(damages, is_minimal, message)| {
            let slots = damages.iter().map(|it| self.slot(recovery, open[it.place], *it, true));
            let slots = slots.collect();
            let (first_slots, kept_flush) = (Some(first_slots), None);
            SmallestCut { slots, first_slots, kept_flush, is_minimal, message }
        }))
    }

    /// Gives the least damage, whether it is minimal, and what was found after it. `look` judges
    /// what the disks hold then; `salt` tells their contents from those of other records.
    fn search(
        &mut self,
        walk: &mut Walk,
        choice: Choice,
        salt: u64,
        harm: HarmfulState,
        (hints, limit): (&[Vec<PieceDamage>], usize),
        mut look: impl FnMut(DiskContents) -> anyhow::Result<CutFindings>,
    ) -> anyhow::Result<Option<(Vec<PieceDamage>, bool, String)>> {
        let count = walk.unsafe_pieces().len();
        let all = damages(&walk.survivors(choice));
        let mut left = limit;
        let key = |walk: &mut Walk, damages: &[PieceDamage]| {
            let mut survivors = survivors(damages, count);
            walk.take_whole(&mut survivors);
            let contents = walk.contents_with(&survivors);
            ((contents.hash ^ salt, harm.state.promises), contents)
        };
        let found = shrink(&all, hints, |damages| {
            let (key, contents) = key(walk, damages);
            let outcome = match self.known.entry(key) {
                Entry::Occupied(known) => known.get().0,
                Entry::Vacant(_) if left == 0 => return anyhow::Ok(None),
                Entry::Vacant(unknown) => {
                    left -= 1;
                    let findings = look(contents)?;
                    unknown.insert((findings.outcome, findings.message)).0
                }
            };
            Ok(Some(outcome == harm.outcome))
        })?;
        self.left -= limit - left;
        if !found.is_minimal && found.damages.len() == all.len() {
            return Ok(None);
        }
        let (key, _) = key(walk, &found.damages);
        let message = self.known.get(&key).map(|(_, message)| message.clone()).unwrap_or_default();
        let mut survivors = survivors(&found.damages, count);
        walk.take_whole(&mut survivors);
        Ok(Some((damages(&survivors), found.is_minimal, message)))
    }

    /// Return the last flush of the run that made a write durable before a cut.
    fn kept_flush(&self, at_ns: i64) -> Option<KeptFlush> {
        let issue_ns = self.written.last_kept_flush(at_ns)?;
        let owner = self.owners.flush(issue_ns);
        let (call, call_file) = owner.map(|it| (it.call.to_string(), it.call_file)).unzip();
        let (call, call_file) = (call.unwrap_or_default(), call_file.unwrap_or_default());
        Some(KeptFlush { issue_ns, call, call_file })
    }

    /// Names what is damaged. Whose a write of the recovery was, nobody traced: it is given the
    /// owner of what the run had there last.
    fn slot(
        &self,
        written: &WrittenRun,
        (place, issue_ns): (usize, i64),
        damage: PieceDamage,
        is_recovery: bool,
    ) -> DamagedSlot {
        let slot = &written.slots[written.pieces[place].slot];
        let device = self.devices[slot.disk].clone();
        let at_ns = if is_recovery { i64::MAX } else { issue_ns };
        DamagedSlot {
            offset_bytes: slot.number * SLOT_BYTES as u64,
            issue_ns,
            survivors: (0..8).filter(|sector| damage.survivors >> sector & 1 == 1).collect(),
            owners: self.owners.find(&device, slot.number, at_ns),
            device,
        }
    }
}
