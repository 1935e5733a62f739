//! The lines of a trace as strace meant them: what else came to the same place is taken out. strace
//! writes messages of its own to its standard error, where a line may just be half written; the
//! terminal shows Ctrl-C there; and -C has a table behind the calls.

use std::collections::VecDeque;
use std::io;

use super::decode;
use super::line::{self, LineContent, LineStamp};
use crate::import::lines::{Lines, Next};

/// The end that is read behind a half without its other half.
const CUT: &[u8] = b" <unfinished ...>";
/// The heads of the table that -C, -c and -U print.
const COLUMNS: [&[u8]; 9] = [
    b"%",
    b"time",
    b"seconds",
    b"shortest",
    b"longest",
    b"usecs/call",
    b"calls",
    b"errors",
    b"syscall",
];

type NumberedLine = (Vec<u8>, u64);

/// The first half of a line.
struct FirstHalf {
    text: Vec<u8>,
    number: u64,
    /// The messages behind it.
    messages: Vec<NumberedLine>,
}

/// A file's lines.
pub struct JoinedLines {
    pub lines: Lines,
    /// The number of the line that was given last.
    pub number: u64,
    half: Option<FirstHalf>,
    waiting: VecDeque<NumberedLine>,
    is_in_table: bool,
}

impl JoinedLines {
    pub fn new(lines: Lines) -> Self {
        let (half, waiting) = (None, VecDeque::new());
        JoinedLines { lines, number: 0, half, waiting, is_in_table: false }
    }

    /// Reads the next line into a buffer.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn next(&mut self, line: &mut Vec<u8>) -> io::Result<Next> {
        loop {
            if let Some((text, number)) = self.waiting.pop_front() {
                (*line, self.number) = (text, number);
                return Ok(Next::Line);
            }
            let next = self.lines.next(line)?;
            self.number = self.lines.number;
            match next {
                Next::Line if self.is_of_table(line) => {}
                Next::Line if self.is_line(line) => return Ok(next),
                Next::Line => {}
                Next::TooLong => return Ok(next),
                Next::End => match self.half.take() {
                    Some(half) => self.end_half(half),
                    None => return Ok(next),
                },
            }
        }
    }

    /// Return whether a line can be given as it is; else what there is to give waits.
    fn is_line(&mut self, line: &mut Vec<u8>) -> bool {
        without_echo(line);
        let number = self.number;
        if let Some(mut half) = self.half.take() {
            if let Some((0, end)) = message(line) {
                half.messages.push((line.drain(..end).collect(), number));
            }
            if line.trim_ascii().is_empty() {
                self.half = Some(half);
            } else if goes_on(&half.text, line) {
                half.text.append(line);
                self.split(half);
            } else {
                self.end_half(half);
                let text = std::mem::take(line);
                self.split(FirstHalf { text, number, messages: Vec::new() });
            }
            return false;
        }
        let is_blank = |text: &[u8]| text.trim_ascii().is_empty();
        let is_whole =
            |(begin, end): (usize, usize)| is_blank(&line[..begin]) && is_blank(&line[end..]);
        if message(line).is_none_or(is_whole) {
            return true;
        }
        let text = std::mem::take(line);
        self.split(FirstHalf { text, number, messages: Vec::new() });
        false
    }

    /// Takes the messages out of a line: they come behind it. Where the last one ends it, the line
    /// is a half.
    fn split(&mut self, mut line: FirstHalf) {
        while let Some((begin, end)) = message(&line.text) {
            line.messages.push((line.text[begin..end].to_vec(), line.number));
            let is_last = line.text[end..].trim_ascii().is_empty();
            line.text.drain(begin..end);
            if is_last {
                line.text.truncate(begin);
                self.half = Some(line);
                return;
            }
        }
        self.waiting.push_back((line.text, line.number));
        self.waiting.extend(line.messages);
    }

    /// The other half of a line does not come.
    fn end_half(&mut self, half: FirstHalf) {
        if !is_empty(&half.text) {
            self.waiting.push_back(([&half.text, CUT].concat(), half.number));
        }
        self.waiting.extend(half.messages);
    }

    /// Return whether a line is of the table of -C; it has a head, and rows of numbers with a name.
    fn is_of_table(&mut self, line: &[u8]) -> bool {
        let words = || {
            let words = line.split(u8::is_ascii_whitespace);
            words.filter(|word| !word.is_empty())
        };
        let is_rule = words().count() > 1
            && words().all(|word| word.len() > 2 && word.iter().all(|letter| *letter == b'-'));
        let is_head = words().count() > 1 && words().all(|word| COLUMNS.contains(&word));
        let is_number =
            |word: &&[u8]| word.iter().all(|letter| letter.is_ascii_digit() || *letter == b'.');
        let is_name = |word: &&[u8]| word.iter().all(|letter| line::is_of_name(*letter));
        let others: Vec<&[u8]> = words().filter(|word| !is_number(word)).collect();
        let is_row = others.len() == 1 && words().count() > 1 && others.iter().all(is_name);
        let is_title = line.starts_with(b"System call usage summary for ");
        self.is_in_table = is_rule || is_head || is_title || self.is_in_table && is_row;
        self.is_in_table
    }
}

