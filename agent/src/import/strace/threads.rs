//! The lines of each thread become its calls: the halves of a call that others interrupted are put
//! together, calls that never returned are recorded as such, and the ends of threads. Who made
//! which thread is known from the whole trace: a child's first line often comes before the line
//! that says what the call that made it returned.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, VecDeque};

use super::decode::{self, DecodedCall};
use super::line::{self, LineContent, is_of_name};
use super::merge::{Merge, MergedLines, Times};
use super::values;
use crate::errors::WrongUse;
use crate::import::book::{BegunCall, Book, Impossible, ThreadCreation};
use crate::import::effects;
use crate::import::lines::BadLines;
use crate::import::traced_call::TracedCall;
use crate::recorder::calls::SystemCall;
use crate::system_calls;

/// Bytes of calls under way, over all threads.
const MOST_BEGUN_BYTES: usize = 256 << 20;
/// Names of calls that are left out; Linux has some four hundred.
const MOST_NAMES: usize = 1000;

struct Half {
    text: Vec<u8>,
    begun: BegunCall,
}

/// A call that was read whole, and that ends after calls of other threads have begun.
struct Ending {
    end_ns: i64,
    begun: BegunCall,
    call: Box<TracedCall>,
}

/// The threads of a trace.
#[derive(Default)]
pub struct Threads {
    halves: HashMap<i64, Half>,
    halves_bytes: usize,
    /// Whether the lines are of several files: those of one tell by their order what ended before
    /// what, to which rounded times would not keep.
    is_merged: bool,
    endings: HashMap<i64, Ending>,
    /// Time, call and thread of what is in `endings`, or was.
    by_end: BinaryHeap<Reverse<(i64, i64, i64)>>,
    pub left_out: BTreeMap<String, u64>,
    pub ends: Times,
    pub began_ns: Option<i64>,
}

impl Threads {
    /// Return the threads of one file, or of several.
    pub fn new(is_merged: bool) -> Self {
        Threads { is_merged, ..Threads::default() }
    }

    /// Takes a line.
    ///
    /// # Errors
    /// If it shows that the trace is none.
    pub fn line(
        &mut self,
        next: &Merge,
        book: &mut Book,
        bad: &mut BadLines,
    ) -> anyhow::Result<()> {
        let Ok(Some(read)) = line::read(&next.text) else { return Ok(()) };
        if let (LineContent::Call(text) | LineContent::Unfinished(text), false) =
            (&read.content, read.is_event())
        {
            let fault = decode::parts(text).err();
            let (at, what) = fault.map_or((0, "no call"), |fault| (fault.at, fault.what));
            bad.line(&next.file, next.number, next.prefix + at, what, &next.text)?;
            return Ok(());
        }
        let now_ns = next.time_ns.unwrap_or(book.next_call_id);
        let located = |error: Impossible| {
            let (file, line) = (next.file.display(), next.number);
            WrongUse(format!("{file}: line {line}: {error}: no trace of a program's calls"))
        };
        self.end_until(now_ns, book).map_err(located)?;
        self.end_of_thread(next.tid, book).map_err(located)?;
        book.thread(next.tid, now_ns);
        let faulty = match read.content {
            LineContent::Call(text) => {
                self.cut_off(next.tid, book).map_err(located)?;
                self.call(next, text, now_ns, book).map_err(located)?
            }
            LineContent::Unfinished(text) => {
                self.cut_off(next.tid, book).map_err(located)?;
                self.began(next.tid, text, now_ns, book)?;
                None
            }
            LineContent::Resumed(name, rest) => {
                self.resume(next, name, rest, book).map_err(located)?
            }
            LineContent::Exited(code) => {
                self.cut_off(next.tid, book).map_err(located)?;
                book.end_thread(next.tid, now_ns, Some(code), None);
                None
            }
            LineContent::Killed(signal) => {
                self.cut_off(next.tid, book).map_err(located)?;
                book.end_thread(next.tid, now_ns, None, values::signal(signal));
                None
            }
            LineContent::Superseded(by) => {
                self.cut_off(next.tid, book).map_err(located)?;
                if let Some(half) = self.halves.remove(&by) {
                    self.halves.insert(next.tid, half);
                }
                book.note_superseded(next.tid, by, now_ns);
                None
            }
            LineContent::Attached(..) | LineContent::Detached(_) | LineContent::Nothing => None,
        };
        if let Some((at, what)) = faulty {
            bad.line(&next.file, next.number, next.prefix + at, what, &next.text)?;
        }
        Ok(())
    }

