//! The parts of the guest's hardware that differ by architecture, under the same names: how a file
//! of the host is read (`FwCfg`), and how the machine is stopped while no timer of it runs
//! (`Switch`).

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
pub use aarch64::{MappedFwCfg as FwCfg, ModuleSwitch as Switch, halt_rtc};
#[cfg(target_arch = "x86_64")]
pub use x86_64::{PortFwCfg as FwCfg, PortSwitch as Switch, halt_rtc};
