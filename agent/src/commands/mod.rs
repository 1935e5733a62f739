//! One file for a subcommand, or for those that a case starts.

pub mod bench;
pub mod collect;
pub mod doctor;
pub mod import;
pub mod init;
pub mod own_processes;
pub mod record;
pub mod trace;
pub mod verify;
