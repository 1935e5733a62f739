//! The machine `microvm`: I/O ports, and the timer of the local APIC.

mod ports;
mod timers;

use anyhow::Context;
use ports::Ports;
use std::io;
use timers::HaltedTick;
pub use timers::halt_rtc;

/// QEMU's device for files of the host: a selector register (two bytes, little-endian) and a data
/// register (one byte).
pub struct PortFwCfg {
    ports: Ports,
}

impl PortFwCfg {
    const PORT: u16 = 0x510;
    const DATA: u16 = 1;

    /// Asks for the device's ports.
    ///
    /// # Errors
    /// If the kernel refuses them.
    pub fn open() -> io::Result<Self> {
        Ok(Self { ports: Ports::acquire(Self::PORT, 2)? })
    }

    /// Chooses the item that is read next, from its first byte on.
    pub fn select(&self, key: u16) {
        self.ports.write_u16(0, key);
    }

    /// Reads the next bytes of the chosen item.
    pub fn read(&self, bytes: &mut [u8]) {
        self.ports.read_bytes(Self::DATA, bytes);
    }
}

/// Stops the machine, by the port of QEMU's pvpanic device.
pub struct PortSwitch {
    ports: Ports,
    /// Halted until the value is dropped.
    _tick: Option<HaltedTick>,
}

impl PortSwitch {
    const PORT: u16 = 0x505;
    const PANICKED: u8 = 1;

    /// For a stop that is not the last: the scheduler's tick stands still until the value is
    /// dropped.
    ///
    /// # Errors
    /// If the ports or the timer are out of reach.
    pub fn with_halted_tick() -> anyhow::Result<Self> {
        let ports = Self::ports()?;
        let tick = HaltedTick::new();
        let tick = tick.context("cannot halt the local APIC's timer through /dev/mem")?;
        Ok(Self { ports, _tick: Some(tick) })
    }

    /// For the last stop.
    ///
    /// # Errors
    /// If the ports are out of reach.
    pub fn for_good() -> anyhow::Result<Self> {
        Ok(Self { ports: Self::ports()?, _tick: None })
    }

    /// Stops; returns when, and if, the host continues the machine.
    ///
    /// # Errors
    /// None: the port is ours.
    pub fn stop(&mut self) -> io::Result<()> {
        self.ports.write_u8(0, Self::PANICKED);
        Ok(())
    }

    fn ports() -> anyhow::Result<Ports> {
        Ports::acquire(Self::PORT, 1).context("no right to the pvpanic port")
    }
}
