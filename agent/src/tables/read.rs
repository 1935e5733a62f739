//! Reads tables of schema/ back from Parquet: a file, or a folder of segments, to rows. What it
//! reads may be a stranger's: a table that is none, or too large, is an error that names the file.
//!
//! The parquet crate panics on some damaged files. The release profile aborts at a panic, which
//! nothing catches; but the panic's hook comes before (std::panic::set_hook). So the work runs in a
//! thread of its own: its hook hands the panic's words over, and never returns where that would
//! abort. The thread sleeps on, with what it holds. Builds that unwind, as tests do, end the
//! thread: one that sleeps in a hook keeps the lock of hooks, which the test runner takes when it
//! ends.

use std::cell::RefCell;
use std::fs::{self, File as InputFile};
use std::panic::{PanicHookInfo, set_hook, take_hook};
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::reader::ChunkReader;

use super::rows::Table;

/// The most bytes of a column of a row group: a segment of ours has 65,536 rows, of some hundred
/// bytes each.
const MOST_COLUMN_BYTES: i64 = 256 << 20;
/// The most bytes of all rows of a table, as columns in memory.
const MOST_DECODED_BYTES: usize = 2 << 30;
/// Rows are decoded so many at a time, and fewer where one value may be long: a dictionary may name
/// it in every row.
const MOST_BATCH_ROWS: i64 = 1024;
const MOST_BATCH_BYTES: i64 = 1 << 30;

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
/// is not there. Segments are read in the order of their numbers.
///
/// # Errors
/// With the file's name, when it cannot be read, is no such table, or has more rows.
pub fn read<Row: Table + Send + 'static>(
    directory: &Path,
    most_rows: usize,
) -> Result<Vec<Row>, ReadError> {
    let whole = directory.join(format!("{}.parquet", Row::NAME));
    let files = if whole.exists() { vec![whole] } else { segments(&directory.join(Row::NAME))? };
    let (mut rows, mut decoded_bytes) = (Vec::new(), 0);
    for path in files {
        let file = InputFile::open(&path).map_err(|error| ReadError::new(&path, error))?;
        let before = (rows.len(), decoded_bytes);
        let read = as_error(move || read_file::<Row>(file, most_rows, before));
        let (more, bytes) = read.map_err(|what| ReadError::new(&path, what))?;
        decoded_bytes += bytes;
        rows.extend(more);
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
    // Six digits, or more beyond a million.
    paths.sort_by_cached_key(|path| (path.as_os_str().len(), path.clone()));
    Ok(paths)
}

/// A file's rows, and how many bytes they took as columns in memory; `before` is both of the files
/// before it. What the file says of its size is looked at before anything is decoded.
fn read_file<Row: Table>(
    file: impl ChunkReader + 'static,
    most_rows: usize,
    before: (usize, usize),
) -> Result<(Vec<Row>, usize), String> {
    let (mut rows, mut decoded_bytes) = (Vec::new(), 0);
    let (rows_left, bytes_left) = (most_rows - before.0, MOST_DECODED_BYTES - before.1);
    let too_many = || format!("more than {most_rows} rows; use a part");
    let file_bytes = file.len();
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|it| it.to_string())?;
    let batch_rows = check_sizes(builder.metadata(), file_bytes, rows_left)
        .map_err(|wrong| wrong.unwrap_or_else(&too_many))?;
    // Columns that no row has are not decoded.
    let known: Vec<String> = Row::columns(&[]).iter().map(|it| it.0.name().clone()).collect();
    let mask = ProjectionMask::columns(builder.parquet_schema(), known.iter().map(String::as_str));
    let reader = builder.with_projection(mask).with_batch_size(batch_rows).build();
    for batch in reader.map_err(|error| error.to_string())? {
        let batch = batch.map_err(|error| error.to_string())?;
        decoded_bytes += batch.get_array_memory_size();
        if decoded_bytes > bytes_left {
            return Err(format!("more than {MOST_DECODED_BYTES} bytes of values; use a part"));
        }
        if rows.len() + batch.num_rows() > rows_left {
            return Err(too_many());
        }
        rows.extend(Row::rows(&batch)?);
    }
    Ok((rows, decoded_bytes))
}

