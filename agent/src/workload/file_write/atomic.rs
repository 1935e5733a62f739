//! Writes of which a power cut leaves all or nothing, where kernel, filesystem and device can
//! (RWF_ATOMIC of pwritev2(2), Linux 6.11): what a file takes of them, as statx(2) says.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

use rustix::io::ReadWriteFlags;

use crate::workload::error::{WorkloadError, step_error};

/// RWF_ATOMIC (include/uapi/linux/fs.h), which rustix 1.1 does not have.
pub const RWF_ATOMIC: ReadWriteFlags = ReadWriteFlags::from_bits_retain(0x40);

/// Refuses records that a file does not take by atomic writes.
///
/// # Errors
/// If it takes none, or none of that length.
pub fn refuse(file: &File, path: &Path, record_bytes: u64) -> Result<(), WorkloadError> {
    let unit_bytes = unit_bytes(file).map_err(step_error("statx", path))?;
    refusal(unit_bytes, record_bytes).map_or(Ok(()), |what| Err(WorkloadError::refusal(what)))
}

/// Return the least and the most bytes of an atomic write to a file; none where it takes none.
fn unit_bytes(file: &File) -> io::Result<Option<(u64, u64)>> {
    // SAFETY: all its fields are integers, of which zeros are valid.
    let mut found: libc::statx = unsafe { std::mem::zeroed() };
    let path = CString::default();
    // SAFETY: the path ends in a zero, and `found` is ours alone.
    let result = unsafe {
        libc::statx(
            file.as_raw_fd(),
            path.as_ptr(),
            libc::AT_EMPTY_PATH,
            libc::STATX_WRITE_ATOMIC,
            &raw mut found,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    let unit_bytes = (found.stx_atomic_write_unit_min, found.stx_atomic_write_unit_max);
    let is_there = found.stx_mask & libc::STATX_WRITE_ATOMIC != 0 && unit_bytes.1 > 0;
    Ok(is_there.then(|| (unit_bytes.0.into(), unit_bytes.1.into())))
}

/// Say why records of this length cannot be written so; none where they can.
fn refusal(unit_bytes: Option<(u64, u64)>, record_bytes: u64) -> Option<String> {
    let Some((least, most)) = unit_bytes else {
        return Some(
            "sync_mode rwf_atomic: by statx the file takes no atomic writes; that needs ext4 or \
             XFS of Linux 6.13, and a device that makes them (device.atomic_write_bytes), without \
             which XFS can from Linux 6.16 on"
                .to_owned(),
        );
    };
    let is_taken = record_bytes.is_power_of_two() && (least..=most).contains(&record_bytes);
    (!is_taken).then(|| {
        format!(
            "sync_mode rwf_atomic: an atomic write has a power of two of {least} to {most} bytes \
             here, and record_bytes is {record_bytes}"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_is_taken_where_statx_says_so_and_refused_with_what_it_says() {
        assert_eq!(refusal(Some((4096, 16384)), 8192), None);
        for record_bytes in [2048, 12288, 32768] {
            let found = refusal(Some((4096, 16384)), record_bytes).unwrap();
            assert!(found.contains("4096 to 16384") && found.contains(&record_bytes.to_string()));
        }
        assert!(refusal(None, 4096).unwrap().contains("device.atomic_write_bytes"));
    }

    #[test]
    fn a_file_in_memory_takes_none() {
        let file = tempfile::tempfile_in("/dev/shm").unwrap();
        assert_eq!(unit_bytes(&file).unwrap(), None);
        assert!(refuse(&file, Path::new("data"), 4096).unwrap_err().is_wrong_use());
    }
}
