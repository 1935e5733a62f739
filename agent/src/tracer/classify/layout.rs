//! Where a filesystem keeps its own tables on the device. Reads the superblock and, on ext4, the
//! group descriptors and the inode of the orphan file; returns the table that contains a given byte
//! of the device.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::FileExt;

use crate::tracer::records::kernel::{EXT4_MAGIC, F2FS_MAGIC};

const SUPERBLOCK_OFFSET: u64 = 1024;

/// COMPAT feature (fs/ext4/ext4.h); mke2fs makes it by default in Debian 13, and not in 12.
const ORPHAN_FILE: u32 = 0x1000;
/// INCOMPAT features (fs/ext4/ext4.h).
const JOURNAL_DEVICE: u32 = 0x8;
const META_BG: u32 = 0x10;
const SIXTY_FOUR_BIT: u32 = 0x80;

const INODE_TABLE: &str = "inode-table";

/// EXT4_EXT_MAGIC (fs/ext4/ext4_extents.h), and how many extents an inode itself has room for.
const EXTENT_MAGIC: u16 = 0xf30a;
const EXTENTS_IN_INODE: u16 = 4;

/// Areas of one device: where each begins, and the end and name of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Layout {
    areas: BTreeMap<u64, (u64, &'static str)>,
    /// The first inode of each of ext4's inode tables, by where it begins.
    first_inodes: BTreeMap<u64, u64>,
    inode_bytes: u64,
}

/// The inodes of a stretch of the device: the first one's number, and bytes of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inodes {
    pub first: u64,
    pub bytes_each: u64,
}

