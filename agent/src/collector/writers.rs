//! Which process opened a file last to write it, or synced it: kernel threads write most of what
//! processes wrote. Its memory has a bound.

use crate::commits::call::{Caller, Deed, FileCall};
use crate::commits::recent_map::RecentMap;
use crate::tracer::FileKey;

/// Files that are kept: so many recent ones, and as many others.
const FILES_KEPT: usize = 16_384;

/// Where there are more names than a segment has rows for.
pub const OTHERS: &str = "(others)";

/// By file.
#[derive(Debug, Default)]
pub struct Writers(RecentMap<FileKey, Caller, FILES_KEPT>);

impl Writers {
    /// A call that opened a file to write it, wrote or synced it.
    pub fn see(&mut self, call: &FileCall) {
        let Some(file) = call.file else { return };
        if !matches!(call.deed, Deed::Open { .. } | Deed::Write { .. } | Deed::Sync { .. }) {
            return;
        }
        self.0.insert(file, call.caller);
    }

    /// The process that is known of a file.
    pub fn of(&self, file: FileKey) -> Option<String> {
        self.0.peek(&file).map(process_name)
    }
}

/// The command name of a process.
pub fn process_name(caller: &Caller) -> String {
    let end = caller.process.iter().position(|&byte| byte == 0).unwrap_or(caller.process.len());
    String::from_utf8_lossy(&caller.process[..end]).into_owned()
}
