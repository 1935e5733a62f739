//! One test for each rule, by filesystem; and layouts of images of ext4 and F2FS, and damaged ones.

use super::ext4::{EXTENT_MAGIC, ORPHAN_FILE, SIXTY_FOUR_BIT};
use super::layout::Inodes;
use super::*;
use crate::bpf::Symbols;
use crate::tables::rows::Word;
use crate::tracer::classify::layout::Layout;
use crate::tracer::program::functions::WANTED;
use crate::tracer::records::kernel::{EXT4_MAGIC as EXT4, MODE_BLOCK_DEVICE};
use crate::tracer::records::{self, Bio, Run};

const KALLSYMS: &str = "\
0000000000000001 t end_bio_bh_io_sync
0000000000000002 t journal_end_buffer_io_sync
0000000000000003 t ext4_end_buffer_io_sync
0000000000000004 t iomap_dio_bio_end_io
0000000000000005 t bio_chain_endio
0000000000000006 t submit_bio_wait_endio
0000000000000007 t xfs_buf_bio_end_io
0000000000000008 t xlog_bio_end_io
0000000000000009 t btrfs_end_super_write
000000000000000a t nilfs_end_bio_write
000000000000000b d nilfs_buffer_cache_aops
000000000000000c t end_swap_bio_write
000000000000000d t clone_endio [dm_mod]
000000000000000e t raid1_end_write_request [raid1]
000000000000000f D empty_aops
0000000000000011 t blkdev_bio_end_io_async
";

const DISK: u32 = 7 << 20;
const FILESYSTEM: u32 = 39;
const REGULAR: u32 = 0o100644;
const XFS: u32 = 0x5846_5342;

/// (block type, subtype, owner)
fn class_words(bio: &Bio, run: &Run) -> (&'static str, Word, RunOwner) {
    let class = class(bio, run);
    (class.block_type.as_str(), class.subtype, class.owner)
}

fn class(bio: &Bio, run: &Run) -> Class {
    let symbols = Symbols::parse(KALLSYMS.as_bytes(), WANTED).unwrap();
    classify(bio, run, &symbols, &Layout::default())
}

fn is(block_type: &'static str, subtype: &str, owner: RunOwner) -> (&'static str, Word, RunOwner) {
    (block_type, subtype.to_owned().into(), owner)
}

/// A write whose bi_end_io is the n-th symbol.
fn write(end_io: u64) -> Bio {
    Bio { flags: 1, end_io, partition_device: DISK, ..Bio::default() }
}

fn file(magic: u32, inode: u64, mode: u32) -> Run {
    let flags = records::RUN_OFFSET;
    Run { magic, inode, mode, flags, filesystem: FILESYSTEM, ..Run::default() }
}

/// A page in the page cache of the disk.
fn device_page() -> Run {
    let file_offset_bytes = 77 * 4096;
    let inode = file(BLOCK_DEVICE_MAGIC, 1, MODE_BLOCK_DEVICE);
    Run { filesystem: DISK, file_offset_bytes, ..inode }
}

fn no_pages_of_anybody() -> Run {
    Run { flags: records::RUN_UNMAPPED, ..Run::default() }
}

#[test]
fn pages_of_a_regular_file_are_its_data() {
    for magic in [EXT4, XFS, BTRFS_MAGIC, F2FS_MAGIC, NILFS_MAGIC] {
        let class = class(&write(0), &file(magic, 300, REGULAR));
        assert_eq!(class.block_type, BlockType::Data);
        assert_eq!((class.owner, class.has_offset), (RunOwner::Inode, true));
    }
}

#[test]
fn direct_io_is_the_data_of_the_file_it_was_asked_of() {
    let run = Run { flags: records::RUN_DIRECT | records::RUN_OFFSET, ..file(EXT4, 12, REGULAR) };
    assert_eq!(class_words(&write(4), &run), is("data", "", RunOwner::Inode));
}

#[test]
fn direct_io_outside_iomap_is_known_by_the_call_but_not_its_offset() {
    let flags = records::RUN_UNMAPPED | records::RUN_ANONYMOUS;
    let class = class(&write(0), &Run { flags, ..file(BTRFS_MAGIC, 300, REGULAR) });
    assert_eq!((class.block_type, class.owner), (BlockType::Data, RunOwner::Inode));
    assert!(!class.has_offset);
}

#[test]
fn ext4_journal_blocks_are_told_by_their_header() {
    let types =
        [(1, "descriptor"), (2, "commit"), (3, "superblock"), (4, "superblock"), (5, "revoke")];
    for (journal_block_type, subtype) in types {
        let journal = Bio { journal_block_type, buffer_end_io: 2, ..write(1) };
        assert_eq!(
            class_words(&journal, &device_page()),
            is("fs-journal", subtype, RunOwner::None)
        );
        // Superblock and revoke blocks are written as any metadata is.
        let plain = Bio { journal_block_type, ..write(1) };
        assert_eq!(class_words(&plain, &device_page()), is("fs-journal", subtype, RunOwner::None));
    }
}

