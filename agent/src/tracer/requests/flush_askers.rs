//! Finds the tasks that wait for a flush. The block layer makes flushes of its own for bios that
//! ask for one, by REQ_PREFLUSH or by a REQ_FUA that the device does not support. Each flush serves
//! all bios that wait in a hardware queue when it is kicked (block/blk-flush.c). With each flush
//! the kernel's side reports the first of those; this module keeps the candidates to find it. Their
//! order would not be enough: queues are flushed concurrently, and a bio with data may overtake one
//! without.

use std::collections::VecDeque;
use std::rc::Rc;

use super::queued_bio::QueuedBio;

/// Bios that are remembered: far more than wait at any time. When one is done is not looked at.
const MOST: usize = 4096;

/// The last bios that may wait for a flush, in the order in which they were queued.
#[derive(Default)]
pub struct FlushAskers {
    last: VecDeque<Rc<QueuedBio>>,
}

impl FlushAskers {
    /// A bio may be flushed for.
    pub fn ask(&mut self, bio: Rc<QueuedBio>) {
        if self.last.len() == MOST {
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
        for number in 0..MOST as u64 {
            assert!(askers.last.len() <= MOST);
            askers.ask(bio(3, number, number));
        }
        assert_eq!((serial(&askers, 1), serial(&askers, 2)), (None, None));
    }
}
