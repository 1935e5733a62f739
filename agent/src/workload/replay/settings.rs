//! The fields of a record whose workload is the replay of recorded system calls.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::record::words;

/// The recording is a folder of the machine that the agent runs on, or a script in a file; a guest
/// has it as an input.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ReplaySettings {
    pub workload: ReplayWorkload,
    pub recording: PathBuf,
    pub timing: Timing,
    /// Time between calls, of what was recorded.
    pub timing_percent: u32,
}

words! {
    ReplayWorkload { Replay = "replay" }
}

words! {
    /// When calls are made: at their recorded times, or as soon as those before them are over.
    Timing { Recorded = "recorded", None = "none" }
}
