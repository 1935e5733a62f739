//! The lines of one file or several, in the order of their times: -ff makes a file for each thread.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::{Path, PathBuf};

use super::form::FileForm;
use super::joined::JoinedLines;
use super::line::{self, LineStamp, Said};
use super::numbers::ThreadNumbers;
use super::times::{ClockKind, Times, TraceClock};
use crate::errors::WrongUse;
use crate::import::bad::Bad;
use crate::import::lines::{Lines, Next};

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
pub struct Merged {
    sources: Vec<Source>,
    /// Which file has the earliest line.
    order: BinaryHeap<Reverse<(i64, usize)>>,
    /// The file whose line was given last.
    given: Option<usize>,
    is_begun: bool,
    pub lines: u64,
}

impl Merged {
    /// Opens the files, whose forms are known.
    ///
    /// # Errors
    /// If one cannot be read.
    pub fn open(files: &[PathBuf], forms: &[FileForm]) -> anyhow::Result<Self> {
        let lines = files.iter().map(|file| Lines::open(file));
        Ok(Self::of(lines.collect::<anyhow::Result<_>>()?, forms))
    }

    /// Of files that are open.
    pub fn of(files: Vec<Lines>, forms: &[FileForm]) -> Self {
        let mut sources = Vec::new();
        for (index, (lines, form)) in files.into_iter().zip(forms).enumerate() {
            let named = tid_of_name(&lines.path).unwrap_or(index as i64 + 1);
            let waiting = Merge { file: lines.path.clone(), ..Merge::default() };
            sources.push(Source {
                lines: JoinedLines::of(lines),
                clock: TraceClock::new(form.kind, form.first_ns),
                numbers: ThreadNumbers::new(form.first_tid.unwrap_or(named)),
                waiting,
            });
        }
        Merged { sources, order: BinaryHeap::new(), given: None, is_begun: false, lines: 0 }
    }

    /// The next line; it is in the place of the one before.
    ///
    /// # Errors
    /// If a file cannot be read, or has no times to order several files by.
    pub fn next(&mut self, bad: &mut Bad) -> anyhow::Result<Option<&Merge>> {
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

    fn fill(&mut self, index: usize, bad: &mut Bad) -> anyhow::Result<()> {
        let is_alone = self.sources.len() == 1;
        let source = &mut self.sources[index];
        if !source.fill(&mut self.lines, bad)? {
            return Ok(());
        }
        let kind = source.clock.kind();
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

    /// Whether there are several files.
    pub fn is_of_several(&self) -> bool {
        self.sources.len() > 1
    }

    /// Lines without a number of a thread, although several were followed.
    pub fn doubtful(&self) -> u64 {
        self.sources.iter().map(|source| source.numbers.doubtful).sum()
    }

    /// What the files tell of times.
    pub fn times(&self, ends: &Times) -> Times {
        let kind = self.sources.first().map(|source| source.clock.kind()).unwrap_or_default();
        Times { kind, ..*ends }
    }
}

impl Source {
    /// Reads on to a line that says something; false at the end.
    fn fill(&mut self, lines: &mut u64, bad: &mut Bad) -> anyhow::Result<bool> {
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
                        let tid = self.numbers.of(&read);
                        // What strace tells of itself has no time.
                        let stamp = if read.is_event() { read.stamp } else { LineStamp::None };
                        self.waiting.time_ns = self.clock.time_ns(stamp);
                        self.waiting.number = number;
                        self.waiting.tid = tid;
                        self.waiting.prefix = read.prefix;
                        if let Said::Nothing | Said::Attached(..) | Said::Detached(_) = read.said {
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

/// Of a file of -ff: NAME.TID.
fn tid_of_name(file: &Path) -> Option<i64> {
    file.extension()?.to_str()?.parse().ok().filter(|tid| *tid > 0)
}
