//! Names that were there when the recording began: those below the directory that the program
//! begins in. What it removes or overwrites before we look is known by them.

use std::collections::{HashMap, VecDeque};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use crate::tables::recording::PathState;

/// Looking at so many takes some 50 ms.
const MOST_NAMES: usize = 10_000;

/// Absolute paths and what they led to.
#[derive(Default)]
pub struct EarlyNames(HashMap<Vec<u8>, PathState>);

impl EarlyNames {
    /// Those of the directory and of the directories below on its filesystem, the nearest first.
    pub fn below(directory: &[u8], find: impl Fn(&[u8]) -> PathState) -> Self {
        let mut names = HashMap::new();
        let device = find(directory).device;
        let mut waiting = VecDeque::from([PathBuf::from(OsStr::from_bytes(directory))]);
        while let Some(directory) = waiting.pop_front() {
            let Ok(entries) = fs::read_dir(&directory) else { continue };
            for path in entries.flatten().map(|entry| entry.path()) {
                if names.len() == MOST_NAMES {
                    return EarlyNames(names);
                }
                let row = find(path.as_os_str().as_bytes());
                if row.kind == "directory" && row.device == device {
                    waiting.push_back(path.clone());
                }
                names.insert(path.into_os_string().into_encoded_bytes(), row);
            }
        }
        EarlyNames(names)
    }

    /// What was there; none where nothing was, or nobody looked.
    pub fn get(&self, path: &[u8]) -> Option<&PathState> {
        self.0.get(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_directories_below() {
        let here = tempfile::tempdir().unwrap();
        fs::create_dir(here.path().join("d")).unwrap();
        fs::write(here.path().join("d/f"), "x").unwrap();
        let find = |path: &[u8]| {
            let is_directory = fs::metadata(OsStr::from_bytes(path)).unwrap().is_dir();
            let kind = if is_directory { "directory" } else { "file" };
            PathState { kind: kind.into(), device: Some(1), ..PathState::default() }
        };
        let early = EarlyNames::below(here.path().as_os_str().as_bytes(), find);
        let kind = |name: &str| {
            let path = here.path().join(name);
            early.get(path.as_os_str().as_bytes()).map(|row| row.kind.to_string())
        };
        assert_eq!(kind("d").as_deref(), Some("directory"));
        assert_eq!(kind("d/f").as_deref(), Some("file"));
        assert_eq!(kind("e"), None);
    }
}
