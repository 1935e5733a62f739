//! Which way a program is recorded: by a program in the kernel where that may be loaded, else by
//! ptrace.

use super::by_ebpf::{KernelRecorder, obstacle};
use super::contents::{By, Data, RecordingOptions};
use crate::errors::WrongUse;

/// What is done.
pub enum RecordingWay {
    Ebpf(Box<KernelRecorder>),
    Ptrace,
}

const CONTENTS: &str = "contents are read by ptrace only";

impl RecordingWay {
    /// The way, and a note that says why it is not the one in the kernel where that was not
    /// excluded.
    ///
    /// # Errors
    /// If eBPF is asked for and cannot be had.
    pub fn choose(options: RecordingOptions) -> anyhow::Result<(Self, Option<String>)> {
        let RecordingOptions { by, data, ring_bytes } = options;
        if by == By::Ptrace {
            return Ok((RecordingWay::Ptrace, None));
        }
        let obstacle = (data != Data::None).then_some(CONTENTS).or_else(obstacle);
        let loaded = match obstacle {
            Some(obstacle) => Err(obstacle.to_owned()),
            None => KernelRecorder::load(ring_bytes).map_err(|error| error.to_string()),
        };
        match loaded {
            Ok(kernel) => Ok((RecordingWay::Ebpf(Box::new(kernel)), None)),
            Err(why) if by == By::Ebpf => {
                let message = format!("cannot record by eBPF: {why}; use --by ptrace");
                Err(WrongUse(message).into())
            }
            Err(why) => {
                Ok((RecordingWay::Ptrace, Some(format!("recorded by ptrace, not eBPF: {why}"))))
            }
        }
    }

    /// The word for it.
    pub fn name(&self) -> &'static str {
        match self {
            RecordingWay::Ebpf(_) => "ebpf",
            RecordingWay::Ptrace => "ptrace",
        }
    }
}
