//! Reads what is to be replayed, whatever it is: the folder of a recording, or a script.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::plan::ReplayPlan;
use super::{mobigen, recorded};
use crate::tables::read::ReadError;

/// A call takes 12 bytes at the least, so that there are never more than a few million.
const MOST_SCRIPT_BYTES: u64 = 64 << 20;

/// Reads a folder as a recording, of which what is below `recorded_root` is replayed, and a file
/// as a script of MobiGen, which is replayed whole.
///
/// # Errors
/// Naming the file, if it cannot be read, is neither, or is too large.
pub fn read_plan(path: &Path, recorded_root: &Path) -> Result<ReplayPlan, ReadError> {
    if path.is_dir() {
        return recorded::plan(path, recorded_root);
    }
    let refuse = |what: String| ReadError::new(path, what);
    if recorded_root != Path::new("/") {
        return Err(refuse("a script is replayed whole; recorded_root is for recordings".into()));
    }
    let file = File::open(path).map_err(|error| refuse(error.to_string()))?;
    let mut text = Vec::new();
    file.take(MOST_SCRIPT_BYTES + 1)
        .read_to_end(&mut text)
        .map_err(|error| refuse(error.to_string()))?;
    if text.len() as u64 > MOST_SCRIPT_BYTES {
        return Err(refuse(format!("is longer than {MOST_SCRIPT_BYTES} bytes; replay a part")));
    }
    let script = mobigen::parse(&text).map_err(|error| refuse(error.to_string()))?;
    Ok(ReplayPlan::from(&script))
}
