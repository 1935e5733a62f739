//! Background load: a second process of the agent's program that does what a phone does besides the
//! measured workload. Starts it before the warm-up, ends it after the last transaction, and returns
//! what it did. The tables show its name, joj-background, as its requests' submitter.
//!
//! The parent holds the child's standard input open. End of file is the signal to stop; it also
//! comes when the parent dies.

mod cpu;
mod sqlite;
mod video;

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use anyhow::Context;
use serde_json::{Value, json};

use crate::record;

/// The process's name; the longest the kernel keeps has 15 bytes.
const NAME: &std::ffi::CStr = c"joj-background";
/// Its files' directory, in the filesystem's root.
const DIRECTORY: &str = "background";
/// What the child says when it has begun.
const READY: &str = "ready\n";

/// A load that is on.
pub struct Background {
    kind: record::Background,
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Background {
    /// Starts the load; its files go to a directory of their own in `directory`. None for `none`.
    ///
    /// # Errors
    /// If the process cannot be started, or does not begin.
    pub fn start(kind: record::Background, directory: &Path) -> anyhow::Result<Option<Self>> {
        if kind == record::Background::None {
            return Ok(None);
        }
        let directory = directory.join(DIRECTORY);
        std::fs::create_dir(&directory).with_context(|| format!("{}", directory.display()))?;
        let mut child = Command::new("/proc/self/exe")
            .args(["background", kind.word()])
            .arg(&directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("starting the background load")?;
        let output = child.stdout.take().context("the background load's output")?;
        let mut background = Self { kind, child, output: BufReader::new(output) };
        let first = background.line()?;
        anyhow::ensure!(first == READY, "the background load {kind} did not begin");
        Ok(Some(background))
    }

    /// Ends the load; gives what it did, for the manifest.
    ///
    /// # Errors
    /// If it failed.
    pub fn stop(mut self) -> anyhow::Result<Value> {
        drop(self.child.stdin.take());
        let report = self.line()?;
        let status = self.child.wait().context("waiting for the background load")?;
        anyhow::ensure!(status.success(), "the background load {} failed: {status}", self.kind);
        let did: Value = serde_json::from_str(&report).context("the background load's report")?;
        Ok(json!({ "kind": self.kind.word(), "pid": self.child.id(), "did": did }))
    }

    fn line(&mut self) -> anyhow::Result<String> {
        let mut line = String::new();
        self.output.read_line(&mut line).context("reading from the background load")?;
        Ok(line)
    }
}

impl Drop for Background {
    /// On an error of the workload, the load ends with it.
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// The child's side: says that it has begun, and when to stop.
struct Signals {
    input: File,
}

impl Signals {
    fn begin() -> anyhow::Result<Self> {
        let mut output = std::io::stdout();
        output.write_all(READY.as_bytes()).and_then(|()| output.flush()).context("saying ready")?;
        Ok(Self { input: File::open("/proc/self/fd/0").context("standard input")? })
    }

    /// Whether the parent wants an end, waiting for it for so long at most.
    fn shall_stop(&self, wait_ns: i64) -> bool {
        use std::os::fd::AsRawFd;
        let wait_ns = wait_ns.max(0);
        let time =
            libc::timespec { tv_sec: wait_ns / 1_000_000_000, tv_nsec: wait_ns % 1_000_000_000 };
        let mut poll = libc::pollfd { fd: self.input.as_raw_fd(), events: 0, revents: 0 };
        // SAFETY: one live pollfd, a live timespec, and no signal mask.
        let ready = unsafe { libc::ppoll(&raw mut poll, 1, &raw const time, std::ptr::null()) };
        ready > 0
    }
}

/// What the child's process does: the load, until its standard input ends.
///
/// # Errors
/// If the load fails.
pub fn run(kind: record::Background, directory: &Path) -> anyhow::Result<()> {
    rustix::thread::set_name(NAME).context("naming the process")?;
    let did = match kind {
        record::Background::None => anyhow::bail!("none is no load to run"),
        record::Background::Video => video::run(directory)?,
        record::Background::Cpu => cpu::run()?,
        record::Background::Sqlite => sqlite::run(directory)?,
    };
    let mut output = std::io::stdout();
    writeln!(output, "{did}").and_then(|()| output.flush()).context("reporting")
}

/// The path of one of its files.
fn path(directory: &Path, name: &str) -> PathBuf {
    directory.join(name)
}
