//! The tables of schema/: their rows, and the writers that make Parquet of them.

pub mod capture;
pub mod fleet;
pub mod read;
pub mod recording;
pub mod rows;
pub mod timeline;
pub mod write;
