//! The times of a trace's lines on one clock, whichever of strace's options gave them.

use serde_json::{Value, json};

use super::line::LineStamp;

const DAY_NS: i64 = 24 * 3600 * 1_000_000_000;

/// What a trace tells of times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Times {
    pub kind: ClockKind,
    /// Calls that have an end, and those that returned without one being told.
    pub with_end: u64,
    pub without_end: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ClockKind {
    /// Nothing but an order.
    #[default]
    Order,
    /// Since 1970 (-ttt).
    Absolute,
    /// Since the midnight before the first line (-t, -tt).
    OfDay,
    /// Since the first line (-r).
    Relative,
}

impl Times {
    /// Clock and beginning, for the manifest.
    pub fn facts(&self, began_ns: i64) -> Vec<(&'static str, Value)> {
        let clock = match self.kind {
            ClockKind::Absolute => "CLOCK_REALTIME",
            ClockKind::OfDay => "time of day",
            ClockKind::Relative => "relative",
            ClockKind::Order => "none",
        };
        let mut facts = vec![("clock", json!(clock)), ("began_ns", json!(began_ns))];
        if self.kind == ClockKind::Absolute {
            facts.push(("began_unix_ns", json!(began_ns)));
        }
        facts
    }

    /// What `begin_ns` of a call is.
    pub fn begin_word(&self) -> &'static str {
        if self.kind == ClockKind::Order { "order" } else { "told" }
    }

    /// What a reader should know besides.
    pub fn note(&self) -> Option<String> {
        let text = "no times: begin_ns is the calls' order only; strace tells times with -ttt";
        (self.kind == ClockKind::Order).then(|| text.to_owned())
    }
}

/// The clock of a file.
#[derive(Debug)]
pub struct TraceClock {
    kind: ClockKind,
    last_ns: i64,
    days_ns: i64,
}

impl TraceClock {
    /// Of a kind of time, from the first time that the file tells.
    pub fn new(kind: ClockKind, first_ns: i64) -> Self {
        TraceClock { kind, last_ns: first_ns, days_ns: 0 }
    }

    /// The time of a line; none where the file has no times. A line of another kind has the time
    /// of the one before.
    pub fn time_ns(&mut self, stamp: LineStamp) -> Option<i64> {
        match (self.kind, stamp) {
            (ClockKind::Absolute, LineStamp::Absolute(ns)) => self.last_ns = ns,
            (ClockKind::Relative, LineStamp::Relative(ns)) => {
                self.last_ns = self.last_ns.saturating_add(ns);
            }
            (ClockKind::OfDay, LineStamp::OfDay(ns)) => {
                // Midnight has passed where the time goes back by hours.
                if ns.saturating_add(self.days_ns) < self.last_ns - DAY_NS / 2 {
                    self.days_ns = self.days_ns.saturating_add(DAY_NS);
                }
                self.last_ns = ns.saturating_add(self.days_ns);
            }
            _ => {}
        }
        (self.kind != ClockKind::Order).then_some(self.last_ns)
    }

    pub fn kind(&self) -> ClockKind {
        self.kind
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_a_day_go_on_over_midnight_and_relative_ones_add_up() {
        let mut clock = TraceClock::new(ClockKind::OfDay, DAY_NS - 5);
        assert_eq!(clock.time_ns(LineStamp::OfDay(DAY_NS - 5)), Some(DAY_NS - 5));
        assert_eq!(clock.time_ns(LineStamp::OfDay(7)), Some(DAY_NS + 7));
        assert_eq!(clock.time_ns(LineStamp::OfDay(5)), Some(DAY_NS + 5));
        let mut clock = TraceClock::new(ClockKind::Relative, 0);
        let times = [0, 3, 4].map(|ns| clock.time_ns(LineStamp::Relative(ns)));
        assert_eq!(times, [Some(0), Some(3), Some(7)]);
        assert_eq!(clock.time_ns(LineStamp::None), Some(7));
        assert_eq!(TraceClock::new(ClockKind::Order, 0).time_ns(LineStamp::None), None);
    }
}
