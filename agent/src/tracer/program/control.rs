//! struct control of kernel/block/event.h: the memory that user space steers the attribution
//! program by, and that the program counts in. Mapped: each side sees every write of the other.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::ptr::NonNull;

use crate::bpf::Symbols;

/// DISKS_LIMIT of kernel/block/event.h: how many disks can be traced at once.
pub const DISKS_LIMIT: usize = 8;

/// The functions that end a write of a buffer_head where that has no function of its own for it.
const BUFFER_ENDS: [&str; 3] = ["bh_end_write", "bh_end_async_write", "journal_end_buffer_io_sync"];

/// The functions that end direct I/O on a device's node; and those that end such a bio, among
/// others, where the caller itself waits for it.
const NODE_ENDS: [&str; 2] = ["blkdev_bio_end_io", "blkdev_bio_end_io_async"];
const WAITING_ENDS: [&str; 3] =
    ["submit_bio_wait_endio", "bio_wait_end_io", "blkdev_bio_end_io_simple"];

/// enum enabled of event.h.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum TracerState {
    Off = 0,
    On = 1,
    /// No new bio has records, but still the requests of those before.
    Ending = 2,
}

/// The fields, as event.h has them.
#[repr(C)]
pub struct Control {
    enabled: u32,
    unmounting: u32,
    disks: [u32; DISKS_LIMIT],
    buffer_end_io: u64,
    buffer_ends: [u64; BUFFER_ENDS.len()],
    direct_end_io: u64,
    direct_counts_later: u64,
    direct_simple_end_io: u64,
    f2fs_direct_end_io: u64,
    xfs_buffer_end_io: u64,
    xfs_log_end_io: u64,
    btrfs_simple_end_io: u64,
    btrfs_first_end_io: u64,
    btrfs_copy_end_io: u64,
    btrfs_packed_write: u64,
    btrfs_packed_read: u64,
    btrfs_direct: u64,
    chain_end_io: u64,
    vmemmap_base: u64,
    page_offset_base: u64,
    bios: u64,
    pub lost_bios: u64,
    pub lost_runs: u64,
    pub lost_paths: u64,
    pub lost_syncs: u64,
    pub lost_requests: u64,
    pub lost_changes: u64,
    session: u64,
    renames: u64,
    pub caught_runs: u64,
    pub counted_bios: u64,
    pub lost_totals: u64,
    pub totals_alone: u64,
    btrfs_stripe_end_io: u64,
    devices: u64,
    aio_sync_work: u64,
    direct_end_work: u64,
    aio_complete: u64,
    node_ends: [u64; NODE_ENDS.len()],
    waiting_ends: [u64; WAITING_ENDS.len()],
}

const _: () = assert!(size_of::<Control>() == 376);

/// The mapped memory of the fields.
pub struct ControlMemory(NonNull<Control>);

impl ControlMemory {
    /// # Safety
    /// It must stay mapped, readable and writable, as long as this lives.
    pub unsafe fn new(place: NonNull<Control>) -> Self {
        ControlMemory(place)
    }

    /// All fields, as of now.
    pub fn read(&self) -> Control {
        // SAFETY: mapped, as `new` demands; the programs may change counters meanwhile, so the
        // read is volatile.
        unsafe { self.0.as_ptr().read_volatile() }
    }

    /// Begins a session about these disks; with totals alone, no bio has records.
    pub fn begin(&mut self, disks: [u32; DISKS_LIMIT], totals_alone: bool) {
        let control = self.0.as_ptr();
        // SAFETY: mapped, as `new` demands. The fields are aligned, and written by user space
        // alone.
        unsafe {
            (&raw mut (*control).disks).write_volatile(disks);
            (&raw mut (*control).unmounting).write_volatile(0);
            (&raw mut (*control).totals_alone).write_volatile(totals_alone.into());
            let session = &raw mut (*control).session;
            session.write_volatile(session.read_volatile() + 1);
        }
        self.set_enabled(TracerState::On);
    }

    /// Set what the programs do from now on.
    pub fn set_enabled(&mut self, enabled: TracerState) {
        // SAFETY: as in `begin`.
        unsafe { (&raw mut (*self.0.as_ptr()).enabled).write_volatile(enabled as u32) }
    }

