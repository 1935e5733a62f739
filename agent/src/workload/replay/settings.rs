//! The fields of a record whose workload is the replay of recorded system calls.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::record::words;

/// Either is named: a recording is a folder of the machine that the agent runs on, a script a file;
/// a guest has them as inputs. The other is empty.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ReplaySettings {
    pub workload: ReplayWorkload,
    pub recording: PathBuf,
    pub script: PathBuf,
    /// The recorded directory that is the root of the replay.
    pub recorded_root: PathBuf,
    pub timing: Timing,
    /// Time between calls, of what was recorded.
    pub timing_percent: u32,
}

impl ReplaySettings {
    /// Whether that is a recording, and no script.
    pub fn is_recording(&self) -> bool {
        !self.recording.as_os_str().is_empty()
    }

    /// What is replayed.
    pub fn source(&self) -> &Path {
        if self.is_recording() { &self.recording } else { &self.script }
    }
}

words! {
    ReplayWorkload { Replay = "replay" }
}

words! {
    /// When calls are made: at their recorded times, or as soon as those before them are over.
    Timing { Recorded = "recorded", None = "none" }
}
