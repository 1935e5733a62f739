//! Which filesystem a record asks for.

use super::words::words;

words! {
    /// The filesystems jojlab knows.
    Filesystem {
        Ext4 = "ext4", Xfs = "xfs", Btrfs = "btrfs", Nilfs2 = "nilfs2", F2fs = "f2fs",
        Ubifs = "ubifs",
    }
}

impl Filesystem {
    /// On raw NAND, by UBI; all others are on block devices.
    pub fn is_on_raw_nand(self) -> bool {
        self == Self::Ubifs
    }
}
