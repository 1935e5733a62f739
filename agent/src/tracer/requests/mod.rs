//! Joins bios and their runs to the requests the driver got, and requests to their completions.
//! Reads records in ring order; produces drafts of the rows of requests and page_runs. Keeps only
//! what is in progress, so it can run indefinitely.

pub mod completions;
mod drafts;
pub mod gaps;
mod pieces;
mod queued_bio;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

use crate::raw_nand::operation::{Operation, OperationKind};
use crate::tables::rows;
use crate::tracer::causes::Cause;
use crate::tracer::classify::{BlockType, Class};
use crate::tracer::files::file_kind;
use crate::tracer::records::kernel::{
    FLAG_FUA, FLAG_PREFLUSH, OPERATION_FLUSH, OPERATION_MASK, STATUS_AGAIN,
};
use crate::tracer::records::{Bio, RequestRecord, Run};
use completions::{Completions, Direction};
use drafts::{Draft, DraftRun};
use gaps::Gaps;
use pieces::{Piece, Pieces, RequestPart};
pub use queued_bio::operation_name;
use queued_bio::{ERASE, FLUSH, FlushAskers, QueuedBio};

/// In place of a disk's number: raw NAND, which has none.
pub const RAW_NAND_DEVICE: u32 = u32::MAX;

/// A disk that is traced.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TracedDisk {
    /// The kernel's name of it.
    pub name: String,
    /// Its driver takes bios and makes no requests of them (device mapper, md, zram).
    pub takes_bios: bool,
}

/// A bio that the driver has not got whole.
struct WaitingBio {
    queued: Rc<QueuedBio>,
    left_sectors: u64,
}

/// The join under way: what is queued, what the driver has, and the drafts made so far.
#[derive(Default)]
pub struct Joiner {
    /// The traced disks, by their numbers.
    disks: BTreeMap<u32, TracedDisk>,
    bios: BTreeMap<usize, WaitingBio>,
    bios_seen: usize,
    pieces: Pieces,
    open: BTreeMap<u64, OpenRequest>,
    /// The ranges of discards that are issued next, by the request's address.
    ranges: BTreeMap<u64, Vec<RequestRecord>>,
    flush_askers: FlushAskers,
    drafts: VecDeque<Draft>,
    /// The number of the first draft.
    first_id: i64,
    /// Requests issued before this time may be of unseen bios, and are left out.
    settled_ns: u64,
    /// No bio that was queued from then on is reported: requests of unknown bios are left out.
    ending_ns: Option<u64>,
    completions: Completions,
    gaps: Gaps,
}

impl Joiner {
    /// Begins a join for disks by their numbers. What is issued up to `settled_ns` may have been
    /// queued before the tracing began.
    pub fn new(disks: BTreeMap<u32, TracedDisk>, settled_ns: u64) -> Self {
        let completions = Completions::new(settled_ns);
        Joiner { disks, settled_ns, completions, ..Self::default() }
    }

    /// A bio entered the block layer, with what its runs are and the call it serves.
    pub fn queue(&mut self, bio: Bio, runs: Vec<(Run, Class)>, cause: Cause) {
        if self.takes_bios(bio.device) {
            self.issue_bio(Rc::new(QueuedBio { bio, runs, cause }));
            return;
        }
        let number = self.bios_seen;
        self.bios_seen += 1;
        let lane = (bio.device, bio.flags & OPERATION_MASK);
        let mut left_sectors = 0;
        for (index, (run, _)) in runs.iter().enumerate() {
            let sectors = u64::from(run.length_bytes) / 512;
            let sector = bio.sector + u64::from(run.offset_bytes) / 512;
            let piece = Piece { bio: number, run: index, skipped_bytes: 0, sector, sectors };
            self.pieces.add(lane, piece);
            left_sectors += sectors;
        }
        let queued = Rc::new(QueuedBio { bio, runs, cause });
        if queued.bio.flags & (FLAG_PREFLUSH | FLAG_FUA) != 0 {
            self.flush_askers.ask(queued.clone());
        }
        if left_sectors > 0 {
            self.bios.insert(number, WaitingBio { queued, left_sectors });
        }
    }

    fn takes_bios(&self, device: u32) -> bool {
        self.disks.get(&device).is_some_and(|disk| disk.takes_bios)
    }

