//! The gaps of a recording: counts what it does not have, and says which of it makes the recording
//! incomplete.

use std::collections::BTreeMap;

use serde::Serialize;

use super::calls::{Does, SystemCall};
use crate::messages::sentences;
use crate::system_calls;
use crate::tables::recording::RecordedCall;

/// IORING_SETUP_SQPOLL.
const POLLED: i64 = 1 << 1;

/// Counts over a whole recording.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct MissedOperations {
    /// Calls of 32-bit and x32 programs, which are not decoded.
    pub other_abi_calls: u64,
    /// Operations handed to io_uring and to Linux AIO, of which no call tells.
    pub io_uring_operations: u64,
    pub aio_operations: u64,
    /// Rings that the kernel polls, so that nobody can count their operations.
    pub polled_rings: u64,
    /// Arguments that point to memory which could not be read.
    pub unread_arguments: u64,
    /// Bytes of contents that could not be read.
    pub unread_bytes: u64,
    /// Paths that could not be made absolute.
    pub unresolved_paths: u64,
    /// Calls that were under way when the recording began.
    pub begun_before: u64,
    /// Calls of which no end was seen: their thread ended, or the recording did.
    pub unfinished_calls: u64,
    /// Files mapped so that memory writes reach them: those are no calls.
    pub shared_writable_maps: u64,
    /// Calls that change what paths mean: chroot, mount and their like.
    pub moved_roots: u64,
    /// Programs with the set-user-ID or set-group-ID bit that were run.
    pub set_id_programs: u64,
    /// Calls, by name, of which the kernel could not tell the begin or the end, as nobody read fast
    /// enough.
    pub lost_calls: BTreeMap<&'static str, u64>,
    /// Forks, execs and ends of threads, likewise.
    pub lost_threads: u64,
    /// Whether threads were killed to end the recording.
    #[serde(skip)]
    pub killed: bool,
}

impl MissedOperations {
    /// A call has succeeded: counts what it did of which no further call tells.
    pub fn count(&mut self, call: &SystemCall, row: &RecordedCall) {
        let handed_over = u64::try_from(row.result.unwrap_or(0)).unwrap_or(0);
        let has = |bits: Option<i64>, wanted: i64| bits.unwrap_or(0) & wanted != 0;
        match (call.number, call.does) {
            (system_calls::SYS_io_submit, _) => self.aio_operations += handed_over,
            (_, Does::HandsOver) => self.io_uring_operations += handed_over,
            (_, Does::MovesRoot) => self.moved_roots += 1,
            (system_calls::SYS_io_uring_setup, _) => {
                self.polled_rings += u64::from(has(row.flags, POLLED));
            }
            (system_calls::SYS_mmap, _) => {
                // MAP_SHARED_VALIDATE is MAP_SHARED | MAP_PRIVATE.
                let writable = has(row.flags, libc::MAP_SHARED.into())
                    && has(row.mode, libc::PROT_WRITE.into());
                self.shared_writable_maps += u64::from(writable);
            }
            _ => {}
        }
    }

    /// Return the reasons why the recording is incomplete; nothing if it is not.
    pub fn reasons(&self, calls: u64) -> Vec<String> {
        let mut reasons = sentences(&[
            (self.other_abi_calls, "call{s} of 32-bit or x32 programs, not decoded"),
            (self.io_uring_operations, "operation{s} of io_uring, not recorded"),
            (self.polled_rings, "io_uring ring{s} polled by the kernel, not recorded"),
            (self.aio_operations, "operation{s} of io_submit, not recorded"),
            (self.unread_arguments, "argument{s} in memory that could not be read"),
            (self.unread_bytes, "byte{s} of contents that could not be read"),
            (self.lost_calls.values().sum(), "call{s} lost: the ring was full (--ring-mib)"),
            (
                self.lost_threads,
                "fork{s}, exec{s} or end{s} of threads lost: no room, or the program was skipped",
            ),
        ]);
        if self.killed {
            reasons.push("threads were killed to end the recording".into());
        }
        if calls == 0 {
            reasons.push("no file system call was recorded".into());
        }
        reasons
    }

    /// Return what a reader should know besides.
    pub fn notes(&self) -> Vec<String> {
        sentences(&[
            (self.shared_writable_maps, "shared writable file mapping{s}: stores are no calls"),
            (
                self.moved_roots,
                "call{s} that {changes|change} what paths mean (chroot, mount, unshare ...)",
            ),
            (
                self.set_id_programs,
                "set-user-ID or set-group-ID program{s} ran; by ptrace, without the owner's rights \
                 unless the recorder is root",
            ),
            (self.unresolved_paths, "path{s} could not be made absolute"),
            (self.begun_before, "call{s} had begun before the recording did"),
        ])
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn missed_operations_make_a_recording_incomplete_and_odd_ones_do_not() {
        let odd = MissedOperations {
            shared_writable_maps: 2,
            unfinished_calls: 1,
            ..MissedOperations::default()
        };
        assert!(odd.reasons(5).is_empty());
        assert_eq!(odd.notes().len(), 1);
        assert_eq!(odd.reasons(0), ["no file system call was recorded"]);
        let missing = MissedOperations {
            io_uring_operations: 3,
            killed: true,
            ..MissedOperations::default()
        };
        assert_eq!(missing.reasons(5).len(), 2);
        assert_eq!(json!(missing)["io_uring_operations"], 3);
    }
}