    /// End the trace: calls that are under way have no end.
    ///
    /// # Errors
    /// If no program can do such a thing.
    pub fn end(&mut self, book: &mut Book) -> Result<(), Impossible> {
        self.end_until(i64::MAX, book)?;
        let mut left: Vec<i64> = self.halves.keys().copied().collect();
        left.sort_unstable();
        left.into_iter().try_for_each(|tid| self.cut_off(tid, book))
    }

    /// A call in one line. Where it is none: from which letter on, and why.
    fn call(
        &mut self,
        next: &Merge,
        text: &[u8],
        now_ns: i64,
        book: &mut Book,
    ) -> Result<Option<(usize, &'static str)>, Impossible> {
        match decode::decode(text) {
            Err(fault) => Ok(Some((fault.at, fault.what))),
            Ok(DecodedCall::Other(name)) => {
                self.leave_out(name);
                Ok(None)
            }
            Ok(DecodedCall::Recorded(call, duration_ns)) => {
                let begun = self.begin(next.tid, call.system_call, now_ns, book);
                let timed = duration_ns.filter(|_| next.time_ns.is_some());
                match timed.map(|ns| now_ns.saturating_add(ns)) {
                    Some(end_ns) if self.is_merged => {
                        self.by_end.push(Reverse((end_ns, begun.call_id, next.tid)));
                        self.endings.insert(next.tid, Ending { end_ns, begun, call });
                        Ok(None)
                    }
                    end_ns => self.finish(begun, *call, end_ns, book).map(|()| None),
                }
            }
        }
    }

    fn begin(&mut self, tid: i64, call: &SystemCall, now_ns: i64, book: &mut Book) -> BegunCall {
        let begun = book.begin(tid, now_ns);
        self.began_ns.get_or_insert(now_ns);
        if call.makes_thread() {
            book.note_clone_begin(begun);
        }
        begun
    }

    fn finish(
        &mut self,
        begun: BegunCall,
        call: TracedCall,
        end_ns: Option<i64>,
        book: &mut Book,
    ) -> Result<(), Impossible> {
        if call.row.result.is_some() {
            self.ends.with_end += u64::from(end_ns.is_some());
            self.ends.without_end += u64::from(end_ns.is_none());
        } else if !matches!(call.system_call.name, "exit" | "exit_group") {
            self.ends.unseen_ends += 1;
        }
        effects::end_call(book, begun, call, end_ns)
    }

    /// Calls that have ended by then.
    fn end_until(&mut self, now_ns: i64, book: &mut Book) -> Result<(), Impossible> {
        while let Some(Reverse((_, call_id, tid))) =
            self.by_end.peek().filter(|Reverse((end_ns, ..))| *end_ns <= now_ns).copied()
        {
            self.by_end.pop();
            if self.endings.get(&tid).is_some_and(|it| it.begun.call_id == call_id) {
                self.end_of_thread(tid, book)?;
            }
        }
        Ok(())
    }

    /// A thread that goes on has ended its call, whatever rounded times say.
    fn end_of_thread(&mut self, tid: i64, book: &mut Book) -> Result<(), Impossible> {
        let Some(Ending { end_ns, begun, call }) = self.endings.remove(&tid) else { return Ok(()) };
        self.finish(begun, *call, Some(end_ns), book)
    }

    fn began(
        &mut self,
        tid: i64,
        text: &[u8],
        now_ns: i64,
        book: &mut Book,
    ) -> Result<(), WrongUse> {
        // Whether it is a call that is recorded its name tells; all else comes with its end.
        let name = text.iter().take_while(|letter| is_of_name(**letter)).count();
        let name = std::str::from_utf8(&text[..name]).unwrap_or_default();
        let Some((call, _)) = super::decode::call(name) else {
            self.leave_out(super::decode::short(name).to_owned());
            return Ok(());
        };
        if call.number == system_calls::SYS_mmap && super::decode::names_no_file(text) {
            self.leave_out(super::decode::MAPPING.to_owned());
            return Ok(());
        }
        let begun = self.begin(tid, call, now_ns, book);
        self.halves_bytes += text.len();
        if self.halves_bytes > MOST_BEGUN_BYTES {
            let what = "calls that never return have more than 256 MiB; cut the trace";
            return Err(WrongUse(what.into()));
        }
        self.halves.insert(tid, Half { text: text.to_vec(), begun });
        Ok(())
    }

