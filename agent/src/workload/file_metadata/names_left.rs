//! The names that changes of names leave: reads a directory; says whether it is as all operations,
//! or after a power cut as those before it, must have left it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::settings::MetadataOperation;
use crate::workload::error::{WorkloadError, failed};
use crate::workload::files::left::{Damage, FilesOfThread};
use crate::workload::power_cut::Progress;

/// The names that must be left.
pub struct NamesLeft {
    pub path: PathBuf,
    pub operation: MetadataOperation,
    pub operations: u64,
}

impl FilesOfThread for NamesLeft {
    fn check(&self) -> Result<(), WorkloadError> {
        let mut wanted: Vec<String> = match self.operation {
            MetadataOperation::Unlink => Vec::new(),
            MetadataOperation::Rename => (0..self.operations).map(new_name).collect(),
            _ => (0..self.operations).map(name).collect(),
        };
        wanted.sort();
        let found = names_in(&self.path)?;
        if found == wanted {
            return Ok(());
        }
        let what = format!(
            "holds {} names, not the {} that {} leaves",
            found.len(),
            wanted.len(),
            self.operation
        );
        Err(WorkloadError::Contents { path: self.path.clone(), what })
    }

    fn survived(&self, progress: Progress) -> Result<Damage, WorkloadError> {
        let Progress { returned, begun } = progress;
        let mut found: BTreeSet<String> = names_in(&self.path)?.into_iter().collect();
        let wrong = |what: String| Err(WorkloadError::Contents { path: self.path.clone(), what });
        let mut damage = Damage::default();
        for index in 0..self.operations {
            let old = found.remove(&name(index));
            let new = found.remove(&new_name(index));
            let is_done = match self.operation {
                MetadataOperation::Create | MetadataOperation::Mkdir => old,
                MetadataOperation::Unlink => !old,
                MetadataOperation::Rename if old && new => {
                    damage.torn += 1;
                    continue;
                }
                MetadataOperation::Rename if !old && !new => {
                    return wrong(format!("has neither {} nor {}", name(index), new_name(index)));
                }
                MetadataOperation::Rename => new,
                MetadataOperation::Stat => continue,
            };
            if is_done && index >= begun {
                return wrong(format!("shows {} of {}, too early", self.operation, name(index)));
            }
            damage.lost += u64::from(!is_done && index < returned);
        }
        match found.first() {
            Some(strange) => wrong(format!("holds {strange}, which nobody made")),
            None => Ok(damage),
        }
    }
}

/// The names in a directory, sorted.
///
/// # Errors
/// If it cannot be listed.
pub fn names_in(path: &Path) -> Result<Vec<String>, WorkloadError> {
    let entries = std::fs::read_dir(path).map_err(failed("list", path))?;
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(failed("list", path))?;
        names.push(entry.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

/// The name that operation `index` makes or finds.
pub fn name(index: u64) -> String {
    format!("file-{index:07}")
}

/// The name that a rename gives.
pub fn new_name(index: u64) -> String {
    format!("renamed-{index:07}")
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    /// Of four operations, of which `counts` returned and began, with these names left.
    fn survived(
        operation: MetadataOperation,
        names: &[String],
        (returned, begun): (u64, u64),
    ) -> Option<(u64, u64)> {
        let folder = tempfile::tempdir().unwrap();
        for name in names {
            File::create(folder.path().join(name)).unwrap();
        }
        let left = NamesLeft { path: folder.path().to_owned(), operation, operations: 4 };
        let found = left.survived(Progress { returned, begun });
        found.ok().map(|it| (it.lost, it.torn))
    }

    fn old<const N: usize>(indexes: [u64; N]) -> Vec<String> {
        indexes.map(name).to_vec()
    }

    #[test]
    fn what_was_made_is_there_once_that_returned() {
        let found = |indexes: &[u64], counts| {
            let names: Vec<String> = indexes.iter().map(|&index| name(index)).collect();
            survived(MetadataOperation::Create, &names, counts)
        };
        assert_eq!(found(&[0, 1], (2, 3)), Some((0, 0)));
        assert_eq!(found(&[0, 1, 2], (2, 3)), Some((0, 0)));
        assert_eq!(found(&[1], (2, 3)), Some((1, 0)));
        assert_eq!(found(&[0, 1, 2, 3], (2, 3)), None);
        assert_eq!(survived(MetadataOperation::Create, &["lost".into()], (0, 4)), None);
    }

    #[test]
    fn what_was_unlinked_is_gone_once_that_returned() {
        let found =
            |names: Vec<String>, counts| survived(MetadataOperation::Unlink, &names, counts);
        assert_eq!(found(old([2, 3]), (2, 3)), Some((0, 0)));
        assert_eq!(found(old([3]), (2, 3)), Some((0, 0)));
        assert_eq!(found(old([1, 2, 3]), (2, 3)), Some((1, 0)));
        assert_eq!(found(old([2]), (2, 3)), None);
    }

    #[test]
    fn a_rename_is_there_whole_or_not_at_all() {
        let found =
            |names: Vec<String>, counts| survived(MetadataOperation::Rename, &names, counts);
        let with = |mut names: Vec<String>, new: &[u64]| {
            names.extend(new.iter().map(|&index| new_name(index)));
            names
        };
        assert_eq!(found(with(old([2, 3]), &[0, 1]), (2, 3)), Some((0, 0)));
        assert_eq!(found(with(old([1, 2, 3]), &[0]), (2, 3)), Some((1, 0)));
        assert_eq!(found(with(old([1, 2, 3]), &[0, 1]), (2, 3)), Some((0, 1)));
        assert_eq!(found(with(old([2, 3]), &[0]), (2, 3)), None);
        assert_eq!(found(with(old([2]), &[0, 1, 3]), (2, 3)), None);
    }
}
