//! Decodes the records of the attribution program (kernel/block/event.h). Reads the bytes of the
//! ring, produces typed records; a record that is too short or of an unknown kind is an error.

use super::kernel::{BTRFS_MAGIC, F2FS_MAGIC};
use crate::byte_text::{self, path_text};
use crate::tracer::records::{
    Bio, Change, JournalTransaction, Name, PathRecord, Record, RequestRecord, Root, Run, Sync,
    UringOutcome,
};

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
    #[error("a record is of the unknown kind {0}")]
    UnknownKind(u32),
}

/// Decodes a sequence of (length u32, record), as it comes out of the ring.
pub fn decode_all(mut rest: &[u8]) -> impl Iterator<Item = Result<Record, DecodeError>> {
    std::iter::from_fn(move || {
        let (length, after) = rest.split_first_chunk::<4>()?;
        let length = u32::from_le_bytes(*length) as usize;
        let Some((record, after)) = after.split_at_checked(length) else {
            rest = &[];
            let short = DecodeError::Short { kind: 0, actual: after.len(), expected: length };
            return Some(Err(short));
        };
        rest = after;
        Some(decode(record))
    })
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
    let kind = fields.u32();
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
        2 => Record::Run(decode_run(fields)),
        3 => Record::Path(decode_path(fields)?),
        4 => Record::SyncBegin(decode_sync(fields)),
        5 => Record::SyncEnd(decode_sync(fields)),
        6 => Record::Issue(decode_request(fields)),
        7 => Record::Complete(decode_request(fields)),
        8 => Record::Change(decode_change(fields)),
        9 => Record::Name(decode_name(fields)?),
        10 => Record::BioEnd(decode_request(fields)),
        11 => Record::Range(decode_request(fields)),
        12 => Record::Commit(decode_transaction(fields)),
        13 => Record::Waits(decode_transaction(fields)),
        _ => Record::SyncWorker(decode_sync(fields)),
    })
}

// The fields of a struct literal are evaluated in the order written, which here is event.h's.

fn decode_bio(mut fields: Fields) -> Result<Record, DecodeError> {
    let mut bio = Bio {
        device: fields.u32(),
        time_ns: fields.u64(),
        serial: fields.u64(),
        sector: fields.u64(),
        length_bytes: fields.u32(),
        flags: fields.u32(),
        end_io: fields.u64(),
        buffer_end_io: fields.u64(),
        partition_sector: fields.u64(),
        partition_device: fields.u32(),
        journal_block_type: fields.u8(),
        kernel_thread: fields.u8() != 0,
        ..Bio::default()
    };
    let has_run = fields.u8() != 0;
    let has_contents = fields.u8() != 0;
    bio.pid = fields.u32();
    bio.tid = fields.u32();
    bio.comm = fields.text(16);
    if has_contents {
        bio.buffer_contents = Some(fields.bytes());
    } else {
        bio.buffer_type = fields.text(16);
    }
    bio.call = Some(fields.u32()).filter(|&call| call != NO_CALL);
    bio.call_flags = fields.u32();
    bio.holder = fields.text(8);
    bio.address = fields.u64();
    let behind = fields.rest();
    if has_run && behind.len() < RUN_BYTES {
        let (actual, expected) = (BIO_BYTES + behind.len(), BIO_BYTES + RUN_BYTES);
        return Err(DecodeError::Short { kind: 1, actual, expected });
    }
    let run = has_run.then(|| {
        let mut fields = Fields::new(behind);
        fields.skip(4);
        decode_run(fields)
    });
    Ok(Record::Bio(bio, run))
}

fn decode_run(mut fields: Fields) -> Run {
    Run {
        flags: fields.u32(),
        serial: fields.u64(),
        offset_bytes: fields.u32(),
        length_bytes: fields.u32(),
        file_offset_bytes: fields.u64(),
        inode: fields.u64(),
        generation: fields.u32(),
        filesystem: fields.u32(),
        magic: fields.u32(),
        mode: fields.u32(),
        links: fields.u32(),
        content: fields.u32(),
        operations: fields.u64(),
        size_bytes: fields.u64(),
        detail: fields.u64(),
        subvolume: fields.u64(),
    }
}

