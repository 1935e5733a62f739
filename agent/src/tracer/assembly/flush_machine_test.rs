//! Whether a flush is attributed to a bio that it serves, on several queues and processors, for any
//! order of the machine's steps.

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
    let mut choices = choices.iter().map(|&choice| usize::from(choice)).chain(std::iter::repeat(0));
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
