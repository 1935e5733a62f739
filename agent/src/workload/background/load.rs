//! A background load beside the workload: starts its process and stops it, and what the load left.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use anyhow::Context;
use serde_json::{Value, json};

use super::process::{AppLeft, READY, TIMES};
use crate::record::Background;
use crate::workload::error::WorkloadError;
use crate::workload::kind::Remains;
use crate::workload::power_cut::{Cut, Survival};

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

/// What a background load left.
pub enum BackgroundLeft {
    /// A database whose every commit was synced.
    App(AppLeft),
    /// Files that nobody synced, or none.
    NothingPromised(Background),
}

/// What a workload and the load beside it left.
pub struct RemainsOfBoth {
    pub workload: Box<dyn Remains>,
    pub background: BackgroundLeft,
}

impl Remains for RemainsOfBoth {
    fn check(&self) -> Result<(), WorkloadError> {
        self.workload.check()?;
        match &self.background {
            BackgroundLeft::App(app) => app.check(),
            BackgroundLeft::NothingPromised(_) => Ok(()),
        }
    }

    fn check_oracle(&self) -> Result<(), WorkloadError> {
        self.workload.check_oracle()
    }

    fn survived(&self, cut: &Cut) -> Result<Survival, WorkloadError> {
        let of_workload = self.workload.survived(cut)?;
        Ok(match &self.background {
            BackgroundLeft::App(app) => {
                [of_workload, app.survived(cut.at_ns)?].into_iter().collect()
            }
            BackgroundLeft::NothingPromised(_) => of_workload,
        })
    }

    fn promise_times_ns(&self) -> Vec<i64> {
        let mut times = self.workload.promise_times_ns();
        if let BackgroundLeft::App(app) = &self.background {
            times.extend(app.times.promises_ns());
        }
        times
    }

    fn unchecked(&self) -> Vec<String> {
        let mut unchecked = self.workload.unchecked();
        if let BackgroundLeft::NothingPromised(kind @ Background::Video) = self.background {
            unchecked.push(format!("the file of background {kind}: it is never synced"));
        }
        unchecked
    }
}