impl Layout {
    /// Reads the device's. A filesystem that is not known has no areas.
    ///
    /// # Errors
    /// If the device cannot be read, or is too small for what its superblock says.
    pub fn read(device: &impl FileExt) -> io::Result<Self> {
        let mut superblock = [0; 1024];
        device.read_exact_at(&mut superblock, SUPERBLOCK_OFFSET)?;
        if u32_at(&superblock, 0) == F2FS_MAGIC {
            return Ok(f2fs(&superblock));
        }
        if u32::from(u16_at(&superblock, 56)) == EXT4_MAGIC {
            return ext4(device, &superblock);
        }
        Ok(Self::default())
    }

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
    pub fn of_areas(areas: &[(u64, u64, &'static str)]) -> Self {
        let mut layout = Self::default();
        areas.iter().for_each(|&(begin, bytes, name)| layout.add(begin, bytes, name));
        layout
    }

    fn add(&mut self, begin: u64, bytes: u64, name: &'static str) {
        if bytes > 0 {
            self.areas.insert(begin, (begin.saturating_add(bytes), name));
        }
    }
}

/// struct f2fs_super_block (include/linux/f2fs_fs.h). Addresses are in blocks of the page's size.
fn f2fs(superblock: &[u8]) -> Layout {
    let block_bytes = 1u64 << u32_at(superblock, 16).min(16);
    let mut layout = Layout::default();
    let names = ["checkpoint", "sit", "nat", "ssa"];
    for (index, name) in names.into_iter().enumerate() {
        let begin = u64::from(u32_at(superblock, 76 + 4 * index));
        let end = u64::from(u32_at(superblock, 76 + 4 * (index + 1)));
        layout.add(begin * block_bytes, end.saturating_sub(begin) * block_bytes, name);
    }
    layout.add(0, 2 * block_bytes, "superblock");
    layout
}

/// struct ext4_super_block and ext4_group_desc (Documentation/filesystems/ext4/).
fn ext4(device: &impl FileExt, superblock: &[u8]) -> io::Result<Layout> {
    let block_bytes = 1024u64 << u32_at(superblock, 24).min(6);
    let first_block = u64::from(u32_at(superblock, 20));
    let blocks_per_group = u64::from(u32_at(superblock, 32)).max(1);
    let inodes_per_group = u64::from(u32_at(superblock, 40));
    let inode_bytes = u64::from(u16_at(superblock, 88)).max(128);
    let features = u32_at(superblock, 96);
    let wide = features & SIXTY_FOUR_BIT != 0;
    // s_blocks_count_hi, and s_blocks_count_lo.
    let high_blocks = if wide { u64::from(u32_at(superblock, 336)) } else { 0 };
    let blocks = high_blocks << 32 | u64::from(u32_at(superblock, 4));
    let descriptor_bytes = if wide { usize::from(u16_at(superblock, 254)).max(64) } else { 32 };

    let mut layout = Layout::default();
    layout.add(SUPERBLOCK_OFFSET / block_bytes * block_bytes, block_bytes, "superblock");
    if features & (META_BG | JOURNAL_DEVICE) != 0 {
        return Ok(layout);
    }
    let groups = blocks.saturating_sub(first_block).div_ceil(blocks_per_group);
    let table_begin = (first_block + 1) * block_bytes;
    let table_bytes = groups.saturating_mul(descriptor_bytes as u64);
    let table_bytes = table_bytes.checked_next_multiple_of(block_bytes).unwrap_or(u64::MAX);
    layout.add(table_begin, table_bytes, "group-descriptors");
    let mut descriptor = vec![0; descriptor_bytes];
    for group in 0..groups {
        device.read_exact_at(&mut descriptor, table_begin + group * descriptor_bytes as u64)?;
        let block = |low: usize| {
            let high = if wide { u32_at(&descriptor, low + 32) } else { 0 };
            (u64::from(high) << 32 | u64::from(u32_at(&descriptor, low))).wrapping_mul(block_bytes)
        };
        layout.add(block(0), block_bytes, "block-bitmap");
        layout.add(block(4), block_bytes, "inode-bitmap");
        let table_bytes = (inodes_per_group * inode_bytes).next_multiple_of(block_bytes);
        layout.add(block(8), table_bytes, INODE_TABLE);
        layout.first_inodes.insert(block(8), group * inodes_per_group + 1);
    }
    layout.inode_bytes = inode_bytes;
    if u32_at(superblock, 92) & ORPHAN_FILE != 0 {
        let inode = u64::from(u32_at(superblock, 640));
        for (begin, blocks) in extents(device, &layout, inode, inodes_per_group)? {
            layout.add(begin.wrapping_mul(block_bytes), blocks * block_bytes, "orphan-file");
        }
    }
    Ok(layout)
}

/// The extents of an inode, each as its first block and their number: struct ext4_extent_header and
/// ext4_extent. None where they are in a tree of blocks, which that of an orphan file never is: it
/// is made whole by mke2fs.
fn extents(
    device: &impl FileExt,
    layout: &Layout,
    inode: u64,
    inodes_per_group: u64,
) -> io::Result<Vec<(u64, u64)>> {
    let first = inode.saturating_sub(1) / inodes_per_group.max(1) * inodes_per_group + 1;
    let table = layout.first_inodes.iter().find(|&(_, &its_first)| its_first == first);
    let (Some((table, _)), true) = (table, inode >= first) else {
        return Ok(Vec::new());
    };
    let mut tree = [0; 12 + 12 * EXTENTS_IN_INODE as usize];
    let of_inode = (inode - first) * layout.inode_bytes;
    device.read_exact_at(&mut tree, table.saturating_add(of_inode).saturating_add(40))?;
    let (entries, depth) = (u16_at(&tree, 2).min(EXTENTS_IN_INODE), u16_at(&tree, 6));
    if u16_at(&tree, 0) != EXTENT_MAGIC || depth != 0 {
        return Ok(Vec::new());
    }
    let extent = |index: u16| {
        let at = 12 + 12 * usize::from(index);
        let begin = u64::from(u16_at(&tree, at + 6)) << 32 | u64::from(u32_at(&tree, at + 8));
        // A length above 32768 would say that nothing was written there yet.
        (begin, u64::from(u16_at(&tree, at + 4)).min(32768))
    };
    Ok((0..entries).map(extent).collect())
}

fn u16_at(bytes: &[u8], offset: usize) -> u16 {
    u16::from_le_bytes([bytes[offset], bytes[offset + 1]])
}

fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    u32::from(u16_at(bytes, offset)) | u32::from(u16_at(bytes, offset + 2)) << 16
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Image(Vec<u8>);

    impl FileExt for Image {
        fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
            let rest = self.0.get(offset as usize..).unwrap_or(&[]);
            let size = rest.len().min(buffer.len());
            buffer[..size].copy_from_slice(&rest[..size]);
            Ok(size)
        }

        fn write_at(&self, _: &[u8], _: u64) -> io::Result<usize> {
            Err(io::ErrorKind::ReadOnlyFilesystem.into())
        }
    }

    fn put(image: &mut [u8], offset: usize, value: u32) {
        image[offset..offset + 4].copy_from_slice(&value.to_le_bytes());
    }

    #[test]
    fn f2fs_areas_follow_each_other() {
        let mut image = vec![0; 4096];
        put(&mut image, 1024, F2FS_MAGIC);
        put(&mut image, 1024 + 16, 12);
        for (index, block) in [512, 1536, 2560, 3584, 4096].into_iter().enumerate() {
            put(&mut image, 1024 + 76 + 4 * index, block);
        }
        let layout = Layout::read(&Image(image)).unwrap();
        assert_eq!(layout.subtype(0), "superblock");
        assert_eq!(layout.subtype(511 * 4096), "");
        assert_eq!(layout.subtype(512 * 4096), "checkpoint");
        assert_eq!(layout.subtype(1536 * 4096), "sit");
        assert_eq!(layout.subtype(2560 * 4096), "nat");
        assert_eq!(layout.subtype(4096 * 4096 - 1), "ssa");
        assert_eq!(layout.subtype(4096 * 4096), "");
    }

