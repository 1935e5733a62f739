//! Two independent witnesses of the same requests: compares what the tracer saw with what the
//! device counted. A difference means that one of them is wrong, and the capture incomplete.

use std::collections::BTreeMap;

use crate::trace::rows::{Counter, Request};

/// Device counter of requests and of bytes, for each operation.
const COUNTERS: [(&str, &str, &str); 5] = [
    ("read", "read_requests", "read_bytes"),
    ("write", "write_requests", "write_bytes"),
    ("flush", "flush_requests", ""),
    ("discard", "discard_requests", "discard_bytes"),
    ("zeroes", "zeroes_requests", "zeroes_bytes"),
];

/// Says, in words, wherever trace and devices differ over the whole traced part. `disks` are the
/// disks by name, and the source of the counters of each.
pub fn differences(
    requests: &[Request],
    counters: &[Counter],
    disks: &[(&str, &str)],
) -> Vec<String> {
    let of_disk = |&(disk, source)| disk_differences(requests, counters, disk, source);
    disks.iter().flat_map(of_disk).collect()
}

fn disk_differences(
    requests: &[Request],
    counters: &[Counter],
    disk: &str,
    source: &str,
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
    for (operation, requests_counter, bytes_counter) in COUNTERS {
        let (count, bytes) = traced.remove(operation).unwrap_or_default();
        let mut compare = |what: &str, traced: i64, counter: &str| {
            let counted = counted(counter);
            if traced != counted {
                differences.push(format!(
                    "{disk}: {what} of {operation}: {traced} traced, {counted} counted by it"
                ));
            }
        };
        compare("requests", count, requests_counter);
        if !bytes_counter.is_empty() {
            compare("bytes", bytes, bytes_counter);
        }
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

    const DISKS: [(&str, &str); 1] = [("flash0", "device")];

    fn counter(name: &str, value: i64) -> Counter {
        Counter { phase: "all".into(), source: "device".into(), name: name.into(), value }
    }

    fn request(operation: &str, length_bytes: i64) -> Request {
        let (device, operation) = ("flash0".into(), operation.into());
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
        assert_eq!(differences(&requests, &counters, &DISKS), Vec::<String>::new());
    }

    #[test]
    fn a_missing_request_and_a_strange_operation_are_told() {
        let counters = [counter("write_requests", 2), counter("write_bytes", 8192)];
        let found = differences(&[request("write", 4096), request("other", 0)], &counters, &DISKS);
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].contains("1 traced, 2 counted"), "{found:?}");
    }

    #[test]
    fn each_disk_is_held_against_its_own_counters() {
        let disks = [("flash0", "device"), ("flash1", "journal-device")];
        let counters = [counter("write_requests", 1), counter("write_bytes", 4096)];
        let requests = [request("write", 4096)];
        assert_eq!(differences(&requests, &counters, &disks), Vec::<String>::new());
        let on_journal = Request { device: "flash1".into(), ..request("write", 4096) };
        let found = differences(&[on_journal], &counters, &disks);
        assert_eq!(found.len(), 4, "{found:?}");
        assert!(found[3].starts_with("flash1: bytes of write: 4096 traced, 0"), "{found:?}");
    }
}
