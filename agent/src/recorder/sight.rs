//! What a recorder knows of a call beside its number and arguments. Each way of recording gives it:
//! of a stopped thread it is looked at, of one that goes on the kernel has told it.

use super::memory::ProgramMemory;
use super::snapshot::FoundPath;
use crate::tables::recording::PathState;

/// Which of the paths of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallPath {
    First,
    /// Of rename and link the new name.
    Second,
}

/// A call, as it is seen.
pub trait Sight {
    /// The directory that a relative path begins at, by the descriptor that the call names.
    fn directory(&self, named: CallPath, descriptor: Option<i64>) -> Option<Vec<u8>>;

    /// What a path led to before the call, of what it leads to now.
    fn before(&self, named: CallPath, absolute: &[u8], found: FoundPath) -> PathState;

    /// st_dev and st_ino of the file that the call opened.
    fn opened(&self, descriptor: i64) -> Option<(i64, i64)>;

    /// The memory of its program.
    fn memory(&self) -> &dyn ProgramMemory;
}
