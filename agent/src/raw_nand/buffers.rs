//! The large buffers of UBI and UBIFS, in a build of both modules whose parameters choose their
//! allocator (kernel/ubi): sets it before the buffers are made, and reads back what lies behind
//! each.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, ensure};
use serde::Serialize;

use crate::record::Allocator;

/// Where modules have their parameters.
const MODULES: &str = "/sys/module";

/// One buffer, as the kernel's memory says (kernel/ubi/chosen_buffers.c).
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Buffer {
    pub module: &'static str,
    pub name: String,
    pub length_bytes: u64,
    pub allocator: String,
    /// In the kernel's address space: hexadecimal, as numbers of JSON may lose digits.
    pub address: String,
    /// Of its first byte.
    pub physical_address: String,
    /// The smallest page of the page tables behind it.
    pub page_bytes: u64,
    /// Stretches that are contiguous in physical memory.
    pub physical_stretches: u64,
}

/// Chooses the allocator of the buffers that a module makes from now on.
///
/// # Errors
/// If the module is the distribution's own, which has no such parameter.
pub fn choose(module: &'static str, allocator: Allocator) -> anyhow::Result<()> {
    let path = parameter(module, "allocator");
    fs::write(&path, allocator.word()).with_context(|| path.display().to_string())
}

/// The buffers that both modules have now.
///
/// # Errors
/// If they cannot be read, or one is by another allocator than `ubi` or `ubifs`.
pub fn read_back(ubi: Allocator, ubifs: Allocator) -> anyhow::Result<Vec<Buffer>> {
    let mut buffers = Vec::new();
    for (module, allocator) in [("ubi", ubi), ("ubifs", ubifs)] {
        let path = parameter(module, "buffers");
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        ensure!(!text.trim().is_empty(), "{module} has no buffers");
        for line in text.lines().filter(|line| !line.is_empty()) {
            let buffer = parse(module, line).with_context(|| format!("{module}: {line:?}"))?;
            let (name, found) = (&buffer.name, &buffer.allocator);
            ensure!(found == allocator.word(), "{module}: {name} is by {found}, not {allocator}");
            buffers.push(buffer);
        }
    }
    Ok(buffers)
}

fn parameter(module: &str, name: &str) -> PathBuf {
    [MODULES, module, "parameters", name].iter().collect()
}

fn parse(module: &'static str, line: &str) -> anyhow::Result<Buffer> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [name, bytes, allocator, address, physical, page, stretches] = words[..] else {
        anyhow::bail!("{} words where seven were expected", words.len());
    };
    Ok(Buffer {
        module,
        name: name.to_owned(),
        length_bytes: bytes.parse()?,
        allocator: allocator.to_owned(),
        address: format!("{:#x}", u64::from_str_radix(address, 16)?),
        physical_address: format!("{:#x}", u64::from_str_radix(physical, 16)?),
        page_bytes: page.parse()?,
        physical_stretches: stretches.parse()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_what_its_line_says() {
        let line = "peb_buf 131072 vmalloc ffffc90000a5d000 1f3a000 4096 32";
        let buffer = parse("ubi", line).unwrap();
        assert_eq!((buffer.name.as_str(), buffer.allocator.as_str()), ("peb_buf", "vmalloc"));
        assert_eq!((buffer.length_bytes, buffer.page_bytes), (131_072, 4096));
        assert_eq!(buffer.address, "0xffffc90000a5d000");
        assert_eq!(
            (buffer.physical_address.as_str(), buffer.physical_stretches),
            ("0x1f3a000", 32)
        );
    }

    #[test]
    fn a_line_of_another_form_is_refused() {
        for line in ["", "peb_buf 131072", "peb_buf many vmalloc 1 2 3 4", "a 1 b 1 2 3 4 5"] {
            assert!(parse("ubi", line).is_err(), "{line:?}");
        }
    }
}
