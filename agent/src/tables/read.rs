//! Reads tables of schema/ back from Parquet: a file, or a folder of segments, to rows. What it
//! reads may be a stranger's: a table that is none, or too large, is an error that names the file.

use std::fs::{self, File as InputFile};
use std::path::{Path, PathBuf};

use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::write::Table;

/// A table could not be read.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {what}")]
pub struct ReadError {
    pub path: PathBuf,
    pub what: String,
}

impl ReadError {
    pub fn new(path: &Path, what: impl ToString) -> Self {
        Self { path: path.into(), what: what.to_string() }
    }
}

/// The rows of a table of `directory`, of which there are `most_rows` at most; none where the table
/// is not there. Segments are read in the order of their names.
///
/// # Errors
/// With the file's name, when it cannot be read, is no such table, or has more rows.
pub fn read<Row: Table>(directory: &Path, most_rows: usize) -> Result<Vec<Row>, ReadError> {
    let whole = directory.join(format!("{}.parquet", Row::NAME));
    let files = if whole.exists() { vec![whole] } else { segments(&directory.join(Row::NAME))? };
    let mut rows = Vec::new();
    for file in files {
        read_file(&file, most_rows, &mut rows)?;
    }
    Ok(rows)
}

fn segments(folder: &Path) -> Result<Vec<PathBuf>, ReadError> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(|error| ReadError::new(folder, error))?,
    };
    let paths = entries.map(|entry| Ok(entry.map_err(|it| ReadError::new(folder, it))?.path()));
    let mut paths = paths.collect::<Result<Vec<PathBuf>, ReadError>>()?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "parquet"));
    paths.sort();
    Ok(paths)
}

fn read_file<Row: Table>(
    path: &Path,
    most_rows: usize,
    rows: &mut Vec<Row>,
) -> Result<(), ReadError> {
    let file = InputFile::open(path).map_err(|error| ReadError::new(path, error))?;
    let builder = ParquetRecordBatchReaderBuilder::try_new(file)
        .map_err(|error| ReadError::new(path, error))?;
    for batch in builder.build().map_err(|error| ReadError::new(path, error))? {
        let batch = batch.map_err(|error| ReadError::new(path, error))?;
        if rows.len() + batch.num_rows() > most_rows {
            return Err(ReadError::new(path, format!("more than {most_rows} rows; use a part")));
        }
        rows.extend(Row::rows(&batch).map_err(|what| ReadError::new(path, what))?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::recording::RecordedCall;
    use super::super::segments::Segments;
    use super::*;

    fn call(call_id: i64) -> RecordedCall {
        let path = (call_id % 2 == 0).then(|| format!("a{call_id}"));
        RecordedCall {
            call_id,
            name: "openat".into(),
            path,
            result: Some(-2),
            ..RecordedCall::default()
        }
    }

    #[test]
    fn rows_are_read_as_they_were_written() {
        let directory = tempfile::tempdir().unwrap();
        let mut segments = Segments::new(directory.path());
        let rows: Vec<RecordedCall> = (0..5).map(call).collect();
        segments.append(&rows[..3]).unwrap();
        segments.begin_round();
        segments.append(&rows[3..]).unwrap();
        assert_eq!(read::<RecordedCall>(directory.path(), 5).unwrap(), rows);
        let error = read::<RecordedCall>(directory.path(), 4).unwrap_err().to_string();
        assert!(error.contains("000001.parquet: more than 4 rows"), "{error}");
        assert!(read::<RecordedCall>(Path::new("/no/such/folder"), 5).unwrap().is_empty());
    }

    #[test]
    fn what_is_no_table_is_told_with_its_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("calls.parquet");
        fs::write(&path, b"PAR1 or not").unwrap();
        let error = read::<RecordedCall>(directory.path(), 5).unwrap_err().to_string();
        assert!(error.contains("calls.parquet: "), "{error}");
        super::super::write::write_file(
            &path,
            &[super::super::recording::RecordedThread::default()],
        )
        .unwrap();
        let error = read::<RecordedCall>(directory.path(), 5).unwrap_err().to_string();
        assert!(error.contains("has no column call_id"), "{error}");
    }
}
