//! Watches raw NAND through a case: follows what is programmed from the beginning, so that what is
//! read and moved later is known; tells the operations of the traced part.

use anyhow::Context;

use crate::device::disk::Disk;
use crate::raw_nand::follower::{Follower, TracedOperation};
use crate::raw_nand::operation;
use crate::tables::rows::FlashOperation;

/// Raw NAND, and what was programmed into it before.
pub struct NandWatch<'a> {
    nand: Option<&'a Disk>,
    follower: Follower,
}

impl<'a> NandWatch<'a> {
    /// Begins at a moment when the device has nothing to do; does nothing where there is none.
    ///
    /// # Errors
    /// If its record cannot be read.
    pub fn start(nand: Option<&'a Disk>) -> anyhow::Result<Self> {
        let mut watch = Self { nand, follower: Follower::default() };
        if let Some(nand) = nand {
            watch.follower.remember(operation::take(nand.node()).context("the record of NAND")?);
        }
        Ok(watch)
    }

    /// The operations since; None where there is no raw NAND.
    ///
    /// # Errors
    /// If the record cannot be read.
    pub fn finish(mut self) -> anyhow::Result<Option<Vec<TracedOperation>>> {
        let Some(nand) = self.nand else { return Ok(None) };
        self.follower.trace(operation::take(nand.node()).context("the record of NAND")?);
        Ok(Some(self.follower.tell()))
    }
}

/// Rows of operations: their requests have the same order, and there are no others.
pub fn rows(operations: &[TracedOperation]) -> Vec<FlashOperation> {
    let row = |(request_id, traced): (usize, &TracedOperation)| {
        let operation = &traced.operation;
        FlashOperation {
            request_id: request_id as i64,
            kind: operation.kind.word().into(),
            block: operation.block.into(),
            offset_bytes: operation.offset_bytes.into(),
            length_bytes: operation.length_bytes.into(),
            volume_id: traced.volume.map(i64::from),
            logical_block: traced.logical_block.map(i64::from),
            erase_count: traced.erases.map(|count| count as i64),
            cause: traced.cause.word().into(),
            flipped_bits: operation.flipped_bits.into(),
            outcome: operation.outcome_word().into(),
        }
    };
    operations.iter().enumerate().map(row).collect()
}
