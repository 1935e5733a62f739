//! Operations of raw NAND for the rest of the tracer: bios whose runs are classified by what the
//! headers of UBI and UBIFS said of their bytes.

use crate::raw_nand::follower::{Extent, NodeSubject, OperationCause, TracedOperation};
use crate::raw_nand::operation::OperationKind;
use crate::tables::rows::Word;
use crate::tracer::classify::{BlockType, Class, RunOwner};
use crate::tracer::records::kernel::{
    FLAG_SYNC, OPERATION_DISCARD, OPERATION_READ, OPERATION_WRITE, UBIFS_MAGIC,
};
use crate::tracer::records::{Bio, Run};
use crate::tracer::requests::RAW_NAND_DEVICE;

/// The operation as a bio, and its runs with their classes.
pub fn bio_and_runs(traced: &TracedOperation, filesystem: u32) -> (Bio, Vec<(Run, Class)>) {
    let operation = &traced.operation;
    // Who asks for an operation waits for it: it has no flag that says so, and needs none.
    let flags = match operation.kind {
        OperationKind::Read => OPERATION_READ | FLAG_SYNC,
        OperationKind::Program => OPERATION_WRITE | FLAG_SYNC,
        OperationKind::Erase => OPERATION_DISCARD,
    };
    let bio = Bio {
        device: RAW_NAND_DEVICE,
        partition_device: filesystem,
        time_ns: operation.queue_ns,
        sector: operation.address_bytes / 512,
        length_bytes: operation.length_bytes,
        flags,
        kernel_thread: operation.call.is_none(),
        pid: operation.pid,
        tid: operation.tid,
        comm: operation.comm.clone(),
        call: operation.call,
        ..Bio::default()
    };
    let run = |extent: &Extent| {
        let (class, file) = class_of(extent, traced.cause);
        let (inode, file_offset_bytes) = file.unwrap_or_default();
        let run = Run {
            offset_bytes: extent.offset_bytes - operation.offset_bytes,
            length_bytes: extent.length_bytes,
            file_offset_bytes,
            inode,
            filesystem,
            magic: UBIFS_MAGIC,
            ..Run::default()
        };
        (run, class)
    };
    (bio, traced.extents.iter().map(run).collect())
}

/// The class of an extent; the inode that it belongs to, and the offset in that file.
fn class_of(extent: &Extent, cause: OperationCause) -> (Class, Option<(u64, u64)>) {
    let metadata = |subtype: &'static str| Class::new(BlockType::FsMetadata, subtype);
    let of = |inode: u64, subtype: &'static str| {
        let owner = RunOwner::Number(inode);
        (Class::with_owner(BlockType::FsMetadata, subtype, owner), Some((inode, 0)))
    };
    match extent.what {
        NodeSubject::Data { inode, offset_bytes } => {
            let subtype: Word = match cause {
                OperationCause::GarbageCollection => "garbage-collection".into(),
                OperationCause::WearLevelling => "wear-levelling".into(),
                _ => Word::default(),
            };
            let class = Class::with_owner(BlockType::Data, subtype, RunOwner::Number(inode));
            (Class { has_offset: true, ..class }, Some((inode, offset_bytes)))
        }
        NodeSubject::Inode { inode } => of(inode, "inode"),
        NodeSubject::Entry { inode } => of(inode, "entry"),
        NodeSubject::Truncation { inode } => of(inode, "truncation"),
        NodeSubject::Padding => (metadata("padding"), None),
        NodeSubject::Superblock => (metadata("superblock"), None),
        NodeSubject::Master => (metadata("master"), None),
        NodeSubject::Index => (metadata("index"), None),
        NodeSubject::Orphan => (metadata("orphan"), None),
        NodeSubject::Authentication => (metadata("authentication"), None),
        NodeSubject::Properties => (metadata("block-properties"), None),
        NodeSubject::EraseCounter => (metadata("ubi-erase-counter"), None),
        NodeSubject::VolumeHeader => (metadata("ubi-volume-header"), None),
        NodeSubject::VolumeTable => (metadata("ubi-volume-table"), None),
        NodeSubject::Erased => (metadata("erased"), None),
        // The log says where the journal is, and when a commit began: the nodes of the journal are
        // where they stay.
        NodeSubject::Reference => (Class::new(BlockType::FsJournal, "reference"), None),
        NodeSubject::Commit => (Class::new(BlockType::FsJournal, "commit"), None),
        NodeSubject::Unknown => (Class::new(BlockType::Unknown, ""), None),
    }
}
