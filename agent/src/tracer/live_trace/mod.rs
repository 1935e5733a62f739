//! A live trace of a running machine, from begin to end.
//!
//! Each file uses only those before it: until (what ends it), room (memory), pace (when it reads
//! and writes), facts, lives and counted (what is known of the disks), output (the tables),
//! summary and totals (what is printed), outcome, session (all together).

mod counted;
mod facts;
mod lives;
mod outcome;
mod output;
mod pace;
mod room;
mod session;
mod summary;
mod totals;
mod until;

pub use lives::Lives;
pub use session::LiveTrace;
pub use until::{End, Until};
