//! The tables of schema/: their rows, and the writers that make Parquet of them. Of a live tracing
//! also what ends it, and what it saw in one table.

pub mod annotate;
pub mod output;
pub mod rows;
pub mod segments;
pub mod summary;
pub mod until;
pub mod write;
