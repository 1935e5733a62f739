//! The guest's end of its channel to the lab: the case comes in through fw_cfg, the results go
//! out through reserved memory, and the guest stops itself at exact instructions in between.
//! No driver, interrupt or host thread takes part, so nothing outside reaches the virtual clock.

pub mod clock;
pub mod fw_cfg;
pub mod handout;
pub mod hardware;
pub mod physical;
pub mod preparation;
pub mod trees;
