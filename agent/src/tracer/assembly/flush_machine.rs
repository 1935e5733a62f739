//! A small model of the kernel's flush machine, for tests (block/blk-flush.c of 6.1, and of 6.18
//! where that differs): one per hardware queue, with pending and running flushes. Its steps, in any
//! chosen order, give the records that the BPF programs would send, and the bios that each flush
//! serves. A step is what one processor does before another can see it. The ring has the order of
//! the steps, because a program ends before the event that it was called for continues.

use std::collections::VecDeque;

use crate::tracer::records::kernel::{FLAG_FUA, FLAG_PREFLUSH, OPERATION_FLUSH, OPERATION_WRITE};
use crate::tracer::records::{Bio, Record, RequestRecord, Run};

const DISK: u32 = 259 << 20;
const QUEUES: usize = 2;
const BYTES: u32 = 4096;
/// Bios at once at most.
const ADDRESSES: u64 = 6;

/// A device and a kernel, as far as they differ.
#[derive(Debug, Clone, Copy)]
struct Kind {
    /// The device takes REQ_FUA; without, a flush after the write takes its place.
    has_fua: bool,
    /// A write with a flush behind it alone is not counted among the data in flight (6.6 on).
    passes_on: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Before,
    Data,
    After,
    Done,
}

/// A bio, and the request that it is.
#[derive(Debug, Clone)]
struct Write {
    queue: usize,
    has_data: bool,
    flags: u32,
    stage: Stage,
    /// The address of the bio and of the request; used again when it is done.
    address: u64,
}

/// The driver's part of a flush. Ended: the machine does not know of it yet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Flush {
    #[default]
    None,
    Kicked,
    Issued,
    Ended,
}

/// struct blk_flush_queue, with writes by their numbers.
#[derive(Debug, Default)]
struct Machine {
    pending: Vec<usize>,
    running: Vec<usize>,
    data_in_flight: Vec<usize>,
    flush: Flush,
    /// The steps that are left to do under its lock.
    locked: VecDeque<LockedStep>,
}

#[derive(Debug, Clone, Copy)]
enum LockedStep {
    /// A write is done with its stage.
    Next(usize),
    Kick,
}

/// One thing that may happen next, to a write or to the machine of a queue.
#[derive(Debug, Clone, Copy)]
enum Step {
    Queue,
    Insert(usize),
    Issue(usize),
    Complete(usize),
    End(usize),
    IssueFlush(usize),
    CompleteFlush(usize),
    EndFlush(usize),
    Unlock(usize),
    /// Pending for long: the data in flight are not waited for any more (FLUSH_PENDING_TIMEOUT).
    LoseHope(usize),
}

struct World {
    kind: Kind,
    to_come: VecDeque<Write>,
    writes: Vec<Write>,
    /// Writes that are queued, may be issued, are at the device, and complete without the machine
    /// knowing it yet.
    queued: Vec<usize>,
    ready: Vec<usize>,
    issued: Vec<usize>,
    ended: Vec<usize>,
    machines: [Machine; QUEUES],
    addresses: Vec<u64>,
    records: Vec<Record>,
    /// The bios that each flush issued is for.
    served: Vec<Vec<usize>>,
}

impl World {
    fn new(kind: Kind, to_come: Vec<Write>) -> Self {
        World {
            kind,
            to_come: to_come.into(),
            writes: Vec::new(),
            queued: Vec::new(),
            ready: Vec::new(),
            issued: Vec::new(),
            ended: Vec::new(),
            machines: Default::default(),
            addresses: (0..ADDRESSES).map(|number| 0x1000 + number).collect(),
            records: Vec::new(),
            served: Vec::new(),
        }
    }

    /// All that may happen now.
    fn steps(&self) -> Vec<Step> {
        let is_free = |&&write: &&usize| self.machine(write).locked.is_empty();
        let mut steps = Vec::new();
        if !self.to_come.is_empty() && !self.addresses.is_empty() {
            steps.push(Step::Queue);
        }
        steps.extend(self.queued.iter().filter(is_free).map(|&write| Step::Insert(write)));
        steps.extend(self.ready.iter().map(|&write| Step::Issue(write)));
        steps.extend(self.issued.iter().map(|&write| Step::Complete(write)));
        steps.extend(self.ended.iter().filter(is_free).map(|&write| Step::End(write)));
        for (queue, machine) in self.machines.iter().enumerate() {
            match machine.flush {
                Flush::Kicked => steps.push(Step::IssueFlush(queue)),
                Flush::Issued => steps.push(Step::CompleteFlush(queue)),
                Flush::Ended if machine.locked.is_empty() => steps.push(Step::EndFlush(queue)),
                _ => {}
            }
            if !machine.locked.is_empty() {
                steps.push(Step::Unlock(queue));
            } else if machine.flush == Flush::None && !machine.pending.is_empty() {
                steps.push(Step::LoseHope(queue));
            }
        }
        steps
    }

