//! Follows all blocks of raw NAND through its operations from the beginning, so that what is read
//! and moved later is known; says of each operation of the traced part what it moved, and why.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context;

use super::block::{BlockLife, KnownNodes};
use super::operation::{self, Operation, OperationKind};
use crate::device::disk::Disk;
use crate::record::words;

pub use super::block::Extent;
pub use super::nodes::NodeSubject;

/// The name of UBI's thread, which levels wear and gives blocks back (drivers/mtd/ubi/build.c).
const UBI_THREAD: &str = "ubi_bgt";

words! {
    /// The reason why an operation was done, as schema/flash_operations.toml spells it.
    OperationCause {
        Filesystem = "filesystem", GarbageCollection = "garbage-collection",
        WearLevelling = "wear-levelling", Reclaim = "reclaim",
    }
}

/// An operation, with what it is of.
#[derive(Debug, Clone)]
pub struct TracedOperation {
    pub operation: Operation,
    pub extents: Vec<Extent>,
    pub volume: Option<u32>,
    pub logical_block: Option<u32>,
    pub erases: Option<u64>,
    pub cause: OperationCause,
}

/// A file or directory that operations are of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedInode {
    pub inode: u64,
    /// From the root of the filesystem; empty where no name was seen.
    pub path: String,
    pub is_directory: bool,
}

/// All that was told.
#[derive(Debug, Clone, Default)]
pub struct AttributedOperations {
    /// In the order of their issue.
    pub operations: Vec<TracedOperation>,
    /// Those that they are of.
    pub inodes: Vec<NamedInode>,
}

/// The place of an operation: a block in one of its lives.
struct PlacedOperation {
    operation: Operation,
    life: usize,
}

/// All blocks, and the operations that are to be told.
#[derive(Default)]
pub struct Follower {
    known: KnownNodes,
    lives: Vec<BlockLife>,
    /// The life of each block now.
    current: BTreeMap<u32, usize>,
    places: Vec<PlacedOperation>,
}

impl Follower {
    /// Operations of before: only what they leave is of interest.
    pub fn remember(&mut self, operations: Vec<Operation>) {
        for operation in operations {
            self.follow(&operation);
        }
    }

    /// Operations that are to be told.
    pub fn trace(&mut self, operations: Vec<Operation>) {
        for mut operation in operations {
            let life = self.follow(&operation);
            operation.data = Vec::new();
            self.places.push(PlacedOperation { operation, life });
        }
    }

    /// Gives the life of its block that the operation is of.
    fn follow(&mut self, operation: &Operation) -> usize {
        let life = *self.current.entry(operation.block).or_insert_with(|| {
            self.lives.push(BlockLife::default());
            self.lives.len() - 1
        });
        match operation.kind {
            OperationKind::Program => {
                let (offset_bytes, data) = (operation.offset_bytes, &operation.data);
                self.lives[life].program(offset_bytes, data, &mut self.known);
            }
            OperationKind::Erase => {
                self.current.remove(&operation.block);
            }
            OperationKind::Read => {}
        }
        life
    }

    /// Return what all traced operations are of, now that the nodes they begin are whole.
    pub fn tell(self) -> AttributedOperations {
        let Self { known, lives, places, .. } = self;
        let traced = |PlacedOperation { operation, life }| {
            let life = &lives[life];
            let extents = match operation.kind {
                OperationKind::Erase => Vec::new(),
                _ => life.extents(operation.offset_bytes, operation.length_bytes, &known),
            };
            TracedOperation {
                cause: cause(&operation, &extents),
                volume: life.volume,
                logical_block: life.logical_block,
                erases: life.erases,
                operation,
                extents,
            }
        };
        let operations: Vec<TracedOperation> = places.into_iter().map(traced).collect();
        let extents = operations.iter().flat_map(|traced| &traced.extents);
        let inodes: BTreeSet<u64> = extents.filter_map(|extent| extent.what.inode()).collect();
        let named = |inode| NamedInode {
            inode,
            path: known.names.path(inode).unwrap_or_default(),
            is_directory: known.names.is_directory(inode),
        };
        AttributedOperations { operations, inodes: inodes.into_iter().map(named).collect() }
    }
}

