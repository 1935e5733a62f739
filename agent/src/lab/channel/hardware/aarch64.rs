//! The machine `virt`: registers in memory, and the module kernel/guest_stop.

use std::fs::{self, File};
use std::io::{self, Error, Write};

use anyhow::Context;

use crate::lab::channel::physical::PhysicalMapping;

/// The device tree, which says where devices are (Documentation/devicetree/bindings/firmware/
/// qemu,fw-cfg-mmio.yaml).
const DEVICE_TREE: &str = "/proc/device-tree";
const NODE: &str = "fw-cfg@";
const PAGE_BYTES: usize = 4096;

/// The parameter of kernel/guest_stop, a write to which stops the machine.
const STOP_NOW: &str = "/sys/module/guest_stop/parameters/now";

/// QEMU's device for files of the host (docs/specs/fw_cfg.txt): a data register of up to eight
/// bytes, whose bytes are in the order of the item's, and a selector register, big-endian.
pub struct MappedFwCfg {
    registers: PhysicalMapping,
}

impl MappedFwCfg {
    const DATA: usize = 0;
    const SELECTOR: usize = 8;

    /// Looks the device up in the device tree, and maps its registers.
    ///
    /// # Errors
    /// If there is none, or the kernel does not let us map it.
    pub fn open() -> io::Result<Self> {
        Ok(Self { registers: PhysicalMapping::new(address()?, PAGE_BYTES)? })
    }

    /// Chooses the item that is read next, from its first byte on.
    pub fn select(&self, key: u16) {
        self.registers.write_register(Self::SELECTOR, key.to_be());
    }

    /// Reads the next bytes of the chosen item.
    pub fn read(&self, bytes: &mut [u8]) {
        let mut words = bytes.chunks_exact_mut(8);
        for word in &mut words {
            let value: u64 = self.registers.read_register(Self::DATA);
            word.copy_from_slice(&value.to_ne_bytes());
        }
        for byte in words.into_remainder() {
            *byte = self.registers.read_register(Self::DATA);
        }
    }
}

fn address() -> io::Result<u64> {
    for entry in fs::read_dir(DEVICE_TREE)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(NODE) {
            return first_address(&fs::read(entry.path().join("reg"))?)
                .ok_or_else(|| Error::other("the device tree's fw-cfg has no address"));
        }
    }
    Err(Error::other(format!("{DEVICE_TREE} has no {NODE}")))
}

/// The first 64-bit address of a node's `reg`.
fn first_address(reg: &[u8]) -> Option<u64> {
    reg.first_chunk().map(|bytes| u64::from_be_bytes(*bytes))
}

/// Stops the machine, by the module, which halts the tick around each stop.
pub struct ModuleSwitch {
    now: File,
}

impl ModuleSwitch {
    /// For a stop that is not the last.
    ///
    /// # Errors
    /// If the module is not loaded.
    pub fn with_halted_tick() -> anyhow::Result<Self> {
        let now = File::options().write(true).open(STOP_NOW).context(STOP_NOW)?;
        Ok(Self { now })
    }

    /// For the last stop.
    ///
    /// # Errors
    /// If the module is not loaded.
    pub fn for_good() -> anyhow::Result<Self> {
        Self::with_halted_tick()
    }

    /// Stops; returns when, and if, the host continues the machine.
    ///
    /// # Errors
    /// If the module did not find the device.
    pub fn stop(&mut self) -> io::Result<()> {
        self.now.write_all(b"1")
    }
}

/// The clock of this machine has no timer until its alarm is set, which no kernel of ours does.
///
/// # Errors
/// None.
pub fn halt_rtc() -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_device_tree_has_big_endian_cells() {
        let reg = [0, 0, 0, 0, 0x09, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x18];
        assert_eq!(first_address(&reg), Some(0x0902_0000));
        assert_eq!(first_address(&reg[..7]), None);
    }
}
