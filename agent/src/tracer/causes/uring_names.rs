//! Names that io_uring was asked to change. The kernel reports them when io_uring takes a request,
//! and the outcome later, when it completes. They are kept here in between.

use std::collections::BTreeMap;

use crate::tracer::records::{Name, UringOutcome};

/// Requests that may be under way; of more, those at the lowest addresses are forgotten.
const MOST: usize = 65_536;

/// By the address of the request.
#[derive(Debug, Default)]
pub struct UringNames {
    waiting: BTreeMap<u64, Vec<Name>>,
}

impl UringNames {
    /// The names that are known to be changed by this record: itself if it is of a system call, all
    /// of its request if that is done now, or none.
    pub fn settle(&mut self, name: Name) -> Vec<Name> {
        let Name { request, time_ns, outcome, .. } = name;
        if request == 0 {
            return vec![name];
        }
        match outcome {
            Some(UringOutcome::Done) => {
                let names = self.waiting.remove(&request).unwrap_or_default();
                names.into_iter().map(|name| Name { time_ns, ..name }).collect()
            }
            Some(UringOutcome::Failed) => {
                self.waiting.remove(&request);
                Vec::new()
            }
            None => {
                self.wait(name);
                Vec::new()
            }
        }
    }

    fn wait(&mut self, name: Name) {
        let names = self.waiting.entry(name.request).or_default();
        if !name.second {
            // The address was used before, and the end of that was not seen.
            names.clear();
        }
        names.push(name);
        if self.waiting.len() > MOST {
            self.waiting.pop_first();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(request: u64, second: bool, text: &str) -> Name {
        Name { request, second, name: text.to_owned(), time_ns: 1, ..Name::default() }
    }

    fn over(request: u64, outcome: UringOutcome) -> Name {
        Name { request, outcome: Some(outcome), time_ns: 9, ..Name::default() }
    }

    fn texts(names: &[Name]) -> Vec<(&str, u64)> {
        names.iter().map(|name| (name.name.as_str(), name.time_ns)).collect()
    }

    #[test]
    fn names_wait_for_their_request_and_a_call_s_do_not() {
        let mut names = UringNames::default();
        assert_eq!(texts(&names.settle(name(0, false, "called"))), [("called", 1)]);
        for (request, old, new) in [(1, "a", "b"), (2, "c", "d")] {
            assert!(names.settle(name(request, false, old)).is_empty());
            assert!(names.settle(name(request, true, new)).is_empty());
        }
        assert!(names.settle(over(1, UringOutcome::Failed)).is_empty());
        assert_eq!(texts(&names.settle(over(2, UringOutcome::Done))), [("c", 9), ("d", 9)]);
        assert!(names.settle(over(2, UringOutcome::Done)).is_empty());
        assert!(names.waiting.is_empty());
    }

    #[test]
    fn an_address_used_again_begins_anew_and_the_memory_has_a_bound() {
        let mut names = UringNames::default();
        names.settle(name(1, false, "lost"));
        names.settle(name(1, false, "a"));
        assert_eq!(texts(&names.settle(over(1, UringOutcome::Done))), [("a", 9)]);
        for request in 1..=2 * MOST as u64 {
            names.settle(name(request, false, "a"));
        }
        assert_eq!(names.waiting.len(), MOST);
    }
}
