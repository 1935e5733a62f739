//! Joins bios and their runs to the requests the driver got, and those to their completions.
//! Reads records in the order of the ring buffer; produces the rows of requests and page_runs.

use std::collections::{BTreeMap, VecDeque};

use super::calls;
use super::causes::Cause;
use super::classify::{BlockType, Class, Owner};
use super::file_kind;
use super::files::{Files, run_key};
use super::kernel::{
    FLAG_FUA, FLAG_IDLE, FLAG_META, FLAG_PREFLUSH, FLAG_PRIO, FLAG_READAHEAD, FLAG_SYNC,
    OPERATION_DISCARD, OPERATION_FLUSH, OPERATION_MASK, OPERATION_READ, OPERATION_SECURE_ERASE,
    OPERATION_WRITE, OPERATION_WRITE_ZEROES,
};
use super::pieces::{Part, Piece, Pieces};
use super::record::{Bio, Request, Run};
use crate::trace::rows;

/// As schema/requests.toml spells it.
fn operation_name(operation: u32) -> &'static str {
    match operation {
        OPERATION_READ => "read",
        OPERATION_WRITE => "write",
        OPERATION_FLUSH => "flush",
        OPERATION_DISCARD | OPERATION_SECURE_ERASE => "discard",
        OPERATION_WRITE_ZEROES => "zeroes",
        _ => "other",
    }
}

/// What was seen but not tied up.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Gaps {
    /// Bytes of requests whose page runs are of block_type unknown.
    pub unattributed_bytes: u64,
    /// Flushes for which no bio that asked for one was pending.
    pub unattributed_flushes: u64,
    /// Bios of which a part was still queued at the end.
    pub unissued_bios: u64,
    /// Requests whose completion was not seen.
    pub incomplete_requests: u64,
    /// Requests that the device refused.
    pub failed_requests: u64,
}

struct QueuedBio {
    bio: Bio,
    runs: Vec<(Run, Class)>,
    cause: Cause,
}

struct OpenRequest {
    row: usize,
    left_bytes: u64,
    /// The bio whose FUA the block layer replaces by a flush after this request.
    flush_after: Option<usize>,
}

/// The join under way: what is queued, what the driver has, and the rows made so far.
pub struct Joiner<'a> {
    device: &'a str,
    files: &'a Files,
    kinds: Vec<&'static str>,
    bios: Vec<QueuedBio>,
    pieces: Pieces,
    open: BTreeMap<u64, OpenRequest>,
    /// Bios that wait for a flush, in the order in which they began to.
    flush_askers: VecDeque<usize>,
    /// The youngest bio of the flush before, if that served several.
    served_with_others: Option<usize>,
    requests: Vec<rows::Request>,
    runs: Vec<rows::PageRun>,
    gaps: Gaps,
}

impl<'a> Joiner<'a> {
    /// Begins a join for the disk named `device`, whose files are all known.
    pub fn new(device: &'a str, files: &'a Files) -> Self {
        Joiner {
            device,
            files,
            kinds: files.kinds(),
            bios: Vec::new(),
            pieces: Pieces::default(),
            open: BTreeMap::new(),
            flush_askers: VecDeque::new(),
            served_with_others: None,
            requests: Vec::new(),
            runs: Vec::new(),
            gaps: Gaps::default(),
        }
    }

    /// A bio entered the block layer, with what its runs are and the call it serves.
    pub fn queue(&mut self, bio: Bio, runs: Vec<(Run, Class)>, cause: Cause) {
        let number = self.bios.len();
        let operation = bio.flags & OPERATION_MASK;
        for (index, (run, _)) in runs.iter().enumerate() {
            let piece = Piece {
                bio: number,
                run: index,
                skipped_bytes: 0,
                sector: bio.sector + u64::from(run.offset_bytes) / 512,
                sectors: u64::from(run.length_bytes) / 512,
            };
            self.pieces.add(operation, piece);
        }
        if bio.flags & FLAG_PREFLUSH != 0 {
            self.flush_askers.push_back(number);
        }
        self.bios.push(QueuedBio { bio, runs, cause });
    }