    fn take_half(&mut self, tid: i64) -> Option<Half> {
        let half = self.halves.remove(&tid)?;
        self.halves_bytes -= half.text.len();
        Some(half)
    }

    fn resume(
        &mut self,
        next: &Merge,
        name: &[u8],
        rest: &[u8],
        book: &mut Book,
    ) -> Result<Option<(usize, &'static str)>, Impossible> {
        let Some(Half { mut text, begun }) = self.take_half(next.tid) else {
            // Others were counted when they began.
            let name = std::str::from_utf8(name).unwrap_or_default();
            book.counts.missed.begun_before += u64::from(super::decode::call(name).is_some());
            return Ok(None);
        };
        text.extend_from_slice(rest);
        match decode::decode(&text) {
            Err(fault) => Ok(Some((0, fault.what))),
            Ok(DecodedCall::Other(name)) => {
                self.leave_out(name);
                Ok(None)
            }
            Ok(DecodedCall::Recorded(call, duration_ns)) => {
                let end_ns = match (next.time_ns, duration_ns) {
                    (Some(_), Some(duration)) => Some(begun.begin_ns.saturating_add(duration)),
                    (now, None) => now,
                    (None, _) => None,
                };
                self.finish(begun, *call, end_ns, book).map(|()| None)
            }
        }
    }

    /// A call of which no end was seen.
    fn cut_off(&mut self, tid: i64, book: &mut Book) -> Result<(), Impossible> {
        let Some(Half { text, begun }) = self.take_half(tid) else { return Ok(()) };
        match decode::decode_begun(&text) {
            Some(DecodedCall::Recorded(call, _)) => self.finish(begun, *call, None, book),
            _ => Ok(()),
        }
    }

    fn leave_out(&mut self, name: String) {
        let is_known = self.left_out.contains_key(&name) || self.left_out.len() < MOST_NAMES;
        let name = if is_known { name } else { "others".into() };
        *self.left_out.entry(name).or_default() += 1;
    }
}

/// The threads that were made, by their number; of numbers that came again, in order.
///
/// # Errors
/// If a file cannot be read.
pub fn creations(
    mut merged: MergedLines,
) -> anyhow::Result<HashMap<i64, VecDeque<ThreadCreation>>> {
    let mut found: HashMap<i64, VecDeque<ThreadCreation>> = HashMap::new();
    let mut begun: HashMap<i64, Vec<u8>> = HashMap::new();
    // What is wrong with lines is told when they are read for good.
    let mut unheeded = BadLines::default();
    while let Some(next) = merged.next(&mut unheeded)? {
        let text = &next.text[next.prefix..];
        if !makes_thread(text) {
            continue;
        }
        let whole = match line::read(&next.text) {
            Ok(Some(line)) => match line.content {
                LineContent::Call(text) => text.to_vec(),
                LineContent::Unfinished(text) => {
                    begun.insert(next.tid, text.to_vec());
                    continue;
                }
                LineContent::Resumed(_, rest) => match begun.remove(&next.tid) {
                    Some(text) => [&text, rest].concat(),
                    None => continue,
                },
                _ => continue,
            },
            _ => continue,
        };
        if let Ok(DecodedCall::Recorded(call, _)) = decode::decode(&whole)
            && let Some(child) = call.child()
        {
            let flags = call.row.flags.unwrap_or(0);
            found.entry(child).or_default().push_back(ThreadCreation { creator: next.tid, flags });
        }
    }
    Ok(found)
}

fn makes_thread(text: &[u8]) -> bool {
    let text = text.strip_prefix(b"<... ").unwrap_or(text);
    [&b"clone"[..], b"fork", b"vfork"].iter().any(|name| text.starts_with(name))
}
