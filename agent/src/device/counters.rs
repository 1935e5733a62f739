//! The machine's own counts: reads the device's statistics, /proc/stat and getrusage(2); produces
//! readings, whose differences become the counters table.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::{fs, io};

/// Counter values at one moment, by (source, name).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reading(BTreeMap<(&'static str, String), i64>);

/// Clock ticks of /proc/stat are 1/100 s on x86_64 (proc(5), USER_HZ).
const TICK_NS: i64 = 10_000_000;

impl Reading {
    /// A reading of given values.
    #[cfg(test)]
    pub fn from_values<'a>(values: impl IntoIterator<Item = (&'static str, &'a str, i64)>) -> Self {
        Self(values.into_iter().map(|(source, name, v)| ((source, name.into()), v)).collect())
    }

    /// Reads the process and the kernel, and takes the devices' statistics, by source, as given.
    ///
    /// # Errors
    /// If /proc is not mounted.
    pub fn read(devices: &[(&'static str, BTreeMap<String, i64>)]) -> io::Result<Self> {
        let mut values = BTreeMap::new();
        for (source, statistics) in devices {
            for (name, value) in statistics {
                values.insert((*source, name.clone()), *value);
            }
        }
        for (name, value) in process_counters() {
            values.insert(("process", name.into()), value);
        }
        let stat = std::fs::read_to_string("/proc/stat")?;
        for (name, value) in kernel_counters(&stat) {
            values.insert(("kernel", name.into()), value);
        }
        Ok(Self(values))
    }

    /// Increase of every counter since an earlier reading, ordered by source and name. Levels
    /// such as in_flight and dirty_bytes may decrease: the value is then negative.
    pub fn since(&self, before: &Self) -> Vec<(&'static str, String, i64)> {
        self.0
            .iter()
            .map(|(key, value)| {
                (key.0, key.1.clone(), value - before.0.get(key).copied().unwrap_or(0))
            })
            .collect()
    }
}

/// The agent's own CPU time and context switches (getrusage(2), RUSAGE_SELF).
fn process_counters() -> [(&'static str, i64); 4] {
    // SAFETY: rusage is plain old data, for which all zeroes is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a live rusage; RUSAGE_SELF cannot fail with a valid pointer.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) };
    let time_ns = |time: libc::timeval| time.tv_sec * 1_000_000_000 + time.tv_usec * 1_000;
    [
        ("involuntary_switches", usage.ru_nivcsw),
        ("system_cpu_ns", time_ns(usage.ru_stime)),
        ("user_cpu_ns", time_ns(usage.ru_utime)),
        ("voluntary_switches", usage.ru_nvcsw),
    ]
}

/// Whole-machine counters of /proc/stat: CPU time by kind, interrupts, context switches.
fn kernel_counters(stat: &str) -> Vec<(&'static str, i64)> {
    let mut counters = Vec::new();
    for line in stat.lines() {
        let mut words = line.split_ascii_whitespace();
        let name = words.next().unwrap_or_default();
        let mut numbers = words.filter_map(|word| word.parse::<i64>().ok());
        match name {
            "cpu" => {
                let times: Vec<i64> = numbers.collect();
                let kinds = ["user_ns", "nice_ns", "system_ns", "idle_ns", "iowait_ns"];
                for (kind, ticks) in kinds.into_iter().zip(times) {
                    counters.push((kind, ticks * TICK_NS));
                }
            }
            "intr" => counters.extend(numbers.next().map(|total| ("interrupts", total))),
            "ctxt" => counters.extend(numbers.next().map(|total| ("context_switches", total))),
            _ => {}
        }
    }
    counters
}

// What the kernel counts of a disk under the names that the modelled device has: its requests,
// from stat in the disk's folder of /sys/block (Documentation/admin-guide/iostats.rst), and the
// interrupts of its adapter, from /proc/interrupts.
//
// `write_requests` are not the modelled device's: a flush without data is one to the block layer,
// which hands the device the flush alone.

/// Bytes of what the file calls a sector, whatever the disk's own are.
const SECTOR_BYTES: i64 = 512;

/// Name, place in the line, and unit of each counter.
const COUNTERS: [(&str, usize, i64); 9] = [
    ("read_requests", 0, 1),
    ("read_bytes", 2, SECTOR_BYTES),
    ("write_requests", 4, 1),
    ("write_bytes", 6, SECTOR_BYTES),
    ("in_flight", 8, 1),
    ("busy_ns", 9, 1_000_000),
    ("discard_requests", 11, 1),
    ("discard_bytes", 13, SECTOR_BYTES),
    ("flush_requests", 15, 1),
];

/// The counters of the disk with this folder, of everybody's requests.
///
/// # Errors
/// If the disk is gone.
pub fn read_iostats(folder: &Path) -> io::Result<BTreeMap<String, i64>> {
    Ok(parse(&std::fs::read_to_string(folder.join("stat"))?))
}

/// The disk has no request under way, as far as its block layer counts any.
pub fn is_at_rest(folder: &Path) -> bool {
    is_on(folder, "iostats") && read_iostats(folder).is_ok_and(|it| it.get("in_flight") == Some(&0))
}

/// Return how many requests the disk has, flushes aside; of a driver that takes bios, how many bios
/// (Documentation/ABI/stable/sysfs-block, inflight). 0 where it is not counted.
pub fn in_flight(folder: &Path) -> usize {
    let text = fs::read_to_string(folder.join("inflight")).unwrap_or_default();
    text.split_whitespace().filter_map(|word| word.parse::<usize>().ok()).sum()
}

/// The block layer counts every request of the disk, and nothing else: not what drivers are asked
/// past it (Documentation/ABI/stable/sysfs-block, iostats and iostats_passthrough).
pub fn counts_all(folder: &Path) -> bool {
    is_on(folder, "iostats") && !is_on(folder, "iostats_passthrough")
}

fn is_on(folder: &Path, setting: &str) -> bool {
    let text = std::fs::read_to_string(folder.join("queue").join(setting));
    text.is_ok_and(|text| text.trim() != "0")
}

fn parse(stat: &str) -> BTreeMap<String, i64> {
    let fields: Vec<i64> = stat.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    COUNTERS
        .into_iter()
        .filter_map(|(name, place, unit)| Some((name.to_owned(), fields.get(place)? * unit)))
        .collect()
}

/// Numbers of the interrupts of the device that a disk hangs on: the nearest one above it that has
/// some, by messages (msi_irqs) or by a line (irq); Documentation/ABI/testing/sysfs-bus-pci.
pub fn interrupt_lines(folder: &Path) -> BTreeSet<u32> {
    let Ok(place) = fs::canonicalize(folder) else { return BTreeSet::new() };
    for device in place.ancestors().skip(1) {
        let messages = fs::read_dir(device.join("msi_irqs")).into_iter().flatten().flatten();
        let messages: BTreeSet<u32> =
            messages.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
        if !messages.is_empty() {
            return messages;
        }
        let line = fs::read_to_string(device.join("irq")).ok();
        if let Some(line) = line.and_then(|text| text.trim().parse().ok()).filter(|&line| line > 0)
        {
            return BTreeSet::from([line]);
        }
    }
    BTreeSet::new()
}

/// Return how often those came so far, on all CPUs.
///
/// # Errors
/// If /proc is not mounted.
pub fn count_interrupts(lines: &BTreeSet<u32>) -> io::Result<i64> {
    Ok(sum_interrupts(&fs::read_to_string("/proc/interrupts")?, lines))
}

/// A line is "NUMBER: COUNT... CHIP NAME", with a count for each CPU (proc(5)).
fn sum_interrupts(text: &str, lines: &BTreeSet<u32>) -> i64 {
    let of_line = |line: &str| {
        let (number, counts) = line.split_once(':')?;
        let number: u32 = number.trim().parse().ok()?;
        let counts = counts.split_whitespace().map_while(|word| word.parse::<i64>().ok());
        lines.contains(&number).then(|| counts.sum::<i64>())
    };
    text.lines().filter_map(of_line).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proc_stat_is_read_by_name() {
        let stat = "cpu  12 0 30 400 5 0 0 0 0 0\ncpu0 12 0 30 400 5\nintr 77 1 2\nctxt 91\n";
        let counters = kernel_counters(stat);
        assert!(counters.contains(&("user_ns", 120_000_000)));
        assert!(counters.contains(&("iowait_ns", 50_000_000)));
        assert!(counters.contains(&("interrupts", 77)));
        assert!(counters.contains(&("context_switches", 91)));
        assert_eq!(counters.len(), 7);
    }

    #[test]
    fn a_reading_tells_its_increase() {
        let before = Reading::from_values([("device", "write_bytes", 10)]);
        let after = Reading::from_values([("device", "write_bytes", 4106)]);
        assert_eq!(after.since(&before), [("device", "write_bytes".to_string(), 4096)]);
    }

    #[test]
    fn a_disk_that_counts_nothing_is_not_taken_for_one_at_rest() {
        let folder = tempfile::tempdir().unwrap();
        let is_at_rest = |counts: &str, in_flight: u32| {
            std::fs::create_dir_all(folder.path().join("queue")).unwrap();
            std::fs::write(folder.path().join("queue/iostats"), counts).unwrap();
            let stat = format!("10 1 80 5 20 2 160 6 {in_flight} 7 11");
            std::fs::write(folder.path().join("stat"), stat).unwrap();
            super::is_at_rest(folder.path())
        };
        assert!(is_at_rest("1\n", 0));
        assert!(!is_at_rest("1\n", 3));
        assert!(!is_at_rest("0\n", 0));
        assert!(!super::is_at_rest(Path::new("/sys/no/such/disk")));
    }

    #[test]
    fn reads_and_writes_in_flight_are_added_up() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(in_flight(folder.path()), 0);
        std::fs::write(folder.path().join("inflight"), "       2        9\n").unwrap();
        assert_eq!(in_flight(folder.path()), 11);
    }

    #[test]
    fn counting_follows_the_settings_of_the_queue() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("queue")).unwrap();
        let set = |name: &str, text| std::fs::write(folder.path().join("queue").join(name), text);
        assert!(!counts_all(folder.path()));
        set("iostats", "1\n").unwrap();
        assert!(counts_all(folder.path()));
        set("iostats_passthrough", "0\n").unwrap();
        assert!(counts_all(folder.path()));
        set("iostats_passthrough", "1\n").unwrap();
        assert!(!counts_all(folder.path()));
    }

    #[test]
    fn the_counters_of_a_disk_have_the_names_of_the_lab() {
        let stat = "  10  1  80  5  20  2  160  6  3  7  11  3  0  24  1  4  2\n";
        let found = parse(stat);
        assert_eq!(found["read_bytes"], 80 * 512);
        assert_eq!(found["write_requests"], 20);
        assert_eq!(found["write_bytes"], 160 * 512);
        assert_eq!(found["in_flight"], 3);
        assert_eq!(found["discard_bytes"], 24 * 512);
        assert_eq!(found["flush_requests"], 4);
        // Kernels before 5.5 do not count flushes.
        assert!(!parse("1 2 3 4 5 6 7 8 9 10 11").contains_key("flush_requests"));
    }

    #[test]
    fn the_lines_asked_for_are_added_up_over_all_cpus() {
        let text = "\
       CPU0       CPU1\n\
         4:          0         24   IO-APIC   4-edge      ttyS0\n\
        24:         14          1   PCI-MSI 16384-edge      nvme0q0\n\
        25:          0       3000   PCI-MSI 16385-edge      nvme0q1\n\
       LOC:        836        825   Local timer interrupts\n";
        assert_eq!(sum_interrupts(text, &BTreeSet::from([24, 25])), 3015);
        assert_eq!(sum_interrupts(text, &BTreeSet::from([5])), 0);
    }

    #[test]
    fn a_disk_of_memory_has_none() {
        assert_eq!(interrupt_lines(Path::new("/sys/no/such/disk")), BTreeSet::new());
    }
}
