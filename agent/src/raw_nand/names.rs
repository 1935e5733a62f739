//! Names of files on UBIFS: takes the entries of directories as they are programmed, and gives the
//! path of an inode, whether or not a call on it was ever seen.

use std::collections::HashMap;

use super::nodes::DirectoryEntry;

/// UBIFS_ROOT_INO.
const ROOT: u64 = 1;
/// Directories in each other, at most: a path has 4096 bytes.
const MOST_STEPS: usize = 2048;

/// The last name of each inode, which it keeps here when it is taken away.
#[derive(Debug, Default)]
pub struct InodeNames {
    entries: HashMap<u64, DirectoryEntry>,
}

impl InodeNames {
    /// An entry was programmed, which was not moved from elsewhere.
    pub fn see(&mut self, entry: DirectoryEntry) {
        if entry.inode > 0 {
            self.entries.insert(entry.inode, entry);
        }
    }

    /// The path from the root of the filesystem; None where a name of it was not seen.
    pub fn path(&self, inode: u64) -> Option<String> {
        let (mut names, mut at) = (Vec::new(), inode);
        while at != ROOT {
            let entry = self.entries.get(&at).filter(|_| names.len() < MOST_STEPS)?;
            names.push(entry.name.as_str());
            at = entry.directory;
        }
        names.reverse();
        Some(format!("/{}", names.join("/")))
    }

    /// Whether it is a directory.
    pub fn is_directory(&self, inode: u64) -> bool {
        inode == ROOT || self.entries.get(&inode).is_some_and(|entry| entry.is_directory)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn see(names: &mut InodeNames, directory: u64, name: &str, inode: u64) {
        names.see(DirectoryEntry {
            directory,
            name: name.to_owned(),
            inode,
            is_directory: inode < 70,
        });
    }

    #[test]
    fn a_path_is_of_the_last_names() {
        let mut names = InodeNames::default();
        see(&mut names, 1, "old", 65);
        see(&mut names, 65, "a", 70);
        see(&mut names, 1, "new", 65);
        see(&mut names, 1, "old", 0);
        assert_eq!(names.path(70).as_deref(), Some("/new/a"));
        assert_eq!(names.path(1).as_deref(), Some("/"));
        assert_eq!(names.path(71), None);
        assert!(names.is_directory(65) && names.is_directory(1) && !names.is_directory(70));
    }

    #[test]
    fn damaged_names_in_a_circle_are_none() {
        let mut names = InodeNames::default();
        see(&mut names, 66, "a", 65);
        see(&mut names, 65, "b", 66);
        assert_eq!(names.path(65), None);
    }
}
