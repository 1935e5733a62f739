//! Collects for months what disks and SQLite do on this machine: makes segments of a fleet
//! (schema/fleet/) and keeps them in a spool, until the uploader, a process of its own, has sent
//! them. docs/fleet.md says what a segment has.
//!
//! Each file uses only those before it: memory (of this process), clock, privacy, writers (who
//! writes a file), io_sums, lives and bills (the rows), segment (one file of them), spool, uploader
//! (starts it), settings, session (all together).

mod bills;
mod clock;
mod io_sums;
mod lives;
mod memory;
mod privacy;
mod segment;
mod session;
mod settings;
mod spool;
mod uploader;
mod writers;

pub use privacy::PrivacyLevel;
pub use session::collect;
pub use settings::CollectorSettings;
pub use uploader::Server;
