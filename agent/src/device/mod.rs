//! The device under test, and what is counted around it.

pub mod counters;
pub mod disks;
pub mod flash;
pub mod layers;
pub mod number;
pub mod stack;
