//! A modelled flash disk, by its files in /sys/block (kernel/flash/attributes.c, power_cut.h):
//! reads its statistics, gives it a past, has it refuse a write, and reads the record that it makes
//! of what is written to it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

/// The reason why a modelled disk cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FlashError {
    #[error("cannot age the flash device by {path}: {source}")]
    Ageing { path: PathBuf, source: io::Error },
    #[error("cannot read the flash statistics {path}: {source}")]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("flash statistics, line {line}: \"{text}\" is not \"name value\"")]
    Malformed { line: usize, text: String },
    #[error("flash statistics have no {name}: flash.ko is not of this version")]
    Missing { name: &'static str },
}

/// Gives the device with this folder the past its parameters ask for: filled and overwritten,
/// beside what the host has written.
///
/// # Errors
/// If it is not a modelled disk.
pub fn age(folder: &Path) -> Result<(), FlashError> {
    let path = folder.join("flash_age");
    fs::write(&path, "1").map_err(|source| FlashError::Ageing { path, source })
}

/// Return the counters of the device with this folder, all of one instant; the names are in
/// kernel/flash/model/.
///
/// # Errors
/// With the line, if the file is not as this version of the module writes it.
pub fn statistics(folder: &Path) -> Result<BTreeMap<String, i64>, FlashError> {
    let path = folder.join("flash_statistics");
    let text =
        fs::read_to_string(&path).map_err(|source| FlashError::Unreadable { path, source })?;
    parse_statistics(&text)
}

fn parse_statistics(text: &str) -> Result<BTreeMap<String, i64>, FlashError> {
    let mut statistics = BTreeMap::new();
    for (index, line) in text.lines().enumerate() {
        let malformed = || FlashError::Malformed { line: index + 1, text: line.to_owned() };
        let (name, value) = line.split_once(' ').ok_or_else(malformed)?;
        let value = value.parse().map_err(|_| malformed())?;
        if name.is_empty() || statistics.insert(name.to_owned(), value).is_some() {
            return Err(malformed());
        }
    }
    in_flight(&statistics)?; // an empty or foreign file is not taken for an idle device
    Ok(statistics)
}

fn in_flight(statistics: &BTreeMap<String, i64>) -> Result<i64, FlashError> {
    const NAME: &str = "in_flight";
    statistics.get(NAME).copied().ok_or(FlashError::Missing { name: NAME })
}

/// The file by which a disk refuses its next write or flush, once (kernel/flash/command.c).
const FAULT: &str = "flash_fault";
/// Has a folder for each disk.
const DISKS: &str = "/sys/block";

/// Return the folder of the first modelled disk, on which a filesystem lies; None where there is
/// none, as on raw NAND.
pub fn first_disk() -> Option<PathBuf> {
    let disks = fs::read_dir(DISKS).into_iter().flatten().flatten().map(|disk| disk.path());
    disks.filter(|disk| disk.join(FAULT).exists()).min()
}

/// Has the device with this folder refuse the next write or flush, or none.
///
/// # Errors
/// If it is not a modelled disk.
pub fn set_fault(folder: &Path, is_set: bool) -> io::Result<()> {
    fs::write(folder.join(FAULT), if is_set { "1" } else { "0" })
}

/// Return whether the device has not yet refused what it was to.
///
/// # Errors
/// If it is not a modelled disk.
pub fn has_fault(folder: &Path) -> io::Result<bool> {
    Ok(fs::read_to_string(folder.join(FAULT))?.trim() == "1")
}

/// Sectors of a slot.
pub const SECTORS: usize = 8;

/// Bytes of a slot.
pub const SLOT_BYTES: usize = 4096;

/// The file that takes commands about records.
pub(super) const RECORD: &str = "flash_record";

/// Bytes that sysfs takes or gives at once.
pub(super) const PAGE_BYTES: usize = 4096;
const REQUEST_BYTES: usize = 32;
const PIECE_BYTES: usize = 16 + 16 * SECTORS;
const MOVE_BYTES: usize = 24;

/// The reason why there is no record, or no such state.
#[derive(Debug, thiserror::Error)]
pub enum FlashRecordError {
    #[error("the flash device does not \"{what}\" by {path}: {source}")]
    Refused { what: String, path: PathBuf, source: io::Error },
    #[error("more was written than memory holds a record of")]
    Overflown,
    #[error("{path}: {what}")]
    Malformed { path: PathBuf, what: String },
}

impl FlashRecordError {
    /// Return whether it is only that the device is in use.
    pub fn is_busy(&self) -> bool {
        match self {
            Self::Refused { source, .. } => source.kind() == io::ErrorKind::ResourceBusy,
            _ => false,
        }
    }
}

