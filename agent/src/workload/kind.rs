//! The stages of a kind of workload, from a record's fields to the files that it leaves.
//!
//! fields -> WorkloadRequest -> Workload -> ClosedWorkload, with its Remains

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::error::WorkloadError;
use super::fault::FaultLeft;
use super::ledger::is_commit;
use super::power_cut::{CutFindings, CutMoment, FaultFindings};
use super::threads::task::Observer;
use crate::record::WorkloadFields;
use crate::sqlite::vfs::Vfs;
use crate::tables::rows::Transaction;

/// One line of the table of kinds.
#[derive(Clone, Copy)]
pub struct WorkloadKind {
    /// The words of a record's field `workload` that ask for it.
    pub words: &'static [&'static str],
    /// Reads all of the workload's fields.
    pub read: fn(&WorkloadFields) -> Result<Box<dyn WorkloadRequest>, serde_json::Error>,
}

impl WorkloadKind {
    /// Make the kind of the struct that the fields are read into, and its words.
    pub const fn new<Settings>(words: &'static [&'static str]) -> Self
    where
        Settings: WorkloadRequest + DeserializeOwned + Serialize + 'static,
    {
        Self { words, read: |fields| Ok(Box::new(fields.read::<Settings>()?)) }
    }
}

/// The space that a workload takes at the least.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    pub bytes: u64,
    pub files: u64,
}

/// A workload as a record asks for it.
pub trait WorkloadRequest: std::fmt::Debug {
    /// Return what it takes at the least; where a time decides how much is done, what there is at
    /// first. Nothing where a script, a recording or a program of the user's alone knows.
    fn space_needed(&self) -> Space {
        Space::default()
    }

    /// Make the remains of a run that another machine performed of what it handed out
    /// (`Remains::handed_facts`).
    ///
    /// # Errors
    /// If these are of another kind of workload.
    fn handed_remains(&self, _seed: u64, _: Value) -> Result<Box<dyn Remains>, WorkloadError> {
        Err(WorkloadError::refusal("this workload's remains are judged where it ran"))
    }

    /// Return why nobody could say what a power cut took of it; None where `Remains::judge` can.
    fn refuses_power_cut(&self) -> Option<&'static str> {
        None
    }

    /// Return whether errors are planted beneath it, so that the filesystem may fail to write.
    fn has_planted_fault(&self) -> bool {
        false
    }

    /// Makes in `directory` what it starts from.
    ///
    /// # Errors
    /// If a step fails, or a setting is impossible.
    fn prepare(&self, directory: &Path, seed: u64) -> Result<Box<dyn Workload>, WorkloadError>;
}

/// A prepared workload.
pub trait Workload {
    /// Return whether the kernel's caches are to be empty before the first transaction.
    fn needs_cold_cache(&self) -> bool {
        false
    }

    /// The configuration in force, read back where that can be done; an object.
    ///
    /// # Errors
    /// If it cannot be read back.
    fn configuration(&self) -> Result<Value, WorkloadError>;

    /// Runs warm-up and measured transactions; leaves no phase open.
    ///
    /// # Errors
    /// If a step or the observer fails.
    fn run(&mut self, observer: &mut dyn Observer) -> anyhow::Result<()>;

    /// Closes its files.
    ///
    /// # Errors
    /// If they cannot be closed.
    fn close(self: Box<Self>) -> Result<ClosedWorkload, WorkloadError>;
}

/// The results of a closed workload.
pub struct ClosedWorkload {
    /// The table transactions, in order.
    pub transactions: Vec<Transaction>,
    /// SHA-256 over what was performed, in hexadecimal; of several threads over their hashes.
    pub operation_hash: String,
    /// Holds what the workload alone adds to the manifest.
    pub manifest: Vec<(&'static str, Value)>,
    /// The reasons why not all was done that was asked for; empty where it was.
    pub incomplete_reasons: Vec<String>,
    /// Holds what it left in its directory.
    pub remains: Box<dyn Remains>,
}

/// The transactions that are commits.
pub fn commits(transactions: &[Transaction]) -> Vec<Transaction> {
    transactions.iter().filter(|it| is_commit(&it.kind)).cloned().collect()
}

/// The files of a closed workload.
pub trait Remains {
    /// Checks that they hold what the workload put there.
    ///
    /// # Errors
    /// If they cannot be read, are damaged, or hold something else.
    fn check(&self) -> Result<(), WorkloadError>;

    /// Return what is there after a power cut.
    ///
    /// # Errors
    /// If the files cannot be read, or hold what no operation put there.
    fn judge(&self, cut: &CutMoment) -> Result<CutFindings, WorkloadError>;

    /// Return the times when `judge` begins to owe something that no transaction's return promised;
    /// in any order.
    fn promise_times_ns(&self) -> Vec<i64> {
        Vec::new()
    }

    /// Return the moments at which `learn` wants to see all that had been issued; in any order.
    fn history_times_ns(&self) -> Vec<i64> {
        Vec::new()
    }

    /// Looks at what was there at such a moment, from which `judge` knows what it owes later.
    ///
    /// # Errors
    /// If this machine fails to look.
    fn learn(&self, _at_ns: i64) -> Result<(), WorkloadError> {
        Ok(())
    }

    /// Return what makes the same of it on another machine, beside the workload's settings and
    /// seed; none where it is judged only where it ran.
    fn handed_facts(&self) -> Option<Value> {
        None
    }

    /// Return the operations whose returns promise something: the commits among the transactions.
    fn operations(&self, transactions: &[Transaction]) -> Vec<Transaction> {
        commits(transactions)
    }

    /// Return whether `judge` asks a judge of the user's, who is to be tried first where nothing
    /// can have been lost.
    fn has_foreign_judge(&self) -> bool {
        false
    }

    /// Return what is left of an error that was planted beneath it, and the syncs that were
    /// watched; none where that cannot be.
    fn fault(&self) -> Option<&FaultLeft> {
        None
    }

    /// Return the syncs of a program by their sites, where they were watched; a list.
    fn sync_sites(&self) -> Value {
        self.fault().map_or_else(|| json!([]), |it| it.sync_sites.clone())
    }

    /// Return what came of the error that was planted beneath it; none where none was.
    fn planted_fault(&self) -> Option<FaultFindings> {
        self.fault()?.findings.clone()
    }

    /// Return the databases that are there, which an app would commit to next.
    ///
    /// # Errors
    /// If they cannot be looked for.
    fn databases(&self) -> Result<Vec<PathBuf>, WorkloadError> {
        Ok(Vec::new())
    }

    /// Return the VFS by which it would.
    fn vfs(&self) -> Vfs {
        Vfs::None
    }

    /// Checks, before any power is cut, that what `judge` compares with gives the whole run as
    /// it is there now.
    ///
    /// # Errors
    /// If it does not: then nothing could be said of a power cut.
    fn check_oracle(&self) -> Result<(), WorkloadError> {
        Ok(())
    }

    /// Return what is there that `judge` does not look at, and why; none where it looks at
    /// everything.
    fn unchecked_parts(&self) -> Vec<String> {
        Vec::new()
    }
}
