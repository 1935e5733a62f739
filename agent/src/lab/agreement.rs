//! Compares two independent counts of the same requests: the tracer's, and the device's or its
//! block layer's. A difference means that one of them is wrong, and makes the capture
//! incomplete.

use std::collections::BTreeMap;

use crate::device::disk::{Disk, Witness};
use crate::tables::rows::{Counter, Request};

/// Operations that are compared together, device counter of their requests, and of their bytes.
type Comparison = (&'static [&'static str], &'static str, &'static str);

/// Says what the modelled device counts.
const MODEL: [Comparison; 5] = [
    (&["read"], "read_requests", "read_bytes"),
    (&["write"], "write_requests", "write_bytes"),
    (&["flush"], "flush_requests", ""),
    (&["discard"], "discard_requests", "discard_bytes"),
    (&["zeroes"], "zeroes_requests", "zeroes_bytes"),
];

/// Says what modelled raw NAND counts.
const RAW_NAND: [Comparison; 3] = [
    (&["read"], "read_requests", "read_bytes"),
    (&["write"], "write_requests", "write_bytes"),
    (&["erase"], "erase_requests", ""),
];

/// Says what the block layer counts as the tracer does: zeroes are writes to it, and so are flushes
/// without data (block/blk-flush.c), which leaves the number of writes out.
const BLOCK_LAYER: [Comparison; 4] = [
    (&["read"], "read_requests", "read_bytes"),
    (&["write", "zeroes"], "", "write_bytes"),
    (&["flush"], "flush_requests", ""),
    (&["discard"], "discard_requests", "discard_bytes"),
];

/// Says, in words, wherever trace and devices differ over the whole traced part. `disks` are the
/// disks, and the source of the counters of each.
pub fn differences(
    requests: &[Request],
    counters: &[Counter],
    disks: &[(&Disk, &str)],
) -> Vec<String> {
    let of_disk = |&(disk, source): &(&Disk, &str)| {
        let comparisons = match disk.witness() {
            Witness::Model => MODEL.as_slice(),
            Witness::RawNand => RAW_NAND.as_slice(),
            Witness::BlockLayer(_) => BLOCK_LAYER.as_slice(),
        };
        disk_differences(requests, counters, (disk.name(), source), comparisons)
    };
    disks.iter().flat_map(of_disk).collect()
}

fn disk_differences(
    requests: &[Request],
    counters: &[Counter],
    (disk, source): (&str, &str),
    comparisons: &[Comparison],
) -> Vec<String> {
    let mut traced: BTreeMap<&str, (i64, i64)> = BTreeMap::new();
    for request in requests.iter().filter(|request| request.device == disk) {
        let (count, bytes) = traced.entry(&request.operation).or_default();
        *count += 1;
        *bytes += request.length_bytes;
    }
    let counted = |name: &str| {
        let of_device = |c: &&Counter| c.phase == "all" && c.source == source && c.name == name;
        counters.iter().find(of_device).map_or(0, |counter| counter.value)
    };
    let mut differences = Vec::new();
    for (operations, requests_counter, bytes_counter) in comparisons {
        let (mut count, mut bytes) = (0, 0);
        for operation in *operations {
            let (more, longer) = traced.remove(operation).unwrap_or_default();
            (count, bytes) = (count + more, bytes + longer);
        }
        let operation = operations.join(" and ");
        let mut compare = |what: &str, traced: i64, counter: &str| {
            let counted = counted(counter);
            if !counter.is_empty() && traced != counted {
                differences.push(format!(
                    "{disk}: {what} of {operation}: {traced} traced, {counted} counted by it"
                ));
            }
        };
        compare("requests", count, requests_counter);
        compare("bytes", bytes, bytes_counter);
    }
    for (operation, (count, _)) in traced {
        differences
            .push(format!("{disk}: {count} requests of operation {operation}, unknown to it"));
    }
    differences
}

#[cfg(test)]
mod tests {
    use super::*;

    const DISK: (&str, &str) = ("flash0", "device");

    fn counter(name: &str, value: i64) -> Counter {
        Counter { phase: "all".into(), source: "device".into(), name: name.into(), value }
    }

    fn request(operation: &str, length_bytes: i64) -> Request {
        let (device, operation) = ("flash0".into(), operation.to_owned().into());
        Request { device, operation, length_bytes, ..Request::default() }
    }

    #[test]
    fn agreeing_witnesses_have_no_differences() {
        let requests = [request("write", 4096), request("write", 8192), request("flush", 0)];
        let counters = [
            counter("write_requests", 2),
            counter("write_bytes", 12288),
            counter("flush_requests", 1),
        ];
        assert_eq!(disk_differences(&requests, &counters, DISK, &MODEL), Vec::<String>::new());
    }

    #[test]
    fn a_missing_request_and_a_strange_operation_are_told() {
        let counters = [counter("write_requests", 2), counter("write_bytes", 8192)];
        let requests = [request("write", 4096), request("other", 0)];
        let found = disk_differences(&requests, &counters, DISK, &MODEL);
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].contains("1 traced, 2 counted"), "{found:?}");
    }

    #[test]
    fn raw_nand_counts_programs_erases_and_reads() {
        let mut counters = vec![
            counter("read_requests", 1),
            counter("read_bytes", 512),
            counter("write_requests", 2),
            counter("write_bytes", 4096),
            counter("erase_requests", 1),
        ];
        let programs = [request("write", 2048), request("write", 2048)];
        let requests = [&programs[..], &[request("read", 512), request("erase", 0)]].concat();
        let found = disk_differences(&requests, &counters, DISK, &RAW_NAND);
        assert_eq!(found, Vec::<String>::new());
        counters[4].value = 2;
        let found = disk_differences(&requests, &counters, DISK, &RAW_NAND);
        assert_eq!(found, ["flash0: requests of erase: 1 traced, 2 counted by it"]);
    }

    #[test]
    fn each_disk_is_held_against_its_own_counters() {
        let counters = [counter("write_requests", 1), counter("write_bytes", 4096)];
        let requests = [request("write", 4096)];
        assert_eq!(disk_differences(&requests, &counters, DISK, &MODEL), Vec::<String>::new());
        let on_journal = [Request { device: "flash1".into(), ..request("write", 4096) }];
        assert_eq!(disk_differences(&on_journal, &counters, DISK, &MODEL).len(), 2);
        let journal = ("flash1", "journal-device");
        let found = disk_differences(&on_journal, &counters, journal, &MODEL);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[1].starts_with("flash1: bytes of write: 4096 traced, 0"), "{found:?}");
    }

    #[test]
    fn to_the_block_layer_zeroes_are_writes_and_a_flush_is_one_more() {
        let requests = [request("write", 4096), request("zeroes", 8192), request("flush", 0)];
        let mut counters = vec![
            counter("write_requests", 3),
            counter("write_bytes", 12288),
            counter("flush_requests", 1),
        ];
        let found = disk_differences(&requests, &counters, DISK, &BLOCK_LAYER);
        assert_eq!(found, Vec::<String>::new());
        counters[1].value = 4096;
        let found = disk_differences(&requests, &counters, DISK, &BLOCK_LAYER);
        assert_eq!(found, ["flash0: bytes of write and zeroes: 12288 traced, 4096 counted by it"]);
    }
}