    fn perform(&mut self, step: Step) {
        match step {
            Step::Queue => self.queue(),
            Step::Insert(write) => self.insert(write),
            Step::Issue(write) => self.issue(write),
            Step::Complete(write) => self.complete(write),
            Step::End(write) => {
                self.ended.retain(|&other| other != write);
                let next = [LockedStep::Next(write), LockedStep::Kick];
                self.machine_mut(write).locked.extend(next);
            }
            Step::IssueFlush(queue) => self.issue_flush(queue),
            Step::CompleteFlush(queue) => {
                self.machines[queue].flush = Flush::Ended;
                self.tell(Record::Complete, flush_request(queue));
            }
            Step::EndFlush(queue) => {
                let machine = &mut self.machines[queue];
                machine.flush = Flush::None;
                for write in std::mem::take(&mut machine.running) {
                    machine.locked.extend([LockedStep::Next(write), LockedStep::Kick]);
                }
            }
            Step::Unlock(queue) => match self.machines[queue].locked.pop_front() {
                Some(LockedStep::Next(write)) => self.next(write),
                _ => self.kick(queue, false),
            },
            Step::LoseHope(queue) => self.kick(queue, true),
        }
    }

    fn machine(&self, write: usize) -> &Machine {
        &self.machines[self.writes[write].queue]
    }

    fn machine_mut(&mut self, write: usize) -> &mut Machine {
        &mut self.machines[self.writes[write].queue]
    }

    fn tell(&mut self, kind: fn(RequestRecord) -> Record, request: RequestRecord) {
        let time_ns = self.records.len() as u64;
        self.records.push(kind(RequestRecord { device: DISK, time_ns, ..request }));
    }

    /// submit_bio_noacct().
    fn queue(&mut self) {
        let Some(mut write) = self.to_come.pop_front() else { return };
        write.address = self.addresses.remove(0);
        let number = self.writes.len();
        let length_bytes = if write.has_data { BYTES } else { 0 };
        let bio = Bio {
            device: DISK,
            time_ns: self.records.len() as u64,
            serial: number as u64,
            sector: sector_of(&write, number),
            length_bytes,
            flags: OPERATION_WRITE | write.flags,
            tid: number as u32,
            address: write.address,
            ..Bio::default()
        };
        let serial = number as u64;
        let run = write.has_data.then(|| Run { serial, length_bytes, ..Run::default() });
        self.records.push(Record::Bio(bio, run));
        self.writes.push(write);
        self.queued.push(number);
    }

    fn has_flush_after(&self, write: usize) -> bool {
        self.writes[write].flags & FLAG_FUA != 0 && !self.kind.has_fua
    }

    /// blk_insert_flush().
    fn insert(&mut self, write: usize) {
        self.queued.retain(|&other| other != write);
        let queue = self.writes[write].queue;
        if self.writes[write].flags & FLAG_PREFLUSH != 0 {
            self.machines[queue].pending.push(write);
            self.kick(queue, false);
            return;
        }
        self.writes[write].stage = Stage::Data;
        self.ready.push(write);
        if self.has_flush_after(write) && !self.kind.passes_on {
            self.machines[queue].data_in_flight.push(write);
        }
    }

    fn issue(&mut self, write: usize) {
        self.ready.retain(|&other| other != write);
        self.issued.push(write);
        let request = self.request(write, BYTES);
        self.tell(Record::Issue, request);
    }

    /// blk_update_request() of the data; the rest is up to the machine.
    fn complete(&mut self, write: usize) {
        self.issued.retain(|&other| other != write);
        let request = self.request(write, BYTES);
        self.tell(Record::Complete, request);
        if self.writes[write].flags & FLAG_PREFLUSH != 0 || self.has_flush_after(write) {
            self.ended.push(write);
        } else {
            self.addresses.push(self.writes[write].address);
        }
    }

    fn issue_flush(&mut self, queue: usize) {
        self.machines[queue].flush = Flush::Issued;
        let running = self.machines[queue].running.clone();
        let bio = self.writes[running[0]].address;
        self.tell(Record::Issue, RequestRecord { origin: bio, ..flush_request(queue) });
        self.served.push(running);
    }

