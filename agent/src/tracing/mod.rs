//! A tracing on a running machine: what ends it, and where its tables go as they come.

pub mod counted;
pub mod output;
pub mod room;
pub mod summary;
pub mod totals;
pub mod until;
