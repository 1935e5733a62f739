//! A queued bio with all that is known of it. Gives the parts of the request that it becomes: the
//! row of requests, and the page runs. Remembers those that a flush may serve.

use std::collections::VecDeque;
use std::rc::Rc;

use super::drafts::{DraftRun, Home, Subject};
use super::pieces::Piece;
use crate::tables::rows;
use crate::tracer::causes::Cause;
use crate::tracer::causes::calls;
use crate::tracer::classify::Class;
use crate::tracer::classify::layout::Inodes;
use crate::tracer::records::kernel::{
    FLAG_FUA, FLAG_IDLE, FLAG_META, FLAG_PREFLUSH, FLAG_PRIO, FLAG_READAHEAD, FLAG_SYNC,
    OPERATION_DISCARD, OPERATION_FLUSH, OPERATION_MASK, OPERATION_READ, OPERATION_SECURE_ERASE,
    OPERATION_WRITE, OPERATION_WRITE_ZEROES,
};
use crate::tracer::records::{Bio, RequestRecord, Run};

/// The operation, and the block type, of what carries no bytes.
pub const FLUSH: &str = "flush";

/// The operation, and the block subtype, of a block of raw NAND that is erased.
pub const ERASE: &str = "erase";

/// MERGED_BIOS_LIMIT of kernel/block/requests.bpf.h.
const BIOS_COUNTED: u32 = 1024;

/// A bio with its runs, and why it is there.
pub struct QueuedBio {
    pub bio: Bio,
    pub runs: Vec<(Run, Class)>,
    pub cause: Cause,
}

impl QueuedBio {
    /// The request that it is to a driver that takes bios.
    pub fn as_request(&self) -> RequestRecord {
        let Bio { device, time_ns, address, sector, length_bytes, flags, .. } = self.bio;
        let place = RequestRecord {
            device,
            time_ns,
            sector,
            length_bytes,
            flags,
            ..RequestRecord::default()
        };
        RequestRecord { request: address, bio_count: 1, ..place }
    }

    /// All that it carries, to the byte: nodes on raw NAND do not begin at sectors.
    pub fn own_runs(&self) -> Vec<DraftRun> {
        let mut runs = Vec::new();
        for (run, class) in &self.runs {
            let draft = DraftRun {
                sector: self.bio.sector + u64::from(run.offset_bytes).div_ceil(512),
                length_bytes: u64::from(run.length_bytes),
                block_type: class.block_type,
                subtype: class.subtype.clone(),
                subject: Subject::new(run, class),
                file_offset_bytes: class.has_offset.then_some(run.file_offset_bytes as i64),
                home_sector: None,
                home: Home::default(),
                time_ns: self.bio.time_ns,
            };
            draft.push_onto(&mut runs);
        }
        runs
    }

    /// All that it carries.
    pub fn all_runs(&self) -> Vec<DraftRun> {
        let mut runs = Vec::new();
        for (index, (run, _)) in self.runs.iter().enumerate() {
            let sector = self.bio.sector + u64::from(run.offset_bytes) / 512;
            let sectors = u64::from(run.length_bytes) / 512;
            let piece = Piece { bio: 0, run: index, skipped_bytes: 0, sector, sectors };
            self.run_of(&piece).push_onto(&mut runs);
        }
        runs
    }

    /// Return what a piece of it carries.
    pub fn run_of(&self, piece: &Piece) -> DraftRun {
        let (run, class) = &self.runs[piece.run];
        let offset = (run.file_offset_bytes + piece.skipped_bytes) as i64;
        let home = class
            .home_bytes
            .map(|bytes| (self.bio.partition_sector + (bytes + piece.skipped_bytes) / 512) as i64);
        DraftRun {
            sector: piece.sector,
            length_bytes: piece.sectors * 512,
            block_type: class.block_type,
            subtype: class.subtype.clone(),
            subject: Subject::new(run, class),
            file_offset_bytes: class.has_offset.then_some(offset),
            home_sector: home,
            home: home_of(class, piece),
            time_ns: self.bio.time_ns,
        }
    }
}

/// Return the home of a piece of a journal copy.
fn home_of(class: &Class, piece: &Piece) -> Home {
    let area = class.home_area;
    class.home_inodes.map_or(Home { area, ..Home::default() }, |Inodes { first, bytes_each }| {
        let first_inode = first + piece.skipped_bytes / bytes_each;
        Home { area, first_inode, inodes: piece.sectors * 512 / bytes_each }
    })
}

