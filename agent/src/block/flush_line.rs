//! Who waits for a flush of one disk. The block layer makes flushes of its own, each for all that
//! wait when it is kicked (block/blk-flush.c); whom it was for is told by no event. A bio may also
//! wait for a request before it waits for a flush: with a device that takes one at a time there are
//! two (blk_mq_init_sched()), and so it may outlast several flushes.

use std::collections::VecDeque;
use std::rc::Rc;

/// Flushes that may be asked for and not yet made; far more than any queue has.
const MOST: usize = 4096;

/// A bio that waits, in the order in which it began to.
struct Asker<T> {
    bio: Rc<T>,
    /// Whether it has no data: its request is never issued, but completes after the flush.
    is_bare: bool,
    /// The request with its data, if it waits for the flush that takes the place of FUA.
    after: Option<u64>,
    /// Whether a flush was issued since it began to wait, and whether that was said to be its own.
    may_be_served: bool,
    has_one: bool,
}

/// The line of one disk.
pub struct FlushLine<T> {
    askers: VecDeque<Asker<T>>,
}

impl<T> Default for FlushLine<T> {
    fn default() -> Self {
        Self { askers: VecDeque::new() }
    }
}

impl<T> FlushLine<T> {
    /// A bio asks for a flush before its data, or without any.
    pub fn ask(&mut self, bio: Rc<T>, is_bare: bool) {
        self.push(bio, is_bare, None);
    }

    /// A bio's data were written by a request, and are to be flushed.
    pub fn ask_after(&mut self, bio: Rc<T>, request: u64) {
        self.push(bio, false, Some(request));
    }

    fn push(&mut self, bio: Rc<T>, is_bare: bool, after: Option<u64>) {
        let (may_be_served, has_one) = (false, false);
        self.askers.push_back(Asker { bio, is_bare, after, may_be_served, has_one });
        if self.askers.len() > MOST {
            self.askers.pop_front();
        }
    }

    /// The data of these bios are being written: their flush, which comes before, has been.
    pub fn wrote(&mut self, bios: &[Rc<T>]) {
        self.askers.retain(|asker| !bios.iter().any(|bio| Rc::ptr_eq(bio, &asker.bio)));
    }

    /// A request completed that was never issued: a bare bio's, or the end of one with data.
    pub fn completed(&mut self, request: u64) {
        let of_data = self.askers.iter().position(|asker| asker.after == Some(request));
        let bare = || self.askers.iter().position(|asker| asker.is_bare && asker.may_be_served);
        if let Some(index) = of_data.or_else(bare) {
            self.askers.remove(index);
        }
    }

    /// A flush is issued: for the bio that has waited longest and has none yet.
    pub fn issue(&mut self) -> Option<Rc<T>> {
        self.askers.iter_mut().for_each(|asker| asker.may_be_served = true);
        let first = self.askers.iter().position(|asker| !asker.has_one);
        let asker = self.askers.get_mut(first.unwrap_or(0))?;
        asker.has_one = true;
        Some(asker.bio.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_bio_leaves_when_it_completes_and_one_with_data_when_they_are_written() {
        let mut line = FlushLine::default();
        let (bare, data) = (Rc::new('b'), Rc::new('d'));
        line.ask(bare, true);
        line.ask(data.clone(), false);
        assert_eq!(line.issue().as_deref(), Some(&'b'));
        line.completed(7);
        assert_eq!(line.issue().as_deref(), Some(&'d'));
        line.wrote(&[data.clone()]);
        assert!(line.issue().is_none());
        line.ask_after(data, 8);
        assert_eq!(line.issue().as_deref(), Some(&'d'));
        line.completed(8);
        assert!(line.issue().is_none());
    }

    #[test]
    fn a_bio_that_waited_for_a_request_outlasts_flushes() {
        let mut line = FlushLine::default();
        line.ask(Rc::new(1), true);
        line.ask(Rc::new(2), true);
        // A flush for the first alone, and one for the second much later.
        assert_eq!(line.issue().as_deref(), Some(&1));
        line.completed(7);
        assert_eq!(line.issue().as_deref(), Some(&2));
        assert_eq!(line.issue().as_deref(), Some(&2));
        line.completed(7);
        assert!(line.issue().is_none());
    }

    #[test]
    fn a_completion_of_a_bio_never_seen_takes_nobody_s_place() {
        let mut line = FlushLine::default();
        line.ask(Rc::new(1), true);
        line.completed(7);
        assert_eq!(line.issue().as_deref(), Some(&1));
    }
}
