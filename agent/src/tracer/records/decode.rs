//! Decodes the records of the attribution program (kernel/block/event.h). Reads the bytes of the
//! ring, produces typed records; a record that is too short or of an unknown kind is an error.

use super::fields::Fields;
use super::kernel::{BTRFS_MAGIC, F2FS_MAGIC};
use crate::byte_text::path_text;
use crate::tracer::records::{Bio, Change, Name, PathRecord, Record, Root, Run, UringOutcome};

/// Sizes that event.h asserts too.
const BIO_BYTES: usize = 136;
const RUN_BYTES: usize = 96;
const PATH_BYTES: usize = 64;
const SYNC_BYTES: usize = 80;
const REQUEST_BYTES: usize = 56;
const CHANGE_BYTES: usize = 56;
const NAME_BYTES: usize = 80;
const TRANSACTION_BYTES: usize = 32;

const NO_CALL: u32 = u32::MAX;

const NAME_TRUNCATED: u32 = 1;
const NAME_SECOND: u32 = 2;
const NAME_EXCHANGE: u32 = 4;
const NAME_OVER: u32 = 8;
const NAME_FAILED: u32 = 16;
const NAME_ELSEWHERE: u32 = 32;
const NAME_MOUNT_ROOT: u32 = 64;

const PATH_NAMELESS: u32 = 1;
const PATH_TRUNCATED: u32 = 2;
const PATH_FIRST: u32 = 4;

/// The reason why bytes are no record.
#[derive(Debug, thiserror::Error, PartialEq)]
pub enum DecodeError {
    #[error("a record of kind {kind} has {actual} bytes where {expected} are needed")]
    Short { kind: u32, actual: usize, expected: usize },
    #[error("a record of {0} bytes is not all there")]
    Part(usize),
    #[error("a record is of the unknown kind {0}")]
    UnknownKind(u32),
}

/// Decodes one record as it left the ring.
///
/// # Errors
/// If it is shorter than its kind needs, or of no kind of event.h.
pub fn decode(bytes: &[u8]) -> Result<Record, DecodeError> {
    if bytes.len() < 4 {
        return Err(DecodeError::Short { kind: 0, actual: bytes.len(), expected: 4 });
    }
    let mut fields = Fields::new(bytes);
    let kind: u32 = fields.take_field();
    let expected = match kind {
        1 => BIO_BYTES,
        2 => RUN_BYTES,
        3 => PATH_BYTES,
        4 | 5 | 14 => SYNC_BYTES,
        6 | 7 | 10 | 11 => REQUEST_BYTES,
        8 => CHANGE_BYTES,
        9 => NAME_BYTES,
        12 | 13 => TRANSACTION_BYTES,
        _ => return Err(DecodeError::UnknownKind(kind)),
    };
    if bytes.len() < expected {
        return Err(DecodeError::Short { kind, actual: bytes.len(), expected });
    }
    Ok(match kind {
        1 => decode_bio(fields)?,
        2 => Record::Run(fields.take_field()),
        3 => Record::Path(decode_path(fields)?),
        4 => Record::SyncBegin(fields.take_field()),
        5 => Record::SyncEnd(fields.take_field()),
        6 => Record::Issue(fields.take_field()),
        7 => Record::Complete(fields.take_field()),
        8 => Record::Change(decode_change(fields)),
        9 => Record::Name(decode_name(fields)?),
        10 => Record::BioEnd(fields.take_field()),
        11 => Record::Range(fields.take_field()),
        12 => Record::Commit(fields.take_field()),
        13 => Record::Waits(fields.take_field()),
        _ => Record::SyncWorker(fields.take_field()),
    })
}

// The fields of a struct literal are evaluated in the order written, which here is event.h's.

fn decode_bio(mut fields: Fields) -> Result<Record, DecodeError> {
    let mut bio = Bio {
        device: fields.take_field(),
        time_ns: fields.take_field(),
        serial: fields.take_field(),
        sector: fields.take_field(),
        length_bytes: fields.take_field(),
        flags: fields.take_field(),
        end_io: fields.take_field(),
        buffer_end_io: fields.take_field(),
        partition_sector: fields.take_field(),
        partition_device: fields.take_field(),
        journal_block_type: fields.take_field(),
        kernel_thread: fields.take_field(),
        ..Bio::default()
    };
    let has_run: bool = fields.take_field();
    let has_contents: bool = fields.take_field();
    bio.pid = fields.take_field();
    bio.tid = fields.take_field();
    bio.comm = fields.take_field();
    if has_contents {
        bio.buffer_contents = Some(fields.bytes());
    } else {
        bio.buffer_type = fields.take_field();
    }
    bio.call = Some(fields.take_field::<u32>()).filter(|&call| call != NO_CALL);
    bio.call_flags = fields.take_field();
    bio.holder = fields.text(8);
    bio.address = fields.take_field();
    let behind = fields.rest();
    if has_run && behind.len() < RUN_BYTES {
        let (actual, expected) = (BIO_BYTES + behind.len(), BIO_BYTES + RUN_BYTES);
        return Err(DecodeError::Short { kind: 1, actual, expected });
    }
    let run = has_run.then(|| {
        let mut fields = Fields::new(behind);
        fields.skip(4);
        fields.take_field()
    });
    Ok(Record::Bio(bio, run))
}