    /// The driver got a request: a row, unless it is one that was put back.
    pub fn issue(&mut self, request: &Request) {
        let again = self.open.get(&request.request).filter(|open| {
            let row = &self.requests[open.row];
            open.left_bytes > 0
                && row.sector == Some(request.sector as i64)
                && row.length_bytes == i64::from(request.length_bytes)
        });
        if let Some(open) = again {
            // The driver was busy and the request was put back: it counts once, from now.
            self.requests[open.row].issue_ns = request.time_ns as i64;
            return;
        }
        if request.flags & OPERATION_MASK == OPERATION_FLUSH {
            self.issue_flush(request);
            return;
        }
        let sectors = u64::from(request.length_bytes) / 512;
        let operation = request.flags & OPERATION_MASK;
        let parts = self.pieces.take(operation, request.sector, sectors);
        let mut bios: Vec<usize> = Vec::new();
        for part in &parts {
            if let Part::Known(piece) = part
                && !bios.contains(&piece.bio)
            {
                bios.push(piece.bio);
            }
        }
        let row = self.requests.len();
        let runs = self.page_runs(row, &parts);
        let mut new = self.new_request(request, &bios);
        new.sector = Some(request.sector as i64);
        summarise(&mut new, &runs);
        let unknown = runs.iter().filter(|run| run.block_type == BlockType::Unknown.as_str());
        self.gaps.unattributed_bytes += unknown.map(|run| run.length_bytes as u64).sum::<u64>();
        self.requests.push(new);
        self.runs.extend(runs);

        // A bio's own flush comes before its data: it cannot be waiting for that any more.
        self.flush_askers.retain(|asker| !bios.contains(asker));
        let stripped = request.flags & FLAG_FUA == 0 && operation == OPERATION_WRITE;
        let wants_fua = |bio: &&usize| self.bios[**bio].bio.flags & FLAG_FUA != 0;
        let flush_after = bios.iter().find(wants_fua).copied().filter(|_| stripped);
        let left_bytes = u64::from(request.length_bytes);
        self.open.insert(request.request, OpenRequest { row, left_bytes, flush_after });
    }

    /// A flush that the block layer made has no bio, and a kworker issues it: it belongs to the
    /// bio that has waited longest for one, and serves all that wait then (block/blk-flush.c).
    fn issue_flush(&mut self, request: &Request) {
        let asker = self.flush_askers.front().copied().or(self.served_with_others);
        self.served_with_others =
            self.flush_askers.back().copied().filter(|&last| Some(last) != asker);
        self.flush_askers.clear();
        if asker.is_none() {
            self.gaps.unattributed_flushes += 1;
        }
        let bios: Vec<usize> = asker.into_iter().collect();
        let row = self.requests.len();
        let mut new = self.new_request(request, &bios);
        new.queue_ns = new.issue_ns;
        new.length_bytes = 0;
        new.block_type = "flush".to_owned();
        new.file_kind = file_kind::NONE.to_owned();
        self.requests.push(new);
        self.open.insert(request.request, OpenRequest { row, left_bytes: 0, flush_after: None });
    }

    /// The device was done with a request, or with a part of it.
    pub fn complete(&mut self, request: &Request) {
        // The empty request of a PREFLUSH bio completes without ever having been issued.
        let Some(open) = self.open.get_mut(&request.request) else {
            return;
        };
        open.left_bytes = open.left_bytes.saturating_sub(u64::from(request.length_bytes));
        if open.left_bytes > 0 && request.error == 0 {
            return;
        }
        self.requests[open.row].complete_ns = Some(request.time_ns as i64);
        self.gaps.failed_requests += u64::from(request.error != 0);
        self.flush_askers.extend(open.flush_after);
        self.open.remove(&request.request);
    }

    /// The rows, and what is missing from them.
    pub fn finish(mut self) -> (Vec<rows::Request>, Vec<rows::PageRun>, Gaps) {
        self.gaps.unissued_bios = self.pieces.left().len() as u64;
        let incomplete = self.requests.iter().filter(|row| row.complete_ns.is_none());
        self.gaps.incomplete_requests = incomplete.count() as u64;
        (self.requests, self.runs, self.gaps)
    }