#[test]
fn an_ext4_journal_copy_knows_its_home_or_its_file() {
    let journal = Bio { buffer_end_io: 2, ..write(1) };
    let copy = class(&journal, &device_page());
    assert_eq!((copy.block_type, copy.home_bytes), (BlockType::FsJournal, Some(77 * 4096)));
    // data=journal
    assert_eq!(
        class_words(&journal, &file(EXT4, 12, REGULAR)),
        is("fs-journal", "copy", RunOwner::Inode)
    );
    // A frozen copy: its page is in no page cache.
    let frozen = class(&journal, &no_pages_of_anybody());
    assert_eq!((frozen.block_type, frozen.home_bytes), (BlockType::FsJournal, None));
    // An external journal: the home is on another device.
    let elsewhere = Run { filesystem: DISK + 16, ..device_page() };
    assert_eq!(class(&journal, &elsewhere).home_bytes, None);
}

#[test]
fn other_ext4_blocks_of_the_device_are_metadata() {
    let held = Bio { holder: "ext4".to_owned(), ..write(1) };
    assert_eq!(class_words(&held, &device_page()), is("fs-metadata", "", RunOwner::None));
    assert_eq!(class_words(&write(1), &device_page()), is("data", "raw-device", RunOwner::None));
    let fast = Bio { buffer_end_io: 3, ..write(1) };
    assert_eq!(class_words(&fast, &device_page()), is("fs-journal", "fast-commit", RunOwner::None));
}

#[test]
fn zeroes_are_inode_tables_or_a_files_unwritten_extents() {
    let lazy = Bio { comm: "ext4lazyinit".into(), kernel_thread: true, ..write(6) };
    let none = no_pages_of_anybody();
    assert_eq!(class_words(&lazy, &none), is("fs-metadata", "inode-table", RunOwner::None));
    // A process cannot pass for the thread by its name.
    let named = Bio { kernel_thread: false, ..lazy.clone() };
    assert_eq!(class_words(&named, &none), is("unknown", "", RunOwner::None));
    let called = Run { flags: records::RUN_UNMAPPED, ..file(EXT4, 12, REGULAR) };
    assert_eq!(class_words(&write(5), &called), is("data", "zeroes", RunOwner::Inode));
    let writeback = Bio { holder: "ext4".into(), ..write(5) };
    assert_eq!(class_words(&writeback, &none), is("data", "zeroes", RunOwner::None));
    let offloaded = Bio { flags: OPERATION_WRITE_ZEROES, ..lazy };
    assert_eq!(class_words(&offloaded, &none), is("fs-metadata", "inode-table", RunOwner::None));
}

#[test]
fn a_discard_is_free_space_bookkeeping() {
    let discard = Bio { flags: OPERATION_DISCARD, ..write(6) };
    let none = no_pages_of_anybody();
    assert_eq!(class_words(&discard, &none), is("fs-metadata", "discard", RunOwner::None));
}

#[test]
fn xfs_tells_by_its_completion_functions() {
    assert_eq!(class_words(&write(8), &Run::default()), is("fs-journal", "log", RunOwner::None));
    let contents = Bio { buffer_contents: Some(*b"XAGF\0\0\0\x01\0\0\0\0\0\0\0\0"), ..write(7) };
    assert_eq!(class_words(&contents, &Run::default()), is("fs-metadata", "agf", RunOwner::None));
    let buffer = Bio { buffer_type: "xfs_bnobt".into(), ..write(7) };
    assert_eq!(class_words(&buffer, &Run::default()), is("fs-metadata", "bnobt", RunOwner::None));
    let recovery = Bio { holder: "xfs".into(), ..write(6) };
    assert_eq!(
        class_words(&recovery, &no_pages_of_anybody()),
        is("fs-journal", "log", RunOwner::None)
    );
}

#[test]
fn btrfs_trees_are_told_by_log_index_and_owner() {
    let tree = |detail: i64, flags| Run { detail: detail as u64, flags, ..file(BTRFS_MAGIC, 1, 0) };
    let log = is("fs-journal", "log-tree", RunOwner::None);
    assert_eq!(class_words(&write(0), &tree(0, records::RUN_LOG_TREE)), log);
    assert_eq!(class_words(&write(0), &tree(-6, 0)), log);
    for (owner, name) in [(1, "root-tree"), (7, "checksum-tree"), (5, "fs-tree"), (257, "fs-tree")]
    {
        assert_eq!(
            class_words(&write(0), &tree(owner, 0)),
            is("fs-metadata", name, RunOwner::None)
        );
    }
    // The mode of the btree inode is stale memory.
    let stale = Run { mode: REGULAR, ..tree(2, 0) };
    assert_eq!(class_words(&write(0), &stale), is("fs-metadata", "extent-tree", RunOwner::None));
    assert_eq!(
        class_words(&write(9), &device_page()),
        is("fs-metadata", "superblock", RunOwner::None)
    );
}

