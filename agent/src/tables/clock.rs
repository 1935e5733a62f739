//! The one clock of all times in the tables.

/// CLOCK_MONOTONIC in ns: what the tracer stamps its events with, and the same in every thread.
#[inline]
pub fn now_ns() -> i64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}
