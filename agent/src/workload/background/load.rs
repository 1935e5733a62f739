//! The parent's side of a background load: starts the child process, ends it, and returns what it
//! did.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use anyhow::Context;
use serde_json::{Value, json};

use super::signals::READY;
use crate::record::Background;

/// Its files' directory, in the filesystem's root.
const DIRECTORY: &str = "background";

/// A load that is on.
pub struct BackgroundLoad {
    kind: Background,
    child: Child,
    output: BufReader<ChildStdout>,
}

impl BackgroundLoad {
    /// Starts the load; its files go to a directory of their own in `directory`. None for `none`.
    ///
    /// # Errors
    /// If the process cannot be started, or does not begin.
    pub fn start(kind: Background, directory: &Path) -> anyhow::Result<Option<Self>> {
        if kind == Background::None {
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

impl Drop for BackgroundLoad {
    /// On an error of the workload, the load ends with it.
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}
