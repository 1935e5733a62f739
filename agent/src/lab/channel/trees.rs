//! Unpacks a tree of files, which comes in as a tar archive (jojlab/lab/tree.py), into a new
//! directory. Takes regular files, directories and symbolic links; nothing of it is written
//! elsewhere, and no link of it leads elsewhere.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use tar::{Archive, Entry, EntryType};

/// The lab takes no larger archive, and half as many files (jojlab/lab/tree.py).
pub const MOST_TREE_BYTES: u32 = 256 << 20;
const MOST_MEMBERS: usize = 200_000;

/// The reason why a tree cannot be unpacked.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    #[error("the input tree {0:?} has more than {MOST_MEMBERS} members")]
    TooMany(PathBuf),
    #[error("{member:?} of the input tree {tree:?} {what}")]
    Refused { tree: PathBuf, member: PathBuf, what: &'static str },
    #[error("the input tree {tree:?} cannot be unpacked: {source}")]
    Unpack { tree: PathBuf, source: io::Error },
}

/// Unpacks an archive into `directory`, which must not be there.
///
/// # Errors
/// If the archive is damaged, holds anything else, leads out of the directory, or does not fit.
pub fn unpack(archive: &[u8], directory: &Path) -> Result<(), TreeError> {
    let unpack = |source| TreeError::Unpack { tree: directory.into(), source };
    if let Some(above) = directory.parent() {
        fs::create_dir_all(above).map_err(unpack)?;
    }
    fs::create_dir(directory).map_err(unpack)?;
    let mut archive = Archive::new(archive);
    archive.set_preserve_mtime(false);
    archive.set_overwrite(false);
    for (number, entry) in archive.entries().map_err(unpack)?.enumerate() {
        if number == MOST_MEMBERS {
            return Err(TreeError::TooMany(directory.into()));
        }
        let mut entry = entry.map_err(unpack)?;
        let member = entry.path().map_err(unpack)?.into_owned();
        let refuse = |what| TreeError::Refused { tree: directory.into(), member, what };
        if let Some(what) = fault(&entry).map_err(unpack)? {
            return Err(refuse(what));
        }
        if !entry.unpack_in(directory).map_err(unpack)? {
            return Err(refuse("leads out of it"));
        }
    }
    Ok(())
}

/// Return what is wrong with a member.
fn fault(entry: &Entry<&[u8]>) -> io::Result<Option<&'static str>> {
    let path = entry.path()?;
    if !path.components().all(|part| matches!(part, Component::Normal(_))) {
        return Ok(Some("is no path beneath it"));
    }
    Ok(match entry.header().entry_type() {
        EntryType::Regular | EntryType::Directory => None,
        EntryType::Symlink => match entry.link_name()? {
            Some(target) if is_confined(&path, &target) => None,
            _ => Some("is a link that may lead out of it"),
        },
        _ => Some("is neither file, directory nor symbolic link"),
    })
}

/// Return whether a link cannot lead out of its tree, whatever other confined links it passes: its
/// own directory is a real one, so that the steps up at the beginning of the target are known.
fn is_confined(path: &Path, target: &Path) -> bool {
    let mut parts = target.components().peekable();
    let mut depth = path.components().count();
    if parts.peek().is_none() {
        return false;
    }
    while parts.next_if_eq(&Component::ParentDir).is_some() {
        depth -= 1;
        if depth == 0 {
            return false;
        }
    }
    parts.all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::os::unix::fs::PermissionsExt;
    use tar::{Builder, Header};

    /// Path, type, and contents or target.
    type Member<'a> = (&'a str, EntryType, &'a str);

    fn pack(members: &[Member]) -> Vec<u8> {
        let mut builder = Builder::new(Vec::new());
        for (path, kind, content) in members {
            let mut header = Header::new_ustar();
            // Not by set_path(), which refuses what we want to see refused.
            header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
            header.set_entry_type(*kind);
            header.set_mode(if kind.is_file() { 0o640 } else { 0o755 });
            let mut size = 0;
            if kind.is_file() {
                size = content.len();
            } else {
                header.as_old_mut().linkname[..content.len()].copy_from_slice(content.as_bytes());
            }
            header.set_size(size as u64);
            header.set_cksum();
            builder.append(&header, &content.as_bytes()[..size]).unwrap();
        }
        builder.into_inner().unwrap()
    }

    use EntryType as Is;

    #[test]
    fn a_tree_is_unpacked_as_it_was_packed() {
        let folder = tempfile::tempdir().unwrap();
        let tree = folder.path().join("inputs/tree");
        let members = [
            ("a", Is::Directory, ""),
            ("a/b", Is::Regular, "text"),
            ("a/link", Is::Symlink, "../c"),
            ("c", Is::Regular, ""),
        ];
        unpack(&pack(&members), &tree).unwrap();
        assert_eq!(fs::read(tree.join("a/b")).unwrap(), b"text");
        assert_eq!(fs::metadata(tree.join("a/b")).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(fs::read_link(tree.join("a/link")).unwrap(), Path::new("../c"));
        assert_eq!(fs::read_dir(&tree).unwrap().count(), 2);
    }

    #[test]
    fn members_that_lead_out_of_a_tree_or_are_no_files_are_refused() {
        for (member, words) in [
            (("../x", Is::Regular, "x"), "no path beneath"),
            (("/x", Is::Regular, "x"), "no path beneath"),
            (("a/../../x", Is::Regular, "x"), "no path beneath"),
            (("x", Is::Symlink, "/etc/passwd"), "link"),
            (("x", Is::Symlink, "../x"), "link"),
            (("x", Is::Symlink, "a/../../x"), "link"),
            (("x", Is::Symlink, ""), "link"),
            (("x", Is::Link, "c"), "neither"),
            (("x", Is::Char, ""), "neither"),
            (("x", Is::Fifo, ""), "neither"),
            (("x", Is::GNUSparse, ""), "sparse"),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let tree = folder.path().join("a/tree");
            let error = unpack(&pack(&[member]), &tree).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
            assert_eq!(fs::read_dir(&tree).unwrap().count(), 0);
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        }
    }

    #[test]
    fn nothing_is_written_through_a_link_or_twice() {
        let folder = tempfile::tempdir().unwrap();
        let twice = [("x", Is::Regular, "1"), ("x", Is::Regular, "2")];
        assert!(unpack(&pack(&twice), &folder.path().join("twice")).is_err());
        assert!(unpack(&pack(&[]), &folder.path().join("twice")).is_err());
    }

    proptest! {
        /// Whatever the bytes: a tree or an error, and nothing beside the tree.
        #[test]
        fn damaged_archives_harm_nothing(at in 0..2048_usize, bytes: Vec<u8>) {
            let members = [("a", Is::Directory, ""), ("a/b", Is::Regular, "text")];
            let mut archive = pack(&members);
            let end = archive.len().min(at + bytes.len());
            archive.splice(at.min(end)..end, bytes);
            let folder = tempfile::tempdir().unwrap();
            let _ = unpack(&archive, &folder.path().join("tree"));
            prop_assert!(fs::read_dir(folder.path()).unwrap().count() == 1);
        }
    }
}
