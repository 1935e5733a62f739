//! One file per subcommand.

pub mod background;
pub mod bench;
pub mod collect;
pub mod confined;
pub mod doctor;
pub mod import;
pub mod init;
pub mod record;
pub mod trace;
pub mod verify;
