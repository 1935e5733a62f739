//! Requests whose completion was not seen: asks the kernel and the disks about them.

use crate::device::{counters, sysfs};
use crate::tracer::assembly::Assembler;
use crate::tracer::program::Attribution;
use crate::tracer::requests::Overdue;

/// Requests that were issued before a time, were not seen to complete, and that nobody holds.
pub fn free(assembler: &mut Assembler, program: &Attribution, before_ns: u64) -> Vec<Overdue> {
    let mut overdue = assembler.joiner().overdue(before_ns);
    overdue.retain(|it| program.is_request_free(it.address));
    overdue
}

/// A disk that has nothing to do is done with what we saw issued: the only other witness of a
/// driver that takes bios.
pub fn believe_disks(assembler: &mut Assembler) {
    for disk in assembler.joiner().busy_disks() {
        if counters::is_at_rest(&sysfs::device_folder(disk)) {
            assembler.joiner().end_all_unseen(disk);
        }
    }
}
