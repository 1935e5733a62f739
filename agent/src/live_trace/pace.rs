//! The pace of a live trace: how long it pauses between looks at the ring, when it writes, whether
//! it goes before other work of the machine, and how much memory it takes.

use std::fs;
use std::time::{Duration, Instant};

/// Rows are written when this many requests wait, or after this time.
pub const ROUND_REQUESTS: usize = 16_384;
const ROUND: Duration = Duration::from_secs(10);

/// The time that records may wait to be read: longer when none come. When many wait, they are read
/// at once.
const USUAL: Duration = Duration::from_millis(20);
const LONG: Duration = Duration::from_millis(100);
const MUCH_BYTES: usize = 8 << 20;

/// Nice value of the thread that makes rows when it is late: ahead of tasks that compute.
const PRIORITY: i32 = -15;

/// The pace of one trace.
pub struct Pace {
    /// As much may wait for this thread without being lost.
    backlog_limit: usize,
    hurries: bool,
    pause: Duration,
    round_begin: Instant,
}

impl Pace {
    /// Begins now.
    pub fn new(backlog_limit: usize) -> Self {
        Pace { backlog_limit, hurries: false, pause: USUAL, round_begin: Instant::now() }
    }

    /// Until the next look.
    pub fn pause(&self) -> Duration {
        self.pause
    }

    /// The machine's own work goes first, until so much waits for us that it may be lost.
    pub fn hurry(&mut self, backlog: usize) {
        let limit = self.backlog_limit / if self.hurries { 16 } else { 4 };
        if self.hurries != (backlog > limit) {
            self.hurries = !self.hurries;
            // Of this thread (setpriority(2), NOTES); it goes on as it is if it may not.
            let priority = if self.hurries { PRIORITY } else { 0 };
            let _ = rustix::process::setpriority_process(None, priority);
        }
    }

    /// So many bytes waited before this look, and wait after it.
    pub fn note_look(&mut self, before: usize, after: usize) {
        self.pause = match after {
            MUCH_BYTES.. => Duration::ZERO,
            _ if before > 0 => USUAL,
            _ => LONG.min(self.pause.max(USUAL) * 2),
        };
    }

    /// So many bytes are too many to wait with the end for.
    pub fn is_much(bytes: usize) -> bool {
        bytes > MUCH_BYTES
    }

    /// So many requests that wait to be written are enough.
    pub fn is_enough(requests: usize) -> bool {
        requests >= ROUND_REQUESTS
    }

    /// The last round of rows was written long ago.
    pub fn is_round_due(&self) -> bool {
        self.round_begin.elapsed() >= ROUND
    }

    /// A round was written.
    pub fn begin_round(&mut self) {
        self.round_begin = Instant::now();
    }
}

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
        let room = Self::new(memory_bytes(&text), processors as u64);
        let ring = ring_mib.map_or(room.ring, |mib| (mib << 20).next_power_of_two());
        Room { ring, ..room }
    }

    /// 16 MiB of ring for each processor that may fill it, and no more than 1/128 of the memory;
    /// behind it 1/16 of the memory, which is some two seconds of 300,000 bios a second on a
    /// machine with 4 GB.
    fn new(memory_bytes: u64, processors: u64) -> Self {
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
    fn it_looks_at_once_while_much_waits_and_seldom_while_nothing_does() {
        let mut pace = Pace::new(1 << 30);
        let mut after = |before, after| {
            pace.note_look(before, after);
            pace.pause()
        };
        assert_eq!(after(9 << 20, MUCH_BYTES), Duration::ZERO);
        assert_eq!(after(100, 0), USUAL);
        assert_eq!([after(0, 0), after(0, 0), after(0, 0)], [USUAL * 2, USUAL * 4, LONG]);
    }

    #[test]
    fn the_ring_grows_with_the_machine_and_leaves_it_its_memory() {
        let mib = |memory: u64, processors| {
            let Room { ring, backlog } = Room::new(memory * MIB, processors);
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
