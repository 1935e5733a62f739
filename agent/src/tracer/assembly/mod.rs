//! Turns records into tables as they arrive.
//!
//! Each file uses only those before it: totals (sums, including bios without records), tables (what
//! comes out), cover (runs that were lost), raw_nand (its operations as bios), sequence (which
//! requests are sequential), assembler (combines all).

mod assembler;
mod cover;
#[cfg(test)]
mod flush_machine;
mod raw_nand;
mod sequence;
mod tables;
mod totals;

pub use assembler::{Assembler, NEVER_NS};
pub use tables::{Capture, FinishedRows};
#[cfg(test)]
pub use totals::Total;
pub use totals::Totals;
