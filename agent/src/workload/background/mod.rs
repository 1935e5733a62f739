//! Background load: a second process of the agent's program that does what a phone does besides the
//! measured workload. Starts it before the warm-up, ends it after the last transaction, and returns
//! what it did. The tables show its name, joj-background, as its requests' submitter.
//!
//! The parent holds the child's standard input open. End of file is the signal to stop; it also
//! comes when the parent dies.
//!
//! process (the child) -> load (the parent)

pub mod load;
pub mod process;
