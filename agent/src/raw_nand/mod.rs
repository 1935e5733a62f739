//! Raw NAND in the guest: attaches UBI and makes its volume; reads the record of operations that
//! the module of kernel/nand keeps; and says whose the bytes are that were read and programmed, by
//! the headers of UBI and UBIFS in them.
//!
//! ubi (and its buffers); operation; nodes -> block -> follower

mod block;
pub mod follower;
mod nodes;
pub mod operation;
pub mod ubi;
