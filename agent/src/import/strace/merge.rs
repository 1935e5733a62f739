//! The lines of one file or several, in the order of their times: -ff makes a file for each thread.
//! A whole file is read once before: for its clock, which some first line that is none must not
//! decide, and for the number of the thread whose lines have none. strace writes no number of a
//! thread while it follows a single one: as long as there is no other, and again when all others
//! have ended.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashSet};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::joined::JoinedLines;
use super::line::{self, LineContent, LineStamp, TraceLine};
use super::values;
use crate::errors::WrongUse;
use crate::import::lines::{BadLines, Lines, Next};

/// A line whose beginning has been read.
#[derive(Debug, Default)]
pub struct Merge {
    pub file: PathBuf,
    pub number: u64,
    pub tid: i64,
    pub time_ns: Option<i64>,
    pub text: Vec<u8>,
    /// Letters before what it says.
    pub prefix: usize,
}

struct Source {
    lines: JoinedLines,
    clock: TraceClock,
    numbers: ThreadNumbers,
    waiting: Merge,
}

/// All files of a trace.
pub struct MergedLines {
    sources: Vec<Source>,
    /// The files by their earliest lines.
    order: BinaryHeap<Reverse<(i64, usize)>>,
    /// The file whose line was given last.
    given: Option<usize>,
    is_begun: bool,
    pub lines: u64,
}

impl MergedLines {
    /// Opens the files, whose forms are known.
    ///
    /// # Errors
    /// If one cannot be read.
    pub fn open(files: &[PathBuf], forms: &[FileForm]) -> anyhow::Result<Self> {
        let lines = files.iter().map(|file| Lines::open(file));
        Ok(Self::from_files(lines.collect::<anyhow::Result<_>>()?, forms))
    }

    /// Return the lines of open files in one order.
    pub fn from_files(files: Vec<Lines>, forms: &[FileForm]) -> Self {
        let mut sources = Vec::new();
        for (index, (lines, form)) in files.into_iter().zip(forms).enumerate() {
            let named = tid_of_name(&lines.path).unwrap_or(index as i64 + 1);
            let waiting = Merge { file: lines.path.clone(), ..Merge::default() };
            sources.push(Source {
                lines: JoinedLines::new(lines),
                clock: TraceClock::new(form.kind, form.first_ns),
                numbers: ThreadNumbers::new(form.first_tid.unwrap_or(named)),
                waiting,
            });
        }
        MergedLines { sources, order: BinaryHeap::new(), given: None, is_begun: false, lines: 0 }
    }

    /// The next line; it is in the place of the one before.
    ///
    /// # Errors
    /// If a file cannot be read, or has no times to order several files by.
    pub fn next(&mut self, bad: &mut BadLines) -> anyhow::Result<Option<&Merge>> {
        if !self.is_begun {
            self.is_begun = true;
            for index in 0..self.sources.len() {
                self.fill(index, bad)?;
            }
        } else if let Some(given) = self.given {
            self.fill(given, bad)?;
        }
        self.given = self.order.pop().map(|Reverse((_, index))| index);
        Ok(self.given.map(|index| &self.sources[index].waiting))
    }

    fn fill(&mut self, index: usize, bad: &mut BadLines) -> anyhow::Result<()> {
        let is_alone = self.sources.len() == 1;
        let source = &mut self.sources[index];
        if !source.fill(&mut self.lines, bad)? {
            return Ok(());
        }
        let kind = source.clock.kind;
        if !is_alone && !matches!(kind, ClockKind::Absolute | ClockKind::OfDay) {
            let message = format!(
                "{}: line {}: no time of day, by which several files could be put in order; record \
                 with strace -ff -ttt",
                source.waiting.file.display(),
                source.lines.number,
            );
            return Err(WrongUse(message).into());
        }
        let time_ns = source.waiting.time_ns.unwrap_or(0);
        self.order.push(Reverse((time_ns, index)));
        Ok(())
    }

    /// Return whether there are several files.
    pub fn is_of_several(&self) -> bool {
        self.sources.len() > 1
    }

