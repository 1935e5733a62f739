//! What a collector is told to do.

use std::path::PathBuf;
use std::time::Duration;

use super::privacy::PrivacyLevel;
use super::uploader::Server;
use crate::device::disks::Disks;

/// Of one collector.
pub struct CollectorSettings {
    pub disks: Disks,
    pub spool: PathBuf,
    /// None: segments stay in the spool.
    pub server: Option<Server>,
    pub privacy: PrivacyLevel,
    /// A segment is closed after this time.
    pub segment_time: Duration,
    pub spool_bytes: u64,
    pub ring_bytes: u32,
    /// Collects no longer than this.
    pub duration: Option<Duration>,
}
