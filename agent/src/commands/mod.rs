//! One file per subcommand.

pub mod bench;
pub mod init;
pub mod trace;
