//! Which filesystem a record asks for.

use super::words::words;

words! {
    /// The filesystems jojlab knows.
    Filesystem { Ext4 = "ext4", Xfs = "xfs", Btrfs = "btrfs", Nilfs2 = "nilfs2", F2fs = "f2fs" }
}
