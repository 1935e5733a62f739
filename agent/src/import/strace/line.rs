//! The content of a line of strace's output: a call, a part of one, a signal, an end; its thread
//! and its time. Reads all the forms that options give the beginning of a line:
//!
//!     [pid 12] | 12 | 12<sh>       -f, -f with -o, -Y; nothing with -ff
//!     1700000000.123456            -ttt; 12:34:56.123456 with -tt, 0.000123 with -r, and no time
//!     [00007f0012345678] [  257]   -i, -n
//!     [system_u:system_r:app_t:s0] --secontext, before the time

/// The place at which a text stops to be a line, in bytes from 0, and the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    pub at: usize,
    pub what: &'static str,
}

impl Fault {
    pub fn new(at: usize, what: &'static str) -> Self {
        Fault { at, what }
    }
}

/// The time that a line begins with, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineStamp {
    None,
    /// Since 1970.
    Absolute(i64),
    /// Since midnight.
    OfDay(i64),
    /// Since the line before.
    Relative(i64),
}

/// The content of a line; a call's text is still to be cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LineContent<'a> {
    Call(&'a [u8]),
    /// The first part of a call.
    Unfinished(&'a [u8]),
    /// The name and the last part of a call.
    Resumed(&'a [u8], &'a [u8]),
    Exited(i64),
    Killed(&'a [u8]),
    /// The thread of that number executes, and takes the number of its process.
    Superseded(i64),
    /// strace begins to follow the thread of that number; of a process with several, how many.
    Attached(i64, Option<i64>),
    /// It follows it no longer.
    Detached(i64),
    /// Signals, stacks of -k, and what strace tells of itself.
    Nothing,
}

/// A line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceLine<'a> {
    /// The kernel's number of the thread; none where the line has none.
    pub tid: Option<i64>,
    pub stamp: LineStamp,
    pub content: LineContent<'a>,
    /// Letters before what it says.
    pub prefix: usize,
}

impl TraceLine<'_> {
    /// Return whether it tells of a call, or of the end of a thread.
    pub fn is_event(&self) -> bool {
        match self.content {
            LineContent::Call(text) | LineContent::Unfinished(text) => {
                let name = text.iter().take_while(|letter| is_of_name(**letter)).count();
                name > 0 && text.get(name) == Some(&b'(')
            }
            LineContent::Resumed(..)
            | LineContent::Exited(_)
            | LineContent::Killed(_)
            | LineContent::Superseded(_) => true,
            LineContent::Attached(..) | LineContent::Detached(_) | LineContent::Nothing => false,
        }
    }
}

/// Return whether a letter can stand in the name of a call; `#64` ends those of a process of
/// another kind.
pub fn is_of_name(letter: u8) -> bool {
    letter.is_ascii_alphanumeric() || letter == b'_' || letter == b'#'
}

/// No thread has a larger number (PID_MAX_LIMIT, linux/threads.h).
const MOST_TID: i64 = 1 << 22;
/// A time since 1970 is larger, and one since the line before is smaller, in seconds: three years.
const LEAST_ABSOLUTE: i64 = 100_000_000;
const NS: i64 = 1_000_000_000;

/// Reads a line, without the letter that ends it; none where it is empty.
///
/// # Errors
/// At the letter from which it is none.
pub fn read(text: &[u8]) -> Result<Option<TraceLine<'_>>, Fault> {
    let text = text.trim_ascii_end();
    let mut rest = Rest { text, at: 0 };
    rest.skip_blanks();
    if rest.left().is_empty() {
        return Ok(None);
    }
    let tid = rest.tid();
    rest.skip_context();
    let stamp = rest.stamp()?;
    rest.skip_bracketed();
    let left = rest.left();
    let content = read_content(left).map_err(|fault| Fault::new(rest.at + fault.at, fault.what))?;
    Ok(Some(TraceLine { tid, stamp, content, prefix: rest.at }))
}

