//! From a printed call, `NAME(ARGUMENTS) = RESULT`, to a row of `calls`, by the roles that the
//! recorder knows the arguments by. Cuts the line into its parts without looking into them:
//! strings, structures and the paths of -y may have every letter. Names are those of x86_64: a
//! trace of another machine, or of another strace, has others. Besides, decodes what the trace
//! tells of files: results of stat, paths of -y.

use super::line::{Fault, is_of_name};
use super::values::{self, CallResult, Descriptor};
use crate::import::traced_call::{FileStat, TracedCall};
use crate::recorder::calls::{Role, SystemCall};
use crate::recorder::words;
use crate::system_calls;
use crate::tables::rows::Word;

/// No call has a longer name.
const MOST_NAME_BYTES: usize = 64;
/// The name under which a mapping without a file is counted.
pub const MAPPING: &str = "mmap of no file";

/// A name of letters and digits, as far as one can be.
pub fn short(name: &str) -> &str {
    &name[..name.len().min(MOST_NAME_BYTES)]
}

/// The call of a line.
#[derive(Debug)]
pub enum DecodedCall {
    /// A call, and its duration if the line tells it.
    Recorded(Box<TracedCall>, Option<i64>),
    /// No file system call; its name.
    Other(String),
}

/// Decodes a whole call.
///
/// # Errors
/// At the letter from which it is none.
pub fn decode(text: &[u8]) -> Result<DecodedCall, Fault> {
    let parts = parts(text)?;
    let Some((call, shape)) = call(parts.name) else {
        return Ok(DecodedCall::Other(short(parts.name).to_owned()));
    };
    let outcome = values::read(parts.result)
        .map_err(|fault| Fault::new(text.len() - parts.result.len() + fault.at, fault.what))?;
    // Of an anonymous mapping there is no file; the recorder lets it pass as well.
    if call.number == system_calls::SYS_mmap && is_anonymous(&parts) {
        return Ok(DecodedCall::Other(MAPPING.to_owned()));
    }
    let duration_ns = outcome.duration_ns;
    let mut call = arguments_of(call, shape, &parts.arguments);
    call.finish(&parts.arguments, outcome, shape);
    Ok(DecodedCall::Recorded(Box::new(call), duration_ns))
}