    /// Lines without a number of a thread, although several were followed.
    pub fn doubtful(&self) -> u64 {
        self.sources.iter().map(|source| source.numbers.doubtful).sum()
    }

    /// Return what the files tell of times.
    pub fn times(&self, ends: &Times) -> Times {
        let kind = self.sources.first().map(|source| source.clock.kind).unwrap_or_default();
        Times { kind, ..*ends }
    }
}

impl Source {
    /// Reads on to a line that says something; false at the end.
    fn fill(&mut self, lines: &mut u64, bad: &mut BadLines) -> anyhow::Result<bool> {
        loop {
            let before = self.lines.lines.number;
            let next = self.lines.next(&mut self.waiting.text);
            let path = &self.waiting.file;
            let next = next.map_err(|error| anyhow::anyhow!("{}: {error}", path.display()))?;
            let number = self.lines.number;
            *lines += self.lines.lines.number - before;
            let (at, what) = match next {
                Next::End => return Ok(false),
                Next::TooLong => (0, "longer than a line can be"),
                Next::Line => match line::read(&self.waiting.text) {
                    Ok(None) => continue,
                    Ok(Some(read)) => {
                        let tid = self.numbers.thread(&read);
                        // What strace tells of itself has no time.
                        let stamp = if read.is_event() { read.stamp } else { LineStamp::None };
                        self.waiting.time_ns = self.clock.time_ns(stamp);
                        self.waiting.number = number;
                        self.waiting.tid = tid;
                        self.waiting.prefix = read.prefix;
                        if let LineContent::Nothing
                        | LineContent::Attached(..)
                        | LineContent::Detached(_) = read.content
                        {
                            continue;
                        }
                        return Ok(true);
                    }
                    Err(fault) => (fault.at, fault.what),
                },
            };
            bad.line(path, number, at, what, &self.waiting.text)?;
        }
    }
}

/// Return the thread whose file of -ff this is: NAME.TID.
fn tid_of_name(file: &Path) -> Option<i64> {
    file.extension()?.to_str()?.parse().ok().filter(|tid| *tid > 0)
}

/// The form of times and threads in a file.
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
    files.iter().map(|file| FileForm::read(Lines::open(file)?)).collect()
}

impl FileForm {
    /// Reads a whole file.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read(lines: Lines) -> anyhow::Result<Self> {
        let path = lines.path.clone();
        let (mut lines, mut text) = (JoinedLines::new(lines), Vec::new());
        let mut evidence = FormEvidence::default();
        loop {
            let next = lines.next(&mut text);
            match next.map_err(|error| anyhow::anyhow!("{}: {error}", path.display()))? {
                Next::End => return Ok(evidence.form()),
                Next::TooLong => {}
                Next::Line => {
                    if let Ok(Some(read)) = line::read(&text) {
                        evidence.line(&read);
                    }
                }
            }
        }
    }
}

