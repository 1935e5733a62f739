//! The user's own judge of what a program left: a program that runs in the recovered directory,
//! confined as the program was, and says by its exit code what it found there.

use std::path::{Path, PathBuf};

use super::confined::{self, ConfinedProgram, ProgramEnd};
use super::keeper::{ProgramOutput, start};
use crate::workload::error::{WorkloadError, step_error};
use crate::workload::power_cut::{CutFindings, CutOutcome};

/// The variable of the check's environment that has the path of the acknowledged lines.
const VARIABLE: &str = "JOJ_ACKED";
/// The path of the acknowledged lines in the check's root.
const ACKNOWLEDGED: &str = "acknowledged";
/// Outside of that.
const STATUS: &str = "/check-status";

/// An acknowledged promise is lost; what is there is wrong.
const LOST: i32 = 1;
const WRONG: i32 = 2;

/// A check that can be run, on what is mounted at the program's place by then.
pub struct Check {
    confined: ConfinedProgram,
}

impl Check {
    /// Makes what the check finds in its root, which has it already.
    ///
    /// # Errors
    /// If a step fails.
    pub fn prepare(
        root: &Path,
        directory: &Path,
        environment: &[String],
        time_limit_ms: u64,
    ) -> Result<Self, WorkloadError> {
        let path = confined::furnish(root)?;
        let mut environment = confined::environment(root, environment);
        environment.push(format!("{VARIABLE}=/{ACKNOWLEDGED}"));
        Ok(Self {
            confined: ConfinedProgram {
                root: root.to_owned(),
                directory: directory.to_owned(),
                status: PathBuf::from(STATUS),
                command: vec![path.to_string_lossy().into_owned()],
                environment,
                time_limit_ms,
                acks_on_stdin: false,
                omitted_sync: None,
                failed_sync: None,
            },
        })
    }

    /// Has it look at what is there, where these lines had been acknowledged.
    ///
    /// # Errors
    /// If it cannot be started: that says nothing of what is there.
    pub fn judge(&self, acknowledged: &[u8]) -> Result<CutFindings, WorkloadError> {
        let path = self.confined.root.join(ACKNOWLEDGED);
        std::fs::write(&path, acknowledged).map_err(step_error("write", &path))?;
        let run = self.run().map_err(|error| WorkloadError::Check(format!("{error:#}")));
        let (output, end) = run?;
        Ok(verdict(&end, self.confined.time_limit_ms, &output.text()))
    }

    fn run(&self) -> anyhow::Result<(ProgramOutput, ProgramEnd)> {
        let (mut child, mut pipe) = start(&self.confined, None)?;
        let mut output = ProgramOutput::default();
        while !output.is_too_long() && output.read(&mut pipe)? {}
        drop(pipe);
        let status = child.wait()?;
        anyhow::ensure!(status.success(), "its keeper: {status}: {}", output.text());
        Ok((output, confined::read_end(&self.confined.status)?))
    }
}

/// The verdict of a check that ended so.
fn verdict(end: &ProgramEnd, time_limit_ms: u64, output: &str) -> CutFindings {
    let output = output.trim();
    let ended = end.words(time_limit_ms);
    let (outcome, words) = match (end.timed_out, end.exit_code) {
        (false, Some(0)) => {
            return CutFindings { message: output.to_owned(), ..CutFindings::without_harm() };
        }
        (false, Some(LOST)) => (CutOutcome::Lost, "what was acknowledged is lost"),
        (false, Some(WRONG)) => (CutOutcome::Corrupt, "what is there is wrong"),
        _ => (CutOutcome::Corrupt, "what is there cannot be read"),
    };
    let separator = if output.is_empty() { "" } else { ": " };
    CutFindings::without_states(outcome, format!("check: {words} ({ended}){separator}{output}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_code_says_what_the_check_found() {
        let judged = |end: ProgramEnd| {
            let found = verdict(&end, 9, "record 3\n");
            (found.outcome, found.message)
        };
        let exit = |code| ProgramEnd { exit_code: Some(code), ..ProgramEnd::default() };
        let (kept, lost, corrupt) = (CutOutcome::Kept, CutOutcome::Lost, CutOutcome::Corrupt);
        assert_eq!(judged(exit(0)), (kept, "record 3".into()));
        let words = "check: what was acknowledged is lost (exit code 1): record 3";
        assert_eq!(judged(exit(1)), (lost, words.into()));
        assert_eq!(judged(exit(2)).0, corrupt);
        for (end, words) in [
            (exit(3), "cannot be read (exit code 3)"),
            (ProgramEnd { signal: Some(11), ..ProgramEnd::default() }, "(signal 11)"),
            (ProgramEnd { timed_out: true, ..exit(0) }, "(it did not end within 9 ms)"),
        ] {
            let (outcome, message) = judged(end);
            assert_eq!(outcome, corrupt);
            assert!(message.contains(words), "{message}");
        }
    }
}
