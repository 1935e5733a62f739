//! Addresses of functions and variables of the running kernel: reads /proc/kallsyms. Modules loaded
//! later appear there later, so it is read again on request.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};

/// Its presence shows that programs may read kernel memory by plain loads (kernel/bpf/read.bpf.h).
pub const RDONLY_CAST: &str = "bpf_rdonly_cast";

/// Its presence shows that a task may lose its processor within a tracepoint, as under Linux
/// 7.3 (kernel/block/further_programs.bpf.h).
pub const PREEMPTIBLE: &str = "tracepoint_srcu";

/// The reason why the kernel's addresses are not known.
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
    /// Those of these names in the running kernel. Where a static function has a suffix of the
    /// compiler's (".isra.0", ".llvm.123"), it is cut off before comparing.
    ///
    /// # Errors
    /// If /proc/kallsyms cannot be read, or shows zeroes for addresses.
    pub fn read(wanted: &[&'static str]) -> Result<Self, SymbolsError> {
        let file = std::fs::File::open("/proc/kallsyms")?;
        let symbols = Self::parse(BufReader::with_capacity(1 << 16, file), wanted)?;
        if symbols.names.is_empty() {
            return Err(SymbolsError::Hidden);
        }
        Ok(symbols)
    }

    /// Takes lines "ADDRESS TYPE NAME[ [MODULE]]"; others are skipped.
    ///
    /// # Errors
    /// If the source cannot be read.
    pub fn parse(mut source: impl BufRead, wanted: &[&'static str]) -> std::io::Result<Self> {
        let mut symbols = Self::default();
        let mut line = Vec::new();
        while source.read_until(b'\n', &mut line)? > 0 {
            if let Some((address, name)) = parse_line(&line, wanted)
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

    /// 0 where the kernel has no such symbol now.
    pub fn address(&self, name: &str) -> u64 {
        self.addresses.get(name).copied().unwrap_or(0)
    }
}

fn parse_line(line: &[u8], wanted: &[&'static str]) -> Option<(u64, &'static str)> {
    let mut words = line.split(|byte| byte.is_ascii_whitespace());
    let address = words.next()?;
    let name = words.nth(1)?;
    let stem = name.split(|&byte| byte == b'.').next()?;
    let is_it = |name: &&&'static str| name.as_bytes() == stem;
    let name = wanted.iter().chain(&[RDONLY_CAST]).find(is_it)?;
    let address = u64::from_str_radix(std::str::from_utf8(address).ok()?, 16).ok()?;
    Some((address, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WANTED: [&str; 4] =
        ["end_bio_bh_io_sync", "xlog_bio_end_io", "bio_chain_endio", "iomap_dio_bio_end_io"];

    const KALLSYMS: &[u8] = b"ffffffff817511f0 t end_bio_bh_io_sync
ffffffff81000000 t somebody_else
ffffffffc0001000 t xlog_bio_end_io\t[xfs]
ffffffff81aee690 t bio_chain_endio.isra.0
0000000000000000 T iomap_dio_bio_end_io
";

    #[test]
    fn finds_functions_of_the_kernel_and_of_modules() {
        let symbols = Symbols::parse(KALLSYMS, &WANTED).unwrap();
        assert_eq!(symbols.name(0xffffffff817511f0), "end_bio_bh_io_sync");
        assert_eq!(symbols.address("xlog_bio_end_io"), 0xffffffffc0001000);
        assert_eq!(symbols.name(0xffffffff81aee690), "bio_chain_endio");
        assert_eq!(symbols.name(0xffffffff81000000), "");
    }

    #[test]
    fn a_hidden_address_is_no_address() {
        let symbols = Symbols::parse(KALLSYMS, &WANTED).unwrap();
        assert_eq!(symbols.address("iomap_dio_bio_end_io"), 0);
        assert_eq!(symbols.name(0), "");
    }
}