fn read_content(text: &[u8]) -> Result<LineContent<'_>, Fault> {
    if let Some(inner) = text.strip_prefix(b"+++ ") {
        return Ok(end_of_thread(inner));
    }
    // Signals, stacks of -k, dumps of -e read and -e write.
    let others = [&b"--- "[..], b"> ", b"| ", b"* ", b"[ Process PID="];
    if others.iter().any(|begin| text.starts_with(begin)) {
        return Ok(LineContent::Nothing);
    }
    if let Some(said) = own_note(text) {
        return Ok(said);
    }
    if let Some(inner) = text.strip_prefix(b"<... ") {
        let end = inner.windows(8).position(|part| part == b"resumed>");
        let end = end.ok_or(Fault::new(5, "<... is not followed by resumed>"))?;
        let rest = &inner[end + 8..];
        // It was killed: what it would have been given is not known.
        let rest = rest.trim_ascii_start().strip_prefix(b"<unfinished ...>").unwrap_or(rest);
        return Ok(LineContent::Resumed(inner[..end].trim_ascii(), rest));
    }
    let is_cut = |end: &&&[u8]| text.ends_with(end);
    let ends = [&b"<unfinished ...>"[..], b"<detached ...>", b"<no return ...>"];
    let gone = text.windows(8).rposition(|part| part == b"<ptrace(");
    let gone = gone.filter(|_| text.ends_with(b":No such process>"));
    let end = ends.iter().find(is_cut).map(|end| text.len() - end.len()).or(gone);
    let Some(end) = end else { return Ok(LineContent::Call(text)) };
    let begun = &text[..end];
    Ok(if begun.trim_ascii().is_empty() {
        LineContent::Nothing
    } else {
        LineContent::Unfinished(begun)
    })
}

/// Return a note of strace about itself: `strace: ...`, by whatever path it was run, `Process 12
/// attached`.
fn own_note(text: &[u8]) -> Option<LineContent<'_>> {
    let begin = text.windows(8).position(|part| part == b"strace: ").filter(|begin| {
        let path = &text[..*begin];
        path.is_empty()
            || path.ends_with(b"/")
                && !path.iter().any(|it| it.is_ascii_whitespace() || *it == b'"')
    });
    let named = begin.map(|begin| &text[begin + 8..]);
    let words = named.unwrap_or(text);
    let of_process = || {
        let rest = words.strip_prefix(b"Process ")?;
        let digits = rest.iter().take_while(|letter| letter.is_ascii_digit()).count();
        let tid = number(&rest[..digits])?;
        let rest = rest[digits..].strip_prefix(b" ")?;
        if let Some(rest) = rest.strip_prefix(b"attached") {
            let threads = rest.strip_prefix(b" with ").and_then(|it| it.strip_suffix(b" threads"));
            return Some(LineContent::Attached(tid, threads.and_then(number)));
        }
        let detached = rest.starts_with(b"detached").then_some(LineContent::Detached(tid));
        let others = [&b"suspended"[..], b"resumed"];
        let other = others.iter().any(|it| rest.starts_with(it)).then_some(LineContent::Nothing);
        detached.or(other)
    };
    of_process().or(named.map(|_| LineContent::Nothing))
}

fn end_of_thread(text: &[u8]) -> LineContent<'_> {
    let text = text.strip_suffix(b" +++").unwrap_or(text);
    if let Some(code) = text.strip_prefix(b"exited with ") {
        let code = std::str::from_utf8(code).ok().and_then(|code| code.parse().ok());
        return code.map_or(LineContent::Nothing, LineContent::Exited);
    }
    if let Some(signal) = text.strip_prefix(b"killed by ") {
        let letters = signal.iter().take_while(|letter| !letter.is_ascii_whitespace()).count();
        return LineContent::Killed(&signal[..letters]);
    }
    let by = text.strip_prefix(b"superseded by execve in pid ").and_then(number);
    by.map_or(LineContent::Nothing, LineContent::Superseded)
}

