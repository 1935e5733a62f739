//! The device under test, and the counters around it.

pub mod counters;
pub mod disk;
pub mod disks;
pub mod flash;
pub mod flash_states;
pub mod kernel_log;
pub mod layers;
pub mod location;
pub mod mounts;
pub mod nvme;
pub mod sysfs;
