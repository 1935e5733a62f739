//! Hands out what the disks hold after states were judged, so that the filesystem's checker can
//! look at it outside the guest, where it is not emulated. Reads the slots that changed since the
//! last of these states; produces disk_pages, each content of a slot once, and disk_states.json,
//! which says what is where (jojlab/lab/disk_checks.py is their reader).

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::Context;
use serde_json::json;

use super::disks::until_free;
use crate::device::disk::Disk;
use crate::device::flash_record::{self, RecordCommand, SLOT_BYTES, SlotContents};
use crate::filesystem::check::Checker;

const PAGES: &str = "disk_pages";
const STATES: &str = "disk_states.json";

/// Contents of slots that are handed out: two thirds of the memory that there is for results.
/// States beyond are checked in the guest.
const MOST_PAGES: usize = 32 << 10;

/// Where a slot is all zeroes.
const ZEROES: u32 = 0;

/// Slots that changed on a disk, and which content each has since: its number plus one.
type Changes = Vec<(u64, u32)>;

/// What was handed out so far.
pub struct HandedDisks<'a> {
    disks: &'a [Disk],
    checker: Checker,
    output: &'a Path,
    pages: BufWriter<File>,
    /// Contents by their hash of 128 bits.
    known: HashMap<[u64; 2], u32>,
    states: Vec<Vec<Changes>>,
    is_full: bool,
}

impl<'a> HandedDisks<'a> {
    /// Nothing is handed out yet; the disks note from now on which slots change.
    ///
    /// # Errors
    /// If they cannot.
    pub fn new(disks: &'a [Disk], checker: Checker, output: &'a Path) -> anyhow::Result<Self> {
        for disk in disks {
            until_free(|| flash_record::command(disk.folder(), RecordCommand::Follow))?;
        }
        let path = output.join(PAGES);
        let pages = BufWriter::new(File::create(&path).with_context(|| told(&path))?);
        let (known, states, is_full) = (HashMap::new(), Vec::new(), false);
        Ok(Self { disks, checker, output, pages, known, states, is_full })
    }

    /// Hands out what the disks hold now; false where there is no room for it, and from then on.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn take(&mut self) -> anyhow::Result<bool> {
        if self.is_full {
            return Ok(false);
        }
        let mut slots = Vec::new();
        for disk in self.disks {
            slots.push(until_free(|| flash_record::changes(disk.folder()))?);
        }
        let count: usize = slots.iter().map(Vec::len).sum();
        if self.known.len() + count > MOST_PAGES {
            self.is_full = true;
            return Ok(false);
        }
        let mut state = Vec::new();
        for (disk, slots) in self.disks.iter().zip(slots) {
            let mut changes = Changes::new();
            let contents = SlotContents::open(disk.folder())?;
            for slot in slots {
                changes.push((slot, self.number(&contents.read(slot)?)?));
            }
            state.push(changes);
        }
        self.states.push(state);
        Ok(true)
    }

    /// Which content it is; writes it down if it is a new one.
    fn number(&mut self, content: &[u8; SLOT_BYTES]) -> anyhow::Result<u32> {
        if content.iter().all(|byte| *byte == 0) {
            return Ok(ZEROES);
        }
        let next = u32::try_from(self.known.len()).expect("bounded") + 1;
        let number = *self.known.entry(hash(content)).or_insert(next);
        if number == next {
            self.pages.write_all(content).context(PAGES)?;
        }
        Ok(number)
    }

    /// Writes down what is where.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(mut self) -> anyhow::Result<()> {
        self.pages.flush().context(PAGES)?;
        let sizes: Result<Vec<u64>, _> = self.disks.iter().map(Disk::size_bytes).collect();
        let states = json!({
            "program": self.checker.program,
            "arguments": self.checker.arguments,
            "journal_option": self.checker.journal_option,
            "file_option": self.checker.file_option,
            "disk_bytes": sizes?,
            "states": self.states,
        });
        let path = self.output.join(STATES);
        fs::write(&path, states.to_string()).with_context(|| told(&path))
    }
}

fn told(path: &Path) -> String {
    path.display().to_string()
}

/// Two hashes of 64 bits, by another factor each.
fn hash(content: &[u8; SLOT_BYTES]) -> [u64; 2] {
    let mut hash = [0x9e37_79b9_7f4a_7c15, 0xc2b2_ae3d_27d4_eb4f_u64];
    for word in content.chunks_exact(8) {
        let word = u64::from_ne_bytes(word.try_into().expect("eight bytes"));
        for (own, factor) in hash.iter_mut().zip([0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb]) {
            *own = (*own ^ word).wrapping_mul(factor);
            *own ^= *own >> 29;
        }
    }
    hash
}
