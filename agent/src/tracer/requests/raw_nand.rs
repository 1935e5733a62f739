//! Rows of what raw NAND does: an operation is a request that has no number, and is complete.

use std::rc::Rc;

use super::drafts::Draft;
use super::queued_bio::{ERASE, QueuedBio};
use super::{Joiner, RAW_NAND_DEVICE, TracedDisk};
use crate::raw_nand::operation::{Operation, OperationKind};
use crate::tracer::causes::Cause;
use crate::tracer::classify::{BlockType, Class};
use crate::tracer::files::file_kind;
use crate::tracer::records::{Bio, RequestRecord, Run};

impl Joiner {
    /// There is raw NAND of this name.
    pub fn add_raw_nand(&mut self, name: &str) {
        let disk = TracedDisk { name: name.to_owned(), takes_bios: true };
        self.disks.insert(RAW_NAND_DEVICE, disk);
    }

    /// Raw NAND did an operation, which is complete.
    pub fn operate(
        &mut self,
        operation: &Operation,
        bio: Bio,
        runs: Vec<(Run, Class)>,
        cause: Cause,
    ) {
        let queued = Rc::new(QueuedBio { bio, runs, cause });
        let request = RequestRecord { time_ns: operation.issue_ns, ..queued.as_request() };
        let bios = vec![queued];
        let mut row = self.new_row(&request, &bios);
        row.sector = Some(request.sector as i64);
        row.complete_ns = Some(operation.complete_ns as i64);
        if operation.kind == OperationKind::Erase {
            row.operation = ERASE.into();
            row.length_bytes = 0;
            row.block_type = BlockType::FsMetadata.as_str().into();
            row.block_subtype = ERASE.into();
            row.file_kind = file_kind::NONE.into();
        }
        let runs = bios[0].own_runs();
        self.count_unknown(&runs);
        let asker_file = bios[0].cause.asker.as_ref().and_then(|asker| asker.file);
        let reasons = bios[0].cause.reason.iter().cloned().collect();
        self.drafts.push_back(Draft { row, runs, asker_file, reasons, done: true });
    }
}