/// Return how many rows may be decoded at a time.
///
/// # Errors
/// If a column is larger than any of ours, or not in the file, the error says so; it is None if
/// there are more rows than may be.
fn check_sizes(
    metadata: &ParquetMetaData,
    file_bytes: u64,
    most_rows: usize,
) -> Result<usize, Option<String>> {
    let (mut left, mut batch_rows) = (most_rows as i64, MOST_BATCH_ROWS);
    for group in metadata.row_groups() {
        if !(0..=left).contains(&group.num_rows()) {
            return Err(None);
        }
        left -= group.num_rows();
        let mut group_bytes = 1_i64;
        for column in group.columns() {
            let name = column.column_path();
            let bytes = column.uncompressed_size();
            if !(0..=MOST_COLUMN_BYTES).contains(&bytes) {
                let what = format!("column {name} has {bytes} bytes; none of ours has as many");
                return Err(Some(what));
            }
            let begin = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
            let end = begin.checked_add(column.compressed_size());
            let is_in = begin >= 0
                && column.compressed_size() >= 0
                && end.is_some_and(|end| end.cast_unsigned() <= file_bytes);
            if !is_in {
                return Err(Some(format!("column {name} lies outside of the file")));
            }
            group_bytes += bytes;
        }
        batch_rows = batch_rows.min(MOST_BATCH_BYTES / group_bytes);
    }
    Ok(batch_rows.max(1) as usize)
}

type PanicText = Box<dyn FnOnce(String)>;

thread_local! {
    /// The text of this thread's panic; only in threads of `as_error`.
    static PANIC_SINK: RefCell<Option<PanicText>> = const { RefCell::new(None) };
}

/// Runs `work`; its panic is an error with the panic's words.
///
/// # Errors
/// That of `work`; if it panics; if there is no memory for a thread.
pub fn as_error<Value: Send + 'static>(
    work: impl FnOnce() -> Result<Value, String> + Send + 'static,
) -> Result<Value, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |panic| {
            if !tell(panic) {
                before(panic);
            }
        }));
    });
    let (sender, receiver) = channel();
    let run = move || {
        let on_panic: Sender<Result<Value, String>> = sender.clone();
        let tell = move |words| drop(on_panic.send(Err(words)));
        PANIC_SINK.set(Some(Box::new(tell)));
        let outcome = work();
        PANIC_SINK.set(None);
        let _ = sender.send(outcome);
    };
    thread::Builder::new().name("reader".to_owned()).spawn(run).map_err(|it| it.to_string())?;
    receiver.recv().expect("the thread sends what came out, or its panic")
}

/// In a thread of `as_error`: tells, and sleeps for ever where a panic aborts. In others: false.
fn tell(panic: &PanicHookInfo) -> bool {
    let Ok(Some(tell)) = PANIC_SINK.try_with(RefCell::take) else { return false };
    let payload = panic.payload();
    let text = payload.downcast_ref::<&str>().copied();
    let words = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    let words = words.unwrap_or("no words");
    tell(format!("damaged: its values cannot be decoded ({words}); make it again"));
    while cfg!(panic = "abort") {
        thread::park();
    }
    true
}

#[cfg(test)]
mod tests {
    use super::super::recording::RecordedCall;
    use super::*;
    use crate::tables::write::Segments;

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
        let named = |name: &str| directory.path().join("calls").join(name);
        for (from, to) in
            [("000000.parquet", "999999.parquet"), ("000001.parquet", "1000000.parquet")]
        {
            fs::rename(named(from), named(to)).unwrap();
        }
        assert_eq!(read::<RecordedCall>(directory.path(), 5).unwrap(), rows);
        let error = read::<RecordedCall>(directory.path(), 4).unwrap_err().to_string();
        assert!(error.contains("1000000.parquet: more than 4 rows"), "{error}");
        assert!(read::<RecordedCall>(Path::new("/no/such/folder"), 5).unwrap().is_empty());
    }

    #[test]
    fn an_unreadable_table_is_told_with_its_file() {
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

    #[test]
    fn a_panic_is_an_error_and_all_else_stays() {
        assert_eq!(as_error(|| Ok(7)), Ok(7));
        assert_eq!(as_error::<u8>(|| Err("no".to_owned())), Err("no".to_owned()));
        let error = as_error::<u8>(|| panic!("index {}", 9)).unwrap_err();
        assert!(error.contains("damaged") && error.contains("index 9"), "{error}");
        assert_eq!(as_error(|| Ok(8)), Ok(8));
    }
}

