//! A live trace of a running machine: when it ends, and where its tables are written.

pub mod counted;
pub mod output;
pub mod room;
pub mod summary;
pub mod totals;
pub mod until;
