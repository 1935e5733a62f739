//! Rows of what raw NAND did.

use crate::raw_nand::follower::TracedOperation;
use crate::tables::rows::FlashOperation;

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
