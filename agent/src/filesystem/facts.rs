//! The form in which a filesystem's file says what the agent has to know of it.

/// The facts that the agent knows of one filesystem.
pub struct FilesystemFacts {
    /// The word of cases, and the kernel's name of its type.
    pub word: &'static str,
    /// Types of mounts on disks whose blocks are told apart by what is known of this filesystem:
    /// ext4's driver mounts ext2 and ext3 too.
    pub mount_types: &'static [&'static str],
    pub is_on_raw_nand: bool,
    /// Whether one may be on several disks, so that its device number is of none.
    pub spans_disks: bool,
    /// None where the kernel makes it, at the first mount.
    pub mkfs: Option<Mkfs>,
    pub checker: Option<Checker>,
    /// Whether a line of the kernel's log, of the level of errors, is about what it recovers from.
    pub is_recovery_message: fn(&str) -> bool,
}

impl FilesystemFacts {
    /// The facts that most filesystems on block devices share.
    pub const BLOCK_DEFAULTS: Self = Self {
        word: "",
        mount_types: &[],
        is_on_raw_nand: false,
        spans_disks: false,
        mkfs: None,
        checker: None,
        is_recovery_message: |_| false,
    };
}

/// A program that makes a filesystem; the device comes after its arguments.
#[derive(Clone, Copy)]
pub struct Mkfs {
    pub program: &'static str,
    pub arguments: &'static [&'static str],
    /// None where the journal cannot be on a device of its own.
    pub journal: Option<JournalDevice>,
}

/// The steps that put a journal onto a device of its own; functions take the path of that device.
#[derive(Clone, Copy)]
pub struct JournalDevice {
    /// Arguments of a call of the same program that prepares the device before.
    pub prepare: Option<fn(&str) -> Vec<String>>,
    /// Further arguments of the call that makes the filesystem.
    pub mkfs_arguments: fn(&str) -> Vec<String>,
    /// The mount option that names the device, with its "="; empty where the superblock does.
    pub mount_option: &'static str,
}

/// Bytes of a journal on a device of its own: what mkfs.ext4 gives the filesystem of 2 GiB that has
/// its journal inside, so that where the journal is alone makes the difference.
pub const JOURNAL_BYTES: u64 = 64 << 20;

/// A program that checks a filesystem and changes nothing; the device comes after its arguments.
#[derive(Debug, Clone, Copy)]
pub struct Checker {
    pub program: &'static str,
    pub arguments: &'static [&'static str],
    /// The arguments with which boots have it repair what it can; none where they have it do
    /// nothing, as fsck.xfs(8) and fsck.btrfs(8) do.
    pub boot_arguments: &'static [&'static str],
    /// The option before the device of an external journal.
    pub journal_option: &'static str,
    /// The option that says that a device is a file; empty where the program sees that.
    pub file_option: &'static str,
}

impl Checker {
    /// The facts that most checkers share.
    pub const BLOCK_DEFAULTS: Self = Self {
        program: "",
        arguments: &[],
        boot_arguments: &[],
        journal_option: "-j",
        file_option: "",
    };
}
