//! What can be replayed: steps, and the files that they are about.

use std::path::PathBuf;

use super::call::CallName;

/// One call, ready to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayStep {
    pub line: usize,
    /// After the beginning of the replay; never less than of the thread's step before.
    pub due_ns: i64,
    pub name: CallName,
    /// Which of the files.
    pub file: usize,
    /// Which of the open files; of open, the one it makes, none where it failed.
    pub handle: Option<usize>,
    /// Steps on the same file that come before.
    pub turn: u32,
    pub offset: u64,
    pub bytes: usize,
    pub flags: i32,
    pub succeeded: Option<bool>,
}

/// A file or directory of the replay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayFile {
    /// In the directory of the replay.
    pub path: PathBuf,
    pub is_directory: bool,
    /// A path that no open may lead to: its directory is never made.
    pub is_nowhere: bool,
    /// Bytes before the first step; none where it is not there.
    pub begins: Option<u64>,
    /// Bytes after the last step, if all went as it should; none where it is not there.
    pub ends: Option<u64>,
}
