//! Lines that cannot be read: counted, the first of them told by file, line and column; or the
//! import ends at the first, if the user wants it so.

use std::path::Path;

use crate::errors::WrongUse;

/// As many are told; all are counted.
const TOLD: usize = 5;
/// Letters of a line that are shown.
const SHOWN: usize = 60;

/// The lines so far.
#[derive(Debug, Default)]
pub struct Bad {
    pub is_strict: bool,
    pub count: u64,
    pub told: Vec<String>,
}

impl Bad {
    /// A line that is none, from a column on (from 0).
    ///
    /// # Errors
    /// If the import is to end at it.
    pub fn line(
        &mut self,
        path: &Path,
        number: u64,
        at: usize,
        what: &str,
        text: &[u8],
    ) -> Result<(), WrongUse> {
        self.count += 1;
        if !self.is_strict && self.told.len() >= TOLD {
            return Ok(());
        }
        let shown = String::from_utf8_lossy(&text[..text.len().min(SHOWN)]);
        let message = format!(
            "{}: line {number}, column {}: {what}: {:?}; record with strace -o FILE, so that \
             nothing else writes there, or correct the line",
            path.display(),
            at + 1,
            shown,
        );
        if self.is_strict {
            return Err(WrongUse(message));
        }
        self.told.push(message);
        Ok(())
    }
}
