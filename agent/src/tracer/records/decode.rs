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
mod tests {
    use super::*;
    use crate::bpf::split_records;
    use crate::tracer::records::{CALL_DIRECT, JournalTransaction};

    /// Lays fields out as the kernel does: little-endian, in order.
    fn bytes(kind: u32, size: usize, fields: &[(usize, u64)]) -> Vec<u8> {
        let mut record = vec![0; size];
        record[..4].copy_from_slice(&kind.to_le_bytes());
        for &(offset, value) in fields {
            let field = value.to_le_bytes();
            let width = 8.min(size - offset);
            record[offset..offset + width].copy_from_slice(&field[..width]);
        }
        record
    }

    #[test]
    fn a_bio_is_decoded_by_the_offsets_of_event_h() {
        let mut record = bytes(1, BIO_BYTES, &[(4, 7), (8, 1000), (16, 5), (24, 2048)]);
        record[32..36].copy_from_slice(&4096u32.to_le_bytes());
        record[36..40].copy_from_slice(&0x801u32.to_le_bytes());
        record[72..76].copy_from_slice(&11u32.to_le_bytes());
        record[76..80].copy_from_slice(&12u32.to_le_bytes());
        record[80..84].copy_from_slice(b"jbd2");
        record[96..103].copy_from_slice(b"xfs_agf");
        record[68] = 2;
        record[69] = 1;
        record[120..124].copy_from_slice(b"ext4");
        record[128..136].copy_from_slice(&0xffff_8880_0000_1000u64.to_le_bytes());
        let Ok(Record::Bio(bio, None)) = decode(&record) else { panic!("not a bio") };
        assert_eq!((bio.device, bio.time_ns, bio.serial, bio.sector), (7, 1000, 5, 2048));
        assert_eq!((bio.length_bytes, bio.flags, bio.pid, bio.tid), (4096, 0x801, 11, 12));
        assert_eq!((bio.comm.as_str(), bio.buffer_type.as_str()), ("jbd2", "xfs_agf"));
        assert_eq!((bio.journal_block_type, bio.kernel_thread), (2, true));
        assert_eq!((bio.holder.as_str(), bio.address), ("ext4", 0xffff_8880_0000_1000));
        record[71] = 1;
        let Ok(Record::Bio(bio, None)) = decode(&record) else { panic!("not a bio") };
        assert_eq!((bio.buffer_type.as_str(), bio.pid), ("", 11));
        assert_eq!(bio.buffer_contents, Some(*b"xfs_agf\0\0\0\0\0\0\0\0\0"));
    }

    #[test]
    fn a_run_is_decoded_by_the_offsets_of_event_h() {
        let fields =
            [(8, 5), (24, 8192), (32, 42), (64, 0xabc), (72, 100), (80, 6 << 32), (88, 257)];
        let mut record = bytes(2, RUN_BYTES, &fields);
        for (offset, value) in [(4, 16u32), (16, 4096), (20, 512), (40, 3), (44, 9), (48, 0xef53)] {
            record[offset..offset + 4].copy_from_slice(&value.to_le_bytes());
        }
        let Ok(Record::Run(run)) = decode(&record) else { panic!("not a run") };
        assert_eq!((run.flags, run.serial, run.offset_bytes, run.length_bytes), (16, 5, 4096, 512));
        assert_eq!((run.file_offset_bytes, run.inode, run.generation), (8192, 42, 3));
        assert_eq!((run.filesystem, run.magic, run.operations), (9, 0xef53, 0xabc));
        assert_eq!((run.size_bytes, run.detail, run.subvolume), (100, 6 << 32, 257));
    }

    #[test]
    fn a_bios_last_run_is_behind_it() {
        let mut record = bytes(1, BIO_BYTES, &[(16, 5)]);
        record[70] = 1;
        let short =
            DecodeError::Short { kind: 1, actual: BIO_BYTES, expected: BIO_BYTES + RUN_BYTES };
        assert_eq!(decode(&record), Err(short));
        record.extend(bytes(2, RUN_BYTES, &[(8, 5), (32, 42)]));
        let Ok(Record::Bio(bio, Some(run))) = decode(&record) else {
            panic!("not a bio with a run")
        };
        assert_eq!((bio.serial, run.serial, run.inode), (5, 5, 42));
    }

    fn path(flags: u64, names: &[u8]) -> Record {
        let mut record = bytes(3, PATH_BYTES, &[(48, names.len() as u64), (56, 259)]);
        record[36..40].copy_from_slice(&(flags as u32).to_le_bytes());
        record.extend_from_slice(names);
        decode(&record).unwrap()
    }