/// A command about the records of a device: that of a run is 0, that of a recovery is 1.
#[derive(Debug, Clone, Copy)]
pub enum RecordCommand {
    Begin(u8),
    End,
    /// The disk is as before the record began.
    Clear(u8),
    /// The disk is as it was chosen last.
    Restore(u8),
    /// From now on the disk notes which slots change.
    Follow,
}

impl RecordCommand {
    pub(super) fn words(self) -> String {
        match self {
            Self::Begin(number) => format!("begin {number}"),
            Self::End => "end".to_owned(),
            Self::Clear(number) => format!("clear {number}"),
            Self::Restore(number) => format!("restore {number}"),
            Self::Follow => "follow".to_owned(),
        }
    }
}

/// A request that was recorded: a write, a discard, a write of zeroes, or a flush.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedRequest {
    pub issue_ns: i64,
    pub completion_ns: i64,
    pub first_piece: usize,
    pub piece_count: usize,
    pub is_flush: bool,
    pub is_fua: bool,
    /// Whether the host asked that a power cut leave all of it or nothing (REQ_ATOMIC).
    pub is_atomic: bool,
}

/// A request's change of one slot: hashes of the sectors that it wrote, a bit each in
/// `sectors`, and of what was there before the record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedPiece {
    pub slot: u64,
    pub sectors: u8,
    pub after: [u64; SECTORS],
    pub before: [u64; SECTORS],
}

/// A copy of a slot that the device made for itself, to erase the row that it was in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedMove {
    pub slot: u64,
    /// The place of the request that the device served meanwhile, or of the next one if that is
    /// not recorded.
    pub request: usize,
    /// The begin of the erase; none where the row was not erased in the record's time.
    pub erase_ns: Option<i64>,
}

/// All that a device recorded.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct DiskRecord {
    /// In the order of issue.
    pub requests: Vec<RecordedRequest>,
    pub pieces: Vec<RecordedPiece>,
    /// The moves of a device whose profile says that a cut may lose them, in the order of
    /// programming.
    pub moves: Vec<RecordedMove>,
}

/// Tells the device with this folder.
///
/// # Errors
/// If somebody has it open, or it has no such record.
pub fn write_command(folder: &Path, command: RecordCommand) -> Result<(), FlashRecordError> {
    let (path, what) = (folder.join(RECORD), command.words());
    fs::write(&path, &what).map_err(refusal(&what, &path))
}

/// Reads the record of the device with this folder, and of one that `has_moves` those.
///
/// # Errors
/// If there is none, or it is not whole as memory ran out.
pub fn read_record(folder: &Path, has_moves: bool) -> Result<DiskRecord, FlashRecordError> {
    let (requests, pieces) = (read_requests(folder)?, read_pieces(folder)?);
    let moves = if has_moves { read_moves(folder)? } else { Vec::new() };
    Ok(DiskRecord { requests, pieces, moves })
}

/// The requests of the record, in the order of issue.
///
/// # Errors
/// If there is none, or it is not whole as memory ran out.
fn read_requests(folder: &Path) -> Result<Vec<RecordedRequest>, FlashRecordError> {
    let path = folder.join("flash_record_requests");
    read_all(path, REQUEST_BYTES, |item| {
        Some(RecordedRequest {
            issue_ns: i64::try_from(word(item, 0)).ok()?,
            completion_ns: i64::try_from(word(item, 1)).ok()?,
            first_piece: usize::try_from(word(item, 2)).ok()?,
            piece_count: usize::try_from(word(item, 3) & 0xffff_ffff).ok()?,
            is_flush: item[28] != 0,
            is_fua: item[29] != 0,
            is_atomic: item[30] != 0,
        })
    })
}

/// The pieces of the record.
///
/// # Errors
/// As `requests`.
fn read_pieces(folder: &Path) -> Result<Vec<RecordedPiece>, FlashRecordError> {
    let path = folder.join("flash_record_pieces");
    read_all(path, PIECE_BYTES, |item| {
        Some(RecordedPiece {
            slot: word(item, 0),
            sectors: u8::try_from(word(item, 1)).ok()?,
            after: std::array::from_fn(|sector| word(item, 2 + sector)),
            before: std::array::from_fn(|sector| word(item, 2 + SECTORS + sector)),
        })
    })
}

