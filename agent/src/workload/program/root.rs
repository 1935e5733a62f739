//! Makes what a program finds in the guest: devices, users, and the files in its working directory.

use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, lchown, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};

use crate::workload::error::{WorkloadError, failed};

/// Who the program is: nobody else in the guest is.
pub const UID: u32 = 1000;
/// Its working directory, in its own root.
pub const WORK: &str = "app";
/// Libraries that do not lie where the system's do (jojlab/program/needs.py).
const OWN_LIBRARIES: &str = "opt/program/lib";

/// Character devices by their numbers (Documentation/admin-guide/devices.txt of Linux).
const DEVICES: [(&str, u32); 5] =
    [("null", 3), ("zero", 5), ("full", 7), ("random", 8), ("urandom", 9)];

/// A path, and what is written there where nothing is.
const USERS: [(&str, &str); 2] = [
    ("etc/passwd", "root:x:0:0::/:/bin/sh\napp:x:1000:1000::/app:/bin/sh\n"),
    ("etc/group", "root:x:0:\napp:x:1000:\n"),
];

/// Makes in `root` all that is not the program's own; gives the path of the program there.
///
/// # Errors
/// If there is no program in it, or a step fails.
pub fn furnish(root: &Path) -> Result<PathBuf, WorkloadError> {
    let link = root.join("program");
    let target = fs::read_link(&link).map_err(failed("read the link", &link))?;
    for folder in ["dev", "proc", "etc", WORK] {
        let folder = root.join(folder);
        fs::create_dir_all(&folder).map_err(failed("mkdir", &folder))?;
    }
    fs::set_permissions(root, fs::Permissions::from_mode(0o755)).map_err(failed("chmod", root))?;
    for (name, minor) in DEVICES {
        let path = root.join("dev").join(name);
        let mode = Mode::from_raw_mode(0o666);
        mknodat(CWD, &path, FileType::CharacterDevice, mode, makedev(1, minor))
            .map_err(failed("mknod", &path))?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666))
            .map_err(failed("chmod", &path))?;
    }
    for (path, text) in USERS {
        let path = root.join(path);
        if !path.exists() {
            fs::write(&path, text).map_err(failed("write", &path))?;
        }
    }
    Ok(Path::new("/").join(target))
}

/// The environment that every program has, then its own.
pub fn environment(root: &Path, own: &[String]) -> Vec<String> {
    let fixed = [
        "PATH=/usr/local/bin:/usr/bin:/bin",
        "HOME=/app",
        "TMPDIR=/app",
        "USER=app",
        "LOGNAME=app",
        "LANG=C.UTF-8",
        "TZ=UTC",
    ];
    let mut all: Vec<String> = fixed.map(String::from).to_vec();
    if root.join(OWN_LIBRARIES).is_dir() {
        all.push(format!("LD_LIBRARY_PATH=/{OWN_LIBRARIES}"));
    }
    all.extend_from_slice(own);
    all
}

/// Copies a tree into `directory` and gives all of it to the program; links stay links.
///
/// # Errors
/// If a step fails.
pub fn give_files(from: &Path, directory: &Path) -> Result<(), WorkloadError> {
    if !from.as_os_str().is_empty() {
        copy(from, directory).map_err(failed("copy the files of", from))?;
    }
    lchown(directory, Some(UID), Some(UID)).map_err(failed("chown", directory))
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let mut entries = fs::read_dir(from)?.collect::<io::Result<Vec<_>>>()?;
    // Equal trees are to lie equally on the disk.
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type()?;
        if kind.is_symlink() {
            symlink(fs::read_link(&source)?, &target)?;
        } else if kind.is_dir() {
            fs::create_dir_all(&target)?;
            copy(&source, &target)?;
            fs::set_permissions(&target, entry.metadata()?.permissions())?;
        } else {
            fs::copy(&source, &target)?;
        }
        lchown(&target, Some(UID), Some(UID))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_is_fixed_but_for_what_is_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let own = ["A=1".to_owned()];
        let found = environment(folder.path(), &own);
        assert_eq!(found.last().unwrap(), "A=1");
        assert!(!found.iter().any(|it| it.starts_with("LD_LIBRARY_PATH")));
        fs::create_dir_all(folder.path().join(OWN_LIBRARIES)).unwrap();
        let found = environment(folder.path(), &own);
        assert!(found.contains(&"LD_LIBRARY_PATH=/opt/program/lib".to_owned()));
    }
}
