//! Puts a modelled flash disk into states that a power cut may leave of what it recorded, and reads
//! what its slots hold then, by its files in /sys/block (kernel/flash/power_cut.h). They stay open,
//! and many slots go by one call: in User Mode Linux each takes two switches between processes.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::flash::{
    FlashRecordError, PAGE_BYTES, RECORD, RecordCommand, SECTORS, SLOT_BYTES, read_items, refusal,
    word,
};

const CHOSEN_BYTES: usize = 8 + 4 * SECTORS;

/// The choice of a sector that cannot be read until it is written (FLASH_UNREADABLE_PART).
pub const UNREADABLE: u32 = u32::MAX;

/// The choice for one slot: of each sector the number of a piece plus one, 0 for what was
/// before, or `UNREADABLE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChosenSlot {
    pub slot: u64,
    pub pieces: [u32; SECTORS],
}

/// The files of a disk that put it into states.
pub struct StateFiles {
    record: File,
    record_path: PathBuf,
    choice: File,
    choice_path: PathBuf,
}

impl StateFiles {
    /// Open those of the disk with this folder.
    ///
    /// # Errors
    /// If it is no modelled one.
    pub fn open(folder: &Path) -> Result<Self, FlashRecordError> {
        let (record_path, choice_path) = (folder.join(RECORD), folder.join("flash_power_cut"));
        let open = |path: &Path| {
            File::options().write(true).open(path).map_err(refusal("take commands", path))
        };
        let (record, choice) = (open(&record_path)?, open(&choice_path)?);
        Ok(Self { record, record_path, choice, choice_path })
    }

    /// Tells the device.
    ///
    /// # Errors
    /// As `write_command`.
    pub fn write_command(&self, command: RecordCommand) -> Result<(), FlashRecordError> {
        let what = command.words();
        let written = self.record.write_all_at(what.as_bytes(), 0);
        written.map_err(refusal(&what, &self.record_path))
    }

    /// Has slots of the disk hold what is chosen, after a `Clear` or `Restore`.
    ///
    /// # Errors
    /// If somebody has the disk open, the record has no such piece, or memory ran out.
    pub fn choose(&self, chosen: &[ChosenSlot]) -> Result<(), FlashRecordError> {
        let mut place = 0;
        for some in chosen.chunks(PAGE_BYTES / CHOSEN_BYTES) {
            let mut bytes = Vec::with_capacity(PAGE_BYTES);
            for slot in some {
                bytes.extend(slot.slot.to_ne_bytes());
                slot.pieces.iter().for_each(|piece| bytes.extend(piece.to_ne_bytes()));
            }
            let written = self.choice.write_all_at(&bytes, place);
            written.map_err(refusal("choose slots", &self.choice_path))?;
            place += bytes.len() as u64;
        }
        Ok(())
    }
}

/// The contents of a disk's slots, while nobody has it open, and which of them change.
pub struct SlotContents {
    file: File,
    path: PathBuf,
    changes: File,
    changes_path: PathBuf,
}

impl SlotContents {
    /// Open the disk with this folder.
    ///
    /// # Errors
    /// If it is no modelled one.
    pub fn open(folder: &Path) -> Result<Self, FlashRecordError> {
        let (path, changes_path) = (folder.join("flash_contents"), folder.join("flash_changes"));
        let file = File::open(&path).map_err(refusal("show slots", &path))?;
        let changes = File::open(&changes_path).map_err(refusal("show slots", &changes_path))?;
        Ok(Self { file, path, changes, changes_path })
    }

    /// Slots whose contents may have changed since this was asked last.
    ///
    /// # Errors
    /// If somebody has the disk open, or no memory was left to note one.
    pub fn read_changes(&self) -> Result<Vec<u64>, FlashRecordError> {
        read_items(&self.changes, &self.changes_path, 8, |item| Some(word(item, 0)))
    }

    /// Reads one.
    ///
    /// # Errors
    /// If somebody has the disk open.
    pub fn read(&self, slot: u64) -> Result<[u8; SLOT_BYTES], FlashRecordError> {
        let mut content = [0; SLOT_BYTES];
        let read = self.file.read_exact_at(&mut content, slot * SLOT_BYTES as u64);
        read.map_err(refusal("show a slot", &self.path))?;
        Ok(content)
    }
}

/// Reads contents of slots many at a time, by asynchronous I/O (io_submit(2)), as a file of sysfs
/// gives one slot a call.
pub struct SlotBatch {
    contents: Vec<[u8; SLOT_BYTES]>,
    /// The kernel's name of the queue; none where there cannot be one.
    queue: Option<libc::c_ulong>,
}