    /// What a request's flags and its bios tell of it.
    fn new_request(&self, request: &Request, bios: &[usize]) -> rows::Request {
        let bios: Vec<&QueuedBio> = bios.iter().map(|&bio| &self.bios[bio]).collect();
        let queue_ns = bios.iter().map(|queued| queued.bio.time_ns).min();
        let first = bios.first().map(|queued| queued.bio.clone()).unwrap_or_default();
        let asker = bios.iter().find_map(|queued| queued.cause.asker.as_ref());
        let reason = bios.iter().find_map(|queued| queued.cause.reason.as_ref());
        let any = |flag: u32| bios.iter().any(|queued| queued.bio.flags & flag != 0);
        let has = |flag: u32| request.flags & flag != 0;
        rows::Request {
            request_id: self.requests.len() as i64,
            device: self.device.to_owned(),
            queue_ns: queue_ns.unwrap_or(request.time_ns) as i64,
            issue_ns: request.time_ns as i64,
            length_bytes: i64::from(request.length_bytes),
            operation: operation_name(request.flags & OPERATION_MASK).to_owned(),
            sync: has(FLAG_SYNC),
            meta: has(FLAG_META),
            prio: has(FLAG_PRIO),
            fua: has(FLAG_FUA),
            preflush: has(FLAG_PREFLUSH) || any(FLAG_PREFLUSH),
            readahead: has(FLAG_READAHEAD),
            idle: has(FLAG_IDLE),
            bio_count: i64::from(request.bio_count),
            submitter_pid: i64::from(first.pid),
            submitter_tid: i64::from(first.tid),
            submitter_comm: first.comm,
            submitter_call: first.call.map(calls::name),
            asker_pid: asker.map(|asker| i64::from(asker.pid)),
            asker_tid: asker.map(|asker| i64::from(asker.tid)),
            asker_comm: asker.map(|asker| asker.comm.clone()),
            asker_call: asker.map(|asker| asker.call.to_owned()),
            asker_count: asker.map_or(0, |asker| i64::from(asker.waiting)),
            reason: reason.map(|reason| reason.text(|key| self.files.path(key))),
            asker_file_id: asker.and_then(|asker| self.files.id(asker.file?)),
            ..rows::Request::default()
        }
    }

    /// The page runs of a request; neighbours of one owner become one.
    fn page_runs(&self, row: usize, parts: &[Part]) -> Vec<rows::PageRun> {
        let mut runs: Vec<rows::PageRun> = Vec::new();
        for part in parts {
            let mut run = match *part {
                Part::Known(piece) => self.known_run(&piece),
                Part::Unknown { sector, sectors } => unknown_run(sector, sectors),
            };
            run.request_id = row as i64;
            match runs.last_mut() {
                Some(last) if continues(last, &run) => last.length_bytes += run.length_bytes,
                _ => runs.push(run),
            }
        }
        runs
    }

    fn known_run(&self, piece: &Piece) -> rows::PageRun {
        let queued = &self.bios[piece.bio];
        let (run, class) = &queued.runs[piece.run];
        let file_id = match class.owner {
            Owner::None => None,
            Owner::Inode => self.files.id(run_key(run)),
            Owner::Number(inode) => {
                self.files.id_by_number(run.filesystem, inode, queued.bio.time_ns)
            }
        };
        let kind = file_id.map_or(file_kind::NONE, |id| self.kinds[id as usize]);
        let offset = (run.file_offset_bytes + piece.skipped_bytes) as i64;
        let home = class.home_bytes.map(|bytes| {
            (queued.bio.partition_sector + (bytes + piece.skipped_bytes) / 512) as i64
        });
        rows::PageRun {
            request_id: 0,
            sector: piece.sector as i64,
            length_bytes: (piece.sectors * 512) as i64,
            block_type: class.block_type.as_str().to_owned(),
            block_subtype: class.subtype.clone(),
            file_id,
            file_offset_bytes: class.has_offset.then_some(offset),
            file_kind: kind.to_owned(),
            home_sector: home,
        }
    }
}

fn unknown_run(sector: u64, sectors: u64) -> rows::PageRun {
    rows::PageRun {
        sector: sector as i64,
        length_bytes: (sectors * 512) as i64,
        block_type: BlockType::Unknown.as_str().to_owned(),
        file_kind: file_kind::NONE.to_owned(),
        ..rows::PageRun::default()
    }
}

fn continues(last: &rows::PageRun, next: &rows::PageRun) -> bool {
    let follows = |last_begin: Option<i64>, next_begin: Option<i64>, length: i64| {
        next_begin == last_begin.map(|begin| begin + length)
    };
    last.block_type == next.block_type
        && last.block_subtype == next.block_subtype
        && last.file_id == next.file_id
        && follows(last.file_offset_bytes, next.file_offset_bytes, last.length_bytes)
        && follows(last.home_sector, next.home_sector, last.length_bytes / 512)
}

/// What a request's runs agree on; "mixed" where they do not.
fn summarise(request: &mut rows::Request, runs: &[rows::PageRun]) {
    let agree = |field: fn(&rows::PageRun) -> &str| match runs {
        [] => String::new(),
        [first, rest @ ..] if rest.iter().all(|run| field(run) == field(first)) => {
            field(first).to_owned()
        }
        _ => "mixed".to_owned(),
    };
    request.block_type = agree(|run| &run.block_type);
    request.block_subtype = agree(|run| &run.block_subtype);
    request.file_kind = agree(|run| &run.file_kind);
    let file_id = runs.first().and_then(|run| run.file_id);
    if runs.iter().all(|run| run.file_id == file_id) {
        request.file_id = file_id;
        request.file_offset_bytes = runs.first().and_then(|run| run.file_offset_bytes);
    }
}
