//! How much memory a live trace uses for unprocessed events: reads /proc/meminfo; returns the size
//! of the ring, and of the queue behind it while rows are made and written.

use std::fs;

const MIB: u64 = 1 << 20;

/// Sizes in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// A power of two; the kernel gives it at once.
    pub ring: u32,
    /// At most.
    pub backlog: usize,
}

impl Room {
    /// For this machine; `ring_mib` where somebody says so.
    pub fn here(ring_mib: Option<u32>) -> Self {
        let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let room = Self::of(memory_bytes(&text), processors as u64);
        let ring = ring_mib.map_or(room.ring, |mib| (mib << 20).next_power_of_two());
        Room { ring, ..room }
    }

    /// 16 MiB of ring for each processor that may fill it, and no more than 1/128 of the memory;
    /// behind it 1/16 of the memory, which is some two seconds of 300,000 bios a second on a
    /// machine with 4 GB.
    fn of(memory_bytes: u64, processors: u64) -> Self {
        let most = (memory_bytes / 128).clamp(4 * MIB, 256 * MIB);
        let ring = (processors * 16 * MIB).next_power_of_two().min(most);
        let ring = 1 << ring.ilog2();
        let backlog = (memory_bytes / 16).clamp(16 * MIB, 1024 * MIB) as usize;
        Room { ring, backlog }
    }
}

/// "MemTotal:       24683756 kB" (proc(5)); a machine that does not tell is taken for a small one.
fn memory_bytes(text: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kib.unwrap_or(1 << 20) << 10
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ring_grows_with_the_machine_and_leaves_it_its_memory() {
        let mib = |memory: u64, processors| {
            let Room { ring, backlog } = Room::of(memory * MIB, processors);
            assert!(ring.is_power_of_two());
            (u64::from(ring) / MIB, backlog as u64 / MIB)
        };
        assert_eq!(mib(256, 1), (4, 16));
        assert_eq!(mib(4 << 10, 2), (32, 256));
        assert_eq!(mib(24 << 10, 2), (32, 1024));
        assert_eq!(mib(24 << 10, 6), (128, 1024));
        assert_eq!(mib(512 << 10, 128), (256, 1024));
    }

    #[test]
    fn meminfo_is_read_by_name() {
        let text = "MemFree:  12 kB\nMemTotal:       24683756 kB\nMemAvailable: 1 kB\n";
        assert_eq!(memory_bytes(text), 24_683_756 << 10);
        assert_eq!(memory_bytes("nothing of the kind"), 1 << 30);
    }
}
