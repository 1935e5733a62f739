//! MobiGen's scripts as recordings. A script has one descriptor table for all its threads; of most
//! calls it tells neither what they returned nor when they ended.

use std::path::Path;

use super::book::{Book, Impossible};
use super::effects;
use super::told::Told;
use crate::errors::WrongUse;
use crate::recorder::calls::SystemCall;
use crate::recorder::words;
use crate::script::call::{Call, CallName, CallTarget, Script};
use crate::script::mobigen;
use crate::tables::rows::Word;

/// Bytes of a script: the parser has it whole in memory.
const MOST_BYTES: u64 = 1 << 30;

/// Reads a script into a book.
///
/// # Errors
/// If the file cannot be read, or is no script.
pub fn read(file: &Path, book: &mut Book) -> anyhow::Result<Script> {
    let cannot = |error: std::io::Error| WrongUse(format!("{}: {error}", file.display()));
    let found = std::fs::metadata(file).map_err(cannot)?;
    if !found.is_file() || found.len() > MOST_BYTES {
        let message = format!("{}: no file of at most 1 GiB; name a script", file.display());
        return Err(WrongUse(message).into());
    }
    let text = std::fs::read(file).map_err(cannot)?;
    let located = |error: &dyn std::fmt::Display| {
        WrongUse(format!("{}: {error}; correct the line, or leave it out", file.display()))
    };
    let script = mobigen::parse(&text).map_err(|error| located(&error))?;
    calls(&script, book).map_err(|(line, error)| located(&format!("line {line}: {error}")))?;
    Ok(script)
}

/// The calls of a script; on error the line that no program can have.
pub fn calls(script: &Script, book: &mut Book) -> Result<(), (usize, Impossible)> {
    for call in &script.calls {
        let begun = book.begin(call.thread as i64, (call.time_us * 1000).cast_signed());
        effects::end(book, begun, told(call), None).map_err(|error| (call.line, error))?;
    }
    Ok(())
}

/// A call of a script.
fn told(call: &Call) -> Told {
    let name = match call.name {
        CallName::Open => "open",
        CallName::Close => "close",
        CallName::Read => "read",
        CallName::Pread => "pread64",
        CallName::Write => "write",
        CallName::Pwrite => "pwrite64",
        CallName::Fsync => "fsync",
        CallName::Fdatasync => "fdatasync",
        CallName::Fstat => "fstat",
        CallName::Stat => "stat",
        CallName::Lstat => "lstat",
        CallName::Access => "access",
        CallName::Unlink => "unlink",
    };
    let mut told = Told::new(SystemCall::named(name).expect("each of them is recorded"));
    match &call.target {
        CallTarget::Path(path) => {
            told.row.path = Some(words::text(path));
            told.path = Some(path.clone());
        }
        // Of an open: a file that was open before, of which only the number is known.
        CallTarget::Descriptor(_) if call.name == CallName::Open => {}
        CallTarget::Descriptor(number) => told.row.descriptor = Some(*number),
    }
    let moves = [CallName::Read, CallName::Pread, CallName::Write, CallName::Pwrite];
    let mut result = 0;
    if call.name == CallName::Open {
        told.row.flags = Some(call.flags.into());
        told.row.mode = Some(0o666);
        result = call.descriptor;
    }
    if moves.contains(&call.name) {
        told.row.length_bytes = Some(call.bytes.cast_signed());
        result = call.bytes.cast_signed();
    }
    if matches!(call.name, CallName::Pread | CallName::Pwrite) {
        told.row.offset_bytes = Some(call.offset.cast_signed());
    }
    if call.succeeded == Some(false) {
        let error = error_of(call);
        told.row.result = words::error_number(error).map(|number| -i64::from(number));
        told.row.error = Some(Word::Borrowed(error));
    } else {
        told.row.result = Some(result);
    }
    told
}

/// Why a call failed a script does not tell: the commonest reason stands for it.
fn error_of(call: &Call) -> &'static str {
    match (&call.target, call.name) {
        (CallTarget::Path(_), CallName::Open) if call.flags & libc::O_CREAT != 0 => "EACCES",
        (CallTarget::Path(_), _) => "ENOENT",
        (CallTarget::Descriptor(_), CallName::Open) => "EACCES",
        (CallTarget::Descriptor(_), _) => "EIO",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_a_script_have_their_columns() {
        let told = |line: &str| told(&mobigen::parse(line.as_bytes()).unwrap().calls[0]);
        let write = told("1 5 pwrite64 53 4096 1024").row;
        assert_eq!((write.descriptor, write.offset_bytes), (Some(53), Some(4096)));
        assert_eq!((write.length_bytes, write.result), (Some(1024), Some(1024)));
        let open = told(r#"1 5 open "/a b" O_RDWR|O_CREAT 7"#);
        assert_eq!((open.path.unwrap(), open.row.result), (b"/a b".to_vec(), Some(7)));
        let failed = told(r#"1 5 access "/a" -1"#).row;
        assert_eq!((failed.result, failed.error.unwrap()), (Some(-2), "ENOENT".into()));
        assert_eq!(told("1 5 open /data O_RDWR 7").row.path, None);
    }
}