struct Rest<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Rest<'a> {
    fn left(&self) -> &'a [u8] {
        &self.text[self.at..]
    }

    fn skip_blanks(&mut self) {
        self.at += self.left().iter().take_while(|letter| letter.is_ascii_whitespace()).count();
    }

    fn digits(&self, from: usize) -> usize {
        self.left()[from..].iter().take_while(|letter| letter.is_ascii_digit()).count()
    }

    fn tid(&mut self) -> Option<i64> {
        let is_bracketed = self.left().starts_with(b"[pid ");
        let from = if is_bracketed {
            5 + self.left()[5..].iter().take_while(|letter| **letter == b' ').count()
        } else {
            0
        };
        let digits = self.digits(from);
        let tid =
            number(&self.left()[from..from + digits]).filter(|tid| (1..=MOST_TID).contains(tid))?;
        let mut end = from + digits;
        // The name of -Y.
        if self.left().get(end) == Some(&b'<') {
            end += self.left()[end..].iter().position(|letter| *letter == b'>')? + 1;
        }
        let closes = if is_bracketed { b']' } else { b' ' };
        if self.left().get(end) != Some(&closes) {
            return None;
        }
        self.at += end + 1;
        self.skip_blanks();
        Some(tid)
    }

    /// The security context of -Z and --secontext: no blank, and no number of -i or -n.
    fn skip_context(&mut self) {
        let left = self.left();
        let Some(inner) = left.strip_prefix(b"[") else { return };
        let letters = inner.iter().take_while(|it| !b"] \t".contains(*it)).count();
        let is_number = inner[..letters].iter().all(|it| it.is_ascii_hexdigit() || *it == b'?');
        if letters > 0 && !is_number && inner.get(letters) == Some(&b']') {
            self.at += letters + 2;
            self.skip_blanks();
        }
    }

    fn stamp(&mut self) -> Result<LineStamp, Fault> {
        let stamp = self.one_stamp()?;
        // With -r and -ttt there are two.
        if stamp != LineStamp::None && self.left().starts_with(b"(+") {
            let end = self.left().iter().position(|letter| *letter == b')');
            self.at += end.ok_or(Fault::new(self.at, "a time without end"))? + 1;
            self.skip_blanks();
        }
        Ok(stamp)
    }

    fn one_stamp(&mut self) -> Result<LineStamp, Fault> {
        let wrong = Fault::new(self.at, "a time that is none");
        let digits = self.digits(0);
        if digits == 0 {
            return Ok(LineStamp::None);
        }
        let whole = number(&self.left()[..digits]).ok_or(wrong)?;
        let mut end = digits;
        let mut of_day = None;
        if self.left().get(end) == Some(&b':') {
            let mut seconds = whole;
            for _ in 0..2 {
                let digits = self.left().get(end + 1..end + 3).and_then(number).ok_or(wrong)?;
                seconds =
                    seconds.checked_mul(60).and_then(|it| it.checked_add(digits)).ok_or(wrong)?;
                end += 3;
            }
            of_day = Some(seconds).filter(|it| *it < 24 * 3600);
            of_day.ok_or(wrong)?;
        }
        let mut fraction_ns = 0;
        if self.left().get(end) == Some(&b'.') {
            let digits = self.digits(end + 1);
            let fraction = number(&self.left()[end + 1..end + 1 + digits]);
            let scale = 9_usize.checked_sub(digits).map(|zeros| 10_i64.pow(zeros as u32));
            fraction_ns = fraction.zip(scale).map(|(it, scale)| it * scale).ok_or(wrong)?;
            end += digits + 1;
        }
        if self.left().get(end).is_none_or(|letter| !letter.is_ascii_whitespace()) {
            return Err(wrong);
        }
        self.at += end;
        self.skip_blanks();
        let seconds = of_day.unwrap_or(whole);
        let ns = seconds.checked_mul(NS).and_then(|it| it.checked_add(fraction_ns)).ok_or(wrong)?;
        Ok(match of_day {
            Some(_) => LineStamp::OfDay(ns),
            None if seconds >= LEAST_ABSOLUTE => LineStamp::Absolute(ns),
            None => LineStamp::Relative(ns),
        })
    }

    /// The address of -i, the number of -n.
    fn skip_bracketed(&mut self) {
        while let Some(inner) = self.left().strip_prefix(b"[") {
            let is_number = |letter: &u8| letter.is_ascii_hexdigit() || b" ?".contains(letter);
            let letters = inner.iter().take_while(|letter| is_number(letter)).count();
            if letters == 0 || inner.get(letters) != Some(&b']') {
                return;
            }
            self.at += letters + 2;
            self.skip_blanks();
        }
    }
}

