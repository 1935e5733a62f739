//! The answer to a job of power cuts: power_cuts.json, with a row for each state that was judged.

use std::collections::BTreeMap;
use std::fs;
use std::ops::RangeInclusive;
use std::path::Path;

use anyhow::Context;
use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::choice::{Choice, StateKind};
use super::judge::Judgement;
use super::states::{State, States};
use super::written::Promise;
use crate::record::{Case, PowerCuts};
use crate::workload::kind::ClosedWorkload;
use crate::workload::power_cut::Survival;

const NAME: &str = "power_cuts.json";

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
    survival: Survival,
    fsck: String,
    kernel_log: String,
    hash: String,
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
            survival: verdict.survival,
            fsck: verdict.fsck.to_string(),
            kernel_log: verdict.kernel_log,
            hash: format!("{hash:016x}"),
        }
    }
}

/// What becomes of one part of a job.
pub struct Answer<'a> {
    pub case: &'a Case,
    pub cuts: &'a PowerCuts,
    pub promises: &'a [Promise],
    pub closed: &'a ClosedWorkload,
    pub configuration: Value,
    /// SHA-256 of each table of the run, by its name.
    pub tables: BTreeMap<String, String>,
    pub span: RangeInclusive<i64>,
    pub states: &'a States,
    /// Of them all in this guest: draws among what recoveries wrote.
    pub second_draws: u64,
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
            *outcomes.entry(one.survival.outcome.word()).or_default() += 1;
        }
        let answer = json!({
            "case": self.case.case,
            "seed": self.case.seed,
            "operation_hash": self.closed.operation_hash,
            "configuration": self.configuration,
            "transactions": self.closed.transactions.len(),
            "tables": self.tables,
            "part": self.cuts.part,
            "parts": self.cuts.parts,
            "begin_ns": self.span.start(),
            "end_ns": self.span.end(),
            "model": self.model(),
            "asked_states": self.cuts.states,
            "boundary_states_left_out": self.states.boundary_left_out,
            "draws": self.states.draws + self.second_draws,
            "second_draws": self.second_draws,
            "boundary_states": boundary,
            "sampled_states": self.found.len() - boundary,
            "outcomes": outcomes,
            "unchecked": self.closed.remains.unchecked(),
            "states": self.found,
        });
        let path = output.join(NAME);
        fs::write(&path, answer.to_string()).with_context(|| path.display().to_string())
    }

    /// What could happen, of one disk, or of each where there are two.
    fn model(&self) -> Value {
        let each = |value: fn(&Promise) -> Value| match self.promises {
            [one] => value(one),
            all => all.iter().map(value).collect(),
        };
        json!({
            "volatile_cache": each(|promise| promise.is_volatile.into()),
            "fua": each(|promise| promise.has_fua.into()),
            "flush_lies": each(|promise| promise.lies_about_flushes.into()),
            "torn_bytes": each(|promise| promise.torn_bytes.into()),
            "torn_pages": self.case.case.filesystem.is_on_raw_nand(),
            "second_cuts": true,
            "fsck": crate::filesystem::check::word(self.case.case.filesystem),
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