    /// blk_flush_complete_seq() without the kick.
    fn next(&mut self, write: usize) {
        let (has_data, after) = (self.writes[write].has_data, self.has_flush_after(write));
        let stage = match self.writes[write].stage {
            Stage::Before if has_data => Stage::Data,
            Stage::Data if after => Stage::After,
            _ => Stage::Done,
        };
        self.writes[write].stage = stage;
        let machine = self.machine_mut(write);
        machine.data_in_flight.retain(|&other| other != write);
        match stage {
            Stage::Data => {
                machine.data_in_flight.push(write);
                self.ready.push(write);
            }
            Stage::After => machine.pending.push(write),
            _ => {
                // blk_mq_end_request() for the last time: its data were told of before.
                let request = self.request(write, 0);
                self.tell(Record::Complete, request);
                self.addresses.push(self.writes[write].address);
            }
        }
    }

    /// blk_kick_flush().
    fn kick(&mut self, queue: usize, without_hope: bool) {
        let machine = &mut self.machines[queue];
        let waits = !machine.data_in_flight.is_empty() && !without_hope;
        if machine.flush == Flush::None && !machine.pending.is_empty() && !waits {
            machine.running = std::mem::take(&mut machine.pending);
            machine.flush = Flush::Kicked;
        }
    }

    fn request(&self, number: usize, length_bytes: u32) -> RequestRecord {
        let write = &self.writes[number];
        let kept = if self.kind.has_fua { FLAG_FUA } else { 0 };
        RequestRecord {
            request: write.address,
            sector: sector_of(write, number),
            length_bytes,
            flags: OPERATION_WRITE | write.flags & kept,
            bio_count: 1,
            ..RequestRecord::default()
        }
    }
}

fn flush_request(queue: usize) -> RequestRecord {
    let (request, flags) = (0x10 + queue as u64, OPERATION_FLUSH | FLAG_PREFLUSH);
    RequestRecord { request, sector: u64::MAX, flags, ..RequestRecord::default() }
}

fn sector_of(write: &Write, number: usize) -> u64 {
    if write.has_data { 8 * number as u64 } else { 0 }
}

/// Whether a flush is attributed to a bio that it serves, on several queues and processors, for any
/// order of the machine's steps.
mod tests {
    use std::collections::BTreeMap;
    use std::rc::Rc;

    use proptest::prelude::*;

    use super::*;
    use crate::bpf::Symbols;
    use crate::tracer::assembly::{Assembler, Capture};
    use crate::tracer::requests::TracedDisk;
    use crate::tracer::surroundings::Surroundings;

    /// Runs the world to its end: first as chance has it, then as it comes.
    fn run(kind: Kind, to_come: Vec<Write>, choices: &[u8]) -> World {
        let mut world = World::new(kind, to_come);
        let mut choices =
            choices.iter().map(|&choice| usize::from(choice)).chain(std::iter::repeat(0));
        loop {
            let steps = world.steps();
            if steps.is_empty() {
                return world;
            }
            let choice = choices.next().unwrap_or_default();
            world.perform(steps[choice % steps.len()]);
        }
    }

    fn capture(world: &World) -> Capture {
        let disk = TracedDisk { name: "nvme0n1".to_owned(), takes_bios: false };
        let disks = BTreeMap::from([(DISK, disk)]);
        let mut assembler = Assembler::new(&disks, Surroundings::nothing(), Rc::default(), 0);
        let symbols = Symbols::default();
        world.records.iter().for_each(|record| assembler.feed(record.clone(), &symbols));
        assembler.finish(0)
    }

    fn writes() -> impl Strategy<Value = Vec<Write>> {
        let kinds = prop::sample::select(vec![
            (false, FLAG_PREFLUSH),
            (true, FLAG_PREFLUSH),
            (true, FLAG_FUA),
            (true, FLAG_PREFLUSH | FLAG_FUA),
            (true, 0),
        ]);
        let write = (0..QUEUES, kinds).prop_map(|(queue, (has_data, flags))| Write {
            queue,
            has_data,
            flags,
            stage: Stage::Before,
            address: 0,
        });
        prop::collection::vec(write, 1..12)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

        #[test]
        fn a_flush_is_of_a_bio_that_it_serves(
            has_fua: bool,
            passes_on: bool,
            writes in writes(),
            choices in prop::collection::vec(any::<u8>(), 0..120),
        ) {
            let world = run(Kind { has_fua, passes_on }, writes, &choices);
            let capture = capture(&world);
            let gaps = capture.gaps;
            prop_assert_eq!(gaps.unattributed_flushes, 0, "{:#?}", world.records);
            prop_assert_eq!((gaps.unissued_bios, gaps.incomplete_requests), (0, 0));
            let flushes = capture.requests.iter().filter(|row| row.operation == "flush");
            let told: Vec<usize> = flushes.map(|row| row.submitter_tid as usize).collect();
            prop_assert_eq!(told.len(), world.served.len());
            for (told, served) in told.iter().zip(&world.served) {
                prop_assert!(served.contains(told), "{told} of {served:?}: {:#?}", world.records);
            }
        }
    }
}