/// Decodes what is there of a call that was never seen to end.
pub fn decode_begun(text: &[u8]) -> Option<DecodedCall> {
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

/// Return whether the flags of a mapping say that it is of no file.
pub fn names_no_file(text: &[u8]) -> bool {
    text.windows(8).any(|part| part == b"MAP_ANON")
}

fn arguments_of(
    system_call: &'static SystemCall,
    shape: ArgumentShape,
    arguments: &[&[u8]],
) -> TracedCall {
    let mut call = TracedCall::new(system_call);
    for (index, role) in system_call.roles.iter().enumerate() {
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
        let text = match system_call.number {
            system_calls::SYS_clone => clone_flags(),
            _ => arguments.get(index).copied(),
        };
        // The last ones may be left out: the mode of an open that makes nothing.
        let Some(text) = text.filter(|text| *text != b"...") else { continue };
        call.argument(*role, text, arguments.get(index + 1).copied());
    }
    call
}

impl TracedCall {
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
            Role::OffsetAt => row.offset_bytes = number_at_address(text),
            Role::Offset2At => row.offset2_bytes = number_at_address(text),
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
                let structure = text.split(|letter| *letter == b'}').next().unwrap_or(text);
                let structure = [structure, b"}"].concat();
                row.flags = known(field(&structure, "flags").and_then(values::flags));
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
        let lock_text = argument.split(|letter| *letter == b'>').next_back().unwrap_or(argument);
        if !lock_text.starts_with(b"{") {
            row.flags = if argument.is_empty() { Some(0) } else { values::flags(argument) };
            // Of a lock its address tells nothing.
            self.unread += u64::from(row.flags.is_none() || command.contains("LK"));
            return;
        }
        // Without l_ before strace 4.9.
        let of =
            |name: &str| field(lock_text, &format!("l_{name}")).or_else(|| field(lock_text, name));
        // Of F_GETLK strace tells what was found; F_UNLCK cannot have been asked for (fcntl(2)).
        let is_answer = matches!(&*command, "F_GETLK" | "F_OFD_GETLK");
        let lock = of("type").map(|it| values::word(it, |kind| words::lock(kind as i16)));
        let kind = lock.filter(|it| !is_answer || *it != "F_UNLCK");
        row.lock = Some(kind.unwrap_or(Word::Borrowed("F_WRLCK")));
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
        let lacks_pair = self.system_call.roles.contains(&Role::Pair) && !has_pair;
        self.unread += u64::from(lacks_pair && self.success().is_some());
        let string = |index: usize| values::string(arguments.get(index)?).filter(|it| !it.is_cut);
        match self.system_call.number {
            system_calls::SYS_lseek
                if shape == ArgumentShape::LongSeek && self.success().is_some() =>
            {
                let at = arguments.get(2).and_then(|text| number_at_address(text));
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

/// Return the state in `{st_mode=S_IFREG|0644, st_size=5, ...}`, or the like of statx.
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
fn number_at_address(text: &[u8]) -> Option<i64> {
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

/// The parts of a call; those of the arguments stand in `Parts::arguments`.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Parts<'a> {
    pub name: &'a str,
    pub arguments: Vec<&'a [u8]>,
    /// The text behind `= `.
    pub result: &'a [u8],
}

/// The text in place of the arguments of a call that was killed.
const UNFINISHED: &[u8] = b"<unfinished ...>";

/// Cuts a whole call.
///
/// # Errors
/// At the letter from which it is no call.
pub fn parts(text: &[u8]) -> Result<Parts<'_>, Fault> {
    let letters = text.iter().take_while(|letter| is_of_name(**letter)).count();
    let name = std::str::from_utf8(&text[..letters]).unwrap_or_default();
    if name.is_empty() || text.get(letters) != Some(&b'(') {
        return Err(Fault::new(letters, "no call: a name and ( are expected"));
    }
    let mut cut = ArgumentCutter { text, at: letters + 1, depth: 0 };
    let mut parts = Parts { name, ..Parts::default() };
    let mut begin = cut.at;
    let end = loop {
        match cut.next()? {
            Mark::Comma => {
                parts.arguments.push(text[begin..cut.at - 1].trim_ascii());
                begin = cut.at;
            }
            Mark::End => break cut.at,
        }
    };
    let last = text[begin..end - 1].trim_ascii();
    // Of a call that was cut off the last one may be missing.
    let last = last.strip_suffix(UNFINISHED).unwrap_or(last).trim_ascii();
    if !last.is_empty() {
        parts.arguments.push(last);
    }
    let rest = text[end..].trim_ascii();
    parts.result = match rest.strip_prefix(b"=") {
        Some(result) => result.trim_ascii(),
        None => return Err(Fault::new(end, "no result: = is expected behind the arguments")),
    };
    Ok(parts)
}

/// The elements of a list `[A, B]` or of a structure `{A, B}`; nothing if it is none.
pub fn elements(text: &[u8]) -> Vec<&[u8]> {
    let inner = match text {
        [b'[', inner @ .., b']'] | [b'{', inner @ .., b'}'] => inner,
        _ => return Vec::new(),
    };
    let mut cut = ArgumentCutter { text: inner, at: 0, depth: 0 };
    let (mut found, mut begin) = (Vec::new(), 0);
    while let Ok(Mark::Comma) = cut.next() {
        found.push(inner[begin..cut.at - 1].trim_ascii());
        begin = cut.at;
    }
    found.push(inner[begin..].trim_ascii());
    found
}

/// The field of a structure `{NAME=VALUE, ...}`.
pub fn field<'a>(text: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let value = |element: &'a [u8]| element.strip_prefix(name.as_bytes())?.strip_prefix(b"=");
    elements(text).into_iter().find_map(value)
}

enum Mark {
    Comma,
    End,
}

struct ArgumentCutter<'a> {
    text: &'a [u8],
    at: usize,
    depth: usize,
}

impl ArgumentCutter<'_> {
    /// Goes behind the next comma that parts arguments, or the bracket behind the last one.
    fn next(&mut self) -> Result<Mark, Fault> {
        while let Some(letter) = self.text.get(self.at) {
            let at = self.at;
            self.at += 1;
            match letter {
                b'"' => self.string()?,
                b'<' if self.text[at..].starts_with(UNFINISHED) => self.at += UNFINISHED.len() - 1,
                b'<' if is_annotated(&self.text[..at]) => self.annotation()?,
                b'/' if self.text.get(self.at) == Some(&b'*') => self.comment()?,
                b'(' | b'[' | b'{' => self.depth += 1,
                b')' if self.depth == 0 => return Ok(Mark::End),
                b')' | b']' | b'}' => {
                    let depth = self.depth.checked_sub(1);
                    self.depth = depth.ok_or(Fault::new(at, "a bracket that none opens"))?;
                }
                b',' if self.depth == 0 => return Ok(Mark::Comma),
                _ => {}
            }
        }
        Err(Fault::new(self.at, "the line ends within the call"))
    }

    fn string(&mut self) -> Result<(), Fault> {
        let begin = self.at;
        while let Some(letter) = self.text.get(self.at) {
            self.at += 1;
            match letter {
                b'\\' => self.at += 1,
                b'"' => return Ok(()),
                _ => {}
            }
        }
        Err(Fault::new(begin - 1, "a string without end"))
    }

    /// Skip the annotation of -y behind a descriptor: `3</a/b>`, with -yy `3<TCP:[A->B]>` and
    /// `3</dev/null<char>>`.
    fn annotation(&mut self) -> Result<(), Fault> {
        let (begin, mut depth, mut within) = (self.at, 1, 0_usize);
        while let Some(letter) = self.text.get(self.at) {
            self.at += 1;
            match letter {
                b'\\' => self.at += 1,
                b'[' => within += 1,
                b']' => within = within.saturating_sub(1),
                b'<' => depth += 1,
                b'>' if within > 0 && self.text[self.at - 2] == b'-' => {}
                b'>' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return Ok(());
            }
        }
        Err(Fault::new(begin - 1, "a path of -y without end"))
    }

    fn comment(&mut self) -> Result<(), Fault> {
        let rest = &self.text[self.at..];
        match rest.windows(2).position(|pair| pair == b"*/") {
            Some(end) => self.at += end + 2,
            None => return Err(Fault::new(self.at - 1, "a comment without end")),
        }
        Ok(())
    }
}

