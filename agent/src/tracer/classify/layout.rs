//! Areas of a device in which a filesystem keeps its own tables: the one that contains a byte.

use std::collections::BTreeMap;

/// The byte at which ext4 and F2FS have their superblocks.
pub const SUPERBLOCK_OFFSET: u64 = 1024;

/// The name of the areas that have inodes of ext4.
pub const INODE_TABLE: &str = "inode-table";

/// Areas of one device: where each begins, and the end and name of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Layout {
    areas: BTreeMap<u64, (u64, &'static str)>,
    /// The first inode of each of ext4's inode tables, by where it begins.
    pub(super) first_inodes: BTreeMap<u64, u64>,
    pub(super) inode_bytes: u64,
}

/// The inodes of a stretch of the device: the first one's number, and bytes of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inodes {
    pub first: u64,
    pub bytes_each: u64,
}

impl Layout {
    /// The area that a byte of the device is in; empty where it is in none.
    pub fn subtype(&self, position: u64) -> &'static str {
        match self.areas.range(..=position).next_back() {
            Some((_, &(end, name))) if position < end => name,
            _ => "",
        }
    }

    /// The inodes from a byte on; None where it is in no inode table of ext4.
    pub fn inodes(&self, position: u64) -> Option<Inodes> {
        let (begin, first) = self.first_inodes.range(..=position).next_back()?;
        let is_inside = self.subtype(position) == INODE_TABLE;
        let first = first + (position - begin) / self.inode_bytes;
        is_inside.then_some(Inodes { first, bytes_each: self.inode_bytes })
    }

    /// A layout of areas (begin, bytes, name).
    #[cfg(test)]
    pub fn with_areas(areas: &[(u64, u64, &'static str)]) -> Self {
        let mut layout = Self::default();
        areas.iter().for_each(|&(begin, bytes, name)| layout.add(begin, bytes, name));
        layout
    }

    /// Adds an area.
    pub(super) fn add(&mut self, begin: u64, bytes: u64, name: &'static str) {
        if bytes > 0 {
            self.areas.insert(begin, (begin.saturating_add(bytes), name));
        }
    }
}

/// Return the little-endian u16 at an offset.
pub(super) fn u16_at(bytes: &[u8], offset: usize) -> u16 {
    u16::from_le_bytes([bytes[offset], bytes[offset + 1]])
}

/// Return the little-endian u32 at an offset.
pub(super) fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    u32::from(u16_at(bytes, offset)) | u32::from(u16_at(bytes, offset + 2)) << 16
}
