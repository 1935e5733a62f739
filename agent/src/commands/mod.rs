//! One file per subcommand.

pub mod init;
