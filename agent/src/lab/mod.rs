//! What a guest does with a record: runs a case, the self-test of attribution, or power cuts.

pub mod agreement;
pub mod case;
pub mod channel;
mod observation;
pub mod power_cut;
pub mod self_test;
