//! The parent's side of a background load: starts the child process, ends it, and returns what it
//! did, and what it left.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use anyhow::Context;
use serde_json::{Value, json};

use super::left::BackgroundLeft;
use super::signals::READY;
use super::sqlite::{AppLeft, TIMES};
use crate::record::Background;

/// Its files' directory, in the filesystem's root.
const DIRECTORY: &str = "background";

/// A load that is on.
pub struct BackgroundLoad {
    kind: Background,
    directory: PathBuf,
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
        let (parent, directory) = (directory, directory.join(DIRECTORY));
        let name = || directory.display().to_string();
        std::fs::create_dir(&directory).with_context(name)?;
        if kind == Background::Sqlite {
            // An app's directory is there long before its commits, which do not make it durable.
            File::open(parent).and_then(|parent| parent.sync_all()).with_context(name)?;
        }
        let mut child = Command::new("/proc/self/exe")
            .args(["background", kind.word()])
            .arg(&directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("starting the background load")?;
        let output = child.stdout.take().context("the background load's output")?;
        let output = BufReader::new(output);
        let mut background = Self { kind, directory, child, output };
        let first = background.line()?;
        anyhow::ensure!(first == READY, "the background load {kind} did not begin");
        Ok(Some(background))
    }

    /// Ends the load; gives what it did, for the manifest, and what it left.
    ///
    /// # Errors
    /// If it failed.
    pub fn stop(mut self) -> anyhow::Result<(Value, BackgroundLeft)> {
        drop(self.child.stdin.take());
        let report = self.line()?;
        let status = self.child.wait().context("waiting for the background load")?;
        anyhow::ensure!(status.success(), "the background load {} failed: {status}", self.kind);
        let what = "the background load's report";
        let mut did: Value = serde_json::from_str(&report).context(what)?;
        let times = did.as_object_mut().and_then(|did| did.remove(TIMES));
        let left = match (self.kind, times) {
            (Background::Sqlite, Some(times)) => {
                let times = serde_json::from_value(times).context(what)?;
                BackgroundLeft::App(AppLeft { directory: self.directory.clone(), times })
            }
            (kind, _) => BackgroundLeft::NothingPromised(kind),
        };
        let did = json!({ "kind": self.kind.word(), "pid": self.child.id(), "did": did });
        Ok((did, left))
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
