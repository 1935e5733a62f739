//! Which process opened a file last to write it, or synced it: kernel threads write most of what
//! processes wrote. Its memory has a bound.

use std::collections::BTreeMap;

use crate::commits::call::{Caller, Deed, FileCall, FileLife};
use crate::tracer::FileKey;

/// Files that are kept of each of two generations.
const FILES_KEPT: usize = 16_384;

/// Where there are more names than a segment has rows for.
pub const OTHERS: &str = "(others)";

/// By file.
#[derive(Debug, Default)]
pub struct Writers {
    newer: BTreeMap<FileLife, Caller>,
    older: BTreeMap<FileLife, Caller>,
}

impl Writers {
    /// A call that opened a file to write it, wrote or synced it.
    pub fn see(&mut self, call: &FileCall) {
        let Some(file) = call.file else { return };
        if !matches!(call.deed, Deed::Open { .. } | Deed::Write { .. } | Deed::Sync { .. }) {
            return;
        }
        if self.newer.len() >= FILES_KEPT {
            self.older = std::mem::take(&mut self.newer);
        }
        self.newer.insert(file, call.caller);
    }

    /// The process that is known of a file.
    pub fn of(&self, file: FileKey) -> Option<String> {
        let life = (file.filesystem, file.inode, file.generation);
        let caller = self.newer.get(&life).or_else(|| self.older.get(&life))?;
        Some(process_name(caller))
    }
}

/// The command name of a process.
pub fn process_name(caller: &Caller) -> String {
    let end = caller.process.iter().position(|&byte| byte == 0).unwrap_or(caller.process.len());
    String::from_utf8_lossy(&caller.process[..end]).into_owned()
}
