//! What a filesystem's device may be made of, in a self-test.

use super::words;

words! {
    /// Disks made of disks, by device mapper (dm) or md.
    Stack {
        DmLinear = "dm-linear",
        DmStripe = "dm-stripe",
        DmCrypt = "dm-crypt",
        DmMultipath = "dm-multipath",
        DmOnMd = "dm-on-md",
        MdRaid0 = "md-raid0",
        MdRaid1 = "md-raid1",
    }
}
