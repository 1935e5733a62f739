//! Follows all blocks of raw NAND through its operations from the beginning, so that what is read
//! and moved later is known; says of each operation of the traced part what it moved, and why.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context;

use super::block::{BlockLife, KnownNodes};
use super::operation::{self, Operation, OperationKind};
use crate::device::disk::Disk;

pub use super::block::Extent;
pub use super::nodes::NodeSubject;

/// The name of UBI's thread, which levels wear and gives blocks back (drivers/mtd/ubi/build.c).
const UBI_THREAD: &str = "ubi_bgt";

/// Why an operation was done, as schema/flash_operations.toml spells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperationCause {
    Filesystem,
    GarbageCollection,
    WearLevelling,
    Reclaim,
}

impl OperationCause {
    /// As the schema spells it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Filesystem => "filesystem",
            Self::GarbageCollection => "garbage-collection",
            Self::WearLevelling => "wear-levelling",
            Self::Reclaim => "reclaim",
        }
    }
}

/// An operation, with what it is of.
#[derive(Debug, Clone)]
pub struct TracedOperation {
    pub operation: Operation,
    pub pieces: Vec<Extent>,
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
pub struct ToldOperations {
    /// In the order of their issue.
    pub operations: Vec<TracedOperation>,
    /// Those that they are of.
    pub inodes: Vec<NamedInode>,
}

/// Where an operation was: a block in one of its lives.
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

    /// What all traced operations are of, now that the nodes they begin are whole.
    pub fn tell(self) -> ToldOperations {
        let Self { known, lives, places, .. } = self;
        let told = |PlacedOperation { operation, life }| {
            let life = &lives[life];
            let pieces = match operation.kind {
                OperationKind::Erase => Vec::new(),
                _ => life.pieces(operation.offset_bytes, operation.length_bytes, &known),
            };
            TracedOperation {
                cause: cause(&operation, &pieces),
                volume: life.volume,
                logical_block: life.logical_block,
                erases: life.erases,
                operation,
                pieces,
            }
        };
        let operations: Vec<TracedOperation> = places.into_iter().map(told).collect();
        let pieces = operations.iter().flat_map(|traced| &traced.pieces);
        let inodes: BTreeSet<u64> = pieces.filter_map(|piece| piece.what.inode()).collect();
        let named = |inode| NamedInode {
            inode,
            path: known.names.path(inode).unwrap_or_default(),
            is_directory: known.names.is_directory(inode),
        };
        ToldOperations { operations, inodes: inodes.into_iter().map(named).collect() }
    }
}

fn cause(operation: &Operation, pieces: &[Extent]) -> OperationCause {
    let is_program = operation.kind == OperationKind::Program;
    if operation.comm.starts_with(UBI_THREAD) {
        let reclaims = operation.kind == OperationKind::Erase
            || is_program && pieces.iter().all(|piece| piece.what == NodeSubject::EraseCounter);
        return if reclaims { OperationCause::Reclaim } else { OperationCause::WearLevelling };
    }
    if is_program && pieces.iter().any(|piece| piece.is_copy) {
        return OperationCause::GarbageCollection;
    }
    OperationCause::Filesystem
}

#[cfg(test)]
#[path = "follower_test.rs"]
mod tests;

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

    /// What it did until now is from before the traced part.
    ///
    /// # Errors
    /// If its record cannot be read.
    pub fn begin(&mut self) -> anyhow::Result<()> {
        self.follower.remember(self.take()?);
        Ok(())
    }

    /// What it did since is of the traced part.
    ///
    /// # Errors
    /// If its record cannot be read.
    pub fn collect(&mut self) -> anyhow::Result<()> {
        self.follower.trace(self.take()?);
        Ok(())
    }

    /// The operations of the traced part.
    pub fn finish(self) -> ToldOperations {
        self.follower.tell()
    }

    fn take(&self) -> anyhow::Result<Vec<Operation>> {
        operation::take(self.nand.node()).context("the record of NAND")
    }
}
