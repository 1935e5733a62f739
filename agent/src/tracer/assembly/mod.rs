//! Turns records into tables as they arrive.
//!
//! Each file uses only those before it: totals (sums, including bios without records), raw_nand
//! (its operations as bios), assembler (combines all).

mod assembler;
#[cfg(test)]
mod flush_machine;
mod raw_nand;
mod totals;

pub use assembler::{Assembler, Capture, FinishedRows, NEVER_NS};
#[cfg(test)]
pub use totals::Total;
pub use totals::Totals;
