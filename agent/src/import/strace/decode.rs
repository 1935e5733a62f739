//! From the printed arguments of a call to a row of `calls`, by the roles that the recorder knows
//! them by. Besides, what the trace tells of files: results of stat, paths of -y.

use super::arguments::{self, Parts, elements, field};
use super::line::Fault;
use super::names::{self, ArgumentShape};
use super::result::{self, CallResult};
use super::values::{self, Descriptor};
use crate::import::told::{FileStat, Told};
use crate::recorder::calls::{Role, SystemCall};
use crate::recorder::words;
use crate::system_calls;
use crate::tables::rows::Word;

/// No call has a longer name.
const MOST_NAME_BYTES: usize = 64;
/// What a mapping without a file is counted as.
pub const MAPPING: &str = "mmap of no file";

/// A name of letters and digits, as far as one can be.
pub fn short(name: &str) -> &str {
    &name[..name.len().min(MOST_NAME_BYTES)]
}

/// What a line's call is.
#[derive(Debug)]
pub enum Decoded {
    /// How long it took, if the line tells.
    Recorded(Box<Told>, Option<i64>),
    /// No file system call; its name.
    Other(String),
}

/// Decodes a whole call.
///
/// # Errors
/// At the letter from which it is none.
pub fn decode(text: &[u8]) -> Result<Decoded, Fault> {
    let parts = arguments::parts(text)?;
    let Some((call, shape)) = names::call(parts.name) else {
        return Ok(Decoded::Other(short(parts.name).to_owned()));
    };
    let outcome = result::read(parts.result)
        .map_err(|fault| Fault::new(text.len() - parts.result.len() + fault.at, fault.what))?;
    // Of an anonymous mapping there is no file; the recorder lets it pass as well.
    if call.number == system_calls::SYS_mmap && is_anonymous(&parts) {
        return Ok(Decoded::Other(MAPPING.to_owned()));
    }
    let duration_ns = outcome.duration_ns;
    let mut told = arguments_of(call, shape, &parts.arguments);
    told.finish(&parts.arguments, outcome, shape);
    Ok(Decoded::Recorded(Box::new(told), duration_ns))
}

/// Decodes what is there of a call that was never seen to end.
pub fn decode_begun(text: &[u8]) -> Option<Decoded> {
    let mut whole = text.trim_ascii_end().to_vec();
    if !whole.ends_with(b")") {
        whole.push(b')');
    }
    whole.extend_from_slice(b" = ?");
    decode(&whole).ok()
}

fn is_anonymous(parts: &Parts) -> bool {
    let is_raw = |flags: &[u8]| {
        let number = values::number(flags);
        number.is_some_and(|number| number & i64::from(libc::MAP_ANONYMOUS) != 0)
    };
    parts.arguments.get(3).is_some_and(|flags| names_no_file(flags) || is_raw(flags))
}

/// Whether the flags of a mapping say that it is of no file.
pub fn names_no_file(text: &[u8]) -> bool {
    text.windows(8).any(|part| part == b"MAP_ANON")
}

fn arguments_of(call: &'static SystemCall, shape: ArgumentShape, arguments: &[&[u8]]) -> Told {
    let mut told = Told::new(call);
    for (index, role) in call.roles.iter().enumerate() {
        // Behind the offset strace prints one argument less than the kernel has.
        let index = match (shape, index) {
            (ArgumentShape::OneOffset, 5) => 4,
            (ArgumentShape::LongSeek, 2) => 3,
            (ArgumentShape::FlagsSecond, 1) => 2,
            (ArgumentShape::FlagsSecond, 2) => 3,
            (ArgumentShape::FlagsSecond, 3) => 1,
            (_, index) => index,
        };
        // Of raw numbers (-e raw) the first are the flags.
        let clone_flags = || {
            let named = arguments.iter().find_map(|it| it.strip_prefix(b"flags="));
            named.or_else(|| arguments.first().copied().filter(|it| !it.contains(&b'=')))
        };
        let text = match call.number {
            system_calls::SYS_clone => clone_flags(),
            _ => arguments.get(index).copied(),
        };
        // The last ones may be left out: the mode of an open that makes nothing.
        let Some(text) = text.filter(|text| *text != b"...") else { continue };
        told.argument(*role, text, arguments.get(index + 1).copied());
    }
    told
}