    /// Set the addresses of the kernel's functions.
    pub fn set_addresses(&mut self, symbols: &Symbols) {
        let control = self.0.as_ptr();
        // SAFETY: as in `begin`.
        let set = |field: *mut u64, name| unsafe { field.write_volatile(symbols.address(name)) };
        // SAFETY: only places in the mapped memory are named, none is read.
        unsafe {
            set(&raw mut (*control).buffer_end_io, "end_bio_bh_io_sync");
            for (place, name) in BUFFER_ENDS.iter().enumerate() {
                set(&raw mut (*control).buffer_ends[place], *name);
            }
            set(&raw mut (*control).direct_end_io, "iomap_dio_bio_end_io");
            set(&raw mut (*control).direct_counts_later, "__iomap_dio_bio_end_io");
            set(&raw mut (*control).direct_simple_end_io, "iomap_dio_simple_end_io");
            set(&raw mut (*control).f2fs_direct_end_io, "f2fs_dio_end_io");
            set(&raw mut (*control).xfs_buffer_end_io, "xfs_buf_bio_end_io");
            set(&raw mut (*control).xfs_log_end_io, "xlog_bio_end_io");
            set(&raw mut (*control).btrfs_simple_end_io, "btrfs_simple_end_io");
            set(&raw mut (*control).btrfs_first_end_io, "btrfs_orig_write_end_io");
            set(&raw mut (*control).btrfs_copy_end_io, "btrfs_clone_write_end_io");
            set(&raw mut (*control).btrfs_packed_write, "end_compressed_bio_write");
            set(&raw mut (*control).btrfs_packed_read, "end_compressed_bio_read");
            let direct = ["btrfs_end_dio_bio", "btrfs_dio_end_io"];
            let direct = direct.into_iter().find(|name| symbols.address(name) != 0);
            set(&raw mut (*control).btrfs_direct, direct.unwrap_or_default());
            set(&raw mut (*control).chain_end_io, "bio_chain_endio");
            if cfg!(target_arch = "aarch64") {
                let (vmemmap, page_offset) = linear_map().unwrap_or_default();
                (&raw mut (*control).vmemmap_base).write_volatile(vmemmap);
                (&raw mut (*control).page_offset_base).write_volatile(page_offset);
            } else {
                set(&raw mut (*control).vmemmap_base, "vmemmap_base");
                set(&raw mut (*control).page_offset_base, "page_offset_base");
            }
            set(&raw mut (*control).btrfs_stripe_end_io, "btrfs_end_bio");
            set(&raw mut (*control).devices, "blockdev_superblock");
            set(&raw mut (*control).aio_sync_work, "aio_fsync_work");
            set(&raw mut (*control).direct_end_work, "iomap_dio_complete_work");
            set(&raw mut (*control).aio_complete, "aio_complete_rw");
            for (place, name) in NODE_ENDS.iter().enumerate() {
                set(&raw mut (*control).node_ends[place], *name);
            }
            for (place, name) in WAITING_ENDS.iter().enumerate() {
                set(&raw mut (*control).waiting_ends[place], *name);
            }
        }
    }
}

/// Programs' headers and notes are within it.
const HEAD_BYTES: usize = 1 << 20;
const PT_NOTE: u64 = 4;

/// Return the address of the first struct page, and that of the first page's bytes; None where the
/// kernel does not say, or root may not read it. The kernel of arm64 turns the address of a struct
/// page into that of the page's bytes by two constants (page_to_virt() of
/// arch/arm64/include/asm/memory.h), which are variables on x86_64. The note VMCOREINFO in the head
/// of /proc/kcore (Linux 4.19; Documentation/admin-guide/kdump/vmcoreinfo.rst) names them from
/// Linux 6.0 on.
fn linear_map() -> Option<(u64, u64)> {
    let file = File::open("/proc/kcore").ok()?;
    let mut head = [0; 64];
    file.read_exact_at(&mut head, 0).ok()?;
    let (table, count) = (word(&head, 32)?, u16::from_le_bytes([head[56], head[57]]));
    let mut entries = vec![0; usize::from(count) * 56];
    file.read_exact_at(&mut entries, table).ok()?;
    // p_type is the lower half of the first word.
    let is_note = |entry: &&[u8]| word(entry, 0).is_some_and(|it| it & 0xffff_ffff == PT_NOTE);
    let note = entries.chunks_exact(56).find(is_note)?;
    let bytes = usize::try_from(word(note, 32)?).ok()?.min(HEAD_BYTES);
    let mut notes = vec![0; bytes];
    file.read_exact_at(&mut notes, word(note, 8)?).ok()?;
    parse_linear_map(&notes)
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

fn parse_linear_map(notes: &[u8]) -> Option<(u64, u64)> {
    let value = |name: &str| {
        let name = format!("\n{name}=");
        let at = notes.windows(name.len()).position(|it| it == name.as_bytes())? + name.len();
        let end = notes[at..].iter().position(|byte| *byte == b'\n')? + at;
        std::str::from_utf8(&notes[at..end]).ok()
    };
    let vmemmap = value("NUMBER(VMEMMAP_START)")?.trim_start_matches("0x");
    let bits: u32 = value("NUMBER(VA_BITS)")?.parse().ok().filter(|bits| *bits < 64)?;
    // PAGE_OFFSET is -(1 << VA_BITS) since Linux 5.4.
    Some((u64::from_str_radix(vmemmap, 16).ok()?, (1_u64 << bits).wrapping_neg()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_note_says_where_pages_are() {
        let note = b"\x0b\0\0\0VMCOREINFO\0\0OSRELEASE=6.1.0\nPAGESIZE=4096\n\
            NUMBER(VA_BITS)=48\nNUMBER(VMEMMAP_START)=0xfffffc0000000000\n\
            NUMBER(VMEMMAP_END)=0xfffffe0000000000\n";
        let found = parse_linear_map(note);
        assert_eq!(found, Some((0xffff_fc00_0000_0000, 0xffff_0000_0000_0000)));
        assert_eq!(parse_linear_map(b"\nNUMBER(VA_BITS)=48\n"), None);
        assert_eq!(parse_linear_map(b""), None);
    }
}