/// The moves of the record.
///
/// # Errors
/// As `requests`.
fn read_moves(folder: &Path) -> Result<Vec<RecordedMove>, FlashRecordError> {
    let path = folder.join("flash_record_moves");
    read_all(path, MOVE_BYTES, |item| {
        let erase_ns = i64::try_from(word(item, 2)).ok()?;
        Some(RecordedMove {
            slot: word(item, 0),
            request: usize::try_from(word(item, 1)).ok()?,
            erase_ns: (erase_ns != 0).then_some(erase_ns),
        })
    })
}

/// Make the error of a step at a file.
pub(super) fn refusal(what: &str, path: &Path) -> impl Fn(io::Error) -> FlashRecordError {
    let (what, path) = (what.to_owned(), path.to_owned());
    move |source| FlashRecordError::Refused { what: what.clone(), path: path.clone(), source }
}

/// The number at a place of an item, in words of 8 bytes.
pub(super) fn word(item: &[u8], place: usize) -> u64 {
    let bytes = item[place * 8..][..8].try_into().expect("eight bytes");
    u64::from_ne_bytes(bytes)
}

fn read_all<Item>(
    path: PathBuf,
    item_bytes: usize,
    decode: impl Fn(&[u8]) -> Option<Item>,
) -> Result<Vec<Item>, FlashRecordError> {
    let file = File::open(&path).map_err(refusal("read", &path))?;
    read_items(&file, &path, item_bytes, decode)
}

pub(super) fn read_items<Item>(
    file: &File,
    path: &Path,
    item_bytes: usize,
    decode: impl Fn(&[u8]) -> Option<Item>,
) -> Result<Vec<Item>, FlashRecordError> {
    let failed = |source| match Errno::from_io_error(&source) {
        Some(Errno::OVERFLOW) => FlashRecordError::Overflown,
        _ => FlashRecordError::Refused { what: "read".into(), path: path.into(), source },
    };
    let mut buffer = vec![0; PAGE_BYTES / item_bytes * item_bytes];
    let mut items = Vec::new();
    loop {
        let offset = items.len() * item_bytes;
        let length = file.read_at(&mut buffer, offset as u64).map_err(failed)?;
        if length == 0 {
            return Ok(items);
        }
        for item in buffer[..length].chunks_exact(item_bytes) {
            items.push(decode(item).ok_or_else(|| FlashRecordError::Malformed {
                path: path.into(),
                what: format!("item {} is none of this version", items.len()),
            })?);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_are_names_and_values() {
        let statistics = parse_statistics("read_requests 3\nbusy_ns 855774\nin_flight 0\n");
        let expected = [("busy_ns", 855_774), ("in_flight", 0), ("read_requests", 3)];
        let expected = expected.map(|(name, value)| (name.to_owned(), value));
        assert_eq!(statistics.expect("well-formed"), BTreeMap::from(expected));
    }

    #[test]
    fn a_malformed_line_is_named() {
        let cases = ["busy_ns", "busy_ns x", " 1", "busy_ns 1 2", "in_flight 0", ""];
        for line in cases {
            let error = parse_statistics(&format!("in_flight 0\n{line}\n")).unwrap_err();
            let text = error.to_string();
            assert!(text.contains("line 2") && text.contains(line), "{text}");
        }
    }

    #[test]
    fn a_number_beyond_i64_is_an_error_and_not_another_number() {
        let text = format!("busy_ns {}\nin_flight 0\n", u64::MAX);
        assert!(matches!(parse_statistics(&text), Err(FlashError::Malformed { line: 1, .. })));
    }

    #[test]
    fn statistics_without_in_flight_are_refused() {
        for text in ["", "busy_ns 1\n"] {
            assert!(matches!(parse_statistics(text), Err(FlashError::Missing { .. })));
        }
    }

    #[test]
    fn records_are_items_of_the_modules_layout() {
        let folder = tempfile::tempdir().unwrap();
        let mut bytes = Vec::new();
        for number in 0..300_u64 {
            for each in [10 + number, 20 + number, 3 * number] {
                bytes.extend(each.to_ne_bytes());
            }
            bytes.extend(3_u32.to_ne_bytes());
            bytes.extend([0, u8::from(number == 7), u8::from(number == 9), 0]);
        }
        fs::write(folder.path().join("flash_record_requests"), bytes).unwrap();
        let found = read_requests(folder.path()).unwrap();
        assert_eq!(found.len(), 300);
        assert_eq!((found[7].issue_ns, found[7].first_piece, found[7].piece_count), (17, 21, 3));
        assert!(found[7].is_fua && !found[8].is_fua && !found[7].is_flush);
        assert!(found[9].is_atomic && !found[8].is_atomic);
    }
}