    /// A driver that takes bios has got one: it counts as a request.
    fn issue_bio(&mut self, queued: Rc<QueuedBio>) {
        let request = queued.as_request();
        let bios = vec![queued];
        let mut row = self.new_row(&request, &bios);
        let runs = bios[0].all_runs();
        self.count_unknown(&runs);
        if request.length_bytes > 0 {
            row.sector = Some(request.sector as i64);
        } else {
            row.operation = FLUSH.into();
            row.block_type = FLUSH.into();
            row.file_kind = file_kind::NONE.into();
        }
        self.push(&request, row, runs, bios);
    }

    /// A bio ended that was in no request of its disk: it was the request, or failed before it got
    /// into one. Others are parts of such bios, made further down.
    pub fn end_bio(&mut self, end: &RequestRecord) {
        if self.open.contains_key(&end.request) {
            self.complete(&RequestRecord { length_bytes: u32::MAX, ..end.clone() });
            return;
        }
        let waits = |waiting: &WaitingBio| waiting.queued.bio.address == end.request;
        let found = self.bios.iter().find(|(_, waiting)| waits(waiting));
        let Some(number) = found.map(|(number, _)| *number).filter(|_| end.error != 0) else {
            return;
        };
        self.bios.remove(&number);
        self.pieces.forget(|bio| bio == number);
        // Of an asynchronous call that shall not wait: it sends another bio when it can.
        self.gaps.failed_requests += u64::from(end.error != STATUS_AGAIN);
    }

    /// A discard that is issued next has this range, among others.
    pub fn add_range(&mut self, range: RequestRecord) {
        let ranges = self.ranges.entry(range.request).or_default();
        // What was kept of a request whose issue was not seen is not of the next one there.
        ranges.retain(|other| other.origin == range.origin);
        ranges.push(range);
    }

    /// The parts of a request, by its own range or, where it has several, by each of them.
    fn take_parts(&mut self, request: &RequestRecord) -> Vec<RequestPart> {
        let lane = (request.device, request.flags & OPERATION_MASK);
        let mut left_sectors = u64::from(request.length_bytes) / 512;
        let ranges = self.ranges.remove(&request.request).unwrap_or_default();
        let mut parts = Vec::new();
        for range in ranges.iter().filter(|range| range.origin == request.origin) {
            let sectors = (u64::from(range.length_bytes) / 512).min(left_sectors);
            parts.extend(self.pieces.take_parts(lane, range.sector, sectors));
            left_sectors -= sectors;
        }
        if parts.is_empty() {
            return self.pieces.take_parts(lane, request.sector, left_sectors);
        }
        if left_sectors > 0 {
            // A range was lost, of which nobody knows where it was.
            parts.push(RequestPart::Unknown { sector: request.sector, sectors: left_sectors });
        }
        parts
    }

    /// The driver got a request: a row, unless it is one that was put back.
    pub fn issue(&mut self, request: &RequestRecord) {
        let again = self.open.get(&request.request).filter(|open| open.is(request));
        if let Some(open) = again
            && let Some(draft) = self.drafts.get_mut((open.request_id - self.first_id) as usize)
        {
            // The driver was busy and the request was put back: it counts once, from now.
            draft.row.issue_ns = request.time_ns as i64;
            self.ranges.remove(&request.request);
            return;
        }
        if request.flags & OPERATION_MASK == OPERATION_FLUSH {
            self.issue_flush(request);
            return;
        }
        let parts = self.take_parts(request);
        if self.is_of_others(request)
            && !parts.iter().any(|part| matches!(part, RequestPart::Known(_)))
        {
            self.gaps.edge_requests += 1;
            self.use_again(request.request);
            self.completions.leave_out(request);
            return;
        }
        let (bios, runs) = self.tie(&parts);
        self.count_unknown(&runs);
        let mut row = self.new_row(request, &bios);
        row.sector = Some(request.sector as i64);
        self.push(request, row, runs, bios);
    }