#[cfg(test)]
mod fuzz_tests {
    // Mutated Parquet through the reader of tables: bytes of a file of ours that are changed,
    // doubled, left out or lost. What is read has as many rows as may be; where the parquet crate
    // panics is an error like any other.
    use std::sync::LazyLock;

    use bytes::Bytes;

    use super::super::recording::{PathState, RecordedCall};
    use super::super::write::write_file;
    use super::*;
    use crate::fuzz;
    use crate::fuzz::Random;

    const MOST_ROWS: usize = 100;

    fn file<Row: Table>(rows: &[Row]) -> Vec<u8> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("table.parquet");
        write_file(&path, rows).unwrap();
        fs::read(path).unwrap()
    }

    static CALLS: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let call = |call_id: i64| RecordedCall {
            call_id,
            name: if call_id % 2 == 0 { "openat".into() } else { "pwrite64".into() },
            begin_ns: call_id * 1000,
            end_ns: Some(call_id * 1000 + 7),
            path: (call_id % 3 == 0).then(|| format!("/data/{call_id}")),
            result: (call_id % 5 != 0).then_some(call_id),
            ..RecordedCall::default()
        };
        file(&(0..50).map(call).collect::<Vec<_>>())
    });
    static STATES: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let state = |path_id: i64| PathState {
            path_id,
            path: format!("/a/{path_id}"),
            size_bytes: (path_id % 2 == 0).then_some(path_id << 40),
            made_by_recording: (path_id % 4 == 0).then_some(true),
            ..PathState::default()
        };
        file(&(0..50).map(state).collect::<Vec<_>>())
    });

    fn rows<Row: Table + Send + 'static>(bytes: Vec<u8>) -> usize {
        let bytes = Bytes::from(bytes);
        let read = as_error(move || read_file::<Row>(bytes, MOST_ROWS, (0, 0)));
        let rows = read.map_or(0, |(rows, _)| rows.len());
        assert!(rows <= MOST_ROWS);
        rows
    }

    /// One input; how many rows were read.
    fn input(number: u64) -> usize {
        let mut random = Random::from_seed(number);
        let of_calls = number.is_multiple_of(2);
        let mut bytes = if of_calls { CALLS.clone() } else { STATES.clone() };
        // The footer, which says where all is, is a third of so small a file. The bytes at the end
        // are its length and the magic; with these changed nothing is read.
        let tail = bytes.split_off(bytes.len() - 8);
        for _ in 0..=random.below(3) {
            if random.below(16) == 0 {
                random.mutate_bytes(&mut bytes);
            } else if !bytes.is_empty() {
                let at = random.below(bytes.len());
                bytes[at] = match random.below(3) {
                    0 => 0xff,
                    1 => bytes[at] ^ (1 << random.below(8)),
                    _ => random.next() as u8,
                };
            }
        }
        bytes.extend(tail);
        if of_calls { rows::<RecordedCall>(bytes) } else { rows::<PathState>(bytes) }
    }

    #[test]
    fn a_slice_of_the_fuzzing() {
        // Many inputs are still tables.
        assert!((0..300).map(input).sum::<usize>() > 1000);
    }

    #[test]
    #[ignore = "takes some minutes: make fuzz"]
    fn fuzz_tables() {
        // One in some hundred makes the parquet crate panic, which leaves a thread.
        fuzz::run("rows of damaged tables", 100_000, input);
    }
}
