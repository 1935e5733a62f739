//! The lines of one file or several, in the order of their times: -ff makes a file for each thread.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::{Path, PathBuf};

use super::line::{self, LineStamp, Said};
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
    lines: Lines,
    clock: TraceClock,
    /// Of lines that have no number of a thread.
    tid: i64,
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
    /// Opens the files.
    ///
    /// # Errors
    /// If one cannot be read.
    pub fn open(files: &[PathBuf]) -> anyhow::Result<Self> {
        files.iter().map(|file| Lines::open(file)).collect::<anyhow::Result<_>>().map(Self::of)
    }

    /// Of files that are open.
    pub fn of(files: Vec<Lines>) -> Self {
        let mut sources = Vec::new();
        for (index, lines) in files.into_iter().enumerate() {
            let tid = tid_of_name(&lines.path).unwrap_or(index as i64 + 1);
            let waiting = Merge { file: lines.path.clone(), ..Merge::default() };
            sources.push(Source { lines, clock: TraceClock::default(), tid, waiting });
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
                source.lines.path.display(),
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
            let next = self.lines.next(&mut self.waiting.text);
            let path = &self.lines.path;
            let next = next.map_err(|error| anyhow::anyhow!("{}: {error}", path.display()))?;
            let number = self.lines.number;
            *lines += u64::from(next != Next::End);
            let (at, what) = match next {
                Next::End => return Ok(false),
                Next::TooLong => (0, "longer than a line can be"),
                Next::Line => match line::read(&self.waiting.text) {
                    Ok(None) => continue,
                    Ok(Some(read)) => {
                        let time_ns = match (&read.said, read.stamp) {
                            // What strace tells of itself has no time.
                            (Said::Nothing | Said::OtherAbi, LineStamp::None) => None,
                            (_, stamp) => self.clock.time_ns(stamp),
                        };
                        self.waiting.number = number;
                        self.waiting.tid = read.tid.unwrap_or(self.tid);
                        (self.waiting.time_ns, self.waiting.prefix) = (time_ns, read.prefix);
                        if read.said == Said::Nothing {
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
