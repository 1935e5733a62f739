//! Layouts of images of ext4 and F2FS, and damaged ones.

use std::io;
use std::os::unix::fs::FileExt;

use super::ext4::{EXTENT_MAGIC, ORPHAN_FILE, SIXTY_FOUR_BIT};
use super::layout::Inodes;
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
    let layout = read_layout(&Image(image)).unwrap();
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
    let layout = read_layout(&Image(image)).unwrap();
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
        let layout = read_layout(&Image(image.to_vec())).unwrap();
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
    let layout = read_layout(&Image(image)).unwrap();
    let firsts = [10, 20, 30].map(|block| layout.inodes(block * 4096).map(|it| it.first));
    assert_eq!(firsts, [Some(1), Some(33), Some(65)]);
}

#[test]
fn a_superblock_of_impossible_numbers_is_an_error_and_no_overflow() {
    let mut image = vec![0xff; 16384];
    put(&mut image, 1024 + 32, 1);
    put(&mut image, 1024 + 56, EXT4_MAGIC);
    put(&mut image, 1024 + 96, SIXTY_FOUR_BIT);
    assert!(read_layout(&Image(image)).is_err());
    let mut image = vec![0xff; 16384];
    put(&mut image, 1024, F2FS_MAGIC);
    assert_eq!(read_layout(&Image(image)).unwrap().subtype(0), "superblock");
}

#[test]
fn an_unknown_filesystem_has_no_areas_and_a_tiny_device_is_an_error() {
    assert_eq!(read_layout(&Image(vec![0; 4096])).unwrap(), Layout::default());
    assert!(read_layout(&Image(vec![0; 100])).is_err());
}
