//! The rows of the tables in schema/, as the other stages hand them over, and how rows become
//! columns and back. Meanings and units of every field stand in schema/TABLE.toml; `write` is
//! tested against those files.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray,
};
use arrow_schema::{DataType, Field};
use serde::Serialize;

/// A word of a schema: nearly always one that this program has, so that a row need not own it.
pub type Word = Cow<'static, str>;

/// A value that knows its column type.
pub(super) trait Column: Sized {
    const TYPE: DataType;
    const NULLABLE: bool;
    fn array<'a>(values: impl Iterator<Item = &'a Self>) -> ArrayRef
    where
        Self: 'a;
    /// The values of an array; none where it is of another type, or lacks a value.
    fn values(array: &dyn Array) -> Option<Vec<Self>>;
}

/// Implements `Column` for a type and its option; `$value` makes of a reference to one what the
/// array is built from, `$back` makes one of what an array has.
macro_rules! column {
    ($type:ty, $data_type:expr, $array:ty, $value:expr, $back:expr) => {
        impl Column for $type {
            const TYPE: DataType = $data_type;
            const NULLABLE: bool = false;
            fn array<'a>(values: impl Iterator<Item = &'a Self>) -> ArrayRef {
                Arc::new(values.map($value).map(Some).collect::<$array>())
            }
            fn values(array: &dyn Array) -> Option<Vec<Self>> {
                array.as_any().downcast_ref::<$array>()?.iter().map(|it| it.map($back)).collect()
            }
        }
        impl Column for Option<$type> {
            const TYPE: DataType = $data_type;
            const NULLABLE: bool = true;
            fn array<'a>(values: impl Iterator<Item = &'a Self>) -> ArrayRef {
                Arc::new(values.map(|value| value.as_ref().map($value)).collect::<$array>())
            }
            fn values(array: &dyn Array) -> Option<Vec<Self>> {
                let array = array.as_any().downcast_ref::<$array>()?;
                Some(array.iter().map(|it| it.map($back)).collect())
            }
        }
    };
}
column!(i64, DataType::Int64, Int64Array, |value: &i64| *value, |value| value);
column!(bool, DataType::Boolean, BooleanArray, |value: &bool| *value, |value| value);
column!(f64, DataType::Float64, Float64Array, |value: &f64| *value, |value| value);
column!(Vec<u8>, DataType::Binary, BinaryArray, Vec::as_slice, |bytes: &[u8]| bytes.to_owned());
column!(String, DataType::Utf8, StringArray, String::as_str, |text: &str| text.to_owned());
column!(Word, DataType::Utf8, StringArray, |word: &Word| &**word, |text: &str| {
    Word::Owned(text.to_owned())
});

/// A row type that makes a table.
pub trait Table: Sized {
    /// Its name, and its file's.
    const NAME: &'static str;
    /// Columns that grow from row to row: their differences are stored.
    const GROWING: &'static [&'static str] = &[];
    /// The columns of `rows`, in the schema's order.
    fn columns(rows: &[Self]) -> Vec<(Field, ArrayRef)>;
    /// The rows of a batch of columns.
    ///
    /// # Errors
    /// Naming the column that is missing, or is none of this table.
    fn rows(batch: &RecordBatch) -> Result<Vec<Self>, String>;
}

pub(super) fn one_column<Row, Value: Column>(
    name: &str,
    rows: &[Row],
    value: impl Fn(&Row) -> &Value,
) -> (Field, ArrayRef) {
    (Field::new(name, Value::TYPE, Value::NULLABLE), Value::array(rows.iter().map(value)))
}

pub(super) fn column_values<Value: Column>(
    batch: &RecordBatch,
    name: &str,
) -> Result<Vec<Value>, String> {
    let column = batch.column_by_name(name).ok_or_else(|| format!("has no column {name}"))?;
    Value::values(column.as_ref()).ok_or_else(|| {
        let found = column.data_type();
        format!("column {name} is {found}, or lacks a value, where {} was expected", Value::TYPE)
    })
}

/// Defines a table: its name, the columns that grow from row to row, and its row as a struct, in
/// which each field is the column of its name, in the schema's order.
macro_rules! table {
    (
        $name:literal $(, growing: [$($growing:ident),+])?;
        $(#[$attribute:meta])*
        pub struct $row:ident { $(pub $field:ident: $type:ty,)+ }
    ) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, Default, PartialEq)]
        pub struct $row { $(pub $field: $type,)+ }

        impl $crate::tables::rows::Table for $row {
            const NAME: &'static str = $name;
            $(const GROWING: &'static [&'static str] = &[$(stringify!($growing)),+];)?
            fn columns(rows: &[Self]) -> Vec<(arrow_schema::Field, arrow_array::ArrayRef)> {
                vec![$($crate::tables::rows::one_column(
                    stringify!($field), rows, |row| &row.$field,
                )),+]
            }
            fn rows(batch: &arrow_array::RecordBatch) -> Result<Vec<Self>, String> {
                let mut rows = vec![<$row>::default(); batch.num_rows()];
                $(
                    let values = $crate::tables::rows::column_values(batch, stringify!($field))?;
                    rows.iter_mut().zip(values).for_each(|(row, value)| row.$field = value);
                )+
                Ok(rows)
            }
        }
    };
}
pub(super) use table;

