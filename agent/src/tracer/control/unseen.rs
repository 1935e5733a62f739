//! The end of a trace, and requests whose completion was not seen: queries the kernel and the disks
//! about them.

use std::path::Path;
use std::time::{Duration, Instant};

use super::{Tracer, TracerError, now_ns};
use crate::device::{iostats, number};

/// What is still queued when a tracing ends, or not yet complete, is waited for this long.
const REST: Duration = Duration::from_secs(2);

/// What is not complete after this part of `REST` is asked about too.
const ASKED: Duration = Duration::from_millis(50);

impl Tracer {
    /// Asks the kernel about requests that were issued before a time and not seen to complete.
    pub(super) fn ask(&mut self, before_ns: u64) -> Result<(), TracerError> {
        let Some(assembler) = &mut self.assembler else { return Ok(()) };
        let mut overdue = assembler.joiner().overdue(before_ns);
        overdue.retain(|it| self.program.is_request_free(it.address));
        if !overdue.is_empty() {
            // One that completed just now was seen to, and its record came before it was free.
            self.feed_all()?;
        }
        let Some(assembler) = &mut self.assembler else { return Ok(()) };
        overdue.into_iter().for_each(|it| assembler.joiner().end_unseen(it));
        Ok(())
    }

    /// Takes no new bio from now on; what is in the ring is to be digested.
    pub fn end(&mut self) {
        self.program.switch_to_ending();
    }

    /// Takes no new bio, and waits for those under way to be complete.
    ///
    /// # Errors
    /// As `digest`.
    pub fn rest(&mut self) -> Result<(), TracerError> {
        self.end();
        self.feed_all()?;
        let Some(assembler) = &mut self.assembler else { return Ok(()) };
        assembler.end();
        let begin = Instant::now();
        while begin.elapsed() < REST && self.assembler.as_ref().is_some_and(|a| !a.is_idle()) {
            std::thread::sleep(Duration::from_millis(5));
            self.feed_all()?;
            if begin.elapsed() > ASKED {
                self.ask(now_ns())?;
            }
        }
        self.believe_disks();
        self.end_skipping()
    }

    /// A disk that has nothing to do is done with what we saw issued: the only other witness of a
    /// driver that takes bios.
    fn believe_disks(&mut self) {
        let Some(assembler) = &mut self.assembler else { return };
        for disk in assembler.joiner().busy_disks() {
            let folder = format!("/sys/dev/block/{}", number::text(disk));
            if iostats::is_at_rest(Path::new(&folder)) {
                assembler.joiner().end_all_unseen(disk);
            }
        }
    }
}
