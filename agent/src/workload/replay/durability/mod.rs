//! Promises of calls on files by the moment of a power cut, and what of them is there: for
//! workloads whose files are any program's. Promised is what the manual pages say (fsync(2),
//! open(2) on O_SYNC, sync(2)): the contents and the size of a file that was synced, as they were
//! when the sync began; the names in a directory that was synced. A rename is whole or not at all.
//! What nobody synced may be there or not, in any part.
//!
//! file_history (with the bytes that calls wrote) -> name_tree -> judge

pub mod file_history;
pub mod judge;
pub mod name_tree;

/// The time of what is never promised.
pub const NEVER_NS: i64 = i64::MAX;

/// The time of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallTime {
    pub begin_ns: i64,
    pub end_ns: i64,
}

/// The time of a change, and the time from which it is promised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangeTime {
    pub begin_ns: i64,
    pub end_ns: i64,
    pub durable_ns: i64,
}

impl ChangeTime {
    /// Return the times of a call that nothing has synced yet.
    pub fn open(at: CallTime) -> Self {
        Self { begin_ns: at.begin_ns, end_ns: at.end_ns, durable_ns: NEVER_NS }
    }

    /// Return the times of a call that syncs what it does.
    pub fn with_sync(at: CallTime) -> Self {
        Self { durable_ns: at.end_ns, ..Self::open(at) }
    }

    /// A call that syncs promises what was done before it began.
    pub fn sync(&mut self, by: CallTime) {
        if self.durable_ns == NEVER_NS && self.end_ns <= by.begin_ns {
            self.durable_ns = by.end_ns;
        }
    }
}

/// The moment that is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpectedMoment {
    /// All that must be there if the power was cut at this moment.
    AfterCut { at_ns: i64 },
    /// All that was done.
    AtTheEnd,
}

impl ExpectedMoment {
    /// Return whether a change had begun.
    pub fn has_begun(self, change: ChangeTime) -> bool {
        match self {
            Self::AfterCut { at_ns } => change.begin_ns <= at_ns,
            Self::AtTheEnd => true,
        }
    }

    /// Return whether it must be there.
    pub fn is_settled(self, change: ChangeTime) -> bool {
        match self {
            Self::AfterCut { at_ns } => change.durable_ns <= at_ns,
            Self::AtTheEnd => true,
        }
    }
}