fn cause(operation: &Operation, extents: &[Extent]) -> OperationCause {
    let is_program = operation.kind == OperationKind::Program;
    if operation.comm.starts_with(UBI_THREAD) {
        let reclaims = operation.kind == OperationKind::Erase
            || is_program && extents.iter().all(|extent| extent.what == NodeSubject::EraseCounter);
        return if reclaims { OperationCause::Reclaim } else { OperationCause::WearLevelling };
    }
    if is_program && extents.iter().any(|extent| extent.is_copy) {
        return OperationCause::GarbageCollection;
    }
    OperationCause::Filesystem
}

/// Raw NAND, what was programmed into it before, and what it did while it was traced.
pub struct NandWatch<'a> {
    nand: &'a Disk,
    follower: Follower,
}

impl<'a> NandWatch<'a> {
    /// Begins; nothing is traced yet.
    pub fn new(nand: &'a Disk) -> Self {
        Self { nand, follower: Follower::default() }
    }

    /// Begin the traced part: all operations until now are from before it.
    ///
    /// # Errors
    /// If its record cannot be read.
    pub fn begin(&mut self) -> anyhow::Result<()> {
        self.follower.remember(self.read_operations()?);
        Ok(())
    }

    /// End the traced part: all operations since its begin are of it.
    ///
    /// # Errors
    /// If its record cannot be read.
    pub fn collect(&mut self) -> anyhow::Result<()> {
        self.follower.trace(self.read_operations()?);
        Ok(())
    }

    /// The operations of the traced part.
    pub fn finish(self) -> AttributedOperations {
        self.follower.tell()
    }

    fn read_operations(&self) -> anyhow::Result<Vec<Operation>> {
        operation::read_operations(self.nand.node()).context("the record of NAND")
    }
}

#[cfg(test)]
mod tests {
    // Headers and nodes as UBI and UBIFS lay them out, worked out by hand.
    use super::*;

    const PAGE: u32 = 2048;

    fn node(kind: u8, sequence: u64, length_bytes: usize, key: [u32; 2]) -> Vec<u8> {
        let mut bytes = vec![0x55; length_bytes];
        bytes[..4].copy_from_slice(&0x0610_1831_u32.to_le_bytes());
        bytes[8..16].copy_from_slice(&sequence.to_le_bytes());
        bytes[16..20].copy_from_slice(&(length_bytes as u32).to_le_bytes());
        bytes[20] = kind;
        bytes[24..28].copy_from_slice(&key[0].to_le_bytes());
        if length_bytes >= 32 {
            bytes[28..32].copy_from_slice(&key[1].to_le_bytes());
        }
        bytes
    }

    fn operation(kind: OperationKind, block: u32, offset_bytes: u32, data: &[u8]) -> Operation {
        let length_bytes = data.len() as u32;
        let (comm, data) = ("app".to_owned(), data.to_vec());
        Operation { kind, block, offset_bytes, length_bytes, comm, data, ..Operation::default() }
    }

    fn program(block: u32, offset_bytes: u32, data: &[u8]) -> Operation {
        operation(OperationKind::Program, block, offset_bytes, data)
    }

    fn headers(block: u32, volume: u32, logical_block: u32) -> [Operation; 2] {
        let mut counter = vec![0; 512];
        counter[..4].copy_from_slice(b"UBI#");
        counter[8..16].copy_from_slice(&9_u64.to_be_bytes());
        let mut of_volume = vec![0; 512];
        of_volume[..4].copy_from_slice(b"UBI!");
        of_volume[8..12].copy_from_slice(&volume.to_be_bytes());
        of_volume[12..16].copy_from_slice(&logical_block.to_be_bytes());
        [program(block, 0, &counter), program(block, 512, &of_volume)]
    }

    /// Kinds and lengths of the extents of one operation.
    fn extents(operation: &TracedOperation) -> Vec<(NodeSubject, u32)> {
        operation.extents.iter().map(|extent| (extent.what, extent.length_bytes)).collect()
    }

