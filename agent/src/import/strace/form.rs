//! What must be known of a whole file before its lines can be read for good: its clock, which some
//! first line that is none must not decide, and the number of the thread whose lines have none.

use std::collections::HashSet;
use std::path::PathBuf;

use super::joined::JoinedLines;
use super::line::{self, LineStamp, Said, TraceLine};
use super::result;
use super::times::ClockKind;
use crate::import::lines::{Lines, Next};

/// How a file tells times and threads.
#[derive(Debug, Clone, Default)]
pub struct FileForm {
    pub kind: ClockKind,
    /// The first time that it tells.
    pub first_ns: i64,
    /// The number of the thread that the first lines, which have none, are of; none where none of
    /// the lines has it.
    pub first_tid: Option<i64>,
    /// Whether strace followed all threads of one process that ran already (`-p`).
    pub is_of_one_process: bool,
}

/// The forms of the files of a trace.
///
/// # Errors
/// If one cannot be read.
pub fn forms(files: &[PathBuf]) -> anyhow::Result<Vec<FileForm>> {
    files.iter().map(|file| FileForm::of(Lines::open(file)?)).collect()
}

impl FileForm {
    /// Reads a whole file.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn of(lines: Lines) -> anyhow::Result<Self> {
        let path = lines.path.clone();
        let (mut lines, mut text) = (JoinedLines::of(lines), Vec::new());
        let mut seen = Seen::default();
        loop {
            let next = lines.next(&mut text);
            match next.map_err(|error| anyhow::anyhow!("{}: {error}", path.display()))? {
                Next::End => return Ok(seen.form()),
                Next::TooLong => {}
                Next::Line => {
                    if let Ok(Some(read)) = line::read(&text) {
                        seen.line(&read);
                    }
                }
            }
        }
    }
}

/// What was seen of a file so far.
#[derive(Default)]
struct Seen {
    /// Lines of each kind of time, by `ClockKind`, and the first time of each.
    times: [(u64, Option<i64>); 4],
    /// Numbers in the order in which they came first.
    numbers: Vec<i64>,
    known: HashSet<i64>,
    children: HashSet<i64>,
    /// Those that strace followed before it told of any call; processes with several threads.
    attached: Vec<i64>,
    processes: u64,
    has_calls: bool,
    begins_without_number: bool,
}

impl Seen {
    fn line(&mut self, read: &TraceLine) {
        if let Said::Attached(tid, threads) = read.said {
            self.processes += u64::from(threads.is_some());
            if self.has_calls {
                self.children.insert(tid);
            } else {
                self.attached.push(tid);
            }
        }
        if !read.is_event() {
            return;
        }
        if !std::mem::replace(&mut self.has_calls, true) {
            self.begins_without_number = read.tid.is_none();
        }
        let (kind, ns) = match read.stamp {
            LineStamp::None => (ClockKind::Order, 0),
            LineStamp::Absolute(ns) => (ClockKind::Absolute, ns),
            LineStamp::OfDay(ns) => (ClockKind::OfDay, ns),
            LineStamp::Relative(_) => (ClockKind::Relative, 0),
        };
        let (count, first) = &mut self.times[kind as usize];
        *count += 1;
        first.get_or_insert(ns);
        if let Some(tid) = read.tid.filter(|tid| self.known.insert(*tid)) {
            self.numbers.push(tid);
        }
        self.children.extend(child_of(&read.said));
    }

    fn form(self) -> FileForm {
        let kinds = [ClockKind::Order, ClockKind::Relative, ClockKind::OfDay, ClockKind::Absolute];
        let kind = kinds.into_iter().max_by_key(|kind| self.times[*kind as usize].0);
        let kind = kind.unwrap_or_default();
        let mut made_by_none = self.numbers.iter().filter(|tid| !self.children.contains(tid));
        let first_tid = self.attached.first().or_else(|| made_by_none.next()).copied();
        FileForm {
            kind,
            first_ns: self.times[kind as usize].1.unwrap_or(0),
            first_tid: first_tid.filter(|_| self.begins_without_number),
            is_of_one_process: self.processes == 1 && self.attached.len() == 1,
        }
    }
}

/// The number of the thread that a line's call made.
pub fn child_of(said: &Said) -> Option<i64> {
    let (name, text) = match said {
        Said::Call(text) => (*text, *text),
        Said::Resumed(name, rest) => (*name, *rest),
        _ => return None,
    };
    let makes = [&b"clone"[..], b"fork", b"vfork"];
    if !makes.iter().any(|word| name.starts_with(word)) {
        return None;
    }
    let begin = text.windows(2).rposition(|pair| pair == b"= ")?;
    let outcome = result::read(text[begin + 2..].trim_ascii()).ok()?;
    outcome.tid.or(outcome.result).filter(|child| *child > 0)
}
