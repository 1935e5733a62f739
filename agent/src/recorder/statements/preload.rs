//! The library that is loaded before a program's SQLite (agent/preload), laid down where the
//! dynamic linker finds it, and the folder where the program's processes write their logs.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

const LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/preload.so"));
const LD_PRELOAD: &str = "LD_PRELOAD";

/// The library and the logs, until they are dropped.
pub struct Preload {
    library: PathBuf,
    /// A folder of ours beside the recording, where its own name could not be used.
    elsewhere: Option<PathBuf>,
    logs: PathBuf,
}

impl Preload {
    /// Lays the library down beneath a folder that is there.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn lay_down(folder: &Path) -> io::Result<Self> {
        let logs = folder.join("logs");
        DirBuilder::new().mode(0o700).create(&logs)?;
        if rustix::process::geteuid().is_root() {
            // The program may go on as another user.
            fs::set_permissions(&logs, Permissions::from_mode(0o1777))?;
        }
        let elsewhere = if can_be_listed(&logs) { None } else { Some(private_folder()?) };
        let library = elsewhere.as_ref().unwrap_or(&logs).join("joj-preload.so");
        fs::write(&library, LIBRARY)?;
        fs::set_permissions(&library, Permissions::from_mode(0o755))?;
        Ok(Preload { library, elsewhere, logs })
    }

    /// Has a command load it, beside what it loads already.
    pub fn arm(&self, command: &mut Command, values: &str) {
        let mut list = OsString::from(&self.library);
        if let Some(others) = std::env::var_os(LD_PRELOAD).filter(|it| !it.is_empty()) {
            list.push(":");
            list.push(others);
        }
        command.env(LD_PRELOAD, list);
        command.env("JOJ_STATEMENTS", &self.logs);
        command.env("JOJ_STATEMENT_VALUES", values);
    }

    /// The logs, in the order in which their processes began them.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn logs(&self) -> io::Result<Vec<PathBuf>> {
        let entries = fs::read_dir(&self.logs)?.collect::<Result<Vec<_>, _>>()?;
        let mut logs: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).collect();
        logs.retain(|path| path.extension().is_some_and(|it| it == "log"));
        // PID-NANOSECONDS.log
        logs.sort_by_key(|path| {
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            name.split_once('-').and_then(|(_, time)| time.parse::<u64>().ok())
        });
        Ok(logs)
    }
}

impl Drop for Preload {
    fn drop(&mut self) {
        // What stays behind does no harm, and there is nobody to tell.
        let _ = fs::remove_dir_all(&self.logs);
        if let Some(folder) = &self.elsewhere {
            let _ = fs::remove_dir_all(folder);
        }
    }
}

/// LD_PRELOAD is a list with blanks and colons between its parts (ld.so(8)).
fn can_be_listed(path: &Path) -> bool {
    !path.as_os_str().as_bytes().iter().any(|byte| matches!(byte, b' ' | b':' | b'\t' | b'\n'))
}

fn private_folder() -> io::Result<PathBuf> {
    let temporary = std::env::temp_dir();
    let parent = if can_be_listed(&temporary) { temporary } else { "/tmp".into() };
    let name = format!("joj-{}-{}", std::process::id(), crate::tables::timeline::now_ns());
    let folder = parent.join(name);
    // Others must be able to load from it; only we write.
    DirBuilder::new().mode(0o755).create(&folder)?;
    Ok(folder)
}
