//! The files that a replay left: whether they are as long as its calls must have left them, and
//! what of them is there after a power cut.

use std::cell::OnceCell;
use std::path::PathBuf;

use super::durability::name_tree::NameTree;
use super::durability::{ExpectedMoment, judge};
use super::memory::{KeptContents, stream_of};
use super::plan::ReplayPlan;
use super::promises::promises_of;
use crate::workload::error::WorkloadError;
use crate::workload::kind::Remains;
use crate::workload::ledger::Ledger;
use crate::workload::power_cut::{CutFindings, CutMoment, CutOutcome};

/// The files that are there after the last call.
pub struct ReplayRemains {
    pub directory: PathBuf,
    pub plan: ReplayPlan,
    pub ledgers: Vec<Ledger>,
    pub seed: u64,
    pub kept: KeptContents,
    /// Calls that ended with another result than recorded.
    pub otherwise_calls: u64,
    /// Whether its transactions are commits of SQLite's that were found from its calls.
    pub has_databases: bool,
    /// Made when it is asked for: few runs are cut.
    pub promised: OnceCell<ReplayPromises>,
}

/// The promises of the calls, and the bytes that they wrote.
pub struct ReplayPromises {
    tree: NameTree,
    stream: Vec<u8>,
}

impl ReplayRemains {
    fn promises(&self) -> &ReplayPromises {
        self.promised.get_or_init(|| {
            let mut stream = stream_of(&self.plan.lanes, self.seed);
            let places = self.kept.places_after(stream.len());
            stream.extend_from_slice(self.kept.bytes());
            ReplayPromises { tree: promises_of(&self.plan, &self.ledgers, &places), stream }
        })
    }

    fn look(&self, expected: ExpectedMoment) -> Result<CutFindings, WorkloadError> {
        let ReplayPromises { tree, stream } = self.promises();
        judge::judge_files(tree, &self.directory, stream, expected)
    }
}

impl Remains for ReplayRemains {
    /// Checks nothing: what each call must leave is known to `check_oracle` alone.
    fn check(&self) -> Result<(), WorkloadError> {
        Ok(())
    }

    fn judge(&self, cut: &CutMoment) -> Result<CutFindings, WorkloadError> {
        self.look(ExpectedMoment::AfterCut { at_ns: cut.at_ns })
    }

    /// Each sync of its calls, within transactions too.
    fn promise_times_ns(&self) -> Vec<i64> {
        self.promises().tree.promise_times_ns()
    }

    fn check_oracle(&self) -> Result<(), WorkloadError> {
        if self.otherwise_calls > 0 {
            return Err(WorkloadError::refusal(format!(
                "power cuts: {} calls of the replay ended otherwise than recorded, so that what \
                 its files hold is not known; joj show names them",
                self.otherwise_calls
            )));
        }
        let found = match self.look(ExpectedMoment::AtTheEnd) {
            Ok(found) if found.outcome == CutOutcome::Kept => return Ok(()),
            Ok(found) => found.message,
            Err(error @ WorkloadError::Contents { .. }) => error.to_string(),
            Err(error) => return Err(error),
        };
        let what = "without any power cut, the files of the replay are not as its calls leave them";
        Err(WorkloadError::refusal(format!("power cuts: {what}: {found}")))
    }

    fn unchecked_parts(&self) -> Vec<String> {
        let (names, bytes) = self.promises().tree.never_promised();
        let mut all = Vec::new();
        if self.has_databases {
            all.push(
                "whether commits of SQLite are there whole: a recording has no contents, so that \
                 its databases are judged as files, by what was synced; joj record --sql keeps the \
                 SQL, whose commits are judged"
                    .to_owned(),
            );
        }
        if names > 0 {
            all.push(format!("{names} names in directories that were not synced after"));
        }
        if bytes > 0 {
            all.push(format!(
                "the contents of {bytes} bytes that reached files by mappings or copies within \
                 the kernel, or that fallocate moved"
            ));
        }
        all
    }
}
