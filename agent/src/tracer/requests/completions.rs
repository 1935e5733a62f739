//! Bytes that disks completed, as the tracer saw them: what the disks' own counters are compared
//! with. Takes the completions of all requests, also of those that are no rows because their bios
//! were queued before the trace or after it.
//!
//! The counters are read twice, while requests complete. What completes while they are read may be
//! in them or not, so that the sum is known but for that.

use std::collections::{BTreeMap, BTreeSet};

use crate::tracer::records::RequestRecord;
use crate::tracer::records::kernel::{
    OPERATION_DISCARD, OPERATION_DRIVER_IN, OPERATION_DRIVER_OUT, OPERATION_MASK,
};

/// The directions that the block layer counts apart (op_stat_group() in include/linux/blk_types.h).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    Read,
    Write,
    Discard,
}

impl Direction {
    /// That of an operation; None of those that are not counted. What writes has an odd number.
    pub fn from_operation(operation: u32) -> Option<Self> {
        match operation & OPERATION_MASK {
            OPERATION_DRIVER_IN | OPERATION_DRIVER_OUT => None,
            OPERATION_DISCARD => Some(Self::Discard),
            other if other % 2 == 1 => Some(Self::Write),
            _ => Some(Self::Read),
        }
    }
}

/// A time span: CLOCK_BOOTTIME in ns.
pub type Span = (u64, u64);

/// Bytes by when they were completed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Bytes {
    /// Before the counters had been read the first time.
    at_begin: u64,
    between: u64,
    /// While they were read the second time, and later.
    at_end: u64,
    later: u64,
}

/// The completions on one disk, long after the begin, of what was never seen to be issued.
#[derive(Debug, Default)]
struct Strays {
    addresses: BTreeSet<u64>,
    bytes: BTreeMap<Direction, u64>,
}

/// A request that is no row.
#[derive(Debug)]
struct Edge {
    device: u32,
    direction: Direction,
    sector: u64,
    origin: u64,
    left_bytes: u64,
    issue_ns: u64,
}

/// The completions of one trace.
#[derive(Debug, Default)]
pub struct Completions {
    begin: Span,
    end: Option<Span>,
    /// Up to this time a request may be unknown because it was issued before the begin.
    settled_ns: u64,
    bytes: BTreeMap<(u32, Direction), Bytes>,
    /// Requests that were seen to be issued, are no rows, and are not complete as far as was
    /// seen, by their addresses.
    edges: BTreeMap<u64, Edge>,
    strays: BTreeMap<u32, Strays>,
}

impl Completions {
    /// Begins; see `settled_ns`.
    pub fn new(settled_ns: u64) -> Self {
        Completions { settled_ns, ..Self::default() }
    }

    /// The counters were read the first time meanwhile. No completion was taken yet.
    pub fn begin(&mut self, read: Span) {
        self.begin = read;
    }

    /// The counters were read again meanwhile. All completions before that were taken, and none
    /// since.
    pub fn end(&mut self, read: Span) {
        self.end = Some(read);
        for bytes in self.bytes.values_mut() {
            bytes.between += std::mem::take(&mut bytes.at_end) + std::mem::take(&mut bytes.later);
        }
    }

    /// A request was issued that will be no row.
    pub fn leave_out(&mut self, request: &RequestRecord) {
        let RequestRecord { device, sector, origin, time_ns: issue_ns, .. } = *request;
        let left_bytes = request.length_bytes.into();
        let is_again = |edge: &&mut Edge| {
            (edge.sector, edge.origin, edge.left_bytes) == (sector, origin, left_bytes)
        };
        if let Some(edge) = self.edges.get_mut(&request.request).filter(is_again) {
            // The driver was busy and the request was put back: it is complete once, later.
            edge.issue_ns = issue_ns;
            return;
        }
        self.use_again(request.request);
        if let Some(direction) = Direction::from_operation(request.flags) {
            let edge = Edge { device, direction, sector, origin, left_bytes, issue_ns };
            self.edges.insert(request.request, edge);
        }
    }

    /// A request is issued at an address: the one that was there before is complete.
    pub fn use_again(&mut self, address: u64) {
        if let Some(edge) = self.edges.remove(&address) {
            self.count_unseen(edge.device, edge.direction, edge.left_bytes, edge.issue_ns);
        }
    }

    /// A request, or a part of it, is complete; `is_row`: it is a row of the tables.
    pub fn count(&mut self, part: &RequestRecord, is_row: bool) {
        let Some(direction) =
            Direction::from_operation(part.flags).filter(|_| part.length_bytes > 0)
        else {
            return;
        };
        let bytes = u64::from(part.length_bytes);
        let edge = self.edges.get_mut(&part.request);
        let is_known = is_row || edge.is_some();
        if let Some(edge) = edge {
            edge.left_bytes = edge.left_bytes.saturating_sub(bytes);
            if edge.left_bytes == 0 {
                self.edges.remove(&part.request);
            }
        }
        if !is_known && part.time_ns > self.settled_ns {
            let strays = self.strays.entry(part.device).or_default();
            strays.addresses.insert(part.request);
            *strays.bytes.entry(direction).or_default() += bytes;
            return;
        }
        self.add(part.device, direction, bytes, part.time_ns);
    }