impl Told {
    fn argument(&mut self, role: Role, text: &[u8], next: Option<&[u8]>) {
        let row = &mut self.row;
        let mut lacks = false;
        let mut known = |value: Option<i64>| {
            lacks |= value.is_none();
            value
        };
        match role {
            Role::Other | Role::Bytes | Role::Stat | Role::Statx => {}
            Role::Descriptor => {
                let found = values::descriptor(text);
                row.descriptor = known(found.as_ref().map(|it| it.number));
                let found = found.unwrap_or_default();
                (self.descriptor_path, self.no_file) = (found.path, found.no_file);
            }
            Role::Descriptor2 => {
                row.descriptor2 = known(values::descriptor(text).map(|it| it.number))
            }
            Role::Directory | Role::Directory2 => {
                let (number, path) = match values::descriptor(text) {
                    Some(Descriptor { number, path, .. }) => (Some(number), path),
                    None => (None, None),
                };
                if role == Role::Directory {
                    (row.directory, self.directory_path) = (known(number), path);
                } else {
                    (row.directory2, self.directory2_path) = (known(number), path);
                }
            }
            Role::Path | Role::Path2 | Role::Text => {
                let found = values::string(text);
                lacks = found.as_ref().map_or(text != b"NULL", |it| it.is_cut);
                let bytes = found.filter(|it| !it.is_cut).map(|it| it.bytes);
                let as_text = bytes.as_deref().map(words::text);
                match role {
                    Role::Path => (row.path, self.path) = (as_text, bytes),
                    Role::Path2 => (row.path2, self.path2) = (as_text, bytes),
                    _ => row.text = as_text,
                }
            }
            Role::Offset => row.offset_bytes = known(values::number(text)),
            Role::OffsetAt => row.offset_bytes = pointed(text),
            Role::Offset2At => row.offset2_bytes = pointed(text),
            Role::Length => row.length_bytes = known(values::number(text)),
            Role::OldLength => row.offset2_bytes = known(values::number(text)),
            Role::Vectors | Role::VectorsOut => {
                row.vectors = next.and_then(values::number);
                row.length_bytes = known(vectors_bytes(text));
            }
            Role::Flags => row.flags = known(values::flags(text)),
            Role::Mode => row.mode = known(values::flags(text)),
            Role::Address => row.address = known(values::number(text)),
            Role::Whence => row.command = Some(values::word(text, words::whence)),
            Role::LockOperation => {
                row.flags = known(values::flags(text));
                let operation = row.flags.map(|flags| flags as i32 & !libc::LOCK_NB);
                row.command = operation.map(words::lock_operation);
            }
            Role::Command => self.command_argument(text, next),
            Role::OpenHow => {
                row.flags = known(field(text, "flags").and_then(values::flags));
                row.mode = Some(field(text, "mode").and_then(values::flags).unwrap_or(0));
            }
            Role::CloneArguments => {
                // What clone3 gave back stands behind =>.
                let given = text.split(|letter| *letter == b'}').next().unwrap_or(text);
                let given = [given, b"}"].concat();
                row.flags = known(field(&given, "flags").and_then(values::flags));
            }
            Role::RingParameters => row.flags = field(text, "flags").and_then(values::flags),
            Role::Pair => {
                let both: Vec<_> = elements(text).into_iter().map(values::descriptor).collect();
                if let [Some(first), Some(second)] = both.as_slice() {
                    (row.descriptor, row.descriptor2) = (Some(first.number), Some(second.number));
                }
            }
        }
        self.unread += u64::from(lacks);
    }

    /// A command of fcntl(2) and what belongs to it.
    fn command_argument(&mut self, command: &[u8], argument: Option<&[u8]>) {
        let row = &mut self.row;
        let word_of_command = values::word(command, command_word);
        // The commands of 32-bit machines whose locks have 64 bits (fcntl(2)).
        let command = word_of_command.strip_suffix("64").unwrap_or(&word_of_command).to_owned();
        row.command = Some(Word::Owned(command.clone()));
        let argument = argument.unwrap_or_default();
        let asked = argument.split(|letter| *letter == b'>').next_back().unwrap_or(argument);
        if !asked.starts_with(b"{") {
            row.flags = if argument.is_empty() { Some(0) } else { values::flags(argument) };
            // Of a lock its address tells nothing.
            self.unread += u64::from(row.flags.is_none() || command.contains("LK"));
            return;
        }
        // Without l_ before strace 4.9.
        let of = |name: &str| field(asked, &format!("l_{name}")).or_else(|| field(asked, name));
        // Of F_GETLK strace tells what was found; F_UNLCK cannot have been asked for (fcntl(2)).
        let is_answer = matches!(&*command, "F_GETLK" | "F_OFD_GETLK");
        let lock = of("type").map(|it| values::word(it, |kind| words::lock(kind as i16)));
        let asked = lock.filter(|it| !is_answer || *it != "F_UNLCK");
        row.lock = Some(asked.unwrap_or(Word::Borrowed("F_WRLCK")));
        row.flags = of("whence").and_then(values::flags);
        row.offset_bytes = of("start").and_then(values::number);
        row.length_bytes = of("len").and_then(values::number);
        self.unread += u64::from(row.length_bytes.is_none());
    }

