//! A request that the driver has: what is needed to tell its completion, and its being put back.

use super::completions::Direction;
use crate::tracer::records::RequestRecord;
use crate::tracer::records::kernel::{OPERATION_FLUSH, OPERATION_MASK};

/// One of them, by its address in the caller's keeping.
pub struct OpenRequest {
    /// Its number as a draft.
    pub request_id: i64,
    pub device: u32,
    pub direction: Option<Direction>,
    pub left_bytes: u64,
    sector: u64,
    length_bytes: u32,
    origin: u64,
}

impl OpenRequest {
    /// The driver got it now.
    pub fn new(request_id: i64, request: &RequestRecord) -> Self {
        let RequestRecord { device, sector, length_bytes, origin, flags, .. } = *request;
        let left_bytes = match flags & OPERATION_MASK {
            OPERATION_FLUSH => 0,
            _ => u64::from(length_bytes),
        };
        let direction = Direction::of(flags);
        OpenRequest { request_id, device, direction, left_bytes, sector, length_bytes, origin }
    }

    /// The driver got the same request again: it was busy before, and had put it back.
    pub fn is(&self, request: &RequestRecord) -> bool {
        self.sector == request.sector
            && self.length_bytes == request.length_bytes
            && self.origin == request.origin
    }
}

/// A request that the driver has had for long: its address, and its number as a draft.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overdue {
    pub address: u64,
    pub(super) request_id: i64,
}