    /// So much of a request of a row is complete since some time, as another witness says.
    pub fn count_unseen(&mut self, device: u32, direction: Direction, bytes: u64, since_ns: u64) {
        // It is by now: before the counters are read the next time.
        let in_doubt = since_ns <= self.begin.1;
        let sums = self.bytes.entry((device, direction)).or_default();
        *(if in_doubt { &mut sums.at_begin } else { &mut sums.between }) += bytes;
    }

    fn add(&mut self, device: u32, direction: Direction, bytes: u64, time_ns: u64) {
        let sums = self.bytes.entry((device, direction)).or_default();
        let sum = match self.end {
            _ if time_ns <= self.begin.1 => &mut sums.at_begin,
            Some((_, last_ns)) if time_ns > last_ns => &mut sums.later,
            Some((first_ns, _)) if time_ns >= first_ns => &mut sums.at_end,
            _ => &mut sums.between,
        };
        *sum += bytes;
    }

    /// The least and the most that the counters can have increased by. `in_flight`: requests that
    /// the disk had when the counters were read the first time: so many may have been issued
    /// before.
    pub fn between(&self, device: u32, direction: Direction, in_flight: usize) -> (u64, u64) {
        let bytes = self.bytes.get(&(device, direction)).copied().unwrap_or_default();
        let strays = self.strays.get(&device).filter(|it| it.addresses.len() <= in_flight);
        let strays = strays.and_then(|strays| strays.bytes.get(&direction)).unwrap_or(&0);
        // The kernel may not tell of a completion; rows are asked about, these are not.
        let open =
            self.edges.values().filter(|it| (it.device, it.direction) == (device, direction));
        let open: u64 = open.map(|edge| edge.left_bytes).sum();
        let least = bytes.between + strays;
        (least, least + bytes.at_begin + bytes.at_end + open)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DISK: u32 = 7 << 20;
    const WRITE: u32 = 1;

    fn part(request: u64, flags: u32, time_ns: u64) -> RequestRecord {
        let place = RequestRecord { device: DISK, request, flags, ..RequestRecord::default() };
        RequestRecord { length_bytes: 4096, time_ns, ..place }
    }

    fn pages(completions: &Completions, direction: Direction, in_flight: usize) -> (u64, u64) {
        let (least, most) = completions.between(DISK, direction, in_flight);
        (least / 4096, most / 4096)
    }

    #[test]
    fn a_completion_while_counters_are_read_is_in_doubt() {
        let mut completions = Completions::new(0);
        completions.begin((100, 110));
        for time_ns in [90, 105, 111, 200] {
            completions.count(&part(1, WRITE, time_ns), true);
        }
        assert_eq!(pages(&completions, Direction::Write, 0), (2, 4));
        completions.end((300, 310));
        for time_ns in [299, 300, 310, 311] {
            completions.count(&part(1, WRITE, time_ns), true);
        }
        assert_eq!(pages(&completions, Direction::Write, 0), (3, 7));
        // Read again: all that was taken is before.
        completions.end((400, 410));
        assert_eq!(pages(&completions, Direction::Write, 0), (6, 8));
        assert_eq!(pages(&completions, Direction::Read, 0), (0, 0));
    }

    #[test]
    fn a_request_that_was_never_seen_to_be_issued_may_be_older_than_the_trace() {
        let mut completions = Completions::new(1000);
        completions.begin((100, 110));
        completions.count(&part(1, WRITE, 900), false);
        assert_eq!(pages(&completions, Direction::Write, 0), (1, 1));
        completions.count(&part(2, WRITE, 2000), false);
        completions.count(&part(2, WRITE, 2100), false);
        assert_eq!(pages(&completions, Direction::Write, 0), (1, 1));
        assert_eq!(pages(&completions, Direction::Write, 1), (3, 3));
        completions.leave_out(&part(3, WRITE, 2100));
        assert_eq!(pages(&completions, Direction::Write, 0), (1, 2));
        completions.count(&part(3, WRITE, 2200), false);
        assert_eq!(pages(&completions, Direction::Write, 0), (2, 2));
        // The driver puts it back, and gets it again: it counts once.
        completions.leave_out(&part(4, WRITE, 2210));
        completions.leave_out(&part(4, WRITE, 2220));
        completions.count(&part(4, WRITE, 2230), false);
        assert_eq!(pages(&completions, Direction::Write, 0), (3, 3));
        // Its completion is not seen.
        completions.leave_out(&part(3, WRITE, 2300));
        completions.use_again(3);
        assert_eq!(pages(&completions, Direction::Write, 0), (4, 4));
    }

    #[test]
    fn zeroes_are_written_and_what_drivers_ask_is_not_counted() {
        let of =
            [0, 1, 3, 5, 9, 34, 35].map(|operation| Direction::from_operation(operation | 1 << 11));
        let write = Some(Direction::Write);
        let known = [Some(Direction::Read), write, Some(Direction::Discard), write, write];
        assert_eq!(of, [known.as_slice(), &[None, None]].concat().as_slice());
    }

    #[test]
    fn completions_of_another_witness_are_in_the_sum() {
        let mut completions = Completions::new(0);
        completions.begin((100, 110));
        completions.count_unseen(DISK, Direction::Write, 4096, 105);
        completions.count_unseen(DISK, Direction::Write, 4096, 200);
        assert_eq!(pages(&completions, Direction::Write, 0), (1, 2));
    }
}
