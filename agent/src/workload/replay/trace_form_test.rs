//! Made programs of file calls, as strace prints them in one of its forms: what the program wrote,
//! how often it synced and what its files were at the end comes out again, and nothing is missing.

use super::imported::{ImportedTrace, number, syncs};
use super::program_model::{FIRST_TID, Moment, ProgramModel};
use super::*;
use crate::fuzz::{self, Random};

/// The form by which lines are told apart and timed.
struct TraceForm {
    /// A column of numbers (-o), or `[pid N]` where there are several threads.
    has_column: bool,
    clock: usize,
    has_durations: bool,
    has_context: bool,
    is_quiet: bool,
    line_end: &'static str,
    has_table: bool,
    now_us: u64,
}

impl TraceForm {
    fn draw(random: &mut Random) -> Self {
        let mut is = |of: usize| random.below(of) == 0;
        let (has_column, has_durations, has_context) = (is(2), is(2), is(4));
        let line_end = if is(4) { "\r\n" } else { "\n" };
        let (is_quiet, has_table) = (is(3), is(4));
        let (clock, now_us) = (random.below(4), 0);
        Self {
            has_column,
            clock,
            has_durations,
            has_context,
            is_quiet,
            line_end,
            has_table,
            now_us,
        }
    }

    fn begin(&mut self, tid: i64, live: usize) -> String {
        self.now_us += 10;
        let number = match (self.has_column, live) {
            (true, _) => format!("{tid} "),
            (false, 1) => String::new(),
            (false, _) => format!("[pid {tid:5}] "),
        };
        let context = if self.has_context { "[u:r:app_t:s0:c1,c2] " } else { "" };
        let time = match self.clock {
            0 => String::new(),
            1 => format!("1700000000.{:06} ", self.now_us),
            2 => format!("12:00:00.{:06} ", self.now_us),
            _ => "     0.000010 ".into(),
        };
        number + context + &time
    }

    fn result(&self, result: &str) -> String {
        let duration = if self.has_durations { " <0.000004>" } else { "" };
        format!(")  = {result}{duration}")
    }

    fn print(&mut self, program: &ProgramModel, random: &mut Random) -> String {
        let mut text = String::new();
        if self.has_durations && !self.has_column {
            text.push('\u{feff}');
        }
        let mut live = vec![FIRST_TID];
        for (tid, moment) in &program.moments {
            let begin = |it: &mut Self, live: &[i64]| it.begin(*tid, live.len());
            let line = match moment {
                Moment::Call(call, result) => begin(self, &live) + call + &self.result(result),
                Moment::Begin(call) => begin(self, &live) + call + " <unfinished ...>",
                Moment::End(name, rest, result) => {
                    let resumed = format!("<... {name} resumed>{rest}");
                    begin(self, &live) + &resumed + &self.result(result)
                }
                Moment::Attached(child) => {
                    live.push(*child);
                    if self.has_column || self.is_quiet {
                        continue;
                    }
                    let message = format!("strace: Process {child} attached");
                    // It may come before the end of the line that is being written.
                    let end = text.rfind(")  = ").filter(|at| {
                        text[*at..].trim_end().lines().count() == 1 && random.below(2) == 0
                    });
                    match end {
                        Some(end) => {
                            let newline = if random.below(2) == 0 { self.line_end } else { "" };
                            text.insert_str(end, &(message + newline));
                            continue;
                        }
                        None => message,
                    }
                }
                Moment::Ended => {
                    let line = begin(self, &live) + "+++ exited with 0 +++";
                    live.retain(|it| it != tid);
                    line
                }
            };
            text += &line;
            text += self.line_end;
        }
        if self.has_table {
            for line in [
                "% time     seconds  usecs/call     calls    errors syscall",
                "------ ----------- ----------- --------- --------- ----------------",
                " 98.40    0.003100        3100         1           fsync",
                "100.00    0.003146         786         4         1 total",
            ] {
                text += line;
                text += self.line_end;
            }
        }
        text
    }
}

/// One program, in one form; how many calls were replayed.
fn input(number_of_input: u64) -> usize {
    let program = ProgramModel::draw(number_of_input);
    let mut random = Random::from_seed(number_of_input + (1 << 40));
    let text = TraceForm::draw(&mut random).print(&program, &mut random);
    let context = || format!("input {number_of_input}:\n{text}");
    let found = ImportedTrace::import(text.as_bytes()).unwrap();
    let (reasons, bad) = (&found.imported.reasons, &found.imported.bad);
    assert!(reasons.is_empty(), "{reasons:?} {bad:?} {}", context());
    let closed = found.replay();
    let reasons = &closed.incomplete_reasons;
    assert!(reasons.is_empty(), "{reasons:?} {}", context());
    let told = &closed.manifest[0].1;
    assert_eq!(told["otherwise"], json!({}), "{}", context());
    assert_eq!(number(&told["written_bytes"]), program.written_bytes as u64, "{}", context());
    assert_eq!(syncs(told), program.syncs, "{}", context());
    for (name, file) in &program.names {
        let path = found.directory().join(&name[1..]);
        // That of a file which was there, and which no call has named under it, is not made.
        let size = std::fs::metadata(&path).map(|it| it.len() as i64);
        assert_eq!(size.ok(), Some(program.sizes[*file]), "{name}, {}", context());
    }
    number(&told["calls"]) as usize
}

#[test]
fn an_imported_trace_is_replayed_with_the_same_bytes_and_syncs() {
    // Input 698 reads behind what it has appended after a seek.
    assert!((0..40).chain([698]).map(input).sum::<usize>() > 1000);
}

#[test]
#[ignore = "twenty thousand programs take some minutes: make fuzz"]
fn fuzz_imported_and_replayed_programs() {
    fuzz::run("programs that are imported and replayed", 20_000, input);
}
