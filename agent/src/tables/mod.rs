//! The tables of schema/: their rows, and the writers that make Parquet of them.

pub mod annotate;
pub mod capture;
pub mod clock;
pub mod fleet;
pub mod manifest;
mod panics;
pub mod read;
pub mod recording;
pub mod rows;
pub mod segments;
pub mod statements;
pub mod timeline;
pub mod watch;
pub mod write;
