//! The fields of a record whose workload is SQL of the user's own, drawn or recorded.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::record::words;
use crate::sqlite::options::SqliteOptions;
use crate::workload::regime::RegimeFields;
use crate::workload::threads::plan::Plan;

/// Meaning and range of each stand in jojlab/model/workloads/sqlite.py.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct SqlFields {
    /// A folder of the machine that the agent runs on; a guest has it as an input.
    pub scripts: PathBuf,
    pub think_time: ThinkTime,
    #[serde(flatten)]
    pub regime: RegimeFields,
    #[serde(flatten)]
    pub options: SqliteOptions,
}

/// Scripts that go round and round.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct SqlSettings {
    pub workload: SqlWorkload,
    pub transactions: u64,
    pub duration_ms: u64,
    pub warmup_transactions: u64,
    #[serde(flatten)]
    pub sql: SqlFields,
}

/// Scripts that are played once.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct RecordedSqlSettings {
    pub workload: RecordedSqlWorkload,
    #[serde(flatten)]
    pub sql: SqlFields,
}

words! {
    SqlWorkload { Sql = "sql" }
}
words! {
    RecordedSqlWorkload { Recorded = "sql-recorded" }
}
words! {
    /// Whether the pauses of a script are kept.
    ThinkTime { None = "none", Recorded = "recorded" }
}

impl SqlSettings {
    /// What there is to do, over all connections.
    pub fn plan(&self) -> Plan {
        Plan::new(self.warmup_transactions, self.transactions, self.duration_ms)
    }
}

#[cfg(test)]
pub mod tests {
    use std::num::NonZeroU64;

    use super::*;
    use crate::sqlite::options::tests::options;
    use crate::workload::regime::Regime;

    /// Of a folder, for tests.
    pub fn sql_fields(scripts: PathBuf) -> SqlFields {
        let regime = RegimeFields { regime: Regime::Fresh, burst_transactions: NonZeroU64::MIN };
        SqlFields { scripts, think_time: ThinkTime::None, regime, options: options() }
    }

    /// Some transactions of a folder, for tests.
    pub fn sql_settings(scripts: PathBuf) -> SqlSettings {
        SqlSettings {
            workload: SqlWorkload::Sql,
            transactions: 20,
            duration_ms: 0,
            warmup_transactions: 2,
            sql: sql_fields(scripts),
        }
    }

    /// All of a folder, for tests.
    pub fn recorded_sql_settings(scripts: PathBuf) -> RecordedSqlSettings {
        RecordedSqlSettings { workload: RecordedSqlWorkload::Recorded, sql: sql_fields(scripts) }
    }
}
