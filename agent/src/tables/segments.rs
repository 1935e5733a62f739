//! Tables written as they come: each segment a complete Parquet file that is there whole or not at
//! all, so that whatever ends the writer leaves a readable table of what came before.
//!
//!     DIRECTORY/TABLE/000000.parquet ...   rows in order, segment by segment
//!     DIRECTORY/TABLE/now-000000.parquet   rows that may still change, some at a time
//!     DIRECTORY/TABLE.parquet              a table written whole

use std::fs::{self, File as OutputFile};
use std::path::{Path, PathBuf};

use super::write::{Table, WriteError, write_file};

/// A folder of tables under way.
pub struct Segments {
    directory: PathBuf,
    next: u32,
}

impl Segments {
    /// Begins in a folder that is there and empty.
    pub fn new(directory: &Path) -> Self {
        Segments { directory: directory.to_owned(), next: 0 }
    }

    /// Number of the next round of segments; those of one round belong together.
    pub fn begin_round(&mut self) {
        self.next += 1;
    }

    /// Adds rows to a table; none make no segment.
    ///
    /// # Errors
    /// With the file's name, when it cannot be written.
    pub fn append<Row: Table>(&self, rows: &[Row]) -> Result<(), WriteError> {
        if rows.is_empty() {
            return Ok(());
        }
        write_durably(&self.folder_of::<Row>()?.join(format!("{:06}.parquet", self.next)), rows)
    }

    /// Writes a part of a table, in the place of what was there of that part.
    ///
    /// # Errors
    /// With the file's name, when it cannot be written.
    pub fn replace_part<Row: Table>(&self, part: i64, rows: &[Row]) -> Result<(), WriteError> {
        write_durably(&self.folder_of::<Row>()?.join(format!("now-{part:06}.parquet")), rows)
    }

    fn folder_of<Row: Table>(&self) -> Result<PathBuf, WriteError> {
        let folder = self.directory.join(Row::NAME);
        let cannot = |source| WriteError::File { path: folder.clone(), source };
        fs::create_dir_all(&folder).map_err(cannot)?;
        Ok(folder)
    }

    /// Writes a table whole, in the place of what was there of it.
    ///
    /// # Errors
    /// With the file's name, when it cannot be written.
    pub fn replace<Row: Table>(&self, rows: &[Row]) -> Result<(), WriteError> {
        write_durably(&self.directory.join(format!("{}.parquet", Row::NAME)), rows)
    }
}

/// Under another name first, and to the device before it gets its own (rename(2), fsync(2)).
fn write_durably<Row: Table>(path: &Path, rows: &[Row]) -> Result<(), WriteError> {
    let cannot = |source| WriteError::File { path: path.to_owned(), source };
    let partial = path.with_extension("partial");
    write_file(&partial, rows)?;
    OutputFile::open(&partial).and_then(|file| file.sync_all()).map_err(cannot)?;
    fs::rename(&partial, path).map_err(cannot)?;
    let folder = path.parent().unwrap_or(Path::new("/"));
    OutputFile::open(folder).and_then(|folder| folder.sync_all()).map_err(cannot)
}

#[cfg(test)]
mod tests {
    use super::super::rows::PageRun;
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn segments_are_numbered_and_nothing_partial_stays() {
        let directory = tempfile::tempdir().unwrap();
        let mut segments = Segments::new(directory.path());
        let rows = [PageRun::default()];
        segments.append(&rows).unwrap();
        segments.begin_round();
        segments.append::<PageRun>(&[]).unwrap();
        segments.begin_round();
        segments.append(&rows).unwrap();
        segments.replace(&rows).unwrap();
        segments.replace(&rows).unwrap();
        segments.replace_part(3, &rows).unwrap();
        segments.replace_part(3, &rows).unwrap();
        assert_eq!(names(directory.path()), ["page_runs", "page_runs.parquet"]);
        let written = names(&directory.path().join("page_runs"));
        assert_eq!(written, ["000000.parquet", "000002.parquet", "now-000003.parquet"]);
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_named() {
        let segments = Segments::new(Path::new("/proc/no-such-folder"));
        let error = segments.append(&[PageRun::default()]).unwrap_err().to_string();
        assert!(error.contains("/proc/no-such-folder/page_runs"), "{error}");
    }
}
