//! What the machine counts itself: reads the device's statistics, /proc/stat and getrusage(2);
//! produces readings, whose differences become the counters table.

use std::collections::BTreeMap;
use std::io;

/// Counter values at one moment, by (source, name).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reading(BTreeMap<(&'static str, String), i64>);

/// Clock ticks of /proc/stat are 1/100 s on x86_64 (proc(5), USER_HZ).
const TICK_NS: i64 = 10_000_000;

impl Reading {
    /// A reading of given values.
    #[cfg(test)]
    pub fn of<'a>(values: impl IntoIterator<Item = (&'static str, &'a str, i64)>) -> Self {
        Self(values.into_iter().map(|(source, name, v)| ((source, name.into()), v)).collect())
    }

    /// Reads the process and the kernel, and takes the devices' statistics, by source, as given.
    ///
    /// # Errors
    /// If /proc is not mounted.
    pub fn take(devices: &[(&'static str, BTreeMap<String, i64>)]) -> io::Result<Self> {
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
        let before = Reading::of([("device", "write_bytes", 10)]);
        let after = Reading::of([("device", "write_bytes", 4106)]);
        assert_eq!(after.since(&before), [("device", "write_bytes".to_string(), 4096)]);
    }
}
