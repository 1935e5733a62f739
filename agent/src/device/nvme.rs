//! The count of an NVMe disk of its own: asks it for its log page of health, by the driver's ioctl
//! for commands of administration (linux/nvme_ioctl.h). Only root may, and no other disk answers.
//!
//! Source: NVM Express Base Specification 2.0, sections 5.16 (Get Log Page) and 5.16.1.3 (health).

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;

/// _IOWR('N', 0x41, struct nvme_passthru_cmd)
const ADMIN_COMMAND: libc::Ioctl = 0xC048_4E41_u32 as libc::Ioctl;
const GET_LOG_PAGE: u8 = 0x02;
const HEALTH: u32 = 0x02;
const PAGE_BYTES: usize = 512;
/// The log page of the whole disk, and not of a namespace.
const ALL_NAMESPACES: u32 = 0xFFFF_FFFF;
const WAIT_MS: u32 = 1000;

/// The place of "Data Units Written" in the page, and the bytes of a unit: a thousand times 512.
const UNITS_WRITTEN: std::ops::Range<usize> = 48..64;
const UNIT_BYTES: u128 = 512_000;

/// The name of its counter.
pub const LIFETIME_WRITES: &str = "lifetime_write_bytes";

/// struct nvme_passthru_cmd
#[repr(C)]
#[derive(Default)]
struct AdminCommand {
    opcode: u8,
    flags: u8,
    reserved: u16,
    namespace: u32,
    command_words: [u32; 2],
    metadata: u64,
    address: u64,
    metadata_bytes: u32,
    data_bytes: u32,
    more_command_words: [u32; 6],
    timeout_ms: u32,
    result: u32,
}

/// The bytes that a disk says were written to it in its life, in units of 512,000; None of a disk
/// that does not tell. `name` is the kernel's, as nvme0n1.
pub fn lifetime_write_bytes(name: &str) -> Option<i64> {
    let node = name.starts_with("nvme").then(|| Path::new("/dev").join(name))?;
    write_bytes_of(&health(&File::open(node).ok()?)?)
}

/// The log page of health; None where the driver or the disk refuses it.
fn health(disk: &File) -> Option<[u8; PAGE_BYTES]> {
    let mut page = [0; PAGE_BYTES];
    let words = PAGE_BYTES as u32 / 4;
    let mut command = AdminCommand {
        opcode: GET_LOG_PAGE,
        namespace: ALL_NAMESPACES,
        address: page.as_mut_ptr() as u64,
        data_bytes: PAGE_BYTES as u32,
        // The number of words is told less one.
        more_command_words: [(words - 1) << 16 | HEALTH, 0, 0, 0, 0, 0],
        timeout_ms: WAIT_MS,
        ..AdminCommand::default()
    };
    // SAFETY: the kernel reads and writes the command, and writes no more than PAGE_BYTES to the
    // page; both live until it returns.
    let done = unsafe { libc::ioctl(disk.as_raw_fd(), ADMIN_COMMAND, &raw mut command) };
    (done == 0).then_some(page)
}

fn write_bytes_of(page: &[u8; PAGE_BYTES]) -> Option<i64> {
    let units = u128::from_le_bytes(page[UNITS_WRITTEN].try_into().ok()?);
    // 0 says that the disk does not count.
    i64::try_from(units.checked_mul(UNIT_BYTES).filter(|&bytes| bytes > 0)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_as_long_as_the_kernels() {
        // The ioctl's number has it, in bits 16 to 29 (asm-generic/ioctl.h).
        assert_eq!(size_of::<AdminCommand>(), (ADMIN_COMMAND as usize >> 16) & 0x3FFF);
    }

    /// A page as a disk of two years may send it: struct nvme_smart_log of linux/nvme.h.
    fn page(units_written: u128) -> [u8; PAGE_BYTES] {
        let head = [0, 0x37, 0x01, 100, 10, 7, 0]; // 311 K, spare, its threshold, percentage used
        let mut page = [0; PAGE_BYTES];
        page[..head.len()].copy_from_slice(&head);
        let counts: [u128; 10] =
            [88_112, units_written, 2_901_331, 9_120_455, 611, 84, 17_502, 12, 0, 3];
        for (place, count) in (32..).step_by(16).zip(counts) {
            page[place..place + 16].copy_from_slice(&count.to_le_bytes());
        }
        page[192..200].copy_from_slice(&[0xFF; 8]); // minutes of heat
        page[200..202].copy_from_slice(&311_u16.to_le_bytes());
        page
    }

    #[test]
    fn units_written_are_read_from_their_place() {
        assert_eq!(write_bytes_of(&page(77_881)), Some(77_881 * 512_000));
        // More than 32 bits of units, which are 2.2 PB and more.
        assert_eq!(write_bytes_of(&page(1 << 33)), Some((1 << 33) * 512_000));
        assert_eq!(write_bytes_of(&page(u128::MAX)), None, "more than there can be");
    }

    #[test]
    fn a_disk_that_does_not_report_its_writes_tells_nothing() {
        assert_eq!(write_bytes_of(&page(0)), None);
    }

    #[test]
    fn a_file_that_is_no_disk_of_nvme_tells_nothing() {
        assert_eq!(lifetime_write_bytes("sda"), None);
        let file = tempfile::tempfile().unwrap();
        assert!(health(&file).is_none());
    }
}
