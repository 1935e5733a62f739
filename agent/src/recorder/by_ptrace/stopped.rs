//! A thread that stands at the begin or the end of a call: what it knows is looked at in /proc and
//! in its memory.

use super::super::snapshot::FoundPath;
use crate::recorder::contents::{ProcessMemory, ProgramMemory};
use crate::recorder::snapshot::{self, CallPath, Sight};
use crate::tables::recording::PathState;

pub struct StoppedThread {
    tid: i32,
    memory: ProcessMemory,
}

impl StoppedThread {
    pub fn new(tid: i32) -> Self {
        StoppedThread { tid, memory: ProcessMemory(tid) }
    }
}

impl Sight for StoppedThread {
    fn directory(&self, _named: CallPath, descriptor: Option<i64>) -> Option<Vec<u8>> {
        snapshot::directory(self.tid, descriptor)
    }

    /// The call has not been made yet: what is found is what was there.
    fn before(&self, _named: CallPath, _absolute: &[u8], found: FoundPath) -> PathState {
        found.row
    }

    fn opened(&self, descriptor: i64) -> Option<(i64, i64)> {
        snapshot::identity(self.tid, descriptor)
    }

    fn memory(&self) -> &dyn ProgramMemory {
        &self.memory
    }
}