    #[test]
    fn a_file_of_btrfs_is_of_a_subvolume() {
        let Record::Path(path) = path(0, b"f\0") else { panic!("not a path") };
        assert_eq!(path.subvolume, 259);
        let sync = bytes(4, SYNC_BYTES, &[(16, 42), (72, 259)]);
        let Ok(Record::SyncBegin(sync)) = decode(&sync) else { panic!("not a sync") };
        assert_eq!((sync.inode, sync.subvolume), (42, 259));
        let worker = bytes(14, SYNC_BYTES, &[(64, 0xabc)]);
        let Ok(Record::SyncWorker(worker)) = decode(&worker) else { panic!("not a worker") };
        assert_eq!(worker.request, 0xabc);
    }

    #[test]
    fn names_come_from_the_file_up() {
        let name = |record| match record {
            Record::Path(path) => path.path,
            other => panic!("not a path: {other:?}"),
        };
        assert_eq!(name(path(0, b"a.db\0data\0")), "/data/a.db");
        assert_eq!(name(path(0, b"")), "/");
        assert_eq!(name(path(1, b"")), "");
        assert_eq!(name(path(2, b"a.db\0deep\0")), "…/deep/a.db");
    }

    #[test]
    fn a_record_too_short_or_of_an_unknown_kind_is_an_error() {
        let short = DecodeError::Short { kind: 1, actual: BIO_BYTES - 1, expected: BIO_BYTES };
        assert_eq!(decode(&bytes(1, BIO_BYTES, &[])[..BIO_BYTES - 1]), Err(short));
        assert_eq!(decode(&bytes(15, 64, &[])), Err(DecodeError::UnknownKind(15)));
        let cut = bytes(3, PATH_BYTES, &[(48, 10)]);
        assert!(matches!(decode(&cut), Err(DecodeError::Short { kind: 3, .. })));
        assert!(decode(&[]).is_err());
    }

    /// Whatever bytes come: a record or an error, never a panic.
    #[test]
    fn random_bytes_never_panic() {
        let mut seed = 7u64;
        let mut decoded = 0;
        for round in 0..20011 {
            let mut record = Vec::new();
            for _ in 0..round % 40 {
                seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                record.extend_from_slice(&(seed >> 16).to_le_bytes()[..5]);
            }
            if record.len() >= 4 {
                record[..4].copy_from_slice(&(round as u32 % 14).to_le_bytes());
            }
            decoded += u32::from(decode(&record).is_ok());
        }
        assert!(decoded > 1000, "the generator reaches the decoders: {decoded}");
    }

    #[test]
    fn a_change_and_a_name_are_decoded_by_the_offsets_of_event_h() {
        let mut record = bytes(8, CHANGE_BYTES, &[(8, 1000), (16, 42), (48, 257)]);
        for (offset, value) in [(4, 3u32), (24, 5), (28, 7), (32, 8), (36, 11), (40, 12)] {
            record[offset..offset + 4].copy_from_slice(&value.to_le_bytes());
        }
        let Ok(Record::Change(change)) = decode(&record) else { panic!("not a change") };
        assert_eq!((change.changes, change.time_ns, change.inode), (3, 1000, 42));
        assert_eq!((change.generation, change.filesystem, change.disk), (5, 7, 8));
        assert_eq!((change.pid, change.tid, change.subvolume), (11, 12, 257));

        let mut record = bytes(9, NAME_BYTES, &[(8, 1000), (16, 42), (48, 0xabc), (72, 258)]);
        let fields = [(4, 87u32), (24, 5), (28, 7), (32, 11), (36, 12), (40, 2), (44, 6)];
        for (offset, value) in fields {
            record[offset..offset + 4].copy_from_slice(&value.to_le_bytes());
        }
        record[40] |= 64 + 32;
        for (offset, value) in [(56, 256u32), (64, 29), (68, 0xf000_0000)] {
            record[offset..offset + 4].copy_from_slice(&value.to_le_bytes());
        }
        record.extend_from_slice(b"a/b.c\0");
        let Ok(Record::Name(name)) = decode(&record) else { panic!("not a name") };
        assert_eq!((name.call, name.time_ns, name.inode), (87, 1000, 42));
        assert_eq!((name.generation, name.filesystem, name.pid, name.tid), (5, 7, 11, 12));
        assert_eq!((name.second, name.name.as_str()), (true, "a/b.c"));
        assert_eq!((name.request, name.outcome, name.subvolume), (0xabc, None, 258));
        let root = Root { namespace: 0xf000_0000, mount: 29, inode: 256, of_mount: true };
        assert_eq!((name.root, name.elsewhere), (root, true));
        for (flags, outcome) in [(8, UringOutcome::Done), (24, UringOutcome::Failed)] {
            let mut over = bytes(9, NAME_BYTES, &[(48, 0xabc)]);
            over[40] = flags;
            let Ok(Record::Name(name)) = decode(&over) else { panic!("not a name") };
            assert_eq!((name.request, name.outcome), (0xabc, Some(outcome)));
        }
        record.pop();
        assert!(matches!(decode(&record), Err(DecodeError::Short { kind: 9, .. })));
    }

