//! Whether there is room for a workload on a filesystem that other programs use too. Checks for the
//! least that it will write before anything is written; if it becomes full later, reports that.

use std::path::Path;

use anyhow::Context;

use crate::record::sqlite::Sharing;
use crate::record::{Access, SqliteSettings, SqliteWorkload, WorkloadSettings};
use crate::workload::WorkloadError;

/// Bytes of a row of SQLite's beside its value: record header, key and cell pointer, at the least
/// (sqlite.org/fileformat2.html, "B-tree Pages").
const ROW_BYTES: u64 = 8;

/// What a workload takes at the least.
#[derive(Debug, PartialEq, Eq)]
pub struct Need {
    pub bytes: u64,
    pub files: u64,
}

impl Need {
    /// Of a case; where a time decides how much is done, of what there is at first alone.
    pub fn of(settings: &WorkloadSettings) -> Self {
        match settings {
            WorkloadSettings::FileWrite(settings) => {
                let appended = settings.plan().count().unwrap_or(0);
                let each = settings.file_bytes.saturating_mul(settings.threads.get());
                let append = settings.access == Access::Append;
                let bytes =
                    if append { appended.saturating_mul(settings.record_bytes) } else { each };
                Self { bytes, files: settings.threads.get() }
            }
            WorkloadSettings::FileRead(settings) => Self {
                bytes: settings.file_bytes.saturating_mul(settings.threads.get()),
                files: settings.threads.get(),
            },
            WorkloadSettings::FileMetadata(settings) => {
                Self { bytes: 0, files: settings.plan().count().unwrap_or(0) }
            }
            // What its files take is known once its script is read.
            WorkloadSettings::Replay(_) => Self { bytes: 0, files: 0 },
            WorkloadSettings::Sqlite(settings) => Self::of_databases(settings),
        }
    }

    fn of_databases(settings: &SqliteSettings) -> Self {
        let sets = match settings.sharing {
            Sharing::Own => settings.connections.get(),
            Sharing::Shared => 1,
        };
        let databases = sets.saturating_mul(settings.databases.get());
        let initial = settings.initial_rows.saturating_mul(settings.tables.get());
        let initial = initial.saturating_mul(databases);
        let inserted = match settings.workload {
            SqliteWorkload::Insert => settings.plan().count().unwrap_or(0),
            _ => 0,
        };
        let inserted = inserted
            .saturating_mul(settings.statements.get())
            .saturating_mul(settings.databases.get());
        let rows = initial.saturating_add(inserted);
        let bytes = rows.saturating_mul(settings.value_bytes + ROW_BYTES);
        Self { bytes, files: databases }
    }

    /// Refuses a filesystem that has less to give, to a user without privileges.
    ///
    /// # Errors
    /// With what is needed and what there is.
    pub fn refuse(&self, directory: &Path) -> anyhow::Result<()> {
        let room = rustix::fs::statvfs(directory)
            .with_context(|| format!("statvfs of {}", directory.display()))?;
        let free = room.f_bavail.saturating_mul(room.f_frsize);
        anyhow::ensure!(
            self.bytes <= free,
            "not enough room: the workload takes at least {} bytes, and the filesystem of {} has \
             {free} free; make room, ask for less, or name another directory",
            self.bytes,
            directory.display()
        );
        // Btrfs and others make inodes as they go, and say 0 of 0.
        anyhow::ensure!(
            room.f_files == 0 || self.files <= room.f_favail,
            "not enough room: the workload makes {} files, and the filesystem of {} has {} inodes \
             free; ask for less, or name another directory",
            self.files,
            directory.display(),
            room.f_favail
        );
        Ok(())
    }
}

/// Adds to an error that the filesystem was full what can be done about it.
pub fn explain(error: anyhow::Error, directory: &Path) -> anyhow::Error {
    // A write that is cut short gives no error at all (write(2)): then what is left tells.
    let room = rustix::fs::statvfs(directory);
    let none_left = room.is_ok_and(|room| room.f_blocks > 0 && room.f_bavail == 0);
    if !is_full(&error) && !none_left {
        return error;
    }
    let parent = directory.parent().unwrap_or(directory).display();
    error.context(format!(
        "the filesystem of {parent} became full while the workload ran, and what it wrote is \
         removed; make room, ask for less, or name another directory"
    ))
}

/// Whether an error is that of a full disk or quota.
fn is_full(error: &anyhow::Error) -> bool {
    match error.downcast_ref::<WorkloadError>() {
        Some(WorkloadError::Sqlite { source, .. }) => {
            source.sqlite_error_code() == Some(rusqlite::ErrorCode::DiskFull)
        }
        Some(WorkloadError::File { source, .. }) => {
            matches!(source.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::errors::text;
    use crate::record::file::tests::{metadata_settings, write_settings};

    #[test]
    fn room_is_asked_for_before_anything_is_written() {
        let directory = Path::new("/dev/shm");
        let mut settings = write_settings();
        Need::of(&WorkloadSettings::FileWrite(settings.clone())).refuse(directory).unwrap();
        settings.file_bytes = 1 << 60;
        let error = Need::of(&WorkloadSettings::FileWrite(settings)).refuse(directory).unwrap_err();
        assert!(error.to_string().contains("at least 1152921504606846976 bytes"), "{error}");
        let mut settings = metadata_settings();
        settings.transactions = 1 << 60;
        let need = Need::of(&WorkloadSettings::FileMetadata(settings));
        assert!(need.refuse(directory).unwrap_err().to_string().contains("inodes"));
    }

    #[test]
    fn a_full_disk_is_told_as_that_and_another_error_is_left_alone() {
        let error = |code| {
            let source = std::io::Error::from_raw_os_error(code);
            let error = WorkloadError::File { step: "pwrite".into(), path: "data".into(), source };
            text(&explain(error.into(), Path::new("/mnt/private")))
        };
        assert!(error(libc::ENOSPC).starts_with("the filesystem of /mnt became full"));
        assert!(error(libc::EDQUOT).contains("became full"));
        assert_eq!(error(libc::EIO), "pwrite data: Input/output error (os error 5)");
    }
}