/// Return whether a text ends with a descriptor: a number, AT_FDCWD, or a number with its word
/// behind it.
fn is_annotated(text: &[u8]) -> bool {
    let is_descriptor = |letter: &u8| letter.is_ascii_hexdigit() || *letter == b'D';
    text.last().is_some_and(is_descriptor) || text.ends_with(b"*/")
}

/// The way in which the printed arguments differ from the kernel's on x86_64.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArgumentShape {
    /// Not at all.
    Same,
    /// `_llseek(DESCRIPTOR, OFFSET, [RESULT], WHENCE)`.
    LongSeek,
    /// The offset is one argument, of two in the kernel: `preadv2(.., .., .., OFFSET, FLAGS)`.
    OneOffset,
    /// The flags come second: `sync_file_range2(DESCRIPTOR, FLAGS, OFFSET, LENGTH)` of arm and
    /// powerpc, whose pairs of registers begin at even ones (sync_file_range(2)).
    FlagsSecond,
}

/// The recorded call of a printed name; none if it is none.
pub fn call(name: &str) -> Option<(&'static SystemCall, ArgumentShape)> {
    // Of a process of another kind than the one before: read#64, read#x32.
    let name = name.split('#').next().unwrap_or(name);
    let (name, shape) = match name {
        "sync_file_range2" | "arm_sync_file_range" => {
            ("sync_file_range", ArgumentShape::FlagsSecond)
        }
        "arm_fadvise64_64" => ("fadvise64", ArgumentShape::FlagsSecond),
        "_llseek" | "llseek" => ("lseek", ArgumentShape::LongSeek),
        "preadv2" | "pwritev2" => (name, ArgumentShape::OneOffset),
        "pread" => ("pread64", ArgumentShape::Same),
        "pwrite" => ("pwrite64", ArgumentShape::Same),
        "mmap2" | "old_mmap" => ("mmap", ArgumentShape::Same),
        "fstatat64" | "fstatat" => ("newfstatat", ArgumentShape::Same),
        "fadvise64_64" => ("fadvise64", ArgumentShape::Same),
        "umount" => ("umount2", ArgumentShape::Same),
        "oldstat" => ("stat", ArgumentShape::Same),
        "oldlstat" => ("lstat", ArgumentShape::Same),
        "oldfstat" => ("fstat", ArgumentShape::Same),
        "chown32" | "fchown32" | "lchown32" => (&name[..name.len() - 2], ArgumentShape::Same),
        "utimensat_time64" => ("utimensat", ArgumentShape::Same),
        "stat64" | "lstat64" | "fstat64" | "truncate64" | "ftruncate64" | "fcntl64"
        | "sendfile64" | "statfs64" | "fstatfs64" => (&name[..name.len() - 2], ArgumentShape::Same),
        _ => (name, ArgumentShape::Same),
    };
    SystemCall::find_name(name).map(|call| (call, shape))
}

