//! The contents of one block from one erase to the next: takes what is programmed into it in the
//! order of time, and says to whom the bytes belong.

use std::collections::HashSet;

use super::nodes::ALIGNMENT_BYTES;
use super::nodes::Areas;
use super::nodes::PADDING_BYTE;
use super::nodes::TELLING_BYTES;
use crate::raw_nand::nodes;
use crate::raw_nand::nodes::InodeNames;
use crate::raw_nand::nodes::NodeSubject;
use crate::raw_nand::nodes::{LAYOUT_VOLUME, UbiHeader};

/// Bytes of a block that are one thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    pub offset_bytes: u32,
    pub length_bytes: u32,
    pub what: NodeSubject,
    /// A copy of a node that was programmed before, elsewhere.
    pub is_copy: bool,
}

/// Holds what is known of all blocks of a filesystem.
#[derive(Debug, Default)]
pub struct KnownNodes {
    pub areas: Option<Areas>,
    /// Sequence numbers of the nodes seen.
    pub sequences: HashSet<u64>,
    pub names: InodeNames,
}

/// The life of a block between two erases.
#[derive(Debug, Clone, Default)]
pub struct BlockLife {
    pub erases: Option<u64>,
    pub volume: Option<u32>,
    pub logical_block: Option<u32>,
    data_offset_bytes: u32,
    /// In order of place.
    extents: Vec<Extent>,
    /// Bytes that are there and not told yet: of a node whose head is not whole.
    pending: Vec<u8>,
    /// The offset at which those begin, or the next bytes are due.
    next_bytes: u32,
    /// Holds what is left of a node that goes on.
    left: Option<(NodeSubject, bool, usize)>,
}

impl BlockLife {
    /// Bytes were programmed.
    pub fn program(&mut self, offset_bytes: u32, data: &[u8], known: &mut KnownNodes) {
        match nodes::parse_header(data) {
            Some(UbiHeader::EraseCounter { erases, data_offset_bytes }) => {
                self.erases = Some(erases);
                self.data_offset_bytes = data_offset_bytes;
                self.tell(offset_bytes, data.len(), NodeSubject::EraseCounter, false);
                return;
            }
            Some(UbiHeader::Volume { volume, logical_block }) => {
                self.volume = Some(volume);
                self.logical_block = Some(logical_block);
                self.tell(offset_bytes, data.len(), NodeSubject::VolumeHeader, false);
                return;
            }
            None => {}
        }
        if let Some(what) = self.whole(known) {
            self.tell(offset_bytes, data.len(), what, false);
            return;
        }
        if offset_bytes != self.next_bytes + self.pending.len() as u32 {
            self.give_up();
            self.next_bytes = offset_bytes;
        }
        self.pending.extend(data);
        self.tell_pending(known);
    }

    /// Return what all of its data are, where that goes by the block.
    fn whole(&self, known: &KnownNodes) -> Option<NodeSubject> {
        let logical_block = self.logical_block?;
        if self.volume == Some(LAYOUT_VOLUME) {
            return Some(NodeSubject::VolumeTable);
        }
        let areas = known.areas.as_ref()?;
        areas.properties.contains(&logical_block).then_some(NodeSubject::Properties)
    }

    fn tell_pending(&mut self, known: &mut KnownNodes) {
        loop {
            if let Some((what, is_copy, left)) = self.left.take() {
                let used_bytes = left.min(self.pending.len());
                self.advance(used_bytes, what, is_copy);
                if used_bytes < left {
                    self.left = Some((what, is_copy, left - used_bytes));
                    return;
                }
                continue;
            }
            match self.pending.first() {
                None => return,
                // What UBIFS leaves of a page is 0xff, and so is what UBI need not program.
                Some(&(PADDING_BYTE | 0xff)) => {
                    self.left = Some((NodeSubject::Padding, false, ALIGNMENT_BYTES));
                    continue;
                }
                Some(_) if self.pending.len() < TELLING_BYTES => {
                    // The rest of the head comes with the next page, but of a short last node.
                    let Some(node) = nodes::parse_node(&self.pending) else { return };
                    if node.length_bytes > self.pending.len()
                        || node.what == NodeSubject::Superblock
                    {
                        return;
                    }
                }
                Some(_) => {}
            }
            let Some(node) = nodes::parse_node(&self.pending) else {
                self.give_up();
                return;
            };
            if self.pending.len() < nodes::named_bytes(&self.pending) {
                return; // the rest of the name comes with the next page
            }
            if node.what == NodeSubject::Superblock {
                known.areas = nodes::areas(&self.pending);
            }
            // Padding has no number.
            let is_copy = node.sequence > 0 && !known.sequences.insert(node.sequence);
            if let Some(entry) = nodes::entry(&self.pending).filter(|_| !is_copy) {
                known.names.see(entry);
            }
            self.left = Some((node.what, is_copy, node.length_bytes));
        }
    }

    fn advance(&mut self, length_bytes: usize, what: NodeSubject, is_copy: bool) {
        self.tell(self.next_bytes, length_bytes, what, is_copy);
        self.pending.drain(..length_bytes);
        self.next_bytes += length_bytes as u32;
    }

    /// Give up what is pending: it cannot be told.
    fn give_up(&mut self) {
        self.left = None;
        self.advance(self.pending.len(), NodeSubject::Unknown, false);
    }

    fn tell(&mut self, offset_bytes: u32, length: usize, what: NodeSubject, is_copy: bool) {
        if length > 0 {
            let length_bytes = length as u32;
            self.extents.push(Extent { offset_bytes, length_bytes, what, is_copy });
        }
    }

    /// Return the extents in a range, which add up to it. What was not programmed is erased; a head
    /// that was never completed is unknown.
    pub fn extents(&self, offset_bytes: u32, length_bytes: u32, known: &KnownNodes) -> Vec<Extent> {
        let (mut parts, mut at, end) = (Vec::new(), offset_bytes, offset_bytes + length_bytes);
        let pending_end = self.next_bytes + self.pending.len() as u32;
        let last = Extent {
            offset_bytes: self.next_bytes,
            length_bytes: self.pending.len() as u32,
            what: NodeSubject::Unknown,
            is_copy: false,
        };
        let pending = (pending_end > self.next_bytes).then_some(last);
        let mut extents: Vec<&Extent> = self.extents.iter().chain(pending.as_ref()).collect();
        extents.sort_by_key(|extent| extent.offset_bytes);
        let first = extents.partition_point(|it| it.offset_bytes + it.length_bytes <= at);
        let whole = self.whole(known);
        let mut push = |begin: u32, end: u32, extent: Option<&Extent>| {
            if begin < end {
                // The properties are made before the superblock that says where they are.
                let what = match extent.map_or(NodeSubject::Erased, |it| it.what) {
                    NodeSubject::Unknown => whole.unwrap_or(NodeSubject::Unknown),
                    what => what,
                };
                let is_copy = extent.is_some_and(|it| it.is_copy);
                let length_bytes = end - begin;
                parts.push(Extent { offset_bytes: begin, length_bytes, what, is_copy });
            }
        };
        for extent in &extents[first..] {
            if extent.offset_bytes >= end || at >= end {
                break;
            }
            push(at, extent.offset_bytes, None);
            at = at.max(extent.offset_bytes);
            let until = end.min(extent.offset_bytes + extent.length_bytes);
            push(at, until, Some(extent));
            at = at.max(until);
        }
        push(at, end, None);
        parts
    }
}