/// A request of a queue, and what came of it (include/uapi/linux/aio_abi.h).
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct QueuedRead {
    data: u64,
    key_and_flags: u64,
    operation: u16,
    priority: i16,
    descriptor: i32,
    buffer: u64,
    length: u64,
    offset: i64,
    reserved: u64,
    flags: u32,
    descriptor_of_result: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct QueueEvent {
    data: u64,
    request: u64,
    result: i64,
    second_result: i64,
}

impl SlotBatch {
    /// The most slots of one call.
    pub const MOST: usize = 64;

    /// Return the contents of slots, in their order.
    ///
    /// # Errors
    /// If somebody has the disk open.
    pub fn read(
        &mut self,
        source: &SlotContents,
        slots: &[u64],
    ) -> Result<&[[u8; SLOT_BYTES]], FlashRecordError> {
        // Before Linux 5.12 files of sysfs take no such request.
        let is_read = self.queue.is_some_and(|queue| self.read_by_queue(queue, source, slots));
        if !is_read {
            for (content, slot) in self.contents.iter_mut().zip(slots) {
                *content = source.read(*slot)?;
            }
        }
        Ok(&self.contents[..slots.len()])
    }

    /// Return whether all of them were read.
    fn read_by_queue(
        &mut self,
        queue: libc::c_ulong,
        source: &SlotContents,
        slots: &[u64],
    ) -> bool {
        let mut requests = [QueuedRead::default(); Self::MOST];
        let mut events = [QueueEvent::default(); Self::MOST];
        for ((request, content), slot) in requests.iter_mut().zip(&mut self.contents).zip(slots) {
            request.descriptor = source.file.as_raw_fd();
            request.buffer = content.as_mut_ptr() as u64;
            request.length = SLOT_BYTES as u64;
            request.offset = (slot * SLOT_BYTES as u64).cast_signed();
        }
        let pointers: Vec<*const QueuedRead> =
            requests[..slots.len()].iter().map(|it| it as _).collect();
        // SAFETY: requests and buffers outlive the call, and are done when the next one returns.
        let taken =
            unsafe { libc::syscall(libc::SYS_io_submit, queue, pointers.len(), pointers.as_ptr()) };
        if taken <= 0 {
            return false;
        }
        let no_limit = std::ptr::null::<libc::timespec>();
        // SAFETY: there is room for as many events as there are requests.
        let done = unsafe {
            libc::syscall(
                libc::SYS_io_getevents,
                queue,
                taken,
                taken,
                events.as_mut_ptr(),
                no_limit,
            )
        };
        assert_eq!(done, taken, "no signal is handled here, and no other request is in the queue");
        let whole = |event: &QueueEvent| event.result == SLOT_BYTES as i64;
        taken as usize == slots.len() && events[..slots.len()].iter().all(whole)
    }
}

impl Default for SlotBatch {
    fn default() -> Self {
        let mut queue: libc::c_ulong = 0;
        // SAFETY: it writes to the number alone.
        let failed = unsafe { libc::syscall(libc::SYS_io_setup, Self::MOST, &raw mut queue) };
        let contents = vec![[0; SLOT_BYTES]; Self::MOST];
        Self { contents, queue: (failed == 0).then_some(queue) }
    }
}

impl Drop for SlotBatch {
    fn drop(&mut self) {
        if let Some(queue) = self.queue {
            // SAFETY: no request is left in it.
            unsafe { libc::syscall(libc::SYS_io_destroy, queue) };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn slots_are_read_in_batches_as_one_by_one() {
        let folder = tempfile::tempdir().unwrap();
        let slots = SlotBatch::MOST as u64 + 3;
        let content = |slot: u64| [(slot % 251) as u8 + 1; SLOT_BYTES];
        let bytes: Vec<u8> = (0..slots).flat_map(content).collect();
        fs::write(folder.path().join("flash_contents"), bytes).unwrap();
        fs::write(folder.path().join("flash_changes"), 7_u64.to_ne_bytes()).unwrap();
        let contents = SlotContents::open(folder.path()).unwrap();
        assert_eq!(contents.read_changes().unwrap(), [7]);
        let order: Vec<u64> = (0..slots).rev().collect();
        let mut batch = SlotBatch::default();
        for chunk in order.chunks(SlotBatch::MOST) {
            let result = batch.read(&contents, chunk).unwrap();
            assert!(result.iter().zip(chunk).all(|(bytes, slot)| *bytes == content(*slot)));
            assert_eq!(result.len(), chunk.len());
        }
        assert!(
            batch.queue.is_some_and(|queue| { batch.read_by_queue(queue, &contents, &[7, 2]) })
        );
        assert!(batch.read(&contents, &[slots]).is_err(), "there is none");
    }

    #[test]
    fn chosen_slots_are_written_in_the_modules_layout() {
        let folder = tempfile::tempdir().unwrap();
        for name in [RECORD, "flash_power_cut"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let chosen = vec![ChosenSlot { slot: 5, pieces: [1, 1, 1, 1, 0, 0, 0, 2] }; 200];
        let files = StateFiles::open(folder.path()).unwrap();
        files.choose(&chosen).unwrap();
        files.write_command(RecordCommand::Restore(1)).unwrap();
        assert_eq!(fs::read(folder.path().join(RECORD)).unwrap(), b"restore 1");
        let bytes = fs::read(folder.path().join("flash_power_cut")).unwrap();
        assert_eq!(bytes.len(), 200 * CHOSEN_BYTES);
        assert_eq!((bytes[0], bytes[8], bytes[36]), (5, 1, 2));
    }
}