    #[test]
    fn a_node_that_goes_on_in_the_next_page_is_told_in_both() {
        let mut bytes = node(0, 1, 160, [65, 0]);
        bytes.extend(node(1, 2, 3000, [65, 1 << 29 | 3]));
        bytes.extend(node(5, 3, 28, [908, 0]));
        bytes.resize(4096, 0);
        let mut follower = Follower::default();
        follower.remember(headers(7, 0, 40).to_vec());
        let (first, second) = bytes.split_at(PAGE as usize);
        follower.trace(vec![program(7, PAGE, first), program(7, 2 * PAGE, second)]);
        let operations = follower.tell().operations;
        let data = NodeSubject::Data { inode: 65, offset_bytes: 3 * 4096 };
        assert_eq!(
            extents(&operations[0]),
            [(NodeSubject::Inode { inode: 65 }, 160), (data, 1888)]
        );
        assert_eq!(extents(&operations[1]), [(data, 1112), (NodeSubject::Padding, 936)]);
        assert_eq!(
            (operations[0].volume, operations[0].logical_block, operations[0].erases),
            (Some(0), Some(40), Some(9))
        );
    }

    #[test]
    fn pages_of_before_the_trace_have_an_owner_when_they_are_read() {
        let mut follower = Follower::default();
        follower.remember(headers(7, 0, 40).to_vec());
        follower.remember(vec![program(7, PAGE, &node(2, 5, 2048, [1, 0]))]);
        let mut read = operation(OperationKind::Read, 7, PAGE, &[0; 4096]);
        read.data.clear();
        follower.trace(vec![read]);
        let operations = follower.tell().operations;
        assert_eq!(
            extents(&operations[0]),
            [(NodeSubject::Entry { inode: 1 }, 2048), (NodeSubject::Erased, 2048)]
        );
    }

    #[test]
    fn a_node_with_a_number_that_was_seen_before_was_moved() {
        let mut follower = Follower::default();
        follower.remember(headers(7, 0, 40).to_vec());
        let data = node(1, 2, 2048, [65, 1 << 29]);
        follower.remember(vec![program(7, PAGE, &data)]);
        follower.trace(headers(8, 0, 41).to_vec());
        follower.trace(vec![program(8, PAGE, &data), operation(OperationKind::Erase, 7, 0, &[])]);
        follower.trace(vec![program(7, PAGE, &node(8, 9, 64, [0, 0]))]);
        let operations = follower.tell().operations;
        assert_eq!(extents(&operations[0]), [(NodeSubject::EraseCounter, 512)]);
        assert_eq!(extents(&operations[1]), [(NodeSubject::VolumeHeader, 512)]);
        let causes: Vec<_> = operations.iter().map(|it| it.cause).collect();
        let none = OperationCause::Filesystem;
        assert_eq!(causes, [none, none, OperationCause::GarbageCollection, none, none]);
        // Nothing is left of what the block held before its erase.
        assert_eq!(
            (extents(&operations[4]), operations[4].volume),
            (vec![(NodeSubject::Reference, 64)], None)
        );
    }

    #[test]
    fn operations_of_ubis_thread_have_causes_of_ubi() {
        let mut follower = Follower::default();
        let by_thread = |operation| Operation { comm: "ubi_bgt0d".into(), ..operation };
        let [counter, of_volume] = headers(7, 0, 40);
        let erase = operation(OperationKind::Erase, 7, 0, &[]);
        follower.trace(vec![by_thread(erase), by_thread(counter), by_thread(of_volume)]);
        let causes: Vec<_> = follower.tell().operations.iter().map(|it| it.cause).collect();
        let (reclaim, wear) = (OperationCause::Reclaim, OperationCause::WearLevelling);
        assert_eq!(causes, [reclaim, reclaim, wear]);
    }

