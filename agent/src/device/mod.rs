//! Devices: configures the flash model of the guest and reads what it counted.

pub mod flash;
