//! Writes the tables of schema/ as Parquet: from rows to columns to a file. The files are a pure
//! function of the rows: no clock, no path, no random number enters them. `read` has the way back.
//! Tables written as they come: each segment a complete Parquet file that is there whole or not at
//! all, so that whatever ends the writer leaves a readable table of what came before.
//!
//!     DIRECTORY/TABLE/000000.parquet ...   rows in order, segment by segment
//!     DIRECTORY/TABLE/now-000000.parquet   rows that may still change, some at a time
//!     DIRECTORY/TABLE.parquet              a table written whole

use std::fs::{self, File as OutputFile};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

use super::rows::{Table, table};
use crate::errors::WrongUse;

/// A table could not be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    #[error("cannot write {path}: {source}")]
    File { path: PathBuf, source: std::io::Error },
    #[error("cannot write {path}: {source}")]
    Parquet { path: PathBuf, source: ParquetError },
}

table! {
    "manifest";
    /// One entry of the manifest: a key and its JSON.
    #[derive(Eq)]
    pub struct ManifestRow {
        pub key: String,
        pub value: String,
    }
}

/// Writes `rows` to DIRECTORY/TABLE.parquet.
///
/// # Errors
/// With the file's name, when it cannot be created or written.
pub(super) fn write<Row: Table>(directory: &Path, rows: &[Row]) -> Result<(), WriteError> {
    write_file(&directory.join(format!("{}.parquet", Row::NAME)), rows)
}

/// Writes `rows` to a file.
///
/// # Errors
/// With the file's name, when it cannot be created or written.
pub fn write_file<Row: Table>(path: &Path, rows: &[Row]) -> Result<(), WriteError> {
    let file = OutputFile::create(path)
        .map_err(|source| WriteError::File { path: path.to_owned(), source })?;
    encode(file, rows).map_err(|source| WriteError::Parquet { path: path.to_owned(), source })
}

/// Writes `rows` as a Parquet file to where it is to go.
///
/// # Errors
/// If it cannot be written there.
pub fn encode<Row: Table>(into: impl Write + Send, rows: &[Row]) -> Result<(), ParquetError> {
    let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = Row::columns(rows).into_iter().unzip();
    let schema = Arc::new(Schema::new(fields));
    let batch = RecordBatch::try_new(schema.clone(), arrays)?;
    let mut properties = WriterProperties::builder().set_compression(Compression::SNAPPY);
    for name in Row::GROWING {
        properties = properties
            .set_column_dictionary_enabled((*name).into(), false)
            .set_column_encoding((*name).into(), Encoding::DELTA_BINARY_PACKED);
    }
    let mut writer = ArrowWriter::try_new(into, schema, Some(properties.build()))?;
    writer.write(&batch)?;
    writer.close()?;
    Ok(())
}

/// Makes a folder for tables, or takes an empty one; gives its whole name.
///
/// # Errors
/// If something is in it already, or it cannot be made.
pub fn new_folder(directory: &Path) -> anyhow::Result<PathBuf> {
    let name = || directory.display().to_string();
    fs::create_dir_all(directory).with_context(name)?;
    if fs::read_dir(directory).with_context(name)?.next().is_some() {
        let message = format!("{}: not empty; name a new folder", directory.display());
        return Err(WrongUse(message).into());
    }
    fs::canonicalize(directory).with_context(name)
}

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
    use super::*;
    use crate::tables::rows::{
        Counter, File, FlashOperation, PageRun, Request, Transaction, Writer,
    };
    use crate::tables::{fleet, recording};
    use arrow_schema::DataType;
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

    /// Columns of schema/FILE.toml as (name, type, nullable).
    fn contract(file: &str, name: &str) -> Vec<(String, DataType, bool)> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../schema/{file}.toml"));
        let schema: toml::Table = std::fs::read_to_string(path).unwrap().parse().unwrap();
        assert_eq!(schema["table"].as_str(), Some(name));
        let columns = schema["column"].as_array().unwrap();
        columns
            .iter()
            .map(|column| {
                let data_type = match column["type"].as_str().unwrap() {
                    "int64" => DataType::Int64,
                    "bool" => DataType::Boolean,
                    "double" => DataType::Float64,
                    "binary" => DataType::Binary,
                    "string" => DataType::Utf8,
                    other => panic!("{name}: unknown type {other}"),
                };
                let nullable = column.get("nullable").is_some_and(|value| value.as_bool().unwrap());
                (column["name"].as_str().unwrap().to_string(), data_type, nullable)
            })
            .collect()
    }

    fn keeps_contract<Row: Table + Default>() {
        keeps_contract_of::<Row>(Row::NAME);
    }

    fn keeps_contract_of<Row: Table + Default>(file: &str) {
        let directory = tempfile::tempdir().unwrap();
        write(directory.path(), &[Row::default(), Row::default()]).unwrap();
        let written = directory.path().join(format!("{}.parquet", Row::NAME));
        let reader =
            ParquetRecordBatchReaderBuilder::try_new(OutputFile::open(written).unwrap()).unwrap();
        let written: Vec<_> = reader
            .schema()
            .fields()
            .iter()
            .map(|field| (field.name().clone(), field.data_type().clone(), field.is_nullable()))
            .collect();
        assert_eq!(written, contract(file, Row::NAME), "table {file}");
        let rows: usize = reader.build().unwrap().map(|batch| batch.unwrap().num_rows()).sum();
        assert_eq!(rows, 2);
    }

    #[test]
    fn every_table_is_written_as_its_schema_says() {
        keeps_contract::<Request>();
        keeps_contract::<PageRun>();
        keeps_contract::<FlashOperation>();
        keeps_contract::<File>();
        keeps_contract::<Transaction>();
        keeps_contract::<Writer>();
        keeps_contract::<Counter>();
        keeps_contract::<ManifestRow>();
        keeps_contract_of::<fleet::SegmentFacts>("fleet/segments");
        keeps_contract_of::<fleet::Commit>("fleet/commits");
        keeps_contract_of::<fleet::IoSum>("fleet/io_sums");
        keeps_contract_of::<fleet::FileSum>("fleet/file_sums");
        keeps_contract_of::<fleet::FileLives>("fleet/file_lives");
        keeps_contract_of::<recording::RecordedCall>("recording/calls");
        keeps_contract_of::<recording::RecordedThread>("recording/threads");
        keeps_contract_of::<recording::OpenDescriptor>("recording/descriptors");
        keeps_contract_of::<recording::Content>("recording/contents");
        keeps_contract_of::<recording::PathState>("recording/snapshot");
        keeps_contract_of::<recording::RecordedConnection>("recording/connections");
        keeps_contract_of::<recording::RecordedDatabase>("recording/databases");
        keeps_contract_of::<recording::RecordedStatement>("recording/statements");
        keeps_contract_of::<recording::BoundValue>("recording/bound_values");
    }

    #[test]
    fn the_same_rows_make_the_same_bytes() {
        let rows = [Request { submitter_comm: "jbd2".into(), ..Request::default() }];
        let bytes = || {
            let directory = tempfile::tempdir().unwrap();
            write(directory.path(), &rows).unwrap();
            std::fs::read(directory.path().join("requests.parquet")).unwrap()
        };
        assert_eq!(bytes(), bytes());
    }

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