    /// A flush that the block layer made has no bio, and a kworker issues it.
    fn issue_flush(&mut self, request: &RequestRecord) {
        let asker = self.flush_askers.find(request.device, request.origin);
        if asker.is_none() {
            if self.is_of_others(request) {
                self.gaps.edge_requests += 1;
                self.use_again(request.request);
                return;
            }
            self.gaps.unattributed_flushes += 1;
        }
        let bios: Vec<Rc<QueuedBio>> = asker.into_iter().collect();
        let mut row = self.new_row(request, &bios);
        row.queue_ns = row.issue_ns;
        row.length_bytes = 0;
        row.block_type = FLUSH.into();
        row.file_kind = file_kind::NONE.into();
        self.push(request, row, Vec::new(), bios);
    }

    fn count_unknown(&mut self, runs: &[DraftRun]) {
        let unknown = runs.iter().filter(|run| run.block_type == BlockType::Unknown);
        self.gaps.unattributed_bytes += unknown.map(|run| run.length_bytes).sum::<u64>();
    }

    fn new_row(&self, request: &RequestRecord, bios: &[Rc<QueuedBio>]) -> rows::Request {
        rows::Request {
            request_id: self.first_id + self.drafts.len() as i64,
            device: self.name_of(request.device),
            ..queued_bio::row(request, bios)
        }
    }

    /// The kernel's name of a disk that is traced.
    pub fn name_of(&self, device: u32) -> String {
        self.disks.get(&device).map(|disk| disk.name.clone()).unwrap_or_default()
    }

    /// A request that may be of a bio queued before the tracing began, or after it ended.
    fn is_of_others(&self, request: &RequestRecord) -> bool {
        let is_after = self.ending_ns.is_some_and(|ending_ns| request.time_ns >= ending_ns);
        is_after || request.time_ns < self.settled_ns
    }

    fn push(
        &mut self,
        request: &RequestRecord,
        row: rows::Request,
        runs: Vec<DraftRun>,
        bios: Vec<Rc<QueuedBio>>,
    ) {
        let request_id = row.request_id;
        let asker = bios.iter().find_map(|queued| queued.cause.asker.as_ref());
        let asker_file = asker.and_then(|asker| asker.file);
        let reasons = bios.iter().filter_map(|queued| queued.cause.reason.clone()).collect();
        self.drafts.push_back(Draft { row, runs, asker_file, reasons, done: false });
        self.completions.use_again(request.request);
        self.use_again(request.request);
        self.open.insert(request.request, OpenRequest::new(request_id, request));
    }

    /// An address is used again: the completion of the request that was there was not seen.
    fn use_again(&mut self, address: u64) {
        if let Some(done) = self.open.remove(&address) {
            self.end_untimed(&done);
        }
    }

    /// The device was done with a request, or with a part of it.
    pub fn complete(&mut self, request: &RequestRecord) {
        self.completions.count(request, self.open.contains_key(&request.request));
        // A request that waited for flushes completes once more at their end (block/blk-flush.c).
        let Some(open) = self.open.get_mut(&request.request) else { return };
        open.left_bytes = open.left_bytes.saturating_sub(u64::from(request.length_bytes));
        if open.left_bytes > 0 && request.error == 0 {
            return;
        }
        self.gaps.failed_requests += u64::from(request.error != 0);
        let Some(open) = self.open.remove(&request.request) else { return };
        if let Some(draft) = self.drafts.get_mut((open.request_id - self.first_id) as usize) {
            draft.row.complete_ns = Some(request.time_ns as i64);
            draft.done = true;
        }
    }

    /// Requests that were issued before a time and are not complete, as far as was seen. None of a
    /// driver that takes bios: those have no address of their own.
    pub fn overdue(&self, before_ns: u64) -> Vec<Overdue> {
        let is_late = |open: &OpenRequest| {
            let draft = self.drafts.get((open.request_id - self.first_id) as usize);
            draft.is_some_and(|draft| draft.row.issue_ns < before_ns as i64)
        };
        let late = self.open.iter().filter(|(_, it)| !self.takes_bios(it.device) && is_late(it));
        late.map(|(&address, open)| Overdue { address, request_id: open.request_id }).collect()
    }

    /// The device is done with a request, as another witness says. Nothing where its completion
    /// was seen meanwhile.
    pub fn end_unseen(&mut self, overdue: Overdue) {
        let Overdue { address, request_id } = overdue;
        let is_it = |open: &OpenRequest| open.request_id == request_id;
        if self.open.get(&address).is_some_and(is_it)
            && let Some(open) = self.open.remove(&address)
        {
            self.end_untimed(&open);
        }
    }