table! {
    "requests";
    /// One block request (schema/requests.toml).
    #[derive(Serialize)]
    pub struct Request {
        pub request_id: i64,
        pub device: String,
        pub phase: Word,
        pub transaction_id: Option<i64>,
        pub queue_ns: i64,
        pub issue_ns: i64,
        pub complete_ns: Option<i64>,
        pub sector: Option<i64>,
        pub length_bytes: i64,
        pub operation: Word,
        pub sync: bool,
        pub meta: bool,
        pub prio: bool,
        pub fua: bool,
        pub preflush: bool,
        pub readahead: bool,
        pub idle: bool,
        pub bio_count: i64,
        pub block_type: Word,
        pub block_subtype: Word,
        pub file_id: Option<i64>,
        pub file_offset_bytes: Option<i64>,
        pub file_kind: Word,
        pub one_run: bool,
        pub sequential: bool,
        pub submitter_pid: i64,
        pub submitter_tid: i64,
        pub submitter_comm: String,
        pub submitter_call: Option<Word>,
        pub asker_pid: Option<i64>,
        pub asker_tid: Option<i64>,
        pub asker_comm: Option<String>,
        pub asker_call: Option<Word>,
        pub asker_begin_ns: Option<i64>,
        pub asker_file_id: Option<i64>,
        pub asker_count: i64,
        pub askers: Option<String>,
        pub reason: Option<String>,
    }
}

table! {
    "page_runs";
    /// A stretch of one request with one owner (schema/page_runs.toml).
    #[derive(Serialize)]
    pub struct PageRun {
        pub request_id: i64,
        pub sector: i64,
        pub length_bytes: i64,
        pub block_type: Word,
        pub block_subtype: Word,
        pub file_id: Option<i64>,
        pub file_offset_bytes: Option<i64>,
        pub file_kind: Word,
        pub home_sector: Option<i64>,
        pub home: Option<String>,
    }
}

table! {
    "flash_operations";
    /// One operation of raw NAND (schema/flash_operations.toml).
    #[derive(Serialize)]
    pub struct FlashOperation {
        pub request_id: i64,
        pub kind: Word,
        pub block: i64,
        pub offset_bytes: i64,
        pub length_bytes: i64,
        pub volume_id: Option<i64>,
        pub logical_block: Option<i64>,
        pub erase_count: Option<i64>,
        pub cause: Word,
        pub flipped_bits: i64,
        pub outcome: Word,
    }
}

table! {
    "files";
    /// One file, by its life story (schema/files.toml).
    #[derive(Serialize)]
    pub struct File {
        pub file_id: i64,
        pub device: String,
        pub inode: i64,
        pub generation: i64,
        pub path: String,
        pub path_history: String,
        pub file_kind: String,
        pub first_seen_ns: i64,
        pub last_seen_ns: i64,
        pub unlinked: bool,
        pub size_bytes: i64,
    }
}

table! {
    "transactions";
    /// One transaction or checkpoint (schema/transactions.toml).
    #[derive(Serialize)]
    pub struct Transaction {
        pub transaction_id: i64,
        pub thread: i64,
        pub tid: i64,
        pub phase: String,
        pub kind: String,
        pub databases: i64,
        pub begin_ns: i64,
        pub commit_ns: i64,
        pub return_ns: i64,
        pub sync_calls: i64,
        pub wal_frames: i64,
        pub busy_retries: i64,
    }
}

table! {
    "writers";
    /// The writes of a process to a file in some part of a live trace (schema/writers.toml).
    #[derive(Serialize)]
    pub struct Writer {
        pub file_id: Option<i64>,
        pub pid: i64,
        pub process: String,
        pub is_watched: bool,
        pub write_calls: i64,
        pub write_bytes: i64,
        pub dirtied: i64,
    }
}

table! {
    "counters";
    /// One counter's increase over one phase (schema/counters.toml).
    #[derive(Serialize)]
    pub struct Counter {
        pub phase: String,
        pub source: String,
        pub name: String,
        pub value: i64,
    }
}
