//! The work of a guest: takes a job from its channel, runs a case, the self-test of attribution or
//! power cuts, and hands the results out.
//!
//! channel; stand (disks and filesystem) -> observation -> case, self_test, power_cut

pub mod agreement;
pub mod case;
pub mod channel;
mod observation;
mod owners;
pub mod power_cut;
pub mod self_test;
mod stand;