fn decode_path(mut fields: Fields) -> Result<PathRecord, DecodeError> {
    let mut path = PathRecord {
        filesystem: fields.u32(),
        time_ns: fields.u64(),
        inode: fields.u64(),
        generation: fields.u32(),
        mode: fields.u32(),
        links: fields.u32(),
        ..PathRecord::default()
    };
    let flags = fields.u32();
    path.size_bytes = fields.u64();
    let names_bytes = fields.u32() as usize;
    path.disk = fields.u32();
    path.subvolume = fields.u64();
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

fn decode_sync(mut fields: Fields) -> Sync {
    Sync {
        call: fields.u32(),
        time_ns: fields.u64(),
        inode: fields.u64(),
        generation: fields.u32(),
        filesystem: fields.u32(),
        disk: fields.u32(),
        pid: fields.u32(),
        tid: fields.u32(),
        comm: fields.text(16),
        flags: fields.u32(),
        request: fields.u64(),
        subvolume: fields.u64(),
    }
}

fn decode_change(mut fields: Fields) -> Change {
    let mut change = Change {
        changes: fields.u32(),
        time_ns: fields.u64(),
        inode: fields.u64(),
        generation: fields.u32(),
        filesystem: fields.u32(),
        disk: fields.u32(),
        pid: fields.u32(),
        tid: fields.u32(),
        subvolume: 0,
    };
    fields.skip(4);
    change.subvolume = fields.u64();
    change
}

fn decode_name(mut fields: Fields) -> Result<Name, DecodeError> {
    let mut name = Name {
        call: fields.u32(),
        time_ns: fields.u64(),
        inode: fields.u64(),
        generation: fields.u32(),
        filesystem: fields.u32(),
        pid: fields.u32(),
        tid: fields.u32(),
        ..Name::default()
    };
    let flags = fields.u32();
    name.second = flags & NAME_SECOND != 0;
    name.exchanges = flags & NAME_EXCHANGE != 0;
    name.outcome = match flags & (NAME_OVER | NAME_FAILED) {
        0 => None,
        NAME_OVER => Some(UringOutcome::Done),
        _ => Some(UringOutcome::Failed),
    };
    name.elsewhere = flags & NAME_ELSEWHERE != 0;
    let name_bytes = fields.u32() as usize;
    name.request = fields.u64();
    let inode = fields.u64();
    let (mount, namespace) = (fields.u32(), fields.u32());
    name.root = Root { namespace, mount, inode, of_mount: flags & NAME_MOUNT_ROOT != 0 };
    name.subvolume = fields.u64();
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

fn decode_transaction(mut fields: Fields) -> JournalTransaction {
    JournalTransaction {
        number: fields.u32(),
        time_ns: fields.u64(),
        caller: fields.u64(),
        device: fields.u32(),
    }
}

fn decode_request(mut fields: Fields) -> RequestRecord {
    RequestRecord {
        device: fields.u32(),
        time_ns: fields.u64(),
        request: fields.u64(),
        sector: fields.u64(),
        length_bytes: fields.u32(),
        flags: fields.u32(),
        bio_count: fields.u32(),
        error: fields.u32(),
        origin: fields.u64(),
    }
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
        bio.end_io = fields.u64();
        bio.buffer_end_io = fields.u64();
        run.operations = fields.u64();
        run.inode = fields.u64();
        let detail = fields.u64();
        run.subvolume = fields.u64();
        bio.holder = fields.text(8);
        bio.comm = fields.text(16);
        bio.device = fields.u32();
        bio.partition_device = fields.u32();
        bio.flags = fields.u32();
        run.flags = fields.u32();
        run.magic = fields.u32();
        run.filesystem = fields.u32();
        run.generation = fields.u32();
        run.mode = fields.u32();
        bio.journal_block_type = fields.u8();
        bio.kernel_thread = fields.u8() != 0;
        match run.magic {
            BTRFS_MAGIC => run.detail = detail,
            F2FS_MAGIC => run.file_offset_bytes = detail << F2FS_AREA_BITS,
            _ => {}
        }
        CountedRuns { bio, run, runs, bytes }
    }
}

/// Takes little-endian fields off the front of a record whose length was checked.
struct Fields<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl<'a> Fields<'a> {
    /// At the beginning of `bytes`.
    fn new(bytes: &'a [u8]) -> Self {
        Fields { bytes, position: 0 }
    }

    /// The next bytes.
    fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut field = [0; N];
        field.copy_from_slice(&self.bytes[self.position..self.position + N]);
        self.position += N;
        field
    }

    /// The next u8.
    fn u8(&mut self) -> u8 {
        u8::from_le_bytes(self.bytes())
    }

    /// The next u32.
    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.bytes())
    }

    /// The next u64.
    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.bytes())
    }

    /// Leaves bytes out.
    fn skip(&mut self, count: usize) {
        self.position += count;
    }

    /// A string in a field of `size` bytes, up to its NUL if it has one.
    fn text(&mut self, size: usize) -> String {
        let field = &self.bytes[self.position..self.position + size];
        self.position += size;
        byte_text::comm(field)
    }

    /// Return the bytes behind the fields taken.
    fn rest(&self) -> &'a [u8] {
        &self.bytes[self.position..]
    }
}

#[cfg(test)]
#[path = "decode_test.rs"]
mod tests;
