//! Collects for months what disks and SQLite do on this machine: makes segments of a fleet
//! (schema/fleet/) and keeps them in a spool, until the uploader, a process of its own, has sent
//! them. docs/fleet.md says what a segment has.
//!
//! Each file uses only those before it: clock, privacy, lives (of files, and who writes them),
//! io_sums and bills (the other rows), spool (segments), uploader (starts it), session (settings,
//! and all together).

mod bills;
mod clock;
mod io_sums;
mod lives;
mod privacy;
mod session;
mod spool;
mod uploader;

pub use privacy::PrivacyLevel;
pub use session::{CollectorSettings, collect};
pub use uploader::Server;