/// Sums of the lines of a file that were read so far.
#[derive(Default)]
struct FormEvidence {
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

impl FormEvidence {
    fn line(&mut self, read: &TraceLine) {
        if let LineContent::Attached(tid, threads) = read.content {
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
        self.children.extend(child_of(&read.content));
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
pub fn child_of(content: &LineContent) -> Option<i64> {
    let (name, text) = match content {
        LineContent::Call(text) => (*text, *text),
        LineContent::Resumed(name, rest) => (*name, *rest),
        _ => return None,
    };
    let makes = [&b"clone"[..], b"fork", b"vfork"];
    if !makes.iter().any(|word| name.starts_with(word)) {
        return None;
    }
    let begin = text.windows(2).rposition(|pair| pair == b"= ")?;
    let outcome = values::read(text[begin + 2..].trim_ascii()).ok()?;
    outcome.tid.or(outcome.result).filter(|child| *child > 0)
}

const DAY_NS: i64 = 24 * 3600 * 1_000_000_000;

/// The times of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Times {
    pub kind: ClockKind,
    /// Calls that have an end, and those that returned without one being told.
    pub with_end: u64,
    pub without_end: u64,
    /// Calls that were begun, and of which the trace does not tell that they returned.
    pub unseen_ends: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ClockKind {
    /// Nothing but an order.
    #[default]
    Order,
    /// Since 1970 (-ttt).
    Absolute,
    /// Since the midnight before the first line (-t, -tt).
    OfDay,
    /// Since the first line (-r).
    Relative,
}

impl Times {
    /// Clock and beginning, for the manifest.
    pub fn facts(&self, began_ns: i64) -> Vec<(&'static str, Value)> {
        let clock = match self.kind {
            ClockKind::Absolute => "CLOCK_REALTIME",
            ClockKind::OfDay => "time of day",
            ClockKind::Relative => "relative",
            ClockKind::Order => "none",
        };
        let mut facts = vec![("clock", json!(clock)), ("began_ns", json!(began_ns))];
        if self.kind == ClockKind::Absolute {
            facts.push(("began_unix_ns", json!(began_ns)));
        }
        facts
    }

    /// Return the word for the kind of `begin_ns` of calls.
    pub fn begin_word(&self) -> &'static str {
        if self.kind == ClockKind::Order { "order" } else { "told" }
    }

    /// Return what a reader should know besides.
    pub fn note(&self) -> Option<String> {
        let text = "no times: begin_ns is the calls' order only; strace tells times with -ttt";
        (self.kind == ClockKind::Order).then(|| text.to_owned())
    }
}

/// The clock of a file.
#[derive(Debug)]
pub struct TraceClock {
    pub kind: ClockKind,
    last_ns: i64,
    days_ns: i64,
}

impl TraceClock {
    /// Return a clock for a kind of time, from the first time that the file tells.
    pub fn new(kind: ClockKind, first_ns: i64) -> Self {
        TraceClock { kind, last_ns: first_ns, days_ns: 0 }
    }

    /// The time of a line; none where the file has no times. A line of another kind has the time
    /// of the one before.
    pub fn time_ns(&mut self, stamp: LineStamp) -> Option<i64> {
        match (self.kind, stamp) {
            (ClockKind::Absolute, LineStamp::Absolute(ns)) => self.last_ns = ns,
            (ClockKind::Relative, LineStamp::Relative(ns)) => {
                self.last_ns = self.last_ns.saturating_add(ns);
            }
            (ClockKind::OfDay, LineStamp::OfDay(ns)) => {
                // Midnight has passed where the time goes back by hours.
                if ns.saturating_add(self.days_ns) < self.last_ns - DAY_NS / 2 {
                    self.days_ns = self.days_ns.saturating_add(DAY_NS);
                }
                self.last_ns = ns.saturating_add(self.days_ns);
            }
            _ => {}
        }
        (self.kind != ClockKind::Order).then_some(self.last_ns)
    }
}

/// The threads that strace follows at a moment.
#[derive(Debug)]
pub struct ThreadNumbers {
    /// That of the thread whose lines have none at first.
    first: i64,
    live: BTreeSet<i64>,
    /// Those that a call has made, and of which nothing was seen yet.
    made: BTreeSet<i64>,
    /// Those that strace follows, and that have said nothing yet.
    silent: BTreeSet<i64>,
    /// Those that have called exit or exit_group; of their end strace may not tell (-qq).
    leaving: BTreeSet<i64>,
    /// Lines without a number, of one of several threads.
    pub doubtful: u64,
}

impl ThreadNumbers {
    pub fn new(first: i64) -> Self {
        let none = BTreeSet::new;
        let (live, made, silent, leaving) = (none(), none(), none(), none());
        ThreadNumbers { first, live, made, silent, leaving, doubtful: 0 }
    }

    /// Return the number of the thread of a line.
    pub fn thread(&mut self, read: &TraceLine) -> i64 {
        match read.content {
            LineContent::Attached(tid, _) => {
                self.made.remove(&tid);
                self.live.insert(tid);
                self.silent.insert(tid);
                return tid;
            }
            LineContent::Detached(tid) => {
                self.live.remove(&tid);
                return tid;
            }
            _ if !read.is_event() => return read.tid.unwrap_or(self.first),
            _ => {}
        }
        let tid = read.tid.unwrap_or_else(|| self.only());
        self.made.remove(&tid);
        self.silent.remove(&tid);
        self.live.insert(tid);
        if let Some(child) = child_of(&read.content).filter(|it| !self.live.contains(it)) {
            self.made.insert(child);
        }
        match read.content {
            LineContent::Exited(_) | LineContent::Killed(_) => {
                self.live.remove(&tid);
                self.leaving.remove(&tid);
            }
            LineContent::Superseded(by) => drop(self.live.remove(&by)),
            LineContent::Call(text) | LineContent::Unfinished(text)
                if text.starts_with(b"exit_group(") || text.starts_with(b"exit(") =>
            {
                self.leaving.insert(tid);
            }
            _ => {}
        }
        tid
    }

    fn only(&mut self) -> i64 {
        if self.live.len() > 1 {
            let left = std::mem::take(&mut self.leaving);
            self.live.retain(|tid| !left.contains(tid));
        }
        // That a thread is followed is sometimes said before the end of the line that tells of it.
        let mut loud = self.live.difference(&self.silent);
        if let (Some(tid), None) = (loud.next(), loud.next()) {
            return *tid;
        }
        match (self.live.len(), self.live.first()) {
            (0, _) if self.made.len() == 1 => self.made.pop_first().unwrap_or(self.first),
            (0, _) => self.first,
            (1, Some(tid)) => *tid,
            _ => {
                self.doubtful += 1;
                self.first
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::line::read;
    use super::*;

    #[test]
    fn times_of_a_day_go_on_over_midnight_and_relative_ones_add_up() {
        let mut clock = TraceClock::new(ClockKind::OfDay, DAY_NS - 5);
        assert_eq!(clock.time_ns(LineStamp::OfDay(DAY_NS - 5)), Some(DAY_NS - 5));
        assert_eq!(clock.time_ns(LineStamp::OfDay(7)), Some(DAY_NS + 7));
        assert_eq!(clock.time_ns(LineStamp::OfDay(5)), Some(DAY_NS + 5));
        let mut clock = TraceClock::new(ClockKind::Relative, 0);
        let times = [0, 3, 4].map(|ns| clock.time_ns(LineStamp::Relative(ns)));
        assert_eq!(times, [Some(0), Some(3), Some(7)]);
        assert_eq!(clock.time_ns(LineStamp::None), Some(7));
        assert_eq!(TraceClock::new(ClockKind::Order, 0).time_ns(LineStamp::None), None);
    }

    fn numbers(first: i64, text: &str) -> (Vec<i64>, u64) {
        let mut numbers = ThreadNumbers::new(first);
        let lines = text.lines().map(|line| read(line.as_bytes()).unwrap().unwrap());
        (lines.map(|line| numbers.thread(&line)).collect(), numbers.doubtful)
    }

    #[test]
    fn a_line_without_a_number_is_of_the_only_thread() {
        let trace = "clone() = 8\n[pid 8] a() = 0\n[pid 7] b() = 0\n[pid 8] +++ exited with 0 +++\n\
                     c() = 0\n+++ exited with 0 +++";
        assert_eq!(numbers(7, trace), (vec![7, 8, 7, 8, 7, 7], 0));
        // The one that was there first may be the first to go.
        let trace = "clone() = 8\n[pid 8] a() = 0\n[pid 7] +++ killed by SIGKILL +++\nc() = 0";
        assert_eq!(numbers(7, trace), (vec![7, 8, 7, 8], 0));
        let trace = "clone() = 8\n+++ exited with 0 +++\nc() = 0\nd() = 0";
        assert_eq!(numbers(7, trace), (vec![7, 7, 8, 8], 0));
        // With -qq no end is told.
        let trace = "clone() = 8\n[pid 8] exit_group(0) = ?\nc() = 0";
        assert_eq!(numbers(7, trace), (vec![7, 8, 7], 0));
        let trace = "a() = 0\nstrace: Process 8 attached\nclone() = 8\n[pid 8] c() = 0";
        assert_eq!(numbers(7, trace), (vec![7, 8, 7, 8], 0));
        let trace = "strace: Process 5 attached\na() = 0\n[pid 6] b() = 0\nc() = 0";
        assert_eq!(numbers(5, trace), (vec![5, 5, 6, 5], 1));
    }
}