/// The row, as far as a request's flags and bios give it; number and device are left out.
pub fn row(request: &RequestRecord, bios: &[Rc<QueuedBio>]) -> rows::Request {
    let queue_ns = bios.iter().map(|queued| queued.bio.time_ns).min();
    let none = Bio::default();
    let first = bios.first().map_or(&none, |queued| &queued.bio);
    let asker = bios.iter().find_map(|queued| queued.cause.asker.as_ref());
    let any = |flag: u32| bios.iter().any(|queued| queued.bio.flags & flag != 0);
    let has = |flag: u32| request.flags & flag != 0;
    rows::Request {
        queue_ns: queue_ns.unwrap_or(request.time_ns) as i64,
        issue_ns: request.time_ns as i64,
        length_bytes: i64::from(request.length_bytes),
        operation: operation_name(request.flags & OPERATION_MASK).into(),
        sync: has(FLAG_SYNC),
        meta: has(FLAG_META),
        prio: has(FLAG_PRIO),
        fua: has(FLAG_FUA),
        preflush: has(FLAG_PREFLUSH) || any(FLAG_PREFLUSH),
        readahead: has(FLAG_READAHEAD),
        idle: has(FLAG_IDLE),
        bio_count: bio_count(request, bios.len()),
        submitter_pid: i64::from(first.pid),
        submitter_tid: i64::from(first.tid),
        submitter_comm: first.comm.clone(),
        submitter_call: first.call.map(calls::name),
        asker_pid: asker.map(|asker| i64::from(asker.pid)),
        asker_tid: asker.map(|asker| i64::from(asker.tid)),
        asker_comm: asker.map(|asker| asker.comm.clone()),
        asker_call: asker.map(|asker| asker.call.into()),
        asker_begin_ns: asker.and_then(|asker| asker.begin_ns).map(|time_ns| time_ns as i64),
        asker_count: asker.map_or(0, |asker| i64::from(asker.waiting)),
        askers: asker.and_then(|asker| asker.all.clone()),
        ..rows::Request::default()
    }
}

/// Return how many bios a request's own list has. The kernel's side stops counting at a limit;
/// those that were tied to the request are as many then, or fewer where bios were split before they
/// were merged.
fn bio_count(request: &RequestRecord, tied: usize) -> i64 {
    match request.bio_count {
        BIOS_COUNTED => i64::from(BIOS_COUNTED).max(tied as i64),
        counted => i64::from(counted),
    }
}

/// As schema/requests.toml spells it.
pub fn operation_name(operation: u32) -> &'static str {
    match operation {
        OPERATION_READ => "read",
        OPERATION_WRITE => "write",
        OPERATION_FLUSH => FLUSH,
        OPERATION_DISCARD | OPERATION_SECURE_ERASE => "discard",
        OPERATION_WRITE_ZEROES => "zeroes",
        _ => "other",
    }
}

/// Bios that are remembered as possible askers of a flush: far more than wait at any time. When one
/// is done is not looked at.
const MOST_ASKERS: usize = 4096;

/// The last bios that may wait for a flush, in the order in which they were queued.
///
/// The block layer makes flushes of its own for bios that ask for one, by REQ_PREFLUSH or by a
/// REQ_FUA that the device does not support. Each flush serves all bios that wait in a hardware
/// queue when it is kicked (block/blk-flush.c). With each flush the kernel's side reports the first
/// of those; these are the candidates to find it. Their order would not be enough: queues are
/// flushed concurrently, and a bio with data may overtake one without.
#[derive(Default)]
pub struct FlushAskers {
    last: VecDeque<Rc<QueuedBio>>,
}

impl FlushAskers {
    /// A bio may be flushed for.
    pub fn ask(&mut self, bio: Rc<QueuedBio>) {
        if self.last.len() == MOST_ASKERS {
            self.last.pop_front();
        }
        self.last.push_back(bio);
    }

    /// The bio of a disk at an address; of several that were there, the last.
    pub fn find(&self, device: u32, address: u64) -> Option<Rc<QueuedBio>> {
        let is_it = |bio: &&Rc<QueuedBio>| (bio.bio.device, bio.bio.address) == (device, address);
        self.last.iter().rev().find(is_it).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tracer::causes::Cause;
    use crate::tracer::records::Bio;

    fn bio(device: u32, address: u64, serial: u64) -> Rc<QueuedBio> {
        let bio = Bio { device, address, serial, ..Bio::default() };
        Rc::new(QueuedBio { bio, runs: Vec::new(), cause: Cause::default() })
    }

    #[test]
    fn the_last_bio_at_an_address_is_found_and_what_is_old_is_forgotten() {
        let mut askers = FlushAskers::default();
        askers.ask(bio(1, 0x1000, 0));
        askers.ask(bio(2, 0x1000, 1));
        askers.ask(bio(1, 0x1000, 2));
        let serial = |askers: &FlushAskers, device| {
            askers.find(device, 0x1000).map(|found| found.bio.serial)
        };
        assert_eq!((serial(&askers, 1), serial(&askers, 2)), (Some(2), Some(1)));
        for number in 0..MOST_ASKERS as u64 {
            assert!(askers.last.len() <= MOST_ASKERS);
            askers.ask(bio(3, number, number));
        }
        assert_eq!((serial(&askers, 1), serial(&askers, 2)), (None, None));
    }
}