    #[test]
    fn ext4_tables_come_from_the_group_descriptors() {
        let mut image = vec![0; 16384];
        put(&mut image, 1024 + 4, 100);
        put(&mut image, 1024 + 24, 2);
        put(&mut image, 1024 + 32, 32768);
        put(&mut image, 1024 + 40, 32);
        put(&mut image, 1024 + 56, EXT4_MAGIC);
        put(&mut image, 1024 + 88, 256);
        for (index, block) in [10, 11, 12].into_iter().enumerate() {
            put(&mut image, 4096 + 4 * index, block);
        }
        let layout = Layout::read(&Image(image)).unwrap();
        assert_eq!(layout.subtype(1024), "superblock");
        assert_eq!(layout.subtype(4096), "group-descriptors");
        assert_eq!(layout.subtype(10 * 4096 + 4095), "block-bitmap");
        assert_eq!(layout.subtype(11 * 4096), "inode-bitmap");
        assert_eq!(layout.subtype(13 * 4096), "inode-table");
        assert_eq!(layout.subtype(14 * 4096), "");
        // 32 inodes of 256 bytes: two blocks.
        assert_eq!(layout.inodes(12 * 4096), Some(Inodes { first: 1, bytes_each: 256 }));
        assert_eq!(layout.inodes(13 * 4096), Some(Inodes { first: 17, bytes_each: 256 }));
        assert_eq!((layout.inodes(11 * 4096), layout.inodes(14 * 4096)), (None, None));
    }

    #[test]
    fn ext4s_orphan_file_is_where_its_inode_says() {
        let mut image = vec![0; 65536];
        for (offset, value) in [(4, 100), (24, 2), (32, 32768), (40, 32), (88, 256)] {
            put(&mut image, 1024 + offset, value);
        }
        put(&mut image, 1024 + 56, EXT4_MAGIC);
        put(&mut image, 1024 + 640, 12);
        put(&mut image, 4096 + 8, 10);
        let inode = 10 * 4096 + 11 * 256 + 40;
        put(&mut image, inode, 2 << 16 | u32::from(EXTENT_MAGIC));
        for (index, (blocks, begin)) in [(2, 30), (1, 40)].into_iter().enumerate() {
            put(&mut image, inode + 12 + 12 * index + 4, blocks);
            put(&mut image, inode + 12 + 12 * index + 8, begin);
        }
        let names = |image: &[u8]| {
            let layout = Layout::read(&Image(image.to_vec())).unwrap();
            [29, 30, 31, 32, 40, 41].map(|block| layout.subtype(block * 4096))
        };
        assert_eq!(names(&image), [""; 6]);
        put(&mut image, 1024 + 92, ORPHAN_FILE);
        assert_eq!(names(&image), ["", "orphan-file", "orphan-file", "", "orphan-file", ""]);
        put(&mut image, inode + 4, 1 << 16);
        assert_eq!(names(&image), [""; 6]);
        for inode in [0, 33, u32::MAX] {
            put(&mut image, 1024 + 640, inode);
            assert_eq!(names(&image), [""; 6]);
        }
    }

    #[test]
    fn ext4_of_more_than_16_tib_has_as_many_groups_as_its_whole_count_says() {
        let mut image = vec![0; 16384];
        // A block more than 2^32, and groups so large that there are two.
        for (offset, value) in [(4, 1), (24, 2), (32, 1 << 31), (40, 32), (88, 256), (336, 1)] {
            put(&mut image, 1024 + offset, value);
        }
        put(&mut image, 1024 + 56, EXT4_MAGIC);
        put(&mut image, 1024 + 96, SIXTY_FOUR_BIT);
        for (group, block) in [(0, 10), (1, 20), (2, 30)] {
            put(&mut image, 4096 + 64 * group + 8, block);
        }
        let layout = Layout::read(&Image(image)).unwrap();
        let firsts = [10, 20, 30].map(|block| layout.inodes(block * 4096).map(|it| it.first));
        assert_eq!(firsts, [Some(1), Some(33), Some(65)]);
    }

    #[test]
    fn a_superblock_of_impossible_numbers_is_an_error_and_no_overflow() {
        let mut image = vec![0xff; 16384];
        put(&mut image, 1024 + 32, 1);
        put(&mut image, 1024 + 56, EXT4_MAGIC);
        put(&mut image, 1024 + 96, SIXTY_FOUR_BIT);
        assert!(Layout::read(&Image(image)).is_err());
        let mut image = vec![0xff; 16384];
        put(&mut image, 1024, F2FS_MAGIC);
        assert_eq!(Layout::read(&Image(image)).unwrap().subtype(0), "superblock");
    }

    #[test]
    fn an_unknown_filesystem_has_no_areas_and_a_tiny_device_is_an_error() {
        assert_eq!(Layout::read(&Image(vec![0; 4096])).unwrap(), Layout::default());
        assert!(Layout::read(&Image(vec![0; 100])).is_err());
    }
}
