//! The folder of a recording. A thread of its own writes the rows, so that the program waits for
//! no file of ours. Segments are there whole or not at all: a recorder that is killed leaves a
//! recording that is marked incomplete.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use serde_json::{Value, json};

use super::contents::PendingContents;
use super::signals;
use crate::tables::recording::{OpenDescriptor, PathState, RecordedCall, RecordedThread};
use crate::tables::write::{ManifestRow, Segments, WriteError, new_folder};

/// Rounds that wait to be written, before the program waits for them.
const WAITING: usize = 4;

/// Rows that are written together.
#[derive(Default)]
pub struct Round {
    pub calls: Vec<RecordedCall>,
    pub snapshot: Vec<PathState>,
    /// All so far.
    pub threads: Vec<RecordedThread>,
    /// All so far.
    pub descriptors: Vec<OpenDescriptor>,
    /// Kept contents of write calls, which are new.
    pub contents: PendingContents,
}

/// A recording under way.
pub struct RecordingOutput {
    rounds: SyncSender<Round>,
    writer: JoinHandle<Result<SegmentWriter, WriteError>>,
    directory: PathBuf,
}

struct SegmentWriter {
    segments: Segments,
    directory: PathBuf,
}

impl RecordingOutput {
    /// Makes the folder, and in it a recording of nothing that says it was not ended.
    ///
    /// # Errors
    /// If something is there already, or it cannot be written.
    pub fn create(directory: &Path, facts: &[(&str, Value)]) -> anyhow::Result<Self> {
        let directory = new_folder(directory)?;
        let segments = Segments::new(&directory);
        segments.replace(&entries(facts.iter().chain(&facts_before_end())))?;
        segments.replace::<RecordedThread>(&[])?;
        segments.replace::<OpenDescriptor>(&[])?;
        let (rounds, received) = sync_channel(WAITING);
        let writer = SegmentWriter { segments, directory: directory.clone() };
        let writer = std::thread::Builder::new().name("writer".into()).spawn(move || {
            signals::block_here();
            writer.write_all(&received)
        })?;
        Ok(RecordingOutput { rounds, writer, directory })
    }

    /// Hands rows over. False if an earlier round could not be written; `finish` says why.
    pub fn add(&self, round: Round) -> bool {
        self.rounds.send(round).is_ok()
    }

    /// Waits for all that was handed over, and writes the manifest.
    ///
    /// # Errors
    /// If any of it could not be written.
    pub fn finish(self, facts: &[(&str, Value)]) -> anyhow::Result<()> {
        drop(self.rounds);
        let writer =
            self.writer.join().map_err(|_| anyhow::anyhow!("the writer ended early"))??;
        writer.segments.replace(&entries(facts.iter()))?;
        Ok(())
    }

    /// Takes the folder away again: nothing was recorded.
    pub fn abandon(self) {
        drop(self.rounds);
        let _ = self.writer.join();
        // It was empty when we got it. That it stays behind would hide the error that comes next.
        let _ = fs::remove_dir_all(self.directory);
    }
}

impl SegmentWriter {
    fn write_all(mut self, rounds: &Receiver<Round>) -> Result<Self, WriteError> {
        for round in rounds {
            self.segments.append(&round.snapshot)?;
            self.segments.replace(&round.threads)?;
            self.segments.replace(&round.descriptors)?;
            round.contents.append_to(&self.directory, &self.segments)?;
            // Last, so that what they refer to is there.
            self.segments.append(&round.calls)?;
            self.segments.begin_round();
        }
        Ok(self)
    }
}

/// Return what a manifest says before the end of a recording.
pub fn facts_before_end() -> [(&'static str, Value); 2] {
    [
        ("incomplete", json!(true)),
        ("incomplete_reasons", json!(["the recording was not ended properly"])),
    ]
}

/// Return what a manifest says at the end of one: why it is incomplete, if it is, and what is odd.
pub fn ending(reasons: &[String], notes: &[String]) -> [(&'static str, Value); 3] {
    [
        ("notes", json!(notes)),
        ("incomplete", json!(!reasons.is_empty())),
        ("incomplete_reasons", json!(reasons)),
    ]
}

/// The rows of a manifest.
pub fn entries<'a>(facts: impl Iterator<Item = &'a (&'a str, Value)>) -> Vec<ManifestRow> {
    facts.map(|(key, value)| ManifestRow { key: (*key).into(), value: value.to_string() }).collect()
}
