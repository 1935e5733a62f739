//! The tables of one capture: which of them there are, and their files. A table that is not there
//! could not be seen; one without rows was looked at, and there was nothing.

use std::path::Path;

use super::rows::{Counter, File, FlashOperation, PageRun, Request, Transaction};
use super::write::{ManifestRow, Table, WriteError, write};

/// The rows of each table; None where the capture does not have it. The manifest is always there.
#[derive(Default)]
pub struct Tables<'a> {
    pub requests: Option<&'a [Request]>,
    pub page_runs: Option<&'a [PageRun]>,
    pub flash_operations: Option<&'a [FlashOperation]>,
    pub files: Option<&'a [File]>,
    pub transactions: Option<&'a [Transaction]>,
    pub counters: Option<&'a [Counter]>,
}

impl Tables<'_> {
    /// Names of those that there are, for the manifest to declare.
    pub fn names(&self) -> Vec<&'static str> {
        let Self { requests, page_runs, flash_operations, files, transactions, counters } = self;
        let of_trace = [name(requests), name(page_runs), name(flash_operations), name(files)];
        of_trace.into_iter().chain([name(transactions), name(counters)]).flatten().collect()
    }

    /// Writes them and the manifest's rows to a directory that is there.
    ///
    /// # Errors
    /// With the file's name, when one cannot be written.
    pub fn write(&self, directory: &Path, manifest: &[ManifestRow]) -> Result<(), WriteError> {
        write_if_there(directory, self.requests)?;
        write_if_there(directory, self.page_runs)?;
        write_if_there(directory, self.flash_operations)?;
        write_if_there(directory, self.files)?;
        write_if_there(directory, self.transactions)?;
        write_if_there(directory, self.counters)?;
        write(directory, manifest)
    }
}

fn name<Row: Table>(rows: &Option<&[Row]>) -> Option<&'static str> {
    rows.map(|_| Row::NAME)
}

fn write_if_there<Row: Table>(directory: &Path, rows: Option<&[Row]>) -> Result<(), WriteError> {
    rows.map_or(Ok(()), |rows| write(directory, rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_declared_is_what_is_written() {
        let directory = tempfile::tempdir().unwrap();
        let tables = Tables { transactions: Some(&[]), counters: Some(&[]), ..Tables::default() };
        assert_eq!(tables.names(), ["transactions", "counters"]);
        tables.write(directory.path(), &[ManifestRow::default()]).unwrap();
        let entries = std::fs::read_dir(directory.path()).unwrap();
        let mut files: Vec<_> = entries.map(|it| it.unwrap().file_name()).collect();
        files.sort();
        assert_eq!(files, ["counters.parquet", "manifest.parquet", "transactions.parquet"]);
    }
}