#[cfg(test)]
mod arguments_tests {
    use super::*;

    fn cut(text: &str) -> (String, Vec<String>, String) {
        let parts = parts(text.as_bytes()).unwrap();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        (parts.name.into(), parts.arguments.into_iter().map(text).collect(), text(parts.result))
    }

    #[test]
    fn a_call_is_cut_at_its_own_commas_and_brackets() {
        let (name, arguments, result) =
            cut(r#"openat(AT_FDCWD</a,(b>, "x\", (", O_RDWR|O_CREAT, 0644)   = 3</a/x> <0.01>"#);
        assert_eq!(name, "openat");
        assert_eq!(arguments, ["AT_FDCWD</a,(b>", r#""x\", (""#, "O_RDWR|O_CREAT", "0644"]);
        assert_eq!(result, "3</a/x> <0.01>");
        assert_eq!(cut("sync() = 0").1.len(), 0);
        let (_, arguments, _) =
            cut("read(3<TCP:[1.1.1.1:5->2.2.2.2:6]>, 0x5 /* 4, ) */, 1 << 3) = ?");
        assert_eq!(arguments, ["3<TCP:[1.1.1.1:5->2.2.2.2:6]>", "0x5 /* 4, ) */", "1 << 3"]);
        assert_eq!(cut("close(3</dev/null<char 1:3>>) = 0").1, ["3</dev/null<char 1:3>>"]);
        let (_, arguments, _) = cut(r#"writev(4, [{iov_base="a", iov_len=1}, {"b", 2}], 2) = 3"#);
        let vectors = elements(arguments[1].as_bytes());
        assert_eq!(vectors.len(), 2);
        assert_eq!(field(vectors[0], "iov_len").unwrap(), b"1");
        assert_eq!(elements(vectors[1]), [b"\"b\"".as_slice(), b"2"]);
    }

    #[test]
    fn a_malformed_call_is_told_by_its_column() {
        let fault = |text: &str| parts(text.as_bytes()).unwrap_err();
        assert_eq!(fault("hello world").at, 5);
        assert_eq!(fault(r#"open("x"#).at, 5);
        assert_eq!(fault("open(3<x").at, 6);
        assert_eq!(fault("read(3, {a]}, 4)").what, "a bracket that none opens");
        assert_eq!(fault("close(3)").at, 8);
    }

    #[test]
    fn names_of_other_machines_are_known() {
        let of = |name| call(name).map(|(call, shape)| (call.name, shape));
        assert_eq!(of("fstat64"), Some(("fstat", ArgumentShape::Same)));
        assert_eq!(of("fchown32"), Some(("fchown", ArgumentShape::Same)));
        assert_eq!(of("_llseek"), Some(("lseek", ArgumentShape::LongSeek)));
        assert_eq!(of("getdents64"), Some(("getdents64", ArgumentShape::Same)));
        assert_eq!(of("pwrite64#64"), Some(("pwrite64", ArgumentShape::Same)));
        let ranged = Some(("sync_file_range", ArgumentShape::FlagsSecond));
        assert_eq!(of("sync_file_range2"), ranged);
        assert_eq!(of("brk"), None);
    }
}

#[cfg(test)]
#[path = "decode_test.rs"]
mod decode_tests;
