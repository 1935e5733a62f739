//! The library that a recorded program loads before its SQLite: puts it into a file, sets the
//! environment, and reads from the program's file whether it would load it (ELF: elf(5)).

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, FileExt, PermissionsExt};
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

/// Words of SQLite's own that nothing else has (OP_AutoCommit in src/vdbe.c).
const SQLITE_WORDS: &[u8] = b"cannot start a transaction within a transaction\0";
/// Says what a program that is linked to SQLite's library has.
const SQLITE_LIBRARY: &[u8] = b"libsqlite3.so";
/// Scripts whose interpreter is a script (execve(2)).
const MOST_SCRIPTS: usize = 4;
const PT_INTERP: u32 = 3;

/// This machine's: its name, e_machine of its programs, and glibc's dynamic linker (elf(5)).
const MACHINE: (&str, u16, &str) = if cfg!(target_arch = "aarch64") {
    ("arm64", 183, "/ld-linux-aarch64.so.1")
} else {
    ("x86-64", 62, "/ld-linux-x86-64.so.2")
};

/// The way a program gets its libraries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Linking {
    /// It is loaded by glibc's dynamic linker, which loads ours first.
    Dynamic,
    /// It needs none: nothing can be loaded before its SQLite.
    Static,
    /// It is loaded by another dynamic linker, or it is of another machine.
    Foreign(String),
}

/// A program's file, that of its interpreter if it is a script.
#[derive(Debug)]
pub struct ProgramFile {
    pub path: PathBuf,
    pub linking: Linking,
}

impl ProgramFile {
    /// Looks at a program's file.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn look(path: &Path) -> io::Result<Self> {
        let mut path = path.to_owned();
        for _ in 0..MOST_SCRIPTS {
            match interpreter(&path)? {
                Some(interpreter) => path = interpreter,
                None => break,
            }
        }
        let linking = linking(&File::open(&path)?)?;
        Ok(ProgramFile { path, linking })
    }

    /// Return whether its SQLite is built in, and not that of the library: what cannot be read is
    /// not.
    pub fn has_sqlite_built_in(&self) -> bool {
        let has = |wanted| File::open(&self.path).and_then(|file| holds(file, wanted));
        has(SQLITE_WORDS).unwrap_or(false) && !has(SQLITE_LIBRARY).unwrap_or(false)
    }
}

/// The program that runs a script; none of one that is no script.
fn interpreter(path: &Path) -> io::Result<Option<PathBuf>> {
    let mut line = [0; 256];
    let read = File::open(path)?.read(&mut line)?;
    let Some(text) = line[..read].strip_prefix(b"#!") else { return Ok(None) };
    let text = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let text = String::from_utf8_lossy(text);
    Ok(text.split_whitespace().next().map(PathBuf::from))
}

fn linking(file: &File) -> io::Result<Linking> {
    let mut head = [0; 64];
    if file.read_at(&mut head, 0)? < head.len() || !head.starts_with(b"\x7fELF") {
        return Ok(Linking::Foreign("it is no ELF file".into()));
    }
    let (name, machine, linker) = MACHINE;
    // 64 bits, little endian, of this machine.
    if head[4] != 2 || head[5] != 1 || head[18..20] != machine.to_le_bytes() {
        return Ok(Linking::Foreign(format!("it is of another machine than {name}")));
    }
    let at = u64::from_le_bytes(head[32..40].try_into().unwrap_or_default());
    let size = u64::from(u16::from_le_bytes([head[54], head[55]]));
    let count = u64::from(u16::from_le_bytes([head[56], head[57]]));
    for number in 0..count {
        let mut part = [0; 56];
        let Some(begin) = number.checked_mul(size).and_then(|it| it.checked_add(at)) else { break };
        if file.read_at(&mut part, begin)? < part.len() {
            break;
        }
        if u32::from_le_bytes([part[0], part[1], part[2], part[3]]) == PT_INTERP {
            let offset = u64::from_le_bytes(part[8..16].try_into().unwrap_or_default());
            let mut name = [0; 256];
            let read = file.read_at(&mut name, offset)?;
            let name = name[..read].split(|byte| *byte == 0).next().unwrap_or_default();
            let name = String::from_utf8_lossy(name).into_owned();
            let is_glibc = name.ends_with(linker);
            let foreign = || Linking::Foreign(format!("its dynamic linker is {name}, not glibc's"));
            return Ok(if is_glibc { Linking::Dynamic } else { foreign() });
        }
    }
    Ok(Linking::Static)
}

fn holds(mut file: File, wanted: &[u8]) -> io::Result<bool> {
    let mut window = Vec::new();
    let mut block = vec![0; 1 << 20];
    loop {
        let read = file.read(&mut block)?;
        if read == 0 {
            return Ok(false);
        }
        window.extend_from_slice(&block[..read]);
        if window.windows(wanted.len()).any(|it| it == wanted) {
            return Ok(true);
        }
        window.drain(..window.len().saturating_sub(wanted.len()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dynamic_program_a_script_and_a_file_of_none_are_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(ProgramFile::look(Path::new("/bin/sh")).unwrap().linking, Linking::Dynamic);
        let script = folder.path().join("script");
        std::fs::write(&script, "#! /bin/sh -e\ntrue\n").unwrap();
        let looked = ProgramFile::look(&script).unwrap();
        assert_eq!(
            (looked.path.as_path(), looked.linking),
            (Path::new("/bin/sh"), Linking::Dynamic)
        );
        std::fs::write(&script, [0x7f; 100]).unwrap();
        assert!(matches!(ProgramFile::look(&script).unwrap().linking, Linking::Foreign(_)));
    }

    #[test]
    fn this_test_has_sqlite_built_in_and_the_shell_has_not() {
        let own = std::env::current_exe().unwrap();
        assert_eq!(ProgramFile::look(&own).unwrap().linking, Linking::Static);
        assert!(holds(File::open(&own).unwrap(), SQLITE_WORDS).unwrap());
        assert!(!ProgramFile::look(Path::new("/bin/sh")).unwrap().has_sqlite_built_in());
    }
}
