//! A segment as it is sent: a tar archive of the tables of schema/fleet/, whose bytes are a pure
//! function of the rows.

use std::io::{self, Cursor};

use parquet::errors::ParquetError;
use sha2::{Digest, Sha256};

use crate::tables::fleet::{Commit, FileLives, FileSum, IoSum, SegmentFacts};
use crate::tables::write::{Table, encode};

/// The rows of a segment.
#[derive(Debug, Default)]
pub struct Segment {
    pub facts: SegmentFacts,
    pub commits: Vec<Commit>,
    pub io_sums: Vec<IoSum>,
    pub file_sums: Vec<FileSum>,
    pub file_lives: Vec<FileLives>,
}

impl Segment {
    /// The archive. Rows are let go as their table is there: memory has a bound.
    ///
    /// # Errors
    /// If a table cannot be encoded, as where memory ends.
    pub fn archive(self) -> Result<Vec<u8>, ParquetError> {
        let mut builder = tar::Builder::new(Vec::new());
        add(&mut builder, vec![self.facts])?;
        add(&mut builder, self.commits)?;
        add(&mut builder, self.io_sums)?;
        add(&mut builder, self.file_sums)?;
        add(&mut builder, self.file_lives)?;
        builder.into_inner().map_err(|error| ParquetError::External(Box::new(error)))
    }
}

fn add<Row: Table>(
    builder: &mut tar::Builder<Vec<u8>>,
    rows: Vec<Row>,
) -> Result<(), ParquetError> {
    let mut table = Vec::new();
    encode(&mut table, &rows)?;
    drop(rows);
    let mut header = tar::Header::new_ustar();
    header.set_size(table.len() as u64);
    header.set_mode(0o644);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    let name = format!("{}.parquet", Row::NAME);
    let added: io::Result<()> = builder.append_data(&mut header, name, Cursor::new(table));
    added.map_err(|error| ParquetError::External(Box::new(error)))
}

/// The name of a segment: 64 hexadecimal digits.
pub fn hash(archive: &[u8]) -> String {
    Sha256::digest(archive).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_rows_make_the_same_archive_of_five_tables() {
        let segment = || {
            Segment { commits: vec![Commit::default(); 3], ..Segment::default() }.archive().unwrap()
        };
        assert_eq!(hash(&segment()), hash(&segment()));
        let archive = segment();
        let mut archive = tar::Archive::new(archive.as_slice());
        let names: Vec<String> = archive
            .entries()
            .unwrap()
            .map(|entry| entry.unwrap().path().unwrap().display().to_string())
            .collect();
        let tables = ["segments", "commits", "io_sums", "file_sums", "file_lives"];
        assert_eq!(names, tables.map(|name| format!("{name}.parquet")));
    }
}
