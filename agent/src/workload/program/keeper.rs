//! Starts the keeper of a program, which confines it (`confined`), and reads what they print.

use std::io::{PipeReader, PipeWriter, Read};
use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};

use anyhow::Context;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::acknowledgments::AckPlace;
use super::confined::ConfinedProgram;

/// Starts a program's keeper; gives it and what it prints. `acks` is where the program acknowledges
/// and by what, where anybody listens.
///
/// # Errors
/// If it cannot be started.
pub fn start(
    program: &ConfinedProgram,
    acks: Option<(PipeWriter, AckPlace)>,
) -> anyhow::Result<(Child, PipeReader)> {
    let (reader, writer) = std::io::pipe().context("pipe")?;
    let error = writer.try_clone().context("pipe")?;
    let mut command = Command::new("/proc/self/exe");
    command.arg("confined").arg(serde_json::to_string(program)?);
    command.stdin(Stdio::null()).stdout(writer).stderr(error);
    match acks {
        Some((pipe, AckPlace::Descriptor)) => command.stdin(pipe),
        Some((pipe, AckPlace::Stdout)) => command.stdout(pipe),
        None => &mut command,
    };
    Ok((command.spawn().context("starting the program")?, reader))
}

/// Says what is kept of it.
const HEAD_BYTES: usize = 64 << 10;
/// After so many bytes nobody reads any more, and who writes on gets SIGPIPE.
const MOST_BYTES: u64 = 16 << 20;
/// Between two looks at the tracer's memory.
const OUTPUT_LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };

/// Reads until nobody writes any more.
#[derive(Debug, Default)]
pub struct ProgramOutput {
    head: Vec<u8>,
    pub bytes: u64,
}

impl ProgramOutput {
    /// Waits for output, but not long; false where there will be none any more.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read(&mut self, pipe: &mut PipeReader) -> std::io::Result<bool> {
        let ready = {
            let mut ends = [PollFd::from_borrowed_fd(pipe.as_fd(), PollFlags::IN)];
            poll(&mut ends, Some(&OUTPUT_LOOK))? > 0
        };
        if !ready {
            return Ok(true);
        }
        let mut buffer = [0; 16 << 10];
        let length = pipe.read(&mut buffer)?;
        self.bytes += length as u64;
        let room = HEAD_BYTES - self.head.len();
        self.head.extend_from_slice(&buffer[..length.min(room)]);
        Ok(length > 0)
    }

    /// Return whether it is cut off from here on.
    pub fn is_too_long(&self) -> bool {
        self.bytes > MOST_BYTES
    }

    /// The beginning, as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.head).into_owned()
    }
}