    #[test]
    fn the_areas_of_the_superblock_are_heeded() {
        let mut superblock = node(6, 1, 4096, [0, 0]);
        superblock[56..60].copy_from_slice(&4_u32.to_le_bytes()); // 3 to 6: the log
        superblock[60..64].copy_from_slice(&2_u32.to_le_bytes()); // 7 and 8: the properties
        let mut follower = Follower::default();
        follower.remember(headers(1, 0, 0).to_vec());
        follower.remember(vec![program(1, PAGE, &superblock)]);
        follower.remember(headers(2, 0, 8).to_vec());
        follower.remember(headers(3, 0, 9).to_vec());
        follower.remember(headers(4, crate::raw_nand::nodes::LAYOUT_VOLUME, 0).to_vec());
        let bytes = [0x12; 2048];
        follower.trace([2, 3, 4].map(|block| program(block, PAGE, &bytes)).to_vec());
        let operations = follower.tell().operations;
        let found: Vec<NodeSubject> = operations.iter().map(|it| it.extents[0].what).collect();
        assert_eq!(
            found,
            [NodeSubject::Properties, NodeSubject::Unknown, NodeSubject::VolumeTable]
        );
    }

    /// An entry of a directory, padded to the next node.
    fn entry(sequence: u64, directory: u32, name: &str, inode: u64) -> Vec<u8> {
        let mut bytes = node(2, sequence, 57 + name.len(), [directory, 2 << 29]);
        bytes[40..48].copy_from_slice(&inode.to_le_bytes());
        bytes[49] = 0;
        bytes[50..52].copy_from_slice(&(name.len() as u16).to_le_bytes());
        bytes[56..56 + name.len()].copy_from_slice(name.as_bytes());
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes
    }

    #[test]
    fn a_file_has_the_name_of_its_entry_even_one_that_goes_on_in_the_next_page() {
        let name = "a-name-that-is-long-enough-to-go-on-in-the-next-page";
        let mut bytes = node(1, 1, 2048 - 64, [70, 1 << 29]);
        bytes.extend(entry(2, 1, name, 70));
        bytes.extend(node(1, 3, 64, [71, 1 << 29]));
        bytes.resize(2 * PAGE as usize, 0xff);
        let mut follower = Follower::default();
        follower.remember(headers(7, 0, 40).to_vec());
        let (first, second) = bytes.split_at(PAGE as usize);
        follower.trace(vec![program(7, PAGE, first), program(7, 2 * PAGE, second)]);
        let operations = follower.tell();
        let [of_entry, named, unnamed] = &operations.inodes[..] else {
            panic!("{:?}", operations.inodes)
        };
        assert_eq!((of_entry.inode, of_entry.path.as_str(), of_entry.is_directory), (1, "/", true));
        assert_eq!((named.inode, named.path.as_str()), (70, format!("/{name}").as_str()));
        assert_eq!((unnamed.inode, unnamed.path.as_str()), (71, ""));
        assert_eq!(extents(&operations.operations[1])[0].0, NodeSubject::Entry { inode: 1 });
    }

    mod any_bytes {
        use proptest::prelude::*;

        use super::*;

        proptest! {
            #[test]
            fn extents_add_up_whatever_was_programmed(
                programs in prop::collection::vec(
                    (0_u32..16, prop::collection::vec(any::<u8>(), 0..3000), any::<bool>()), 1..12),
                at in 0_u32..40_000,
                length in 1_u32..20_000,
            ) {
                let mut follower = Follower::default();
                for (page, bytes, as_node) in programs {
                    let mut bytes = bytes;
                    if as_node && bytes.len() >= 32 {
                        let head = node(bytes[20] % 14, u64::from(bytes[8]), bytes.len(), [7, 0]);
                        bytes[..24].copy_from_slice(&head[..24]);
                    }
                    follower.remember(vec![program(0, page * PAGE, &bytes)]);
                }
                let read = Operation {
                    offset_bytes: at, length_bytes: length, ..Operation::default()
                };
                follower.trace(vec![read]);
                let operations = follower.tell().operations;
                let mut next = at;
                for extent in &operations[0].extents {
                    prop_assert_eq!(extent.offset_bytes, next);
                    prop_assert!(extent.length_bytes > 0);
                    next += extent.length_bytes;
                }
                prop_assert_eq!(next, at + length);
            }
        }
    }
}