fn decode_path(mut fields: Fields) -> Result<PathRecord, DecodeError> {
    let mut path = PathRecord {
        filesystem: fields.take_field(),
        time_ns: fields.take_field(),
        inode: fields.take_field(),
        generation: fields.take_field(),
        mode: fields.take_field(),
        links: fields.take_field(),
        ..PathRecord::default()
    };
    let flags: u32 = fields.take_field();
    path.size_bytes = fields.take_field();
    let names_bytes = fields.take_field::<u32>() as usize;
    path.disk = fields.take_field();
    path.subvolume = fields.take_field();
    let names = fields.rest();
    if names.len() < names_bytes {
        let (actual, expected) = (PATH_BYTES + names.len(), PATH_BYTES + names_bytes);
        return Err(DecodeError::Short { kind: 3, actual, expected });
    }
    path.first = flags & PATH_FIRST != 0;
    if flags & PATH_NAMELESS == 0 {
        path.path = join_names(&names[..names_bytes], flags & PATH_TRUNCATED != 0);
    }
    Ok(path)
}

fn decode_change(mut fields: Fields) -> Change {
    let mut change = Change {
        changes: fields.take_field(),
        time_ns: fields.take_field(),
        inode: fields.take_field(),
        generation: fields.take_field(),
        filesystem: fields.take_field(),
        disk: fields.take_field(),
        pid: fields.take_field(),
        tid: fields.take_field(),
        subvolume: 0,
    };
    fields.skip(4);
    change.subvolume = fields.take_field();
    change
}

fn decode_name(mut fields: Fields) -> Result<Name, DecodeError> {
    let mut name = Name {
        call: fields.take_field(),
        time_ns: fields.take_field(),
        inode: fields.take_field(),
        generation: fields.take_field(),
        filesystem: fields.take_field(),
        pid: fields.take_field(),
        tid: fields.take_field(),
        ..Name::default()
    };
    let flags: u32 = fields.take_field();
    name.second = flags & NAME_SECOND != 0;
    name.exchanges = flags & NAME_EXCHANGE != 0;
    name.outcome = match flags & (NAME_OVER | NAME_FAILED) {
        0 => None,
        NAME_OVER => Some(UringOutcome::Done),
        _ => Some(UringOutcome::Failed),
    };
    name.elsewhere = flags & NAME_ELSEWHERE != 0;
    let name_bytes = fields.take_field::<u32>() as usize;
    name.request = fields.take_field();
    let inode = fields.take_field();
    let (mount, namespace) = (fields.take_field(), fields.take_field());
    name.root = Root { namespace, mount, inode, of_mount: flags & NAME_MOUNT_ROOT != 0 };
    name.subvolume = fields.take_field();
    let rest = fields.rest();
    if rest.len() < name_bytes {
        let (actual, expected) = (NAME_BYTES + rest.len(), NAME_BYTES + name_bytes);
        return Err(DecodeError::Short { kind: 9, actual, expected });
    }
    if flags & NAME_TRUNCATED == 0 {
        let text = rest[..name_bytes].split(|&byte| byte == 0).next().unwrap_or_default();
        name.name = path_text(text);
    }
    Ok(name)
}

/// Makes "/directory/name" of "name\0directory\0". A path too deep to be read whole begins "…/".
fn join_names(names: &[u8], truncated: bool) -> String {
    let mut path = String::new();
    if truncated {
        path.push('…');
    }
    if names.is_empty() {
        path.push('/');
    }
    for name in names.split(|&byte| byte == 0).filter(|name| !name.is_empty()).rev() {
        path.push('/');
        path.push_str(&path_text(name));
    }
    path
}

pub const KEY_BYTES: usize = 112;

/// F2FS_AREA_BITS of event.h.
const F2FS_AREA_BITS: u32 = 21;

/// ANY_FILE of event.h: a file whose number was not kept.
pub const ANY_FILE: u64 = u64::MAX;

/// Runs of bios without records, and whose rules look at the same facts.
#[derive(Debug, Clone, PartialEq)]
pub struct CountedRuns {
    pub bio: Bio,
    pub run: Run,
    pub runs: u64,
    pub bytes: u64,
}

impl CountedRuns {
    /// A sum by its key.
    pub fn decode(key: &[u8; KEY_BYTES], runs: u64, bytes: u64) -> Self {
        let mut fields = Fields::new(key);
        let (mut bio, mut run) = (Bio::default(), Run::default());
        bio.end_io = fields.take_field();
        bio.buffer_end_io = fields.take_field();
        run.operations = fields.take_field();
        run.inode = fields.take_field();
        let detail: u64 = fields.take_field();
        run.subvolume = fields.take_field();
        bio.holder = fields.text(8);
        bio.comm = fields.take_field();
        bio.device = fields.take_field();
        bio.partition_device = fields.take_field();
        bio.flags = fields.take_field();
        run.flags = fields.take_field();
        run.magic = fields.take_field();
        run.filesystem = fields.take_field();
        run.generation = fields.take_field();
        run.mode = fields.take_field();
        bio.journal_block_type = fields.take_field();
        bio.kernel_thread = fields.take_field();
        match run.magic {
            BTRFS_MAGIC => run.detail = detail,
            F2FS_MAGIC => run.file_offset_bytes = detail << F2FS_AREA_BITS,
            _ => {}
        }
        CountedRuns { bio, run, runs, bytes }
    }
}

#[cfg(test)]
#[path = "decode_test.rs"]
mod tests;