    fn finish(&mut self, arguments: &[&[u8]], outcome: CallResult, shape: ArgumentShape) {
        let CallResult { result, error, path, tid, .. } = outcome;
        (self.row.result, self.row.error) = (result, error);
        (self.result_path, self.made_tid) = (path, tid);
        let has_pair = self.row.descriptor2.is_some();
        let lacks_pair = self.call.roles.contains(&Role::Pair) && !has_pair;
        self.unread += u64::from(lacks_pair && self.success().is_some());
        let string = |index: usize| values::string(arguments.get(index)?).filter(|it| !it.is_cut);
        match self.call.number {
            system_calls::SYS_lseek
                if shape == ArgumentShape::LongSeek && self.success().is_some() =>
            {
                let at = arguments.get(2).and_then(|text| pointed(text));
                self.unread += u64::from(at.is_none());
                self.row.result = at.or(self.row.result);
            }
            system_calls::SYS_getcwd => self.answer = string(0).map(|it| it.bytes),
            system_calls::SYS_readlink => self.answer = string(1).map(|it| it.bytes),
            system_calls::SYS_readlinkat => self.answer = string(2).map(|it| it.bytes),
            system_calls::SYS_execve => {
                let list = arguments.get(1).map(|list| elements(list)).unwrap_or_default();
                self.command =
                    list.into_iter().filter_map(values::string).map(|it| it.bytes).collect();
            }
            // Lists of many buffers are cut; what was done is known at least.
            _ if self.row.vectors.is_some() && self.row.length_bytes.is_none() => {
                self.row.length_bytes = self.success();
            }
            _ => {}
        }
        if self.success() == Some(0) {
            self.stat = arguments.iter().rev().find_map(|text| stat(text));
        }
    }
}

/// Of `{st_mode=S_IFREG|0644, st_size=5, ...}`, or the like of statx.
fn stat(text: &[u8]) -> Option<FileStat> {
    let prefix = [("st_", &b"{st_"[..]), ("stx_", b"{stx_")];
    let (prefix, _) = prefix.into_iter().find(|(_, begin)| text.starts_with(begin))?;
    let of = |name: &str| field(text, &format!("{prefix}{name}")).and_then(values::flags);
    Some(FileStat { mode: of("mode"), size_bytes: of("size"), links: of("nlink") })
}

/// Bytes of all buffers of `[{iov_base=.., iov_len=5}, {"..", 5}]`.
fn vectors_bytes(text: &[u8]) -> Option<i64> {
    if text == b"[]" {
        return Some(0);
    }
    let list = elements(text);
    if list.is_empty() {
        return None;
    }
    list.into_iter().try_fold(0_i64, |sum, buffer| {
        let length = field(buffer, "iov_len").or_else(|| elements(buffer).pop())?;
        sum.checked_add(values::number(length).filter(|it| *it >= 0)?)
    })
}

/// A number behind an address: `[5]`, or `[5] => [10]` where the call changes it.
fn pointed(text: &[u8]) -> Option<i64> {
    let end = text.iter().position(|letter| *letter == b']')?;
    values::number(text.strip_prefix(b"[")?.get(..end - 1)?)
}

/// The word of a command of fcntl(2). Three are of 32-bit machines alone (asm-generic/fcntl.h).
fn command_word(number: i32) -> Word {
    match number {
        12 => Word::Borrowed("F_GETLK"),
        13 => Word::Borrowed("F_SETLK"),
        14 => Word::Borrowed("F_SETLKW"),
        number => words::command(number),
    }
}

#[cfg(test)]
#[path = "decode_test.rs"]
mod tests;
