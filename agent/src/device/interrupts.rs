//! The interrupts of one disk: finds the lines of its adapter by sysfs, and adds them up in
//! /proc/interrupts.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

/// Numbers of the interrupts of the device that a disk hangs on: the nearest one above it that has
/// some, by messages (msi_irqs) or by a line (irq); Documentation/ABI/testing/sysfs-bus-pci.
pub fn lines_of(folder: &Path) -> BTreeSet<u32> {
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

/// How often those came so far, on all CPUs.
///
/// # Errors
/// If /proc is not mounted.
pub fn count(lines: &BTreeSet<u32>) -> io::Result<i64> {
    Ok(sum(&fs::read_to_string("/proc/interrupts")?, lines))
}

/// A line is "NUMBER: COUNT... CHIP NAME", with a count for each CPU (proc(5)).
fn sum(text: &str, lines: &BTreeSet<u32>) -> i64 {
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
    fn the_lines_asked_for_are_added_up_over_all_cpus() {
        let text = "\
           CPU0       CPU1\n\
             4:          0         24   IO-APIC   4-edge      ttyS0\n\
            24:         14          1   PCI-MSI 16384-edge      nvme0q0\n\
            25:          0       3000   PCI-MSI 16385-edge      nvme0q1\n\
           LOC:        836        825   Local timer interrupts\n";
        assert_eq!(sum(text, &BTreeSet::from([24, 25])), 3015);
        assert_eq!(sum(text, &BTreeSet::from([5])), 0);
    }

    #[test]
    fn a_disk_of_memory_has_none() {
        assert_eq!(lines_of(Path::new("/sys/no/such/disk")), BTreeSet::new());
    }
}
