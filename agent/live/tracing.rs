//! The agent's tracer on the running kernel, which make has built: one program of tests, so that
//! what reads tables is compiled once.
//!
//! support: filesystems on loop devices, and the tables of a tracing -> whole: known writes, each
//! byte of which must be found again; flushes: whom each is for; names: under other roots and of 32
//! bits; io_uring: names and syncs through it

mod flushes;
mod io_uring;
mod names;
mod support;
mod whole;