/// Return whether nothing but the beginning of a line had been written.
fn is_empty(half: &[u8]) -> bool {
    match line::read(half) {
        Ok(Some(found)) => found.content == LineContent::Call(b""),
        Ok(None) => true,
        Err(_) => false,
    }
}

/// Return whether a line is the other half of one.
fn goes_on(half: &[u8], line: &[u8]) -> bool {
    let Ok(Some(found)) = line::read(line) else { return true };
    if found.tid.is_some() || found.stamp != LineStamp::None {
        return false;
    }
    let is_call = |text: &[u8]| decode::parts(text).is_ok();
    match found.content {
        LineContent::Call(text) => !is_call(text) || is_empty(half),
        LineContent::Unfinished(_) => true,
        // Nothing but that the call does not end here.
        LineContent::Nothing => line.trim_ascii_start().starts_with(b"<"),
        _ => false,
    }
}

/// Takes away what the terminal shows of Ctrl-C and its like, where no string has it.
fn without_echo(line: &mut Vec<u8>) {
    if !line.contains(&b'^') {
        return;
    }
    let echoes: Vec<usize> = outside_strings(line)
        .filter(|at| {
            line[*at] == b'^'
                && matches!(line.get(at + 1), Some(b'C' | b'Z' | b'\\'))
                && (*at == 0 || line[at - 1] != b'/')
        })
        .collect();
    for at in echoes.into_iter().rev() {
        line.drain(at..at + 2);
    }
}

/// Begin and end of the first message of strace's own.
fn message(line: &[u8]) -> Option<(usize, usize)> {
    let has = |word: &[u8]| line.windows(word.len()).any(|part| part == word);
    if !has(b"strace") && !has(b"Process ") {
        return None;
    }
    outside_strings(line).find_map(|at| {
        let rest = &line[at..];
        if let Some(end) = end_of_note(rest) {
            return Some((at, at + end));
        }
        let named = rest.strip_prefix(b"strace: ")?;
        let end = end_of_note(named).unwrap_or(named.len());
        Some((begin_of_path(&line[..at]), line.len() - named.len() + end))
    })
}

/// Return the byte at which the path begins by which strace was run, if one ends the text.
fn begin_of_path(text: &[u8]) -> usize {
    if text.last() != Some(&b'/') {
        return text.len();
    }
    let is_of_path = |letter: &u8| letter.is_ascii_alphanumeric() || b"/._-+".contains(letter);
    let letters = text.iter().rev().take_while(|letter| is_of_path(letter)).count();
    let run = &text[text.len() - letters..];
    let slash = run.iter().position(|letter| *letter == b'/').unwrap_or(0);
    let dots = run[..slash].iter().rev().take_while(|letter| **letter == b'.').count();
    text.len() - letters + slash - dots
}