    #[test]
    fn a_bio_says_which_call_its_submitter_is_in() {
        let mut record = bytes(1, BIO_BYTES, &[]);
        record[112..116].copy_from_slice(&18u32.to_le_bytes());
        record[116..120].copy_from_slice(&CALL_DIRECT.to_le_bytes());
        let Ok(Record::Bio(bio, None)) = decode(&record) else { panic!("not a bio") };
        assert_eq!((bio.call, bio.call_flags), (Some(18), CALL_DIRECT));
        record[112..116].copy_from_slice(&u32::MAX.to_le_bytes());
        let Ok(Record::Bio(bio, None)) = decode(&record) else { panic!("not a bio") };
        assert_eq!(bio.call, None);
    }

    #[test]
    fn a_request_is_decoded_by_the_offsets_of_event_h() {
        let mut record =
            bytes(6, REQUEST_BYTES, &[(8, 1000), (16, 0xabc), (24, 2048), (48, 0xdef)]);
        for (offset, value) in [(4, 7u32), (32, 4096), (36, 0x801), (40, 2), (44, 10)] {
            record[offset..offset + 4].copy_from_slice(&value.to_le_bytes());
        }
        let Ok(Record::Issue(request)) = decode(&record) else { panic!("not an issue") };
        assert_eq!((request.device, request.time_ns, request.request), (7, 1000, 0xabc));
        assert_eq!((request.sector, request.length_bytes, request.flags), (2048, 4096, 0x801));
        assert_eq!((request.bio_count, request.error, request.origin), (2, 10, 0xdef));
        record[0] = 11;
        assert_eq!(decode(&record), Ok(Record::Range(request)));
    }

    #[test]
    fn a_transaction_is_decoded_by_the_offsets_of_event_h() {
        let mut record = bytes(12, TRANSACTION_BYTES, &[(8, 1000), (16, 0xabc)]);
        for (offset, value) in [(4, 7u32), (24, 9)] {
            record[offset..offset + 4].copy_from_slice(&value.to_le_bytes());
        }
        let transaction = JournalTransaction { number: 7, time_ns: 1000, caller: 0xabc, device: 9 };
        assert_eq!(decode(&record), Ok(Record::Commit(transaction.clone())));
        record[0] = 13;
        assert_eq!(decode(&record), Ok(Record::Waits(transaction)));
    }

    #[test]
    fn a_truncated_stream_is_an_error() {
        let damaged: Vec<_> = split_records(&[9, 0, 0, 0, 1, 2]).collect();
        assert!(matches!(damaged.as_slice(), [Err(_)]));
        assert_eq!(split_records(&[]).count(), 0);
    }

    /// A key with these fields, by their offsets in event.h.
    fn key(words: &[(usize, u64)], halves: &[(usize, u32)]) -> [u8; KEY_BYTES] {
        let mut key = [0; KEY_BYTES];
        for &(offset, word) in words {
            key[offset..offset + 8].copy_from_slice(&word.to_le_bytes());
        }
        for &(offset, half) in halves {
            key[offset..offset + 4].copy_from_slice(&half.to_le_bytes());
        }
        key
    }

    #[test]
    fn a_key_is_decoded_by_the_offsets_of_event_h() {
        let words = [(0, 0x10), (8, 0x20), (16, 0x30), (24, 12), (32, 7), (40, 257)];
        let halves =
            [(72, 5), (76, 6), (80, 1), (84, 16), (88, 3), (92, 39), (96, 9), (100, 0o100)];
        let mut key = key(&words, &halves);
        key[48..52].copy_from_slice(b"ext4");
        key[56..68].copy_from_slice(b"ext4lazyinit");
        (key[104], key[105]) = (2, 1);
        let CountedRuns { bio, run, runs, bytes } = CountedRuns::decode(&key, 3, 12288);
        assert_eq!((runs, bytes), (3, 12288));
        assert_eq!((bio.end_io, bio.buffer_end_io, bio.flags), (0x10, 0x20, 1));
        assert_eq!((bio.device, bio.partition_device), (5, 6));
        assert_eq!((bio.holder.as_str(), bio.comm.as_str()), ("ext4", "ext4lazyinit"));
        assert_eq!((bio.journal_block_type, bio.kernel_thread), (2, true));
        assert_eq!((run.operations, run.inode, run.detail), (0x30, 12, 0));
        assert_eq!(run.subvolume, 257);
        assert_eq!((run.flags, run.magic, run.filesystem), (16, 3, 39));
        assert_eq!((run.generation, run.mode), (9, 0o100));
    }

    #[test]
    fn counted_runs_keep_the_tree_of_btrfs_and_the_area_of_f2fs() {
        let of = |magic| CountedRuns::decode(&key(&[(32, 3)], &[(88, magic)]), 1, 1).run;
        assert_eq!((of(BTRFS_MAGIC).detail, of(BTRFS_MAGIC).file_offset_bytes), (3, 0));
        assert_eq!((of(F2FS_MAGIC).detail, of(F2FS_MAGIC).file_offset_bytes), (0, 6 << 20));
    }
}
