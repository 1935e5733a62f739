//! Which reads and writes are sequential: those that begin where their device's last one ended.

use std::collections::BTreeMap;

use crate::tables::rows::Request;

const SECTOR_BYTES: i64 = 512;

/// Where the last read or write of each device ended, by the device's name; None where that is not
/// known.
#[derive(Default)]
pub struct Sequence {
    ends: BTreeMap<String, Option<i64>>,
}

impl Sequence {
    /// Fills `sequential`; requests come in the order of issue.
    pub fn mark(&mut self, request: &mut Request) {
        if !matches!(request.operation.as_ref(), "read" | "write") {
            return;
        }
        let sectors = (request.length_bytes + SECTOR_BYTES - 1) / SECTOR_BYTES;
        let end = request.sector.map(|sector| sector + sectors);
        if let Some(last) = self.ends.get_mut(&request.device) {
            request.sequential = last.is_some() && *last == request.sector;
            *last = end;
        } else {
            self.ends.insert(request.device.clone(), end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_device_has_its_own_last_end_and_a_flush_is_none() {
        let rows = [
            ("a", "write", Some(8), 4096, false),
            ("a", "flush", None, 0, false),
            ("b", "read", Some(16), 4096, false),
            ("a", "read", Some(16), 512, true),
            ("a", "discard", Some(17), 4096, false),
            ("a", "write", Some(17), 4096, true),
            ("b", "write", Some(25), 4096, false),
            ("a", "write", None, 4096, false),
            ("a", "write", None, 4096, false),
        ];
        let mut sequence = Sequence::default();
        for (device, operation, sector, length_bytes, sequential) in rows {
            let (device, operation) = (device.to_owned(), operation.into());
            let mut row = Request { device, operation, sector, length_bytes, ..Request::default() };
            sequence.mark(&mut row);
            assert_eq!(row.sequential, sequential, "{row:?}");
        }
    }
}