    /// Nothing is under way on a disk, as another witness says.
    pub fn end_all_unseen(&mut self, device: u32) {
        let is_there = |(_, open): &(&u64, &OpenRequest)| open.device == device;
        let addresses: Vec<u64> = self.open.iter().filter(is_there).map(|(key, _)| *key).collect();
        let of_disk = addresses.into_iter().filter_map(|address| self.open.remove(&address));
        of_disk.collect::<Vec<_>>().iter().for_each(|open| self.end_untimed(open));
    }

    /// The trace is over, and nobody says of what is open on a disk that it is complete: it is
    /// under way, and not lost, where the disk says that it has as many requests. A flush is none
    /// of those that it counts. Where it says less, all stays open.
    pub fn leave_under_way(&mut self, device: u32, in_flight: usize) {
        let of_disk = |open: &&OpenRequest| open.device == device;
        if self.open.values().filter(of_disk).filter(|it| it.left_bytes > 0).count() > in_flight {
            return;
        }
        for open in self.open.values().filter(of_disk) {
            if let Some(draft) = self.drafts.get_mut((open.request_id - self.first_id) as usize) {
                draft.done = true;
                self.gaps.under_way_requests += 1;
            }
        }
        self.open.retain(|_, open| open.device != device);
    }

    /// The trace is over, and these disks counted just what was seen to complete: the bios that no
    /// request of theirs took still wait, and no request was lost.
    pub fn leave_waiting(&mut self, agreeing: &BTreeSet<u32>) {
        let before = self.bios.len();
        self.bios.retain(|_, waiting| !agreeing.contains(&waiting.queued.bio.device));
        self.gaps.waiting_bios += (before - self.bios.len()) as u64;
        let left = &self.bios;
        self.pieces.forget(|bio| !left.contains_key(&bio));
    }

    /// The disks that have requests under way, as far as was seen.
    pub fn busy_disks(&self) -> BTreeSet<u32> {
        self.open.values().map(|open| open.device).collect()
    }

    fn end_untimed(&mut self, open: &OpenRequest) {
        let Some(draft) = self.drafts.get_mut((open.request_id - self.first_id) as usize) else {
            return;
        };
        draft.done = true;
        self.gaps.untimed_requests += 1;
        if let Some(direction) = open.direction {
            let issue_ns = draft.row.issue_ns as u64;
            self.completions.count_unseen(open.device, direction, open.left_bytes, issue_ns);
        }
    }

    /// The bytes that the disks completed.
    pub fn completions(&mut self) -> &mut Completions {
        &mut self.completions
    }

    /// The trace is ending: no bio that is queued from this time on is reported.
    pub fn end(&mut self, time_ns: u64) {
        self.ending_ns.get_or_insert(time_ns);
    }

    /// The trace is over, and nothing is under way: a flush that is issued from now on is for a bio
    /// that was queued after the end, though one that was seen may have been at its address.
    pub fn forget_flush_askers(&mut self) {
        self.flush_askers = FlushAskers::default();
    }

    /// Every bio seen was issued, and every request is complete.
    pub fn is_idle(&self) -> bool {
        self.pieces.is_empty() && self.open.is_empty()
    }

    /// Requests that are kept.
    pub fn waiting_requests(&self) -> usize {
        self.drafts.len()
    }

    /// The drafts up to the first request that is under way. One that was issued before
    /// `deadline_ns`, and bios queued before it, are not waited for any longer.
    pub fn take_drafts(&mut self, deadline_ns: u64) -> Vec<Draft> {
        self.forget_bios(deadline_ns);
        let late = |draft: &Draft| draft.row.issue_ns < deadline_ns as i64;
        let ready = self.drafts.iter().take_while(|draft| draft.done || late(draft)).count();
        let taken: Vec<Draft> = self.drafts.drain(..ready).collect();
        self.first_id += ready as i64;
        let given_up = taken.iter().filter(|draft| !draft.done).count();
        if given_up > 0 {
            self.gaps.incomplete_requests += given_up as u64;
            self.open.retain(|_, open| open.request_id >= self.first_id);
        }
        taken
    }