fn number(text: &[u8]) -> Option<i64> {
    std::str::from_utf8(text).ok()?.parse().ok().filter(|_| text.iter().all(u8::is_ascii_digit))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> TraceLine<'_> {
        read(text.as_bytes()).unwrap().unwrap()
    }

    #[test]
    fn every_beginning_of_a_line_is_known() {
        let call = LineContent::Call(b"close(3) = 0");
        for (text, tid, stamp) in [
            ("close(3) = 0", None, LineStamp::None),
            ("[pid    12] close(3) = 0", Some(12), LineStamp::None),
            ("12<sh> close(3) = 0", Some(12), LineStamp::None),
            ("[pid 12<sh>] 0.000012 close(3) = 0", Some(12), LineStamp::Relative(12_000)),
            (
                "12    1700000000.123456 close(3) = 0",
                Some(12),
                LineStamp::Absolute(1_700_000_000_123_456_000),
            ),
            (
                "1700000000.123456789 close(3) = 0",
                None,
                LineStamp::Absolute(1_700_000_000_123_456_789),
            ),
            ("1700000000 (+ 0.000003) close(3) = 0", None, LineStamp::Absolute(1_700_000_000 * NS)),
            ("     0.000000 close(3) = 0", None, LineStamp::Relative(0)),
            (
                "7 01:01:01.5 [00007f00] [  3] close(3) = 0",
                Some(7),
                LineStamp::OfDay(3_661_500_000_000),
            ),
            (
                "7 [system_u:system_r:app_t:s0:c1,c2] 1700000000.5 [00007f00] close(3) = 0",
                Some(7),
                LineStamp::Absolute(1_700_000_000_500_000_000),
            ),
            ("[app_t] close(3) = 0", None, LineStamp::None),
        ] {
            let found = line(text);
            assert_eq!(
                (found.tid, found.stamp, found.content),
                (tid, stamp, call.clone()),
                "{text}"
            );
        }
    }

    #[test]
    fn lines_that_are_no_calls_are_known() {
        let said = |text| line(text).content;
        assert_eq!(said("12 +++ exited with 3 +++"), LineContent::Exited(3));
        assert_eq!(
            said("+++ killed by SIGKILL (core dumped) +++"),
            LineContent::Killed(b"SIGKILL")
        );
        assert_eq!(said("+++ superseded by execve in pid 4 +++"), LineContent::Superseded(4));
        assert_eq!(said("--- SIGCHLD {si_signo=SIGCHLD} ---"), LineContent::Nothing);
        assert_eq!(said("strace: Process 12 attached"), LineContent::Attached(12, None));
        assert_eq!(
            said("/usr/bin/strace: Process 12 attached with 2 threads"),
            LineContent::Attached(12, Some(2))
        );
        assert_eq!(said("Process 12 detached"), LineContent::Detached(12));
        for text in [
            "[ Process PID=12 runs in 32 bit mode. ]",
            "strace: [ Process PID=12 runs in 32 bit mode. ]",
            "../bin/strace: Can't stat 'x'",
            " | 00000  68 65 6c 6c 6f                                    hello            |",
            " * 5 bytes in buffer 0",
            " <detached ...>",
        ] {
            assert_eq!(said(text), LineContent::Nothing, "{text}");
        }
        assert_eq!(
            said("read(3 <ptrace(SYSCALL):No such process>"),
            LineContent::Unfinished(b"read(3 ")
        );
        assert_eq!(
            said("<... fsync resumed> <unfinished ...>) = ?"),
            LineContent::Resumed(b"fsync", b") = ?")
        );
        assert_eq!(said("read(3,  <unfinished ...>"), LineContent::Unfinished(b"read(3,  "));
        assert_eq!(
            said("<... read resumed>\"a\", 1) = 1"),
            LineContent::Resumed(b"read", b"\"a\", 1) = 1")
        );
        assert_eq!(
            said("<... read resumed> \"a\", 1) = 1"),
            LineContent::Resumed(b"read", b" \"a\", 1) = 1")
        );
        assert!(read(b"  \r").unwrap().is_none());
        assert!(read(b"<... read").is_err());
        assert!(read(b"25:00:00 close(3) = 0").is_err());
        assert!(read(b"99999999999999999999.0 close(3) = 0").is_err());
    }
}