#[test]
fn f2fs_nodes_belong_to_a_file() {
    let node = Run { detail: 21 << 32 | 22, ..file(F2FS_MAGIC, 1, REGULAR) };
    assert_eq!(class_words(&write(0), &node), is("fs-metadata", "node", RunOwner::Number(21)));
    let unread = file(F2FS_MAGIC, 1, REGULAR);
    assert_eq!(class_words(&write(0), &unread), is("fs-metadata", "node", RunOwner::None));
    let directory = file(F2FS_MAGIC, 3, 0o040755);
    assert_eq!(class_words(&write(0), &directory), is("fs-metadata", "directory", RunOwner::Inode));
}

#[test]
fn f2fs_areas_come_from_the_layout() {
    let symbols = Symbols::parse(KALLSYMS.as_bytes(), WANTED).unwrap();
    let layout = Layout::with_areas(&[(4096, 4096, "checkpoint"), (8192, 4096, "nat")]);
    let meta = |file_offset_bytes| Run { file_offset_bytes, ..file(F2FS_MAGIC, 2, REGULAR) };
    let checkpoint = classify(&write(0), &meta(4096), &symbols, &layout);
    assert_eq!(checkpoint, Class::new(BlockType::FsJournal, "checkpoint"));
    let nat = classify(&write(0), &meta(8192), &symbols, &layout);
    assert_eq!(nat, Class::new(BlockType::FsMetadata, "nat"));
}

#[test]
fn nilfs2_puts_every_kind_in_one_log() {
    let summary = Run { content: NILFS_SUMMARY_MAGIC, ..device_page() };
    assert_eq!(
        class_words(&write(10), &summary),
        is("fs-journal", "segment-summary", RunOwner::None)
    );
    assert_eq!(
        class_words(&write(10), &device_page()),
        is("fs-journal", "super-root", RunOwner::None)
    );
    for (inode, name) in [(3, "dat"), (4, "cpfile"), (5, "sufile"), (6, "ifile")] {
        let table = file(NILFS_MAGIC, inode, REGULAR);
        assert_eq!(class_words(&write(10), &table), is("fs-metadata", name, RunOwner::None));
    }
    let nodes = Run { operations: 11, ..file(NILFS_MAGIC, 12, REGULAR) };
    assert_eq!(
        class_words(&write(10), &nodes),
        is("fs-metadata", "btree-node", RunOwner::Number(12))
    );
    let nameless = Run { flags: records::RUN_NODES, ..file(NILFS_MAGIC, 12, REGULAR) };
    assert_eq!(
        class_words(&write(10), &nameless),
        is("fs-metadata", "btree-node", RunOwner::Number(12))
    );
    // Of no operations: nodes on older kernels, and on others data that the cleaner moves.
    let moved = Run { operations: 15, ..file(NILFS_MAGIC, 12, REGULAR) };
    assert_eq!(
        class_words(&write(10), &moved),
        is("fs-metadata", "btree-node", RunOwner::Number(12))
    );
    let newer = format!("{KALLSYMS}0000000000000010 T bpf_loop\n");
    let symbols = Symbols::parse(newer.as_bytes(), WANTED).unwrap();
    let class = classify(&write(10), &moved, &symbols, &Layout::default());
    assert_eq!(class.block_type, BlockType::Data);
}

#[test]
fn swap_and_raw_devices_have_no_file() {
    assert_eq!(class_words(&write(12), &no_pages_of_anybody()), is("swap", "", RunOwner::None));
    let node = Run { flags: records::RUN_UNMAPPED, ..file(0x0102_1994, 9, MODE_BLOCK_DEVICE) };
    assert_eq!(class_words(&write(0), &node), is("data", "raw-device", RunOwner::None));
    // By io_uring, whose worker is in no call on it.
    let direct = class_words(&write(17), &no_pages_of_anybody());
    assert_eq!(direct, is("data", "raw-device", RunOwner::None));
}

#[test]
fn a_bio_that_no_rule_knows_is_unknown() {
    assert_eq!(class_words(&write(0), &Run::default()), is("unknown", "", RunOwner::None));
    assert_eq!(class_words(&write(0), &no_pages_of_anybody()), is("unknown", "", RunOwner::None));
    let odd = Bio { flags: 13, ..write(0) };
    assert_eq!(class_words(&odd, &file(EXT4, 12, REGULAR)), is("unknown", "", RunOwner::None));
}

#[test]
fn a_bio_that_a_layer_above_made_is_unknown() {
    for end_io in [0xd, 0xe] {
        for run in [file(EXT4, 12, REGULAR), device_page()] {
            assert_eq!(class_words(&write(end_io), &run), is("unknown", "", RunOwner::None));
        }
    }
}

#[test]
fn a_read_by_a_strange_filesystem_within_a_call_is_unknown() {
    let flags = records::RUN_UNMAPPED;
    let run = Run { flags, ..file(0x7371_7368, 12, REGULAR) };
    let read = |holder: &str| Bio { flags: 0, holder: holder.to_owned(), ..write(6) };
    assert_eq!(class_words(&read("squashfs"), &run), is("unknown", "", RunOwner::None));
    assert_eq!(class_words(&read("btrfs"), &run), is("data", "", RunOwner::Inode));
}

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
