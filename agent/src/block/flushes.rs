//! Who asked for a flush. The block layer makes one request for all that wait for it
//! (block/blk-flush.c), and the request names none of them.
//!
//! A bio is seen when it is queued, which is before the flush machinery gets it: one that looks as
//! if the next flush serves it may have come too late for that, and is served by one after it.

use std::collections::VecDeque;
use std::rc::Rc;

/// Flushes that may be asked for and not yet made; far more than any queue has.
const KEPT: usize = 4096;

/// Whoever was not served after this time never will be.
const LATE_NS: u64 = 1_000_000_000;

/// Those of one disk, in the order in which they began to wait.
#[derive(Debug)]
pub struct FlushLine<T> {
    waiting: VecDeque<(u64, Rc<T>)>,
    /// Were waiting when a flush was made that was told to be another's.
    served_with_others: VecDeque<(u64, Rc<T>)>,
}

impl<T> Default for FlushLine<T> {
    fn default() -> Self {
        FlushLine { waiting: VecDeque::new(), served_with_others: VecDeque::new() }
    }
}

impl<T> FlushLine<T> {
    /// A bio waits from now on.
    pub fn wait(&mut self, bio: Rc<T>, time_ns: u64) {
        self.waiting.push_back((time_ns, bio));
        if self.waiting.len() > KEPT {
            self.waiting.pop_front();
        }
    }

    /// A flush is made: whose it is. The one that has waited longest; or, where none does, the
    /// youngest that was taken to be served by an earlier one.
    pub fn make(&mut self, time_ns: u64) -> Option<Rc<T>> {
        let late = |(since_ns, _): &(u64, Rc<T>)| since_ns.saturating_add(LATE_NS) < time_ns;
        while self.served_with_others.front().is_some_and(late) {
            self.served_with_others.pop_front();
        }
        let overlaps = !self.served_with_others.is_empty();
        let first = match self.waiting.pop_front() {
            // It may have come between the kick of this flush, which is an earlier one's, and its
            // issue, and so wait for yet another.
            Some(first) if overlaps => {
                self.served_with_others.push_back(first.clone());
                Some(first)
            }
            Some(first) => Some(first),
            None => self.served_with_others.pop_back(),
        };
        self.served_with_others.append(&mut self.waiting);
        let excess = self.served_with_others.len().saturating_sub(KEPT);
        self.served_with_others.drain(..excess);
        first.map(|(_, bio)| bio)
    }

    /// The data of these went to the driver, and so their flush was before.
    pub fn leave(&mut self, bios: &[Rc<T>]) {
        let stays = |(_, one): &(u64, Rc<T>)| !bios.iter().any(|bio| Rc::ptr_eq(bio, one));
        for line in [&mut self.waiting, &mut self.served_with_others] {
            if !line.is_empty() {
                line.retain(stays);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(bios: &[Rc<u8>]) -> FlushLine<u8> {
        let mut line = FlushLine::default();
        bios.iter().for_each(|bio| line.wait(bio.clone(), u64::from(**bio)));
        line
    }

    #[test]
    fn the_first_is_served_and_the_others_if_there_are_more_flushes() {
        let bios = [1, 2, 3].map(Rc::new);
        let mut line = line(&bios);
        let made: Vec<_> = (0..4).map(|_| line.make(9).map(|bio| *bio)).collect();
        assert_eq!(made, [Some(1), Some(3), Some(2), None]);
    }

    #[test]
    fn a_flush_kicked_before_a_bio_came_leaves_it_to_the_next() {
        let mut line = line(&[1, 2].map(Rc::new));
        assert_eq!(line.make(9).as_deref(), Some(&1));
        line.wait(Rc::new(3), 10);
        // This one is for 2, or for 3: then there is another, and another.
        let made: Vec<_> = (0..4).map(|_| line.make(11).map(|bio| *bio)).collect();
        assert_eq!(made, [Some(3), Some(3), Some(2), None]);
    }

    #[test]
    fn one_whose_data_went_out_waits_no_more() {
        let bios = [1, 2, 3].map(Rc::new);
        let mut line = line(&bios);
        line.leave(&bios[..1]);
        assert_eq!(line.make(9).as_deref(), Some(&2));
        line.leave(&bios[2..]);
        assert_eq!(line.make(9), None);
    }

    #[test]
    fn whoever_was_taken_to_be_served_long_ago_is_forgotten() {
        let mut line = line(&[1, 2].map(Rc::new));
        assert_eq!(line.make(9).as_deref(), Some(&1));
        assert_eq!(line.make(LATE_NS + 3), None);
    }
}