    fn forget_bios(&mut self, deadline_ns: u64) {
        let late = |waiting: &WaitingBio| waiting.queued.bio.time_ns < deadline_ns;
        let mut forgotten = None;
        while let Some(first) = self.bios.first_entry().filter(|first| late(first.get())) {
            forgotten = Some(*first.key());
            first.remove();
            self.gaps.unissued_bios += 1;
        }
        if let Some(last) = forgotten {
            self.pieces.forget(|bio| bio <= last);
        }
    }

    /// Return what was seen and not tied up so far.
    pub fn gaps(&self) -> Gaps {
        self.gaps
    }

    /// The bios of a request's parts in order of sectors, and its page runs.
    fn tie(&mut self, parts: &[RequestPart]) -> (Vec<Rc<QueuedBio>>, Vec<DraftRun>) {
        let (mut bios, mut runs) = (Vec::<Rc<QueuedBio>>::new(), Vec::new());
        for part in parts {
            let piece = match part {
                RequestPart::Known(piece) => piece,
                RequestPart::Unknown { sector, sectors } => {
                    DraftRun::unknown(*sector, *sectors).push_onto(&mut runs);
                    continue;
                }
            };
            let waiting = self.bios.get_mut(&piece.bio).expect("a piece's bio waits");
            let queued = waiting.queued.clone();
            waiting.left_sectors -= piece.sectors;
            if waiting.left_sectors == 0 {
                self.bios.remove(&piece.bio);
            }
            queued.run_of(piece).push_onto(&mut runs);
            if !bios.iter().any(|bio| Rc::ptr_eq(bio, &queued)) {
                bios.push(queued);
            }
        }
        (bios, runs)
    }
}

/// A request that the driver has: what is needed to tell its completion, and its being put back.
struct OpenRequest {
    /// Its number as a draft.
    request_id: i64,
    device: u32,
    direction: Option<Direction>,
    left_bytes: u64,
    sector: u64,
    length_bytes: u32,
    origin: u64,
}

impl OpenRequest {
    /// The driver got it now.
    fn new(request_id: i64, request: &RequestRecord) -> Self {
        let RequestRecord { device, sector, length_bytes, origin, flags, .. } = *request;
        let left_bytes = match flags & OPERATION_MASK {
            OPERATION_FLUSH => 0,
            _ => u64::from(length_bytes),
        };
        let direction = Direction::from_operation(flags);
        OpenRequest { request_id, device, direction, left_bytes, sector, length_bytes, origin }
    }

    /// The driver got the same request again: it was busy before, and had put it back.
    fn is(&self, request: &RequestRecord) -> bool {
        self.sector == request.sector
            && self.length_bytes == request.length_bytes
            && self.origin == request.origin
    }
}

/// A request that the driver has had for long: its address, and its number as a draft.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overdue {
    pub address: u64,
    request_id: i64,
}

// Rows of what raw NAND does: an operation is a request that has no number, and is complete.
impl Joiner {
    /// There is raw NAND of this name.
    pub fn add_raw_nand(&mut self, name: &str) {
        let disk = TracedDisk { name: name.to_owned(), takes_bios: true };
        self.disks.insert(RAW_NAND_DEVICE, disk);
    }

    /// Raw NAND did an operation, which is complete.
    pub fn operate(
        &mut self,
        operation: &Operation,
        bio: Bio,
        runs: Vec<(Run, Class)>,
        cause: Cause,
    ) {
        let queued = Rc::new(QueuedBio { bio, runs, cause });
        let request = RequestRecord { time_ns: operation.issue_ns, ..queued.as_request() };
        let bios = vec![queued];
        let mut row = self.new_row(&request, &bios);
        row.sector = Some(request.sector as i64);
        row.complete_ns = Some(operation.complete_ns as i64);
        if operation.kind == OperationKind::Erase {
            row.operation = ERASE.into();
            row.length_bytes = 0;
            row.block_type = BlockType::FsMetadata.as_str().into();
            row.block_subtype = ERASE.into();
            row.file_kind = file_kind::NONE.into();
        }
        let runs = bios[0].own_runs();
        self.count_unknown(&runs);
        let asker_file = bios[0].cause.asker.as_ref().and_then(|asker| asker.file);
        let reasons = bios[0].cause.reason.iter().cloned().collect();
        self.drafts.push_back(Draft { row, runs, asker_file, reasons, done: true });
    }
}

#[cfg(test)]
#[path = "witness_test.rs"]
mod tests;
