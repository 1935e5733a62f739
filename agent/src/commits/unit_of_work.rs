//! What the finder of commits keeps: what a process does to a database, and what was found.

use serde_json::{Map, Value};

use crate::tables::rows::Transaction;

/// What was found.
#[derive(Debug, Default, PartialEq)]
pub struct FoundTransactions {
    /// The table transactions, in order.
    pub rows: Vec<Transaction>,
    pub databases: u64,
    pub commits: u64,
    pub checkpoints: u64,
    /// Journals that ended after they were played back, or before the database was written.
    pub rollbacks: u64,
    /// Calls that sync files that are not SQLite's.
    pub syncs: u64,
    /// Written after the last transaction, so that no call waits for it.
    pub writes_after: u64,
    pub bytes_after: u64,
}

impl FoundTransactions {
    /// Counts of what was found, as the manifest has them.
    pub fn counts(&self) -> Map<String, Value> {
        let counts = [
            ("databases", self.databases),
            ("commits", self.commits),
            ("checkpoints", self.checkpoints),
            ("rollbacks", self.rollbacks),
            ("syncs", self.syncs),
            ("writes_after_last", self.writes_after),
            ("bytes_after_last", self.bytes_after),
        ];
        counts.map(|(name, count)| (name.to_owned(), count.into())).into_iter().collect()
    }
}

/// What a process does to a database at the moment.
#[derive(Debug, Default)]
pub struct UnitOfWork {
    pub begin_ns: Option<i64>,
    pub commit_ns: Option<i64>,
    pub sync_calls: i64,
    pub has_journal: bool,
    /// Read since it was written or synced last.
    pub journal_was_read: bool,
    pub wrote_database: bool,
    /// Number of its last frame in the WAL; 1 once the header of a new WAL is written.
    pub frames: i64,
    /// The commit is made, and may go on with calls that belong to it.
    pub made: Option<Transaction>,
    pub checkpoint: Option<Transaction>,
    /// A super-journal was unlinked: this database's journal ends with that commit.
    pub in_super: bool,
}
