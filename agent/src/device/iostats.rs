//! What the kernel's block layer counts of a disk: reads stat in the disk's folder of /sys/block
//! (Documentation/admin-guide/iostats.rst); gives the counters under the names that the modelled
//! device has for them.
//!
//! `write_requests` are not the modelled device's: a flush without data is one to the block layer,
//! which hands the device the flush alone.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

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
pub fn read(folder: &Path) -> io::Result<BTreeMap<String, i64>> {
    Ok(parse(&std::fs::read_to_string(folder.join("stat"))?))
}

/// The disk has no request under way, as far as its block layer counts any.
pub fn is_at_rest(folder: &Path) -> bool {
    is_on(folder, "iostats") && read(folder).is_ok_and(|it| it.get("in_flight") == Some(&0))
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

#[cfg(test)]
mod tests {
    use super::*;

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
    fn what_is_counted_follows_the_settings_of_the_queue() {
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
}
