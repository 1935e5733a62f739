//! Kernel addresses of the functions that identify a bio. Reads /proc/kallsyms. Modules loaded
//! later appear there later, so it is read again on request.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};

/// What we want the addresses of. Where a static function has a suffix of the compiler's
/// (".isra.0", ".llvm.123"), it is cut off before comparing.
const WANTED: &[&str] = &[
    // A buffer_head's bio, and the function called when the buffer is written.
    "end_bio_bh_io_sync",
    "journal_end_buffer_io_sync",
    "ext4_end_buffer_io_sync",
    // Direct I/O.
    "iomap_dio_bio_end_io",
    // Zeroing (blkdev_issue_zeroout) and other synchronous bios.
    "bio_chain_endio",
    "submit_bio_wait_endio",
    // XFS.
    "xfs_buf_bio_end_io",
    "xlog_bio_end_io",
    // Btrfs, NILFS2.
    "btrfs_end_super_write",
    "btrfs_simple_end_io",
    "btrfs_orig_write_end_io",
    "btrfs_clone_write_end_io",
    "end_compressed_bio_write",
    "end_compressed_bio_read",
    // Direct I/O of Btrfs: the name of 6.1, and that of 6.18.
    "btrfs_end_dio_bio",
    "btrfs_dio_end_io",
    "nilfs_end_bio_write",
    "nilfs_buffer_cache_aops",
    // Swap.
    "end_swap_bio_write",
    "end_swap_bio_read",
    // Device mapper and md, of the bios that they send to the disks below: see is_stacked.
    "clone_endio",
    "crypt_endio",
    "md_end_io_acct",
    "md_end_clone_io",
    "raid1_end_read_request",
    "raid1_end_write_request",
    "raid10_end_read_request",
    "raid10_end_write_request",
    "raid5_end_read_request",
    "raid5_end_write_request",
    "raid5_align_endio",
    // Variables that make an address of a page; only in kernels with KALLSYMS_ALL.
    "vmemmap_base",
    "page_offset_base",
    // Not addresses we read at: that they are there says what the kernel has.
    "bpf_rdonly_cast",
    "__traceiter_io_uring_submit_req",
    "__traceiter_io_uring_submit_sqe",
    "__traceiter_io_uring_complete",
];

/// Why the kernel's addresses are not known.
#[derive(Debug, thiserror::Error)]
pub enum SymbolsError {
    #[error("/proc/kallsyms: {0}; is /proc mounted?")]
    Read(#[from] std::io::Error),
    #[error("/proc/kallsyms shows no addresses; run as root, with kernel.kptr_restrict below 2")]
    Hidden,
}

/// Names of the wanted addresses, and addresses of the wanted names.
#[derive(Debug, Clone, Default)]
pub struct Symbols {
    names: BTreeMap<u64, &'static str>,
    addresses: BTreeMap<&'static str, u64>,
}

impl Symbols {
    /// Reads the running kernel's.
    ///
    /// # Errors
    /// If /proc/kallsyms cannot be read, or shows zeroes for addresses.
    pub fn read() -> Result<Self, SymbolsError> {
        let file = std::fs::File::open("/proc/kallsyms")?;
        let symbols = Self::parse(BufReader::with_capacity(1 << 16, file))?;
        if symbols.address("end_bio_bh_io_sync") == 0 {
            return Err(SymbolsError::Hidden);
        }
        Ok(symbols)
    }

    /// Takes lines "ADDRESS TYPE NAME[ [MODULE]]"; others are skipped.
    ///
    /// # Errors
    /// If the source cannot be read.
    pub fn parse(mut source: impl BufRead) -> std::io::Result<Self> {
        let mut symbols = Self::default();
        let mut line = Vec::new();
        while source.read_until(b'\n', &mut line)? > 0 {
            if let Some((address, name)) = parse_line(&line)
                && address != 0
            {
                symbols.names.insert(address, name);
                symbols.addresses.entry(name).or_insert(address);
            }
            line.clear();
        }
        Ok(symbols)
    }

    /// The name of the function or table at an address; empty where it is none we know.
    pub fn name(&self, address: u64) -> &'static str {
        self.names.get(&address).copied().unwrap_or("")
    }

    /// The bio was made by device mapper or md: what the filesystem used it for is unknown.
    pub fn is_stacked(&self, end_io: u64) -> bool {
        let name = self.name(end_io);
        let prefixes = ["clone_endio", "crypt_endio", "md_end_", "raid"];
        prefixes.iter().any(|prefix| name.starts_with(prefix))
    }

    /// 0 where the kernel has no such symbol now.
    pub fn address(&self, name: &str) -> u64 {
        self.addresses.get(name).copied().unwrap_or(0)
    }
}

fn parse_line(line: &[u8]) -> Option<(u64, &'static str)> {
    let mut words = line.split(|byte| byte.is_ascii_whitespace());
    let address = words.next()?;
    let name = words.nth(1)?;
    let stem = name.split(|&byte| byte == b'.').next()?;
    let wanted = WANTED.iter().find(|wanted| wanted.as_bytes() == stem)?;
    let address = u64::from_str_radix(std::str::from_utf8(address).ok()?, 16).ok()?;
    Some((address, wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KALLSYMS: &[u8] = b"ffffffff817511f0 t end_bio_bh_io_sync
ffffffff81000000 t somebody_else
ffffffffc0001000 t xlog_bio_end_io\t[xfs]
ffffffff81aee690 t bio_chain_endio.isra.0
0000000000000000 T iomap_dio_bio_end_io
";

    #[test]
    fn finds_functions_of_the_kernel_and_of_modules() {
        let symbols = Symbols::parse(KALLSYMS).unwrap();
        assert_eq!(symbols.name(0xffffffff817511f0), "end_bio_bh_io_sync");
        assert_eq!(symbols.address("xlog_bio_end_io"), 0xffffffffc0001000);
        assert_eq!(symbols.name(0xffffffff81aee690), "bio_chain_endio");
        assert_eq!(symbols.name(0xffffffff81000000), "");
    }

    #[test]
    fn a_hidden_address_is_no_address() {
        let symbols = Symbols::parse(KALLSYMS).unwrap();
        assert_eq!(symbols.address("iomap_dio_bio_end_io"), 0);
        assert_eq!(symbols.name(0), "");
    }
}