/// The end of `Process 12 attached` and its like, and of `[ Process PID=12 runs in 32 bit mode. ]`.
fn end_of_note(text: &[u8]) -> Option<usize> {
    if text.starts_with(b"[ Process PID=") {
        let end = text.windows(2).position(|pair| pair == b" ]")?;
        return Some(end + 2);
    }
    let rest = text.strip_prefix(b"Process ")?;
    let digits = rest.iter().take_while(|letter| letter.is_ascii_digit()).count();
    let rest = rest[digits..].strip_prefix(b" ").filter(|_| digits > 0)?;
    let words = [&b"attached"[..], b"detached", b"suspended", b"resumed"];
    let mut rest = words.iter().find_map(|word| rest.strip_prefix(*word))?;
    let behind = [&b" with "[..], b" - interrupt to quit", b" (waiting for parent)", b" (parent "];
    if behind.iter().any(|words| rest.starts_with(words)) {
        rest = b"";
    }
    Some(text.len() - rest.len())
}

/// The places of a line that are in no string.
fn outside_strings(line: &[u8]) -> impl Iterator<Item = usize> + '_ {
    let (mut is_inside, mut is_escaped) = (false, false);
    line.iter().enumerate().filter_map(move |(at, letter)| {
        let was_inside = is_inside;
        match letter {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_inside => is_escaped = true,
            b'"' => is_inside = !is_inside,
            _ => {}
        }
        (!was_inside && !is_inside).then_some(at)
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn joined(text: &str) -> Vec<String> {
        let text = text.as_bytes().to_vec();
        let mut lines = JoinedLines::new(Lines::from_text(Path::new("x"), text));
        let (mut line, mut found) = (Vec::new(), Vec::new());
        while lines.next(&mut line).unwrap() == Next::Line {
            found.push(String::from_utf8(line.clone()).unwrap());
        }
        found
    }

    #[test]
    fn messages_are_taken_out_of_lines_and_halves_are_one() {
        for text in [
            "clone(strace: Process 5 attached\nflags=0) = 5",
            "clone(Process 5 attached\nflags=0) = 5",
            "clone(flags=0strace: Process 5 attached\n) = 5",
            "clone(flags=0strace: Process 5 attached) = 5",
            "clone(flags=0/usr/bin/strace: Process 5 attached\n\n) = 5",
            "clone(flags=0./strace: Process 5 attached) = 5",
        ] {
            let found = joined(text);
            assert_eq!((found.len(), found[0].as_str()), (2, "clone(flags=0) = 5"), "{text}");
            assert!(found[1].ends_with("Process 5 attached"), "{text}");
        }
        assert_eq!(
            joined("read(6, ^Cstrace: Process 115 detached\n <detached ...>"),
            ["read(6,  <detached ...>", "strace: Process 115 detached"]
        );
        assert_eq!(
            joined("7 read(6, strace: umovestr: short read\n[pid 8] close(6) = 0\nclose(7) = 0"),
            [
                "7 read(6,  <unfinished ...>",
                "strace: umovestr: short read",
                "[pid 8] close(6) = 0",
                "close(7) = 0"
            ]
        );
        assert_eq!(
            joined("[pid 7] strace: Process 8 attached\nclose(6) = 0"),
            ["[pid 7] close(6) = 0", "strace: Process 8 attached"]
        );
        let inside = "write(1, \"strace: Process 5 attached ^C\", 29) = 29";
        assert_eq!(joined(inside), [inside]);
        assert_eq!(joined("read(0, ^C0x7ffd, 5) = ? E (x)"), ["read(0, 0x7ffd, 5) = ? E (x)"]);
        assert_eq!(joined("read(6, strace: Process 1 detached").len(), 2);
    }

    #[test]
    fn the_table_behind_the_calls_is_none_of_them() {
        let table = "close(3) = 0\n% time     seconds  usecs/call     calls    errors syscall\n\
                     ------ ----------- ----------- --------- --------- ---------------\n 98.40    \
                     0.003100        3100         1         1 fsync\n100.00    0.003100      1550 \
                     2           total\nclose(4) = 0";
        assert_eq!(joined(table), ["close(3) = 0", "close(4) = 0"]);
        let ordered = "calls    errors syscall\n--------- --------- ----\n  12       1 futex\nx y";
        assert_eq!(joined(ordered), ["x y"]);
        assert_eq!(joined("1700000000.5 close"), ["1700000000.5 close"]);
    }
}
