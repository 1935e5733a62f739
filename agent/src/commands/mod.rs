//! One file per subcommand.

pub mod background;
pub mod init;
pub mod trace;
