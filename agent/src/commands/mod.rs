//! One file per subcommand.

pub mod init;
pub mod trace;
